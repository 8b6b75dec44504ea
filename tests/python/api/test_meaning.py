"""What a program is meant as: its result compared with a collective, by `Program.check` and `unisono check --as`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import unisono
from unisono import Builder, Collective, Datatype, Func, Program, _core
from unisono.cli import main

P = 3
N = 2


def exchange(p: Builder, *, wrong: int | None = None) -> None:
    """All-reduce: everybody's vector to everybody; on rank `wrong` it is the largest element that is kept."""
    others = [rank for rank in range(p.size) if rank != p.rank]
    p.move(take=p.src(0, N), send=p.message(others))
    func = "max" if p.rank == wrong else "sum"
    p.move(take=p.src(0, N), combine=p.arrival(others), func=func, keep=p.dst(0, N))


def right() -> Program:
    return Program.build(P, exchange, dtype="fp64")


def wrong(rank: int = 1) -> Program:
    return Program.build(P, lambda p: exchange(p, wrong=rank), dtype="fp64")


@pytest.mark.parametrize("rank", range(P))
def test_a_function_that_differs_on_one_rank(rank: int) -> None:
    report = wrong(rank).check("allreduce", op="sum")
    assert not report
    assert (report.kind, report.rank, report.move) == ("wrong result", rank, 1)
    assert f"element 0 of dst of rank {rank} is max(" in report.text
    assert "must be sum over ranks 0 to 2 of element 0 of their inputs" in report.text
    assert f"rank {rank}, move 1" in report.text
    assert report.svg is not None
    assert "wrong result" in report.svg


def test_what_was_compared_is_said() -> None:
    report = right().check("allreduce", op="sum")
    assert report, report.text
    assert report.compared == "allreduce, 3 ranks, count 2 fp64 sum"
    assert "right result" in report.text
    assert "not compared" not in report.text
    for program in (right(), wrong()):
        report = program.check()
        assert report, "the ranks fit each other"
        assert report.compared is None
        assert "result not compared with anything" in report.text
        assert "right result" not in report.text


def test_a_report_is_its_text() -> None:
    for report in (right().check(), wrong().check("allreduce")):
        assert str(report) == report.text == f"{report}"
        assert not report.text.endswith("\n")
        assert "<svg" not in repr(report)


def race(p: Builder) -> None:
    p.move(take=p.src(0, 2), keep=p.dst(0, 2))
    p.move(take=p.src(2, 2), keep=p.dst(1, 2))


def test_nothing_is_called_proven_beside_a_counterexample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Program.build(1, race)
    report = program.check()
    assert report.kind == "race"
    program.save("race.uprg")
    assert main(["check", "race.uprg"]) == 1
    for text in (report.text, capsys.readouterr().out):
        assert "race:" in text
        assert "proven" not in text
        assert "no race" not in text
        assert "ordered" not in text


def algorithms() -> list[tuple[str, str, bool]]:
    """Every algorithm whose programs can stand in a file, in both forms."""
    found = []
    for entry in unisono.algorithms():
        collective = Collective[entry.collective.upper()]
        if collective < Collective.BCAST or entry.collective.endswith("v"):
            continue
        one_form = entry.collective in ("bcast", "barrier") or "not in place" in entry.restriction
        forms = [False] if one_form else [False, True]
        found += [(entry.collective, entry.name, in_place) for in_place in forms]
    return found


@pytest.mark.parametrize(("collective", "name", "in_place"), algorithms())
def test_every_algorithm_is_its_collective(collective: str, name: str, in_place: bool) -> None:
    rooted = collective in ("bcast", "reduce", "gather", "scatter")
    reduces = collective in ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")
    dtype = Datatype.NONE if collective == "barrier" else Datatype.INT32
    count = 0 if collective == "barrier" else 6
    tree = "((0 2) (1 3))" if name == "switch" else ""
    file = _core.program_file(
        int(Collective[collective.upper()]), name, 4, 1 if rooted else 0, int(Func.PROD), int(dtype), count, in_place,
        0, tree, bool(tree),
    )  # fmt: skip
    program = Program.parse(file)
    root = 1 if rooted else None
    op = "prod" if reduces else None
    report = program.check(collective, op=op, root=root, in_place=in_place, schedules=2)
    assert report, report.text
    if reduces:
        assert not program.check(collective, root=root, in_place=in_place, schedules=2), "a sum is another thing"
    if rooted:
        assert not program.check(collective, op=op, root=2, in_place=in_place, schedules=2)
    if collective != "barrier":
        assert not program.check(collective, op=op, root=root, in_place=in_place, count=7, schedules=2)
        other = "alltoall" if collective == "allgather" else "allgather"
        assert not program.check(other, schedules=2)
        assert not program.check("barrier", schedules=2)


