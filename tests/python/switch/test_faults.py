"""Switches that die, stop, come back, and networks that lose: jobs end right all the same, and never hang."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import pytest
from hosts.support import run

from .jobs import HASTY, frames, stream
from .programs import COLLECTIVES
from .support import Switch, local, make_secret, switch

HOSTS = 4
PATIENT = {"UNISONO_AGGREGATE_TIMEOUT_S": "20"}
GIVEN_UP = "its ranks go on without"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return make_secret(tmp_path)


def carries(one: Switch, seconds: float = 20) -> None:
    """Waits until more frames have come."""
    before, deadline = frames(one), time.monotonic() + seconds
    while frames(one) <= before:
        assert time.monotonic() < deadline, "the switch carries nothing"


def idle(one: Switch) -> None:
    """No frames of members come any more."""
    before = frames(one)
    time.sleep(0.5)
    assert frames(one) == before


def test_a_switch_that_is_killed(secret: Path, tmp_path: Path) -> None:
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **HASTY) as job:
        carries(one)
        one.end(signal.SIGKILL)
        time.sleep(3)
        assert job.process.poll() is None, "the job goes on"
        said, errors = job.end()
    assert GIVEN_UP in errors
    assert max(rank["slowest"] for rank in said) < 10


def test_a_switch_that_is_stopped_in_good_order(secret: Path, tmp_path: Path) -> None:
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **HASTY) as job:
        carries(one)
        assert one.end(signal.SIGTERM)[0] == 0
        time.sleep(2)
        _, errors = job.end()
    assert GIVEN_UP in errors


def test_a_switch_that_stands_still_is_given_up(secret: Path, tmp_path: Path) -> None:
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **HASTY) as job:
        carries(one)
        one.send(signal.SIGSTOP)
        time.sleep(3)
        one.send(signal.SIGCONT)
        idle(one)
        _, errors = job.end()
    assert GIVEN_UP in errors


def test_a_switch_that_stands_still_for_a_moment_is_not(secret: Path, tmp_path: Path) -> None:
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **PATIENT) as job:
        carries(one)
        one.send(signal.SIGSTOP)
        time.sleep(1.5)
        one.send(signal.SIGCONT)
        carries(one)
        said, errors = job.end()
    assert GIVEN_UP not in errors
    assert max(rank["slowest"] for rank in said) > 1


def test_a_switch_that_is_started_again(secret: Path, tmp_path: Path) -> None:
    """Its pools are made anew, and calls that were on their way come to their end there."""
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **PATIENT) as job:
        for _ in range(2):
            carries(one)
            one.end(signal.SIGKILL)
            one.start_again()
        carries(one)
        (pool,) = one.ask("show", 0)["pools"]
        assert pool["state"] == "running"
        _, errors = job.end()
    assert GIVEN_UP not in errors


def test_a_top_that_is_started_again(secret: Path, tmp_path: Path) -> None:
    """What is below it goes on; all hosts hang below the first leaf, for they are in the network of both."""
    with switch(secret, "--name", "top") as top, switch(secret, "--name", "a", "--uplink", top.address) as leaf:
        both = [top, leaf]
        with stream(tmp_path, HOSTS, both, *local(HOSTS), **PATIENT) as job:
            carries(top)
            top.end(signal.SIGKILL)
            top.start_again()
            carries(top)
            job.end()


@pytest.mark.parametrize("many", [1, 2])
def test_a_network_that_loses_one_datagram_in_twenty(secret: Path, tmp_path: Path, many: int) -> None:
    program = tmp_path / "collectives.py"
    program.write_text(COLLECTIVES)
    impair = {"UNISONO_UDP_IMPAIR": "loss=0.05,reorder=0.05,duplicate=0.02,corrupt=0.01,seed=11"}
    with switch(secret, **impair) as one, switch(secret, **impair) as other:
        switches = [one, other][:many]
        done = run(
            *local(HOSTS), "--timeout", 80, "--aggregate", ",".join(each.address for each in switches),
            "--aggregate-secret-file", secret, program, 20_000, **impair,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count('"rank"') == HOSTS
        assert GIVEN_UP not in done.stderr
        assert all(frames(each) > 1000 for each in switches)
        assert sum(each.ask("status")["counters"]["forged"] for each in switches) > 0, "what was altered is found out"


def test_a_rank_that_computes_for_long_is_no_fault_of_the_switch(secret: Path, tmp_path: Path) -> None:
    program = tmp_path / "slow.py"
    program.write_text(
        "import numpy as np, time, unisono\n"
        "with unisono.init(timeout=30) as context:\n"
        "    world = context.world\n"
        "    for late in range(world.size):\n"
        "        if world.rank == late: time.sleep(2.5)\n"
        "        total = world.allreduce(np.arange(1000) * (world.rank + 1))\n"
        "        assert np.array_equal(total, np.arange(1000) * 6)\n"
        "    print('right')\n"
    )
    with switch(secret) as one:
        done = run(
            *local(3), "--timeout", 60, "--aggregate", one.address, "--aggregate-secret-file", secret, program, **HASTY
        )
        assert (done.returncode, done.stdout.count("right"), done.stderr) == (0, 3, "")
        assert frames(one) > 9


def test_all_ranks_below_one_of_two_switches_die(secret: Path, tmp_path: Path) -> None:
    """Those below the other one hear of it from the switch above."""
    program = tmp_path / "deaths.py"
    program.write_text(
        "import numpy as np, os, signal, time, unisono\n"
        "with unisono.init(timeout=40) as context:\n"
        "    world = context.world\n"
        "    for _ in range(20): world.allreduce(np.arange(100) + world.rank)\n"
        "    if world.rank > 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    begin = time.monotonic()\n"
        "    try:\n"
        "        while True: world.allreduce(np.arange(100) + world.rank)\n"
        "    except (unisono.PeerDeadError, unisono.RevokedError) as error:\n"
        "        assert 'rank 2' in str(error) or 'rank 3' in str(error), error\n"
        "        assert time.monotonic() - begin < 15\n"
        "        print('right')\n"
    )
    with (
        switch(secret, "--name", "top") as top,
        switch(secret, "--name", "a", "--uplink", top.address) as a,
        switch(secret, "--name", "b", "--uplink", top.address) as b,
    ):
        done = run(
            *local(4), "--keep-going", "--timeout", 80, "--aggregate", f"{a.address},{b.address}",
            "--aggregate-secret-file", secret, program, **PATIENT,
        )  # fmt: skip
        assert (frames(a) >= 40, frames(b) >= 40) == (True, True), "two ranks below each"
    assert done.stdout == "right\n" * 2, done.stderr


def datagrams_to(port: int, count: int) -> list[bytes]:
    """Overhears what goes to a port of the loopback."""
    try:
        ear = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    except PermissionError as failure:
        pytest.skip(f"datagrams of others cannot be overheard here: {failure}")
    heard: list[bytes] = []
    with ear:
        ear.bind(("lo", 0x0800))
        ear.settimeout(20)
        while len(heard) < count:
            packet = ear.recv(1 << 16)
            begin = 4 * (packet[0] & 15)
            if packet[9] == socket.IPPROTO_UDP and int.from_bytes(packet[begin + 2 : begin + 4], "big") == port:
                heard.append(packet[begin + 8 :])
    return heard


def test_garbage_and_what_was_overheard_change_nothing(secret: Path, tmp_path: Path) -> None:
    with switch(secret) as one, stream(tmp_path, HOSTS, [one], *local(HOSTS), **PATIENT) as job:
        carries(one)
        port = int(one.address.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(5):
                for number, heard in enumerate(datagrams_to(port, 40)):
                    altered = bytearray(heard)
                    altered[number % len(altered)] ^= 1 << number % 8
                    for datagram in (heard, bytes(altered), heard[: number + 1], bytes(number)):
                        stranger.sendto(datagram, ("127.0.0.1", port))
        carries(one)
        counters = one.ask("status")["counters"]
        _, errors = job.end()
    assert counters["forged"] > 0
    assert counters["garbage"] > 0
    assert GIVEN_UP not in errors


def test_two_jobs_at_one_switch(secret: Path, tmp_path: Path) -> None:
    with (
        switch(secret) as one,
        stream(tmp_path, 2, [one], *local(2), name="first", **PATIENT) as first,
        stream(tmp_path, 3, [one], *local(3), name="second", pause=0.02, **PATIENT) as second,
    ):
        jobs = one.ask("jobs")["jobs"]
        assert len(jobs) == len({job["job"] for job in jobs}) == 2
        assert all(job["frames"] > 0 and job["slots"] > 0 for job in jobs)
        assert len(one.ask("show", 0)["pools"]) == 2
        first.end()
        carries(one)
        (left,) = one.ask("jobs")["jobs"]
        assert left["job"] in {job["job"] for job in jobs}
        second.end()
        for _ in range(20):
            if not one.ask("jobs")["jobs"]:
                break
        status = one.ask("status")
        assert (status["pools"], status["slots"]["used"]) == (0, 0)


def test_nobody_at_the_address(secret: Path, tmp_path: Path) -> None:
    """The calls go by endpoints, and the first rank says why."""
    program = tmp_path / "collectives.py"
    program.write_text(COLLECTIVES)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(*local(2), "--timeout", 60, "--aggregate", where, "--aggregate-secret-file", secret, program, 1024)
    assert done.returncode == 0, done.stderr
    assert "is not carried by switches: the switch at " + where in done.stderr


@pytest.mark.parametrize("fault", ["secret", "drained"])
def test_a_switch_that_takes_nobody(secret: Path, tmp_path: Path, fault: str) -> None:
    program = tmp_path / "collectives.py"
    program.write_text(COLLECTIVES)
    with switch(secret) as one:
        if fault == "drained":
            one.ask("drain")
        given = make_secret(tmp_path, "other") if fault == "secret" else secret
        done = run(
            *local(2), "--timeout", 60, "--aggregate", one.address, "--aggregate-secret-file", given, program, 1024
        )
        assert done.returncode == 0, done.stderr
        said = {"secret": "it has another secret than this caller", "drained": "is being drained"}[fault]
        assert said in done.stderr
        assert frames(one) == 0
