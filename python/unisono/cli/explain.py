"""`unisono explain`: which algorithm serves a call, and why."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .. import _core
from .._spec import Collective, Datatype, Func
from ..bench.plan import kind_of_buffers
from ..errors import InvalidArgumentError
from . import simulated_prices
from . import table as tables
from .arguments import words
from .carried_calls import carried_by, verdict
from .run import TRANSPORTS, transports
from .ways import connections_of, hosts_of_ranks, number_of_ranks, sentences, tls_fault, ways

OPERATIONS = [collective.name.lower() for collective in Collective if collective.is_collective]
DATATYPES = [datatype.name.lower() for datatype in Datatype if datatype != Datatype.NONE]
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
PARTS = ("latency", "copy", "reduce", "sync")
BUFFERS = ("allocated", "malloc")
_MANY = 200  #: ranks from which on predictions take seconds


def size(text: str) -> int:
    """A number of bytes, with K, M or G."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].lower() in tuple("kmg") else (text, "")
    if not (number.isascii() and number.isdigit()) or int(number) * UNITS[unit] > 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes such as 4096, 64K or 4M")
    return int(number) * UNITS[unit]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "explain",
        help="say which algorithm serves a call, and why",
        description="Chooses as a job with this environment would, and predicts the time of every algorithm from its "
        "own programs and the figures of the machine (`unisono calibrate`).",
    )
    parser.add_argument("operation", metavar="OP", choices=OPERATIONS, help=", ".join(OPERATIONS))
    parser.add_argument(
        "--bytes", type=size, default=1024, metavar="N", help="of the vector, or of one rank's block (1024)"
    )
    parser.add_argument("--ranks", type=int, metavar="P", help="number of ranks (2, or those of --hosts)")
    parser.add_argument(
        "--hosts", metavar="HOST:RANKS,...", help="of a job of `unisono run --hosts`: also say what carries data there"
    )
    parser.add_argument(
        "--transport",
        type=transports,
        metavar="NAME,...",
        help=f"what carries data between hosts (UNISONO_TRANSPORT, else {TRANSPORTS[0]})",
    )
    parser.add_argument("--tls", action="store_true", help="with data between hosts encrypted (UNISONO_TLS)")
    parser.add_argument(
        "--aggregate",
        metavar="HOST:PORT,...|auto",
        help="with --hosts: also say whether these switches (`unisono switch`), which are asked, would carry the call",
    )
    parser.add_argument("--secret-file", metavar="FILE", help="the switches' secret (UNISONO_AGGREGATE_SECRET_FILE)")
    parser.add_argument("--dtype", choices=DATATYPES, default="fp32", help="of the elements (fp32)")
    parser.add_argument(
        "--buffers",
        type=_buffers,
        metavar="{allocated,malloc}",
        default="malloc",
        help="allocated by Unisono (comm.empty and its like), or not (malloc)",
    )
    parser.add_argument("--cores", type=int, metavar="C", help="cores for the ranks of a host (those of this process)")
    parser.add_argument(
        "--algorithm",
        type=words,
        default="",
        metavar="NAME",
        help="of a call that names it, as in ring or knomial:8 (by the rules)",
    )
    parser.add_argument("--in-place", action="store_true", help="the in-place form")
    parser.add_argument(
        "--streams", action="store_true", help="what a communicator of streams does: which operands are copied"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="results of `unisono bench` to compare with")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (text)")
    simulated_prices.add_options(parser)
    parser.set_defaults(execute=execute)


def _buffers(text: str) -> str:
    if text not in BUFFERS:
        raise argparse.ArgumentTypeError(f"{text!r} are no buffers; allowed are allocated and malloc")
    return text


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.network is not None:
        return simulated_prices.execute(options)
    for name in ("switch", "parameters", "segment_bytes", "prices"):
        if getattr(options, name) is not None:
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} is of a simulated network; say which with --network FILE"
            )
    answer = explain(options)
    if options.format == "json":
        print(json.dumps(answer, indent=2))
        return 0
    _print(Console(highlight=False), options, answer)
    return 0


