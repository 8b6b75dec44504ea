"""The specification's records for tests: python/unisono/_spec.py without its package, which needs the built core."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

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
