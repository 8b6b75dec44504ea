"""SMI's files and its rule: the same bytes as its generator writes, and the circle that these have."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path

import pytest
from network_simulation import Packet, Simulation, SmiKernels
from routing_support import smi_torus
from unisono.cli import main
from unisono.errors import InvalidArgumentError
from unisono.routing import programs, proof, report, schemes, smi_files, topology
from unisono.routing.proof import Finding, Queue
from unisono.routing.tables import Tables
from unisono.routing.topology import Port, Topology

# What SMI's generator writes for the eight boards and the two programs below: of all its 65 files, in the order of
# their names, each name, a zero byte, and the content. Taken from a run of it (commit c54d5b2, networkx 3.2.1).
OF_SMI = "d071fe394b5e1ba38f5ea28542afa3cc944826c634f0e3684b953125e0b17e4a"

FIRST = [("pop", 0), ("push", 1), ("pop", 2), ("push", 4), ("pop", 5), ("push", 5), ("push", 6)]
SECOND = [("broadcast", 1), ("pop", 0), ("push", 0), ("reduce", 5), ("gather", 2), ("scatter", 3)]


def program_file(path: Path, operations: list[tuple[str, int]], **more: object) -> Path:
    listed = [{"type": kind, "port": port, "data_type": "int", "args": {}} for kind, port in operations]
    path.write_text(json.dumps({"operations": listed, **more}))
    return path


def torus() -> Topology:
    return topology.parse(smi_torus(), "torus.json")


def found(network: Topology, scheme: str) -> tuple[Tables, Finding]:
    tables = schemes.make(network, programs.of_nodes(network, [], 1), scheme)
    return tables, proof.examine(network, tables)


def test_the_bytes_are_those_of_smi(tmp_path: Path) -> None:
    (tmp_path / "torus.json").write_text(smi_torus(("first", "second", "second")))
    of_nodes = [
        "--program", str(program_file(tmp_path / "first.json", FIRST)),
        "--program", str(program_file(tmp_path / "second.json", SECOND)),
    ]  # fmt: skip
    assert main(["route", str(tmp_path / "torus.json"), "-o", str(tmp_path / "out"), "--scheme", "smi", *of_nodes]) == 1
    names = sorted(p.name for p in (tmp_path / "out").iterdir() if p.name[:4] in ("cks-", "ckr-", "host"))
    assert len(names) == 65
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + (tmp_path / "out" / name).read_bytes())
    assert digest.hexdigest() == OF_SMI


def test_ports_are_dealt_to_kernels_in_turn() -> None:
    """Data first, then control; worked out by hand for seven ports."""
    program = programs.Program("first", tuple(FIRST))
    assert program.ports == 7
    # CKR: data of pop 0, 2, 5; then control, for the credits of push 1, 4, 5, 6.
    assert program.endpoints(4) == {
        (0, "data"): (0, 0), (2, "data"): (1, 0), (5, "data"): (2, 0), (1, "control"): (3, 0),
        (4, "control"): (0, 1), (5, "control"): (1, 1), (6, "control"): (2, 1),
    }  # fmt: skip
    assert program.served("cks", 4) == [
        [(1, "cks_data"), (0, "cks_control")], [(4, "cks_data"), (2, "cks_control")],
        [(5, "cks_data"), (5, "cks_control")], [(6, "cks_data")],
    ]  # fmt: skip
    #                                  port: 0     1     2     3     4     5     6
    assert program.ckr_tables(4)[0] == [4, 0, 0, 3, 1, 0, 0, 0, 0, 5, 2, 1, 0, 2]
    assert program.ckr_tables(4)[2] == [1, 0, 0, 3, 2, 0, 0, 0, 0, 1, 4, 2, 0, 5]
    eager = programs.Program("first", tuple(FIRST), rendezvous=False)
    assert eager.endpoints(4) == {(0, "data"): (0, 0), (2, "data"): (1, 0), (5, "data"): (2, 0)}


def test_tables_of_three_nodes_worked_out_by_hand() -> None:
    network = topology.parse('{"connections": {"y:a:ch2": "z:a:ch1", "z:a:ch3": "x:a:ch0"}}', "three.json")
    assert network.names == ("x:a", "y:a", "z:a")
    expected = {
        (0, 0): [1, 0, 0], (0, 1): [1, 2, 2], (1, 0): [3, 1, 3], (1, 2): [0, 1, 0],
        (2, 0): [4, 2, 1], (2, 1): [4, 0, 1], (2, 2): [4, 3, 1], (2, 3): [0, 3, 1],
    }  # fmt: skip
    for scheme in schemes.SCHEMES:
        tables = schemes.make(network, programs.of_nodes(network, [], 1), scheme)
        for (rank, link), codes in expected.items():
            assert [step.code for step in tables.cks[rank][link][0]] == codes, (scheme, rank, link)


def queue_circle(network: Topology, finding: Finding, ranks: list[int]) -> bool:
    """Whether the links that lead through these ranks wait for each other, with what lies between."""

    def follows(a: Queue) -> set[Queue]:
        seen: set[Queue] = set()
        waiting, ends = [a], set()
        while waiting:
            for there in finding.waits[waiting.pop()]:
                if there.kind == "link":
                    ends.add(there)
                elif there not in seen:
                    seen.add(there)
                    waiting.append(there)
        return ends

    links = [
        {q for q in finding.waits if q.kind == "link" and q.rank == a and network.peers[Port(a, q.link)].rank == b}
        for a, b in itertools.pairwise(ranks)
    ]
    return all(
        any(after in follows(here) for here in these for after in those)
        for these, those in zip(links, links[1:] + links[:1], strict=True)
    )


def test_the_rule_of_smi_has_a_circle_on_its_own_torus() -> None:
    network = torus()
    tables, finding = found(network, "smi")
    assert not finding.faults
    assert queue_circle(network, finding, [2, 0, 1, 3, 2])
    assert report.ranks_of(network, finding.circle) == "0 -> 1 -> 3 -> 2 -> 0"
    lines = report.circle_lines(network, finding.circle, tables.channels)
    assert "link fpga-0006:acl0:ch2 to fpga-0006:acl1:ch3 (rank 0 to 1)" in lines[0]
    assert "fpga-0006:acl1 (rank 1): FIFO CKR_3 to CKS_3" in lines[1]
    assert "fpga-0006:acl1 (rank 1): FIFO CKS_3 to CKS_1" in lines[2]
    assert len(lines) == 12
    ours, proven = found(network, "shortest")
    assert proven.right
    assert ours.channels == 1
    assert (proven.links, proven.circle) == (32, [])


@pytest.mark.parametrize("room", [1, 16])
def test_packets_stop_in_that_circle_and_go_through_with_ours(room: int) -> None:
    network = torus()
    tables, finding = found(network, "smi")
    packets = [Packet(*wait.message) for wait in finding.circle]
    stopped = Simulation(network, tables, room=room)
    assert not stopped.run(packets, 600 * room)
    circle = stopped.stuck()
    wires = [(rank, network.peers[Port(rank, link)].rank) for what, rank, link, _, _ in circle if what == "wire"]
    print("packets wait in", " -> ".join(f"{what} of rank {rank}" for what, rank, *_ in circle))
    assert sorted(wires) == [(0, 1), (1, 3), (2, 0), (3, 2)]
    ours, _ = found(network, "shortest")
    assert Simulation(network, ours, room=room).run(packets, 100 * room)


def test_kernels_that_hold_one_message_wait_for_each_other_on_a_bus_of_three() -> None:
    """Whatever the tables: both ways through the middle lead from one CKS to the other."""
    network = topology.bus(3)
    tables, finding = found(network, "shortest")
    assert finding.right
    kernels = {(w.queue.kind, w.queue.rank, w.queue.link) for w in finding.kernel_circle if w.queue.kind == "cks"}
    assert kernels == {("cks", 1, 0), ("cks", 1, 1)}
    packets = [Packet(0, 0, 2), Packet(2, 1, 0)]
    for room in (1, 16):
        assert not Simulation(network, tables, room=room, serial=True).run(packets, 2000)
        assert Simulation(network, tables, room=room).run(packets, 200)
    two = topology.bus(2)
    tables, finding = found(two, "shortest")
    assert finding.kernel_circle == []
    assert Simulation(two, tables, serial=True).run([Packet(0, k, 1) for k in range(4)] + [Packet(1, 1, 0)], 100)


def test_smis_order_of_reading_does_not_save_its_kernels() -> None:
    """Eight packets in a row, FIFOs of 16: what passes through goes on; with endpoints that send too, all stops."""
    network = topology.bus(3)
    tables, _ = found(network, "shortest")
    through = [Packet(0, 0, 2), Packet(2, 1, 0)]
    own = [Packet(1, 0, 0), Packet(1, 1, 2)]  # each by the other link than its CKS's
    assert SmiKernels(network, tables, through).lives(3000)
    kernels = SmiKernels(network, tables, through + own)
    assert not kernels.lives(3000)
    assert kernels.delivered < 100
    assert Simulation(network, tables, room=16).run(through + own, 500)


# ------------------------------------------------------------------------------------------------ foreign tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of SMI's rule for its torus."""
    network = torus()
    tables, _ = found(network, "smi")
    for name, data in smi_files.encode(network, tables).items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_foreign_tables_are_read_back(folder: Path) -> None:
    network = torus()
    tables, finding = found(network, "smi")
    foreign = smi_files.decode(network, folder)
    assert (foreign.cks, foreign.ckr) == (tables.cks, tables.ckr)
    again = proof.examine(network, foreign)
    assert again.circle == finding.circle
    assert again.hops == finding.hops


