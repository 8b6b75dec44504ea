"""Drivers and monitors of valid/ready channels and packet streams, for cocotb tests.

Each driver or monitor is one coroutine that wakes once per clock cycle, however many lanes it serves, because the
number of wake-ups decides the speed of a cocotb simulation. A *lane* is one element of a port that is a packed
array (`logic [Lanes-1:0] in_valid_i`, `logic [Lanes-1:0][W-1:0] in_data_i`); ordinary ports have one lane.

Ports are named `<prefix>_<field>_i` or `_o`: `StreamSource(dut, "in")` drives `in_valid_i`, `in_data_i`, … and
reads `in_ready_o`; `StreamSink(dut, "out")` reads `out_valid_o`, `out_data_o`, … and drives `out_ready_i`.
"""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Event, RisingEdge, with_timeout

Pause = Callable[[], bool]
"""Asked once per cycle: whether to hold back (no valid, or no ready) now."""


def new_random(name: str = "") -> random.Random:
    """A generator that repeats with the simulation's seed, and differs between names."""
    seed = getattr(cocotb, "RANDOM_SEED", None)
    if seed is None:
        seed = os.environ.get("COCOTB_RANDOM_SEED", "1")
    return random.Random(f"{seed}/{name}")


def never() -> bool:
    """No pause: one word per cycle."""
    return False


def share(rng: random.Random, part: float) -> Pause:
    """Pauses in this part of the cycles, independently of one another."""
    return lambda: rng.random() < part


def bursts(rng: random.Random) -> Pause:
    """Phases of 1 to 60 cycles in which it runs free, stands still, or pauses at random."""
    left, part = 0, 0.0

    def pause() -> bool:
        nonlocal left, part
        if left == 0:
            left, part = rng.randint(1, 60), rng.choice((0.0, 0.0, 0.15, 0.5, 0.85, 1.0))
        left -= 1
        return rng.random() < part

    return pause


class Waits:
    """Checks of ports, by name, that what is on offer stays until it is taken; counts how often each waited."""

    def __init__(self, seen: Counter[str]) -> None:
        self.seen = seen
        self._words: dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the port's word was on offer in the cycle before, and was not taken."""
        return name in self._words

    def taken(self, name: str, valid: bool, ready: bool, word: Any) -> bool:
        """To be asked in every cycle: whether the word is taken in this one."""
        before = self._words.pop(name, None)
        assert before is None or valid, f"{name} was taken back"
        assert before is None or before == word, f"{name} changed from {before} to {word}"
        if valid and not ready:
            self._words[name] = word
            self.seen[f"{name} waits"] += 1
        return valid and ready


def paces(rng: random.Random) -> list[tuple[str, Pause]]:
    """The paces that every interface should be tested with."""
    return [("free", never), ("random", share(rng, 0.4)), ("slow", share(rng, 0.85)), ("bursts", bursts(rng))]


async def start_clock_and_reset(dut: Any, period_ns: int = 4, cycles: int = 4) -> None:
    """Starts `clk_i` and holds `rst_ni` low for some cycles."""
    dut.rst_ni.value = 0
    Clock(dut.clk_i, period_ns, unit="ns").start()
    for _ in range(cycles):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)


async def reset_again(dut: Any, cycles: int = 3) -> None:
    """A reset in mid-flight."""
    dut.rst_ni.value = 0
    for _ in range(cycles):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)


def _handle(dut: Any, name: str) -> Any | None:
    """A port, or None where the module has none of this name."""
    try:
        return getattr(dut, name)
    except AttributeError:
        return None


class Port:
    """One port, read and written as an unsigned integer; a port that does not exist has width 0."""

    def __init__(self, dut: Any, name: str, lanes: int) -> None:
        self.handle = _handle(dut, name)
        self.total = 0 if self.handle is None else len(self.handle)
        if self.total % lanes:
            raise ValueError(f"{name} has {self.total} bits, which {lanes} lanes do not divide")
        self.width = self.total // lanes
        self.mask = (1 << self.width) - 1

    def read(self) -> int:
        """The value now (just before the clock edge acts, when called after it)."""
        return 0 if self.handle is None else int(self.handle.value)

    def write(self, value: int) -> None:
        """Sets the value after this clock edge."""
        if self.handle is not None:
            self.handle.value = value


Word = tuple[int, ...]
"""The payload of one transfer: one integer per field."""


