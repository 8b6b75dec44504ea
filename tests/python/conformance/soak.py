"""The soak: jobs of random calls whose ranks are killed and stopped at random, for as long as asked for.

`python -m conformance.soak [--minutes M] [--seed S] [--transport NAME]` starts one job after the other: by turns on one
host, and on several hosts over each network. In each, all ranks make the same random sequences of calls, of all
collectives, algorithms, datatypes and operators, blocking and not, on communicators that overlap, with data of their
own, exchange messages that are received by wildcards, and write and read each other's windows; every result is compared
with NumPy. Ordinary buffers are copied by the kernel in some jobs, by cells in others, and as the machine was measured
in the rest: whether a direct algorithm that is named is refused must not depend on the measurement. At random moments a
rank is killed, or stopped for a while, between hosts also for longer than a host may be silent. Those that are left
agree on whether a sequence has succeeded, shrink their communicator if it has not, and go on. A job must end by itself,
with no rank having found anything wrong.

Hosts are names, or network namespaces with a cable between them, which in some jobs is cut again and again for less
time than a host may be silent: then nobody may be given up. In half of its jobs UDP loses, reorders, doubles and spoils
datagrams.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import unisono

from .case import DTYPES, ROOTED, Array, Case
from .engines import PLACEMENTS, has_fabric, kernel_copies
from .matrix import EDGES, NO_IN_PLACE, all_names, operators_of, refused
from .reports import reports_of, say
from .sequences import Step, perform
from .soak_places import KINDS, ONE_HOST, cut_now_and_then, place_of

ROOT = Path(__file__).resolve().parents[3]
STEPS = 10  #: calls of a sequence
FORMED = "formed"  #: a file of a job whose ranks have met
LONGEST = 240  #: seconds that a job may take


def random_step(rng: random.Random, ranks: int, dealt: bool) -> Step:
    """A call as all ranks make it. `dealt`: ranks of some host do not follow one another."""
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
    if refused(case) or (dealt and refused(replace(case, groups="dealt"))):
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


def disturb(rng: random.Random, hosts: bool) -> None:
    """Kills or stops this process soon, from a thread of its own, wherever the others are then. Who is stopped lives,
    however long; between hosts its kernel says so."""
    kill = rng.random() < 0.6
    delay = rng.random() * 0.15
    pause = 0.1 + rng.random() * 0.3 + (4 if hosts and rng.random() < 0.2 else 0)

    def act() -> None:
        time.sleep(delay)
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        # Somebody else must let it go on.
        subprocess.Popen(["/bin/sh", "-c", f"sleep {pause}; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=act, daemon=True).start()


def exchange_of_anybody(comm: unisono.Communicator, seed: str) -> list[str]:
    """Every rank sends to random ranks, and takes what comes by receives of any source, with any tag, and by probes.

    Returns what was wrong. A rank that waits for anybody is not told that somebody has died, for others may still send:
    it looks.
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


