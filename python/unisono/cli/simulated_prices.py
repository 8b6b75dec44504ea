"""What collectives take in a simulated network: `unisono explain --network`, and `unisono calibrate --switch`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._spec import Collective
from ..errors import InvalidArgumentError
from . import job_prices
from . import table as tables
from .price_program import said

SECONDS = 60  #: for the simulation of all algorithms; what is left by then has closed forms only
LEAST_RANKS, MOST_RANKS = 2, 128
GRACE = 30  #: more, until the program is ended
#: Parameters of closed forms, with the letter that the papers have for them.
PARAMETERS = {
    "call": ("o", "a call without a move, to its answer"),
    "send": ("o", "a sender: from the call to the frame on its link"),
    "send_after": ("o", "the same, of a move that waited for another"),
    "receive": ("o", "a receiver: from the frame to the move's end"),
    "receive_late": ("o", "of a message that stands in a buffer"),
    "receive_list": ("o", "of the last of several that a move takes"),
    "forward": ("o", "from a frame to the one that passes it on"),
    "fold": ("o", "more, for an operand in memory"),
    "gap": ("g", "between messages, at their sender"),
    "gap_receive": ("g", "between messages of several, at a receiver"),
    "gap_receive_row": ("g", "between messages of one, at a receiver"),
    "gap_list": ("g", "between messages that one move sends"),
    "gap_fan_in": ("g", "between messages that one move takes"),
    "gap_granted": ("g", "between granted ones, beside half their way"),
    "gap_program": ("g", "between moves of a program of more than 32"),
    "byte": ("G", "a byte in an engine; links have their own"),
    "grant": ("o", "a grant, beside its way"),
    "alpha": ("α", "a switch: from the last of two operands to their sum"),
    "alpha_child": ("α", "more for each further operand"),
    "gap_switch": ("g", "between messages that a switch passes on"),
    "gap_asked": ("g", "between those a switch is asked for, beside ways"),
}


def ask(*arguments: object, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What the program says. Raises `InvalidArgumentError` with its sentence if it refuses."""
    answer: dict[str, Any] = json.loads(said(*arguments, seconds=SECONDS + GRACE, environment=environment))
    return answer


# --------------------------------------------------------------------------------------------------- explain


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those of `unisono explain`."""
    group = parser.add_argument_group("simulated network (of `unisono run --platform rtl --network FILE`)")
    group.add_argument(
        "--network",
        metavar="FILE",
        help="what the call takes there, by each algorithm: simulated with engines and switches that are their costs, "
        "by LogGP and LoGcN, and at least",
    )
    group.add_argument(
        "--switch",
        choices=("native", "rtl", "off"),
        help="how the switches that FILE names take part: without taking time (native), as in hardware, or not at all",
    )
    group.add_argument(
        "--segment-bytes", type=int, metavar="N", help="longest segments of the engines, as a job's setting (8128)"
    )
    group.add_argument(
        "--parameters", metavar="FILE", help="of LogGP and LoGcN, as `unisono calibrate --switch --file` writes them"
    )
    job_prices.add_option(group)


def explain(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that the command prints. Raises `InvalidArgumentError`."""
    for name, usual in (
        ("hosts", None), ("transport", None), ("tls", False), ("aggregate", None), ("secret_file", None),
        ("cores", None), ("in_place", False), ("streams", False), ("json", None), ("buffers", "malloc"),
    ):  # fmt: skip
        if getattr(options, name) != usual:
            raise InvalidArgumentError(f"--{name.replace('_', '-')} says nothing of a simulated network (--network)")
    if not os.path.isfile(options.network):
        raise InvalidArgumentError(f"--network: there is no file {options.network}")
    collective = Collective[options.operation.upper()]
    ranks = 2 if options.ranks is None else options.ranks
    if not LEAST_RANKS <= ranks <= MOST_RANKS:
        raise InvalidArgumentError(f"--ranks is {ranks}; allowed are {LEAST_RANKS} to {MOST_RANKS} with --network")
    if collective.name.endswith("V"):
        raise InvalidArgumentError(f"{options.operation} has counts by rank, which have no price in simulated networks")
    arguments = [
        "--config", options.network, "-n", ranks, "--op", options.operation, "--seconds", SECONDS,
        "--bytes", options.bytes if collective.data else 0, "--dtype", options.dtype,
    ]  # fmt: skip
    for name, value in (
        ("--switch", options.switch), ("--parameters", options.parameters), ("--algorithms", options.algorithm),
        ("--segment", options.segment_bytes),
    ):  # fmt: skip
        if value not in (None, ""):
            arguments += [name, value]
    try:
        # As a job's ranks have it.
        with contextlib.ExitStack() as stack:
            rules: dict[str, str] = {}
            if job_prices.priced(os.environ, options.prices):
                made = job_prices.rules_by_price(ranks, options.network, options.switch, options.operation)
                rules = stack.enter_context(made)
            answer = ask(*arguments, environment=rules)
    except InvalidArgumentError as failure:
        told = str(failure).removeprefix("model: ")
        for name, option in (("--segment:", "--segment-bytes:"), (options.network, f"--network: {options.network}")):
            if told.startswith(name):
                told = option + told.removeprefix(name)
        raise InvalidArgumentError(told) from None
    call = {"operation": options.operation, "bytes": options.bytes if collective.data else 0, "ranks": ranks}
    given = {"dtype": options.dtype, "network": options.network, "switch": options.switch or "native"}
    return {"call": call | given} | answer


