"""Emits Python's calls of collectives: what they use of their buffers, signatures, documentation, the short way."""

from __future__ import annotations

import textwrap

from .collectives import Argument, Collective, SpecError, Use
from .model import Specification

WIDTH = 120

PREAMBLE = '''\
# Generated from spec/ by `python -m spec.generator`. Do not edit.
"""Collectives of a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ._arguments import AnyOp
from ._arrays import Array
from ._options import IN_PLACE, Options
from ._order import once_ordered
from ._prepared import SCATTER_NOTE, Form, PreparedCalls, Shape, Uses
from ._signatures import options_by_name
from ._spec import Collective
from .errors import MismatchedCallError
from .request import Request
'''

_PARTS = {
    "n": "n elements",
    "all": "`size` blocks of n elements",
    "own": "this rank's count of elements",
    "block": "this rank's block",
    "sent": "all blocks, as the counts say",
    "received": "all blocks, as the counts say",
}
_WHERE = {
    ("root",): "on the root alone",
    ("in_place",): "in place",
    ("root", "in_place"): "on the root in place",
}
_RETURNS = {
    "root": "Returns dst; None on the other ranks.",
    "unless root in place": "Returns dst; None on the root in place.",
}
_DISPLACEMENTS = "Where each rank's block begins, in elements. If None, one block stands behind the other."
_IN_PLACE = "On the root: its input stands in its dst, or its part of src stays where it is. The others' is ignored."
_COUNTS_AT_ROOT = (
    "The elements of each rank's block. Ranks other than the root may pass None: the length of their {own} is theirs "
    "then."
)


def extent(use: Use) -> str:
    """How much of a buffer is used, in words."""
    where = _WHERE.get(use.conditions, " and ".join(use.conditions))
    if not use.conditions:
        return _PARTS[use.met]
    if not use.otherwise:
        return f"{_PARTS[use.met]}, {where}"
    if not use.met:
        return f"{_PARTS[use.otherwise]}, but not {where}"
    return f"{_PARTS[use.otherwise]}, {where} {_PARTS[use.met]}"


def _broken(begin: str, items: list[str], end: str, indent: str = "    ") -> list[str]:
    """`begin(items)end` as the formatter breaks it."""
    line = f"{indent}{begin}({', '.join(items)}){end}"
    if len(line) <= WIDTH:
        return [line]
    inner = f"{indent}    {', '.join(items)}"
    if len(inner) <= WIDTH:
        return [f"{indent}{begin}(", inner, f"{indent}){end}"]
    return [f"{indent}{begin}(", *(f"{indent}    {item}," for item in items), f"{indent}){end}"]


def _constant(c: Collective) -> str:
    return c.name.upper()


def _buffer(c: Collective) -> str:
    """The argument that is dst."""
    return "buffer" if c.has("buffer") else "dst"


def _returns(c: Collective) -> str:
    """Where dst is used, and so returned: nowhere, everywhere, on the root, or but for the root in place."""
    if not c.dst:
        return "nothing"
    if not c.dst.conditions or (c.dst.met and c.dst.otherwise):
        return "always"
    if c.dst == Use(c.dst.met, "", ("root",)):
        return "root"
    if c.dst == Use("", c.dst.otherwise, ("root", "in_place")):
        return "unless root in place"
    raise SpecError(f"collectives.yaml: {c.name}: Python has no form for a dst that is used as this one")


def _annotation(c: Collective) -> str:
    return {"nothing": "None", "always": "Array"}.get(_returns(c), "Array | None")


def _default(c: Collective, argument: Argument) -> str:
    if argument.name == "dst" and not c.vectors and c.src and not _reads_dst(c):
        return " = None"
    if argument.default is None:
        return ""
    return f' = "{argument.default}"' if isinstance(argument.default, str) else f" = {argument.default}"


def _keyword_only(c: Collective) -> list[tuple[str, str, str]]:
    """Name, declaration and documentation of what is given by keyword."""
    found = []
    if c.vectors:
        for name in ("send_displacements", "recv_displacements") if c.sends and c.receives else ("displacements",):
            found.append((name, f"{name}: Sequence[int] | None = None", _DISPLACEMENTS))
    if c.in_place and c.rooted:
        found.append(("in_place", "in_place: bool = False", _IN_PLACE))
    return found


