"""`unisono bench` as a user runs it, and what its processes do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest
from bench_support import C_FORMS, C_OPS, FIELDS, OPS, ROOT, SECONDS, bench, block, need_peer, running
from unisono.bench import launch, plan
from unisono.bench.launch import peer_is_there, programs
from unisono.bench.systems import SystemFailedError
from unisono.cli import main


def test_end_to_end(tmp_path: Path) -> None:
    file, picture = tmp_path / "figures", tmp_path / "picture.svg"
    done = bench("--op", "allreduce,barrier", "--sizes", "4,1K", "--peers", "none", "--json", file, "--plot", picture)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(set(line) == FIELDS for line in lines)
    # The machine alone: a line, and one core at each size.
    alone = [(line["op"], line["bytes"]) for line in lines if line["system"] == "limit" and line["op"] != "allreduce"]
    assert alone[:5] == [("cache_line", 64), ("memcpy", 4), ("memcpy", 1024), ("reduce", 4), ("reduce", 1024)]
    ours = [line for line in lines if line["system"] == "unisono"]
    assert [(line["op"], line["bytes"]) for line in ours] == [("allreduce", 4), ("allreduce", 1024), ("barrier", 0)]
    for line in ours:
        assert line["verified"] is True
        assert line["auto"] is True
        assert line["iterations"] > 0
        assert line["median_us"] > 0
        assert line["p99_us"] > 0  # of a pass of its own, so that either may be the larger
        assert line["limit_ratio"] > 0
        assert (line["ranks"], line["network"], line["cycles"], line["ratio"]) == (2, "shm", None, {})
        assert (line["schema"], line["interface"], line["buffers"], line["counts"]) == (2, "c", "malloc", None)
        assert line["processor"]["name"]
        assert line["cache_line_ns"] > 0
    assert "; a cache line takes " in done.stdout
    assert ours[0]["processor"]["name"] in done.stdout
    assert "rounds were disturbed" in done.stdout
    assert "All results verified" in done.stdout
    root = xml.etree.ElementTree.parse(picture).getroot()
    assert root.tag.endswith("svg")
    assert sum(element.tag.endswith("circle") for element in root.iter()) == 4  # two sizes, of two systems


def test_more_ranks_than_cores(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    core = str(min(os.sched_getaffinity(0)))
    done = subprocess.run(
        [
            "taskset",
            "-c",
            core,
            sys.executable,
            "-m",
            "unisono",
            "bench",
            "--quick",
            "--ranks",
            "3",
            "--op",
            "reduce,barrier",
            "--sizes",
            "64",
            "--peers",
            "none",
            "--json",
            str(file),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 ranks, not bound: ranks share cores (1 cores usable)" in done.stdout
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    # There is no second core for a line to travel to.
    assert "cache_line" not in {line["op"] for line in lines}
    ours = [line for line in lines if line["system"] == "unisono"]
    assert [(line["op"], line["ranks"], line["verified"]) for line in ours] == [
        ("reduce", 3, True),
        ("barrier", 3, True),
    ]


def test_a_named_algorithm(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    done = bench("--op", "allreduce", "--sizes", "1K", "--peers", "none", "--algorithm", "ring", "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    ours = [json.loads(line) for line in file.read_text().splitlines() if '"unisono"' in line]
    assert [(line["algorithm"], line["auto"]) for line in ours] == [("ring", False)]


def test_put_get_and_calls_in_flight(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    arguments = ["--sizes", "8,64K", "--buffers", "malloc,allocated", "--peers", "none", "--json", file]
    done = bench("--op", "put,get,inflight", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(set(line) == FIELDS and line["verified"] for line in lines)
    ours = {(line["op"], line["bytes"], line["buffers"]): line for line in lines if line["system"] == "unisono"}
    assert len(ours) == 12
    assert {line["algorithm"] for key, line in ours.items() if key[0] != "inflight"} == {None}
    limits = {line["op"]: line["algorithm"] for line in lines if line["system"] == "limit" and line["bytes"] == 8}
    assert limits["put"] == limits["get"] == "line"  # a line has its way to go for a few bytes
    # Calls in flight are compared with the same calls, each waited for.
    assert [line["ratio"].keys() for key, line in ours.items() if key[0] == "inflight"] == 4 * [{"waited"}]
    assert sum(line["system"] == "waited" for line in lines) == 4
    assert "× waited" in done.stdout


def test_the_operations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == list(plan.OPS)
    assert "window" in said


def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    done = bench("--op", "allreduce", "--sizes", "1K", "--peers", "none", "--damage", "--json", file)
    assert done.returncode == 1
    assert "WRONG RESULT" in done.stdout
    ours = [json.loads(line) for line in file.read_text().splitlines() if '"unisono"' in line]
    assert [line["verified"] for line in ours] == [False]


@pytest.mark.parametrize("system", ["unisono", "openmpi", "mpich"])
def test_peers_side_by_side(system: str, tmp_path: Path) -> None:
    if system == "unisono":
        need_peer("openmpi")
        need_peer("mpich")
        file = tmp_path / "figures"
        done = bench("--op", "bcast", "--sizes", "64", "--peers", "openmpi,mpich", "--json", file)
        assert done.returncode == 0, done.stdout + done.stderr
        ours = next(json.loads(line) for line in file.read_text().splitlines() if '"unisono"' in line)
        for peer in ("openmpi", "mpich"):
            low, high = ours["ratio_ci"][peer]
            assert 0 < low <= ours["ratio"][peer] <= high
        return
    need_peer(system)
    # Every operation of a peer is right, and every operation's check finds an error.
    with running(system, 2, tmp_path) as peer:
        wrong = [form for form in C_FORMS if not block(peer, form[0], counts=form[1], count=17).verified]
    assert wrong == []
    with running(system, 2, tmp_path, damage=True) as peer:
        unnoticed = [form for form in C_FORMS if block(peer, form[0], counts=form[1], count=17).verified]
    assert unnoticed == []


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("dtype", ["int32", "int64", "fp32", "fp64"])
def test_every_operation_is_verified(ranks: int, dtype: str, tmp_path: Path) -> None:
    with running("unisono", ranks, tmp_path) as system:
        for op, counts in C_FORMS:
            for count in (1, 1000, 20_001):
                for buffers in ("allocated", "registered", "malloc"):
                    outcome = block(system, op, counts=counts, count=count, dtype=dtype, buffers=buffers, seed=count)
                    assert outcome.verified, (op, counts, count, buffers)
        assert block(system, "barrier", count=0).verified


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_check_can_fail(ranks: int, tmp_path: Path) -> None:
    with running("unisono", ranks, tmp_path, damage=True) as system:
        unnoticed = [
            (op, count) for op in (*OPS, *C_OPS) for count in (1, 500) if block(system, op, count=count).verified
        ]
        unnoticed += [form for form in C_FORMS if block(system, form[0], counts=form[1], count=500).verified]
    assert unnoticed == []


def test_single_calls_are_looked_at(tmp_path: Path) -> None:
    with running("unisono", 2, tmp_path) as system:
        outcome = block(system, "allreduce", calls=1003, batch=10)
    assert 0 < outcome.median <= outcome.p99 <= outcome.seconds


def test_waiting_systems_use_no_core(tmp_path: Path) -> None:
    def processor_seconds(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    names = ["unisono", *(peer for peer in ("openmpi", "mpich") if peer_is_there(peer))]
    for name in names:
        with running(name, 2, tmp_path) as system:
            block(system, "allreduce")
            pids = system.pids
            before = [processor_seconds(pid) for pid in pids]
            time.sleep(0.5)
            after = [processor_seconds(pid) for pid in pids]
        assert len(pids) == 2
        assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([0.0, 0.0], abs=0.03), name


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    for name in ["unisono", "limit", *(peer for peer in ("openmpi", "mpich") if peer_is_there(peer))]:
        with running(name, 2, tmp_path) as system:
            pids = system.pids
        deadline = time.monotonic() + 10
        while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [pid for pid in pids if alive(pid)] == [], name


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_block_that_takes_too_long_ends(tmp_path: Path) -> None:
    with running("unisono", 2, tmp_path) as system:
        pids = system.pids
        begin = time.monotonic()
        with pytest.raises(SystemFailedError, match="no answer in time from rank 0, 1"):
            system.block(op="allreduce", dtype="fp32", count=1, buffers="malloc", counts="equal", algorithm=None,
                         warmup=0, calls=2_000_000_000, batch=0, seed=1, seconds=0.5)  # fmt: skip
        assert time.monotonic() - begin < 10
        time.sleep(0.1)
        assert [pid for pid in pids if alive(pid)] == []
        # The next block finds a new job.
        assert block(system, "allreduce").verified


def test_a_failure_is_told_in_the_words_of_the_system(tmp_path: Path) -> None:
    with running("unisono", 2, tmp_path) as system, pytest.raises(SystemFailedError, match="no_such_thing"):
        block(system, "allreduce", algorithm="no_such_thing")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "1"], "allowed are 2 to"),
        (["--op", "allreduec"], "there are pingpong"),
        (["--sizes", "4:x"], "is no size"),
        (["--sizes", "2", "--op", "bcast"], "multiples of 4"),
        (["--buffers", "plain"], "there are malloc, registered, allocated"),
        (["--counts", "odd"], "there are equal, changing"),
        (["--peers", "mpi4py"], "there are openmpi, mpich"),
        (["--python", "--peers", "openmpi"], "there are mpi4py"),
        (["--peers", "before=/nonexistent"], "there is no libunisono.so"),
        (["--peers", "unisono=/tmp"], "a name is of small letters"),
        (["--peers", "none", "--guard"], "given as --peers NAME=DIR"),
        (["--dtype", "fp16"], "there are int32"),
        (["--peers", "gloo"], "there are openmpi, mpich"),
        (["--op", "bcast,reduce", "--algorithm", "binomial"], "goes with one"),
        (["--op", "bcast", "--algorithm", "ring"], "there are linear"),
        (["--op", "pingpong", "--algorithm", "direct"], "no algorithms"),
        (["--op", "put", "--algorithm", "direct"], "no algorithms"),
        (["--op", "inflight", "--algorithm", "binomial"], "there are"),
        (["--python", "--op", "put"], "measured from C only"),
        (["--json", "/nonexistent/file", "--op", "barrier", "--peers", "none"], "cannot be written"),
    ],
)
def test_arguments_that_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_the_benchmark_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNISONO_BENCH_DIR", str(tmp_path))
    assert main(["bench", "--peers", "none"]) == 2
    assert "make build" in capsys.readouterr().err


def test_an_installed_package_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("UNISONO_BENCH_DIR", raising=False)
    monkeypatch.setattr(launch, "PACKAGE", tmp_path / "site-packages" / "unisono")
    assert main(["bench", "--quick"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "needs programs that measure, which an installed package does not have: in a checkout of Unisono" in said
    assert "site-packages" not in said


def test_a_long_temporary_folder_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of sockets are short."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert main(["bench", "--quick", "--peers", "none", "--op", "barrier"]) == 0


@pytest.mark.parametrize("form", [[], ["--started"]])
def test_overhead_makes_the_calls_it_is_asked_for(form: list[str]) -> None:
    program = programs() / "bench_overhead"
    done = subprocess.run([program, "--calls", "500", *form], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, "500 calls on each of 2 ranks, all right\n"), done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_benchmark_leaves_nothing_and_keeps_its_figures(how: signal.Signals, tmp_path: Path) -> None:
    shared = set(Path("/dev/shm").iterdir())
    file = tmp_path / "figures"
    process = subprocess.Popen(
        [sys.executable, "-m", "unisono", "bench", "--quick", "--op", "bcast", "--json", str(file)],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(tmp_path)},
    )
    try:
        deadline = time.monotonic() + SECONDS
        while '"unisono"' not in (file.read_text() if file.exists() else ""):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # Its processes are those that know the socket in its folder.
        pids = [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and mentions(entry, tmp_path)
        ]
        assert len(pids) >= 4
        process.send_signal(how)
        assert process.wait(30) == (-how if how == signal.SIGKILL else 128 + how)
        deadline = time.monotonic() + 10
        while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [pid for pid in pids if alive(pid)] == []
    finally:
        process.kill()
        process.wait()
    assert all(set(json.loads(line)) == FIELDS for line in file.read_text().splitlines())
    deadline = time.monotonic() + 10
    while segments(shared) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert segments(shared) == set()
    if how != signal.SIGKILL:  # nobody is left who could remove the folder
        assert list(tmp_path.iterdir()) == [file]


def segments(before: set[Path]) -> set[Path]:
    """What peers have put into shared memory since."""
    return {
        path for path in set(Path("/dev/shm").iterdir()) - before if path.name.startswith(("vader", "mpich", "ucx"))
    }


def mentions(process: Path, folder: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return b"bench_" in command and bytes(folder) in command
