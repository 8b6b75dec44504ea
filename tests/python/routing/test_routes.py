"""Tables of random networks: every message arrives, by a shortest way, and no queue can wait in a circle."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_simulation import Packet, Simulation
from routing_support import Walker, random_topology, topologies
from unisono.errors import InvalidArgumentError
from unisono.routing import own_files, programs, proof, schemes, shortest, smi_files, topology
from unisono.routing.tables import OWN_LINK, Step, Tables
from unisono.routing.topology import Port, Topology


def made(network: Topology, scheme: str = "shortest", channels: int | None = None) -> Tables:
    return schemes.make(network, programs.of_nodes(network, [], 2), scheme, channels)


def written(network: Topology, tables: Tables, folder: Path, smi: bool) -> Walker:
    files = own_files.encode(network, tables)
    if smi:
        files |= smi_files.encode(network, tables)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return Walker(network, folder, smi)


def ends(network: Topology) -> list[tuple[int, int, int]]:
    ranks = range(network.size)
    return [(source, link, target) for source in ranks for link in range(network.links) for target in ranks]


@settings(max_examples=15, deadline=None)
@given(network=topologies())
def test_written_tables_lead_everywhere_by_shortest_ways(network: Topology) -> None:
    tables = made(network)
    finding = proof.examine(network, tables)
    assert finding.right
    far = [network.distances(target) for target in range(network.size)]
    with tempfile.TemporaryDirectory() as folder:
        walker = written(network, tables, Path(folder), smi=tables.channels == 1)
        for source, link, target in ends(network):
            assert walker.hops(source, link, target) == far[target][source] == finding.hops[source, link, target]
        if network.size <= 12:
            assert walker.verdict() == "right"
        again = own_files.decode(network, Path(folder))
        assert (again.cks, again.ckr, again.channels) == (tables.cks, tables.ckr, tables.channels)
        for rank in range(network.size):
            data = (Path(folder) / f"rank{rank}.bin").read_bytes()
            assert own_files.read_image(data) == (rank, tables.cks[rank], tables.ckr[rank])
            assert own_files.from_hex(Path(folder) / f"rank{rank}.hex") == data
        if tables.channels == 1:
            foreign = smi_files.decode(network, Path(folder))
            assert (foreign.cks, foreign.ckr) == (tables.cks, tables.ckr)


@settings(max_examples=20, deadline=None)
@given(network=topologies())
def test_up_and_down_needs_one_channel_in_any_network(network: Topology) -> None:
    tables = made(network, "updown")
    finding = proof.examine(network, tables)
    assert finding.right
    assert tables.channels == 1
    far = [network.distances(target) for target in range(network.size)]
    for source, link, target in ends(network):
        assert finding.hops[source, link, target] >= far[target][source]


@settings(max_examples=10, deadline=None)
@given(network=topologies(most=12, most_links=6), channels=st.integers(2, 4))
def test_more_channels_than_needed_are_of_use_too(network: Topology, channels: int) -> None:
    tables = made(network, channels=channels)
    finding = proof.examine(network, tables)
    assert finding.right
    assert finding.channels <= channels == tables.channels


# ------------------------------------------------------------------------------------------------ the fewest channels


def shortest_ways(network: Topology, source: int, target: int) -> list[tuple[Port, ...]]:
    far = network.distances(target)
    if source == target:
        return [()]
    return [
        (port, *rest)
        for port, peer in sorted(network.peers.items())
        if port.rank == source and far[peer.rank] == far[source] - 1
        for rest in shortest_ways(network, peer.rank, target)
    ]


def one_channel_is_enough(network: Topology, patience: int = 30_000) -> bool | None:
    """Tries all choices of a shortest way for every pair, each by itself; None if these are too many."""
    ranks = range(network.size)
    pairs = [shortest_ways(network, a, b) for a in ranks for b in ranks if a != b]
    pairs = sorted((ways for ways in pairs if len(ways[0]) > 1), key=len)
    after: dict[Port, list[Port]] = {port: [] for port in network.peers}
    left = patience

    def leads(a: Port, b: Port) -> bool:
        seen, waiting = {a}, [a]
        while waiting:
            here = waiting.pop()
            if here == b:
                return True
            waiting += [there for there in after[here] if there not in seen]
            seen.update(after[here])
        return False

    def choose(at: int) -> bool:
        nonlocal left
        if at == len(pairs):
            return True
        for way in pairs[at]:
            left -= 1
            if left < 0:
                raise TimeoutError
            added = []
            fits = True
            for a, b in itertools.pairwise(way):
                fits = not leads(b, a)
                if not fits:
                    break
                after[a].append(b)
                added.append(a)
            if fits and choose(at + 1):
                return True
            for a in reversed(added):
                after[a].pop()
        return False

    try:
        return choose(0)
    except TimeoutError:
        return None


def test_the_fewest_channels_by_exhaustive_search() -> None:
    chance = random.Random(5)
    seen = {1: 0, 2: 0}
    for _ in range(90):
        network = random_topology(chance, chance.randint(3, 7), chance.randint(2, 4), chance.randint(0, 7))
        enough = one_channel_is_enough(network)
        if enough is not None:
            channels = made(network).channels
            assert channels == (1 if enough else 2), network.cables
            seen[channels] += 1
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize(
    ("network", "channels", "mean", "most"),
    [
        (topology.torus([2, 4]), 1, 12 / 7, 3),
        (topology.torus([4, 4]), 1, 32 / 15, 4),
        (topology.bus(8), 1, 3, 7),
        (topology.bus(4, closed=True), 1, 4 / 3, 2),
        (topology.bus(5, closed=True), 2, 1.5, 2),
        (topology.bus(8, closed=True), 2, 16 / 7, 4),
        (topology.torus([2, 2, 2]), 1, 12 / 7, 3),
    ],
    ids=["torus 2x4", "torus 4x4", "bus 8", "ring 4", "ring 5", "ring 8", "cube"],
)
def test_known_networks(network: Topology, channels: int, mean: float, most: int) -> None:
    tables = made(network)
    finding = proof.examine(network, tables)
    assert finding.right
    assert tables.channels == channels
    hops = [count for (source, _, target), count in finding.hops.items() if source != target]
    assert sum(hops) / len(hops) == pytest.approx(mean)
    assert max(hops) == most


def test_a_search_that_takes_steps_back_finds_what_there_is() -> None:
    """The last resort on one channel, which random tries hardly ever leave something to."""
    chance = random.Random(9)
    found = 0
    for _ in range(40):
        network = random_topology(chance, chance.randint(3, 7), 4, chance.randint(0, 6))
        ways = shortest.Ways(network)
        forced = shortest._forced(ways)
        enough = one_channel_is_enough(network)
        if enough is not None:
            assert (forced is not None and shortest._Deep(ways).run(forced) is not None) == enough
            found += enough
    assert found > 10


def test_equally_short_ways_share_the_load() -> None:
    loads = proof.examine(network := topology.torus([2, 4]), made(network)).loads
    assert max(loads.values()) <= 4.0  # 3 if all were alike
    assert sum(loads.values()) == pytest.approx(56 * 12 / 7)


# ------------------------------------------------------------------------------------------------ packets that move


def all_pairs(network: Topology) -> list[Packet]:
    return [Packet(*end) for end in ends(network) if end[0] != end[2]]


@pytest.mark.parametrize("scheme", ["shortest", "updown"])
def test_no_traffic_stops_for_ever(scheme: str) -> None:
    chance = random.Random(2)
    networks = [topology.torus([2, 4]), topology.bus(5, closed=True), topology.bus(6, closed=True)]
    networks += [random_topology(chance, chance.randint(4, 7), 3, chance.randint(2, 5)) for _ in range(4)]
    for seed, network in enumerate(networks):
        tables = made(network, scheme)
        for room in (1, 2):
            assert Simulation(network, tables, room=room, seed=seed).run(all_pairs(network), 60)


def test_packets_stop_in_every_circle_that_is_found_and_nowhere_else() -> None:
    circles = 0
    for seed in range(16):
        chance = random.Random(seed)
        network = random_topology(chance, chance.randint(4, 9), chance.choice((3, 4)), chance.randint(2, 6))
        tables = made(network, "smi")
        circle = proof.examine(network, tables).circle
        if circle:
            packets = [Packet(*wait.message) for wait in circle]
            assert any(not Simulation(network, tables, seed=s).run(packets, 500) for s in range(12)), seed
            circles += 1
        else:
            assert Simulation(network, tables, seed=seed).run(all_pairs(network), 60)
    assert 4 < circles < 16


@settings(max_examples=25, deadline=None)
@given(network=topologies(most=6, most_links=4), data=st.data())
def test_a_changed_entry_is_judged_rightly(network: Topology, data: st.DataObject) -> None:
    """The verdict is that of a walker of its own; what the proof lets pass does not stop, either."""
    tables = made(network)
    rank = data.draw(st.integers(0, network.size - 1))
    link = data.draw(st.integers(0, network.links - 1))
    target = data.draw(st.integers(0, network.size - 1))
    code = data.draw(st.integers(0, network.links) | st.just(15))
    tables.cks[rank][link][0][target] = Step(code, data.draw(st.integers(0, tables.channels)))
    finding = proof.examine(network, tables)
    with tempfile.TemporaryDirectory() as folder:
        verdict = written(network, tables, Path(folder), smi=False).verdict()
    assert ("astray" if finding.faults else "circle" if finding.circle else "right") == verdict
    if finding.right:
        assert Simulation(network, tables, seed=1).run(all_pairs(network), 20)


def test_every_kind_of_wrong_entry_is_named() -> None:
    network = topology.bus(4, closed=True)
    tables = made(network)
    assert tables.channels == 1
    tables.cks[0][3][0][1] = Step(OWN_LINK)
    assert proof.examine(network, tables).faults == [
        "a message from rank 0, CKS_3, to rank 1 is sent out of a link without a cable: at fpga-0000:acl0 CKS_3"
    ]
    tables = made(network)
    tables.cks[0][2][0][1] = Step(7)
    assert "CKS_2, to rank 1 has no way there: the entry is 7" in proof.examine(network, tables).faults[0]
    tables = made(network)
    tables.cks[1][0][0][0] = Step(OWN_LINK)  # away from rank 0; rank 2 sends it back
    tables.cks[1][1][0][0] = tables.cks[1][2][0][0] = tables.cks[1][3][0][0] = Step(2)
    tables.cks[2][1][0][0] = Step(OWN_LINK)
    fault = next(fault for fault in proof.examine(network, tables).faults if "loop" in fault)
    assert "goes in a loop: at fpga-0001:acl0 CKS_0 -> fpga-0002:acl0 CKS_1" in fault
    circles = 0
    tables = made(network)
    for rank, link, target in ends(network):
        entries = tables.cks[rank][link][0]
        before = entries[target]
        for code in range(network.links + 1):
            entries[target] = Step(code)
            circles += bool(proof.examine(network, tables).circle)
        entries[target] = before
        if circles:
            return
    pytest.fail("no changed entry makes a circle")


def test_wrong_entries_of_ports_are_named() -> None:
    network = topology.bus(2)
    right = made(network)
    assert right.ckr[0] == [[4, 2, 1, 3], [1, 2, 4, 3], [1, 4, 2, 3], [1, 3, 2, 4]]

    def arrive(tables: Tables, index: int) -> set[tuple[int, int]]:
        """The endpoints to which a port leads from any CKR; none if it gets lost."""
        found = set()
        for start in range(4):
            here = start
            for _ in range(4):
                code = tables.ckr[0][here][index]
                if code >= 4:
                    found.add((here, code))
                    break
                if code == 0:
                    return set()
                here = [other for other in range(4) if other != here][code - 1]
            else:
                return set()
        return found

    wrong = 0
    for link, index in itertools.product(range(4), range(4)):
        for code in set(range(8)) - {right.ckr[0][link][index]}:
            tables = made(network)
            tables.ckr[0][link][index] = code
            faults = proof.examine(network, tables).faults
            # What leads to the same place by another CKR is as good.
            assert bool(faults) == (arrive(tables, index) != arrive(right, index)), (link, index, code)
            assert all(fault.startswith("fpga-0000:acl0 (rank 0): ") for fault in faults)
            wrong += bool(faults)
    assert wrong > 80


def test_a_cable_from_a_node_to_itself_is_of_no_use_and_does_no_harm() -> None:
    text = '{"connections": {"a:x:ch0": "a:x:ch1", "a:x:ch2": "b:x:ch0", "b:x:ch3": "c:x:ch2"}}'
    network = topology.parse(text, "loop.json")
    for scheme in schemes.SCHEMES:
        finding = proof.examine(network, made(network, scheme))
        assert finding.right, scheme
        assert finding.loads[Port(0, 0)] == finding.loads[Port(0, 1)] == 0
        assert finding.hops[0, 0, 2] == 2


def test_one_node_alone() -> None:
    network = topology.bus(1)
    for scheme in schemes.SCHEMES:
        finding = proof.examine(network, made(network, scheme))
        assert finding.right
        assert finding.hops == {(0, link, 0): 0 for link in range(4)}


def test_a_damaged_image_is_refused() -> None:
    network = topology.bus(3)
    data = own_files.image(made(network), 1)
    assert own_files.read_image(data)[0] == 1
    for at in range(len(data)):
        with pytest.raises(InvalidArgumentError, match=r"^the image is damaged: its check sum is wrong$"):
            own_files.read_image(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
    for wrong in (data[:12], b"", data + bytes(4)):
        with pytest.raises(InvalidArgumentError, match=r"^the image "):
            own_files.read_image(wrong)


def test_large_networks() -> None:
    network = topology.torus([7, 7])
    finding = proof.examine(network, made(network))
    assert finding.right
    assert finding.channels == 2
