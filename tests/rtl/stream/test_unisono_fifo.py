"""unisono_fifo: order, exact capacity, count, latency, throughput at every fill level."""

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, never, new_random, paces, reset_again, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, simulate


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.depth = parameters()["Depth"]
        self.rng = new_random("fifo")
        self.source, self.sink = ChannelSource(dut, "in"), ChannelSink(dut, "out")
        self.width = self.source.fields[0].width

    def words(self, count):
        return [(self.rng.getrandbits(self.width),) for _ in range(count)]

    def send(self, words):
        for word in words:
            self.source.put(word)

    async def expect(self, words):
        for word in words:
            assert await self.sink.get() == word


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _, idle in paces(bench.rng):
        for _, back in paces(bench.rng):
            bench.source.pauses, bench.sink.pauses = [idle], [back]
            words = bench.words(4 * bench.depth + 20)
            bench.send(words)
            await bench.expect(words)
    await ClockCycles(dut.clk_i, 5)
    assert int(dut.count_o.value) == 0
    assert not bench.sink.words[0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def holds_exactly_depth_words(dut):
    bench = Bench(dut)
    bench.sink.pauses = [lambda: True]
    await start_clock_and_reset(dut)
    words = bench.words(bench.depth + 7)
    bench.send(words)
    await ClockCycles(dut.clk_i, bench.depth + 20)
    assert bench.source.sent[0] == bench.depth
    assert int(dut.count_o.value) == bench.depth
    assert int(dut.in_ready_o.value) == 0
    # From full, with both sides willing: one word per cycle in and out.
    bench.sink.pauses = [never]
    bench.send(more := bench.words(50))
    await bench.expect(words)
    first = bench.sink.cycle
    await bench.expect(more)
    assert bench.sink.cycle - first <= 50


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def leaves_without_gaps(dut):
    """Words that came in slowly, during a stall, leave one per cycle when it ends."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _ in range(5):
        bench.source.pauses, bench.sink.pauses = [lambda: bench.rng.random() < 0.8], [lambda: True]
        words = bench.words(bench.rng.randint(2, bench.depth))
        bench.send(words)
        await bench.source.drain()
        await ClockCycles(dut.clk_i, 5)
        bench.sink.pauses = [never]
        assert await bench.sink.get() == words[0]
        first = bench.sink.cycle
        await bench.expect(words[1:])
        assert bench.sink.cycle - first == len(words) - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def count_is_exact(dut):
    bench = Bench(dut)
    bench.source.pauses = [lambda: bench.rng.random() < 0.4]
    bench.sink.pauses = [lambda: bench.rng.random() < 0.5]
    await start_clock_and_reset(dut)
    bench.send(bench.words(200))
    while bench.sink.taken[0] < 200:
        await RisingEdge(dut.clk_i)
        # Both drivers and this task run at the same edge, in unknown order: look before they act.
        inside = int(dut.count_o.value)
        pushed = int(dut.in_valid_i.value) & int(dut.in_ready_o.value)
        popped = int(dut.out_valid_o.value) & int(dut.out_ready_i.value)
        await RisingEdge(dut.clk_i)
        assert int(dut.count_o.value) == inside + pushed - popped


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut):
    await start_clock_and_reset(dut)
    dut.out_ready_i.value = 1
    for _ in range(3):
        dut.in_valid_i.value = 1
        dut.in_data_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = 0
        cycles = 0
        while not cycles or not int(dut.out_valid_o.value):
            await RisingEdge(dut.clk_i)
            cycles += 1
        assert cycles == (3 if parameters()["BlockRam"] else 1)
        await ClockCycles(dut.clk_i, 5)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_empties(dut):
    bench = Bench(dut)
    bench.sink.pauses = [lambda: True]
    await start_clock_and_reset(dut)
    bench.send(bench.words(bench.depth))
    await ClockCycles(dut.clk_i, bench.depth + 9)
    bench.source.clear()
    await reset_again(dut)
    assert int(dut.count_o.value) == 0
    bench.sink.pauses = [never]
    words = bench.words(bench.depth * 2)
    bench.send(words)
    await bench.expect(words)


@pytest.mark.parametrize(
    ("width", "depth", "block_ram"),
    [full(1, 2, 0), (13, 5, 0), full(577, 64, 0), full(32, 4, 1), full(9, 7, 1), (577, 128, 1)],
)
def test_unisono_fifo(width, depth, block_ram):
    simulate("unisono_fifo", __file__, {"Width": width, "Depth": depth, "BlockRam": block_ram})
