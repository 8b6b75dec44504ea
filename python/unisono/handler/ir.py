"""What LLVM's IR is made of, as far as handlers can be compiled to it: types, values, instructions, blocks.

Types and values are small immutable objects. A value that is an instruction's result is a `Ref`; addresses of globals
are a name and an offset, so that nothing behind the reader sees a constant expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .refusal import Refusal


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `kind` is int, float, pointer, array, struct, vector, void or other."""

    kind: str
    bits: int = 0
    of: tuple[Type, ...] = ()
    count: int = 0
    packed: bool = False

    @property
    def scalar(self) -> Type:
        """A vector's element; any other type itself."""
        return self.of[0] if self.kind == "vector" else self

    @property
    def is_vector(self) -> bool:
        """Whether it has lanes."""
        return self.kind == "vector"

    def alignment(self) -> int:
        """In bytes, as LLVM lays out memory for the target."""
        if self.kind in ("array", "struct"):
            return 1 if self.packed else max((t.alignment() for t in self.of), default=1)
        return self.bytes()

    def bytes(self) -> int:
        """Bytes of memory, padding included."""
        if self.kind == "int":
            size = 1
            while size * 8 < self.bits:
                size *= 2
            return size
        if self.kind == "float":
            return self.bits // 8
        if self.kind == "pointer":
            return 8
        if self.kind in ("array", "vector"):
            return self.count * self.of[0].bytes()
        if self.kind == "struct":
            end = self.offset(len(self.of))
            return -(-end // self.alignment()) * self.alignment()
        raise Refusal("a value without a size in memory")

    def offset(self, index: int) -> int:
        """Of a struct's field, in bytes; of the one after the last, where the last ends."""
        at = 0
        for i, t in enumerate(self.of):
            if not self.packed:
                at = -(-at // t.alignment()) * t.alignment()
            if i == index:
                return at
            at += t.bytes()
        return at


@dataclass(frozen=True, slots=True)
class Const:
    """A number: its bits."""

    type: Type
    value: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """A constant vector: the bits of its lanes."""

    type: Type
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a global variable."""

    type: Type
    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Ref:
    """The result of an instruction."""

    type: Type
    name: str


Value = Const | Lanes | Address | Ref


@dataclass(slots=True)
class Inst:
    """An instruction: `text` is what it has beside operands (predicate, callee, type that a getelementptr steps by)."""

    op: str
    type: Type
    name: str = ""
    args: list[Value] = field(default_factory=list)
    text: str = ""
    blocks: list[str] = field(default_factory=list)
    base: Type | None = None
    line: int = 0


@dataclass(slots=True)
class Block:
    """A basic block: the last instruction is its terminator."""

    name: str
    insts: list[Inst] = field(default_factory=list)


@dataclass(slots=True)
class Variable:
    """A global variable: where a memory image has its bytes is decided later."""

    name: str
    type: Type
    image: bytes
    alignment: int


@dataclass(slots=True)
class Code:
    """A function; the first block is where it begins."""

    name: str
    blocks: dict[str, Block]
    line: int
    plain: bool = True  #: it takes nothing, and gives an int or nothing


@dataclass(slots=True)
class Module:
    """What a source file was compiled to."""

    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Code] = field(default_factory=dict)


VOID = Type("void")
