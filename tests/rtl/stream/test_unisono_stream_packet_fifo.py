"""unisono_stream_packet_fifo: whole packets only, drops as asked, no packet that cannot leave."""

import cocotb
import pytest
from bus import (
    STREAM_FIELDS,
    Packet,
    StreamSink,
    StreamSource,
    never,
    new_random,
    paces,
    random_packet,
    start_clock_and_reset,
)
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, simulate


class DroppingSource(StreamSource):
    """Sends `in_drop_i` where streams have their destination."""

    FIELDS = (*STREAM_FIELDS[:-1], "drop")

    def send(self, packet, lane=0):
        top = parameters()["UserBits"] - 1
        for data, keep, last in packet.words(self.data_bytes, self.rng):
            # Before the last word the wish to drop means nothing.
            drop = packet.user >> top if last else self.rng.getrandbits(1)
            self.put((data, keep, last, packet.user, drop), lane)


class Bench:
    """A packet with the top bit of user set is dropped: `in_drop_i` is driven with it, word by word."""

    def __init__(self, dut):
        self.dut = dut
        self.rng = new_random("packet fifo")
        self.depth, self.when_full = parameters()["Depth"], parameters()["DropWhenFull"]
        self.source, self.sink = DroppingSource(dut, "in"), StreamSink(dut, "out")
        self.words = self.source.data_bytes
        self.dropped = 0
        self.mark = 1 << parameters()["UserBits"] - 1
        cocotb.start_soon(self.follow())

    async def follow(self):
        """Counts the pulses of dropped_o."""
        while True:
            await RisingEdge(self.dut.clk_i)
            self.dropped += int(self.dut.dropped_o.value)

    def packet(self, longest_words, drop=False):
        packet = random_packet(self.rng, longest_words * self.words, user_bits=parameters()["UserBits"] - 1)
        packet.user |= self.mark * drop
        return packet


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    if bench.when_full:
        return
    expected_drops = 0
    for _, idle in paces(bench.rng):
        for _, back in paces(bench.rng):
            bench.source.pauses, bench.sink.pauses = [idle], [back]
            sent = []
            for _ in range(24):
                drop = bench.rng.random() < 0.3
                longest = bench.rng.choice((1, 2, bench.depth // 2, bench.depth))
                packet = bench.packet(longest, drop)
                bench.source.send(packet)
                expected_drops += drop
                if not drop:
                    sent.append(packet)
            for packet in sent:
                assert await bench.sink.receive(timeout_us=4000) == packet
            await bench.source.drain()
    await ClockCycles(dut.clk_i, 5)
    assert bench.dropped == expected_drops > 50
    assert not bench.sink.packets[0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def held_back_until_complete(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    words = min(6, bench.depth)
    packet = Packet(bench.rng.randbytes(words * bench.words), 1)
    parts = list(packet.words(bench.words, bench.rng))
    for data, keep, last in parts[:-1]:
        bench.source.put((data, keep, last, 1, 0))
    await ClockCycles(dut.clk_i, 40)
    assert bench.sink.taken[0] == 0
    assert int(dut.out_valid_o.value) == 0
    bench.source.put((*parts[-1], 1, 0))
    while not (int(dut.in_valid_i.value) and int(dut.in_last_i.value)):
        await RisingEdge(dut.clk_i)
    cycles = 0
    while not int(dut.out_valid_o.value):
        await RisingEdge(dut.clk_i)
        cycles += 1
    assert cycles == (3 if parameters()["BlockRam"] else 2)
    got = await bench.sink.receive()
    assert got == packet
    assert got.end - got.start == words - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def too_long_a_packet_is_dropped(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    exact = Packet(bench.rng.randbytes(bench.depth * bench.words), 0)
    for over in (1, bench.words, 3 * bench.depth * bench.words):
        before = bench.dropped
        bench.source.send(Packet(bench.rng.randbytes(bench.depth * bench.words + over), 0))
        await bench.source.drain()
        bench.source.send(exact)
        assert await bench.sink.receive() == exact
        assert bench.dropped == before + 1


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def drop_when_full(dut):
    """The input never stalls; what leaves is a subsequence of what came, and what is missing was counted."""
    bench = Bench(dut)
    if not bench.when_full:
        return
    await start_clock_and_reset(dut)
    assert int(dut.in_ready_o.value) == 1
    number, arrived, offered = 0, 0, 0
    for _, back in paces(bench.rng):
        bench.sink.pauses = [back]
        bench.source.pauses = [lambda: bench.rng.random() < 0.3]
        sent = []
        for _ in range(60):
            packet = bench.packet(max(1, bench.depth // 2), bench.rng.random() < 0.1)
            packet.data = number.to_bytes(4, "little") + packet.data[4:]
            number += 1
            sent.append(packet)
            bench.source.send(packet)
        offered += len(sent)
        words = len(bench.source.queues[0])
        start = bench.sink.cycle
        await bench.source.drain()
        stalled = bench.sink.cycle - start
        assert stalled < words * 2 + 20
        bench.sink.pauses = [never]
        await ClockCycles(dut.clk_i, 2 * bench.depth + 20)
        wanted = iter(sent)
        while bench.sink.packets[0]:
            got = bench.sink.packets[0].popleft()
            arrived += 1
            assert not got.user & bench.mark
            assert any(packet == got for packet in wanted), "a packet came twice, changed or out of order"
        assert not bench.sink.incomplete()
        assert arrived + bench.dropped == offered
    assert bench.dropped > 20
    assert arrived > 60


@pytest.mark.parametrize(
    ("data_bytes", "depth", "when_full", "block_ram"),
    [full(8, 8, 0, 0), full(64, 64, 0, 0), (8, 16, 1, 0), (64, 128, 0, 1), full(8, 32, 1, 1), full(4, 2, 0, 1)],
)
def test_unisono_stream_packet_fifo(data_bytes, depth, when_full, block_ram):
    simulate(
        "unisono_stream_packet_fifo",
        __file__,
        {"DataBytes": data_bytes, "UserBits": 5, "Depth": depth, "DropWhenFull": when_full, "BlockRam": block_ram},
    )
