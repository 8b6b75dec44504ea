"""apps/train, started as a user starts it, and what it stands on: torch's ways to train on Unisono and on gloo."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
TRAIN = ROOT / "apps/train"
PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = 120
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "SLURM_", "MPI_LOCAL", "UNISONO_", "TORCHELASTIC_", "MASTER_")
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
EPOCHS = 4
STEPS = 14  # of an epoch
JOURNAL = "journal.jsonl"
ABORTED = "terminate called without an active exception"
WAYS = ["gloo", "unisono", "unisono, bf16"]

Runs = dict[str, list[dict[str, Any]]]


def clean() -> dict[str, str]:
    """The environment without jobs and launchers."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS) and k not in TORCHRUN}
    return kept | {"UNISONO_KERNEL_COPY": "off", "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that has torch: this one, or that of `make torch`."""
    for candidate in (sys.executable, str(ROOT / ".venv-torch/bin/python")):
        tried = [candidate, "-c", "import torch, sklearn, rich, ml_dtypes"]
        try:
            found = subprocess.run(tried, capture_output=True, timeout=SECONDS, env=clean(), check=False)
        except OSError:
            continue
        if found.returncode == 0:
            return candidate
    pytest.skip("torch and scikit-learn are not installed; `make torch` installs them in .venv-torch")


def together(python: str, ranks: int, program: Path, *arguments: object, gloo: bool = True) -> list[str]:
    """Runs a program on so many ranks, which torch's variables tell of each other: what each has said.

    `gloo`: it uses gloo, whose threads abort some processes that are done. Callers look at what these were to write.
    """
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    job = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [python, str(program), *map(str, arguments)]
    started = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean() | job | {"RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    try:
        said = [process.communicate(timeout=SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for process, text in zip(started, said, strict=True):
        assert process.returncode == 0 or (gloo and ABORTED in text), text
    return said


def journal(folder: Path) -> list[dict[str, Any]]:
    """What a training has written."""
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def training(python: str, folder: Path, *arguments: object, ranks: int = 2) -> list[dict[str, Any]]:
    """What a training tells of itself."""
    said = together(python, ranks, TRAIN / "train.py", "--json", folder / JOURNAL, *arguments, gloo=False)
    lines = journal(folder)
    assert lines[-1].get("done"), said
    return lines


def losses(lines: list[dict[str, Any]]) -> list[float]:
    return [line["loss"] for line in lines if "step" in line]


# ------------------------------------------------------------------------------------------------------------ training


@pytest.fixture(scope="module")
def compared(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What compare.py says, and the folder where it keeps the same training in three ways."""
    folder = tmp_path_factory.mktemp("compared")
    command = [python, str(TRAIN / "compare.py"), "--ranks", "2", "--epochs", str(EPOCHS), "--turns", "0"]
    done = subprocess.run(
        [*command, "--keep", str(folder), "--picture", str(folder / "losses.svg")],
        capture_output=True, text=True, timeout=SECONDS, env=clean() | {"COLUMNS": "120"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


@pytest.fixture(scope="module")
def runs(compared: tuple[str, Path]) -> Runs:
    """What each of these trainings tells of itself."""
    return {way: journal(compared[1] / f"{way}, 2 ranks") for way in WAYS}


def test_two_ranks_learn_what_they_learn_on_gloo(runs: Runs) -> None:
    gloo, unisono = runs["gloo"], runs["unisono"]
    assert [gloo[-1]["backend"], unisono[-1]["backend"]] == ["gloo", "unisono"]
    assert len(losses(unisono)) == EPOCHS * STEPS
    assert losses(unisono) == losses(gloo)
    for end in (gloo[-1], unisono[-1]):
        assert end["same_on_all_ranks"]
        assert end["loss"] < losses(gloo)[0] - 0.1, "nothing was learned"
    assert unisono[-1]["weights"] == gloo[-1]["weights"]
    assert unisono[-1]["accuracy"] == gloo[-1]["accuracy"] > 0.3


def test_ranks_share_out_each_batch(python: str, runs: Runs, tmp_path: Path) -> None:
    """One rank sees what two see together. If both had the same images, losses and steps would be others."""
    alone = losses(training(python, tmp_path, "--epochs", 1, ranks=1))
    np.testing.assert_allclose(losses(runs["unisono"])[:STEPS], alone, rtol=1e-5)


def test_gradients_that_travel_as_bf16(runs: Runs) -> None:
    narrow, wide = runs["unisono, bf16"], runs["unisono"]
    assert narrow[-1]["same_on_all_ranks"]
    assert narrow[-1]["weights"] != wide[-1]["weights"], "nothing was rounded"
    np.testing.assert_allclose(losses(narrow), losses(wide), rtol=0.05)
    assert losses(narrow)[0] == losses(wide)[0], "no step had been taken"


def test_a_resumed_training_ends_with_the_same_weights(python: str, runs: Runs, tmp_path: Path) -> None:
    state = tmp_path / "state"
    options = ("--checkpoint", state)
    first = training(python, tmp_path, "--epochs", EPOCHS - 1, *options)
    assert first[-1]["weights"] != runs["unisono"][-1]["weights"]
    second = training(python, tmp_path, "--epochs", EPOCHS, *options)
    assert second[-1]["resumed"] == EPOCHS - 1
    assert second[-1]["weights"] == runs["unisono"][-1]["weights"]
    assert losses(second) == losses(runs["unisono"])  # of both, in one journal
    assert [path.name for path in state.iterdir()] == ["checkpoint.pt"]


def test_a_killed_rank_is_named_within_a_second_and_a_restart_goes_on(python: str) -> None:
    command = [python, str(TRAIN / "survive.py"), "--ranks", "2", "--epochs", str(EPOCHS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=clean(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    raised = re.search(r"rank 0, (\d+) ms after rank 1 was killed: (.*)", done.stdout)
    assert raised is not None, done.stdout
    assert int(raised[1]) < 1000
    assert re.search(r"\brank 1, .*has died", raised[2])
    assert "restarted: went on after 2 of 4 epochs" in done.stdout
    weights = re.findall(r"weights (\w{16})", done.stdout)
    assert len(weights) == 2
    assert weights[0] == weights[1]


# ------------------------------------------------------------------------------------------------------- ways to train


@pytest.fixture(scope="module", params=[2, 3])
def shared_out(
    request: pytest.FixtureRequest, python: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, Any, Any]:
    """Ranks, and what all ways of strategies.py give on Unisono and on gloo."""
    ranks = request.param
    folder = tmp_path_factory.mktemp("strategies")
    together(python, ranks, PROGRAMS / "strategies.py", folder)
    return ranks, np.load(folder / "unisono.npz"), np.load(folder / "gloo.npz")


@pytest.mark.parametrize("way", ["ddp", "fsdp", "tensor"])
def test_ways_to_train_give_what_they_give_on_gloo(way: str, shared_out: tuple[int, Any, Any]) -> None:
    ranks, unisono, gloo = shared_out
    names = [name for name in gloo.files if name.startswith(way + ".")]
    assert len(names) == 1 + 6
    for name in names:
        if ranks == 2:  # two numbers have one sum
            np.testing.assert_array_equal(unisono[name], gloo[name], name)
        else:
            np.testing.assert_allclose(unisono[name], gloo[name], rtol=1e-5, atol=1e-6, err_msg=name)
    of_ranks = unisono[way + ".losses"]
    assert len(of_ranks) == ranks
    different = len({tuple(row) for row in of_ranks.tolist()})
    assert different == (1 if way == "tensor" else ranks), "the ranks' data must differ, but of tensor parallel"


def test_hooks(python: str) -> None:
    for text in together(python, 2, PROGRAMS / "hooks.py"):
        assert "fine\n" in text


# ---------------------------------------------------------------------------------------------------------- comparison


def test_compare(compared: tuple[str, Path]) -> None:
    said, folder = compared
    assert said.count("equal, bit for bit") == 1
    root = ET.parse(folder / "losses.svg").getroot()
    curves = [each for each in root.iter("{http://www.w3.org/2000/svg}path") if each.get("stroke-linejoin")]
    assert [each.get("d", "").count("L") for each in curves] == [EPOCHS * STEPS - 1] * 3


def test_pace(python: str, tmp_path: Path) -> None:
    file = tmp_path / "pace.json"
    said = together(python, 2, TRAIN / "pace.py", "--model", "small", "--turns", 2, "--json", file)
    times = json.loads(file.read_text())
    assert {way: len(of_way) for way, of_way in times.items()} == dict.fromkeys([*WAYS, "unisono, buckets of torch"], 2)
    assert all(0 < time < SECONDS for of_way in times.values() for time in of_way)
    assert "1.00 x gloo" in said[0]
