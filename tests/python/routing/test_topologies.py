"""Topology files: what is read, what is refused and with which sentence, what is generated and cut."""

from __future__ import annotations

import json

import pytest
from routing_support import smi_torus
from unisono.errors import InvalidArgumentError
from unisono.routing import topology
from unisono.routing.topology import Port, Topology

PAIR = '{"fpgas": {"a:x": "p", "b:x": "p"},\n "connections": {\n  "a:x:ch0": "b:x:ch1"}}'


def test_ranks_are_numbered_by_name() -> None:
    network = topology.parse(smi_torus(), "t")
    assert network.names[:3] == ("fpga-0006:acl0", "fpga-0006:acl1", "fpga-0007:acl0")
    assert (network.size, network.links, len(network.cables)) == (8, 4, 16)
    assert network.peers[Port(0, 0)] == Port(6, 1)
    assert network.peers[Port(6, 1)] == Port(0, 0)
    assert network.programs == ("stencil",) * 8


def test_forms_that_smi_takes() -> None:
    """Without programs; links by any name that ends with their number; nodes of other names than SMI's."""
    network = topology.parse('{"connections": {"h2:b:qsfp3": "h10:b:7"}, "more": [1]}', "t")
    assert network.names == ("h10:b", "h2:b")
    assert network.peers == {Port(1, 3): Port(0, 7), Port(0, 7): Port(1, 3)}
    assert network.links == 8
    assert topology.parse('{"fpgas": {"a:x": "p"}, "connections": {}}', "t").size == 1
    assert topology.parse(PAIR, "t", 2).links == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"fpgas": {},\n "connections": {\n"a:x:ch0"}}', "t, line 3: this is no JSON: Expecting ':' delimiter"),
        ("[" * 100_000, "t: this is no topology: its lists stand within one another"),
        ("[]", 't: a topology is an object with "fpgas" and "connections"'),
        ("{}", 't: there are no "connections"'),
        ('{"connections": {}}', "t: there are no nodes"),
        ('{"connections": []}', 't, line 1: "connections" is no object'),
        ('{"connections": {},\n "connections": {}}', 't, line 2: "connections" stands there twice'),
        ('{"connections": {"a:ch0": "b:x:ch0"}}',
         't, line 1: "a:ch0" names no port; a port is host:board:link, as fpga-0001:acl0:ch0'),
        ('{"connections": {"a:x:ch": "b:x:ch0"}}',
         't, line 1: "a:x:ch" names no port; a port is host:board:link, as fpga-0001:acl0:ch0'),
        ('{"connections": {"a:x:ch0": 3}}',
         't: "3" names no port; a port is host:board:link, as fpga-0001:acl0:ch0'),
        ('{"connections": {"a:x:ch8": "b:x:ch0"}}',
         "t, line 1: a:x:ch8 is beyond the last link; a node has at most 8, ch0 to ch7"),
        ('{"connections": {"a:x:ch0": "b:x:ch0",\n"a:x:ch0": "c:x:ch0"}}',
         "t, line 2: a:x:ch0 is used twice; its cable stands in line 1"),
        ('{"connections": {\n"a:x:ch0": "b:x:ch0",\n\n"b:x:ch0": "a:x:ch0"}}',
         "t, line 4: b:x:ch0 is used twice; its cable stands in line 2"),
        ('{"connections": {"a:x:ch0": "b:x:ch0",\n"c:x:ch0": "b:x:ch0"}}',
         "t, line 2: b:x:ch0 is used twice; its cable stands in line 1"),
        ('{"connections": {\n"a:x:ch0": "a:x:ch0"}}', "t, line 2: a:x:ch0 is cabled to itself"),
        ('{"fpgas": {"a:x": "p"},\n"connections": {\n"a:x:ch0": "b:x:ch0"}}',
         't, line 3: b:x has a cable, but "fpgas" does not list it'),
        ('{"fpgas": {"a:x": "p",\n"a:x": "q"}, "connections": {}}', 't, line 2: a:x is listed twice under "fpgas"'),
        ('{"fpgas": {"a": "p"}, "connections": {}}',
         't, line 1: "a" names no node; a node is host:board, as fpga-0001:acl0'),
        ('{"fpgas": {"a:x": 3}, "connections": {}}', "t, line 1: the program of a:x is no name"),
    ],
)  # fmt: skip
def test_files_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        topology.parse(text, "t")
    assert str(raised.value) == sentence


def test_links_that_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^9 links a node were asked for; a node has 1 to 8$"):
        topology.parse(PAIR, "t", 9)
    with pytest.raises(InvalidArgumentError) as raised:
        topology.parse(PAIR, "t", 1)
    assert str(raised.value) == "t, line 3: b:x:ch1 is beyond the last link; a node has 1, ch0 to ch0"


