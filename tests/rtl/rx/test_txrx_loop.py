"""Tx into Rx, with the credit unit between them: bit for bit, and no credit is lost."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from pathlib import Path
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
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, simulate
from headers import MAGIC, VERSION, Header, MessageType, core_refuses, core_seals, random_header, sealed

RANK, BUFFERS = 3, 4
MESSAGES = 400


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def loop(dut: Any) -> None:
    """Messages go round while credits are taken, owed and returned."""
    rng = new_random("loop")
    data_bytes = parameters().get("DataBytes", 64)

    def pace(name: str) -> Pause:
        return dict(paces(new_random(name)))["bursts"]

    command = ChannelSource(dut, "command", ("transmit",), lanes=2, pause=[pace("c0"), pace("c1")])
    load = StreamSource(dut, "load", lanes=2, pause=[pace("l0"), pace("l1")])
    control = ChannelSource(dut, "control", ("transmit",), pause=pace("ctl"))
    received = ChannelSink(dut, "received", ("message",), pause=pace("r"))
    payload = StreamSink(dut, "payload", pause=pace("p"))
    init = ChannelSource(dut, "init", ("communicator", "buffers"))
    freed = ChannelSource(dut, "freed", ("communicator", "peer"), pause=pace("f"))
    ask = ChannelSource(dut, "available", ("communicator", "peer", "take"))
    request = ChannelSink(dut, "request", ("communicator", "peer"))
    await start_clock_and_reset(dut)
    pairs = [(c, r) for c in (0, 7, 15) for r in (0, 1, 63)]
    for communicator in (0, 7, 15):
        init.put((communicator, BUFFERS))
    await init.drain()
    while not int(dut.ready_o.value):
        await RisingEdge(dut.clk_i)

    async def available(pair: tuple[int, int], take: int) -> tuple[int, int]:
        ask.put((*pair, take))
        while not int(dut.answer_valid_o.value):
            await RisingEdge(dut.clk_i)
        answer = int(dut.answer_granted_o.value), int(dut.answer_count_o.value)
        await RisingEdge(dut.clk_i)
        return answer

    sent: dict[int, tuple[Header, bytes]] = {}

    def send(pair: tuple[int, int], tag: int, kind: MessageType, length: int, source: int) -> None:
        communicator, peer = pair
        header = random_header(
            rng,
            length,
            tag=tag,
            type=kind,
            communicator=0xC0DE0000 + communicator,
            epoch=0x5A00 + communicator,
            source=peer,
            destination=RANK,
            magic=MAGIC,
            version=VERSION,
        )
        data = rng.randbytes(length)
        word = int.from_bytes(sealed(header), "little")
        for part, width in ((communicator, 4), (peer, 6), (communicator << 6 | peer, 16), (int(source == 2), 1)):
            word = word << width | part
        sent[tag] = header, data
        if source == 2:
            control.put((word,))
            return
        command.put((word,), source)
        if data:
            load.send(Packet(data), source)

    async def return_credits() -> None:
        tag = 1 << 31
        while True:
            communicator, peer = await request.get()
            tag += 1
            send((communicator, peer), tag, MessageType.CREDIT, 0, 2)

    cocotb.start_soon(return_credits())
    outstanding: deque[int] = deque()
    sequences: dict[tuple[int, bool], int] = defaultdict(int)
    headers: list[bytes] = []
    refused = returned = 0

    async def take_one() -> None:
        nonlocal returned
        (word,) = await received.get()
        source, communicator, raw = word & 63, word >> 6 & 15, (word >> 10 & (1 << 512) - 1).to_bytes(64, "little")
        header = Header.decode(raw)
        wanted, data = sent.pop(header.tag)
        outstanding.remove(header.tag)
        session = communicator << 6 | source
        assert (header.communicator - 0xC0DE0000, header.source) == (communicator, source)
        sequence = sequences[session, False]
        sequences[session, False] += 1
        assert raw == sealed(replace(wanted, credits=header.credits, session_sequence=sequence))
        headers.append(raw)
        returned += header.credits
        if data:
            packet = await payload.receive()
            assert packet.data == data
        freed.put((communicator, source))

    for tag in range(MESSAGES):
        pair = rng.choice(pairs)
        granted, _ = await available(pair, 1)
        if granted:
            length = rng.choice((0, 1, data_bytes, rng.randint(0, 300), rng.randint(0, 1000)))
            send(pair, tag, MessageType.EAGER, length, rng.randrange(2))
            outstanding.append(tag)
        else:
            refused += 1
        while len(outstanding) > 12 or received.words[0]:
            await take_one()
    while outstanding:
        await take_one()
    await freed.drain()
    await ClockCycles(dut.clk_i, 600)
    assert not command.queues[0]
    assert not int(dut.wrong_o.value)
    faults = int(dut.faults_o.value)
    assert faults == 0, f"{faults:x}"
    # What is not available is owed, and less than half of the buffers.
    for pair in pairs:
        _, count = await available(pair, 0)
        assert BUFFERS - BUFFERS // 2 < count <= BUFFERS, f"{pair}: {count} of {BUFFERS} credits"
    assert refused > 0, "credits never ran out"
    assert returned > 0
    assert len(headers) >= 200
    assert core_seals(headers) == headers
    assert not any(core_refuses(headers))
    dut._log.info(f"{len(headers)} messages, {refused} refused for want of credit, {returned} credits on data")


@pytest.mark.parametrize("data_bytes", [64, full(16)])
def test_txrx_loop(data_bytes: int) -> None:
    source = Path(__file__).with_name("unisono_txrx_loop.sv")
    simulate("unisono_txrx_loop", __file__, {"DataBytes": data_bytes}, sources=[source])
