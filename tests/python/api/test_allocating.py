"""NumPy's arrays in memory that ranks share, without asking for it in every line."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import InvalidArgumentError


def run(tmp_path: Path, program: str, ranks: int = 2) -> str:
    """What a program's rank 0 prints; all ranks must end well."""
    script = tmp_path / "program.py"
    script.write_text("import numpy as np\nimport unisono\n" + textwrap.dedent(program))
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_arrays_made_inside_are_reached_by_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithms of direct access say of ordinary arrays that they cannot reach them."""
    monkeypatch.setenv("UNISONO_KERNEL_COPY", "off")
    out = run(
        tmp_path,
        """
        with unisono.init() as context:
            comm, n = context.world, 100_000

            def reachable(src, dst):
                try:
                    comm.allreduce(src, dst, algorithm="direct")
                except unisono.UnisonoError as error:
                    assert "memory of unisono_allocate" in str(error), error
                    return False
                assert (dst == sum(range(1, comm.size + 1))).all()
                return True

            with unisono.allocating():
                mine = np.full(n, 1.0 + comm.rank)
                total = np.empty_like(mine)
                summed = mine / 2 + mine / 2
                copied = np.array(mine)
                padded = np.zeros(n + 9)[9:]
            outside = np.full(n, 1.0 + comm.rank)
            answers = [reachable(a, total) for a in (mine, summed, copied, outside)]
            answers.append(reachable(mine, padded))
            answers.append(reachable(mine, np.empty(n)))
            if comm.rank == 0:
                print(answers)
        """,
    )
    assert out.strip() == "[True, True, True, False, True, False]"


def test_arrays_live_on_and_memory_comes_back(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        """
        context = unisono.init()
        comm = context.world
        with unisono.allocating(context):
            places = set()
            for turn in range(200):
                block = np.empty(1 << 22)
                block[::1 << 12] = turn
                places.add(block.ctypes.data)
                del block
            assert len(places) <= 2, places  # what one gave back, the next one got
            kept = np.arange(100_000.0) + comm.rank
            grown = np.arange(3000)
            grown.resize(30_000, refcheck=False)
            assert (grown[:3000] == np.arange(3000)).all() and not grown[3000:].any()
        context.close()
        assert (kept == np.arange(100_000.0) + comm.rank).all()
        kept *= 2
        del kept, grown
        print("well")
        """,
        ranks=1,
    )
    assert out.strip() == "well"


def test_the_setting_ends_with_its_block() -> None:
    names = []
    with unisono.init() as context:
        names.append(np._core.multiarray.get_handler_name())
        with unisono.allocating(context):
            names.append(np._core.multiarray.get_handler_name())
            with pytest.raises(KeyError), unisono.allocating(context):
                raise KeyError
            names.append(np._core.multiarray.get_handler_name())
        names.append(np._core.multiarray.get_handler_name())
    assert names == ["default_allocator", "unisono", "unisono", "default_allocator"]


def test_zeros_are_zero_and_shapes_of_all_kinds_work() -> None:
    with unisono.init() as context, unisono.allocating(context):
        for _ in range(3):
            dirty = np.full(100_000, 7.0)
            del dirty
            gc.collect()
            assert not np.zeros(100_000).any()
        for shape in ((), (0,), (0, 5), (3,), (1000, 7), (1 << 20,)):
            for dtype in ("f8", "S5", "S100000", "O", "M8[s]"):
                if np.dtype(dtype).itemsize * np.prod(shape, initial=1) < 1 << 28:
                    array = np.zeros(shape, dtype)
                    assert array.shape == shape
                    del array
        order = np.asfortranarray(np.arange(10_000.0).reshape(100, 100))
        np.testing.assert_array_equal(np.sort(order.ravel()), np.arange(10_000.0))
        assert np.zeros(1 << 20).ctypes.data % 64 == 0


def test_what_cannot_be_had_is_told() -> None:
    with pytest.raises(InvalidArgumentError, match=r"0 contexts; call unisono\.init\(\) first"), unisono.allocating():
        pass
    with unisono.init(), unisono.init() as second:
        with pytest.raises(InvalidArgumentError, match="2 contexts; pass the one"), unisono.allocating():
            pass
        with unisono.allocating(second), pytest.raises(MemoryError):
            np.empty(1 << 58, np.uint8)
