"""Emits the C++ header: enumerations, records with encode and decode, limits, errors, exchange memory."""

from __future__ import annotations

from .model import WORD_BITS, Enumeration, Field, Record, Specification


def pascal(name: str) -> str:
    """snake_case to PascalCase."""
    return "".join(part.capitalize() for part in name.split("_"))


def constant(name: str) -> str:
    """snake_case to kCamelCase."""
    return "k" + pascal(name)


def _storage(bits: int) -> str:
    for width in (8, 16, 32):
        if bits <= width:
            return f"std::uint{width}_t"
    return "std::uint64_t"


def _field_type(field: Field) -> str:
    if field.record is not None:
        return pascal(field.record)
    if field.type == "bool":
        return "bool"
    if field.type is not None:
        return pascal(field.type)
    return _storage(field.bits)


def _mask(bits: int) -> str:
    return f"0x{(1 << bits) - 1:x}U" if bits <= 32 else f"0x{(1 << bits) - 1:x}ULL"


def emit_enumeration(e: Enumeration) -> list[str]:
    """An enumeration, its names, and its attributes."""
    name = pascal(e.name)
    lines = [f"/// {e.doc}", f"enum class {name} : {_storage(e.bits)} {{"]
    lines += [f"  {constant(v.name)} = {v.value},  ///< {v.doc}" for v in e.values]
    lines += ["};", ""]
    lines += [f'/// Name of a {e.name.replace("_", " ")} as users write it; "?" for a value that is none.']
    lines += [f"constexpr const char* name_of({name} value) {{", "  switch (value) {"]
    lines += [f'    case {name}::{constant(v.name)}: return "{v.name}";' for v in e.values]
    lines += ["  }", '  return "?";', "}", ""]
    lines += [f"/// Whether `value` is one of {name}'s enumerators."]
    lines += [f"constexpr bool is_known({name} value) {{ return name_of(value)[0] != '?'; }}", ""]
    lines += [f"/// All enumerators of {name}, in order of value."]
    items = ", ".join(f"{name}::{constant(v.name)}" for v in e.values)
    lines += [f"inline constexpr std::array<{name}, {len(e.values)}> kAll{name}{{{items}}};", ""]
    for attribute in sorted({key for v in e.values for key in v.attributes}):
        lines += [f"/// Attribute `{attribute}` of a {e.name.replace('_', ' ')}."]
        lines += [f"constexpr std::uint32_t {attribute}_of({name} value) {{", "  switch (value) {"]
        lines += [
            f"    case {name}::{constant(v.name)}: return {v.attributes[attribute]};"
            for v in e.values
            if attribute in v.attributes
        ]
        lines += ["  }", "  return 0;", "}", ""]
    return lines


def _encode_field(f: Field) -> list[str]:
    word, shift = divmod(f.offset, WORD_BITS)
    if f.record is not None:
        count = f.bits // WORD_BITS
        return (
            [f"  {{ const auto nested = encode(value.{f.name});"]
            + [f"    words[{word + i}] = nested[{i}];" for i in range(count)]
            + ["  }"]
        )
    cast = f"static_cast<std::uint64_t>(value.{f.name})"
    if f.bits < WORD_BITS:
        cast = f"({cast} & {_mask(f.bits)})"
    return [f"  words[{word}] |= {cast} << {shift}U;"]


def _decode_field(f: Field) -> list[str]:
    word, shift = divmod(f.offset, WORD_BITS)
    if f.record is not None:
        count = f.bits // WORD_BITS
        items = ", ".join(f"words[{word + i}]" for i in range(count))
        return [f"  value.{f.name} = decode_{f.record}({{{items}}});"]
    raw = f"words[{word}] >> {shift}U" if shift else f"words[{word}]"
    if f.bits < WORD_BITS:
        raw = f"({raw}) & {_mask(f.bits)}"
    kind = _field_type(f)
    if kind == "bool":
        return [f"  value.{f.name} = ({raw}) != 0;"]
    return [f"  value.{f.name} = static_cast<{kind}>({raw});"]


