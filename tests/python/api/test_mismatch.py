"""Ranks that call differently: every rank in a call hears which call differs, and nobody ends well."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unisono
from differing_calls import Member, errors_of, texts_of
from unisono import Communicator, MismatchedCallError, ThreadJob


def rooted(name: str, comm: Communicator, count: int, root: int) -> None:
    """A call of `count` elements a rank, with data of the rank's own."""
    mine = np.full(count, 10.0 + comm.rank)
    all_of_them = np.zeros(count * comm.size)
    counts = [count] * comm.size
    if name == "bcast":
        comm.bcast(mine, root=root)
    elif name == "reduce":
        comm.reduce(mine, np.zeros(count), root=root)
    elif name == "gather":
        comm.gather(mine, all_of_them, root=root)
    elif name == "scatter":
        comm.scatter(all_of_them, mine, root=root)
    elif name == "gatherv":
        comm.gatherv(mine, all_of_them, counts, root=root)
    else:
        comm.scatterv(all_of_them, mine, counts, root=root)


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 3, 1000, 40_000])
@pytest.mark.parametrize("name", ["bcast", "reduce", "gather", "scatter", "gatherv", "scatterv"])
def test_differing_roots_are_named(name: str, count: int, size: int, lanes: bool) -> None:
    errors = errors_of(size, lambda comm: rooted(name, comm, count, comm.rank % 2), lanes=lanes)
    for text in texts_of(errors):
        assert name + "(" in text
        assert "root 0" in text
        assert "root 1" in text


LATER: dict[str, Member] = {
    "allreduce": lambda comm: comm.allreduce(np.full(3, 1.0 + comm.rank)),
    "barrier": lambda comm: comm.barrier(),
    "allgatherv": lambda comm: comm.allgatherv(np.full(2, comm.rank), np.zeros(2 * comm.size, int), [2] * comm.size),
    "allreduce_async": lambda comm: comm.allreduce_async(np.full(3, 1.0 + comm.rank)).wait(),
    "large": lambda comm: comm.allreduce(np.full(300_000, 1.0 + comm.rank)),
    "dup": lambda comm: comm.dup(),
}


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("later", LATER)
def test_the_call_that_differs_is_named_not_the_one_that_finds_it(later: str, count: int) -> None:
    def member(comm: Communicator) -> None:
        comm.allreduce(np.full(2, comm.rank))  # which is right
        rooted("bcast", comm, count, comm.rank % 2)
        LATER[later](comm)

    errors = errors_of(3, member)
    assert all(errors), errors
    for text in texts_of(errors):
        assert f"bcast({count} fp64, root 0)" in text
        assert f"bcast({count} fp64, root 1)" in text
        assert "bcast (communicator 0" in text
        assert "sequence 1)" in text


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_one_call_more_on_one_rank(extra: int) -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == extra:
            comm.scatter(np.arange(3.0), np.zeros(1), root=extra)
        comm.alltoall(np.full(3, 1.0 * comm.rank), np.zeros(3))

    errors = errors_of(3, member)
    assert all(errors), errors
    for text in texts_of(errors):
        assert "scatter(1 fp64" in text
        assert "alltoall(1 fp64)" in text


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("later", [0, 40])
def test_one_call_more_at_the_end_is_found_by_leaving(later: int, lanes: bool) -> None:
    def member(comm: Communicator) -> None:
        comm.barrier()
        for _ in range(1 + later if comm.rank == 0 else 0):
            comm.bcast(np.arange(2.0), root=0)

    (text, *_) = texts_of(errors_of(2, member, lanes=lanes))
    # Where all sets of lanes hold the later ones, rank 0 is done before anybody looks, and its records have none of the
    # first.
    assert "bcast" in text or (later and "rank 0 has made 42" in text), text
    assert "rank 1 has left without" in text or "has not taken" in text or later


def test_a_difference_older_than_the_records_is_found_by_leaving() -> None:
    def member(comm: Communicator) -> None:
        comm.bcast(np.zeros(0), root=comm.rank)
        for _ in range(40):  # without elements nothing is sent
            comm.bcast(np.zeros(0), root=0)

    (text, *_) = texts_of(errors_of(2, member))
    assert "has made 41 collective calls" in text
    assert "one before the last 32 differs" in text


