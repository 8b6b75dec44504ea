"""`unisono explain --hosts` says what a job over these hosts does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unisono.cli import main

from .support import run

#: Calls of every kind, at sizes on both sides of the rules' limits.
CALLS = [
    (operation, size)
    for operation, sizes in {
        "bcast": (4, 3 << 10, 1 << 20),
        "reduce": (4, 1 << 20),
        "allreduce": (4, 4 << 10, 64 << 10, 1 << 20),
        "reduce_scatter": (4, 2 << 10, 8 << 10, 64 << 10),
        "allgather": (4, 3 << 10, 64 << 10),
        "gather": (4, 8 << 10, 128 << 10),
        "scatter": (4, 8 << 10, 128 << 10),
        "alltoall": (4, 256, 512, 16 << 10, 64 << 10),
        "scan": (4, 128 << 10),
        "exscan": (4, 128 << 10),
        "barrier": (0,),
    }.items()
    for size in sizes
]
OF_BLOCKS = ("reduce_scatter", "allgather", "gather", "scatter", "alltoall")

JOB = """
import json, sys
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    served = []
    for operation, size in json.loads(sys.argv[1]):
        block = np.full(size // 4, world.rank, np.float32)
        blocks = np.tile(block, world.size)
        {
            "bcast": lambda: world.bcast(block),
            "reduce": lambda: world.reduce(block, np.empty_like(block)),
            "allreduce": lambda: world.allreduce(block, np.empty_like(block)),
            "reduce_scatter": lambda: world.reduce_scatter(blocks, np.empty_like(block)),
            "allgather": lambda: world.allgather(block, np.empty_like(blocks)),
            "gather": lambda: world.gather(block, np.empty_like(blocks)),
            "scatter": lambda: world.scatter(blocks, np.empty_like(block)),
            "alltoall": lambda: world.alltoall(blocks, np.empty_like(blocks)),
            "scan": lambda: world.scan(block, np.empty_like(block)),
            "exscan": lambda: world.exscan(block, np.empty_like(block)),
            "barrier": lambda: world.barrier(),
        }[operation]()
        served.append(world.last_algorithm.name)
    if world.rank == world.size - 1:
        print(json.dumps(served))
"""


@pytest.fixture(autouse=True)
def _no_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("UNISONO_TUNING", "UNISONO_ALGORITHM", "UNISONO_TRANSPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UNISONO_KERNEL_COPY", "off")  # else it depends on the machine


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["explain", *map(str, arguments), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def prediction_of(answer: dict[str, Any], algorithm: str) -> Any:
    (found,) = [each["prediction"] for each in answer["candidates"] if each["algorithm"] == algorithm]
    return found


@pytest.mark.parametrize(
    ("hosts", "of_allreduce"),
    [
        ("a:2,b:2", "multi_leader"),
        ("a:2,b:3", "multi_leader"),  # of two sizes
        ("a,b:2,a", "multi_leader"),  # no ranges of ranks
        ("a,b", "recursive_doubling"),  # nobody shares memory
        ("a,b,c,d", "rabenseifner"),
        ("a:3", None),  # one host: no network
    ],
)
def test_what_a_job_does(capsys: pytest.CaptureFixture[str], tmp_path: Path, hosts: str, of_allreduce: str) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    config = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "UNISONO_KERNEL_COPY": "off"}
    done = run("--hosts", hosts, "--agent", "local", "--timeout", 60, script, json.dumps(CALLS), **config)
    assert done.returncode == 0, done.stderr
    served = json.loads(done.stdout)
    for (operation, size), algorithm in zip(CALLS, served, strict=True):
        answer = explained(capsys, operation, "--bytes", size, "--hosts", hosts)
        assert answer["algorithm"] == algorithm, (operation, size)
        assert answer["priced"] == (of_allreduce is None)
    if of_allreduce is not None:
        assert served[CALLS.index(("allreduce", 1 << 20))] == of_allreduce
        assert len(set(served)) > 2


def test_between_hosts_no_time_is_made_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["allreduce", "--bytes", "64K", "--hosts", "a:2,b:2", "--cores", "2"]
    answer = explained(capsys, *call)
    assert answer["algorithm"] == "two_level"
    assert answer["rule"]["hosts"] is True
    assert (answer["runner_up"], answer["crossover"], answer["asked_in_vain"]) == (None, None, 0)
    assert not answer["crowded"], "two cores on each host"
    assert explained(capsys, *call[:-1], "1")["crowded"]
    sent = [each["prediction"] for each in answer["candidates"] if each["prediction"]]
    assert len(sent) > 4
    assert all(each["total"] is None and each["latency"] is None for each in sent)
    # Two leaders exchange the vector; of the ring's edges every second one leads to the other host.
    chosen, ring = prediction_of(answer, "two_level"), prediction_of(answer, "ring")
    assert (chosen["between_messages"], chosen["between_bytes"]) == (2, 2 * (64 << 10))
    assert (ring["messages"], ring["between_messages"]) == (24, 12)
    assert prediction_of(answer, "direct") is None
    # With one rank on each host all goes from host to host.
    apart = explained(capsys, "allreduce", "--bytes", "64K", "--hosts", "a,b,c,d")
    ring = prediction_of(apart, "ring")
    assert ring["between_messages"] == ring["messages"] == 24
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["explain", *call, "--buffers", "allocated"]) == 0
    text = capsys.readouterr().out
    assert "allreduce of 64 KiB fp32, 4 ranks on 2 hosts with 2 cores each, allocated buffers: two_level" in text
    assert "built-in rule: up to 512 KiB, two levels, several hosts" in text
    assert "No times are predicted: what a network takes is not known here" in text
    assert "two_level 2 with 128 KiB 4 with 256 KiB chosen" in " ".join(text.split())
    assert "direct (needs memory that all ranks share)" in text
    for wrong in (" µs", " ns", "Runner-up", "Predictions by", "Critical path", "in vain", "Last measured"):
        assert wrong not in text
    # A rule of a file may be for jobs over hosts, and those of `unisono calibrate` are not.
    tuning = tmp_path / "tuning.json"
    monkeypatch.setenv("UNISONO_TUNING", str(tuning))
    for of_hosts, expected in ((True, "ring"), (False, "two_level")):
        rule = {"collective": "allreduce", "algorithm": "ring", "hosts": of_hosts}
        machine = {
            "line": 50, "issue": 8, "segment": 60, "sync": 30, "yield": 700, "reduce": 0.02, "reduce_half": 0.05,
            "copy": [0.02, 0.04, 0.1], "cross": [0.05, 0.08, 0.14], "near_bytes": 1 << 20, "shared_bytes": 1 << 25,
            "cores": 2,
        }  # fmt: skip
        tuning.write_text(json.dumps({"unisono_tuning": 1, "machine": machine, "rules": [rule]}))
        assert explained(capsys, *call)["algorithm"] == expected
    monkeypatch.delenv("UNISONO_TUNING")
    named = explained(capsys, *call, "--algorithm", "ring")
    assert (named["algorithm"], named["origin"]) == ("ring", "named")
    assert main(["explain", *call, "--algorithm", "direct"]) == 2
    assert "does not admit this call" in capsys.readouterr().err


def test_networks_are_listed_as_for_a_job(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ["--hosts", "a,b"]
    assert explained(capsys, "barrier", *hosts)["ways"][-1]["by"] == "tcp"
    assert explained(capsys, "barrier", *hosts, "--transport", "udp,tcp")["ways"][-1]["by"] == "udp,tcp"
    assert main(["explain", "barrier", *hosts, "--transport", "ofi,tcp"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "; ofi between hosts, tcp where that does not reach." in text
    assert "unisono bench --transport ofi" in text
    monkeypatch.setenv("UNISONO_TRANSPORT", "udp")
    assert explained(capsys, "barrier", *hosts)["ways"][-1]["by"] == "udp"
    said = []
    for command in (["explain", "barrier", *hosts], ["run", *hosts]):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--transport", "tcp,quic", *(["true"] if command[0] == "run" else [])])
        assert ended.value.code == 2
        said.append(capsys.readouterr().err.splitlines()[-1].partition("error: ")[2])
    assert said[0] == said[1] == "argument --transport: there is no network 'quic'; known are tcp, udp, ofi"
    monkeypatch.setenv("UNISONO_TRANSPORT", "quic")
    assert main(["explain", "barrier", *hosts]) == 2
    assert "UNISONO_TRANSPORT: there is no network 'quic'" in capsys.readouterr().err