def explain(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that the command prints."""
    transport = _transport(options) if options.hosts is not None else TRANSPORTS[0]
    environment = os.environ | {"UNISONO_TRANSPORT": transport} | ({"UNISONO_TLS": "on"} if options.tls else {})
    if options.hosts is not None and (fault := tls_fault(environment)):
        raise InvalidArgumentError(fault)
    tls = environment.get("UNISONO_TLS", "off") != "off"
    between = [] if options.hosts is None else ways(options.hosts, transport, tls=tls)
    hosts = hosts_of_ranks(between)
    several = len(set(hosts)) > 1
    of_hosts = number_of_ranks(between) if between else 2
    if between and options.ranks not in (None, of_hosts):
        raise InvalidArgumentError(f"--ranks is {options.ranks}, and the hosts have {of_hosts}; leave --ranks out")
    options.ranks = of_hosts if options.ranks is None else options.ranks
    cores = _core.cores_for_ranks() if options.cores is None else options.cores
    for name, value, most in (("ranks", options.ranks, 1024), ("cores", cores, 1 << 20)):
        if not 1 <= value <= most:
            raise InvalidArgumentError(f"{value} {name} were given; allowed are 1 to {most}")
    operation: str = options.operation
    collective = Collective[operation.upper()]
    datatype = Datatype[options.dtype.upper()] if collective.data else Datatype.NONE
    if collective.reduces and datatype == Datatype.BYTE:
        raise InvalidArgumentError(f"{operation} of bytes was asked for; bytes can be moved, not reduced")
    element = _core.bytes_of(int(datatype)) if collective.data else 1
    count = options.bytes // element if collective.data else 0
    if collective.data and count * element != options.bytes:
        raise InvalidArgumentError(f"{options.bytes} bytes are no whole number of {options.dtype} ({element} bytes)")
    from_bytes = None if several else kernel_copies_from(operation, options.ranks, options.ranks > cores)
    copied = options.buffers == "malloc" and from_bytes is not None and count * element >= from_bytes
    answer = _patiently(
        operation, options.ranks, _core.explain,
        int(collective), options.ranks, count, int(datatype), int(Func.SUM if collective.reduces else Func.NONE), 0,
        options.in_place, options.buffers == "allocated" or copied, cores, options.algorithm, hosts,
    )  # fmt: skip
    answer["streams"] = None
    if options.streams:
        if not collective.data or collective.name.endswith("V"):
            raise InvalidArgumentError(
                f"--streams: {operation} has "
                + ("no data" if not collective.data else "counts by rank; its streams are copied, by every algorithm")
            )
        func = Func.SUM if collective.reduces else Func.NONE
        answer["streams"] = _core.streamed(
            int(collective), options.ranks, count, int(datatype), int(func), options.in_place
        )
    answer["kernel_copy"] = {"from": from_bytes, "this_call": copied}
    rules = _core.tuning_in_force()
    tuning = {name: rules[name] for name in ("path", "hash", "warning", "calibrated", "network")}
    if several:
        between[-1]["connections"] = connections_of(os.environ, tuning["network"])
    call = {
        "operation": operation, "bytes": count * element, "ranks": options.ranks, "dtype": options.dtype,
        "buffers": options.buffers, "cores": cores,
    }  # fmt: skip
    # What was measured last was measured on one host.
    measured = None if several else _measured(options, count * element)
    answer["aggregation"] = None
    if options.aggregate is not None:
        of_call = call | {"hosts": len(set(hosts)), "in_place": options.in_place, "algorithm": options.algorithm}
        answer["aggregation"] = carried_by(options.aggregate, options.secret_file, environment, of_call)
    return {"call": call} | answer | {"tuning": tuning, "measured": measured, "ways": between}


def _patiently(operation: str, ranks: int, work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What `work(*given)` returns. Of many ranks it takes long: a terminal is told so, and Ctrl-C ends the command."""
    if ranks <= _MANY:
        return work(*given)
    answers: list[dict[str, Any]] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work(*given))
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    said = f"{operation} of {ranks} ranks by each algorithm: up to a minute"
    try:
        with Console(stderr=True).status(said):  # nothing where there is no terminal
            thread.start()
            while thread.is_alive():
                thread.join(0.1)
    except KeyboardInterrupt:
        sys.stderr.flush()
        os._exit(130)  # the prediction asks for no signals, and the end of the interpreter would wait for it
    if failures:
        raise failures[0]
    return answers[0]


