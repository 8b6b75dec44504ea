"""Programs written in Python: built, checked, saved, loaded, run on threads, drawn. Every rank has different data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import Builder, Program, ThreadJob
from unisono.cli import main

ROOT = Path(__file__).resolve().parents[3]
P = 3
N = 5


def values(rank: int, n: int = N) -> np.ndarray:
    return np.arange(n) * 1.5 + 10.0**rank


def total(n: int = N) -> np.ndarray:
    return sum(values(rank, n) for rank in range(P))


def run(program: Program, n: int = N) -> list[np.ndarray]:
    return ThreadJob(P, timeout=30).run(lambda comm: comm.run_program(program, values(comm.rank, n), np.zeros(n)))


def all_to_all(p: Builder) -> None:
    """All-reduce: my vector to everybody, everybody's to me, summed in the order of the ranks."""
    others = [rank for rank in range(p.size) if rank != p.rank]
    p.move(take=p.src(0, N), send=p.message(others, tag=3))
    p.move(take=p.src(0, N), combine=p.arrival(others, tag=3), keep=p.dst(0, N))


def chain(p: Builder) -> None:
    """All-reduce: partial sums go up the ranks, the total comes down; sums are sent on element by element."""
    up, down = p.rank + 1, p.rank - 1
    mine, result = p.src(0, N), p.dst(0, N)
    if p.rank == 0:
        p.move(take=mine, send=p.message(up))
        p.move(take=p.arrival(up, tag=1), keep=result)
    elif up < p.size:
        p.move(take=p.arrival(down), combine=mine, send=p.message(up))
        arrived = p.move(take=p.arrival(up, tag=1), keep=result)
        p.move(take=result, send=p.message(down, tag=1), follow=arrived)
    else:
        summed = p.move(take=p.arrival(down), combine=mine, keep=result)
        p.move(take=result, send=p.message(down, tag=1), after=summed)


@pytest.mark.parametrize("write", [all_to_all, chain])
def test_an_allreduce_written_in_python(write: object, tmp_path: Path) -> None:
    built = Program.build(P, write, dtype="fp64")
    report = built.check()
    assert report
    assert report.moves == sum(len(built.text(rank).splitlines()) for rank in range(P))
    assert "no deadlock" in report.text
    path = tmp_path / "allreduce.uprg"
    built.save(path)
    loaded = Program.load(path)
    assert loaded == built
    assert loaded.size == P
    for result in run(loaded):
        np.testing.assert_array_equal(result, total())


def straight(p: Builder, *, told: bool = True) -> None:
    """All-reduce in the memory of all: my element of everybody's src, summed, into everybody's dst."""
    others = [rank for rank in range(p.size) if rank != p.rank]
    mine = p.src(p.rank, 1), p.dst(p.rank, 1)
    summed = p.move(take=mine[0].at(range(p.size)), keep=mine[1], send=mine[1].at(others))
    p.move(send=p.message(others), signal=True, after=summed if told else ())
    p.move(take=p.arrival(others), signal=True)


def test_a_program_in_the_memory_of_all() -> None:
    program = Program.build(P, straight, dtype="fp64")
    assert program.text(1).splitlines()[0].split(maxsplit=1)[1] == (
        "dst[8:16] = sum remote({0, 1, 2}).src[8:16] -> remote({0, 2}).dst[8:16]"
    )
    assert program.check(), program.check().text
    hasty = Program.build(P, lambda p: straight(p, told=False), dtype="fp64").check()
    assert not hasty
    assert hasty.kind == "unfinished access"
    with pytest.raises(unisono.UnsupportedError, match="direct access"):
        run(program, P)


def test_a_move_reads_and_writes_memory_of_peers_at_one_offset() -> None:
    def shifted(p: Builder) -> None:
        p.move(take=p.src(1, 1).at(1 - p.rank), send=p.dst(2, 1).at(1 - p.rank))

    with pytest.raises(unisono.MalformedProgramError, match=r"byte 4 .* byte 8; both have one offset"):
        Program.build(2, shifted)


def test_what_a_builder_writes() -> None:
    def write(p: Builder) -> None:
        a = p.move(take=p.src(2, 4, "int32"), keep=p.scratch(1, 4, "int32"))
        b = p.move(take=p.scratch(1, 4, "int32"), combine=p.src(0, 4, "int32"), func="max", keep=p.dst(0, 4, "int32"),
                   after=a)  # fmt: skip
        p.move(take=p.dst(0, 4, "int32"), send=p.dst(6, 4, "int32").at(1 - p.rank), follow=[b])
        p.move(take=p.window(0, 2).at(1 - p.rank), keep=p.dst(4, 2), after=[a, b])
        p.move(send=p.message(1 - p.rank, tag=9), signal=True)
        p.move(take=p.arrival([1 - p.rank], tag=9, any_order=True), signal=True)

    text = Program.build(2, write).text(0)
    assert [line.split(maxsplit=1)[1] for line in text.splitlines()[:6]] == [
        "scratch[4:20] = src[8:24]",
        "dst[0:16] = max(scratch[4:20], src[0:16])  after 0",
        "dst[0:16] -> remote(1).dst[24:40]  stream after 1",
        "dst[16:24] = remote(1).window[0:8]  after 1, 0",
        "signal -> send(1, tag 9)",
        "signal arrival(any of {1}, tag 9)",
    ]
    assert "scratch: 20 bytes" in text


