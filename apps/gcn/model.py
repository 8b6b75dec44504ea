"""What a layer's aggregation takes, in cycles of 250 MHz, by stated figures (docs/gcn.md says where each is from).

Right-hand rows go to neighbours and to the switch, then indexes go there, and sums come back. Each of these phases
takes as long as the resource that is busiest in it: a node's link up, its link down, or the switch. With several strips
of columns the phases of neighbouring ones overlap. Local tiles overlap with all of it, neighbours' with what follows
their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from graphs import Ints
from numpy.typing import NDArray
from tiles import Placement, Tiles, circulant, group

Cycles = NDArray[np.float64]
MHZ = 250
SEGMENT = 8128  #: bytes of payload in a frame
MOST_OUTPUT = 65536  #: bytes that a handler writes for a packet
HANDLER_MEMORY = 16 << 20
LANES = 16
DATAFLOWS = ("output", "weight")
LAYOUTS = ("columns", "indexes")
STRIPS = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 64, 128)  #: that are tried


@dataclass(frozen=True)
class Machine:
    """Rates in bytes a cycle, times in cycles."""

    link: float = 50.0  #: 100 Gb/s
    frame: int = 130  #: preamble to gap 66, the engine's header 64
    step: int = 405  #: a message between two nodes, without its bytes: sender 81, way 206, receiver 118
    message: int = 28  #: between messages that one call sends
    switch: int = 44  #: a switch in hardware, from the last word to the first one of the result
    port: float = 64.0  #: what a pipeline of the switch takes
    units: int = 31  #: vector units of 16 lanes in a pipeline
    pipelines: int = 1  #: in the switch
    memory: int = HANDLER_MEMORY  #: bytes of the switch, for the right-hand matrix or for outputs
    host_bytes: float = 512.0  #: 128 GB/s
    host_flops: float = 12902.0  #: 3.2 TFLOP/s

    def hosts(self, times: float) -> Machine:
        """The same with other hosts."""
        return replace(self, host_bytes=self.host_bytes * times, host_flops=self.host_flops * times)


@dataclass(frozen=True)
class Cost:
    """One layer. Bytes are payload, on the busiest link."""

    bytes: int
    communication: float  #: cycles that the network takes by itself
    total: float  #: with the hosts' products, from the first X W to the last sum
    resource: str = "links"  #: what takes longest in the network
    memory: int = 0  #: bytes in the switch


@dataclass(frozen=True)
class Plan:
    """What goes to the switch, and how."""

    offload: Placement
    dataflow: str = "output"  #: stationary in the switch: outputs' sums, or weights that stream by
    layout: str = "columns"  #: what lanes are
    strips: int = 1  #: the right-hand matrix is cut into as many strips of columns; indexes go once for each


def frames(payload: Ints) -> Ints:
    """Frames of messages."""
    return -(-payload // SEGMENT)


def host_cycles(machine: Machine, entries: Cycles | Ints, columns: int) -> Cycles:
    """Adds a right-hand row for each entry: reads the row and the index; sums stay in caches."""
    busy = np.maximum(entries * (4 * columns + 4) / machine.host_bytes, entries * columns / machine.host_flops)
    return np.asarray(busy, np.float64)


def combine_cycles(machine: Machine, tiles: Tiles, inputs: int, columns: int) -> float:
    """X W of the largest share, X dense."""
    rows = int(tiles.shares.max())
    moved = 4 * (rows * (inputs + columns) + inputs * columns)
    return max(moved / machine.host_bytes, 2 * rows * inputs * columns / machine.host_flops)


def all_gather(machine: Machine, tiles: Tiles, inputs: int, columns: int) -> Cost:
    """Every node gets all rows of all others."""
    blocks = 4 * columns * tiles.shares
    others = blocks.sum() - blocks
    payload = int(others.max())
    wire = payload + machine.frame * int((frames(blocks).sum() - frames(blocks)).max())
    time = machine.step * int(np.ceil(np.log2(tiles.nodes))) + wire / machine.link
    return Cost(payload, time, _after(machine, tiles, inputs, columns, time))


def needed_rows(machine: Machine, tiles: Tiles, inputs: int, columns: int) -> Cost:
    """Every node gets the rows that its entries need."""
    messages = 4 * columns * tiles.needed()
    wire = messages + machine.frame * frames(messages)
    payload = int(max(messages.sum(axis=0).max(), messages.sum(axis=1).max()))
    busiest = float(max(wire.sum(axis=0).max(), wire.sum(axis=1).max()))
    time = machine.step + machine.message * (tiles.nodes - 2) + busiest / machine.link
    return Cost(payload, time, _after(machine, tiles, inputs, columns, time))


def _after(machine: Machine, tiles: Tiles, inputs: int, columns: int, communication: float) -> float:
    """Local tiles while messages are on their way, all others afterwards."""
    local = np.diag(tiles.entries) + tiles.shares
    far = tiles.entries.sum(axis=1) - np.diag(tiles.entries)
    todo = np.maximum(communication, host_cycles(machine, local, columns)) + host_cycles(machine, far, columns)
    return combine_cycles(machine, tiles, inputs, columns) + float(todo.max())


def accumulate_cycles(machine: Machine, entries: int, beats: int, columns: int, layout: str) -> float:
    """What the switch's pipelines take for the indexes of all nodes, 16 in a cycle at most.

    Lanes are columns: a row is a group of units, and groups add different rows side by side. Lanes are indexes: a unit
    is a column, and 16 indexes of one row are a beat, filled or not, for each pass of as many columns as units.
    """
    if layout == "indexes":
        return -(-columns // machine.units) * beats / machine.pipelines
    wide = -(-columns // LANES)
    passes, side_by_side = -(-wide // machine.units), max(1, machine.units // wide)
    return passes * entries / min(machine.port / 4, side_by_side) / machine.pipelines


def switch_memory(tiles: Tiles, plan: Plan, columns: int) -> int:
    """Bytes that the handlers hold: of two strips, for one comes while the one before it is used."""
    width = -(-columns // plan.strips)
    wide = width if plan.layout == "indexes" else -(-width // LANES) * LANES
    rows = tiles.stored(plan.offload) if plan.dataflow == "output" else tiles.results(plan.offload)
    return int(rows.sum()) * 4 * wide * min(2, plan.strips)


def in_switch(machine: Machine, tiles: Tiles, inputs: int, columns: int, plan: Plan) -> Cost:
    """A plan's cost. The time of one that the switch has no memory for is infinite."""
    offload, strips = plan.offload, plan.strips
    entries = np.where(offload, tiles.entries, 0)
    results = tiles.results(offload)
    near = np.where(offload | np.eye(tiles.nodes, dtype=np.bool_), 0, tiles.needed()) * 4 * columns
    framed = near + machine.frame * frames(near)
    slots = (_slots if plan.dataflow == "output" else _weight_slots)(machine, tiles, columns, plan)
    network = slots.first + (strips - 1) * (machine.step + max(slots.middle.values())) + slots.last
    network = network + 2 * machine.step + machine.switch if entries.any() else 0.0
    alone = float(max(framed.sum(axis=0).max(), framed.sum(axis=1).max())) / machine.link
    calls = machine.step + machine.message * (int((near > 0).sum(axis=0).max()) - 1) if near.any() else 0
    # Rows for neighbours go first, and what hosts multiply then overlaps with all that the switch does; or they fill
    # links where these would be idle, and hosts multiply them at the end.
    busiest = max(float((framed.sum(axis=0) + slots.up).max()), float((framed.sum(axis=1) + slots.down).max()))
    ways = [(calls + alone, calls + alone + network), (both := max(network, calls + busiest / machine.link), both)]
    local = host_cycles(machine, np.diag(tiles.entries) + tiles.shares, columns)
    far = tiles.entries.sum(axis=1) - np.diag(tiles.entries) - entries.sum(axis=1)
    adding = results * 12 * columns / machine.host_bytes
    least, communication = min(
        (float((np.maximum(end, np.maximum(begun, local) + host_cycles(machine, far, columns)) + adding).max()), end)
        for begun, end in ways
    )
    held = switch_memory(tiles, plan, columns)
    lacks = float("inf") if held > machine.memory else 0.0
    axis = 1 if plan.dataflow == "output" else 0
    up = near.sum(axis=0) + 4 * columns * tiles.stored(offload) + 4 * strips * entries.sum(axis=axis)
    payload = max(int(up.max()), int((near.sum(axis=1) + 4 * columns * results).max()))
    whole = combine_cycles(machine, tiles, inputs, columns) + least
    resource = max(slots.middle, key=lambda name: slots.middle[name]) if entries.any() else "links"
    return Cost(payload, communication + lacks, whole + lacks, resource, held)


