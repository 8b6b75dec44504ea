"""What the model says of a graph: each system, through both layers, as lines for tables and JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from model import (
    DATAFLOWS,
    LAYOUTS,
    MHZ,
    Cost,
    Machine,
    Plan,
    all_gather,
    choose,
    in_switch,
    needed_rows,
    switch_memory,
)
from tiles import Tiles, circulant

HOSTS = (0.25, 0.5, 1.0, 2.0, 4.0)  #: how quick hosts are, beside those of the model
CARD = 8 << 30  #: memory of the thesis' card
Line = dict[str, Any]


@dataclass(frozen=True)
class Both:
    """A system's costs of both layers, and its plans where it has some."""

    system: str
    costs: tuple[Cost, Cost]
    plans: tuple[Plan, ...] = ()

    @property
    def bytes(self) -> int:
        """Of payload on the busiest link."""
        return sum(cost.bytes for cost in self.costs)

    @property
    def communication(self) -> float:
        """Cycles in the network."""
        return sum(cost.communication for cost in self.costs)

    @property
    def total(self) -> float:
        """Cycles with the hosts'."""
        return sum(cost.total for cost in self.costs)

    @property
    def memory(self) -> int:
        """Bytes in the switch, of the layer that needs more."""
        return max(cost.memory for cost in self.costs)


def layers(tiles: Tiles) -> list[tuple[int, int]]:
    """Columns of what goes into each layer, and of its right-hand matrix."""
    hidden, classes = tiles.sizes.layers
    return [(tiles.sizes.features, hidden), (hidden, classes)]


def both(system: str, cost: Callable[[int, int], Cost], tiles: Tiles, plans: tuple[Plan, ...] = ()) -> Both:
    """Of a system that is alike in both layers."""
    first, second = (cost(inputs, columns) for inputs, columns in layers(tiles))
    return Both(system, (first, second), plans)


def baselines(machine: Machine, tiles: Tiles) -> list[Both]:
    """Systems without a switch that computes."""
    return [
        both("all-gather", lambda i, c: all_gather(machine, tiles, i, c), tiles),
        both("needed rows", lambda i, c: needed_rows(machine, tiles, i, c), tiles),
    ]


def whole(tiles: Tiles, dataflow: str, layout: str) -> Plan:
    """All tiles that are not local go to the switch."""
    return Plan(circulant(tiles.nodes, 0), dataflow, layout)


def all_offloaded(machine: Machine, tiles: Tiles, dataflow: str, layout: str) -> Both:
    """Nothing is exchanged among nodes."""
    plan = whole(tiles, dataflow, layout)
    return both(f"{dataflow}, {layout}", lambda i, c: in_switch(machine, tiles, i, c, plan), tiles, (plan, plan))


def chosen(machine: Machine, tiles: Tiles, dataflow: str) -> Both:
    """The plan of the least time for each layer."""
    (plan0, cost0), (plan1, cost1) = (choose(machine, tiles, i, c, dataflow) for i, c in layers(tiles))
    return Both(f"{dataflow}, chosen", (cost0, cost1), (plan0, plan1))


def systems(machine: Machine, tiles: Tiles) -> list[Both]:
    """All of them, baselines first."""
    lines = baselines(machine, tiles)
    lines += [all_offloaded(machine, tiles, dataflow, layout) for dataflow in DATAFLOWS for layout in LAYOUTS]
    return lines + [chosen(machine, tiles, dataflow) for dataflow in DATAFLOWS]


def limit(lines: list[Both]) -> float:
    """What bytes allow over the all-gather: the least on a busiest link, of any system."""
    return lines[0].bytes / min(line.bytes for line in lines)


def needs(tiles: Tiles) -> int:
    """Bytes of the switch, if everything is offloaded as it is, in one strip."""
    plan = whole(tiles, "output", "columns")
    return max(switch_memory(tiles, plan, columns) for _, columns in layers(tiles))


def too_large(name: str, tiles: Tiles, machine: Machine) -> str | None:
    """What is said of a graph that the switch has no memory for."""
    lacks = needs(tiles) - machine.memory
    if lacks <= 0:
        return None
    need, have = mega(needs(tiles)), mega(machine.memory)
    return (
        f"{name}: the right-hand matrix needs {need} in the switch, which has {have}: {mega(lacks)} too much; give a "
        "switch more by --memory, or take a smaller graph by --scale"
    )


def mega(count: float) -> str:
    """Bytes for people."""
    return f"{count / (1 << 20):,.1f} MB" if count >= 1 << 20 else f"{count / 1024:,.1f} KB"


def as_lines(name: str, tiles: Tiles, machine: Machine, found: list[Both]) -> list[Line]:
    """For JSON: a line for the network's time and one for the whole inference of each system."""
    most, base, lines = limit(found), found[0], list[Line]()
    for one in found:
        common: Line = {
            "system": one.system if one.system in ("all-gather", "needed rows") else f"switch: {one.system}",
            "graph": name, "vertices": tiles.sizes.vertices, "edges": tiles.sizes.edges, "network": "model",
            "ranks": tiles.nodes, "bytes": one.bytes, "buffers": "ordinary", "pipelines": machine.pipelines,
            "memory_bytes": one.memory, "switch_bytes": machine.memory, "fits": bool(np.isfinite(one.total)),
            "lacks_bytes": max(0, one.memory - machine.memory),
            "offloaded": [int(plan.offload.sum()) for plan in one.plans], "strips": [p.strips for p in one.plans],
            "busiest": [cost.resource for cost in one.costs],
        }  # fmt: skip
        times = (("gcn_communication", one.communication, base.communication), ("gcn", one.total, base.total))
        for op, cycles, beside in times:
            fits = bool(np.isfinite(cycles))
            ratio = beside / cycles if fits else None
            line = common | {"op": op, "cycles": cycles if fits else None, "us": cycles / MHZ if fits else None,
                             "ratio": ratio}  # fmt: skip
            if op == "gcn_communication":
                line["limit_ratio"] = ratio / most if ratio is not None else None
            lines.append(line)
    return lines
