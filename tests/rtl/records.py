"""The specification's records for tests: python/unisono/_spec.py without its package, which needs the built core."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from verilated import ROOT

Fields = Sequence[tuple[str, int]]
"""Names and bits of a packed structure, the highest first."""


def pack(fields: Fields, values: Mapping[str, int]) -> int:
    """A packed structure as a number; what is not named is 0."""
    unknown = set(values) - {name for name, _ in fields}
    assert not unknown, unknown
    result = 0
    for name, bits in fields:
        value = int(values.get(name, 0))
        assert 0 <= value < 1 << bits, f"{name} = {value:#x}"
        result = result << bits | value
    return result


def unpack(fields: Fields, value: int) -> dict[str, int]:
    """The other way round."""
    values = {}
    for name, bits in reversed(fields):
        values[name] = value & (1 << bits) - 1
        value >>= bits
    assert value == 0
    return values


def load() -> ModuleType:
    """The generated module."""
    name = "unisono_spec_of_tests"
    if name not in sys.modules:
        found = importlib.util.spec_from_file_location(name, ROOT / "python" / "unisono" / "_spec.py")
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        found.loader.exec_module(module)
    return sys.modules[name]


def noisy_header(rng: random.Random, **fixed: Any) -> Any:
    """A message header with random bits in every field that is not named, types and datatypes legal."""
    spec = load()
    raw = rng.getrandbits(512)
    for begin, width, value in (
        (20, 4, int(rng.choice(list(spec.MessageType)))),
        (24, 8, int(rng.choice(list(spec.Datatype)))),
        (38, 10, 0),  # reserved
    ):
        mask = (1 << width) - 1
        raw = raw & ~(mask << begin) | value << begin
    return replace(spec.Header.decode(raw.to_bytes(64, "little")), **fixed)
