"""Random handlers, compiled by us and run by the interpreter, against the same C compiled for the processor."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unisono import handler

from .programs import Writer
from .support import Native, needs_clang


def compare(seed: int, folder: Path) -> None:
    random = Random(seed)
    source = folder / f"h{seed}.c"
    source.write_text(Writer(random).source())
    ours = handler.compile(source)
    native = Native(source, folder)
    for message in range(2):
        packets = [random.randbytes(random.choice((64, 65, 100, 1344))) for _ in range(3)]
        about = {"source": message, "ranks": 5, "tag": random.getrandbits(32)}
        result = ours.run(packets, **about)
        outputs, dropped = native.run(packets, **about)
        assert result.outputs == outputs, (seed, message)
        assert result.dropped == dropped


@needs_clang
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 32))
def test_bits_are_those_of_native_code(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare(seed, Path(folder))
