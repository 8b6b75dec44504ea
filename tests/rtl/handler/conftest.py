"""Puts this folder on the path, for what its tests share, that of Tx's tests, which has headers, and the package."""

import sys
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tx"),
    str(Path(__file__).parents[3] / "python"),
]
