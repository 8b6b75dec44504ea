"""Counters, traces and waveforms of `unisono run --platform rtl`.

What needs Verilated engines runs only where they are built: the cluster with UNISONO_TEST_RTL=1, waveforms where the
cluster that writes them is there too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from unisono._spec import Counter
from unisono.cli import cluster
from unisono.cli.cluster import ClusterError, counter_table, find_cluster

ROOT = Path(__file__).resolve().parents[3]
FAKE = Path(__file__).with_name("fake_cluster.py")
SECONDS = 300
RANKS = 4
COUNT = 5003  # chunks of different lengths
on_engines = pytest.mark.skipif(os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set")

RING = f"""
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    before = world.counters()
    mine = np.arange({COUNT}, dtype=np.int32) * (world.rank + 3)
    total = world.allreduce(mine, algorithm="ring")
    assert (total == np.arange({COUNT}) * sum(r + 3 for r in range(world.size))).all()
    after = world.counters()
    assert after["calls_completed"] == before["calls_completed"] + 1, after
    assert after["moves_retired"] - before["moves_retired"] == after["moves"] - before["moves"] > 0
    assert after["cycles"] > before["cycles"]
    assert after["stall_arrival"] > before["stall_arrival"]
"""

CALLS_ONLY = """
import numpy as np
import unisono
with unisono.init() as context:
    before = context.world.counters()
    assert list(before) == [counter.name.lower() for counter in unisono._spec.Counter]
    for _ in range(3):
        context.world.allreduce(np.ones(5))
    after = context.world.counters()
    assert after["calls_completed"] - before["calls_completed"] == 3
    assert after["calls_failed"] == 0
"""


def run(*arguments: object, **environment: object) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    around |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}
    around |= {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-m", "unisono", "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=SECONDS, env=around,
    )  # fmt: skip


def script(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def test_functional_devices_count_calls(tmp_path: Path) -> None:
    done = run("-n", 2, "--platform", "functional", script(tmp_path, "import unisono._spec\n" + CALLS_ONLY))
    assert done.returncode == 0, done.stderr


def test_the_table_has_a_column_for_each_rank() -> None:
    text = counter_table([{"cycles": 1234567, "busy": 0, "moves": 7}, {"cycles": 1234568, "busy": 0, "moves": 21}])
    assert text.splitlines() == [
        "           rank 0     rank 1",
        "cycles  1,234,567  1,234,568",
        "moves           7         21",
    ]


def test_what_the_cluster_counted_is_printed(tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    fake.chmod(0o755)
    trace = tmp_path / "trace.json"
    done = run("-n", 1, "--platform", "rtl", "--counters", "--trace", trace, "true", UNISONO_CLUSTER=fake)
    assert done.returncode == 0, done.stderr
    assert "cycles  1,234,567" in done.stderr
    assert "busy" not in done.stderr
    assert trace.read_text() == "a trace"


def test_the_table_fits_80_columns() -> None:
    ranks = [{"bytes": 10**9 + rank, "calls": rank, "none": 0} for rank in range(13)]
    lines = counter_table(ranks).splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if "rank" in line]
    assert len(heads) > 1
    assert re.findall(r"rank (\d+)", " ".join(heads)) == [str(rank) for rank in range(13)]
    values = [line.split()[1:] for line in lines if line.startswith("bytes")]
    assert [value for row in values for value in row] == [f"{10**9 + rank:,}" for rank in range(13)]
    assert "none" not in counter_table(ranks)
    assert "none" in counter_table(ranks, zeros=True)


def test_options_go_with_a_cluster(tmp_path: Path) -> None:
    done = run("-n", 1, "--counters", "--trace", tmp_path / "t", "true")
    assert done.returncode == 2
    assert "--trace: the native engine writes no trace yet" in done.stderr
    done = run("-n", 1, "--trace", tmp_path / "t", "--seed", 5, "true")
    assert "--seed and --trace goes with --platform rtl" in done.stderr


COUNTED = """
import os, sys, time
import numpy as np
import unisono
with unisono.init(lanes=False) as context:
    world = context.world
    world.send(np.zeros(1000 * (world.rank + 1), np.uint8), (world.rank + 1) % world.size)
    world.recv(np.empty(1000 * ((world.rank - 1) % world.size + 1), np.uint8), (world.rank - 1) % world.size)
    world.barrier()
    if sys.argv[1] == "exit":
        os._exit(3)
    if sys.argv[1] == "hang":
        time.sleep(600)
