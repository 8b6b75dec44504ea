"""Instructions between selection and encoding: their registers are numbers without end, their targets names."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._isa import Element, Op

#: Sums of `Op.form` (spec/handlers.yaml).
WRITES_RD, READS_RD, READS_RA, READS_SECOND, READS_RC = 1, 2, 4, 8, 16
VECTOR_RD, VECTOR_RA, VECTOR_RB, VECTOR_RC = 32, 64, 128, 256

#: Of no register.
NONE = -1
#: The register that is never written, so that it holds 0.
ZERO = 0

_FORM: dict[Op, int] = {op: op.form for op in Op}


@dataclass(slots=True)
class Word:
    """An instruction. `imm` is its number, offset or, with `immediate`, second operand; `target` the block that it goes
    to, if it goes anywhere.
    """

    op: Op
    element: Element = Element.I64
    vector: bool = False
    aux: int = 0
    rd: int = NONE
    ra: int = NONE
    rb: int = NONE
    rc: int = NONE
    imm: int = 0
    immediate: bool = False
    target: str = ""
    line: int = 0
    whole: bool = False  #: of take_lanes: the payload has all lanes, so that none stays as it is

    @property
    def form(self) -> int:
        """Which registers it has."""
        return _FORM[self.op]

    def reads(self) -> list[int]:
        """Registers that it reads."""
        form = _FORM[self.op]
        found = []
        if form & READS_RD and self.rd >= 0 and not self.whole:
            found.append(self.rd)
        if form & READS_RA and self.ra >= 0:
            found.append(self.ra)
        if self.rb >= 0:
            found.append(self.rb)
        if self.rc >= 0:
            found.append(self.rc)
        return found

    def writes(self) -> int:
        """The register that it writes, or NONE."""
        return self.rd if _FORM[self.op] & WRITES_RD else NONE


@dataclass(slots=True)
class Part:
    """A block: words in order, then those by which it ends."""

    name: str
    body: list[Word] = field(default_factory=list)
    ends: list[Word] = field(default_factory=list)
    loop: int = NONE  #: number of the loop that begins here
    rounds: int = 0  #: of that loop


@dataclass(slots=True)
class Selected:
    """A function in words."""

    parts: list[Part]
    vectors: list[bool]  #: by register, whether it has lanes
    back: set[tuple[str, str]]  #: edges that go back to a loop's head
    hints: dict[int, int] = field(default_factory=dict)  #: registers that had best be the same
