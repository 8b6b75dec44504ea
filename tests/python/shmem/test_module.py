"""unisono.shmem, on PEs that are processes: each test is a program that all of them run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from .support import hosts, run

BEGIN = """
import os, signal, sys, time
import numpy as np
import unisono
from unisono import shmem

def raises(kind, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")

with shmem.init(heap="8M") as world:
    me, n = world.my_pe, world.n_pes
    right, left = (me + 1) % n, (me - 1) % n
"""
EVERYWHERE = [["-n", "1"], ["-n", "4"], hosts("a:2,b:1")]


def job(tmp_path: Path, body: str, on: list[str], **environment: str) -> tuple[int, str, str]:
    script = tmp_path / "program.py"
    script.write_text(BEGIN + textwrap.indent(textwrap.dedent(body), "    "))
    done = run(script, on=on, **environment)
    return done.returncode, done.stdout, done.stderr


def name_of(on: list[str]) -> str:
    return "_".join(word for word in on if not word.startswith("--"))


@pytest.mark.parametrize("on", EVERYWHERE, ids=name_of)
def test_random_accesses_agree_with_a_model(tmp_path: Path, on: list[str]) -> None:
    result = job(
        tmp_path,
        """
        slot = 300
        data = shmem.zeros((n, slot), np.int32)  # a row for each origin
        counters = shmem.zeros(3, np.uint64)
        model, counted = np.zeros((n, n, slot), np.int32), np.zeros((n, 3), np.uint64)
        rng = np.random.default_rng(5)  # all PEs draw alike
        for phase in range(15):
            for origin in range(n):
                for turn in range(10):
                    pe, first, last = rng.integers(n), *np.sort(rng.integers(0, slot + 1, 2))
                    values = rng.integers(-(2**31), 2**31, last - first).astype(np.int32) + origin
                    which, add = rng.integers(3), rng.integers(2**40)
                    model[pe, origin, first:last] = values
                    counted[pe, which] += np.uint64(add)
                    if origin == me:
                        shmem.put(data[origin, first:last], values, pe)
                        shmem.atomic_add(counters[which : which + 1], int(add), pe)
                        shmem.fence()
            shmem.barrier_all()
            assert np.array_equal(data, model[me]) and np.array_equal(counters, counted[me])
            pe = rng.integers(n)
            assert np.array_equal(shmem.get(data[0], pe), model[pe, 0])
            shmem.barrier_all()
        if me == 0:
            print("right")
        """,
        on,
    )
    assert result == (0, "right\n", "")


@pytest.mark.parametrize("on", EVERYWHERE, ids=name_of)
def test_signals_waits_atomics_and_teams(tmp_path: Path, on: list[str]) -> None:
    result = job(
        tmp_path,
        """
        box, signals = shmem.zeros(1000), shmem.zeros(2, np.uint64)
        for turn in range(1, 20):
            shmem.put_signal(box, np.arange(1000.0) * turn + me, signals[:1], turn, right)
            shmem.wait_until(signals[:1], ">=", turn)
            assert np.array_equal(box, np.arange(1000.0) * turn + left)
            shmem.barrier_all()
        shmem.put_signal(box[me : me + 1], -1.0, signals[1:], me + 1, 0, how="add")
        if me == 0:
            shmem.wait_until(signals[1:], "==", n * (n + 1) // 2)
            assert (box[:n] == -1).all()
        flags = shmem.zeros(n, np.int64)
        for pe in range(n):
            shmem.atomic_set(flags[me : me + 1], -5 - me, pe)
        assert flags[shmem.wait_until_any(flags, "<", 0)] < 0
        shmem.wait_until(flags, "!=", 0)
        assert flags.tolist() == [-5 - pe for pe in range(n)]
        assert shmem.test(flags, "<=", -5) and not shmem.test(flags, ">", -5)
        word = shmem.array([7.5 + me], np.float32)
        assert shmem.atomic_fetch(word, left) == 7.5 + left
        shmem.barrier_all()
        assert shmem.atomic_swap(word, 2.25, right) == 7.5 + right
        shmem.barrier_all()
        assert word[0] == 2.25
        mine = shmem.array([0b1100], np.uint32)
        assert shmem.atomic_compare_swap(mine, 3, 9, me) == 0b1100 and mine[0] == 0b1100
        assert shmem.atomic_and(mine, 0b0101, me) == 0b1100 and shmem.atomic_or(mine, 1, me) == 0b0100
        assert shmem.atomic_xor(mine, 0b11, me) == 0b0101 and shmem.atomic_fetch_add(mine, 2, me) == 0b0110
        assert mine[0] == 0b1000
        assert world.sum(me) == n * (n - 1) // 2 and isinstance(world.sum(1.5), float)
        assert world.max([me, -me]).tolist() == [n - 1, 0]
        assert world.fcollect([me, 2 * me]).tolist() == [[pe, 2 * pe] for pe in range(n)]
        assert world.broadcast(np.array([me]), n - 1)[0] == n - 1
        assert world.alltoall(np.arange(n) + 10 * me).tolist() == [10 * pe + me for pe in range(n)]
        evens = world.split_strided(0, 2, (n + 1) // 2)
        assert (evens is None) == (me % 2 == 1)
        if evens is not None:
            assert evens.my_pe == me // 2 and evens.translate_pe(evens.n_pes - 1, world) == 2 * (evens.n_pes - 1)
            assert evens.bitwise_or(1 << me) == sum(1 << pe for pe in range(0, n, 2))
            evens.destroy()
        row, column = world.split_2d(2)
        assert (row.my_pe, column.my_pe) == (me % min(2, n), me // min(2, n))
        row.sync()
        there = shmem.peer_array(box, right)
        if there is not None and n > 1:
            there[3] = 1000 + me
        shmem.barrier_all()
        if shmem.peer_array(box, left) is not None and n > 1:
            assert box[3] == 1000 + left
        shmem.free(box)
        assert shmem.empty(1000).ctypes.data == box.ctypes.data
        if me == 0:
            print("right")
        """,
        on,
    )
    assert result == (0, "right\n", "")


def test_wrong_use_raises_before_anything_is_sent(tmp_path: Path) -> None:
    result = job(
        tmp_path,
        """
        box = shmem.zeros((4, 4), np.int32)
        wrong = unisono.InvalidArgumentError
        raises(wrong, "PE 2 was given; there are PEs 0 to 1", shmem.put, box, 1, 2)
        raises(wrong, "is not in symmetric memory", shmem.put, np.zeros(3), 1.0, 0)
        raises(wrong, "is not in symmetric memory", shmem.get, np.zeros(3), 1)
        raises(wrong, "not one behind the other", shmem.put, box[:, 1], 1, 0)
        raises(wrong, "values of shape (3,) were given for a part of shape (4, 4)", shmem.put, box, [1, 2, 3], 0)
        raises(wrong, "out is float64", shmem.get, box, 0, np.zeros(16))
        raises(wrong, "list was given", shmem.put, [1], [1], 0)
        raises(wrong, "the array has 16 elements", shmem.atomic_add, box, 1, 0)
        raises(wrong, "is no value of dtype int32", shmem.atomic_add, box[0, :1], 2**40, 0)
        raises(unisono.InvalidDatatypeError, "float64 was given", shmem.atomic_add, shmem.zeros(1), 1.0, 0)
        raises(unisono.InvalidDatatypeError, "has dtype int16", shmem.wait_until, np.zeros(1, np.int16), "==", 0)
        raises(wrong, "'=' was given; allowed are ==", shmem.wait_until, box[0], "=", 0)
        raises(wrong, "must be one uint64", shmem.put_signal, box, 1, box[0, :1], 1, 0)
        raises(wrong, "allowed are 'set' and 'add'", shmem.put_signal, box, 1, shmem.zeros(1, np.uint64), 1, 0, how="x")
        raises(unisono.NoMemoryError, "no 80000000 bytes left in one piece", shmem.empty, 10_000_000)
        raises(unisono.InvalidDatatypeError, "Python objects", shmem.empty, 3, object)
        raises(wrong, "first axis must have 2 rows", world.alltoall, np.zeros(3))
        raises(wrong, "root 5 was given", world.broadcast, np.zeros(3), 5)
        raises(wrong, "the address is not the begin", shmem.free, box[1])
        team = world.split_strided(0, 1, 2)
        team.destroy()
        raises(wrong, "the team was destroyed", team.sync)
        raises(wrong, "PEs ask for different memory", shmem.empty, 3 + me)
        world.sync()
        shmem.put(box, me, right)
        shmem.barrier_all()
        assert (box == left).all()
        if me == 0:
            print("right")
        """,
        ["-n", "2"],
    )
    assert result == (0, "right\n", "")


def test_after_the_end_arrays_can_be_read_and_calls_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        BEGIN
        + """
    box = shmem.array([1.0 + me])
print(box[0], repr(world))
raises(unisono.InvalidArgumentError, "put: there is no job", shmem.put, box, 1.0, 0)
raises(unisono.InvalidArgumentError, "empty: there is no job", shmem.empty, 3)
"""
    )
    done = run(script, on=["-n", "2"])
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        f"{v} <unisono.shmem.Team, of a job that has ended>" for v in (1.0, 2.0)
    ]


@pytest.mark.parametrize("on", [["-n", "3"], hosts("a,b,a")], ids=name_of)
@pytest.mark.parametrize("call", ["shmem.wait_until(word, '==', 1)", "shmem.barrier_all()", "world.sum(1)"])
def test_a_pe_that_is_killed_is_named(tmp_path: Path, call: str, on: list[str]) -> None:
    _, lines, errors = job(
        tmp_path,
        f"""
        word = shmem.zeros(1, np.int64)
        if me == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        begin = time.monotonic()
        try:
            {call}
        except (unisono.PeerDeadError, unisono.RevokedError) as error:
            assert time.monotonic() - begin < 8
            print("named", "PE 1" in str(error) or "rank 1" in str(error), flush=True)
        time.sleep(0.5)
        os._exit(0)
        """,
        [*on, "--keep-going"],
    )
    assert lines == "named True\n" * 2, errors


def test_a_wait_can_be_interrupted_and_has_a_deadline(tmp_path: Path) -> None:
    result = job(
        tmp_path,
        """
        word = shmem.zeros(1, np.int64)
        def stop(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        raises(KeyboardInterrupt, "", shmem.wait_until, word, "==", 1)
        raises(unisono.DeadlineError, "wait_until: waited 0.5 s", shmem.wait_until, word, "==", 1)
        print("right")
        """,
        ["-n", "1"],
        UNISONO_SHMEM_TIMEOUT_S="0.5",
    )
    assert result == (0, "right\n", "")


def test_an_exception_ends_the_others(tmp_path: Path) -> None:
    status, _, errors = job(
        tmp_path,
        """
        if me == 1:
            raise RuntimeError("mine")
        shmem.barrier_all()
        """,
        ["-n", "2"],
    )
    assert status != 0
    assert re.search("RuntimeError: mine", errors)
