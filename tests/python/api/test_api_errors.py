"""Bad input: each case raises before anything is sent, says what was given and what is allowed, and harms nobody."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

X = np.arange(4.0)


def frozen() -> np.ndarray:
    array = np.zeros(4)
    array.flags.writeable = False
    return array


CASES: list[tuple[str, Callable[[Communicator], Any], type[Exception], list[str]]] = [
    ("negative count", lambda c: c.allreduce(X, count=-1), unisono.InvalidCountError, ["allreduce", "-1", "0 to"]),
    ("huge count", lambda c: c.allreduce(X, count=2**62), unisono.InvalidCountError, [str(2**62), "too large", "0 to"]),
    ("count beyond the buffer", lambda c: c.allreduce(X, count=5), unisono.BufferTooSmallError,
     ["src holds 4 elements", "needs 5"]),
    ("small destination", lambda c: c.allgather(X, np.zeros(7)), unisono.BufferTooSmallError,
     ["dst holds 7 elements", "needs 8 elements (64 bytes)"]),
    ("dtype", lambda c: c.allreduce(X.astype(np.uint32)), unisono.InvalidDatatypeError,
     ["uint32", "float32", "view('u1')"]),
    ("reduced bytes", lambda c: c.allreduce(X.view("u1")), unisono.InvalidDatatypeError,
     ["byte", "cannot be reduced", "fp32"]),
    ("two dtypes", lambda c: c.allreduce(X, np.zeros(4, np.float32)), unisono.InvalidDatatypeError,
     ["src has dtype float64", "dst float32"]),
    ("op", lambda c: c.allreduce(X, op="xor"), unisono.InvalidOpError, ["'xor'", "sum, prod, min, max"]),
    ("root", lambda c: c.bcast(X.copy(), root=2), unisono.InvalidRootError, ["root 2", "ranks 0 to 1"]),
    ("negative root", lambda c: c.reduce(X, root=-1), unisono.InvalidRootError, ["root -1", "ranks 0 to 1"]),
    ("peer", lambda c: c.send(X, 9), unisono.InvalidRootError, ["peer 9", "ranks 0 to 1"]),
    ("tag", lambda c: c.send(X, 0, tag=-3), unisono.InvalidArgumentError, ["tag -3", "0 to 2147483647"]),
    ("read-only", lambda c: c.bcast(frozen()), unisono.ReadOnlyBufferError, ["dst is read-only", "writable"]),
    ("read-only bytes", lambda c: c.bcast(b"abcd"), unisono.ReadOnlyBufferError, ["dst is read-only"]),
    ("not contiguous", lambda c: c.allreduce(np.zeros((4, 4))[:, 1]), unisono.InvalidArgumentError,
     ["not contiguous", "ascontiguousarray"]),
    ("a list", lambda c: c.allreduce([1, 2]), unisono.InvalidArgumentError, ["src is a list", "NumPy array"]),
    ("nothing", lambda c: c.allreduce(None), unisono.InvalidArgumentError, ["src is missing"]),
    ("overlap", lambda c: (lambda z: c.allreduce(z[:4], z[2:6]))(np.zeros(8)), unisono.OverlappingBuffersError,
     ["overlap", "in-place"]),
    ("algorithm", lambda c: c.allreduce(X, algorithm="rnig"), unisono.UnknownAlgorithmError,
     ['"rnig"', "ring", "recursive_doubling"]),
    ("blocks", lambda c: c.alltoall(np.zeros(5)), unisono.InvalidCountError, ["5 elements", "multiple of the 2 ranks"]),
    ("number of counts", lambda c: c.allgatherv(X, None, [4, 4, 4]), unisono.InvalidCountError,
     ["3 entries", "each of the 2 ranks"]),
    ("negative entry", lambda c: c.allgatherv(X, None, [4, -4]), unisono.InvalidCountError, ["counts[1] is -4"]),
    ("overlapping blocks", lambda c: c.allgatherv(X, np.zeros(8), [4, 4], displacements=[0, 3]),
     unisono.OverlappingBuffersError, ["ranks 0 and 1 overlap"]),
    ("destination off the root", lambda c: c.scatter(None, root=1 - c.rank), unisono.InvalidArgumentError,
     ["dst is missing", "only the root's"]),
    ("timeout", lambda c: c.barrier(timeout=-1), unisono.InvalidArgumentError, ["timeout is -1"]),
    ("not a time", lambda c: c.barrier(timeout=math.nan), unisono.InvalidArgumentError, ["timeout is nan"]),
    ("no timeout", lambda c: c.set_timeout(0), unisono.InvalidArgumentError, ["more than 0 s"]),
    ("option", lambda c: c.barrier(colour=1), TypeError, ["colour", "algorithm, timeout"]),
    ("in place", lambda c: c.copy(unisono.IN_PLACE, X.copy()), unisono.InvalidArgumentError, ["src is missing"]),
    ("colour", lambda c: c.split(-2), unisono.InvalidArgumentError, ["colour is -2", "None"]),
    ("freeing the world", lambda c: c.free(), unisono.InvalidArgumentError, ["belongs to its context"]),
    ("malformed program", lambda c: unisono.Program.parse("unisono program 1\nranks 2\nrank 1\nend\n"),
     unisono.MalformedProgramError, ["line 3", "next is rank 0"]),
    ("program word", lambda c: unisono.Program.parse("unisono program 1\nranks 1\nrank 0\nmove 1 2\nend\n"),
     unisono.MalformedProgramError, ["line 4", "2 words", "needs 8"]),
    ("program bits", lambda c: unisono.Program.parse(
        f"unisono program 1\nranks 1\nrank 0\nmove {'f' * 16}{' 0' * 7}\nend\n"),
     unisono.MalformedProgramError, ["line 4", "not well formed"]),
    ("program that stops", lambda c: unisono.Program.parse("unisono program 1\nranks 1\nrank 0\n"),
     unisono.MalformedProgramError, ['before "end"']),
    ("program for others", lambda c: c.run_program(unisono.Program.parse("unisono program 1\nranks 1\nrank 0\nend\n")),
     unisono.UnsupportedError, ["for 1 ranks", "has 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_input(call: Callable[[Communicator], Any], kind: type[Exception], words: list[str]) -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises(kind) as failure:
            call(comm)
        # The communicator is as good as before.
        assert comm.allreduce(np.array([comm.rank + 1]))[0] == 3
        return str(failure.value)

    for text in ThreadJob(2, timeout=20).run(member):
        for word in words:
            assert word in text


def test_a_freed_communicator_is_recognised() -> None:
    def member(comm: Communicator) -> str:
        part = comm.split(0)
        assert part is not None
        part.free()
        with pytest.raises(unisono.FreedCommunicatorError) as failure:
            part.allreduce(X)
        assert failure.value.code == unisono.ErrorCode.FREED_COMMUNICATOR
        with pytest.raises(unisono.FreedCommunicatorError):
            part.free()
        return str(failure.value)

    for text in ThreadJob(2, timeout=20).run(member):
        assert "the communicator was freed" in text


def test_after_close() -> None:
    context = unisono.init()
    world = context.world
    context.close()
    context.close()
    with pytest.raises((unisono.WrongProcessError, unisono.FreedCommunicatorError)):
        world.barrier()


def test_a_child_of_fork_is_told_so() -> None:
    with unisono.init() as context:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                context.world.allreduce(X)
                os.write(write, b"no error")
            except unisono.WrongProcessError as error:
                os.write(write, str(error).encode())
            except BaseException as error:
                os.write(write, repr(error).encode())
            os._exit(0)
        os.close(write)
        text = os.read(read, 4096).decode()
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
        assert "parent process" in text
        np.testing.assert_array_equal(context.world.allreduce(X), X)


def test_a_deadline_says_who_is_missing() -> None:
    passed = threading.Event()

    def member(comm: Communicator) -> str:
        if comm.rank == 0:
            with pytest.raises(unisono.DeadlineError) as failure:
                comm.recv(np.zeros(1), 1, timeout=0.2)
            passed.set()
            return str(failure.value)
        passed.wait(20)
        return ""

    text = ThreadJob(2, timeout=20).run(member)[0]
    assert "recv" in text
    assert "rank 1" in text or "rank 0" in text


def test_a_wait_can_be_bounded_and_repeated() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            request = comm.recv_async(np.zeros(1), 1)
            with pytest.raises(unisono.DeadlineError, match="still in flight"):
                request.wait(0.05)
            comm.send(np.zeros(1), 1)
            assert request.wait(20) is not None
        else:
            comm.recv(np.zeros(1), 0)
            comm.send(np.ones(1), 0)

    ThreadJob(2, timeout=20).run(member)


def test_a_message_longer_than_its_receive() -> None:
    received = threading.Event()

    def member(comm: Communicator) -> str:
        if comm.rank == 0:
            comm.send_async(np.zeros(9), 1)
            received.wait(20)
            return ""
        with pytest.raises(unisono.TruncatedError) as failure:
            comm.recv(np.zeros(3), 0)
        received.set()
        return str(failure.value)

    assert "72" in ThreadJob(2, timeout=20).run(member)[1]


def test_mismatched_calls_are_detected() -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises((unisono.MismatchedCallError, unisono.RevokedError)) as failure:
            comm.allreduce(np.zeros(4 + comm.rank))
        return str(failure.value)

    texts = ThreadJob(2, timeout=20).run(member)
    assert any("count" in text or "4" in text for text in texts)
