"""What collectives are, as Python objects: reads `collectives.yaml` and checks it.

A rule about an entry is checked here once; emitters take what they find. See the head of collectives.yaml for the form.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FILE = "collectives.yaml"
KINDS = ("collective", "message", "access", "local", "program")
PARTS = ("n", "all", "own", "block", "sent", "received")
CONDITIONS = ("root", "in_place", "first")
MOST = 31  # tables of facts have 32 entries; the last one is the user's program
PROBED = ("bcast", "allgather", "allreduce")  # what a machine is measured with: engine/copy_probe.cpp
COUNTS = ("counts", "send_counts", "recv_counts")

_KEYS = (
    "value", "doc", "kind", "algorithms", "reduces", "count", "copies_like", "arguments", "text", "python",
    "cpp", "python_once", "src", "dst", "reads", "writes",
)  # fmt: skip
_EXPRESSION = re.compile(
    r"(?P<part>\w+)(?: (?P<word>if|unless) (?P<condition>\w+(?: and \w+)*))?(?: else (?P<other>\w+))?"
)


IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_CPP_KEYWORD_LIST = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq
"""
_CPP_KEYWORDS = frozenset(_CPP_KEYWORD_LIST.split())


class SpecError(ValueError):
    """The specification contradicts itself; the message names file, entry and rule."""


def checked_name(name: Any, where: str) -> str:
    """`name`, if every language can derive its identifiers from it."""
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
        raise SpecError(f"{where}: {name!r} is no name; allowed is snake_case of letters and digits")
    if name in _CPP_KEYWORDS or keyword.iskeyword(name):
        raise SpecError(f"{where}: {name} is a keyword of C++ or Python")
    return name


@dataclass(frozen=True)
class Use:
    """Which part of a buffer a rank uses: `met` where all conditions hold, else `otherwise`; "" is nothing."""

    met: str = ""
    otherwise: str = ""
    conditions: tuple[str, ...] = ()

    def on(self, **facts: bool) -> str:
        """The part, where `facts` hold: root, in_place, first."""
        return self.met if all(facts.get(name, False) for name in self.conditions) else self.otherwise

    @property
    def parts(self) -> frozenset[str]:
        """All parts that the expression names."""
        return frozenset(part for part in (self.met, self.otherwise) if part)

    def __bool__(self) -> bool:
        return bool(self.parts)


@dataclass(frozen=True)
class Argument:
    """An argument as every language writes it. `default` is as in YAML, or None."""

    name: str
    python: str
    cpp: str
    doc: str
    default: str | int | None = None


@dataclass(frozen=True)
class Collective:
    """An entry of collectives.yaml."""

    name: str
    value: int
    doc: str
    kind: str
    folder: str  # below collectives/; empty if there are no algorithms
    reduces: bool
    mean: bool
    copies_like: str
    arguments: tuple[Argument, ...]
    text: tuple[str, ...]  # lines
    python: str
    cpp: str
    python_once: tuple[str, ...]
    src: Use
    dst: Use
    reads: Use
    writes: Use
    blocks: bool  # the count is that of a block of each rank

    @property
    def uses(self) -> tuple[Use, Use, Use, Use]:
        """Src, dst, reads, writes."""
        return self.src, self.dst, self.reads, self.writes

    @property
    def parts(self) -> frozenset[str]:
        """All parts of buffers that the call uses."""
        return frozenset[str]().union(*(use.parts for use in self.uses))

    @property
    def data(self) -> bool:
        """Moves elements."""
        return bool(self.src or self.dst)

    @property
    def sends(self) -> bool:
        """There are counts of what is sent."""
        return "sent" in self.parts

    @property
    def receives(self) -> bool:
        """There are counts of what is received."""
        return "received" in self.parts

    @property
    def vectors(self) -> bool:
        """There is a count for each rank."""
        return self.sends or self.receives

    @property
    def in_place(self) -> bool:
        """There is a form in place; a program's is its own affair."""
        return self.kind == "program" or any("in_place" in use.conditions for use in self.uses)

    @property
    def in_place_at_root(self) -> bool:
        """In place, the root's buffers alone differ."""
        return self.in_place and all("root" in use.conditions for use in self.uses if "in_place" in use.conditions)

    @property
    def counts_at_root(self) -> bool:
        """The root knows all counts, and another rank need know its own only."""
        return self.vectors and self.has("root")

    def has(self, name: str) -> bool:
        """Whether there is an argument of that name."""
        return any(argument.name == name for argument in self.arguments)

    @property
    def rooted(self) -> bool:
        """A rank is named: the root, or a peer."""
        return self.kind == "program" or self.has("root") or self.has("peer")

    @property
    def is_collective(self) -> bool:
        """All ranks take part, by a program of the library."""
        return self.kind == "collective"


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise SpecError(f"{where}: {key} is {value!r}, must be text")
    return value.strip()


