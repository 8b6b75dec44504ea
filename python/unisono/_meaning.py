"""What a program is meant as: the collective that its results are compared with (docs/program-files.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from ._spec import Collective, Func
from ._texts import shown
from .errors import InvalidArgumentError, InvalidCountError, InvalidOpError, InvalidRootError

COLLECTIVES = {each.name.lower(): each for each in Collective if Collective.BCAST <= each < Collective.PROGRAM}
OPS = {op.name.lower(): op for op in Func if Func.NONE < op < Func.USER0}
FORM = "COLLECTIVE[:OP][:root=R][:in-place][:count=N][:counts=N,N,...]"

#: As the extension takes it: collective, op, root, in place, count, counts by rank.
Encoded = tuple[int, int, int | None, bool, int | None, list[int]]


@dataclass(frozen=True)
class Meaning:
    """A call that a program is meant to carry out, as its user names it."""

    collective: Collective
    op: Func = Func.NONE  #: of reductions; NONE stands for sum
    root: int | None = None
    in_place: bool = False
    count: int | None = None  #: elements, as the call counts them; None: what the program reaches
    counts: tuple[int, ...] = ()  #: of v-collectives: elements of each rank's block

    @classmethod
    def of(
        cls,
        collective: str | Collective,
        *,
        op: str | Func | None = None,
        root: int | None = None,
        in_place: bool = False,
        count: int | None = None,
        counts: Sequence[int] | Sequence[Sequence[int]] = (),
    ) -> Meaning:
        """Names in place of numbers. Raises `InvalidArgumentError` and its like for what is no call."""
        found = collective if isinstance(collective, Collective) else COLLECTIVES.get(collective)
        if found is None:
            raise InvalidArgumentError(
                f"a program meant as {shown(collective)} was given; allowed are {', '.join(COLLECTIVES)}"
            )
        func = Func.NONE if op is None else op if isinstance(op, Func) else OPS.get(op)
        if func is None:
            raise InvalidOpError(f"{found.name.lower()}: op is {shown(op)}; allowed are {', '.join(OPS)}")
        if root is not None and index(root) < 0:
            raise InvalidRootError(f"{found.name.lower()}: root {root} was given; ranks begin at 0")
        every = [] if count is None else [index(count)]
        rows = tuple(
            entry for row in counts for entry in (map(index, row) if isinstance(row, Iterable) else [index(row)])
        )
        for value in (*every, *rows):
            if not 0 <= value < 1 << 40:
                raise InvalidCountError(f"{found.name.lower()}: count {value} was given; allowed are 0 to 2^40 - 1")
        return cls(found, func, root, in_place, every[0] if every else None, rows)

    @classmethod
    def parse(cls, text: str) -> Meaning:
        """What the command line names: "allreduce:sum", "reduce:max:root=2", "gatherv:counts=1,2,3"."""
        collective, *parts = text.split(":")
        given: dict[str, Any] = {}
        for part in parts:
            name, equals, value = part.replace("-", "_").partition("=")
            found: Any
            if not equals and name in OPS:
                name, found = "op", part
            elif not equals and name == "in_place":
                found = True
            elif name in ("root", "count") and value.isdecimal():
                found = int(value)
            elif name == "counts" and all(each.isdecimal() for each in value.replace("/", ",").split(",")):
                found = [int(each) for each in value.replace("/", ",").split(",")]
            else:
                raise InvalidArgumentError(
                    f"{shown(text)} has the part {shown(part)}; the form is {FORM}, and ops are {', '.join(OPS)}"
                )
            if name in given:
                raise InvalidArgumentError(f"{shown(text)} names {name} twice; the form is {FORM}")
            given[name] = found
        return cls.of(collective, **given)

    def encoded(self) -> Encoded:
        """For the extension."""
        return (int(self.collective), int(self.op), self.root, self.in_place, self.count, list(self.counts))
