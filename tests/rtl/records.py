"""The specification's records for tests: python/unisono/_spec.py without its package, which needs the built core."""

from __future__ import annotations

import importlib.util
import random
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

from verilated import ROOT


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
