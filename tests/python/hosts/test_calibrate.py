"""`unisono calibrate --network`: between hosts that are names, and what follows from what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from unisono import _core
from unisono.cli import main, register_from
from unisono.cli.connections import COUNTS, choice
from unisono.cli.network_prices import layout

from .support import ENVIRONMENT, SECONDS, run

LONG_SUMS = """
import numpy as np
import unisono
with unisono.init() as context:
    comm = context.world
    for length in (10_000, 100_000, 500_001):
        mine = np.arange(length) * (comm.rank + 1)
        assert np.array_equal(comm.allreduce(mine), np.arange(length) * 3)
        if comm.rank == 0:
            comm.send(mine, 1)
        else:
            assert np.array_equal(comm.recv(np.empty_like(mine), 0), np.arange(length))
    print("right")
"""
NAMES = {"latency", "message", "byte", "near_latency", "near_message"}


def calibrate(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", "calibrate", *map(str, arguments)],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT | more,
    )  # fmt: skip


def test_a_network_is_measured_and_the_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    options = ["--network", "--hosts", "a:2,b:1", "--agent", "local", "--ranks", "4", "--file", path]
    done = calibrate(*options, "--transport", "udp,tcp")
    assert done.returncode == 0, done.stderr
    assert "measured between hosts (udp,tcp)" in done.stdout
    assert "2 hosts; communicators over hosts, up to 4 ranks" in done.stdout
    told = json.loads(path.read_text())
    network = told["network"]
    assert set(network) == NAMES | {"transport", "connections"}
    assert network["message"] > 0
    assert network["byte"] > 0
    assert network["connections"] == 1, "they are of TCP alone"
    machine = told["machine"]

    # Another network, in the place of the first; what was measured of the machine stays.
    again = calibrate("--network", "--hosts", "a,b", "--agent", "local", "--ranks", "4", "--file", path, "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["file"] == str(path)
    assert told["machine"] == machine
    assert told["network"]["transport"] == "tcp"
    assert told["network"]["connections"] in COUNTS
    assert told["network"]["near_latency"] == told["network"]["near_message"] == 0

    script = tmp_path / "sum.py"
    script.write_text(
        "import numpy as np, unisono\n"
        "with unisono.init() as context:\n"
        "    for count in (1, 1000, 100_000):\n"
        "        total = context.world.allreduce(np.arange(count) * (context.world.rank + 1))\n"
        "        assert np.array_equal(total, np.arange(count) * 6)\n"
        "    print('right')\n"
    )
    job = run("--hosts", "a:2,b:1", "--agent", "local", script, UNISONO_TUNING=str(path))
    assert (job.returncode, job.stdout.split()) == (0, ["right"] * 3), job.stderr


def prices(path: Path, **changes: float) -> None:
    """A file with a network as it is made up."""
    network = {"latency": 1e4, "message": 1e3, "byte": 0.1, "near_latency": 300.0, "near_message": 300.0} | changes
    usual = _core.tuning_in_force()["machine"] | {"cores": 2}
    text = json.dumps({"unisono_tuning": 1, "machine": usual, "rules": []})
    path.write_text(
        _core.tune_network(text, "carrier pigeons", **network, connections=2, register_from=None, most_ranks=8)
    )


def test_explain_takes_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("UNISONO_TUNING", "off")
    prices(path, latency=1e7)
    monkeypatch.setenv("UNISONO_TUNING", str(path))

    def explained(hosts: str, *more: str) -> dict[str, object]:
        assert main(["explain", "allreduce", "--hosts", hosts, "--format", "json", "--cores", "8", *more]) == 0
        told: dict[str, object] = json.loads(capsys.readouterr().out)
        return told

    told = explained("a,b,c,d,e,f,g,h", "--bytes", "1M")
    assert told["tuning"]["network"]["transport"] == "carrier pigeons"
    assert (told["origin"], told["rule"]["hosts"], told["rule"]["groups"]) == ("file", True, False)
    best = told["candidates"][0]
    assert told["algorithm"] == best["algorithm"] == "flat", "it has one round"
    assert 1e7 < best["prediction"]["latency"] < 1.1e7
    # Ranks of a host do not pay for the way between hosts.
    divided = explained("a:4,b:4")
    assert divided["algorithm"] == "two_level"
    assert next(each for each in divided["candidates"] if each["algorithm"] == "two_level")["prediction"]["total"] > 1e7
    assert explained("a:8")["candidates"][0]["prediction"]["total"] < 1e6
    # Ranks that are dealt to hosts are groups, too.
    assert explained("a,b,a,b")["algorithm"] == "two_level"
    assert main(["explain", "allreduce", "--hosts", "a,b"]) == 0
    said = capsys.readouterr().out
    assert "take what was measured between hosts over carrier pigeons" in said
    assert "Long messages between two ranks go by 2 connections." in said
    assert told["ways"][-1]["connections"] == 2
    # The variable goes first; and they are of TCP alone.
    monkeypatch.setenv("UNISONO_TCP_CONNECTIONS", "1")
    assert main(["explain", "allreduce", "--hosts", "a,b"]) == 0
    assert "connections." not in capsys.readouterr().out
    monkeypatch.setenv("UNISONO_TCP_CONNECTIONS", "17")
    assert main(["explain", "allreduce", "--hosts", "a,b"]) == 2
    assert "UNISONO_TCP_CONNECTIONS is '17'; allowed are 1 to 16" in capsys.readouterr().err
    monkeypatch.delenv("UNISONO_TCP_CONNECTIONS")
    assert main(["explain", "allreduce", "--hosts", "a,b", "--transport", "udp,tcp"]) == 0
    assert "connections." not in capsys.readouterr().out


def test_the_machine_measured_anew_keeps_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("UNISONO_TUNING", "off")
    prices(path, latency=1e7)
    before = json.loads(path.read_text())
    assert main(["calibrate", "--ranks", "2", "--file", str(path)]) == 0
    after = json.loads(path.read_text())
    assert after["network"] == before["network"]
    assert after["machine"] != before["machine"]


def test_what_cannot_be_measured() -> None:
    alone = calibrate("--network")
    assert alone.returncode == 2
    assert "the only rank is on one" in alone.stderr
    assert calibrate("--hosts", "a,b").returncode == 2
    one = calibrate("--network", "--hosts", "a:2", "--agent", "local")
    assert one.returncode != 0
    assert "all are on one" in one.stderr


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1),
        ([1.0, 0.9, 0.88, 0.88], 1),  # not worth it
        ([1.0, 0.5, 0.5, 0.5], 2),
        ([1.0, 0.5, 0.25, 0.125], 8),
        ([1.0, 0.5, 0.26, 0.25], 4),  # as good as eight
        ([1.0, 0.5, 0.7, 0.9], 2),
        ([1.0, 2.0, 4.0, 8.0], 1),
    ],
)
def test_how_many_connections_pay(times: list[float], expected: int) -> None:
    assert choice(dict(zip(COUNTS, times, strict=True))) == expected


def test_which_ranks_are_measured() -> None:
    assert layout([0, 1]) == ([0, 1], (0, 1), None)
    assert layout([0, 0, 1, 1]) == ([0, 0, 1, 1], (0, 2), (0, 1))
    dealt = layout([0, 1, 2, 1])
    assert (dealt.far, dealt.near, dealt.hosts) == ((0, 1), (1, 3), 3)
    assert [dealt.leads(rank) for rank in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("registered", "copied", "least"),
    [
        ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2], 1 << 16),
        ([3, 3, 1, 1, 1], [2, 2, 2, 2, 2], 1 << 18),
        ([1, 3, 1, 3, 1], [2, 2, 2, 2, 2], 1 << 20),
        ([1, 1, 1, 1, 3], [2, 2, 2, 2, 2], register_from.NEVER),
    ],
)
def test_memory_is_registered_from_where_on_that_is_never_slower(
    registered: list[float], copied: list[float], least: int
) -> None:
    assert register_from.choice(registered, copied) == least


def test_from_which_length_on_memory_is_registered_is_measured_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    done = calibrate(
        "--network", "--hosts", "a,b", "--agent", "local", "--transport", "ofi", "--file", path
    )  # fmt: skip
    if done.returncode != 0 and "libfabric" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["network"]["register_from"] in (*register_from.LENGTHS, register_from.NEVER)
    assert "ordinary memory is registered, from" in done.stdout
    program = tmp_path / "program.py"
    program.write_text(LONG_SUMS)
    for more in ({"UNISONO_TUNING": str(path)}, {"UNISONO_OFI_REGISTER_FROM": "off"}):
        followed = run("--hosts", "a,b", "--agent", "local", "--transport", "ofi", program, **more)
        assert (followed.returncode, followed.stdout.split()) == (0, ["right"] * 2), followed.stderr
