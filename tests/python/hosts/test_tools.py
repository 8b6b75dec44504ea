"""`unisono ps`, `dump`, `counters` and `reset` of jobs on several hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from unisono.cli.answer import answer as answer_to
from unisono.cli.asking import ask
from unisono.cli.spanning import spans
from unisono.errors import InvalidArgumentError
from unisono.machine import launches
from unisono.machine.jobs import Job, RankSeen
from unisono.machine.launches import Launch, LaunchedHost

from .support import ENVIRONMENT, LOCAL, SECONDS, gone, run, start

WAITING = """
import sys
import time
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    world.allreduce(np.ones(4))
    print("up", world.rank, flush=True)
    if world.rank == 3:
        sys.stdin.read()
        time.sleep(60)
    try:
        world.allreduce(np.ones(5), timeout=60)
    except unisono.UnisonoError as error:
        print("ended by", type(error).__name__, flush=True)
        time.sleep(60)
"""
#: Starts everything here; what is asked of host b comes to something else.
AGENT = """#!/bin/sh
host=$1
shift
case "$host $*" in "b "*cli.answer*) echo a banner; {instead};; esac
exec env UNISONO_HOST="$host" "$@"
"""
#: Machines on which tests run may be slow.
PATIENT = {name: ["--deadline", "60"] for name in ("ps", "dump", "counters", "reset")}


def unisono(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", *map(str, words), *PATIENT.get(str(words[0]), [])],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT | {"COLUMNS": "120"},
    )  # fmt: skip


@contextmanager
def running(tmp_path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A job of two hosts, whose ranks 0 to 2 wait for rank 3."""
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    job = start(*(options or LOCAL), script)
    assert job.stdout is not None
    try:
        up = sorted(job.stdout.readline().strip() for _ in range(4))
        assert up == [f"up {rank}" for rank in range(4)], up
        yield job
    finally:
        job.terminate()
        job.communicate(timeout=SECONDS)


@pytest.fixture
def agent(tmp_path: Path, request: pytest.FixtureRequest) -> list[str]:
    """Options of a job whose second host answers in a way of its own."""
    program = tmp_path / "agent"
    program.write_text(AGENT.replace("{instead}", request.param))
    program.chmod(0o755)
    return ["--hosts", "a:2,b:2", "--agent", str(program)]


def until(found: str, *words: object) -> subprocess.CompletedProcess[str]:
    """The command's output, once it has this."""
    end = time.monotonic() + 30
    while True:
        done = unisono(*words)
        if found in done.stdout or time.monotonic() > end:
            assert found in done.stdout, done.stdout + done.stderr
            return done
        time.sleep(0.1)


def test_all_hosts_in_one_view(tmp_path: Path) -> None:
    with running(tmp_path) as job:
        done = until("in allreduce #1", "ps")
        assert f"job of unisono run {job.pid}, 4 ranks on 2 hosts: " in done.stdout
        rows = [line.split() for line in done.stdout.splitlines() if " pid " in line]
        mine = [row for row in rows if row[1] in ("a", "b")]
        assert [row[:2] for row in mine] == [["0", "a"], ["1", "a"], ["2", "b"], ["3", "b"]]
        # Its parts on this machine are no jobs of their own.
        entries = [entry for entry in json.loads(unisono("ps", "--json").stdout) if entry.get("launcher") == job.pid]
        (entry,) = entries
        assert entry["hosts"] == [
            {"name": "a", "ranks": [0, 1], "fault": None}, {"name": "b", "ranks": [2, 3], "fault": None}
        ]  # fmt: skip
        assert [(rank["rank"], rank["host"], rank["of"], rank["network"]) for rank in entry["ranks"]] == [
            (0, "a", 4, "tcp"), (1, "a", 4, "tcp"), (2, "b", 4, "tcp"), (3, "b", 4, "tcp")
        ]  # fmt: skip
        parts = {rank["job"] for rank in entry["ranks"]}
        others = json.loads(unisono("ps", "--json").stdout)
        assert not parts & {other.get("number") for other in others}


