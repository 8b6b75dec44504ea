"""Programs of the user: read from files, or written in Python (docs/program-files.md).

A program is one list of moves for each rank. `Program.build` calls a function once per rank; the function writes that
rank's moves on a `Builder`. docs/model.md says what a move is and when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from pathlib import Path
from typing import Any, NoReturn

from . import _core
from ._meaning import Meaning
from ._spec import (
    Arrival,
    Collective,
    Datatype,
    Func,
    Move,
    MoveKind,
    Operand,
    OperandKind,
    PeerMode,
    Protocol,
    Region,
    Remote,
    RemoteAddress,
    RemoteKind,
)
from ._texts import cut, shown
from .errors import InvalidArgumentError, MalformedProgramError

_WINDOW = 32  # moves of a call in flight (docs/model.md, rule 8)
_LAST_PORT = 15  # of the stream ports (docs/streams.md)


@dataclass(frozen=True)
class Slice:
    """Elements of a region of memory, as `Builder.src`, `dst`, `scratch` and `window` give them."""

    region: Region
    offset: int  #: bytes from the region's begin
    count: int  #: elements
    dtype: Datatype

    def at(self, peers: int | Sequence[int]) -> RemoteSlice:
        """The same place in the memory of `peers`; of several, `func` combines what is read in the order given."""
        return RemoteSlice(self, _peers(peers))


@dataclass(frozen=True)
class RemoteSlice:
    """Elements of a region of the memory of one peer, or of several."""

    slice: Slice
    peers: int | tuple[int, ...]


@dataclass(frozen=True)
class Port:
    """Elements of a stream port of this rank, as `Builder.stream` gives them."""

    number: int
    count: int  #: elements
    dtype: Datatype

    def at(self, peer: int) -> RemotePort:
        """The same port of `peer`, where a kernel takes the elements; no move receives them there."""
        return RemotePort(self, index(peer))


@dataclass(frozen=True)
class RemotePort:
    """Elements that go to a stream port of a peer."""

    slice: Port
    peer: int


@dataclass(frozen=True)
class Message:
    """A message to, or of, one peer or several."""

    peers: int | tuple[int, ...]
    tag: int
    any_order: bool = False  #: arrivals of several peers are combined as they come


@dataclass(frozen=True)
class Step:
    """A move that has been written, for later moves to wait for."""

    rank: int
    index: int


@dataclass(frozen=True)
class Report:
    """What the checker says about a program. `str` of it is its text."""

    ok: bool  #: no deadlock on any engine, messages match, within bounds, no race; the right result, if one was named
    text: str  #: what was proven, or the counterexample
    compared: str | None  #: what results were compared with, "allreduce, 3 ranks, count 5 fp64 sum"; None: with nothing
    kind: str | None  #: of the counterexample: "deadlock", "race", "unmatched", ...
    rank: int | None  #: rank at which it shows
    move: int | None  #: move of that rank
    svg: str | None = field(repr=False)  #: picture of the run that fails
    moves: int  #: moves proven
    pairs: int  #: pairs of accesses to one byte shown to be ordered
    schedules: int  #: random schedules run in addition

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text


_SLOTS = {
    "take": (
        Slice | Port | Message | RemoteSlice,
        "p.src(...) and its like, p.stream(...), p.arrival(...), or a slice .at(peers)",
    ),
    "combine": (Slice | Message | RemoteSlice, "p.src(...) and its like, p.arrival(...), or a slice .at(peers)"),
    "keep": (Slice | Port, "p.dst(...) and its like, or p.stream(...): memory or a port of this rank"),
    "send": (Message | RemoteSlice | RemotePort, "p.message(...), a slice .at(peers), or p.stream(...).at(peer)"),
}


class Builder:
    """Writes the moves of one rank. Made by `Program.build`.

    Offsets and counts are in elements of `dtype`. The sizes of the regions follow from what the moves touch.
    """

    def __init__(self, rank: int, size: int, dtype: Datatype) -> None:
        #: The rank whose moves are written.
        self.rank = rank
        #: Number of ranks.
        self.size = size
        #: Element type where none is given.
        self.dtype = dtype
        self._moves: list[Move] = []
        self._pool: list[int] = []
        self._lists: dict[tuple[int, ...], int] = {}

    # ----------------------------------------------------------------------------------------------------- slots

    def src(self, offset: int, count: int, dtype: str | Datatype | None = None) -> Slice:
        """`count` elements of the call's source, from element `offset` on."""
        return self._slice(Region.SRC, offset, count, dtype)

    def dst(self, offset: int, count: int, dtype: str | Datatype | None = None) -> Slice:
        """`count` elements of the call's destination, from element `offset` on."""
        return self._slice(Region.DST, offset, count, dtype)

    def scratch(self, offset: int, count: int, dtype: str | Datatype | None = None) -> Slice:
        """`count` elements of temporary memory, which begins uninitialised."""
        return self._slice(Region.SCRATCH, offset, count, dtype)

    def window(self, offset: int, count: int, dtype: str | Datatype | None = None) -> Slice:
        """`count` elements of the memory exposed by `Communicator.window`."""
        return self._slice(Region.WINDOW, offset, count, dtype)

    def stream(self, port: int, count: int, dtype: str | Datatype | None = None) -> Port:
        """The next `count` elements of stream port `port`: those that a kernel gives, or, of a result, takes."""
        kind = self.dtype if dtype is None else _datatype(dtype)
        if not 0 <= index(port) <= _LAST_PORT or index(count) < 0:
            self._refuse(f"stream({port}, {count}) was given; ports are 0 to {_LAST_PORT}, and counts 0 and more")
        return Port(index(port), index(count), kind)

    def arrival(self, peers: int | Sequence[int], tag: int = 0, *, any_order: bool = False) -> Message:
        """The next message of `peers`, as it arrives. Of several peers, `func` combines one message of each, in the
        order given, or in any order. The n-th message of a rank meets the n-th arrival from it; tags must agree.
        """
        return Message(_peers(peers), tag, any_order)

    def message(self, peers: int | Sequence[int], tag: int = 0) -> Message:
        """A message to `peers`: the same value to each."""
        return Message(_peers(peers), tag)

    # ----------------------------------------------------------------------------------------------------- moves

    def move(
        self,
        take: Slice | Port | Message | RemoteSlice | None = None,
        combine: Slice | Message | RemoteSlice | None = None,
        *,
        func: str | Func | None = None,
        swap: bool = False,
        keep: Slice | Port | None = None,
        send: Message | RemoteSlice | RemotePort | None = None,
        after: Step | Sequence[Step] = (),
        follow: Step | Sequence[Step] = (),
        count: int | None = None,
        dtype: str | Datatype | None = None,
        signal: bool = False,
        protocol: str | Protocol = Protocol.AUTO,
    ) -> Step:
        """Writes a move: `take`, or func(take, combine), into local memory (`keep`), to peers (`send`), or both.

        take, combine: memory, an arrival (`arrival`), or memory of peers (`Slice.at`); at most one of them is not
        local memory. `take` and `keep` may be a stream port (`stream`). send: a message (`message`), memory of peers,
        at the offset that is read if both are memory of peers, or a stream port of a peer (`Port.at`), where a kernel
        takes what comes. func: "sum", "prod", "min" or "max", by default "sum" where two values meet; `swap` exchanges
        its operands. after: moves that must have completed. follow: up to two moves behind whose local results this
        one runs element by element. count and dtype follow from the slices; needed if there are none (an arrival
        sent on). signal: a message although the count is 0. Raises `MalformedProgramError`, naming rank and move.
        """
        number = len(self._moves)
        self._check_slots(take=take, combine=combine, keep=keep, send=send)
        first, second = take, combine
        if isinstance(first, Message | RemoteSlice):
            # What comes from a peer is the second operand of a move.
            if second is not None:
                swap = not swap
            first, second = second, first
        elif first is None and isinstance(second, Slice):
            first, second = second, None
        if isinstance(first, Message | RemoteSlice):
            self._refuse("take and combine are both from peers; at most one may be")
        slices = [
            slot.slice if isinstance(slot, RemoteSlice | RemotePort) else slot
            for slot in (first, second, keep, send)
            if isinstance(slot, Slice | Port | RemoteSlice | RemotePort)
        ]
        elements = self._agreed("count", [s.count for s in slices], count, 0)
        kind = None if dtype is None else _datatype(dtype)
        fallback = self.dtype if elements else Datatype.NONE
        element = self._agreed("dtype", [s.dtype for s in slices], kind, fallback)
        several = (
            isinstance(second, Message | RemoteSlice) and isinstance(second.peers, tuple) and len(second.peers) > 1
        )
        meet = (first is not None and second is not None) or several
        wanted = _func(func) if func is not None else (Func.SUM if meet and elements else Func.NONE)
        dependencies = 0
        for step in self._steps("after", after):
            # Everything further back has completed when this move starts: the window is no longer.
            if number - step.index <= _WINDOW:
                dependencies |= 1 << (number - 1 - step.index)
        streams = [number - step.index for step in self._steps("follow", follow)]
        streams = [distance for distance in dict.fromkeys(streams) if distance < _WINDOW]
        if len(streams) > 2:
            self._refuse(f"follow names {len(streams)} moves; at most 2 are allowed")
        move = Move(
            kind=MoveKind.MOVE,
            func=wanted,
            dtype=Datatype(element),
            protocol=Protocol[protocol.upper()] if isinstance(protocol, str) else protocol,
            swap=swap,
            signal=signal,
            dependencies=dependencies,
            count=elements,
            segment_dependency0=streams[0] if streams else 0,
            segment_dependency1=streams[1] if len(streams) > 1 else 0,
            op0=_operand(first),
            local=_operand(keep),
        )
        if isinstance(second, Slice):
            move = replace(move, op1=_operand(second))
        elif isinstance(second, Message):
            peer, mode = self._peer(second)
            move = replace(
                move, op1=Operand(OperandKind.ARRIVAL), arrival=Arrival(peer=peer, mode=mode, tag=second.tag)
            )
        elif isinstance(second, RemoteSlice):
            peer, mode = self._peer(second)
            move = replace(
                move,
                op1=Operand(OperandKind.REMOTE_MEMORY),
                arrival=Arrival(peer=peer, mode=mode),
                remote_address=RemoteAddress(second.slice.region, offset=second.slice.offset),
            )
        if isinstance(send, Message):
            peer, mode = self._peer(send)
            move = replace(move, remote=Remote(RemoteKind.MESSAGE, peer=peer, mode=mode, tag=send.tag))
        elif isinstance(send, RemotePort):
            move = replace(move, remote=Remote(RemoteKind.STREAM, peer=send.peer, port=send.slice.number))
        elif send is not None:
            if isinstance(second, RemoteSlice) and second.slice.offset != send.slice.offset:
                self._refuse(
                    f"a move reads memory of peers at byte {second.slice.offset} and writes it at byte "
                    f"{send.slice.offset}; both have one offset"
                )
            peer, mode = self._peer(send)
            move = replace(
                move,
                remote=Remote(RemoteKind.MEMORY, peer=peer, mode=mode),
                remote_address=RemoteAddress(
                    move.remote_address.region, result_region=send.slice.region, offset=send.slice.offset
                ),
            )
        try:
            move.encode()
        except ValueError as failure:
            self._refuse(str(failure))
        self._moves.append(move)
        return Step(self.rank, number)

    # ---------------------------------------------------------------------------------------------------- insides

    def _refuse(self, what: str) -> NoReturn:
        raise MalformedProgramError(f"rank {self.rank}, move {len(self._moves)}: {what}")

    def _slice(self, region: Region, offset: int, count: int, dtype: str | Datatype | None) -> Slice:
        kind = self.dtype if dtype is None else _datatype(dtype)
        if index(offset) < 0 or index(count) < 0:
            self._refuse(
                f"{region.name.lower()}({offset}, {count}) was given; offset and count are 0 and more elements"
            )
        return Slice(region, index(offset) * kind.bytes, index(count), kind)

    def _agreed(self, what: str, found: Sequence[int], given: int | None, fallback: int) -> int:
        values = dict.fromkeys([*found, *([] if given is None else [given])])
        if len(values) > 1:
            shown = ", ".join(value.name.lower() if isinstance(value, Datatype) else str(value) for value in values)
            self._refuse(f"{what} {shown} in one move; all its slots have the same")
        return next(iter(values), fallback)

    def _steps(self, what: str, given: Step | Sequence[Step]) -> list[Step]:
        steps = [given] if isinstance(given, Step) or not isinstance(given, Iterable) else list(given)
        for step in steps:
            if not isinstance(step, Step):
                self._refuse(
                    f"{what} is {shown(given)}; pass what move() returned, or a list of that: "
                    f"first = p.move(...), then p.move(..., {what}=first)"
                )
            if step.rank != self.rank:
                self._refuse(f"{what} names a move of rank {step.rank}; only moves of the same rank can be waited for")
            if step.index >= len(self._moves):
                self._refuse(
                    f"{what} names move {step.index}, but this program has {len(self._moves)} so far; "
                    "only moves written before can be waited for"
                )
        return steps

    def _check_slots(self, **slots: object) -> None:
        """Refuses what is no operand or result, in the words of the caller."""
        for name, given in slots.items():
            allowed, words = _SLOTS[name]
            if given is not None and not isinstance(given, allowed):
                self._refuse(f"{name} is {shown(given)}; allowed are {words}")

    def _peer(self, other: Message | RemoteSlice) -> tuple[int, PeerMode]:
        if isinstance(other.peers, int):
            return other.peers, PeerMode.RANK
        at = self._lists.get(other.peers)
        if at is None:
            at = self._lists[other.peers] = len(self._pool)
            self._pool += [len(other.peers), *other.peers]
        return at, PeerMode.ANY if isinstance(other, Message) and other.any_order else PeerMode.LIST

    def _ranks(self, peer: int, mode: PeerMode) -> list[int]:
        """The ranks that a move names."""
        return [peer] if mode == PeerMode.RANK else self._pool[peer + 1 : peer + 1 + self._pool[peer]]

    def _reach(self, moves: Sequence[Move]) -> list[int]:
        """Bytes of each region that this rank's moves touch."""
        bytes_of = [0] * len(Region)
        for move in moves:
            for operand in (move.op0, move.op1, move.local):
                if operand.kind == OperandKind.MEMORY:
                    end = operand.offset + move.count * move.dtype.bytes
                    bytes_of[operand.region] = max(bytes_of[operand.region], end)
        return bytes_of

    def _extend_by_remote(self, reach: list[list[int]], move: Move) -> None:
        """Regions of peers that a move reads or writes."""
        there = move.remote_address
        end = there.offset + move.count * move.dtype.bytes
        reached = []
        if move.op1.kind == OperandKind.REMOTE_MEMORY:
            reached += [(peer, there.region) for peer in self._ranks(move.arrival.peer, move.arrival.mode)]
        if move.remote.kind == RemoteKind.MEMORY:
            reached += [(peer, there.result_region) for peer in self._ranks(move.remote.peer, move.remote.mode)]
        for peer, region in reached:
            if peer < len(reach):
                reach[peer][region] = max(reach[peer][region], end)


