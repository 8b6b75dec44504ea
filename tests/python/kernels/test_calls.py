"""What kernels ask an engine for, beside sends and receives: messages to ports, prepared calls, sessions, and
collectives from port to port. One library and one host, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_named import PLATFORMS, unisono

SOURCE = Path(__file__).with_name("calls_kernels.cpp")
HARDWARE = PLATFORMS[2:]

BEGIN = """
import numpy as np
import unisono
from unisono import Stream

def refused(words, action):
    try:
        action()
    except unisono.UnisonoError as error:
        for word in words:
            assert word in str(error), (word, str(error))
    else:
        raise SystemExit(f"nothing was refused: {words}")

with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    comm = world.dup(streams=True)
    right, left = (rank + 1) % size, (rank - 1) % size
"""
END = """
    world.barrier()
    print(f"rank {rank} is right\\n", end="")
"""


@pytest.fixture(scope="session")
def calls_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kernels") / "k.so"
    done = unisono("kernel", "build", SOURCE, "-o", made)
    assert done.returncode == 0, done.stderr
    return made


def runs(tmp_path: Path, library: Path, platform: str, ranks: int, body: str, *options: str) -> None:
    script = tmp_path / "host.py"
    script.write_text(BEGIN + body + END)
    done = unisono("run", "-n", ranks, *options, "--kernels", library, "--platform", *platform.split(), script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(ranks)]


TO_PORT = """
    # Around a ring, short and longer than an eager message; what came before is received first.
    def around(length, messages):
        got = np.zeros(messages * length, "i4")
        context.kernel("to_port")(length, messages, right, 1, messages, got, comm).wait()
        for m, block in enumerate(got.reshape(messages, length)):
            expected = 1000 * left + 100 * m + np.arange(length)
            expected[0] = left
            np.testing.assert_array_equal(block, expected)
    around(1, 3)
    around(37, 5)
    around(900, 3)
    around(2500, 1)
    # All to one, whose port is read later than the messages come. Each comes whole.
    world.barrier()
    got = np.zeros(40 * size if rank == 1 else 0, "i4")
    context.kernel("to_port")(40, 1, 1, 1, size if rank == 1 else 0, got, comm).wait()
    if rank == 1:
        blocks = got.reshape(size, 40)
        assert sorted(blocks[:, 0]) == list(range(size)), blocks[:, 0]
        for block in blocks:
            np.testing.assert_array_equal(block[1:], 1000 * block[0] + np.arange(1, 40))
    # A host puts, too.
    world.barrier()
    if rank == 0:
        world.stream_put((np.arange(20) - 7).astype("i4"), 1, 1)
    got = np.zeros(20, "i4")
    if rank == 1:
        context.kernel("to_port")(20, 0, 0, 1, 1, got, comm).wait()
        np.testing.assert_array_equal(got, np.arange(20) - 7)
    nothing = np.zeros(0, "i4")
    wrong = lambda *given: context.kernel("to_port")(*given, 0, nothing, comm).wait
    refused(["kernel to_port", "stream port 16"], wrong(1, 1, 0, 16))
    refused(["kernel to_port", "peer 99", f"0 to {size - 1}"], wrong(1, 1, 99, 1))
"""


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_to_ports(calls_library: Path, tmp_path: Path, platform: str, ranks: int) -> None:
    runs(tmp_path, calls_library, platform, ranks, TO_PORT)


@pytest.mark.parametrize("platform", HARDWARE[:1])
def test_messages_to_ports_of_eight(calls_library: Path, tmp_path: Path, platform: str) -> None:
    runs(tmp_path, calls_library, platform, 8, TO_PORT)


PREPARED = """
    # Counts by rank, and an exchange along a graph, of what the kernel changes; in each round the second call passes on
    # what the first has brought.
    counts = [3 + 2 * r for r in range(size)]
    mine = (np.arange(counts[rank]) + 100 * rank).astype("f4")
    before = mine.copy()
    gathered = np.zeros(sum(counts), "f4")
    first = comm.allgatherv_async(mine, gathered, counts, start=False)
    ring = comm.graph([left], [right])
    passed = np.zeros((1, sum(counts)), "f4")
    second = comm.neighbour_allgather_async(ring, gathered, passed, start=False)
    context.kernel("starts")(first, second, mine, 3, comm).wait()
    np.testing.assert_array_equal(mine, before + 3)
    everything = np.concatenate([np.arange(counts[r]) + 100 * r + 3 for r in range(size)])
    np.testing.assert_array_equal(gathered, everything)
    np.testing.assert_array_equal(passed[0], everything)
    # Once more: a prepared call can be started again, by another kernel, or by the host.
    context.kernel("starts")(second, first, mine, 1, comm).wait()
    np.testing.assert_array_equal(gathered, everything + 1)
    np.testing.assert_array_equal(passed[0], everything)
    second.start()
    second.wait()
    np.testing.assert_array_equal(passed[0], everything + 1)
    # A program of the user's, and blocks for each pair.
    def write(p):
        right = (p.rank + 1) % p.size
        p.move(p.src(0, 8), send=p.dst(0, 8).at(right)) if False else None
        p.move(p.src(0, 8), p.src(8, 8), func="sum", keep=p.dst(0, 8))
    program = unisono.Program.build(size, write)
    src = (np.arange(16) * (rank + 1)).astype("f4")
    dst = np.zeros(8, "f4")
    first = comm.run_program_async(program, src, dst, start=False)
    send = [1 + (rank + r) % 3 for r in range(size)]
    blocks = np.concatenate([np.full(n, 10 * rank + r) for r, n in enumerate(send)]).astype("f4")
    came = np.zeros(sum(send), "f4")
    second = comm.alltoallv_async(blocks, came, send, send, start=False)
    context.kernel("starts")(first, second, src, 2, comm).wait()
    np.testing.assert_array_equal(dst, (np.arange(16) * (rank + 1) + 2).reshape(2, 8).sum(0))
    expected = np.concatenate([np.full(n, 10 * r + rank) for r, n in enumerate(send)])
    np.testing.assert_array_equal(came, expected)
    # What is refused.
    starts = context.kernel("starts")
    refused(["argument 0", "prepared call"], lambda: starts(3, second, src, 1, comm))
    refused(["argument 1", "another argument"], lambda: starts(first, first, src, 1, comm))
    once = comm.allgatherv_async(mine, gathered, counts)
    once.wait()
    refused(["argument 0", "runs once", "start=False"], lambda: starts(once, second, src, 1, comm))