def _declared(c: Collective, argument: Argument) -> str:
    if argument.name == "counts" and c.counts_at_root:
        return f"{argument.python} | None = None"
    return argument.python + _default(c, argument)


def _parameters(c: Collective) -> list[str]:
    given = ["self", *(_declared(c, argument) for argument in c.arguments)]
    named = [declaration for _, declaration, _ in _keyword_only(c)]
    return [*given, *(["*", *named] if named else []), "**options: Unpack[Options]"]


def _documentation(c: Collective) -> list[str]:
    first, *rest = c.text
    lines = [f'"""{first}']
    more = " ".join(rest).split(" In place, ")
    for i, paragraph in enumerate([*more, " ".join(c.python.split()), _RETURNS.get(_returns(c), "")]):
        if paragraph.strip():
            lines += ["", *textwrap.wrap(("In place, " if 0 < i < len(more) else "") + paragraph.strip(), WIDTH - 8)]
    arguments = []
    for argument in c.arguments:
        use = {"src": c.src, "dst": c.dst, "buffer": c.dst}.get(argument.name)
        doc = argument.doc
        if argument.name == "counts" and c.counts_at_root:
            doc = _COUNTS_AT_ROOT.format(own="dst" if c.sends else "src")
        made = " None: it is made." if argument.name == "dst" and not _reads_dst(c) else ""
        arguments.append((argument.name, doc.replace("{size}", extent(use) if use else "") + made))
    arguments += [(name, doc) for name, _, doc in _keyword_only(c)]
    if arguments:
        lines += ["", "Args:"]
        for name, doc in arguments:
            lines += textwrap.wrap(f"{name}: {doc}", WIDTH - 12, initial_indent="    ", subsequent_indent="        ")
        lines.append("")
    if len(lines) == 1:
        return [f'        {lines[0]}"""']
    return [f"        {line}".rstrip() for line in lines] + ['        """']


def _prepared(c: Collective) -> list[str]:
    """The arguments of what makes the call."""
    src = "src" if c.src else "None"
    dst = _buffer(c) if c.dst else "None"
    items = [f"_{_constant(c)}", src, dst, "options"]
    if c.sends and c.receives:
        items += ["send_counts", "recv_counts", "send_displacements", "recv_displacements"]
    names = ["op"] * c.reduces + ["root"] * c.rooted
    names += [name for name, _, _ in _keyword_only(c) if not name.startswith(("send_", "recv_"))]
    names += ["counts"] * (c.vectors and not (c.sends and c.receives))
    return [*items, *(f"{name}={name}" for name in names)]


def _quick(c: Collective) -> list[str]:
    """The arguments of the short way."""
    items = [
        f"_QUICK_{_constant(c)}",
        "src" if c.src else "None",
        _buffer(c) if c.dst else "None",
        "op" if c.reduces else "None",
        "root" if c.rooted else "None",
        "in_place" if c.in_place and c.rooted else "False",
    ]
    if c.sends and c.receives:
        return [*items, "send_counts", "send_displacements", "recv_counts", "recv_displacements"]
    if c.vectors:
        sides = ["counts", "displacements", "None", "None"]
        return items + (sides if c.sends else sides[2:] + sides[:2])
    return items


def _reads_dst(c: Collective) -> bool:
    """Whether an input stands in dst, not in place alone, so that it is always given."""
    return bool(c.src and c.reads) and "in_place" not in c.reads.conditions


def _tells(c: Collective) -> bool:
    """Whether the root alone knows what the others get, so that it tells them where they have no destination."""
    return (
        not _reads_dst(c)
        and c.src.conditions == ("root",)
        and not c.src.otherwise
        and bool(c.dst.otherwise or not c.dst.conditions)
    )


def _makes(c: Collective) -> bool:
    """Whether `quick_result` makes its destination."""
    src, dst = (part.on(root=False, in_place=False) for part in (c.src, c.dst))
    return not (c.rooted or c.vectors or "first" in c.writes.conditions) and src == "n" and dst in ("n", "all")


def _started(c: Collective) -> list[str]:
    """The short way of a call that does not block."""
    short = "_quick_start_counted" if c.vectors else "_quick_start"
    lines = _broken(f"quick = self.{short}", ["options", f'"{c.name}"', *_quick(c)], "", "        ")
    return [*lines, "        if quick is not None:", "            return quick"]


