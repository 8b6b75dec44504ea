"""The microcontroller and the native generator, from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

EAGER_LIMIT = 4096
COMMUNICATORS = 32

_EVENT = np.dtype([("kind", "<u4"), ("slot", "<u4"), ("cycle", "<u8"), ("words", "<u4", (16,))])


class Kind(IntEnum):
    """What the harness records."""

    TAKEN = 0
    MOVE = 1
    END = 2
    LIST = 3
    CONTEXT = 4
    FAIL = 5
    STEP = 6


@dataclass(frozen=True)
class Call:
    """A call as a collective sees it; enumerations by their numbers."""

    collective: int
    count: int
    size: int
    rank: int = 0
    root: int = 0
    func: int = 0
    dtype: int = 6
    in_place: bool = False
    group_size: int = 0


class _Fields(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("collective", "func", "dtype", "in_place")),
        *((name, ctypes.c_uint32) for name in ("rank", "size", "root", "group_size")),
        ("count", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Expected:
    """What the native generator makes of a call."""

    moves: npt.NDArray[np.uint32]  # (n, 16)
    pool: npt.NDArray[np.uint32]
    src_bytes: int
    dst_bytes: int
    scratch_bytes: int
    params_bytes: int
    signature: int
    fits: bool


class Oracle:
    """The native build of the collectives."""

    def __init__(self, library: Path) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.oracle_name.restype = ctypes.c_char_p
        n = self._c.oracle_algorithms()
        #: Collective, name and whether it needs direct access, by position.
        self.algorithms = [
            (self._c.oracle_collective(i), self._c.oracle_name(i).decode(), bool(self._c.oracle_direct(i)))
            for i in range(n)
        ]

    @staticmethod
    def _fields(call: Call) -> _Fields:
        return _Fields(
            call.collective,
            call.func,
            call.dtype,
            int(call.in_place),
            call.rank,
            call.size,
            call.root,
            call.group_size,
            call.count & 0xFFFFFFFFFFFFFFFF,
        )

    def admits(self, call: Call, position: int) -> bool:
        return bool(self._c.oracle_admits(ctypes.byref(self._fields(call)), position))

    def choose(self, call: Call, crowded: bool = False) -> int:
        return int(self._c.oracle_choose(ctypes.byref(self._fields(call)), int(crowded)))

    def operators(self) -> int:
        return int(self._c.oracle_operators())

    def record(self, call: Call, position: int, eager_limit: int = EAGER_LIMIT) -> Expected:
        out = (ctypes.c_uint64 * 7)()
        self._c.oracle_record(ctypes.byref(self._fields(call)), position, eager_limit, out)
        moves = np.zeros((out[0], 16), np.uint32)
        pool = np.zeros(out[1], np.uint32)
        self._c.oracle_copy(ctypes.c_void_p(moves.ctypes.data), ctypes.c_void_p(pool.ctypes.data))
        sizes = [int(out[i]) for i in range(2, 7)]
        return Expected(moves, pool, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], bool(self._c.oracle_fits()))


@dataclass(frozen=True)
class Communicator:
    """An entry of the communicator table."""

    rank: int
    size: int
    group_size: int = 0
    eager_limit: int = EAGER_LIMIT
    number: int = 0
    epoch: int = 0
    generation: int = 1
    valid: bool = True
    revoked: bool = False
    crowded: bool = False
    datatypes: int = 0xFFFFFF
    funcs: int = 0xFFFF

    def words(self) -> list[int]:
        state = int(self.valid) | int(self.revoked) << 1 | int(self.crowded) << 2
        state |= (self.generation & 0x1FFF) << 3 | self.epoch << 16
        facts = (self.rank, self.size, self.group_size, self.eager_limit, self.datatypes, self.funcs)
        return [state, self.number, *facts]


@dataclass(frozen=True)
class Descriptor:
    """A call descriptor; its sizes default to more than any test needs."""

    collective: int
    count: int = 0
    algorithm: int = 0
    func: int = 0
    dtype: int = 6
    wire_dtype: int = 0
    in_place: bool = False
    src_stream: bool = False
    dst_stream: bool = False
    communicator: int = 0
    root: int = 0
    tag: int = 0
    src_bytes: int = 1 << 62
    dst_bytes: int = 1 << 62
    scratch_bytes: int = 1 << 62
    params_bytes: int = 1 << 62
    call_id: int = 0

    def words(self) -> list[int]:
        head = self.collective | self.algorithm << 8 | self.func << 16 | self.dtype << 24
        flags = self.wire_dtype | int(self.in_place) << 8 | int(self.src_stream) << 11 | int(self.dst_stream) << 12
        # Addresses, deadline and reserved words hold patterns: nothing may depend on them.
        return [
            head | flags << 32,
            self.communicator | self.root << 32,
            self.tag | 0xD0D1D2D3 << 32,
            self.count & 0xFFFFFFFFFFFFFFFF,
            0x1111222233334444,
            self.src_bytes,
            0x5555666677778888,
            self.dst_bytes,
            0x9999AAAABBBBCCCC,
            self.scratch_bytes,
            0xDDDDEEEEFFFF0123,
            self.params_bytes,
            self.call_id | 0xA0A1A2A3 << 32,
            0xB0B1B2B3C0C1C2C3,
            0xE0E1E2E3F0F1F2F3,
            0x0706050403020100,
        ]


def describe(call: Call, algorithm: int = 0, communicator: int = 0, **others: int) -> Descriptor:
    """The descriptor of a call; `algorithm` is the position plus one."""
    made = Descriptor(
        collective=call.collective,
        count=call.count,
        algorithm=algorithm,
        func=call.func,
        dtype=call.dtype,
        in_place=call.in_place,
        root=call.root,
        communicator=communicator,
    )
    return replace(made, **others)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Context:
    """What holds for all moves of a call."""

    dtype: int
    space: int
    algorithm: int
    communicator: int
    sequence_or_tag: int
    signature: int


@dataclass
class Run:
    """What came out for one call."""

    moves: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    pool: list[int] = field(default_factory=list)
    context: Context | None = None
    fail: int | None = None
    ended: bool = False
    taken: list[int] = field(default_factory=list)  # cycles at which items were there
    move_cycles: list[int] = field(default_factory=list)
    step_cycles: list[int] = field(default_factory=list)
    end_cycle: int = 0

    @property
    def first(self) -> int:
        """Cycles from the start to the first move."""
        return self.move_cycles[0] - self.taken[0]


class StuckError(AssertionError):
    """The microcontroller did not come to an end."""


class Cpu:
    """A simulated microcontroller with an image, running."""

    def __init__(self, library: Path, words: Sequence[int], seed: int = 1) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.cpu_new.restype = ctypes.c_void_p
        self._c.cpu_new.argtypes = [ctypes.c_uint64]
        self._c.cpu_now.restype = ctypes.c_uint64
        self._c.cpu_read.restype = ctypes.c_uint32
        self._self = ctypes.c_void_p(self._c.cpu_new(seed))
        self.load(words)
        self.run(True)

    def close(self) -> None:
        self._c.cpu_delete(self._self)

    def load(self, words: Sequence[int], address: int = 0) -> None:
        array = np.asarray(words, dtype=np.uint32)
        self._c.cpu_load(self._self, address, ctypes.c_void_p(array.ctypes.data), len(array))

    def read(self, address: int) -> int:
        return int(self._c.cpu_read(self._self, address))

    def run(self, on: bool) -> None:
        self._c.cpu_run(self._self, int(on))

    def communicator(self, index: int, entry: Communicator) -> None:
        array = np.asarray(entry.words(), dtype=np.uint32)
        self._c.cpu_communicator(self._self, index, ctypes.c_void_p(array.ctypes.data))

    def start(self, slot: int, descriptor: Descriptor) -> None:
        array = np.asarray(descriptor.words(), dtype=np.uint64)
        self._c.cpu_start(self._self, slot, ctypes.c_void_p(array.ctypes.data))

    def control(self) -> None:
        self._c.cpu_control(self._self)

    def pace(self, ready: int, retire: int) -> None:
        self._c.cpu_pace(self._self, ready, retire)

    def shortcut(self, on: bool) -> None:
        """Whether a slot may be stepped again without an item."""
        self._c.cpu_shortcut(self._self, int(on))

    def idle(self, cycles: int) -> None:
        self._c.cpu_idle(self._self, cycles)

    def trace(self, on: bool) -> None:
        """Whether instructions are recorded from now on."""
        self._c.cpu_trace(self._self, int(on))

    def traced(self) -> list[tuple[int, int]]:
        """Cycle and address of each instruction since the last time."""
        steps = np.zeros(self._c.cpu_traced(self._self), np.uint64)
        self._c.cpu_copy_trace(self._self, ctypes.c_void_p(steps.ctypes.data))
        return [(int(step) >> 32, int(step) & 0xFFFFFFFF) for step in steps]

    def finish(self, limit: int = 2_000_000) -> dict[int, Run]:
        """Runs until all calls are over; by slot, what came out. Raises StuckError."""
        over = self._c.cpu_finish(self._self, ctypes.c_uint64(limit))
        events = np.zeros(self._c.cpu_events(self._self), _EVENT)
        self._c.cpu_copy_events(self._self, ctypes.c_void_p(events.ctypes.data))
        runs: dict[int, Run] = {}
        for event in events:
            run = runs.setdefault(int(event["slot"]), Run())
            words = event["words"]
            match Kind(int(event["kind"])):
                case Kind.TAKEN:
                    run.taken.append(int(event["cycle"]))
                case Kind.MOVE:
                    assert not run.ended
                    assert run.context is not None, "the context comes before the first move"
                    run.moves.append(words.copy())
                    run.move_cycles.append(int(event["cycle"]))
                case Kind.END:
                    assert not run.ended
                    run.ended = True
                    run.end_cycle = int(event["cycle"])
                case Kind.LIST:
                    assert int(words[0]) == len(run.pool), "lists are written in order"
                    run.pool.append(int(words[1]))
                case Kind.CONTEXT:
                    bits = int(words[0]) | int(words[1]) << 32 | int(words[2]) << 64
                    run.context = Context(
                        dtype=bits & 63,
                        space=bits >> 6 & 3,
                        algorithm=bits >> 8 & 255,
                        communicator=bits >> 16 & 255,
                        sequence_or_tag=bits >> 24 & 0xFFFFFFFF,
                        signature=bits >> 56,
                    )
                case Kind.FAIL:
                    run.fail = int(words[0])
                case Kind.STEP:
                    run.step_cycles.append(int(event["cycle"]))
        if not over:
            raise StuckError(f"after {limit} cycles; {runs}")
        return runs

    def call(self, descriptor: Descriptor, slot: int = 0) -> Run:
        """One call alone."""
        self.start(slot, descriptor)
        return self.finish()[slot]
