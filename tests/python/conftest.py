"""What all tests need of the process that runs them, and which of them run for a commit."""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import draw  # noqa: E402  (found through the path above)

SHARE = 0.2
"""Of each module that the commit does not touch, this part of the cases runs, and one at least."""

MOST = 500
"""So many cases run for a commit, whatever it touches and however many there are: six minutes on two cores."""

DRAWN = pytest.StashKey[str]()


def pytest_configure() -> None:
    """Ranks take over what is done with SIGINT, and shells have it ignored by what they start in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Which algorithm runs on ordinary buffers depends on the machine; what tests say of it must not.
    os.environ.setdefault("UNISONO_KERNEL_COPY", "off")


def chosen(drawing: draw.Draw, names: list[str], share: float = SHARE) -> set[str]:
    """Of these tests, named by path and case, those that run: about MOST at most."""
    whole = tuple(f"tests/python/{place}" for place in drawing.whole("python"))
    modules: dict[str, list[str]] = defaultdict(list)
    for name in names:
        modules[name.split("::")[0]].append(name)
    run: set[str] = set()
    slow = tuple(f"tests/python/{place}" for place in drawing.table.get("slow", {}).get("python", []))
    for module, cases in modules.items():
        touched = (module in drawing.touched or module.startswith(whole)) and not module.startswith(slow)
        run |= drawing.part(cases, drawing.of_touched(share) if touched else share)
    return drawing.part(run, min(1, MOST / max(1, len(run))))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not draw.enabled() or any("::" in argument for argument in config.args):
        return  # what is named on the command line runs
    drawing = draw.of_this_commit()
    names = chosen(drawing, [item.nodeid for item in items])
    config.stash[DRAWN] = (
        f"drawn: {len(names)} of {len(items)} tests ({drawing}); "
        f"the same again: UNISONO_SEED={drawing.seed} make test; everything: make test-all"
    )
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if DRAWN in config.stash:
        terminalreporter.write_line(config.stash[DRAWN])
