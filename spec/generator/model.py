"""The specification as Python objects: reads the YAML files of `spec/` and checks them.

Every emitter works on the objects made here, so a rule is checked once for all languages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

WORD_BITS = 64


class SpecError(ValueError):
    """The specification contradicts itself; the message names file, entry and rule."""


@dataclass(frozen=True)
class Value:
    """One enumerator."""

    name: str
    value: int
    doc: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Enumeration:
    """A named set of values that fits `bits` bits."""

    name: str
    doc: str
    bits: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Field:
    """A field of a record; `offset` is its lowest bit, counted from bit 0 of the record."""

    name: str
    bits: int
    offset: int
    doc: str
    type: str | None = None  # enumeration name, or "bool"
    record: str | None = None

    @property
    def reserved(self) -> bool:
        """Reserved fields carry no information and must be zero."""
        return self.name.startswith("reserved")


@dataclass(frozen=True)
class Record:
    """A bit layout; a multiple of 64 bits."""

    name: str
    doc: str
    bits: int
    fields: tuple[Field, ...]

    @property
    def words(self) -> int:
        """64-bit words of the encoded form."""
        return self.bits // WORD_BITS

    @property
    def visible_fields(self) -> tuple[Field, ...]:
        """Fields that carry information."""
        return tuple(f for f in self.fields if not f.reserved)


@dataclass(frozen=True)
class Register:
    """A place in exchange memory; offset and size in bytes."""

    name: str
    offset: int
    bytes: int
    access: str
    doc: str


@dataclass(frozen=True)
class Specification:
    """Everything that two languages must agree on."""

    enumerations: dict[str, Enumeration]
    errors: tuple[Value, ...]
    limits: tuple[Value, ...]
    records: dict[str, Record]
    exchange_bytes: int
    registers: tuple[Register, ...]


def _read(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        return yaml.safe_load(file)


def _values(entries: dict[str, dict[str, Any]], bits: int, where: str) -> tuple[Value, ...]:
    values: list[Value] = []
    seen: dict[int, str] = {}
    for name, entry in entries.items():
        number = entry["value"]
        if number in seen:
            raise SpecError(f"{where}: {name} and {seen[number]} both have value {number}")
        if not 0 <= number < 1 << bits:
            raise SpecError(f"{where}: {name} = {number} does not fit {bits} bits")
        seen[number] = name
        rest = {k: v for k, v in entry.items() if k not in ("value", "doc")}
        values.append(Value(name, number, entry["doc"], rest))
    return tuple(values)


def _record(
    name: str,
    entry: dict[str, Any],
    enumerations: dict[str, Enumeration],
    records: dict[str, Record],
) -> Record:
    offset = 0
    fields: list[Field] = []
    names: set[str] = set()
    for item in entry["fields"]:
        where = f"records.yaml: {name}.{item['name']}"
        if item["name"] in names:
            raise SpecError(f"{where} appears twice")
        names.add(item["name"])
        nested = item.get("record")
        if nested is not None:
            if nested not in records:
                raise SpecError(f"{where}: record {nested} must be defined before it is used")
            bits = records[nested].bits
        else:
            bits = item["bits"]
            kind = item.get("type")
            if kind is not None and kind != "bool":
                if kind not in enumerations:
                    raise SpecError(f"{where}: unknown type {kind}")
                largest = max(v.value for v in enumerations[kind].values)
                if largest >= 1 << bits:
                    raise SpecError(f"{where}: {kind} needs more than {bits} bits")
            if kind == "bool" and bits != 1:
                raise SpecError(f"{where}: a bool is one bit wide")
        if offset // WORD_BITS != (offset + bits - 1) // WORD_BITS and bits <= WORD_BITS:
            raise SpecError(f"{where} crosses a 64-bit word at bit {offset}")
        fields.append(Field(item["name"], bits, offset, item.get("doc", ""), item.get("type"), nested))
        offset += bits
    if offset != entry["bits"]:
        raise SpecError(f"records.yaml: {name} has {offset} bits, says {entry['bits']}")
    if offset % WORD_BITS:
        raise SpecError(f"records.yaml: {name} is no multiple of {WORD_BITS} bits")
    return Record(name, entry["doc"], offset, tuple(fields))


def load(folder: Path) -> Specification:
    """Reads and checks the specification in `folder`. Raises SpecError."""
    enumerations = {
        name: Enumeration(name, e["doc"], e["bits"], _values(e["values"], e["bits"], f"enums.yaml: {name}"))
        for name, e in _read(folder / "enums.yaml").items()
    }
    records: dict[str, Record] = {}
    for name, entry in _read(folder / "records.yaml").items():
        records[name] = _record(name, entry, enumerations, records)
    exchange = _read(folder / "exchange.yaml")
    registers = tuple(
        Register(r["name"], r["offset"], r.get("bytes", 4), r["access"], r["doc"]) for r in exchange["registers"]
    )
    end = 0
    for register in registers:
        if register.offset < end:
            raise SpecError(f"exchange.yaml: {register.name} overlaps the register before it")
        end = register.offset + register.bytes
    if end > exchange["bytes"]:
        raise SpecError("exchange.yaml: registers reach beyond the memory")
    return Specification(
        enumerations,
        _values(_read(folder / "errors.yaml"), 16, "errors.yaml"),
        tuple(Value(n, e["value"], e["doc"]) for n, e in _read(folder / "limits.yaml").items()),
        records,
        exchange["bytes"],
        registers,
    )
