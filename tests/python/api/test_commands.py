"""`unisono algorithms`, `check`, `show`, and the interpreter from Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import ErrorCode, _core
from unisono.cli import main

ROOT = Path(__file__).resolve().parents[3]


def test_algorithms_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "allreduce", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert {entry["collective"] for entry in entries} == {"allreduce"}
    assert {"ring", "recursive_doubling"} <= {entry["name"] for entry in entries}
    assert [entry["name"] for entry in entries] == [entry.name for entry in unisono.algorithms("allreduce")]


def test_algorithms_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "alreduce"]) == 2
    assert "there are" in capsys.readouterr().err


def test_errors_end_with_what_the_message_does_not_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "allreduce/ring:3", "--ranks", "4"]) == 2
    assert capsys.readouterr().err == (
        'invalid_argument: allreduce: the algorithm "ring" has no radix; ":3" was given behind its name\n'
    )
    for code in ErrorCode:
        assert "The message" not in code.advice


def test_check_proves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "allreduce/ring", "--ranks", "2:4", "--schedules", "3"]) == 0
    output = capsys.readouterr().out
    assert "allreduce/ring" in output
    assert "P 2-4" in output
    assert "all right" in output
    assert "lowered for the engine" in output
    assert "no circular wait" in output
    assert "mixes of lanes, credits and grants:" in output


def test_check_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "allreduce/rnig"]) == 2
    assert "recursive_doubling" in capsys.readouterr().err
    assert main(["check", "/no/such/file"]) == 2
    assert "there is no file and no collective '/no/such/file'" in capsys.readouterr().err


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "allreduce/ring", "--ranks", "3", "--rank", "1", "--count", "6"]) == 0
    output = capsys.readouterr().out
    assert "rank 1 of 3" in output
    assert "arrival(0, tag 0)" in output


def program_file(tmp_path: Path, name: str = "allreduce/ring") -> Path:
    path = tmp_path / "program"
    assert main(["show", name, "--ranks", "3", "--count", "6", "--file", str(path)]) == 0
    return path


def test_check_a_program_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program_file(tmp_path))]) == 0
    assert "proven" in capsys.readouterr().out


def test_check_draws_a_counterexample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(p: unisono.Builder) -> None:
        p.move(take=p.src(0, 1), send=p.message(1 - p.rank, tag=p.rank))
        p.move(take=p.arrival(1 - p.rank, tag=0), keep=p.dst(0, 1))

    monkeypatch.chdir(tmp_path)
    unisono.Program.build(2, write).save("two.uprg")
    assert main(["check", "two.uprg"]) == 1
    output = capsys.readouterr().out
    assert "✗" in output
    assert "tag 1" in output
    assert "unisono-counterexample.svg" in output
    assert Path("unisono-counterexample.svg").read_text().startswith("<svg")
    assert main(["check", "two.uprg", "--json", "--svg", "other.svg"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is False
    assert result["picture"] == "other.svg"
    assert result["reports"]["two.uprg"]["finding"]["kind"] == "unmatched"
    assert main(["check", "two.uprg", "--svg", "no/such/folder.svg"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "bcast/binomial", "--ranks", "2:3", "--schedules", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is True
    assert result["picture"] is None
    report = result["reports"]["bcast/binomial"]
    assert report["ranks"] == [2, 3]
    assert report["lowered"] == report["calls"] > 0
    assert report["lowered_runs"] >= 2 * report["lowered"]
    assert report["not_carried"] == 0
    assert report["mixed"] > report["calls"]
    assert main(["check", "bcast/binomial", "--ranks", "2:3", "--mixes", "20", "--json"]) == 0
    more = json.loads(capsys.readouterr().out)["reports"]["bcast/binomial"]
    assert more["mixed"] == report["mixed"] + (20 - 12) * report["calls"]


def test_check_refuses_what_is_no_program_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("unisono program 1\nranks 1\nrank 0\nmove zero\nend\n")
    assert main(["check", str(path)]) == 2
    assert "not with the letters UPRG" in capsys.readouterr().err


def test_program_files_hold_no_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "allgatherv/ring", "--file", str(tmp_path / "file")]) == 2
    assert "a program file holds no data" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_table_fits_the_terminal(width: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "algorithms"], capture_output=True, text=True, timeout=60, check=True,
        env=os.environ | {"COLUMNS": str(width), "PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    names = [str(entry) for entry in unisono.algorithms()]
    for name in names:
        assert any(name in line for line in lines), name
    cut = [line for line in lines if line.endswith("…")]
    assert not cut


@pytest.mark.parametrize("policy", ["generous", "least_permissive", "random"])
def test_the_interpreter(policy: str) -> None:
    inputs = [np.arange(5, dtype=np.float32) + 10 * rank for rank in range(3)]
    results = _core.interpret(
        int(unisono.Collective.ALLREDUCE), "ring", 3, 0, int(unisono.Func.SUM), int(unisono.Datatype.FP32), 5, False, 0,
        inputs, [np.zeros(5, np.float32)] * 3, [], policy, 4,
    )  # fmt: skip
    for result in results:
        np.testing.assert_array_equal(np.frombuffer(result, np.float32), sum(inputs))


def test_interpreter_and_checker_refuse_bad_arguments() -> None:
    with pytest.raises(unisono.UnknownAlgorithmError, match="ring"):
        _core.check_algorithm(int(unisono.Collective.ALLREDUCE), "rnig", [2], 1, 1)
    with pytest.raises(unisono.InvalidRootError, match="ranks 0 to 1"):
        _core.program_listing(
            int(unisono.Collective.BCAST), "binomial", 2, 0, 5, 0, int(unisono.Datatype.FP32), 1, False, 0
        )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.strip() == f"unisono {unisono.__version__}"