def test_the_order_of_operands_is_the_order_written() -> None:
    def write(p: Builder) -> None:
        if p.rank == 0:
            p.move(take=p.src(0, 1), send=p.message(1))
        else:
            p.move(take=p.arrival(0), combine=p.src(0, 1), keep=p.dst(0, 1))
            p.move(take=p.src(0, 1), combine=p.src(1, 1), swap=True, keep=p.dst(1, 1))

    lines = Program.build(2, write).text(1).splitlines()
    assert "arrival(0, tag 0) + src[0:4]" in lines[0]
    assert "src[4:8] + src[0:4]" in lines[1]


def one_move_ring(p: Builder) -> None:
    """A ring whose ranks take a block in, keep it and pass it on in one move: no rank can begin (decision 8)."""
    right, left = (p.rank + 1) % p.size, (p.rank - 1) % p.size
    blocks = [p.dst(rank * 2, 2) for rank in range(p.size)]
    p.move(take=blocks[p.rank], send=p.message(right, tag=0))
    for step in range(1, p.size - 1):
        p.move(
            take=p.arrival(left, tag=step - 1), keep=blocks[(p.rank - step) % p.size], send=p.message(right, tag=step)
        )
    p.move(take=p.arrival(left, tag=p.size - 2), keep=blocks[(p.rank + 1) % p.size])


def test_a_deadlock_is_found_with_rank_and_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program.build(4, one_move_ring)
    report = program.check()
    assert not report
    assert report.kind == "deadlock"
    assert (report.rank, report.move) == (0, 0)
    for rank in range(4):
        assert f"rank {rank}, move 1: " in report.text
    path = tmp_path / "ring.uprg"
    program.save(path)
    assert main(["check", str(path), "--svg", str(tmp_path / "why.svg")]) == 1
    output = capsys.readouterr().out
    assert "1 program is wrong" in output
    assert "rank 1, move 1: " in output
    assert (tmp_path / "why.svg").read_text() == report.svg


def test_a_race_and_a_lost_message_are_found() -> None:
    def race(p: Builder) -> None:
        p.move(take=p.src(0, 2), keep=p.dst(0, 2))
        p.move(take=p.src(2, 2), keep=p.dst(1, 2))

    def lost(p: Builder) -> None:
        if p.rank == 0:
            p.move(take=p.src(0, 2), send=p.message(1))

    assert Program.build(1, race).check().kind == "race"
    report = Program.build(2, lost).check()
    assert report.kind == "unmatched"
    assert "rank 0, move 0" in report.text
    assert report.svg is not None
    assert ">send → 1</text>" in report.svg, "a drawing, not a sentence"


REFUSALS = [
    ("peer", lambda p: p.move(take=p.src(0, 1), send=p.message(9)), ["rank 0, move 0", "rank 9", "0 to 1"]),
    ("counts", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 2)), ["rank 0, move 0", "count 1, 2", "the same"]),
    ("dtypes", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1, "fp64")), ["dtype fp32, fp64"]),
    ("two arrivals", lambda p: p.move(p.arrival(1), p.arrival(1), keep=p.dst(0, 1)), ["both from peers"]),
    ("no result", lambda p: p.move(take=p.src(0, 1)), ["rank 0, move 0", "no result"]),
    ("func", lambda p: p.move(p.src(0, 1), p.src(1, 1), func="xor", keep=p.dst(0, 1)), ["'xor'", "sum, prod"]),
    ("bytes", lambda p: p.move(p.src(0, 1, "byte"), p.src(1, 1, "byte"), keep=p.dst(0, 1, "byte")),
     ["sum on datatype byte"]),
    ("offset", lambda p: p.src(-1, 2), ["src(-1, 2)", "0 and more"]),
    ("dtype", lambda p: p.src(0, 2, "fp8"), ["'fp8'", "fp16, bf16"]),
    ("after a number", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1), after=17),
     ["rank 0, move 0: after is 17", "what move() returned", "after=first"]),
    ("after numbers", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1), after=[0, 1]), ["after is [0, 1]"]),
    ("follow a number", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1), follow=1), ["follow is 1"]),
    ("after nothing", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1), after=None), ["after is None"]),
    ("after a move to come", lambda p: p.move(take=p.src(0, 1), keep=p.dst(0, 1), after=unisono.program.Step(0, 17)),
     ["after names move 17", "has 0 so far", "written before"]),
    ("take a number", lambda p: p.move(take=3, keep=p.dst(0, 1)), ["take is 3", "p.src(...)"]),
    ("send memory", lambda p: p.move(take=p.src(0, 1), send=p.dst(0, 1)), ["send is Slice(", "p.message(...)"]),
    ("keep a message", lambda p: p.move(take=p.src(0, 1), keep=p.message(1)), ["keep is Message(", "p.dst(...)"]),
    ("tag", lambda p: p.move(take=p.src(0, 1), send=p.message(1, tag=1 << 24)), ["rank 0, move 0", "16777216"]),
]  # fmt: skip


