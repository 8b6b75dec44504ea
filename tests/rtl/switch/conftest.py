"""Puts the folders of Tx's and the plugins' tests on the path, which hold what headers and operators need."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("tx", "plugin")]