def emit_record(r: Record) -> list[str]:
    """A record, with encode and decode."""
    name = pascal(r.name)
    words = f"std::array<std::uint64_t, {r.words}>"
    lines = [f"/// {r.doc}", f"struct {name} {{"]
    lines += [f"  {_field_type(f)} {f.name}{{}};  ///< {f.doc}" for f in r.visible_fields]
    lines += [f"  friend constexpr bool operator==(const {name}&, const {name}&) = default;", "};", ""]
    lines += [f"/// Encoded form of {name}: {r.words} little-endian 64-bit words. Values must satisfy `fits`."]
    lines += [f"constexpr {words} encode(const {name}& value) {{", f"  {words} words{{}};"]
    for f in r.visible_fields:
        lines += _encode_field(f)
    lines += ["  return words;", "}", ""]
    lines += [f"/// Decodes a {name} without checking; see `well_formed_{r.name}`."]
    lines += [f"constexpr {name} decode_{r.name}(const {words}& words) {{", f"  {name} value{{}};"]
    for f in r.visible_fields:
        lines += _decode_field(f)
    lines += ["  return value;", "}", ""]
    lines += ["/// Whether every field holds a value its width and type allow."]
    lines += [f"constexpr bool fits(const {name}& value) {{"]
    checks = []
    for f in r.visible_fields:
        if f.record is not None:
            checks.append(f"fits(value.{f.name})")
        elif f.type == "bool":
            continue
        elif f.type is not None:
            checks.append(f"is_known(value.{f.name})")
        elif f.bits not in (8, 16, 32, 64):
            checks.append(f"value.{f.name} <= {_mask(f.bits)}")
    if not checks:
        lines += ["  static_cast<void>(value);"]
    lines += ["  return " + (" &&\n         ".join(checks) or "true") + ";", "}", ""]
    lines += ["/// Whether encoded words are a legal value: reserved bits zero, enumerators known."]
    lines += [f"constexpr bool well_formed_{r.name}(const {words}& words) {{"]
    lines += [f"  const {name} value = decode_{r.name}(words);"]
    lines += ["  return fits(value) && encode(value) == words;", "}", ""]
    lines += [f"inline constexpr std::size_t {constant(r.name)}Words = {r.words};", ""]
    return lines


def emit(spec: Specification) -> str:
    """The whole header as text."""
    lines = [
        "// Generated from spec/ by `python -m spec.generator`. Do not edit.",
        "// Freestanding: compiles for the host and for RV32 without a library.",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "namespace unisono {",
        "",
    ]
    for e in spec.enumerations.values():
        lines += emit_enumeration(e)
    lines += ["/// Result of every operation.", "enum class ErrorCode : std::uint16_t {"]
    lines += [f"  {constant(v.name)} = {v.value},  ///< {v.doc}" for v in spec.errors]
    lines += ["};", ""]
    for function, key, doc in (
        ("name_of", "name", "Name of an error code."),
        ("meaning_of", "doc", "What an error code means."),
        ("advice_for", "advice", "What to do about an error."),
    ):
        lines += [f"/// {doc}", f"constexpr const char* {function}(ErrorCode code) {{", "  switch (code) {"]
        for v in spec.errors:
            text = {"name": v.name, "doc": v.doc, "advice": v.attributes.get("advice", "")}[key]
            escaped = text.replace('"', '\\"')
            lines += [f'    case ErrorCode::{constant(v.name)}: return "{escaped}";']
        lines += ["  }", '  return "?";', "}", ""]
    lines += ["/// Numbers every engine agrees on."]
    lines += [f"inline constexpr std::uint64_t {constant(v.name)} = {v.value};  ///< {v.doc}" for v in spec.limits]
    lines += [""]
    for r in spec.records.values():
        lines += emit_record(r)
    lines += ["/// Byte offsets in exchange memory.", "namespace exchange {"]
    lines += [f"inline constexpr std::uint32_t kBytes = {spec.exchange_bytes};"]
    for reg in spec.registers:
        lines += [f"inline constexpr std::uint32_t {constant(reg.name)} = 0x{reg.offset:04x};  ///< {reg.doc}"]
    lines += ["}  // namespace exchange", "", "}  // namespace unisono", ""]
    return "\n".join(lines)
