"""Emits the Python module: enumerations, records with encode and decode, limits, errors, exchange memory."""

from __future__ import annotations

import textwrap

from .model import Enumeration, Field, Record, Specification

WIDTH = 120

PREAMBLE = '''\
# Generated from spec/ by `python -m spec.generator`. Do not edit.
"""The specification in Python: enumerations, records with their encoded form, limits, errors, exchange memory.

Records are frozen dataclasses. `encode` gives the little-endian bytes that every engine reads; `decode` is its
inverse and accepts legal values only: reserved bits zero, enumerators known. Both raise ValueError with a
sentence that names record, field, the value given and what is allowed.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Final, TypeVar

_E = TypeVar("_E", bound=IntEnum)


def _unsigned(value: int, bits: int, where: str) -> int:
    """`value`, if it fits `bits` bits."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{where}: {value} does not fit {bits} bits; allowed is 0 to {(1 << bits) - 1}")
    return value


def _flag(value: int, where: str) -> int:
    """`value` as one bit."""
    if value not in (0, 1):
        raise ValueError(f"{where}: {value} is no truth value; allowed is False or True")
    return int(value)


def _enumerator(kind: type[_E], value: int, where: str) -> _E:
    """The enumerator of `kind` with number `value`."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{e.value} {e.name}" for e in kind)
        raise ValueError(f"{where}: {value} is no {kind.__name__}; allowed is {known}") from None


def _bits(raw: int, offset: int, bits: int) -> int:
    """`bits` bits of `raw` from bit `offset`."""
    return raw >> offset & (1 << bits) - 1


def _zero(raw: int, offset: int, bits: int, where: str) -> None:
    """Refuses reserved bits that are set."""
    value = _bits(raw, offset, bits)
    if value:
        raise ValueError(f"{where}: reserved bits {offset} to {offset + bits - 1} hold {value:#x}; they must be zero")


def _integer(data: bytes, size: int, where: str) -> int:
    """`data` as a little-endian number, if it is `size` bytes long."""
    if len(data) != size:
        raise ValueError(f"{where}: given {len(data)} bytes; the encoded form has {size}")
    return int.from_bytes(data, "little")
'''


#: Functions of the preamble that records call.
HELPERS = ("_bits", "_enumerator", "_flag", "_integer", "_unsigned", "_zero")


def pascal(name: str) -> str:
    """snake_case to PascalCase."""
    return "".join(part.capitalize() for part in name.split("_"))


def quoted(text: str) -> str:
    """`text` as a Python string literal with double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    #: ", subsequent_indent="    #: ") if text else []


def _docstring(text: str) -> list[str]:
    """A class's docstring: the first sentence, and the rest as a paragraph of its own."""
    text = text if text.endswith(".") else text + "."
    if len(text) <= WIDTH - 10:
        return [f'    """{text}"""']
    first, _, rest = text.rstrip(".").partition(". ")
    lines = textwrap.wrap(f'"""{first}.', WIDTH, initial_indent="    ", subsequent_indent="    ")
    if rest:
        lines += ["", *textwrap.wrap(rest + ".", WIDTH, initial_indent="    ", subsequent_indent="    ")]
    return [*lines, '    """']


