"""Timing constraints (XDC) of a wrapper: its clocks when it is built alone, and what goes from one clock to another."""

from __future__ import annotations

from collections.abc import Sequence

from tools.ip.interfaces import Interface

#: Of the clocks, in ns: 250 MHz, and that of a 100 Gb/s MAC with words of 64 bytes.
PERIODS = {"net_aclk": 3.103}
USUAL = 4.0


def clocks(interfaces: Sequence[Interface]) -> str:
    """Clocks for a build of the wrapper alone; in a design they come from outside."""
    lines = [
        f"create_clock -name {one.name} -period {PERIODS.get(one.name, USUAL)} [get_ports {one.name}]"
        for one in interfaces
        if one.kind == "clock"
    ]
    return (
        "# For a build of the wrapper alone (out of context); in a design its clocks come from there.\n"
        + "\n".join(lines)
        + "\n"
    )


#: Of unisono_axi with NetClock = 1; to be read with SCOPED_TO_REF unisono_axi, in the order LATE.
CROSSINGS = """\
# What goes between aclk and net_aclk, where unisono_axi has NetClock = 1. Read it scoped to that module, behind the
# clocks: read_xdc -ref unisono_axi crossings.xdc; set_property PROCESSING_ORDER LATE [get_files crossings.xdc]
#
# Each side's count goes across in Gray code: its bits must arrive within a period of the clock that takes them, and
# less than a period apart. Words stand still in LUTRAM before their count arrives.
proc unisono_cross {from to period} {
    set_max_delay -datapath_only -from $from -to $to $period
    set_bus_skew -from $from -to $to $period
}
set unisono_main [get_property -min PERIOD [get_clocks -of_objects [get_ports aclk]]]
set unisono_net [get_property -min PERIOD [get_clocks -of_objects [get_ports net_aclk]]]
foreach {queue in out} [list u_tx $unisono_main $unisono_net u_rx $unisono_net $unisono_main] {
    set at gen_clock.$queue
    unisono_cross [get_cells $at/written_gray_q_reg[*]] [get_cells $at/u_written/stages_q_reg[0][*]] $out
    unisono_cross [get_cells $at/read_gray_q_reg[*]] [get_cells $at/u_read/stages_q_reg[0][*]] $in
    set_max_delay -datapath_only -from [get_cells $at/mem_reg*] -to [get_cells $at/data_q_reg[*]] $out
}
# The reset is brought into each clock.
set_false_path -to [get_cells reset_nq_reg[0]]
set_false_path -to [get_cells gen_clock.net_reset_nq_reg[0]]
"""