"""


@pytest.mark.parametrize("platform", PLATFORMS)
def test_prepared_calls(calls_library: Path, tmp_path: Path, platform: str) -> None:
    runs(tmp_path, calls_library, platform, 2, PREPARED)


@pytest.mark.parametrize("platform", HARDWARE[:1])
def test_prepared_calls_of_four(calls_library: Path, tmp_path: Path, platform: str) -> None:
    runs(tmp_path, calls_library, platform, 4, PREPARED)


SESSIONS = """
    peer = rank ^ 1
    if peer < size:
        def talk(n, piece, other, number):
            data = ((np.arange(n) * 7 + 31 * (rank & ~1)) % 256).astype("u1")
            if rank & 1:
                counted = np.zeros(1, "u8")
                context.kernel("answers")(other, peer, number, counted, comm).wait()
                assert counted[0] == n, counted
            else:
                back = np.zeros(n, "u1")
                context.kernel("asks")(data, back, piece, peer, number, comm).wait()
                np.testing.assert_array_equal(back, data + np.uint8(peer))
        talk(1, 1, 1, 0)
        talk(320, 64, 64, 255)
        talk(333, 111, 111, 7)
        talk(24, 8, 4, 1)  # cut otherwise
        talk(3000, 1000, 500, 1)
        # One way, cut at other places on both sides.
        n = {pour}
        data = ((np.arange(n) * 13 + 17 * (rank | 1)) % 251).astype("u1")
        if rank & 1:
            got = np.zeros(n, "u1")
            context.kernel("drinks")(got, 97, peer, comm).wait()
            np.testing.assert_array_equal(got, data)
        else:
            context.kernel("pours")(data, peer, comm).wait()
    refused(["kernel opens", "session 3 with rank 77", "send", "peer 77"], context.kernel("opens")(77, 3, comm).wait)
    refused(["kernel opens", "session 256", "0 to 255"], context.kernel("opens")(0, 256, comm).wait)
"""


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sessions(calls_library: Path, tmp_path: Path, platform: str) -> None:
    pour = 2000 if "--native" in platform else 20000
    runs(tmp_path, calls_library, platform, 2, SESSIONS.replace("{pour}", str(pour)))


@pytest.mark.parametrize("platform", ["native", *HARDWARE[:1]])
def test_sessions_side_by_side(calls_library: Path, tmp_path: Path, platform: str) -> None:
    runs(tmp_path, calls_library, platform, 5, SESSIONS.replace("{pour}", "9000"))


SILENT = """
    if rank == 0:
        late = context.kernel("drinks")(np.zeros(10, "u1"), 10, 1, comm, timeout={short})
        refused(["kernel drinks (rank 0)", "timed out"], late.wait)
"""


@pytest.mark.parametrize("platform", [PLATFORMS[0], *HARDWARE[:1]])
def test_a_session_whose_peer_is_silent(calls_library: Path, tmp_path: Path, platform: str) -> None:
    body = SILENT.replace("{short}", "0.0005" if platform == "rtl" else "0.3")
    script = tmp_path / "host.py"
    script.write_text(BEGIN + body + END)
    done = unisono("run", "-n", 2, "--kernels", calls_library, "--platform", platform, script)
    assert sorted(done.stdout.splitlines()) == ["rank 0 is right", "rank 1 is right"], done.stdout + done.stderr


COLLECTIVES = """
    def given(r, n):
        return (np.arange(n) % 101 + 1000 * r).astype("i4")
    for n in {lengths}:
        for root in {0, size - 1, size // 2}:
            own = rank == root
            each = [given(r, n) for r in range(size)]
            whole = given(root, size * n)
            none = np.zeros(0, "i4")
            for which, mine, expected in (
                (0, each[root] if own else none, none if own else each[root]),
                (1, whole if own else none, whole[rank * n : (rank + 1) * n]),
                (2, each[rank], np.concatenate(each) if own else none),
                (3, each[rank], sum(each) if own else none),
                (4, each[rank], sum(each)),
                (5, each[rank], np.concatenate(each)),
            ):
                got = np.zeros(len(expected), "i4")
                context.kernel("collective")(which, root, mine, got, comm).wait()
                np.testing.assert_array_equal(got, expected, err_msg=f"{which} {root} {n}")
"""


@pytest.mark.parametrize(("platform", "ranks"), [("native", 4), ("native", 8)])
def test_collectives_from_port_to_port(calls_library: Path, tmp_path: Path, platform: str, ranks: int) -> None:
    runs(tmp_path, calls_library, platform, ranks, COLLECTIVES.replace("{lengths}", "(1, 100, 5000)"))


@pytest.mark.parametrize("platform", HARDWARE[:1])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_collectives_from_port_to_port_in_hardware(
    calls_library: Path, tmp_path: Path, platform: str, ranks: int
) -> None:
    runs(tmp_path, calls_library, platform, ranks, COLLECTIVES.replace("{lengths}", "(1, 100, 1500)"))