def execute(options: argparse.Namespace) -> int:
    """`unisono explain` with --network."""
    answer = explain(options)
    if options.format == "json":
        print(json.dumps(answer, indent=2))
        return 0
    _print(Console(highlight=False), answer)
    return 0


def _microseconds(cycles: float, answer: dict[str, Any]) -> str:
    us = 1000 * cycles / answer["clock_khz"]
    return f"{us:.3g} µs" if us < 1000 else f"{us / 1000:.3g} ms"


def closed_form(candidate: dict[str, Any]) -> float:
    """Cycles of a candidate by LogGP, or LoGcN."""
    cycles: float = candidate["logcn" if candidate["switched"] else "loggp"]
    return cycles


def _print(console: Console, answer: dict[str, Any]) -> None:
    call = answer["call"]
    data = Collective[call["operation"].upper()].data
    of = f" of {call['bytes']} bytes {call['dtype']}" if data else ""
    priced = [each for each in answer["candidates"] if "refusal" not in each]
    console.print(
        f"[bold]{call['operation']}[/]{of}, {call['ranks']} ranks in {escape(call['network'])}: "
        f"[bold cyan]{answer['choice'] or 'nothing'}[/]",
        soft_wrap=True,
    )
    if answer["choice"]:
        console.print(f"as a call that names no algorithm: {answer['reason']}", style="dim", soft_wrap=True)
    if answer["faults"]:
        console.print(
            f"[yellow]warning[/]: this network has faults ({', '.join(answer['faults'])}), and its transport repeats "
            "nothing: times are of calls that miss no frame",
            soft_wrap=True,
        )
    if priced:
        console.print(_table(answer, priced))
        console.print()
    for each in answer["candidates"]:
        if "missing" in each:
            console.print(f"Not simulated: {each['algorithm']} ({each['missing']}).", style="dim", markup=False)
    if out := [f"{each['algorithm']} ({each['refusal']})" for each in answer["candidates"] if "refusal" in each]:
        console.print(f"Not for this call: {'; '.join(out)}.", style="dim", markup=False)
    for sentence in sentences(answer):
        console.print(sentence, markup=False)
    rtl = answer["call"]["switch"] == "rtl"
    switches = "and switches in RTL as their costs" if rtl else "as their costs; switches take no time"
    console.print(
        f"Simulated with engines {switches}. Closed forms: LogGP, and LoGcN of switches, by "
        "parameters of microbenchmarks (`unisono calibrate --switch`).",
        style="dim",
    )


