"""What surrounds this process: user, container, filters."""

from __future__ import annotations

import os
import re

from .finding import Finding, Root, State

AREA = "surroundings"
FILTERS = {0: "none", 1: "strict", 2: "a filter"}


def examine(root: Root) -> list[Finding]:
    """All findings. None of this is good or bad in itself: it explains the others."""
    return [_user(), _container(root), _filter(root), _groups(root)]


def _user() -> Finding:
    return Finding(AREA, "user", State.OK, f"uid {os.geteuid()}{' (root)' if os.geteuid() == 0 else ''}",
                   data={"uid": os.geteuid()})  # fmt: skip


def _container(root: Root) -> Finding:
    group = root.read("/proc/self/cgroup") or ""
    hints = []
    if root.at("/.dockerenv").exists():
        hints.append("docker")
    if root.at("/run/.containerenv").exists():
        hints.append("podman")
    if root.at("/.singularity.d").exists():
        hints.append("apptainer")
    named = re.search(r"(?:^|\0)container=([^\0]+)", root.read("/proc/1/environ") or "")
    if named:
        hints.append(named[1])
    for word in ("kubepods", "docker", "lxc", "libpod"):
        if word in group and word not in hints:
            hints.append(word)
    return Finding(AREA, "container", State.OK, ", ".join(hints) or "no sign of one", data={"hints": hints})


def _filter(root: Root) -> Finding:
    status = root.read("/proc/self/status") or ""
    mode = re.search(r"^Seccomp:\s+(\d+)", status, re.MULTILINE)
    fixed = re.search(r"^NoNewPrivs:\s+(\d+)", status, re.MULTILINE)
    number = int(mode[1]) if mode else None
    value = "not shown here" if number is None else FILTERS.get(number, str(number))
    if number == 2:
        value += " of system calls; what it refuses is found above"
    return Finding(AREA, "seccomp", State.OK, value,
                   data={"mode": number, "no_new_privileges": fixed is not None and fixed[1] == "1"})  # fmt: skip


def _groups(root: Root) -> Finding:
    text = root.read("/proc/self/mountinfo") or ""
    v2 = " - cgroup2 " in text
    v1 = " - cgroup " in text
    version = "v1 and v2" if v1 and v2 else "v2" if v2 else "v1" if v1 else "not mounted here"
    return Finding(AREA, "cgroups", State.OK, version, data={"v1": v1, "v2": v2})
