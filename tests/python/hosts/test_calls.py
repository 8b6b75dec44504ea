"""What programs do on ranks of several hosts: progress, dead and stopped ranks, communicators within a host."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from .support import run

BEGIN = """
import os, signal, sys, time
import numpy as np
import unisono
context = unisono.init(timeout=20)
comm = context.world
"""


def job(tmp_path: Path, body: str, hosts: str = "a,b", *options: str) -> tuple[int, list[str], str]:
    """Runs a program; its status, sorted lines and errors."""
    script = tmp_path / "program.py"
    script.write_text(BEGIN + textwrap.dedent(body))
    done = run("--hosts", hosts, "--agent", "local", *options, script)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


def test_what_a_call_has_sent_arrives_without_further_calls(tmp_path: Path) -> None:
    """The first message to a rank waits for a connection to it, and the sender does not come back to the library."""
    status, lines, errors = job(
        tmp_path,
        f"""
        path = {str(tmp_path / "answer")!r}
        if comm.rank == 0:
            comm.send(np.arange(4.0), 1)
            deadline = time.monotonic() + 20
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.01)
            print("answered", os.path.exists(path))
        else:
            print(comm.recv(np.empty(4), 0).tolist())
            open(path, "w").close()
        """,
    )
    assert (status, lines, errors) == (0, ["[0.0, 1.0, 2.0, 3.0]", "answered True"], "")


@pytest.mark.parametrize("ends", ["comm.send(mine, 1)", "by_tests(comm.send_async(mine, 1))"])
def test_what_is_lost_is_sent_again_without_further_calls(ends: str, tmp_path: Path) -> None:
    """Over UDP: the sender stays out of the library until the receiver has the message."""
    status, lines, errors = job(
        tmp_path,
        f"""
        place = {str(tmp_path / "answer")!r}

        def by_tests(request):
            while not request.test():
                time.sleep(0.0001)

        for turn in range(15):
            mine = np.arange(40.0) + turn
            if comm.rank == 0:
                {ends}
                deadline = time.monotonic() + 15
                while not os.path.exists(place + str(turn)) and time.monotonic() < deadline:
                    time.sleep(0.002)
            else:
                assert comm.recv(np.empty(40), 0)[0] == turn
                open(place + str(turn), "w").close()
        print("done")
        """,
        "a,b",
        "--transport",
        "udp",
        "--env",
        "UNISONO_UDP_IMPAIR=loss=0.2,seed=5",
    )
    assert (status, lines, errors) == (0, ["done"] * 2, "")


def test_a_killed_rank_of_another_host_is_named_and_left_behind(tmp_path: Path) -> None:
    _, lines, errors = job(
        tmp_path,
        """
        comm.allreduce(np.ones(3))
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        begin = time.monotonic()
        try:
            comm.allreduce(np.ones(100_000))
        except unisono.UnisonoError as error:
            assert time.monotonic() - begin < 5, "noticed late"
            assert "rank 1" in str(error) and "on host b" in str(error), error
        left = comm.shrink()
        print(left.size, left.allreduce(np.array([1.0 + comm.rank]))[0])
        """,
        "a:1,b:1,a:1",
        "--keep-going",
    )
    assert lines == ["2 4.0", "2 4.0"], errors


def test_ranks_that_were_killed_count_for_no_part(tmp_path: Path) -> None:
    """Their hosts say that they have ended, so nobody can go on elsewhere: the last one does, whichever it is."""
    _, lines, errors = job(
        tmp_path,
        """
        comm.allreduce(np.ones(3))
        if comm.rank != 2:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            comm.allreduce(np.ones(100_000))
        except unisono.UnisonoError:
            pass
        left = comm.shrink()
        print(left.size, left.allreduce(np.array([1.0 + comm.rank]))[0])
        """,
        "a:1,b:1,c:1",
        "--keep-going",
    )
    assert lines == ["1 3.0"], errors


def test_a_stopped_rank_is_alive_until_the_deadline(tmp_path: Path) -> None:
    status, lines, _ = job(
        tmp_path,
        """
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            comm.allreduce(np.ones(100_000), timeout=2)
        except unisono.DeadlineError as error:
            print("deadline", "rank 1" in str(error), flush=True)
        os._exit(0)
        """,
        "a,b",
        "--timeout",
        "6",
    )
    assert lines == ["deadline True"]
    assert status != 0


def test_calls_that_are_started_in_a_row(tmp_path: Path) -> None:
    status, lines, errors = job(
        tmp_path,
        """
        for round in range(200):
            count = 24
            mine = [np.full(3 + i, 1000.0 * round + 10 * i + comm.rank) for i in range(count)]
            sums = [np.empty(3 + i) for i in range(count)]
            roots = [np.full(5, float(round * count + i) if comm.rank == i % comm.size else -1.0) for i in range(count)]
            requests = []
            for i in range(count):
                requests.append(comm.allreduce_async(mine[i], sums[i]))
                if round % 2:
                    requests.append(comm.bcast_async(roots[i], i % comm.size))
            for request in reversed(requests) if round % 3 else requests:
                request.wait()
            for i in range(count):
                assert (sums[i] == comm.size * (1000.0 * round + 10 * i) + 6).all(), (round, i, sums[i])
                assert round % 2 == 0 or (roots[i] == round * count + i).all(), (round, i, roots[i])
        print("right")
        """,
        "a:2,b:1,c:1",
    )
    assert (status, errors) == (0, "")
    assert lines == ["right"] * 4


def test_what_was_started_in_a_row_and_needs_nothing_more_arrives(tmp_path: Path) -> None:
    status, lines, errors = job(
        tmp_path,
        """
        comm.barrier()
        begin = time.monotonic()
        data = [np.full(4, i if comm.rank == 0 else -1) for i in range(5)]
        requests = [comm.bcast_async(one) for one in data]
        if comm.rank == 0:
            time.sleep(3)  # no call of the library meanwhile
        for request in requests:
            request.wait()
        took = time.monotonic() - begin
        assert [int(one[3]) for one in data] == list(range(5))
        print(comm.rank == 0 or took < 2, took)
        """,
        "a,b",
    )
    assert (status, errors) == (0, "")
    assert [line.split()[0] for line in lines] == ["True"] * 2, lines


@pytest.mark.parametrize("transport", ["tcp", "udp,tcp", "ofi,tcp"])
def test_the_helper_thread_serves_calls_between_hosts(tmp_path: Path, transport: str) -> None:
    """Nobody waits in the library: what ends a call comes over the network, and later calls follow quiet times."""
    status, lines, errors = job(
        tmp_path,
        """
        import asyncio
        context.close()
        context = unisono.init(timeout=20, offload=True)
        comm = context.world
        async def calls():
            for turn in range(40):
                if turn % 10 == 9:
                    await asyncio.sleep(0.03 * comm.rank)
                total = await comm.allreduce_async(np.full(4, turn + comm.rank))
                assert (total == comm.size * turn + sum(range(comm.size))).all(), total
        asyncio.run(calls())
        print("done")
        """,
        "a:2,b:1",
        "--transport",
        transport,
    )
    if "apt-get install" in errors:  # libfabric, or its headers for the build
        pytest.skip(errors.strip())
    assert (status, lines, errors) == (0, ["done"] * 3, "")


@pytest.mark.parametrize(("transport", "provider"), [("ofi,tcp", "tcp;ofi_rxm"), ("ofi", "shm"), ("tcp", "")])
def test_windows_of_other_hosts(tmp_path: Path, transport: str, provider: str) -> None:
    """Allocated and ordinary ones, short and long accesses, of which the long ones may be written by the network."""
    status, lines, errors = job(
        tmp_path,
        """
        n = 100_000
        peer, origin = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        for window in (comm.empty(2 * n), np.empty(2 * n)):
            for count in (1, 8192, n):
                window[:] = comm.rank
                comm.window(window)
                for turn in range(5):
                    comm.put(np.arange(count) + 10.0 * comm.rank + turn, peer, 8 * n)
                    comm.barrier()
                    assert (window[n : n + count] == np.arange(count) + 10.0 * origin + turn).all()
                    assert (window[:n] == comm.rank).all() and (window[n + count :] == comm.rank).all()
                    got = comm.get(np.empty(count + 5), peer, 8 * (n - 5))
                    assert (got[:5] == peer).all() and (got[5:] == np.arange(count) + 10.0 * comm.rank + turn).all()
                    comm.barrier()
                comm.window(None)
        print("right")
        """,
        "a:2,b:1",
        "--transport",
        transport,
        *(("--env", f"UNISONO_OFI_PROVIDER={provider}") if provider else ()),
    )
    if "apt-get install" in errors:  # libfabric, or its headers for the build
        pytest.skip(errors.strip())
    assert (status, lines, errors) == (0, ["right"] * 3, "")


@pytest.mark.parametrize("access", ["put", "get"])
def test_who_dies_at_a_window_of_another_host_is_named(tmp_path: Path, access: str) -> None:
    """The owner of the window hears of it, whether or not the network was writing."""
    _, lines, errors = job(
        tmp_path,
        f"""
        n = 4_000_000
        window = comm.empty(n)
        comm.window(window)
        if comm.rank == 1:
            data = np.empty(n)
            comm.{access}(data, 0)
            comm.{access}_async(data, 0).test()
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                comm.barrier()
        except unisono.PeerDeadError:
            window[:] = 7
            time.sleep(0.1)
            print("named", (window == 7).all())
        """,
        "a,b",
        "--transport",
        "ofi,tcp",
        "--env",
        "UNISONO_OFI_PROVIDER=tcp;ofi_rxm",
        "--keep-going",
    )
    if "apt-get install" in errors:  # libfabric, or its headers for the build
        pytest.skip(errors.strip())
    assert lines == ["named True"], errors


def test_an_event_loop_hears_of_messages_from_other_hosts(tmp_path: Path) -> None:
    """Without the helper thread: the descriptor rings for what comes over the network."""
    status, lines, errors = job(
        tmp_path,
        """
        import asyncio
        async def calls():
            for turn in range(10):
                await asyncio.sleep(0.02 * comm.rank)
                total = await comm.allreduce_async(np.full(4, turn + comm.rank))
                assert (total == comm.size * turn + sum(range(comm.size))).all(), total
        asyncio.run(calls())
        print("done")
        """,
        "a,b,c",
    )
    assert (status, lines, errors) == (0, ["done"] * 3, "")


def test_a_process_without_descriptors_says_so_and_takes_nobody_for_dead(tmp_path: Path) -> None:
    """What it lacks is its own affair; with a higher limit it goes on."""
    status, lines, errors = job(
        tmp_path,
        f"""
        path = {str(tmp_path / "over")!r}"""
        """
        import resource, threading
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        def use_all():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
            try:
                while True:
                    os.dup(2)
            except OSError:
                pass
        if comm.rank == 1:
            use_all()
            threading.Timer(0.5, resource.setrlimit, [resource.RLIMIT_NOFILE, (soft, hard)]).start()
            comm.send(np.arange(3.0), 2)
            comm.recv(np.empty(3), 2)
            use_all()
            try:
                comm.recv(np.empty(1), 0, timeout=1)
            except unisono.UnisonoError as error:
                text = str(error)
                print("limited:", "timed out" in text, "ulimit -n" in text, "died" in text, "reach" in text)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            open(path, "w").close()
        elif comm.rank == 2:
            got = comm.recv(np.empty(3), 1)
            comm.send(got, 1)
            print(got.tolist())
        else:
            deadline = time.monotonic() + 20
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.01)
        """,
        "a,b,c",
        "--keep-going",
    )
    assert lines == ["[0.0, 1.0, 2.0]", "limited: True True False False"], (status, errors)


def test_communicators_within_a_host_share_memory(tmp_path: Path) -> None:
    status, lines, errors = job(
        tmp_path,
        """
        host = os.environ["UNISONO_HOST"]
        own = comm.split(ord(host[0]), comm.rank)
        print(host, comm.state.lanes, own.state.lanes, own.size, own.allreduce(np.array([1.0 + comm.rank]))[0])
        """,
        "a:2,b:3",
    )
    assert (status, errors) == (0, "")
    assert lines == ["a False True 2 3.0"] * 2 + ["b False True 3 12.0"] * 3


def test_objects_windows_and_messages_of_anybody_cross_hosts(tmp_path: Path) -> None:
    status, lines, errors = job(
        tmp_path,
        """
        objects = comm.allgather_object({"rank": comm.rank, "data": np.arange(3) + comm.rank})
        assert [int(o["data"][0]) for o in objects] == [0, 1, 2, 3]
        memory = np.zeros(4, dtype=np.int64)
        comm.window(memory)
        for peer in range(comm.size):
            comm.put(np.array([10 * comm.rank + peer]), peer, 8 * comm.rank)
        comm.barrier()
        assert memory.tolist() == [10 * rank + comm.rank for rank in range(4)], memory
        there = np.empty(4, dtype=np.int64)
        comm.get(there, (comm.rank + 1) % 4, 0)
        assert there.tolist() == [10 * rank + (comm.rank + 1) % 4 for rank in range(4)], there
        if comm.rank == 0:
            seen = set()
            for _ in range(3):
                status = unisono.Status()
                into = np.empty(20_000)
                comm.recv(into, unisono.ANY_SOURCE, tag=unisono.ANY_TAG, status=status)
                assert (into == status.source).all() and status.tag == 7 * status.source
                seen.add(status.source)
            assert seen == {1, 2, 3}
        else:
            comm.send(np.full(20_000, float(comm.rank)), 0, tag=7 * comm.rank)
        comm.barrier()
        print("right")
        """,
        "a:2,b:2",
    )
    assert (status, lines, errors) == (0, ["right"] * 4, "")


@pytest.mark.parametrize("hosts", ["a:3,b:2", "a,b:2,a:2,c:2,b"])
def test_a_long_sum_is_divided_among_the_ranks_of_each_host(tmp_path: Path, hosts: str) -> None:
    """Hosts of several sizes, ranks that do not follow one another, lengths that no number of shares divides."""
    status, lines, errors = job(
        tmp_path,
        """
        rng = np.random.default_rng(7)
        for length in (131_073, 300_007):
            rows = rng.integers(-1000, 1000, size=(comm.size, length))
            total = comm.allreduce(rows[comm.rank].copy())
            assert comm.last_algorithm.name == "multi_leader", comm.last_algorithm
            assert np.array_equal(total, rows.sum(0))
            mine = rows[comm.rank].copy()
            comm.allreduce(mine, mine)
            assert np.array_equal(mine, rows.sum(0))
        print("done")
        """,
        hosts,
    )
    size = sum(int(each.partition(":")[2] or 1) for each in hosts.split(","))
    assert (status, lines, errors) == (0, ["done"] * size, "")
