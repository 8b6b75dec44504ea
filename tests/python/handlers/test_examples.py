"""The examples, against NumPy, on packets that all differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unisono import handler

from .support import EXAMPLES, Native, needs_clang

pytestmark = needs_clang


def packets_of(message: bytes, size: int = 1344) -> list[bytes]:
    return [message[at : at + size] for at in range(0, len(message), size)]


def test_histogram() -> None:
    random = np.random.default_rng(1)
    made = handler.compile(EXAMPLES / "histogram.c")
    for length in (1, 255, 5000):
        message = random.integers(0, 200, length, dtype=np.uint8)
        (counts,) = made.run(packets_of(message.tobytes())).outputs
        np.testing.assert_array_equal(np.frombuffer(counts, np.uint32), np.bincount(message, minlength=256))


@pytest.mark.parametrize("least", [1.0, -0.5])
def test_filter(least: float) -> None:
    random = np.random.default_rng(2)
    made = handler.compile(EXAMPLES / "filter.c", [f"LEAST={least}f"])
    message = random.standard_normal(3000).astype(np.float32)
    message[336:672] = -9  # one packet of which nothing is left
    result = made.run(packets_of(message.tobytes()))
    kept = np.frombuffer(b"".join(result.outputs), [("place", "<u4"), ("value", "<f4")])
    np.testing.assert_array_equal(kept["place"], np.flatnonzero(message >= least))
    np.testing.assert_array_equal(kept["value"], message[message >= least])
    assert len(result.outputs) == len(packets_of(message.tobytes())) - 1


def sparse(indexes: np.ndarray, values: np.ndarray) -> list[bytes]:
    """Packets of blocks of 16 indexes and 16 values."""
    blocks = []
    for at in range(0, len(indexes), 16):
        some = np.full(16, 0xFFFFFFFF, np.uint32)
        some[: len(indexes[at : at + 16])] = indexes[at : at + 16]
        with_values = np.zeros(16, np.float32)
        with_values[: len(values[at : at + 16])] = values[at : at + 16]
        blocks.append(some.tobytes() + with_values.tobytes())
    return packets_of(b"".join(blocks), 128 * 7)


def test_sparse_accumulate() -> None:
    random = np.random.default_rng(3)
    made = handler.compile(EXAMPLES / "sparse_accumulate.c")
    for _ in range(2):  # the second round begins with an empty table
        table = np.zeros(4096, np.float32)
        outputs: list[bytes] = []
        for rank in range(3):
            indexes = random.integers(0, 5000, 300).astype(np.uint32)
            indexes[100:200] = 16 * random.integers(0, 8, 100)  # the same ones many times
            values = random.standard_normal(300).astype(np.float32)
            for index, value in zip(indexes, values, strict=True):  # in order: sums of floats depend on it
                if index < len(table):
                    table[index] += value
            assert not outputs
            outputs = made.run(sparse(indexes, values), source=rank, ranks=3).outputs
        tiles = np.frombuffer(outputs[0], [("tile", "<u4"), ("values", "<f4", 16)])
        used = np.flatnonzero(table.reshape(-1, 16).any(axis=1))
        assert 0 < len(used) < 256
        np.testing.assert_array_equal(tiles["tile"], used)
        assert tiles["values"].tobytes() == table.reshape(-1, 16)[used].tobytes()


def unpacked(packet: bytes) -> np.ndarray:
    numbers, last, shift, zigzag = [], 0, 0, 0
    for byte in packet:
        zigzag |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            last = (last + ((zigzag >> 1) ^ -(zigzag & 1))) % (1 << 32)
            numbers.append(last)
            shift = zigzag = 0
    return np.array(numbers, np.uint32)


def test_compressor() -> None:
    random = np.random.default_rng(4)
    made = handler.compile(EXAMPLES / "compressor.c")
    slow = np.cumsum(random.integers(-60, 60, 3000)).astype(np.uint32)
    wild = random.integers(0, 1 << 32, 700, dtype=np.uint32)
    wild[:4] = 0, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000
    for message, most in ((slow, 0.3), (wild, 1.3)):
        packets = packets_of(message.tobytes())
        outputs = made.run(packets).outputs
        assert len(outputs) == len(packets)
        for packet, output in zip(packets, outputs, strict=True):
            np.testing.assert_array_equal(unpacked(output), np.frombuffer(packet, np.uint32))
        assert sum(map(len, outputs)) < most * message.nbytes


@pytest.mark.parametrize("name", ["histogram", "filter", "sparse_accumulate", "compressor"])
def test_examples_are_what_native_code_does(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    made = handler.compile(EXAMPLES / f"{name}.c")
    native = Native(EXAMPLES / f"{name}.c", tmp_path)
    for source in range(2):
        packets = [(random.standard_normal(size) + source).astype(np.float32).tobytes() for size in (64, 336, 1)]
        assert made.run(packets, source=source, ranks=2).outputs == native.run(packets, source=source, ranks=2)[0]


def test_what_finds_no_register_stands_in_memory(tmp_path: Path) -> None:
    source = tmp_path / "many.c"
    scalars, vectors = range(120), range(40)
    source.write_text("\n".join((
        "#include <unisono_handler.h>", "int payload(void) {",
        *(f"  const uint32_t s{i} = us_u32_at({i});" for i in scalars),
        *(f"  const us_f32x16 v{i} = us_f32x16_at({4 * i}, {i});" for i in vectors),
        *(f"  us_streamout_f32(v{i} + v{(i * 7) % 40}, 16);" for i in reversed(vectors)),
        *(f"  us_put_u32(s{i} * s{(i * 7) % 120});" for i in reversed(scalars)), "  return 0;", "}",
    )))  # fmt: skip
    made, native = handler.compile(source), Native(source, tmp_path)
    assert len(made.memory) > 128 * 8  # vectors stand there
    packets = [np.random.default_rng(n).integers(0, 127, 200, dtype=np.uint8).tobytes() for n in range(3)]
    assert made.run(packets).outputs == native.run(packets)[0]


def test_compiling_and_loading_take_no_time_that_is_noticed() -> None:
    # A tenth of a second for clang, the rest of the compiler and the loader; three times that on a busy machine.
    import time

    best = 9.0
    for _ in range(3):
        begin = time.perf_counter()
        handler.Handler(handler.compile(EXAMPLES / "sparse_accumulate.c").binary)
        best = min(best, time.perf_counter() - begin)
    assert best < 0.3


@pytest.mark.parametrize("packets", [b"abc", bytearray(b"abc"), "abc", ["abc"], [1, 2], [None]])
def test_what_is_no_list_of_packets(packets: Any) -> None:
    with pytest.raises(TypeError, match=r"^packets? (0 )?is \w+; "):
        handler.compile(EXAMPLES / "filter.c").run(packets)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tag", 1 << 32), ("tag", -1), ("source", 1 << 24), ("ranks", 0), ("budget", 0), ("budget", -1)],
)
def test_numbers_that_no_message_has(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is {value}; allowed are "):
        handler.compile(EXAMPLES / "filter.c").run([b"abcd"], **{name: value})
