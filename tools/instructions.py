"""Instructions and cache lines of small calls, counted under valgrind (tools/instructions)."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "build/release/bench/bench_overhead"
RECORD = ROOT / "bench/instructions.json"
GROWTH = 0.02  # that --check allows, of instructions
MORE_LINES = 1  # that --check allows: where a buffer or the stack begins is not the call's doing
LINE = 64  # bytes
MARK = f"{1 << 40:x},".encode()  # the address that bench_overhead --marked stores to before and behind a call


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
    Case("blocking all-reduce of 4 B, the other rank has come", ("--met",), 1000, 3000),
    Case("first blocking all-gather of 4 B", ("--alone", "allgather"), 0, 1),
    Case("first blocking all-reduce of 4 B, the other rank has come", ("--met",), 0, 1),
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


@dataclass(frozen=True)
class Lines:
    """Distinct cache lines that a call touches."""

    data: int
    code: int


def touched(trace: Iterable[bytes]) -> list[Lines]:
    """The lines between each two stores to the marker, in a trace of lackey."""
    found: list[Lines] = []
    data: set[int] = set()
    code: set[int] = set()
    inside = False
    for line in trace:
        kind = line[:3]
        if kind not in (b"I  ", b" S ", b" L ", b" M "):
            continue
        if line.startswith(MARK, 3):
            if inside:
                found.append(Lines(len(data), len(code)))
            data, code, inside = set(), set(), not inside
        elif inside:
            address, _, length = line[3:].partition(b",")
            first = int(address, 16)
            lines = range(first // LINE, (first + int(length) - 1) // LINE + 1)
            (code if kind == b"I  " else data).update(lines)
    return found


def count_lines() -> dict[str, Lines]:
    """The cache lines of single calls, by name."""
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", str(PROGRAM), "--marked"]
    # What the stack holds depends on the environment.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}
    ) as run:
        assert run.stderr is not None
        assert run.stdout is not None
        lines = touched(run.stderr)
        names = run.stdout.read().decode().splitlines()
    if run.returncode != 0 or not names or len(names) != len(lines):
        raise SystemExit(
            f"tools/instructions: {PROGRAM.name} --marked under lackey: {len(lines)} calls, {len(names)} names"
        )
    return dict(zip(names, lines, strict=True))


def compare_lines(counted: dict[str, Lines], recorded: dict[str, float]) -> tuple[dict[str, float], int]:
    """Prints the lines beside those on record; what is to be recorded, and how many calls touch more."""
    width = max(map(len, counted))
    print(f"\n{'cache lines of a call':{width}}  data  recorded  code  recorded")
    result: dict[str, float] = {}
    more = 0
    for name, lines in counted.items():
        text = f"{name:{width}}"
        grown = False
        for kind, number in (("data", lines.data), ("code", lines.code)):
            key = f"{name}: lines of {kind}"
            result[key] = number
            allowed = recorded.get(key, number)
            grown |= number > max(allowed + MORE_LINES, allowed * (1 + GROWTH))
            text += f"  {number:4}  {recorded.get(key, ''):>8}"
        more += grown
        print(text + ("  MORE" if grown else ""), flush=True)
    return result, more


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="tools/instructions", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check", action="store_true", help="fail if a call has become more than 2 %% longer, or touches more lines"
    )
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
    lines, more = compare_lines(count_lines(), recorded)
    if options.record:
        RECORD.write_text(json.dumps(counted | lines, indent=2) + "\n")
        print(f"wrote {RECORD.relative_to(ROOT)}")
    if options.check and longer:
        print(f"{longer} of {len(CASES)} have become longer by more than {GROWTH:.0%}")
    if options.check and more:
        print(f"{more} calls touch more cache lines than on record")
    return 1 if options.check and (longer or more) else 0


if __name__ == "__main__":
    sys.exit(main())
