"""The generated Python module: round trips, refusals, tables, cleanliness."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_support import ROOT, SPEC, class_of, generated, leaves, pascal, value_at

from spec.generator.model import Record

RECORDS = list(SPEC.records.values())


def values_of(record: Record) -> st.SearchStrategy[Any]:
    """Legal values of a record."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in record.visible_fields:
        if field.record is not None:
            fields[field.name] = values_of(SPEC.records[field.record])
        elif field.type == "bool":
            fields[field.name] = st.booleans()
        elif field.type is not None:
            fields[field.name] = st.sampled_from(list(getattr(generated, pascal(field.type))))
        else:
            fields[field.name] = st.integers(0, (1 << field.bits) - 1)
    return st.builds(class_of(record), **fields)


def reserved_bits(record: Record, base: int = 0) -> list[int]:
    """Bits that must be zero."""
    bits: list[int] = []
    for field in record.fields:
        if field.record is not None:
            bits += reserved_bits(SPEC.records[field.record], base + field.offset)
        elif field.reserved:
            bits += range(base + field.offset, base + field.offset + field.bits)
    return bits


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_legal_value_comes_back(record: Record, data: st.DataObject) -> None:
    value = data.draw(values_of(record))
    encoded = value.encode()
    assert len(encoded) == class_of(record).BYTES == record.bits // 8
    assert class_of(record).decode(encoded) == value


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_arbitrary_bytes_decode_to_what_encodes_to_them_or_are_refused(record: Record, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=record.bits // 8, max_size=record.bits // 8))
    refusal = ""
    try:
        value = class_of(record).decode(raw)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        nested = [field.record for field in record.fields if field.record is not None]
        assert refusal.split(".")[0] in {pascal(name) for name in [record.name, *nested]}
    else:
        assert value.encode() == raw


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_each_field_lies_where_the_layout_says(record: Record) -> None:
    def offsets(r: Record, base: int, prefix: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        found: dict[tuple[str, ...], int] = {}
        for field in r.visible_fields:
            if field.record is not None:
                found |= offsets(SPEC.records[field.record], base + field.offset, (*prefix, field.name))
            else:
                found[(*prefix, field.name)] = base + field.offset
        return found

    where = offsets(record, 0, ())
    for path, field in leaves(record):
        largest = (1 << field.bits) - 1
        if field.type == "bool":
            largest = 1
        elif field.type is not None:
            largest = max(v.value for v in SPEC.enumerations[field.type].values)
        raw = largest << where[path]
        value = class_of(record).decode(raw.to_bytes(record.bits // 8, "little"))
        assert value_at(value, path) == largest
        assert all(value_at(value, other) == 0 for other, _ in leaves(record) if other != path)
        assert int.from_bytes(value.encode(), "little") == raw


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_each_reserved_bit_is_refused(record: Record) -> None:
    for bit in reserved_bits(record):
        with pytest.raises(ValueError, match=r"reserved bits .* must be zero"):
            class_of(record).decode((1 << bit).to_bytes(record.bits // 8, "little"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_wrong_length_is_refused(record: Record) -> None:
    size = record.bits // 8
    for length in (0, size - 1, size + 1):
        with pytest.raises(ValueError, match=f"given {length} bytes; the encoded form has {size}"):
            class_of(record).decode(bytes(length))


def test_values_that_do_not_fit_are_refused_by_name() -> None:
    refused = [
        (
            generated.Move(count=1 << 40),
            r"Move\.count: 1099511627776 does not fit 40 bits; allowed is 0 to 1099511627775",
        ),
        (generated.Move(count=-1), r"Move\.count: -1 does not fit"),
        (generated.Operand(kind=7), r"Operand\.kind: 7 is no OperandKind; allowed is 0 NONE, 1 MEMORY"),
        (generated.Operand(indirect=2), r"Operand\.indirect: 2 is no truth value"),
        (generated.Move(op1=generated.Operand(offset=1 << 48)), r"Operand\.offset"),
        (generated.Header(dtype=60), r"Header\.dtype: 60 is no Datatype"),
    ]
    for value, sentence in refused:
        with pytest.raises(ValueError, match=sentence):
            value.encode()


def test_unknown_enumerators_are_refused_on_decoding() -> None:
    with pytest.raises(ValueError, match=r"Header\.dtype: 255 is no Datatype; allowed is 0 NONE"):
        generated.Header.decode((0xFF << 24).to_bytes(64, "little"))


def test_records_are_frozen_hashable_and_without_a_dictionary() -> None:
    for record in RECORDS:
        value = class_of(record)()
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, record.visible_fields[0].name, 1)
        assert hash(value) == hash(class_of(record)())
        assert not hasattr(value, "__dict__")


def test_enumerations_are_those_of_the_specification() -> None:
    for enumeration in SPEC.enumerations.values():
        kind = getattr(generated, pascal(enumeration.name))
        assert {e.name.lower(): e.value for e in kind} == {v.name: v.value for v in enumeration.values}
    assert [d.bytes for d in generated.Datatype] == [0, 1, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 2, 2, 4, 8, 1, 8, 16, 8, 16]


def test_errors_say_what_they_mean_and_what_to_do() -> None:
    expected = [(v.name, v.value, v.doc, v.attributes["advice"]) for v in SPEC.errors]
    assert [(e.name.lower(), e.value, e.meaning, e.advice) for e in generated.ErrorCode] == expected


def test_limits_and_exchange_memory_are_those_of_the_specification() -> None:
    for limit in SPEC.limits:
        assert getattr(generated, limit.name.upper()) == limit.value
    assert SPEC.exchange_bytes == generated.EXCHANGE_BYTES
    expected = [(r.name, r.offset, r.bytes, r.access, r.doc) for r in SPEC.registers]
    assert [(r.offset.name.lower(), int(r.offset), r.size, r.access, r.doc) for r in generated.REGISTERS] == expected


def test_limits_agree_with_the_records_they_describe() -> None:
    assert generated.HEADER_BYTES == generated.Header.BYTES
    assert generated.MOVE_BYTES == generated.Move.BYTES
    call_slot = next(r for r in SPEC.registers if r.name == "call_slot")
    assert call_slot.bytes == generated.CallDescriptor.BYTES
    capability = next(r for r in SPEC.registers if r.name == "capability")
    assert capability.bytes == generated.Capability.BYTES
    by_name = {f.name: f for f in SPEC.records["arrival"].fields}
    assert (1 << by_name["peer"].bits) == generated.MAX_RANKS
    assert (1 << by_name["tag"].bits) - 1 == generated.MAX_TAG
    assert next(f for f in SPEC.records["move"].fields if f.name == "dependencies").bits == generated.WINDOW


@pytest.mark.parametrize(
    "command",
    [
        ["mypy", "--config-file=", "--strict"],
        ["ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W,I,UP,B,N"],
        ["ruff", "format", "--isolated", "--line-length=120", "--check"],
    ],
    ids=["mypy", "ruff check", "ruff format"],
)
def test_the_module_is_clean(command: list[str], tmp_path: Path) -> None:
    # A copy: beside its package, mypy would judge the whole of it, the compiled extension included.
    copy = tmp_path / "spec_module.py"
    copy.write_bytes((ROOT / "python/unisono/_spec.py").read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", *command, copy.name], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_facts_of_collectives() -> None:
    """As people know them; what is asked of an enumerator is what every other language has been told."""
    reducing = "combine reduce allreduce reduce_scatter reduce_scatterv scan exscan"
    rooted = "send recv put get bcast reduce gather scatter gatherv scatterv program"
    with_counts = "gatherv scatterv allgatherv reduce_scatterv alltoallv"
    for fact, expected in (("reduces", reducing), ("rooted", rooted), ("vectors", with_counts)):
        assert {c.name.lower() for c in generated.Collective if getattr(c, fact)} == set(expected.split()), fact
    assert not generated.Collective.BARRIER.data
    assert generated.Collective.EXSCAN.data
    assert {c.name for c in generated.Collective if not c.is_collective} == {
        "NOP", "COPY", "COMBINE", "SEND", "RECV", "PUT", "GET", "PROGRAM"
    }  # fmt: skip
