"""unisono_stream_source: segments have the bytes of their stream in order, however kernels cut them into words."""

import cocotb
import pytest
from bus import ChannelSource, Packet, StreamSink, StreamSource, never, new_random, paces, start_clock_and_reset
from hdl import full, parameters, simulate


def cut(rng, total: int, longest: int) -> list[int]:
    """Lengths that add up to the total."""
    parts = []
    while total:
        parts.append(min(total, rng.choice((1, 2, rng.randint(1, longest), longest))))
        total -= parts[-1]
    return parts


async def run(dut, rng, streams, commands, sink, shape) -> None:
    """Gives every port some bytes and asks for all of them, by turns."""
    ports = parameters()["StreamPorts"]
    wide = sink.data_bytes
    wanted = []
    for port in range(ports):
        data = rng.randbytes(rng.randint(1, 20 * wide))
        at = 0
        for length in cut(rng, len(data), 3 * wide if shape == "packets" else 7 * wide):
            streams.send(Packet(data[at : at + length]), port)
            at += length
        segments = []
        at = 0
        for length in cut(rng, len(data), 5 * wide):
            segments.append((port, data[at : at + length]))
            at += length
        wanted.append(segments)
    order = [port for port, segments in enumerate(wanted) for _ in segments]
    rng.shuffle(order)
    sequence = [wanted[port].pop(0) for port in order]
    for port, data in sequence:
        commands.put((port, len(data)))
    for number, (port, data) in enumerate(sequence):
        got = await sink.receive()
        assert got.data == data, f"segment {number}, of port {port}"


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_segments(dut):
    rng = new_random("source")
    ports = parameters()["StreamPorts"]
    streams = StreamSource(dut, "in", lanes=ports)
    commands, sink = ChannelSource(dut, "command", ("port", "bytes")), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    for _, idle in paces(rng):
        for _, back in paces(rng):
            streams.pauses, sink.pauses = [idle] * ports, [back]
            for shape in ("packets", "long"):
                await run(dut, rng, streams, commands, sink, shape)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counts_what_comes(dut):
    """Words without bytes are taken and count nothing."""
    ports = parameters()["StreamPorts"]
    streams = StreamSource(dut, "in", lanes=ports)
    commands, sink = ChannelSource(dut, "command", ("port", "bytes")), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    total = 0

    async def count():
        nonlocal total
        width = len(dut.filled_bytes_o) // ports
        while True:
            await cocotb.triggers.RisingEdge(dut.clk_i)
            if int(dut.filled_o.value) & 1:
                total += int(dut.filled_bytes_o.value) & (1 << width) - 1

    cocotb.start_soon(count())
    for length in (3, 0, 0, 64, 65, 0, 1):
        streams.send(Packet(bytes(range(length))))
    commands.put((0, 133))
    assert (await sink.receive()).data == bytes([0, 1, 2, *range(64), *range(65), 0])
    assert total == 133


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_per_cycle(dut):
    """Also where segments begin inside of words."""
    rng = new_random("throughput")
    ports = parameters()["StreamPorts"]
    streams = StreamSource(dut, "in", lanes=ports, pause=[never] * ports)
    commands, sink = ChannelSource(dut, "command", ("port", "bytes")), StreamSink(dut, "out", pause=never)
    await start_clock_and_reset(dut)
    wide = sink.data_bytes
    data = rng.randbytes(5 + 40 * wide)
    streams.send(Packet(data))
    for length in (5, 20 * wide, 20 * wide):
        commands.put((0, length))
    first, second, third = [await sink.receive() for _ in range(3)]
    assert first.data + second.data + third.data == data
    assert third.end - second.start == 39


@pytest.mark.parametrize(("ports", "data_bytes"), [full(1, 64), (3, 64), full(2, 16)])
def test_unisono_stream_source(ports, data_bytes):
    simulate("unisono_stream_source", __file__, {"StreamPorts": ports, "DataBytes": data_bytes, "Depth": 64})
