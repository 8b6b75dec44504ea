"""One rank of a job of the soak: random calls, all of whose results are compared with NumPy.

`python -m switch.soak_rank ORDER`: what the job does, as JSON. All ranks draw the same calls from the same seed, with
data of their own, on communicators that are made and freed meanwhile. Numbers are small integers, so that every order
of a fold gives the same bits.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import unisono
from conformance.reports import say

Array = np.ndarray[Any, Any]

INTEGERS = ("u1", "i1", "i2", "i4", "i8", "u8")
REALS = ("f2", "f4", "f8", "c8")
#: By name what all ranks' operands give.
OPERATORS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda all_given: np.add.reduce(all_given, axis=0, dtype=all_given.dtype),
    "prod": lambda all_given: np.multiply.reduce(all_given, axis=0, dtype=all_given.dtype),
    "max": lambda all_given: all_given.max(axis=0),
    "min": lambda all_given: all_given.min(axis=0),
    "bitwise_and": lambda all_given: np.bitwise_and.reduce(all_given, axis=0),
    "bitwise_or": lambda all_given: np.bitwise_or.reduce(all_given, axis=0),
    "bitwise_xor": lambda all_given: np.bitwise_xor.reduce(all_given, axis=0),
    "avg": lambda all_given: mean(all_given),
}
PAIR = np.dtype([("value", "f4"), ("index", "u4")])
AFFINE = np.dtype([("scale", "u8"), ("shift", "u8")])
CARRIED = ("barrier", "bcast", "reduce", "allreduce", "allreduce", "reduce_scatter", "allgather")
BY_RANKS = ("alltoall", "scan")
#: Bytes: nothing, less than a payload, about one, several, and more than is carried.
LENGTHS = (0, 8, 100, 1336, 1344, 1352, 5000, 20_000, 32_768, 60_000)
OVER, RIGHT = 1, 2  #: bits of what ranks agree on after a sequence


@dataclass(frozen=True)
class Order:
    """What the ranks of a job do."""

    seed: int
    folder: str  #: where reports go, and operators in C are
    seconds: float  #: after which no new sequence begins
    deaths: bool  #: ranks may be killed
    most_communicators: int
    operators: bool  #: there are operators in C
    calm: bool  #: no switch is disturbed, so that errors say what they say then


def mean(all_given: Array) -> Array:
    """The sum, divided once; of complex numbers each part, of fp16 in fp32."""
    total: Array = np.add.reduce(all_given, axis=0, dtype=all_given.dtype)
    if total.dtype.kind == "c":
        parts: Array = total.view("f4") / np.float32(len(all_given))
        return parts.view(total.dtype)
    wide = np.dtype("f4") if total.dtype.itemsize == 2 else total.dtype
    divided: Array = total.astype(wide) / wide.type(len(all_given))
    return divided.astype(total.dtype)


def larger(a: Array, b: Array) -> Array:
    right = (b["value"] > a["value"]) | ((b["value"] == a["value"]) & (b["index"] < a["index"]))
    return np.where(right, b, a)


def affine(a: Array, b: Array) -> Array:
    c = a.copy()
    c["scale"], c["shift"] = a["scale"] * b["scale"], a["shift"] * b["scale"] + b["shift"]
    return c


def given(dtype: Any, count: int, rank: int, salt: int) -> Array:
    """What a rank gives to a call: no product of eight of these is too large for a byte."""
    source = np.random.default_rng([salt, rank])
    made = np.zeros(count, dtype)
    if made.dtype.names:
        for field in made.dtype.names:
            made[field] = source.integers(0, 50, count)
        return made
    signed = np.array([1, 1, 1, 1, 2, 0] if made.dtype.kind == "u" else [1, 1, -1, -1, 2, 0], dtype)
    return signed[source.integers(0, 6, count)]


class WrongError(Exception):
    """A result, or an error, is not what it should be."""


# ------------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True)
class Step:
    """A call as all ranks make it."""

    collective: str
    dtype: str
    op: str
    count: int
    root: int
    salt: int
    wire: str
    in_place: bool
    blocking: bool

    def expected(self, rank: int, size: int) -> Array | None:
        """What this rank gets; None: nothing."""
        blocks = self.collective in ("reduce_scatter", "alltoall")
        everyones: Array = np.stack([self.mine(of, size) for of in range(size)])
        match self.collective:
            case "bcast":
                given_by_root: Array = everyones[self.root]
                return given_by_root
            case "allgather":
                return everyones.ravel()
            case "alltoall":
                return np.concatenate([row[rank * self.count : (rank + 1) * self.count] for row in everyones])
            case "scan":
                return OPERATORS[self.op](everyones[: rank + 1])
            case "barrier":
                return None
        # What travels and is folded is narrow; a mean is one of those numbers, too. All others are exact in any.
        narrow = self.wire == "fp16" and self.op == "avg"
        whole = OPERATORS[self.op](everyones.astype("f2") if narrow else everyones).astype(self.dtype)
        if blocks:
            return whole[rank * self.count : (rank + 1) * self.count]
        return whole if self.collective == "allreduce" or rank == self.root else None

    def mine(self, rank: int, size: int) -> Array:
        """What a rank gives."""
        blocks = self.collective in ("reduce_scatter", "alltoall")
        return given(self.dtype, self.count * (size if blocks else 1), rank, self.salt)

    def start(self, comm: unisono.Communicator) -> Callable[[], None]:
        """Begins it; what is returned ends and checks it."""
        rank, size = comm.rank, comm.size
        mine = self.mine(rank, size)
        words: dict[str, Any] = {}
        if self.op and self.collective not in ("barrier", "bcast", "allgather", "alltoall"):
            words["op"] = self.op
        if self.collective in ("bcast", "reduce"):
            words["root"] = self.root
        if self.wire:
            words["wire_datatype"] = self.wire
        places: list[Any] = [mine]
        if self.collective == "barrier":
            places = []
        elif self.collective == "bcast":
            places = [mine if rank == self.root else np.empty_like(mine)]
        elif self.in_place:
            places = [unisono.IN_PLACE, mine]
        call = getattr(comm, self.collective if self.blocking else f"{self.collective}_async")
        made = call(*places, **words)

        def end() -> None:
            got = made if self.blocking else made.wait()
            wanted = self.expected(rank, size)
            if wanted is None:
                return
            got = np.asarray(mine if self.in_place else got).ravel()
            if got.dtype != wanted.dtype or not np.array_equal(got, wanted):
                where = np.flatnonzero(got != wanted)[:3].tolist() if got.shape == wanted.shape else got.shape
                raise WrongError(
                    f"rank {rank} of {size} has a wrong result at {where}: {self}, by {comm.state.carrier!r}"
                )

        return end


def drawn(rng: random.Random, size: int) -> Step:
    collective = rng.choice(BY_RANKS) if rng.random() < 0.12 else rng.choice(CARRIED)
    dtype = rng.choice(INTEGERS + REALS)
    names = ["sum", "prod"]
    if dtype in INTEGERS:
        names += ["bitwise_and", "bitwise_or", "bitwise_xor"]
    elif collective != "scan":
        names += ["avg", "avg"]
    if dtype != "c8":
        names += ["max", "min"]
    length = rng.choice(LENGTHS) if rng.random() < 0.7 else rng.randrange(3000)
    blocks = collective in ("reduce_scatter", "allgather", "alltoall")
    op = rng.choice(names)
    wires = ("", "", "fp16") if op == "avg" else ("", "", "fp16", "bf16")  # NumPy has no bf16
    return Step(
        collective,
        dtype,
        op,
        length // np.dtype(dtype).itemsize // (size if blocks else 1),
        rng.randrange(size),
        rng.getrandbits(30),
        rng.choice(wires) if dtype == "f4" and collective != "barrier" else "",
        collective == "allreduce" and rng.random() < 0.3,
        rng.random() < 0.4,
    )


def several(comm: unisono.Communicator, rng: random.Random, mine: random.Random) -> int:
    """Calls of which many are under way together; each rank waits for them in an order of its own."""
    steps = [drawn(rng, comm.size) for _ in range(rng.randint(1, 14))]
    ends = [step.start(comm) for step in steps]
    mine.shuffle(ends)
    for end in ends:
        end()
    return len(steps)


def by_operators_in_c(comm: unisono.Communicator, rng: random.Random, folder: str) -> int:
    ordered = rng.random() < 0.5
    name, function, dtype = ("affine", affine, AFFINE) if ordered else ("larger", larger, PAIR)
    op = comm.load_operator(f"{folder}/{name}.uh", commutative=not ordered)
    calls = rng.randint(1, 6)
    for _ in range(calls):
        count, salt = rng.choice((1, 50, 168, 169, 1500)), rng.getrandbits(30)
        parts = [given(dtype, count, of, salt) for of in range(comm.size)]
        got = comm.allreduce(parts[comm.rank], op=op)
        if not np.array_equal(got, reduce(function, parts)):
            raise WrongError(f"{count} elements by the operator {name} are wrong, folded by {op.carrier}")
    comm.barrier()
    op.free()
    return calls


# ---------------------------------------------------------------------------------------------- mistakes


def late(parent: unisono.Communicator, rng: random.Random, calm: bool) -> None:
    """One rank comes too late: the others' errors say who it is."""
    comm = parent.dup()
    parent.barrier()  # else who is not done with `dup` is late, too
    who, collective = rng.randrange(comm.size), rng.choice(("barrier", "allreduce"))
    carried = bool(comm.state.carrier)
    if comm.rank == who:
        parent.barrier()
    else:
        try:
            if collective == "barrier":
                comm.barrier(timeout=1.0)
            else:
                comm.allreduce(np.arange(40.0), timeout=1.0)
            raise WrongError(f"a {collective} without rank {who} has ended")
        except (unisono.DeadlineError, unisono.RevokedError) as error:  # of this rank, or of one that told it
            named = f"rank {who}" in str(error) or (carried and not calm and "the switch " in str(error))
            if not named:
                raise WrongError(f"rank {who} is late, and the error says: {error}") from None
        parent.barrier()
    comm.free()