def _transport(options: argparse.Namespace) -> str:
    """What carries data between hosts, as a job with this environment would have it."""
    if options.transport is not None:
        return str(options.transport)
    try:
        return transports(os.environ.get("UNISONO_TRANSPORT", TRANSPORTS[0]))
    except argparse.ArgumentTypeError as failure:
        raise InvalidArgumentError(f"UNISONO_TRANSPORT: {failure}") from failure


def kernel_copies_from(operation: str, ranks: int, crowded: bool) -> int | None:
    """From how many bytes on the kernel copies ordinary buffers of a collective here; None: it never does."""
    setting = os.environ.get("UNISONO_KERNEL_COPY", "auto")
    if setting == "off" or ranks < 2:
        return None
    if setting.isdecimal():
        return int(setting)
    return _core.copied_from(int(Collective[operation.upper()]), ranks, crowded)


# ------------------------------------------------------------------------------------------- measured times


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, or of one list. What cannot be read as one is passed over."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error}") from None
    try:
        whole = json.loads(text)
        entries = whole if isinstance(whole, list) else [whole]
    except (json.JSONDecodeError, RecursionError):
        entries = []
        for line in text.splitlines():
            try:
                entries.append(json.loads(line))
            except (json.JSONDecodeError, RecursionError):
                continue  # a line that was cut short
    yield from (entry for entry in entries if isinstance(entry, dict))


def _measured(options: argparse.Namespace, length: int) -> dict[str, Any] | None:
    """The last record of the same operation, bytes, ranks and buffers, of this system."""
    paths = [options.json] if options.json is not None else [path for path in _usual_results() if path.is_file()][:1]
    wanted = {"op": options.operation, "bytes": length, "ranks": options.ranks}
    alike = {"system": "unisono", "dtype": options.dtype, "buffers": options.buffers, "interface": "c", "link": None}
    if options.operation == "barrier":
        del wanted["bytes"], alike["dtype"], alike["buffers"]
    found = None
    for path in paths:
        for record in _records(path):
            same = all(record.get(name) == value for name, value in wanted.items())
            record = record | {"buffers": kind_of_buffers(record) or options.buffers}
            same = same and all(record.get(name, value) == value for name, value in alike.items())
            same = same and record.get("counts") in (None, "equal")
            time = record.get("median_us", record.get("mean_us"))
            if same and isinstance(time, int | float):
                found = {"file": str(path), "algorithm": record.get("algorithm"), "us": float(time)}
    return found


def _usual_results() -> list[Path]:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return [Path("build/bench.json"), Path(state) / "unisono/bench.jsonl"]


# --------------------------------------------------------------------------------------------------- output


def nanoseconds(value: float) -> str:
    """A time with a fitting unit."""
    for limit, scale, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if value < limit:
            return f"{value / scale:.3g} {unit}" if value < 100 * scale else f"{value / scale:.0f} {unit}"
    return f"{value / 1e9:.3g} s"


