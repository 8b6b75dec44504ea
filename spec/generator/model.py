"""The specification as Python objects: reads the YAML files of `spec/` and checks them.

Every emitter works on the objects made here, so a rule is checked once for all languages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .collectives import IDENTIFIER, Collective, SpecError, checked_name, read_collectives

__all__ = ["Collective", "SpecError", "Specification", "load"]

WORD_BITS = 64


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
    collectives: tuple[Collective, ...]


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, but a key that appears twice is an error instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                mark = key_node.start_mark
                raise SpecError(f"{Path(mark.name).name}: {key} appears twice, again in line {mark.line + 1}")
            seen.add(key)
        return super().construct_mapping(node, deep)


def _read(path: Path) -> Any:
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, _Loader)  # a SafeLoader still
    except (OSError, yaml.YAMLError) as error:
        raise SpecError(f"{path.name}: {error}") from error


def _get(entry: Any, key: str, kind: type, where: str) -> Any:
    """`entry[key]`, which must be there and of `kind`."""
    if not isinstance(entry, dict) or key not in entry:
        raise SpecError(f"{where} has no {key}")
    value = entry[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SpecError(f"{where}: {key} is {value!r}, must be of type {kind.__name__}")
    return value


def _only(entry: dict[str, Any], allowed: tuple[str, ...], where: str) -> None:
    """Refuses keys that nothing reads, which are most likely misspelt."""
    for key in entry:
        if key not in allowed:
            raise SpecError(f"{where}: unknown key {key}; allowed is {', '.join(allowed)}")


def _values(entries: dict[str, dict[str, Any]], bits: int, where: str) -> tuple[Value, ...]:
    values: list[Value] = []
    seen: dict[int, str] = {}
    for name, entry in entries.items():
        if not IDENTIFIER.fullmatch(str(name)):  # an enumerator is prefixed or capitalised, so keywords are fine
            raise SpecError(f"{where}: {name!r} is no name; allowed is snake_case of letters and digits")
        number = _get(entry, "value", int, f"{where}: {name}")
        doc = _get(entry, "doc", str, f"{where}: {name}")
        if number in seen:
            raise SpecError(f"{where}: {name} and {seen[number]} both have value {number}")
        if not 0 <= number < 1 << bits:
            raise SpecError(f"{where}: {name} = {number} does not fit {bits} bits")
        seen[number] = name
        rest = {k: v for k, v in entry.items() if k not in ("value", "doc")}
        values.append(Value(name, number, doc, rest))
    if 0 not in seen:
        raise SpecError(f"{where} has no value 0, which a cleared field holds")
    return tuple(values)


def _enumeration(name: str, entry: dict[str, Any], elsewhere: dict[str, Any]) -> Enumeration:
    """An enumeration; one whose `values` names a file has those of `elsewhere`."""
    where = f"enums.yaml: {name}"
    checked_name(name, "enums.yaml")
    doc = _get(entry, "doc", str, where)
    bits = _get(entry, "bits", int, where)
    _only(entry, ("doc", "bits", "values"), where)
    if not 1 <= bits <= WORD_BITS:
        raise SpecError(f"{where}: {bits} bits; allowed is 1 to {WORD_BITS}")
    given = entry.get("values")
    entries = elsewhere.get(given, given) if isinstance(given, str) else given
    values = _values(_get({"values": entries}, "values", dict, where), bits, where)
    attributes = {key for v in values for key in v.attributes}
    for value in values:
        for attribute in attributes:
            _get(value.attributes, checked_name(attribute, where), int, f"{where}: {value.name}")
    return Enumeration(name, doc, bits, values)


def _errors(entries: dict[str, dict[str, Any]]) -> tuple[Value, ...]:
    errors = _values(entries, 16, "errors.yaml")
    for error in errors:
        _only(error.attributes, ("advice",), f"errors.yaml: {error.name}")
        _get(error.attributes, "advice", str, f"errors.yaml: {error.name}")  # empty: the message alone can say
    return errors


def _limits(entries: dict[str, dict[str, Any]]) -> tuple[Value, ...]:
    limits: list[Value] = []
    for name, entry in entries.items():
        where = f"limits.yaml: {checked_name(name, 'limits.yaml')}"
        value = _get(entry, "value", int, where)
        _only(entry, ("value", "doc"), where)
        if not 0 <= value < 1 << WORD_BITS:
            raise SpecError(f"{where} = {value} does not fit {WORD_BITS} bits")
        limits.append(Value(name, value, _get(entry, "doc", str, where)))
    return tuple(limits)


def _field_bits(
    item: dict[str, Any],
    where: str,
    enumerations: dict[str, Enumeration],
    records: dict[str, Record],
) -> int:
    """Width of a field, after a check of its type."""
    nested = item.get("record")
    if nested is not None:
        _only(item, ("name", "record", "doc"), where)
        if nested not in records:
            raise SpecError(f"{where}: record {nested} must be defined before it is used")
        return records[nested].bits
    _only(item, ("name", "bits", "type", "doc"), where)
    bits: int = _get(item, "bits", int, where)
    if not 1 <= bits <= WORD_BITS:
        raise SpecError(f"{where}: {bits} bits; allowed is 1 to {WORD_BITS}")
    kind = item.get("type")
    if kind == "bool" and bits != 1:
        raise SpecError(f"{where}: a bool is one bit wide")
    if kind is not None and kind != "bool":
        if kind not in enumerations:
            raise SpecError(f"{where}: unknown type {kind}")
        if max(v.value for v in enumerations[kind].values) >= 1 << bits:
            raise SpecError(f"{where}: {kind} needs more than {bits} bits")
    return bits


def _record(
    name: str,
    entry: dict[str, Any],
    enumerations: dict[str, Enumeration],
    records: dict[str, Record],
) -> Record:
    checked_name(name, "records.yaml")
    _only(entry, ("doc", "bits", "fields"), f"records.yaml: {name}")
    offset = 0
    fields: list[Field] = []
    names: set[str] = set()
    for item in _get(entry, "fields", list, f"records.yaml: {name}"):
        owner = f"records.yaml: {name}"
        where = f"{owner}.{checked_name(_get(item, 'name', str, owner), owner)}"
        if item["name"] in names:
            raise SpecError(f"{where} appears twice")
        names.add(item["name"])
        bits = _field_bits(item, where, enumerations, records)
        if "record" in item and offset % WORD_BITS:
            raise SpecError(f"{where}: a record starts at a {WORD_BITS}-bit word, not at bit {offset}")
        if "record" not in item and offset // WORD_BITS != (offset + bits - 1) // WORD_BITS:
            raise SpecError(f"{where} crosses a {WORD_BITS}-bit word at bit {offset}")
        made = Field(item["name"], bits, offset, item.get("doc", ""), item.get("type"), item.get("record"))
        if made.reserved and (made.type is not None or made.record is not None):
            raise SpecError(f"{where}: a reserved field has no type")
        if not made.reserved and not made.doc:
            raise SpecError(f"{where} has no doc")
        fields.append(made)
        offset += bits
    if offset != _get(entry, "bits", int, f"records.yaml: {name}"):
        raise SpecError(f"records.yaml: {name} has {offset} bits, says {entry['bits']}")
    if offset == 0 or offset % WORD_BITS:
        raise SpecError(f"records.yaml: {name} is no multiple of {WORD_BITS} bits")
    return Record(name, _get(entry, "doc", str, f"records.yaml: {name}"), offset, tuple(fields))


def _registers(exchange: dict[str, Any]) -> tuple[Register, ...]:
    registers: list[Register] = []
    names: set[str] = set()
    end = 0
    for entry in _get(exchange, "registers", list, "exchange.yaml"):
        name = checked_name(_get(entry, "name", str, "exchange.yaml: a register"), "exchange.yaml")
        where = f"exchange.yaml: {name}"
        _only(entry, ("name", "offset", "bytes", "access", "doc"), where)
        offset = _get(entry, "offset", int, where)
        size = entry.get("bytes", 4)
        access = _get(entry, "access", str, where)
        if name in names:
            raise SpecError(f"{where} appears twice")
        if offset < end:
            raise SpecError(f"{where} overlaps the register before it")
        if offset % 4 or size % 4 or size <= 0:
            raise SpecError(f"{where}: offset and size are multiples of 4 bytes")
        if access not in ("ro", "rw", "wo"):
            raise SpecError(f"{where}: access is {access}, must be ro, rw or wo")
        names.add(name)
        end = offset + size
        registers.append(Register(name, offset, size, access, _get(entry, "doc", str, where)))
    if end > _get(exchange, "bytes", int, "exchange.yaml"):
        raise SpecError("exchange.yaml: registers reach beyond the memory")
    return tuple(registers)


def load(folder: Path) -> Specification:
    """Reads and checks the specification in `folder`. Raises SpecError."""
    collectives = read_collectives(_read(folder / "collectives.yaml"))
    elsewhere = {"collectives.yaml": {c.name: {"value": c.value, "doc": c.doc} for c in collectives}}
    enumerations = {name: _enumeration(name, entry, elsewhere) for name, entry in _read(folder / "enums.yaml").items()}
    records: dict[str, Record] = {}
    for name, entry in _read(folder / "records.yaml").items():
        if name in enumerations:
            raise SpecError(f"records.yaml: {name} is also the name of an enumeration")
        records[name] = _record(name, entry, enumerations, records)
    exchange = _read(folder / "exchange.yaml")
    return Specification(
        enumerations,
        _errors(_read(folder / "errors.yaml")),
        _limits(_read(folder / "limits.yaml")),
        records,
        exchange["bytes"],
        _registers(exchange),
        collectives,
    )


def load_handlers(folder: Path) -> Specification:
    """Reads and checks `handlers.yaml`, the machine of handlers in a switch, in `folder`. Raises SpecError."""
    given = _read(folder / "handlers.yaml")
    enumerations = {name: _enumeration(name, entry, {}) for name, entry in given["enumerations"].items()}
    records: dict[str, Record] = {}
    for name, entry in given["records"].items():
        records[name] = _record(name, entry, enumerations, records)
    return Specification(enumerations, (), _limits(given["limits"]), records, 0, (), ())
