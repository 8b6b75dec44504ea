"""What this machine offers to a job: each property found out, or really tried."""

from __future__ import annotations

from . import cores, kernel, memory, networks, surroundings
from .finding import Finding, Root, State

__all__ = ["Finding", "Root", "State", "can_run", "examine", "usable_cores"]


def examine(root: str = "") -> list[Finding]:
    """All findings. `root` stands before the paths that are read; what is tried is tried here in any case."""
    place = Root(root)
    return [finding for area in (cores, kernel, memory, networks, surroundings) for finding in area.examine(place)]


def can_run(findings: list[Finding]) -> bool:
    """Whether nothing is missing without which Unisono cannot run."""
    return not any(finding.essential and finding.state is State.MISSING for finding in findings)


def usable_cores(root: str = "") -> int:
    """How many ranks can have a core each."""
    return cores.usable(Root(root))
