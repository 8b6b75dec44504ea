"""Tables of the command on terminals of 80 columns, and where there is no terminal at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import unisono
from unisono.cli import calibrate, doctor, housekeeping, main
from unisono.machine import Finding, State

ROOT = Path(__file__).resolve().parents[3]
WIDTH = 80
NO_TABLE = ("Predictions by", "Last measured", "Written to", "Picture of")  # sentences with paths stay whole


def lines_of(*arguments: object, columns: int | None = WIDTH, status: int = 0) -> list[str]:
    """What a command prints into a pipe."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    paths = os.environ.get("PYTHONPATH") or str(ROOT / "python")
    environment |= {"PYTHONPATH": paths} | ({} if columns is None else {"COLUMNS": str(columns)})
    done = subprocess.run(
        [sys.executable, "-m", "unisono", *map(str, arguments)], capture_output=True, text=True, timeout=120,
        env=environment,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines()


def fit(lines: list[str]) -> None:
    longest = max((line for line in lines if not line.startswith(NO_TABLE)), key=len)
    assert len(longest) <= WIDTH, longest
    assert not [line for line in lines if "…" in line]


EXPLAINED = [
    ["allreduce", "--bytes", "64K", "--ranks", "4"],
    ["allreduce", "--bytes", "4M", "--ranks", "4", "--buffers", "allocated"],
    ["reduce_scatter", "--bytes", "1M", "--ranks", "16", "--cores", "16"],
    ["bcast", "--bytes", "4M", "--ranks", "100"],
    ["alltoallv", "--bytes", "4K", "--ranks", "3"],
    ["barrier"],
]


@pytest.mark.parametrize("columns", [WIDTH, None])
@pytest.mark.parametrize("call", EXPLAINED, ids=lambda call: call[0])
def test_explain(call: list[str], columns: int | None) -> None:
    lines = lines_of("explain", *call, columns=columns)
    fit(lines)
    rule = next(number for number, line in enumerate(lines) if line.startswith("───"))
    rows = lines[rule + 1 : lines.index("", rule)]
    assert len(rows) > 1
    chosen = [row for row in rows if row.rstrip().endswith("  chosen")]
    assert len(chosen) == 1
    others = [row for row in rows if row not in chosen]
    assert all(re.search(r" × [0-9.e+]+ *$", row) for row in others), others
    assert "latency" in lines[rule - 1], "80 columns have room for the parts"


def test_the_parts_go_where_there_is_no_room() -> None:
    lines = lines_of("explain", *EXPLAINED[0], columns=50)
    rule = next(number for number, line in enumerate(lines) if line.startswith("───"))
    assert "latency" not in lines[rule - 1]
    assert "predicted" in lines[rule - 1]
    assert max(map(len, lines[rule : lines.index("", rule)])) <= 50


@pytest.mark.parametrize("columns", [WIDTH, None])
def test_algorithms_check_and_doctor(columns: int | None) -> None:
    fit(lines_of("algorithms", columns=columns))
    # Remedies are whole, however long, so that they can be copied.
    fit([line for line in lines_of("doctor", columns=columns) if not line.startswith("    ")])
    lines = lines_of("check", "allreduce", "--ranks", "2:3", "--schedules", "1", columns=columns)
    fit(lines)
    for entry in unisono.algorithms("allreduce"):
        (row,) = [line for line in lines if f"{entry} " in line]
        assert re.search(r"✓ \S+ +\d+ +(\d+|-) +\d+ +[0-9.]+ s", row), row


def test_doctor_says_what_could_be_better(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    long = "works between any two processes of this user and, if they are asked, between others"
    findings = [
        Finding("kernel", "CMA (process_vm_readv, _writev)", State.OK, long),
        Finding("kernel", "membarrier", State.MISSING, "refused", "messages cost a barrier", "allow it", True),
        Finding("memory", "huge pages", State.IMPROVABLE, "never", "more TLB misses than there would be otherwise" * 2),
    ]
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    fit(lines)
    assert any(re.match(r"✓  CMA .* works between any two processes of this user", line) for line in lines)
    assert any(re.match(r"✗  membarrier +missing: refused", line) for line in lines)
    assert any(re.match(r"!  huge pages +could be better: never", line) for line in lines)


@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
def test_counters(ranks: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ranks: as many as have room stand side by side, the others below."""
    values: dict[str, list[int | None]] = {
        name: [None if (rank + at) % 7 == 6 else 10**rank + at for rank in range(ranks)]
        for at, name in enumerate(("calls completed", "messages sent by lanes", "bytes sent"))
    }
    monkeypatch.setattr(housekeeping, "chosen", lambda _: 1)
    monkeypatch.setattr(housekeeping, "counters", lambda _: [values])
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert main(["counters", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    fit(lines)
    seen: dict[tuple[str, int], str] = {}
    shown: list[int] = []
    for line in lines:
        if "rank " in line:
            shown = [int(number) for number in re.findall(r"rank (\d+)", line)]
        for name in values:
            if line.startswith(name):
                cells = line[len(name) :].split()
                seen |= {(name, rank): cell for rank, cell in zip(shown, cells, strict=True)}
    expected = {
        (name, rank): "-" if value is None else f"{value:,}"
        for name, of_ranks in values.items()
        for rank, value in enumerate(of_ranks)
    }
    assert seen == expected


def test_calibrate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    machine: dict[str, Any] = dict.fromkeys([*calibrate.TIMES, *calibrate.BYTES], 123.456)
    machine |= {"copy": [0.1, 0.2, 0.0], "cross": [0.1, 0.2, 0.3], "near_bytes": 1 << 20, "shared_bytes": 1 << 25}
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    from rich.console import Console

    Console().print(calibrate._table(machine))
    fit(capsys.readouterr().out.splitlines())
