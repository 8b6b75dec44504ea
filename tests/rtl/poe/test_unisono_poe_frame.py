"""unisono_poe_frame: sessions, space, frames out, segments in, against a model in Python."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import Any

import cocotb
import pytest
from bus import ChannelSink, Pause, never, new_random, paces, share, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from hdl import full, parameters, simulate
from poe_bench import (
    CONTROL,
    REG_SESSION_LIMIT,
    REG_SHAPE,
    MacSink,
    MacSource,
    Receiver,
    Registers,
    Segment,
    Sender,
    length_near_words,
)

SMALL = {
    "DataBytes": 8,
    "Sessions": 8,
    "Nodes": 16,
    "TxDataWords": 128,
    "TxControlWords": 16,
    "RxDataWords": 128,
    "RxControlWords": 16,
    "MaxPayload": 509,
    "MaxControl": 64,
}
WIDE = {
    "DataBytes": 64,
    "Sessions": 64,
    "Nodes": 32,
    "TxDataWords": 256,
    "TxControlWords": 32,
    "RxDataWords": 256,
    "RxControlWords": 32,
    "MaxPayload": 4160,
    "MaxControl": 256,
}


class Bench:
    """The module with something at every port, and sessions open."""

    def __init__(self, dut: Any, pauses: dict[str, Pause] | None = None) -> None:
        given = parameters()
        self.dut = dut
        self.rng = new_random("bench")
        self.data_bytes = given["DataBytes"]
        self.sessions = given["Sessions"]
        self.nodes = given["Nodes"]
        self.most = {0: given["MaxPayload"], 1: given["MaxControl"]}
        self.tx_words = {0: given["TxDataWords"], 1: given["TxControlWords"]}
        self.rx_words = {0: given["RxDataWords"], 1: given["RxControlWords"]}
        given_pauses = pauses or {}

        def pause(name: str) -> Pause:
            return given_pauses.get(name, never)

        self.registers = Registers(dut)
        self.sender = Sender(dut, pause=pause("tx"), grant_pause=pause("grant"))
        self.receiver = Receiver(dut, pause=pause("rx"), meta_pause=pause("rx_meta"))
        self.mac_tx = MacSink(dut, "mac_tx", pause=pause("mac_tx"))
        self.mac_rx = MacSource(dut, "mac_rx", pause=pause("mac_rx"))
        self.events = ChannelSink(dut, "event", ("session", "state"))
        self.node_of: dict[int, int] = {}

    async def start(self, count: int | None = None) -> None:
        """Resets, and opens sessions to different nodes."""
        await start_clock_and_reset(self.dut)
        count = min(self.sessions, self.nodes - 1) if count is None else count
        places = self.rng.sample(range(self.nodes), count)
        for session, node in zip(self.rng.sample(range(self.sessions), count), places, strict=True):
            await self.registers.open(session, node)
            self.node_of[session] = node

    def words(self, length: int) -> int:
        return -(-length // self.data_bytes)

    def segment(self, rng: random.Random, lane: int | None = None) -> Segment:
        """A random segment on a random open session."""
        lane = int(rng.random() < 0.3) if lane is None else lane
        session = rng.choice(list(self.node_of)) | (CONTROL if lane else 0)
        return Segment(session, rng.randbytes(length_near_words(rng, self.most[lane], self.data_bytes)))

    async def expect_full_space(self) -> None:
        """With nothing under way, both lanes grant exactly their buffers."""
        session = next(iter(self.node_of))
        for lane in (0, 1):
            granted = 0
            length = self.data_bytes
            while await self.sender.ask(session | (CONTROL if lane else 0), length):
                granted += 1
                assert granted <= self.tx_words[lane]
            assert granted == self.tx_words[lane], f"lane {lane}: {granted} of {self.tx_words[lane]}"
            for _ in range(granted):
                self.sender.commit(session | (CONTROL if lane else 0), self.rng.randbytes(length))
        await with_timeout(
            self.mac_tx.wait(lambda: len(self.mac_tx.packets[0]) >= sum(self.tx_words.values())), 200, "us"
        )


def all_paces(rng: random.Random, names: tuple[str, ...]) -> dict[str, Pause]:
    """A pace for each port, chosen at random."""
    chosen = {name: rng.choice(paces(rng)) for name in names}
    cocotb.log.info("paces: %s", {name: pace[0] for name, pace in chosen.items()})
    return {name: pace[1] for name, pace in chosen.items()}


async def send_random(dut: Any, number: int) -> None:
    rng = new_random(f"send {number}")
    bench = Bench(dut, all_paces(rng, ("tx", "grant", "mac_tx")))
    await bench.start()
    segments = [bench.segment(rng) for _ in range(150)]
    held: dict[int, int] = {0: 0, 1: 0}
    expected: dict[int, deque[Segment]] = defaultdict(deque)

    async def engine() -> None:
        for segment in segments:
            lane = segment.session >> 15
            while not await bench.sender.ask(segment.session, len(segment.data)):
                bench.sender.refused += 1
            held[lane] += bench.words(len(segment.data))
            # Frames that have left are only noticed with their last word, so this can be no more than there is.
            assert held[lane] <= bench.tx_words[lane]
            expected[segment.session].append(segment)
            bench.sender.commit(segment.session, segment.data)

    async def wire() -> None:
        session_at = {node: session for session, node in bench.node_of.items()}
        for _ in segments:
            packet = await bench.mac_tx.receive(timeout_us=200)
            lane = packet.user >> 16
            session = session_at[packet.dest] | lane << 15
            segment = expected[session].popleft()
            assert packet.data == segment.data
            assert packet.user & 0xFFFF == len(segment.data)
            held[lane] -= bench.words(len(segment.data))

    cocotb.start_soon(engine())
    await with_timeout(wire(), 2000, "us")
    await ClockCycles(dut.clk_i, 5)
    counters = await bench.registers.counters()
    assert counters["tx_segments"] == len(segments)
    assert counters["tx_bytes"] == sum(len(segment.data) for segment in segments)
    assert counters["tx_refused"] == bench.sender.refused
    assert not any(counters[name] for name in ("tx_unknown", "tx_oversize", "tx_length", "tx_unreserved"))


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def sends_what_it_granted(dut: Any) -> None:
    await send_random(dut, 0)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def sends_what_it_granted_at_other_paces(dut: Any) -> None:
    await send_random(dut, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def space_is_what_was_promised(dut: Any) -> None:
    """With a MAC that takes nothing: every granted segment is taken at once; a session keeps to its share."""
    stalled = True
    bench = Bench(dut, {"mac_tx": lambda: stalled})
    await bench.start(4)
    first, second = list(bench.node_of)[:2]
    limit = max(bench.tx_words[0] // 2 + 3, bench.words(bench.most[0]))
    await bench.registers.write(REG_SESSION_LIMIT, limit)
    assert await bench.registers.read(REG_SESSION_LIMIT) == limit
    assert await bench.registers.read(REG_SHAPE) == bench.sessions << 16 | bench.most[0]
    rng = bench.rng
    held = {first: 0, second: 0}
    sent: list[Segment] = []
    for session in (first, second):
        for _ in range(100):
            data = rng.randbytes(length_near_words(rng, bench.most[0], bench.data_bytes))
            words = bench.words(len(data))
            room = held[session] + words <= limit and sum(held.values()) + words <= bench.tx_words[0]
            assert await bench.sender.ask(session, len(data)) == room
            if room:
                held[session] += words
                sent.append(Segment(session, data))
                bench.sender.commit(session, data)
    await with_timeout(bench.sender.words.drain(), 20, "us")
    # Control has space of its own.
    assert await bench.sender.ask(first | CONTROL, bench.most[1])
    bench.sender.commit(first | CONTROL, bytes(bench.most[1]))
    await with_timeout(bench.sender.words.drain(), 20, "us")
    stalled = False
    lanes = []
    for _ in range(len(sent) + 1):
        packet = await bench.mac_tx.receive(timeout_us=100)
        lanes.append(packet.user >> 16)
        if not packet.user >> 16:
            assert packet.data == sent.pop(0).data
    assert 1 in lanes[:3], "control went behind the frame that had begun and the one that was chosen"
    await bench.registers.write(REG_SESSION_LIMIT, 1)
    longest = bench.words(bench.most[0])
    assert await bench.registers.read(REG_SESSION_LIMIT) == longest, "less would refuse the longest for ever"
    await bench.registers.write(REG_SESSION_LIMIT, 0xFFFF_FFFF)
    await bench.expect_full_space()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def drops_and_counts_bad_segments(dut: Any) -> None:
    rng = new_random("bad")
    bench = Bench(dut, all_paces(rng, ("tx", "mac_tx")))
    await bench.start(3)
    closed = next(s for s in range(bench.sessions) if s not in bench.node_of)
    counted: dict[str, int] = defaultdict(int)
    good: list[Segment] = []

    async def granted(session: int, length: int) -> None:
        while not await bench.sender.ask(session, length):
            pass

    for _ in range(120):
        kind = rng.choice(("good", "unknown", "number", "long", "empty", "short", "more", "keep", "unreserved"))
        segment = bench.segment(rng)
        lane = segment.session >> 15
        length = len(segment.data)
        if kind == "good":
            await granted(segment.session, length)
            bench.sender.commit(segment.session, segment.data)
            good.append(segment)
        elif kind in ("unknown", "number"):
            session = (closed if kind == "unknown" else rng.randrange(bench.sessions, CONTROL)) | lane << 15
            assert await bench.sender.ask(session, length), "a query that can never succeed must not wait"
            bench.sender.commit(session, segment.data)
            counted["tx_unknown"] += 1
        elif kind == "long":
            data = rng.randbytes(bench.most[lane] + rng.randint(1, 3 * bench.data_bytes))
            assert await bench.sender.ask(segment.session, len(data))
            bench.sender.commit(segment.session, data)
            counted["tx_oversize"] += 1
        elif kind == "empty":
            assert await bench.sender.ask(segment.session, 0)
            bench.sender.commit(segment.session, segment.data, stated=0)
            counted["tx_oversize"] += 1
        elif kind == "unreserved":
            # No grant may be open when it comes: neither an earlier nor a later one.
            await bench.sender.words.drain()
            bench.sender.commit(segment.session, segment.data)
            await bench.sender.words.drain()
            counted["tx_unreserved"] += 1
        else:
            if kind == "short":
                data = segment.data[: max(1, length - rng.randint(1, 2 * bench.data_bytes))]
            elif kind == "more":
                data = segment.data + rng.randbytes(rng.randint(1, 5 * bench.data_bytes))
            else:
                data = segment.data[:-1] if length % bench.data_bytes != 1 else segment.data + b"x"
            if len(data) in (0, length):
                continue
            await granted(segment.session, length)
            bench.sender.commit(segment.session, data, stated=length)
            counted["tx_length"] += 1
    by_session: dict[int, deque[Segment]] = defaultdict(deque)
    for segment in good:
        by_session[segment.session].append(segment)
    session_at = {node: session for session, node in bench.node_of.items()}
    for _ in good:
        packet = await bench.mac_tx.receive(timeout_us=500)
        assert packet.data == by_session[session_at[packet.dest] | packet.user >> 16 << 15].popleft().data
    await bench.sender.words.drain()
    await ClockCycles(dut.clk_i, 50)
    assert not bench.mac_tx.packets[0], "more frames than good segments"
    counters = await bench.registers.counters()
    for name in ("tx_unknown", "tx_oversize", "tx_length", "tx_unreserved"):
        assert counters[name] == counted[name], name
        assert counted[name] > 3, f"{name} was not tried"
    assert counters["tx_segments"] == len(good)
    await bench.expect_full_space()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_session_that_closes_gives_its_space_back(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start(2)
    session, other = bench.node_of
    for lane in (0, CONTROL):
        assert await bench.sender.ask(session | lane, bench.most[lane >> 15])
    await bench.registers.close(session)
    for lane in (0, CONTROL):
        bench.sender.commit(session | lane, bytes(bench.most[lane >> 15]))
    await bench.sender.words.drain()
    await ClockCycles(dut.clk_i, 20)
    assert (await bench.registers.counters())["tx_unknown"] == 2
    del bench.node_of[session]
    assert other in bench.node_of
    await bench.expect_full_space()


async def receive_random(dut: Any, number: int) -> None:
    rng = new_random(f"receive {number}")
    bench = Bench(dut, all_paces(rng, ("mac_rx",)))
    await bench.start()
    session_at = {node: session for session, node in bench.node_of.items()}
    free = [node for node in range(bench.nodes) if node not in session_at]
    counted: dict[str, int] = defaultdict(int)
    expected: dict[int, deque[bytes]] = {0: deque(), 1: deque()}
    sessions: dict[int, deque[int]] = {0: deque(), 1: deque()}
    for _ in range(250):
        lane = int(rng.random() < 0.3)
        node = rng.choice(list(session_at))
        data = rng.randbytes(length_near_words(rng, bench.most[lane], bench.data_bytes))
        kind = rng.choice(("good", "good", "good", "unknown", "far", "damaged", "long", "stated", "huge"))
        options: dict[str, Any] = {"control": bool(lane)}
        if kind == "unknown":
            node = rng.choice(free)
            counted["rx_unknown"] += 1
        elif kind == "far":
            node = rng.randrange(bench.nodes, 65536)
            counted["rx_unknown"] += 1
        elif kind == "damaged":
            options["error"] = True
            counted["rx_damaged"] += 1
        elif kind == "long":
            data = rng.randbytes(bench.most[lane] + 1 + rng.randrange(bench.data_bytes))
            counted["rx_length"] += 1
        elif kind == "huge":
            # Longer than the buffer.
            data = rng.randbytes(bench.rx_words[lane] * bench.data_bytes + rng.randrange(1, 3 * bench.data_bytes))
            options["stated"] = rng.randint(1, bench.most[lane])
            counted["rx_length"] += 1
        elif kind == "stated":
            wrong = len(data) + rng.choice((-1, 1, bench.data_bytes, -bench.data_bytes, -len(data)))
            options["stated"] = wrong if 0 <= wrong != len(data) else len(data) + 1
            counted["rx_length"] += 1
        else:
            expected[lane].append(data)
            sessions[lane].append(session_at[node] | lane << 15)
        bench.mac_rx.send(data, node, **options)
    total = sum(len(queue) for queue in expected.values())
    length = sum(len(data) for queue in expected.values() for data in queue)
    for _ in range(total):
        segment = await with_timeout(bench.receiver.receive(), 500, "us")
        lane = segment.session >> 15
        assert segment.session == sessions[lane].popleft()
        assert segment.data == expected[lane].popleft()
    await bench.mac_rx.drain()
    await ClockCycles(dut.clk_i, 50)
    counters = await bench.registers.counters()
    for name in ("rx_unknown", "rx_length", "rx_damaged"):
        assert counters[name] == counted[name] > 3, name
    assert counters["rx_segments"] == total
    assert counters["rx_bytes"] == length
    assert counters["rx_full"] == 0


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def receives_good_frames_only(dut: Any) -> None:
    await receive_random(dut, 0)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def receives_with_a_slow_engine(dut: Any) -> None:
    """Frames may be dropped for want of room, then as a whole, and counted; what comes is right and in order."""
    rng = new_random("slow")
    given = parameters()
    bench = Bench(dut, {"rx": share(rng, 0.8), "rx_meta": share(rng, 0.5), "mac_rx": share(rng, 0.1)})
    await bench.start()
    sent: dict[int, list[Segment]] = {0: [], 1: []}
    for _ in range(200):
        segment = bench.segment(rng)
        sent[segment.session >> 15].append(segment)
        bench.mac_rx.send(
            segment.data, bench.node_of[segment.session & ~CONTROL], control=bool(segment.session & CONTROL)
        )
    await with_timeout(bench.mac_rx.drain(), 1500, "us")
    await ClockCycles(dut.clk_i, 100)
    received = 0
    position = {0: 0, 1: 0}
    counters = await bench.registers.counters()
    while received < 200 - counters["rx_full"]:
        segment = await with_timeout(bench.receiver.receive(), 500, "us")
        lane = segment.session >> 15
        while sent[lane][position[lane]] != segment:
            position[lane] += 1
        position[lane] += 1
        received += 1
    await ClockCycles(dut.clk_i, 200)
    assert not bench.receiver.meta.words[0]
    if given.get("RxPause"):
        assert received == 200
    else:
        assert counters["rx_full"] > 10


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def received_control_goes_first(dut: Any) -> None:
    stalled = True
    bench = Bench(dut, {"rx": lambda: stalled, "rx_meta": lambda: stalled})
    await bench.start(1)
    [(session, node)] = bench.node_of.items()
    frames = [bytes([i]) * bench.data_bytes * 5 for i in range(10)]
    for data in frames:
        bench.mac_rx.send(data, node)
    bench.mac_rx.send(b"control", node, control=True)
    await bench.mac_rx.drain()
    await ClockCycles(dut.clk_i, 20)
    stalled = False
    order = [await bench.receiver.receive() for _ in range(11)]
    place = next(i for i, segment in enumerate(order) if segment.session == session | CONTROL)
    assert place <= 2, "behind the segment that had begun and the one that was chosen, no more"
    assert [segment.data for segment in order if segment.session == session] == frames


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sessions_open_move_and_close(dut: Any) -> None:
    rng = new_random("sessions")
    bench = Bench(dut)
    await bench.start(0)
    at: dict[int, int] = {}
    events: list[tuple[int, ...]] = []
    not_opened = 0
    for _ in range(150):
        session = rng.randrange(bench.sessions)
        old = at.pop(session, None)
        if old is not None:
            events.append((session, 0))
        if rng.random() < 0.3:
            await bench.registers.close(session)
        else:
            node = rng.randrange(bench.nodes + 2)
            await bench.registers.open(session, node)
            if node < bench.nodes and node not in at.values():
                at[session] = node
                events.append((session, 1))
            else:
                not_opened += 1
        probe = rng.randrange(bench.sessions)
        value = await bench.registers.read(probe)
        assert value >> 31 == (probe in at)
        if probe in at:
            assert value & 0xFFFF == at[probe]
    await ClockCycles(dut.clk_i, 10)
    assert list(bench.events.words[0]) == events
    assert (await bench.registers.counters())["not_opened"] == not_opened > 5
    # Each node's frames come by its session, and by no other's.
    session_at = {node: session for session, node in at.items()}
    for node in range(bench.nodes):
        bench.mac_rx.send(bytes([node] * 5), node)
    got = [await with_timeout(bench.receiver.receive(), 20, "us") for _ in session_at]
    assert [(segment.session, segment.data[0]) for segment in got] == [
        (session_at[node], node) for node in sorted(session_at)
    ]
    await bench.mac_rx.drain()
    await ClockCycles(dut.clk_i, 20)
    assert (await bench.registers.counters())["rx_unknown"] == bench.nodes - len(session_at)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_frame_belongs_to_what_its_first_word_found(dut: Any) -> None:
    """A session that opens or closes while a frame arrives."""
    stop = 1 << 30
    bench = Bench(dut, {"mac_rx": lambda: bench.mac_rx.sent[0] >= stop})
    await bench.start(1)
    [(session, node)] = bench.node_of.items()

    async def arrive(data: bytes, change: Any) -> None:
        nonlocal stop
        stop = bench.mac_rx.sent[0] + 3
        bench.mac_rx.send(data, node)
        await ClockCycles(dut.clk_i, 30)
        await change
        stop = 1 << 30
        await bench.mac_rx.drain()
        await ClockCycles(dut.clk_i, 30)

    frames = [bytes([i] * (8 * bench.data_bytes - 3)) for i in range(2)]
    await arrive(frames[0], bench.registers.close(session))
    assert await with_timeout(bench.receiver.receive(), 20, "us") == Segment(session, frames[0])
    await arrive(frames[1], bench.registers.open(session, node))
    assert not bench.receiver.meta.words[0]
    assert (await bench.registers.counters())["rx_unknown"] == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_and_throughput(dut: Any) -> None:
    """To the cycle: what the header comments and the documentation say."""
    bench = Bench(dut)
    await bench.start(2)
    session, node = next(iter(bench.node_of.items()))
    await RisingEdge(dut.clk_i)

    async def cycles_until(handle: Any) -> int:
        count = 0
        while not int(handle.value):
            await RisingEdge(dut.clk_i)
            count += 1
        return count

    block = bench.tx_words[0] > 64
    # In each case: from the edge at which the last word is taken to the edge at which the result can be.
    bench.sender.query.put((session, bench.data_bytes))
    await cycles_until(dut.query_valid_i)
    assert await cycles_until(dut.grant_valid_o) == 2
    bench.sender.commit(session, bytes(bench.data_bytes))
    await cycles_until(dut.tx_valid_i)
    while not int(dut.tx_ready_o.value):
        await RisingEdge(dut.clk_i)
    assert await cycles_until(dut.mac_tx_valid_o) == (3 if block else 2)
    bench.mac_rx.send(bytes(bench.data_bytes), node)
    await cycles_until(dut.mac_rx_valid_i)
    assert await cycles_until(dut.rx_valid_o) == (6 if bench.rx_words[0] > 64 else 5)
    # A frame of one word in every cycle, both ways at once; space is asked for beforehand.
    count = min(64, bench.tx_words[0] - 1)
    for _ in range(count):
        assert await bench.sender.ask(session, bench.data_bytes)
    bench.mac_tx.packets[0].clear()
    bench.receiver.words.packets[0].clear()
    for i in range(count):
        bench.sender.commit(session, bytes([i] * bench.data_bytes))
        bench.mac_rx.send(bytes([i] * bench.data_bytes), node)
    sent = [await bench.mac_tx.receive() for _ in range(count)]
    received = [await bench.receiver.words.receive() for _ in range(count)]
    for packets in (sent, received):
        assert [packet.data[0] for packet in packets] == list(range(count))
        assert packets[-1].end - packets[0].end == count - 1, "not a word in every cycle"


@pytest.mark.parametrize("given", [SMALL, WIDE, full({**SMALL, "RxPause": 1, "TxDataWords": 64, "RxDataWords": 64})])
def test_unisono_poe_frame(given: dict[str, int]) -> None:
    simulate("unisono_poe_frame", __file__, given, limit_s=400)
