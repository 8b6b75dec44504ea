"""A station among links: loads handlers, sends frames, and compares all that leaves with the model."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from bus import ChannelSink, Packet, StreamSink, StreamSource, new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import ROOT, parameters
from station_frames import Facts, frame_of, kept, read, taken
from station_model import STOPPED, Message, Row
from unisono import handler

EXAMPLES = ROOT / "examples" / "handlers"
BEGIN, WORD, MEMORY, ENTRY, BYTES, BUDGET, COMMIT, READ = range(8)


class LinkSource(StreamSource):
    """Frames; `user` says that one is damaged."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "bad")


class LinkSink(StreamSink):
    """Frames; `dest` is the address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "user", "address")


class Came(ChannelSink):
    """Watches which frames come in, in their order."""

    def __init__(self, dut: Any, ports: int, frame: Any) -> None:
        self.frame = frame
        self.parts: list[list[bytes]] = [[] for _ in range(ports)]
        super().__init__(dut, "in", ("data", "keep", "last", "bad"), lanes=ports, passive=True, inputs=True)

    def _accept(self, lane: int, word: tuple[int, ...]) -> None:
        data, keep, last, bad = word
        self.parts[lane].append(data.to_bytes(64, "little")[: keep.bit_length()])
        if last:
            whole = b"".join(self.parts[lane])
            self.parts[lane].clear()
            self.frame(whole, bool(bad))


class StationBench:
    """One station. What has come is given to the model; `finish` compares."""

    base = 0
    """Of its registers."""
    machines_parameter, form_parameter = "Machines", "Format"

    def __init__(self, dut: Any) -> None:
        given = parameters()
        self.dut, self.rng = dut, new_random("station")
        self.ports, self.machines = given["Ports"], given[self.machines_parameter]
        self.form = given[self.form_parameter]
        self.row = Row(self.machines)
        self.ways = [0] * self.machines
        self.bad = self.owed = self.received = 0
        self.found: dict[tuple[int, int, int, int], list[tuple[Facts, bytes, Packet]]] = defaultdict(list)
        self.connect()

    def connect(self) -> None:
        """To the ports."""
        self.source = LinkSource(self.dut, "in", lanes=self.ports)
        self.sink = LinkSink(self.dut, "out")
        self.dut.reg_valid_i.value = 0
        Came(self.dut, self.ports, self.came)

    def came(self, frame: bytes, damaged: bool) -> None:
        """A frame has come whole."""
        found = None if damaged else taken(self.form, frame, self.machines)
        if found is None:
            self.bad += 1
        else:
            self.row.frame(*found, frame[:64])

    # ------------------------------------------------------------ registers
    async def write(self, word: int, value: int) -> None:
        """One register."""
        dut = self.dut
        dut.reg_valid_i.value = dut.reg_write_i.value = 1
        dut.reg_word_i.value, dut.reg_data_i.value = self.base + word, value
        await RisingEdge(dut.clk_i)
        dut.reg_valid_i.value = 0

    async def read(self, word: int) -> int:
        """One register."""
        dut = self.dut
        dut.reg_valid_i.value, dut.reg_write_i.value, dut.reg_word_i.value = 1, 0, self.base + word
        await RisingEdge(dut.clk_i)
        dut.reg_valid_i.value = 0
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.reg_valid_o.value):
                return int(dut.reg_data_o.value)

    async def transfer(self, slot: int, what: int, value: int = 0, address: int | None = None) -> None:
        """One transfer of the loader; it goes on from address to address by itself."""
        base = slot << 8
        if address is not None:
            await self.write(base, address)
        await self.write(base + 1, value & 0xFFFFFFFF)
        await self.write(base + 2, value >> 32)
        await self.write(base + 3, what)
        while await self.read(base + 3) & 1:
            pass

    async def load(self, slot: int, made: handler.Handler, way: int = 0) -> None:
        """A handler into a slot."""
        made.reset()
        binary = made.binary
        entries, words, memory, data = (
            struct.unpack("<3I", binary[8:20]),
            *struct.unpack("<3I", binary[20:32]),
        )
        await self.transfer(slot, BEGIN)
        for number in range(words):
            await self.transfer(slot, WORD, int.from_bytes(binary[40 + 8 * number :][:8], "little"),
                                None if number else 0)  # fmt: skip
        start = binary[40 + 12 * words :][:data].ljust((memory + 7) // 8 * 8, b"\0")
        for at in range(0, len(start), 8):
            await self.transfer(slot, MEMORY, int.from_bytes(start[at : at + 8], "little"), None if at else 0)
        for function, entry in enumerate(entries):
            if entry != 0xFFFFFFFF:
                await self.transfer(slot, ENTRY, entry, function)
        await self.transfer(slot, BYTES, memory)
        await self.transfer(slot, BUDGET, self.row.budget)
        await self.transfer(slot, COMMIT, int.from_bytes(binary[32:36], "little"))
        for _ in range(2):
            state = await self.read(slot << 8 | 3)
        assert state & 0b1110 == 0b0010, f"slot {slot} is refused: {state:#x}"
        self.row.handlers[slot] = made
        await self.way(slot, way)

    async def way(self, slot: int, way: int) -> None:
        """Where what a slot writes goes."""
        await self.write(slot << 8 | 6, way)
        self.ways[slot] = way
        self.row.goes_on[slot] = bool(way >> 29 & 1)

    async def memory(self, slot: int) -> bytes:
        """A slot's memory, as the machine has it."""
        found = b""
        made = self.row.handlers[slot]
        assert made is not None
        size = len(made.memory)
        for at in range(0, size, 8):
            await self.transfer(slot, READ, 0, at)
            low, high = await self.read(slot << 8 | 4), await self.read(slot << 8 | 5)
            found += struct.pack("<II", low, high)
        return found[:size]

    # ------------------------------------------------------------ frames
    def send(self, facts: Facts, payload: bytes, lane: int = 0) -> None:
        """A sound frame of a packet."""
        frame = self.frame(facts, payload)
        self.source.send(Packet(frame), lane)

    def frame(self, facts: Facts, payload: bytes) -> bytes:
        """The same, as bytes."""
        noise = random.Random(repr(facts.key))
        return frame_of(self.form, facts, payload, noise)

    def message(self, facts: Facts, payloads: list[bytes], lane: int = 0) -> None:
        """All packets of a message."""
        for number, payload in enumerate(payloads):
            self.send(with_packet(facts, number, len(payloads)), payload, lane)

    async def finish(self, *, timeout_us: int = 3000) -> list[Message]:
        """Waits until all has left, and compares it with the model: messages that are over."""
        await self.source.drain()
        for _ in range(10):
            await RisingEdge(self.dut.clk_i)
        finished, self.row.finished = self.row.finished, []
        self.owed += sum(len(message.frames) + 1 for message in finished)
        while self.received < self.owed + sum(len(message.frames) for message in self.row.messages.values()):
            self.got(await self.sink.receive(timeout_us=timeout_us))
        await ClockCycles(self.dut.clk_i, 60)
        assert not self.sink.packets[0], "more frames than there must be"
        self.compare_all(finished)
        return finished

    def got(self, packet: Packet) -> None:
        """A frame has left."""
        self.received += 1
        read_back = read(self.form, packet.data)
        assert read_back is not None, f"a frame is not sound: {packet.data[:64].hex()}"
        self.found[read_back[0].key].append((*read_back, packet))

    def compare_all(self, finished: list[Message]) -> None:
        """Messages that are over, and what has left of others."""
        found = self.found
        for message in finished:
            key = message.facts.key
            mine = [found[key].pop(0) for _ in range(len(message.frames) + 1) if found[key]]
            assert len(mine) == len(message.frames) + 1, f"message {key}: {len(mine)} of {len(message.frames) + 1}"
            self.compare(message, mine)
        for key, message in self.row.messages.items():
            assert [payload for _, payload, _ in found[key]] == message.frames, f"message {key}, not at its end"
        strays = [key for key in found if found[key] and key not in self.row.messages]
        assert not strays, f"frames of no message: {strays}"

    def compare(self, message: Message, frames: list[tuple[Facts, bytes, Packet]]) -> None:
        """All frames of a message: its packets, and its end."""
        way = self.ways[message.facts.slot]
        address = message.facts.address
        if way >> 31:
            address = way & 0xFFFF
        elif way >> 30 & 1 and self.form:
            address = message.facts.back
        for number, (facts, payload, packet) in enumerate(frames):
            what = f"message {message.facts.key}, frame {number} of {len(frames)}"
            assert packet.dest == address == facts.address, f"{what} goes to {packet.dest}, {facts.address}"
            end = number == len(frames) - 1
            assert facts.end == end, f"{what} is {'an' if facts.end else 'no'} end"
            assert (facts.packet, facts.packets) == ((0, number) if end else (number, 0)), what
            if way >> 30 & 1 and self.form:
                assert facts.back == message.facts.address, what
                assert packet.data[:12] == message.head[6:12] + message.head[:6], what
                assert packet.data[34:38] == message.head[36:38] + message.head[34:36], what
            else:
                assert kept(self.form, packet.data) == kept(self.form, message.head), what
            if not end:
                assert payload == message.frames[number], f"{what} has other bytes"
        assert message.ended is not None
        count, status = message.ended
        assert count == len(frames) - 1
        self.compare_status(status, frames[-1][1], message)

    def compare_status(self, status: Any, payload: bytes, message: Message) -> None:
        """An end's payload."""
        what = f"the end of {message.facts.key}"
        assert len(payload) == 16, what
        reason, slot, function, zero, verdict, word, packet = struct.unpack("<BBBBIII", payload)
        assert zero == 0
        stopped = STOPPED <= reason < 32
        assert (STOPPED if stopped else reason) == status.reason, f"{what}: reason {reason}, must be {status}"
        if status.reason == 0:
            assert payload == bytes(16), what
            return
        assert (slot, function, verdict, packet) == (status.slot, status.function, status.verdict, status.packet), what
        if status.text:
            place = status.text.split(": ")[0]
            assert place.endswith(f":{self.row.lines(slot)[word]}"), f"{what}: word {word} is not {place}"


def with_packet(facts: Facts, number: int, packets: int) -> Facts:
    """The facts of one packet of a message."""
    return Facts(facts.slot, facts.job, facts.message, facts.source, facts.ranks, number, packets, facts.tag,
                 facts.address, facts.back)  # fmt: skip


def compiled(name: str, source: str, folder: Path) -> handler.Handler:
    """A handler of a source that the test has."""
    path = folder / f"{name}.c"
    path.write_text(source)
    return handler.compile(path)


async def started(dut: Any) -> StationBench:
    """A station behind its reset."""
    bench = StationBench(dut)
    await start_clock_and_reset(dut)
    return bench
