"""`unisono calibrate`: measures the machine, and writes the rules by which algorithms are chosen on it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .. import _core
from ..errors import InvalidArgumentError
from . import table as tables

LEVELS = ("near", "shared", "memory")
TIMES = {
    "line": "a line from core to core",
    "issue": "issue of a move",
    "segment": "cells of a segment",
    "sync": "entry into a direct call, per peer",
    "yield": "giving a core to another rank",
}
BYTES = {
    "reduce": "combining (fp32)",
    "reduce_half": "combining (fp16, bf16)",
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "calibrate",
        help="measure this machine, and choose algorithms accordingly",
        description="Measures for a few seconds, on the cores that this process may use, and writes a tuning file that "
        "every job started afterwards follows. All ranks of a job must find the same file.",
    )
    parser.add_argument("--ranks", type=int, metavar="P", help="most ranks of a job to make rules for (by cores)")
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="where to write ($UNISONO_TUNING, or ~/.config/unisono/tuning.json)"
    )
    parser.add_argument("--json", action="store_true", help="print the file instead of a table")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    path = options.file or place()
    ranks = options.ranks if options.ranks is not None else max(8, min(64, 2 * _core.cores_for_ranks()))
    if ranks < 2 or ranks > 64:
        raise InvalidArgumentError(f"{ranks} ranks were given; allowed are 2 to 64")
    console = Console(highlight=False)
    with Console(stderr=True).status("measuring"):
        text = _core.calibrate(ranks)
        _core.measure_copy_class()
    _write(path, text)
    if options.json:
        print(json.dumps({"file": str(path)} | json.loads(text), indent=2))
        return 0
    found = _core.check_tuning(text)
    console.print(_table(found["machine"]))
    rules = found["rules"]
    count = f"{len(rules)} rules differ from the built-in choice" if rules else "the built-in choice is best everywhere"
    console.print(
        f"{found['processor']}, {found['machine']['cores']} cores; up to {ranks} ranks: {count}.", markup=False
    )
    console.print(f"Written to {path}", markup=False, soft_wrap=True)
    if options.file is not None and str(path) not in (_core.usual_tuning_path(), os.environ.get("UNISONO_TUNING")):
        console.print(f"Set UNISONO_TUNING={path} to follow it.", markup=False, soft_wrap=True)
    return 0


def place() -> Path:
    """Where the file goes if nothing is said. Raises InvalidArgumentError if there is no such place."""
    named = os.environ.get("UNISONO_TUNING", "")
    usual = _core.usual_tuning_path()
    if named and named != "off":
        return Path(named)
    if not usual:
        raise InvalidArgumentError("there is no home folder to write to; say where with --file")
    return Path(usual)


def _write(path: Path, text: str) -> None:
    """Writes the whole file or nothing: jobs may start while we write."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InvalidArgumentError(f"{path} cannot be written: {error.strerror}") from None


def _table(machine: dict[str, Any]) -> Table:
    table = tables.plain()
    table.add_column("measured")
    table.add_column("", justify="right")
    for name, text in TIMES.items():
        table.add_row(text, f"{machine[name]:.3g} ns")
    for name, text in (("copy", "copying at hand"), ("cross", "copying what another core wrote")):
        for level, cost in zip(LEVELS, machine[name], strict=True):
            table.add_row(f"{text}, {level}", _rate(cost))
    for name, text in BYTES.items():
        table.add_row(text, _rate(machine[name]))
    table.add_row("near and shared memory", f"{machine['near_bytes'] >> 10} KiB, {machine['shared_bytes'] >> 10} KiB")
    return table


def _rate(cost: float) -> str:
    """Nanoseconds a byte as GB/s."""
    return f"{1 / cost:.3g} GB/s" if cost > 0 else "nothing beside the copy"
