"""Tables of the command: as narrow as their contents allow, for terminals of 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def plain(*, expand: bool = False) -> Table:
    """A table without a frame, two blanks between its columns."""
    return Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold",
        border_style="dim", expand=expand,
    )  # fmt: skip


def fits(console: Console, table: Table) -> bool:
    """Whether a table has room without breaking a line of it."""
    unlimited = console.options.update(max_width=10_000)
    return Measurement.get(console, unlimited, table).maximum <= console.width
