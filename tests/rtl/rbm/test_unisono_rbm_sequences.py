"""unisono_rbm_sequences: collectives of several communicators begin and end; what is over is told, and only that."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from calls import CALLS, Context, drive_context
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from hdl import scaled, simulate

COMMUNICATORS = 16


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_calls(dut):
    rng, seen = new_random("sequences"), Counter()
    dut.active_i.value = dut.begins_valid_i.value = dut.communicator_i.value = dut.sequence_i.value = 0
    dut.begins_communicator_i.value = 0
    for slot in range(CALLS):
        drive_context(dut, slot, Context(0, 0, 0, False, 0))
    await start_clock_and_reset(dut)
    # Near the end of the sequences, so that they wrap around.
    following = [rng.choice((0, 0xFFFF_FFF0, 0x7FFF_FFF8, rng.getrandbits(32))) for _ in range(COMMUNICATORS)]
    known: dict[int, int] = {}  # by communicator, the sequence after that of its newest call
    on_the_way: list[tuple[int, int, int]] = []  # cycle from which it counts, communicator, sequence
    active: set[int] = set()
    before: set[int] = set()
    busy = 2
    for cycle in range(scaled(12000, 4000)):
        await FallingEdge(dut.clk_i)
        starts = rng.random() < 0.3
        for slot in [one for one in active if rng.random() < 0.06]:
            active.discard(slot)
        begins = rng.randrange(COMMUNICATORS) if rng.random() < 0.01 else None
        # A call is seen to begin when its slot was not active in the cycle before.
        free = [one for one in range(CALLS) if one not in active | before]
        if starts and free:
            slot = rng.choice(free)
            of = rng.randrange(busy) if rng.random() < 0.8 else rng.randrange(COMMUNICATORS)
            apart = rng.random() < 0.3
            # A point-to-point call's sequence is of its pair, and says nothing.
            sequence = rng.getrandbits(32) if apart else following[of]
            active.add(slot)
            drive_context(dut, slot, Context(rng.getrandbits(32), rng.getrandbits(32), sequence, apart, of))
            if not apart:
                following[of] = (sequence + 1) & 0xFFFF_FFFF
                on_the_way.append((cycle + 2, of, following[of]))
        before = set(active)
        dut.active_i.value = sum(1 << one for one in active)
        dut.begins_valid_i.value, dut.begins_communicator_i.value = begins is not None, begins or 0
        of = rng.randrange(busy) if rng.random() < 0.8 else rng.randrange(COMMUNICATORS)
        asked = (following[of] + rng.choice((-3, -2, -1, 0, 1, 2, 2**31 - 1, 2**31))) & 0xFFFF_FFFF
        dut.communicator_i.value, dut.sequence_i.value = of, asked
        for entry in [one for one in on_the_way if one[0] <= cycle]:
            known[entry[1]] = entry[2]
            on_the_way.remove(entry)
        over = of in known and (asked - known[of]) & 0xFFFF_FFFF >= 2**31
        seen[over] += 1
        await RisingEdge(dut.clk_i)
        if begins is not None:
            known.pop(begins, None)
            # What comes to count in this cycle is of the former life, too.
            on_the_way = [one for one in on_the_way if one[:2] != (cycle + 1, begins)]
        await ReadOnly()
        assert int(dut.before_next_o.value) == over, f"cycle {cycle}: {of}, {asked:#x}, {known.get(of)}"
    assert min(seen[True], seen[False]) > 300


def test_unisono_rbm_sequences():
    simulate("unisono_rbm_sequences", __file__)
