"""`unisono explain --aggregate` says of each call whether switches carry it, and that is so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts.support import run
from unisono.cli import main

from .support import Switch, local, make_secret, switch

HOSTS = 3
UP_TO = 6000
CALLS = [
    (operation, size)
    for operation in ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather", "scatter", "gather",
                      "alltoall", "scan")
    for size in ((0,) if operation == "barrier" else (8, UP_TO // HOSTS, UP_TO // HOSTS + 8, UP_TO, UP_TO + 8))
]  # fmt: skip

#: Rank 0 asks the switch what has come of each call; an all-to-all, which is not carried, keeps the others back.
JOB = """
import json, sys
import numpy as np
import unisono
from unisono import _core

where, secret, calls = sys.argv[1], _core.switch_secret(sys.argv[2]), json.loads(sys.argv[3])
with unisono.init(timeout=30) as context:
    world = context.world

    def contributions():
        world.alltoall(np.zeros(world.size))
        (pool,) = json.loads(_core.switch_ask(where, secret, "show", b"0", 5))["pools"]
        world.alltoall(np.zeros(world.size))
        return pool["counters"]["contributions"]

    carried = []
    for operation, size in calls:
        before = contributions()
        block = np.full(size // 8, float(world.rank))
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
            "barrier": lambda: world.barrier(),
        }[operation]()
        carried.append(contributions() > before)
    if world.rank == 0:
        print(json.dumps(carried))
"""


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Switch]:
    with switch(make_secret(tmp_path), "--name", "rack1", "--up-to", UP_TO) as made:
        yield made


def explained(one: Switch, *words: object, hosts: str = "a,b,c") -> list[str]:
    named = ["--hosts", hosts, "--aggregate", one.address, "--secret-file", str(one.secret)]
    return ["explain", *map(str, words), *named]


def test_what_is_said_of_calls_is_what_a_job_does(
    one: Switch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for operation, size in CALLS:
        assert main([*explained(one, operation, "--bytes", size, "--dtype", "fp64"), "--format", "json"]) == 0
        said.append(json.loads(capsys.readouterr().out)["aggregation"]["carried"])
    script = tmp_path / "job.py"
    script.write_text(JOB)
    done = run(
        *local(HOSTS), "--aggregate", one.address, "--aggregate-secret-file", one.secret, script, one.address,
        one.secret, json.dumps(CALLS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said == json.loads(done.stdout), list(zip(CALLS, said, strict=True))
    assert {True, False} == set(said)


@pytest.mark.parametrize(
    ("words", "hosts", "said"),
    [
        (["allreduce"], "a,b", "carries this call"),
        (["alltoall"], "a,b", "alltoall goes between the ranks"),
        (["allreduce"], "a:2", "its ranks are on one host, and share memory"),
        (["allreduce", "--algorithm", "ring"], "a,b", "a call that names its algorithm goes between the ranks"),
        (["allgather", "--bytes", "4000"], "a,b", "it has 8000 bytes in all blocks, and up to 6000 are carried"),
    ],
)
def test_what_people_read(
    one: Switch, words: list[str], hosts: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(explained(one, *words, hosts=hosts)) == 0
    printed = capsys.readouterr().out
    assert f"The switch rack1 ({one.address})" in printed
    assert said in printed


@pytest.mark.parametrize(
    ("dtype", "mode", "said"),
    [
        ("fp32", "size_stable", "does not carry this call: sums of fp32 depend on their order"),
        ("int32", "size_stable", "carries this call"),
        ("fp32", "run_stable", "carries this call"),
    ],
)
def test_where_bits_must_not_depend_on_places(
    one: Switch, dtype: str, mode: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_DETERMINISM", mode)
    assert main(explained(one, "allreduce", "--dtype", dtype)) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("length", ["64K", "0", "-1"])
def test_lengths_that_jobs_refuse(
    one: Switch, length: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_AGGREGATE_UP_TO", length)
    assert main(explained(one, "allreduce")) == 2
    assert f"UNISONO_AGGREGATE_UP_TO is {length!r}, but should be bytes" in capsys.readouterr().err


def test_a_switch_that_does_not_answer(one: Switch, capsys: pytest.CaptureFixture[str]) -> None:
    one.end()
    assert main(explained(one, "allreduce")) == 2
    assert f"the switch at {one.address}: Connection refused" in capsys.readouterr().err
