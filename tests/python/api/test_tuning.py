"""`unisono calibrate`, `unisono explain`, and the choice of algorithms in jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import _core
from unisono.cli import main

ROOT = Path(__file__).resolve().parents[3]


def environment() -> dict[str, str]:
    """That of this process, with the package of this checkout."""
    paths = os.environ.get("PYTHONPATH") or str(ROOT / "python")
    return os.environ | {"PYTHONPATH": paths}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the user's, and no results of earlier benches."""
    for name in ("UNISONO_TUNING", "UNISONO_ALGORITHM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def write_tuning(path: Path, rules: list[dict[str, Any]], **machine: Any) -> Path:
    figures = {
        "line": 50, "issue": 8, "segment": 60, "sync": 30, "yield": 700, "reduce": 0.02, "reduce_half": 0.05,
        "copy": [0.02, 0.04, 0.1], "cross": [0.05, 0.08, 0.14], "near_bytes": 1 << 20, "shared_bytes": 1 << 25,
        "cores": 2,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"unisono_tuning": 1, "machine": figures | machine, "rules": rules}, indent=1))
    return path


def explain(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["explain", *map(str, arguments), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def prediction(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found = [each for each in answer["candidates"] if each["algorithm"] == name]
    assert len(found) == 1, name
    result: dict[str, Any] = found[0]["prediction"]
    return result


# ------------------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize(
    ("arguments", "algorithm"),
    [
        (["allreduce", "--bytes", "8", "--ranks", "4"], "flat"),
        (["allreduce", "--bytes", "64K", "--ranks", "4"], "rabenseifner"),
        (["allreduce", "--bytes", "4M", "--ranks", "4", "--cores", "4"], "ring"),
        (["allreduce", "--bytes", "4M", "--ranks", "4", "--cores", "2"], "reduce_bcast"),
        (["allreduce", "--bytes", "4M", "--ranks", "4", "--buffers", "allocated"], "direct"),
        (["bcast", "--bytes", "4M", "--ranks", "100"], "scatter_allgather"),
        (["alltoallv", "--bytes", "4K", "--ranks", "3"], "scattered"),
        (["barrier", "--ranks", "5"], "flat"),
        (["gather", "--bytes", "3", "--dtype", "byte", "--ranks", "1"], "linear"),
    ],
)
def test_what_is_chosen(capsys: pytest.CaptureFixture[str], arguments: list[str], algorithm: str) -> None:
    answer = explain(capsys, *arguments)
    assert answer["algorithm"] == algorithm
    assert answer["origin"] == "built-in"
    assert answer["rule"]
    totals = [each["prediction"]["total"] for each in answer["candidates"] if each["prediction"]]
    assert totals == sorted(totals)
    chosen = prediction(answer, algorithm)
    assert chosen["total"] == pytest.approx(sum(chosen[part] for part in ("latency", "copy", "reduce", "sync")))
    assert {each["algorithm"] for each in answer["candidates"]} == {
        entry.name for entry in unisono.algorithms(arguments[0])
    }


def test_the_text_says_all_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["explain", "allreduce", "--bytes", "64K", "--ranks", "2", "--cores", "2"]) == 0
    text = capsys.readouterr().out
    assert "allreduce of 64 KiB fp32, 2 ranks on 2 cores, malloc buffers: recursive_doubling" in text
    assert "built-in rule: up to 256 KiB" in text
    assert "Runner-up: ring" in text
    assert "direct (needs allocated buffers)" in text
    assert "Allocated buffers would make it worth it" in " ".join(text.split())
    assert "registered" not in text
    assert "first asks whether all buffers can be reached, in vain" in " ".join(text.split())
    assert "Critical path: latency" in text
    assert "Program: 4 moves on all ranks, at most 2 on one; 2 messages with 128 KiB" in text
    assert "Rules: the built-in table" in text
    assert "Last measured" not in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits_the_terminal(width: int) -> None:
    for operation in ("allreduce", "alltoall", "barrier"):
        done = subprocess.run(
            [sys.executable, "-m", "unisono", "explain", operation], capture_output=True, text=True, timeout=60,
            check=True, env=environment() | {"COLUMNS": str(width)},
        )  # fmt: skip
        table = done.stdout.split("\n\n")[0]
        assert operation in table
        assert "…" not in done.stdout


def test_buffers_are_called_by_their_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call = ("allreduce", "--bytes", "4M", "--ranks", "4", "--buffers")
    allocated = explain(capsys, *call, "allocated")
    assert allocated["call"]["buffers"] == "allocated"
    assert main(["explain", *call, "allocated"]) == 0
    assert "allocated buffers: direct" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["explain", *call, "registered"])
    assert "allowed are allocated and malloc" in " ".join(capsys.readouterr().err.split())
    # What bench has measured is found again.
    same = {"system": "unisono", "op": "allreduce", "bytes": 4 << 20, "ranks": 4, "dtype": "fp32"}
    # Lines without a schema called allocated memory registered; since then that word means something else.
    old = [same | {"buffers": "registered", "median_us": 2.0}, same | {"buffers": "malloc", "median_us": 3.0}]
    new = [
        same | {"schema": 2, "interface": "c", "buffers": kind, "median_us": time}
        for kind, time in (("allocated", 4.0), ("malloc", 5.0), ("registered", 6.0))
    ]
    python = same | {"schema": 2, "interface": "python", "buffers": "malloc", "median_us": 7.0}
    for records, times in ((old, (2.0, 3.0)), ([*old, *new, python], (4.0, 5.0))):
        (tmp_path / "results").write_text("\n".join(map(json.dumps, records)))
        for buffers, seconds in zip(("allocated", "malloc"), times, strict=True):
            assert explain(capsys, *call, buffers, "--json", tmp_path / "results")["measured"]["us"] == seconds