class ChannelSource:
    """Sends words on a valid/ready channel, lane by lane in order of `put`.

    While it pauses it drives noise on the payload, so that a module which looks at it without `valid` fails.
    """

    def __init__(
        self,
        dut: Any,
        prefix: str,
        fields: Sequence[str] = ("data",),
        *,
        lanes: int = 1,
        pause: Pause | Sequence[Pause] = never,
    ) -> None:
        self.dut, self.lanes = dut, lanes
        self.rng = new_random(f"source {prefix}")
        self.valid = Port(dut, f"{prefix}_valid_i", lanes)
        self.ready = Port(dut, f"{prefix}_ready_o", lanes)
        self.fields = [Port(dut, f"{prefix}_{name}_i", lanes) for name in fields]
        if not self.valid.total or not self.ready.total:
            raise AttributeError(f"no port {prefix}_valid_i or {prefix}_ready_o")
        self.pauses: list[Pause] = list(pause) if isinstance(pause, Sequence) else [pause] * lanes
        self.queues: list[deque[Word]] = [deque() for _ in range(lanes)]
        self.sent = [0] * lanes
        self._idle = Event()
        self._idle.set()
        self._offered: list[Word | None] = [None] * lanes
        self._noise = [self.rng.getrandbits(max(1, port.total)) for port in self.fields]
        self.valid.write(0)
        cocotb.start_soon(self._drive())

    def put(self, word: Word, lane: int = 0) -> None:
        """Queues one word; takes effect at the next clock edge."""
        self.queues[lane].append(word)
        self._idle.clear()

    async def drain(self) -> None:
        """Returns when every queued word has been taken."""
        await self._idle.wait()

    def clear(self) -> None:
        """Forgets what is queued and offered (for a reset in mid-flight)."""
        for lane in range(self.lanes):
            self.queues[lane].clear()
            self._offered[lane] = None
        self.valid.write(0)
        self._idle.set()

    async def _drive(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        reset = self.dut.rst_ni
        offered, queues, lanes = self._offered, self.queues, range(self.lanes)
        while True:
            await edge
            if not int(reset.value):
                self.valid.write(0)
                continue
            changed = False
            if any(word is not None for word in offered):
                ready = self.ready.read()
                for lane in lanes:
                    if offered[lane] is not None and ready >> lane & 1:
                        offered[lane] = None
                        self.sent[lane] += 1
                        changed = True
            for lane in lanes:
                if offered[lane] is None and queues[lane] and not self.pauses[lane]():
                    offered[lane] = queues[lane].popleft()
                    changed = True
            if not changed:
                continue
            valid = 0
            values = list(self._noise)
            for lane in lanes:
                word = offered[lane]
                if word is None:
                    continue
                valid |= 1 << lane
                for index, port in enumerate(self.fields):
                    shift = lane * port.width
                    values[index] = values[index] & ~(port.mask << shift) | (word[index] & port.mask) << shift
            self.valid.write(valid)
            for port, value in zip(self.fields, values, strict=True):
                port.write(value)
            if not valid and not any(queues):
                self._idle.set()


class ChannelSink:
    """Takes words from a valid/ready channel and checks that an offered word stays until it is taken.

    With `passive=True` it only watches: `ready` is then an output of the test bench's other side.
    """

    def __init__(
        self,
        dut: Any,
        prefix: str,
        fields: Sequence[str] = ("data",),
        *,
        lanes: int = 1,
        pause: Pause | Sequence[Pause] = never,
        passive: bool = False,
        inputs: bool = False,
    ) -> None:
        self.dut, self.lanes, self.passive, self.prefix = dut, lanes, passive, prefix
        out, back = ("i", "o") if inputs else ("o", "i")
        self.valid = Port(dut, f"{prefix}_valid_{out}", lanes)
        self.ready = Port(dut, f"{prefix}_ready_{back}", lanes)
        self.fields = [Port(dut, f"{prefix}_{name}_{out}", lanes) for name in fields]
        if not self.valid.total or not self.ready.total:
            raise AttributeError(f"no port {prefix}_valid_{out} or {prefix}_ready_{back}")
        self.pauses: list[Pause] = list(pause) if isinstance(pause, Sequence) else [pause] * lanes
        self.words: list[deque[Word]] = [deque() for _ in range(lanes)]
        self.taken = [0] * lanes
        self.cycle = 0
        """Clock cycles seen so far outside reset."""
        self._arrived = Event()
        if not passive:
            self.ready.write(0)
        cocotb.start_soon(self._watch())

    def _accept(self, lane: int, word: Word) -> None:
        """What to do with a word; streams put packets together here."""
        self.words[lane].append(word)

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Returns once the condition holds; looks after each arrival."""
        while not condition():
            self._arrived.clear()
            await self._arrived.wait()

    async def get(self, lane: int = 0) -> Word:
        """The next word of a lane."""
        await self.wait(lambda: bool(self.words[lane]))
        return self.words[lane].popleft()

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        reset = self.dut.rst_ni
        lanes = range(self.lanes)
        ready = shown = 0
        stalled: list[Word | None] = [None] * self.lanes
        while True:
            await edge
            if not int(reset.value):
                stalled = [None] * self.lanes
                ready = shown = 0
                if not self.passive:
                    self.ready.write(0)
                continue
            self.cycle += 1
            valid = self.valid.read()
            if self.passive:
                ready = self.ready.read()
            if valid:
                values = [port.read() for port in self.fields]
                for lane in lanes:
                    if not valid >> lane & 1:
                        assert stalled[lane] is None, f"{self.prefix}[{lane}]: valid fell before ready"
                        continue
                    word = tuple(
                        value >> lane * port.width & port.mask for value, port in zip(values, self.fields, strict=True)
                    )
                    before = stalled[lane]
                    assert before is None or before == word, (
                        f"{self.prefix}[{lane}]: the offered word changed from {before} to {word}"
                    )
                    if ready >> lane & 1:
                        stalled[lane] = None
                        self.taken[lane] += 1
                        self._accept(lane, word)
                        self._arrived.set()
                    else:
                        stalled[lane] = word
            else:
                assert not any(word is not None for word in stalled), f"{self.prefix}: valid fell before ready"
            if not self.passive:
                ready = 0
                for lane in lanes:
                    if not self.pauses[lane]():
                        ready |= 1 << lane
                if ready != shown:
                    self.ready.write(ready)
                    shown = ready


@dataclass
class Packet:
    """A packet of a stream: its bytes, and the side-band values that are constant over it."""

    data: bytes
    user: int = 0
    dest: int = 0
    start: int = field(default=0, compare=False)
    """Cycle in which the sink took the first word."""
    end: int = field(default=0, compare=False)
    """Cycle in which the sink took the last word."""

    def words(self, data_bytes: int, rng: random.Random) -> Iterable[tuple[int, int, int]]:
        """Data, keep, last of each word; bytes that are not kept are noise."""
        length = max(1, len(self.data))
        for at in range(0, length, data_bytes):
            part = self.data[at : at + data_bytes]
            value = int.from_bytes(part, "little")
            if len(part) < data_bytes:
                value |= rng.getrandbits((data_bytes - len(part)) * 8) << len(part) * 8
            yield value, (1 << len(part)) - 1, int(at + data_bytes >= length)


STREAM_FIELDS = ("data", "keep", "last", "user", "dest")


class StreamSource(ChannelSource):
    """Sends packets; ports that the module lacks (`keep`, `user`, `dest`) are left out."""

    FIELDS: ClassVar[Sequence[str]] = STREAM_FIELDS

    def __init__(self, dut: Any, prefix: str, *, lanes: int = 1, pause: Pause | Sequence[Pause] = never) -> None:
        super().__init__(dut, prefix, self.FIELDS, lanes=lanes, pause=pause)
        self.data_bytes = self.fields[0].width // 8

    def send(self, packet: Packet, lane: int = 0) -> None:
        """Queues one packet."""
        for data, keep, last in packet.words(self.data_bytes, self.rng):
            self.put((data, keep, last, packet.user, packet.dest), lane)


class StreamSink(ChannelSink):
    """Takes packets and checks the stream's rules: keep is full but in a last word, side-band constant."""

    FIELDS: ClassVar[Sequence[str]] = STREAM_FIELDS

    def __init__(
        self,
        dut: Any,
        prefix: str,
        *,
        lanes: int = 1,
        pause: Pause | Sequence[Pause] = never,
        passive: bool = False,
        inputs: bool = False,
        empty_allowed: bool = False,
    ) -> None:
        self.packets: list[deque[Packet]] = [deque() for _ in range(lanes)]
        self._parts: list[list[bytes]] = [[] for _ in range(lanes)]
        self._open: list[Packet | None] = [None] * lanes
        self.empty_allowed = empty_allowed
        super().__init__(dut, prefix, self.FIELDS, lanes=lanes, pause=pause, passive=passive, inputs=inputs)
        self.data_bytes = self.fields[0].width // 8
        self.has_keep = self.fields[1].total > 0

    def _accept(self, lane: int, word: Word) -> None:
        data, keep, last, user, dest = word
        full = (1 << self.data_bytes) - 1
        if not self.has_keep:
            keep = full
        where = f"{self.prefix}[{lane}]"
        assert keep & (keep + 1) == 0, f"{where}: keep {keep:#x} is not contiguous from byte 0"
        assert last or keep == full, f"{where}: keep {keep:#x} in a word that is not the last"
        assert keep or self.empty_allowed, f"{where}: a word without bytes"
        packet = self._open[lane]
        if packet is None:
            packet = self._open[lane] = Packet(b"", user, dest, start=self.cycle)
        assert (packet.user, packet.dest) == (user, dest), f"{where}: user or dest changed within a packet"
        self._parts[lane].append(data.to_bytes(self.data_bytes, "little")[: keep.bit_length()])
        if last:
            packet.data = b"".join(self._parts[lane])
            packet.end = self.cycle
            self._parts[lane].clear()
            self._open[lane] = None
            self.packets[lane].append(packet)

    async def receive(self, lane: int = 0, *, timeout_us: int = 1000) -> Packet:
        """The next packet of a lane."""
        if not self.packets[lane]:
            await with_timeout(self.wait(lambda: bool(self.packets[lane])), timeout_us, "us")
        return self.packets[lane].popleft()

    def incomplete(self) -> bool:
        """Whether some lane has seen the beginning of a packet but not its end."""
        return any(packet is not None for packet in self._open)


def random_packet(rng: random.Random, longest: int, *, user_bits: int = 0, dest: int = 0) -> Packet:
    """A packet of 1 to `longest` bytes of random data; lengths near a multiple of 8 are preferred."""
    length = rng.randint(1, longest)
    if rng.random() < 0.4:
        length = min(longest, max(1, (length + 7) // 8 * 8 + rng.choice((-1, 0, 0, 1))))
    return Packet(rng.randbytes(length), rng.getrandbits(user_bits) if user_bits else 0, dest)
