"""The crossbars among movers: routing, independence, no deadlock in front of memory that answers in order."""

from pathlib import Path

import cocotb
import pytest
from axi_memory import AXI_PORTS, AxiMemory
from bus import (
    ChannelSink,
    ChannelSource,
    Packet,
    StreamSource,
    bursts,
    never,
    new_random,
    share,
    start_clock_and_reset,
)
from cocotb.triggers import with_timeout
from hdl import full, parameters, simulate

REGION = 1 << 16


class Bench:
    """Movers by number; memory is seen as one, through the channels."""

    def __init__(self, dut, **memory):
        self.dut = dut
        self.rng = new_random("crossbar")
        size = parameters()
        self.readers, self.writers, self.channels = size["Readers"], size["Writers"], size["Channels"]
        self.width, self.block = size["DataBytes"], size["InterleaveBytes"]
        command = ("address", "bytes", "user")
        self.reads = ChannelSource(dut, "read", command, lanes=self.readers)
        self.out = ChannelSink(dut, "out", ("data", "keep", "last", "user", "error"), lanes=self.readers)
        self.writes = ChannelSource(dut, "write", command, lanes=self.writers)
        self.packets = StreamSource(dut, "in", lanes=self.writers)
        self.done = ChannelSink(dut, "done", ("user", "error"), lanes=self.writers)
        self.memory = AxiMemory(dut, lanes=self.channels, most_beats=16, **memory)

    def place(self, address):
        """Channel and address there; written differently from the RTL on purpose."""
        number, within = divmod(address, self.block)
        return number % self.channels, number // self.channels * self.block + within

    def load(self, address, data):
        for i, value in enumerate(data):
            channel, at = self.place(address + i)
            self.memory.pages[channel].write(at, bytes([value]))

    def stored(self, address, length):
        parts = []
        while length:
            channel, at = self.place(address)
            part = min(length, self.block - address % self.block)
            parts.append(self.memory.pages[channel].read(at, part))
            address, length = address + part, length - part
        return b"".join(parts)

    async def packet(self, reader, limit_us=2000):
        data = b""
        while True:
            value, keep, last, user, error = await with_timeout(self.out.get(reader), limit_us, "us")
            data += value.to_bytes(self.width, "little")[: keep.bit_length()]
            if last:
                return data, user, error


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(shuffle=[False, True])
async def random_traffic(dut, shuffle):
    """All movers at once, all over memory; each owns a region, so what it reads and writes is known."""
    bench = Bench(dut, latency=(0, 40), shuffle=shuffle)
    rng, memory = bench.rng, bench.memory
    await start_clock_and_reset(dut)
    for pace in (
        lambda channel, lane: never,
        lambda channel, lane: share(rng, 0.4),
        lambda channel, lane: bursts(rng),
    ):
        memory.set_pause(pace)
        for side in (bench.reads, bench.out, bench.writes, bench.packets, bench.done):
            side.pauses = [rng.choice((never, share(rng, 0.4), bursts(rng))) for _ in range(side.lanes)]
        expected = [[] for _ in range(bench.readers)]
        for number in range(12):
            for reader in range(bench.readers):
                address = reader * REGION + rng.randrange(REGION // 2)
                length = rng.choice((0, 1, rng.randint(0, 40), rng.randint(0, 2000)))
                bench.reads.put((address, length, number), reader)
                expected[reader].append((bench.stored(address, length), number, 0))
        images = []
        for writer in range(bench.writers):
            base = (bench.readers + writer) * REGION
            image = bytearray(bench.stored(base, REGION // 8))
            for number in range(12):
                at = rng.randrange(REGION // 16)
                data = rng.randbytes(rng.choice((0, 1, rng.randint(0, 40), rng.randint(0, 2000))))
                bench.writes.put((base + at, len(data), number), writer)
                bench.packets.send(Packet(data), writer)
                image[at : at + len(data)] = data
            images.append((base, image))
        for reader in range(bench.readers):
            for packet in expected[reader]:
                assert await bench.packet(reader) == packet
        for writer in range(bench.writers):
            for number in range(12):
                assert await with_timeout(bench.done.get(writer), 2000, "us") == (number, 0)
        for base, image in images:
            assert bench.stored(base, len(image)) == image
        assert memory.idle()
    assert all(memory.beats["r"]), "a channel was never read"
    assert all(memory.beats["w"]), "a channel was never written"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def channels_run_at_the_same_time(dut):
    """Movers on different channels take no longer than one alone, and one channel is shared evenly."""
    bench = Bench(dut, latency=(12, 12))
    await start_clock_and_reset(dut)
    movers = min(bench.readers, bench.channels)
    beats = bench.block // bench.width
    rounds = 32

    async def run(channel_of):
        start = bench.out.cycle
        for number in range(rounds):
            for reader in range(movers):
                address = (number * bench.channels + channel_of(reader)) * bench.block
                bench.reads.put((address, bench.block, 0), reader)
        for reader in range(movers):
            for _ in range(rounds):
                await bench.packet(reader)
        return bench.out.cycle - start

    apart = await run(lambda reader: reader)
    together = await run(lambda reader: 0)
    dut._log.info(f"{movers} readers of {rounds * beats} beats: {apart} cycles on two channels, {together} on one")
    assert apart < rounds * beats * 1.05 + 60
    if movers > 1:
        assert together >= rounds * beats * movers


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def writers_at_full_speed(dut):
    """Writers on different channels lose no beat between bursts; one writer all over memory neither."""
    bench = Bench(dut, latency=(12, 12))
    await start_clock_and_reset(dut)
    movers = min(bench.writers, bench.channels)
    rounds = 24
    memory = bench.memory

    for spread in (False, True):
        memory.first["w"] = 0
        before = sum(memory.beats["w"])
        used = 1 if spread else movers
        for number in range(rounds):
            for writer in range(used):
                address = number * bench.block if spread else (number * bench.channels + writer) * bench.block
                bench.writes.put((address, bench.block, 0), writer)
                bench.packets.send(Packet(bench.rng.randbytes(bench.block)), writer)
        for writer in range(used):
            for _ in range(rounds):
                await with_timeout(bench.done.get(writer), 2000, "us")
        cycles = memory.last["w"] - memory.first["w"] + 1
        beats = (sum(memory.beats["w"]) - before) / used
        dut._log.info(f"{used} writers, spread {spread}: {beats} beats each in {cycles} cycles")
        assert beats / cycles >= 0.98


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def consumer_that_waits_for_another(dut):
    """One reader's words are not taken until another's have come, though all answers share channels in order."""
    bench = Bench(dut, latency=(3, 3))
    await start_clock_and_reset(dut)
    if bench.readers < 2:
        return
    bench.out.pauses = [(lambda: True)] + [never] * (bench.readers - 1)
    wanted = []
    for number in range(40):
        bench.reads.put((number * 700, 700, 0), 0)
        bench.reads.put((REGION + number * 700, 700, 1), 1)
        wanted.append((number * 700, REGION + number * 700))
    for _, address in wanted:
        assert await bench.packet(1) == (bench.stored(address, 700), 1, 0)
    bench.out.pauses = [never] * bench.readers
    for address, _ in wanted:
        assert await bench.packet(0) == (bench.stored(address, 700), 0, 0)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def errors_reach_their_mover(dut):
    """An error on one channel is reported to the mover whose burst it was, and to no other."""
    bench = Bench(dut, latency=(0, 9), shuffle=True)
    rng = bench.rng
    await start_clock_and_reset(dut)
    channel, at = bench.place(0x1200)
    bench.memory.bad[channel].append((at, at + bench.block))
    for mover in range(bench.readers):
        bench.reads.put((0x1200 - 64 if mover % 2 else 0x4000, 64 + 3 * (mover % 2), mover), mover)
    for mover in range(bench.writers):
        bench.writes.put((0x1200 if mover % 2 else 0x8000, 5, mover), mover)
        bench.packets.send(Packet(rng.randbytes(5)), mover)
    for mover in range(bench.readers):
        _, user, error = await bench.packet(mover)
        assert (user, error) == (mover, mover % 2)
    for mover in range(bench.writers):
        assert await with_timeout(bench.done.get(mover), 200, "us") == (mover, mover % 2)


@pytest.mark.parametrize(
    "values",
    [
        {"Readers": 3, "Writers": 2, "Channels": 2, "DataBytes": 16, "InterleaveBytes": 256},
        full({"Readers": 2, "Writers": 4, "Channels": 4, "DataBytes": 64, "InterleaveBytes": 1024}),
        full({"Readers": 1, "Writers": 1, "Channels": 1, "DataBytes": 8, "InterleaveBytes": 4096}),
    ],
    ids=lambda values: f"{values['Readers']}+{values['Writers']}on{values['Channels']}",
)
def test_unisono_memory_crossbar(values):
    bench = Path(__file__).parent / "unisono_memory_crossbar_bench.sv"
    simulate("unisono_memory_crossbar_bench", __file__, values, sources=[bench], verilator_args=[AXI_PORTS])
