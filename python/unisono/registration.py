"""Memory that is known to the library for longer than a call."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from . import _core
from ._arrays import Array, as_array, refuse_objects
from .errors import InvalidArgumentError


class Registration:
    """An array that is held, and what is known of its memory. A context manager; `close` lets go of the array.

    Registered memory is used like any other: calls take the array, or parts of it, as before. It stays where it is
    until `close`, so that nothing that was found out about it becomes wrong: it cannot be freed, and a `bytearray` or
    its like cannot be resized. Thread-safe.
    """

    __slots__ = ("_allocated", "_array", "_held", "_kernel_copies")

    def __init__(self, array: Array) -> None:
        self._array: Array | None = array
        self._held: _core.Registration | None = _core.Registration(array)
        self._kernel_copies = self._held.kernel_copies
        self._allocated = self._held.allocated

    @property
    def array(self) -> Array:
        """The memory as an array."""
        if self._array is None:
            raise InvalidArgumentError("register: the registration was closed")
        return self._array

    @property
    def kernel_copies(self) -> bool:
        """Whether the kernel copies this memory between processes, where it does so at all (`unisono doctor`).

        It does not where pages belong to a device, or are secret or gone; there, messages go through cells.
        """
        return self._kernel_copies

    @property
    def allocated(self) -> bool:
        """Whether it is allocated memory, of this rank, which the ranks of the machine reach without copies."""
        return self._allocated

    @property
    def closed(self) -> bool:
        """Whether the array was let go."""
        return self._array is None

    def close(self) -> None:
        """Lets go of the array. No call may be using it. Does nothing the second time."""
        self._held = None
        self._array = None

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._array is None:
            return "Registration(closed)"
        allocated = ", allocated" if self._allocated else ""
        return f"Registration({self._array.nbytes} bytes, kernel_copies={self._kernel_copies}{allocated})"


def register(buffer: Any) -> Registration:
    """Holds the memory of an array and finds out, once, how it can be reached.

    `buffer` is a C-contiguous NumPy array, or anything with the buffer protocol or DLPack in host memory, such as a
    tensor of PyTorch on the CPU. It may be read-only. Not collective, and needs no context. Memory that the kernel does
    not copy is no error, only slower. Raises `InvalidArgumentError` for what is no memory, or not contiguous: what lies
    between the elements would be registered with them. Elements that are Python objects raise `InvalidDatatypeError`.
    """
    array = as_array("register", "buffer", buffer)
    refuse_objects("register", "buffer", array.dtype)
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(
            f"register: buffer is an array of shape {array.shape}, strides {array.strides}, which is not contiguous; "
            "register the array that it is a part of"
        )
    return Registration(array)


__all__ = ["Registration", "register"]
