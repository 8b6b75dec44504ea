"""Jobs whose network is cut: the larger part goes on, the others are told to end. Hosts are network namespaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .support import run
from .test_namespaces import LINK, Pair, pair  # noqa: F401  (a fixture)

# Rank 0 cuts the cable in the third step: before its call, or in the middle of it. All ranks say what became of them,
# and when, and what carried their data to the other host.
STEPS = """
import json, subprocess, sys, threading, time
import numpy as np
import unisono

commands = json.loads(sys.argv[1])
STEPS, CUT_AT, COUNT = 5, 2, commands["count"]
cutter = threading.Timer(commands["into"], lambda: cut("cut"))

def cut(which):
    for command in commands[which]:
        subprocess.run(command, check=True)
    return time.time()

with unisono.init(timeout=40) as context:
    comm = world = context.world
    rank, step, sums, begin = world.rank, 0, [], None
    said = {"rank": rank}
    try:
        while step < STEPS:
            if step == CUT_AT and comm is world:
                if rank == 0 and begin is None:
                    said["by"] = [line.split()[0] for line in context.dump().splitlines() if "carries data" in line]
                    cutter.start()
                    if not commands["into"]:
                        cutter.join()
                begin = begin or time.time()
            if step == CUT_AT + 1 and rank == 0:
                cutter.join()  # a call that was over sooner is not the last one
            mine = np.arange(COUNT, dtype=np.int64) * (rank + 1) + 1000 * step + rank
            try:
                total = comm.allreduce(mine)
                members = comm.allgather(np.array([rank])).ravel()
                good = True
            except (unisono.PeerDeadError, unisono.RevokedError) as error:
                said["noticed"] = str(error)
                comm.revoke("somebody is missing")
                good = False
            if comm.agree(good):
                expected = sum(np.arange(COUNT, dtype=np.int64) * (r + 1) + 1000 * step + r for r in members.tolist())
                assert np.array_equal(total, expected), (step, members)
                sums.append(int(total.sum()))
                step += 1
            else:
                comm = comm.shrink()
                said["took"] = time.time() - begin
                if rank == 0 and commands["heal"]:
                    time.sleep(commands["after"])
                    cut("heal")
        said["members"] = members.tolist()
        said["sums"] = sums
    except unisono.PartitionedError as error:
        said["took"] = time.time() - begin
        said["partitioned"] = str(error)
        said["code"] = error.code.name
        again = []
        for call in (lambda: world.agree(True), world.shrink, lambda: world.agree(1)):
            try:
                call()
            except unisono.PartitionedError:
                again.append(time.time() - begin)
        said["again"] = again
        raise
    finally:
        print(json.dumps(said), flush=True)
