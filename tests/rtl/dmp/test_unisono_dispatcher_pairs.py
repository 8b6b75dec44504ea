"""unisono_dispatcher_pairs: random messages and grants against a dictionary, every answer in every cycle."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

CALLS, RANKS = 8, 64


class Bench:
    """Drives the module, one cycle at a time, and knows what it should."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.forget()

    def forget(self):
        self.senders: dict[int, int] = {}
        self.grants: dict[int, dict[int, int]] = {}  # of a pair: by parity, the one that came first at the front
        self.counts = [[0] * CALLS] * 2
        self.word: int | None = None
        for name in ("ends", "forget", "begin_valid", "grant_valid", "sweeps", "pair", "kick_pair", "begin_pair"):
            getattr(self.dut, f"{name}_i").value = 0
        self.dut.begin_entry_i.value = self.dut.grant_pair_i.value = self.dut.grant_i.value = 0

    async def sweep(self):
        dut = self.dut
        dut.sweeps_i.value, dut.ends_i.value, dut.forget_i.value = 1, 1, 3
        for pair in range(CALLS * RANKS):
            dut.pair_i.value = pair
            await RisingEdge(dut.clk_i)
        dut.sweeps_i.value = dut.ends_i.value = dut.forget_i.value = 0
        await RisingEdge(dut.clk_i)

    def check(self, pair, other):
        """What the module says of these two pairs."""
        dut, grants = self.dut, self.grants.get(pair, {})
        assert bool(int(dut.sends_o.value)) == (pair in self.senders)
        assert bool(int(dut.kick_sends_o.value)) == (other in self.senders)
        if pair in self.senders:
            assert int(dut.sender_o.value) == self.senders[pair]
        if other in self.senders:
            assert int(dut.kick_sender_o.value) == self.senders[other]
        assert bool(int(dut.granted_o.value)) == bool(grants)
        if grants:
            assert int(dut.parity_o.value) == next(iter(grants))
        if self.word is not None:
            assert int(dut.grant_o.value) == self.word
        holds = sum((count > 0) << slot for slot, count in enumerate(self.counts[0]))
        assert int(dut.holds_o.value) == holds
        self.seen["both are granted"] += len(grants) == 2
        self.seen["the later one by its bit"] += len(grants) == 2 and next(iter(grants)) == 1
        self.seen["a slot holds nothing"] += holds != 0xFF

    async def cycle(self, pairs, rates):
        """Some pair is looked at; a message begins or ends, a grant comes or is forgotten, each with its rate."""
        dut, rng = self.dut, self.rng
        begin, end, grant, forget = (rng.random() < rate for rate in rates)
        pair, other, granted = (rng.choice(pairs) for _ in range(3))
        dut.pair_i.value, dut.kick_pair_i.value = pair, other
        # Another message of this slot may begin.
        free = [one for one in pairs if one // RANKS == pair // RANKS and one != pair and one not in self.senders]
        begun, entry = rng.choice(free) if begin and free else None, rng.randrange(32)
        dut.begin_valid_i.value, dut.begin_pair_i.value = begun is not None, begun or 0
        dut.begin_entry_i.value = entry
        ends = end and pair in self.senders
        dut.ends_i.value = ends
        forgotten = rng.randrange(4) if forget else 0
        dut.forget_i.value = forgotten
        word = rng.getrandbits(80)
        parity = word >> 64 & 1
        known = parity in self.grants.get(granted, {})
        # More is never granted to a message that ends.
        grant = grant and not (known and granted == pair and forgotten >> parity & 1)
        dut.grant_valid_i.value, dut.grant_pair_i.value, dut.grant_i.value = grant, granted, word
        await FallingEdge(dut.clk_i)
        self.check(pair, other)
        now = self.grants.get(pair, {})
        self.word = now[next(iter(now))] if now else None
        if grant and granted == pair:
            self.word = None  # what is read while it is written
            self.seen["raised"] += known
        if ends:
            del self.senders[pair]
        self.grants[pair] = {one: what for one, what in now.items() if not forgotten >> one & 1}
        if begun is not None:
            self.senders[begun] = entry
            self.seen["one ends, one begins"] += ends
        if grant:
            self.grants.setdefault(granted, {})[parity] = word
        count = [0] * CALLS
        for one in self.senders:
            count[one // RANKS] += 1
        for one, there in self.grants.items():
            count[one // RANKS] += len(there)
        self.counts = [*self.counts[1:], count]
        await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_messages(dut):
    rng = new_random("pairs")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    await bench.sweep()
    few = [0, 1, RANKS - 1, 3 * RANKS, 3 * RANKS + 5, 7 * RANKS, CALLS * RANKS - 1]
    for pairs in (few, few[:2], range(CALLS * RANKS)):
        for rates in ((0.5, 0.5, 0.5, 0.5), (0.9, 0.2, 0.8, 0.1), (0.1, 0.9, 0.2, 0.9), (0.3, 0.9, 0.2, 0.1)):
            for _ in range(scaled(4000, 1200)):
                await bench.cycle(pairs, rates)
    for what in (
        "both are granted",
        "the later one by its bit",
        "raised",
        "one ends, one begins",
        "a slot holds nothing",
    ):
        assert bench.seen[what] > 50, what
    # The sweep after a reset forgets everything.
    bench.forget()
    await reset_again(dut)
    await bench.sweep()
    for _ in range(1000):
        await bench.cycle(range(CALLS * RANKS), (0.3, 0.5, 0.3, 0.5))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_slot_full(dut):
    """All that a slot can hold: a message and two grants for each of its peers."""
    bench = Bench(dut, new_random("full"))
    await start_clock_and_reset(dut)
    await bench.sweep()
    for pair in range(5 * RANKS, 6 * RANKS):
        dut.pair_i.value = 5 * RANKS
        dut.begin_valid_i.value, dut.begin_pair_i.value = 1, pair
        for parity in (1, 0):
            dut.grant_valid_i.value, dut.grant_pair_i.value, dut.grant_i.value = 1, pair, parity << 64
            await RisingEdge(dut.clk_i)
            dut.begin_valid_i.value = 0
    dut.grant_valid_i.value = 0
    for pair in range(5 * RANKS, 6 * RANKS):
        dut.pair_i.value, dut.ends_i.value, dut.forget_i.value = pair, 1, 3
        await FallingEdge(dut.clk_i)
        assert int(dut.holds_o.value) == 1 << 5
        await RisingEdge(dut.clk_i)
    dut.ends_i.value = dut.forget_i.value = 0
    for left in (1, 0):
        await FallingEdge(dut.clk_i)
        assert int(dut.holds_o.value) == left << 5
        await RisingEdge(dut.clk_i)


def test_unisono_dispatcher_pairs():
    simulate("unisono_dispatcher_pairs", __file__)
