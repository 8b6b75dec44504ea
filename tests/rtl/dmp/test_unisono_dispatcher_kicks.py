"""unisono_dispatcher_kicks: random kicks from all sides, against the order in which they go and a queue of moves."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from hdl import scaled, simulate
from kick_model import KickQueue

CALLS, RANKS, ENTRIES = 8, 64, 32
SIDES = ("kick", "follow_kick", "stream_kick", "turn_kick")


class Bench:
    """Drives the module, and says what must be kicked."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.forget()

    def forget(self):
        self.model = KickQueue()
        self.again = self.grant = self.scan = None
        self.offered = dict.fromkeys(SIDES)
        self.sends, self.communicators = {}, [0] * CALLS
        kicks = ("again", "grant", "credit", *SIDES)
        for name in ("sweeps", "next_take", *(f"{side}_valid" for side in kicks)):
            getattr(self.dut, f"{name}_i").value = 0
        self.dut.sends_i.value = self.dut.sender_i.value = self.dut.communicators_i.value = 0

    async def sweep(self):
        """Kicks wait for its end."""
        self.dut.sweeps_i.value = 1
        self.dut.grant_valid_i.value = self.dut.kick_valid_i.value = 1
        for pair in range(CALLS * RANKS):
            self.dut.sweep_pair_i.value = pair
            await ReadOnly()
            assert not int(self.dut.grant_ready_o.value)
            assert not int(self.dut.kick_ready_o.value)
            await RisingEdge(self.dut.clk_i)
        self.dut.sweeps_i.value = self.dut.grant_valid_i.value = self.dut.kick_valid_i.value = 0

    def sources(self, rate):
        """What comes in this cycle, with this probability from each side."""
        dut, rng = self.dut, self.rng
        if rng.random() < 0.05:
            self.communicators = [rng.randrange(3) for _ in range(CALLS)]
            dut.communicators_i.value = sum(one << 4 * slot for slot, one in enumerate(self.communicators))
        for side in SIDES:
            if self.offered[side] is None and rng.random() < rate:
                self.offered[side] = rng.randrange(CALLS * ENTRIES)
            getattr(dut, f"{side}_valid_i").value = self.offered[side] is not None
            getattr(dut, f"{side}_id_i").value = self.offered[side] or 0
        again = rng.randrange(CALLS * ENTRIES) if rng.random() < rate / 4 else None
        dut.again_valid_i.value, dut.again_id_i.value = again is not None, again or 0
        grant = rng.randrange(CALLS * RANKS) if rng.random() < rate else None
        dut.grant_valid_i.value, dut.grant_pair_i.value = grant is not None, grant or 0
        credit = (rng.randrange(3), rng.randrange(RANKS)) if rng.random() < rate else None
        dut.credit_valid_i.value = credit is not None
        dut.credit_communicator_i.value, dut.credit_peer_i.value = credit or (0, 0)
        return again, grant, credit

    async def cycle(self, rate=0.0, take=0.0):
        dut, rng, model = self.dut, self.rng, self.model
        again, grant, credit = self.sources(rate)
        asked = self.grant if self.grant is not None else self.scan[0] * RANKS + self.scan[2] if self.scan else None
        sender = rng.randrange(ENTRIES) if rng.random() < 0.6 else None
        dut.sends_i.value, dut.sender_i.value = sender is not None, sender or 0
        await FallingEdge(dut.clk_i)
        assert asked is None or int(dut.pair_o.value) == asked
        # Which of them kicks now.
        kick, took, moves = None, None, False
        if self.again is not None:
            kick = self.again
        elif self.grant is not None:
            kick = None if sender is None else asked // RANKS * ENTRIES + sender
        elif any(one is not None for one in self.offered.values()):
            took = next(side for side in SIDES if self.offered[side] is not None)
            kick = self.offered[took]
        elif self.scan:
            moves = True
            slot, communicator, _ = self.scan
            if sender is not None and self.communicators[slot] == communicator:
                kick = slot * ENTRIES + sender
                self.seen["credit"] += 1
        for side in SIDES:
            assert bool(int(getattr(dut, f"{side}_ready_o").value)) == (side == took)
        ready = bool(int(dut.grant_ready_o.value))
        assert ready == (self.grant is None)
        assert bool(int(dut.credit_ready_o.value)) == (self.scan is None)
        offer = model.offer()
        assert bool(int(dut.next_valid_o.value)) == (offer is not None)
        assert offer is None or int(dut.next_id_o.value) == offer
        taken = offer is not None and rng.random() < take
        dut.next_take_i.value = taken
        model.cycle(kick, taken)
        # What is there in the next cycle.
        self.seen["a grant waits for again"] += self.grant is not None and self.again is not None
        self.seen["credit waits"] += self.scan is not None and not moves
        if self.scan and moves:
            self.scan = (self.scan[0] + 1, *self.scan[1:]) if self.scan[0] < CALLS - 1 else None
        elif self.scan is None and credit:
            self.scan = (0, *credit)
        if ready:
            self.grant = grant
        elif self.again is None:
            self.grant = None
        self.again = again
        if took:
            self.offered[took] = None
            self.seen[took] += 1
        await RisingEdge(dut.clk_i)
        dut.next_take_i.value = 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_kicks(dut):
    rng = new_random("kicks")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    await bench.sweep()
    for rate, take in ((0.02, 0.3), (0.2, 0.9), (0.6, 0.2), (0.05, 0.02), (0.1, 1.0)):
        for _ in range(scaled(6000, 1500)):
            await bench.cycle(rate, take)
    for what in (*SIDES, "credit", "a grant waits for again", "credit waits"):
        assert bench.seen[what] > 20, what
    while bench.scan or bench.grant is not None or any(one is not None for one in bench.offered.values()):
        await bench.cycle()
    for _ in range(CALLS * ENTRIES + 4):
        await bench.cycle(take=1.0)
    assert not bench.model.queue
    # After a reset nothing is left, and every move may be kicked again.
    for _ in range(300):
        await bench.cycle(0.5)
    bench.forget()
    await reset_again(dut)
    await bench.sweep()
    for _ in range(600):
        await bench.cycle(0.3, 0.1)


def test_unisono_dispatcher_kicks():
    simulate("unisono_dispatcher_kicks", __file__)
