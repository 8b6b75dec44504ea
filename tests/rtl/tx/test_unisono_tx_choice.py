"""unisono_tx_choice: random offers; control goes first, data sources take turns, and what is not taken stays chosen."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_offers(dut):
    rng, seen, sources = new_random("choice"), Counter(), parameters()["Sources"]
    width = len(dut.control_command_transmit_i)
    for name in ("command_valid", "command_transmit", "control_command_valid", "control_command_transmit", "space"):
        getattr(dut, f"{name}_i").value = 0
    dut.may_take_i.value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        turn, offers = 0, [None] * (sources + 1)  # the last is control's
        part = 0.5
        for cycle in range(scaled(8000, 3000)):
            if cycle % 100 == 0:
                part = rng.choice((0.05, 0.5, 1.0))
            offers = [rng.getrandbits(width) if one is None and rng.random() < part else one for one in offers]
            space, may = rng.choice((0, 1, 2, 3, 3, 3)), rng.random() < 0.7
            valid = [one is not None for one in offers]
            dut.command_valid_i.value = sum(bit << at for at, bit in enumerate(valid[:-1]))
            words = [rng.getrandbits(width) if one is None else one for one in offers]
            dut.command_transmit_i.value = sum(word << width * at for at, word in enumerate(words[:-1]))
            dut.control_command_valid_i.value, dut.control_command_transmit_i.value = valid[-1], words[-1]
            dut.space_i.value, dut.may_take_i.value = space, may
            await FallingEdge(dut.clk_i)
            wanted = None
            if valid[-1] and space & 2:
                wanted = sources
            elif space & 1:
                wanted = next((s % sources for s in range(turn, turn + sources) if valid[s % sources]), None)
            assert bool(int(dut.chosen_o.value)) == (wanted is not None)
            take = wanted is not None and may
            assert bool(int(dut.take_o.value)) == take
            ready = int(dut.command_ready_o.value) | int(dut.control_command_ready_o.value) << sources
            assert ready == (1 << wanted if take else 0)
            if wanted is not None:
                assert int(dut.choice_o.value) == wanted
                assert int(dut.command_o.value) == offers[wanted]
                seen["control" if wanted == sources else "data"] += 1
                seen["no room for control"] += valid[-1] and wanted != sources
            await RisingEdge(dut.clk_i)
            if take:
                offers[wanted] = None
                turn = (wanted + 1) % sources if wanted != sources else turn
                seen["next"] += wanted != sources and sum(valid[:-1]) > 1
        dut.command_valid_i.value = dut.control_command_valid_i.value = 0
        await reset_again(dut)
    for what in ("control", "data", "no room for control") + (("next",) if sources > 1 else ()):
        assert seen[what] > 50, what


@pytest.mark.parametrize("sources", [2, 1, 3])
def test_unisono_tx_choice(sources):
    simulate("unisono_tx_choice", __file__, {"Sources": sources})