class Program:
    """One program for each rank, to be run by `Communicator.run_program`. Made by `build`, `load` and `parse`."""

    __slots__ = ("_core", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._core = _core.parse_program(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Reads a program file. Raises `MalformedProgramError`, which says where; `InvalidArgumentError` if there is
        none.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as failure:
            raise InvalidArgumentError(
                f"the program file {cut(str(path))} cannot be read: {failure.strerror}"
            ) from failure
        try:
            return cls(data)
        except MalformedProgramError as failure:
            raise MalformedProgramError(f"{os.fspath(path)}: {failure}") from None

    @classmethod
    def parse(cls, data: bytes) -> Program:
        """Reads the bytes of a program file."""
        if not isinstance(data, bytes):
            raise InvalidArgumentError(
                f"the program is a {type(data).__name__}; pass the bytes of a program file, or use Program.load"
            )
        return cls(data)

    @classmethod
    def build(cls, ranks: int, write: Callable[[Builder], None], *, dtype: str | Datatype = Datatype.FP32) -> Program:
        """The program that `write` writes, called once for each of `ranks` ranks.

        `dtype` is the element type where a slice gives none. Raises `MalformedProgramError`, naming rank and move, if
        a move has no meaning; whether the ranks fit each other is for `check` to say.
        """
        kind = _datatype(dtype)
        if ranks < 1:
            raise InvalidArgumentError(f"a program for {ranks} ranks was asked for; allowed are 1 and more")
        builders = [Builder(rank, ranks, kind) for rank in range(ranks)]
        for builder in builders:
            write(builder)
        reach = [builder._reach(builder._moves) for builder in builders]
        for builder in builders:
            for move in builder._moves:
                builder._extend_by_remote(reach, move)
        return cls(
            _core.build_program(
                [
                    (b"".join(move.encode() for move in builder._moves), builder._pool, bytes_of)
                    for builder, bytes_of in zip(builders, reach, strict=True)
                ]
            )
        )

    @property
    def size(self) -> int:
        """Ranks that the program is for."""
        return self._core.size

    def __bytes__(self) -> bytes:
        return self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a program file."""
        Path(path).write_bytes(self._data)

    def text(self, rank: int) -> str:
        """The moves of one rank, one a line."""
        if not 0 <= index(rank) < self.size:
            raise InvalidArgumentError(f"rank {rank} was asked for; the program has ranks 0 to {self.size - 1}")
        return _core.program_file_listings(self._data)[rank]

    def draw(self) -> str:
        """A picture of a run of all ranks, as SVG."""
        return _core.draw_program(self._data)

    def check(
        self,
        collective: str | Collective | None = None,
        *,
        op: str | Func | None = None,
        root: int | None = None,
        in_place: bool = False,
        count: int | None = None,
        counts: Sequence[int] | Sequence[Sequence[int]] = (),
        schedules: int = 24,
        seed: int = 1,
    ) -> Report:
        """Proves that the ranks fit each other: no deadlock on any engine, messages match, within bounds, no race.

        collective: what the program is meant as, "allreduce" or "bcast"; its result is then proven to be the one of
        that collective, element by element. Without it results are compared with nothing, and the report says so.
        op: of reductions ("sum"). root: of collectives that have one (0). in_place: whether the program is the
        in-place form, whose input stands in dst. count: elements, as the call counts them; by default as many as the
        program reaches. counts: of v-collectives, elements of each rank's block, one after the other; for alltoallv a
        row for each rank.

        Also runs `schedules` random schedules, and mixes of the channels by which ranks may be joined, whose results
        must be the same (docs/checker.md).
        """
        meaning = None
        if collective is not None:
            meaning = Meaning.of(collective, op=op, root=root, in_place=in_place, count=count, counts=counts)
        elif op is not None or root is not None or in_place or count is not None or counts:
            raise InvalidArgumentError("check: op, root, in_place and counts go with a collective; name it first")
        report: dict[str, Any] = _core.check_program(
            self._data, schedules, seed, None if meaning is None else meaning.encoded()
        )
        finding = report["finding"] or {"kind": None, "rank": None, "move": None}
        return Report(
            ok=report["ok"],
            text=report["text"],
            compared=report["compared"],
            kind=finding["kind"],
            rank=finding["rank"],
            move=finding["move"],
            svg=report["svg"],
            moves=report["moves"],
            pairs=report["pairs"],
            schedules=report["schedules"],
        )


def _datatype(given: str | Datatype) -> Datatype:
    names = {kind.name.lower(): kind for kind in Datatype if kind != Datatype.NONE}
    found = given if isinstance(given, Datatype) else names.get(given)
    if found is None or found == Datatype.NONE:
        raise InvalidArgumentError(f"dtype is {shown(given)}; allowed are {', '.join(names)}")
    return found


def _func(given: str | Func) -> Func:
    names = {func.name.lower(): func for func in Func}
    found = given if isinstance(given, Func) else names.get(given)
    if found is None:
        raise InvalidArgumentError(f"func is {shown(given)}; allowed are {', '.join(names)}")
    return found


def _peers(given: int | Sequence[int]) -> int | tuple[int, ...]:
    return tuple(index(peer) for peer in given) if isinstance(given, Sequence) else index(given)


def _operand(slot: Slice | Port | None) -> Operand:
    if slot is None:
        return Operand()
    if isinstance(slot, Port):
        return Operand(OperandKind.STREAM, offset=slot.number)
    return Operand(OperandKind.MEMORY, region=slot.region, offset=slot.offset)
