"""The systems of `unisono bench` besides those called from C: the limit's ways, other states of Unisono, Python."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from bench_support import C_OPS, FORMS, OPS, ROOT, bench, block, lines_of, need_peer, running
from unisono.bench import launch
from unisono.bench.launch import Build, find_build, programs
from unisono.bench.machine import Placement
from unisono.bench.systems import System, SystemFailedError
from unisono.errors import InvalidArgumentError

LIBRARY = "libunisono.so.1"


# ------------------------------------------------------------------------------------------------------- the limit


@pytest.mark.parametrize("way", ["share", "copy", "cells"])
def test_every_way_of_the_limit_moves_the_data(way: str, tmp_path: Path) -> None:
    for damage in (False, True):
        with running("limit", 2, tmp_path, damage=damage) as limit:
            for op in (*OPS, *C_OPS):
                for count in (1, 33, 70_001):
                    outcome = block(limit, op, count=count, dtype="int64", algorithm=way)
                    assert outcome.algorithm is None, "the kernel of tests allows copies"
                    assert outcome.verified is not damage, (op, count, damage)


@pytest.mark.parametrize("way", ["copy", "cells"])
@pytest.mark.parametrize(("ranks", "cores"), [(3, 1), (5, 1), (4, 2)])
def test_processes_of_the_limit_do_the_parts_of_more_ranks(way: str, ranks: int, cores: int, tmp_path: Path) -> None:
    own = tuple(sorted(os.sched_getaffinity(0)))[:cores]
    if len(own) < cores:
        pytest.skip(f"{cores} cores are needed")
    limit = System("limit", Placement(ranks, own, cores), tmp_path)
    try:
        for op in (*OPS, *C_OPS):
            assert block(limit, op, count=10_001, dtype="fp64", algorithm=way).verified, op
    finally:
        limit.stop()


def test_refused_copies_are_told(tmp_path: Path) -> None:
    with running("limit", 2, tmp_path, options=["--refuse-copies"]) as limit:
        assert block(limit, "bcast", count=1000, algorithm="copy").algorithm == "refused"
        assert block(limit, "bcast", count=1000, algorithm="cells").verified
    with running("limit", 2, tmp_path) as limit, pytest.raises(SystemFailedError, match="there is no limit bus"):
        block(limit, "bcast", algorithm="bus")


def test_without_copies_the_limit_is_that_of_cells(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    arguments = ["--op", "pingpong", "--sizes", "64K", "--peers", "none", "--json", file]
    done = bench(*arguments, "--refuse-copies")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refuses copies between processes here" in done.stdout
    lines = [line for line in lines_of(file) if line["op"] == "pingpong"]
    assert [(line["system"], line["kernel_copies"]) for line in lines] == [("limit", False), ("unisono", False)]
    assert lines[0]["algorithm"] == "cells"
    done = bench(*arguments)
    assert "refuses copies" not in done.stdout
    assert {line["kernel_copies"] for line in lines_of(file) if line["op"] == "pingpong"} == {True}


# ------------------------------------------------------------------------------------------- other states of Unisono


def copied_build(folder: Path) -> Path:
    """A build folder with nothing but the library."""
    place = folder / "build" / "release"
    place.mkdir(parents=True)
    shutil.copy(programs().parent / LIBRARY, place / LIBRARY)
    return place


def test_a_build_runs_its_own_library(tmp_path: Path) -> None:
    place = copied_build(tmp_path / "checkout")
    for folder in (tmp_path / "checkout", place):
        build = find_build("before", folder)
        assert build == Build(place, None)
        with running("before", 2, tmp_path, build=build) as before:
            assert before.is_unisono
            assert block(before, "allreduce", count=5).verified
            maps = [Path(f"/proc/{pid}/maps").read_text() for pid in before.pids]
        assert all(f"{place}/{LIBRARY}" in text for text in maps)
        assert not any(f"{programs().parent}/{LIBRARY}" in text for text in maps)


def test_a_build_that_does_not_run_is_noticed(tmp_path: Path) -> None:
    """Its library is not there, so the ranks would find this one."""
    build = Build(tmp_path / "empty", None)
    with (
        pytest.raises(SystemFailedError, match=r"rank \d does not run what is in"),
        running("before", 2, tmp_path, build=build),
    ):
        pass


def test_a_build_without_its_package_is_refused_from_python(tmp_path: Path) -> None:
    build = find_build("before", copied_build(tmp_path))
    launch.require_interface("before", build, "c")
    with pytest.raises(InvalidArgumentError, match="its Python package is not built"):
        launch.require_interface("before", build, "python")
    assert find_build("before", ROOT).serves("python") == ROOT / "python"


@pytest.mark.parametrize("interface", ["c", "python"])
def test_against_another_state(interface: str, tmp_path: Path) -> None:
    file = tmp_path / "figures"
    arguments = ["--op", "allreduce,barrier", "--sizes", "4", "--peers", f"before={ROOT}", "--json", file, "--guard"]
    done = bench(*arguments, *(["--python"] if interface == "python" else []))
    assert "Against before: geometric mean" in done.stdout, done.stdout + done.stderr
    assert "of 2 cells" in done.stdout
    ours = [line for line in lines_of(file) if line["system"] == "unisono"]
    for line in ours:
        low, high = line["ratio_ci"]["before"]
        assert 0 < low <= line["ratio"]["before"] <= high
    kept = "wholly above 1.05:" not in done.stdout and "too many to say more" not in done.stdout
    mean = (ours[0]["ratio"]["before"] * ours[1]["ratio"]["before"]) ** 0.5
    assert done.returncode == (0 if kept and mean <= 1.02 else 1), done.stdout
    theirs = [line for line in lines_of(file) if line["system"] == "before"]
    assert [(line["interface"], line["network"], line["verified"]) for line in theirs] == [(interface, "shm", True)] * 2


# -------------------------------------------------------------------------------------------------------- from Python


@pytest.mark.parametrize(("name", "ranks"), [("unisono", 2), ("unisono", 3), ("mpi4py", 2)])
def test_every_operation_from_python_is_verified(name: str, ranks: int, tmp_path: Path) -> None:
    if name == "mpi4py":
        need_peer("mpi4py")
    for damage in (False, True):
        with running(name, ranks, tmp_path, interface="python", damage=damage) as system:
            for op, counts in FORMS:
                for count, dtype, buffers in (
                    (1, "int32", "malloc"),
                    (500, "fp32", "malloc"),
                    (7, "fp64", "allocated"),
                ):
                    if damage and count < 500:
                        continue  # with changing counts a rank may get nothing
                    outcome = block(system, op, counts=counts, count=count, dtype=dtype, buffers=buffers)
                    assert outcome.verified is not damage, (op, counts, count, dtype, buffers, damage)
            assert block(system, "barrier", count=0).verified
            sampled = block(system, "allreduce", calls=1003, batch=10)
            assert 0 < sampled.median <= sampled.p99 <= sampled.seconds


def test_a_failure_in_python_is_told_in_the_words_of_the_system(tmp_path: Path) -> None:
    with (
        running("unisono", 2, tmp_path, interface="python") as system,
        pytest.raises(SystemFailedError, match="no_such_thing"),
    ):
        block(system, "allreduce", algorithm="no_such_thing")


def test_python_side_by_side(tmp_path: Path) -> None:
    need_peer("mpi4py")
    file = tmp_path / "figures"
    done = bench("--python", "--op", "allreduce,gatherv", "--sizes", "64", "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    ours = [line for line in lines_of(file) if line["system"] == "unisono"]
    assert [(line["op"], line["counts"], line["interface"]) for line in ours] == [
        ("allreduce", None, "python"),
        ("gatherv", "equal", "python"),
        ("gatherv", "changing", "python"),
    ]
    assert all(line["ratio"]["mpi4py"] > 0 and line["verified"] for line in ours)
