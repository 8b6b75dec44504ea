"""What the root of a scatter tells ahead where the ranks have no destination: the elements and the shape of a block."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import UnisonoError

if TYPE_CHECKING:
    from .communicator import Communicator

HEADER = 256  #: bytes of the first broadcast: the length of the text, and its begin
_LENGTH = 4  # bytes of the length


class Block(NamedTuple):
    """What one rank gets."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    allocated: bool  #: in memory that the ranks share


def announced(comm: Communicator, operation: str, root: int, block: Block | None, timeout: float | None) -> Block:
    """Collective: the block that the root gives, on every rank. Others give None."""
    text = b"" if block is None else _text(block)
    try:
        header = np.zeros(HEADER, np.uint8)
        _write(header, len(text).to_bytes(_LENGTH, "little") + text[: HEADER - _LENGTH])
        comm.bcast(header, root, timeout=timeout)
        length = int.from_bytes(header[:_LENGTH].tobytes(), "little")
        begin = header[_LENGTH:].tobytes()[:length]
        rest = np.zeros(length - len(begin), np.uint8)
        if rest.size:
            _write(rest, text[len(begin) :])
            comm.bcast(rest, root, timeout=timeout)
    except UnisonoError as error:
        raise type(error)(
            f"{operation}: no dst was given, so the root first tells the elements and shape of a block, by a bcast, "
            f"for which all ranks leave out dst: {error}"
        ) from None
    return _block(begin + rest.tobytes())


def _write(into: np.ndarray[Any, np.dtype[np.uint8]], data: bytes) -> None:
    into[: len(data)] = np.frombuffer(data, np.uint8)


def _text(block: Block) -> bytes:
    dtype = block.dtype
    # Types that other packages have added, such as bfloat16, are known by their names only.
    added = dtype.kind == "V" and dtype.names is None and dtype.type is not np.void
    return repr((dtype.name if added else np.lib.format.dtype_to_descr(dtype), *block[1:])).encode()


def _block(text: bytes) -> Block:
    description, shape, allocated = ast.literal_eval(text.decode())
    dtype = np.dtype(description) if isinstance(description, str) else np.lib.format.descr_to_dtype(description)
    return Block(dtype, shape, allocated)
