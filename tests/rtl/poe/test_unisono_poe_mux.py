"""unisono_poe_mux: each session reaches its POE and comes back, in order, whatever the paces."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import pytest
from bus import (
    ChannelSink,
    ChannelSource,
    Packet,
    Pause,
    StreamSink,
    StreamSource,
    new_random,
    paces,
    start_clock_and_reset,
)
from cocotb.triggers import ClockCycles, with_timeout
from hdl import full, parameters, simulate
from poe_bench import CONTROL, Receiver, Segment, Sender, length_near_words

SPLIT = 300


def capability(ordered: int, reliable: int, datagram: int, payload: int, control: int) -> int:
    """A poe_capability_t."""
    return ((ordered << 2 | reliable << 1 | datagram) << 16 | payload) << 16 | control


def place(session: int) -> tuple[int, int]:
    """POE of a session, and its number there."""
    number, control = session & ~CONTROL, session & CONTROL
    return (1, number - SPLIT | control) if number >= SPLIT else (0, session)


def granted(poe: int, session: int, length: int) -> bool:
    """What the two POEs of this test answer."""
    return (session * 7 + length * 3 + poe) % 5 != 0


class Bench:
    """An engine on one side, two POEs on the other."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.rng = rng
        self.data_bytes = parameters()["DataBytes"]

        def pace() -> Pause:
            name, chosen = rng.choice(paces(rng))
            cocotb.log.info("pace: %s", name)
            return chosen

        def pair() -> list[Pause]:
            return [pace(), pace()]

        dut.split_i.value = SPLIT
        dut.poe_capability_i.value = 0
        self.sender = Sender(dut, pause=pace(), grant_pause=pace())
        self.receiver = Receiver(dut, pause=pace(), meta_pause=pace())
        self.events = ChannelSink(dut, "event", ("session", "state"), pause=pace())
        self.queries = ChannelSink(dut, "poe_query", ("session", "bytes"), lanes=2, pause=pair())
        self.grants = ChannelSource(dut, "poe_grant", ("granted",), lanes=2, pause=pair())
        self.metas = ChannelSink(dut, "poe_tx_meta", ("session", "bytes"), lanes=2, pause=pair())
        self.words = StreamSink(dut, "poe_tx", lanes=2, pause=pair())
        self.rx_metas = ChannelSource(dut, "poe_rx_meta", ("session", "bytes", "error"), lanes=2, pause=pair())
        self.rx_words = StreamSource(dut, "poe_rx", lanes=2, pause=pair())
        self.poe_events = ChannelSource(dut, "poe_event", ("session", "state"), lanes=2, pause=pair())

    def session(self) -> int:
        number = self.rng.choice((0, SPLIT - 1, SPLIT, self.rng.randrange(CONTROL), self.rng.randrange(2 * SPLIT)))
        return number | self.rng.choice((0, CONTROL))

    def segment(self) -> Segment:
        return Segment(
            self.session(), self.rng.randbytes(length_near_words(self.rng, 20 * self.data_bytes, self.data_bytes))
        )


async def queries(bench: Bench, count: int) -> None:
    """Many queries at once; the answers come in their order."""
    asked = [(bench.session(), bench.rng.randrange(65536)) for _ in range(count)]
    for query in asked:
        bench.sender.query.put(query)

    async def poe(lane: int) -> None:
        while True:
            session, length = await bench.queries.get(lane)
            bench.grants.put((int(granted(lane, session, length)),), lane)

    tasks = [cocotb.start_soon(poe(lane)) for lane in (0, 1)]
    for session, length in asked:
        answer = (await bench.sender.grant.get())[0]
        assert bool(answer) == granted(*place(session), length)
    for task in tasks:
        task.cancel()


async def sending(bench: Bench, count: int) -> None:
    """Metas and words of each POE are those of its sessions, in order."""
    segments = [bench.segment() for _ in range(count)]
    for segment in segments:
        bench.sender.commit(segment.session, segment.data)
    for lane in (0, 1):
        for segment in segments:
            poe, session = place(segment.session)
            if poe == lane:
                assert await bench.metas.get(lane) == (session, len(segment.data))
                assert (await bench.words.receive(lane)).data == segment.data


