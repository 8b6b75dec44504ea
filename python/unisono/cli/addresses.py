"""Addresses of this machine, at which other machines may reach it."""

from __future__ import annotations

import os
import socket
import sys

from ..machine.interfaces import IFF_LOOPBACK, IFF_UP, raw_addresses

MOST = 16  # addresses that members try in turn


def own_addresses() -> list[str]:
    """As text, the one by which ssh has come first. The loopback's if there are no others.

    Link-local ones, which need an interface of the same name on the other machine, only if there is nothing better.
    """
    usual: list[str] = []
    link_local: list[str] = []
    for name, flags, address in raw_addresses():
        if address is None or not flags & IFF_UP or flags & IFF_LOOPBACK:
            continue
        family = int.from_bytes(address[:2], sys.byteorder)
        if family == socket.AF_INET:
            usual.append(socket.inet_ntop(family, address[4:8]))
        elif family == socket.AF_INET6:
            text = socket.inet_ntop(family, address[8:24])
            if address[8] == 0xFE and address[9] & 0xC0 == 0x80:
                link_local.append(f"{text}%{name}")
            else:
                usual.append(text)
    # "client port server port": through this address at least one machine has reached this one.
    way = os.environ.get("SSH_CONNECTION", "").split()
    if len(way) == 4 and way[2] in usual:
        usual.remove(way[2])
        usual.insert(0, way[2])
    return (usual or link_local or ["127.0.0.1"])[:MOST]


def listen() -> socket.socket:
    """At all addresses of this machine, at a port that the system chooses."""
    try:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::", 0))
    except OSError:  # there is no IPv6 here
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("0.0.0.0", 0))
    listener.listen(socket.SOMAXCONN)
    return listener


def join_value(addresses: list[str], port: int) -> str:
    """UNISONO_JOIN."""
    return "tcp://" + ",".join(f"[{one}]:{port}" if ":" in one else f"{one}:{port}" for one in addresses)
