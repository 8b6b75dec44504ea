"""Two layers of a graph convolutional network, summed in a switch on the way: `make gcn` (docs/gcn.md).

python apps/gcn/run.py                          # all graphs: the model's times, and ranks whose bits are compared
python apps/gcn/run.py --graphs ppi digits      # these
python apps/gcn/run.py --nodes 24 --no-ranks    # the model alone

The status is 1 if one bit of one result differs from the reference.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import graphs
import job
import learn
import numpy as np
import study
from model import MHZ, Machine
from rich import box
from rich.console import Console
from rich.table import Table
from study import Both, Line
from threadpoolctl import threadpool_limits
from tiles import MOST_NODES, Tiles, count, tiles_of

LARGE = 1_000_000  #: edges; ranks take a scaled graph of those that have more
SCALE = 256  #: of those
HEADS = ("", "busiest link", "network", "× all-gather", "× needed", "of bytes", "whole", "×", "in switch")
TARGET = 0.7  #: of what bytes allow over an all-gather


def tiles_for(name: str, options: argparse.Namespace) -> Tiles:
    """Counts of a graph at the size that the model looks at."""
    if name == "digits":
        return tiles_of(graphs.digits()[0], options.nodes)
    sizes = graphs.TABLE[name].scaled(options.scale)
    return count(sizes, graphs.edges(sizes, options.seed), options.nodes)


def table_of(title: str, columns: Sequence[str]) -> Table:
    """As all applications have them."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=number == 0)
    return table


def print_systems(console: Console, title: str, found: list[Both]) -> None:
    """One graph: each system beside both baselines."""
    table = table_of(title, HEADS)
    gather, rows, most = found[0], found[1], study.limit(found)
    for one in found:
        if not np.isfinite(one.total):
            table.add_row(one.system, *["–"] * 6, "", study.mega(one.memory))
            continue
        ratio = gather.communication / one.communication
        table.add_row(
            one.system, study.mega(one.bytes), f"{one.communication / MHZ:,.1f} µs", f"{ratio:.2f}",
            f"{rows.communication / one.communication:.2f}", f"{ratio / most:.2f}", f"{one.total / MHZ:,.1f} µs",
            f"{gather.total / one.total:.2f}", study.mega(one.memory) if one.memory else "",
        )  # fmt: skip
    console.print(table)
    for one in found:
        if one.system == "output, chosen" and one.plans:
            said = [
                f"layer {layer + 1}: {int(plan.offload.sum())} of {plan.offload.size - len(plan.offload)} tiles to the "
                f"switch, {plan.strips} strip{'s' * (plan.strips > 1)}"
                for layer, plan in enumerate(one.plans)
            ]
            console.print("  chosen: " + "; ".join(said))


def hosts_line(machine: Machine, tiles: Tiles) -> list[float]:
    """The whole inference over the all-gather's, for hosts of each speed."""
    found = []
    for times in study.HOSTS:
        other = machine.hosts(times)
        found.append(study.baselines(other, tiles)[0].total / study.chosen(other, tiles, "output").total)
    return found


def ranks(console: Console, name: str, options: argparse.Namespace, chosen: Both) -> Line:
    """Ranks and the switch's machine compute; returns what lines say of it, the digits' accuracy included."""
    begin, labels = time.perf_counter(), None
    if name == "digits":
        graph, features, labels = graphs.digits()
        with threadpool_limits(1):  # its matrices are small
            weights = learn.train(graph, features, labels, options.seed)
    else:
        sizes = graphs.TABLE[name].scaled(options.scale)
        if sizes.edges > LARGE:
            sizes = graphs.TABLE[name].scaled(options.scale * SCALE)
        graph = graphs.generate(sizes, options.seed)
        features, weights = graphs.features(sizes, options.seed), graphs.weights(sizes, options.seed)
    ways = job.plans_to_try(options.nodes, chosen.plans)
    outcomes = job.run(graph, features, weights, options.nodes, ways)
    said = f"{graph.sizes.vertices} vertices, {graph.sizes.edges} edges"
    console.print(
        f"  [green]✓[/green] {options.nodes} ranks and a switch, {said}: {len(outcomes)} ways through both layers, "
        f"bits as in the reference ({time.perf_counter() - begin:.0f} s)"
    )
    line: Line = {"verified": True, "verified_vertices": graph.sizes.vertices}
    if labels is None:
        return line
    found = [learn.accuracy(one.logits, labels, options.seed) for one in outcomes]
    console.print(f"  {min(found):.2%} of the digits recognised whose labels training has not seen, by each way alike")
    return line | {"accuracy": min(found)}