def _use(entry: Mapping[str, Any], key: str, where: str) -> Use:
    text = _text(entry, key, where)
    if not text:
        return Use()
    found = _EXPRESSION.fullmatch(text)
    if found is None or (found["other"] is not None and found["word"] != "if"):
        raise SpecError(
            f"{where}: {key} is {text!r}; allowed are PART, PART if CONDITION, PART unless CONDITION and "
            "PART if CONDITION else PART"
        )
    part, other = found["part"], found["other"] or ""
    for name in (part, other):
        if name and name not in PARTS:
            raise SpecError(f"{where}: {key} names the part {name}; there are {', '.join(PARTS)}")
    conditions = tuple((found["condition"] or "").split(" and ")) if found["word"] else ()
    for name in conditions:
        if name not in CONDITIONS:
            raise SpecError(f"{where}: {key} names the condition {name}; there are {', '.join(CONDITIONS)}")
    return Use(other, part, conditions) if found["word"] == "unless" else Use(part, other, conditions)


def read_arguments(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Argument]:
    """The arguments that collectives may have, in the order in which they stand."""
    arguments: dict[str, Argument] = {}
    for name, entry in entries.items():
        where = f"{FILE}: argument {name}"
        if not isinstance(entry, dict):
            raise SpecError(f"{where} has no fields")
        for key in entry:
            if key not in ("python", "cpp", "doc", "default"):
                raise SpecError(f"{where}: unknown key {key}; allowed is python, cpp, doc, default")
        for key in ("python", "cpp", "doc"):
            if not _text(entry, key, where):
                raise SpecError(f"{where} has no {key}")
        default = entry.get("default")
        if default is not None and not isinstance(default, str | int):
            raise SpecError(f"{where}: default is {default!r}, must be text or a number")
        arguments[name] = Argument(
            name, _text(entry, "python", where), _text(entry, "cpp", where), _text(entry, "doc", where), default
        )
    return arguments


def _choice(entry: Mapping[str, Any], key: str, allowed: tuple[str, ...], where: str) -> str:
    text = _text(entry, key, where)
    if text and text not in allowed:
        raise SpecError(f"{where}: {key} is {text}; allowed is {', '.join(allowed)}")
    return text


def _check(c: Collective, count: str, where: str) -> None:
    """What an entry's fields say of one another."""
    conditions = {name for use in c.uses for name in use.conditions}
    if c.kind == "program":
        if c.value != MOST or c.data or c.arguments:
            raise SpecError(f"{where}: the program is number {MOST}, and has neither buffers nor arguments here")
        return
    if c.value == MOST:
        raise SpecError(f"{where}: number {MOST} is the program's")
    counted = c.parts & {"n", "all"}
    if bool(counted) != bool(count):
        raise SpecError(f"{where}: " + ("count is missing" if counted else "count is given, but no part is n or all"))
    if "all" in c.parts and count != "block":
        raise SpecError(f"{where}: all is n of each rank, so count is block")
    if {"own", "block"} & c.parts and not (c.vectors or (count == "block" and "own" not in c.parts)):
        raise SpecError(f"{where}: own needs counts by rank, block needs these or the count of a block")
    if "block" in c.src.parts | c.dst.parts:
        raise SpecError(f"{where}: block is a place in dst, for reads and writes")
    if c.vectors and counted:
        raise SpecError(f"{where}: with counts by rank there is no n")
    if ("root" in conditions) > c.has("root"):
        raise SpecError(f"{where}: a condition names the root, but root is no argument")
    if "first" in conditions and c.rooted:
        raise SpecError(f"{where}: first is of collectives without a root")
    if "in_place" in conditions and not c.is_collective:
        raise SpecError(f"{where}: only collectives have a form in place")
    wanted = {
        "src": bool(c.src),
        "dst or buffer": bool(c.dst),
        "op": c.reduces,
        "counts": c.vectors and not (c.sends and c.receives),
        "send_counts": c.sends and c.receives,
        "recv_counts": c.sends and c.receives,
        "peer": c.kind in ("message", "access"),
        "tag": c.kind == "message",
        "offset": c.kind == "access",
    }
    for name, needed in wanted.items():
        if any(map(c.has, name.split(" or "))) != needed:
            raise SpecError(f"{where}: argument {name} is {'missing' if needed else 'given, but not used'}")
    for form in ({"root": r, "in_place": i, "first": r} for r in (False, True) for i in (False, True)):
        if not c.dst.on(**form) and (c.reads.on(**form) or c.writes.on(**form)):
            raise SpecError(f"{where}: dst is read or written where it is not used")
    if c.data and not c.text:
        raise SpecError(f"{where} has no text")


