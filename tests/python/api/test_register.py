"""Registered memory: what is held, what is known of it, and what is refused."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import weakref

import numpy as np
import pytest
import unisono


class Watched(np.ndarray):  # type: ignore[type-arg]
    """An array of which weak references can be had."""


def test_what_is_registered_is_held_until_it_is_closed() -> None:
    array = np.arange(1000.0).view(Watched)
    alive = weakref.ref(array)
    held = unisono.register(array)
    del array
    gc.collect()
    assert alive() is not None
    assert held.array[-1] == 999
    assert not held.closed
    held.close()
    held.close()
    gc.collect()
    assert alive() is None
    assert held.closed
    with pytest.raises(unisono.InvalidArgumentError, match="the registration was closed"):
        _ = held.array


def test_a_registered_bytearray_is_not_resized() -> None:
    memory = bytearray(100)
    with unisono.register(memory) as held:
        with pytest.raises(BufferError):
            memory.append(1)
        held.array[3] = 7
    gc.collect()
    memory.append(1)
    assert memory[3] == 7


@pytest.mark.parametrize("kind", ["array", "part", "bytes", "read-only", "empty", "dlpack", "allocated"])
def test_the_kernel_copies_memory_of_all_usual_kinds(kind: str) -> None:
    array = np.arange(5000, dtype=np.float32)

    class Tensor:
        def __dlpack__(self, **given: object) -> object:
            return array.__dlpack__(**given)  # type: ignore[arg-type]

        def __dlpack_device__(self) -> tuple[int, int]:
            return array.__dlpack_device__()

    frozen = array.copy()
    frozen.flags.writeable = False
    with unisono.init() as context:
        given = {
            "array": array,
            "part": array[1000:2000],
            "bytes": b"some bytes",
            "read-only": frozen,
            "empty": array[:0],
            "dlpack": Tensor(),
            "allocated": context.empty(5000, np.float32),
        }[kind]
        with unisono.register(given) as held:
            assert held.kernel_copies
            assert "kernel_copies=True" in repr(held)
            assert held.allocated == (kind == "allocated") == ("allocated" in repr(held))
            if kind == "dlpack":
                assert np.shares_memory(held.array, array)


def test_memory_that_the_kernel_copies_for_nobody_is_no_error() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.syscall(447, 0)  # memfd_secret
    if file < 0:
        pytest.skip("no secret memory here")
    os.ftruncate(file, 1 << 16)
    with mmap.mmap(file, 1 << 16) as secret:
        with unisono.register(secret) as held:
            assert not held.kernel_copies
            with unisono.init() as context:
                assert np.array_equal(context.world.allreduce(held.array.view(np.int32)), np.zeros(1 << 14))
        del held
        gc.collect()
    os.close(file)


def test_registrations_overlap_and_end_with_their_last_reference() -> None:
    memory = bytearray(10_000)
    whole = unisono.register(memory)
    part = unisono.register(memoryview(memory)[100:200])
    again = unisono.register(memory)
    whole.close()
    with pytest.raises(BufferError):
        memory.append(1)
    assert part.array.nbytes == 100
    assert not part.allocated
    del again, part
    gc.collect()
    memory.append(1)


def test_calls_take_registered_arrays() -> None:
    def rank(world: unisono.Communicator) -> None:
        mine = np.arange(30_000) + world.rank
        with unisono.register(mine) as held:
            assert np.array_equal(world.allreduce(held.array), 2 * np.arange(30_000) + 1)

    unisono.ThreadJob(2).run(rank)


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(unisono.InvalidArgumentError, match=r"register: buffer is a list; pass a NumPy array"):
        unisono.register([1, 2, 3])
    with pytest.raises(unisono.InvalidArgumentError, match="register: buffer is None"):
        unisono.register(None)
    with pytest.raises(unisono.InvalidArgumentError, match=r"not contiguous; register the array that it is a part of"):
        unisono.register(np.zeros((4, 4))[:, ::2])
    with pytest.raises(unisono.InvalidDatatypeError, match=r"register: buffer has dtype object"):
        unisono.register(np.array([None]))
    with pytest.raises(unisono.InvalidArgumentError, match=r"register: buffer is a masked array"):
        unisono.register(np.ma.array([1, 2], mask=[True, False]))
