"""What ranks run in tests of switches. Each checks its results; data differ on every rank and in every call."""

from __future__ import annotations

#: All collectives that slots carry, blocking and not; prints a digest of what must not depend on who carries the calls,
#: and the sums of fp32 as they came. Argument: largest vector, in bytes.
COLLECTIVES = """
import hashlib, json, sys
import numpy as np
import unisono

most = int(sys.argv[1])
with unisono.init(timeout=60) as context:
    world = context.world
    rank, size = world.rank, world.size
    digest, sums = hashlib.sha256(), []

    def given(dtype, count, of, salt):
        source = np.random.default_rng(1000 * salt + of)
        if np.issubdtype(dtype, np.integer):
            return source.integers(0, 100, count).astype(dtype)
        return source.standard_normal(count).astype(dtype)

    def expect(got, wanted, what):
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted), what
        digest.update(got.tobytes())

    lengths = [length for length in (0, 4, 100, 1024, 1340, 20_000, 1 << 20) if length <= most]
    for salt, length in enumerate(lengths):
        for dtype in (np.uint8, np.int32, np.int64, np.float32, np.float64):
            count = length // np.dtype(dtype).itemsize
            what = (length, dtype)
            all_given = [given(dtype, count, of, salt) for of in range(size)]
            mine, exact = all_given[rank], np.issubdtype(dtype, np.integer)
            root = (salt + 1) % size
            sent = mine.copy()
            expect(world.bcast(sent if rank == root else np.empty_like(sent), root), all_given[root], what)
            expect(world.allgather(mine).ravel(), np.concatenate(all_given), what)
            for op, ufunc in (("sum", np.add), ("max", np.maximum), ("bitwise_xor", np.bitwise_xor)):
                if op == "bitwise_xor" and not exact:
                    continue
                request = world.allreduce_async(mine, op=op)
                reduced = world.reduce(mine, op=op, root=root)
                total = request.wait()
                if exact or op == "max":
                    wanted = ufunc.reduce(np.stack(all_given), axis=0, dtype=dtype)
                    expect(total, wanted, what)
                    if rank == root:
                        expect(reduced, wanted, what)
                else:
                    # Sums that round: of all orders one; the same at the root of a reduce and in every rank.
                    assert np.allclose(total, np.sum(np.stack(all_given), axis=0), rtol=1e-4, atol=1e-4), what
                    if rank == root:
                        sums.append(total.tobytes() == reduced.tobytes())
                    if dtype == np.float32:
                        sums.append(hashlib.sha256(total.tobytes()).hexdigest())
            if exact:
                blocks = [given(dtype, count * size, of, salt + 50) for of in range(size)]
                wanted = np.add.reduce(np.stack(blocks), axis=0, dtype=dtype)[rank * count : (rank + 1) * count]
                expect(world.reduce_scatter(blocks[rank]), wanted, what)
                several = [world.allreduce_async(mine + dtype(k)) for k in range(12)]
                for k, request in enumerate(several):
                    expect(request.wait(), np.add.reduce(np.stack(all_given) + dtype(k), axis=0, dtype=dtype), what)
            world.barrier()
    # Communicators of a part of the ranks, and what switches do not carry beside what they do.
    half = world.split(rank % 2, rank)
    expect(half.allreduce(np.array([rank])), np.array([sum(range(rank % 2, size, 2))]), "half")
    half.free()
    got = world.alltoall(np.arange(size) + 100 * rank)
    expect(got, np.arange(size) * 100 + rank, "alltoall")
    world.barrier()
    print(json.dumps({"rank": rank, "digest": digest.hexdigest(), "sums": sums}), flush=True)
"""

#: Calls, one after the other, until a file is there or so many were made. Arguments: the file, calls at most, and the
#: pause between them in seconds. Each rank says when twenty are done, and at the end how many it has made.
STREAM = """
import json, pathlib, sys, time
import numpy as np
import unisono

stop, most, pause = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
with unisono.init(timeout=40) as context:
    world = context.world
    rank, size = world.rank, world.size
    calls, over, slowest = 0, 0, 0.0
    while not over and calls < most:
        begin = time.monotonic()
        count = (1, 30, 700, 3000)[calls % 4]
        base = np.arange(count, dtype=np.int64)
        mine = base * (rank + 1) + calls
        assert np.array_equal(world.allreduce(mine), base * (size * (size + 1) // 2) + size * calls), calls
        requests = [world.allreduce_async(mine + k) for k in range(3)]
        root = calls % size
        sent = world.bcast(mine.copy() if rank == root else np.empty_like(mine), root)
        assert np.array_equal(sent, base * (root + 1) + calls), calls
        for k, request in enumerate(requests):
            wanted = base * (size * (size + 1) // 2) + size * (calls + k)
            assert np.array_equal(request.wait(), wanted), (calls, k)
        over = world.allreduce(np.array([int(stop.exists())])).item()
        slowest = max(slowest, time.monotonic() - begin)
        calls += 1
        if calls == 20:
            print("begun", flush=True)
        time.sleep(pause)
    assert np.array_equal(world.allgather(np.array([rank])).ravel(), np.arange(size))
    print(json.dumps({"rank": rank, "calls": calls, "slowest": slowest}), flush=True)
"""
