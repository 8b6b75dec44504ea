"""Addresses of this machine's interfaces, as the system's library tells them."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Iterator

IFF_UP = 0x1
IFF_LOOPBACK = 0x8


class _Entry(ctypes.Structure):
    """struct ifaddrs."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
        ("address", ctypes.c_void_p),
        ("netmask", ctypes.c_void_p),
        ("destination", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


def raw_addresses() -> Iterator[tuple[str, int, bytes | None]]:
    """Name, flags, and the socket address as the system has it."""
    libc = ctypes.CDLL(None, use_errno=True)
    first = ctypes.c_void_p()
    if libc.getifaddrs(ctypes.byref(first)) != 0:
        failure = ctypes.get_errno()
        raise OSError(failure, os.strerror(failure))
    try:
        where = first.value
        while where:
            one = _Entry.from_address(where)
            address = None
            if one.address:
                family = int.from_bytes(ctypes.string_at(one.address, 2), sys.byteorder)
                size = 16 if family == socket.AF_INET else 28 if family == socket.AF_INET6 else 2
                address = ctypes.string_at(one.address, size)
            yield one.name.decode(errors="replace"), one.flags, address
            where = one.next
    finally:
        libc.freeifaddrs(first)


def texts() -> dict[str, list[str]]:
    """Addresses by interface, as people write them."""
    found: dict[str, list[str]] = {}
    for name, _, address in raw_addresses():
        own = found.setdefault(name, [])
        if address is None:
            continue
        family = int.from_bytes(address[:2], sys.byteorder)
        if family == socket.AF_INET:
            own.append(socket.inet_ntop(family, address[4:8]))
        elif family == socket.AF_INET6:
            own.append(socket.inet_ntop(family, address[8:24]))
    return found
