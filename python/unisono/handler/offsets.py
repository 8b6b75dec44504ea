"""Numbers that are another number and a constant, and what is known of them without any doubt.

Words have an offset for that, so that nothing need be added. Unlike bounds of loops, which machines count, nothing here
may rest on overflows that do not happen: bits would change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ._isa import Info
from .flow import Flow, definitions
from .ir import Const, Inst, Ref, Type, Value

#: So far a number is looked at through what it is made of, and so far up conditions are looked for.
_DEEPEST, _HIGHEST = 24, 12
#: A number's zeros depend on what many others are made of: for those less deep.
_ZEROS = 6
#: What a comparison of a and b says of b - a at least if it is true; and if it is not.
_SAYS = {"ule": 0, "ult": 1, "eq": 0}
_INVERSE = {"ugt": "ule", "uge": "ult", "ne": "eq"}
_SWAPPED = {"ugt": "ult", "uge": "ule", "ult": "ugt", "ule": "uge", "eq": "eq", "ne": "ne"}
_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Sum:
    """A number and a constant, modulo the number's bits. Without a root it is the constant."""

    root: Ref | None
    offset: int


class Offsets:
    """What a function's numbers are sums of; its loops have bounds already."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._of, self._block = definitions(flow.code)
        self._most: dict[str, int] = {}
        self._asked: set[str] = set()
        #: Phis that are always another phi of their block and a constant.
        self.merged: dict[str, tuple[Ref, int]] = {}
        for name in flow.order:
            self._merge([i for i in flow.code.blocks[name].insts if i.op == "phi" and _whole(i.type)])
        for name, (kept, apart) in self.merged.items():
            while kept.name in self.merged:  # it was merged later
                kept, more = self.merged[kept.name]
                apart += more
            self.merged[name] = (kept, apart)

    def inst(self, value: Value) -> Inst | None:
        """The instruction that a value is the result of."""
        return self._of.get(value.name) if isinstance(value, Ref) else None

    def sum(self, value: Value) -> Sum:
        """What a number is the sum of; the offset with its sign."""
        offset, bits = 0, value.type.bits
        for _ in range(_DEEPEST):
            inst = self.inst(value)
            if inst is not None and inst.name in self.merged:
                value, more = self.merged[inst.name]
                offset += more
            elif inst is not None and len(inst.args) == 2 and isinstance(inst.args[1], Const) and self._adds(inst):
                value, offset = inst.args[0], offset + inst.args[1].value
            else:
                break
        if isinstance(value, Const):
            return Sum(None, (value.value + offset) % (1 << bits))
        assert isinstance(value, Ref)
        return Sum(value, _signed(offset, bits))

    def _adds(self, inst: Inst) -> bool:
        constant = inst.args[1]
        assert isinstance(constant, Const)
        if inst.op == "or":  # of bits that the other operand does not have
            return _whole(inst.type) and constant.value >> self._zeros(inst.args[0], set()) == 0
        return inst.op == "add" and _whole(inst.type)

    def _zeros(self, value: Value, above: set[str]) -> int:
        """Lowest bits that are always 0. What goes round is taken to have none else: of what is added, shifted and
        chosen here, each round has as many as the first then.
        """
        if isinstance(value, Const):
            return (value.value & -value.value).bit_length() - 1 if value.value else value.type.bits
        inst = self.inst(value)
        if inst is None or len(above) > _ZEROS:
            return 0
        if inst.name in above:
            return inst.type.bits
        above = above | {inst.name}
        if inst.op in ("add", "sub", "phi", "or"):
            return min(self._zeros(v, above) for v in inst.args)
        if inst.op == "and":
            return max(self._zeros(v, above) for v in inst.args)
        if inst.op == "zext":
            return min(self._zeros(inst.args[0], above), inst.args[0].type.bits)
        if inst.op == "shl" and isinstance(inst.args[1], Const):
            return min(inst.type.bits, self._zeros(inst.args[0], above) + inst.args[1].value)
        return 0

    # Phis that go side by side.

    def _merge(self, phis: list[Inst]) -> None:
        for phi in phis:
            # One that counts by itself is kept.
            if any(self.sum(v).root == Ref(phi.type, phi.name) for v in phi.args):
                continue
            for kept in phis:
                if kept is phi or kept.name in self.merged or kept.type != phi.type:
                    continue
                apart = self._apart(phi, kept)
                if apart is not None:
                    self.merged[phi.name] = (Ref(kept.type, kept.name), apart)
                    break

    def _apart(self, phi: Inst, kept: Inst) -> int | None:
        """What a phi is more than another one whenever they are there; None if that is not always as much."""
        bits = phi.type.bits
        for begin in phi.args:
            first = self.sum(begin)
            second = self.sum(kept.args[kept.blocks.index(phi.blocks[phi.args.index(begin)])])
            if first.root != second.root:
                continue
            apart = _signed(first.offset - second.offset, bits)
            self.merged[phi.name] = (Ref(kept.type, kept.name), apart)  # is it so once more, if it is so once?
            holds = True
            for value, block in zip(phi.args, phi.blocks, strict=True):
                one, other = self.sum(value), self.sum(kept.args[kept.blocks.index(block)])
                holds = holds and one.root == other.root and _signed(one.offset - other.offset, bits) == apart
            del self.merged[phi.name]
            if holds:
                return apart
        return None

    # How large numbers can be.

    def most(self, value: Value) -> int:
        """The largest unsigned number that a value can be."""
        whole = (1 << value.type.bits) - 1
        if isinstance(value, Const):
            return value.value
        inst = self.inst(value)
        if inst is None or inst.name in self._asked or len(self._asked) > _DEEPEST:
            return whole
        if inst.name not in self._most:
            self._asked.add(inst.name)
            self._most[inst.name] = min(whole, self._find_most(inst))
            self._asked.discard(inst.name)
        return self._most[inst.name]

    def _find_most(self, inst: Inst) -> int:
        args, whole = inst.args, (1 << inst.type.bits) - 1
        if inst.op in ("zext", "trunc", "freeze"):
            return self.most(args[0])
        if inst.op == "and":
            return min(self.most(v) for v in args)
        if inst.op in ("or", "xor"):
            return (1 << max(self.most(v).bit_length() for v in args)) - 1
        if inst.op == "lshr" and isinstance(args[1], Const):
            return self.most(args[0]) >> args[1].value
        if inst.op in ("add", "mul"):
            first, second = (self.most(v) for v in args)
            return first + second if inst.op == "add" else first * second
        if inst.op == "shl" and isinstance(args[1], Const):
            return self.most(args[0]) << args[1].value
        if inst.op == "select":
            return max(self.most(v) for v in args[1:])
        if inst.op == "phi":
            return self._most_of_phi(inst)
        if inst.op == "call" and inst.text.startswith("us_"):
            name = inst.text[3:]
            if name.upper() in Info.__members__:
                return Info[name.upper()].most
            return {"u8_at": 255, "u16_at": 65535}.get(name, whole)
        if inst.op == "call" and inst.text.startswith("llvm.umin"):
            return min(self.most(v) for v in args)
        return whole

    def _most_of_phi(self, phi: Inst) -> int:
        if phi.name in self.merged:
            kept, apart = self.merged[phi.name]
            most = self.most(kept)
            return most + apart if apart >= 0 else (1 << phi.type.bits) - 1
        loop = self._flow.loops.get(self._block[phi.name])
        if loop is None:
            return max(self.most(v) for v in phi.args)
        begin = step = 0
        for value, block in zip(phi.args, phi.blocks, strict=True):
            if block not in loop.blocks:
                begin = max(begin, self.most(value))
                continue
            moved = self.sum(value)
            if moved.root != Ref(phi.type, phi.name) or moved.offset < 0:
                return (1 << phi.type.bits) - 1
            step = max(step, moved.offset)
        return begin + loop.rounds * step  # machines count rounds

    # Addresses.

    def at(self, value: Value) -> tuple[Value, int]:
        """The offset in the payload as a number and a constant that are not modulo anything. What would wrap is beyond
        every payload both ways.
        """
        found = self.sum(value)
        if found.root is None or found.offset == 0:
            return (value, 0) if found.root is None else (found.root, 0)
        wraps = self.most(found.root) + found.offset >= 1 << value.type.bits
        return (value, 0) if wraps or found.offset < -(1 << 30) else (found.root, found.offset)

    def index(self, value: Value) -> tuple[Value, int, int] | None:
        """An index as number << shift, and a constant, not modulo anything; None if it may be negative."""
        if value.type.bits < 64 and self.most(value) >> (value.type.bits - 1):
            return None
        shift = added = 0
        while (inst := self.inst(value)) is not None:
            whole = 1 << value.type.bits
            first = inst.args[0] if inst.args else value
            by = inst.args[1] if inst.op == "shl" else None
            if inst.op == "zext" or (inst.op == "sext" and self.most(first) < 1 << (first.type.bits - 1)):
                value = first
            elif isinstance(by, Const) and self.most(first) << by.value < whole:
                shift += by.value
                value = first
            else:
                total = self.sum(value)
                if total.root in (None, value) or total.offset < 0 or self.most(total.root) + total.offset >= whole:
                    break
                added += total.offset << shift
                value = total.root
        return value, shift, added

    # Whether the payload has all that is asked for.

    def there(self, value: Value, size: int, block: str) -> bool:
        """Whether, wherever in the block an offset is not beyond the payload's end, `size` bytes from there are in it.

        If a number of which the offset is less than `size` away is not beyond the end, the offset is not, or is so
        far beyond that it stops the handler.
        """
        return self._there(self.sum(value), size, block, _HIGHEST)

    def _there(self, found: Sum, size: int, block: str, depth: int) -> bool:
        flow = self._flow
        while depth > 0:
            depth -= 1
            before = flow.predecessors[block]
            if len(before) == 1:
                if self._says(found, size, before[0], block):
                    return True
                block = before[0]
                continue
            phi = self.inst(found.root) if found.root is not None else None
            if phi is not None and phi.op == "phi" and self._block[phi.name] == block:
                ways = list(self._ways(phi, found.offset))
                return all(self._there(way, size, name, depth // 2) for way, name in ways)
            above = flow.dominators[block]
            if above == block:
                return False
            block = above
        return False

    def _ways(self, phi: Inst, offset: int) -> Iterator[tuple[Sum, str]]:
        for value, name in zip(phi.args, phi.blocks, strict=True):
            way, bits = self.sum(value), phi.type.bits
            total = way.offset + offset
            yield Sum(way.root, total % (1 << bits) if way.root is None else _signed(total, bits)), name

    def _says(self, found: Sum, size: int, block: str, onto: str) -> bool:
        """Whether the way from one block to another is only gone if there are so many bytes."""
        last = self._flow.code.blocks[block].insts[-1]
        condition = self.inst(last.args[0]) if last.op == "br" and len(set(last.blocks)) == 2 else None
        if condition is None or condition.op != "icmp":
            return False
        first, second = condition.args
        for left, right, how in ((first, second, condition.text),
                                 (second, first, _SWAPPED.get(condition.text, ""))):  # fmt: skip
            length = self.inst(right)
            if length is None or length.op != "call" or length.text != "us_length":
                continue
            if last.blocks[0] != onto:  # it is false
                how = {"ugt": "ule", "uge": "ult", "ne": "eq", "ult": "uge", "ule": "ugt"}.get(how, "")
            if how not in _SAYS:
                continue
            known = self.sum(left)
            beyond = known.offset - found.offset + _SAYS[how]
            if known.root == found.root and size <= beyond < 1 << 30:
                return True
        return False


def _whole(kind: Type) -> bool:
    return kind.kind == "int" and kind.bits in _WIDTHS


def _signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value
