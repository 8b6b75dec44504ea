"""Unchanged programs of MPI whose calls switches aggregate."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from switch.support import Switch, make_secret, switch

from .test_programs import ENVIRONMENT, SECONDS, compiled, mpi, right

RANKS = 4
#: A rank on each of so many hosts, which are only names; what the launcher calls a rank.
ALONE = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}

__all__ = ["mpi"]


def started(kind: str, program: Path, rounds: int, switches: list[Switch], **more: str) -> subprocess.Popen[str]:
    on_hosts = f'UNISONO_HOST=h${ALONE[kind]} exec "$0" "$@"'
    words = ["--aggregate", ",".join(one.address for one in switches)]
    words += ["--aggregate-secret-file", str(switches[0].secret), "--mpi", kind, "-n", str(RANKS)]
    return subprocess.Popen(
        [sys.executable, "-m", "unisono", "mpirun", *words, "sh", "-c", on_hosts, str(program), str(rounds)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT | {"UNISONO_MPI_REPORT": "1", "UNISONO_TRANSPORT": "tcp"} | more,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        output, errors = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=SECONDS)
    right(subprocess.CompletedProcess([], process.returncode, output, errors), RANKS)
    assert re.search(r"^100.0 % of \d+ calls were carried", errors, re.MULTILINE), errors
    return output, errors


@pytest.mark.parametrize("leaves", [1, 2])
def test_switches_carry_the_calls_of_a_program(mpi: str, leaves: int, tmp_path: Path) -> None:
    """As many datagrams come as calls are made by all ranks, and of two leaves the one above has its part."""
    program = compiled(mpi, "aggregated", tmp_path)
    secret = make_secret(tmp_path)
    with (
        switch(secret, "--name", "top") as top,
        switch(secret, "--name", "a", "--uplink", top.address) as a,
        switch(secret, "--name", "b", "--uplink", top.address) as b,
    ):
        named = [a, b][:leaves]
        output, errors = ended(started(mpi, program, 60, named))
        calls = {int(line.split()[1]) for line in output.splitlines() if line.startswith("right")}
        assert calls == {8 * 63}
        frames = {name: one.ask("status")["counters"]["frames_in"] for name, one in (("a", a), ("b", b), ("top", top))}
    assert frames["a"] + frames["b"] >= RANKS * 8 * 63, frames
    assert (frames["top"] >= 2 * 8 * 63) == (frames["b"] > 0) == (leaves == 2), frames
    assert "its ranks go on without" not in errors


def test_a_program_goes_on_without_a_switch_that_is_killed(mpi: str, tmp_path: Path) -> None:
    program = compiled(mpi, "aggregated", tmp_path)
    with switch(make_secret(tmp_path)) as one:
        process = started(mpi, program, 4000, [one], UNISONO_AGGREGATE_TIMEOUT_S="1")
        assert process.stdout is not None
        try:
            begun = process.stdout.readline()
            one.end(signal.SIGKILL)
        finally:
            _, errors = ended(process)
    assert begun == "begun\n"
    assert "its ranks go on without it" in errors
