"""The soak: jobs of random calls whose ranks are killed and stopped at random, for as long as asked for.

`python -m conformance.soak [--minutes M] [--seed S]` starts one job after the other. In each, all ranks make the same
random sequences of calls, of all collectives, algorithms, datatypes and operators, blocking and not, on communicators
that overlap, with data of their own, and exchange messages that are received by wildcards; every result is compared
with NumPy. Ordinary buffers are copied by the kernel in some jobs, by cells in others, and as the machine was measured
in the rest: whether a direct algorithm that is named is refused must not depend on the measurement. At random moments a
rank is killed, or stopped for a while. Those that are left agree on whether a sequence has succeeded, shrink their
communicator if it has not, and go on. A job must end by itself, with no rank having found anything wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import unisono

from .case import DTYPES, ROOTED, Case
from .engines import PLACEMENTS, kernel_copies
from .matrix import EDGES, NO_IN_PLACE, all_names, operators_of, refused
from .sequences import Step, perform

ROOT = Path(__file__).resolve().parents[3]
STEPS = 10  #: calls of a sequence
LONGEST = 240  #: seconds that a job may take


def random_step(rng: random.Random, ranks: int) -> Step:
    """A call as all ranks make it."""
    collective, algorithm = rng.choice(all_names())
    dtype = rng.choice(list(DTYPES))
    edge = rng.choice(EDGES) // DTYPES[dtype].itemsize + rng.randint(-1, 1)
    case = Case(
        collective,
        algorithm,
        ranks,
        0 if collective == "barrier" else rng.choice((rng.randint(0, 40), max(edge, 0))),
        dtype=dtype,
        op=rng.choice(operators_of(collective, dtype)),
        root=rng.randrange(ranks) if collective in ROOTED else 0,
        in_place=collective not in NO_IN_PLACE and rng.random() < 0.4,
        salt=rng.randint(1, 1 << 30),
        wire=rng.choice(("", "fp16", "bf16")) if dtype == "fp32" and collective != "barrier" else "",
    )
    if refused(case):
        case = Case("barrier", "dissemination", ranks, 0)
    return Step(
        case,
        placement=rng.choice(list(PLACEMENTS)),
        blocking=rng.random() < 0.6,
        reversed_ranks=rng.random() < 0.3,
        wait=rng.randint(0, 3),
        youngest=rng.random() < 0.5,
    )


# --------------------------------------------------------------------------------------------------- a rank


def disturb(rng: random.Random) -> None:
    """Kills or stops this process soon, from a thread of its own, wherever the others are then."""
    kill = rng.random() < 0.6
    delay = rng.random() * 0.15

    def act() -> None:
        time.sleep(delay)
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        # Somebody else must let it go on.
        subprocess.Popen(["/bin/sh", "-c", f"sleep {0.1 + rng.random() * 0.3}; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=act, daemon=True).start()


def exchange_of_anybody(comm: unisono.Communicator, seed: str) -> list[str]:
    """Every rank sends to random ranks, and takes what comes by receives of any source, with any tag, and by probes.

    Returns what was wrong. Whoever waits for anybody is not told that somebody has died, for others may still send: it
    looks.
    """
    wrong: list[str] = []
    rng = random.Random(seed)
    # Of every message: from, to, tag, elements.
    plan = [
        (source, rng.randrange(comm.size), rng.randrange(3), rng.choice((0, 1, 5, 40, 3000, 20_000)))
        for source in range(comm.size)
        for _ in range(12)
    ]
    mine = [(source, tag, n) for source, to, tag, n in plan if to == comm.rank]
    in_order: dict[tuple[int, int], list[int]] = {}
    for source, tag, n in mine:
        in_order.setdefault((source, tag), []).append(n)
    ways = random.Random(f"{seed}/{comm.rank}")
    sends = [
        comm.send_async(np.full(n, 100.0 * comm.rank + tag), to, tag)
        for source, to, tag, n in plan
        if source == comm.rank
    ]
    for _ in mine:
        while True:
            try:
                found = comm.probe(timeout=0.5)
                break
            except unisono.DeadlineError:
                if comm.failed:
                    raise unisono.RevokedError("a rank has died, which may have had something to send") from None
        status = unisono.Status()
        source = ways.choice((found.source, unisono.ANY_SOURCE))
        tag = ways.choice((found.tag, unisono.ANY_TAG))
        got = comm.recv(np.empty(30_000), source=source, tag=tag, status=status)
        expected = in_order.get((status.source, status.tag), [])
        if not expected or got.size != expected[0] or not np.all(got == 100.0 * status.source + status.tag):
            wrong.append(f"{status} came; of that rank and tag messages of {expected} elements were to come")
        del expected[:1]
    for send in sends:
        send.wait()
    return wrong


def open_descriptors() -> tuple[list[str], int]:
    """What is open, and how many processes are watched by a descriptor. These are opened when a peer is first looked
    at, and when it is first copied from or to, which may come late in a job."""
    targets = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the folder itself
            targets.append(os.readlink(f"/proc/self/fd/{name}"))
    watched = [target for target in targets if "pidfd" in target]
    return sorted(target for target in targets if "pidfd" not in target), len(watched)


def soak_rank(folder: Path, seed: int, sequences: int, reach: str, disturbances: bool) -> None:
    """One rank of a job: says at the end what it has done, and what was wrong. `reach` is as of `refusal_expected`."""
    wrong: list[str] = []
    calls = losses = memory = 0
    descriptors: list[str] | None = None
    lanes = reach != "none"
    with unisono.init(timeout=60, lanes=lanes) as context:
        comm = context.world
        number = 0
        while number < sequences:
            rng = random.Random(f"{seed}/{number}/{comm.size}")
            steps = [random_step(rng, comm.size) for _ in range(STEPS)]
            chosen = rng.randrange(comm.size)
            if disturbances and comm.size > 2 and rng.random() < 0.15 and comm.rank == chosen:
                disturb(random.Random(f"{seed}/{number}/{comm.size}/moment"))
            succeeded = True
            try:
                wrong += perform(comm, steps, reach)
                if rng.random() < 0.4:
                    wrong += exchange_of_anybody(comm, f"{seed}/{number}/{comm.size}/anybody")
            except (unisono.PeerDeadError, unisono.RevokedError, unisono.FreedCommunicatorError):
                succeeded = False
                comm.revoke("a rank has died")
            if comm.agree(succeeded):
                number += 1
                calls += len(steps)
            else:
                losses += 1
                smaller = comm.shrink()
                if comm is not context.world:
                    comm.free()
                comm = smaller
            if number == sequences // 4 and descriptors is None:
                descriptors, _ = open_descriptors()
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Ranks that were lost free descriptors; nothing else may have changed, whatever was made and freed.
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        at_end, watched = open_descriptors()
        if descriptors is None or len(at_end) > len(descriptors):
            wrong.append(f"open at the end are {at_end}, after a quarter there were {descriptors}")
        if watched > 2 * (context.world.size - 1):
            wrong.append(f"{watched} descriptors of processes are open; each peer needs two at most")
        if grown > 96 * 1024:
            wrong.append(f"memory has grown by {grown} KiB after a quarter of the job")
        report = {"wrong": wrong, "calls": calls, "losses": losses, "left": comm.size}
        (folder / f"rank{context.world.rank}.json").write_text(json.dumps(report))
        # Nobody leaves before all are done.
        with contextlib.suppress(unisono.UnisonoError):
            comm.barrier()


# -------------------------------------------------------------------------------------------------- the jobs


def run_job(seed: int) -> tuple[bool, str]:
    """One job; whether nothing was wrong, and a line about it."""
    rng = random.Random(seed)
    ranks = rng.randint(2, 6)
    lanes = rng.random() < 0.7
    disturbances = rng.random() < 0.8
    sequences = rng.choice((8, 20, 40))
    kernel_copy = rng.choice(("off", "auto", "1", str(1 << 16))) if lanes else "off"
    copies = kernel_copy != "off" and kernel_copies()
    reach = "all" if copies else "allocated" if lanes else "none"
    way = f"lanes, kernel copy {kernel_copy}" if lanes else "messages"
    what = f"{ranks} ranks, {way}, {'disturbed' if disturbances else 'in peace'}"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), "--keep-going", "--timeout", str(LONGEST)]
        command += [sys.executable, "-m", "conformance.soak", "--rank", name, str(seed), str(sequences)]
        command += [reach, str(int(disturbances))]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"}
        environment["UNISONO_KERNEL_COPY"] = kernel_copy
        job = subprocess.run(command, capture_output=True, text=True, env=environment)
        reports = [json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json"))]
    killed = job.stderr.count("SIGKILL; the others go on")
    seconds = time.monotonic() - begin
    faults = [text for report in reports for text in report["wrong"]]
    if job.returncode != 0:
        faults.append(f"the job ended with status {job.returncode}:\n{job.stderr[-4000:]}")
    if len(reports) + killed < ranks:  # one may be killed after its report
        faults.append(f"{len(reports)} of {ranks} ranks came to the end, {killed} were killed\n{job.stderr[-2000:]}")
    calls = reports[0]["calls"] if reports else 0
    line = f"{what}: {calls} calls, {killed} killed, {seconds:.1f} s"
    return not faults, "\n  ".join([line, *faults[:5]])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first job (the time)")
    parser.add_argument("--rank", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        folder, seed, sequences, reach, disturbances = options.rank
        soak_rank(Path(folder), int(seed), int(sequences), reach, bool(int(disturbances)))
        return 0
    end = time.monotonic() + 60 * options.minutes
    passed = failed = 0
    while time.monotonic() < end:
        seed = options.seed + passed + failed
        good, line = run_job(seed)
        passed, failed = passed + good, failed + (not good)
        print(f"{'  ok  ' if good else 'WRONG '} seed {seed}, {line}", flush=True)
    print(f"soak: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
