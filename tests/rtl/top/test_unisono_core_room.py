"""unisono_core_room: moves that are taken and enter, of all slots, against counts; never less than nothing."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

SLOTS, BITS, WINDOW = 8, 6, 32


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_moves(dut):
    rng, seen = new_random("room"), Counter()
    assert len(dut.room_o) == SLOTS * BITS
    for name in ("taken", "taken_slot", "entered", "entered_slot", "window_room"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        coming, flow = Counter(), 0.5
        for cycle in range(scaled(12000, 4000)):
            if cycle % 100 == 0:
                flow = rng.choice((0.2, 0.5, 0.8))
            slot, other = rng.randrange(SLOTS), rng.randrange(SLOTS)
            taken = coming[slot] < WINDOW and rng.random() < flow
            entered = coming[other] > 0 and rng.random() < 1 - flow
            rooms = [rng.randint(0, WINDOW) for _ in range(SLOTS)]
            dut.taken_i.value, dut.taken_slot_i.value = taken, slot
            dut.entered_i.value, dut.entered_slot_i.value = entered, other
            dut.window_room_i.value = sum(room << BITS * s for s, room in enumerate(rooms))
            await FallingEdge(dut.clk_i)
            shown = int(dut.room_o.value)
            for s, room in enumerate(rooms):
                assert shown >> BITS * s & (1 << BITS) - 1 == max(0, room - coming[s]), s
                seen["none"] += coming[s] > room
            await RisingEdge(dut.clk_i)
            seen["both"] += taken and entered and slot == other
            coming[slot] += taken
            coming[other] -= entered
            seen["many"] += max(coming.values()) > 20
        dut.taken_i.value = dut.entered_i.value = 0
        await reset_again(dut)
    assert min(seen["none"], seen["both"], seen["many"]) > 20


def test_unisono_core_room():
    simulate("unisono_core_room", __file__)
