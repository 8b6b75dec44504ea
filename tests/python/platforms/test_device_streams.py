"""Calls with stream ports on devices: the host is their kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import numpy as np
import unisono
from unisono import Stream

with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    n = 3000
    mine = [(np.arange(n) % 89 * (r + 1)).astype("f4") for r in range(size)]
    # From ports into a buffer, and from a buffer into a port.
    request = world.reduce_async(Stream(0, n, "f4"), np.zeros(n, "f4") if rank == 1 else None, root=1,
                                 algorithm="chain")
    context.stream(0).write(mine[rank])
    total = request.wait()
    if rank == 1:
        np.testing.assert_array_equal(total, sum(mine))
    if rank == 0:
        request = world.bcast_async(Stream(1, n, "f4"), root=0, algorithm="chain")
        context.stream(1).write(mine[0])
    else:
        request = world.bcast_async(Stream(0, n, "f4"), root=0, algorithm="chain")
        np.testing.assert_array_equal(context.stream(0).take(n, "f4"), mine[0])
    request.wait()
    # Around a ring, on one rank with a buffer.
    right, left = (rank + 1) % size, (rank - 1) % size
    if rank == 0:
        request = world.send_async(mine[0], right)
    else:
        request = world.send_async(Stream(1, n, "f4"), right)
        context.stream(1).write(mine[rank])
    got = world.recv_async(Stream(0, n, "f4"), left)
    np.testing.assert_array_equal(context.stream(0).take(n, "f4"), mine[left])
    request.wait()
    got.wait()
    print(f"rank {rank} is right\\n", end="")
"""

REFUSED = """    if simulated:  # before anything is sent, so the communicator goes on
        try:
            world.allreduce(Stream(0, 64, "f4"), np.zeros(64, "f4"), algorithm="ring")
            raise SystemExit("it was carried out")
        except unisono.UnsupportedError as error:
            assert "stream port 0 is its src, and the algorithm ring" in str(error), error
        world.barrier()
    world.stream_put(mine[rank][:100], right, 1)
    np.testing.assert_array_equal(context.stream(1).take(100, "f4"), mine[left][:100])
    world.barrier()
    to_the_right = unisono.Program.build(size, lambda p: p.move(p.src(0, 8), send=p.stream(0, 8).at(right)))
    try:
        world.run_program(to_the_right, mine[rank], None)
        raise SystemExit("it was carried out")
    except unisono.UnsupportedError as error:
        assert "send a message, and let a move of the peer keep it in the port" in str(error), error
    try:
        world.copy(Stream(0, 10, "f4"), np.zeros(10, "f4"), timeout=0.001)
        raise SystemExit("it has ended")
    except unisono.DeadlineError:
        pass
"""


simulated = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set (make test-rtl)"
)


@pytest.mark.parametrize(
    "platform",
    [
        "native",
        "functional",
        pytest.param("rtl", marks=simulated),
        pytest.param("rtl --native 1", marks=simulated),
        pytest.param("rtl --native 0,2", marks=simulated),
    ],
)
def test_the_host_is_the_kernel(tmp_path: Path, platform: str) -> None:
    script = tmp_path / "program.py"
    end = PROGRAM.index("    print(")
    refused = REFUSED if platform in ("functional", "rtl") else ""
    refused = refused.replace("simulated", str(platform == "rtl"))
    script.write_text(PROGRAM[:end] + refused + PROGRAM[end:])
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "3", "--platform", *platform.split(), script],
        capture_output=True, text=True, timeout=100, env=around | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(3)]
