"""Puts the folder of Tx's tests on the path, which holds what headers need."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tx"))
