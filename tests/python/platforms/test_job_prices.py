"""A job in a simulated network takes what is cheapest there, and `unisono explain --network` says the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from unisono.cli import main, price_program
from unisono.errors import InvalidArgumentError

from .native_cluster import ROOT, command, environment

STAR = "topology = switch\naggregation = ais@switch0\n"
SIZES = (64, 4096, 4100, 65536)
OPERATIONS = ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather", "gather", "scatter", "alltoall")
#: Each rank has numbers of its own, small enough that no sum rounds: results are the same by every algorithm.
CALLS = """
import json, sys
import numpy as np
import unisono

def right(world, op, count):
    rank, size = world.rank, world.size
    given = [np.arange(count, dtype=np.float32) % 97 + r for r in range(size)]
    joined = np.concatenate(given)
    total = sum(given)
    if op == "barrier":
        world.barrier()
        return True
    if op == "bcast":
        got = given[0].copy() if rank == 0 else np.zeros(count, np.float32)
        world.bcast(got, 0)
        return got.tobytes() == given[0].tobytes()
    if op == "reduce":
        got = world.reduce(given[rank], root=0)
        return rank != 0 or got.tobytes() == total.tobytes()
    if op == "allreduce":
        return world.allreduce(given[rank]).tobytes() == total.tobytes()
    if op == "allgather":
        return np.asarray(world.allgather(given[rank])).tobytes() == joined.tobytes()
    if op == "gather":
        got = world.gather(given[rank], root=0)
        return rank != 0 or np.asarray(got).tobytes() == joined.tobytes()
    if op == "scatter":
        block = np.zeros(count, np.float32)
        world.scatter(joined if rank == 0 else None, block, root=0)
        return block.tobytes() == given[rank].tobytes()
    if op == "reduce_scatter":
        blocks = [[np.arange(count, dtype=np.float32) % 31 + r + 50 * b for r in range(size)] for b in range(size)]
        got = world.reduce_scatter(np.concatenate([blocks[b][rank] for b in range(size)]))
        return np.asarray(got).tobytes() == sum(blocks[rank]).tobytes()
    got = world.alltoall(np.concatenate([np.arange(count, dtype=np.float32) + 100 * rank + b for b in range(size)]))
    wanted = np.concatenate([np.arange(count, dtype=np.float32) + 100 * r + rank for r in range(size)])
    return np.asarray(got).tobytes() == wanted.tobytes()

