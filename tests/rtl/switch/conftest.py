"""Puts folders on the path: of tests of Tx and plugins, which have headers and operators, and of handlers."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("tx", "plugin", "handler")]
sys.path.insert(0, str(Path(__file__).parents[3] / "python"))
