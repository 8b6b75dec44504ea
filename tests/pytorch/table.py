"""torch's own distributed tests on Unisono, beside gloo: a table, and whether each difference has its reason.

    .venv-torch/bin/python tests/pytorch/table.py [--only PATTERN] [--json FILE]

Each test runs on both backends, told that it runs on gloo, then told that it runs on MPI: torch keeps some for each.
Ends with status 1 if a test that passes on gloo does not on Unisono, and reasons.toml does not say why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 900  # of one run of the suite
BACKENDS = ("unisono", "gloo")
TOLD = ("gloo", "mpi")


def outcomes(backend: str, told: str, only: str) -> dict[str, dict[str, str]]:
    """By test: what a run of the suite says."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "UNISONO_SUITE_BACKEND": backend,
            "UNISONO_SUITE_AS": told,
            "TEMP_DIR": folder,
            "PYTHONPATH": str(ROOT / "python"),
        }
        lines = Path(folder) / "lines"
        done = subprocess.run(
            [sys.executable, str(HERE / "suite.py"), "--only", only, "--json", str(lines)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=SECONDS, env=environment, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not lines.exists():
            sys.exit(f"the suite ended with status {done.returncode} on {backend}:\n{done.stderr[-4000:]}")
        return {found["test"]: found for found in map(json.loads, lines.read_text().splitlines())}


def main() -> int:
    """Runs, prints, compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of tests, with * and ?, separated by commas")
    parser.add_argument("--json", type=Path, help="a file for a line of each test")
    given = parser.parse_args()
    reasons = tomllib.loads((HERE / "reasons.toml").read_text())
    console = Console()
    table = Table("told that it is", "backend", "passed", "failed", "skipped by torch", title="torch's own tests")
    unexplained: list[str] = []
    obsolete: list[str] = []
    skips: Counter[str] = Counter()
    for told in TOLD:
        found = {backend: outcomes(backend, told, given.only) for backend in BACKENDS}
        for backend, tests in found.items():
            counts = Counter(each["outcome"] for each in tests.values())
            table.add_row(told, backend, *(str(counts[name]) for name in ("passed", "failed", "skipped")))
            if given.json is not None:
                with given.json.open("a") as file:
                    file.writelines(json.dumps(each) + "\n" for each in tests.values())
        for name, ours in found["unisono"].items():
            known = reasons.get(told, {}).get(name)
            if ours["outcome"] == "skipped":
                skips[ours["reason"]] += 1
            if ours["outcome"] == "passed" and known:
                obsolete.append(f"{name} (told {told}) passes, but reasons.toml says: {known}")
            theirs = found["gloo"].get(name, {}).get("outcome")
            if ours["outcome"] != "passed" and (theirs == "passed" or ours["outcome"] != theirs) and not known:
                unexplained.append(f"{name} (told {told}): {ours['outcome']}\n{ours['reason']}")
    console.print(table)
    console.print("Skipped by torch, and why:")
    for reason, count in skips.most_common():
        console.print(f"  {count:4}  {reason}", highlight=False)
    for known in reasons.get("gloo", {}).items():
        console.print(f"Not passed, with a reason: {known[0]}: {known[1]}", highlight=False)
    for each in unexplained + obsolete:
        console.print(f"[red]{each}[/red]", highlight=False)
    if not unexplained and not obsolete:
        console.print(
            "Each test that passes on gloo passes on unisono, or has its reason in tests/pytorch/reasons.toml."
        )
    return 1 if unexplained or obsolete else 0


if __name__ == "__main__":
    sys.exit(main())