"""


def counted(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if re.match(r"[a-z_]+ +[\d,]", line)}


@pytest.mark.parametrize("platform", ["native", "functional"])
@pytest.mark.parametrize(("end", "status"), [("well", 0), ("exit", 3), ("hang", 124)])
def test_the_native_counters_at_the_end(tmp_path: Path, platform: str, end: str, status: int) -> None:
    """However the job ends: what was counted stands in its memory, which the launcher holds."""
    limit = ["--timeout", 5] if end == "hang" else []
    program = script(tmp_path, COUNTED)
    done = run("-n", 3, "--platform", platform, "--counters", *limit, program, end)
    assert done.returncode == status, done.stderr
    table = counted(done.stderr)
    sent = [int(value.replace(",", "")) for value in table["bytes_sent"]]
    assert all(value >= 1000 * (rank + 1) for rank, value in enumerate(sent))
    assert all(int(value) >= 3 for value in table["calls_queued"])
    assert not any(set(values) == {"0"} for values in table.values())
    assert max(len(line) for line in done.stderr.splitlines() if line.split()[:1] == ["calls_queued"]) <= 80


def test_counters_of_a_program_without_a_job() -> None:
    done = run("-n", 2, "--counters", "true")
    assert done.returncode == 0
    assert done.stderr == "no counters: the ranks have formed no job (they count from unisono.init() on)\n"


def test_how_to_build_the_cluster_with_waveforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ROOT", "PACKAGE"):
        monkeypatch.setattr(cluster, name, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UNISONO_CLUSTER", raising=False)
    with pytest.raises(ClusterError, match="tools/build --wave"):
        find_cluster(cluster.WITH_WAVES)
    built = tmp_path / "build" / "release" / "sim" / cluster.WITH_WAVES
    built.parent.mkdir(parents=True)
    built.write_text("#!/bin/sh\n")
    built.chmod(0o755)
    assert find_cluster(cluster.WITH_WAVES) == str(built)
    with pytest.raises(ClusterError, match="make cluster"):
        find_cluster()


def spans(trace: dict[str, Any], rank: int) -> list[dict[str, Any]]:
    """The moves of a rank in program order."""
    found = [event for event in trace["traceEvents"] if event["pid"] == rank and "move" in event.get("args", {})]
    return sorted(found, key=lambda event: event["args"]["move"])


@on_engines
def test_the_trace_of_a_ring(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = run("-n", RANKS, "--platform", "rtl", "--trace", file, "--counters", script(tmp_path, RING))
    assert done.returncode == 0, done.stderr
    counted = {line.split()[0]: line.split()[1:] for line in done.stderr.splitlines() if line.strip()}
    trace = json.loads(file.read_text())
    calls = [event["name"] for event in trace["traceEvents"] if "count" in event.get("args", {})]
    assert calls == ["allreduce ring"] * RANKS
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert names == {rank: f"rank {rank}" for rank in range(RANKS)}
    by_rank = []
    for rank in range(RANKS):
        moves = spans(trace, rank)
        by_rank.append([move["args"] for move in moves])
        assert counted["moves_retired"][rank].replace(",", "") == str(len(moves))
        assert [move["args"]["move"] for move in moves] == list(range(len(moves)))
        retired = [move["args"]["retired"] for move in moves]
        assert retired == sorted(set(retired))
        for move in moves:
            times = [move["args"][name] for name in ("entered", "issued", "began", "completed", "retired")]
            assert times == sorted(set(times))
            assert move["ts"] == pytest.approx(times[0] / 250)
            assert move["ts"] + move["dur"] == pytest.approx(times[-1] / 250)
            # Which chunk is the longer one is the algorithm's choice.
            assert move["args"]["bytes"] in (COUNT // RANKS * 4, COUNT // RANKS * 4 + 4)
    for rank in range(RANKS):
        sent = [move for move in by_rank[rank] if move.get("destination") == (rank + 1) % RANKS]
        arrived = [move for move in by_rank[(rank + 1) % RANKS] if move.get("source") == rank]
        assert len(sent) == len(arrived) == 2 * (RANKS - 1)
        for send, arrival in zip(sent, arrived, strict=True):
            assert send["bytes"] == arrival["bytes"]
            assert send["began"] + 200 < arrival["began"], "two links and a switch"
    arrows: dict[str, dict[int, dict[str, Any]]] = {"s": {}, "f": {}}
    for event in trace["traceEvents"]:
        if event["ph"] in arrows:
            arrows[event["ph"]][event["id"]] = event
    assert len(arrows["s"]) == len(arrows["f"]) == RANKS * 2 * (RANKS - 1)
    for number, start in arrows["s"].items():
        end = arrows["f"][number]
        assert end["pid"] == (start["pid"] + 1) % RANKS
        assert end["ts"] > start["ts"]
        for event in (start, end):
            bars = [bar for bar in spans(trace, event["pid"]) if bar["tid"] == event["tid"]]
            assert any(bar["ts"] <= event["ts"] <= bar["ts"] + bar["dur"] for bar in bars)


@on_engines
def test_a_wave_has_something_in_it(tmp_path: Path) -> None:
    try:
        find_cluster(cluster.WITH_WAVES)
    except ClusterError:
        pytest.skip("unisono-cluster-wave is not built (tools/build --wave)")
    file = tmp_path / "wave.fst"
    program = script(tmp_path, "import unisono\nwith unisono.init() as context:\n    context.world.barrier()\n")
    done = run("-n", 2, "--platform", "rtl", "--wave", file, program)
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size > 10_000


def test_counters_are_those_of_the_specification() -> None:
    assert [counter.value for counter in Counter] == list(range(len(Counter)))
    assert len(Counter) <= 64


def test_a_native_rank_has_no_column_of_numbers() -> None:
    table = counter_table([{}, {"cycles": 1200, "jobs": 0}, {"cycles": 1300, "jobs": 0}])
    assert [line.split() for line in table.splitlines()] == [
        ["rank", "0", "rank", "1", "rank", "2"],
        ["cycles", "native", "1,200", "1,300"],
    ]
