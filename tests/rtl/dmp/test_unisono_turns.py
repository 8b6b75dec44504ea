"""unisono_turns: random calls against a list in the order in which they came."""

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, scaled, simulate

CALLS = 8


async def against_a_list(dut, rng, cycles: int, keys: list[int], leave: float) -> set[int]:
    """Calls come and go; every answer is compared. Returns how many calls waited for others at once."""
    present: list[tuple[int, int]] = []  # slot and key, the oldest first
    crowds = set()
    for cycle in range(cycles):
        slots = [slot for slot, _ in present]
        removed = {slot for slot in slots if rng.random() < leave}
        free = [slot for slot in range(CALLS) if slot not in slots or slot in removed]
        add = bool(free) and rng.random() < 0.7
        slot = rng.choice(free) if add else rng.randrange(CALLS)
        key = rng.choice(keys)
        dut.add_valid_i.value, dut.add_slot_i.value, dut.add_key_i.value = add, slot, key
        # Removing what is not there changes nothing, unless it comes in this cycle.
        absent = {one for one in range(CALLS) if one not in slots and rng.random() < 0.1}
        dut.remove_i.value = sum(1 << one for one in removed | absent)
        await ReadOnly()
        first = {}
        for place, (one, its_key) in enumerate(present):
            before = sum(1 << other for other, key_of in present[:place] if key_of == its_key)
            assert int(dut.before_o[one].value) == before, f"cycle {cycle}: slot {one}"
            first.setdefault(its_key, one)
        assert int(dut.pending_o.value) == sum(1 << one for one in slots), f"cycle {cycle}"
        assert int(dut.first_o.value) == sum(1 << one for one in first.values()), f"cycle {cycle}: {present}"
        for one, its_key in present:
            assert int(dut.key_o[one].value) == its_key, f"cycle {cycle}: slot {one}"
        crowds.add(len(present) - len(first))
        await RisingEdge(dut.clk_i)
        present = [call for call in present if call[0] not in removed]
        if add:
            present.append((slot, key))
    return crowds


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("turns")
    dut.add_valid_i.value = dut.add_slot_i.value = dut.add_key_i.value = dut.remove_i.value = 0
    await start_clock_and_reset(dut)
    top = (1 << parameters()["KeyWidth"]) - 1
    near = sorted({0, *(1 << bit for bit in range(parameters()["KeyWidth"]))})
    for keys in ([0], [0, top], near, [rng.randint(0, top) for _ in range(4)]):
        for leave in (0.02, 0.1, 0.5):
            crowds = await against_a_list(dut, rng, scaled(1500, 500), keys, leave)
            # All at once waited for one, where they stay long enough for that.
            assert leave > 0.05 or len(keys) > 1 or CALLS - 1 in crowds
            dut.add_valid_i.value = 0
            await reset_again(dut)


@pytest.mark.parametrize("key_width", [10, full(34)])
def test_unisono_turns(key_width):
    simulate("unisono_turns", __file__, {"KeyWidth": key_width})