def test_more_cores_cost_no_turns(capsys: pytest.CaptureFixture[str]) -> None:
    crowded = explain(capsys, "barrier", "--ranks", 8, "--cores", 2)
    apart = explain(capsys, "barrier", "--ranks", 8, "--cores", 8)
    assert crowded["crowded"]
    assert not apart["crowded"]
    assert prediction(crowded, "dissemination")["total"] > 2 * prediction(apart, "dissemination")["total"]


def test_a_radix_is_explained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("bcast", "--bytes", 64, "--ranks", 27)
    usual = explain(capsys, *call)
    assert not any(":" in each["algorithm"] for each in usual["candidates"])
    named = explain(capsys, *call, "--algorithm", "knomial:9")
    assert (named["algorithm"], named["origin"], named["rule"]) == ("knomial:9", "named", None)
    assert prediction(named, "knomial") == prediction(usual, "knomial")
    assert prediction(named, "knomial:9")["total"] != prediction(named, "knomial")["total"]
    assert prediction(named, "knomial:9")["messages"] == 26
    assert explain(capsys, *call, "--algorithm", "knomial:4")["algorithm"] == "knomial", "what it has anyway"
    assert main(["explain", *map(str, call), "--algorithm", "knomial:9"]) == 0
    assert "a call that names this algorithm" in capsys.readouterr().out
    monkeypatch.setenv("UNISONO_ALGORITHM", "bcast=knomial:9:-4K")
    pinned = explain(capsys, *call)
    assert (pinned["algorithm"], pinned["origin"]) == ("knomial:9", "pin")
    assert pinned["rule"]["algorithm"] == "knomial:9"
    assert prediction(pinned, "knomial:9") == prediction(named, "knomial:9")
    assert explain(capsys, "bcast", "--bytes", "8K", "--ranks", 27)["origin"] == "built-in"
    monkeypatch.delenv("UNISONO_ALGORITHM")
    write_tuning(tmp_path / "config/unisono/tuning.json", [{"collective": "bcast", "algorithm": "knomial:5"}])
    assert explain(capsys, *call)["algorithm"] == "knomial:5"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("knomail", "bcast has no algorithm"),
        ("knomial:1", "allowed are 2 to 255"),
        ("linear:2", "has no radix"),
        ("direct", "does not admit this call: at most 16 ranks, direct access"),
    ],
)
def test_what_cannot_be_named_is_said(capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    assert main(["explain", "bcast", "--ranks", "4", "--algorithm", name]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("way", ["lanes", "messages", "functional"])
def test_a_pinned_radix_is_used(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its order of summation: with radix 9 the root of nine ranks adds one after the other, with 2 by pairs."""
    if way == "functional":
        monkeypatch.setenv("UNISONO_PLATFORM", "functional")
    values = np.random.default_rng(7).standard_normal((9, 300)).astype(np.float32)

    def sums(algorithm: str | None) -> bytes:
        def member(comm: unisono.Communicator) -> bytes:
            total = np.empty(300, np.float32)
            comm.reduce(values[comm.rank], total, root=0, algorithm=algorithm)
            assert comm.last_algorithm.name == "knomial"
            return total.tobytes()

        return unisono.ThreadJob(9, timeout=30, lanes=way == "lanes").run(member)[0]

    named = {radix: sums(f"knomial:{radix}") for radix in (2, 9)}
    assert named[2] != named[9]
    for radix, expected in named.items():
        monkeypatch.setenv("UNISONO_ALGORITHM", f"reduce=knomial:{radix}")
        assert sums(None) == expected, radix


def test_pins_and_files_are_followed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [{"collective": "bcast", "algorithm": "scatter_allgather", "min_ranks": 3, "max_bytes": 4096}]
    path = write_tuning(tmp_path / "config/unisono/tuning.json", rules, line=1000)
    answer = explain(capsys, "bcast", "--bytes", "4K", "--ranks", 4)
    assert (answer["algorithm"], answer["origin"]) == ("scatter_allgather", "file")
    assert answer["tuning"]["path"] == str(path)
    assert answer["rule"]["max_bytes"] == 4096
    assert prediction(answer, "linear")["latency"] > 1000, "the file's figures are used"
    assert explain(capsys, "bcast", "--bytes", 4100, "--ranks", 4)["origin"] == "built-in"
    assert explain(capsys, "bcast", "--bytes", "4K", "--ranks", 2)["origin"] == "built-in"
    monkeypatch.setenv("UNISONO_ALGORITHM", "bcast=chain:1K-")
    answer = explain(capsys, "bcast", "--bytes", "4K", "--ranks", 4)
    assert (answer["algorithm"], answer["origin"]) == ("chain", "pin")
    assert main(["explain", "bcast", "--bytes", "4K", "--ranks", "4"]) == 0
    text = capsys.readouterr().out
    assert "pinned by UNISONO_ALGORITHM: from 1 KiB" in text
    assert f"Rules: table {_core.tuning_in_force()['hash']}" in text


def test_measured_times_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    same = {"system": "unisono", "op": "reduce", "bytes": 4096, "ranks": 2, "dtype": "fp32", "buffers": "malloc"}
    records = [
        same | {"algorithm": "linear", "median_us": 1.25},
        same | {"algorithm": "binomial", "median_us": 2.5},
        same | {"system": "openmpi", "median_us": 9.0},
        same | {"bytes": 8192, "median_us": 9.0},
        same | {"buffers": "registered", "median_us": 9.0},
        same | {"ranks": 4, "median_us": 9.0},
        same | {"median_us": "quick"},
    ]
    lines = "\n".join(map(json.dumps, records)) + '\n{"cut short'
    whole = json.dumps(records)
    (tmp_path / "results").write_text(lines)
    arguments = ["reduce", "--bytes", "4K", "--ranks", "2"]
    expected = {"file": str(tmp_path / "results"), "algorithm": "binomial", "us": 2.5}
    assert explain(capsys, *arguments, "--json", tmp_path / "results")["measured"] == expected
    (tmp_path / "results").write_text(whole)
    assert explain(capsys, *arguments, "--json", tmp_path / "results")["measured"] == expected
    usual = tmp_path / "state/unisono/bench.jsonl"
    usual.parent.mkdir(parents=True)
    usual.write_text(lines)
    assert explain(capsys, *arguments)["measured"] == expected | {"file": str(usual)}
    assert main(["explain", *arguments]) == 0
    assert "Last measured: 2.5 µs with binomial" in capsys.readouterr().out
    assert explain(capsys, "reduce", "--bytes", "1K", "--ranks", "2")["measured"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["allreduce", "--ranks", "0"], "0 ranks were given; allowed are 1 to 1024"),
        (["allreduce", "--cores", "0"], "0 cores were given"),
        (["allreduce", "--bytes", "10"], "10 bytes are no whole number of fp32"),
        (["allreduce", "--dtype", "byte"], "bytes can be moved, not reduced"),
        (["allreduce", "--json", "no/such/file"], "no/such/file cannot be read"),
    ],
)
def test_explain_refuses(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert main(["explain", *arguments]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("arguments", [["allgathr"], ["bcast", "--bytes", "4Q"], ["bcast", "--bytes", "-1"]])
def test_the_command_line_refuses(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *arguments])
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------- calibrate


def test_calibrate_writes_a_file_that_is_followed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / "config/unisono/tuning.json"
    assert main(["calibrate", "--ranks", "4"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "a line from core to core" in output
    assert str(usual) in output.replace(" ", "")
    found = _core.tuning_in_force()
    assert found["path"] == str(usual)
    assert found["calibrated"]
    text = json.loads(usual.read_text())
    assert text["unisono_tuning"] == 1
    assert [rule["algorithm"] for rule in text["rules"]] == [rule["algorithm"] for rule in found["rules"]]
    named = tmp_path / "named.json"
    monkeypatch.setenv("UNISONO_TUNING", str(named))
    assert main(["calibrate", "--ranks", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(named)
    assert named.exists()
    assert [entry.name for entry in usual.parent.iterdir()] == ["tuning.json"], "nothing is left behind"


def test_calibrate_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["calibrate", "--ranks", "1"]) == 2
    assert "allowed are 2 to 64" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["calibrate", "--ranks", "2", "--file", str(tmp_path / "file/tuning.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- jobs


def run(script: str, tmp_path: Path, ranks: int, **variables: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    path.write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", str(ranks), str(path)], capture_output=True, text=True,
        timeout=60, env=environment() | variables,
    )  # fmt: skip


SUM = (
    "import os\nimport numpy as np\nimport unisono\n"
    "{before}"
    "with unisono.init() as context:\n"
    "    world = context.world\n"
    "    total = world.allreduce(np.arange(3.0) * (world.rank + 1))\n"
    "    assert total.tolist() == [0.0, 3.0, 6.0], total\n"
    "    print(f'{{world.last_algorithm.name}} {{world.last_algorithm.automatic}}\\n', end='')\n"
)


def test_a_job_follows_pins_and_files(tmp_path: Path) -> None:
    done = run(SUM.format(before=""), tmp_path, 2, UNISONO_ALGORITHM="allreduce=ring")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ring True"] * 2
    rules = [{"collective": "allreduce", "algorithm": "reduce_bcast", "max_bytes": 100}]
    path = write_tuning(tmp_path / "mine.json", rules)
    done = run(SUM.format(before=""), tmp_path, 2, UNISONO_TUNING=str(path))
    assert done.stdout.splitlines() == ["reduce_bcast True"] * 2, done.stderr


def test_ranks_with_different_tables_are_refused(tmp_path: Path) -> None:
    before = "if os.environ['UNISONO_RANK'] == '1':\n    os.environ['UNISONO_ALGORITHM'] = 'allreduce=ring'\n"
    done = run(SUM.format(before=before), tmp_path, 2)
    assert done.returncode != 0
    assert re.search(r"rank 1, endpoint 1 \(pid \d+\), chooses algorithms by table", done.stderr)
    assert re.search(r", rank 0, endpoint 0 \(pid \d+\), by the built-in table: ", done.stderr)
    assert "set UNISONO_TUNING and UNISONO_ALGORITHM alike on all ranks" in done.stderr


def test_a_malformed_file_stops_a_job_or_is_mentioned(tmp_path: Path) -> None:
    bad = tmp_path / "config/unisono/tuning.json"
    bad.parent.mkdir(parents=True)
    bad.write_text('{\n "unisono_tuning": 1,\n "machine": 3\n}')
    done = run(SUM.format(before=""), tmp_path, 2)
    assert done.stdout.splitlines() == ["recursive_doubling True"] * 2
    assert f"warning: the tuning file {bad}: line 3, machine: here is a number; needed is an object" in done.stderr
    done = run(SUM.format(before=""), tmp_path, 2, UNISONO_TUNING=str(bad))
    assert done.returncode != 0
    assert "UNISONO_TUNING names the tuning file" in done.stderr
    assert "line 3, machine" in done.stderr


def test_the_last_algorithm() -> None:
    with unisono.init() as context:
        world = context.world
        assert world.last_algorithm == (None, False)
        world.barrier()
        assert world.last_algorithm == ("flat", True)
        world.allreduce(np.ones(3, np.float32), algorithm="ring")
        assert world.last_algorithm == unisono.communicator.LastAlgorithm("ring", False)


def test_a_prediction_that_takes_long_can_be_interrupted() -> None:
    command = [sys.executable, "-m", "unisono", "explain", "allreduce", "--ranks", "1024"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        time.sleep(2)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert time.monotonic() - began < 5
    assert said == (b"", b"")
