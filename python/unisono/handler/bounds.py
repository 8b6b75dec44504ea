"""How often loops go round at most, and the largest values that numbers can have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ._isa import Info
from .flow import Flow, Loop, definitions, dominates
from .ir import Const, Inst, Ref, Value
from .pointers import pointer_rounds
from .refusal import Refusal

#: So far a bound is looked for through what it is made of.
_DEEPEST = 60
#: Counters of so many bits may go round all their numbers.
_NARROW = 16
#: No loop may go round more often.
MOST_ROUNDS = 1 << 24

_INVERSE = {"eq": "ne", "ne": "eq", "ugt": "ule", "ule": "ugt", "uge": "ult", "ult": "uge", "sgt": "sle", "sle": "sgt",
            "sge": "slt", "slt": "sge"}  # fmt: skip
_SWAPPED = {"eq": "eq", "ne": "ne", "ugt": "ult", "ult": "ugt", "uge": "ule", "ule": "uge", "sgt": "slt", "slt": "sgt",
            "sge": "sle", "sle": "sge"}  # fmt: skip


def bound_loops(flow: Flow) -> None:
    """Sets the rounds of all loops; Refusal if one has no bound."""
    bounds = Bounds(flow)
    for loop in flow.loops.values():
        loop.rounds = bounds.rounds(loop)


@dataclass(frozen=True, slots=True)
class _Course:
    """A value that a loop changes: begins at `start`, and is `start + offset + k * step` in round k; with step 0 each
    round takes at least one bit from it or, if it `grows`, makes it twice as much at least.
    """

    phi: Inst
    start: list[Value]
    step: int
    offset: int = 0
    exact: bool = True  #: otherwise `step` is what it moves at least
    grows: bool = False


class Bounds:
    """The largest values that numbers can have, and from them how often loops go round at most.

    A bound that rests on an overflow that does not happen may be too small. Then the handler is stopped at it: machines
    count rounds. So nothing here has to be proven for wrapping numbers.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._of, self._block = definitions(flow.code)
        self._known: dict[str, int] = {}
        self._asked: set[str] = set()
        self._rounds: dict[str, int | None] = {}

    def rounds(self, loop: Loop) -> int:
        """Refusal if there is no bound."""
        found = self._find_rounds(loop)
        line = self._line(loop)
        if found is None:
            raise Refusal("this loop has no bound that is known when the handler is compiled; count up to a constant, "
                          "or to a number that cannot be larger than one", line)  # fmt: skip
        if found > MOST_ROUNDS:
            raise Refusal(f"this loop may go round {found} times; allowed are {MOST_ROUNDS}: bound it by a constant, "
                          f"too", line)  # fmt: skip
        return found

    def _line(self, loop: Loop) -> int:
        lines = [
            inst.line for name in (*loop.latches, loop.head) for inst in reversed(self._flow.code.blocks[name].insts)
        ]
        return min((line for line in lines if line), default=0)

    def _find_rounds(self, loop: Loop) -> int | None:
        if loop.head in self._rounds:
            return self._rounds[loop.head]
        self._rounds[loop.head] = None  # for whoever asks meanwhile
        best: int | None = None
        for name in loop.blocks:
            last = self._flow.code.blocks[name].insts[-1]
            always = all(dominates(self._flow.dominators, name, latch) for latch in loop.latches)
            if len(last.blocks) < 2 or not always:
                continue
            leaves = [b not in loop.blocks for b in last.blocks]
            ways: list[int | None] = []
            if last.op == "br" and leaves[0] != leaves[1]:
                ways.append(self._exit(loop, last.args[0], leaves[0]))
            elif last.op == "switch":  # leaves at a number
                course = self._course(loop, last.args[0], 0)
                for value, out in zip(last.args[1:], leaves[1:], strict=True):
                    ways.append(self._until(loop, course, "eq", value) if course is not None and out else None)
            best = min([n for n in (best, *ways) if n is not None], default=None)
        self._rounds[loop.head] = best
        return best

    def _exit(self, loop: Loop, condition: Value, when: bool) -> int | None:
        """Rounds before the condition is `when` at the latest."""
        inst = self._inst(condition)
        if inst is None:
            return None
        if inst.op == "phi" and self._block[inst.name] == loop.head:
            later = [v for v, b in zip(inst.args, inst.blocks, strict=True) if b in loop.blocks]
            return 1 if all(v == Const(inst.type, int(when)) for v in later) else None
        if inst.op == "xor" and inst.args[1] == Const(inst.type, 1):
            return self._exit(loop, inst.args[0], not when)
        parts: list[Value] = []
        if inst.op == ("or" if when else "and"):
            parts = inst.args
        elif inst.op == "select" and inst.args[1 if when else 2] == Const(inst.type, int(when)):
            parts = [inst.args[0], inst.args[2 if when else 1]]
        if parts:
            found = [n for part in parts if (n := self._exit(loop, part, when)) is not None]
            return min(found, default=None)
        if inst.op != "icmp":
            return None
        predicate = inst.text if when else _INVERSE[inst.text]
        best: int | None = None
        first, second = inst.args
        for left, right, how in ((first, second, predicate), (second, first, _SWAPPED[predicate])):
            if left.type.kind == "pointer":
                insts = self._flow.code.blocks[loop.head].insts
                rounds = pointer_rounds(loop, insts, left, how, right, self._inst, self.most)
                best = rounds if best is None else min(n for n in (best, rounds) if n is not None)
                continue
            course, shifted = self._course(loop, left, 0), self._inst(left)
            if course is None and shifted is not None and shifted.op == "shl" and isinstance(right, Const):
                by = shifted.args[1]
                if isinstance(by, Const):  # a short number, compared in the high bits
                    course = self._course(loop, shifted.args[0], 0)
                    high = _signed(right.value, right.type.bits) >> by.value
                    right = Const(right.type, high % (1 << right.type.bits))
            if course is not None:
                found_rounds = self._until(loop, course, how, right)
                if found_rounds is not None:
                    best = found_rounds if best is None else min(best, found_rounds)
        return best

    def _until(self, loop: Loop, course: _Course, how: str, right: Value) -> int | None:
        """Rounds before `course how right`."""
        bits = course.phi.type.bits
        if how == "eq" and course.step != 0 and not course.exact:
            return None  # it may step over the number
        if course.step == 0:
            return bits + 1 if self._ends_by_bits(course, how, right) else None
        if how == "eq" and (around := self._around(course, right)) is not None:
            return around
        signed = how[0] == "s" or course.step < 0
        if isinstance(right, Const):
            high = low = _signed(right.value, bits) if signed else right.value
        else:
            high, low = self.most_at(right, loop.head), 0
        if course.step > 0:
            if how not in ("eq", "uge", "ugt", "sge", "sgt"):
                return None
            least = self._least_begin(course, signed, how)
            if least is None:
                return None
            span = high + how.endswith("gt") - least - course.offset
        else:
            begins = [self.most_at(v, loop.head) for v in course.start if not isinstance(v, Const)]
            if how in ("uge", "ugt"):  # below 0 it is large
                most = max([*begins, *(v.value for v in course.start if isinstance(v, Const))])
                return (most + course.offset) // -course.step + 2
            if how not in ("eq", "ule", "ult", "sle", "slt"):
                return None
            if how == "eq" and low < 0 and low != -1:
                return None
            most = max([*begins, *(_signed(v.value, bits) for v in course.start if isinstance(v, Const))])
            span = most + course.offset - low + how.endswith("lt")
        return max(0, -(-span // abs(course.step)))

    def _least_begin(self, course: _Course, signed: bool, how: str) -> int | None:
        """The smallest number that a counter begins at; None if that may be far below 0."""
        numbers = [v.value for v in course.start if isinstance(v, Const)]
        if how[0] == "u" and len(numbers) == len(course.start):  # compared when it may have wrapped
            return min((n + course.offset) % (1 << course.phi.type.bits) for n in numbers) - course.offset
        lows = [self.lowest(v) for v in course.start]
        if signed and None in lows:
            return None
        # If it counts up to an unsigned number, it does not begin above that.
        return min(0 if n is None or (n < 0 and how[0] == "u") else n for n in lows)

    @staticmethod
    def _ends_by_bits(course: _Course, how: str, right: Value) -> bool:
        """Whether a number that is halved, or doubled, in each round is what ends the loop."""
        zero = isinstance(right, Const) and right.value == 0
        if course.grows:
            return (zero and course.exact) if how == "eq" else how in ("uge", "ugt", "sge", "sgt")
        return isinstance(right, Const) and (zero if how == "eq" else how in ("ult", "ule"))

    @staticmethod
    def _around(course: _Course, right: Value) -> int | None:
        """Rounds before a counter, which may wrap, is equal to a number; None: it is not bounded by that."""
        bits, step = course.phi.type.bits, course.step
        if isinstance(right, Const) and all(isinstance(v, Const) for v in course.start):
            ways = [right.value - v.value - course.offset for v in course.start if isinstance(v, Const)]
            return max(-(-(way * (1 if step > 0 else -1) % (1 << bits)) // abs(step)) for way in ways)
        return 1 << bits if bits <= _NARROW and abs(step) == 1 else None

    def _course(self, loop: Loop, value: Value, offset: int) -> _Course | None:
        inst = self._inst(value)
        if inst is None or self._block[inst.name] not in loop.blocks:
            return None
        if inst.op in ("zext", "trunc", "sext", "freeze"):
            return self._course(loop, inst.args[0], offset)
        if inst.op == "phi" and self._block[inst.name] == loop.head:
            return self._phi_course(loop, inst, offset)
        for phi in self._flow.code.blocks[loop.head].insts:
            if phi.op == "phi" and Ref(inst.type, inst.name) in phi.args and not self._counts(phi, value):
                found = self._phi_course(loop, phi, offset)  # what the phi is in the next round
                if found is not None and (found.step != 0 or found.grows):
                    return replace(found, offset=found.offset + found.step)
        if inst.op == "add" and isinstance(inst.args[1], Const):
            return self._course(loop, inst.args[0], offset + _signed(inst.args[1].value, inst.type.bits))
        if inst.op in ("lshr", "and"):
            found = self._course(loop, inst.args[0], 0)
            return found if found is not None and found.step == 0 else None
        return None

    def _phi_course(self, loop: Loop, phi: Inst, offset: int) -> _Course | None:
        start: list[Value] = []
        steps: set[int] = set()
        later = [v for v, b in zip(phi.args, phi.blocks, strict=True) if b in loop.blocks]
        if all(self._doubles(phi, v) for v in later):
            begin = [v for v, b in zip(phi.args, phi.blocks, strict=True) if b not in loop.blocks]
            shifted = all((inst := self._inst(v)) is not None and inst.op == "shl" for v in later)
            return _Course(phi, begin, 0, offset, shifted, True)
        for value, block in zip(phi.args, phi.blocks, strict=True):
            if block not in loop.blocks:
                start.append(value)
                continue
            step = self._step(phi, value)
            if step is None:
                return None
            steps.add(step)
        if len(steps) != 1:
            return None
        (step,) = steps
        exact = all(b not in loop.blocks or self._counts(phi, v) for v, b in zip(phi.args, phi.blocks, strict=True))
        return _Course(phi, start, step, offset, exact)

    def _counts(self, phi: Inst, value: Value) -> bool:
        """Whether a value is the phi and a constant."""
        inst = self._inst(value)
        while inst is not None and inst.op == "add" and isinstance(inst.args[1], Const):
            inst = self._inst(inst.args[0])
        return inst is phi

    def _doubles(self, phi: Inst, value: Value) -> bool:
        """Whether a value is the phi times two, or more."""
        inst = self._inst(value)
        if inst is None or inst.op not in ("shl", "mul") or inst.args[0] != Ref(phi.type, phi.name):
            return False
        by = inst.args[1]
        return isinstance(by, Const) and _signed(by.value, by.type.bits) > (inst.op == "mul")

    def _step(self, phi: Inst, value: Value) -> int | None:
        inst = self._inst(value)
        if inst is None:
            return None
        first = inst.args[0] if inst.args else None
        from_phi = isinstance(first, Ref) and first.name == phi.name
        added = self._added(phi, value, 8)
        if added:
            return added
        if inst.op in ("lshr", "udiv") and from_phi and isinstance(inst.args[1], Const):
            return 0 if inst.args[1].value > (inst.op == "udiv") else None
        if inst.op == "and":
            for other in inst.args:
                less = self._inst(other)
                if (
                    less is not None
                    and less.op == "add"
                    and less.args[0] == Ref(phi.type, phi.name)
                    and less.args[1] == Const(phi.type, (1 << phi.type.bits) - 1)
                ):
                    return 0
        return None

    def _added(self, phi: Inst, value: Value, depth: int) -> int | None:
        """What a value is more than the phi, or less, in each round at least; None if it may be neither."""
        if value == Ref(phi.type, phi.name):
            return 0
        inst = self._inst(value)
        if inst is None or depth == 0:
            return None
        if inst.op == "add":
            for first, second in (inst.args, reversed(inst.args)):
                before = self._added(phi, first, depth - 1)
                if before is not None:
                    if isinstance(second, Const):
                        return before + _signed(second.value, second.type.bits)
                    # A number with its highest bit set would be less.
                    small = self.most(second) >> (second.type.bits - 1) == 0
                    return before + self.least(second) if before >= 0 and small else None
        below = self._inst(inst.args[0]) if inst.args else None
        if inst.op == "ashr" and below is not None and below.op == "shl" and inst.args[1] == below.args[1]:
            return self._added(phi, below.args[0], depth - 1)  # a short number, with its sign
        if inst.op == "shl" and isinstance(inst.args[1], Const):
            # A short number that counts in the high bits: what is behind (phi >> n), shifted back.
            by, total, below = inst.args[1], 0, self._inst(inst.args[0])
            while below is not None and below.op == "add" and isinstance(below.args[1], Const):
                total += _signed(below.args[1].value, below.type.bits)
                below = self._inst(below.args[0])
            back = below is not None and below.op == "ashr" and below.args == [Ref(phi.type, phi.name), by]
            return total << by.value if back else None
        loops = self._flow.loops
        inner = loops.get(self._block[inst.name]) if inst.op == "phi" else None
        if inner is not None and inner.head in loops[self._block[phi.name]].blocks and inst.name != phi.name:
            # A loop in this one goes on from there.
            course = self._phi_course(inner, inst, 0)
            if course is None or course.step <= 0:
                return None
            begins = [self._added(phi, v, depth - 1) for v in course.start]
            return min((n for n in begins if n is not None and None not in begins), default=None)
        if inst.op == "select" or (inst.op == "phi" and inst.name != phi.name):
            ways = [self._added(phi, v, depth - 1) for v in (inst.args[1:] if inst.op == "select" else inst.args)]
            known = [way for way in ways if way is not None]
            if len(known) == len(ways):
                return min(known) if min(known) >= 0 else (max(known) if max(known) <= 0 else None)
        return None

    def least(self, value: Value, depth: int = 8) -> int:
        """The smallest unsigned number that a value can be, as far as that is seen."""
        if isinstance(value, Const):
            return value.value
        inst = self._inst(value)
        if inst is None or depth == 0:
            return 0
        if inst.op == "zext":
            return self.least(inst.args[0], depth - 1)
        if inst.op == "or" or (inst.op == "call" and inst.text.startswith("llvm.umax")):
            return max(self.least(v, depth - 1) for v in inst.args)
        if inst.op == "add" and sum(self.most(v) for v in inst.args) < 1 << inst.type.bits:
            return sum(self.least(v, depth - 1) for v in inst.args)
        if inst.op in ("select", "phi"):
            return min(self.least(v, depth - 1) for v in (inst.args[1:] if inst.op == "select" else inst.args))
        return 0

    def _inst(self, value: Value) -> Inst | None:
        return self._of.get(value.name) if isinstance(value, Ref) else None

    def most(self, value: Value) -> int:
        """The largest unsigned number that a value can be."""
        whole = (1 << value.type.bits) - 1
        if isinstance(value, Const):
            return value.value
        if (
            not isinstance(value, Ref)
            or value.type.kind != "int"
            or value.name in self._asked
            or len(self._asked) > _DEEPEST
        ):
            return whole
        if value.name not in self._known:
            self._asked.add(value.name)
            self._known[value.name] = min(whole, self._most_of(self._of[value.name], whole))
            self._asked.discard(value.name)
        return self._known[value.name]

    def _most_of(self, inst: Inst, whole: int) -> int:
        args = inst.args
        if inst.op in ("zext", "freeze", "trunc"):
            return self.most(args[0])
        if inst.op == "and":
            return min(self.most(args[0]), self.most(args[1]))
        if inst.op in ("or", "xor"):
            return int((1 << max(self.most(args[0]).bit_length(), self.most(args[1]).bit_length())) - 1)
        if inst.op == "lshr" and isinstance(args[1], Const):
            return self.most(args[0]) >> args[1].value
        if inst.op == "udiv" and isinstance(args[1], Const) and args[1].value:
            return self.most(args[0]) // args[1].value
        if inst.op == "urem":
            return min(self.most(args[0]), max(0, self.most(args[1]) - 1))
        if inst.op == "add":
            if isinstance(args[1], Const) and args[1].value >> (inst.type.bits - 1):  # a - constant
                less = (1 << inst.type.bits) - args[1].value
                # Where a is smaller the loop behind it is not entered, or goes round until it is stopped.
                return max(0, self.most(args[0]) - less)
            total = self.most(args[0]) + self.most(args[1])
            return total if total <= whole else whole
        if inst.op == "mul":
            return min(whole, self.most(args[0]) * self.most(args[1]))
        if inst.op == "shl" and isinstance(args[1], Const):
            return min(whole, self.most(args[0]) << args[1].value)
        if inst.op == "select":
            condition = self._inst(args[0])
            return max(self._limited(args[1], condition, True), self._limited(args[2], condition, False))
        if inst.op == "phi":
            return self._most_phi(inst)
        if inst.op == "call":
            if inst.text.startswith("us_") and inst.text[3:].upper() in Info.__members__:
                return Info[inst.text[3:].upper()].most
            if inst.text.startswith("llvm.umin"):
                return min(self.most(args[0]), self.most(args[1]))
            if inst.text.startswith(("llvm.umax", "llvm.smax")):
                return max(self.most(args[0]), self.most(args[1]))
            if inst.text.startswith("llvm.smin"):  # of numbers that are not negative, which a bound is
                return min(self.most(args[0]), self.most(args[1]))
            if inst.text.startswith(("llvm.ctpop", "llvm.ctlz", "llvm.cttz")):
                return inst.type.bits
        return whole

    def _most_phi(self, inst: Inst) -> int:
        loop = self._flow.loops.get(self._block[inst.name])
        if loop is not None:
            course = self._phi_course(loop, inst, 0)
            if course is not None and (course.exact or course.step <= 0):
                begin = max(self.most(v) for v in course.start)
                if course.step <= 0:
                    return begin
                rounds = self._find_rounds(loop)
                if rounds is not None:
                    return begin + rounds * course.step
        return max(self.most_at(v, b) for v, b in zip(inst.args, inst.blocks, strict=True))

    def most_at(self, value: Value, block: str) -> int:
        """The largest unsigned number that a value can be in a block, by the conditions on all ways to it, too."""
        most = self.most(value)
        flow = self._flow
        if not isinstance(value, Ref):
            return most
        while (above := flow.dominators[block]) != block:
            last = flow.code.blocks[above].insts[-1]
            if last.op == "br" and len(set(last.blocks)) == 2 and flow.predecessors[block] == [above]:
                most = min(most, self._limited(value, self._inst(last.args[0]), last.blocks[0] == block))
            block = above
        return most

    def _limited(self, value: Value, condition: Inst | None, when: bool) -> int:
        """The largest unsigned number that a value can be if a condition is true, or false."""
        most = self.most(value)
        if condition is None or condition.op != "icmp":
            return most
        first, second = condition.args
        how = condition.text if when else _INVERSE[condition.text]
        for left, right, predicate in ((first, second, how), (second, first, _SWAPPED[how])):
            # Of signed numbers one that is negative is no bound.
            if left == value and predicate in ("ult", "ule", "slt", "sle", "eq"):
                most = min(most, max(0, self.most(right) - predicate.endswith("lt")))
        return most

    def lowest(self, value: Value, depth: int = 8) -> int | None:
        """The smallest number, with its sign, that a value can be; None if it may be any."""
        bits = value.type.bits
        if isinstance(value, Const):
            return _signed(value.value, bits)
        inst = self._inst(value)
        usual = 0 if self.most(value) >> (bits - 1) == 0 else None
        if inst is None or depth == 0:
            return usual
        if inst.op == "sext":
            low = self.lowest(inst.args[0], depth - 1)
            return -(1 << (inst.args[0].type.bits - 1)) if low is None else low
        if inst.op not in ("add", "sub", "mul", "shl", "or", "freeze", "trunc", "select", "phi"):
            return usual
        if inst.op == "phi" and self._block[inst.name] in self._flow.loops:
            course = self._phi_course(self._flow.loops[self._block[inst.name]], inst, 0)
            return usual if course is None or course.step < 0 else self._all_lowest(course.start, depth)
        args = inst.args[1:] if inst.op == "select" else inst.args
        if inst.op == "sub":
            first, less = self.lowest(args[0], depth - 1), self.lowest(args[1], depth - 1)
            return None if first is None or less is None or less < 0 else first - self.most(args[1])
        lows = [self.lowest(v, depth - 1) for v in args]
        known = [low for low in lows if low is not None]
        if len(known) < len(lows):
            return None
        if inst.op == "add":
            return sum(known)
        if min(known) >= 0 or inst.op in ("select", "phi", "freeze"):
            return min(known) if inst.op in ("select", "phi", "freeze") else usual
        if isinstance(args[-1], Const) and inst.op in ("mul", "shl") and known[1] >= 0:
            return known[0] * known[1] if inst.op == "mul" else known[0] << known[1]
        return None

    def _all_lowest(self, values: list[Value], depth: int) -> int | None:
        lows = [self.lowest(v, depth - 1) for v in values]
        known = [low for low in lows if low is not None]
        return min(known) if len(known) == len(lows) else None


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
