"""Python, C++ and SystemVerilog read and write the same bits.

Random values of every record are encoded in Python. A C++ program and a SystemVerilog testbench, both written here
from the list of fields alone and compiled against the generated header and package, take them apart, print every
field, and put them together again field by field. All three must agree: on every field, on the words, and on
whether the words are a legal value, for legal values and for values with flipped bits.
"""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from spec_support import ROOT, SPEC, class_of, leaves, pascal, random_record, value_at

from spec.generator.model import Record
from spec.generator.systemverilog import has_enum_type, member

RECORDS = list(SPEC.records.values())
LEGAL = 250
FLIPPED = 150
BUILD_TIMEOUT_S = 300
RUN_TIMEOUT_S = 60
WIDEST = max(record.bits for record in RECORDS)


@dataclass(frozen=True)
class Reading:
    """What a language makes of one value: whether it is legal, its words put together again, its fields."""

    legal: bool
    words: int
    fields: tuple[int, ...]


@dataclass(frozen=True)
class Simulation:
    """What SystemVerilog makes of every value, and the constants of the package."""

    readings: list[Reading]
    constants: dict[str, int]


@dataclass(frozen=True)
class Sample:
    """One value: number of its record, and its bits."""

    record: int
    raw: int


def _run(command: list[str], folder: Path, timeout_s: int) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def _samples() -> list[Sample]:
    source = random.Random(20240607)
    samples: list[Sample] = []
    for number, record in enumerate(RECORDS):
        for _ in range(LEGAL):
            samples.append(Sample(number, int.from_bytes(random_record(source, record).encode(), "little")))
        for _ in range(FLIPPED):
            raw = int.from_bytes(random_record(source, record).encode(), "little")
            for _ in range(source.randrange(1, 4)):
                raw ^= 1 << source.randrange(record.bits)
            samples.append(Sample(number, raw))
    source.shuffle(samples)
    return samples


def _parse(text: str) -> list[Reading]:
    readings: list[Reading] = []
    for line in text.splitlines():
        if line.startswith("= "):
            legal, words, *fields = line[2:].split()
            readings.append(Reading(legal == "1", int(words, 16), tuple(int(f, 16) for f in fields)))
    return readings


def _cpp_program() -> str:
    lines = ["#include <cstdint>", "#include <cstdio>", "#include <cstdlib>", "#include <cstring>"]
    lines += ['#include "core/generated/spec.hpp"', "using namespace unisono;"]
    lines += ["int main() {", "  unsigned number; char digits[300];"]
    lines += ['  while (std::scanf("%u %299s", &number, digits) == 2) {', "    switch (number) {"]
    for number, record in enumerate(RECORDS):
        name = pascal(record.name)
        lines += [f"      case {number}: {{", f"        std::array<std::uint64_t, {record.words}> words{{}};"]
        # Digits are most significant first, 16 to a word.
        lines += [f"        for (int w = 0; w < {record.words}; ++w) {{"]
        lines += [
            "          char part[17] = {};",
            f"          std::memcpy(part, digits + 16 * ({record.words} - 1 - w), 16);",
        ]
        lines += ["          words[w] = std::strtoull(part, nullptr, 16);", "        }"]
        lines += [f"        const {name} value = decode_{record.name}(words);", f"        {name} again{{}};"]
        paths = [".".join(path) for path, _ in leaves(record)]
        lines += [f"        again.{path} = value.{path};" for path in paths]
        lines += [
            f'        std::printf("= %d ", well_formed_{record.name}(words));',
            "        const auto back = encode(again);",
        ]
        lines += [
            f'        for (int w = {record.words}; w-- > 0;) std::printf("%016llx", (unsigned long long)back[w]);'
        ]
        lines += [f'        std::printf(" %llx", (unsigned long long)value.{path});' for path in paths]
        lines += ['        std::printf("\\n");', "        break;", "      }"]
    return "\n".join([*lines, "      default: return 2;", "    }", "  }", "}", ""])


