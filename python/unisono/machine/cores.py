"""Cores: how many may be used, what they share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from .. import _core
from .finding import Finding, Root, State

AREA = "cores"


def cpu_list(text: str | None) -> set[int]:
    """The numbers of a list like "0-3,8"; nothing for what is not such a list."""
    numbers: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            continue
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def as_list(numbers: Iterable[int]) -> str:
    """The numbers as a list like "0-3,8"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def usable(root: Root) -> int:
    """How many ranks can have a core each: affinity, limited by the quota."""
    quota, _ = _core.cgroup_quota(root.path)
    granted = len(os.sched_getaffinity(0))
    return granted if math.isinf(quota) else max(1, min(granted, math.floor(quota)))


def examine(root: Root) -> list[Finding]:
    """All findings."""
    affinity = os.sched_getaffinity(0)
    return [_usable(root, affinity), _affinity(root, affinity), _quota(root, affinity), _siblings(root, affinity),
            _nodes(root, affinity), *_caches(root, affinity)]  # fmt: skip


def _usable(root: Root, affinity: set[int]) -> Finding:
    count = usable(root)
    few = count < 2
    return Finding(
        AREA, "usable cores", State.IMPROVABLE if few else State.OK,
        f"{count}: up to {count} ranks spin while they wait; more take turns",
        "ranks of a job take turns on one core: every message costs a change of context" if few else "",
        data={"count": count},
    )  # fmt: skip


def _affinity(root: Root, affinity: set[int]) -> Finding:
    online = cpu_list(root.read("/sys/devices/system/cpu/online"))
    data = {"cores": sorted(affinity), "online": sorted(online)}
    value = f"{as_list(affinity)} of {as_list(online)}" if online else as_list(affinity)
    # Cores that a cpuset keeps from this process cannot be had with taskset.
    if len(affinity) >= len(online):
        return Finding(AREA, "affinity", State.OK, value, data=data)
    return Finding(
        AREA, "affinity", State.IMPROVABLE, value,
        f"{len(online - affinity)} cores of this machine are kept from this process",
        f"taskset -c {as_list(online)} unisono doctor   # refused: a cpuset or the batch system decides",
        data=data,
    )  # fmt: skip


def _quota(root: Root, affinity: set[int]) -> Finding:
    quota, file = _core.cgroup_quota(root.path)
    if math.isinf(quota):
        return Finding(AREA, "time quota", State.OK, "none", data={"cores": None, "file": None})
    whole = quota >= len(affinity)
    value = f"{quota:g} cores' worth of time ({file})"
    unlimited = "-1" if file.endswith("cpu.cfs_quota_us") else "max"
    return Finding(
        AREA, "time quota", State.OK if whole else State.IMPROVABLE, value,
        "" if whole else f"of {len(affinity)} cores, ranks that use more than {quota:g} together are stopped for "
        "most of each period",
        "" if whole else f"echo {unlimited} > {file}   # as root, outside; docker update --cpus={len(affinity)} "
        "CONTAINER",
        data={"cores": quota, "file": file},
    )  # fmt: skip


def _siblings(root: Root, affinity: set[int]) -> Finding:
    groups: dict[int, set[int]] = {}
    for core in sorted(affinity):
        listed = cpu_list(root.read(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")) & affinity
        groups.setdefault(min(listed | {core}), set()).update(listed | {core})
    data = {"physical": len(groups), "first_of_each": sorted(groups)}
    if len(groups) == len(affinity):
        return Finding(AREA, "hardware threads", State.OK, f"one to each of {len(groups)} physical cores", data=data)
    return Finding(
        AREA, "hardware threads", State.IMPROVABLE, f"{len(affinity)} on {len(groups)} physical cores",
        "ranks that share a physical core also share its execution units and its first caches",
        f"taskset -c {as_list(groups)} unisono run -n {len(groups)} PROGRAM",
        data=data,
    )  # fmt: skip


def _nodes(root: Root, affinity: set[int]) -> Finding:
    nodes: dict[int, list[int]] = {}
    for name in root.names("/sys/devices/system/node"):
        if name.startswith("node") and name[4:].isdigit():
            cores = cpu_list(root.read(f"/sys/devices/system/node/{name}/cpulist")) & affinity
            if cores:
                nodes[int(name[4:])] = sorted(cores)
    data = {"nodes": {str(node): cores for node, cores in nodes.items()}}
    if len(nodes) < 2:
        return Finding(AREA, "memory nodes", State.OK, "one" if nodes else "not shown here", data=data)
    node = max(nodes, key=lambda each: len(nodes[each]))
    return Finding(
        AREA, "memory nodes", State.IMPROVABLE,
        "; ".join(f"node {each}: cores {as_list(cores)}" for each, cores in sorted(nodes.items())),
        "messages between nodes take longer; a job that fits one node is faster there",
        f"numactl --cpunodebind={node} --membind={node} unisono run -n {len(nodes[node])} PROGRAM",
        data=data,
    )  # fmt: skip


def _caches(root: Root, affinity: set[int]) -> list[Finding]:
    first = min(affinity)
    findings = []
    for index in root.names(f"/sys/devices/system/cpu/cpu{first}/cache"):
        folder = f"/sys/devices/system/cpu/cpu{first}/cache/{index}"
        level, kind, size = (root.read(f"{folder}/{name}") for name in ("level", "type", "size"))
        if level is None or size is None or kind == "Instruction":
            continue
        shared = cpu_list(root.read(f"{folder}/shared_cpu_list"))
        together = f"shared by cores {as_list(shared)}" if len(shared) > 1 else "of each core"
        factors = {"K": 1024, "M": 1024**2, "G": 1024**3}
        digits = size.rstrip("KMG")
        count = int(digits) * factors.get(size[-1], 1) if digits.isdigit() else None
        findings.append(Finding(
            AREA, f"cache, level {level}", State.OK, f"{size}B {together}",
            data={"level": int(level), "bytes": count, "shared_by": sorted(shared),
                  "line_bytes": root.number(f"{folder}/coherency_line_size")},
        ))  # fmt: skip
    if not findings:
        findings.append(Finding(AREA, "caches", State.OK, "not shown here", data={}))
    return findings
