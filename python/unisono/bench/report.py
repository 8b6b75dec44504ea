"""Figures for machines and for people: JSON lines, and a table that grows as it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from .machine import Facts, Placement
from .network import FABRIC, FLAT, LOSSY, PLAIN, SOCKETS
from .plan import OWN, UNIFORM, WAITED, size_text
from .session import Measured, Row
from .statistics import Ratio
from .targets import Target, find

#: The transport of each system; all others are states of Unisono.
NETWORKS = {"openmpi": "vader", "mpi4py": "vader", "mpich": "ucx-shm", "limit": None}
#: The same between hosts; that of all others is the network that was asked for.
BETWEEN_HOSTS = {"openmpi": "tcp", "mpi4py": "tcp", "mpich": "ucx-tcp", "limit": None, PLAIN: "tcp"}
BETWEEN_HOSTS |= {SOCKETS: "tcp", FABRIC: "ofi"}

#: How the ratio to what stands below is called.
BELOW = {SOCKETS: "x raw", FABRIC: "x bare"}

#: Of the JSON lines. 2: buffers are malloc, registered or allocated; what lines without a schema call registered is
#: allocated. interface, counts, processor, cache_line_ns and kernel_copies are there.
SCHEMA = 2


#: Operations for which Unisono has none to choose from.
WITHOUT_ALGORITHM = ("pingpong", "put", "get", "stream")


def record(measured: Measured, facts: Facts) -> dict[str, Any]:
    """One line of the JSON file."""
    cell = measured.cell
    times = measured.kept_times if measured.failure is None else []
    chosen = cell.algorithm if measured.system == "unisono" else None
    has_algorithm = measured.system == "limit" or cell.op not in WITHOUT_ALGORITHM
    return {
        "schema": SCHEMA,
        "system": measured.system,
        "interface": "c" if measured.system == "limit" else cell.interface,
        "op": cell.op,
        "algorithm": (measured.algorithm or chosen) if has_algorithm else None,
        "auto": chosen is None,
        "network": _network(measured),
        "hosts": 1 if cell.network is None else len(cell.network.hosts),
        "link": None if cell.network is None else cell.network.link,
        "round_trip_ms": None if cell.network is None else cell.network.round_trip_ms,
        "platform": "native",
        "ranks": cell.ranks,
        "bytes": cell.bytes,
        "dtype": cell.dtype,
        "buffers": cell.buffers,
        "counts": cell.counts,
        "median_us": _microseconds(float(np.median(times))) if times else None,
        "mean_us": _microseconds(float(np.mean(times))) if times else None,
        "p99_us": _microseconds(measured.p99) if times and measured.p99 is not None else None,
        "cycles": None,
        "ratio": {peer: round(ratio.value, 4) for peer, ratio in measured.ratios.items()},
        "ratio_ci": {peer: [round(ratio.low, 4), round(ratio.high, 4)] for peer, ratio in measured.ratios.items()},
        "limit_ratio": None if not times or measured.limit_ratio is None else round(measured.limit_ratio, 4),
        "iterations": measured.calls if times else 0,
        "verified": bool(times) and measured.verified,
    } | facts.record()


def _network(measured: Measured) -> str | None:
    """What carries data between ranks that do not share memory, or where they do."""
    if measured.cell.network is None:
        return NETWORKS.get(measured.system, "shm")
    return BETWEEN_HOSTS.get(measured.system, measured.cell.network.transport)


def _microseconds(seconds: float) -> float:
    return round(1e6 * seconds, 5)


def time_text(seconds: float | None) -> str:
    """Three figures and a unit."""
    if seconds is None:
        return "-"
    value, unit = next(
        ((seconds * scale, unit) for scale, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms")) if seconds * scale < 999.5),
        (seconds, "s"),
    )
    return f"{value:.3g} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


class TablePrinter:
    """Writes rows as they come, with a heading whenever the operation changes.

    Where a terminal has no room for intervals of ratios, these are left out; what remains to be said of a row stands
    behind it, or below.
    """

    def __init__(
        self, console: Console, systems: Sequence[str], placement: Placement, targets: Sequence[Target], *, mean: bool
    ) -> None:
        self._console = console
        self._peers = [name for name in systems if name != "unisono"]
        self._placement = placement
        self._targets = targets
        self._mean = mean  # means instead of medians, where ranks share cores
        wide = sum(width + 2 for width in self._widths(time=9, ratio=17))
        self._time, self._ratio = (9, 17) if wide <= console.width else (7, 10)
        self._heading: tuple[str, ...] = ()
        self.met = 0
        self.missed = 0

    def limits(self, measured: Sequence[Measured], facts: Facts) -> None:
        """What the machine is, and what it can do by itself."""
        line = facts.cache_line_ns
        way = "" if line is None else f"; a cache line takes {time_text(1e-9 * line)} from core to core"
        self._console.print(f"{facts.processor.text}{way}", markup=False)
        if not measured:
            return
        parts = []
        for one in measured:
            size = "" if one.cell.op == "cache_line" else f" {size_text(one.cell.bytes)}"
            parts.append(f"{one.cell.op}{size} {time_text(self._figure(one))}")
        self._console.print(Text("limits: " + ", ".join(parts), style="dim"))

    def row(self, row: Row) -> None:
        """One cell."""
        cell = row.cell
        by_name = {measured.system: measured for measured in row.systems}
        heading = (cell.title, cell.dtype, cell.buffers)
        if heading != self._heading:
            self._heading = heading
            self._head(cell.title, cell.dtype, cell.buffers, row.limit.system)
        time, gap = self._time, "  "
        line = Text(f"{size_text(cell.bytes) if cell.bytes else '-':>6}  {time_text(self._figure(row.limit)):>{time}}")
        notes = []
        if row.limit.failure is not None:
            notes.append(f"{row.limit.system}: {row.limit.failure}")
        if not row.limit.verified:
            notes.append(f"{row.limit.system}: WRONG RESULT")
        for name in [*self._peers, "unisono"]:
            measured = by_name[name]
            if measured.failure is not None:
                line.append(f"{gap}{'failed':>{time}}", style="bold red")
                if measured.failure != "given up":
                    notes.append(f"{name}: {measured.failure}")
                continue
            style = "bold" if name == "unisono" else ""
            line.append(f"{gap}{time_text(self._figure(measured)):>{time}}", style=style)
            if not measured.verified:
                notes.append(f"{name}: WRONG RESULT")
        ours = by_name["unisono"]
        target = find(self._targets, ours, self._placement) if ours.failure is None else None
        met = target.is_met(ours) if target is not None else None
        colour = {True: "green", False: "red", None: ""}[met]
        for peer in self._peers:
            ratio = ours.ratios.get(peer)
            text = "-"
            if ratio is not None:
                text = _interval(ratio) if self._ratio == 17 else _short(ratio.value)
            line.append(f"{gap}{text:>{self._ratio}}", style=colour)
        text = "-" if ours.limit_ratio is None else f"{ours.limit_ratio:.2f}"
        line.append(f"{gap}{text:>7}")
        line.append(f" {_mark(met)}" if target is not None else "", style=colour)
        remarks = Text()
        for own in OWN:
            if own in ours.ratios:
                remarks.append(f"  {_interval(ours.ratios[own])} × {own}")
        remarks.append(f" {_goal(target)}" if target is not None else "", style=colour)
        if row.quiet < row.rounds:
            remarks.append(f"  {row.quiet}/{row.rounds} rounds quiet", style="dim")
        if row.noisy:
            remarks.append(", the quietest taken", style="yellow")
        self.met += met is True
        self.missed += met is False
        if line.cell_len + remarks.cell_len <= self._console.width:
            line.append_text(remarks)
            remarks = Text()
        self._console.print(line, soft_wrap=True)
        if remarks:
            self._console.print(Text(" " * 7) + remarks, soft_wrap=True)
        for note in notes:
            self._console.print(Text(f"        {note}", style="bold red"), soft_wrap=True)

    def _widths(self, *, time: int, ratio: int) -> list[int]:
        """Of the columns; two blanks are between them, and behind the last is the mark of a target."""
        return [6, *[time] * (2 + len(self._peers)), *[ratio] * len(self._peers), 7]

    def _figure(self, measured: Measured) -> float | None:
        times = measured.kept_times
        if not times:
            return None
        return float(np.mean(times) if self._mean else np.median(times))

    def _head(self, op: str, dtype: str, buffers: str, limit: str) -> None:
        what = "" if op == "barrier" else f", {dtype}, {buffers}"
        ratios = [f"to {name}" for name in self._peers]
        names = ["bytes", limit, *self._peers, "unisono", *ratios, BELOW.get(limit, "x limit")]
        widths = self._widths(time=self._time, ratio=self._ratio)
        columns = "  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
        self._console.print()
        self._console.print(Text(f"{op}{what}", style="bold"))
        self._console.print(Text(columns, style="dim"), soft_wrap=True)


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def _interval(ratio: Ratio) -> str:
    return f"{_short(ratio.value)} ({_short(ratio.low)}-{_short(ratio.high)})"


def _mark(met: bool | None) -> str:
    return {True: "✓", False: "✗", None: "·"}[met]


def _goal(target: Target) -> str:
    parts = []
    if target.peer is not None:
        parts.append(f"≤ {target.peer:g} × peer")
    if target.limit is not None:
        parts.append(
            f"≤ {target.limit:g} × {FABRIC if target.network == 'ofi' else SOCKETS if target.network else 'limit'}"
        )
    if target.uniform is not None:
        parts.append(f"≤ {target.uniform:g} × {UNIFORM}")
    if target.waited is not None:
        parts.append(f"≤ {target.waited:g} × {WAITED}")
    if target.flat is not None:
        parts.append(f"≤ {target.flat:g} × {FLAT}")
    if target.plain is not None:
        parts.append(f"≤ {target.plain:g} × {PLAIN}")
    if target.lossy is not None:
        parts.append(f"≥ {target.lossy:g} × {LOSSY}")
    return (" or " if target.either else ", ").join(parts)