def test_a_dump_of_all_hosts_says_what_carries_data(tmp_path: Path) -> None:
    with running(tmp_path) as job:
        done = until("waits for rank 3", "dump", job.pid)
        assert (done.returncode, done.stderr) == (0, "")
        first, second = done.stdout.split("host b, ranks 2-3:\n")
        assert first.startswith("host a, ranks 0-1:\n")
        assert "ranks 0 and 1 of 4 are on this host and share memory\n" in first
        assert "tcp carries data to and from the other ranks\n" in first
        assert "ranks 2 and 3 of 4 are on this host and share memory\n" in second
        assert "=> rank 2 waits for rank 3" in second
        history = unisono("dump", job.pid, "--history").stdout
        assert "ended: allreduce #0 of 4" in history


def test_counters_and_reset_of_all_hosts(tmp_path: Path) -> None:
    with running(tmp_path) as job:
        until("in allreduce #1", "ps")
        table = unisono("counters", job.pid)
        assert table.returncode == 0, table.stderr
        assert table.stdout.split("\n")[0].split() == ["rank", "0", "rank", "1", "rank", "2", "rank", "3"]
        (values,) = json.loads(unisono("counters", job.pid, "--json").stdout)
        assert all(len(of_ranks) == 4 and all(value is not None for value in of_ranks) for of_ranks in values.values())
        assert all(calls >= 1 for calls in values["calls"])
        done = unisono("reset", job.pid)
        assert (done.returncode, done.stdout) == (0, "ranks 0-3 of 4 give up their communicators\n")
        assert job.stdout is not None
        assert [job.stdout.readline().strip() for _ in range(3)] == 3 * ["ended by RevokedError"]


COUNTING = """
import numpy as np, unisono
for calls in (1, 2):
    with unisono.init() as context:
        world = context.world
        own = world.split(world.rank)
        for _ in range(world.rank): own.allreduce(np.ones(4))
        for _ in range(calls): world.allreduce(np.ones(4))
"""


@pytest.mark.parametrize("hosts", ["a:2,b:2", "a,b:2,a", "a:3"])
def test_counters_at_the_end_of_a_job(tmp_path: Path, hosts: str) -> None:
    """Of all jobs that the ranks have formed, each in its own column."""
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    size = 3 if hosts == "a:3" else 4
    done = run("--hosts", hosts, "--agent", "local", "--counters", script)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stderr.splitlines()]
    assert lines[0] == [word for rank in range(size) for word in ("rank", str(rank))]
    counted = {name: values for name, *values in lines[1:]}
    of_all = int(counted["calls"][0])
    assert of_all >= 3
    assert counted["calls"] == [str(of_all + 2 * rank) for rank in range(size)]


def test_counters_of_ranks_that_form_no_job() -> None:
    done = run("--hosts", "a,b", "--agent", "local", "--counters", "true")
    assert (done.returncode, "no counters: the ranks have formed no job" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("echo no way there >&2; exit 3", "agent ended with status 3: no way there"),
        ("yes", "what is started there says something else than Unisono"),
        ("echo 'unisono-answer 5'; echo junk", "its answer cannot be understood"),
        ("echo 'unisono-answer 99'; echo junk; exit", "its answer breaks off"),
        ("echo 'unisono-answer x'", "its answer cannot be understood"),
        ("kill -9 $$", "agent ended with status -9"),
    ],
    indirect=["agent"],
)
def test_a_host_that_does_not_answer_is_named(agent: list[str], words: str, tmp_path: Path) -> None:
    with running(tmp_path, *agent) as job:
        done = unisono("ps")
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        assert "host b: " in text
        assert words in text
        assert "; ranks 2-3 are out of sight" in text
        rows = [line.split() for line in done.stdout.splitlines() if " pid " in line]
        assert [row[:2] for row in rows if row[1] in "ab"] == [["0", "a"], ["1", "a"], ["2", "b"], ["3", "b"]]
        dump = unisono("dump", job.pid)
        assert dump.returncode == 1
        assert dump.stdout.startswith("host a, ranks 0-1:\n")
        assert "host b, " not in dump.stdout
        assert words in dump.stderr


@pytest.mark.parametrize("agent", ["exit 1"], indirect=True)
def test_counters_of_a_host_out_of_sight(agent: list[str], tmp_path: Path) -> None:
    with running(tmp_path, *agent) as job:
        counted = unisono("counters", job.pid)
        assert (counted.returncode, "host b: " in counted.stderr) == (1, True)
        assert next(line.split()[3:] for line in counted.stdout.splitlines() if line.startswith("calls ")) == ["-", "-"]