def _constants() -> list[str]:
    """Every constant of the package, and the width of every record, as expressions."""
    names = [pascal(e.name) + pascal(v.name) for e in SPEC.enumerations.values() for v in e.values]
    names += [f"ErrorCode{pascal(v.name)}" for v in SPEC.errors] + [pascal(v.name) for v in SPEC.limits]
    names += [f"Exchange{pascal(r.name)}{part}" for r in SPEC.registers for part in ("Offset", "Bytes")]
    names += [f"$bits({r.name}_t)" for r in RECORDS] + [f"{pascal(r.name)}Width" for r in RECORDS]
    return names + [f"datatype_bytes(Datatype{pascal(v.name)})" for v in SPEC.enumerations["datatype"].values]


def _testbench() -> str:
    lines = ["module tb;", "  import unisono_spec_pkg::*;", "  int fd, code, number;", "  string path;"]
    lines += [f"  logic [{WIDEST - 1}:0] raw;"]
    lines += [f"  {r.name}_t v{n}, w{n};" for n, r in enumerate(RECORDS)]
    lines += ["  initial begin", '    if (!$value$plusargs("vectors=%s", path)) $fatal(1, "no +vectors");']
    lines += [f'    $display("# {name} %0d", {name});' for name in _constants()]
    lines += ['    fd = $fopen(path, "r");', '    if (fd == 0) $fatal(1, "cannot open the vectors");']
    lines += ['    code = $fscanf(fd, "%d %h", number, raw);', "    while (code == 2) begin", "      case (number)"]
    for number, record in enumerate(RECORDS):
        value, again = f"v{number}", f"w{number}"
        lines += [f"        {number}: begin", f"          {value} = {record.name}_t'(raw[{record.bits - 1}:0]);"]
        lines += [f"          {again} = '0;"]
        paths = [".".join(member(name) for name in path) for path, _ in leaves(record)]
        lines += [f"          {again}.{path} = {value}.{path};" for path in paths]
        lines += [f'          $write("= %b %h", {record.name}_well_formed({value}), {again});']
        lines += [f'          $write(" %h", {value}.{path});' for path in paths]
        lines += ['          $write("\\n");', "        end"]
    lines += ['        default: $fatal(1, "unknown record");', "      endcase"]
    lines += ['      code = $fscanf(fd, "%d %h", number, raw);', "    end", "    $finish;", "  end", "endmodule", ""]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Sample], Path]:
    """The values, and the file from which the other languages read them."""
    values = _samples()
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    lines = [f"{s.record} {s.raw:0{RECORDS[s.record].bits // 4}x}\n" for s in values]
    path.write_text("".join(lines), encoding="utf-8")
    return values, path


@pytest.fixture(scope="module")
def cpp(samples: tuple[list[Sample], Path], tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    """What C++ makes of the values."""
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "main.cpp").write_text(_cpp_program(), encoding="utf-8")
    _run(["g++", "-std=c++20", f"-I{ROOT}", "main.cpp", "-o", "main"], folder, BUILD_TIMEOUT_S)
    with samples[1].open(encoding="utf-8") as vectors:
        done = subprocess.run(
            [folder / "main"], stdin=vectors, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=True
        )
    return _parse(done.stdout)


