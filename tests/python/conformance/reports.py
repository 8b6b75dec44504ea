"""What the ranks of a soak's job say at their end, each in a file of the job's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def say(folder: Path, rank: int, report: dict[str, Any]) -> None:
    """Writes a rank's report, whole or not at all: a rank may be killed at any moment, this one included."""
    unfinished = folder / f"rank{rank}.unfinished"
    unfinished.write_text(json.dumps(report))
    unfinished.rename(folder / f"rank{rank}.json")


def reports_of(folder: Path) -> list[dict[str, Any]]:
    """The reports of the ranks that came to their end."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json"))]