def _blocking(c: Collective) -> list[str]:
    returns = _returns(c)
    short = "quick_counted" if c.vectors else "quick"
    checks = "dst is not None and " if c.src and c.dst and not c.rooted and not c.vectors and not _reads_dst(c) else ""
    indent = "            " if _tells(c) else "        "
    lines = _broken(f"if {checks}not options and self._core.{short}", _quick(c), ":", indent)
    given = {
        "nothing": "return",
        "always": f"return {_buffer(c)}  # type: ignore[no-any-return]  # an array, as `{short}` has seen",
        "root": "return dst if root == self.rank else None",
        "unless root in place": "return None if self.rank == root and (in_place or dst is IN_PLACE) else dst",
    }[returns]
    lines.append(f"{indent}    {given}")
    if _makes(c):
        new = f"self._core.quick_new(_QUICK_{_constant(c)}, src, {'op' if c.reduces else 'None'})"
        lines += [f"        if dst is None and not options and (made := {new}) is not None:", "            return made"]
    if _tells(c):
        lines = [
            "        try:",
            *lines,
            "        except MismatchedCallError as error:",
            "            error.add_note(SCATTER_NOTE)",
            "            raise",
        ]
    run = "_run_noted" if _tells(c) else "_result" if returns == "always" else "_run"
    return [*lines, *_outer(f"{'' if returns == 'nothing' else 'return '}self.{run}", c)]


def _outer(begin: str, c: Collective) -> list[str]:
    """A call around the one that makes the call."""
    make = "_exchanged" if c.sends and c.receives else "_prepared"
    inner = f"self.{make}({', '.join(_prepared(c))})"
    line = f"        {begin}({inner})"
    if len(line) <= WIDTH:
        return [line]
    return [f"        {begin}(", *_broken(f"self.{make}", _prepared(c), "", "            "), "        )"]


def _methods(c: Collective) -> list[str]:
    once = []
    if c.python_once:
        names = [name.removesuffix("=None") for name in c.python_once]
        optional = ", optional=True" if "dst=None" in c.python_once else ""
        once = [f"    @once_ordered({', '.join(f'{chr(34)}{name}{chr(34)}' for name in names)}{optional})"]
    return [
        "",
        *once,
        *_broken(f"def {c.name}", _parameters(c), f" -> {_annotation(c)}:"),
        *_documentation(c),
        *_blocking(c),
        "",
        *once,
        *_broken(f"def {c.name}_async", _parameters(c), " -> Request:"),
        f'        """As `{c.name}`."""',
        *_started(c),
        *_outer("return self._start", c),
    ]


def _shape(c: Collective) -> list[str]:
    def uses(root: bool, in_place: bool) -> str:
        on = {"root": root, "in_place": in_place}
        return f'Uses("{c.src.on(**on)}", "{c.dst.on(**on)}")'

    def form(in_place: bool) -> str:
        return f"Form({uses(True, in_place)}, {uses(False, in_place)})"

    items = [f"Collective.{_constant(c)}", form(False), form(True)]
    items += ["reduces=True"] * c.reduces
    items += ["counts_at_root=True"] * c.counts_at_root
    items += ["partial=True"] * ("first" in c.writes.conditions)
    items += ["reads_dst=True"] * _reads_dst(c)
    return _broken(f"_{_constant(c)} = Shape", items, "", "")


def emit(spec: Specification) -> str:
    """python/unisono/_collective_calls.py as text."""
    collectives = [c for c in spec.collectives if c.is_collective]
    lines = [PREAMBLE, "# What they use of src and dst: on the root and elsewhere, then the same in place."]
    for c in collectives:
        lines += _shape(c)
    lines += ["", "# What `_core.Communicator.quick` takes: plain ints, so that a call compares no enumerators."]
    lines += [f"_QUICK_{_constant(c)} = int(Collective.{_constant(c)})" for c in collectives]
    lines += ["", "", "@options_by_name", "class CollectiveCalls(PreparedCalls):"]
    lines += ['    """Collectives of a communicator."""']
    for c in collectives:
        lines += _methods(c)
    return "\n".join(lines) + "\n"