@pytest.mark.parametrize(("write", "words"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_moves_without_a_meaning_are_refused(write: object, words: list[str]) -> None:
    with pytest.raises((unisono.MalformedProgramError, unisono.InvalidArgumentError)) as failure:
        Program.build(2, write)
    for word in words:
        assert word in str(failure.value)


def test_steps_of_another_rank_cannot_be_waited_for() -> None:
    steps = []

    def write(p: Builder) -> None:
        steps.append(p.move(take=p.src(0, 1), keep=p.dst(0, 1), after=steps))

    with pytest.raises(unisono.MalformedProgramError, match="rank 1, move 0: after names a move of rank 0"):
        Program.build(2, write)


def test_far_dependencies_are_left_to_the_window() -> None:
    def write(p: Builder) -> None:
        first = p.move(take=p.src(0, 1), keep=p.dst(0, 1))
        for i in range(1, 40):
            p.move(take=p.src(i, 1), keep=p.dst(i, 1))
        p.move(take=p.dst(0, 1), keep=p.dst(50, 1), after=first, follow=first)

    program = Program.build(1, write)
    assert "after" not in program.text(0).splitlines()[-1]
    assert program.check()


def test_buffers_that_a_program_needs(tmp_path: Path) -> None:
    program = Program.build(1, lambda p: p.move(take=p.src(0, 4), keep=p.dst(4, 4)))
    comm = unisono.init().world
    with pytest.raises(unisono.BufferTooSmallError, match="src holds 12 bytes; the program of rank 0 needs 16 bytes"):
        comm.run_program(program, np.zeros(3, np.float32), np.zeros(8, np.float32))
    with pytest.raises(unisono.BufferTooSmallError, match=r"dst holds 16 bytes.* needs 32 bytes"):
        comm.run_program(program, np.zeros(4, np.float32), np.zeros(4, np.float32))
    with pytest.raises(unisono.BufferTooSmallError, match="src holds 0 bytes"):
        comm.run_program(program)
    with pytest.raises(unisono.InvalidArgumentError, match=r"nowhere.uprg cannot be read: No such file"):
        comm.run_program(tmp_path / "nowhere.uprg")


def test_a_program_file_is_shown_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chain.uprg"
    Program.build(P, chain).save(path)
    assert main(["show", str(path), "--rank", "1"]) == 0
    output = capsys.readouterr().out
    assert "rank 1 of 3" in output
    assert "arrival(0, tag 0) + src[0:20] -> send(2, tag 0)" in output
    assert main(["show", str(path), "--rank", "3"]) == 2
    assert "ranks 0 to 2" in capsys.readouterr().err
    assert main(["show", str(path), "--svg", str(tmp_path / "chain.svg")]) == 0
    assert (tmp_path / "chain.svg").read_text() == Program.load(path).draw()


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(
        r'^```python title="allreduce.py"\n(.*?)^```$',
        (ROOT / "docs/program-files.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert found
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(found[1], "allreduce.py", "exec"), names)
    assert "deadlock" in str(names["report"])
    assert (tmp_path / "allreduce.uprg").exists()
    assert names["sums"] == [[111.0, 111.0], [111.0, 111.0], [111.0, 111.0]]


def test_the_pictures_of_the_pages_are_current(tmp_path: Path) -> None:
    pictures = {"deadlock.svg": Program.build(4, one_move_ring).check().svg}
    for name, count in (("ring", "8"), ("direct", "64")):
        path = tmp_path / f"allreduce-{name}.svg"
        assert main(["show", f"allreduce/{name}", "--ranks", "4", "--count", count, "--svg", str(path)]) == 0
        pictures[path.name] = path.read_text()
    for name, current in pictures.items():
        stored = (ROOT / "docs/pictures" / name).read_text()
        assert stored == current, (
            f"docs/pictures/{name} is not what is drawn today; docs/checker.md says how to draw it"
        )
