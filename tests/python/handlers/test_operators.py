"""Operators of reductions in C, on ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts.support import run
from unisono import handler

from . import operator_sources
from .support import EXAMPLES, needs_clang

pytestmark = needs_clang


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return operator_sources.write(tmp_path_factory.mktemp("operators"))


def test_all_reductions_have_the_bits_of_the_fold_in_order(folder: Path) -> None:
    done = run("-n", 4, folder / "reductions.py", folder)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_what_differs_or_is_none_is_refused_on_all_ranks(folder: Path) -> None:
    done = run("-n", 4, folder / "errors.py", folder)
    assert (done.returncode, done.stdout) == (0, "right\n" * 4), done.stderr


def test_the_example_is_an_operator() -> None:
    made = handler.compile(EXAMPLES / "larger.c")
    assert made.functions == ["payload"]
    assert len(made.binary) < 1000


def test_elements_that_are_too_large_are_refused_by_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "large.c"
    source.write_text("#include <unisono_operator.h>\nstruct large { uint8_t bytes[65]; };\n"
                      "US_OPERATOR(struct large, a, b) { return a; }\n")  # fmt: skip
    with pytest.raises(handler.HandlerError, match=r"large\.c:3:.*an operator's elements have 1 to 64 bytes"):
        handler.compile(source)
