"""That a failure is a failure: assertions fire, a failing test and a run without tests are seen, time limits act."""

import cocotb
import pytest
from bus import StreamSink, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import build, run, simulate

PARAMETERS = {"DataBytes": 4, "UserBits": 2}


@cocotb.test(timeout_time=10, timeout_unit="us")
async def withdraw_a_word(dut):
    """Breaks the handshake: the simulation must stop."""
    dut.out_ready_i.value = 0
    await start_clock_and_reset(dut)
    dut.in_valid_i.value = 1
    await ClockCycles(dut.clk_i, 5)
    assert int(dut.in_ready_o.value) == 0
    dut.in_valid_i.value = 0
    await ClockCycles(dut.clk_i, 5)


@cocotb.test(timeout_time=10, timeout_unit="us")
async def change_a_word(dut):
    """Changes an offered word: the simulation must stop."""
    dut.out_ready_i.value = 0
    await start_clock_and_reset(dut)
    dut.in_valid_i.value, dut.in_data_i.value = 1, 1
    await ClockCycles(dut.clk_i, 5)
    dut.in_data_i.value = 2
    await ClockCycles(dut.clk_i, 5)


@cocotb.test(timeout_time=10, timeout_unit="us")
async def fails(dut):
    await start_clock_and_reset(dut)
    assert int(dut.out_valid_o.value) == 1


@cocotb.test(timeout_time=10, timeout_unit="us")
async def passes(dut):
    await start_clock_and_reset(dut)
    assert int(dut.out_valid_o.value) == 0


@cocotb.test(timeout_time=10, timeout_unit="us")
async def waits_for_ever(dut):
    sink = StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    await sink.receive()


@cocotb.test()
async def never_ends(dut):
    await start_clock_and_reset(dut)
    while True:
        await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=10, timeout_unit="us")
async def bad_keep(dut):
    """The monitor's own rules: a hole in keep."""
    StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    dut.in_valid_i.value, dut.in_last_i.value, dut.in_keep_i.value = 1, 1, 0b1011
    await ClockCycles(dut.clk_i, 5)


@pytest.mark.parametrize(
    ("testcase", "message"),
    [
        ("withdraw_a_word", "valid fell before ready"),
        ("change_a_word", "an offered word changed before it was taken"),
        ("fails", "failed: fails"),
        ("waits_for_ever", "failed: waits_for_ever"),
        ("bad_keep", "failed: bad_keep"),
        ("no_such_test", "0 tests passed"),
    ],
)
def test_failures_are_seen(testcase, message, capfd):
    with pytest.raises(AssertionError) as caught:
        simulate("unisono_stream_skid", __file__, PARAMETERS, testcase=testcase)
    assert message in str(caught.value) + capfd.readouterr().out


def test_time_limit():
    folder = build("unisono_stream_skid", PARAMETERS)
    with pytest.raises(AssertionError, match="the simulation ended without results"):
        run(folder, "unisono_stream_skid", __file__, testcase="never_ends", limit_s=2)


def test_success_is_seen():
    simulate("unisono_stream_skid", __file__, PARAMETERS, testcase="passes")


def test_bad_parameters_are_refused():
    """Elaboration checks of a module stop the build."""
    with pytest.raises(AssertionError, match="Depth must be at least"):
        build("unisono_fifo", {"Depth": 3, "BlockRam": 1})
