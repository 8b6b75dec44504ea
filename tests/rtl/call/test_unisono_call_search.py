"""unisono_call_search: entries and failures come and go, candidates are searched for, against dictionaries."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from call_descriptors import OUTSTANDING
from call_records import CANDIDATE, FOUND, pack, unpack
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

LINE = 4


class Bench:
    """The table, the queue's steps, and what the search must know."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.count = parameters()["Requesters"]
        self.entries: dict[int, dict] = {}
        self.rings = [[None] * OUTSTANDING for _ in range(self.count)]
        self.places = [0] * self.count
        for name in ("idle", "scan", "candidate", "requester", "enter", "entry", "listed", "twin", "tail"):
            getattr(dut, f"{name}_i").value = 0
        for name in ("valid", "entry", "requester", "id", "code"):
            getattr(dut, f"end_{name}_i").value = 0

    def show(self):
        """What the table says of the entries."""
        for name in ("listed", "twin", "tail"):
            bits = sum(1 << at for at, one in self.entries.items() if name == "listed" or one[name])
            getattr(self.dut, f"{name}_i").value = bits

    async def cycle(self):
        await RisingEdge(self.dut.clk_i)
        self.show()

    async def end(self, entry, code):
        """A call ends; its failure is remembered, unless it has no id, or had that of another one."""
        dut, one = self.dut, self.entries.pop(entry)
        dut.end_valid_i.value, dut.end_entry_i.value, dut.end_requester_i.value = 1, entry, one["requester"]
        dut.end_id_i.value, dut.end_code_i.value = one["call_id"], code
        await RisingEdge(dut.clk_i)
        dut.end_valid_i.value = 0
        self.show()
        if code and one["call_id"] and not one["twin"]:
            ring, place = self.rings[one["requester"]], self.places[one["requester"]]
            ring[place] = (one["call_id"], code)
            self.places[one["requester"]] = (place + 1) % OUTSTANDING

    def want(self, requester, candidate):
        """What must be found."""
        mine = {}
        for at, one in self.entries.items():
            if one["requester"] == requester and not one["twin"] and one["call_id"]:
                mine[one["call_id"]] = at
        ring = dict(failure for failure in self.rings[requester] if failure)
        want = {"twin": candidate["call_id"] in mine}
        for name in ("wait0", "wait1"):
            want[name] = candidate[name] in mine
            if want[name]:
                want[f"{name}_at"] = mine[candidate[name]]
            want[f"{name}_code"] = ring.get(candidate[name], 0) if candidate[name] else 0
        key = (candidate["order"], candidate["communicator"])
        tails = [at for at, one in self.entries.items() if one["tail"] and (one["order"], one["communicator"]) == key]
        want["order"] = bool(tails)
        if tails:
            want["order_at"] = tails[0]
        return want

    async def search(self, requester, candidate):
        dut = self.dut
        lines = {at // LINE for at in self.entries}
        failed = {at // LINE for at, failure in enumerate(self.rings[requester]) if failure}
        dut.requester_i.value = requester
        dut.candidate_i.value = pack(CANDIDATE, candidate)
        dut.idle_i.value = 1
        pause = self.rng.choice((1, 1, 2, 4))
        for _ in range(pause):
            await self.cycle()
        want = self.want(requester, candidate)
        dut.idle_i.value, dut.scan_i.value = 0, 1
        cycles, last = 0, 0
        while not last:
            await FallingEdge(dut.clk_i)
            last = int(dut.last_o.value)
            await self.cycle()
            cycles += 1
        # Right behind an end a line may be looked at in which there is nothing any more.
        least = max(1, len(lines) + len(failed))
        assert cycles == least or (pause == 1 and cycles == least + 1), "empty lines are left out"
        dut.scan_i.value = 0
        # Its id is used anew: its failure is forgotten.
        ring = self.rings[requester]
        for at, failure in enumerate(ring):
            if failure and failure[0] == candidate["call_id"]:
                ring[at] = None
                self.seen["forgotten"] += 1
        await FallingEdge(dut.clk_i)
        found = unpack(FOUND, int(dut.found_o.value))
        wrong = {name: (found[name], value) for name, value in want.items() if found[name] != value}
        assert not wrong, (wrong, candidate, requester)
        for name in ("twin", "wait0", "wait1", "order", "wait0_code", "wait1_code"):
            self.seen[name] += bool(want[name])
        self.seen["all lines"] += len(lines) == OUTSTANDING // LINE
        return found

    async def enter(self, requester, candidate, found):
        """The candidate becomes an entry; one with an id that is outstanding is a twin, and in no order."""
        dut, rng = self.dut, self.rng
        free = [at for at in range(OUTSTANDING) if at not in self.entries]
        entry = rng.choice((free[0], rng.choice(free)))
        dut.enter_i.value, dut.entry_i.value = 1, entry
        await RisingEdge(dut.clk_i)
        dut.enter_i.value = 0
        one = {**candidate, "requester": requester, "twin": found["twin"], "tail": 0}
        if candidate["order"] and not found["twin"] and rng.random() < 0.8:
            if found["order"]:
                self.entries[found["order_at"]]["tail"] = 0
            one["tail"] = 1
        self.entries[entry] = one
        self.show()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("search")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for ends in (0.2, 0.5, 0.05, 0.45, 0.6):
        for _ in range(scaled(900, 250)):
            while bench.entries and (len(bench.entries) == OUTSTANDING or rng.random() < ends):
                await bench.end(rng.choice(list(bench.entries)), rng.choice((0, rng.randrange(1, 256))))
            requester = rng.randrange(bench.count)
            ids = rng.sample(range(60), 3)  # 0 is none
            candidate = {"call_id": ids[0], "wait0": ids[1], "wait1": ids[2]}
            candidate |= {"order": rng.randrange(4), "communicator": rng.choice((0, 1, 256))}
            found = await bench.search(requester, candidate)
            await bench.enter(requester, candidate, found)
    names = ("twin", "wait0", "wait1", "order", "wait0_code", "wait1_code")
    for what in (*names, "forgotten", "all lines"):
        assert bench.seen[what] > 20, what


@pytest.mark.parametrize("requesters", [2, 4])
def test_unisono_call_search(requesters):
    simulate("unisono_call_search", __file__, {"Requesters": requesters})
