"""The guard of a change: this state of Unisono against another one, cell by cell and on the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .plan import SMALL, Cell, size_text
from .session import Row
from .statistics import Ratio, geometric_mean

MOST_MEAN = 1.02  #: geometric mean of the ratios of guarded cells
MOST_CELL = 1.05  #: no guarded cell's interval lies wholly above


def is_guarded(cell: Cell) -> bool:
    """Allocated memory, and small blocks in any memory, must not become slower."""
    return cell.buffers == "allocated" or cell.bytes <= SMALL


@dataclass(frozen=True)
class Comparison:
    """What became of the time of calls since another state."""

    peer: str
    cells: int  #: in which both were measured
    mean: float | None  #: geometric mean of all ratios; None: there are none
    guarded: int
    guarded_mean: float | None
    noisy: int  #: of them, cells without enough quiet rounds, whose intervals say little
    slower: tuple[tuple[Cell, Ratio], ...]  #: guarded cells whose interval lies wholly above what is allowed

    @property
    def kept(self) -> bool:
        """Whether the guard is satisfied. It is not if too little was measured to say so."""
        if self.guarded_mean is None or self.too_noisy:
            return False
        return self.guarded_mean <= MOST_MEAN and not self.slower

    @property
    def too_noisy(self) -> bool:
        """Whether most intervals say little."""
        return 2 * self.noisy > self.guarded

    @property
    def text(self) -> str:
        """In words."""
        if self.mean is None:
            return f"Against {self.peer}: nothing to compare."
        text = f"Against {self.peer}: geometric mean {self.mean:.3f} of {_cells(self.cells)}"
        if self.guarded_mean is None:
            return f"{text}; none of them is guarded (allocated memory, or at most {size_text(SMALL)})."
        text += f"; {self.guarded_mean:.3f} of the {self.guarded} guarded (allocated memory, or at most "
        text += f"{size_text(SMALL)}; allowed {MOST_MEAN:g}); "
        if self.noisy:
            text += f"{self.noisy} of them {'was' if self.noisy == 1 else 'were'} noisy"
            text += ", too many to say more; " if self.too_noisy else "; "
        if not self.slower:
            return f"{text}no guarded cell's interval lies wholly above {MOST_CELL:g}."
        named = ", ".join(f"{_name(cell)} ({ratio.low:.2f}-{ratio.high:.2f})" for cell, ratio in self.slower)
        return f"{text}wholly above {MOST_CELL:g}: {named}."


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


def _name(cell: Cell) -> str:
    return cell.op if cell.op == "barrier" else f"{cell.title} {size_text(cell.bytes)} {cell.dtype} {cell.buffers}"


def compare(rows: Sequence[Row], peer: str) -> Comparison:
    """Unisono against that peer, over all rows in which both were measured."""
    found: list[tuple[Cell, Ratio]] = []
    noisy = 0
    for row in rows:
        for measured in row.systems:
            ratio = measured.ratios.get(peer) if measured.system == "unisono" else None
            if ratio is not None:
                found.append((row.cell, ratio))
                noisy += row.noisy and is_guarded(row.cell)
    guarded = [(cell, ratio) for cell, ratio in found if is_guarded(cell)]
    return Comparison(
        peer,
        len(found),
        geometric_mean([ratio.value for _, ratio in found]) if found else None,
        len(guarded),
        geometric_mean([ratio.value for _, ratio in guarded]) if guarded else None,
        noisy,
        tuple((cell, ratio) for cell, ratio in guarded if ratio.low > MOST_CELL),
    )
