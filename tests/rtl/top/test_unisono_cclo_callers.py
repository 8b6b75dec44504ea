"""unisono_cclo_callers: kernels pass through; a call that starts one behind them ends at once."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate
from records import load

IN = ("call_valid", "call_last", "call_data", "call_keep", "answer_ready", "start_ready", "done_valid", "done_code")
ALL_IN = ("all_ready", "all_answer_valid", "all_answer_data", "all_start_valid", "all_start_data")
HEARD = ("heard_valid", "heard", "begins_valid", "begins_communicator")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_signals(dut):
    rng, seen = new_random("callers"), Counter()
    kernels, streams = parameters()["KernelPorts"], parameters()["StreamPorts"]
    callers = kernels + (streams > 0)
    for name in (*IN, *ALL_IN, *HEARD):
        getattr(dut, f"{name}_i").value = 0
    refused = int(load().ErrorCode.INVALID_ARGUMENT)
    await start_clock_and_reset(dut)
    for _ in range(2):
        asked = starts = False
        for _ in range(scaled(4000, 1500)):
            values = {name: rng.getrandbits(len(getattr(dut, f"{name}_i"))) for name in (*IN, *ALL_IN)}
            # What receives messages has given no call, so it hears no answer; a start waits until it is taken.
            mask = (1 << kernels) - 1
            values["all_answer_valid"] &= mask
            starts = streams > 0 and (rng.random() < 0.3 or starts)
            values["all_start_valid"] = values["all_start_valid"] & mask | starts << kernels
            for name, value in values.items():
                getattr(dut, f"{name}_i").value = value
            await FallingEdge(dut.clk_i)
            pairs = [
                *(("call_valid", "all_valid"), ("call_last", "all_last"), ("call_data", "all_data")),
                *(("call_keep", "all_keep"), ("answer_ready", "all_answer_ready"), ("start_ready", "all_start_ready")),
                *(("done_valid", "all_done_valid"), ("done_code", "all_done_code")),
            ]
            for given, shown in pairs:
                part = (1 << len(getattr(dut, f"{given}_i"))) - 1
                assert int(getattr(dut, f"{shown}_o").value) & part == values[given], given
            pairs = [
                *(("all_ready", "call_ready"), ("all_answer_valid", "answer_valid")),
                *(
                    ("all_answer_data", "answer_data"),
                    ("all_start_valid", "start_valid"),
                    ("all_start_data", "start_data"),
                ),
            ]
            for given, shown in pairs:
                part = (1 << len(getattr(dut, f"{shown}_o"))) - 1
                assert int(getattr(dut, f"{shown}_o").value) == values[given] & part, given
            if streams:
                ready = bool(int(dut.all_start_ready_o.value) >> kernels)
                assert ready == (not asked)
                assert bool(int(dut.all_done_valid_o.value) >> kernels) == asked
                if asked:
                    assert int(dut.all_done_code_o.value) >> 16 * kernels == refused
                    seen["refused"] += 1
                assert not int(dut.all_valid_o.value) >> kernels
            await RisingEdge(dut.clk_i)
            asked, starts = starts and not asked, starts and asked
        for name in (*IN, *ALL_IN):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    assert callers == len(dut.all_ready_i)
    assert not streams or seen["refused"] > 100


def test_kernels_alone():
    simulate("unisono_cclo_callers", __file__, {"KernelPorts": 2, "StreamPorts": 0})


def test_with_stream_ports():
    simulate("unisono_cclo_callers", __file__, {"KernelPorts": 2, "StreamPorts": 4})
