"""unisono_smi_cut, unisono_smi_join, unisono_smi_mac: frames in packets, and frames again."""

from collections import Counter, defaultdict, deque

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, bursts, never, new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from hdl import full, parameters, scaled, simulate
from smi_cable import cable
from smi_support import ENDS, LAST, SEND, Packet, all_on_one_link, packets_of_frame, wide_words

SIZE = 64
FRAME = ("data", "last", "dest", "bytes", "control")


def words_of(data):
    """The words of a frame, the last one filled up with noise: only the length counts."""
    padded = data.ljust(-(-len(data) // SIZE) * SIZE, b"\xa5")
    pieces = [padded[at : at + SIZE] for at in range(0, len(padded), SIZE)]
    return [int.from_bytes(piece, "little") for piece in pieces]


def length(rng, most):
    """Lengths at all borders, and any."""
    borders = [SIZE - 8, SIZE, 4 * SIZE - 8, 4 * SIZE, 8 * SIZE - 16]
    return max(1, min(most, rng.choice([*(b + d for b in borders for d in (-1, 0, 1)), rng.randint(1, most)])))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cuts(dut):
    rng = new_random("cut")
    words = parameters()["Words"]
    source = ChannelSource(dut, "in", FRAME, pause=rng.choice((never, bursts(rng))))
    sink = ChannelSink(dut, "out", ("control", "data"), pause=bursts(rng))
    dut.rank_i.value = 5
    await start_clock_and_reset(dut)
    expected = []
    for _ in range(scaled(200)):
        control = rng.random() < 0.3
        data, dest = rng.randbytes(length(rng, 1500)), rng.randrange(64)
        frame = words_of(data)
        for number, word in enumerate(frame):
            source.put((word, int(number == len(frame) - 1), dest, len(data), int(control)))
        for packet in packets_of_frame(5, dest, control, data, SIZE, words):
            expected += [(control, word, len(data)) for word in packet]
    await sink.wait(lambda: sink.taken[0] == len(expected))
    left = 0
    for (kind, word), (control, right, count) in zip(sink.words[0], expected, strict=True):
        assert kind == control
        assert word >> 8 * SIZE == right >> 8 * SIZE
        # Behind a frame's end a word holds anything.
        left = left or count + 8 * -(-count // (SIZE * words - 8))
        held = min(left, SIZE)
        first = right >> 8 * SIZE - 64 & 0xFFFFFFFFFFFFFFFF
        if held == SIZE:
            assert word == right
        elif word != right:
            mask = (1 << 8 * held) - 1
            # A first word that is not full still ends with its header.
            assert word & mask == right & mask or word >> 8 * SIZE - 64 & 0xFFFFFFFFFFFFFFFF == first
        left -= held


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cuts_at_full_rate(dut):
    """A word of a packet in every cycle, also from one frame to the next."""
    words = parameters()["Words"]
    source = ChannelSource(dut, "in", FRAME)
    sink = ChannelSink(dut, "out", ("control", "data"))
    dut.rank_i.value = 0
    await start_clock_and_reset(dut)
    total = 0
    for size in (8256, 4160, 8256, 64, 248, 2000):
        data = bytes(size)
        for number, word in enumerate(words_of(data)):
            source.put((word, int(64 * number + 64 >= size), 1, size, 0))
        total += sum(map(len, packets_of_frame(0, 1, False, data, SIZE, words)))
    await sink.get()
    begin = sink.cycle
    await sink.wait(lambda: sink.taken[0] == total)
    assert sink.cycle - begin == total - 1


@pytest.mark.parametrize("words", [4, full(2)])
def test_unisono_smi_cut(words):
    for case in ("cuts", "cuts_at_full_rate"):
        simulate("unisono_smi_cut", __file__, {"Words": words}, testcase=case)


def bad_packets(rng, source, sources, most, words):
    """Packets of a frame that does not fit together, and how many drops that makes."""
    body = SIZE * words - 8
    kind = rng.choice(("long", "hollow", "short", "stranger", "empty"))
    if kind == "stranger":
        return packets_of_frame(sources + rng.randrange(9), 0, False, rng.randbytes(100), SIZE, words), 1
    if kind == "long":
        return packets_of_frame(source, 0, False, rng.randbytes(most + 1 + rng.randrange(3 * body)), SIZE, words), 1
    data = rng.randbytes(3 * body // 2)
    packets = packets_of_frame(source, 0, False, data, SIZE, words)
    if kind == "hollow":  # the first packet is not full
        packets[0] = wide_words(Packet(source, 0, 0, SEND, body - 9), data[: body - 9], SIZE)
    elif kind == "short":  # a word is missing
        packets[0] = [*packets[0][:-2], packets[0][-1]]
    else:
        packets[1] = wide_words(Packet(source, 0, 0, LAST, ENDS), b"\0", SIZE)
    return packets, 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def joins(dut):
    rng = new_random("join")
    words, sources, most = (parameters()[name] for name in ("Words", "Sources", "MaxBytes"))
    packets_in = ChannelSource(dut, "in", pause=bursts(rng))
    frames = ChannelSink(dut, "out", ("data", "keep", "last", "source", "bytes"), pause=bursts(rng))
    dropped = Counter()

    async def count():
        while True:
            await RisingEdge(dut.clk_i)
            dropped["all"] += int(dut.rst_ni.value) and int(dut.dropped_o.value)

    await start_clock_and_reset(dut)
    cocotb.start_soon(count())
    expected = defaultdict(deque)
    waiting = [deque() for _ in range(sources)]
    bad = total = 0
    for source in range(sources):
        for _ in range(scaled(60)):
            if rng.random() < 0.2:
                packets, drops = bad_packets(rng, source, sources, most, words)
                bad += drops
            else:
                data = rng.randbytes(length(rng, most))
                packets = packets_of_frame(source, 0, False, data, SIZE, words)
                expected[source].append(data)
                total += 1
            waiting[source] += packets
    # Packets of all sources mixed, those of each in order.
    while any(waiting):
        source = rng.choice([number for number, queue in enumerate(waiting) if queue])
        for word in waiting[source].popleft():
            packets_in.put((word,))
    frame = b""
    got = 0
    while got < total:
        word, keep, last, source, count_of_bytes = await frames.get()
        held = keep.bit_length()
        assert keep == (1 << held) - 1
        assert last or held == SIZE
        frame += word.to_bytes(SIZE, "little")[:held]
        if last:
            assert len(frame) == count_of_bytes
            assert frame == expected[source].popleft(), f"from {source}: another frame, or not the next"
            frame = b""
            got += 1
    await packets_in.drain()
    await ClockCycles(dut.clk_i, 100)
    assert not frames.words[0]
    assert dropped["all"] == bad > 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nobody_waits_for_the_rest_of_another(dut):
    """Source 0 has sent a longest frame but its end; all others go on, through more than all rings hold."""
    rng = new_random("rest")
    words, sources, most = (parameters()[name] for name in ("Words", "Sources", "MaxBytes"))
    packets_in = ChannelSource(dut, "in")
    frames = ChannelSink(dut, "out", ("data", "keep", "last", "source", "bytes"))
    await start_clock_and_reset(dut)
    first = rng.randbytes(most)
    begun = packets_of_frame(0, 0, False, first, SIZE, words)
    for packet in begun[:-1]:
        for word in packet:
            packets_in.put((word,))
    ends = 0
    for number in range(40 * (sources - 1)):
        source = 1 + number % (sources - 1)
        ends += 1
        for packet in packets_of_frame(source, 0, False, rng.randbytes(most), SIZE, words):
            for word in packet:
                packets_in.put((word,))
    await with_timeout(frames.wait(lambda: sum(w[2] for w in frames.words[0]) == ends), 400, "us")
    assert all(word[3] for word in frames.words[0])
    frames.words[0].clear()
    for word in begun[-1]:
        packets_in.put((word,))
    data = b""
    while len(data) < most:
        word, keep, _, source, _ = await frames.get()
        assert source == 0
        data += word.to_bytes(SIZE, "little")[: keep.bit_length()]
    assert data == first


@pytest.mark.parametrize(("words", "sources", "ring", "most"), [(4, 8, 32, 1000), full(2, 2, 16, 300)])
def test_unisono_smi_join(words, sources, ring, most):
    given = {"Words": words, "Sources": sources, "RingWords": ring, "MaxBytes": most}
    for case in ("joins", "nobody_waits_for_the_rest_of_another"):
        simulate("unisono_smi_join", __file__, given, testcase=case)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def frames_come_back(dut):
    """Frames of both kinds to all ranks; then, with another image, once more."""
    rng = new_random("mac")
    links, virtual, nodes = (parameters()[name] for name in ("Links", "VirtualChannels", "Nodes"))
    image_port = ChannelSource(dut, "image", ("data", "last"))
    source = ChannelSource(dut, "mac_tx", FRAME, pause=bursts(rng))
    sink = ChannelSink(
        dut, "mac_rx", ("data", "keep", "last", "source", "bytes", "control"), pause=rng.choice((never, bursts(rng)))
    )
    cocotb.start_soon(cable(dut, links, 2 * virtual))
    await start_clock_and_reset(dut)
    for ranks in (nodes, nodes - 1):
        image = all_on_one_link(ranks, 0, links, virtual, 1)
        for number, word in enumerate(image):
            image_port.put((word, int(number == len(image) - 1)))
        await image_port.drain()
        while not int(dut.running_o.value):
            await RisingEdge(dut.clk_i)
        expected = defaultdict(deque)
        total = 0
        for _ in range(scaled(120)):
            control = rng.random() < 0.3
            data, dest = rng.randbytes(length(rng, 256 if control else 3000)), rng.randrange(1, ranks)
            expected[dest, control].append(data)
            total += 1
            frame = words_of(data)
            for number, word in enumerate(frame):
                source.put((word, int(number == len(frame) - 1), dest, len(data), int(control)))
        frame = b""
        while total:
            word, keep, last, peer, count, control = await sink.get()
            frame += word.to_bytes(SIZE, "little")[: keep.bit_length()]
            if last:
                assert len(frame) == count
                assert frame == expected[peer, bool(control)].popleft()
                frame, total = b"", total - 1
        await ClockCycles(dut.clk_i, 50)
        assert not sink.words[0]
        assert int(dut.strays_o.value) == int(dut.dropped_o.value) == 0


@pytest.mark.parametrize(("links", "virtual"), [(4, 2), full(1, 1)])
def test_unisono_smi_mac(links, virtual):
    given = {"Links": links, "VirtualChannels": virtual, "Nodes": 8, "LinkDepth": 64}
    simulate("unisono_smi_mac", __file__, given, testcase="frames_come_back")