@dataclass(frozen=True)
class Slots:
    """What the way through the switch takes: cycles of the first slot, of each resource in one between, of the last;
    and bytes on each node's links, all slots together.
    """

    first: float
    middle: dict[str, float]
    last: float
    up: Ints
    down: Ints


def _slots(machine: Machine, tiles: Tiles, columns: int, plan: Plan) -> Slots:
    """Output stationary: a strip's rows go up; then its indexes and the next one's rows, while results come down."""
    width = -(-columns // plan.strips)
    entries = np.where(plan.offload, tiles.entries, 0)
    stored, results = tiles.stored(plan.offload), tiles.results(plan.offload)
    rows = 4 * width * stored + -(-stored // ((SEGMENT - 4) // (4 * width))) * (machine.frame + 4)
    indexes = 4 * entries.sum(axis=1) + (4 * results if plan.layout == "indexes" else 0)
    packets = np.maximum(frames(indexes), -(-results // (MOST_OUTPUT // (4 * width))))
    indexes = indexes + machine.frame * packets
    down = 4 * width * results
    down = down + machine.frame * (frames(down) + packets)
    adds = accumulate_cycles(machine, int(entries.sum()), _beats(tiles, plan), width, plan.layout)
    link = machine.link
    slot = {"up": float((rows + indexes).max()) / link, "down": float(down.max()) / link, "switch": adds}
    last = max(float(indexes.max()) / link, slot["down"], adds)
    first = max(float(rows.max()) / link, float(4 * width * stored.sum()) / (64 * machine.units))
    return Slots(first, slot, last, plan.strips * (rows + indexes), plan.strips * down)


def _weight_slots(machine: Machine, tiles: Tiles, columns: int, plan: Plan) -> Slots:
    """Weight stationary: a strip's rows go up with their indexes while the results of the one before come down."""
    width = -(-columns // plan.strips)
    entries = np.where(plan.offload, tiles.entries, 0)
    stored, results = tiles.stored(plan.offload), tiles.results(plan.offload)
    streamed = (4 * width + 4) * stored + 4 * entries.sum(axis=0)
    packets = -(-results // (MOST_OUTPUT // (4 * width)))
    up = streamed + machine.frame * frames(streamed) + (8 + machine.frame) * packets
    down = 4 * width * results
    down = down + machine.frame * (frames(down) + packets)
    adds = accumulate_cycles(machine, int(entries.sum()), _beats(tiles, plan), width, plan.layout)
    slot = {"up": float(up.max()) / machine.link, "down": float(down.max()) / machine.link, "switch": adds}
    return Slots(max(slot["up"], adds), slot, slot["down"], plan.strips * up, plan.strips * down)


def _beats(tiles: Tiles, plan: Plan) -> int:
    """Beats of 16 indexes; exact where all that is not local is offloaded, else in proportion to the entries."""
    if plan.layout != "indexes":
        return 0
    all_far = tiles.entries.sum() - np.trace(tiles.entries)
    beats = (tiles.row_beats if plan.dataflow == "output" else tiles.column_beats).sum()
    return int(-(-beats * int(tiles.entries[plan.offload].sum()) // max(1, int(all_far))))


def choose(machine: Machine, tiles: Tiles, inputs: int, columns: int,
           dataflow: str = "output", by: str = "total") -> tuple[Plan, Cost]:  # fmt: skip
    """The plan of the least cost: all tiles to the switch, none, nodes of a group or the nearest ones as neighbours, in
    one strip or several; and from the best of these single columns and tiles as long as that makes it quicker. `by`
    names what is to be least, "total" or "communication".
    """
    p = tiles.nodes

    def look(plan: Plan) -> tuple[float, float, Cost]:
        cost = in_switch(machine, tiles, inputs, columns, plan)
        first, second = (cost.total, cost.communication) if by == "total" else (cost.communication, cost.total)
        return first, second, cost

    starts = [circulant(p, near) for near in range(p)] + [group(p, size) for size in range(2, p)]
    pure = Plan(starts[0], dataflow)
    strips = min((s for s in STRIPS if s <= columns), key=lambda s: look(replace(pure, strips=s))[:2])
    best = min((Plan(s, dataflow, "columns", strips) for s in starts), key=lambda plan: look(plan)[:2])
    least = look(best)
    for _ in range(4):
        before = least[:2]
        changes = [_flipped(best.offload, np.s_[:, j]) for j in range(p)]
        changes += [_flipped(best.offload, np.s_[i, j]) for i in range(p) for j in range(p) if i != j]
        for other in [*(replace(best, strips=s) for s in STRIPS if s <= columns),
                      *(replace(best, offload=change) for change in changes)]:  # fmt: skip
            found = look(other)
            if found[:2] < least[:2]:
                best, least = other, found
        if least[:2] == before:
            break
    return best, least[2]


def _flipped(offload: Placement, which: Any) -> Placement:
    other = offload.copy()
    other[which] = ~other[which]
    np.fill_diagonal(other, False)
    return other
