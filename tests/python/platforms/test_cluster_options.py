"""The options of the simulated cluster's own command: what is wrong with them is its first line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .native_cluster import program


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "-n is required"),
        ("-n 0", "-n: Value 0 not in range 1 to 64"),
        ("-n 65", "-n: Value 65 not in range 1 to 64"),
        ("-n two", "-n: Value two not in range 1 to 64"),
        ("-n 2 --fd 3", "--fd names 1 sockets for 2 nodes"),
        ("-n 2 --fd 3,x", "Could not convert: --fd = 3,x"),
        ("-n 2 --check --memory none", "--memory: none not in {partitioned,unified}"),
        ("-n 2 --check --native 0,2", "--native: there is no node 2; the cluster has nodes 0 to 1"),
        ("-n 2 --check --native 1,1", "--native names node 1 twice"),
        ("-n 2 --check --threads 0", "--threads: Value 0 not in range 1 to 64"),
        ("-n 2 --check --no-skip --check-skip", "--check-skip: with --no-skip there is nothing to compare"),
        ("-n 2 --check --seed -3", "--seed: -3 is negative"),
        ("-n 2 --check --wave-node 2", "--wave-node: there is no node 2"),
        ("-n 2 --check --wave w --native 0,1", "--wave shows node 0, and --native names it: it has no signals"),
        ("-n 2 --check --config /no/file", "/no/file cannot be read"),
        ("-n 2 --check --trace /no/file", "--trace: /no/file cannot be written"),
        ("-n 2 --check --colour red", "The following arguments were not expected: red --colour"),
        ("-n 2 --check --seed", "--seed: 1 required"),
    ],
)
def test_what_is_wrong_is_the_first_line(given: str, said: str) -> None:
    done = run(*given.split())
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[0].startswith(f"unisono-cluster: {said}")


def test_good_options_and_help(tmp_path: Path) -> None:
    counters = tmp_path / "counters.json"
    done = run(
        "-n", 3, "--check", "--native", "2,0", "--seed", 2**64 - 1, "--memory", "unified", "--counters", counters
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert counters.exists()
    shown = run("--help")
    assert shown.returncode == 0
    assert "--native-delay" in shown.stdout
