"""unisono_call_table: calls that wait for one another and stand in orders, against sets and lists."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from call_descriptors import OUTSTANDING
from call_records import CANDIDATE, FOUND, KERNEL, NONE, SLOT, pack
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


class Bench:
    """The queue's steps, and the calls as they wait."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.kernels = parameters()["KernelPorts"]
        self.calls: dict[int, dict] = {}
        self.orders: dict[tuple[int, int], list[int]] = {}  # calls that have not started, the first one first
        self.slot = self.kernel = 0
        for name in ("enter", "entry", "candidate", "found", "kernel", "direct", "code", "pick", "start"):
            getattr(dut, f"{name}_i").value = 0
        for name in ("end_valid", "end_entry", "end_code", "slot_free", "kernel_free"):
            getattr(dut, f"{name}_i").value = 0

    def may_start(self, at):
        """Whether it asks: it has failed, or waits for nothing and has a place."""
        call = self.calls[at]
        if call["started"]:
            return False
        behind = any(at in order[1:] for order in self.orders.values())
        free = {NONE: True, SLOT: bool(self.slot), KERNEL: bool(self.kernel >> call["kernel"] & 1)}[call["place"]]
        return bool(call["code"]) or (not call["waits"] and not behind and free)

    async def cycle(self):
        """One cycle; all that the table says is checked in it."""
        dut = self.dut
        self.slot, self.kernel = self.rng.random() < 0.6, self.rng.getrandbits(self.kernels)
        dut.slot_free_i.value, dut.kernel_free_i.value = self.slot, self.kernel
        await FallingEdge(dut.clk_i)
        listed = sum(1 << at for at in self.calls)
        assert int(dut.listed_o.value) == listed
        assert int(dut.twin_o.value) == sum(1 << at for at, call in self.calls.items() if call["twin"])
        assert int(dut.tail_o.value) == sum(1 << order[-1] for order in self.orders.values() if order)
        assert int(dut.request_o.value) == sum(1 << at for at in self.calls if self.may_start(at))
        failed = int(dut.pick_failed_o.value), int(dut.pick_code_o.value)
        await RisingEdge(dut.clk_i)
        return failed

    async def enter(self):
        """A call that waits for up to two others, stands in an order, or is refused."""
        dut, rng = self.dut, self.rng
        entry = rng.choice([at for at in range(OUTSTANDING) if at not in self.calls])
        others = [at for at, call in self.calls.items() if not call["twin"]]
        found = {"twin": rng.random() < 0.05}
        waits = [rng.choice(others) for _ in range(2) if others and rng.random() < 0.4]
        for name, at in zip(("wait0", "wait1"), waits, strict=False):
            found |= {name: 1, f"{name}_at": at}
        code = rng.randrange(1, 256) if found["twin"] or rng.random() < 0.05 else 0
        key = (rng.randrange(4), rng.randrange(2))
        order = self.orders.setdefault(key, []) if key[0] else []
        if order:
            found |= {"order": 1, "order_at": order[-1]}
        place, kernel = rng.choice((NONE, SLOT, SLOT, KERNEL)), rng.randrange(self.kernels)
        direct = not (waits or order or code) and place == SLOT and rng.random() < 0.5
        dut.enter_i.value, dut.entry_i.value, dut.direct_i.value, dut.code_i.value = 1, entry, direct, code
        dut.candidate_i.value = pack(CANDIDATE, {"place": place, "order": key[0], "communicator": key[1]})
        dut.found_i.value, dut.kernel_i.value = pack(FOUND, found), kernel
        await self.cycle()
        dut.enter_i.value = dut.direct_i.value = 0
        self.calls[entry] = {
            "waits": set(waits),
            "place": place,
            "kernel": kernel,
            "code": code,
            "twin": found["twin"],
            "started": direct,
        }
        if key[0] and not code and not direct:
            order.append(entry)
        self.seen["direct"] += direct
        self.seen["stands behind"] += bool(found.get("order")) and not code

    async def start(self, entry):
        """It starts, or ends at once; a cycle later it leaves its order."""
        dut, call = self.dut, self.calls[entry]
        dut.start_i.value, dut.pick_i.value = 1, entry
        failed, code = await self.cycle()
        dut.start_i.value = 0
        assert bool(failed) == bool(call["code"])
        assert not failed or code == call["code"]
        call["started"] = True
        for order in self.orders.values():
            if entry in order:
                self.seen["out of its turn"] += order[0] != entry
        if failed or call["place"] == NONE:
            await self.end(entry, code if failed else 0, leaves=True)
        else:
            await self.cycle()
            self.leave(entry)

    def leave(self, entry):
        for order in self.orders.values():
            if entry in order:
                order.remove(entry)

    async def end(self, entry, code, leaves=False):
        """Who waits for it waits no more, or fails as it has; the first failure counts."""
        dut = self.dut
        dut.end_valid_i.value, dut.end_entry_i.value, dut.end_code_i.value = 1, entry, code
        await self.cycle()
        dut.end_valid_i.value = 0
        if leaves:
            self.leave(entry)
        del self.calls[entry]
        for call in self.calls.values():
            if entry in call["waits"]:
                call["waits"].discard(entry)
                self.seen["fails with it"] += bool(code and not call["code"])
                self.seen["has failed before"] += bool(code and call["code"])
                call["code"] = call["code"] or code


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("table")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for enters in (0.3, 0.6, 0.1, 0.5):
        for _ in range(scaled(12000, 4000)):
            running = [at for at, call in bench.calls.items() if call["started"]]
            asking = [at for at in bench.calls if bench.may_start(at)]
            if len(bench.calls) < OUTSTANDING and rng.random() < enters:
                await bench.enter()
            elif asking and rng.random() < 0.5:
                await bench.start(rng.choice(asking))
            elif running and rng.random() < 0.5:
                await bench.end(rng.choice(running), rng.choice((0, 0, rng.randrange(1, 256))))
            else:
                await bench.cycle()
    for what in ("direct", "stands behind", "out of its turn", "fails with it", "has failed before"):
        assert bench.seen[what] > 20, what
    # All that is there comes to its end.
    for _ in range(8000):
        running = [at for at, call in bench.calls.items() if call["started"]]
        asking = [at for at in bench.calls if bench.may_start(at)]
        if asking:
            await bench.start(asking[0])
        elif running:
            await bench.end(running[0], 0)
        else:
            await bench.cycle()
    assert not bench.calls


@pytest.mark.parametrize("kernel_ports", [1, 3])
def test_unisono_call_table(kernel_ports):
    simulate("unisono_call_table", __file__, {"KernelPorts": kernel_ports})