def differing(parent: unisono.Communicator, rng: random.Random) -> None:
    """One rank says another datatype: everybody is told who says what."""
    comm = parent.dup()
    parent.barrier()  # switches are asked on the new communicator, which is about to fail
    who = rng.randrange(comm.size)
    mine = np.ones(30, np.float32 if comm.rank == who else np.int32)
    try:
        comm.allreduce(mine, timeout=8.0)
        raise WrongError(f"rank {who} says fp32, the others int32, and nobody notices")
    except (unisono.MismatchedCallError, unisono.RevokedError, unisono.DeadlineError) as error:
        if "rank" not in str(error):
            raise WrongError(f"ranks differ, and the error names none: {error}") from None
    parent.barrier()
    comm.free()


# ---------------------------------------------------------------------------------------------- the rank


def disturb(rng: random.Random) -> None:
    """Kills or stops this process soon, wherever the others are then."""
    kill, delay, pause = rng.random() < 0.6, rng.random() * 0.3, 0.1 + rng.random() * 0.5

    def act() -> None:
        time.sleep(delay)
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        subprocess.Popen(["/bin/sh", "-c", f"sleep {pause}; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=act, daemon=True).start()


class Rank:
    """What a rank has, and has done."""

    def __init__(self, order: Order, world: unisono.Communicator) -> None:
        self.order = order
        self.world = self.comm = world
        self.made: list[unisono.Communicator | None] = []  #: of `comm`; None: this rank is no member
        self.counts = dict.fromkeys(("calls", "communicators", "most_alive", "operators", "losses", "mistakes"), 0)
        self.mine = random.Random(f"{order.seed}/{world.rank}/own")

    def make(self, rng: random.Random) -> None:
        """One communicator more, and one less if there are many."""
        size = self.comm.size
        match rng.randrange(3):
            case 0:
                self.made.append(self.comm.dup())
            case 1:
                colours = [rng.randrange(2) for _ in range(size)]
                self.made.append(self.comm.split(colours[self.comm.rank], -self.comm.rank))
            case _:
                self.made.append(self.comm.subset(rng.sample(range(size), rng.randint(1, size))))
        self.counts["communicators"] += 1
        self.counts["most_alive"] = max(self.counts["most_alive"], len(self.made))
        if len(self.made) > self.order.most_communicators:
            self.free(rng.randrange(len(self.made)))

    def free(self, index: int) -> None:
        """Members may still lack results of the last calls: a barrier comes before the end."""
        one = self.made.pop(index)
        if one is not None:
            one.barrier()
            one.free()

    def sequence(self, rng: random.Random) -> None:
        for _ in range(rng.randint(2, 5)):
            lot = rng.random()
            if lot < 0.25:
                for _ in range(rng.randint(1, max(1, self.order.most_communicators // 4))):
                    self.make(rng)
            elif lot < 0.33 and self.order.operators:
                self.counts["operators"] += by_operators_in_c(self.comm, rng, self.order.folder)
            elif lot < 0.36 and self.comm.size > 1:
                self.counts["mistakes"] += 1
                late(self.comm, rng, self.order.calm) if rng.random() < 0.5 else differing(self.comm, rng)
            else:
                index = rng.randrange(-1, len(self.made)) if rng.random() < 0.5 else -1
                one = self.comm if index < 0 else self.made[index]
                draws = random.Random(rng.random())  # members alone draw
                if one is not None:
                    self.counts["calls"] += several(one, draws, self.mine)

    def end_all(self) -> None:
        """After a loss: calls of others on these end, too."""
        for one in (self.comm, *self.made):
            if one is not None:
                with contextlib.suppress(unisono.UnisonoError):
                    one.revoke("a rank has died")

    def shrink(self, rng: random.Random) -> None:
        """Now and then one more rank is killed meanwhile: while ranks agree, or while switches are asked."""
        self.counts["losses"] += 1
        if self.comm.size > 3 and rng.random() < 0.4 and self.comm.rank == rng.randrange(self.comm.size):
            threading.Timer(rng.random() * 0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
        smaller = self.comm.shrink()
        for one in self.made:
            if one is not None:
                one.free()
        self.made.clear()
        if self.comm is not self.world:
            self.comm.free()
        self.comm = smaller

    def run(self) -> None:
        number, end = 0, time.monotonic() + self.order.seconds
        while True:
            rng = random.Random(f"{self.order.seed}/{number}/{self.comm.size}")
            moment, chosen = random.Random(rng.random()), rng.randrange(self.comm.size)
            right = True
            try:
                dies = self.order.deaths and self.comm.size > 2 and moment.random() < 0.25
                if dies and self.comm.rank == chosen:
                    disturb(moment)
                self.sequence(rng)
            except (unisono.PeerDeadError, unisono.RevokedError, unisono.FreedCommunicatorError) as error:
                if not self.order.deaths or "rank" not in str(error):
                    raise
                right = False
                self.end_all()
            said = self.comm.agree((RIGHT if right else 0) | (OVER if time.monotonic() > end else 0))
            number += 1
            if not said & RIGHT:
                self.end_all()
                self.shrink(random.Random(f"{self.order.seed}/{number}/shrink"))
            elif said & OVER:
                return


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> int:
    """One rank. What is wrong is said on standard error, with status 1."""
    order = Order(**json.loads(sys.argv[1]))
    with unisono.init(timeout=60) as context:
        world = context.world
        rank = Rank(order, world)
        Path(order.folder, f"pid{world.rank}").write_text(str(os.getpid()))
        begun_with = open_files()
        rank.run()
        while rank.made:
            rank.free(0)
        more = open_files() - begun_with
        # What a communicator has open goes with it; peers and switches are first spoken to after the begin.
        if more > 8 * world.size:
            raise WrongError(f"rank {world.rank} has {more} files more open at the end than at the begin")
        report = rank.counts | {"rank": world.rank, "left": rank.comm.size, "carrier": rank.comm.state.carrier}
        say(Path(order.folder), world.rank, report)
        with contextlib.suppress(unisono.PeerDeadError, unisono.RevokedError):
            rank.comm.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
