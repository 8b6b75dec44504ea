"""unisono_switch_buffers: messages that come, prove bad, are given or thrown away; no buffer and no credit is lost."""

from collections import Counter, deque

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ENTRIES, BUFFERS = 8, 16
NAMES = ("open_valid", "open_entry", "open_credits", "entry", "take", "take_place", "bad", "bad_place", "returns",
         "returned", "look_entry", "take_credit", "pop", "pop_holds", "pop_place", "read", "read_entry",
         "read_place")  # fmt: skip


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_messages(dut):
    rng, seen = new_random("buffers"), Counter()
    for name in NAMES:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    credit = [rng.choice((1, 3, 16)) for _ in range(ENTRIES)]
    for entry in range(ENTRIES):
        dut.open_valid_i.value, dut.open_entry_i.value, dut.open_credits_i.value = 1, entry, credit[entry]
        await RisingEdge(dut.clk_i)
    dut.open_valid_i.value = 0
    held: list[tuple[int, int]] = []  # buffers with messages
    owed: Counter[int] = Counter()  # buffers of the neighbour's that are free, and not said to be
    popped: list[int] = []  # cycles of the last
    waiting: deque[int] = deque()  # since when a message that is over at once has not been said to be
    looked, shown, cycle = 0, None, 0

    async def step(part, comes, goes):
        nonlocal looked, shown, cycle
        for name in NAMES:
            handle = getattr(dut, f"{name}_i")
            handle.value = 0 if len(handle) == 1 else rng.getrandbits(len(handle))
        entry, looked = rng.randrange(ENTRIES), rng.randrange(ENTRIES)
        dut.entry_i.value, dut.look_entry_i.value = entry, looked
        used = {place for of, place in held if of == entry}
        take = rng.random() < comes and len(used) < BUFFERS
        own = [one for one in held if one[0] == entry]
        bad = rng.choice(own) if own and not take and rng.random() < part * 0.3 else None
        if bad is not None:
            dut.bad_i.value, dut.bad_place_i.value = 1, bad[1]
        returned = rng.choice((0, 1, 5)) if rng.random() < part else None
        dut.returns_i.value = returned is not None
        if returned is not None:
            dut.returned_i.value = returned
        spends = credit[looked] > 0 and rng.random() < goes
        dut.take_credit_i.value, dut.take_i.value = spends, take
        # A message is over at once, 4 in 16 cycles at most: its data are not read, or there are none.
        there = [one for one in held if one[0] == looked and one != bad]
        gone = None
        pops = rng.random() < goes and sum(at > cycle - 16 for at in popped) < 4
        if pops:
            gone = rng.choice(there) if there and rng.random() < 0.7 else None
            dut.pop_i.value, dut.pop_holds_i.value = 1, gone is not None
            if gone is not None:
                dut.pop_place_i.value = gone[1]
            popped.append(cycle)
            waiting.append(cycle)
            owed[looked] += 1
        rest = [one for one in held if one not in (bad, gone)]
        # Reads end in 16 cycles at most, one after the other.
        late = bool(waiting) and waiting[0] < cycle - 11
        given = rng.choice(rest) if rest and not late and rng.random() < goes else None
        if given is not None:
            dut.read_i.value, dut.read_entry_i.value, dut.read_place_i.value = 1, *given
            owed[given[0]] += 1
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.any_o.value)) == (len(used) < BUFFERS)
        place = int(dut.place_o.value)
        if len(used) < BUFFERS:
            assert place == min(set(range(BUFFERS)) - used)
        if take:  # another one may be taken, too
            place = rng.choice((place, *(set(range(BUFFERS)) - used)))
            dut.take_place_i.value = place
        if shown is not None:
            assert bool(int(dut.has_credit_o.value)) == shown
        if int(dut.freed_valid_o.value):
            freed = int(dut.freed_entry_o.value)
            assert owed[freed] > 0
            assert given is None or freed == given[0], "what was given goes first"
            owed[freed] -= 1
            if given is None:
                waiting.popleft()
            seen["waited"] += given is None and not pops
        else:
            assert given is None
        shown = credit[looked] > 0
        await RisingEdge(dut.clk_i)
        cycle += 1
        credit[entry] += returned or 0
        credit[looked] -= spends
        for one, what in ((bad, "bad"), (gone, "thrown away"), (given, "given")):
            if one is not None:
                held.remove(one)
                seen[what] += 1
        if take:
            held.append((entry, place))
            seen["taken"] += 1
        seen["full"] += len(used) == BUFFERS
        seen["without data"] += pops and gone is None
        seen["no credit"] += credit[looked] == 0

    for at in range(scaled(20000, 6000)):
        if at % 300 == 0:
            part, comes, goes = rng.choice((0.1, 0.5)), rng.choice((0.2, 0.6, 1.0)), rng.choice((0.05, 0.3, 0.8))
        await step(part, comes, goes)
    while held:
        await step(0, 0, 1.0)
    for _ in range(20):
        await step(0, 0, 0)
    assert not any(owed.values()), "each that is over is said to be free"
    for what in ("taken", "bad", "thrown away", "given", "full", "without data", "no credit", "waited"):
        assert seen[what] > 20, what


def test_unisono_switch_buffers():
    simulate("unisono_switch_buffers", __file__)
