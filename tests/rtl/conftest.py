"""Puts this folder on the path, so that tests in its subfolders find `hdl` and `bus`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
