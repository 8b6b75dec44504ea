"""The same training on Unisono and on gloo, on 1, 2 and 4 ranks: what they learn, and how fast.

    python apps/train/compare.py --picture losses.svg

Writes a table and a picture of the losses; 1 if Unisono's accuracy or weights are not as gloo's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import curves
import digits
import job
import torch
from rich.console import Console
from rich.table import Table

WAYS = {"gloo": ("gloo", "fp32"), "unisono": ("unisono", "fp32"), "unisono, bf16": ("unisono", "bf16")}
ROUNDING = 2e-5  # weights after some hundred steps whose sums were added up in another order
ACCURACY = 0.02  # bf16 may recognise so much less


class Trained(NamedTuple):
    """What came of one training."""

    losses: list[float]
    end: dict[str, Any]
    weights: dict[str, torch.Tensor]


def trained(way: str, ranks: int, epochs: int, folder: Path) -> Trained:
    """Trains in a job of its own."""
    backend, wire = WAYS[way]
    folder.mkdir(parents=True)
    weights = folder / "weights.pt"
    lines = job.training(
        ranks, folder, "--backend", backend, "--wire", wire, "--epochs", epochs, "--weights", weights
    )  # fmt: skip
    losses = [line["loss"] for line in lines if "step" in line]
    return Trained(losses, lines[-1], torch.load(weights, weights_only=True))


def difference(one: Trained, other: Trained) -> float:
    """The greatest difference of a weight."""
    return max(float((one.weights[name] - other.weights[name]).abs().max()) for name in other.weights)


def paces(model: str, ranks: int, turns: int, folder: Path) -> dict[str, list[float]]:
    """For each way the seconds of a step, turn by turn."""
    file = folder / f"pace.{model}.{ranks}.json"
    status, said = job.torchrun(ranks, "pace.py", "--model", model, "--turns", turns, "--json", file)
    if not file.exists():
        raise job.TrainingError(f"pace.py on {ranks} ranks ended with {status}:\n{said}")
    return json.loads(file.read_text())  # type: ignore[no-any-return]


def learning(results: dict[int, dict[str, Trained]]) -> tuple[Table, list[str]]:
    """The table of what was learned, and what is wrong with it."""
    table = Table("ranks", "backend", "loss", "accuracy", "weights against gloo's", "on all ranks")
    problems = []
    for ranks, of_ranks in results.items():
        gloo = of_ranks["gloo"]
        for way, one in of_ranks.items():
            off = difference(one, gloo)
            against = "" if one is gloo else "equal, bit for bit" if off == 0 else f"differ by {off:.1e} at most"
            same = one.end["same_on_all_ranks"]
            table.add_row(
                str(ranks), way, f"{one.end['loss']:.4f}", f"{one.end['accuracy']:.2%}", against,
                "equal" if same else "NOT EQUAL",
            )  # fmt: skip
            name = f"{way} on {ranks} ranks"
            if not same:
                problems.append(f"{name}: the ranks ended with different weights")
            if one.end["accuracy"] < gloo.end["accuracy"] - ACCURACY:
                problems.append(f"{name}: {one.end['accuracy']:.2%} recognised, by gloo {gloo.end['accuracy']:.2%}")
            # Two numbers have one sum. More have one for each order.
            if way == "unisono" and off > (0 if ranks <= 2 else ROUNDING):
                problems.append(f"{name}: weights differ from gloo's by {off:.1e}")
    return table, problems


def speed(model: str, results: dict[int, dict[str, list[float]]]) -> Table:
    """The table of the pace of one network."""
    table = Table("ranks", "backend", "step", "images/s", "time beside gloo's", title=f"{model} network")
    for ranks, of_ranks in results.items():
        for way, times in of_ranks.items():
            ratios = sorted(mine / gloo for mine, gloo in zip(times, of_ranks["gloo"], strict=True))
            quarter = len(ratios) // 4
            table.add_row(
                str(ranks), way, f"{median(times) * 1e3:.2f} ms", f"{digits.BATCH / median(times):,.0f}",
                f"{median(ratios):.2f} x (half of the turns: {ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f})",
            )  # fmt: skip
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="The same training on Unisono and on gloo.")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], help="default: 1 2 4")
    parser.add_argument("--epochs", type=int, default=12, help="default: 12")
    parser.add_argument("--turns", type=int, default=9, help="of the comparison of speed; 0: none (default: 9)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="of the losses, as SVG")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keeps what each training tells of itself, and weights"
    )
    options = parser.parse_args()
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        results: dict[int, dict[str, Trained]] = {}
        for ranks in options.ranks:
            results[ranks] = {
                way: trained(way, ranks, options.epochs, folder / f"{way}, {ranks} ranks") for way in WAYS
            }
        table, problems = learning(results)
        console.print(table)
        if options.picture:
            panels = {
                f"{ranks} rank{'s' * (ranks > 1)}": {way: one.losses for way, one in of_ranks.items()}
                for ranks, of_ranks in results.items()
            }
            options.picture.write_text(curves.svg(panels))
        for model in ("small", "large") if options.turns else ():
            of_model = {ranks: paces(model, ranks, options.turns, folder) for ranks in options.ranks}
            console.print(speed(model, of_model))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
