"""What carries data between the ranks of a job of several hosts, before it is started."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgumentError
from .hostlist import HostListError, read_list
from .spanning import spans

SHARED = "shared memory"


def ways(hosts: str, transport: str) -> list[dict[str, Any]]:
    """Of the text of --hosts: an entry for each host with its ranks, and one for what lies between hosts.

    Raises `InvalidArgumentError`.
    """
    try:
        listed = read_list(hosts)
    except HostListError as failure:
        raise InvalidArgumentError(str(failure)) from failure
    entries: list[dict[str, Any]] = [{"host": host.name, "ranks": host.ranks, "by": SHARED} for host in listed]
    if len(listed) > 1:
        entries.append({"host": None, "ranks": sorted(rank for host in listed for rank in host.ranks), "by": transport})
    return entries


def number_of_ranks(entries: list[dict[str, Any]]) -> int:
    """Of all hosts."""
    return sum(len(entry["ranks"]) for entry in entries if entry["host"] is not None)


def sentences(entries: list[dict[str, Any]], measured: dict[str, Any] | None = None) -> list[str]:
    """The same for people. `measured`: what `unisono calibrate --network` has found out."""
    hosts = [entry for entry in entries if entry["host"] is not None]
    texts = [
        f"{spans(host['ranks'])} on host {host['host']}{f': {SHARED}' if len(host['ranks']) > 1 else ''}"
        for host in hosts
    ]
    between = next((entry["by"] for entry in entries if entry["host"] is None), None)
    said = [f"What carries data: {'; '.join(texts)}{f'; {between} between hosts' if between else ''}."]
    if between:
        said.append(
            f"Predictions take what was measured between hosts over {measured['transport']}, and a core for each rank."
            if measured
            else "Predictions take usual figures of a network, and a core for each rank; `unisono calibrate --network` "
            "measures yours."
        )
    return said