def test_foreign_tables_that_do_not_fit_are_refused(folder: Path) -> None:
    network = torus()

    def refused(sentence: str, of: Topology = network) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            smi_files.decode(of, folder)
        assert str(raised.value) == sentence

    refused(f"{folder} has tables of 8 ranks; the topology has 7", topology.without_nodes(network, ["fpga-0009:acl1"]))
    (folder / "cks-rank3-channel1").write_bytes(bytes(7))
    refused(f"{folder / 'cks-rank3-channel1'} has 7 entries; the topology has 8 ranks")
    (folder / "cks-rank3-channel1").write_bytes(bytes(8))
    (folder / "ckr-rank3-channel1").write_bytes(bytes(3))
    refused(f"{folder / 'ckr-rank3-channel1'} has 3 entries; there are two for each port, data and control")
    (folder / "ckr-rank3-channel1").unlink()
    refused(f"{folder / 'ckr-rank3-channel1'} cannot be read: No such file or directory")
    (folder / "ckr-rank3-channel1").write_bytes(bytes(2))
    hosts = (folder / "hostfile").read_text()
    (folder / "hostfile").write_text(hosts.replace("fpga-0007  # acl0", "fpga-0017  # acl0"))
    refused(
        f"{folder / 'hostfile'}, line 3: rank 2 is 'fpga-0017  # acl0, rank2' here, and fpga-0007:acl0 in the topology"
    )
    (folder / "hostfile").write_text(hosts + "fpga-0010  # acl0, rank8\n")
    refused(f"{folder / 'hostfile'} has 9 ranks; the topology has 8")


