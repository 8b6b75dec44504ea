"""unisono_waits: random looks of a dispatcher, against a dictionary of who waits for what."""

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import simulate

CALLS, WINDOW, WAITS = 8, 32, 6


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_a_dictionary(dut):
    rng = new_random("waits")
    for port in ("look_valid_i", "look_issue_i", "look_id_i", "park_valid_i", "park_cause_i", "park_id_i"):
        getattr(dut, port).value = 0
    dut.clear_valid_i.value = dut.clear_slot_i.value = 0
    await start_clock_and_reset(dut)
    waiting: dict[int, int] = {}
    looked: int | None = None  # the move that the dispatcher has in its hands
    seen = set()
    # Few moves at first, so that they come again; then all.
    for cycle in range(12000):
        moves = [3, 4, 40, 255] if cycle < 4000 else range(CALLS * WINDOW)
        look = looked is None and rng.random() < 0.6
        park = looked is not None and rng.random() < 0.5
        issue = rng.random() < 0.3
        move = rng.choice(moves)
        cause = rng.randrange(WAITS)
        clear = rng.random() < 0.01
        slot = rng.randrange(CALLS)
        if clear and looked is not None and looked // WINDOW == slot:
            clear = False  # a look under way ends first
        if clear and look and move // WINDOW == slot:
            look = False
        if look and issue:
            # A window's place is given again when the move there has left.
            issue = move not in waiting
        dut.look_valid_i.value, dut.look_issue_i.value, dut.look_id_i.value = look, look and issue, move
        dut.park_valid_i.value, dut.park_cause_i.value = park, cause
        dut.park_id_i.value = looked if park else rng.randrange(CALLS * WINDOW)
        dut.clear_valid_i.value, dut.clear_slot_i.value = clear, slot
        await ReadOnly()
        expected = sum(1 << cause for cause in set(waiting.values()))
        assert int(dut.waiting_o.value) == expected, f"cycle {cycle}"
        seen.add(expected)
        await RisingEdge(dut.clk_i)
        if look:
            waiting.pop(move, None)
            looked = move
        if park:
            if cause:
                waiting[looked] = cause
            looked = None
        if clear:
            waiting = {move: cause for move, cause in waiting.items() if move // WINDOW != slot}
    assert 0 in seen
    assert len(seen) > 8


def test_unisono_waits():
    simulate("unisono_waits", __file__)
