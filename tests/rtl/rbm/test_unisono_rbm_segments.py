"""unisono_rbm_segments: random segments, with memory's answers late, against a queue and three dictionaries."""

from collections import Counter, deque

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from hdl import scaled, simulate

INFO = 1 + 1 + 1 + 4 + 6 + 32 + 32 + 48 + 14 + 1 + 24 + 48  # bits of info_t
BUFFERS = 1024
INPUTS = (
    *("store_valid", "store", "info", "written", "written_error", "shown_take"),
    *("info_buffer", "link_buffer", "link_write", "link_write_buffer", "link_write_next"),
)


def pending(rng, buffer, empty):
    """A record of a segment: its pair, whether it is early, and its bucket are noise."""
    return rng.getrandbits(9 + 1 + 9) << 11 | buffer << 1 | empty


async def random_cycles(dut, rng, cycles, store, answer, take, empties, seen):
    """Stores, answers and takes with these probabilities; everything that is shown or read is compared."""
    for name in INPUTS:
        getattr(dut, f"{name}_i").value = 0
    await reset_again(dut)
    waiting: deque[tuple[int, bool]] = deque()  # records, and whether they are empty, in their order
    unanswered, answers = 0, deque()
    infos, bad, links = {}, {}, {}
    asked = {}
    free = rng.sample(range(BUFFERS), 60)
    for cycle in range(cycles):
        await FallingEdge(dut.clk_i)
        # What was asked for in the last cycle.
        for name, value in asked.items():
            assert int(getattr(dut, f"{name}_o").value) == value, f"cycle {cycle}: {name}"
        shown = bool(waiting) and (waiting[0][1] or bool(answers))
        assert int(dut.shown_valid_o.value) == shown, f"cycle {cycle}"
        if shown:
            assert int(dut.shown_o.value) == waiting[0][0]
            is_bad = not waiting[0][1] and answers[0]
            assert int(dut.shown_bad_o.value) == is_bad
            seen["an empty one overtakes no write"] += waiting[0][1] and bool(answers)
        ready = int(dut.store_ready_o.value)
        assert ready == (len(waiting) < 16), f"cycle {cycle}: {len(waiting)} wait"
        seen["full"] += not ready
        takes, stores = shown and rng.random() < take, bool(ready) and bool(free) and rng.random() < store
        buffer = free.pop(0) if stores else rng.randrange(BUFFERS)
        empty = rng.random() < empties
        record, info = pending(rng, buffer, empty), rng.getrandbits(INFO)
        dut.store_valid_i.value, dut.store_i.value, dut.info_i.value = stores, record, info
        answered, error = unanswered > 0 and rng.random() < answer, rng.random() < 0.2
        dut.written_i.value, dut.written_error_i.value = answered, error
        dut.shown_take_i.value = takes
        asks, follows = rng.choice(list(infos) or [0]), rng.choice(list(links) or [0])
        dut.info_buffer_i.value, dut.link_buffer_i.value = asks, follows
        asked = {"info": infos[asks]} if asks in infos else {}
        if asks in bad:
            asked["bad"] = bad[asks]
        if follows in links:
            asked["link"] = links[follows]
        joins, one, other = rng.random() < 0.5, rng.randrange(40), rng.randrange(BUFFERS)
        dut.link_write_i.value, dut.link_write_buffer_i.value, dut.link_write_next_i.value = joins, one, other
        await ReadOnly()
        await RisingEdge(dut.clk_i)
        if takes:
            taken, was_empty = waiting.popleft()
            bad[taken >> 1 & BUFFERS - 1] = is_bad
            seen["bad"] += is_bad
            free.append(taken >> 1 & BUFFERS - 1)
            if not was_empty:
                answers.popleft()
        if answered:
            answers.append(error)
            unanswered -= 1
        if stores:
            waiting.append((record, empty))
            unanswered += not empty
            infos[buffer] = info
            bad.pop(buffer, None)
        if joins:
            links[one] = other


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_segments(dut):
    rng, seen = new_random("segments"), Counter()
    for name in INPUTS:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for paces in ((1.0, 1.0, 1.0, 0.2), (0.9, 0.3, 0.9, 0.3), (0.3, 0.9, 0.9, 0.5), (0.9, 0.9, 0.3, 0.1), (1, 1, 1, 0)):
        await random_cycles(dut, rng, scaled(6000, 2000), *paces, seen)
    assert min(seen[what] for what in ("an empty one overtakes no write", "full", "bad")) > 20, seen


def test_unisono_rbm_segments():
    simulate("unisono_rbm_segments", __file__)
