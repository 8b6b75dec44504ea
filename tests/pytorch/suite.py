"""torch's own distributed tests, as its wheel ships them, on one backend: run as a program, prints a line of JSON each.

    UNISONO_SUITE_BACKEND=unisono UNISONO_SUITE_AS=gloo python suite.py [--only PATTERN] [--json FILE]

torch's tests ask which backend they run on, and skip what that cannot do. UNISONO_SUITE_AS is what they are told:
"gloo" and "mpi" bring tests that torch keeps for these backends. Variables say it, for torch asks as it is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import io
import json
import os
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

BACKEND = os.environ.get("UNISONO_SUITE_BACKEND", "unisono")
os.environ.setdefault("BACKEND", os.environ.get("UNISONO_SUITE_AS", BACKEND))
os.environ.setdefault("WORLD_SIZE", "4")
os.environ.setdefault("TEMP_DIR", tempfile.gettempdir())
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The first line of a test that hangs is of more use than no line at all.
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "60")

import torch  # noqa: E402

if BACKEND == "unisono":
    import unisono.torch  # noqa: F401

from torch.testing._internal import common_utils  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

TOLD = os.environ["BACKEND"]


def asked_for(made: Callable[..., object]) -> Callable[..., object]:
    """`init_process_group` or `new_group`, of the backend under test where the one that tests were told is meant."""

    @functools.wraps(made)
    def make(*args: object, **options: object) -> object:
        if options.get("backend") == TOLD:
            options["backend"] = BACKEND
        return made(*args, **options)

    return make


if TOLD != BACKEND:
    for each in ("init_process_group", "new_group"):
        setattr(torch.distributed, each, asked_for(getattr(torch.distributed, each)))


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Each test in processes of its own."""

    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)  # which need not import torch anew


class Lines(unittest.TestResult):
    """One line for each test, as soon as it has ended."""

    def __init__(self, file: io.TextIOBase | None) -> None:
        super().__init__()
        self._file = file
        self._begun = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  (unittest's name)
        super().startTest(test)
        self._begun = time.monotonic()

    def _say(self, test: unittest.TestCase, outcome: str, reason: str = "") -> None:
        line = json.dumps({
            "test": test.id().rpartition(".")[2], "backend": BACKEND, "as": TOLD,
            "outcome": outcome, "reason": reason, "seconds": round(time.monotonic() - self._begun, 1),
        })  # fmt: skip
        print(line, flush=True)
        if self._file is not None:
            print(line, file=self._file, flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._say(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._say(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._say(test, "failed", self._exc_info_to_string(err, test)[-3000:])  # type: ignore[attr-defined]

    addError = addFailure  # noqa: N815


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    names = list(unittest.defaultTestLoader.getTestCaseNames(Suite))
    names = [name for name in names if any(fnmatch.fnmatch(name, each) for each in given.only.split(","))]
    if given.list:
        print("\n".join(names))
        return 0
    Path(os.environ["TEMP_DIR"]).mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(given.json.open("a")) if given.json else None
        unittest.TestSuite(Suite(name) for name in names).run(Lines(file))
    return 0


if __name__ == "__main__":
    common_utils.TEST_WITH_TSAN = False
    sys.exit(main())
