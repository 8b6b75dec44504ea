"""The soak of switches that aggregate: jobs at two leaves and a top, in processes, for as long as asked for.

`python -m switch.soak [--seconds N] [--seed S]` starts one or two jobs at a time, which make random calls
(soak_rank.py) by both leaves, by one of them, or by the top. Datagrams are lost, reordered, doubled and spoilt.
Meanwhile the top and one leaf are killed and started again; all are stopped, drained, and sent rubbish, overheard
datagrams and strangers (soak_faults.py). Ranks of some jobs are killed, and some jobs end in the middle.

Of each job all results must be right, and no rank may say anything but what it should. When no job is left, switches
must have freed all of theirs: pools, slots and files. The other leaf lives as long as the soak, and its memory must not
grow.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from conformance.reports import reports_of
from handlers.operator_sources import SOURCES
from hosts.support import ENVIRONMENT, ROOT, RUN, alive

from .soak_faults import Ear, Trouble, open_files, resident_kib, trouble
from .soak_rank import Order
from .support import Switch, command, make_secret, switch

MANY = 250  #: communicators of a job that may be alive at a time; for so many there is not always room
LONGEST = 240  #: seconds that a job may take
TO_END = 30  #: seconds until all ranks of a job have ended whose launcher has
TO_FREE = 20  #: seconds until a switch has freed what a job had
MOST_GROWTH = 24 << 10  #: KiB that the memory of a switch may grow by after its first jobs
SETTLED = 3  #: times at rest after which memory is looked at first
LOSSES = ("", "loss=0.01", "loss=0.05,reorder=0.05,duplicate=0.02,corrupt=0.01")
#: What ranks and `unisono run` may say on standard error.
TOLD = re.compile(r"rank \d+ of communicator \d+: .*; its ranks go on without")
NOT_CARRIED = re.compile(r"communicator \d+ is not carried by switches: .*switch")
ALTERED = re.compile(r"endpoint \d+ has refused a datagram from ")
KILLED = re.compile(r"unisono run: rank \d+ .*SIGKILL; the others go on")


@dataclass
class Job:
    """A job of random calls."""

    what: str
    process: subprocess.Popen[str]
    folder: Path
    ranks: int
    deaths: bool
    cut_after: float | None  #: seconds after which it is ended in the middle
    altered: bool  #: the network alters datagrams
    may_give_up: bool
    begin: float = field(default_factory=time.monotonic)

    def pids(self) -> list[int]:
        return [int(path.read_text() or 0) for path in self.folder.glob("pid*")]

    def faults(self) -> list[str]:
        """Waits for it. What is wrong with it."""
        if self.cut_after is not None:
            while len(self.pids()) < self.ranks and self.process.poll() is None and self._took() < LONGEST:
                time.sleep(0.05)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.cut_after)
            self.begin = time.monotonic()
            self.process.send_signal(signal.SIGINT if self.ranks % 2 else signal.SIGKILL)
        try:
            _, errors = self.process.communicate(timeout=max(LONGEST - self._took(), 1))
        except subprocess.TimeoutExpired:
            self.process.kill()
            try:
                _, errors = self.process.communicate(timeout=TO_END)
            except subprocess.TimeoutExpired:
                errors = "its ranks go on, and keep its standard error open"
            return [f"it has not come to an end in {LONGEST} s\n{errors[-3000:]}"]
        if self.cut_after is not None:
            while any(alive(pid) for pid in self.pids()) and self._took() < TO_END:
                time.sleep(0.05)
            if self._took() > TO_END:
                return [f"it took {self._took():.0f} s until it had ended after it was cut off\n{errors[-2000:]}"]
            return [f"rank {pid} still runs" for pid in self.pids() if alive(pid)]
        return self._ends(errors) or self._words(errors)

    def _took(self) -> float:
        """Seconds since it began, or was cut off."""
        return time.monotonic() - self.begin

    def reports(self) -> list[dict[str, object]]:
        return reports_of(self.folder)

    def _ends(self, errors: str) -> list[str]:
        killed = len(KILLED.findall(errors))
        if self.process.returncode != 0:
            return [f"it ended with status {self.process.returncode}:\n{errors[-4000:]}"]
        if len(self.reports()) + killed < self.ranks:
            return [
                f"{len(self.reports())} of {self.ranks} ranks came to the end, {killed} were killed:\n{errors[-2000:]}"
            ]
        return []

    def _words(self, errors: str) -> list[str]:
        wrong = []
        for line in errors.splitlines():
            if KILLED.search(line) and self.deaths:
                continue
            if ALTERED.search(line) and self.altered:
                continue
            if TOLD.search(line) and self.may_give_up:
                continue
            if NOT_CARRIED.search(line) and (self.may_give_up or "or start it with more" in line):
                continue
            wrong.append(f"nobody should say: {line}")
        return wrong


class Soak:
    """Three switches, and what they had when they were at rest."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path, seed: int) -> None:
        self.folder, self.seed, self.rounds = folder, seed, 0
        self.secret = make_secret(folder)
        rng = random.Random(f"{seed}/switches")

        def one(name: str, *words: str) -> Switch:
            losses = {"UNISONO_UDP_IMPAIR": f"{text},seed={rng.randrange(99)}"} if (text := rng.choice(LOSSES)) else {}
            return stack.enter_context(switch(self.secret, "--name", name, "--threads", "2", *words, **losses))

        self.top = one("top")
        self.leaf = one("leaf", "--uplink", self.top.address)
        self.lasting = one("lasting", "--uplink", self.top.address)
        self.ear = Ear()
        stack.callback(self.ear.close)
        self.operators = self._compiled()
        self.files: dict[int, list[str]] = {}
        self.memory: dict[int, list[int]] = {}  #: KiB at rest, of each process
        self.frames: dict[int, int] = {}  #: that each process has taken from members
        self.counts: dict[str, int] = {}
        self.most_alive = 0  #: communicators of a job

    @property
    def switches(self) -> list[Switch]:
        return [self.top, self.leaf, self.lasting]

    def _compiled(self) -> bool:
        for name in ("larger", "affine"):
            source = self.folder / f"{name}.c"
            source.write_text(SOURCES[name])
            if command("compile", source, "-o", self.folder / f"{name}.uh").returncode != 0:
                return False
        return True

    def round(self, seconds: float) -> tuple[bool, str]:
        """Jobs of one seed; whether nothing was wrong, and a line about it."""
        seed = self.seed + self.rounds
        rng = random.Random(seed)
        self.rounds += 1
        begin = time.monotonic()
        disturbed = rng.random() < 0.75
        faults: list[str] = []
        words: list[str] = []
        with contextlib.ExitStack() as stack:
            happened: Trouble | None = None
            if disturbed:
                kills = [self.top, self.leaf]
                happened = stack.enter_context(trouble(kills, [self.lasting], self.ear, random.Random(rng.random())))
            jobs = [self._job(rng, stack, seconds, disturbed, number) for number in range(rng.choice((1, 1, 2)))]
            for job in jobs:
                faults += [f"{job.what}: {fault}" for fault in job.faults()]
                words.append(f"{job.what} ({time.monotonic() - begin:.0f} s)")
                for report in job.reports()[:1]:
                    for name in ("calls", "communicators", "operators", "losses", "mistakes"):
                        self.counts[name] = self.counts.get(name, 0) + int(str(report[name]))
                    self.most_alive = max(self.most_alive, int(str(report["most_alive"])))
        if happened is not None:
            words.append("+".join(sorted(set(happened.done))) or "nothing happened")
            for done in happened.done:
                self.counts[done] = self.counts.get(done, 0) + 1
        faults += self._at_rest()
        line = f"seed {seed}: {'; '.join(words)}; {time.monotonic() - begin:.1f} s"
        return not faults, "\n  ".join([line, *faults[:6]])

    def _job(
        self, rng: random.Random, stack: contextlib.ExitStack, seconds: float, disturbed: bool, number: int
    ) -> Job:
        ranks = rng.randint(2, 5)
        hosts = [f"h{host}:{rng.choice((1, 1, 2))}" for host in range(rng.randint(2, ranks))]
        ranks = sum(int(host[-1]) for host in hosts)
        named = rng.choice(
            ([self.leaf, self.lasting], [self.lasting, self.leaf], [self.lasting], [self.leaf], [self.top])
        )
        kind = rng.choice(("peace", "peace", "deaths", "cut"))
        losses, patience = rng.choice(LOSSES), rng.choice(("1", "3", "10"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
        for path in self.folder.glob("*.uh"):
            (folder / path.name).symlink_to(path)
        many = rng.random() < 0.1
        order = Order(
            seed=rng.getrandbits(30),
            folder=str(folder),
            seconds=seconds,
            deaths=kind == "deaths",
            most_communicators=MANY if many else rng.choice((2, 5, 12)),
            operators=self.operators,
            calm=not disturbed,
        )
        environment = ENVIRONMENT | {
            "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests" / "python")]),
            "UNISONO_AGGREGATE_TIMEOUT_S": patience,
        }
        if losses:
            environment["UNISONO_UDP_IMPAIR"] = f"{losses},seed={rng.randrange(99)}"
        transport = rng.choice(("tcp", "udp"))
        words = [
            "--hosts",
            ",".join(hosts),
            "--agent",
            "local",
            "--transport",
            transport,
            "--timeout",
            str(LONGEST - 10),
        ]
        words += ["--aggregate", ",".join(one.address for one in named), "--aggregate-secret-file", str(self.secret)]
        if kind == "deaths":
            words.append("--keep-going")
        process = subprocess.Popen(
            [*RUN, *words, sys.executable, "-m", "switch.soak_rank", json.dumps(asdict(order))],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        # What a job leaves behind is ended with it, whatever goes wrong here.
        stack.callback(process.wait, TO_END)
        stack.callback(process.kill)
        what = f"{ranks} ranks on {len(hosts)} hosts, {transport}, {'+'.join(one.words[3] for one in named)}, {kind}"
        what += f", {losses}" if losses else ""
        what += f", {order.most_communicators} communicators" if many else ""
        cut = seconds * rng.random() + 1 if kind == "cut" else None
        return Job(
            what, process, folder, ranks, kind == "deaths", cut, "corrupt" in losses, disturbed or patience == "1"
        )

    def _at_rest(self) -> list[str]:
        """No job is left: nothing of one is in any switch."""
        faults = []
        for one in self.switches:
            assert one.process is not None
            pid, name = one.process.pid, one.words[3]
            deadline = time.monotonic() + TO_FREE
            while True:
                status = one.ask("status")
                idle = (status["pools"], status["slots"]["used"], status["jobs"]) == (0, 0, 0)
                files = open_files(one)
                usual = self.files.get(pid)
                if idle and (usual is None or len(files) <= len(usual)):
                    break
                if time.monotonic() > deadline:
                    faults.append(f"{name} has {status['pools']} pools, {status['slots']}, {files}; usual: {usual}")
                    break
                time.sleep(0.2)
            if status["counters"]["broken"]:
                faults.append(f"{name}: {status['counters']['broken']} datagrams ended in an error of the switch")
            self.frames[pid] = status["counters"]["frames_in"]
            memory = self.memory.setdefault(pid, [])
            memory.append(resident_kib(one))
            self.files.setdefault(pid, files)
            if len(memory) > SETTLED and memory[-1] > memory[SETTLED - 1] + MOST_GROWTH:
                faults.append(f"{name} has grown: {memory} KiB when no job was left")
        return faults


def soak(seconds: float, seed: int, each: float = 5.0) -> tuple[int, int, str]:
    """Rounds of jobs of about `each` seconds. How many were right, how many wrong, and a sentence about all."""
    end = time.monotonic() + seconds
    good = wrong = 0
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        all_of_it = Soak(stack, Path(name), seed)
        while good + wrong == 0 or time.monotonic() < end:
            right, line = all_of_it.round(each)
            good, wrong = good + right, wrong + (not right)
            print(f"{'  ok  ' if right else 'WRONG '} {line}", flush=True)
        lasting = all_of_it.lasting
        assert lasting.process is not None
        counters = lasting.ask("status")["counters"]
        memory = all_of_it.memory[lasting.process.pid]
        said = ", ".join(f"{count} {what}" for what, count in sorted(all_of_it.counts.items()))
        sentence = (
            f"{said}; up to {all_of_it.most_alive} communicators of a job alive; "
            f"{sum(all_of_it.frames.values())} datagrams taken; of the switch that lasted: "
            f"{counters['forged']} forged, {counters['strangers']} strange, {counters['garbage']} garbage, "
            f"{memory[0]} KiB at first, {memory[-1]} at last"
        )
        if not any(all_of_it.frames.values()):
            wrong += 1
            sentence += "; NOTHING was carried"
    return good, wrong, sentence


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (600)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first round (the time)")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    good, wrong, sentence = soak(options.seconds, options.seed)
    print(f"soak of switches: {good} rounds right, {wrong} wrong; {sentence}")
    return 1 if wrong or not good else 0


if __name__ == "__main__":
    sys.exit(main())
