"""Bad input: each case raises before anything is sent, says what was given and what is allowed, and harms nobody."""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

X = np.arange(4.0)


PROGRAM = bytes(unisono.Program.build(1, lambda p: None))


def frozen() -> np.ndarray:
    array = np.zeros(4)
    array.flags.writeable = False
    return array


def masked() -> np.ma.MaskedArray:
    return np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[False, True, False, False])


CASES: list[tuple[str, Callable[[Communicator], Any], type[Exception], list[str]]] = [
    ("negative count", lambda c: c.allreduce(X, count=-1), unisono.InvalidCountError, ["allreduce", "-1", "0 to"]),
    ("huge count", lambda c: c.allreduce(X, count=2**62), unisono.InvalidCountError, [str(2**62), "too large", "0 to"]),
    ("count beyond the buffer", lambda c: c.allreduce(X, count=5), unisono.BufferTooSmallError,
     ["src holds 4 elements", "needs 5"]),
    ("small destination", lambda c: c.allgather(X, np.zeros(7)), unisono.BufferTooSmallError,
     ["dst holds 7 elements", "needs 8 elements (64 bytes)"]),
    ("dtype", lambda c: c.allreduce(X.astype(np.longdouble)), unisono.InvalidDatatypeError,
     ["allreduce of float128", "float32", "array.astype('float64')"]),
    ("a sum of structures", lambda c: c.allreduce(np.zeros(4, "i4,f4")), unisono.InvalidDatatypeError,
     ["allreduce of [('f0', '<i4'), ('f1', '<f4')]", "np.ascontiguousarray(array['f0'])", "pair_dtype"]),
    ("a sum of dates", lambda c: c.allreduce(np.zeros(4, "M8[s]")), unisono.InvalidDatatypeError,
     ["allreduce of datetime64[s]", "array.view('int64')"]),
    ("a mean of times", lambda c: c.reduce_scatter(np.zeros(4, "m8[us]"), op="avg"), unisono.InvalidDatatypeError,
     ["reduce_scatter of timedelta64[us]", "array.view('int64')"]),
    ("the largest text", lambda c: c.reduce(np.array([b"ab"]), op="max"), unisono.InvalidDatatypeError,
     ["reduce of |S2", "allgather or gather"]),
    ("combined texts", lambda c: c.combine(np.array(["ab"]), np.array(["cd"])), unisono.InvalidDatatypeError,
     ["combine of <U2", "allgather or gather"]),
    ("a sum of voids", lambda c: c.scan(np.zeros(4, "V3")), unisono.InvalidDatatypeError,
     ["scan of |V3", "array.view('u1')"]),
    ("elements of no bytes", lambda c: c.bcast(np.zeros(4, "V0")), unisono.InvalidDatatypeError, ["|V0", "no bytes"]),
    ("more texts than there are", lambda c: c.bcast(np.zeros(4, "S8"), count=5), unisono.BufferTooSmallError,
     ["dst holds 4 elements (32 bytes)", "needs 5 elements (40 bytes)"]),
    ("fewer than no texts", lambda c: c.bcast(np.zeros(4, "S8"), count=-1), unisono.InvalidCountError, ["count -1 is"]),
    ("too many texts", lambda c: c.allgather(np.zeros(4, "S8"), count=2**40), unisono.InvalidCountError,
     [f"count {2**40} is too large", f"0 to {(2**40 - 1) // 8 // 2}"]),
    ("texts that end too late", lambda c: c.allgatherv(np.zeros(4, "S8"), np.zeros(7, "S8"), [4, 4]),
     unisono.BufferTooSmallError, ["dst holds 7 elements", "needs 8 elements"]),
    ("compressed texts", lambda c: c.bcast(np.zeros(4, "S8"), wire_datatype="fp16"), unisono.InvalidDatatypeError,
     ["byte cannot travel as fp16"]),
    ("reduced bytes", lambda c: c.allreduce(X.view("V1")), unisono.InvalidDatatypeError,
     ["op sum", "datatype byte", "it is on int32", "on byte are bitwise_and"]),
    ("a minimum of complex numbers", lambda c: c.allreduce(X.astype(complex), op="min"), unisono.InvalidDatatypeError,
     ["op min is not defined on datatype complex128", "on complex128 are sum, prod"]),
    ("a mean of a prefix", lambda c: c.scan(X, op="avg"), unisono.InvalidOpError,
     ["scan: op avg", "reduce, allreduce, reduce_scatter and reduce_scatterv"]),
    ("a mean of integers", lambda c: c.allreduce(X.astype(int), op="avg"), unisono.InvalidDatatypeError,
     ["op avg is not defined on datatype int64", "it is on fp16"]),
    ("a location in numbers", lambda c: c.allreduce(X, op="minloc"), unisono.InvalidDatatypeError,
     ["op minloc is not defined on datatype fp64", "it is on fp32_int32, fp64_int32"]),
    ("two dtypes", lambda c: c.allreduce(X, np.zeros(4, np.float32)), unisono.InvalidDatatypeError,
     ["src has dtype float64", "dst float32"]),
    ("op", lambda c: c.allreduce(X, op="xor"), unisono.InvalidOpError, ["'xor'", "sum, prod, min, max, logical_and"]),
    ("radix", lambda c: c.bcast(X.copy(), algorithm="knomial:1"), unisono.InvalidArgumentError,
     ['radix of the algorithm "knomial" is "1"', "2 to 255"]),
    ("no radix", lambda c: c.bcast(X.copy(), algorithm="linear:2"), unisono.InvalidArgumentError,
     ['"linear" has no radix']),
    ("root", lambda c: c.bcast(X.copy(), root=2), unisono.InvalidRootError, ["root 2", "ranks 0 to 1"]),
    ("negative root", lambda c: c.reduce(X, root=-1), unisono.InvalidRootError, ["root -1", "ranks 0 to 1"]),
    ("peer", lambda c: c.send(X, 9), unisono.InvalidRootError, ["peer 9", "ranks 0 to 1"]),
    ("tag", lambda c: c.send(X, 0, tag=-3), unisono.InvalidArgumentError, ["tag -3", "0 to 2147483647"]),
    ("read-only", lambda c: c.bcast(frozen()), unisono.ReadOnlyBufferError, ["buffer is read-only", "writable"]),
    ("read-only bytes", lambda c: c.bcast(b"abcd"), unisono.ReadOnlyBufferError, ["buffer is read-only"]),
    ("a window that is not contiguous", lambda c: c.window(np.zeros((4, 4))[:, 1]), unisono.InvalidArgumentError,
     ["window (shape (4,), strides (32,)) is not contiguous", "in place"]),
    ("a list to write to", lambda c: c.allreduce([1, 2], [0, 0]), unisono.InvalidArgumentError,
     ["dst is a list", "NumPy array"]),
    ("a list of texts", lambda c: c.allgather(["a", "b"]), unisono.InvalidArgumentError,
     ["src is a list", "dtype <U1", "bcast_object"]),
    ("a list of unequal lists", lambda c: c.allgather([[1, 2], [3]]), unisono.InvalidArgumentError,
     ["src is a list of which NumPy makes no array"]),
    ("a large integer", lambda c: c.allreduce(2**70), unisono.InvalidArgumentError,
     ["src is a int", "dtype object", "64 bits"]),
    ("a list of other numbers", lambda c: c.allreduce([1, 2], np.zeros(2)), unisono.InvalidDatatypeError,
     ["src has dtype int64 and dst float64"]),
    ("one element several times", lambda c: c.bcast(np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))),
     unisono.InvalidArgumentError, ["buffer (shape (3,), strides (0,))", "share their memory"]),
    ("nothing", lambda c: c.allreduce(None), unisono.InvalidArgumentError, ["src is missing"]),
    ("overlap", lambda c: (lambda z: c.allreduce(z[:4], z[2:6]))(np.zeros(8)), unisono.OverlappingBuffersError,
     ["overlap", "in-place"]),
    ("algorithm", lambda c: c.allreduce(X, algorithm="rnig"), unisono.UnknownAlgorithmError,
     ['"rnig"', "ring", "recursive_doubling"]),
    ("blocks", lambda c: c.alltoall(np.zeros(5)), unisono.InvalidCountError, ["5 elements", "multiple of the 2 ranks"]),
    ("number of counts", lambda c: c.allgatherv(X, None, [4, 4, 4]), unisono.InvalidCountError,
     ["3 entries", "each of the 2 ranks"]),
    ("negative entry", lambda c: c.allgatherv(X, None, [4, -4]), unisono.InvalidCountError, ["counts[1] is -4"]),
    ("a count beyond 64 bits", lambda c: c.allgatherv(X, np.zeros(8), [4, 1 << 64]), unisono.InvalidCountError,
     ["allgatherv: counts[1] is 18446744073709551616", "0 to 1099511627775 elements"]),
    ("a place beyond 64 bits", lambda c: c.allgatherv(X, np.zeros(8), [4, 4], displacements=[0, 1 << 64]),
     unisono.InvalidCountError, ["allgatherv: displacements[1] is 18446744073709551616", "0 to 1099511627775"]),
    ("a place before 64 bits", lambda c: c.alltoallv(X, None, [2, 2], [2, 2], send_displacements=[-(1 << 70), 0]),
     unisono.InvalidCountError, [f"alltoallv: send_displacements[0] is {-(1 << 70)}", "0 to 1099511627775"]),
    ("huge counts without a destination", lambda c: c.allgatherv(X, None, [1 << 62, 1 << 62]),
     unisono.InvalidCountError, [f"allgatherv: counts[0] is {1 << 62}", "0 to 1099511627775"]),
    ("a huge place without a destination", lambda c: c.allgatherv(X, None, [4, 4], displacements=[0, (1 << 63) - 1]),
     unisono.InvalidCountError, [f"allgatherv: displacements[1] is {(1 << 63) - 1}", "0 to 1099511627775"]),
    ("huge counts of pairs", lambda c: c.alltoallw(X, X.copy(), [1, 1 << 62], ["f8"] * 2, [1, 1], ["f8"] * 2),
     unisono.InvalidCountError, [f"alltoallw: send_counts[1] is {1 << 62}", "0 to 1099511627775"]),
    ("counts of large elements by pairs",
     lambda c: c.alltoallw(X, X.copy(), [1, 1 << 39], ["S16777216"] * 2, [1, 1], ["f8"] * 2),
     unisono.InvalidCountError, [f"alltoallw: send_counts[1] is {1 << 39}", "0 to 65535 elements of |S16777216"]),
    ("a destination beyond any memory", lambda c: c.allgatherv(np.zeros(4, "S1024"), None, [4, (1 << 40) - 1]),
     unisono.NoMemoryError, ["allgatherv: dst is to be made", f"{((1 << 40) + 3) * 1024} bytes", "|S1024"]),
    ("a destination beyond any array", lambda c: c.allgatherv(np.zeros(1, "S2147483647"), None, [(1 << 40) - 1] * 2),
     unisono.NoMemoryError, ["allgatherv: dst is to be made", "|S2147483647"]),
    ("a neighbour beyond 64 bits", lambda c: c.graph([0, 1 << 64], []), unisono.InvalidArgumentError,
     ["graph: sources[1] is 18446744073709551616", "64 bits"]),
    ("overlapping blocks", lambda c: c.allgatherv(X, np.zeros(8), [4, 4], displacements=[0, 3]),
     unisono.OverlappingBuffersError, ["ranks 0 and 1 overlap"]),
    ("destination off the root", lambda c: c.scatter(None, root=1 - c.rank, in_place=True),
     unisono.InvalidArgumentError, ["dst is missing", "the block of this rank"]),
    ("root of a scatter without destination", lambda c: c.scatter(None, root=2), unisono.InvalidRootError,
     ["scatter: no dst was given", "root 2", "ranks 0 to 1"]),
    ("option of a scatter without destination", lambda c: c.scatter(X, root=c.rank, algorithm=7),
     unisono.InvalidArgumentError, ["algorithm is 7"]),
    ("sendrecv in place", lambda c: (lambda z: c.sendrecv(z, 1 - c.rank, z))(np.zeros(4)),
     unisono.InvalidArgumentError, ["sendrecv has no in-place form"]),
    ("sendrecv of overlapping buffers", lambda c: (lambda z: c.sendrecv(z[:4], 1 - c.rank, z[2:6]))(np.zeros(8)),
     unisono.OverlappingBuffersError, ["sendrecv: src (32 bytes) and dst (32 bytes) overlap"]),
    ("sendrecv to nobody", lambda c: c.sendrecv(X, 2), unisono.InvalidRootError, ["send: peer 2", "ranks 0 to 1"]),
    ("sendrecv from nobody", lambda c: c.sendrecv(X, 1 - c.rank, None, 9), unisono.InvalidRootError,
     ["recv: peer 9", "ranks 0 to 1"]),
    ("sendrecv with a tag", lambda c: c.sendrecv(X, 1 - c.rank, recv_tag=-1), unisono.InvalidArgumentError,
     ["recv: tag -1"]),
    ("sendrecv by an algorithm", lambda c: c.sendrecv(X, 1 - c.rank, algorithm="ring"), unisono.UnknownAlgorithmError,
     ["sendrecv", "'ring'", "none to choose from"]),
    ("sendrecv that waits", lambda c: c.sendrecv(X, 1 - c.rank, start=False), unisono.InvalidArgumentError,
     ["start=False"]),
    ("sendrecv of nothing", lambda c: c.sendrecv(None, 1 - c.rank), unisono.InvalidArgumentError, ["src is missing"]),
    ("a long name", lambda c: c.dup(name="n" * 33), unisono.InvalidArgumentError, ["33 characters", "up to 32"]),
    ("a name of two lines", lambda c: c.dup(name="a\nb"), unisono.InvalidArgumentError, ["code 10", "ASCII"]),
    ("a number as name", lambda c: setattr(c, "name", 3), unisono.InvalidArgumentError, ["name is 3", "text"]),
    ("half a character as name", lambda c: c.dup(name="a\udc80"), unisono.InvalidArgumentError, ["ASCII"]),
    ("a name with a zero", lambda c: c.dup(name="a\0b"), unisono.InvalidArgumentError, ["ASCII"]),
    ("timeout", lambda c: c.barrier(timeout=-1), unisono.InvalidArgumentError, ["timeout is -1"]),
    ("not a time", lambda c: c.barrier(timeout=math.nan), unisono.InvalidArgumentError, ["timeout is nan", "10 years"]),
    ("no timeout", lambda c: c.set_timeout(0), unisono.InvalidArgumentError, ["more than 0 s"]),
    ("option", lambda c: c.barrier(colour=1), TypeError, ["colour", "algorithm, timeout"]),
    ("in place", lambda c: c.copy(unisono.IN_PLACE, X.copy()), unisono.InvalidArgumentError, ["src is missing"]),
    ("colour", lambda c: c.split(-2), unisono.InvalidArgumentError, ["colour is -2", "None"]),
    ("freeing the world", lambda c: c.free(), unisono.InvalidArgumentError, ["belongs to its context"]),
    ("no program file", lambda c: unisono.Program.parse(b"unisono program 1\nranks 2\nrank 1\nend\n"),
     unisono.MalformedProgramError, ["begins with", "not with the letters UPRG"]),
    ("program that stops", lambda c: unisono.Program.parse(PROGRAM[:15]), unisono.MalformedProgramError,
     ["15 bytes", "at least 20"]),
    ("program that was changed", lambda c: unisono.Program.parse(PROGRAM[:-9] + b"\1" + PROGRAM[-8:]),
     unisono.MalformedProgramError, ["checksum", "the contents have"]),
    ("program of another version", lambda c: unisono.Program.parse(PROGRAM[:4] + b"\2" + PROGRAM[5:]),
     unisono.MalformedProgramError, ["version 2", "reads version 1"]),
    ("program as text", lambda c: unisono.Program.parse("UPRG"), unisono.InvalidArgumentError, ["is a str", "bytes"]),
    ("program for others", lambda c: c.run_program(unisono.Program.parse(PROGRAM)),
     unisono.UnsupportedError, ["for 1 ranks", "has 2"]),
    ("program of no kind", lambda c: c.run_program(3), unisono.InvalidArgumentError,
     ["program is a int", "unisono.Program"]),
    ("bool as root", lambda c: c.bcast(X.copy(), root=True), unisono.InvalidArgumentError, ["root is True", "integer"]),
    ("float as root", lambda c: c.bcast(X.copy(), root=0.0), unisono.InvalidArgumentError, ["root is 0.0", "integer"]),
    ("float as peer", lambda c: c.send(X, 1.5), unisono.InvalidArgumentError, ["peer is 1.5", "integer"]),
    ("float as tag", lambda c: c.send(X, 0, tag=1.0), unisono.InvalidArgumentError, ["tag is 1.0", "integer"]),
    ("text as offset", lambda c: c.put(X, 0, offset="8"), unisono.InvalidArgumentError, ["offset is '8'", "integer"]),
    ("huge root", lambda c: c.bcast(X.copy(), root=2**80), unisono.InvalidArgumentError, [f"root is {2**80}", "64"]),
    ("float as count", lambda c: c.allreduce(X, count=2.0), unisono.InvalidArgumentError, ["count is 2.0", "integer"]),
    ("bool as count", lambda c: c.allreduce(X, count=True), unisono.InvalidArgumentError, ["count is True", "integer"]),
    ("huge number as count", lambda c: c.allreduce(X, count=2**64), unisono.InvalidArgumentError,
     [f"count is {2**64}", "64"]),
    ("float counts", lambda c: c.allgatherv(X, None, [4.0, 4.0]), unisono.InvalidCountError,
     ["counts is [4.0, 4.0]", "sequence of integers"]),
    ("one number as counts", lambda c: c.allgatherv(X, None, 4), unisono.InvalidCountError,
     ["counts is 4", "sequence of integers"]),
    ("counts missing", lambda c: c.allgatherv(X, None, None), unisono.InvalidArgumentError, ["counts", "2 ranks"]),
    ("endless timeout", lambda c: c.barrier(timeout=math.inf), unisono.InvalidArgumentError,
     ["timeout is inf", "10 years"]),
    ("text as timeout", lambda c: c.barrier(timeout="3"), unisono.InvalidArgumentError, ["timeout is '3'", "seconds"]),
    ("endless default timeout", lambda c: c.set_timeout(math.inf), unisono.InvalidArgumentError, ["inf", "10 years"]),
    ("NaN as default timeout", lambda c: c.set_timeout(math.nan), unisono.InvalidArgumentError, ["nan", "10 years"]),
    ("big-endian", lambda c: c.allreduce(X.astype(">f8")), unisono.InvalidDatatypeError,
     [">f8", "byte order", "astype"]),
    ("objects", lambda c: c.bcast(np.array([1, "a"], object)), unisono.InvalidDatatypeError,
     ["buffer has dtype object", "another process", "array.astype('float64')", "pickle.dumps"]),
    ("a masked source", lambda c: c.allreduce(masked()), unisono.InvalidArgumentError,
     ["allreduce: src is a masked array", "array.filled("]),
    ("a masked destination", lambda c: c.copy(X, masked()[::-1]), unisono.InvalidArgumentError,
     ["copy: dst is a masked array", "array.filled("]),
    ("a masked message", lambda c: c.send(masked(), 1 - c.rank), unisono.InvalidArgumentError,
     ["send: src is a masked array"]),
    ("masked structures", lambda c: c.bcast(np.ma.array([(1, 2.0)], mask=[(False, True)], dtype="i4,f4")),
     unisono.InvalidArgumentError, ["bcast: ", "is a masked array"]),
    ("the masked number", lambda c: c.allreduce(np.ma.masked), unisono.InvalidArgumentError, ["src is a masked array"]),
    ("a window of objects", lambda c: c.window(np.array([None])), unisono.InvalidDatatypeError,
     ["window: ", "dtype object", "another process"]),
    ("structures with objects", lambda c: c.allgather(np.zeros(2, "i4,O")), unisono.InvalidDatatypeError,
     ["src has dtype [('f0', '<i4'), ('f1', 'O')]", "another process"]),
    ("objects by pairs", lambda c: c.alltoallw(np.zeros(2, object), np.zeros(2, object), [1, 1], "OO", [1, 1], "OO"),
     unisono.InvalidDatatypeError, ["dst has dtype object", "another process"]),
    ("long complex", lambda c: c.allreduce(np.zeros(2, np.clongdouble)), unisono.InvalidDatatypeError, ["complex256"]),
    ("a number to write to", lambda c: c.bcast(np.float64(3)), unisono.InvalidArgumentError,
     ["buffer is a float64", "array"]),
    ("nothing to broadcast", lambda c: c.bcast(None), unisono.InvalidArgumentError, ["buffer is missing"]),
    ("a list to broadcast", lambda c: c.bcast([1, 2]), unisono.InvalidArgumentError, ["bcast: buffer is a list"]),
    ("the tag of a probe", lambda c: c.probe(tag=-5), unisono.InvalidArgumentError,
     ["probe: tag -5", "0 to 2147483647, and any tag is -2000"]),
    ("the tag of a look", lambda c: c.iprobe(tag=-5), unisono.InvalidArgumentError,
     ["iprobe: tag -5", "any tag is -2000"]),
    ("the source of a look", lambda c: c.iprobe(source=2), unisono.InvalidRootError, ["iprobe: source 2 was given"]),
    ("the tag of a receive", lambda c: c.recv(X.copy(), 0, tag=-5), unisono.InvalidArgumentError,
     ["recv: tag -5", "0 to 2147483647, and any tag is -2000"]),
    ("nothing to receive into", lambda c: c.recv(None, 0), unisono.InvalidArgumentError, ["dst is missing"]),
    ("reversed, prepared", lambda c: c.allreduce_async(X[::-1], start=False), unisono.InvalidArgumentError,
     ["src (shape (4,), strides (-8,)) is not contiguous", "start=False", "pass a contiguous array"]),
    ("a list, prepared", lambda c: c.allreduce_async([1.0], np.zeros(1), start=False), unisono.InvalidArgumentError,
     ["src is a list", "start=False"]),
    ("Fortran order behind another call",
     lambda c: c.bcast(np.zeros((2, 3), order="F"), wait_for=[c.copy_async(X, np.zeros(4))]),
     unisono.InvalidArgumentError, ["buffer (shape (2, 3), strides (8, 16)) is not", "before what the call"]),
    ("behind a call with a packed destination",
     lambda c: c.bcast(X.copy(), wait_for=[c.copy_async(X, np.zeros(8)[::2])]), unisono.InvalidArgumentError,
     ["wait_for[0] has a destination that is not contiguous", "wait for it before"]),
    ("two views of one array", lambda c: (lambda z: c.copy(z[:4], z[3:7]))(np.zeros(8)),
     unisono.OverlappingBuffersError, ["src (32 bytes) and dst (32 bytes) overlap", "disjoint"]),
    ("the same view twice", lambda c: (lambda z: c.allreduce(z[:4], z[:4]))(np.zeros(8)),
     unisono.OverlappingBuffersError, ["overlap", "in-place"]),
    ("algorithm of no name", lambda c: c.allreduce(X, algorithm=7), unisono.InvalidArgumentError,
     ["algorithm is 7", "name"]),
    ("request", lambda c: c.barrier(wait_for=[1]), unisono.InvalidArgumentError, ["wait_for", "Request"]),
    ("one request", lambda c: c.barrier(wait_for=1), unisono.InvalidArgumentError, ["wait_for", "Request"]),
    ("float as colour", lambda c: c.split(0.5), unisono.InvalidArgumentError, ["colour is 0.5", "integer"]),
    ("negative group", lambda c: c.split(0, group_size=-1), unisono.InvalidArgumentError, ["group_size is -1"]),
    ("negative number of a group", lambda c: c.split(0, group=-2), unisono.InvalidArgumentError,
     ["group is -2", "None"]),
    ("text as group", lambda c: c.split(0, group="a"), unisono.InvalidArgumentError, ["group is 'a'"]),
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eager_limit": -1}, ["eager_limit is -1", "0 (default) to"]),
        ({"segment_bytes": 1.5}, ["segment_bytes is 1.5", "integers"]),
        ({"segment_bytes": 3}, ["segment_bytes is 3", "64"]),
        ({"rx_buffer_count": 70000}, ["rx_buffer_count is 70000", "1 to 65536"]),
        ({"timeout": "soon"}, ["timeout is 'soon'", "seconds"]),
        ({"timeout": math.inf}, ["is inf", "10 years"]),
        ({"timeout": math.nan}, ["is nan", "10 years"]),
        ({"size": 0}, ["of 0 ranks", "1 to 1024"]),
        ({"size": 2.0}, ["of 2.0 ranks", "1 to 1024"]),
    ],
    ids=str,
)
def test_bad_settings(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(unisono.InvalidArgumentError) as failure:
        ThreadJob(**({"size": 1} | settings)).run(lambda comm: comm.barrier())
    for word in words:
        assert word in str(failure.value)


def test_a_masked_array_that_masks_nothing_is_an_array() -> None:
    def member(comm: Communicator) -> None:
        for mask in (np.ma.nomask, [False, False]):
            src = np.ma.array([1.0 + comm.rank, 2.0], mask=mask)
            dst = np.ma.array([0.0, 0.0], mask=mask)
            assert comm.allreduce(src, dst) is dst
            np.testing.assert_array_equal(dst, [3.0, 4.0])

    ThreadJob(2, timeout=20).run(member)


def test_arrays_without_axes_are_one_element() -> None:
    def member(comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
        return comm.allreduce(np.array(comm.rank + 1.0)), comm.allgather(np.array(comm.rank + 1.0))

    for total, all_of_them in ThreadJob(2, timeout=20).run(member):
        assert total.shape == ()
        assert total == 3
        np.testing.assert_array_equal(all_of_them, [1, 2])


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q: q.wait("x"), ["timeout is 'x'", "seconds, or None"]),
        (lambda q: q.wait(-1), ["timeout is -1", "seconds, or None"]),
        (lambda q: q.wait(math.nan), ["timeout is nan", "seconds, or None"]),
        (lambda q: unisono.wait_all([q], [1]), ["timeout is [1]", "seconds, or None"]),
        (lambda q: unisono.wait_any(q), ["wait_any: requests is a Request", "pass a list"]),
        (lambda q: unisono.wait_some(q), ["wait_some: requests is a Request", "pass a list"]),
        (lambda q: unisono.wait_all(q), ["wait_all: requests is a Request", "pass a list"]),
        (lambda q: unisono.test_any(None), ["test_any: requests is a NoneType", "pass a list"]),
        (lambda q: unisono.test_all(q), ["test_all: requests is a Request", "pass a list"]),
        (lambda q: unisono.wait_any([q, 3]), ["wait_any: entry 1 is a int"]),
    ],
    ids=range(10),
)
def test_waits_say_what_they_take(call: Callable[[unisono.Request], Any], words: list[str]) -> None:
    def member(comm: Communicator) -> None:
        request = comm.barrier_async()
        with pytest.raises(unisono.InvalidArgumentError) as failure:
            call(request)
        for word in words:
            assert word in str(failure.value)
        request.wait(20)

    ThreadJob(2, timeout=20).run(member)


