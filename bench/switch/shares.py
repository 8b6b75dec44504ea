"""shares.py: two jobs, one of them greedy, at a switch behind a slow link that both must use. Prints a JSON line for
each job, alone and beside the other: what part of the link its contributions have, headers included. Needs root, for
network namespaces; without it says why and measures nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

UNISONO = [sys.executable, "-m", "unisono"]
STREAMS = str(Path(__file__).with_name("streams.py"))
HOSTS, SWITCH = f"unsbench{os.getpid()}h", f"unsbench{os.getpid()}s"
ADDRESS = "10.9.0.2:7000"
MBIT = 100
SECONDS = 12
PAYLOAD, FRAME = 1344, 1344 + 100 + 42
"""Bytes of a turn, and with the headers of the protocol, UDP, IP and Ethernet."""


@dataclass(frozen=True)
class Job:
    """Two ranks, each a host."""

    what: str
    hosts: str
    size: int
    communicators: int


def run(*words: str) -> None:
    """A command that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def link() -> Iterator[None]:
    """A namespace for the ranks, one for the switch, and a slow link between them."""
    try:
        for name in (HOSTS, SWITCH):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "veth0", "netns", HOSTS, "type", "veth", "peer", "name", "veth0", "netns", SWITCH)
        for name, place in ((HOSTS, "10.9.0.1/24"), (SWITCH, "10.9.0.2/24")):
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "addr", "add", place, "dev", "veth0")
            run("ip", "-n", name, "link", "set", "veth0", "up")
            limit = ["rate", f"{MBIT}mbit", "burst", "16kb", "latency", "20ms"]
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "veth0", "root", "tbf", *limit)
        yield
    finally:
        for name in (HOSTS, SWITCH):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def rate_of(ends: list[float]) -> float:
    """Calls a second of one communicator, from end to end: many communicators end theirs at about the same time."""
    return (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else 0


def measure(jobs: list[Job], secret: Path) -> list[dict[str, object]]:
    """Runs the jobs side by side; seconds count in which all of them had calls."""
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        processes = []
        for job in jobs:
            output = stack.enter_context(Path(place, job.what).open("w"))
            words = ["run", "--agent", "local", "--hosts", job.hosts, "--aggregate", ADDRESS]
            program = [sys.executable, STREAMS, str(job.size), str(job.communicators)]
            processes.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", HOSTS, *UNISONO, *words, "--aggregate-secret-file", str(secret), *program],
                    stdin=subprocess.PIPE, stdout=output, env=os.environ | {"UNISONO_AGGREGATE_UP_TO": str(2**22)},
                )
            )  # fmt: skip
            stack.callback(processes[-1].kill)
        time.sleep(SECONDS + 4)
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        if any(process.wait(60) for process in processes):
            raise OSError("a job has failed")
        said = [json.loads(Path(place, job.what).read_text()) for job in jobs]
    begin = max(min(times[0] for times in one["ends"]) for one in said)
    end = min(max(times[-1] for times in one["ends"]) for one in said)
    lines = []
    for job, one in zip(jobs, said, strict=True):
        rate = sum(rate_of([time for time in times if begin <= time <= end]) for times in one["ends"])
        bits = 2 * rate * job.size * FRAME / PAYLOAD * 8
        lines.append(
            {
                "bench": "switch", "what": "share of a link", "op": "allreduce", "job": job.what,
                "beside": [other.what for other in jobs if other is not job], "ranks": 2, "bytes": job.size,
                "communicators": job.communicators, "link_mbit": MBIT,
                "share": round(bits / MBIT / 1e6, 3),
                "carrier": one["carrier"].partition(" (")[0], "verified": one["verified"],
            }
        )  # fmt: skip
    return lines


def main() -> None:
    """Measures, and prints."""
    with tempfile.TemporaryDirectory() as place:
        secret = Path(place, "secret")
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(32))
        try:
            with link():
                words = ["switch", "start", "--listen", ADDRESS, "--secret-file", str(secret)]
                serving = subprocess.Popen(
                    ["ip", "netns", "exec", SWITCH, *UNISONO, *words], stdout=subprocess.PIPE, text=True
                )
                assert serving.stdout is not None
                serving.stdout.readline()
                try:
                    for size in (1 << 20, 1 << 15):
                        modest, greedy = Job("one call", "a,b", size, 1), Job("eight calls", "c,d", size, 8)
                        for jobs in ([modest], [greedy], [modest, greedy]):
                            for line in measure(jobs, secret):
                                print(json.dumps(line), flush=True)
                finally:
                    serving.terminate()
                    serving.wait(10)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"the share of a link is not measured: {error}", file=sys.stderr)


main()