def sentences(answer: dict[str, Any]) -> list[str]:
    """What there is to say of the bound, of the quickest algorithm and of the choice."""
    said = [f"Bound: {answer['bound']:.0f} cycles, by the busiest link of any algorithm and the longest way."]
    simulated = [each for each in answer["candidates"] if each.get("cycles")]
    if answer["unserved"] and any(each["switched"] for each in simulated):
        said.append(f"No job has the switches: {answer['unserved']}.")
        simulated = [each for each in simulated if not each["switched"]]
    if not simulated:
        return said
    best = simulated[0]
    chosen = next((each for each in simulated if each["algorithm"] == answer["choice"]), None)
    if chosen is not None and chosen["cycles"] > 1.05 * best["cycles"]:
        said.append(
            f"Quickest: {best['algorithm']}; what is chosen takes {chosen['cycles'] / best['cycles']:.3g} times as "
            f'long. A call that names it (algorithm="{best["algorithm"]}") gets it.'
        )
    one = chosen or best
    link = one["busiest"]
    if link["link"]:
        said.append(
            f"{one['algorithm']}: {link['wire_bytes']} bytes over {link['link']}, its busiest link: "
            f"{link['cycles']:.0f} cycles; {link['hops']} link{'s' * (link['hops'] != 1)} on its longest way."
        )
    if one["switched"]:
        terms = one["terms"]
        grant = f" + {terms['grant']:.0f} (a grant)" if terms["grant"] else ""
        said.append(
            f"LoGcN: 2o {terms['o']:.0f} + L({terms['N']}) {terms['L']:.0f} + m/G {terms['m/G']:.0f} + "
            f"c {terms['c']:.0f}{grant} = {one['logcn']:.0f} cycles."
        )
    return said


def _table(answer: dict[str, Any], candidates: list[dict[str, Any]]) -> Table:
    table = tables.plain()
    table.add_column("algorithm", no_wrap=True)
    for name in ("cycles", "time", "LogGP", "LoGcN", "busy"):
        if name != "LoGcN" or any(each["switched"] for each in candidates):
            table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    by_switch = any(each["switched"] for each in candidates)
    chosen = next((each for each in candidates if each["algorithm"] == answer["choice"]), {}).get("cycles")
    for each in candidates:
        mine = each["algorithm"] == answer["choice"]
        cycles = each["cycles"]
        form = f"{closed_form(each):.0f}"
        forms = (["", form] if each["switched"] else [form, ""]) if by_switch else [form]
        note = "chosen" if mine else f"× {cycles / chosen:.3g}" if cycles and chosen else ""
        table.add_row(
            f"[bold cyan]{each['algorithm']}[/]" if mine else each["algorithm"],
            str(cycles) if cycles else "",
            _microseconds(cycles, answer) if cycles else "",
            *forms,
            f"{each['busy']['share']:.0%}" if cycles else "",
            note,
        )
    return table


# ------------------------------------------------------------------------------------------------- calibrate


def calibrate(options: argparse.Namespace, write: Any) -> int:
    """`unisono calibrate` with --switch. `write(path, text)` writes a whole file or nothing."""
    found = ask("--measure", "--switch", options.switch)
    text = json.dumps({"unisono_switch_parameters": 1} | found, indent=1) + "\n"
    if options.file is not None:
        write(options.file, text)
    if options.json:
        print(text, end="")
        return 0
    console = Console(highlight=False)
    table = tables.plain()
    table.add_column("", no_wrap=True)
    table.add_column("measured in the simulated network", no_wrap=True)
    table.add_column("cycles", justify="right", no_wrap=True)
    for name, (letter, words) in PARAMETERS.items():
        table.add_row(letter, words, _in_words(found["parameters"][name]))
    console.print(table)
    console.print(
        "L comes from the network's file. Equal costs give equal parameters, so `unisono explain --network` measures "
        "them itself, in milliseconds; nothing is fitted to a collective.",
        style="dim",
    )
    if options.file is not None:
        console.print(f"Written to {options.file}", markup=False, soft_wrap=True)
    return 0


def _in_words(value: Any) -> str:
    """A parameter; of a message by its length."""
    if not isinstance(value, dict):
        return f"{value:.3g}"
    if value["byte"] == 0 and value["signal"] == value["first"]:
        return f"{value['first']:.3g}"
    by_byte = f" + {value['byte']:.3g} m" if value["byte"] else ""
    return f"{value['first']:.3g}{by_byte}; signal {value['signal']:.3g}"
