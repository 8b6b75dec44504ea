"""Where a function's blocks lead: their order, and loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ir import VOID, Block, Code, Inst
from .refusal import Refusal


@dataclass(slots=True)
class Loop:
    """A natural loop; `rounds` is how often it goes back to its head at most."""

    head: str
    latches: list[str] = field(default_factory=list)
    blocks: set[str] = field(default_factory=set)
    rounds: int = 0


@dataclass(slots=True)
class Flow:
    """What is known of a function's blocks: all in an order in which only loops go back."""

    code: Code
    order: list[str]
    successors: dict[str, list[str]]
    predecessors: dict[str, list[str]]
    loops: dict[str, Loop]
    dominators: dict[str, str]  #: the nearest one of each block, of the first block itself


def definitions(code: Code) -> tuple[dict[str, Inst], dict[str, str]]:
    """By name: the instruction that makes a number, and the block where it stands."""
    made = [(inst.name, inst, name) for name, block in code.blocks.items() for inst in block.insts if inst.name]
    return {name: inst for name, inst, _ in made}, {name: block for name, _, block in made}


def split_edges(code: Code) -> None:
    """Puts a block into each edge from a block with several successors to one with several predecessors: copies for
    the latter's phis have a place then.
    """
    into: dict[str, int] = {}
    for block in code.blocks.values():
        for name in block.insts[-1].blocks:
            into[name] = into.get(name, 0) + 1
    for block in list(code.blocks.values()):
        last = block.insts[-1]
        if len(last.blocks) < 2:
            continue
        made: dict[str, str] = {}
        for i, name in enumerate(last.blocks):
            target = code.blocks[name]
            if into[name] < 2 or target.insts[0].op != "phi":
                continue
            if name in made:  # two ways of a switch to the same block
                last.blocks[i] = made[name]
                continue
            between = made[name] = f"%{block.name}>{name}"
            last.blocks[i] = between
            code.blocks[between] = Block(between, [Inst("br", VOID, blocks=[name], line=last.line)])
            for phi in target.insts:
                if phi.op != "phi":
                    break
                keep = [(v, b) for v, b in zip(phi.args, phi.blocks, strict=True) if b != block.name]
                value = next(v for v, b in zip(phi.args, phi.blocks, strict=True) if b == block.name)
                phi.args = [v for v, _ in keep] + [value]
                phi.blocks = [b for _, b in keep] + [between]


def find_flow(code: Code) -> Flow:
    """Order and loops; Refusal if the blocks go round otherwise than in loops with one head."""
    entry = next(iter(code.blocks))
    successors = {name: list(dict.fromkeys(b.insts[-1].blocks)) for name, b in code.blocks.items()}
    order = _postorder(entry, successors, {})
    order.reverse()
    predecessors: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for target in successors[name]:
            predecessors[target].append(name)
    dominators = _dominators(order, predecessors)
    place = {name: i for i, name in enumerate(order)}
    loops: dict[str, Loop] = {}
    for name in order:
        for target in successors[name]:
            if place[target] > place[name]:
                continue
            if not dominates(dominators, target, name):
                raise Refusal("a loop that is entered at two places", code.blocks[name].insts[-1].line)
            loop = loops.setdefault(target, Loop(target, blocks={target}))
            loop.latches.append(name)
            todo = [name]
            while todo:
                block = todo.pop()
                if block not in loop.blocks:
                    loop.blocks.add(block)
                    todo += predecessors[block]
    # Again, so that what is behind a loop stands behind all of it.
    order = _postorder(entry, successors, loops)
    order.reverse()
    return Flow(code, order, successors, predecessors, loops, dominators)


def dominates(dominators: dict[str, str], above: str, below: str) -> bool:
    """Whether all ways to a block lead through another one, or are it."""
    while below != above and dominators[below] != below:
        below = dominators[below]
    return below == above


def _postorder(entry: str, successors: dict[str, list[str]], loops: dict[str, Loop]) -> list[str]:
    """Blocks after all that they lead to; ways out of loops are gone first."""
    seen = {entry}
    result: list[str] = []
    depth: dict[str, int] = {}
    for loop in loops.values():
        for block in loop.blocks:
            depth[block] = depth.get(block, 0) + 1
    stack = [(entry, iter(sorted(successors[entry], key=lambda n: depth.get(n, 0))))]
    while stack:
        name, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(sorted(successors[target], key=lambda n: depth.get(n, 0)))))
                break
        else:
            result.append(name)
            stack.pop()
    return result


def _dominators(order: list[str], predecessors: dict[str, list[str]]) -> dict[str, str]:
    """The nearest dominator of each block (Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001)."""
    place = {name: i for i, name in enumerate(order)}
    nearest: dict[str, str] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for name in order[1:]:
            new: str | None = None
            for other in predecessors[name]:
                if other not in nearest:
                    continue
                if new is None:
                    new = other
                    continue
                a, b = other, new
                while a != b:
                    while place[a] > place[b]:
                        a = nearest[a]
                    while place[b] > place[a]:
                        b = nearest[b]
                new = a
            if new is not None and nearest.get(name) != new:
                nearest[name] = new
                changed = True
    return nearest
