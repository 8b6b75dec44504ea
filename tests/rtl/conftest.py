"""What all tests of the hardware share: their path, their width, and how several processes divide them.

`quick`, the usual width, simulates each module with the parameters the engine gives it and those most unlike them;
`full` (UNISONO_TEST_MODULES=full) with all. Tests marked `full` run only there.

UNISONO_TEST_CLAIMS names a folder in which several pytest processes claim tests, one at a time, so that they finish
together; UNISONO_TEST_TIMES a file that gets a line of JSON for each test (see tools/rtl/test). With UNISONO_DRAW=1 a
part of each area's files is drawn, unless the commit touches the hardware and is not large (tools/draw.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

import draw  # noqa: E402  (found through the path above)
import verilated  # noqa: E402
from hdl import is_full  # noqa: E402

LONGEST = ("cpu/test_programs.py", "plugin/test_exact.py")
"""What takes longest, first: else it would begin when the others end."""

SHARE = 0.4
"""Of each area's files, this part runs for a commit that does not touch the hardware, or is large."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: runs in the full width only")
    config.addinivalue_line("markers", "together: one process runs all such tests of a file")


def _function(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0]


def _quick(items: list[pytest.Item]) -> set[str]:
    """Names of the tests that run in the quick width."""
    left = [item for item in items if not item.get_closest_marker("full")]
    # Sets of parameters are left out, never all of a test's: each module is simulated in every width.
    lost = {_function(item) for item in items if "[" in item.name} - {_function(item) for item in left}
    if lost:
        raise pytest.UsageError(f"nothing is left in the quick width of {', '.join(sorted(lost))}")
    return {item.nodeid for item in left}


def _drawn(names: set[str]) -> set[str]:
    """Of these tests: of each area files that are drawn, or cases where it is one file; and those that always run.
    Of what touches the hardware all, if it touches little else: a large commit touches nearly everything.
    """
    drawing = draw.of_this_commit()
    if drawing.whole("rtl") and drawing.of_touched(SHARE) == 1:
        return names
    areas: dict[str, dict[str, set[str]]] = {}
    for name in names:
        file = name.split("::")[0]
        area = file.removeprefix("tests/rtl/").split("/")[0]
        areas.setdefault(area, {}).setdefault(file, set()).add(name)
    run = names & drawing.always
    for files in areas.values():
        if len(files) == 1:
            run |= drawing.part(*files.values(), SHARE)
        else:
            run |= set().union(*(files[file] for file in drawing.part(files, SHARE)))
    return run


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_full() or any("::" in argument for argument in config.args):
        return  # what is named on the command line runs
    names = _quick(items)
    if draw.enabled():
        names = _drawn(names)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def _place(item: pytest.Item) -> str:
    """The test's file, from this folder."""
    return os.path.relpath(item.path, HERE)


def _claimed(session: pytest.Session, folder: Path) -> Iterator[pytest.Item]:
    """The tests that fall to this process."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        groups.setdefault(_place(item) if item.get_closest_marker("together") else item.nodeid, []).append(item)
    rank = {name: number for number, name in enumerate(LONGEST)}
    for key, group in sorted(groups.items(), key=lambda pair: rank.get(_place(pair[1][0]), len(rank))):
        try:
            (folder / hashlib.sha256(key.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from group


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    folder = os.environ.get("UNISONO_TEST_CLAIMS")
    if not folder or session.testsfailed or session.config.option.collectonly:
        return None
    claimed = _claimed(session, Path(folder))
    item = next(claimed, None)
    while item is not None:
        # What the next one shares with this one is not torn down between them, so it must be known now.
        following = next(claimed, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldstop or session.shouldfail:
            raise session.Interrupted(session.shouldstop or session.shouldfail)
        item = following
    return True


def _processor_seconds() -> float:
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in use)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    begin, processor = time.monotonic(), _processor_seconds()
    verilated.spent.clear()
    outcomes: list[str] = []
    item.stash[_OUTCOMES] = outcomes
    result = yield
    if target := os.environ.get("UNISONO_TEST_TIMES"):
        bad = [outcome for outcome in outcomes if outcome != "passed"]
        line = {
            "test": f"{_place(item)}::{item.name}",
            "outcome": bad[0] if bad else "passed",
            "seconds": round(time.monotonic() - begin, 2),
            "processor_seconds": round(_processor_seconds() - processor, 2),
            "of_these": {what: round(seconds, 2) for what, seconds in verilated.spent.items()},
        }
        with Path(target).open("a") as handle:
            handle.write(json.dumps(line) + "\n")
    return result


_OUTCOMES = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report = yield
    item.stash[_OUTCOMES].append(report.outcome)
    return report
