"""--aggregate of `unisono run` and `unisono mpirun`: which switches it names, and what ranks get of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts.support import run
from unisono.cli import aggregation, mpirun

from .support import ENVIRONMENT, SECONDS, UNISONO, local, make_secret

SHOW = ["sh", "-c", 'echo "[$UNISONO_AGGREGATE] ${#UNISONO_AGGREGATE_SECRET}"; cat /proc/$PPID/cmdline >&2']


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return make_secret(tmp_path)


def test_ranks_on_all_hosts_get_addresses_and_secret_and_no_command_line_has_it(secret: Path) -> None:
    named = "rack1:7000,[fd00::1]:7001"
    done = run(*local(2), "--aggregate", named, "--aggregate-secret-file", secret, *SHOW)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"[{named}] 64"] * 2
    assert secret.read_text().strip() not in done.stderr


def test_off_holds_whatever_the_environment_says(secret: Path) -> None:
    environment = {"UNISONO_AGGREGATE": "rack1:7000", "UNISONO_AGGREGATE_SECRET_FILE": str(secret)}
    assert run(*local(2), *SHOW, **environment).stdout.splitlines() == ["[rack1:7000] 64"] * 2
    assert run(*local(2), "--aggregate", "off", *SHOW, **environment).stdout.splitlines() == ["[off] 0"] * 2
    assert run(*local(2), *SHOW).stdout.splitlines() == ["[] 0"] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rack1", "--aggregate: 'rack1' is no address of a switch; write HOST:PORT, such as rack1:7000"),
        ("rack1:7000,,rack2:7000", "--aggregate: '' is no address"),
        ("rack1:70000", "--aggregate: 'rack1:70000' is no address"),
        ("rack1:7000,rack1:7000", "--aggregate: rack1:7000 stands there twice"),
    ],
)
def test_addresses_that_are_refused(secret: Path, given: str, said: str) -> None:
    done = run(*local(2), "--aggregate", given, "--aggregate-secret-file", secret, "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"unisono run: {said}")


def test_a_secret_is_needed(tmp_path: Path) -> None:
    done = run(*local(2), "--aggregate", "rack1:7000", "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "unisono run: --aggregate: the secret of the switches is not known; name its file by --aggregate-secret-file "
        "or UNISONO_AGGREGATE_SECRET_FILE\n"
    )
    done = run(*local(2), "--aggregate-secret-file", tmp_path / "none", "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")
    assert "goes with --aggregate" in done.stderr


@pytest.mark.parametrize("tls", ["on", "tcp"])
def test_what_is_to_be_encrypted_does_not_go_to_switches(secret: Path, tls: str) -> None:
    named = ["--aggregate", "rack1:7000", "--aggregate-secret-file", secret]
    done = run(*local(2), *named, "echo", "started", UNISONO_TLS=tls)
    if tls == "tcp":
        assert (done.returncode, done.stdout) == (0, "started\nstarted\n")
        return
    assert (done.returncode, done.stdout) == (2, "")
    assert "all data between hosts are to be encrypted, and what goes to switches is not" in done.stderr
    # Ranks that were started in another way find it out by themselves.
    alone = run(
        *local(2), "--tls", "--env", "UNISONO_AGGREGATE_SECRET=" + "x" * 32,
        "--aggregate", "off", "sh", "-c", 'UNISONO_AGGREGATE=127.0.0.1:1 exec "$0" -c "$1"', sys.executable,
        "import unisono; unisono.init().world.barrier(); print('right')",
    )  # fmt: skip
    assert (alone.returncode, alone.stdout) == (0, "right\nright\n"), alone.stderr
    assert "no calls are carried by switches: all data between hosts are to be encrypted" in alone.stderr


def test_simulated_engines_have_no_switches(secret: Path) -> None:
    done = run(
        "-n", 2, "--platform", "rtl", "--aggregate", "rack1:7000", "--aggregate-secret-file", secret, "echo", "started"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--aggregate is for the native engine" in done.stderr


def listed(folder: Path, text: str) -> Path:
    """A list of switches with their secret beside it."""
    folder.mkdir(parents=True)
    (folder / "switches").write_text(text)
    make_secret(folder, "switches.secret")
    return folder / "switches"


def test_auto_reads_a_list(tmp_path: Path) -> None:
    path = listed(tmp_path / "site", "# two racks\nrack1:7000\n\nrack2:7000 # the other one\n")
    done = run(*local(2), "--aggregate", "auto", *SHOW, UNISONO_SWITCHES=str(path))
    assert done.stdout.splitlines() == ["[rack1:7000,rack2:7000] 64"] * 2
    own = listed(tmp_path / "own" / "unisono", "mine:1\n")
    done = run(*local(2), "--aggregate", "auto", *SHOW, XDG_CONFIG_HOME=str(own.parents[1]), UNISONO_SWITCHES="")
    assert done.stdout.splitlines() == ["[mine:1] 64"] * 2


@pytest.mark.parametrize("text", [None, "# none yet\n"])
def test_auto_without_a_list_is_off_and_says_so(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        listed(tmp_path / "unisono", text)
    done = run(*local(2), "--aggregate", "auto", *SHOW, XDG_CONFIG_HOME=str(tmp_path), UNISONO_SWITCHES="")
    if text is None and aggregation.SYSTEM_WIDE.exists():
        pytest.skip(f"this machine has {aggregation.SYSTEM_WIDE}")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["[off] 0"] * 2)
    assert "--aggregate auto: " in done.stderr
    assert "nothing is aggregated" in done.stderr


def test_a_list_with_a_line_that_is_no_address(tmp_path: Path) -> None:
    path = listed(tmp_path / "site", "rack1:7000\nrack2\n")
    done = run(*local(2), "--aggregate", "auto", *SHOW, UNISONO_SWITCHES=str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"line 2 of {path}: 'rack2' is no address" in done.stderr


def test_a_list_that_is_named_and_not_there(tmp_path: Path) -> None:
    done = run(*local(2), "--aggregate", "auto", *SHOW, UNISONO_SWITCHES=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / 'none'}, cannot be read: No such file" in done.stderr


def test_mpirun_takes_the_same(secret: Path) -> None:
    words = ["--aggregate", "rack1:7000", "--aggregate-secret-file", str(secret), "--mpi", "openmpi", "-n", "2", "true"]
    own, rest = mpirun.own_options(words)
    assert (own.aggregate, own.aggregate_secret_file, own.kind) == ("rack1:7000", str(secret), "openmpi")
    assert rest == ["-n", "2", "true"]
    found = aggregation.find(own.aggregate, own.aggregate_secret_file, os.environ)
    assert found.variables["UNISONO_AGGREGATE"] == "rack1:7000"
    done = subprocess.run(
        [*UNISONO, "mpirun", "--aggregate", "rack1", "-n", "2", "true"],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("unisono mpirun: --aggregate: 'rack1' is no address of a switch")