def _collective(name: str, entry: Mapping[str, Any], known: Mapping[str, Argument], where: str) -> Collective:
    for key in entry:
        if key not in _KEYS:
            raise SpecError(f"{where}: unknown key {key}; allowed is {', '.join(_KEYS)}")
    value = entry.get("value")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise SpecError(f"{where}: value is {value!r}, must be a number of 0 to {MOST}")
    names = entry.get("arguments", [])
    if not isinstance(names, list):
        raise SpecError(f"{where}: arguments is {names!r}, must be a list")
    for argument in names:
        if argument not in known:
            raise SpecError(f"{where}: argument {argument} is not explained under arguments")
    order = list(known)
    if names != sorted(set(names), key=order.index):
        raise SpecError(f"{where}: arguments are {', '.join(names)}; their order is that under arguments, each once")
    once = entry.get("python_once", [])
    if not isinstance(once, list) or (once and {str(name).removesuffix("=None") for name in once} != set(names)):
        raise SpecError(f"{where}: python_once is {once!r}, must be a list of the arguments")
    reduces = _choice(entry, "reduces", ("operators", "mean"), where)
    count = _choice(entry, "count", ("vector", "block"), where)
    folder = _text(entry, "algorithms", where) or name
    dst = _use(entry, "dst", where)
    made = Collective(
        name=name,
        value=value,
        doc=_text(entry, "doc", where),
        kind=_choice(entry, "kind", KINDS, where) or "collective",
        folder="" if folder == "none" else folder,
        reduces=bool(reduces),
        mean=reduces == "mean",
        copies_like=_choice(entry, "copies_like", PROBED, where) or "bcast",
        arguments=tuple(known[argument] for argument in names),
        text=tuple(_text(entry, "text", where).splitlines()),
        python=_text(entry, "python", where),
        cpp=_text(entry, "cpp", where),
        python_once=tuple(once),
        src=_use(entry, "src", where),
        dst=dst,
        reads=_use(entry, "reads", where),
        writes=_use(entry, "writes", where) if "writes" in entry else dst,
        blocks=count == "block",
    )
    if not made.doc:
        raise SpecError(f"{where} has no doc")
    _check(made, count, where)
    return made


def read_collectives(content: Any) -> tuple[Collective, ...]:
    """The entries of collectives.yaml, by number. Raises SpecError."""
    if not isinstance(content, dict) or set(content) != {"arguments", "collectives"}:
        raise SpecError(f"{FILE}: it has two parts, arguments and collectives")
    known = read_arguments(content["arguments"])
    made: dict[int, Collective] = {}
    for name, entry in content["collectives"].items():
        where = f"{FILE}: {name}"
        if not isinstance(entry, dict):
            raise SpecError(f"{where} has no fields")
        one = _collective(checked_name(name, FILE), entry, known, where)
        if one.value in made:
            raise SpecError(f"{where} and {made[one.value].name} both have value {one.value}")
        made[one.value] = one
    return tuple(made[value] for value in sorted(made))
