"""A picture of the figures: for each operation time against size, both logarithmic, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from statistics import median

from .plan import size_text
from .report import time_text
from .session import Measured, Row

WIDTH, HEIGHT = 420, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 34
PER_LINE = 3
ENTRY, LEGEND = 84, 22  # an entry of the legend, and a line of it
COLOURS = {
    "limit": "#888888",
    "openmpi": "#d95f02",
    "mpich": "#7570b3",
    "mpi4py": "#d95f02",
    "uniform": "#66a61e",
    "waited": "#66a61e",
    "unisono": "#1b9e77",
}

Curve = list[tuple[int, float]]


def svg(rows: Sequence[Row]) -> str:
    """The picture of all rows that have a size."""
    panels: dict[tuple[str, str, str], dict[str, Curve]] = {}
    for row in rows:
        if row.cell.bytes == 0:
            continue
        curves = panels.setdefault((row.cell.title, row.cell.dtype, row.cell.buffers), {})
        for measured in [row.limit, *row.systems]:
            if measured.failure is None and measured.kept_times:
                curves.setdefault(measured.system, []).append((row.cell.bytes, _typical(measured)))
    columns = min(PER_LINE, max(1, len(panels)))
    lines = max(1, math.ceil(len(panels) / columns))
    shown = list(dict.fromkeys(system for curves in panels.values() for system in curves))
    legend = _legend(shown, columns * WIDTH, lines * HEIGHT + 14)
    width, height = columns * WIDTH, lines * HEIGHT + 8 + LEGEND * max(1, len(legend))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (names, curves) in enumerate(panels.items()):
        x, y = number % columns * WIDTH, number // columns * HEIGHT
        parts += [f'<g transform="translate({x},{y})">', *_panel(", ".join(names), curves), "</g>"]
    parts += [entry for line in legend for entry in line]
    return "\n".join([*parts, "</svg>", ""])


def _typical(measured: Measured) -> float:
    return median(measured.kept_times)


def _panel(title: str, curves: dict[str, Curve]) -> list[str]:
    sizes = sorted({size for curve in curves.values() for size, _ in curve})
    times = [time for curve in curves.values() for _, time in curve]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    high = max(high, low + 1)
    first, last = math.log2(sizes[0]), max(math.log2(sizes[-1]), math.log2(sizes[0]) + 1)

    def at_x(size: int) -> float:
        return LEFT + (math.log2(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def at_y(time: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(time) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="{TOP - 12}" font-weight="bold">{escape(title)}</text>']
    for power in range(low, high + 1):
        y = at_y(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{time_text(10.0**power)}</text>')
    step = math.ceil(len(sizes) / 7)
    for size in sizes[::step]:
        parts.append(
            f'<text x="{at_x(size):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{size_text(size)}</text>'
        )
    for system, curve in curves.items():
        colour = COLOURS.get(system, "black")
        dashes = ' stroke-dasharray="4 3"' if system == "limit" else ""
        points = [(at_x(size), at_y(time)) for size, time in sorted(curve)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in points]
    return parts


def _legend(systems: Sequence[str], width: int, top: int) -> list[list[str]]:
    """The names of the systems with their colours, by line: as many beside each other as the picture is wide for."""
    entry = max([ENTRY, *(40 + 7 * len(system) for system in systems)])
    beside = max(1, (width - LEFT) // entry)
    lines: list[list[str]] = []
    for begin in range(0, len(systems), beside):
        y = top + LEGEND * len(lines)
        parts = []
        for number, system in enumerate(systems[begin : begin + beside]):
            x = LEFT + entry * number
            colour = COLOURS.get(system, "black")
            dashes = ' stroke-dasharray="4 3"' if system == "limit" else ""
            parts.append(f'<path d="M{x} {y}h22" stroke="{colour}" stroke-width="3"{dashes}/>')
            parts.append(f'<text class="legend" x="{x + 28}" y="{y + 4}">{escape(system)}</text>')
        lines.append(parts)
    return lines