def test_counts_by_rank() -> None:
    counts = [3, 0, 4]
    places = [0, 3, 3]

    def gatherv(p: Builder, shift: int = 0) -> None:
        own = counts[p.rank]
        if p.rank != 1:
            if own:
                p.move(take=p.src(0, own), send=p.message(1))
            return
        for rank in (0, 2):
            p.move(take=p.arrival(rank), keep=p.dst(places[rank] + shift, counts[rank]))

    program = Program.build(3, gatherv, dtype="int64")
    assert program.check("gatherv", root=1, counts=counts)
    assert not program.check("gatherv", root=0, counts=counts)
    assert not program.check("gatherv", root=1, counts=[3, 1, 4])
    assert not Program.build(3, lambda p: gatherv(p, 1), dtype="int64").check("gatherv", root=1, counts=counts)

    def alltoallv(p: Builder) -> None:
        """Rank i sends i + j elements to rank j."""
        for peer in range(p.size):
            begin = sum(p.rank + j for j in range(peer))
            elements = p.rank + peer
            if not elements:
                continue
            if peer == p.rank:
                p.move(take=p.src(begin, elements), keep=p.dst(begin, elements))
            else:
                p.move(take=p.src(begin, elements), send=p.message(peer))
                p.move(take=p.arrival(peer), keep=p.dst(begin, elements))

    rows = [[i + j for j in range(3)] for i in range(3)]
    program = Program.build(3, alltoallv)
    assert program.check("alltoallv", counts=rows), program.check("alltoallv", counts=rows).text
    assert not program.check("alltoallv", counts=[[i + j + (i == 2 and j == 2) for j in range(3)] for i in range(3)])


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (["allredcue"], {}, ["'allredcue'", "bcast, reduce, allreduce"]),
        (["send"], {}, ["'send'", "allowed are bcast"]),
        (["allreduce"], {"op": "summ"}, ["'summ'", "sum, prod"]),
        (["allreduce"], {"op": "bitwise_and"}, ["not defined on datatype fp64", "sum, prod"]),
        (["allreduce"], {"root": 1}, ["it has no root"]),
        (["reduce"], {"root": 3}, ["root 3", "ranks 0 to 2"]),
        (["reduce"], {"root": -1}, ["root -1"]),
        (["bcast"], {"op": "sum"}, ["nothing is reduced"]),
        (["bcast"], {"in_place": True}, ["has no other"]),
        (["gatherv"], {}, ["0 counts by rank", "give 3"]),
        (["allreduce"], {"count": -1}, ["count -1"]),
        (["allreduce"], {"counts": [1, 2, 3]}, ["it takes none"]),
        ([], {"op": "sum"}, ["go with a collective"]),
    ],
)
def test_what_is_no_call_is_refused(arguments: list[str], options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(unisono.UnisonoError) as failure:
        right().check(*arguments, **options)
    for word in words:
        assert word in str(failure.value)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, picture = tmp_path / "good", tmp_path / "bad", tmp_path / "why.svg"
    right().save(good)
    wrong(2).save(bad)
    assert main(["check", str(good), "--as", "allreduce:sum"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "right result of allreduce, 3 ranks, count 2 fp64 sum" in output
    assert "all right" in output
    assert main(["check", str(bad), "--as", "allreduce:sum", "--svg", str(picture)]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "element 0 of dst of rank 2 is max(" in output
    assert "must be sum over ranks 0 to 2" in output
    assert "1 program is wrong" in output
    assert picture.read_text() == wrong(2).check("allreduce").svg
    assert main(["check", str(bad)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "result not compared with anything" in output
    assert "all right" not in output
    assert main(["check", str(bad), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"][str(bad)]["compared"] is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("allreduce", {"collective": "allreduce"}),
        ("reduce:max:root=2", {"collective": "reduce", "op": "max", "root": 2}),
        ("allgather:in-place:count=3", {"collective": "allgather", "in_place": True, "count": 3}),
        ("gatherv:counts=1,2,3:root=1", {"collective": "gatherv", "root": 1, "counts": [1, 2, 3]}),
        ("alltoallv:counts=1,2/3,4", {"collective": "alltoallv", "counts": [[1, 2], [3, 4]]}),
    ],
)
def test_forms_of_the_command_line(text: str, meaning: dict[str, object]) -> None:
    assert unisono.program.Meaning.parse(text) == unisono.program.Meaning.of(**meaning)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("allreduce:summ", "has the part 'summ'"),
        ("allreduce:sum:max", "names op twice"),
        ("reduce:root=x", "has the part 'root=x'"),
        ("", "allowed are bcast"),
        ("gatherv:counts=", "has the part 'counts='"),
    ],
)
def test_forms_that_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    right().save(tmp_path / "file")
    assert main(["check", str(tmp_path / "file"), "--as", text]) == 2
    assert words in capsys.readouterr().err


def test_a_meaning_goes_with_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "allreduce/ring", "--as", "allreduce:sum"]) == 2
    assert "goes with a program file" in " ".join(capsys.readouterr().err.split())
