"""Emits what is known of handlers in a switch: C++ header, SystemVerilog package, Python module, reference page."""

from __future__ import annotations

from . import cpp, markdown, python, systemverilog
from .model import Specification


def emit_cpp(spec: Specification) -> str:
    """The header, freestanding."""
    lines = [
        "// Generated from spec/handlers.yaml by `python -m spec.generator`. Do not edit.",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "namespace unisono::handler {",
        "",
    ]
    for enumeration in spec.enumerations.values():
        lines += cpp.emit_enumeration(enumeration)
    for v in spec.limits:
        lines += [f"inline constexpr std::uint32_t {cpp.constant(v.name)} = {v.value};  ///< {v.doc}"]
    lines += [""]
    for record in spec.records.values():
        lines += cpp.emit_record(record)
    lines += ["}  // namespace unisono::handler", ""]
    return "\n".join(lines)


def emit_systemverilog(spec: Specification) -> str:
    """The package."""
    lines = [
        "// Generated from spec/handlers.yaml by `python -m spec.generator`. Do not edit.",
        "//",
        "// Bit 0 of a record is the lowest bit of its first field, hence the last member of the struct.",
        "// A member whose name would be a keyword of SystemVerilog, or a word of C++, ends in an underscore.",
        "",
        "package unisono_handler_isa_pkg;",
        "",
        "  // A design uses only a part of the specification.",
        "  // verilator lint_off UNUSEDPARAM",
        "",
    ]
    for enumeration in spec.enumerations.values():
        lines += systemverilog.emit_enumeration(enumeration)
    for v in spec.limits:
        lines += systemverilog.emit_limit(v)
    lines += [""]
    for record in spec.records.values():
        lines += systemverilog.emit_record(record, spec)
    lines += ["  // verilator lint_on UNUSEDPARAM", "", "endpackage : unisono_handler_isa_pkg", ""]
    return "\n".join(lines)


def emit_python(spec: Specification) -> str:
    """The module. What it needs to encode and decode is that of the specification's own module."""
    body: list[str] = []
    for enumeration in spec.enumerations.values():
        body += python.emit_enumeration(enumeration)
    body += ["", ""]
    for v in spec.limits:
        body += [f"#: {v.doc[:1].upper()}{v.doc[1:]}.", f"{v.name.upper()}: Final = {v.value}"]
    for record in spec.records.values():
        body += python.emit_record(record, spec)
    text = "\n".join(body)
    lines = [
        "# Generated from spec/ by `python -m spec.generator`. Do not edit.",
        '"""Instructions of handlers in a switch: enumerations, their encoded form, limits."""',
        "",
        "from __future__ import annotations",
        "",
        "import builtins",
        "from dataclasses import dataclass",
        "from enum import IntEnum",
        "from typing import ClassVar, Final",
        "",
        f"from .._spec import {', '.join(name for name in python.HELPERS if f'{name}(' in text)}",
        text,
    ]
    return "\n".join(lines) + "\n"


def emit_markdown(spec: Specification) -> str:
    """The reference page."""
    lines = [
        markdown.GENERATED,
        "",
        "# Instructions of handlers",
        "",
        "What handlers in a switch are compiled to ([handlers](../handlers.md)). An instruction is a word of 64 bits.",
        "",
        "## The word",
        "",
    ]
    for record in spec.records.values():
        lines += markdown.emit_record(record)
    lines += ["## Numbers", ""]
    for enumeration in spec.enumerations.values():
        lines += markdown.emit_enumeration(enumeration)
    lines += ["## Limits", ""]
    lines += [f"- `{v.name}` = {v.value}: {v.doc}" for v in spec.limits]
    return "\n".join(lines) + "\n"