@pytest.mark.parametrize("agent", ["exec sleep 1000"], indirect=True)
def test_who_is_late_is_named_and_ended_here(agent: list[str], tmp_path: Path) -> None:
    with running(tmp_path, *agent):
        (launch,) = [launch for launch in launches.launches() if launch.template == agent[-1]]
        first, second = ask(launch, "ps", 15)
        assert (len(first.jobs), first.fault) == (1, "")
        assert second.fault == "it does not answer within 15 s"
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        sleepers = [pid for pid in children if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert gone([int(pid) for pid in sleepers])
    assert not [one for one in launches.launches() if one.pid == launch.pid]


def test_which_job_is_meant(tmp_path: Path) -> None:
    with running(tmp_path) as job, running(tmp_path):
        done = unisono("dump")
        assert done.returncode == 2
        assert "jobs on this machine; name one" in done.stderr
        # One process means what is on its own machine.
        own = json.loads(unisono("ps", "--json").stdout)
        pid = next(rank["name"].split()[1] for entry in own if entry.get("launcher") == job.pid
                   for rank in entry["ranks"] if rank["rank"] == 2)  # fmt: skip
        part = unisono("dump", pid).stdout
        assert part.startswith("ranks 2 and 3 of 4 are on this host")


def test_a_part_is_known_by_rank_and_process() -> None:
    own = os.getpgid(0)
    seen = Job(7, [os.getpid()])
    for rank, of, pid, part in ((2, 4, own, True), (1, 4, own, False), (2, 3, own, False), (2, 4, own + 1, False)):
        seen.ranks = [RankSeen("pid 1", "", 1, 1, "", rank, of, "tcp")]
        launch = Launch(1, "", None, "", [LaunchedHost("a", [0, 1], [5, 6]), LaunchedHost("b", [2, 3], [pid, 8])])
        assert launch.has(seen) is part


def test_questions_that_are_not_understood() -> None:
    assert "does not know the question 'sing'" in answer_to({"what": "sing", "pids": []})["fault"]
    assert answer_to({"what": "ps", "pids": []})["jobs"] == []
    done = subprocess.run(
        [sys.executable, "-m", "unisono.cli.answer"], input="{}\n", capture_output=True, text=True, timeout=SECONDS,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert "the question cannot be understood" in done.stdout


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_deadlines(seconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match="the deadline is"):
        ask(Launch(1, "", "local", sys.executable, []), "ps", seconds)


def test_numbers_of_ranks_in_words() -> None:
    assert spans([3]) == "rank 3"
    assert spans([4, 0, 1, 2, 6]) == "ranks 0-2, 4, 6"


def test_what_is_encrypted(tmp_path: Path) -> None:
    with running(tmp_path, "--tls", *LOCAL) as job:
        assert "tcp+TLS carries data to and from the other ranks\n" in unisono("dump", job.pid).stdout


def test_what_would_carry_data() -> None:
    done = unisono("explain", "allreduce", "--hosts", "a:2,b:2,a:1,c")
    assert done.returncode == 0, done.stderr
    assert "6 ranks" in done.stdout
    assert (
        "What carries data: ranks 0-1, 4 on host a: shared memory; ranks 2-3 on host b: shared memory; rank 5 on host "
        "c; tcp between hosts."
    ) in done.stdout
    assert "what a network takes is not known here" in done.stdout
    encrypted = unisono("explain", "allreduce", "--hosts", "a:2,b:2", "--tls")
    assert "ranks 2-3 on host b: shared memory; tcp+TLS between hosts." in encrypted.stdout
    assert "`unisono bench --transport tcp` the calls" in " ".join(encrypted.stdout.split())
    refused = unisono("explain", "allreduce", "--hosts", "a:2,b:2", "--tls", "--transport", "udp")
    assert (refused.returncode, "udp encrypts nothing" in refused.stderr) == (2, True)
    told = json.loads(unisono("explain", "allreduce", "--hosts", "a:2", "--format", "json").stdout)
    assert told["ways"] == [{"host": "a", "ranks": [0, 1], "by": "shared memory"}]
    assert json.loads(unisono("explain", "allreduce", "--format", "json").stdout)["ways"] == []
    refused = unisono("explain", "allreduce", "--hosts", "a:2,b:2", "--ranks", "3")
    assert (refused.returncode, "the hosts have 4" in refused.stderr) == (2, True)
    assert unisono("explain", "allreduce", "--hosts", "a:").returncode == 2
