"""The registers of the exchange memory, from spec/exchange.yaml, for drivers and descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tools.ip.design import ROOT

SOURCE = ROOT / "spec" / "exchange.yaml"


@dataclass(frozen=True)
class Register:
    """A register, or a row of them, of 32 bits each."""

    name: str
    offset: int
    bytes: int
    access: str
    """rw, ro or wo"""
    doc: str


def registers() -> tuple[list[Register], int]:
    """All of them, and the bytes of their address space."""
    read: Any = yaml.safe_load(SOURCE.read_text())
    rows = [
        Register(one["name"], one["offset"], one.get("bytes", 4), one["access"], one["doc"])
        for one in read["registers"]
    ]
    return rows, int(read["bytes"])


def header(rows: Sequence[Register], size: int) -> str:
    """A header of C with the offsets."""
    lines = [f"#define UNISONO_{one.name.upper():18} {one.offset:#06x} /* {one.access}, {one.doc} */" for one in rows]
    return (
        "/* Registers of the engine, 32 bits each, by their offsets in bytes. sim/unisono_ip_tb.sv shows what a\n"
        " * driver does with them, access by access. */\n#pragma once\n\n"
        f"#define UNISONO_REGISTER_BYTES {size}\n\n" + "\n".join(lines) + "\n"
    )


def table(rows: Sequence[Register]) -> str:
    """The same as a table for people."""
    lines = [f"| {one.offset:#06x} | {one.bytes} | `{one.name}` | {one.access} | {one.doc} |" for one in rows]
    return "| offset | bytes | register | access | |\n|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
