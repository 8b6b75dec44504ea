"""The counting of cache lines in tools/instructions.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest
from bench_support import ROOT
from unisono.bench.launch import programs


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = ROOT / "tools" / "instructions.py"
    spec = importlib.util.spec_from_file_location("instructions_tool", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


TRACE = b"""==1== Lackey
I  04000000,3
 S 10000000000,8
I  04000040,3
 L 1fff000700,8
 S 1fff000738,16
 M 1fff000704,4
I  0400007e,4
said by the program
 S 10000000000,8
 L 00005000,8
 S 10000000000,8
 S 10000000000,8
"""


def test_lines_between_markers(tool: ModuleType) -> None:
    # Two lines of data, for one store goes over the end of one; two of code, for the same reason.
    assert tool.touched(TRACE.splitlines(keepends=True)) == [tool.Lines(2, 2), tool.Lines(0, 0)]
    assert tool.touched(TRACE.splitlines(keepends=True)[:-1]) == [tool.Lines(2, 2)]


def test_more_lines_than_on_record(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = {"a: lines of data": 10, "a: lines of code": 100}
    for data, code, more in ((10, 100, 0), (11, 102, 0), (12, 100, 1), (10, 103, 1), (1, 1, 0)):
        result, found = tool.compare_lines({"a": tool.Lines(data, code)}, recorded)
        assert found == more, (data, code)
        assert ("MORE" in capsys.readouterr().out) == bool(more)
        assert result == {"a: lines of data": data, "a: lines of code": code}
    assert tool.compare_lines({"new": tool.Lines(5, 5)}, recorded)[1] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--calls", "300", "--met"], "300 calls that met the other rank's, all right\n"),
        (["--calls", "300", "--alone", "allgather"], "300 calls of one rank, all right\n"),
        (
            ["--marked"],
            "blocking barrier, 1 rank\nblocking all-gather of 4 B, 1 rank\n"
            "blocking all-reduce of 4 B, the other rank has come\nsend and receive of 4 B, both ranks\n",
        ),
    ],
)
def test_overhead_makes_calls_that_wait_for_nobody(options: list[str], said: str) -> None:
    done = subprocess.run([programs() / "bench_overhead", *options], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, said), done.stderr
