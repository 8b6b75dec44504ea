"""unisono_handler_ending: what was written goes first, then the outcome waits while the next function runs."""

from __future__ import annotations

from typing import Any

import cocotb
from bus import ChannelSink, new_random, paces, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import scaled, simulate


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def functions_in_a_row(dut: Any) -> None:
    rng = new_random("ending")
    for name in ("start", "run", "last", "ended", "stop", "verdict", "word", "executed", "written", "function"):
        getattr(dut, f"{name}_i").value = 0
    sink = ChannelSink(dut, "outcome", ())
    outcomes = Outcomes(dut)
    await start_clock_and_reset(dut)
    wanted = []
    for _ in range(scaled(600, 150)):
        sink.pauses = [rng.choice(paces(rng))[1]]
        function, stop = rng.randrange(3), rng.choice((0, 0, rng.randint(1, 6)))
        verdict = rng.choice((0, 0, 1, rng.getrandbits(32)))
        word, executed, written = rng.getrandbits(14), rng.getrandbits(32), rng.choice((0, rng.getrandbits(16)))
        dut.start_i.value, dut.function_i.value = 1, function
        await RisingEdge(dut.clk_i)
        dut.start_i.value, dut.run_i.value = 0, 1
        for _ in range(rng.randrange(3)):
            dut.word_i.value = rng.getrandbits(14)
            await RisingEdge(dut.clk_i)
        dut.last_i.value, dut.stop_i.value, dut.verdict_i.value = 1, stop, verdict
        dut.word_i.value, dut.executed_i.value = word, executed
        await RisingEdge(dut.clk_i)
        dut.last_i.value = dut.run_i.value = 0
        dut.written_i.value = written
        wait = rng.randrange(4) if written else 0
        dut.ended_i.value = not wait
        wanted.append((function, stop, 0 if stop else verdict, word, executed, written))
        fails = bool(stop or verdict)
        for cycle in range(200):
            await RisingEdge(dut.clk_i)
            assert int(dut.end_o.value), "its end is over before it was"
            assert int(dut.end_failed_o.value) == (stop != 0 or verdict > 1)
            if cycle < wait:
                assert not int(dut.over_o.value), "it is over before its output has gone"
            dut.ended_i.value = cycle + 1 >= wait
            if int(dut.over_o.value):
                assert int(dut.fails_o.value) == fails
                break
        else:
            raise AssertionError("it is not over")
        dut.ended_i.value = 0
    await sink.wait(lambda: len(sink.words[0]) == len(wanted))
    assert outcomes.found == wanted


class Outcomes:
    """What is offered when it is taken."""

    def __init__(self, dut: Any) -> None:
        self.found: list[tuple[int, ...]] = []
        cocotb.start_soon(self.watch(dut))

    async def watch(self, dut: Any) -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.rst_ni.value) and int(dut.outcome_valid_o.value) and int(dut.outcome_ready_i.value):
                value, fields = int(dut.outcome_o.value), []
                for width in (17, 32, 14, 32, 4, 2):
                    fields.append(value & (1 << width) - 1)
                    value >>= width
                assert not value
                self.found.append(tuple(reversed(fields)))


def test_unisono_handler_ending() -> None:
    simulate("unisono_handler_ending", __file__)
