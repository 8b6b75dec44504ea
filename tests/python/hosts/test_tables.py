"""Hosts that choose algorithms by different tables: no job is formed, and every rank is told which two differ."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .support import run

SUM = """
import os
if os.environ["UNISONO_HOST"] == "b":
    os.environ.update({theirs})
import numpy as np
import unisono

with unisono.init() as context:
    print(context.world.allreduce(np.ones(3)))
"""
MACHINE = {
    "line": 50, "issue": 8, "segment": 60, "sync": 30, "yield": 700, "reduce": 0.02, "reduce_half": 0.05,
    "copy": [0.02, 0.04, 0.1], "cross": [0.05, 0.08, 0.14], "near_bytes": 1 << 20, "shared_bytes": 1 << 25, "cores": 2,
}  # fmt: skip


def table(path: Path, algorithm: str) -> str:
    rules = [{"collective": "allreduce", "algorithm": algorithm, "max_bytes": 100}]
    path.write_text(json.dumps({"unisono_tuning": 1, "machine": MACHINE, "rules": rules}))
    return str(path)


@pytest.mark.parametrize(
    ("differ", "network"), [("file", "tcp"), ("no file", "tcp"), ("pins", "tcp"), ("file", "udp"), ("file", "ofi")]
)
def test_hosts_with_different_tables_are_refused(tmp_path: Path, differ: str, network: str) -> None:
    ours = {"UNISONO_TUNING": table(tmp_path / "ours.json", "ring")}
    theirs = {
        "file": {"UNISONO_TUNING": table(tmp_path / "theirs.json", "reduce_bcast")},
        "no file": {"UNISONO_TUNING": "off"},
        "pins": {"UNISONO_ALGORITHM": "allreduce=reduce_bcast"},
    }[differ]
    script = tmp_path / "sum.py"
    script.write_text(SUM.format(theirs=theirs))
    options = ("--hosts", "a:2,b:2", "--agent", "local", "--prefix", "--keep-going", "--timeout", 60)
    done = run(*options, "--transport", network, script, **ours)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "", "nobody got a result"
    own = "the built-in table" if differ == "no file" else "table [0-9a-f]{8}"
    for rank in range(4):
        says = [line for line in done.stderr.splitlines() if re.match(rf"{rank}\b|rank {rank}\b|\[{rank}\]", line)]
        text = "\n".join(says) or done.stderr
        # Ranks of the own host are named without it.
        two, zero = (" on host b", "") if rank < 2 else ("", " on host a")
        assert re.search(
            rf"rank 2, endpoint 2 \(pid \d+{two}\), chooses algorithms by {own}, rank 0, endpoint 0 "
            rf"\(pid \d+{zero}\), by table [0-9a-f]{{8}}: set UNISONO_TUNING and UNISONO_ALGORITHM alike",
            text,
        ), done.stderr
    # The same tables at different places are the same.
    same = {"UNISONO_TUNING": table(tmp_path / "copy.json", "ring")}
    script.write_text(SUM.format(theirs=same))
    done = run(*options, "--transport", network, script, **ours)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[4. 4. 4.]") == 4
