"""Emits the reference pages: the specification, and the catalogue of errors."""

from __future__ import annotations

from collections.abc import Sequence

from .collectives import Use
from .model import Enumeration, Record, Specification

GENERATED = "<!-- Generated from spec/ by `python -m spec.generator`. Do not edit. -->"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" for _ in head) + "|"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return [*lines, ""]


def emit_enumeration(e: Enumeration) -> list[str]:
    """A section with the table of an enumeration."""
    attributes = sorted({key for v in e.values for key in v.attributes})
    rows = [
        (str(v.value), f"`{v.name}`", *(str(v.attributes[a]) for a in attributes), v.doc)
        for v in sorted(e.values, key=lambda v: v.value)
    ]
    lines = [f"### {e.name}", "", f"{_sentence(e.doc)} {e.bits} bits.", ""]
    return lines + _table(("value", "name", *attributes, "meaning"), rows)


def _bits(offset: int, bits: int) -> str:
    return str(offset) if bits == 1 else f"{offset + bits - 1}:{offset}"


def emit_record(r: Record) -> list[str]:
    """A section with the table of a record."""
    size = "" if "bytes)" in r.doc else f" {r.bits // 8} bytes."
    lines = [f"### {r.name}", "", _sentence(r.doc) + size, ""]
    rows = []
    for f in r.fields:
        target = f.record or (f.type if f.type != "bool" else None)
        kind = f"[{target}](#{target})" if target is not None else ("bool" if f.type == "bool" else "unsigned")
        if f.reserved:
            rows.append((_bits(f.offset, f.bits), str(f.offset // 8), str(f.bits), "reserved", "", "zero"))
        else:
            rows.append((_bits(f.offset, f.bits), str(f.offset // 8), str(f.bits), f"`{f.name}`", kind, f.doc))
    return lines + _table(("bits", "byte", "width", "field", "type", "meaning"), rows)


_PARTS = {
    "": "–",
    "n": "n",
    "all": "P·n",
    "own": "own count",
    "block": "own block",
    "sent": "all that is sent",
    "received": "all that is received",
}
_CONDITIONS = {"root": "on the root", "in_place": "in place", "first": "on rank 0"}


def _use(use: Use) -> str:
    """A part of a buffer, and where it is used."""
    if not use.conditions:
        return _PARTS[use.met]
    where = " ".join(_CONDITIONS[name] for name in use.conditions)
    if not use.otherwise:
        return f"{_PARTS[use.met]}, {where}"
    return f"{_PARTS[use.otherwise]}, " + (f"{where} {_PARTS[use.met]}" if use.met else f"not {where}")


def _collectives(spec: Specification) -> list[str]:
    rows = []
    for c in spec.collectives:
        if c.kind == "program":
            continue
        operators = "with avg" if c.mean else "yes" if c.reduces else ""
        who = "root" if c.has("root") else "peer" if c.has("peer") else ""
        counts = "by pair" if c.sends and c.receives else "by rank" if c.vectors else "of a block" if c.blocks else ""
        arguments = ", ".join(argument.name for argument in c.arguments)
        cells = [_use(use) for use in c.uses]
        rows.append((f"`{c.name}`", arguments, *cells, operators, who, counts))
    head = ("name", "arguments", "src", "dst", "read of dst", "written of dst", "operator", "rank", "count")
    return [
        "## Collectives",
        "",
        "What a call uses of its buffers on a rank, in elements: n is the count, P the number of ranks, *own* this",
        "rank's of the counts by rank. The source is `spec/collectives.yaml`, which",
        "[Adding a collective](../adding-a-collective.md) explains.",
        "",
        *_table(head, rows),
    ]


def emit(spec: Specification) -> str:
    """The reference page as text."""
    lines = [
        GENERATED,
        "",
        "# Specification",
        "",
        "What the parts of Unisono agree on, whatever language they are written in. This page, the C++ header",
        "`core/generated/spec.hpp`, the SystemVerilog package `rtl/generated/unisono_spec_pkg.sv` and the Python",
        "module `unisono._spec` are generated from the files in `spec/`. What the numbers mean in motion is in",
        "[Moves, programs and calls](../model.md); errors have a [page of their own](errors.md).",
        "",
        "To change it, edit the files in `spec/` and run `python -m spec.generator`; `--check` names stale files.",
        "",
        "- [Enumerations](#enumerations): " + ", ".join(f"[{name}](#{name})" for name in spec.enumerations),
        "- [Collectives](#collectives)",
        "- [Records](#records): " + ", ".join(f"[{name}](#{name})" for name in spec.records),
        "- [Exchange memory](#exchange-memory)",
        "- [Limits](#limits)",
        "",
        "## Enumerations",
        "",
        "Values are wire format: they are never renumbered. A value that is not listed is refused.",
        "",
    ]
    for e in spec.enumerations.values():
        lines += emit_enumeration(e)
    lines += _collectives(spec)
    lines += [
        "## Records",
        "",
        "Fields are packed from bit 0 upwards, in the order listed. A record is stored as 64-bit words, each",
        "little-endian, the word with bits 63:0 first; *byte* is where the field's lowest bit lies. Reserved bits are",
        "written as zero and refused when they are not.",
        "",
    ]
    for r in spec.records.values():
        lines += emit_record(r)
    lines += [
        "## Exchange memory",
        "",
        f"{spec.exchange_bytes} bytes that host and engine share. Access is seen from the host.",
        "",
    ]
    rows = [(f"`0x{g.offset:04x}`", str(g.bytes), f"`{g.name}`", g.access, g.doc) for g in spec.registers]
    lines += _table(("offset", "bytes", "register", "access", "meaning"), rows)
    lines += ["## Limits", "", "Numbers every engine agrees on.", ""]
    lines += _table(("name", "value", "meaning"), [(f"`{v.name}`", str(v.value), v.doc) for v in spec.limits])
    return "\n".join(lines)


def emit_errors(spec: Specification) -> str:
    """The catalogue of errors as text."""
    lines = [
        GENERATED,
        "",
        "# Errors",
        "",
        "Every front door reports the same codes. The message of an error says what was given and what is allowed;",
        "for a call in flight also operation, communicator, sequence, peer and phase.",
        "",
    ]
    for v in spec.errors:
        lines += [f"## {v.name}", "", f"Code {v.value}. {_sentence(v.doc)}", ""]
        if v.attributes["advice"]:
            lines += [f"**What to do:** {_sentence(v.attributes['advice'])}", ""]
    return "\n".join(lines)
