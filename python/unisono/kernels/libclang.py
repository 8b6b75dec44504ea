"""libclang's module for Python, or None where it is not installed."""

from __future__ import annotations

import importlib
from typing import Any

try:
    cindex: Any = importlib.import_module("clang.cindex")
except ImportError:
    cindex = None
