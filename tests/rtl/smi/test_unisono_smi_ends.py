"""unisono_smi_push and unisono_smi_pop: packets against a model, flushes, credits, and counts that differ."""

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate
from smi_support import ASKS, DIFFER, LAST, SEND, SYNCH, Control, Opening, Packet, packet_of


def opening(peer, port, count, size, credits=0, strict=0, window=0, lanes=0):
    value = peer
    for field, bits in ((port, 16), (count, 32), (size, 2), (credits, 1), (strict, 1), (window, 32), (lanes, 8)):
        value = value << bits | field
    return value


class Opener:
    """The beats that open channels."""

    def __init__(self, dut):
        self.dut = dut
        dut.open_valid_i.value = dut.open_i.value = 0

    async def open(self, *fields, **named):
        dut = self.dut
        dut.open_valid_i.value, dut.open_i.value = 1, opening(*fields, **named)
        while True:
            await ReadOnly()
            taken = int(dut.open_ready_o.value)
            await RisingEdge(dut.clk_i)
            if taken:
                break
        dut.open_valid_i.value = 0


def body_of(size):
    return size - (4 if size == 32 else 8)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def push_packs(dut):
    rng = new_random("push")
    size, word = parameters()["PacketBytes"], parameters()["WordBytes"]
    source = ChannelSource(dut, "in", ("data", "count", "flush"))
    sink = ChannelSink(dut, "out", pause=bursts(rng))
    opener = Opener(dut)
    dut.rank_i.value, dut.control_valid_i.value, dut.control_data_i.value, dut.tree_i.value = 5, 0, 0, 0
    await start_clock_and_reset(dut)
    for case in range(40):
        log = rng.randrange(4)
        elements = word >> log
        count = rng.choice((0, 1, 2, 7, rng.randrange(200)))
        data = rng.randbytes(count << log)
        source.pauses = [rng.choice((never, share(rng, 0.3), bursts(rng)))]
        flushes = set()
        left, at = count, 0
        while left:
            step = rng.randint(0 if rng.random() < 0.1 else 1, elements)
            used = min(step, left)
            flush = int(rng.random() < 0.15)
            # Bytes that do not count are noise, also those behind the message's end.
            value = int.from_bytes(data[at << log : at + used << log], "little")
            value |= rng.getrandbits(word * 8) >> (used << log + 3) << (used << log + 3)
            source.put((value, step, flush))
            at, left = at + used, left - used
            if flush:
                flushes.add(at)
        await opener.open(peer=case % 7, port=case % 5, count=count, size=log)
        full = body_of(size) >> log
        got = b""
        while True:
            await sink.wait(lambda: bool(sink.words[0]))
            packet = packet_of(sink.words[0].popleft()[0], size)
            assert (packet.src, packet.dst, packet.port) == (5, case % 7, case % 5)
            assert packet.count <= full
            got += packet.payload[: packet.count << log]
            if packet.op == LAST:
                break
            assert packet.op == SEND
            assert packet.count == full or len(got) >> log in flushes or source.pauses[0] is not never
        assert got == data
        assert not sink.words[0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def push_waits_for_credits(dut):
    rng = new_random("credits")
    size, word, window = (parameters()[name] for name in ("PacketBytes", "WordBytes", "Window"))
    source = ChannelSource(dut, "in", ("data", "count", "flush"))
    sink = ChannelSink(dut, "out")
    control = ChannelSource(dut, "control")
    opener = Opener(dut)
    dut.rank_i.value = dut.tree_i.value = 0
    await start_clock_and_reset(dut)

    def tell(src, packets=0, opening=None, message=0):
        payload = Control(0, packets, int(opening is not None), opening=opening, message=message).payload()
        control.put((Packet(src, 0, 1, SYNCH, 0, payload).word(size),))

    async def quiet(cycles=90):
        for _ in range(cycles):
            await RisingEdge(dut.clk_i)

    # The first one of rank 3 comes before the channel is open; those of rank 4 are not for it.
    per_packet = body_of(size) >> 3
    count = per_packet * (window + 6)
    tell(3, opening=Opening(count, 3, credits=1))
    tell(4, packets=50)
    data = rng.randbytes(count * 8)
    for at in range(0, count, word // 8):
        part = data[at * 8 : at * 8 + word]
        source.put((int.from_bytes(part, "little"), len(part) // 8, 0))
    await quiet(5)
    await opener.open(peer=3, port=1, count=count, size=3, credits=1)
    tell(4, packets=50)
    await quiet()
    assert sink.taken[0] == window
    for more in (1, 3):
        before = sink.taken[0]
        tell(3, packets=more)
        await quiet()
        assert sink.taken[0] == before + more
    tell(3, packets=2)
    await quiet()
    got = b""
    for _ in range(window + 6):
        packet = packet_of(sink.words[0].popleft()[0], size)
        got += packet.payload[: packet.count * 8]
    assert packet.op == LAST
    assert got == data
    # The next channel waits for a first one of its own; what is late of the last channel gives nothing.
    tell(3, packets=9)
    source.put((7, 1, 0))
    await opener.open(peer=3, port=1, count=1, size=0, credits=1)
    await quiet(60)
    assert not sink.words[0]
    # After a while it asks, once.
    await quiet(200)
    asking = packet_of(sink.words[0].popleft()[0], size)
    assert (asking.op, asking.dst, asking.count) == (SYNCH, 3, 0)
    mine = Opening(1, 0, credits=1)
    assert asking.payload[:24] == Control(kind=ASKS, opening=mine, message=1).payload()
    assert not sink.words[0]
    # What is said of another message is not compared.
    tell(3, opening=Opening(7, 3), message=9)
    await quiet(10)
    assert len(sink.words[0]) == 1
    await quiet(5)
    assert int(dut.open_ready_o.value)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def push_names_ends_that_differ(dut):
    size = parameters()["PacketBytes"]
    count = min(5, parameters()["WordBytes"] // 2)  # elements of a word
    source = ChannelSource(dut, "in", ("data", "count", "flush"))
    sink = ChannelSink(dut, "out")
    control = ChannelSource(dut, "control")
    opener = Opener(dut)
    dut.rank_i.value = dut.tree_i.value = 0
    found = []

    async def listen():
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.rst_ni.value) and int(dut.differ_valid_o.value):
                value = int(dut.differ_o.value)
                found.append((value >> 170, value >> 85 & (1 << 85) - 1, value & (1 << 85) - 1))

    await start_clock_and_reset(dut)
    cocotb.start_soon(listen())
    mine = Opening(count, 1, credits=1)
    for message, theirs in enumerate(
        (Opening(count, 1), Opening(count, 2, credits=1), Opening(count, 1, 1, 1, 7), Opening(6, 1, credits=1), mine)
    ):
        source.put((0x55, count, 0))
        control.put(
            (Packet(2, 0, 1, SYNCH, 0, Control(first=1, opening=theirs, message=message).payload()).word(size),)
        )
        await opener.open(peer=2, port=1, count=count, size=1, credits=1)
        for _ in range(30):
            await RisingEdge(dut.clk_i)
        packets = [packet_of(one[0], size) for one in sink.words[0]]
        sink.words[0].clear()
        assert found == ([(2, mine.bits(), theirs.bits())] if theirs != mine else [])
        found.clear()
        assert int(dut.open_ready_o.value)
        # Other counts alone do not end it.
        if theirs.size == 1 and theirs.credits and not theirs.strict:
            assert [(one.op, one.count) for one in packets] == [(LAST, count)]
        else:
            assert [(one.op, one.dst) for one in packets] == [(SYNCH, 2)]
            assert packets[0].payload[:24] == Control(kind=DIFFER, opening=mine, message=message).payload()
            # What was on offer for the channel that is closed goes to the next one.
            source.queues[0].clear()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def pop_unpacks(dut):
    rng = new_random("pop")
    size, word, batch = (parameters()[name] for name in ("PacketBytes", "WordBytes", "Batch"))
    source = ChannelSource(dut, "in")
    sink = ChannelSink(dut, "out", ("data", "count", "last"))
    control = ChannelSink(dut, "control", pause=share(rng, 0.3))
    opener = Opener(dut)
    dut.rank_i.value, dut.told_valid_i.value, dut.told_data_i.value, dut.tree_i.value = 6, 0, 0, 0
    complaints = []

    async def listen():
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.rst_ni.value) and int(dut.complaint_valid_o.value):
                value = int(dut.complaint_o.value)
                complaints.append(
                    (value >> 80, value >> 64 & 0xFFFF, value >> 32 & (1 << 32) - 1, value & (1 << 32) - 1)
                )

    await start_clock_and_reset(dut)
    cocotb.start_soon(listen())
    for case in range(40):
        log = rng.randrange(4)
        sent, expected = rng.randrange(150), None
        expected = sent if case % 3 else rng.randrange(150)
        credits = rng.randrange(2)
        lanes = rng.choice((0, 1, rng.randint(1, word >> log)))
        data = rng.randbytes(sent << log)
        sink.pauses = [rng.choice((never, share(rng, 0.4), bursts(rng)))]
        left, at, packets = sent, 0, 0
        while True:
            step = min(left, rng.choice((body_of(size) >> log, rng.randint(0, body_of(size) >> log))))
            last = step == left
            if rng.random() < 0.05:
                source.put((Packet(2, 6, 1, SEND, 1, b"\xff" * 8).word(size),))
            payload = data[at << log : at + step << log]
            payload += rng.randbytes(body_of(size) - len(payload))
            source.put((Packet(1, 6, 1, LAST if last else SEND, step, payload).word(size),))
            at, left, packets = at + step, left - step, packets + 1
            if last:
                break
        wrong = sum(1 for _ in source.queues[0]) - packets
        await opener.open(peer=1, port=1, count=expected, size=log, credits=credits, lanes=lanes)
        await source.drain()
        while not int(dut.open_ready_o.value):
            await RisingEdge(dut.clk_i)
        got, lasts = b"", 0
        for value, count, last in sink.words[0]:
            assert 1 <= count <= (lanes or word >> log)
            got += value.to_bytes(word, "little")[: count << log]
            lasts += last
        sink.words[0].clear()
        assert got == data[: expected << log]
        assert lasts == (0 < expected <= sent)
        for _ in range(20):
            await RisingEdge(dut.clk_i)
        assert len([one for one in complaints if one[0]]) == wrong
        assert all(one[1] == 2 for one in complaints if one[0])
        assert [one for one in complaints if not one[0]] == ([(0, 1, expected, sent)] if sent != expected else [])
        complaints.clear()
        told = [packet_of(one[0], size) for one in control.words[0]]
        control.words[0].clear()
        assert bool(told) == bool(credits)
        for number, packet in enumerate(told):
            assert (packet.src, packet.dst, packet.port, packet.op) == (6, 1, 1, SYNCH)
            assert packet.payload[8] == case % 16 << 4 | (number == 0)
            freed = int.from_bytes(packet.payload[4:8], "little")
            assert freed >= batch or number == 0
        if credits:
            freed = sum(int.from_bytes(packet.payload[4:8], "little") for packet in told)
            assert packets + wrong - batch - 1 <= freed <= packets + wrong or packets < 2 * batch


@pytest.mark.parametrize(("size", "word"), [(32, 32), (32, 8), full(64, 64), full(128, 16)])
def test_unisono_smi_push(size, word):
    given = {"PacketBytes": size, "WordBytes": word, "Window": 5, "MaxRanks": 8}
    for case in ("push_packs", "push_waits_for_credits", "push_names_ends_that_differ"):
        simulate("unisono_smi_push", __file__, given, testcase=case)


@pytest.mark.parametrize(("size", "word"), [(32, 32), (32, 8), full(64, 64), full(128, 16)])
def test_unisono_smi_pop(size, word):
    given = {"PacketBytes": size, "WordBytes": word, "Batch": 3}
    simulate("unisono_smi_pop", __file__, given, testcase="pop_unpacks")
