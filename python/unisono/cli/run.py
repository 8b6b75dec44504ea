"""`unisono run`: starts a program on every rank of a job on this machine, and sees to its end."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from importlib.util import find_spec

from .cluster import Cluster, ClusterError, ClusterOptions
from .launcher import Launcher, LauncherError

MOST_RANKS = 1024
PLATFORMS = ("native", "functional", "rtl")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a program on several ranks of this machine",
        usage="unisono run -n RANKS [--platform PLATFORM] [--prefix] [--timeout SECONDS] [--counters] "
        "{[--] PROGRAM | -m MODULE} [ARGUMENT ...]",
        description="Starts PROGRAM once for every rank. A program whose name ends in .py runs in this Python, and so "
        "does MODULE, as by `python -m`. What the ranks write appears in whole lines; equal tracebacks of several "
        "ranks appear once. When a rank fails the others are ended, and the exit status is that of the first rank that "
        "failed (128 + signal if a signal ended it). Standard input goes to rank 0. A job that is ended by --timeout "
        "or SIGQUIT (Ctrl-\\) first says what each rank is doing.",
    )
    parser.add_argument("-n", dest="ranks", type=_ranks, required=True, metavar="RANKS", help="number of ranks")
    parser.add_argument("--prefix", "--tag", action="store_true", help="write the rank in front of each line of output")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="a rank that a signal ends does not end the others, which may shrink their communicator and go on; the "
        "exit status is then theirs",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="end the job after so long (status 124)")
    parser.add_argument(
        "--platform",
        choices=PLATFORMS,
        help="what carries out the calls: this library's own engine (native, the default), the registers of a device "
        "with the native engine behind them (functional), or nodes of a simulated cluster (rtl); UNISONO_PLATFORM says "
        "the same",
    )
    parser.add_argument(
        "--counters", action="store_true", help="print at the end what the engines have counted, a column for each rank"
    )
    cluster = parser.add_argument_group("simulated cluster (--platform rtl)")
    cluster.add_argument("--network", metavar="FILE", help="configuration of the cluster and its network")
    cluster.add_argument("--seed", type=_seed, metavar="NUMBER", help="of everything random in the simulation")
    cluster.add_argument(
        "--platform-model", choices=("partitioned", "unified"), help="how host and device share memory in the model"
    )
    cluster.add_argument("--wave", metavar="FILE", help="write the signals of rank 0's engine to a file")
    cluster.add_argument(
        "--trace", metavar="FILE", help="write a timeline of the moves of all engines (JSON, for Perfetto)"
    )
    cluster.add_argument(
        "--native",
        type=_rank_list,
        metavar="RANK,...",
        help="ranks whose engine is the native one, in C++, instead of a simulated one; all are on one network",
    )
    cluster.add_argument(
        "--native-delay",
        type=_cycles,
        metavar="CYCLES",
        help="time that passes before a message of such a rank leaves (default 0: the native engine takes no time)",
    )
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module as `python -m MODULE` does"
    )
    parser.add_argument("program", nargs="?", help="the program, found as a shell finds it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(execute=execute)


def _ranks(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= int(text) <= MOST_RANKS:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} ranks were asked for; allowed are 1 to {MOST_RANKS}")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")


def _seed(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 64:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 2^64-1")


def _rank_list(text: str) -> tuple[int, ...]:
    try:
        ranks = tuple(int(part) for part in text.split(","))
    except ValueError:
        ranks = (-1,)
    if min(ranks) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks with commas between them, such as 1,3")
    if len(set(ranks)) != len(ranks):
        raise argparse.ArgumentTypeError(f"{text!r} names a rank twice")
    return ranks


def _cycles(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 32:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number of cycles from 0 to 2^32-1")


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    platform = options.platform or os.environ.get("UNISONO_PLATFORM") or PLATFORMS[0]
    if platform not in PLATFORMS:
        return _refuse(f"UNISONO_PLATFORM is {platform!r}; known are {', '.join(PLATFORMS)}", 2)
    hints = ClusterOptions(
        options.network,
        options.seed,
        options.platform_model,
        options.wave,
        options.trace,
        options.counters,
        options.native,
        options.native_delay,
    )
    if platform != "rtl" and hints.given() == ["--trace"]:
        return _refuse(
            "--trace: the native engine writes no trace yet; a later release will. Today `unisono dump --history` "
            "shows the last calls of each rank of a running job, and --platform rtl --trace FILE every move of "
            "simulated engines",
            2,
        )
    if platform != "rtl" and hints.given():
        return _refuse(f"{' and '.join(hints.given())} goes with --platform rtl; the platform is {platform}", 2)
    try:
        command = _command(options)
    except CommandError as failure:
        return _refuse(str(failure), failure.status)
    try:
        cluster = Cluster(options.ranks, hints) if platform == "rtl" else None
        return Launcher(
            command,
            options.ranks,
            prefix=options.prefix,
            timeout=options.timeout,
            keep_going=options.keep_going,
            environment={"UNISONO_PLATFORM": platform},
            cluster=cluster,
            counters=options.counters and platform != "rtl",
        ).run()
    except ClusterError as failure:
        return _refuse(str(failure), 127)
    except LauncherError as failure:
        return _refuse(str(failure), 2)
    except OSError as failure:
        if failure.filename != command[0]:
            raise
        return _refuse(f"{command[0]} cannot be run: {failure.strerror}", 126)


class CommandError(Exception):
    """There is nothing to start, and why."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what)
        self.status = status


def _is_module(name: str) -> bool:
    """Whether Python would find it, from the working directory as `python -m` does. Nothing is imported."""
    sys.path.insert(0, "")
    try:
        return find_spec(name) is not None
    except ValueError:
        return False
    finally:
        sys.path.pop(0)


def _command(options: argparse.Namespace) -> list[str]:
    """What each rank is to run. Raises `CommandError` with the status that a shell would give."""
    if options.module is not None:
        if not options.module:
            raise CommandError("-m: name a module, such as `unisono run -n 4 -m package.module`", 2)
        # What `--` cut off.
        module, *arguments = options.module + ([options.program, *options.arguments] if options.program else [])
        if not _is_module(module.partition(".")[0]):
            raise CommandError(f"there is no module {module}", 127)
        return [sys.executable, "-m", module, *arguments]
    if options.program is None:
        ranks = f"{options.ranks} rank{'s' * (options.ranks != 1)}"
        raise CommandError(
            f"no program was given; name the one to run on {ranks}: `unisono run -n {options.ranks} hello.py`, or "
            f"`unisono run -n {options.ranks} ./hello`",
            2,
        )
    command = [options.program, *options.arguments]
    if options.program.endswith(".py"):
        if not os.path.isfile(options.program):
            raise CommandError(f"there is no file {options.program}", 127)
        return [sys.executable, *command]
    if shutil.which(options.program) is None:
        if os.path.isfile(options.program):
            raise CommandError(f"{options.program} is not executable", 126)
        raise CommandError(f"there is no program {options.program}", 127)
    return command


def _refuse(what: str, status: int) -> int:
    print(f"unisono run: {what}", file=sys.stderr)
    return status
