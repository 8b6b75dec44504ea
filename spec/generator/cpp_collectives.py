"""Emits what collectives are in C++ and C: facts and memory, the list of all algorithms, the enumerators of C."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from .collectives import KINDS, PARTS, Collective, Use
from .cpp import constant
from .model import Specification

GENERATED = "// Generated from spec/ by `python -m spec.generator`. Do not edit."

_PART_DOCS = {
    "n": "the count",
    "all": "the count of each rank",
    "own": "this rank's block, of a count for each rank",
    "block": "this rank's one of all blocks",
    "sent": "all blocks, as the counts to send say",
    "received": "all blocks, as the counts to receive say",
}
_KIND_DOCS = {
    "collective": "all ranks take part",
    "message": "two ranks, matched by the user's tag",
    "access": "one rank, at the memory that a peer has exposed",
    "local": "one rank alone",
    "program": "a program of the user, whose buffers are bound as they are given",
}
# Fields of CollectiveFacts, how they follow from an entry, and what they say.
_FACTS = (
    ("reduces", lambda c: c.reduces, "takes an operator"),
    ("mean", lambda c: c.mean, "takes avg as well"),
    ("rooted", lambda c: c.rooted, "root or peer is a rank"),
    ("in_place", lambda c: c.in_place, "has an in-place form"),
    ("data", lambda c: c.data, "moves elements"),
    ("blocks", lambda c: c.blocks, "its count is that of one rank's block"),
    ("vectors", lambda c: c.vectors, "has a count for each rank"),
    ("sends", lambda c: c.sends, "these are of what is sent"),
    ("receives", lambda c: c.receives, "these are of what is received"),
    ("local", lambda c: c.kind in ("local", "access"), "no message of its own"),
    ("point_to_point", lambda c: c.kind == "message", "matched by user tag"),
)


WIDTH = 120


def _part(part: str) -> str:
    return constant(part) if part else "kNothing"


def _wrapped(begin: str, fields: list[str], end: str) -> list[str]:
    """Fields between braces, over several lines if there are many."""
    indent = " " * (len(begin) + 1)
    return textwrap.wrap(
        begin + "{" + ", ".join(field.replace(" ", "\0") for field in fields) + "}" + end,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _commented(rows: list[tuple[str, str]], indent: str = "  ") -> list[str]:
    """Declarations with their comments in one column."""
    width = max(len(row) for row, _ in rows)
    return [f"{indent}{row:{width}}  ///< {doc}" for row, doc in rows]


def _expression(use: Use) -> str:
    """A use as an expression of `root` and `in_place`; `first` is the root of calls that have none, which is rank 0."""
    if not use.conditions or use.met == use.otherwise:
        return _part(use.met if not use.conditions else use.met or use.otherwise)
    condition = " && ".join("root" if name == "first" else name for name in use.conditions)
    return f"{condition} ? {_part(use.met)} : {_part(use.otherwise)}"


def _switch(spec: Specification, fields: Callable[[Collective], list[str]]) -> list[str]:
    """Of each collective what `fields` makes of it; equal ones share a case."""
    groups: dict[tuple[str, ...], list[Collective]] = {}
    for c in spec.collectives:
        groups.setdefault(tuple(fields(c)), []).append(c)
    lines = ["  switch (collective) {"]
    for result, collectives in groups.items():
        lines += [f"    case Collective::{constant(c.name)}:" for c in collectives]
        lines += [line.replace("\0", " ") for line in _wrapped("      return ", list(result), ";")]
    return [*lines, "  }", "  return {};"]


def _facts(c: Collective) -> list[str]:
    fields = [".known = true", f".kind = CallKind::{constant(c.kind)}"]
    fields += [f".{name} = true" for name, holds, _ in _FACTS if holds(c)]
    if c.copies_like != "bcast":
        fields.append(f".copies_like = Collective::{constant(c.copies_like)}")
    return fields


def _uses(c: Collective) -> list[str]:
    names = ("src", "dst", "reads", "writes")
    return [f".{name} = {_expression(use)}" for name, use in zip(names, c.uses, strict=True) if use]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def emit(spec: Specification) -> str:
    """core/generated/collectives.hpp as text."""
    lines = [
        GENERATED,
        "// What holds of each collective, and which memory it uses. Freestanding.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        '#include "core/generated/spec.hpp"',
        "",
        "namespace unisono {",
        "",
        "/// Who takes part in a call.",
        "enum class CallKind : std::uint8_t {",
        *_commented([(f"{constant(kind)},", _KIND_DOCS[kind]) for kind in KINDS]),
        "};",
        "",
        "/// What holds of a collective (docs/model.md).",
        "struct CollectiveFacts {",
        "  bool known = false;",
        "  CallKind kind = CallKind::kCollective;",
        *_commented([(f"bool {name} = false;", doc) for name, _, doc in _FACTS]),
        "  /// Whose measurement tells from which size on ordinary buffers are copied by the kernel.",
        "  Collective copies_like = Collective::kBcast;",
        "",
        "  /// There is a count for each pair, of which a rank knows its own; otherwise all ranks know all counts.",
        "  constexpr bool pairwise() const { return sends && receives; }",
        "};",
        "",
        "/// The facts of a collective; not `known` if there is none of that number.",
        "constexpr CollectiveFacts facts_of(Collective collective) {",
        *_switch(spec, _facts),
        "}",
        "",
        "/// The collectives that take avg, in words.",
        f'inline constexpr const char* kTakesMean = "{_listed([c.name for c in spec.collectives if c.mean])}";',
        "",
        "/// A part of a buffer.",
        "enum class Extent : std::uint8_t {",
        *_commented([("kNothing,", "none of it"), *((f"{constant(part)},", _PART_DOCS[part]) for part in PARTS)]),
        "};",
        "",
        "/// What a call uses of its buffers on one rank.",
        "struct Uses {",
        "  Extent src = Extent::kNothing;     ///< bound, and read",
        "  Extent dst = Extent::kNothing;     ///< bound",
        "  Extent reads = Extent::kNothing;   ///< of dst: input",
        "  Extent writes = Extent::kNothing;  ///< of dst: result",
        "};",
        "",
        "/// What a call uses on the root or elsewhere; without a root, rank 0 is meant. Of programs nothing is known.",
        "constexpr Uses uses_of(Collective collective, bool root, bool in_place) {",
        "  using enum Extent;",
        *_switch(spec, _uses),
        "}",
        "",
        "}  // namespace unisono",
        "",
    ]
    return "\n".join(lines)


def emit_algorithms(spec: Specification) -> str:
    """collectives/generated/algorithms.hpp as text: the table of all algorithms."""
    folders: list[str] = []
    for c in spec.collectives:
        if c.folder and c.folder not in folders:
            folders.append(c.folder)
    return "\n".join(
        [
            GENERATED,
            "// The algorithms of every collective, in order of Collective's values. Freestanding.",
            "#pragma once",
            "",
            *(f'#include "collectives/{folder}/{folder}.hpp"' for folder in sorted(folders)),
            "",
            "namespace unisono::collectives {",
            "",
            "/// Calls `use` with the array of each folder, all at once.",
            "constexpr auto with_all_algorithms(const auto& use) {",
            *textwrap.wrap(
                f"  return use({', '.join(constant(folder) for folder in folders)});", WIDTH, subsequent_indent=" " * 13
            ),
            "}",
            "",
            "}  // namespace unisono::collectives",
            "",
        ]
    )


def emit_c(spec: Specification) -> str:
    """driver/include/unisono/generated/collectives.h as text: the enumerators of the C interface."""
    rows = [f"UNISONO_{c.name.upper()} = {c.value}," for c in spec.collectives]
    rows[-1] = rows[-1].rstrip(",")
    width = max(map(len, rows))
    return "\n".join(
        [
            "/* Generated from spec/ by `python -m spec.generator`. Do not edit.",
            " * What a call asks for: unisono_call::collective. Part of unisono.h, which includes it. */",
            "#ifndef UNISONO_GENERATED_COLLECTIVES_H",
            "#define UNISONO_GENERATED_COLLECTIVES_H",
            "",
            "enum {",
            *(f"  {row:{width}}  /* {c.doc} */" for row, c in zip(rows, spec.collectives, strict=True)),
            "};",
            "",
            "#endif",
            "",
        ]
    )
