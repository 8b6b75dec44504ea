"""`unisono doctor` on networks: machines made of files, and limits that are really set."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import pytest
from unisono.machine import fabric, networks, openssl
from unisono.machine.finding import Finding, Root, State

from .conftest import sandboxed
from .test_doctor import named

ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"


@pytest.fixture
def machine(tmp_path: Path) -> Root:
    return Root(str(tmp_path))


def write(root: Root, name: str, text: str) -> None:
    place = root.at(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")


def interface(root: Root, name: str, mtu: int, state: str, speed: int | None = None) -> None:
    write(root, f"/sys/class/net/{name}/mtu", str(mtu))
    write(root, f"/sys/class/net/{name}/operstate", state)
    if speed is not None:
        write(root, f"/sys/class/net/{name}/speed", str(speed))


def test_interfaces_that_are_up(machine: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks.interfaces, "texts", lambda: {"ib0": ["10.0.0.1", "fd00::1"], "lo": ["127.0.0.1"]})
    interface(machine, "lo", 65536, "unknown")
    interface(machine, "ib0", 9000, "up", 100_000)
    interface(machine, "tun0", 600, "unknown", -1)
    interface(machine, "eth7", 1500, "down")
    found = networks.examine(machine)
    fast = named(found, "interface ib0")
    assert (fast.state, fast.value) == (State.OK, "10.0.0.1, fd00::1; packets of 9000 bytes (MTU), 100 Gb/s")
    assert fast.data == {"interface": "ib0", "addresses": ["10.0.0.1", "fd00::1"], "mtu": 9000, "megabits": 100_000}
    small = named(found, "interface tun0")
    assert (small.state, small.value) == (State.IMPROVABLE, "no address; packets of 600 bytes (MTU)")
    assert small.remedy == "ip link set dev tun0 mtu 1500"
    assert not [finding for finding in found if "eth7" in finding.name or "lo" in finding.name.split()]


def test_a_machine_by_itself(machine: Root) -> None:
    interface(machine, "lo", 65536, "unknown")
    interface(machine, "eth0", 1500, "down")
    alone = named(networks.examine(machine), "interfaces")
    assert (alone.state, alone.remedy) == (State.IMPROVABLE, "ip link set dev eth0 up")
    assert not alone.essential


def test_many_interfaces(machine: Root) -> None:
    for number in range(40):
        interface(machine, f"veth{number}", 1500, "up")
    found = networks.examine(machine)
    assert named(found, "interfaces").value == "and 24 more"
    assert sum(finding.name.startswith("interface veth") for finding in found) == 16


def test_routes(machine: Root) -> None:
    assert named(networks.examine(machine), "default route").value == "none: neighbours alone are reached"
    own = "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    write(machine, "/proc/net/route", f"{ROUTES}eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n{own}")
    nowhere = f"{32 * '0'} 00 {32 * '0'} 00 {32 * '0'} ffffffff 00000001 00000000 00200200       lo"
    other = f"{32 * '0'} 00 {32 * '0'} 00 fd00{27 * '0'}1 00000400 00000003 00000000 00000003     eth1"
    write(machine, "/proc/net/ipv6_route", f"{nowhere}\n{other}")
    route = named(networks.examine(machine), "default route")
    assert route.value == "eth0 through 192.0.2.1, eth1 through fd00::1"
    assert route.data["routes"][1] == {"interface": "eth1", "gateway": "fd00::1"}


@pytest.mark.parametrize(
    ("sent", "received", "state"),
    [(4 << 20, 6 << 20, State.OK), (4 << 20, 1 << 20, State.IMPROVABLE), (64 << 10, 64 << 10, State.IMPROVABLE)],
)
def test_buffers_of_sockets(machine: Root, sent: int, received: int, state: State) -> None:
    write(machine, "/proc/sys/net/ipv4/tcp_wmem", f"4096 16384 {sent}")
    write(machine, "/proc/sys/net/ipv4/tcp_rmem", f"4096\t131072\t{received}")
    write(machine, "/proc/sys/net/core/rmem_max", "212992")
    found = networks.examine(machine)
    buffers = named(found, "TCP buffers")
    assert buffers.state is state
    assert buffers.data == {"tcp_rmem": received, "tcp_wmem": sent}
    if state is State.OK:
        assert (buffers.effect, buffers.remedy) == ("", "")
    else:
        assert "Gb/s at most" in buffers.effect
        assert buffers.remedy.startswith("sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'")
        assert ("tcp_wmem" in buffers.remedy) == (sent < 4 << 20)
    assert named(found, "other sockets' buffers").value == "up to 208 KiB to receive if asked for"


def test_rdma_devices(machine: Root) -> None:
    assert named(networks.examine(machine), "RDMA devices").value == "none"
    folder = "/sys/class/infiniband/mlx5_0/ports/1"
    for name, text in (("state", "4: ACTIVE"), ("rate", "200 Gb/sec (4X HDR)"), ("link_layer", "InfiniBand")):
        write(machine, f"{folder}/{name}", text)
    device = named(networks.examine(machine), "RDMA devices")
    assert device.value == "mlx5_0 port 1 (InfiniBand, 200 Gb/sec (4X HDR), active)"


def test_nothing_is_shown(machine: Root) -> None:
    found = networks.examine(machine)
    assert named(found, "interfaces").value == "not shown here"
    assert not [finding for finding in found if finding.state is State.MISSING or finding.essential]
    assert not [finding for finding in found if "buffers" in finding.name]


def test_without_libfabric(machine: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "LIBRARY", "libfabric-that-is-not-there.so")
    found = named(networks.examine(machine), "libfabric")
    assert (found.state, found.value.split(";")[0]) == (State.OK, "not installed")


def test_with_libfabric(machine: Root) -> None:
    try:
        ctypes.CDLL(fabric.LIBRARY)
    except OSError:
        pytest.skip("libfabric is not installed")
    found = named(networks.examine(machine), "libfabric")
    assert "tcp" in str(found.data["providers"]), "every build of it has it"


def test_without_openssl(machine: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssl, "LIBRARY", "libssl-that-is-not-there.so")
    found = named(networks.examine(machine), "TLS")
    assert (found.state, found.value.split(";")[0]) == (State.OK, "no OpenSSL 3")


def test_with_openssl(machine: Root) -> None:
    found = named(networks.examine(machine), "TLS")
    assert found.value.startswith("OpenSSL 3"), "the build installs it"


def test_this_machine() -> None:
    done = sandboxed([], [sys.executable, "-m", "unisono", "doctor", "--json"])
    assert done.returncode == 0, done.stderr
    found = [Finding(**finding) for finding in json.loads(done.stdout)["findings"]]
    assert named(found, "io_uring").value.startswith(("offered", "refused"))
    assert [finding for finding in found if finding.name.startswith("interface")]
