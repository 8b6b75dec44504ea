"""A rank is killed amid the training: how soon the others know, and whether a restarted job ends as if nothing was.

    python apps/train/survive.py

First the others are left to themselves (`unisono run --keep-going`): each must raise an error that names the dead rank,
within a second. Then torchrun starts all ranks again, and they go on from the last checkpoint: the weights must be
those of a training that nothing interrupted, bit for bit.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import digits
import job

WITHIN = 1.0  # seconds


def reactions(ranks: int, died: int) -> tuple[dict[int, tuple[float, str]], str]:
    """Of each rank that raised: after how many seconds, and what. With it all that the job said."""
    at = digits.STEPS + 3  # a step of the second epoch
    _, said = job.unisono(ranks, "train.py", "--epochs", 3, "--die", died, at, options=("--keep-going",))
    death = re.search(r"rank (\d+) dies at ([\d.]+)", said)
    if death is None:
        return {}, said
    raised = re.findall(r"rank (\d+) fails at ([\d.]+): (.*)", said)
    return {int(rank): (float(when) - float(death[2]), text) for rank, when, text in raised}, said


def errors(ranks: int, died: int) -> list[str]:
    """What is wrong with how the others learn of it; prints what they say."""
    known, said = reactions(ranks, died)
    problems = []
    for rank in range(ranks):
        if rank == died:
            continue
        if rank not in known:
            problems.append(f"rank {rank} has raised nothing:\n{said}")
            continue
        seconds, text = known[rank]
        print(f"rank {rank}, {seconds * 1e3:.0f} ms after rank {died} was killed: {text}")
        if seconds > WITHIN:
            problems.append(f"rank {rank} has raised after {seconds:.2f} s")
        if not re.search(rf"rank {died}\b.* has died", text):
            problems.append(f"rank {rank} does not name rank {died}: {text}")
    return problems


def restart(ranks: int, died: int, epochs: int, folder: Path) -> list[str]:
    """What is wrong with a training that is restarted, beside one that is not."""
    whole, broken = folder / "whole", folder / "broken"
    whole.mkdir()
    broken.mkdir()
    wanted = job.training(ranks, whole, "--epochs", epochs)[-1]
    at = (epochs // 2) * digits.STEPS + 3
    got = job.training(
        ranks, broken, "--epochs", epochs, "--die", died, at, "--checkpoint", broken / "state",
        options=("--max-restarts", "1"),
    )[-1]  # fmt: skip
    print(
        f"killed in epoch {epochs // 2} and restarted: went on after {got['resumed']} of {epochs} epochs, "
        f"{got['accuracy']:.2%} recognised, weights {got['weights']};\n"
        f"without interruption: {wanted['accuracy']:.2%} recognised, weights {wanted['weights']}"
    )
    problems = []
    if (got["restart"], got["resumed"]) != (1, epochs // 2):
        problems.append(f"restarted {got['restart']} times, and went on after {got['resumed']} epochs")
    if got["weights"] != wanted["weights"]:
        problems.append("the weights differ")
    return problems


def main() -> int:
    """1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="A rank is killed amid the training.")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6, help="of the training that is restarted (default: 6)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        problems = errors(options.ranks, died=1) + restart(options.ranks, 1, options.epochs, Path(name))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
