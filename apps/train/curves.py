"""A picture of losses against steps, as SVG: one panel for each number of ranks, the losses logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 420, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 40
LEGEND = 26
#: Colour, width and dashes of each way's curve; the wide one is drawn first, so that one upon it is seen.
STYLES = {
    "gloo": ("#fdbf6f", 6.0, ""),
    "unisono": ("#1b9e77", 1.8, ""),
    "unisono, bf16": ("#7570b3", 1.8, ' stroke-dasharray="5 3"'),
}
#: Lines across the panel stand at these multiples of powers of ten.
MULTIPLES = (1, 2, 5)

Curves = Mapping[str, Sequence[float]]


def svg(panels: Mapping[str, Curves]) -> str:
    """The picture of panels, each of curves by the names of their ways."""
    width, height = len(panels) * WIDTH, HEIGHT + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    losses = [loss for curves in panels.values() for curve in curves.values() for loss in curve]
    for number, (title, curves) in enumerate(panels.items()):
        parts += [f'<g transform="translate({number * WIDTH},0)">', *_panel(title, curves, losses), "</g>"]
    x = LEFT
    for way in dict.fromkeys(way for curves in panels.values() for way in curves):
        parts.append(f'<path d="M{x} {HEIGHT + 8}h26" fill="none" {_stroke(way)}/>')
        parts.append(f'<text x="{x + 32}" y="{HEIGHT + 12}">{escape(way)}</text>')
        x += 60 + 7 * len(way)
    return "\n".join([*parts, "</svg>", ""])


def _stroke(way: str) -> str:
    colour, width, dashes = STYLES.get(way, ("black", 1.8, ""))
    return f'stroke="{colour}" stroke-width="{width}"{dashes}'


def _panel(title: str, curves: Curves, losses: Sequence[float]) -> list[str]:
    low, high = math.log10(min(losses)), math.log10(max(losses))
    high = max(high, low + 0.1)
    steps = max(2, *(len(curve) for curve in curves.values()))

    def at_x(step: float) -> float:
        return LEFT + step / (steps - 1) * (WIDTH - LEFT - RIGHT)

    def at_y(loss: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(loss) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="{TOP - 12}" font-weight="bold">{escape(title)}</text>']
    powers = range(math.floor(low), math.ceil(high) + 1)
    for value in (multiple * 10.0**power for power in powers for multiple in MULTIPLES):
        if low <= math.log10(value) <= high:
            parts.append(f'<path d="M{LEFT} {at_y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{at_y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for share in range(5):
        step = round(share / 4 * (steps - 1))
        parts.append(f'<text x="{at_x(step):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{step}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - BOTTOM + 32}" text-anchor="middle">loss by step</text>')
    for way, curve in curves.items():
        points = "L".join(f"{at_x(step):.1f} {at_y(loss):.1f}" for step, loss in enumerate(curve))
        parts.append(f'<path d="M{points}" fill="none" stroke-linejoin="round" {_stroke(way)}/>')
    return parts