@pytest.fixture(scope="module")
def systemverilog(samples: tuple[list[Sample], Path], tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    """What SystemVerilog makes of the values."""
    folder = tmp_path_factory.mktemp("sv")
    (folder / "tb.sv").write_text(_testbench(), encoding="utf-8")
    package = str(ROOT / "rtl/generated/unisono_spec_pkg.sv")
    command = ["verilator", "--binary", "-O0", "-CFLAGS", "-O0", "-sv", "--top-module", "tb", package, "tb.sv"]
    _run(command, folder, BUILD_TIMEOUT_S)
    text = _run(["obj_dir/Vtb", f"+vectors={samples[1]}"], folder, RUN_TIMEOUT_S)
    constants = dict(line[2:].rsplit(maxsplit=1) for line in text.splitlines() if line.startswith("# "))
    return Simulation(_parse(text), {name: int(number) for name, number in constants.items()})


def _python(sample: Sample) -> Reading | None:
    """What Python makes of a value; None if it refuses it."""
    record = RECORDS[sample.record]
    try:
        value = class_of(record).decode(sample.raw.to_bytes(record.bits // 8, "little"))
    except ValueError:
        return None
    words = int.from_bytes(value.encode(), "little")
    return Reading(True, words, tuple(value_at(value, path) for path, _ in leaves(record)))


def _compare(values: list[Sample], readings: list[Reading], language: str) -> None:
    assert len(readings) == len(values), f"{language} did not read every value"
    for sample, reading in zip(values, readings, strict=True):
        record = RECORDS[sample.record]
        expected = _python(sample)
        where = f"{language}, {record.name} {sample.raw:#x}"
        assert reading.legal == (expected is not None), where
        if expected is not None:
            names = [".".join(path) for path, _ in leaves(record)]
            assert dict(zip(names, reading.fields, strict=True)) == dict(zip(names, expected.fields, strict=True)), (
                where
            )
            assert reading.words == expected.words == sample.raw, where


def test_the_values_reach_every_record_and_both_verdicts(samples: tuple[list[Sample], Path]) -> None:
    for number, record in enumerate(RECORDS):
        verdicts = [_python(s) is not None for s in samples[0] if s.record == number]
        assert sum(verdicts) >= LEGAL
        has_rules = any(f.reserved or f.record is not None or f.type not in (None, "bool") for f in record.fields)
        assert (sum(verdicts) < len(verdicts)) == has_rules, record.name


def test_cpp_agrees_with_python(samples: tuple[list[Sample], Path], cpp: list[Reading]) -> None:
    _compare(samples[0], cpp, "C++")


def test_systemverilog_agrees_with_python(samples: tuple[list[Sample], Path], systemverilog: Simulation) -> None:
    _compare(samples[0], systemverilog.readings, "SystemVerilog")


def test_cpp_and_systemverilog_agree_on_illegal_values_too(
    samples: tuple[list[Sample], Path], cpp: list[Reading], systemverilog: Simulation
) -> None:
    for sample, one, other in zip(samples[0], cpp, systemverilog.readings, strict=True):
        assert one == other, f"{RECORDS[sample.record].name} {sample.raw:#x}"


def test_the_package_lints_without_a_warning() -> None:
    package = "rtl/generated/unisono_spec_pkg.sv"
    done = subprocess.run(
        ["verilator", "--lint-only", "-Wall", "-sv", package],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_constants_of_the_package_are_those_of_the_specification(systemverilog: Simulation) -> None:
    expected: dict[str, int] = {}
    for enumeration in SPEC.enumerations.values():
        expected |= {pascal(enumeration.name) + pascal(v.name): v.value for v in enumeration.values}
    expected |= {f"ErrorCode{pascal(v.name)}": v.value for v in SPEC.errors}
    expected |= {pascal(v.name): v.value for v in SPEC.limits}
    for register in SPEC.registers:
        expected[f"Exchange{pascal(register.name)}Offset"] = register.offset
        expected[f"Exchange{pascal(register.name)}Bytes"] = register.bytes
    for record in RECORDS:
        expected |= {f"$bits({record.name}_t)": record.bits, f"{pascal(record.name)}Width": record.bits}
    for value in SPEC.enumerations["datatype"].values:
        expected[f"datatype_bytes(Datatype{pascal(value.name)})"] = value.attributes["bytes"]
    assert systemverilog.constants == expected


def test_fields_as_wide_as_their_enumeration_have_its_type() -> None:
    def typed(record: Record) -> set[str]:
        return {f.name for f in record.fields if has_enum_type(f, SPEC)}

    assert {"kind", "cast", "region"} == typed(SPEC.records["operand"])
    assert "dtype" in typed(SPEC.records["move"])
    assert "dtype" not in typed(SPEC.records["header"])
