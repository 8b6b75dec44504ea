"""What tools/rtl/synthesis reads out of netlists, on netlists small enough to count by hand."""

import sys

from hdl import ROOT

sys.path.insert(0, str(ROOT / "tools" / "rtl"))

import netlist
import synthesis


def cell(kind, inputs, outputs):
    """A cell with ports given as name=net or name=[nets]."""
    nets = {name: bits if isinstance(bits, list) else [bits] for name, bits in (inputs | outputs).items()}
    return {
        "type": kind,
        "connections": nets,
        "port_directions": {name: "input" if name in inputs else "output" for name in nets},
    }


def module(cells):
    """A module of cells; nets are called n1, n2, …"""
    bits = {bit for one in cells.values() for some in one["connections"].values() for bit in some}
    return {"cells": cells, "netnames": {f"n{bit}": {"bits": [bit]} for bit in bits if isinstance(bit, int)}}


def lut(into, out, size=2):
    return cell(f"LUT{size}", {f"I{place}": bit for place, bit in enumerate(into)}, {"O": out})


def flop(into, out):
    return cell("FDRE", {"D": into, "C": 1}, {"Q": out})


def test_levels_are_luts_between_registers():
    found = netlist.longest(
        module(
            {
                "start": flop(9, 10),
                "one": lut([10, 2], 11),
                "carry": cell("CARRY4", {"S": [11], "CI": "0"}, {"O": [12]}),
                "two": lut([12, 3], 13),
                "between": flop(13, 14),
                "three": lut([14, 4], 15),
                "end": flop(15, 16),
            }
        )
    )
    assert found.levels == 2
    assert found.steps == ["FDRE", "LUT2 from n10", "CARRY4 from n11", "LUT2 from n12", "to FDRE.D n14"]


def test_a_memory_is_a_level_from_its_read_address_only():
    memory = cell("RAM32X1D", {"A0": 21, "DPRA0": 22, "D": 21, "WE": 21, "WCLK": 1}, {"DPO": 23, "SPO": 24})
    # Three LUTs stand before the writing side, one before the reading side.
    cells = {
        "a": lut([2], 20, 1),
        "b": lut([20], 25, 1),
        "c": lut([25], 21, 1),
        "d": lut([3], 22, 1),
        "memory": memory,
        "after": lut([23], 26, 1),
        "end": flop(26, 27),
    }
    assert netlist.longest(module({**cells, "e": flop(21, 28)})).levels == 3
    del cells["b"], cells["c"]
    cells["a"] = lut([2], 21, 1)
    assert netlist.longest(module(cells)).levels == 3


def test_a_loop_ends():
    assert netlist.longest(module({"a": lut([11], 10, 1), "b": lut([10], 11, 1)})).levels >= 1


def test_cells_are_added_up():
    cost = netlist.count(
        module(
            {
                "lut": lut([1, 2], 3),
                "memory": cell("RAM32M16", {"WCLK": 1}, {"DOA": 4}),
                "shift": cell("SRL16E", {"CLK": 1}, {"Q": 5}),
                "ff": flop(5, 6),
                "half": cell("RAMB18E2", {"CLKARDCLK": 1}, {"DOUTADOUT": 7}),
                "whole": cell("RAMB36E2", {"CLKARDCLK": 1}, {"DOUTADOUT": 8}),
                "dsp": cell("DSP48E2", {"CLK": 1}, {"P": 9}),
                "inverter": cell("INV", {"I": 1}, {"O": 10}),
            }
        )
    )
    assert cost == netlist.Cost(luts=1, memory_luts=9, registers=1, block_rams=1.5, dsps=1)


def test_growth_is_told_beyond_a_twentieth():
    reference = {
        "rx": {"luts": 1000, "levels": 8, "dsps": 0, "block_rams": 2},
        "narrow": {"megahertz": 100.0},
    }
    same = {
        "rx": synthesis.Figures(luts=1050, levels=8, block_rams=2),
        "narrow": synthesis.Figures(megahertz=95.5),
        "new": synthesis.Figures(luts=5),
    }
    assert synthesis.compare(same, reference) == []
    worse = {
        "rx": synthesis.Figures(luts=1051, levels=9, dsps=1, block_rams=2.5),
        "narrow": synthesis.Figures(megahertz=94.9),
    }
    assert [line.split(" ->")[0] for line in synthesis.compare(worse, reference)] == [
        "rx: luts 1000",
        "rx: levels 8",
        "rx: dsps 0",
        "rx: block_rams 2",
        "narrow: megahertz 100",
    ]


def test_blocks_are_modules_of_the_design():
    for block in synthesis.blocks():
        assert synthesis.hdl.source_of(block.module).is_file()
        assert block.part in {"", *synthesis.PARTS}
        for name in block.black:
            assert name in {path.stem for path in synthesis.hdl.RTL.rglob("*.sv")}


def test_a_block_depends_on_what_it_names():
    block = next(one for one in synthesis.blocks() if one.name == "credits")
    names = {path.stem for path in synthesis.sources(block)}
    assert {"unisono_credits", "unisono_update_ram", "unisono_notice_queue", "unisono_cclo_pkg"} <= names
    assert "unisono_rbm" not in names
