"""Instructions of small calls, counted by callgrind (tools/instructions)."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "build/release/bench/bench_overhead"
RECORD = ROOT / "bench/instructions.json"
GROWTH = 0.02  # that --check allows


@dataclass(frozen=True)
class Case:
    """Calls whose instructions are counted: the difference of two runs, by the difference of their calls."""

    name: str
    options: tuple[str, ...]
    few: int
    many: int
    inside: tuple[str, ...] = ("unisono_run",)  #: functions that are counted, with all that they call
    ranks: int = 1  #: that call, all in one thread


CASES = (
    Case("blocking barrier, 1 rank", ("--alone", "barrier"), 1000, 3000),
    Case("blocking all-gather of 4 B, 1 rank", ("--alone", "allgather"), 1000, 3000),
    Case(
        "started all-reduce of 4 B, 2 ranks, each",
        ("--started",),
        1000,
        3000,
        ("unisono_start", "unisono_test"),
        ranks=2,
    ),
    Case("first blocking all-gather of 4 B", ("--alone", "allgather"), 0, 1),
)


def collected(case: Case, calls: int) -> int:
    """Instructions of all calls of a run."""
    if calls == 0:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [f"--toggle-collect={function}" for function in case.inside]
        command += [str(PROGRAM), "--calls", str(calls), *case.options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"tools/instructions: {PROGRAM.name} under callgrind failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def count(case: Case) -> float:
    """Instructions of one call of one rank."""
    grown = collected(case, case.many) - collected(case, case.few)
    return grown / (case.many - case.few) / case.ranks


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="tools/instructions", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail if a call has become more than 2 %% longer")
    what.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    options = parser.parse_args()
    recorded: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    counted: dict[str, float] = {}
    longer = 0
    width = max(len(case.name) for case in CASES)
    print(f"{'':{width}}  instructions  recorded")
    for case in CASES:
        counted[case.name] = round(count(case), 1)
        line = f"{case.name:{width}}  {counted[case.name]:12.1f}"
        if case.name in recorded:
            ratio = counted[case.name] / recorded[case.name]
            longer += ratio > 1 + GROWTH
            line += f"  {recorded[case.name]:8.1f}  × {ratio:.3f}" + ("  LONGER" if ratio > 1 + GROWTH else "")
        print(line, flush=True)
    if options.record:
        RECORD.write_text(json.dumps(counted, indent=2) + "\n")
        print(f"wrote {RECORD.relative_to(ROOT)}")
    if options.check and longer:
        print(f"{longer} of {len(CASES)} have become longer by more than {GROWTH:.0%}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