def write_and_read(comm: unisono.Communicator, seed: str) -> list[str]:
    """Every rank writes into its slot of the others' windows, piece by piece, and reads back what stands there."""
    wrong: list[str] = []
    plan = random.Random(seed)
    slot = plan.choice((1, 100, 5000, 70_000))  # elements
    allocated = plan.random() < 0.5
    mine = comm.zeros(slot * comm.size, np.int64) if allocated else np.zeros(slot * comm.size, np.int64)
    pieces = plan.randint(1, 6)
    rng = random.Random(f"{seed}/{comm.rank}")

    def values(source: int, to: int) -> Array:
        return np.arange(slot, dtype=np.int64) * (source + 1) + 1_000_003 * to

    comm.window(mine)
    bounds = [slot * i // pieces for i in range(pieces + 1)]
    others = list(range(comm.size))
    rng.shuffle(others)
    started = []
    for to in others:
        block = values(comm.rank, to)
        for begin, end in itertools.pairwise(bounds):
            place = 8 * (comm.rank * slot + begin)
            if rng.random() < 0.5:
                comm.put(block[begin:end], to, place)
            else:
                started.append(comm.put_async(block[begin:end], to, place))
    for request in started:
        request.wait()
    comm.barrier()
    for source in range(comm.size):
        if not np.array_equal(mine[source * slot : (source + 1) * slot], values(source, comm.rank)):
            wrong.append(
                f"what rank {source} has put into the window of rank {comm.rank} is not there ({slot} elements)"
            )
    for peer in others:
        source = rng.randrange(comm.size)
        got = comm.get(np.empty(slot, np.int64), peer, 8 * source * slot)
        if not np.array_equal(got, values(source, peer)):
            wrong.append(f"rank {comm.rank} has got from rank {peer} what rank {source} has not put ({slot} elements)")
    comm.barrier()
    comm.window(None)
    return wrong


def is_dealt(comm: unisono.Communicator) -> bool:
    """Whether the ranks of some host do not follow one another."""
    if comm.state.groups == 1:
        return False
    groups = comm.allgather(np.array([comm.state.group])).ravel().tolist()
    return bool(1 + sum(a != b for a, b in itertools.pairwise(groups)) > len(set(groups)))


def open_descriptors() -> tuple[list[str], int, int]:
    """What is open, how many processes are watched by a descriptor, and how many sockets there are. Those of processes
    are opened when a peer is first looked at, and when it is first copied from or to, and sockets when something is
    first sent, which may come late in a job."""
    targets = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the folder itself
            targets.append(os.readlink(f"/proc/self/fd/{name}"))
    watched = [target for target in targets if "pidfd" in target]
    sockets = [target for target in targets if target.startswith("socket")]
    others = sorted(target for target in targets if "pidfd" not in target and not target.startswith("socket"))
    return others, len(watched), len(sockets)


@dataclass(frozen=True)
class Order:
    """What the ranks of a job do."""

    seed: int
    sequences: int
    reach: str  #: as of `refusal_expected`, where all ranks of a communicator are on one host
    disturbances: bool
    several: bool  #: hosts
    settings: dict[str, Any]  #: of contexts


def soak_rank(folder: Path, order: Order) -> None:
    """One rank of a job: says at the end what it has done, and what was wrong."""
    wrong: list[str] = []
    calls = losses = memory = 0
    descriptors: list[str] | None = None
    sockets = 0
    often = 0.3 if order.several else 0.15
    lanes = order.reach != "none"
    with unisono.init(timeout=60, lanes=lanes, **order.settings) as context:
        comm = context.world
        (folder / FORMED).touch()
        looked_at = None  #: the communicator of which it is known whether its ranks are dealt
        dealt = False
        number = 0
        seed = order.seed
        while number < order.sequences:
            rng = random.Random(f"{seed}/{number}/{comm.size}")
            succeeded = True
            try:
                if comm is not looked_at:
                    dealt, looked_at = is_dealt(comm), comm
                steps = [random_step(rng, comm.size, dealt) for _ in range(STEPS)]
                chosen = rng.randrange(comm.size)
                if order.disturbances and comm.size > 2 and rng.random() < often and comm.rank == chosen:
                    disturb(random.Random(f"{seed}/{number}/{comm.size}/moment"), order.several)
                wrong += perform(comm, steps, order.reach if comm.state.lanes else "none")
                if rng.random() < 0.4:
                    wrong += exchange_of_anybody(comm, f"{seed}/{number}/{comm.size}/anybody")
                if rng.random() < 0.3:
                    wrong += write_and_read(comm, f"{seed}/{number}/{comm.size}/windows")
            except (unisono.PeerDeadError, unisono.RevokedError, unisono.FreedCommunicatorError):
                succeeded = False
                comm.revoke("a rank has died")
            if comm.agree(succeeded):
                number += 1
                calls += STEPS
            else:
                losses += 1
                smaller = comm.shrink()
                if comm is not context.world:
                    comm.free()
                comm = smaller
            if number >= max(1, order.sequences // 4) and descriptors is None:
                descriptors, _, sockets = open_descriptors()
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Ranks that were lost free descriptors; nothing else may have changed, whatever was made and freed.
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        at_end, watched, now = open_descriptors()
        if descriptors is None or len(at_end) > len(descriptors):
            wrong.append(f"open at the end are {at_end}, after a quarter there were {descriptors}")
        if watched > 2 * (context.world.size - 1):
            wrong.append(f"{watched} descriptors of processes are open; each peer needs two at most")
        if now > sockets + 2 * (context.world.size - 1):
            wrong.append(f"{now} sockets are open at the end, {sockets} after a quarter; a peer needs one or two")
        if grown > 96 * 1024:
            wrong.append(f"memory has grown by {grown} KiB after a quarter of the job")
        report = {"wrong": wrong, "calls": calls, "losses": losses, "left": comm.size}
        say(folder, context.world.rank, report)
        # Nobody leaves before all are done.
        with contextlib.suppress(unisono.UnisonoError):
            comm.barrier()


# -------------------------------------------------------------------------------------------------- the jobs


def run_job(seed: int, kind: str = ONE_HOST, *, most: int = 40) -> tuple[bool, str]:
    """One job of a kind of place, of `most` sequences at most; whether nothing was wrong, and a line about it."""
    rng = random.Random(seed if kind == ONE_HOST else f"{seed}/{kind}")
    ranks = rng.randint(2, 6) if kind == ONE_HOST else rng.choice((2, 3, 4, 4, 5, 6, 7))
    lanes = rng.random() < 0.7
    disturbances = rng.random() < 0.8
    sequences = min(most, rng.choice((8, 20, 40)))
    kernel_copy = rng.choice(("off", "auto", "1", str(1 << 16))) if lanes else "off"
    copies = kernel_copy != "off" and kernel_copies()
    reach = "all" if copies else "allocated" if lanes else "none"
    way = f"lanes, kernel copy {kernel_copy}" if lanes else "messages"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name, place_of(kind, ranks, rng) as place:
        what = f"{ranks} ranks{place.text}, {way}, {'disturbed' if disturbances else 'in peace'}"
        folder = Path(name)
        command = [sys.executable, "-m", "unisono", "run", *place.options, "--keep-going", "--timeout", str(LONGEST)]
        order = Order(seed, sequences, reach, disturbances, place.several, place.settings)
        command += [sys.executable, "-m", "conformance.soak", "--rank", name, json.dumps(asdict(order))]
        paths = [str(ROOT / "python"), str(ROOT / "tests" / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        environment |= place.environment | {"UNISONO_KERNEL_COPY": kernel_copy}
        with cut_now_and_then(place, rng, folder / FORMED):
            job = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=2 * LONGEST, stdin=subprocess.DEVNULL
            )
        reports = reports_of(folder)
    return _judged(job, reports, ranks, what, time.monotonic() - begin)


def _judged(
    job: subprocess.CompletedProcess[str], reports: list[dict[str, Any]], ranks: int, what: str, seconds: float
) -> tuple[bool, str]:
    killed = job.stderr.count("SIGKILL; the others go on")
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
    parser.add_argument(
        "--transport",
        choices=KINDS,
        help=f"of {', '.join(KINDS)} this alone; otherwise all by turns, as far as there are",
    )
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        soak_rank(Path(options.rank[0]), Order(**json.loads(options.rank[1])))
        return 0
    kinds = [options.transport] if options.transport else [kind for kind in KINDS if kind != "ofi" or has_fabric()]
    end = time.monotonic() + 60 * options.minutes
    passed = failed = 0
    while time.monotonic() < end:
        seed = options.seed + passed + failed
        kind = kinds[(passed + failed) % len(kinds)]
        good, line = run_job(seed, kind)
        passed, failed = passed + good, failed + (not good)
        print(f"{'  ok  ' if good else 'WRONG '} {kind} seed {seed}, {line}", flush=True)
    print(f"soak: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