def length(value: int) -> str:
    """Bytes with a fitting unit."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.4g} {unit}"
    return f"{value} bytes"


def _why(answer: dict[str, Any]) -> str:
    rule = answer["rule"]
    if answer["origin"] == "named":
        return "as a call that names this algorithm; no rule is looked at"
    if rule is None:
        return "no rule names an algorithm that admits the call; this is the first of the table that does"
    if answer["origin"] == "determinism":
        return "determinism: results must not depend on sizes or places, so one algorithm serves all calls"
    origin = {"pin": "pinned by UNISONO_ALGORITHM", "file": f"rule of {answer['tuning']['path']}"}
    parts = []
    if rule["min_bytes"]:
        parts.append(f"from {length(rule['min_bytes'])}")
    if rule["max_bytes"] is not None:
        parts.append(f"up to {length(rule['max_bytes'])}")
    if rule["min_ranks"] > 1 or rule["max_ranks"] is not None:
        most = rule["max_ranks"]
        parts.append(
            f"up to {most} ranks" if rule["min_ranks"] == 1
            else f"{rule['min_ranks']} ranks and more" if most is None
            else f"{most} ranks" if most == rule["min_ranks"]
            else f"{rule['min_ranks']} to {most} ranks"
        )  # fmt: skip
    for name, yes, no in (
        ("direct", "buffers within reach", "buffers out of reach"),
        ("crowded", "more ranks than cores", "a core for each rank"),
        ("groups", "two levels", ""),
        ("hosts", "several hosts", ""),
    ):
        text = {True: yes, False: no}.get(rule[name], "")
        if text:
            parts.append(text)
    return f"{origin.get(answer['origin'], 'built-in rule')}: {', '.join(parts) or 'all calls'}"


def _print(console: Console, options: argparse.Namespace, answer: dict[str, Any]) -> None:
    call = answer["call"]
    data = Collective[options.operation.upper()].data
    of = "" if not data else f" of {length(call['bytes'])} {call['dtype']}"
    cores = f"{call['cores']} core{'s' * (call['cores'] != 1)}"
    hosts = sum(entry["host"] is not None for entry in answer["ways"])
    several = hosts > 1
    where = f"{hosts} hosts with {cores} each" if several else cores
    ranks = f"{call['ranks']} rank{'s' * (call['ranks'] != 1)} on {where}"
    buffers = "" if not data else f", {call['buffers']} buffers"
    console.print(f"[bold]{options.operation}[/]{of}, {ranks}{buffers}: [bold cyan]{answer['algorithm']}[/]")
    console.print(escape(_why(answer)), style="dim", soft_wrap=True)
    if answer["aggregation"] is not None:
        console.print(verdict(answer["aggregation"]), markup=False, soft_wrap=True)
    for sentence in sentences(answer["ways"], answer["tuning"]["network"]) if answer["ways"] else ():
        console.print(sentence, markup=False, soft_wrap=True)
    if not answer["priced"]:
        console.print(_programs(answer))
    else:
        parts = _candidates(answer, wide=True)
        console.print(parts if tables.fits(console, parts) else _candidates(answer, wide=False))
    console.print()
    if out := [each for each in answer["candidates"] if each["prediction"] is None]:
        missing = "; ".join(_missing(each, call["buffers"], several=several) for each in out)
        console.print(f"Not for this call: {missing}.", style="dim", markup=False)
    if answer["streams"] is not None:
        _print_streams(console, answer["streams"])
    chosen = _of(answer, answer["algorithm"])
    if chosen is not None:
        _print_chosen(console, answer, chosen)
    if answer["order"] is not None:
        orders = answer["order"]["orders"]
        same = "the same for all elements" if orders == 1 else f"{orders} different ones, by the element's place"
        console.print(f"Order of reduction: {answer['order']['hash']} ({same}).", markup=False)
    if answer["runner_up"] is not None:
        where = answer["crossover"]
        tried = f"at none of the sizes tried, {answer['crossover_stride']} times apart,"
        none = "at no size" if answer["crossover_stride"] == 2 else tried
        place = f"{none} does their order change" if where is None else f"their order changes near {length(where)}"
        console.print(f"Runner-up: [cyan]{answer['runner_up']}[/]; {place}.")
    if answer["kernel_copy"]["this_call"]:
        console.print(
            f"The kernel copies ordinary buffers from {length(answer['kernel_copy']['from'])} on here, so they can be "
            "reached. Predicted are allocated buffers, which are quicker."
        )
    if answer["asked_in_vain"]:
        console.print(
            f"The call first asks whether all buffers can be reached, in vain: about "
            f"{nanoseconds(answer['asked_in_vain'])}; after four such calls, one in 16 asks. "
            "Allocated buffers would make it worth it."
        )
    measured = answer["measured"]
    if measured is not None:
        console.print(
            f"Last measured: {nanoseconds(1e3 * measured['us'])} with {measured['algorithm'] or 'an unnamed algorithm'}"
            f" ({measured['file']})", markup=False, soft_wrap=True,
        )  # fmt: skip
    tuning = answer["tuning"]
    if tuning["warning"]:
        console.print(f"[yellow]warning[/]: {escape(tuning['warning'])}", soft_wrap=True)
    figures = f"figures of {tuning['path']}" if tuning["calibrated"] else "usual figures; `unisono calibrate` measures"
    table = f"table {tuning['hash']}" if tuning["hash"] else "the built-in table"
    by = "" if several else f"Predictions by {figures}. "
    console.print(f"{by}Rules: {table}.", style="dim", markup=False, soft_wrap=True)


def _print_streams(console: Console, streams: dict[str, Any]) -> None:
    """What becomes of stream ports in the place of src and dst, by every algorithm."""
    table = Table("on a communicator of streams", "src", "dst", box=None, pad_edge=False)
    words = {True: "[green]element by element[/]", False: "copied"}
    for name, goes in streams["algorithms"].items():
        chosen = name == streams["algorithm"]
        table.add_row(f"[bold cyan]{name}[/] (chosen)" if chosen else name, words[goes["src"]], words[goes["dst"]])
    console.print(table)
    console.print("On communicators with lanes every stream is copied (docs/streams.md).", style="dim", markup=False)
    console.print()


def _of(answer: dict[str, Any], name: str | None) -> dict[str, Any] | None:
    for candidate in answer["candidates"]:
        if candidate["algorithm"] == name:
            prediction: dict[str, Any] | None = candidate["prediction"]
            return prediction
    return None


def _print_chosen(console: Console, answer: dict[str, Any], chosen: dict[str, Any]) -> None:
    moves = f"{chosen['moves']} moves on all ranks, at most {chosen['most_moves']} on one"
    traffic = f"{chosen['messages']} messages with {length(chosen['message_bytes'])}"
    if chosen["remote_bytes"]:
        traffic += f", {length(chosen['remote_bytes'])} in place at other ranks"
    console.print(f"Program: {moves}; {traffic}.", markup=False)
    if chosen["total"] is None:
        return
    total = chosen["total"] or 1
    parts = [f"{name} {nanoseconds(chosen[name])} ({chosen[name] / total:.0%})" for name in PARTS if chosen[name]]
    console.print(f"Critical path: {', '.join(parts) or 'nothing to do'}.", markup=False)


def _candidates(answer: dict[str, Any], *, wide: bool) -> Table:
    """The candidates with their times; if `wide`, what these consist of."""
    predictions = [each["prediction"] for each in answer["candidates"] if each["prediction"] is not None]
    columns = [part for part in PARTS if wide and any(prediction[part] for prediction in predictions)]
    table = tables.plain()
    table.add_column("algorithm", no_wrap=True)
    for name in ("predicted", *columns):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    chosen = _of(answer, answer["algorithm"])
    for candidate in answer["candidates"]:
        name = candidate["algorithm"]
        mine = name == answer["algorithm"]
        text = f"[bold cyan]{name}[/]" if mine else name
        prediction = candidate["prediction"]
        if prediction is None:
            continue
        note = "chosen" if mine else ""
        if not mine and chosen is not None and chosen["total"] and prediction["total"]:
            note = f"× {prediction['total'] / chosen['total']:.3g}"
        parts = [nanoseconds(prediction[part]) if prediction[part] else "" for part in columns]
        table.add_row(text, nanoseconds(prediction["total"]), *parts, note)
    return table


def _programs(answer: dict[str, Any]) -> Table:
    """The candidates with what they send, where nothing says how long that takes. The chosen one comes first."""
    table = tables.plain()
    for name, justify in (("algorithm", "left"), ("between hosts", "right"), ("within", "right"), ("", "left")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    mine = answer["algorithm"]
    for candidate in sorted(answer["candidates"], key=lambda each: each["algorithm"] != mine):
        sent = candidate["prediction"]
        if sent is None:
            continue
        between, length_between = sent["between_messages"], sent["between_bytes"]
        within, length_within = sent["messages"] - between, sent["message_bytes"] - length_between
        name = candidate["algorithm"]
        table.add_row(
            f"[bold cyan]{name}[/]" if name == mine else name,
            f"{between} with {length(length_between)}" if between else "",
            f"{within} with {length(length_within)}" if within else "",
            "chosen" if name == mine else "",
        )
    return table


def _missing(candidate: dict[str, Any], buffers: str, *, several: bool) -> str:
    why = candidate["restriction"]
    if candidate["direct"] and several:
        why = "needs memory that all ranks share"
    elif candidate["direct"] and buffers == "malloc":
        why = "needs allocated buffers"
    return f"{candidate['algorithm']} ({why})"
