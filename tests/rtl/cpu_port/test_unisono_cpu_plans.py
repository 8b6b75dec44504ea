"""unisono_cpu_plans: calls equal to kept ones but for a bit, plans that are kept and forgotten."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

PLANS = 16
BITS = {"head": 32, "flags": 13, "communicator": 32, "root": 32, "count": 64}
CYCLES = 6


def words(rng, call):
    """The descriptor; what does not matter is noise."""
    return {
        0: rng.getrandbits(19) << 45 | call["flags"] << 32 | call["head"],
        1: call["root"] << 32 | call["communicator"],
        3: call["count"],
    }


class Bench:
    def __init__(self, dut, rng, communicators):
        self.dut, self.rng, self.communicators = dut, rng, communicators
        self.states = [rng.getrandbits(32) for _ in range(communicators)]

    def random_call(self):
        rng = self.rng
        call = {name: rng.choice((0, 1, rng.getrandbits(bits))) for name, bits in BITS.items()}
        call["communicator"] = rng.choice((0, 1, self.communicators - 1, self.communicators, rng.getrandbits(32)))
        return call

    def key(self, call):
        """What decides: what is not in the table has no state."""
        known = call["communicator"] < self.communicators
        return (*call.values(), self.states[call["communicator"]] if known else 0)

    async def look(self, call, waits):
        """A call starts; what the module says of it, and where its plan would be."""
        dut, rng = self.dut, self.rng
        row, cycles = words(rng, call), 0
        asked, starts = None, False
        while True:
            # What was asked for a cycle ago stands there. A start stays.
            starts = starts or rng.random() > waits
            dut.starts_i.value = starts
            dut.descriptor_i.value = row.get(asked, rng.getrandbits(64))
            known = call["communicator"] < self.communicators
            dut.state_i.value = self.states[call["communicator"]] if known else rng.getrandbits(32)
            await FallingEdge(dut.clk_i)
            looking, asked = int(dut.looking_o.value), int(dut.word_o.value)
            if starts and not looking:
                break
            assert looking == starts
            cycles += looking
            await RisingEdge(dut.clk_i)
        assert cycles == CYCLES
        assert int(dut.communicator_o.value) == call["communicator"] & 0xFF
        assert int(dut.known_o.value) == known
        said = bool(int(dut.hit_o.value)), int(dut.plan_o.value)
        dut.taken_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.starts_i.value = dut.taken_i.value = 0
        return said

    async def tell(self, **ports):
        for name, value in ports.items():
            getattr(self.dut, f"{name}_i").value = value
        await RisingEdge(self.dut.clk_i)
        self.dut.keeps_i.value = self.dut.forgets_i.value = 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_calls(dut):
    rng, seen = new_random("plans"), Counter()
    for name in ("starts", "taken", "descriptor", "state", "keeps", "keep_place", "forgets", "forget_mask"):
        getattr(dut, f"{name}_i").value = 0
    bench = Bench(dut, rng, parameters().get("Communicators", 32))
    await start_clock_and_reset(dut)
    places: dict[tuple, int] = {}  # the hash of a call stays the same
    for _ in range(2):
        kept: dict[int, dict] = {}
        keys: dict[int, tuple] = {}  # a reset forgets all
        for _ in range(scaled(3000, 800)):
            call, kind = bench.random_call(), "new"
            if kept and rng.random() < 0.8:
                call, kind = dict(rng.choice(list(kept.values()))), "same"
                if rng.random() < 0.4:
                    name = rng.choice(list(BITS))
                    call[name] ^= 1 << rng.randrange(BITS[name])
                    kind = name
            if rng.random() < 0.1:
                bench.states[rng.randrange(2)] ^= 1 << rng.randrange(32)
                seen["anew"] += 1
            hit, plan = await bench.look(call, rng.choice((0, 0, 0.5)))
            key = bench.key(call)
            assert hit == (keys.get(plan) == key)
            assert places.setdefault(tuple(call.values()), plan) == plan
            seen[kind] += 1
            seen["hit"] += hit
            seen["plan", plan] += 1
            if not hit and rng.random() < 0.7:
                # The firmware may keep it elsewhere, too, where it is not found.
                place = plan if rng.random() < 0.9 else rng.randrange(PLANS)
                await bench.tell(keeps=1, keep_place=place, forget_mask=rng.getrandbits(PLANS))
                kept[place], keys[place] = call, key
            if rng.random() < 0.03:
                mask = rng.choice((rng.getrandbits(PLANS) & rng.getrandbits(PLANS), (1 << PLANS) - 1))
                await bench.tell(forgets=1, forget_mask=mask, keep_place=rng.randrange(PLANS))
                for place in range(PLANS):
                    if mask >> place & 1:
                        keys.pop(place, None)
                seen["forgets"] += 1
        await reset_again(dut)
    for what in ("new", "same", *BITS, "anew", "hit", "forgets"):
        assert seen[what] > 10, what
    assert all(seen["plan", place] for place in range(PLANS))


def test_unisono_cpu_plans():
    simulate("unisono_cpu_plans", __file__, {"Communicators": 32})