def test_freeing_a_communicator_finds_it_and_frees_it() -> None:
    found: list[str] = []

    def member(comm: Communicator) -> None:
        made = comm.dup()
        rooted("bcast", made, 2, comm.rank)
        comm.barrier()  # both have called; who frees it first tells the other
        try:
            made.free()
        except MismatchedCallError as error:
            found.append(str(error))
        with pytest.raises(unisono.FreedCommunicatorError):
            made.barrier()
        comm.barrier()

    assert errors_of(2, member) == [None, None]
    assert found
    assert "bcast (communicator 1" in found[0]


@pytest.mark.parametrize("lanes", [True, False])
def test_the_same_calls_are_no_mismatch(lanes: bool) -> None:
    """However they are made: blocking or not, at different times, by different algorithms that a rank runs."""

    def member(comm: Communicator) -> float:
        random = np.random.default_rng(7)
        total = 0.0
        for turn in range(60):
            kind, count = random.integers(5), int(random.integers(200))
            if comm.rank == turn % comm.size:
                time.sleep(0.001)
            data = np.full(count, 1.0 + comm.rank)
            if kind == 0:
                comm.bcast(data, root=turn % comm.size)
            elif kind == 1:
                comm.allreduce_async(data).wait()
            elif kind == 2:
                total += comm.allreduce(data).sum()
            elif kind == 3:
                rooted("gatherv", comm, count, turn % comm.size)
            else:
                comm.barrier()
        return total

    results = ThreadJob(4, lanes=lanes, timeout=60).run(member)
    assert len(set(results)) == 1
    assert results[0] > 0


def test_a_deadline_says_who_waits_for_whom() -> None:
    def member(comm: Communicator) -> None:
        comm.recv(np.zeros(1), (comm.rank + 1) % comm.size, timeout=0.5)

    # A late rank finds that the others have ended.
    told = [str(error) for error in errors_of(3, member) if isinstance(error, unisono.DeadlineError)]
    assert any("a circle, in which nobody can go on" in text for text in told), told


def run(tmp_path: Path, program: str, ranks: int) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text("import numpy as np\nimport unisono\n" + textwrap.dedent(program))
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("left", ["with", "close", "atexit"])
def test_the_job_ends_with_an_error_however_it_is_left(tmp_path: Path, left: str) -> None:
    body = "comm = context.world\ncomm.bcast(np.full(3, 10.0 + comm.rank), root=comm.rank % 2)\n"
    program = {
        "with": "with unisono.init() as context:\n" + textwrap.indent(body, "    "),
        "close": "context = unisono.init()\n" + body + "context.close()\n",
        "atexit": "context = unisono.init()\n" + body,
    }[left]
    done = run(tmp_path, program, 3)
    assert done.returncode != 0, done
    assert "bcast(3 fp64, root 0)" in done.stderr
    assert "bcast(3 fp64, root 1)" in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("left", ["with", "atexit"])
def test_a_rank_that_fails_is_no_mismatch(tmp_path: Path, left: str) -> None:
    body = """
        comm = context.world
        comm.barrier()
        if comm.rank == 1:
            raise KeyError("my own error")
        comm.barrier()
        """
    if left == "with":
        program = "with unisono.init() as context:\n" + textwrap.indent(textwrap.dedent(body), "    ")
    else:
        program = "context = unisono.init()\n" + textwrap.dedent(body)
    done = run(tmp_path, program, 3)
    assert done.returncode != 0
    assert "my own error" in done.stderr
    assert "MismatchedCallError" not in done.stderr


def test_leaving_by_exit_is_checked_as_leaving_well_is(tmp_path: Path) -> None:
    program = """
        import sys
        with unisono.init() as context:
            comm = context.world
            comm.bcast(np.zeros(3), root=comm.rank)
            sys.exit(0)
        """
    done = run(tmp_path, program, 2)
    assert done.returncode != 0
    assert "MismatchedCallError" in done.stderr


# ----------------------------------------------------------------- counts by rank that do not agree


def alltoallv_of(comm: Communicator, more: int) -> None:
    """Rank 1 sends rank 0 other lengths than that awaits."""
    size = 5 + more
    sent = [size] * comm.size
    if comm.rank == 1:
        sent[0] -= 1
    comm.alltoallv(np.arange(sum(sent), dtype=float) + comm.rank, None, sent, [size] * comm.size)


def counts_on(comm: Communicator, size: int) -> list[int]:
    """The same sum everywhere, which all ranks compare; blocks of other lengths on rank 1."""
    counts = [size] * comm.size
    if comm.rank == 1:
        counts[:2] = [size - 1, size + 1]
    return counts


