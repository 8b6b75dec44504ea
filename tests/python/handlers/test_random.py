"""Random handlers, compiled by us and run by the interpreter, against the same C compiled for the processor."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from unisono import handler
from unisono.handler import allocate

from .programs import Writer
from .support import Native, needs_clang

pytestmark = needs_clang


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


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 32))
def test_bits_are_those_of_native_code(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            compare(seed, Path(folder))
        except handler.HandlerError as refusal:
            # One loop in thousands is optimised until its counter is not found any more. Nothing else may be refused.
            assume("this loop has no bound" not in str(refusal))
            raise


@pytest.mark.parametrize("seed", range(5))
def test_and_where_most_values_stand_in_memory(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "SCALAR_REGISTERS", 9)
    monkeypatch.setattr(allocate, "VECTOR_REGISTERS", 5)
    compare(seed, tmp_path)
