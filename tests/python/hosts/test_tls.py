"""Encryption between hosts: what somebody sees who listens, who is refused, and in which words."""

from __future__ import annotations

import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .support import EXCHANGE, LOCAL, run

#: Sends the pattern, which stands in the environment, by calls of several kinds and lengths.
SPEAK = """
import os
import numpy as np
import unisono

pattern = np.frombuffer(bytes.fromhex(os.environ["PATTERN"]), np.uint8)
with unisono.init() as context:
    world = context.world
    for repeats in (1, 30, 5000):
        data = np.tile(pattern, repeats) if world.rank == 0 else np.zeros(repeats * pattern.size, np.uint8)
        world.bcast(data)
        assert np.array_equal(data, np.tile(pattern, repeats))
        if world.rank == 0:
            world.send(data, 1)
        else:
            got = np.zeros_like(data)
            world.recv(got, 0)
            assert np.array_equal(got, data)
"""


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    path = tmp_path / "exchange.py"
    path.write_text(EXCHANGE)
    return path


@pytest.mark.parametrize("hosts", ["a:2,b,c", "a:2"])
def test_data_between_hosts(exchange: Path, hosts: str) -> None:
    done = run("--hosts", hosts, "--agent", "local", "--tls", exchange, UNISONO_LOG="debug")
    of_rank = {"a:2,b,c": "aabc", "a:2": "aa"}[hosts]
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"right {r} {len(of_rank)} {host}" for r, host in enumerate(of_rank)]
    assert not re.search("[0-9a-f]{32}", done.stdout + done.stderr), "secrets are in no log"


class Ears:
    """Hears what goes over the loopback."""

    def __init__(self, pattern: bytes) -> None:
        self.pattern = pattern
        self.end = secrets.token_bytes(32)
        self.heard = False  #: the pattern
        self.bytes = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.5)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                packet = self._socket.recv(1 << 17)
            except TimeoutError:
                continue
            self.bytes += len(packet)
            self.heard = self.heard or self.pattern in packet
            if self.end in packet:
                return

    def close(self) -> None:
        """Once all was heard that has been said so far."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            while self._thread.is_alive():
                last.sendto(self.end, ("127.0.0.1", 9))
                self._thread.join(0.05)
        self._socket.close()


@contextmanager
def listening(pattern: bytes) -> Iterator[Ears]:
    try:
        ears = Ears(pattern)
    except PermissionError:
        pytest.skip("packets cannot be looked at here (CAP_NET_RAW)")
    try:
        yield ears
    finally:
        ears.close()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "encrypted"])
def test_what_somebody_hears(tmp_path: Path, tls: bool) -> None:
    script = tmp_path / "speak.py"
    script.write_text(SPEAK)
    pattern = secrets.token_bytes(48)
    with listening(pattern) as ears:
        options = ["--hosts", "a,b", "--agent", "local", "--env", f"PATTERN={pattern.hex()}"]
        done = run(*options, *["--tls"] * tls, script)
        assert (done.returncode, done.stderr) == (0, "")
    assert ears.bytes > 2 * 48 * 5000, "it has not heard the job"
    assert ears.heard is not tls


def test_two_opinions(exchange: Path) -> None:
    """The error names both, on every rank."""
    script = exchange.with_name("other.py")
    script.write_text("import os\nif os.environ['UNISONO_RANK'] == '1': os.environ['UNISONO_TLS'] = 'on'\n" + EXCHANGE)
    done = run("--hosts", "a,b", "--agent", "local", script)
    assert done.returncode == 1
    assert re.search(
        "endpoint 0 on [^ ]+ does not encrypt its connections, and endpoint 1 on [^ ]+ encrypts its connections by "
        "TLS: set UNISONO_TLS alike on all ranks",
        done.stderr,
    ), done.stderr


def test_networks_that_encrypt_nothing(exchange: Path) -> None:
    """No rank starts."""
    for transport in ("udp", "ofi,tcp"):
        refused = run(*LOCAL, "--tls", "--transport", transport, exchange)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"{transport.split(',')[0]} encrypts nothing: leave it out of the networks" in refused.stderr
    wrong = run(*LOCAL, "--env", "UNISONO_TLS=yes", exchange)
    assert (wrong.returncode, "UNISONO_TLS is 'yes'; allowed are off, on" in wrong.stderr) == (2, True)


def test_ranks_themselves_refuse_them(exchange: Path) -> None:
    script = exchange.with_name("other.py")
    script.write_text("import os\nos.environ['UNISONO_TLS'] = 'on'\n" + EXCHANGE)
    done = run("--hosts", "a,b", "--agent", "local", "--transport", "udp,tcp", script)
    assert done.returncode == 1
    assert "UNISONO_TRANSPORT has them go by udp, which encrypts nothing" in done.stderr


def test_what_goes_by_tcp_alone(exchange: Path) -> None:
    """Data by UDP, as they are, beside a lifeline that is encrypted."""
    done = run("--hosts", "a,b", "--agent", "local", "--transport", "udp,tcp", "--env", "UNISONO_TLS=tcp", exchange)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


def test_without_openssl(exchange: Path, tmp_path: Path) -> None:
    """What stands in its place is no library; without TLS nobody looks for it."""
    (tmp_path / "libssl.so.3").write_text("none")
    environment = ["--env", f"LD_LIBRARY_PATH={tmp_path}"]
    done = run("--hosts", "a,b", "--agent", "local", *environment, "--tls", exchange)
    assert done.returncode == 1
    assert "OpenSSL 3, which TLS needs, cannot be loaded: " in done.stderr
    assert "Install it (Debian: libssl3), or add its folder to LD_LIBRARY_PATH" in done.stderr
    assert run("--hosts", "a,b", "--agent", "local", *environment, exchange).returncode == 0


def test_who_has_no_tls_loads_no_openssl(tmp_path: Path) -> None:
    script = tmp_path / "maps.py"
    script.write_text(
        "import json, sys\n"
        "sys.modules['ssl'] = None  # Python's own use of it\n"
        "import unisono\n"
        "with unisono.init() as context:\n"
        "    context.world.barrier()\n"
        "    print(json.dumps('libssl' in open('/proc/self/maps').read()))\n"
    )
    for tls in (False, True):
        done = run("--hosts", "a,b", "--agent", "local", *["--tls"] * tls, script)
        assert [json.loads(line) for line in done.stdout.splitlines()] == [tls, tls], done.stderr