def refused(network: Topology, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        topology.check_connected(network)
    assert str(raised.value) == sentence


def test_a_disconnected_topology_is_refused() -> None:
    text = '{"connections": {"a:x:ch0": "b:x:ch0", "c:x:ch0": "d:x:ch0", "c:x:ch1": "e:x:ch0"}}'
    refused(
        topology.parse(text, "t"),
        "the topology is disconnected: no cables lead from a:x to c:x; 3 of 5 nodes are cut off from a:x",
    )
    text = '{"fpgas": {"a:x": "p", "b:x": "p", "c:x": "p"}, "connections": {"a:x:ch0": "b:x:ch0"}}'
    refused(topology.parse(text, "t"), "the topology is disconnected: c:x has no cable")
    text = '{"fpgas": {"a:x": "p", "b:x": "p", "c:x": "p"}, "connections": {"b:x:ch0": "c:x:ch0"}}'
    refused(topology.parse(text, "t"), "the topology is disconnected: a:x has no cable")
    cables = {f"n{number}:x:ch0": f"n{number + 1}:x:ch1" for number in range(128)}
    refused(
        topology.parse(json.dumps({"connections": cables}), "t"), "the topology has 129 nodes; there may be 128"
    )  # fmt: skip


def test_cables_that_are_cut() -> None:
    network = topology.parse(smi_torus(), "t")
    cable = "fpga-0006:acl0:ch0-fpga-0009:acl0:ch1"
    for word in (cable, "fpga-0009:acl0:ch1-fpga-0006:acl0:ch0"):
        cut = topology.without_cables(network, [word])
        assert len(cut.cables) == 15
        assert Port(0, 0) not in cut.peers
        assert cut.names == network.names
    for words, sentence in (
        ([cable, cable], f"there is no cable {cable}; a cable is named by both its ports, as "
         "fpga-0006:acl0:ch2-fpga-0006:acl1:ch3"),
        (["fpga-0006:acl0:ch0-fpga-0009:acl1:ch1"], "there is no cable fpga-0006:acl0:ch0-fpga-0009:acl1:ch1: "
         "the one of fpga-0006:acl0:ch0 leads to fpga-0009:acl0:ch1"),
        (["nothing"], "there is no cable nothing; a cable is named by both its ports, as "
         "fpga-0006:acl0:ch2-fpga-0006:acl1:ch3"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError) as raised:
            topology.without_cables(network, words)
        assert str(raised.value) == sentence


def test_nodes_that_are_left_out() -> None:
    network = topology.bus(4)
    assert topology.first_ranks(network, 3) == topology.bus(3)
    left = topology.without_nodes(network, ["fpga-0000:acl0"])
    assert left.names == ("fpga-0001:acl0", "fpga-0002:acl0", "fpga-0003:acl0")
    assert left.cables == ((Port(0, 0), Port(1, 1)), (Port(1, 0), Port(2, 1)))
    for count in (0, 5):
        with pytest.raises(InvalidArgumentError, match=f"^{count} ranks were asked for; the topology has 4$"):
            topology.first_ranks(network, count)
    with pytest.raises(InvalidArgumentError, match=r"^there is no node x to leave out; nodes are fpga-0000:acl0, "):
        topology.without_nodes(network, ["x"])
    with pytest.raises(InvalidArgumentError, match=r"^no node is left$"):
        topology.without_nodes(topology.bus(1), ["fpga-0000:acl0"])


def test_a_torus_of_two_by_four_is_that_of_smi() -> None:
    made = topology.torus([2, 4])
    smi = topology.parse(smi_torus(), "t")
    assert made.peers == smi.peers
    assert made.names[:3] == ("fpga-0000:acl0", "fpga-0000:acl1", "fpga-0001:acl0")


@pytest.mark.parametrize("sides", [[2, 4], [4, 4], [3, 5], [6], [2, 2, 2], [3, 1, 4], [12, 2], [2, 2, 2, 2]])
def test_every_torus_is_regular(sides: list[int]) -> None:
    network = topology.torus(sides)
    degree = 2 * sum(side > 1 for side in sides)
    assert len(network.peers) == degree * network.size
    assert len(network.cables) * 2 == len(network.peers)
    topology.check_connected(network)
    assert max(max(network.distances(target)) for target in range(network.size)) == sum(side // 2 for side in sides)
    assert topology.parse(topology.to_text(network), "t").peers == network.peers


def test_generated_rows() -> None:
    assert topology.bus(3).cables == ((Port(0, 0), Port(1, 1)), (Port(1, 0), Port(2, 1)))
    assert topology.bus(3, closed=True).cables[-1] == (Port(2, 0), Port(0, 1))
    for shape, sentence in (
        (lambda: topology.bus(2, closed=True), "a ring of 2 nodes was asked for; it has 3 to 128"),
        (lambda: topology.bus(0), "a bus of 0 nodes was asked for; it has 1 to 128"),
        (lambda: topology.torus([16, 16]), "a torus of 16x16 was asked for; it has 1 to 4 sides and 2 to 128 nodes"),
        (lambda: topology.torus([2] * 5), "a torus of 2x2x2x2x2 was asked for; it has 1 to 4 sides and 2 to 128 nodes"),
    ):
        with pytest.raises(InvalidArgumentError) as raised:
            shape()
        assert str(raised.value) == sentence