"""

WRONG = "02:00:00:00:00:99"  # nobody's: what is sent there is lost without a word


def lose(cable: Pair, host: int) -> list[str]:
    """The command after which whatever a host sends to the other is lost."""
    neighbour = f"10.77.0.{2 - host}"
    words = ["neigh", "replace", neighbour, "lladdr", WRONG, "dev", LINK, "nud", "permanent"]
    return ["ip", "netns", "exec", cable.names[host], "ip", *words]


def find(cable: Pair, host: int) -> list[str]:
    words = ["neigh", "del", f"10.77.0.{2 - host}", "dev", LINK]
    return ["ip", "netns", "exec", cable.names[host], "ip", *words]


def job(
    cable: Pair, folder: Path, counts: tuple[int, int], network: str, **commands: object
) -> dict[int, dict[str, object]]:
    script = folder / "steps.py"
    script.write_text(STEPS)
    hosts = ",".join(f"{name}:{count}" for name, count in zip(cable.names, counts, strict=True))
    done = run(
        "--hosts", hosts, "--agent", "ip netns exec {host}", "--keep-going", "--timeout", 80,
        "--transport", network.split()[0], script, json.dumps(USUAL | commands),
        UNISONO_UDP_IMPAIR=LOSSY if network == "udp lossy" else "",
    )  # fmt: skip
    said = {entry["rank"]: entry for entry in map(json.loads, done.stdout.splitlines())}
    assert sorted(said) == list(range(sum(counts))), done.stderr
    assert said[0]["by"] == [network.split()[0]]
    # The launcher lets the larger part end by itself, and its exit status is theirs.
    assert done.returncode == 0, done.stderr
    for rank, entry in said.items():
        told = (
            f"rank {rank} exited with status 75: the network is cut, and its part of the job has ended" in done.stderr
        )
        assert told == ("partitioned" in entry), done.stderr
    return said


def expect(said: dict[int, dict[str, object]], left: list[int]) -> None:
    """Those of `left` have gone on and done all steps together; the others were told to end, each within seconds."""
    for rank, entry in said.items():
        if rank in left:
            assert entry["members"] == left, entry
            assert entry["sums"] == said[left[0]]["sums"]
        else:
            assert entry["code"] == "PARTITIONED", entry
            assert "shrink: agreement on" in entry["partitioned"] or "agree: agreement on" in entry["partitioned"]
            assert "can be reached" in entry["partitioned"]
            assert len(entry["again"]) == 3, "it stays so"
            assert entry["again"][-1] - entry["took"] < 5, "those that are out need not be waited for again"
        assert entry["took"] < 15, entry


only_four = pytest.mark.parametrize("pair", ["IPv4"], indirect=True)
all_networks = pytest.mark.parametrize("network", ["tcp", "udp", "ofi"])
# What a job is told, unless a test says otherwise: nothing is healed, and the cut comes before the call.
USUAL: dict[str, object] = {"heal": [], "after": 0, "into": 0, "count": 1001}
# Of what a rank sends by UDP, so much does not come as it was sent.
LOSSY = "loss=0.03,reorder=0.1,duplicate=0.03,seed=3"


@only_four
@all_networks
@pytest.mark.parametrize("way", ["down", "silent"])
@pytest.mark.parametrize(
    ("counts", "left"), [((3, 1), [0, 1, 2]), ((1, 3), [1, 2, 3]), ((2, 2), [0, 1])], ids=["3+1", "1+3", "2+2"]
)
def test_the_larger_part_goes_on(
    pair: Pair,  # noqa: F811
    tmp_path: Path,
    way: str,
    counts: tuple[int, int],
    left: list[int],
    network: str,
) -> None:
    down = ["ip", "link", "set", LINK, "down"]
    cut = [down] if way == "down" else [lose(pair, 0), lose(pair, 1)]
    expect(job(pair, tmp_path, counts, network, cut=cut), left)


@only_four
@all_networks
@pytest.mark.parametrize("way", ["down", "silent"])
def test_a_cut_in_the_middle_of_long_messages(
    pair: Pair,  # noqa: F811
    tmp_path: Path,
    way: str,
    network: str,
) -> None:
    """Also of what libfabric writes into the memory of a rank that is gone."""
    down = ["ip", "link", "set", LINK, "down"]
    cut = [down] if way == "down" else [lose(pair, 0), lose(pair, 1)]
    expect(job(pair, tmp_path, (1, 3), network, cut=cut, into=0.05, count=2_000_001), [1, 2, 3])


@only_four
def test_a_cut_of_a_network_that_has_lost_much_before(pair: Pair, tmp_path: Path) -> None:  # noqa: F811
    cut = [lose(pair, 0), lose(pair, 1)]
    expect(job(pair, tmp_path, (3, 1), "udp lossy", cut=cut, into=0.05, count=200_001), [0, 1, 2])


@only_four
@all_networks
@pytest.mark.parametrize("deaf", [0, 1])
def test_a_cut_in_one_direction(pair: Pair, tmp_path: Path, deaf: int, network: str) -> None:  # noqa: F811
    """TCP, which watches the peers of every network, needs both directions: neither end gets an answer."""
    expect(job(pair, tmp_path, (1, 3), network, cut=[lose(pair, 1 - deaf)]), [1, 2, 3])


@only_four
@all_networks
def test_who_was_declared_dead_stays_out_when_the_cable_is_whole_again(
    pair: Pair,  # noqa: F811
    tmp_path: Path,
    network: str,
) -> None:
    commands = {"cut": [lose(pair, 1)], "heal": [find(pair, 1)], "after": 2.0}
    expect(job(pair, tmp_path, (2, 2), network, **commands), [0, 1])
