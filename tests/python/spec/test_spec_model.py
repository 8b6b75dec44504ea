"""The model refuses a specification that contradicts itself; the generator says which files are stale."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from spec_support import ROOT

from spec.generator.model import SpecError, load

C = "collectives.yaml"
# file, text to replace (once), replacement, sentence expected
CONTRADICTIONS = {
    "two collectives with one number": (C, "value: 9\n", "value: 8\n", "allreduce and reduce both have value 8"),
    "a number beyond the tables": (C, "value: 22\n", "value: 32\n", "must be a number of 0 to 31"),
    "the program's number": (C, "value: 22\n", "value: 31\n", "reduce_scatterv: number 31 is the program's"),
    "a misspelt key of a collective": (C, "copies_like: all", "copied_like: all", "unknown key copied_like"),
    "a kind that is none": (C, "kind: message", "kind: mail", "send: kind is mail; allowed is collective"),
    "an unknown part": (C, "src: all if root\n", "src: every if root\n", "scatter: src names the part every"),
    "an unknown condition": (C, "src: all if root\n", "src: all if chief\n", "names the condition chief"),
    "no expression": (C, "src: all if root\n", "src: all on root\n", "src is 'all on root'; allowed are PART, PART if"),
    "unless and else": (C, "src: all if root\n", "src: all unless root else n\n", "allowed are PART, PART if"),
    "a root that is no argument": (C, "[buffer, root]", "[buffer]", "bcast: a condition names the root"),
    "arguments in another order": (C, "[src, dst, op, root]", "[src, dst, root, op]", "their order is that under"),
    "an argument twice": (C, "[src, dst, op, root]", "[src, dst, op, op, root]", "their order is that under"),
    "an argument that is none": (C, "[src, dst, op, root]", "[src, dst, op, rot]", "rot is not explained"),
    "an operator that is not taken": (C, "[src, dst, root]", "[src, dst, op, root]", "op is given, but not used"),
    "counts that are missing": (C, "[src, dst, counts]", "[src, dst]", "allgatherv: argument counts is missing"),
    "a count without elements": (
        C,
        "    arguments: []",
        "    count: block\n    arguments: []",
        "barrier: count is given, but no part is n or all",
    ),
    "elements without a count": (
        C,
        "    count: vector\n    dst: n\n    reads: n if root",
        "    dst: n\n    reads: n if root",
        "bcast: count is missing",
    ),
    "blocks of a vector": (
        C,
        "count: block\n    src: all if root",
        "count: vector\n    src: all if root",
        "count is block",
    ),
    "both kinds of counts": (C, "src: own unless in_place", "src: n unless in_place", "allgatherv: count is missing"),
    "what is read where nothing is": (
        C,
        "reads: n if root and in_place",
        "reads: n if in_place",
        "reduce: dst is read or written where it is not used",
    ),
    "the first rank of a rooted one": (C, "reads: n if root\n", "reads: n if first\n", "without a root"),
    "a collective without documentation": (
        C,
        "    text: Dst = src, on this rank, by the engine.\n",
        "",
        "copy has no text",
    ),
    "an unknown measurement": (C, "copies_like: allgather", "copies_like: alltoall", "allowed is bcast, allgather"),
    "an earlier order of other arguments": (
        C,
        "[src, send_counts, dst, recv_counts]",
        "[src, dst, recv_counts]",
        "must be a list of the arguments",
    ),
    "a keyword for a collective": (C, "\n  barrier:\n", "\n  yield:\n", "yield is a keyword of C++ or Python"),
    "an argument without documentation": (C, "    doc: The other rank.\n", "", "argument peer has no doc"),
    "two enumerators with one value": ("enums.yaml", "byte: {value: 1,", "byte: {value: 2,", "both have value 2"),
    "an enumerator beyond its bits": ("enums.yaml", "fp64: {value: 7,", "fp64: {value: 64,", "does not fit 6 bits"),
    "a negative enumerator": ("enums.yaml", "fp64: {value: 7,", "fp64: {value: -1,", "does not fit 6 bits"),
    "an enumeration without zero": ("enums.yaml", "none: {value: 0, bytes", "none: {value: 60, bytes", "no value 0"),
    "an enumerator twice": ("enums.yaml", "    int64: {value: 3,", "    int32: {value: 3,", "int32 appears twice"),
    "an attribute that one lacks": ("enums.yaml", "{value: 7, bytes: 8,", "{value: 7,", "fp64 has no bytes"),
    "an enumerator without value": ("enums.yaml", "sum: {value: 1, doc", "sum: {doc", "sum has no value"),
    "a truth value for a number": ("enums.yaml", "sum: {value: 1,", "sum: {value: true,", "must be of type int"),
    "an unknown type": ("records.yaml", "type: operand_kind", "type: operand_sort", "unknown type operand_sort"),
    "a field too narrow for its type": (
        "records.yaml",
        "{name: kind, bits: 3, type: operand_kind",
        "{name: kind, bits: 2, type: operand_kind",
        "operand.kind: operand_kind needs more than 2 bits",
    ),
    "a wide bool": ("records.yaml", "indirect, bits: 1,", "indirect, bits: 2,", "a bool is one bit wide"),
    "a field across two words": (
        "records.yaml",
        '{name: offset, bits: 48, doc: "byte offset in the region; stream port for streams"}',
        '{name: offset, bits: 60, doc: "byte offset in the region; stream port for streams"}',
        "operand.offset crosses a 64-bit word at bit 11",
    ),
    "a sum of bits that is another": (
        "records.yaml",
        "{name: reserved0, bits: 5}",
        "{name: reserved0, bits: 4}",
        "operand has 63 bits, says 64",
    ),
    "a record of no whole words": (
        "records.yaml",
        "    - {name: log2_max_segment, bits: 5",
        "    - {name: log2_max_segment, bits: 4",
        "capability has 63 bits",
    ),
    "a nested record off the word": (
        "records.yaml",
        '    - {name: reserved1, bits: 12}\n    - {name: op0, record: operand, doc: "first',
        '    - {name: reserved1, bits: 11}\n    - {name: op0, record: operand, doc: "first',
        "move.op0: a record starts at a 64-bit word, not at bit 127",
    ),
    "a record used before it is defined": (
        "records.yaml",
        "record: operand,",
        "record: header,",
        "must be defined before",
    ),
    "a field twice": ("records.yaml", "{name: cast, bits: 2", "{name: kind, bits: 2", "operand.kind appears twice"),
    "a field that is a keyword": ("records.yaml", "{name: swap,", "{name: new,", "new is a keyword"),
    "a field that is no name": ("records.yaml", "{name: swap,", "{name: Swap,", "'Swap' is no name"),
    "a field without doc": ("records.yaml", 'type: cast, doc: "conversion at this slot"}', "type: cast}", "has no doc"),
    "a field with a misspelt key": ("records.yaml", "type: operand_kind,", "typ: operand_kind,", "unknown key typ"),
    "a typed reserved field": (
        "records.yaml",
        "{name: reserved0, bits: 5}",
        "{name: reserved0, bits: 5, type: region}",
        "a reserved field has no type",
    ),
    "a field of no bits": (
        "records.yaml",
        "{name: reserved0, bits: 5}",
        "{name: reserved0, bits: 0}",
        "0 bits; allowed is 1 to 64",
    ),
    "a record named as an enumeration": (
        "records.yaml",
        "capability:\n",
        "datatype:\n",
        "also the name of an enumeration",
    ),
    "overlapping registers": (
        "exchange.yaml",
        "name: version, offset: 0x0004",
        "name: version, offset: 0x0000",
        "version overlaps",
    ),
    "a register grown over the next": ("exchange.yaml", "bytes: 8, access", "bytes: 12, access", "control overlaps"),
    "an unaligned register": ("exchange.yaml", "offset: 0x0050", "offset: 0x0052", "multiples of 4"),
    "a register beyond the memory": (
        "exchange.yaml",
        "offset: 0x3000, bytes: 4096",
        "offset: 0x3000, bytes: 4100",
        "beyond the memory",
    ),
    "an unknown access": ("exchange.yaml", "access: wo", "access: w", "must be ro, rw or wo"),
    "two registers of one name": ("exchange.yaml", "name: error_call", "name: error", "error appears twice"),
    "an error without advice": (
        "errors.yaml",
        ', advice: "Use a live communicator."',
        "",
        "freed_communicator has no advice",
    ),
    "two errors of one code": ("errors.yaml", "timeout: {value: 14", "timeout: {value: 15", "both have value 15"),
    "a limit beyond 64 bits": (
        "limits.yaml",
        "value: 16777216,",
        "value: 18446744073709551616,",
        "does not fit 64 bits",
    ),
    "no YAML": ("limits.yaml", "window: {", "window: [", "limits.yaml"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of `spec/` under an otherwise empty root."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_refused(name: str, copy: Path) -> None:
    file, old, new, sentence = CONTRADICTIONS[name]
    path = copy / "spec" / file
    text = path.read_text(encoding="utf-8")
    assert old in text, "the test no longer fits the specification"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SpecError, match=re.escape(sentence)) as caught:
        load(copy / "spec")
    assert file.removesuffix(".yaml") in str(caught.value)


def _generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spec.generator", *arguments], cwd=root, capture_output=True, text=True, timeout=120
    )


def test_generated_files_are_those_of_the_specification() -> None:
    done = _generate(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_stale_and_missing_files_are_named(copy: Path) -> None:
    of_collectives = {
        "collectives/generated/algorithms.hpp",
        "core/generated/collectives.hpp",
        "driver/include/unisono/generated/collectives.h",
        "driver/include/unisono/generated/collectives.hpp",
        "python/unisono/_collective_calls.py",
    }
    of_handlers = {
        "docs/reference/handler-isa.md",
        "python/unisono/handler/_isa.py",
        "rtl/generated/unisono_handler_isa_pkg.sv",
        "switch/handler/generated/isa.hpp",
    }
    everything = (
        of_collectives
        | of_handlers
        | {
            "core/generated/spec.hpp",
            "docs/reference/errors.md",
            "docs/reference/spec.md",
            "python/unisono/_spec.py",
            "rtl/generated/unisono_spec_pkg.sv",
        }
    )

    def stale() -> set[str]:
        done = _generate(copy, "--check")
        names = set(re.findall(r"^stale: (\S+)", done.stdout, re.MULTILINE))
        assert done.returncode == (1 if names else 0), done.stdout + done.stderr
        return names

    assert stale() == everything
    assert not (copy / "core").exists(), "--check writes nothing"
    assert _generate(copy).returncode == 0
    assert stale() == set()
    for name in everything:
        assert (copy / name).read_bytes() == (ROOT / name).read_bytes(), name
    page = copy / "docs/reference/errors.md"
    page.write_text(page.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    assert stale() == {"docs/reference/errors.md"}
    assert _generate(copy).stdout.split() == ["wrote", "docs/reference/errors.md"]
    limits = copy / "spec/limits.yaml"
    limits.write_text(
        limits.read_text(encoding="utf-8").replace("window: {value: 32", "window: {value: 16"), encoding="utf-8"
    )
    assert stale() == everything - of_collectives - of_handlers - {"docs/reference/errors.md"}


def test_handlers_are_generated_from_their_own_file(copy: Path) -> None:
    assert _generate(copy).returncode == 0
    machine = copy / "spec/handlers.yaml"
    machine.write_text(
        machine.read_text(encoding="utf-8").replace("lanes: {value: 16", "lanes: {value: 8"), encoding="utf-8"
    )
    done = _generate(copy)
    assert sorted(done.stdout.split()[1::2]) == [
        "docs/reference/handler-isa.md",
        "python/unisono/handler/_isa.py",
        "rtl/generated/unisono_handler_isa_pkg.sv",
        "switch/handler/generated/isa.hpp",
    ]


def test_a_contradiction_ends_the_generator_with_a_sentence(copy: Path) -> None:
    limits = copy / "spec/limits.yaml"
    limits.write_text(limits.read_text(encoding="utf-8").replace("value: 32,", "value: -1,"), encoding="utf-8")
    done = _generate(copy)
    assert done.returncode == 1
    assert done.stderr.startswith("limits.yaml: window = -1 does not fit")
    assert "Traceback" not in done.stderr