def one_graph(console: Console, name: str, options: argparse.Namespace, network: Table, whole: Table) -> list[Line]:
    """All about a graph; a row of each table."""
    tiles = tiles_for(name, options)
    machine = Machine(memory=int(options.memory * (1 << 20)))
    note = study.too_large(name, tiles, machine)
    own = study.systems(machine, tiles)
    if note:
        console.print(f"[yellow]{note}[/yellow]", soft_wrap=True)
    wide = replace(machine, memory=max(machine.memory, study.CARD)) if note else machine
    found = study.systems(wide, tiles) if note else own
    where = f", {study.mega(wide.memory)} in the switch" if note else ""
    sizes = tiles.sizes
    print_systems(console, f"{name}: {sizes.vertices:,} vertices, {sizes.edges:,} edges{where}", found)
    ports = replace(wide, pipelines=tiles.nodes)
    at_ports = study.systems(ports, tiles)
    seen: Line = ranks(console, name, options, found[-2]) if options.ranks else {"verified": None}
    lines = study.as_lines(name, tiles, wide, found) + study.as_lines(name, tiles, ports, at_ports)
    if note:
        lines += study.as_lines(name, tiles, machine, own)
    by_hosts = hosts_line(wide, tiles)
    for line in lines:
        if (line["op"], line["system"], line["pipelines"]) == ("gcn", "switch: output, chosen", 1) and line["fits"]:
            line["ratio_by_hosts"] = dict(zip(map(str, study.HOSTS), by_hosts, strict=True))
        line.update(seen)
    cells = [f"{study.limit(found):.2f}"]
    for of in (found, at_ports):
        best = min((one for one in of[2:] if np.isfinite(one.total)), key=lambda one: one.communication)
        ratio = of[0].communication / best.communication
        cells += [f"{ratio:.2f}", f"{ratio / study.limit(of):.2f}", f"{of[1].communication / best.communication:.2f}"]
    network.add_row(name, *cells)
    whole.add_row(name, *(f"{ratio:.2f}" for ratio in by_hosts))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="A graph convolutional network, summed in a switch.")
    parser.add_argument("--graphs", nargs="+", choices=[*graphs.TABLE, "digits"], default=[*graphs.TABLE, "digits"])
    parser.add_argument("--nodes", type=int, default=8, help=f"2 to {MOST_NODES} (default 8)")
    parser.add_argument("--scale", type=int, default=1, help="one vertex in so many of generated graphs (default 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--memory", type=float, default=16, metavar="MB", help="of the switch (default 16: a handler's)"
    )
    parser.add_argument("--no-ranks", dest="ranks", action="store_false", help="the model alone")
    parser.add_argument("--json", type=Path, help="writes a JSON line for each figure")
    options = parser.parse_args()
    if not 2 <= options.nodes <= MOST_NODES:
        parser.error(f"--nodes {options.nodes}: give 2 to {MOST_NODES}")
    vertices = [sizes.vertices for name, sizes in graphs.TABLE.items() if name in options.graphs]
    most = min(vertices, default=graphs.BLOCKS) // graphs.BLOCKS
    if not 1 <= options.scale <= most:
        parser.error(f"--scale {options.scale}: give 1 to {most}, which leaves {graphs.BLOCKS} vertices of each graph")
    if not 0 < options.memory < math.inf:
        parser.error(f"--memory {options.memory:g}: give megabytes above 0")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: give 0 or more")
    if options.json:
        try:  # before the work, not behind it
            options.json.write_text("")
        except OSError as failure:
            parser.error(f"--json {options.json}: {failure.strerror}")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 110  # a file has room for whole numbers
    network = table_of(
        "The network, times as fast as by an all-gather: the best plan",
        ("", "bytes allow", "1 pipeline", "of bytes", "× needed", f"{options.nodes} pipelines", "of bytes", "× needed"),
    )
    whole = table_of(
        "The whole inference, times as fast as by an all-gather: hosts of ¼ to 4 times the speed, one pipeline",
        ("", "¼", "½", "1", "2", "4"),
    )
    lines: list[Line] = []
    for name in options.graphs:
        lines += one_graph(console, name, options, network, whole)
    console.print(network)
    console.print(whole)
    console.print(f"Target: {TARGET} of what bytes allow. All times are a model's (docs/gcn.md), all bits are real.")
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