def allgatherv_of(comm: Communicator, more: int) -> None:
    counts = counts_on(comm, 5 + more)
    comm.allgatherv(np.full(counts[comm.rank], 1.0 + comm.rank), None, counts)


def reduce_scatterv_of(comm: Communicator, more: int) -> None:
    counts = counts_on(comm, 5 + more)
    comm.reduce_scatterv(np.full(sum(counts), 1.0 + comm.rank), None, counts)


def along_a_graph(comm: Communicator, more: int) -> None:
    """A ring, whose last block has another length for the sender."""
    size = 5 + more
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    graph = comm.graph([left], [right])
    sent = [size - 1 if comm.rank == 1 else size]
    comm.neighbour_alltoallv(graph, np.full(sent[0], 1.0 + comm.rank), None, sent, [size])


@pytest.mark.parametrize("more", [0, 3000])
@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("member", "name"),
    [
        (alltoallv_of, "alltoallv"),
        (allgatherv_of, "allgatherv"),
        (reduce_scatterv_of, "reduce_scatterv"),
        (along_a_graph, "neighbour_alltoallv"),
    ],
)
def test_counts_that_do_not_agree_are_named(
    member: Callable[[Communicator, int], None], name: str, size: int, lanes: bool, more: int
) -> None:
    def two_calls(comm: Communicator) -> None:
        member(comm, more)
        comm.barrier()

    texts = texts_of(errors_of(size, two_calls, lanes=lanes))
    assert any(name in text for text in texts), texts
    for text in texts:
        assert "do not agree" in text, text
        assert not any(words in text for words in ("shared memory", "gatherv or scatterv", "program")), text


@pytest.mark.parametrize("lanes", [True, False])
def test_exchanges_along_graphs_have_their_names_on_the_other_ranks(lanes: bool) -> None:
    def differing(comm: Communicator) -> None:
        peer = 1 - comm.rank
        graph = comm.graph([peer], [peer])
        comm.neighbour_allgather(graph, np.ones(3))
        if comm.rank == 0:
            comm.allreduce(np.ones(3))
            comm.barrier()
        else:
            comm.neighbour_alltoall(graph, np.ones(3))

    texts = texts_of(errors_of(2, differing, lanes=lanes))
    assert all("neighbour_alltoall" in text and "program" not in text for text in texts), texts


def test_a_deadline_names_the_exchange_that_a_rank_is_in() -> None:
    def late(comm: Communicator) -> str:
        peer = 1 - comm.rank
        graph = comm.graph([peer], [peer])
        other = comm.dup()
        if comm.rank == 1:
            comm.neighbour_allgather(graph, np.ones(3))
            return ""
        with pytest.raises(unisono.DeadlineError) as caught:
            other.recv(np.zeros(3), 1, timeout=0.5)
        comm.neighbour_allgather(graph, np.ones(3))
        return str(caught.value)

    text = unisono.ThreadJob(2).run(late)[0]
    assert "neighbour_allgather #" in text, text
    assert "program" not in text, text


@pytest.mark.parametrize("lanes", [True, False])
def test_a_block_that_nobody_awaits_is_found(lanes: bool) -> None:
    def surplus(comm: Communicator) -> None:
        sent = [0, 0]
        if comm.rank == 1:
            sent[0] = 4
        comm.alltoallv(np.arange(4.0)[: sum(sent)], None, sent, [0, 0])
        for _ in range(3):
            comm.barrier()
            comm.allreduce(np.ones(3))

    texts = texts_of(errors_of(2, surplus, lanes=lanes))
    assert all("do not agree" in text for text in texts), texts


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("split", lambda comm: comm.split(comm.rank)),
        ("dup", lambda comm: comm.dup()),
        ("graph", lambda comm: comm.graph([1 - comm.rank], [1 - comm.rank])),
        ("window", lambda comm: comm.window(np.zeros(4))),
    ],
)
def test_what_calls_for_its_user_names_itself(name: str, member: Member) -> None:
    """A window is bound between barriers, a graph begins with an all-gather: the user knows of neither."""

    def differing(comm: Communicator) -> None:
        if comm.rank == 0:
            member(comm)
        else:
            comm.allreduce(np.arange(3.0))

    errors = errors_of(2, differing)
    texts_of(errors)
    assert str(errors[0]).startswith(f"{name}: "), errors[0]
