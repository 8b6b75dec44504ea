"""Where ranks run: the cores this process may use, and which of them a rank gets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Placement:
    """The cores of a job, the same for all systems."""

    ranks: int
    cores: tuple[int, ...]  #: the affinity of this process
    usable: int  #: cores that can be used at once: affinity and quota

    @property
    def crowded(self) -> bool:
        """Whether ranks must share cores. They are not bound then."""
        return self.ranks > self.usable

    @property
    def binding(self) -> str:
        """What a benchmark process is told: the core of each rank, or none."""
        return "-" if self.crowded else ",".join(map(str, self.cores[: self.ranks]))

    @property
    def limit_binding(self) -> str:
        """The cores of the processes that measure the machine's limit."""
        return ",".join(map(str, self.cores[: min(self.ranks, self.usable)]))


def _numbered(what: str, number: int | None) -> str | None:
    return None if number is None else f"{what} {number}"


@dataclass(frozen=True)
class Processor:
    """What the kernel says of the processor. What it does not say is None."""

    name: str | None
    vendor: str | None = None
    family: int | None = None
    model: int | None = None

    @property
    def text(self) -> str:
        """In words."""
        parts = [self.vendor, _numbered("family", self.family), _numbered("model", self.model)]
        details = ", ".join(part for part in parts if part)
        return f"{self.name or 'unknown processor'}{f' ({details})' if details else ''}"


def processor(info: Path = Path("/proc/cpuinfo")) -> Processor:
    """The first processor of this machine."""
    facts: dict[str, str] = {}
    try:
        lines = info.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())

    def number(name: str) -> int | None:
        return int(facts[name]) if facts.get(name, "").isdigit() else None

    name = facts.get("model name") or facts.get("uarch") or facts.get("isa") or os.uname().machine
    return Processor(name, facts.get("vendor_id"), number("cpu family"), number("model"))


@dataclass(frozen=True)
class Facts:
    """What is known of the machine when a figure is taken."""

    processor: Processor
    cache_line_ns: float | None = None  #: the way of a cache line between two cores, last measured; None: not at all
    kernel_copies: bool | None = None  #: whether processes may copy each other's memory; None: not tried

    def record(self) -> dict[str, Any]:
        """The fields of a JSON line."""
        line = self.cache_line_ns
        return {
            "processor": {name: getattr(self.processor, name) for name in ("name", "vendor", "family", "model")},
            "cache_line_ns": None if line is None else round(line, 2),
            "kernel_copies": self.kernel_copies,
        }


def placement(ranks: int) -> Placement:
    """Where `ranks` ranks run on this machine."""
    cores = tuple(sorted(os.sched_getaffinity(0)))
    return Placement(ranks, cores, max(1, int(min(len(cores), _quota()))))


def _quota(root: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> float:
    """Cores that the control groups grant; every ancestor limits."""
    least = float("inf")
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return least
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            grants = [_quota_v2(folder) for folder in _ancestors(root, path)]
        elif "cpu" in controllers.split(","):
            grants = [_quota_v1(folder) for folder in _ancestors(root / controllers, path)]
        else:
            continue
        least = min([least, *grants])
    return least


def _ancestors(root: Path, path: str) -> Iterator[Path]:
    """A group's folder and all above it."""
    folder = root / path.lstrip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def _quota_v2(folder: Path) -> float:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return float("inf") if quota == "max" else float(quota) / float(period)
    except (OSError, ValueError):
        return float("inf")


def _quota_v1(folder: Path) -> float:
    try:
        quota = float((folder / "cpu.cfs_quota_us").read_text())
        return quota / float((folder / "cpu.cfs_period_us").read_text()) if quota > 0 else float("inf")
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")
