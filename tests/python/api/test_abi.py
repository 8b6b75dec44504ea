"""The binary interface is the recorded one, and what compares the two sees every kind of change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import abi  # noqa: E402

TEXT = abi.HEADER.read_text()


def library() -> Path:
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    assert libraries, "no build/*/libunisono.so; run `make build` first"
    return libraries[-1]


def recorded() -> abi.Interface:
    return abi.parse_record(abi.RECORD.read_text())


def changed(before: str, after: str, text: str = TEXT) -> abi.Interface:
    assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times in the header"
    return abi.read_header(text.replace(before, after))


def test_the_header_is_what_was_recorded() -> None:
    assert (why := abi.problem(recorded(), abi.read_header())) is None, why


def test_a_record_says_all_of_an_interface() -> None:
    interface = abi.read_header()
    assert abi.parse_record(interface.text()) == interface
    assert interface.items["field unisono_call.collective"] == "8 4 unisono_collective"
    assert interface.items["enumerator UNISONO_BARRIER"] == "21"
    assert interface.items["type unisono_request"] == "opaque"
    assert interface.items["function unisono_run"] == "unisono_result (unisono_communicator *, const unisono_call *)"


def test_the_library_exports_the_recorded_functions_under_its_major_version() -> None:
    interface = recorded()
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library()],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    node = f"UNISONO_{interface.version.major}"
    expected = {f"{name.removeprefix('function ')}@@{node}" for name in interface.items if name.startswith("function ")}
    assert {line.split()[-1] for line in symbols.splitlines()} - {node} == expected
    dynamic = subprocess.run(
        ["readelf", "-dW", library()], capture_output=True, text=True, timeout=60, check=True
    ).stdout  # fmt: skip
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == [f"libunisono.so.{interface.version.major}"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (  # a function that is gone
            "UNISONO_API unisono_result unisono_wait(unisono_request* request);",
            "",
            "function unisono_wait is gone (it was unisono_result (unisono_request *))",
        ),
        (  # another argument
            "unisono_wait(unisono_request* request)",
            "unisono_wait(unisono_request* request, double seconds)",
            "function unisono_wait was unisono_result (unisono_request *), "
            "and is unisono_result (unisono_request *, double)",
        ),
        (  # another width of an argument
            "unisono_communicator_size(const unisono_communicator* communicator, uint32_t* size)",
            "unisono_communicator_size(const unisono_communicator* communicator, uint64_t* size)",
            "and is unisono_result (const unisono_communicator *, uint64_t *)",
        ),
        ("UNISONO_FP16 = 4", "UNISONO_FP16 = 40", "enumerator UNISONO_FP16 was 4, and is 40"),
        ("typedef int unisono_op;", "typedef long unisono_op;", "type unisono_op was int, and is long"),
        (  # fields that change places
            "  int64_t root; /* root, or peer */\n  int64_t tag;  /* user tag of send and recv */\n",
            "  int64_t tag;\n  int64_t root;\n",
            "field unisono_call.root was 24 8 int64_t, and is 32 8 int64_t",
        ),
        (  # a new field before others
            "  uint32_t segment_bytes;   ",
            "  uint32_t fresh;\n  uint32_t segment_bytes;   ",
            "field unisono_settings.fresh is new (12 4 uint32_t), and not behind the 64 bytes that programs know",
        ),
        (  # a field that moves into what was padding: a program's structure may hold anything there
            "  int determinism; ",
            "  int fresh;\n  int determinism; ",
            "field unisono_settings.determinism was 40 4 int, and is 44 4 int",
        ),
        (  # any new field of a structure that the library fills
            "  int ordered;\n",
            "  int ordered;\n  double fresh;\n",
            "fresh is new (56 8 double), in a structure whose size programs have compiled in",
        ),
    ],
)  # fmt: skip
def test_what_breaks_programs_is_refused_in_the_same_major_version(before: str, after: str, said: str) -> None:
    old, new = abi.read_header(), changed(before, after)
    why = abi.problem(old, new)
    assert why is not None
    assert why.startswith(f"programs compiled for version {old.version} would break; raise UNISONO_ABI_VERSION")
    assert said in why
    # With another major version the record is written anew.
    raised = abi.Interface(abi.Version(old.version.major + 1, 0), new.items)
    assert "run tools/abi" in (abi.problem(old, raised) or "")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "UNISONO_API const char* unisono_version(void);",
            "UNISONO_API const char* unisono_version(void);\nUNISONO_API int unisono_fresh(double);",
            "function unisono_fresh is new (int (double))",
        ),
        (
            "UNISONO_UINT64 = 15,",
            "UNISONO_UINT64 = 15,\n  UNISONO_FRESH = 22,",
            "enumerator UNISONO_FRESH is new (22)",
        ),
        (
            "} unisono_call;\n",
            "  double fresh;\n} unisono_call;\n",
            "field unisono_call.fresh is new",
        ),
    ],
)
def test_what_is_added_needs_to_be_recorded_only(before: str, after: str, said: str) -> None:
    why = abi.problem(abi.read_header(), changed(before, after))
    assert why is not None
    assert "run tools/abi and commit what it writes" in why
    assert said in why


def test_recording_raises_the_minor_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a header and a record of the test's own."""
    header, record = tmp_path / "unisono.h", tmp_path / "abi.txt"
    header.write_text(TEXT)
    shutil.copytree(abi.HEADER.parent / "generated", tmp_path / "generated")
    monkeypatch.setattr(abi, "ROOT", tmp_path)
    monkeypatch.setattr(abi, "HEADER", header)
    monkeypatch.setattr(abi, "RECORD", record)
    assert abi.main([]) == 0
    first = abi.parse_record(record.read_text())

    header.write_text(TEXT.replace("UNISONO_UINT64 = 15,", "UNISONO_UINT64 = 15,\n  UNISONO_FRESH = 22,"))
    assert abi.main(["--check"]) == 1
    assert abi.main([]) == 0
    second = abi.parse_record(record.read_text())
    assert second.version == abi.Version(first.version.major, first.version.minor + 1)
    assert f"#define UNISONO_ABI_MINOR {second.version.minor}\n" in header.read_text()
    assert abi.main(["--check"]) == 0

    # The addition goes again: programs that were compiled with it would break, and nothing is written.
    header.write_text(TEXT)
    assert abi.main([]) == 1
    assert abi.parse_record(record.read_text()) == second
    # In a new major version it may, and minor versions begin anew.
    major = first.version.major
    header.write_text(
        header.read_text()
        .replace(f"#define UNISONO_ABI_VERSION {major}", f"#define UNISONO_ABI_VERSION {major + 1}")
    )  # fmt: skip
    assert abi.main([]) == 0
    assert abi.parse_record(record.read_text()).version == abi.Version(major + 1, 0)
