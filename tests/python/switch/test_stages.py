"""What is done before and after a fold: means are divided, compressed calls narrowed. Switches carry both."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from hosts.support import start

from .support import SECONDS, local, make_secret, run, switch

#: How a program counts what the switch carries: `count(call)` makes the call between two barriers.
COUNTING = """
import json
import sys
import numpy as np
import unisono
from unisono import _core

def results(world):
    secret = _core.switch_secret(sys.argv[2])
    (pool,) = json.loads(_core.switch_ask(sys.argv[1], secret, "show", b"0", 5))["pools"]
    return pool["counters"]["results"]

with unisono.init(timeout=15) as context:
    world = context.world
    rank, size = world.rank, world.size

    def count(call):
        before = results(world) if rank == 0 else 0
        world.barrier()
        got = call()
        world.barrier()
        assert rank != 0 or results(world) >= before + 3, "the switch has two barriers, and the call"
        world.barrier()
        return got
"""

CARRIED = (
    COUNTING
    + """
    for dtype in ("f4", "f8", "f2", "c8"):
        parts = [(10 * np.random.default_rng(of).standard_normal(3 * 70)).astype(dtype) for of in range(size)]
        total = parts[0].astype("f4" if dtype == "f2" else dtype)
        for part in parts[1:]:
            total = total + part
        whole = total.astype(dtype)
        if dtype == "c8":
            whole = (whole.view("f4") / np.float32(size)).view("c8")
        else:
            whole = (whole.astype(total.dtype) / total.dtype.type(size)).astype(dtype)
        got = count(lambda: world.allreduce(parts[rank], op="avg"))
        assert got.tobytes() == whole.tobytes(), dtype
        got = count(lambda: world.reduce(parts[rank], root=1, op="avg"))
        assert rank != 1 or got.tobytes() == whole.tobytes(), dtype
        got = count(lambda: world.reduce_scatter(parts[rank], op="avg"))
        assert got.tobytes() == whole[70 * rank : 70 * (rank + 1)].tobytes(), dtype
        in_place = parts[rank].copy()
        count(lambda: world.allreduce(unisono.IN_PLACE, in_place, op="avg"))
        assert in_place.tobytes() == whole.tobytes(), dtype
        dst = np.empty_like(parts[rank])
        world.allreduce_async(parts[rank], dst, op="avg").wait()
        assert dst.tobytes() == whole.tobytes(), dtype
        world.barrier()
    mine = (10 * np.random.default_rng(rank).standard_normal(500)).astype("f4")
    for op in ("sum", "avg", "max"):
        narrow = world.allreduce(mine.astype("f2"), op=op)
        got = count(lambda: world.allreduce(mine, op=op, wire_datatype="fp16"))
        assert got.tobytes() == narrow.astype("f4").tobytes(), op
    everyones = np.stack([(10 * np.random.default_rng(of).standard_normal(500)).astype("f4") for of in range(size)])
    got = count(lambda: world.allgather(mine, wire_datatype="fp16"))
    assert got.tobytes() == everyones.astype("f2").astype("f4").tobytes()
    print("right")
"""
)

FACTORS = (
    COUNTING
    + """
    import time

    pre, post = (0.3, None, -2.5)[rank], 0.7
    for dtype in ("f4", "f8"):
        pre_here, post_here = (None if f is None else np.dtype(dtype).type(f) for f in (pre, post))
        mine = (10 * np.random.default_rng(rank).standard_normal(3 * 70)).astype(dtype)
        before, scaled = mine.copy(), mine if pre is None else mine * pre_here
        for op in ("sum", "avg", "max"):
            plain = world.allreduce(scaled, op=op) * post_here
            got = count(lambda: world.allreduce(mine, op=op, pre_scale=pre, post_scale=post))
            assert got.tobytes() == plain.tobytes(), (dtype, op)
        plain = world.reduce_scatter(scaled) * post_here
        got = count(lambda: world.reduce_scatter(mine, pre_scale=pre, post_scale=post))
        assert got.tobytes() == plain.tobytes(), dtype
        plain = world.reduce(scaled, root=1)
        got = count(lambda: world.reduce(mine, root=1, pre_scale=pre, post_scale=post))
        assert rank != 1 or got.tobytes() == (plain * post_here).tobytes(), dtype
        assert mine.tobytes() == before.tobytes()
        plain = world.allreduce(scaled)
        count(lambda: world.allreduce(unisono.IN_PLACE, mine, pre_scale=pre))
        assert mine.tobytes() == plain.tobytes(), dtype
    # The switch sees that one rank gives another factor of the result. Calls that end late would fail with this one.
    time.sleep(0.5)
    try:
        world.allreduce(mine, post_scale=0.5 if rank == 2 else 0.25)
    except unisono.UnisonoError as error:
        assert isinstance(error, (unisono.MismatchedCallError, unisono.RevokedError)), error
        print("different factors of the result (post_scale)" in str(error))
"""
)

LONG = """
import sys
import time
import numpy as np
import unisono
with unisono.init(timeout=15) as context:
    world = context.world
    rank, size = world.rank, world.size
    begin, salt = time.monotonic(), 0
    print(world.state.carrier, flush=True) if rank == 0 else None
    while world.allreduce(np.array([time.monotonic() - begin]), op="max")[0] < 2.0:
        # Sums are exact, whoever makes them; their thirds round.
        parts = [np.random.default_rng(100 * salt + of).integers(-99, 99, 700).astype("f4") for of in range(size)]
        mine = parts[rank].copy()
        world.allreduce(unisono.IN_PLACE, mine, op="avg")
        assert np.array_equal(mine, sum(parts) / np.float32(size)), salt
        salt += 1
    print("right", world.state.carrier, flush=True) if rank == 0 else None
"""


def test_means_and_compressed_calls_are_carried(tmp_path: Path) -> None:
    program = tmp_path / "carried.py"
    program.write_text(CARRIED)
    with switch(make_secret(tmp_path)) as made:
        options = [*local(3), "--aggregate", made.address, "--aggregate-secret-file", made.secret]
        done = run(*options, program, made.address, made.secret)
        assert (done.returncode, done.stdout) == (0, "right\n" * 3), done.stderr


def test_factors_are_carried_and_compared(tmp_path: Path) -> None:
    program = tmp_path / "factors.py"
    program.write_text(FACTORS)
    with switch(make_secret(tmp_path)) as made:
        options = [*local(3), "--aggregate", made.address, "--aggregate-secret-file", made.secret]
        done = run(*options, program, made.address, made.secret)
        assert (done.returncode, done.stdout) == (0, "True\n" * 3), done.stderr


def test_means_when_the_switch_is_lost(tmp_path: Path) -> None:
    program = tmp_path / "long.py"
    program.write_text(LONG)
    with switch(make_secret(tmp_path)) as made:
        options = [*local(3), "--aggregate", made.address, "--aggregate-secret-file", made.secret]
        process = start(*options, program, UNISONO_AGGREGATE_TIMEOUT_S="0.5")
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("the switch ")
            time.sleep(0.3)
            made.end(signal.SIGKILL)
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=SECONDS)
    assert (process.returncode, output) == (0, "right \n"), errors