@pytest.mark.parametrize(
    ("call", "answer", "words"),
    [
        (lambda c: c.recv_async(np.zeros(1), 1, 7), lambda c: c.send(np.ones(1), 0, 7),
         "recv (communicator {}, peer 1, tag 7): "),
        (lambda c: c.recv_async(np.zeros(1), unisono.ANY_SOURCE, unisono.ANY_TAG), lambda c: c.send(np.ones(1), 0, 7),
         "recv (communicator {}, any source, any tag): "),
        (lambda c: c.bcast_async(np.zeros(1), 1), lambda c: c.bcast(np.ones(1), 1), "bcast (communicator {}): "),
    ],
    ids=["recv", "wildcards", "bcast"],
)  # fmt: skip
def test_a_wait_that_ends_says_of_what(
    call: Callable[[Communicator], unisono.Request], answer: Callable[[Communicator], Any], words: str
) -> None:
    there = threading.Event()

    def member(comm: Communicator) -> str:
        part = comm.dup()
        number = re.search(r"Communicator (\d+)", repr(part))
        assert number is not None
        if comm.rank == 0:
            request = call(part)
            with pytest.raises(unisono.DeadlineError) as failure:
                request.wait(0.05)
            there.set()
            np.testing.assert_array_equal(request.wait(20), [1])
            return str(failure.value).replace(words.format(number[1]), "found ")
        there.wait(20)
        answer(part)
        return ""

    told = ThreadJob(2, timeout=20).run(member)[0]
    assert told.startswith("found the call has not completed within 0.05 s; it is still in flight")


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


@pytest.mark.parametrize("n", [5, 200_000], ids=["short", "long"])
def test_a_send_of_a_truncated_message(n: int) -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 1:
            with pytest.raises(unisono.TruncatedError):
                comm.recv(np.zeros(2), 0)
        elif n == 5:
            comm.send(np.arange(n) + 1.0, 1)  # has left before it is found
        else:
            with pytest.raises(unisono.TruncatedError):
                comm.send(np.arange(n) + 1.0, 1)
        assert comm.allreduce(np.array([comm.rank + 1]))[0] == 3

    ThreadJob(2, timeout=20).run(member)


def test_mismatched_calls_are_detected() -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises((unisono.MismatchedCallError, unisono.RevokedError)) as failure:
            comm.allreduce(np.zeros(4 + comm.rank))
        return str(failure.value)

    texts = ThreadJob(2, timeout=20).run(member)
    assert any("count" in text or "4" in text for text in texts)
