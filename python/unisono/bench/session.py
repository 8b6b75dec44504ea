"""The measurement of cells: rounds in which every system runs one block, between two looks at the machine's limit."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .machine import Facts, Processor
from .network import FLAT
from .plan import OWN, SMALL, UNIFORM, WAITED, Cell, Effort
from .statistics import Ratio, Round, paired_ratio, quiet_rounds, quietest_rounds
from .systems import Outcome, System, SystemFailedError

CLOCK_SECONDS = 1e-6  # single calls shorter than this are timed in batches, for a look at the clock takes 25 ns
FIRST_SECONDS = 20.0  # a block may take so long before it is known how long it takes
MOST_CALLS = 5_000_000
LEAST_QUIET = 5
FLAT_COUNT = 4096  # elements up to which doubling is the flat algorithm that takes least; above, a ring
GIVE_UP = 2  # cells in which a system failed, one after the other, before the rest is left out


@dataclass
class Measured:
    """One system in one cell."""

    system: str
    cell: Cell
    times: list[float] = field(default_factory=list)  #: seconds of a call, by round
    made: list[int] = field(default_factory=list)  #: calls, by round
    kept: list[int] = field(default_factory=list)  #: the rounds that count
    p99: float | None = None
    calls: int = 0  #: in the rounds that count
    verified: bool = True
    algorithm: str | None = None
    failure: str | None = None
    ratios: dict[str, Ratio] = field(default_factory=dict)  #: to each peer
    limit_ratio: float | None = None

    @property
    def kept_times(self) -> list[float]:
        """Times of the rounds that count."""
        return [self.times[i] for i in self.kept]


@dataclass
class Row:
    """All systems in one cell."""

    cell: Cell
    limit: Measured
    systems: list[Measured]
    rounds: int
    quiet: int  #: rounds in which nothing disturbed the machine
    noisy: bool  #: there were not enough quiet rounds, so the quietest were taken


class Uniform:
    """Unisono, but in a cell of a v-collective it makes the calls of what that generalises."""

    name = UNIFORM
    is_unisono = False  # the algorithm of the cell is the v-collective's

    def __init__(self, system: System) -> None:
        self._system = system

    def block(self, **arguments: Any) -> Outcome:
        """A block of equal counts."""
        return self._system.block(**arguments | {"op": arguments["op"].removesuffix("v"), "counts": "equal"})


class Waited:
    """Unisono, but it waits for each call of `inflight` before it starts the next one."""

    name = WAITED
    is_unisono = True

    def __init__(self, system: System) -> None:
        self._system = system

    def block(self, **arguments: Any) -> Outcome:
        """A block of the same calls."""
        return self._system.block(**arguments | {"op": WAITED})


class Flat:
    """Unisono, but with an algorithm that does not know which ranks are on one host."""

    name = FLAT
    is_unisono = True

    def __init__(self, system: System) -> None:
        self._system = system

    def block(self, **arguments: Any) -> Outcome:
        """A block of the same calls."""
        short = arguments["count"] <= FLAT_COUNT
        return self._system.block(**arguments | {"algorithm": "recursive_doubling" if short else "ring"})


Contender = System | Uniform | Waited | Flat


class Session:
    """Systems alive together. Use as a context manager, so that nothing is left of them."""

    def __init__(self, systems: Iterable[System], limit: System, effort: Effort, *, crowded: bool) -> None:
        self._systems = list(systems)
        self._limit = limit
        self._effort = effort
        self._orders = random.Random(1)  # of the systems of a round
        self._crowded = crowded
        ours = [system for system in self._systems if system.name == "unisono"]
        self._own: dict[str, list[Contender]] = {
            UNIFORM: [Uniform(system) for system in ours],
            WAITED: [Waited(system) for system in ours],
            FLAT: [Flat(system) for system in ours],
        }
        self._failures = dict.fromkeys([*OWN, *(system.name for system in self._systems)], 0)
        self._seed = 0
        self._line: float | None = None
        self._copies: bool | None = None

    @property
    def kernel_copies(self) -> bool | None:
        """Whether processes may copy each other's memory; None until it has been tried."""
        return self._copies

    def facts(self, processor: Processor) -> Facts:
        """What has been seen of the machine so far."""
        return Facts(processor, None if self._line is None else 1e9 * self._line, self._copies)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for system in [self._limit, *self._systems]:
            # After an interruption ranks may be in the middle of a block, and cannot be asked.
            if kind is None:
                system.stop()
            else:
                system.kill()

    def start(self) -> dict[str, str]:
        """Starts all; returns what failed of those without which the rest makes sense, by name."""
        self._limit.start()
        failed = {}
        for system in self._systems:
            try:
                system.start()
            except SystemFailedError as failure:
                failed[system.name] = str(failure)
                self._failures[system.name] = GIVE_UP
        return failed

    @property
    def has_line(self) -> bool:
        """Whether there are two cores for a line to travel between."""
        return self._limit.size >= 2

    def machine_limit(self, op: str, dtype: str, size: int) -> Measured:
        """A limit by itself: cache_line, or memcpy or reduce by one core."""
        cell = Cell(op, size, dtype, "malloc", 2 if op == "cache_line" else 1)
        kind = "line" if op == "cache_line" else "core"
        measured = Measured("limit", cell)
        calls = self._calibrate_limit(cell, kind)
        for _ in range(self._effort.rounds):
            outcome = self._limit_block(cell, kind, calls)
            measured.times.append(self._limit_time(outcome, kind, calls))
            measured.verified &= outcome.verified
        measured.kept = list(range(self._effort.rounds))
        measured.calls = calls * self._effort.rounds
        measured.limit_ratio = 1.0
        measured.p99 = sorted(measured.times)[-1]
        if op == "cache_line":
            self._line = float(np.median(measured.times))
        return measured

    def measure(self, cell: Cell) -> Row:
        """Measures one cell."""
        limit = Measured("limit", cell)
        contenders: list[Contender] = [system for system in self._systems if system.offers(cell.op)]
        if cell.compared is not None:
            contenders += self._own[cell.compared]
        systems = {system.name: Measured(system.name, cell) for system in contenders}
        calls: dict[str, int] = {}
        for system in contenders:
            measured = systems[system.name]
            if self._failures[system.name] >= GIVE_UP:
                measured.failure = "given up"
                continue
            with self._guard(system, measured):
                calls[system.name] = self._calibrate(system, measured)

        kind, limit_calls = self._choose_limit(cell)
        limit.algorithm = kind
        rounds: list[Round] = []
        wanted, most = self._effort.rounds, self._effort.most_rounds
        enough = min(LEAST_QUIET, wanted)
        last = self._look_at_limit(limit, kind, limit_calls)
        while len(rounds) < wanted or (len(rounds) < most and len(quiet_rounds(rounds)) < enough):
            limits, stolen = [last], 0.0
            # None follows another one more often than others do: what a system leaves behind (where its ranks sleep,
            # what is in the caches) meets the next one.
            for system in self._orders.sample(contenders, len(contenders)):
                measured = systems[system.name]
                if measured.failure is None:
                    with self._guard(system, measured):
                        waited, calls[system.name] = self._timed_block(system, measured, calls[system.name])
                        stolen = max(stolen, waited)
                    limits.append(self._look_at_limit(limit, kind, limit_calls))
            last = limits[-1]
            # Ranks that share cores wait for them in any case.
            rounds.append(Round(tuple(limits), 0.0 if self._crowded else stolen))

        quiet = quiet_rounds(rounds)
        noisy = len(quiet) < enough
        kept = quietest_rounds(rounds, max(enough, len(rounds) // 4)) if noisy else quiet
        limit.times = [one.limit for one in rounds]
        limit.kept = kept
        limit.calls = limit_calls * sum(len(rounds[i].limits) for i in kept)
        limit.limit_ratio = 1.0
        every = sorted(value for one in rounds for value in one.limits)
        limit.p99 = every[math.ceil(0.99 * len(every)) - 1]
        for system in contenders:
            measured = systems[system.name]
            if measured.failure is not None:
                continue
            measured.kept = kept
            measured.calls = sum(measured.made[i] for i in kept)
            with self._guard(system, measured):
                self._sample(system, measured)
        results = list(systems.values())
        if cell.network is not None:
            # What the machine does by itself has told which rounds were quiet. Figures are compared with what stands
            # below Unisono.
            floor = cell.network.floor
            limit = systems.pop(floor, Measured(floor, cell))
            results = list(systems.values())
            if limit.times:
                limit.limit_ratio = 1.0
        self._compare(limit, results)
        return Row(cell, limit, results, len(rounds), len(quiet), noisy)

    @contextlib.contextmanager
    def _guard(self, system: Contender, measured: Measured) -> Iterator[None]:
        """What is done with a system. A failure ends the cell for it, and only for it."""
        try:
            yield
            self._failures[system.name] = 0
        except SystemFailedError as failure:
            measured.failure = str(failure)
            self._failures[system.name] += 1

    def _block(self, system: Contender, cell: Cell, calls: int, batch: int, seconds: float) -> Outcome:
        self._seed += 1
        # Caches and protocols settle; a rank that was woken late has caught up.
        warmup = max(2 * cell.turns, min(calls // 8, 1000))
        return system.block(
            op=cell.op,
            dtype=cell.dtype,
            count=cell.count,
            buffers=cell.buffers,
            counts=cell.counts or "equal",
            algorithm=cell.algorithm if system.is_unisono else None,
            warmup=warmup,
            calls=calls,
            batch=batch,
            seed=self._seed % 1_000_000,
            seconds=seconds,
        )

    def _calibrate(self, system: Contender, measured: Measured) -> int:
        """Calls that make a block: every rank is the root equally often."""
        cell = measured.cell
        wanted = self._effort.block_seconds

        def seconds_of(calls: int) -> float:
            outcome = self._block(system, cell, calls, 0, FIRST_SECONDS)
            measured.verified &= outcome.verified
            measured.algorithm = outcome.algorithm
            return max(outcome.seconds, 1e-9)

        calls = cell.turns
        while True:
            seconds = seconds_of(calls)
            if seconds >= wanted / 2:
                # It may have been somebody else's doing.
                seconds = min(seconds, seconds_of(calls))
            fitting = calls * wanted / seconds
            if seconds >= wanted / 2 or calls >= MOST_CALLS:
                return math.ceil(max(1.0, min(calls, fitting)) / cell.turns) * cell.turns
            calls = math.ceil(min(MOST_CALLS, max(2 * calls, min(20 * calls, 1.1 * fitting))) / cell.turns) * cell.turns

    def _timed_block(self, system: Contender, measured: Measured, calls: int) -> tuple[float, int]:
        """A block that counts. Returns the part of it in which a rank's core was not its own, and the next one's calls.

        These are more if this one was short: something disturbed the calibration then.
        """
        seconds = FIRST_SECONDS + 20 * self._effort.block_seconds
        outcome = self._block(system, measured.cell, calls, 0, seconds)
        measured.times.append(outcome.seconds / calls / measured.cell.calls_per_figure)
        measured.made.append(calls)
        measured.verified &= outcome.verified
        wanted, turns = self._effort.block_seconds, measured.cell.turns
        following = calls
        if outcome.seconds < wanted / 2:
            following = math.ceil(min(MOST_CALLS, calls * min(20, wanted / outcome.seconds)) / turns) * turns
        return outcome.stolen / outcome.seconds, following

    def _sample(self, system: Contender, measured: Measured) -> None:
        """Looks at single calls, in a pass of its own since the clock costs time."""
        cell = measured.cell
        typical = sorted(measured.times)[len(measured.times) // 2] * cell.calls_per_figure
        batch = math.ceil(max(1.0, CLOCK_SECONDS / typical) / cell.turns) * cell.turns
        fitting = self._effort.sample_seconds / (typical * batch)
        # A hundred samples have a 99th percentile; where they would take too long, it is the largest of fewer.
        samples = int(min(20_000, max(fitting, min(100, 4 * fitting), 10)))
        seconds = FIRST_SECONDS + 20 * samples * batch * typical
        outcome = self._block(system, cell, samples * batch, batch, seconds)
        measured.p99 = outcome.p99 / cell.calls_per_figure
        measured.verified &= outcome.verified

    @staticmethod
    def _compare(limit: Measured, results: list[Measured]) -> None:
        sound = [measured for measured in results if measured.failure is None]
        for measured in sound:
            if limit.failure is None and limit.times:
                measured.limit_ratio = paired_ratio(measured.kept_times, limit.kept_times).value
            if measured.system != "unisono":
                continue  # ratios are those of this state of Unisono
            for peer in sound:
                if peer.system != "unisono":
                    measured.ratios[peer.system] = paired_ratio(measured.kept_times, peer.kept_times)

    def _limit_block(self, cell: Cell, kind: str, calls: int) -> Outcome:
        return self._limit.block(
            op=cell.op,
            dtype=cell.dtype,
            count=cell.count,
            buffers=cell.buffers,
            counts="equal",
            algorithm=kind,
            warmup=max(2, calls // 8),
            calls=calls,
            batch=0,
            seed=0,
            seconds=FIRST_SECONDS,
        )

    @staticmethod
    def _limit_time(outcome: Outcome, kind: str, calls: int) -> float:
        return outcome.seconds / calls / (2 if kind == "line" else 1)

    def _calibrate_limit(self, cell: Cell, kind: str) -> int:
        calls = 1
        wanted = self._effort.limit_seconds
        while True:
            seconds = self._limit_block(cell, kind, calls).seconds
            if seconds >= wanted / 2:
                # It may have been somebody else's doing.
                seconds = min(seconds, self._limit_block(cell, kind, calls).seconds)
            if seconds >= wanted / 2 or calls >= MOST_CALLS:
                return calls
            calls = min(MOST_CALLS, max(calls + 1, int(calls * min(20.0, 1.1 * wanted / max(seconds, 1e-9)))))

    def _choose_limit(self, cell: Cell) -> tuple[str, int]:
        """The larger of the two limits of a call: the way of a line, and what its data take.

        In allocated memory that is each core's share of copying and adding. In other memory it is the better of
        kernel copies and cells; small blocks lie in caches, where the kind of memory makes no difference.
        """
        candidates = []
        if self._limit.size >= 2:
            candidates.append(self._tried(cell, "line"))
            self._line = candidates[-1][0]  # it changes where a host moves the cores
        if cell.bytes > 0 and cell.network is None:
            within_reach = cell.buffers == "allocated" or cell.bytes <= SMALL
            ways = ["share"] if within_reach else self._ways(cell)
            candidates.append(min(self._tried(cell, kind) for kind in ways))
        if (
            not candidates
        ):  # a barrier of ranks that have one core together: nothing moves, and nothing can be in parallel
            return "core", self._calibrate_limit(cell, "core")
        _, kind, calls = max(candidates)
        return kind, calls

    def _tried(self, cell: Cell, kind: str) -> tuple[float, str, int]:
        """Seconds of a call, by which limit, and the calls that make a block of it."""
        calls = self._calibrate_limit(cell, kind)
        return self._limit_time(self._limit_block(cell, kind, calls), kind, calls), kind, calls

    def _ways(self, cell: Cell) -> list[str]:
        """The ways of data where ranks have memory of their own. The kernel may refuse one of them."""
        if self._copies is None:
            self._copies = self._limit_block(cell, "copy", 1).algorithm != "refused"
        return ["copy", "cells"] if self._copies else ["cells"]

    def _look_at_limit(self, limit: Measured, kind: str, calls: int) -> float:
        outcome = self._limit_block(limit.cell, kind, calls)
        limit.verified &= outcome.verified
        return self._limit_time(outcome, kind, calls)
