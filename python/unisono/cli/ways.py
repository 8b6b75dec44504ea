"""What carries data between the ranks of a job of several hosts, before it is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidArgumentError
from .hostlist import HostListError, read_list
from .spanning import spans

SHARED = "shared memory"
ENCRYPTED = "+TLS"  #: behind the name of a network, as the library says it
MOST_CONNECTIONS = 16  #: of TCP for a pair of ranks
TLS = ("off", "tcp", "on")  #: what UNISONO_TLS may hold


def tls_fault(environment: Mapping[str, str]) -> str:
    """What is wrong with UNISONO_TLS of ranks that have this environment, as they would say; empty if nothing."""
    wanted = environment.get("UNISONO_TLS", "off")
    if wanted not in TLS:
        return f"UNISONO_TLS is {wanted!r}; allowed are off, on (all data between hosts) and tcp (those that go by TCP)"
    first = environment.get("UNISONO_TRANSPORT", "tcp").split(",")[0]
    if wanted != "on" or first == "tcp":
        return ""
    return (
        f"all data between hosts are to be encrypted, and {first} encrypts nothing: leave it out of the networks, or "
        "set UNISONO_TLS=tcp instead to encrypt what goes by TCP alone"
    )


def ways(hosts: str, transport: str, *, tls: bool = False) -> list[dict[str, Any]]:
    """Of the text of --hosts: an entry for each host with its ranks, and one for what lies between hosts.

    Raises `InvalidArgumentError`.
    """
    try:
        listed = read_list(hosts)
    except HostListError as failure:
        raise InvalidArgumentError(str(failure)) from failure
    entries: list[dict[str, Any]] = [{"host": host.name, "ranks": host.ranks, "by": SHARED} for host in listed]
    if len(listed) > 1:
        entries.append(
            {
                "host": None,
                "ranks": sorted(rank for host in listed for rank in host.ranks),
                "by": ",".join(name + ENCRYPTED * (tls and name == "tcp") for name in transport.split(",")),
            }
        )
    return entries


def connections_of(environment: Mapping[str, str], measured: dict[str, Any] | None) -> int:
    """Connections of TCP for a pair of ranks: as the variable says, else the tuning file.

    Raises `InvalidArgumentError`.
    """
    said = environment.get("UNISONO_TCP_CONNECTIONS")
    if said is None:
        return int(measured["connections"]) if measured else 1
    if not (said.isascii() and said.isdigit() and 1 <= int(said) <= MOST_CONNECTIONS):
        raise InvalidArgumentError(f"UNISONO_TCP_CONNECTIONS is {said!r}; allowed are 1 to {MOST_CONNECTIONS}")
    return int(said)


def hosts_of_ranks(entries: list[dict[str, Any]]) -> list[int]:
    """By rank, a number for its host."""
    hosts = [entry["ranks"] for entry in entries if entry["host"] is not None]
    by_rank = {rank: number for number, ranks in enumerate(hosts) for rank in ranks}
    return [by_rank[rank] for rank in sorted(by_rank)]


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
    between = next((entry for entry in entries if entry["host"] is None), None)
    if between is None:
        return [f"What carries data: {'; '.join(texts)}."]
    first, *others = between["by"].split(",")
    network = "".join([f"{first} between hosts", *(f", {other} where that does not reach" for other in others)])
    said = [f"What carries data: {'; '.join(texts)}; {network}."]
    if between.get("connections", 1) > 1 and first.removesuffix(ENCRYPTED) == "tcp":
        said.append(f"Long messages between two ranks go by {between['connections']} connections.")
    if measured:
        said.append(
            f"Predictions take what was measured between hosts over {measured['transport']}, and a core for each rank."
        )
    else:
        said.append(
            "No times are predicted: what a network takes is not known here. Below stands what each algorithm sends, "
            "all ranks together. `unisono calibrate --network` measures the network, and `unisono bench --transport "
            f"{first.removesuffix(ENCRYPTED)}` the calls."
        )
    return said
