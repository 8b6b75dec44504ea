"""What jobs of several hosts depend on: interfaces, routes, limits of sockets, and what faster networks need.

How many files, and so connections, a process may have open is told with the memory (memory.py).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct

from . import fabric, interfaces, openssl
from .finding import Finding, Root, State, bytes_text

AREA = "network"
MOST_INTERFACES = 16  #: that are shown
LEAST_MTU = 1280  #: with less there is no IPv6
LEAST_WINDOW = 4 << 20  #: bytes; Linux grants 4 MiB for sending and 6 MiB for receiving, if nobody has changed it
UP, GATEWAY = 0x1, 0x2  # flags of a route
IO_URING_SETUP = 425  #: on every architecture


def examine(root: Root) -> list[Finding]:
    """All findings. None is essential: a job of one host needs no network."""
    return [
        *_interfaces(root),
        _routes(root),
        *_buffers(root),
        _io_uring(root),
        _rdma(root),
        fabric.examine(),
        openssl.examine(),
    ]


def _interfaces(root: Root) -> list[Finding]:
    names = [name for name in root.names("/sys/class/net") if root.read(f"/sys/class/net/{name}/mtu") is not None]
    if not names:
        return [Finding(AREA, "interfaces", State.OK, "not shown here")]
    try:
        addresses = interfaces.texts()
    except OSError:
        addresses = {}
    others = [name for name in names if name != "lo"]
    usable = [name for name in others if root.read(f"/sys/class/net/{name}/operstate") not in ("down", "notpresent")]
    found = [_interface(root, name, addresses.get(name, [])) for name in usable[:MOST_INTERFACES]]
    if not usable:
        found.append(
            Finding(
                AREA, "interfaces", State.IMPROVABLE, "none but the loopback is up",
                "jobs run on this machine alone: no other one can be reached from here",
                f"ip link set dev {others[0]} up" if others else "",
            )
        )  # fmt: skip
    if len(usable) > MOST_INTERFACES:
        found.append(Finding(AREA, "interfaces", State.OK, f"and {len(usable) - MOST_INTERFACES} more"))
    return found


def _interface(root: Root, name: str, addresses: list[str]) -> Finding:
    folder = f"/sys/class/net/{name}"
    mtu = root.number(f"{folder}/mtu") or 0
    speed = root.number(f"{folder}/speed") or 0
    value = f"{', '.join(addresses) or 'no address'}; packets of {mtu} bytes (MTU)"
    value += f", {speed / 1000:g} Gb/s" if speed > 0 else ""
    small = mtu < LEAST_MTU
    return Finding(
        AREA, f"interface {name}", State.IMPROVABLE if small else State.OK, value,
        f"packets of less than {LEAST_MTU} bytes cost time, and IPv6 cannot use this interface" if small else "",
        f"ip link set dev {name} mtu 1500" if small else "",
        data={"interface": name, "addresses": addresses, "mtu": mtu, "megabits": max(speed, 0)},
    )  # fmt: skip


def _routes(root: Root) -> Finding:
    """The ways to what is no neighbour."""
    ways = []
    for line in (root.read("/proc/net/route") or "").splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and words[1] == words[7] == "00000000" and int(words[3], 16) & UP:
            gateway = socket.inet_ntop(socket.AF_INET, struct.pack("=I", int(words[2], 16)))
            ways.append({"interface": words[0], "gateway": gateway if int(words[3], 16) & GATEWAY else None})
    for line in (root.read("/proc/net/ipv6_route") or "").splitlines():
        words = line.split()
        if len(words) == 10 and words[0] == 32 * "0" and words[1] == "00" and words[9] != "lo":
            through = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[4]))
            ways.append({"interface": words[9], "gateway": through if int(words[8], 16) & GATEWAY else None})
    texts = [f"{way['interface']}{' through ' + way['gateway'] if way['gateway'] else ''}" for way in ways]
    return Finding(AREA, "default route", State.OK, ", ".join(texts) or "none: neighbours alone are reached",
                   data={"routes": ways})  # fmt: skip


def _buffers(root: Root) -> list[Finding]:
    """What a socket may hold on its way. The kernel gives TCP more as it needs it, up to the third number."""
    found = []
    most: dict[str, int] = {}
    for name in ("tcp_rmem", "tcp_wmem"):
        words = (root.read(f"/proc/sys/net/ipv4/{name}") or "").split()
        if len(words) == 3 and all(word.isdigit() for word in words):
            most[name] = int(words[2])
    if most:
        small = {name: size for name, size in most.items() if size < LEAST_WINDOW}
        texts = [f"{bytes_text(most[name])} to {what}" for name, what in
                 (("tcp_wmem", "send"), ("tcp_rmem", "receive")) if name in most]  # fmt: skip
        settings = " ".join(f"net.ipv4.{name}='4096 131072 {2 * LEAST_WINDOW}'" for name in small)
        found.append(
            Finding(
                AREA, "TCP buffers", State.IMPROVABLE if small else State.OK, f"up to {', '.join(texts)}",
                f"with a round trip of 1 ms a connection reaches {8 * min(small.values()) / 1e6:.3g} Gb/s at most"
                if small else "",
                f"sysctl -w {settings}" if small else "", data=most,
            )
        )  # fmt: skip
    sizes = {name: root.number(f"/proc/sys/net/core/{name}") for name in ("rmem_max", "wmem_max")}
    known = {name: size for name, size in sizes.items() if size is not None}
    if known:
        texts = [f"{bytes_text(known[name])} to {what}" for name, what in
                 (("wmem_max", "send"), ("rmem_max", "receive")) if name in known]  # fmt: skip
        found.append(
            Finding(AREA, "other sockets' buffers", State.OK, f"up to {', '.join(texts)} if asked for", data=known)
        )
    return found


def _io_uring(root: Root) -> Finding:
    """The system call, asked for nothing: whether it is there is told before its arguments are looked at."""
    setting = root.number("/proc/sys/kernel/io_uring_disabled")
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_uint(0), ctypes.c_void_p(None))
    failure = ctypes.get_errno()
    offered = failure in (errno.EFAULT, errno.EINVAL)
    value = "offered" if offered else f"refused ({os.strerror(failure)})"
    if not offered and setting:
        value += f": kernel.io_uring_disabled is {setting}"
    value += "; Unisono does not use it" if offered else "; Unisono does not use it, so nothing is missing"
    return Finding(AREA, "io_uring", State.OK, value, data={"offered": offered, "disabled": setting})


def _rdma(root: Root) -> Finding:
    """Cards that reach memory of other machines."""
    ports = []
    for device in root.names("/sys/class/infiniband"):
        for port in root.names(f"/sys/class/infiniband/{device}/ports"):
            folder = f"/sys/class/infiniband/{device}/ports/{port}"
            state = (root.read(f"{folder}/state") or "?").partition(": ")[2].lower() or "unknown"
            ports.append({"device": device, "port": port, "state": state,
                          "link": root.read(f"{folder}/link_layer") or "?",
                          "rate": root.read(f"{folder}/rate") or "?"})  # fmt: skip
    texts = [f"{one['device']} port {one['port']} ({one['link']}, {one['rate']}, {one['state']})" for one in ports]
    return Finding(AREA, "RDMA devices", State.OK, ", ".join(texts) or "none", data={"ports": ports})