def _entry(key: str, text: str) -> list[str]:
    """An entry of a table of texts, on several lines if one is too short for it."""
    line = f"    {key}: {quoted(text)},"
    if len(line) <= WIDTH:
        return [line]
    parts = textwrap.wrap(text, WIDTH - 12, drop_whitespace=False)
    return [f"    {key}: (", *(f"        {quoted(part)}" for part in parts), "    ),"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def emit_enumeration(e: Enumeration) -> list[str]:
    """An enumeration, and its attributes."""
    name = pascal(e.name)
    lines = ["", "", f"class {name}(IntEnum):", *_docstring(e.doc), ""]
    for v in e.values:
        lines += [*_comment(v.doc), f"    {v.name.upper()} = {v.value}"]
    attributes = sorted({key for v in e.values for key in v.attributes})
    for attribute in attributes:
        lines += ["", "    @property", f"    def {attribute}(self) -> int:"]
        lines += [f'        """Attribute `{attribute}` of the {e.name.replace("_", " ")}."""']
        lines += [f"        return _{e.name.upper()}_{attribute.upper()}[self]"]
    for attribute in attributes:
        lines += ["", "", f"_{e.name.upper()}_{attribute.upper()}: Final[dict[{name}, int]] = {{"]
        lines += [
            f"    {name}.{v.name.upper()}: {v.attributes[attribute]}," for v in e.values if attribute in v.attributes
        ]
        lines += ["}"]
    return lines


#: What is known of a collective in Python beside its number: name, documentation.
FACTS = (
    ("is_collective", "Whether all ranks take part, by a program of the library."),
    ("data", "Whether it moves data: else it has neither a count nor a datatype."),
    ("reduces", "Whether it takes an operator."),
    ("rooted", "Whether it has a root, or a peer."),
    ("vectors", "Whether it has a count for each rank."),
)


def _facts(spec: Specification) -> list[str]:
    """Facts of the collectives, as properties of their enumerators."""
    lines: list[str] = []
    for fact, doc in FACTS:
        lines += ["", "    @property", f"    def {fact}(self) -> bool:", f'        """{doc}"""']
        lines += [f"        return self in _COLLECTIVE_{fact.upper()}"]
    for fact, _ in FACTS:
        lines += ["", "", f"_COLLECTIVE_{fact.upper()}: Final[frozenset[Collective]] = frozenset(", "    {"]
        lines += [f"        Collective.{c.name.upper()}," for c in spec.collectives if getattr(c, fact)]
        lines += ["    }", ")"]
    return lines


def _errors(spec: Specification) -> list[str]:
    lines = ["", "", "class ErrorCode(IntEnum):", '    """Result of every operation."""', ""]
    for v in spec.errors:
        lines += [*_comment(v.doc), f"    {v.name.upper()} = {v.value}"]
    for prop, table, doc in (("meaning", "_MEANING", "What the code means."), ("advice", "_ADVICE", "What to do.")):
        lines += ["", "    @property", f"    def {prop}(self) -> str:", f'        """{doc}"""']
        lines += [f"        return {table}[self]"]
    meanings = {v.name: v.doc for v in spec.errors}
    advice = {v.name: str(v.attributes.get("advice", "")) for v in spec.errors}
    for table, texts in (("_MEANING", meanings), ("_ADVICE", advice)):
        lines += ["", "", f"{table}: Final[dict[ErrorCode, str]] = {{"]
        for name, text in texts.items():
            lines += _entry(f"ErrorCode.{name.upper()}", text)
        lines += ["}"]
    return lines


def _annotation(f: Field) -> str:
    if f.record is not None:
        return pascal(f.record)
    if f.type == "bool":
        return "bool"
    return pascal(f.type) if f.type is not None else "int"


def _default(f: Field, spec: Specification) -> str:
    if f.record is not None:
        return f"field(default_factory={pascal(f.record)})"
    if f.type == "bool":
        return "False"
    if f.type is None:
        return "0"
    first = next(v for v in spec.enumerations[f.type].values if v.value == 0)
    return f"{pascal(f.type)}.{first.name.upper()}"


def _encoded(f: Field, where: str) -> str:
    if f.record is not None:
        return f'int.from_bytes(self.{f.name}.encode(), "little")'
    if f.type == "bool":
        return f'_flag(self.{f.name}, "{where}")'
    if f.type is not None:
        return f'_enumerator({pascal(f.type)}, self.{f.name}, "{where}")'
    return f'_unsigned(self.{f.name}, {f.bits}, "{where}")'


def _decoded(f: Field, where: str) -> str:
    raw = f"_bits(raw, {f.offset}, {f.bits})"
    if f.record is not None:
        return f'{pascal(f.record)}.decode({raw}.to_bytes({f.bits // 8}, "little"))'
    if f.type == "bool":
        return f"{raw} != 0"
    if f.type is not None:
        return f'_enumerator({pascal(f.type)}, {raw}, "{where}")'
    return raw


def emit_record(r: Record, spec: Specification) -> list[str]:
    """A record, with encode and decode."""
    name = pascal(r.name)
    size = r.bits // 8
    lines = ["", "", "@dataclass(frozen=True, slots=True)", f"class {name}:", *_docstring(r.doc), ""]
    lines += ["    #: Bytes of the encoded form.", f"    BYTES: ClassVar[int] = {size}", ""]
    for f in r.visible_fields:
        lines += [*_comment(f.doc), f"    {f.name}: {_annotation(f)} = {_default(f, spec)}"]
    lines += ["", "    def encode(self) -> builtins.bytes:"]
    lines += [f'        """The {size} little-endian bytes; ValueError if a field\'s value is not allowed."""']
    lines += ["        raw = 0"]
    for f in r.visible_fields:
        value = _encoded(f, f"{name}.{f.name}")
        lines += [f"        raw |= {value} << {f.offset}" if f.offset else f"        raw |= {value}"]
    lines += [f'        return raw.to_bytes({size}, "little")', "", "    @classmethod"]
    lines += [f"    def decode(cls, data: builtins.bytes) -> {name}:"]
    lines += ['        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""']
    lines += [f'        raw = _integer(data, {size}, "{name}")']
    for f in r.fields:
        if f.reserved:
            lines += [f'        _zero(raw, {f.offset}, {f.bits}, "{name}.{f.name}")']
    lines += ["        return cls("]
    lines += [f"            {f.name}={_decoded(f, f'{name}.{f.name}')}," for f in r.visible_fields]
    return [*lines, "        )"]


def _exchange(spec: Specification) -> list[str]:
    lines = ["", "", "class Exchange(IntEnum):", '    """Byte offsets in exchange memory."""', ""]
    for register in spec.registers:
        lines += [*_comment(register.doc), f"    {register.name.upper()} = 0x{register.offset:04X}"]
    lines += ["", "", "@dataclass(frozen=True, slots=True)", "class Register:"]
    lines += ['    """A place in exchange memory; access is ro, rw or wo, seen from the host."""', ""]
    lines += ["    offset: Exchange", "    size: int", "    access: str", "    doc: str", "", ""]
    lines += ["#: Registers by offset.", "REGISTERS: Final[tuple[Register, ...]] = ("]
    for g in spec.registers:
        values = [f"Exchange.{g.name.upper()}", str(g.bytes), quoted(g.access), quoted(g.doc)]
        line = f"    Register({', '.join(values)}),"
        # As the formatter breaks it.
        long = ["    Register(", *(f"        {value}," for value in values), "    ),"]
        lines += [line] if len(line) <= WIDTH else long
    lines += [")", "", "#: Bytes of exchange memory.", f"EXCHANGE_BYTES: Final = {spec.exchange_bytes}"]
    return lines


def emit(spec: Specification) -> str:
    """The whole module as text."""
    lines = [PREAMBLE.rstrip("\n")]
    for e in spec.enumerations.values():
        lines += emit_enumeration(e)
        if e.name == "collective":
            lines += _facts(spec)
    lines += _errors(spec)
    lines += ["", ""]
    for v in spec.limits:
        lines += [f"#: {_capital(v.doc)}.", f"{v.name.upper()}: Final = {v.value}"]
    for r in spec.records.values():
        lines += emit_record(r, spec)
    lines += _exchange(spec)
    return "\n".join(lines) + "\n"
