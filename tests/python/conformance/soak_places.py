"""Where the jobs of the soak run: on one host, or on several that are names or network namespaces."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unisono.bench.namespaces import LINK, NamespacesError, hosts

ONE_HOST = "shm"
KINDS = (ONE_HOST, "tcp", "udp", "ofi")
#: Of a network that is bad, but gets through.
IMPAIRMENTS = (
    "loss=0.001",
    "loss=0.01,reorder=0.1",
    "loss=0.05,reorder=0.1,duplicate=0.05,corrupt=0.01",
    "reorder=0.3,duplicate=0.1,largest=1400",
    "corrupt=0.02,largest=9000",
)
#: What makes messages and their segments short, grants needed and credit rare.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"eager_limit": 1, "segment_bytes": 4096},
    {"eager_limit": 1, "rx_buffer_count": 1},
    {"eager_limit": 4096, "segment_bytes": 1024, "rx_buffer_count": 2},
)


@dataclass(frozen=True)
class Place:
    """What lies between the ranks of a job."""

    text: str
    options: list[str]  #: of `unisono run`
    several: bool = False  #: hosts
    environment: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  #: of contexts
    cable: str | None = None  #: the namespace at its one end, if there is one that may be cut


@contextlib.contextmanager
def place_of(kind: str, ranks: int, rng: random.Random) -> Iterator[Place]:
    """Draws a place of a kind."""
    if kind == ONE_HOST:
        yield Place("", ["-n", str(ranks)])
        return
    environment = {}
    transport = kind
    text = ""
    if kind == "udp" and rng.random() < 0.5:
        environment["UNISONO_UDP_IMPAIR"] = f"{rng.choice(IMPAIRMENTS)},seed={rng.randint(1, 1 << 20)}"
        text += f" ({environment['UNISONO_UDP_IMPAIR']})"
    if kind != "tcp" and rng.random() < 0.3:
        transport += ",tcp"
    settings = rng.choice(SETTINGS)
    text += f" {settings}" if settings else ""
    options = ["--transport", transport]
    layout = _layout(ranks, rng)
    with contextlib.ExitStack() as stack:
        if rng.random() < 0.3 and (names := _namespaces(stack)):
            two = [number % 2 for number in layout]
            environment["UNISONO_HOST_TIMEOUT_S"] = "10"
            options += ["--hosts", _listed([names[number] for number in two]), "--agent", "ip netns exec {host}"]
            text = f" in namespaces {_listed(['ab'[number] for number in two])} over {transport}{text}"
            yield Place(text, options, True, environment, settings, names[0])
        else:
            listed = _listed([f"h{number}" for number in layout])
            options += ["--hosts", listed, "--agent", "local"]
            yield Place(f" on {listed} over {transport}{text}", options, True, environment, settings)


def _namespaces(stack: contextlib.ExitStack) -> list[str]:
    """Two hosts with a cable between them, which are there for as long as the stack; none where that is not allowed."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    try:
        return [name for name, _ in stack.enter_context(hosts("tcp", 2, 2, folder)).hosts]
    except NamespacesError:
        return []


def _layout(ranks: int, rng: random.Random) -> list[int]:
    """The host of each rank: each one of its own, blocks, in turn, or any."""
    number = rng.randint(2, ranks)
    match rng.randrange(4):
        case 0:
            return list(range(ranks))
        case 1:
            return sorted([*range(number), *(rng.randrange(number) for _ in range(ranks - number))])
        case 2:
            return [rank % number for rank in range(ranks)]
        case _:
            drawn = [*range(number), *(rng.randrange(number) for _ in range(ranks - number))]
            rng.shuffle(drawn)
            return drawn


def _listed(names: list[str]) -> str:
    """As --hosts takes it."""
    return ",".join(f"{name}:1" for name in names)


@contextlib.contextmanager
def cut_now_and_then(place: Place, rng: random.Random, formed: Path) -> Iterator[None]:
    """Cuts the cable meanwhile, for so short that no host is silent for longer than it may be. The job is formed when
    there is such a file."""
    if place.cable is None or rng.random() < 0.4:
        yield
        return
    ended = threading.Event()
    moments = random.Random(rng.random())
    name = place.cable

    def cut() -> None:
        while not formed.exists() and not ended.wait(0.1):
            pass
        while not ended.wait(0.5 + moments.random() * 4):
            with contextlib.suppress(subprocess.TimeoutExpired):
                _link(name, "down")
                ended.wait(moments.random() * 0.8)
            _link(name, "up")

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _link(namespace: str, to: str) -> None:
    words = ["ip", "-n", namespace, "link", "set", LINK, to]
    subprocess.run(words, check=True, capture_output=True, timeout=20, env=os.environ)
