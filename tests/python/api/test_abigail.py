"""libabigail's opinion of changes of the header, beside that of tools/abi: what it sees in compiled code is refused."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clang import cindex

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import abi  # noqa: E402

TEXT = abi.HEADER.read_text()
SAME, CHANGED = 0, 4  # bits of abidiff's status; 1 and 2 are errors of its own, 8 is set with 4 or not


def library(text: str, folder: Path) -> Path:
    """A library with the functions that a header of this text declares, and what a debugger knows of their types."""
    folder.mkdir()
    (folder / "unisono.h").write_text(text)
    shutil.copytree(abi.HEADER.parent / "generated", folder / "generated")
    lines = ['#include "unisono.h"']
    for cursor in abi.parse_header(text).get_children():
        if cursor.kind == cindex.CursorKind.FUNCTION_DECL and cursor.spelling.startswith("unisono_"):
            types = [f"__typeof__({argument.type.spelling}) a{n}" for n, argument in enumerate(cursor.get_arguments())]
            result = f"__typeof__({cursor.result_type.spelling})"
            lines.append(f"{result} {cursor.spelling}({', '.join(types) or 'void'}) {{ __builtin_trap(); }}")
    (folder / "functions.c").write_text("\n".join(lines) + "\n")
    subprocess.run(
        ["cc", "-std=gnu11", "-g", "-fno-eliminate-unused-debug-types", "-fPIC", "-shared",
         "functions.c", "-o", "it.so"],
        cwd=folder, timeout=60, check=True,
    )  # fmt: skip
    return folder / "it.so"


def abidiff(old: Path, new: Path) -> int:
    done = subprocess.run(["abidiff", "--non-reachable-types", old, new], capture_output=True, text=True, timeout=60)
    assert done.returncode & 3 == 0, done.stdout + done.stderr
    return done.returncode & ~8


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(TEXT, tmp_path_factory.mktemp("abi") / "today")


def changes() -> Iterator[tuple[str, str]]:
    """Headers of which each breaks programs, and what was changed in them."""
    for found in re.finditer(r"^UNISONO_API [^;]+\((.*?)\);", TEXT, re.M | re.S):
        yield TEXT.replace(found[0], ""), f"without {found[0]}"
        more = "double more" if found[1] == "void" else f"{found[1]}, double more"
        yield TEXT.replace(found[0], found[0].replace(f"({found[1]});", f"({more});")), f"{found[0]}: one argument more"
    for found in re.finditer(r"^  (UNISONO_[A-Z0-9_]+) = (\d+),?.*$", TEXT, re.M):
        yield TEXT.replace(found[0], found[0].replace(f"= {found[2]}", "= 4711"), 1), f"{found[1]} is 4711"
    for struct in re.finditer(r"^typedef struct (\w+) \{\n(.*?)^\}", TEXT, re.M | re.S):
        for field in re.finditer(r"^  (u?int\d+_t|size_t|int|double) (\w+)(;.*)$", struct[2], re.M):
            other = "float" if field[1] in ("double", "int64_t", "uint64_t", "size_t") else "long double"
            body = struct[2].replace(field[0], f"  {other} {field[2]}{field[3]}")
            yield TEXT.replace(struct[2], body), f"{struct[1]}.{field[2]} is {other}"


def test_what_it_sees_is_refused_and_what_is_refused_it_sees(today: Path, tmp_path: Path) -> None:
    """Twenty changes, drawn: all of them would take a minute."""
    known = list(changes())
    assert len(known) > 150
    old = abi.read_header()
    for number, (text, what) in enumerate(random.Random(14).sample(known, 20)):
        why = abi.problem(old, abi.read_header(text))
        assert why is not None, f"tools/abi takes it: {what}"
        assert why.startswith("programs compiled for version"), what
        assert abidiff(today, library(text, tmp_path / str(number))) == CHANGED, what


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "UNISONO_API const char* unisono_version(void);",
            "UNISONO_API const char * unisono_version(void); /* said */",
        ),
        ("unisono_wait(unisono_request* request)", "unisono_wait(unisono_request* of_this)"),
    ],
    ids=["words", "the name of an argument"],
)
def test_what_it_does_not_see_is_no_change(today: Path, tmp_path: Path, before: str, after: str) -> None:
    assert TEXT.count(before) == 1
    text = TEXT.replace(before, after)
    assert abidiff(today, library(text, tmp_path / "new")) == SAME
    assert abi.problem(abi.read_header(), abi.read_header(text)) is None
