"""What the kernels of a source do with channels: each is walked from its first line, through the functions it calls.

The walk follows the source once, in its order: it knows the values of constants, of variables that were given some, and
of arguments, and follows a choice that they settle. Loops are walked once, with what they change unknown. So every
channel is met as often as calls lead to its opening, with the values that it is opened with there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import constants
from .cursors import (
    assigns,
    base,
    class_of,
    initializer,
    lambda_in,
    member,
    open_fields,
    parameters,
    place_of,
    source_of,
    text_in,
    variable,
)
from .elements import differing
from .interface import (
    GENERAL_OPENING,
    KINDS,
    LAUNCHES,
    OPENINGS,
    USES,
    WAITS,
    Channel,
    Finding,
    Opening,
    datatype_of,
    op_of,
)
from .libclang import cindex
from .parsing import Source, is_marked, is_own, kinds

_LOOPS = kinds(("FOR_STMT", "WHILE_STMT", "DO_STMT", "CXX_FOR_RANGE_STMT"))
_ASSIGNMENTS = kinds(("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR"))
#: What has no value of its own and no effect.
_PASSED_OVER = kinds(("TYPE_REF", "NAMESPACE_REF", "TEMPLATE_REF", "MEMBER_REF", "ANNOTATE_ATTR", "UNEXPOSED_ATTR"))
_FOREVER = 1 << 60


@dataclass
class Thread:
    """A kernel: what runs beside others."""

    number: int
    name: str
    parent: int = -1  #: the kernel that launches it; -1: the host
    start: int = 0  #: when, in steps of the parent
    end: int = _FOREVER  #: when the parent has waited for it
    branches: tuple[tuple[int, int], ...] = ()
    host: bool = False  #: the program's main function


@dataclass
class Walked:
    """What was found."""

    channels: list[Channel] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    kernels: list[Any] = field(default_factory=list)  #: cursors of bodies that are hardware's


@dataclass(frozen=True)
class Channels:
    """A value: the channels that a variable may hold, or point to."""

    of: tuple[Channel, ...]


@dataclass(frozen=True)
class Function:
    """A value: a function that may be called, and its cursor."""

    cursor: Any


Value = int | Channels | Function | None


def walk(source: Source) -> Walked:
    """Walks all kernels of a source."""
    return _Walk(source).result


class _Walk:
    def __init__(self, source: Source) -> None:
        self.result = Walked()
        self._source = source
        self._values: dict[Any, Value] = {}
        self._step = 0
        self._branches: tuple[tuple[int, int], ...] = ()
        self._choices = 0
        self._loops: list[int] = []  # when each loop around began
        self._calls: list[Any] = []  # functions that are being walked, by their cursors
        self._returned: list[list[Value]] = []
        self._thread = Thread(-1, "")
        self._waiting: list[tuple[Thread, Any, dict[Any, Value]]] = []
        self._roots()

    # Kernels.

    def _roots(self) -> None:
        functions = list(self._source.functions())
        if self._source.dialect:
            roots = [function for function in functions if is_marked(function)]
        else:
            roots = [function for function in functions if function.spelling == "main"]
            roots = roots or self._not_called(functions)
        for root in roots:
            self._launch(root, root.spelling, host=root.spelling == "main" and not self._source.dialect)
        done = 0
        while done < len(self._waiting):
            thread, cursor, values = self._waiting[done]
            done += 1
            self._thread, self._values, self._step = thread, dict(values), 0
            self._branches, self._loops = thread.branches, []
            if not thread.host:
                self.result.kernels.append(cursor)
            self._inline(cursor, [])

    @staticmethod
    def _not_called(functions: Sequence[Any]) -> list[Any]:
        called = set()
        for function in functions:
            for at in function.walk_preorder():
                if at.kind == cindex.CursorKind.DECL_REF_EXPR and at.referenced is not None:
                    called.add(at.referenced.canonical.hash)
        return [function for function in functions if function.canonical.hash not in called]

    def _launch(self, cursor: Any, name: str, host: bool = False) -> None:
        outside = self._thread.number < 0
        thread = Thread(
            len(self.result.threads), name, self._thread.number, self._step, branches=self._branches, host=host
        )
        self.result.threads.append(thread)
        self._waiting.append((thread, cursor, {} if outside else self._values))

    def _wait(self) -> None:
        """What this kernel has launched has ended."""
        for thread in self.result.threads:
            if thread.parent == self._thread.number and thread.end == _FOREVER and self._thread.number >= 0:
                thread.end = self._step

    # Statements.

    def _visit(self, cursor: Any) -> Value:
        kind = cindex.CursorKind
        self._step += 1
        at = cursor.kind
        if at in _PASSED_OVER:
            return None
        if at == kind.VAR_DECL:
            return self._declare(cursor)
        if at == kind.IF_STMT:
            self._choose(list(cursor.get_children()))
            return None
        if at in _LOOPS:
            self._loop(cursor)
            return None
        if at == kind.SWITCH_STMT:
            self._forget(cursor)
            self._all(cursor.get_children())
            self._forget(cursor)
            return None
        if at == kind.RETURN_STMT:
            values = self._all(cursor.get_children())
            if self._returned:
                self._returned[-1].append(values[-1] if values else None)
            return None
        return self._expression(cursor)

    def _all(self, cursors: Any) -> list[Value]:
        return [self._visit(cursor) for cursor in cursors]

    def _declare(self, cursor: Any) -> Value:
        first = initializer(cursor)
        value = self._visit(first) if first is not None else None
        self._values[cursor.hash] = value
        return value

    def _choose(self, parts: list[Any]) -> None:
        # A declaration may stand before the condition.
        while parts and parts[0].kind in (cindex.CursorKind.DECL_STMT, cindex.CursorKind.VAR_DECL):
            self._visit(parts.pop(0))
        condition = self._visit(parts[0])
        if isinstance(condition, int):
            for taken in parts[1:2] if condition else parts[2:3]:
                self._visit(taken)
            return
        self._choices += 1
        choice, before, outer = self._choices, dict(self._values), self._branches
        ends = []
        for way, part in enumerate(parts[1:3]):
            self._values, self._branches = dict(before), (*outer, (choice, way))
            self._visit(part)
            ends.append(self._values)
        if len(ends) == 1:
            ends.append(before)
        self._branches = outer
        self._values = {name: _either(ends[0].get(name), ends[1].get(name)) for name in ends[0].keys() | ends[1].keys()}

    def _loop(self, cursor: Any) -> None:
        if cursor.kind == cindex.CursorKind.FOR_STMT:
            # What stands first is done once.
            children = list(cursor.get_children())
            first = [child for child in children[:1] if child.kind == cindex.CursorKind.DECL_STMT]
            self._all(first)
        else:
            children, first = list(cursor.get_children()), []
        self._forget(cursor)
        began = self._step
        self._loops.append(began)
        self._all(children[len(first) :])
        self._loops.pop()
        self._step += 1
        for channel in self.result.channels:
            # One from before the loop is in use up to its end.
            if channel.thread == self._thread.number and channel.opened < began < channel.used:
                channel.used = self._step
        self._forget(cursor)

    def _forget(self, cursor: Any) -> None:
        """What numbers a loop or a choice changes is not known in it, nor after it."""
        for at in cursor.walk_preorder():
            if at.kind not in _ASSIGNMENTS:
                continue
            target = variable(next(iter(at.get_children()), None)) if assigns(at) else None
            if target is not None and isinstance(self._values.get(target.hash), int):
                self._values[target.hash] = None

    # Expressions.

    def _expression(self, cursor: Any) -> Value:
        kind = cindex.CursorKind
        at = cursor.kind
        if at == kind.CALL_EXPR:
            return self._call(cursor)
        if at == kind.DECL_REF_EXPR:
            return self._named(cursor)
        if at == kind.LAMBDA_EXPR:
            return Function(cursor)
        if at == kind.CONDITIONAL_OPERATOR:
            condition, *ways = self._all(cursor.get_children())
            if isinstance(condition, int):
                return ways[0 if condition else 1]
            return _either(*ways[:2])
        if at in (kind.BINARY_OPERATOR, kind.COMPOUND_ASSIGNMENT_OPERATOR):
            return self._binary(cursor)
        if at == kind.UNARY_OPERATOR:
            return self._unary(cursor)
        values = self._all(cursor.get_children())
        if at == kind.ARRAY_SUBSCRIPT_EXPR:
            return values[0] if values and isinstance(values[0], Channels) else None
        if at == kind.MEMBER_REF_EXPR:
            return self._values.get(member(cursor), values[0] if values and isinstance(values[0], Channels) else None)
        own = constants.evaluate(cursor) if cursor.kind.is_expression() else None
        if own is not None:
            return own
        known = [value for value in values if value is not None]
        return known[-1] if known and at != kind.COMPOUND_STMT and values[-1] is known[-1] else None

    def _named(self, cursor: Any) -> Value:
        decl = cursor.referenced
        if decl is None or decl.kind == cindex.CursorKind.INVALID_FILE:
            inner = self._all(cursor.get_children())  # what a template was made with
            return inner[-1] if inner else None
        if decl.kind == cindex.CursorKind.ENUM_CONSTANT_DECL:
            return int(decl.enum_value)
        if decl.kind == cindex.CursorKind.FUNCTION_DECL:
            return Function(decl)
        if decl.hash in self._values:
            return self._values[decl.hash]
        found = constants.evaluate(cursor)
        if found is None and cursor != decl:
            inner = [child for child in cursor.get_children() if child.kind == cindex.CursorKind.INTEGER_LITERAL]
            return self._visit(inner[0]) if inner else None
        return found

    def _binary(self, cursor: Any) -> Value:
        left, right = list(cursor.get_children())[:2]
        operator = constants.binary_operator(cursor)
        if operator == constants.ASSIGN:
            self._visit(left)
            return self._assign(left, self._visit(right))
        first, second = self._visit(left), self._visit(right)
        value = constants.fold_binary(constants.COMPOUND.get(operator, operator), first, second)
        if operator in constants.COMPOUND:
            return self._assign(left, value)
        return value if value is not None else constants.evaluate(cursor)

    def _assign(self, left: Any, value: Value) -> Value:
        target = variable(left)
        if target is not None:
            self._values[target.hash] = value
            return value
        name = member(left)
        array = base(left)
        if isinstance(value, Channels):
            if left.kind == cindex.CursorKind.ARRAY_SUBSCRIPT_EXPR:
                # Of an array it is not told which.
                for channel in value.of:
                    channel.outer_loops = list(self._loops)
                if array is not None:
                    self._values[array.hash] = _either(self._values.get(array.hash), value)
            elif name is not None:
                self._values[name] = value
        elif name is not None:
            self._values[name] = value
        return value

    def _unary(self, cursor: Any) -> Value:
        operand = next(iter(cursor.get_children()))
        operator = constants.unary_operator(cursor)
        value = self._visit(operand)
        if operator in (constants.POST_INCREMENT, constants.INCREMENT, constants.POST_DECREMENT, constants.DECREMENT):
            up = operator in (constants.POST_INCREMENT, constants.INCREMENT)
            after = value + (1 if up else -1) if isinstance(value, int) else None
            self._assign(operand, after)
            return value if operator in (constants.POST_INCREMENT, constants.POST_DECREMENT) else after
        if operator in (constants.ADDRESS, constants.DEREFERENCE):
            target = variable(operand)
            if operator == constants.ADDRESS and target is not None and isinstance(value, int):
                self._values[target.hash] = None  # it may be changed by way of its address
                return None
            return None if isinstance(value, int) else value
        return constants.fold_unary(operator, value)

    # Calls.

    def _call(self, cursor: Any) -> Value:
        called = cursor.referenced
        name = called.spelling if called is not None else cursor.spelling
        children = list(cursor.get_children())
        arguments = list(cursor.get_arguments())
        if name == "operator=" and len(children) >= 2:
            ends = [child for child in children if child.spelling != "operator="]
            return self._assign(ends[0], self._visit(ends[-1]))
        if called is None:
            self._all(children)
            return None
        if not is_own(called):
            return self._of_interface(cursor, called, name, arguments)
        callee = children[0] if children and children[0] not in arguments else None
        if name == "operator()":
            callee = children[0]
            held = self._visit(callee)
            given = self._all(arguments)
            if isinstance(held, Function):
                return self._inline(held.cursor, given[-len(parameters(held.cursor)) :] if given else [])
            return None
        if callee is not None and callee.kind == cindex.CursorKind.MEMBER_REF_EXPR:
            self._visit(callee)
        values = self._all(arguments)
        held = None
        if called.kind in (cindex.CursorKind.VAR_DECL, cindex.CursorKind.PARM_DECL):
            held = self._values.get(called.hash)
        definition = held.cursor if isinstance(held, Function) else called.get_definition()
        return self._inline(definition, values) if definition is not None else None

    def _inline(self, function: Any, values: Sequence[Value]) -> Value:
        """Walks a function that is called with these values. One that calls itself is not walked again."""
        body = [child for child in function.get_children() if child.kind == cindex.CursorKind.COMPOUND_STMT]
        if function in self._calls or not body:
            return None
        for parameter, value in zip(parameters(function), values, strict=False):
            self._values[parameter.hash] = value
        for parameter in parameters(function)[len(values) :]:
            self._values.pop(parameter.hash, None)
        self._calls.append(function)
        self._returned.append([])
        self._visit(body[-1])
        self._calls.pop()
        returned = self._returned.pop()
        result: Value = returned[0] if returned else None
        for other in returned[1:]:
            result = _either(result, other)
        return result

    def _of_interface(self, cursor: Any, called: Any, name: str, arguments: list[Any]) -> Value:
        """A function that is none of the user's own."""
        if name in OPENINGS:
            return self._open(cursor, OPENINGS[name], arguments)
        if name == "unisono_smi_open":
            number = self._visit(arguments[0])
            known = KINDS[number - 1] if isinstance(number, int) and 1 <= number <= len(KINDS) else None
            return self._open(cursor, replace(GENERAL_OPENING, kind=known), arguments) if known else None
        if name in USES:
            self._use(cursor, name, arguments)
            return None
        if name in ("SMI_Barrier", "unisono_smi_barrier"):
            values = self._all(arguments)
            at = 0 if name == "SMI_Barrier" else 1
            return self._opened(Channel("barrier", place_of(cursor), self._where()), values[at], arguments[at])
        if called.kind == cindex.CursorKind.CONSTRUCTOR and len(arguments) > 1 and class_of(cursor) is not None:
            return self._construct(cursor, arguments)
        if name in LAUNCHES:
            self._launches(arguments)
            return None
        object_value = None
        for child in cursor.get_children():
            if child not in arguments and child.kind == cindex.CursorKind.MEMBER_REF_EXPR:
                object_value = self._visit(child)
        if name in WAITS:
            self._wait()
        self._touch(object_value)
        values = self._all(arguments)
        for argument, value in zip(arguments, values, strict=True):
            target = variable(argument)
            if target is not None and isinstance(value, int) and argument.kind != cindex.CursorKind.UNEXPOSED_EXPR:
                self._values[target.hash] = None  # given by reference
            self._touch(value)
        if called.kind == cindex.CursorKind.CONSTRUCTOR and len(values) == 1 and not isinstance(values[0], int):
            return values[0]  # a copy, or std::function
        return constants.evaluate(cursor)

    def _launches(self, arguments: list[Any]) -> None:
        name = next((found for found in map(text_in, arguments) if found is not None), "")
        for argument in arguments:
            inner = lambda_in(argument)
            value = self._visit(argument) if inner is None else Function(inner)
            if not isinstance(value, Function) or not is_own(value.cursor):
                continue
            is_lambda = value.cursor.kind == cindex.CursorKind.LAMBDA_EXPR
            definition = value.cursor if is_lambda else value.cursor.get_definition()
            if definition is not None:
                self._launch(definition, name or definition.spelling)

    def _open(self, cursor: Any, opening: Opening, arguments: list[Any]) -> Value:
        values = self._all(arguments)

        def number(at: int) -> int | None:
            value = values[at] if 0 <= at < len(values) else None
            return value if isinstance(value, int) else None

        degree = number(opening.degree)
        channel = Channel(
            opening.kind, place_of(cursor), self._where(), type=datatype_of(number(opening.type)),
            op=op_of(number(opening.op)), count=number(opening.count), peer=number(opening.peer),
            degree=degree if degree is None or degree >= 0 else None,
        )  # fmt: skip
        return self._opened(channel, values[opening.port], arguments[opening.port])

    def _construct(self, cursor: Any, arguments: list[Any]) -> Value:
        """A channel of C++."""
        kind, datatype = class_of(cursor) or ("", None)
        values = self._all(arguments)
        fields = open_fields(arguments[-1]) if arguments else {}
        known = {name: self._visit(part) for name, part in fields.items()}
        numbers = {name: value if isinstance(value, int) else None for name, value in known.items()}
        degree = numbers.get("degree")
        channel = Channel(
            kind, place_of(cursor), self._where(), type=datatype, count=numbers.get("count"), peer=numbers.get("peer"),
            degree=degree if degree is None or degree >= 0 else None,
        )  # fmt: skip
        if kind in ("reduce", "allreduce") and len(values) > 1 and isinstance(values[1], int):
            channel.op = op_of(values[1])
        if not fields:
            return self._opened(channel, None, arguments[-1] if arguments else cursor)
        return self._opened(channel, known.get("port", 0), fields.get("port", cursor))

    def _opened(self, channel: Channel, port: Value, text: Any) -> Value:
        channel.port = port if isinstance(port, int) else None
        channel.port_text = source_of(text)
        channel.thread, channel.opened, channel.used = self._thread.number, self._step, self._step
        channel.branches = self._branches
        self.result.channels.append(channel)
        return Channels((channel,))

    def _use(self, cursor: Any, name: str, arguments: list[Any]) -> None:
        values = self._all(arguments)
        use = USES[name]
        self._step += 1
        self._touch(values[0])
        if not isinstance(values[0], Channels):
            return
        for channel in values[0].of:
            # A branch does not close it: what is used in one may be used in the other.
            found = differing(name, use, channel, arguments)
            if found is not None:
                self.result.findings.append(Finding(place_of(cursor), found))
                return

    def _touch(self, value: Value) -> None:
        """A channel that is used now."""
        if isinstance(value, Channels):
            for channel in value.of:
                if channel.thread == self._thread.number:
                    channel.used = self._step
                    channel.again |= bool(channel.outer_loops) and not set(channel.outer_loops) <= set(self._loops)
                else:
                    channel.used = _FOREVER

    def _where(self) -> str:
        named = [call.spelling for call in self._calls if call.spelling and call.kind != cindex.CursorKind.LAMBDA_EXPR]
        return named[-1] if named else self._thread.name


def _either(left: Value, right: Value) -> Value:
    """What a variable holds after one of two ways."""
    if isinstance(left, Channels) or isinstance(right, Channels):
        found = [*(left.of if isinstance(left, Channels) else ()), *(right.of if isinstance(right, Channels) else ())]
        return Channels(tuple(dict.fromkeys(found)))
    return left if left == right else None
