"""The simulated cluster of `unisono run --platform rtl`: found, started before the ranks, and ended after them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .carrier import CarrierError, CarrierOptions, make_routes
from .counters import counter_table

NAME = "unisono-cluster"
WITH_WAVES = "unisono-cluster-wave"
MOST_NODES = 64
PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]  #: of the checkout, if the package is used from one
LAST_WORDS = 30.0  # seconds for a cluster whose ranks have all ended: it writes its closing line, and its wave file
READY = 120.0  # seconds until it has read its options and made its nodes
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
CHECK = 20.0  # seconds in which a cluster says whether it takes its options


class ClusterError(Exception):
    """The cluster cannot be started, and why."""


@dataclass(frozen=True)
class ClusterOptions:
    """What `unisono run` hands on; None leaves it to the cluster."""

    network: str | None = None
    seed: int | None = None
    memory: str | None = None
    wave: str | None = None
    trace: str | None = None
    counters: bool = False
    native: tuple[int, ...] | None = None  #: ranks whose engine is the native one
    native_delay: int | None = None  #: cycles that pass before what these send leaves
    kernels: str | None = None  #: library of kernels that Verilated nodes run; no option of rtl's alone
    cables: CarrierOptions = field(default_factory=CarrierOptions)  #: whether nodes are on cables, and on which
    switches: str | None = None  #: what stands in the switches that the network's configuration names

    def given(self) -> list[str]:
        """The options of `unisono run` that were used, and that no other platform has."""
        names = {
            "--network": self.network,
            "--seed": self.seed,
            "--platform-model": self.memory,
            "--wave": self.wave,
            "--trace": self.trace,
            "--native": self.native,
            "--native-delay": self.native_delay,
            "--switch": self.switches,
        }
        return [name for name, value in names.items() if value is not None] + self.cables.given()

    def arguments(self) -> list[str]:
        """As the cluster has them."""
        native = None if self.native is None else ",".join(map(str, self.native))
        pairs = (
            ("--config", self.network),
            ("--seed", self.seed),
            ("--memory", self.memory),
            ("--wave", self.wave),
            ("--trace", self.trace),
            ("--native", native),
            ("--native-delay", self.native_delay),
            ("--kernels", self.kernels),
            ("--switch", self.switches),
        )
        return [text for name, value in pairs if value is not None for text in (name, str(value))]


def find_cluster(name: str = NAME) -> str:
    """The program: UNISONO_CLUSTER, or in the build folder of the checkout, or beside the package, or on PATH."""
    named = os.environ.get("UNISONO_CLUSTER")
    if named:
        if shutil.which(named) is None:
            raise ClusterError(f"UNISONO_CLUSTER is {named!r}, which is no program that can be run")
        return named
    built = sorted(
        (path for folder in ("rtl", "release") for path in (ROOT / "build" / folder).glob(f"**/{name}")),
        key=lambda path: path.stat().st_mtime,
    )
    for candidate in (*reversed(built), PACKAGE / name, PACKAGE / "bin" / name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which(name)
    if found is None and name == WITH_WAVES:
        raise ClusterError(
            f"the simulated cluster that writes waveforms ({name}) is not built: `tools/build --wave` in a checkout "
            "builds it (it needs Verilator, and takes minutes); or say where it is with UNISONO_CLUSTER"
        )
    if found is None:
        raise ClusterError(
            f"the simulated cluster ({NAME}) is not built: `make cluster` in a checkout builds it (it needs Verilator, "
            "and takes minutes); or say where it is with UNISONO_CLUSTER"
        )
    return found


def named_firmware() -> dict[str, str]:
    """UNISONO_FIRMWARE, an image that the ranks load instead of the one that the cluster begins with."""
    named = os.environ.get("UNISONO_FIRMWARE")
    if not named:
        return {}
    if not os.path.isfile(named):
        raise ClusterError(f"UNISONO_FIRMWARE is {named!r}, which is no file")
    return {"UNISONO_FIRMWARE": named}


def check_options(program: str, nodes: int, options: ClusterOptions, routes: list[str]) -> None:
    """Lets the cluster look at the configuration of its network, without running it. Raises `ClusterError`."""
    if options.network is None:
        return
    seed = [] if options.seed is None else ["--seed", str(options.seed)]
    memory = [] if options.memory is None else ["--memory", options.memory]
    switches = [] if options.switches is None else ["--switch", options.switches]
    command = [program, "-n", str(nodes), "--check", "--config", options.network, *routes, *seed, *memory, *switches]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK, text=True, errors="replace"
        )
    except OSError as failure:
        raise ClusterError(f"{program} cannot be run: {failure.strerror}") from failure
    except subprocess.TimeoutExpired as failure:
        raise ClusterError(f"{program} has not looked at {options.network} within {CHECK:g} s") from failure
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().split("\n")[0].removeprefix(f"{NAME}: ")
        raise ClusterError(f"--network: {said or f'{program} exited with status {done.returncode}'}")


class Cluster:
    """One run of the cluster. Each rank has an end of a socket that leads to its node."""

    def __init__(self, nodes: int, options: ClusterOptions) -> None:
        if nodes > MOST_NODES:
            raise ClusterError(f"{nodes} ranks were asked for; a simulated cluster has up to {MOST_NODES} nodes")
        if options.network is not None and not os.path.isfile(options.network):
            raise ClusterError(f"--network: there is no file {options.network}")
        if options.switches is not None and options.network is None:
            raise ClusterError(
                "--switch is of switches that --network FILE names, in a line such as `aggregation = ais@switch*`, and "
                "no file is given"
            )
        for rank in options.native or ():
            if rank >= nodes:
                raise ClusterError(f"--native: there is no rank {rank}; the job has ranks 0 to {nodes - 1}")
        if options.native_delay is not None and not options.native:
            raise ClusterError("--native-delay is of ranks that --native names, and none is named")
        if options.wave is not None and 0 in (options.native or ()):
            raise ClusterError("--wave shows the engine of rank 0, and --native names that rank: it has no signals")
        self._nodes = nodes
        self._options = options
        self._program = find_cluster(NAME if options.wave is None else WITH_WAVES)
        self._routes: tempfile.TemporaryDirectory[str] | None = None
        try:
            if options.cables.used:
                self._routes = make_routes(nodes, options.cables)
        except CarrierError as failure:
            raise ClusterError(str(failure)) from failure
        check_options(self._program, nodes, options, self._on_cables())
        self._counters: Path | None = None  #: where the cluster writes them
        self.environment = named_firmware()
        self.fault: str | None = None  #: what went wrong with it, once it has ended
        self._ends: list[socket.socket | None] = []
        self._process: subprocess.Popen[bytes] | None = None
        self.counted = ""  #: what the engines have counted, as a table, once it has ended

    def _on_cables(self) -> list[str]:
        return [] if self._routes is None else ["--routes", self._routes.name]

    @property
    def output(self) -> IO[bytes]:
        """What it writes."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    def start(self, in_child: Callable[[], None]) -> None:
        """Starts the process, and waits until hosts may come. What it finds wrong is a `ClusterError` before that."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(self._nodes)]
        inner = [pair[1].fileno() for pair in pairs]
        command = [self._program, "-n", str(self._nodes), *self._options.arguments(), *self._on_cables()]
        if self._options.counters:
            handle, name = tempfile.mkstemp(prefix="unisono-counters-", suffix=".json")
            os.close(handle)
            self._counters = Path(name)
            command += ["--counters", name]
        ready, tell = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, "--ready", str(tell), "--fd", ",".join(map(str, inner))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[*inner, tell],
                preexec_fn=in_child,
                process_group=0,
            )
        except OSError as failure:
            raise ClusterError(f"{self._program} cannot be run: {failure.strerror}") from failure
        finally:
            os.close(tell)
            if self._process is None:
                os.close(ready)
            for pair in pairs:
                pair[1].close()
        self._ends = [pair[0] for pair in pairs]
        try:
            self._await_ready(ready)
        finally:
            os.close(ready)

    def _await_ready(self, ready: int) -> None:
        """Until it has said so, or ended: then its last words say why."""
        text, how = "", f"is not ready after {READY:g} s"
        if select.select([ready], [], [], READY)[0]:
            if os.read(ready, 1):
                return
            text, how = self.output.read().decode(errors="replace"), "did not start"
        sentences = [line.partition(": ")[2] for line in text.splitlines() if line.startswith(f"{NAME}: ")]
        if sentences:
            raise ClusterError(sentences[-1])
        raise ClusterError(f"the simulated cluster {how}: {(text.strip().splitlines() or ['it has said nothing'])[-1]}")

    def descriptor(self, rank: int) -> int:
        """The file descriptor that the rank inherits."""
        end = self._ends[rank]
        assert end is not None
        return end.fileno()

    def taken(self, rank: int) -> None:
        """The rank has its descriptor: with it, its node's host ends."""
        end, self._ends[rank] = self._ends[rank], None
        if end is not None:
            end.close()

    def finish(self, patience: float = LAST_WORDS) -> None:
        """Waits for the end that follows that of the last rank, or brings it about."""
        for rank in range(len(self._ends)):
            self.taken(rank)
        if self._process is None:
            return
        ended_late: str | None = None
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            ended_late = f"the simulated cluster has not ended within {patience:g} s after its last rank"
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        status = self._process.returncode
        if ended_late is not None:
            self.fault = f"{ended_late}, and was ended"
        elif status != 0:
            how = f"exited with status {status}"
            if status < 0:
                how = f"was ended by signal {-status}"
                with contextlib.suppress(ValueError):
                    how = f"was ended by {signal.Signals(-status).name}"
            self.fault = f"the simulated cluster {how}; the ranks' devices went with it"
        elif self._counters is not None:
            self.counted = counter_table(json.loads(self._counters.read_text())["nodes"])
        if self._counters is not None:
            self._counters.unlink(missing_ok=True)
        if self._routes is not None:
            self._routes.cleanup()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
