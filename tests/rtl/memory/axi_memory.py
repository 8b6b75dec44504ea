"""AXI4 memory for cocotb tests: answers in any order, stalls everywhere, injects errors, checks the master.

One coroutine serves all channels (*lanes*) of a port, because the number of wake-ups decides the speed. It holds the
master to the rules that the movers promise: no burst crosses 4 KiB, whole aligned beats, one burst per id in flight,
`wlast` where the request says, requests and data stable until taken.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cocotb
from bus import Pause, Port, never, new_random
from cocotb.triggers import RisingEdge

PAGE = 4096
AXI_PORTS = str(Path(__file__).parent / "axi_ports.vlt")
"""An argument for Verilator without which Python does not see the ports."""
SLVERR, DECERR = 2, 3


class Pages:
    """Memory of 2**64 bytes; what was never written is noise that depends on the seed."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.pages: dict[int, bytearray] = {}

    def page(self, number: int) -> bytearray:
        """One page, made on first use."""
        if number not in self.pages:
            self.pages[number] = bytearray(random.Random(f"{self.seed}/{number}").randbytes(PAGE))
        return self.pages[number]

    def read(self, address: int, length: int) -> bytes:
        """Bytes from `address` on."""
        parts = []
        while length:
            at = address % PAGE
            part = min(length, PAGE - at)
            parts.append(bytes(self.page(address // PAGE)[at : at + part]))
            address, length = address + part, length - part
        return b"".join(parts)

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes from `address` on."""
        at = 0
        while at < len(data):
            place = (address + at) % PAGE
            part = min(len(data) - at, PAGE - place)
            self.page((address + at) // PAGE)[place : place + part] = data[at : at + part]
            at += part


@dataclass
class Burst:
    """A burst that was requested and is not yet answered in full."""

    ident: int
    address: int
    beats: int
    due: int
    at: int = 0
    error: int = 0


class AxiMemory:
    """Drives the slave side of `<prefix>_ar…`, `r…`, `aw…`, `w…`, `b…`, whichever the module has."""

    def __init__(
        self,
        dut: Any,
        prefix: str = "m_axi",
        *,
        lanes: int = 1,
        latency: tuple[int, int] = (0, 0),
        shuffle: bool = False,
        pause: Callable[[str, int], Pause] | None = None,
        most_beats: int = 256,
        unique_ids: bool = True,
        aligned: bool = True,
    ) -> None:
        self.dut, self.prefix, self.lanes = dut, prefix, lanes
        self.latency, self.shuffle, self.most_beats, self.unique_ids = latency, shuffle, most_beats, unique_ids
        self.aligned = aligned
        self.rng = new_random(f"memory {prefix}")
        self.pages = [Pages(f"{self.rng.random()}") for _ in range(lanes)]
        self.bad: list[list[tuple[int, int]]] = [[] for _ in range(lanes)]
        """Ranges [low, high) whose beats are answered with an error."""
        self.bursts = {"ar": 0, "aw": 0}
        self.beats = {"r": [0] * lanes, "w": [0] * lanes}
        self.first = {"r": 0, "w": 0}
        self.last = {"r": 0, "w": 0}
        self.cycle = 0
        self.set_pause(pause or (lambda channel, lane: never))

        def port(name: str) -> Port:
            return Port(dut, f"{prefix}_{name}", lanes)

        self.reads = port("arvalid").total > 0
        self.writes = port("awvalid").total > 0
        if not (self.reads or self.writes):
            raise AttributeError(f"no port {prefix}_arvalid or {prefix}_awvalid")
        self.ports = {
            name: port(name)
            for name in (
                *("arid", "araddr", "arlen", "arsize", "arburst", "arvalid", "arready"),
                *("rid", "rdata", "rresp", "rlast", "rvalid", "rready"),
                *("awid", "awaddr", "awlen", "awsize", "awburst", "awvalid", "awready"),
                *("wdata", "wstrb", "wlast", "wvalid", "wready", "bid", "bresp", "bvalid", "bready"),
            )
        }
        self.beat_bytes = (self.ports["rdata"].width or self.ports["wdata"].width) // 8
        self.pending: list[list[Burst]] = [[] for _ in range(lanes)]
        self.requested: list[deque[Burst]] = [deque() for _ in range(lanes)]
        self.data: list[deque[tuple[int, ...]]] = [deque() for _ in range(lanes)]
        self.written: list[list[Burst]] = [[] for _ in range(lanes)]
        self.order: list[tuple[int, int]] = []
        """(channel, id) of the read bursts, in the order in which their last beat was taken."""
        for name in ("arready", "awready", "wready", "rvalid", "bvalid"):
            self.ports[name].write(0)
        cocotb.start_soon(self._run())

    def set_pause(self, pause: Callable[[str, int], Pause]) -> None:
        """How each channel (ar, r, aw, w, b) of each lane stalls."""
        self.pauses = {name: [pause(name, lane) for lane in range(self.lanes)] for name in ("ar", "r", "aw", "w", "b")}

    def is_bad(self, lane: int, address: int, length: int) -> bool:
        """Whether these bytes touch a bad range."""
        return any(address < high and address + length > low for low, high in self.bad[lane])

    def idle(self) -> bool:
        """Whether every request has been answered."""
        return not any((*self.pending, *self.requested, *self.written, *self.data))

    def _take(self, kind: str, lane: int, values: dict[str, int]) -> Burst:
        """One request, checked."""

        def field(name: str) -> int:
            port = self.ports[f"{kind}{name}"]
            return values[name] >> lane * port.width & port.mask

        burst = Burst(field("id"), field("addr"), field("len") + 1, self.cycle + self.rng.randint(*self.latency))
        where = f"{self.prefix}_{kind}[{lane}] {burst}"
        assert 1 << field("size") == self.beat_bytes, f"{where}: narrow beats"
        assert field("burst") == 1, f"{where}: not INCR"
        assert burst.address % self.beat_bytes == 0 or not self.aligned, f"{where}: unaligned"
        burst.address -= burst.address % self.beat_bytes
        assert burst.beats <= self.most_beats, f"{where}: more than {self.most_beats} beats"
        assert burst.address % PAGE + burst.beats * self.beat_bytes <= PAGE, f"{where}: crosses 4 KiB"
        flying = self.pending[lane] if kind == "ar" else [*self.requested[lane], *self.written[lane]]
        if self.unique_ids:
            assert burst.ident not in {other.ident for other in flying}, f"{where}: id in flight already"
        self.bursts[kind] += 1
        return burst

    def _choose(self, waiting: list[Burst]) -> Burst | None:
        """Whom to answer next: in order, or any burst that is the first of its id."""
        heads: dict[int, Burst] = {}
        for burst in waiting if self.shuffle else waiting[:1]:
            heads.setdefault(burst.ident, burst)
        due = [burst for burst in heads.values() if burst.due <= self.cycle]
        return self.rng.choice(due) if due else None

    async def _run(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        ports, lanes = self.ports, range(self.lanes)
        ready = {"ar": 0, "aw": 0, "w": 0}
        offered_r: list[Burst | None] = [None] * self.lanes
        offered_b: list[Burst | None] = [None] * self.lanes
        held: dict[str, dict[str, int]] = {}
        requests = {
            "ar": ("id", "addr", "len", "size", "burst"),
            "aw": ("id", "addr", "len", "size", "burst"),
            "w": ("data", "strb", "last"),
        }
        active = ([] if not self.reads else ["ar"]) + ([] if not self.writes else ["aw", "w"])
        while True:
            await edge
            if not int(self.dut.rst_ni.value):
                continue
            self.cycle += 1
            for kind in active:
                valid = ports[f"{kind}valid"].read()
                before = held.pop(kind, None)
                values = {name: ports[f"{kind}{name}"].read() for name in requests[kind]} if valid else {}
                if before is not None and self.lanes == 1:
                    assert values == before, f"{self.prefix}_{kind} changed before it was taken"
                if valid & ~ready[kind]:
                    held[kind] = values
                for lane in lanes:
                    if not valid & ready[kind] & 1 << lane:
                        continue
                    if kind == "ar":
                        self.pending[lane].append(self._take("ar", lane, values))
                    elif kind == "aw":
                        self.requested[lane].append(self._take("aw", lane, values))
                    else:
                        self.first["w"] = self.first["w"] or self.cycle
                        self.last["w"] = self.cycle
                        self.beats["w"][lane] += 1
                        self.data[lane].append(
                            tuple(
                                values[name] >> lane * ports[f"w{name}"].width & ports[f"w{name}"].mask
                                for name in requests["w"]
                            )
                        )
                now = sum(1 << lane for lane in lanes if not self.pauses[kind][lane]())
                if now != ready[kind]:
                    ready[kind] = now
                    ports[f"{kind}ready"].write(now)
            if self.reads:
                self._answer_reads(offered_r)
            if self.writes:
                self._store()
                self._answer_writes(offered_b)

    def _store(self) -> None:
        for lane in range(self.lanes):
            while self.requested[lane] and self.data[lane]:
                burst = self.requested[lane][0]
                data, strobe, last = self.data[lane].popleft()
                address = burst.address + burst.at * self.beat_bytes
                if self.is_bad(lane, address, self.beat_bytes):
                    burst.error = self.rng.choice((SLVERR, DECERR))
                else:
                    content = data.to_bytes(self.beat_bytes, "little")
                    for i in range(self.beat_bytes):
                        if strobe >> i & 1:
                            self.pages[lane].write(address + i, content[i : i + 1])
                burst.at += 1
                assert last == (burst.at == burst.beats), f"{self.prefix}_wlast[{lane}] is {last} at {burst}"
                if last:
                    burst.due = self.cycle + self.rng.randint(*self.latency)
                    self.written[lane].append(self.requested[lane].popleft())

    def _answer_reads(self, offered: list[Burst | None]) -> None:
        taken = self.ports["rready"].read()
        changed = False
        for lane in range(self.lanes):
            burst = offered[lane]
            if burst is not None and taken >> lane & 1:
                self.first["r"] = self.first["r"] or self.cycle
                self.last["r"] = self.cycle
                self.beats["r"][lane] += 1
                burst.at += 1
                offered[lane] = None
                changed = True
                if burst.at == burst.beats:
                    self.pending[lane].remove(burst)
                    self.order.append((lane, burst.ident))
            if offered[lane] is None and not self.pauses["r"][lane]():
                offered[lane] = self._choose(self.pending[lane])
                changed = changed or offered[lane] is not None
        if not changed:
            return
        values = dict.fromkeys(("rvalid", "rid", "rdata", "rresp", "rlast"), 0)
        for lane, burst in enumerate(offered):
            if burst is None:
                continue
            address = burst.address + burst.at * self.beat_bytes
            bad = self.is_bad(lane, address, self.beat_bytes)
            word = {
                "rvalid": 1,
                "rid": burst.ident,
                "rdata": int.from_bytes(self.pages[lane].read(address, self.beat_bytes), "little"),
                "rresp": DECERR if bad and burst.at % 2 else SLVERR if bad else 0,
                "rlast": int(burst.at + 1 == burst.beats),
            }
            for name, value in word.items():
                values[name] |= value << lane * self.ports[name].width
        for name, value in values.items():
            self.ports[name].write(value)

    def _answer_writes(self, offered: list[Burst | None]) -> None:
        taken = self.ports["bready"].read()
        changed = False
        for lane in range(self.lanes):
            burst = offered[lane]
            if burst is not None and taken >> lane & 1:
                self.written[lane].remove(burst)
                offered[lane] = None
                changed = True
            if offered[lane] is None and not self.pauses["b"][lane]():
                offered[lane] = self._choose(self.written[lane])
                changed = changed or offered[lane] is not None
        if not changed:
            return
        values = dict.fromkeys(("bvalid", "bid", "bresp"), 0)
        for lane, burst in enumerate(offered):
            if burst is None:
                continue
            for name, value in (("bvalid", 1), ("bid", burst.ident), ("bresp", burst.error)):
                values[name] |= value << lane * self.ports[name].width
        for name, value in values.items():
            self.ports[name].write(value)


def random_range(
    rng: random.Random, longest: int, *, address_bits: int = 64, region: int | None = None
) -> tuple[int, int]:
    """An address and a length: ends near page boundaries and short lengths are preferred."""
    base = rng.choice((0, 1 << 20, (1 << address_bits) - (1 << 24))) if region is None else region
    base += rng.randrange(8) * PAGE
    length = rng.choice((0, 1, rng.randint(0, 130), rng.randint(0, longest), rng.randint(0, longest)))
    address = base + rng.choice((0, rng.randrange(PAGE), PAGE - rng.randint(0, 70), rng.randrange(0, PAGE, 64)))
    return address, length