with unisono.init(timeout=30) as context:
    world = context.world
    chosen = {}
    for op, size in json.loads(sys.argv[1]):
        assert right(world, op, size // 4), (op, size)
        chosen[f"{op} {size}"] = world.last_algorithm.name
    names = world.gather(np.frombuffer(json.dumps(chosen).encode().ljust(4096), np.uint8).copy(), root=0)
    if world.rank == 0:
        assert len({row.tobytes() for row in np.asarray(names).reshape(world.size, -1)}) == 1, "ranks chose differently"
        print(json.dumps({"chosen": chosen, "carrier": world.state.carrier}))
"""


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where the program is not built; no rules of whoever runs the tests."""
    for name in ("UNISONO_TUNING", "UNISONO_ALGORITHM", "UNISONO_DETERMINISM"):
        monkeypatch.delenv(name, raising=False)
    try:
        price_program.find_program()
    except InvalidArgumentError as absent:
        pytest.skip(str(absent))


def configuration(folder: Path, text: str) -> Path:
    path = folder / "network.conf"
    path.write_text(f"policy = pause\n{text}")
    return path


def calls(*operations: str, sizes: tuple[int, ...] = SIZES) -> list[tuple[str, int]]:
    return [(op, size) for op in operations for size in (sizes if op != "barrier" else (0,))]


def job(
    folder: Path, ranks: int, network: Path, these: list[tuple[str, int]], *options: object, **variables: str
) -> Any:
    """What a job on native nodes takes for these calls."""
    program = folder / "program.py"
    program.write_text(CALLS)
    done = subprocess.run(
        command(ranks, "--network", network, *options, program, json.dumps(these)),
        capture_output=True, text=True, timeout=100, env=environment() | variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"said": done.stderr}


def printed(folder: Path, ranks: int, network: Path, text: str) -> list[str]:
    """The words that a program of a job on native nodes prints."""
    program = folder / "program.py"
    program.write_text(text)
    done = subprocess.run(
        command(ranks, "--network", network, program), capture_output=True, text=True, timeout=100, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def explained(
    capsys: pytest.CaptureFixture[str], ranks: int, network: Path, op: str, size: int, *options: object
) -> dict[str, Any]:
    """What `unisono explain` says. One algorithm is simulated, which is enough."""
    one = "dissemination" if op == "barrier" else "pairwise" if op == "alltoall" else "ring"
    if op in ("bcast", "reduce", "gather", "scatter"):
        one = "binomial"
    arguments = [op, "--bytes", size, "--ranks", ranks, "--network", network, "--algorithm", one, *options]
    assert main(["explain", *map(str, arguments), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(
    ("ranks", "text", "options"),
    [
        (8, STAR, ()),
        (8, STAR, ("--switch", "off")),
        (6, "topology = leaf_spine\nleaves = 3\nspines = 2\naggregation = ais@leaf*|ais@spine0\n", ()),
        (4, "topology = torus\ngbps = 10\n", ()),
    ],
    ids=["a switch", "none", "leaves and spine", "torus"],
)
def test_a_job_takes_what_explain_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, ranks: int, text: str, options: tuple[str, ...]
) -> None:
    network = configuration(tmp_path, text)
    these = calls(*OPERATIONS)
    chosen = job(tmp_path, ranks, network, these, *options)["chosen"]
    answers = {f"{op} {size}": explained(capsys, ranks, network, op, size, *options) for op, size in these}
    assert chosen == {name: answer["choice"] for name, answer in answers.items()}
    assert all(answer["reason"].startswith("cheapest by price") for answer in answers.values())
    by_switch = [name for name, algorithm in chosen.items() if algorithm == "switch"]
    assert bool(by_switch) == ("aggregation" in text and not options)
    # Where links are equally fast, a gather is as long with a switch: all blocks go over the root's. (Of long blocks
    # the switch's segments are longer, and have fewer headers.)
    if text == STAR:
        assert not any(f"gather {size}" in by_switch for size in SIZES[:-1])


def test_the_choice_changes_with_the_network(tmp_path: Path) -> None:
    """Where links are slow, bytes matter before rounds do."""
    chosen = []
    for text in ("gbps = 100\n", "gbps = 1\n"):
        network = configuration(tmp_path, text)
        chosen.append(job(tmp_path, 8, network, calls("allreduce", "bcast"))["chosen"])
    assert chosen[0] != chosen[1]


def test_who_comes_before_prices(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any) -> None:
    network = configuration(tmp_path, STAR)
    these = calls("reduce", "gather", sizes=(1024, 65536))
    by_price = job(tmp_path, 8, network, these)["chosen"]
    assert by_price["reduce 1024"] == "switch"
    assert by_price["gather 1024"] != "switch"

    def holds(reason: str, expected: dict[str, str], **variables: str) -> None:
        assert job(tmp_path, 8, network, these, **variables)["chosen"] == by_price | expected
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            for op, size in these:
                answer = explained(capsys, 8, network, op, size)
                assert answer["choice"] == (by_price | expected)[f"{op} {size}"]
                if f"{op} {size}" in expected:
                    assert reason in answer["reason"], answer["reason"]

    pins = "reduce=chain:-4K,gather=switch:64K-"
    holds("pinned by UNISONO_ALGORITHM", {"reduce 1024": "chain", "gather 65536": "switch"}, UNISONO_ALGORITHM=pins)
    # Without prices switches carry what they can.
    all_by_switch = dict.fromkeys(by_price, "switch")
    holds("switches carry what they can", all_by_switch, UNISONO_TUNING="off")
    assert job(tmp_path, 8, network, these, "--prices", "off")["chosen"] == all_by_switch
    assert explained(capsys, 8, network, "gather", 1024, "--prices", "off")["choice"] == "switch"
    # A file that was made for cores takes nothing from switches, unless it says so.
    machine = json.loads(price_program.said("--rules", "--config", network, "-n", 2, seconds=30))
    del machine["hash"]
    rule = {"collective": "reduce", "algorithm": "chain", "max_bytes": 4096}
    file = tmp_path / "own.json"
    file.write_text(json.dumps(machine | {"rules": [rule]}))
    holds("switches carry what they can", all_by_switch, UNISONO_TUNING=str(file))
    file.write_text(json.dumps(machine | {"rules": [rule | {"switches": True}]}))
    holds("", all_by_switch | {"reduce 1024": "chain"}, UNISONO_TUNING=str(file))


def test_stable_reductions_keep_their_order(tmp_path: Path) -> None:
    network = configuration(tmp_path, STAR)
    these = calls("reduce_scatter", "allgather", sizes=(1024, 65536))
    fast = job(tmp_path, 8, network, these)["chosen"]
    assert fast["reduce_scatter 1024"] == "switch"
    assert fast["reduce_scatter 65536"] != "switch"
    stable = job(tmp_path, 8, network, these, UNISONO_DETERMINISM="size_stable")["chosen"]
    assert stable == fast | {"reduce_scatter 65536": "switch"}


def test_equal_runs_take_equal_cycles(tmp_path: Path) -> None:
    network = configuration(tmp_path, STAR)
    these = calls(*OPERATIONS, sizes=(64, 20000))
    said = [job(tmp_path, 5, network, these, "--seed", 7)["said"] for _ in range(2)]
    cycles = [next(line for line in text.splitlines() if " cycles" in line).split(" cycles")[0] for text in said]
    assert cycles[0] == cycles[1]


GROUPS = """
import numpy as np
import unisono
with unisono.init(timeout=30) as context:
    world = context.world
    half, mixed = world.split(world.rank // 4), world.split(0, key=world.rank % 4 * 2 + world.rank // 4)
    for comm in (half, mixed, world.split(0, group_size=4)):
        first = world.rank // 4 * 4
        wanted = sum(range(8)) if comm.size == 8 else sum(range(first, first + 4))
        assert (comm.allreduce(np.full(16, world.rank, np.int32)) == wanted).all()
        if world.rank == 0:
            print(comm.last_algorithm.name)
"""


def test_communicators_choose_by_their_size_and_carrier(tmp_path: Path) -> None:
    network = configuration(tmp_path, "topology = leaf_spine\nleaves = 2\nspines = 1\naggregation = ais@leaf*\n")
    half, mixed, grouped = printed(tmp_path, 8, network, GROUPS)
    assert half == "switch"
    assert mixed not in ("switch", "two_level"), "no tree serves it; what is cheapest among the ranks"
    assert grouped == "switch", "nothing was priced with groups, so switches carry what they can"


NAMED = """
import numpy as np
import unisono
with unisono.init(timeout=30) as context:
    world = context.world
    got = world.gather(np.full(3, world.rank), root=0, algorithm="switch")
    assert world.rank != 0 or (np.asarray(got).ravel() == np.repeat(range(4), 3)).all()
    assert world.last_algorithm.name == "switch"
    mixed = world.split(0, key=world.rank % 2 * 2 + world.rank // 2)
    try:
        mixed.gather(np.ones(3), root=0, algorithm="switch")
    except unisono.UnsupportedError as error:
        assert "a tree of members and switches" in str(error)
        print("refused")
"""


def test_a_call_can_name_the_switches(tmp_path: Path) -> None:
    network = configuration(tmp_path, "topology = leaf_spine\nleaves = 2\nspines = 1\naggregation = ais@leaf*\n")
    assert printed(tmp_path, 4, network, NAMED) == ["refused"] * 4


def test_what_no_job_has_is_not_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    network = configuration(tmp_path, STAR)
    answer = explained(capsys, 9, network, "allreduce", 64, "--switch", "rtl")
    assert answer["choice"] != "switch"
    assert answer["unserved"] == "switch0 has 9 neighbours; switches in hardware have 8 ports"
    assert explained(capsys, 8, network, "allreduce", 64, "--switch", "rtl")["choice"] == "switch"
    assert (
        main(["explain", "allreduce", "--bytes", "64", "--ranks", "9", "--network", str(network), "--switch", "rtl"])
        == 0
    )
    text = capsys.readouterr().out
    assert "No job has the switches" in text
    assert 'algorithm="switch"' not in text


def test_options_that_contradict_are_refused(tmp_path: Path) -> None:
    network = configuration(tmp_path, STAR)
    program = tmp_path / "program.py"
    program.write_text("")
    for arguments, variables, said in (
        ((2, "--prices", "on", program), {}, "--prices is of a simulated network"),
        ((2, "--network", network, "--prices", "on", program), {"UNISONO_TUNING": "off"}, "take one of the two"),
    ):
        done = subprocess.run(
            command(*arguments), capture_output=True, text=True, timeout=100, env=environment() | variables
        )
        assert done.returncode == 2
        assert said in done.stderr, done.stderr


@pytest.mark.skipif(os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set")
def test_verilated_engines_and_switches_take_what_explain_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    network = configuration(tmp_path, STAR)
    these = calls(*OPERATIONS, sizes=(64, 4096, 65536))
    program = tmp_path / "program.py"
    program.write_text(CALLS)
    around = {
        name: value for name, value in os.environ.items() if name in ("UNISONO_CLUSTER",) or "UNISONO" not in name
    }
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "8", "--platform", "rtl", "--network", str(network), "--switch",
         "rtl", str(program), json.dumps(these)],
        capture_output=True, text=True, timeout=600, env=around | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    chosen = json.loads(done.stdout.splitlines()[-1])["chosen"]
    assert chosen == {
        f"{op} {size}": explained(capsys, 8, network, op, size, "--switch", "rtl")["choice"] for op, size in these
    }
    assert chosen["allreduce 64"] == chosen["allreduce 65536"] == "switch"
    assert chosen["gather 64"] != "switch"
