"""unisono_core_space: two ask a transport that takes one question at a time, and each hears its own answers."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_questions(dut):
    rng, seen = new_random("space"), Counter()
    for name in ("asks_valid", "asks", "serve_valid", "serve", "space_ready", "space_answer"):
        getattr(dut, f"{name}_i").value = 0
    bits = len(dut.asks_i)
    await start_clock_and_reset(dut)
    for _ in range(2):
        asks = serve = None  # what is on offer
        asked = None  # who waits for an answer
        hurry = 0.5
        for cycle in range(scaled(16000, 5000)):
            if cycle % 60 == 0:
                hurry, calm = rng.choice((0.1, 0.5, 1.0)), rng.choice((0.1, 0.5, 0.9))
            if asks is None and rng.random() > calm:
                asks = rng.getrandbits(bits)
            if serve is None and rng.random() > calm:
                serve = rng.getrandbits(bits)
            ready = rng.random() < hurry
            answers = asked is not None and rng.random() < hurry
            dut.asks_valid_i.value, dut.serve_valid_i.value = asks is not None, serve is not None
            dut.asks_i.value = rng.getrandbits(bits) if asks is None else asks
            dut.serve_i.value = rng.getrandbits(bits) if serve is None else serve
            dut.space_ready_i.value, dut.space_answer_i.value = ready, answers
            await FallingEdge(dut.clk_i)
            question = asks if asks is not None else serve
            valid = asked is None and question is not None
            assert bool(int(dut.space_valid_o.value)) == valid
            if valid:
                assert int(dut.space_o.value) == question
            assert bool(int(dut.asks_ready_o.value)) == (ready and asked is None)
            assert bool(int(dut.serve_ready_o.value)) == (ready and asked is None and asks is None)
            assert bool(int(dut.asks_answer_o.value)) == (answers and asked == "asks")
            assert bool(int(dut.serve_answer_o.value)) == (answers and asked == "serve")
            seen["waits"] += valid and not ready
            await RisingEdge(dut.clk_i)
            if answers:
                seen[asked] += 1
                asked = None
            if valid and ready:
                seen["both"] += asks is not None and serve is not None
                asked = "asks" if asks is not None else "serve"
                if asked == "asks":
                    asks = None
                else:
                    serve = None
        for name in ("asks_valid", "serve_valid", "space_ready", "space_answer"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("asks", "serve", "both", "waits"):
        assert seen[what] > 50, what


def test_unisono_core_space():
    simulate("unisono_core_space", __file__)
