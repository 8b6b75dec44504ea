"""A graph through ranks: `unisono run` of rank.py, each result compared with the reference, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import expected
import numpy as np
from graphs import Floats, Graph
from model import DATAFLOWS, LAYOUTS, Plan
from tiles import circulant

HERE = Path(__file__).resolve().parent
SECONDS = 900  #: for all ways of a graph


@dataclass(frozen=True)
class Outcome:
    """What came of one way through both layers."""

    how: str
    logits: Floats
    bytes: list[list[int]]  #: of each node: sent, received


def plans_to_try(nodes: int, chosen: Sequence[Plan]) -> list[tuple[str, list[Plan]]]:
    """Both baselines; tiles of all three kinds by each handler, the first layer in two strips; what has been chosen."""
    none = Plan(np.zeros((nodes, nodes), np.bool_))
    mixed = circulant(nodes, 1)
    ways = [("all_gather", [none, none]), ("needed_rows", [none, none])]
    for dataflow in DATAFLOWS:
        for layout in LAYOUTS:
            ways.append(("switch", [Plan(mixed, dataflow, layout, 2), Plan(mixed, dataflow, layout)]))
    if any(plan.offload.any() for plan in chosen):
        ways.append(("switch", list(chosen)))
    return ways


def words(how: str, plan: Plan) -> dict[str, Any]:
    """For JSON."""
    return {"how": how, "offload": plan.offload.tolist(), "dataflow": plan.dataflow, "layout": plan.layout,
            "strips": plan.strips}  # fmt: skip


def compare(how: str, plans: Sequence[Plan], logits: Floats, wanted: Floats) -> None:
    """Ends the program if a bit differs."""
    wrong = np.flatnonzero((logits.view(np.uint32) != wanted.view(np.uint32)).any(axis=1))
    if len(wrong):
        label = f"{how}, {plans[0].dataflow}, {plans[0].layout}" if how == "switch" else how
        raise SystemExit(f"gcn: {label}: {len(wrong)} of {len(logits)} rows differ from the reference, the first is "
                         f"{wrong[0]}")  # fmt: skip


def run(graph: Graph, features: Floats, weights: Sequence[Floats], nodes: int,
        ways: list[tuple[str, list[Plan]]]) -> list[Outcome]:  # fmt: skip
    """Ends the program if ranks fail, or if a bit differs from the reference."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "graph.npz", sizes=astuple(graph.sizes), first=graph.first, columns=graph.columns,
                 features=features, weight0=weights[0], weight1=weights[1])  # fmt: skip
        (folder / "job.json").write_text(json.dumps([[words(how, plan) for plan in plans] for how, plans in ways]))
        command = [sys.executable, "-m", "unisono", "run", "-n", str(nodes + 1), str(HERE / "rank.py"), name]
        try:
            done = subprocess.run(command, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"gcn: ranks take longer than {SECONDS} seconds; make the graph smaller by --scale, or "
                             "leave them out by --no-ranks") from None  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(done.returncode)
        outcomes = []
        for number, (how, plans) in enumerate(ways):
            logits = np.concatenate([np.load(folder / f"rows-{number}-{rank}.npy") for rank in range(nodes)])
            compare(how, plans, logits, expected.forward(graph, features, weights, plans, nodes))
            moved = [json.loads((folder / f"bytes-{number}-{rank}.json").read_text()) for rank in range(nodes)]
            outcomes.append(Outcome(how, logits, moved))
    return outcomes
