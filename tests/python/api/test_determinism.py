"""Results that depend neither on how many elements travel together nor on the memory that they are in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import unisono

ROOT = Path(__file__).resolve().parents[3]
RANKS = 5
EXPLAIN = [sys.executable, "-m", "unisono", "explain", "allreduce", "--ranks", str(RANKS)]

SCRIPT = """
import hashlib, json, sys
import numpy as np
import unisono
with unisono.init() as context:
    world = context.world
    rng = np.random.default_rng(world.rank)
    data = (rng.standard_normal(60000) * 10.0 ** rng.integers(-6, 7, 60000)).astype(np.float32)
    bits = {}
    for count in (1, 7, 100, 600, 5000, 30000, 60000):
        for shared in (False, True):
            mine = context.empty(count, np.float32) if shared else np.empty(count, np.float32)
            mine[:] = data[:count]
            def say(name, result):
                bits.setdefault(name, []).append(result.view(np.uint32)[:min(count, 7)].ravel().tolist())
            to = context.empty(count, np.float32) if shared else np.empty(count, np.float32)
            say("allreduce", world.allreduce(mine, to).copy())
            say("avg", world.allreduce(mine, to, "avg").copy())
            say("scan", world.scan(mine, to).copy())
            world.reduce(mine, to, root=2)
            if world.rank == 2:
                say("reduce", to.copy())
    for count in (1, 100, 3000, 12000):
        blocks = np.ascontiguousarray(data.reshape(world.size, -1)[:, :count])
        bits.setdefault("reduce_scatter", []).append(world.reduce_scatter(blocks).view(np.uint32)[:1].tolist())
    with open(f"{sys.argv[1]}/{world.rank}.json", "w") as file:
        json.dump(bits, file)
"""


def differing(tmp_path: Path, mode: str) -> set[str]:
    """The operations of which some element's bits depend on the call it travels in."""
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", str(RANKS), str(script), str(tmp_path)],
        check=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_DETERMINISM": mode, "UNISONO_TUNING": "off"},
    )
    found = set()
    for path in tmp_path.glob("*.json"):
        for name, calls in json.loads(path.read_text()).items():
            longest = max(calls, key=len)
            found |= {name for bits in calls if bits != longest[: len(bits)]}
    return found


def test_sizes_and_memory_change_no_bits(tmp_path: Path) -> None:
    assert differing(tmp_path, "size_stable") == set()


def test_placement_stable_keeps_that(tmp_path: Path) -> None:
    assert differing(tmp_path, "placement_stable") == set()


def test_the_data_would_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In other modes algorithms change with the size, and so do the bits of these data."""
    monkeypatch.setenv("UNISONO_KERNEL_COPY", "off")
    assert {"allreduce", "reduce", "scan", "reduce_scatter"} <= differing(tmp_path, "run_stable")


@pytest.mark.parametrize("mode", ["", "fast", "run_stable", "size_stable", "placement_stable"])
def test_the_order_can_be_compared(mode: str) -> None:
    def order(length: str) -> dict[str, object]:
        result = subprocess.run(
            [*EXPLAIN, "--bytes", length, "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_DETERMINISM": mode, "UNISONO_TUNING": "off"},
        )
        found: dict[str, object] = json.loads(result.stdout)["order"]
        return found

    small, large = order("64"), order("64K")
    if mode in ("size_stable", "placement_stable"):
        assert small == large
        assert small["orders"] == 1
    else:
        assert small["hash"] != large["hash"]


def test_the_setting_says_the_same() -> None:
    def body(world: unisono.Communicator) -> list[str | None]:
        names = []
        for count in (10, 3000, 60000):
            mine = np.full(count, world.rank + 0.5, np.float32)
            total = world.allreduce(mine)
            assert total[-1] == sum(rank + 0.5 for rank in range(world.size))
            names.append(world.last_algorithm.name)
        return names

    assert unisono.ThreadJob(3, determinism="size_stable").run(body)[0] == ["recursive_doubling"] * 3
    assert len(set(unisono.ThreadJob(3).run(body)[0])) > 1
    with pytest.raises(unisono.InvalidArgumentError, match="allowed are fast, run_stable"):
        unisono.ThreadJob(3, determinism="often")  # type: ignore[arg-type]


def test_a_mode_that_there_is_not(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import unisono; unisono.init()"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_DETERMINISM": "often"},
    )
    assert 'UNISONO_DETERMINISM: determinism is "often"; allowed are fast, run_stable' in result.stderr