async def receiving(bench: Bench, count: int) -> None:
    """Segments of both come whole; those of a POE in their order; errors pass."""
    sent: list[deque[tuple[int, int, bytes]]] = [deque(), deque()]
    for _ in range(count):
        segment = bench.segment()
        poe, session = place(segment.session)
        error = bench.rng.getrandbits(1)
        bench.rx_metas.put((session, len(segment.data), error), poe)
        bench.rx_words.send(Packet(segment.data), poe)
        sent[poe].append((segment.session, error, segment.data))
    for _ in range(count):
        session, length, error = await bench.receiver.meta.get()
        packet = await bench.receiver.words.receive()
        assert length == len(packet.data)
        assert (session, error, packet.data) == sent[place(session)[0]].popleft()


async def events(bench: Bench, count: int) -> None:
    """Events of both come, those of a POE in their order."""
    sent: list[deque[tuple[int, ...]]] = [deque(), deque()]
    for _ in range(count):
        session, state = bench.session() & ~CONTROL, bench.rng.getrandbits(1)
        poe, local = place(session)
        bench.poe_events.put((local, state), poe)
        sent[poe].append((session, state))
    for _ in range(count):
        event = await bench.events.get()
        assert event == sent[place(event[0])[0]].popleft()


async def everything(dut: Any, number: int) -> None:
    rng = new_random(f"mux {number}")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    tasks = [cocotb.start_soon(one(bench, 120)) for one in (queries, sending, receiving, events)]
    for task in tasks:
        await with_timeout(task, 900, "us")
    await ClockCycles(dut.clk_i, 30)
    for sink in (bench.queries, bench.metas, bench.words):
        assert not any(sink.words), "something came twice, or to the other POE"
    assert not any(bench.words.packets)
    assert not bench.words.incomplete()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def everything_at_once(dut: Any) -> None:
    await everything(dut, 0)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def everything_at_other_paces(dut: Any) -> None:
    await everything(dut, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def everything_at_yet_other_paces(dut: Any) -> None:
    await everything(dut, 2)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def promises_what_both_promise(dut: Any) -> None:
    Bench(dut, new_random("promises"))
    await start_clock_and_reset(dut)
    cases = (
        ((1, 1, 0, 60000, 64), (1, 0, 1, 4096, 256), (1, 0, 0, 4096, 64)),
        ((1, 1, 1, 100, 300), (0, 1, 1, 200, 200), (0, 1, 1, 100, 200)),
    )
    for first, second, both in cases:
        dut.poe_capability_i.value = capability(*second) << 35 | capability(*first)
        await ClockCycles(dut.clk_i, 2)
        assert int(dut.capability_o.value) == capability(*both)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_slow_poe_takes_a_word_per_cycle_when_it_can(dut: Any) -> None:
    """Throughput with nothing in the way: segments of one word, alternating POEs, none lost between."""
    rng = new_random("rate")
    bench = Bench(dut, rng)
    free = lambda: False  # noqa: E731
    for end in (bench.sender.meta, bench.sender.words, bench.metas, bench.words, bench.rx_metas, bench.rx_words):
        end.pauses = [free] * len(end.pauses)
    for end in (bench.receiver.meta, bench.receiver.words):
        end.pauses = [free]
    await start_clock_and_reset(dut)
    count = 100
    for i in range(count):
        bench.sender.commit(SPLIT * (i % 2), bytes([i] * bench.data_bytes))
        bench.rx_metas.put((0, bench.data_bytes, 0), i % 2)
        bench.rx_words.send(Packet(bytes([i] * bench.data_bytes)), i % 2)
    packets = [await bench.words.receive(i % 2) for i in range(count)]
    assert max(p.end for p in packets) - min(p.start for p in packets) == count - 1
    received = [await bench.receiver.words.receive() for _ in range(count)]
    assert received[-1].end - received[0].start == count - 1


@pytest.mark.parametrize("data_bytes", [full(8), 64])
def test_unisono_poe_mux(data_bytes: int) -> None:
    simulate("unisono_poe_mux", __file__, {"DataBytes": data_bytes}, limit_s=400)
