"""Runs the tests of the hardware's modules: a process for each core, which take tests from one pile.

An area is a folder of tests/rtl with tests, or a file of tests beside the folders; without names, all of them. The
width is that of UNISONO_TEST_MODULES, `quick` unless it says `full`, as --full does. One line for each area: how many
tests passed, and the seconds of processor time they took. Logs are in build/logs/rtl.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "rtl"
LOGS = ROOT / "build" / "logs" / "rtl"
LIMIT_S = {"quick": 1500, "full": 3600}
BAD = ("failed", "error", "not run")


def areas() -> list[str]:
    """The areas there are."""
    return sorted({path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")})


def work(names: list[str], width: str, workers: int) -> list[int]:
    """Has the processes share the tests of these areas; returns their exit statuses."""
    shutil.rmtree(LOGS, ignore_errors=True)
    (LOGS / "claims").mkdir(parents=True)
    environment = dict(os.environ)
    environment["UNISONO_TEST_MODULES"] = width
    environment["UNISONO_TEST_CLAIMS"] = str(LOGS / "claims")
    environment["UNISONO_TEST_TIMES"] = str(LOGS / "times.jsonl")
    places = [str((TESTS / name).relative_to(ROOT)) for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *places]
    command = ["timeout", "--kill-after=10", str(LIMIT_S[width]), *command]
    running = []
    for number in range(workers):
        with (LOGS / f"worker-{number}.log").open("w") as log:
            running.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT))
    return [process.wait() for process in running]


def report(names: list[str]) -> Counter[str]:
    """Prints a line for each area; returns how many tests ended how."""
    times = LOGS / "times.jsonl"
    lines: list[dict[str, Any]] = []
    if times.exists():
        lines = [json.loads(line) for line in times.read_text().splitlines()]
    total: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for line in lines:
        area = line["test"].split("/")[0].split("::")[0]
        outcomes.setdefault(area, Counter())[line["outcome"]] += 1
        seconds[area] += line["processor_seconds"]
    for area, found in sorted(outcomes.items(), key=lambda pair: -seconds[pair[0]]):
        if not found:
            found["not run"] += 1
        said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items()))
        print(f"{area:<24} {seconds[area]:6.0f} s  {said}")
        total += found
    for line in lines:
        if line["outcome"] in BAD:
            print(f"{line['outcome']}: {line['test']}")
    return total


def main() -> int:
    """Runs the areas named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", help="areas to test (default: all)")
    parser.add_argument("--full", action="store_true", help="all sets of parameters, all random data")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    arguments = parser.parse_args()
    width = "full" if arguments.full else os.environ.get("UNISONO_TEST_MODULES", "quick")
    if width not in LIMIT_S:
        parser.error(f"UNISONO_TEST_MODULES={width}: neither quick nor full")
    names = list(dict.fromkeys(arguments.areas)) or areas()
    if missing := [name for name in names if not (TESTS / name).exists()]:
        parser.error(f"no such area: {', '.join(missing)}; there are {', '.join(areas())}")
    begin = time.monotonic()
    statuses = work(names, width, arguments.jobs)
    total = report(names)
    bad = any(statuses) or any(total[outcome] for outcome in BAD)
    if bad:
        for log in sorted(LOGS.glob("worker-*.log")):
            print(f"--- {log.relative_to(ROOT)}")
            print("\n".join(log.read_text(errors="replace").splitlines()[-60:]))
    failed = sum(total[outcome] for outcome in BAD)
    print(f"{width}: {total['passed']} passed, {failed} failed, {time.monotonic() - begin:.0f} s")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
