"""Programs of switches: shown, checked, and run by members that stand in for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import Collective, Func
from unisono.cli import main

TREE = "((3 1) 0 (2 4))"


def _tag(collective: Collective, func: Func) -> int:
    """The tag of what goes up in a call of place 0."""
    return int(collective) << 1 | int(func) << 6


def test_members_and_switches_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "allreduce/switch", "--tree", "((0 1) 2)"]) == 0
    output = capsys.readouterr().out
    assert "allreduce/switch, rank 2 of 3" in output
    # A switch reads collective, operator and direction in the tag (collectives/switch_tag.hpp).
    up = _tag(Collective.ALLREDUCE, Func.SUM)
    assert f"allreduce/switch, switch 1 of 2\n   0  sum arrival({{0, 1}}, tag {up}) -> send(3, tag {up})" in output
    assert f"   1  arrival(3, tag {up + 1}) -> send({{0, 1}}, tag {up + 1})" in output
    assert main(["show", "bcast/switch", "--tree", "(0 1)", "--rank", "2", "--datatype", "int32"]) == 0
    tag = _tag(Collective.BCAST, Func.NONE)
    assert f"arrival(0, tag {tag}) -> send(1, tag {tag})" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["show", "allreduce/switch"], 'needs a tree of members and switches, such as --tree "((0 1) (2 3))"'),
        (["show", "allreduce/ring", "--stand-in"], "--stand-in goes with --tree"),
        (["show", "allreduce/switch", "--tree", "((0 1) (1 2))"], "switch 2 - rank 1: rank 1 hangs below switch 1"),
        (["show", "allreduce/switch", "--tree", "(0 2)"], "rank 1 hangs below no switch"),
        (["check", "allreduce/switch", "--tree", "((0 1)"], "a bracket that nothing closes"),
        (["check", "allreduce/ring", "--switches", "2"], "--switches goes with algorithms of switches"),
        (["check", "allreduce/switch", "--tree", "(0)", "--switches", "2"], "a tree says how many switches it has"),
        (
            ["show", "allreduce/switch", "--tree", "(0 1)", "--file", "none"],
            "with --stand-in members play the switches",
        ),
        (["show", "allreduce/ring", "--tree", "(0 1)"], "it goes with allreduce/switch"),
        (["show", "allreduce/switch", "--tree", "(0 1)", "--ranks", "2"], "a tree says how many ranks it has"),
        (["show", "allreduce/switch", "--tree", ""], "no switch at character 1"),
        (["check", "allreduce/switch", "--tree", ""], "no switch at character 1"),
        (["check", "allreduce", "--tree", "(0 1)"], "--tree goes with algorithms of switches"),
        (["check", "allreduce/switch", "--tree", "(0 1)", "--ranks", "5"], "a tree says how many ranks it has"),
    ],
)
def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str], words: list[str], what: str) -> None:
    assert main(words) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize("given", ["2:", ":3", "3:2", "0:2", "1:999", "two"])
@pytest.mark.parametrize("option", ["--ranks", "--switches"])
def test_half_a_range_is_none(capsys: pytest.CaptureFixture[str], option: str, given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "allreduce/switch", option, given])
    assert ended.value.code == 2
    assert f"{given!r} is no range of {option[2:]} such as" in capsys.readouterr().err


def test_a_check_says_what_it_proves_of_switches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "allreduce/switch", "--tree", TREE, "--schedules", "2", "--mixes", "1"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "P 5" in output
    assert "with one slot and shared ports, too, and in the order of members that stand in for them" in output
    assert "arrivals in any order, proven by normal form" in output


@pytest.mark.parametrize(
    "collective", ["allreduce", "reduce", "reduce_scatter", "bcast", "allgather", "gather", "scatter"]
)
def test_members_stand_in_for_switches_on_the_engine(tmp_path: Path, collective: str) -> None:
    """As a program of the user's, on ranks whose data differ."""
    path = tmp_path / "tree.uprg"
    words = ["show", f"{collective}/switch", "--tree", TREE, "--stand-in", "--count", "6", "--root", "2"]
    assert main([*words, "--file", str(path)]) == 0
    program = unisono.Program.load(path)
    assert program.size == 5
    rows = np.random.default_rng(4).standard_normal((5, 30)).astype(np.float32)
    whole = collective in ("allgather", "gather", "scatter")

    def run(comm: unisono.Communicator) -> np.ndarray:
        rank = comm.rank
        long = collective == "reduce_scatter" or (collective == "scatter" and rank == 2)
        src = rows[rank, : 30 if long else 6].copy()
        dst = np.full(30 if whole and collective != "scatter" else 6, -1, np.float32)
        if collective == "bcast":
            src, dst = np.zeros(0, np.float32), rows[rank, :6].copy()
        comm.run_program(program, src, dst)
        return dst

    results = unisono.ThreadJob(5).run(run)
    first = rows[:, :6]
    # As switches fold: ((3 1) 0 (2 4)), left before right, each sum rounded.
    sums = ((rows[3] + rows[1]) + rows[0]) + (rows[2] + rows[4])
    total = sums[:6]
    for rank, result in enumerate(results):
        if collective == "allreduce" or (collective == "reduce" and rank == 2):
            np.testing.assert_array_equal(result, total)
        elif collective == "bcast":
            np.testing.assert_array_equal(result, first[2])
        elif collective == "allgather" or (collective == "gather" and rank == 2):
            np.testing.assert_array_equal(result.reshape(5, 6), first)
        elif collective == "scatter":
            np.testing.assert_array_equal(result, rows[2].reshape(5, 6)[rank])
        elif collective == "reduce_scatter":
            np.testing.assert_array_equal(result, sums.reshape(5, 6)[rank])
        else:
            assert (result == -1).all(), f"rank {rank} has a result that the root alone should have"
