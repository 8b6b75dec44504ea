"""`unisono bench --transport`: hosts that share no memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from bench_support import FIELDS, bench, block, lines_of, need_fabric, need_peer
from unisono.bench import network as networks
from unisono.bench import plan, targets
from unisono.bench.machine import placement
from unisono.bench.namespaces import NamespacesError, hosts
from unisono.bench.network import FABRIC, FLOORS, SOCKETS, Network, divide
from unisono.bench.session import Measured
from unisono.bench.statistics import Ratio
from unisono.bench.systems import System
from unisono.bench.targets import Target
from unisono.errors import InvalidArgumentError

BYTES = 1 << 20
CALLS = 8


def loopback(ranks: int) -> Network:
    return Network("tcp", divide(ranks, None))


@contextmanager
def running(name: str, network: Network, folder: Path, *, damage: bool = False) -> Iterator[System]:
    system = System(name, placement(network.ranks), folder, network=network, damage=damage)
    try:
        system.start()
        yield system
    finally:
        system.stop()


def sent(link: str) -> int:
    return int(Path(f"/sys/class/net/{link}/statistics/tx_bytes").read_text())


def test_ranks_are_divided_among_hosts() -> None:
    assert divide(3, None) == (("host0", 1), ("host1", 1), ("host2", 1))
    assert divide(5, 2) == (("host0", 3), ("host1", 2))
    assert not Network("tcp", divide(2, 2)).mixed
    assert Network("tcp", divide(3, 2)).mixed
    for ranks, number in ((2, 3), (4, 1), (4, 0)):
        with pytest.raises(InvalidArgumentError, match=f"{number} hosts were asked for with {ranks} ranks"):
            divide(ranks, number)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_plain_sockets_are_verified(ranks: int, tmp_path: Path) -> None:
    for damage in (False, True):
        with running(SOCKETS, loopback(ranks), tmp_path, damage=damage) as system:
            for op in FLOORS[SOCKETS][:-1]:
                for count, dtype in ((1, "int32"), (5000, "fp32"), (100_003, "fp64"), (6, "int64")):
                    assert block(system, op, count=count, dtype=dtype).verified is not damage, (op, count, dtype)
            assert block(system, "barrier", count=0).verified


def test_bare_libfabric_is_verified(tmp_path: Path) -> None:
    need_fabric()
    for damage in (False, True):
        with running(FABRIC, replace(loopback(3), transport="ofi"), tmp_path, damage=damage) as system:
            for op in FLOORS[FABRIC][:-1]:
                for count, dtype in ((1, "int32"), (5000, "fp32"), (100_003, "fp64")):
                    got = block(system, op, count=count, dtype=dtype, buffers="malloc")
                    assert got.verified is not damage, (op, count, dtype)
            assert block(system, "barrier", count=0).verified


@pytest.mark.parametrize(("transport", "besides"), [("udp", {SOCKETS, "tcp", "lossy"}), ("ofi", {FABRIC, "tcp"})])
def test_other_networks_end_to_end(transport: str, besides: set[str], tmp_path: Path) -> None:
    if transport == "ofi":
        need_fabric()
    file = tmp_path / "figures"
    options = ["--transport", transport, "--op", "stream,bcast", "--sizes", "64K", "--peers", "none", "--quick"]
    done = bench(*options, "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {(line["op"], line["system"]): line for line in lines_of(file) if line["op"] != "cache_line"}
    assert {system for op, system in lines if op == "stream"} == besides | {"unisono"}
    assert all(set(line) == FIELDS and line["verified"] for line in lines.values())
    ours = lines["stream", "unisono"]
    assert (ours["network"], ours["hosts"], ours["link"]) == (transport, 2, "loopback")
    assert ours["limit_ratio"] > 0
    assert set(ours["ratio"]) == besides - {SOCKETS, FABRIC}
    assert lines["stream", "tcp"]["network"] == "tcp"
    assert lines["bcast", "unisono"]["limit_ratio"] is None
    assert ("x bare" if transport == "ofi" else "x raw") in done.stdout


def test_calls_that_a_switch_carries(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    options = ["--transport", "udp", "--ranks", "3", "--op", "allreduce,barrier", "--sizes", "64K", "--peers", "none"]
    done = bench(*options, "--switch", "--quick", "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {(line["op"], line["system"]): line for line in lines_of(file) if line["op"] != "cache_line"}
    carried = {"switch", "switch-0.1%", "switch-1%"}
    for op in ("allreduce", "barrier"):
        assert {system for of, system in lines if of == op} == carried | {"unisono", SOCKETS, "tcp", "lossy"}
        assert carried < set(lines[op, "unisono"]["ratio"])
    assert all(set(line) == FIELDS and line["verified"] for line in lines.values())


@pytest.mark.parametrize("options", [["--switch"], ["--switch", "--transport", "tcp", "--hosts", "2"]])
def test_switches_that_cannot_be_measured(options: list[str]) -> None:
    done = bench(*options)
    assert done.returncode == 2
    assert "--switch" in done.stderr


def test_what_plain_sockets_do_not_have(tmp_path: Path) -> None:
    system = System(SOCKETS, placement(2), tmp_path, network=loopback(2))
    assert system.offers("stream")
    assert not system.offers("bcast")


@pytest.mark.parametrize("name", ["unisono", SOCKETS, "openmpi", "mpich"])
def test_every_byte_goes_over_the_network(name: str, tmp_path: Path) -> None:
    if name in plan.PEERS:
        need_peer(name)
    with running(name, loopback(2), tmp_path) as system:
        block(system, "barrier", count=0)
        before = sent("lo")
        assert block(system, "stream", count=BYTES // 4, calls=CALLS, warmup=1, buffers="malloc").verified
        assert sent("lo") - before > CALLS * plan.FLIGHTS * BYTES


def test_end_to_end(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    done = bench(
        "--transport", "tcp", "--ranks", "2,3", "--op", "stream,allreduce,bcast,inflight", "--sizes", "64K",
        "--peers", "none", "--json", file,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = lines_of(file)
    assert all(set(line) == FIELDS and line["verified"] for line in lines)
    ours = {(line["op"], line["ranks"]): line for line in lines if line["system"] == "unisono"}
    assert len(ours) == 8
    for (op, ranks), line in ours.items():
        assert (line["network"], line["hosts"], line["link"]) == ("tcp", ranks, "loopback")
        assert (line["limit_ratio"] is None) == (op == "bcast")
    assert [line["op"] for line in lines if line["system"] == SOCKETS] == 2 * ["stream", "allreduce", "inflight"]
    assert "tcp over the loopback of this machine; 3 hosts (host0:1, host1:1, host2:1)" in done.stdout
    assert "x raw" in done.stdout


def test_two_hosts_with_a_cable(tmp_path: Path) -> None:
    try:
        with hosts("tcp", 4, 2, tmp_path) as network:
            assert network.mixed
    except NamespacesError as failure:
        pytest.skip(f"network namespaces cannot be made here: {failure}")
    file = tmp_path / "figures"
    options = ["--transport", "tcp", "--hosts", 2, "--ranks", 4, "--op", "allreduce", "--sizes", "1K"]
    done = bench(*options, "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line["system"]: line for line in lines_of(file) if line["op"] == "allreduce"}
    assert {"unisono", "flat", SOCKETS} <= set(lines)
    assert all((line["hosts"], line["link"], line["verified"]) == (2, "veth", True) for line in lines.values())
    assert lines["unisono"]["ratio"]["flat"] > 0
    assert "mpich" not in lines
    made = [path for path in Path("/run/netns").iterdir() if path.name.startswith("unb")]
    assert not [path for path in made if path.name.startswith(networks.prefix_of_names())]


def test_a_long_cable_takes_its_time_and_loses_nothing(tmp_path: Path) -> None:
    try:
        with hosts("tcp", 2, 2, tmp_path, round_trip_ms=8) as network, running(SOCKETS, network, tmp_path) as system:
            measured = block(system, "pingpong", calls=7, buffers="malloc")
            assert measured.verified
            assert measured.seconds >= 7 * 0.008, "a round trip each"
    except NamespacesError as failure:
        pytest.skip(f"there can be no long cable here: {failure}")
    file = tmp_path / "figures"
    options = ["--transport", "tcp", "--hosts", 2, "--round-trip", 2, "--op", "stream", "--sizes", "64K", "--quick"]
    done = bench(*options, "--peers", "none", "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a cable with a round trip of 2 ms" in " ".join(done.stdout.split())
    lines = {line["system"]: line for line in lines_of(file) if line["op"] == "stream"}
    assert {"unisono", SOCKETS} <= set(lines)
    for line in lines.values():
        assert (line["link"], line["round_trip_ms"], line["verified"]) == ("tun", 2.0, True)


@pytest.mark.parametrize("options", [["--hosts", 3, "--ranks", 3], [], ["--hosts", 2, "--round-trip", 0]])
def test_a_long_cable_joins_two_hosts(options: list[object]) -> None:
    done = bench("--transport", "tcp", "--round-trip", 5, *options)
    assert done.returncode != 0
    assert "--round-trip takes 0.05 to 1000 milliseconds, and goes with --hosts 2" in " ".join(done.stderr.split())


def test_hosts_that_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network("tcp", divide(4, 2))
    beside, unfit = networks.besides(network, "c")
    assert list(beside) == [SOCKETS]
    assert set(unfit) == {"openmpi", "mpi4py", "mpich"}
    assert networks.besides(Network("udp", divide(2, None)), "c")[0].keys() == {SOCKETS, "tcp", "lossy"}
    assert networks.besides(Network("ofi", divide(2, None)), "c")[0].keys() == {FABRIC, "tcp"}
    assert networks.besides(Network("ofi", divide(2, None)), "python")[0].keys() == {"tcp"}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NamespacesError, match="there is no program ip"), hosts("tcp", 2, 2, tmp_path):
        pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--transport", "carrier-pigeon"], "transport 'carrier-pigeon' was given, and this Unisono has tcp"),
        (["--hosts", "2"], "--hosts goes with --transport"),
        (["--targets"], "--targets goes with --transport"),
        (["--transport", "tcp", "--targets", "--ranks", "7"], "there are none for tcp with a host for each rank and 7"),
        (["--transport", "tcp", "--hosts", "3"], "3 hosts were asked for with 2 ranks"),
        (["--transport", "tcp", "--hosts", "2", "--ranks", "4", "--op", "stream"], "ranks 0 and 1, which are on one"),
        (["--ranks", "2,two"], "--ranks 2,two was given"),
        (["--ranks", "2,3", "--plot", "file"], "--plot draws one number of ranks"),
    ],
)
def test_what_does_not_go_together(options: list[str], words: str) -> None:
    done = bench("--peers", "none", *options)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr


def test_targets_of_networks() -> None:
    goals = targets.load()
    wanted = targets.wanted(goals, "tcp", divided=False)
    assert set(wanted) == {2, 4}
    assert ("inflight", 4) in wanted[2]
    assert ("pingpong", 4) not in wanted[4]
    assert set(targets.wanted(goals, "tcp", divided=True)) == {8}
    assert set(targets.wanted(goals, "udp", divided=False)[2]) == {("pingpong", 1 << 20), ("stream", 1 << 20)}
    assert ("stream", 4 << 20) in targets.wanted(goals, "ofi", divided=False)[2]

    own = [goal for goal in goals if goal.network == "tcp" and "allreduce" in goal.ops and goal.hosts is None]
    assert own[0].is_over(loopback(2))
    assert not own[0].is_over(None)
    assert not own[0].is_over(Network("udp", divide(2, None)))
    assert not own[0].is_over(Network("tcp", divide(4, 2)))


def test_what_is_left_of_udp_with_losses_is_at_least_so_much() -> None:
    cell = plan.Cell("stream", BYTES, "fp32", "malloc", 2, network=Network("udp", divide(2, None)))
    measured = Measured("unisono", cell)
    target = Target("udp", ("stream",), BYTES, BYTES, network="udp", ranks=(2,), plain=1.667, lossy=0.5)
    assert target.applies(measured, placement(2))
    for plain, lossy, met in ((1.5, 0.6, True), (1.5, 0.4, False), (1.8, 0.6, False)):
        measured.ratios = {"tcp": Ratio(plain, plain, plain), "lossy": Ratio(lossy, lossy, lossy)}
        assert target.is_met(measured) is met
    measured.ratios.pop("lossy")
    assert target.is_met(measured) is False, "one bound is missed, whatever the other one is"
