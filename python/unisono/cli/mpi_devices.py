"""Devices of simulated hardware for programs of MPI: `unisono mpirun --platform rtl`.

Ranks of MPI are children of their own launcher, so they inherit no descriptors from this process. Each asks for the
socket of its node at an abstract address that only this user's processes are answered at.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO

from .cluster import Cluster, ClusterError, ClusterOptions

_SECONDS = 10.0  #: for a rank to say which one it is


class DeviceError(Exception):
    """There are no devices, and why."""


def ranks_of(words: Sequence[str]) -> int:
    """How many ranks the words of a launcher ask for. Raises DeviceError."""
    for option, value in itertools.pairwise(words):
        if option in ("-n", "-np", "--np", "-c") and value.isdigit():
            return int(value)
    raise DeviceError("--platform rtl needs a number of ranks among the launcher's options: -n 2")


def _user_of(connection: socket.socket) -> int:
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return int(user)


def _hand_out(listener: socket.socket, cluster: Cluster, ranks: int) -> None:
    """Gives each rank its descriptor, once, until the listener is closed."""
    left = set(range(ranks))
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_SECONDS)
            said = connection.recv(4, socket.MSG_WAITALL)
            rank = struct.unpack("I", said)[0] if len(said) == 4 else ranks
            if _user_of(connection) != os.getuid() or rank not in left:
                continue
            left.remove(rank)
            socket.send_fds(connection, [b"\0"], [cluster.descriptor(rank)])
            cluster.taken(rank)


def _copy(source: IO[bytes]) -> None:
    """What the cluster says goes to standard error."""
    shutil.copyfileobj(source, sys.stderr.buffer)
    sys.stderr.flush()


@contextlib.contextmanager
def devices(platform: str, words: Sequence[str]) -> Iterator[dict[str, str]]:
    """The variables that ranks need for a platform, and its devices while the context lasts. Raises DeviceError."""
    if platform != "rtl":
        yield {"UNISONO_PLATFORM": platform}
        return
    ranks = ranks_of(words)
    try:
        cluster = Cluster(ranks, ClusterOptions())
        cluster.start(lambda: None)
    except ClusterError as error:
        raise DeviceError(str(error)) from error
    name = f"unisono-devices-{os.getpid()}-{secrets.token_hex(8)}"
    threading.Thread(target=_copy, args=(cluster.output,), daemon=True).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind("\0" + name)
        listener.listen(ranks)
        threading.Thread(target=_hand_out, args=(listener, cluster, ranks), daemon=True).start()
        try:
            yield cluster.environment | {"UNISONO_PLATFORM": platform, "UNISONO_DEVICE_AT": name}
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            cluster.finish()
    if cluster.fault is not None:
        print(f"unisono mpirun: {cluster.fault}", file=sys.stderr)
