"""`unisono run`: starts a program on every rank of a job, on this machine or on several, and sees to its end."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from ..errors import InvalidArgumentError
from . import job_prices
from .aggregation import AggregationError, find
from .cables import COLLECTIVES, PROTOCOLS, Cables, CablesError, CablesOptions
from .carrier import CARRIERS, CarrierOptions
from .cluster import Cluster, ClusterError, ClusterOptions
from .command import Command, CommandError
from .environment import JOB_VARIABLES
from .hostlist import MOST_ON_A_HOST, HostListError, HostRanks, read_file, read_list
from .launcher import Launcher, LauncherError
from .node_shape import MOST_PORTS
from .way import SSH, Plan, Way
from .ways import tls_fault

PLATFORMS = ("native", "functional", "rtl")
MOST_LATENCY = 10_000  #: cycles of a cable
TRANSPORTS = ("tcp", "udp", "ofi")  #: kTransports of the library: networks between hosts


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a program on several ranks of this machine, or of several",
        usage="unisono run {-n RANKS | --hosts HOST:RANKS,...} [--platform PLATFORM] [--prefix] [--timeout SECONDS] "
        "[--counters] {[--] PROGRAM | -m MODULE} [ARGUMENT ...]",
        description="Starts PROGRAM once for every rank. A program whose name ends in .py runs in this Python, and so "
        "does MODULE, as by `python -m`. What the ranks write appears in whole lines; equal tracebacks of several "
        "ranks appear once. When a rank fails the others are ended, and the exit status is that of the first rank that "
        "failed (128 + signal if a signal ended it). Standard input goes to rank 0. A job that is ended by --timeout "
        "or SIGQUIT (Ctrl-\\) first says what each rank is doing.",
    )
    parser.add_argument("-n", dest="ranks", type=_ranks, metavar="RANKS", help="number of ranks")
    parser.add_argument("--prefix", "--tag", action="store_true", help="write the rank in front of each line of output")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="a rank that a signal ends, or that is cut off from the larger part of the job (status 75), does not end "
        "the others, which may shrink their communicator and go on; the exit status is then theirs",
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
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME[=VALUE]",
        help="a variable of the environment that the ranks get on all hosts, beside those that begin with UNISONO_; "
        "without a value that which it has here. May be given several times",
    )
    parser.add_argument(
        "--transport", type=transports, metavar="NAME,...", help="what carries data between hosts: UNISONO_TRANSPORT"
    )
    parser.add_argument(
        "--interfaces", metavar="TEXT", help="which of a host's network interfaces carry it: UNISONO_INTERFACES"
    )
    parser.add_argument(
        "--tls",
        action="store_true",
        help="encrypt all data between hosts by TLS 1.3, and refuse networks that cannot: UNISONO_TLS=on",
    )
    add_aggregate(parser)
    parser.add_argument(
        "--kernels", metavar="FILE", help="library of kernels (`unisono kernel build`) that the program calls by name"
    )
    hosts = parser.add_argument_group("several hosts")
    hosts.add_argument(
        "--hosts", metavar="HOST:RANKS,...", help="hosts, and how many ranks each has (1 if that is left out)"
    )
    hosts.add_argument("--hostfile", metavar="FILE", help="the same, `host:ranks` or `host slots=ranks` in each line")
    hosts.add_argument(
        "--agent",
        metavar="COMMAND",
        help="what starts a program on a host: {host} stands for the host, {command} for the program as one word, as "
        f"shells read it; where they are missing both are appended. Default: `{SSH}`; `local` starts it here, as if "
        "on several hosts",
    )
    hosts.add_argument(
        "--python", metavar="PATH", help="the Python there that has Unisono; default: the path of this one"
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
        help="ranks whose engine is the native one, in C++, instead of a simulated one; all are on one network. "
        "With --cables: ranks whose node is in software; all are on the same cables",
    )
    cluster.add_argument(
        "--native-delay",
        type=_cycles,
        metavar="CYCLES",
        help="time that passes before a message of such a rank leaves (default 0: the native engine, and a node in "
        "software, take no time)",
    )
    cluster.add_argument(
        "--switch",
        choices=("native", "rtl", "off"),
        help="switches that take part in collectives, where the configuration of the network says `aggregation`: in "
        "C++ (the default), which take no time, in hardware, Verilated (rtl), or none",
    )
    job_prices.add_option(cluster)
    cluster.add_argument(
        "--carrier",
        choices=CARRIERS,
        help="who carries frames between nodes: the simulated network (the default), or SMI's transport, over cables "
        "between the nodes and without a switch",
    )
    cluster.add_argument(
        "--topology",
        metavar="T.json",
        help="the cables of --carrier smi, as SMI's topology files have them; default: a torus or a ring of the ranks",
    )
    cluster.add_argument(
        "--without", action="append", metavar="A:ch0-B:ch1", help="without this cable; can be given several times"
    )
    cluster.add_argument(
        "--leave-out", action="append", metavar="NODE", help="without this node; can be given several times"
    )
    cables = parser.add_argument_group("kernels of SMI at simulated nodes on cables (--platform rtl)")
    cables.add_argument(
        "--cables",
        metavar="T.json",
        help="topology of the job's ranks: their channels go over SMI's transport in hardware, a simulated node for "
        "each; calls of their hosts are the native engine's",
    )
    cables.add_argument(
        "--cable-latency", type=_cycles, metavar="CYCLES", help="from node to node, in cycles of 250 MHz (40)"
    )
    cables.add_argument("--cable-gbits", type=_gbits, metavar="RATE", help="Gb/s that a cable carries (40)")
    cables.add_argument(
        "--endpoints",
        action="append",
        metavar="FILE",
        help="PROGRAM.endpoints.json of a program of the job, which `unisono kernel generate` writes: nodes get its "
        "ports, R and packets, and the units of its collectives. Can be given several times. "
        "Builds the node where it is not kept yet",
    )
    cables.add_argument("--node-ports", type=_ports, metavar="N", help="ports of a node, at least (4)")
    cables.add_argument("--node-reads", type=int, metavar="R", help="packets that an arbiter takes from one input (8)")
    cables.add_argument("--node-packet", type=int, metavar="BYTES", help="bytes of a packet: 32, 64, 128, 256 (32)")
    cables.add_argument(
        "--collectives",
        choices=COLLECTIVES,
        help="broadcast and reduction by the units of nodes, where ports have them (the default), or over channels",
    )
    cables.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="of channels between two ranks: by the asynchronicity degree (the default), eager, or with credits",
    )
    cables.add_argument("--cycles", metavar="FILE", help="write what the kernels took to a file, as JSON")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module as `python -m MODULE` does"
    )
    parser.add_argument("program", nargs="?", help="the program, found as a shell finds it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(execute=execute)


def add_aggregate(parser: argparse.ArgumentParser) -> None:
    """Options that name switches."""
    parser.add_argument(
        "--aggregate",
        metavar="HOST:PORT,...|auto|off",
        help="switches (`unisono switch start`) that aggregate calls of several hosts: UNISONO_AGGREGATE. auto: those "
        "that the file UNISONO_SWITCHES lists, else ~/.config/unisono/switches, else /etc/unisono/switches",
    )
    parser.add_argument(
        "--aggregate-secret-file",
        metavar="FILE",
        help="their secret: UNISONO_AGGREGATE_SECRET_FILE; of auto otherwise that beside the list, switches.secret",
    )


def _ranks(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= int(text) <= MOST_ON_A_HOST:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} ranks were asked for; allowed are 1 to {MOST_ON_A_HOST}")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not name or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} names no variable; write NAME or NAME=VALUE")
    if name in JOB_VARIABLES:
        raise argparse.ArgumentTypeError(f"{name} is what `unisono run` itself sets for each rank")
    if not given and name not in os.environ:
        raise argparse.ArgumentTypeError(f"the environment has no variable {name} here; write {name}=VALUE")
    return name, value if given else os.environ[name]


def transports(text: str) -> str:
    """Names of networks with commas between them. Raises `ArgumentTypeError`."""
    for name in text.split(","):
        if name not in TRANSPORTS:
            raise argparse.ArgumentTypeError(f"there is no network {name!r}; known are {', '.join(TRANSPORTS)}")
    return text


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


def _ports(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= int(text) <= MOST_PORTS:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} ports were asked for; allowed are 1 to {MOST_PORTS}")


def _gbits(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= 1000:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no rate in Gb/s, above 0 and up to 1000")


def _cables(options: argparse.Namespace, platform: str, others: list[str]) -> CablesOptions | None:
    """What was said of cables. Raises `CablesError`."""
    given = {
        "--cable-latency": options.cable_latency,
        "--cable-gbits": options.cable_gbits,
        "--endpoints": options.endpoints,
        "--node-ports": options.node_ports,
        "--node-reads": options.node_reads,
        "--node-packet": options.node_packet,
        "--collectives": options.collectives,
        "--protocol": options.protocol,
        "--cycles": options.cycles,
    }
    named = [name for name, value in given.items() if value is not None]
    if options.cables is None:
        if named:
            raise CablesError(f"{' and '.join(named)} goes with --cables")
        return None
    if platform != "rtl":
        raise CablesError(f"--cables goes with --platform rtl; the platform is {platform}")
    if others:
        raise CablesError(f"{' and '.join(others)} is of engines in hardware; with --cables there are none")
    if options.cable_latency is not None and not 1 <= options.cable_latency <= MOST_LATENCY:
        raise CablesError(f"--cable-latency is {options.cable_latency}; allowed are 1 to {MOST_LATENCY} cycles")
    known = CablesOptions(options.cables, report=options.cycles)
    return CablesOptions(
        options.cables,
        options.cable_latency or known.latency,
        options.cable_gbits or known.gbits,
        options.node_ports,
        options.cycles,
        tuple(options.endpoints or ()),
        options.node_reads,
        options.node_packet,
        options.collectives,
        options.protocol,
        options.native or (),
        options.native_delay,
    )


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
        None if options.kernels is None else os.path.abspath(options.kernels),
        CarrierOptions(options.carrier, options.topology, tuple(options.without or ()), tuple(options.leave_out or ())),
        options.switch,
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
    if options.prices is not None and options.network is None:
        return _refuse("--prices is of a simulated network; say which with --network FILE", 2)
    try:
        of_engines = [name for name in hints.given() if name not in ("--native", "--native-delay")]
        cabled = _cables(options, platform, [*of_engines, *(["--kernels"] if options.kernels else [])])
    except CablesError as failure:
        return _refuse(str(failure), 2)
    # What hosts call beside channels is the native engine's.
    environment = {"UNISONO_PLATFORM": PLATFORMS[0] if cabled else platform} | dict(options.env)
    if options.kernels is not None:
        if not os.path.isfile(options.kernels):
            return _refuse(f"--kernels: there is no file {options.kernels}", 2)
        environment["UNISONO_KERNELS"] = os.path.abspath(options.kernels)
    if options.transport is not None:
        environment["UNISONO_TRANSPORT"] = options.transport
    if options.interfaces is not None:
        environment["UNISONO_INTERFACES"] = options.interfaces
    if options.tls:
        environment["UNISONO_TLS"] = "on"
    if fault := tls_fault(os.environ | environment):
        return _refuse(fault, 2)
    if options.aggregate not in (None, "off") and platform == "rtl":
        return _refuse("--aggregate is for the native engine; simulated engines (--platform rtl) have no switches", 2)
    try:
        switches = find(options.aggregate, options.aggregate_secret_file, os.environ | environment)
    except AggregationError as failure:
        return _refuse(str(failure), 2)
    environment |= switches.variables
    if switches.told:
        print(f"unisono run: {switches.told}", file=sys.stderr)
    try:
        hosts = _hosts(options, platform)
        ranks = options.ranks if hosts is None else sum(len(host.ranks) for host in hosts)
        command = _command(options, ranks)
        way = Way(options.agent, options.python or sys.executable)
        plan = None if hosts is None else Plan(hosts, way, command, _folder(), counters=options.counters)
        words = command.words() if plan is None else []
    except HostListError as failure:
        return _refuse(str(failure), 2)
    except CommandError as failure:
        return _refuse(str(failure), failure.status)
    try:
        # First of all, for it says what is wrong with the configuration.
        simulated = Cluster(ranks, hints) if platform == "rtl" and cabled is None else None
        priced = options.network if simulated is not None and not hints.cables.used else None
        with job_prices.rules_of_job(ranks, priced, options.switch, environment, options.prices) as rules:
            return Launcher(
                words,
                ranks,
                prefix=options.prefix,
                timeout=options.timeout,
                keep_going=options.keep_going,
                environment=environment | rules,
                cluster=simulated,
                cables=None if cabled is None else Cables(ranks, cabled),
                counters=options.counters and (platform != "rtl" or cabled is not None),
                plan=plan,
            ).run()
    except InvalidArgumentError as failure:
        return _refuse(str(failure), 2)
    except (CablesError, ClusterError) as failure:
        return _refuse(str(failure), 127)
    except LauncherError as failure:
        return _refuse(str(failure), failure.status)
    except OSError as failure:
        if not words or failure.filename != words[0]:
            raise
        return _refuse(f"{words[0]} cannot be run: {failure.strerror}", 126)


def _hosts(options: argparse.Namespace, platform: str) -> list[HostRanks] | None:
    """The hosts, if there are any named. Raises `HostListError`."""
    if options.hosts is None and options.hostfile is None:
        for name, value in (("--agent", options.agent), ("--python", options.python)):
            if value is not None:
                raise HostListError(f"{name} goes with --hosts or --hostfile, and neither is given")
        if options.ranks is None:
            raise HostListError("how many ranks? Say it with -n 4, or name hosts: --hosts a:4,b:4")
        return None
    if options.hosts is not None and options.hostfile is not None:
        raise HostListError("--hosts and --hostfile are both given; name the hosts once")
    hosts = read_list(options.hosts) if options.hosts is not None else read_file(options.hostfile)
    total = sum(len(host.ranks) for host in hosts)
    if options.ranks not in (None, total):
        raise HostListError(f"-n asks for {options.ranks} ranks, and the hosts have {total}; leave -n out")
    if platform == "rtl":
        raise HostListError("a simulated cluster (--platform rtl) runs on this machine; leave --hosts out")
    return hosts


def _command(options: argparse.Namespace, ranks: int) -> Command:
    """What each rank is to run. Raises `CommandError`."""
    if options.module is not None:
        if not options.module:
            raise CommandError("-m: name a module, such as `unisono run -n 4 -m package.module`", 2)
        # What `--` cut off.
        module, *arguments = options.module + ([options.program, *options.arguments] if options.program else [])
        return Command(module, arguments, is_module=True)
    if options.program is None:
        number = f"{ranks} rank{'s' * (ranks != 1)}"
        raise CommandError(
            f"no program was given; name the one to run on {number}: `unisono run -n {ranks} hello.py`, or "
            f"`unisono run -n {ranks} ./hello`",
            2,
        )
    return Command(options.program, options.arguments)


def _folder() -> str:
    """The working directory, by the name that the shell has for it. Raises `CommandError`."""
    try:
        folder, named = os.getcwd(), os.environ.get("PWD", "")
        # Another host may have the same folder behind the same symbolic link only.
        return named if os.path.isabs(named) and os.path.realpath(named) == folder else folder
    except OSError as failure:
        raise CommandError(f"the working directory cannot be found: {failure.strerror}", 2) from failure


def _refuse(what: str, status: int) -> int:
    print(f"unisono run: {what}", file=sys.stderr)
    return status
