"""unisono_cdc_fifo: order, capacity, latency and throughput between clocks of several ratios."""

import os

import cocotb
import pytest
from bus import never, new_random, paces
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer
from hdl import full, parameters, simulate


class Bench:
    """A sender in one clock, a receiver in the other."""

    def __init__(self, dut):
        self.dut = dut
        self.depth, self.width = parameters()["Depth"], parameters()["Width"]
        self.rng = new_random("cdc")
        self.idle, self.back = never, never
        self.words, self.got, self.taken = [], Queue(), 0
        self.stamps = []  # when a word came out

    async def start(self, in_ps, out_ps):
        """Both clocks, with a phase that nobody chose, and a reset of both."""
        dut = self.dut
        dut.in_valid_i.value = 0
        dut.out_ready_i.value = 0
        dut.in_rst_ni.value = 0
        dut.out_rst_ni.value = 0
        Clock(dut.in_clk_i, in_ps, unit="ps").start()
        await Timer(self.rng.randrange(2, 4000, 2), unit="ps")
        Clock(dut.out_clk_i, out_ps, unit="ps").start()
        for _ in range(4):
            await RisingEdge(dut.in_clk_i)
            await RisingEdge(dut.out_clk_i)
        dut.in_rst_ni.value = 1
        await RisingEdge(dut.out_clk_i)
        dut.out_rst_ni.value = 1
        cocotb.start_soon(self.send())
        cocotb.start_soon(self.receive())

    async def send(self):
        dut = self.dut
        offered = False
        while True:
            if not offered and self.words and not self.idle():
                dut.in_data_i.value = self.words[0]
                offered = True
            elif not offered:
                dut.in_data_i.value = self.rng.getrandbits(self.width)
            dut.in_valid_i.value = int(offered)
            await ReadOnly()
            done = offered and int(dut.in_ready_o.value)
            await RisingEdge(dut.in_clk_i)
            if done:
                self.words.pop(0)
                self.taken += 1
                offered = False

    async def receive(self):
        dut = self.dut
        cycle = 0
        while True:
            dut.out_ready_i.value = int(not self.back())
            await ReadOnly()
            if int(dut.out_valid_o.value) and int(dut.out_ready_i.value):
                self.got.put_nowait(int(dut.out_data_o.value))
                self.stamps.append(cycle)
            await RisingEdge(dut.out_clk_i)
            cycle += 1

    def put(self, count):
        words = [self.rng.getrandbits(self.width) for _ in range(count)]
        self.words += words
        return words

    async def expect(self, words):
        for word in words:
            assert await self.got.get() == word


def periods():
    """Of both clocks, in ps."""
    return [int(period) for period in os.environ["UNISONO_PERIODS"].split()]


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await bench.start(*periods())
    for _, idle in paces(bench.rng):
        for _, back in paces(bench.rng):
            bench.idle, bench.back = idle, back
            await bench.expect(bench.put(4 * bench.depth + 20))
    await ClockCycles(dut.out_clk_i, 20)
    assert bench.got.empty()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def holds_depth_words_and_the_one_on_offer(dut):
    bench = Bench(dut)
    bench.back = lambda: True
    await bench.start(*periods())
    words = bench.put(bench.depth + 9)
    await ClockCycles(dut.in_clk_i, 4 * bench.depth + 60)
    await ClockCycles(dut.out_clk_i, 20)
    assert bench.taken == bench.depth + 1
    bench.back = never
    await bench.expect(words)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_of_the_slower_clock_each_cycle(dut):
    bench = Bench(dut)
    in_ps, out_ps = periods()
    await bench.start(in_ps, out_ps)
    await bench.expect(bench.put(400))
    took = (bench.stamps[-1] - bench.stamps[20]) * out_ps
    assert took <= 1.02 * 379 * max(in_ps, out_ps) + 2 * (in_ps + out_ps)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut):
    bench = Bench(dut)
    in_ps, out_ps = periods()
    await bench.start(in_ps, out_ps)
    for _ in range(20):
        await Timer(bench.rng.randrange(100_000, 200_000, 2), unit="ps")
        await RisingEdge(dut.in_clk_i)
        bench.words.append(bench.rng.getrandbits(bench.width))
        while bench.words:
            await RisingEdge(dut.in_clk_i)  # the edge at which it is taken
        cycles = 0
        while bench.got.empty():
            await RisingEdge(dut.out_clk_i)
            cycles += 1
        assert cycles <= 5, "two flip-flops, the register, and an edge that is missed"
        await bench.got.get()


@pytest.mark.parametrize(
    ("width", "depth", "in_ps", "out_ps"),
    [
        (577, 16, 4000, 3104),
        (9, 8, 3104, 4000),
        full(1, 32, 4000, 4000),
        full(33, 8, 1000, 9998),
        full(5, 16, 7002, 1000),
    ],
)
def test_unisono_cdc_fifo(width, depth, in_ps, out_ps):
    simulate(
        "unisono_cdc_fifo",
        __file__,
        {"Width": width, "Depth": depth},
        environment={"UNISONO_PERIODS": f"{in_ps} {out_ps}"},
    )
