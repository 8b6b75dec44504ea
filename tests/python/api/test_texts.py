"""What errors repeat of long and odd things that were given: some of it, on one line, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

LONG = "x" * 100_000
X = np.ones(3, np.float32)
HALF = "a\ud800"


class Mute:
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


def named(c: Communicator) -> None:
    c.name = LONG


def revoked(c: Communicator) -> None:
    twin = c.dup()
    twin.revoke(LONG)
    twin.barrier()


CASES: list[tuple[str, Callable[[Communicator], Any], type[Exception], str]] = [
    ("name", lambda c: c.dup(name=LONG), unisono.InvalidArgumentError, "100000 characters; allowed are up to 32"),
    ("set name", named, unisono.InvalidArgumentError, "100000 characters; allowed are up to 32"),
    ("algorithm", lambda c: c.allreduce(1, algorithm=LONG), unisono.UnknownAlgorithmError, "there are "),
    ("op", lambda c: c.allreduce(1, op=LONG), unisono.InvalidOpError, "allowed are sum"),
    ("rules", lambda c: unisono.ThreadJob(1, algorithms=LONG).run(id), unisono.InvalidArgumentError, "allowed is a"),
    ("pin", lambda c: unisono.ThreadJob(1, algorithms=f"bcast={LONG}").run(id), unisono.UnknownAlgorithmError,
     "bcast has no algorithm"),
    ("mode", lambda c: unisono.ThreadJob(1, determinism=LONG), unisono.InvalidArgumentError, "allowed are fast"),
    ("reason", revoked, unisono.RevokedError, "was revoked"),
    ("network", lambda c: unisono.ThreadJob(2, network=LONG), unisono.InvalidArgumentError, "allowed are 'shm'"),
    ("counts", lambda c: c.allgatherv(X, None, ["a"] * 100_000), unisono.InvalidCountError, "a sequence of integers"),
    ("wire", lambda c: c.allreduce(X, wire_datatype=LONG), unisono.InvalidDatatypeError, "allowed are 'fp16'"),
    ("factor", lambda c: c.allreduce(X, pre_scale=LONG), unisono.InvalidArgumentError, "pass a number"),
    ("timeout", lambda c: c.barrier(timeout=LONG), unisono.InvalidArgumentError, "pass a number of seconds"),
    ("program", lambda c: unisono.Program.load("/" + LONG), unisono.InvalidArgumentError, "cannot be read"),
    # Integers of more digits than Python writes, or than a float has.
    ("root", lambda c: c.bcast(X, root=10**5000), unisono.InvalidArgumentError, "an integer of 64 bits"),
    ("ranks", lambda c: c.subset([10**5000]), unisono.InvalidArgumentError, "an integer of 64 bits"),
    ("seconds", lambda c: c.barrier(timeout=10**5000), unisono.InvalidArgumentError, "a number of seconds"),
    ("limit", lambda c: c.barrier_async().wait(10**5000), unisono.InvalidArgumentError, "0 and more seconds"),
    ("default", lambda c: unisono.ThreadJob(1, timeout=10**5000), unisono.InvalidArgumentError, "of seconds"),
    ("mute op", lambda c: c.allreduce(1, op=Mute()), unisono.InvalidOpError, "op is <Mute that cannot be shown"),
    ("mute root", lambda c: c.bcast(X, root=Mute()), unisono.InvalidArgumentError, "root is <Mute that cannot"),
    # What is no text of UTF-8, or would end in the middle.
    ("half name", lambda c: c.dup(name=HALF), unisono.InvalidArgumentError, r"name is 'a\ud800'; pass a text of ASCII"),
    ("half algorithm", lambda c: c.allreduce(1, algorithm=HALF), unisono.InvalidArgumentError, "a lone surrogate"),
    ("half op", lambda c: unisono.Operator(HALF, np.add), unisono.InvalidArgumentError, "a lone surrogate"),
    ("half reason", lambda c: c.dup().revoke(HALF), unisono.InvalidArgumentError, "a lone surrogate"),
    ("half pin", lambda c: ThreadJob(1, algorithms=HALF), unisono.InvalidArgumentError, "a lone surrogate"),
    ("NUL in a name", lambda c: c.dup(name="a\0b"), unisono.InvalidArgumentError, r"name is 'a\x00b'"),
    ("NUL in an algorithm", lambda c: c.allreduce(1, algorithm="ring\0b"), unisono.InvalidArgumentError, "without NUL"),
    ("NUL in an op", lambda c: unisono.Operator("a\0b", np.add), unisono.InvalidArgumentError, "without NUL"),
    ("no text", lambda c: unisono.Operator(5, np.add), unisono.InvalidArgumentError, "name is 5; pass a text"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "kind", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_is_told_in_a_sentence(case: Callable[[Communicator], Any], kind: type[Exception], words: str) -> None:
    def rank(world: Communicator) -> str:
        with pytest.raises(kind) as caught:
            case(world)
        return str(caught.value)

    text = ThreadJob(1).run(rank)[0]
    assert words in text
    assert len(text) < 1200
    assert "\n" not in text
    text.encode()