def test_smi_has_no_virtual_channels() -> None:
    network = topology.bus(5, closed=True)
    tables, _ = found(network, "shortest")
    with pytest.raises(InvalidArgumentError, match="have no virtual channels; these need 2 "):
        smi_files.encode(network, tables)


# ------------------------------------------------------------------------------------------------ programs


def test_descriptions_of_programs_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "p.json"

    def refused(sentence: str) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            programs.load_program(path)
        assert str(raised.value) == sentence.replace("P", str(path), 1)

    path.write_text(smi_torus())
    refused('P describes no program: it has no list of "operations"')
    program_file(path, [("shove", 0)])
    refused(
        "P: 'shove' is no operation; there are push, pop, broadcast, reduce, scatter, gather, allreduce, allgather, "
        "alltoall, barrier"
    )
    program_file(path, [("push", 128)])
    refused("P: 128 is no port of a push; ports are 0 to 127")
    program_file(path, [("push", 3), ("gather", 3)])
    refused("P: two operations of port 3 use cks_data")
    program_file(path, FIRST, max_ranks="many")
    refused("P: \"max_ranks\" is 'many', no number")
    path.write_text("{\n]")
    refused("P, line 2: this is no JSON: Expecting property name enclosed in double quotes")


def test_programs_and_nodes_that_do_not_fit(tmp_path: Path) -> None:
    network = topology.parse(smi_torus(("first.json", "second.json")), "torus.json")
    first = programs.load_program(program_file(tmp_path / "first.json", FIRST))
    with pytest.raises(InvalidArgumentError) as raised:
        programs.of_nodes(network, [first], 1)
    assert str(raised.value) == "the program second.json of fpga-0006:acl1 is not among those given: first"
    few = programs.load_program(program_file(tmp_path / "second.json", SECOND, max_ranks=4))
    with pytest.raises(InvalidArgumentError) as raised:
        programs.of_nodes(network, [first, few], 1)
    assert str(raised.value) == "the program second is built for 4 ranks; the topology has 8"
    with pytest.raises(InvalidArgumentError, match=r"^0 ports were asked for; there may be 1 to 128$"):
        programs.of_nodes(network, [], 0)
    with pytest.raises(InvalidArgumentError) as raised:
        programs.any_program(128).ckr_tables(1)
    assert str(raised.value) == "a CKR would have 256 endpoints; with 1 links it may have 127"
    assert max(map(max, programs.any_program(128).ckr_tables(4))) == 67
