"""Cycles of the microcontroller, by collective and algorithm: `python -m tests.rtl.cpu.measure`.

Prints the table of docs/rtl/firmware.md. For each algorithm on 8 ranks: cycles from the item to the first move, and
cycles per move after it,

- cold: the first call after the microcontroller was started,
- new: a call with arguments that were not seen before, after others of the same algorithm,
- warm: a call like the ones before it.
"""

from __future__ import annotations

import sys

from unisono._spec import Collective

from . import model
from .cases import NO_DATA, REDUCING
from .cpu import Call, Communicator, Cpu, Oracle, Run, describe

RANKS = 8


def _per_move(run: Run) -> str:
    cycles = run.move_cycles
    return f"{(cycles[-1] - cycles[0]) / (len(cycles) - 1):.1f}" if len(cycles) > 1 else "-"


def _first(run: Run) -> str:
    return str(run.first) if run.moves else "-"


def measure(cpu: Cpu, call: Call, position: int) -> tuple[Run, Run, Run]:
    """The call cold, on another communicator, and there again."""
    entry = Communicator(call.rank, call.size, call.group_size)
    for index in (0, 1):
        cpu.communicator(index, entry)
    cpu.idle(10_000)
    cold = cpu.call(describe(call, position + 1))
    cpu.call(describe(call, position + 1))
    # Of another communicator, for not all have a count.
    new, _, warm = (cpu.call(describe(call, position + 1, 1)) for _ in range(3))
    return cold, new, warm


def rows(ranks: int) -> list[str]:
    """Lines of the table."""
    library = model.model()
    oracle = Oracle(model.oracle())
    words = model.image()
    lines = []
    for position, (collective, name, direct) in enumerate(oracle.algorithms):
        if direct:
            continue
        func = 1 if collective in REDUCING else 0
        busiest: tuple[int, Call] | None = None
        for rank in range(ranks):
            call = Call(
                collective,
                count=0 if collective in NO_DATA or collective == 18 else 1000,
                size=ranks,
                rank=rank,
                func=func,
                dtype=0 if collective in NO_DATA else 6,
                root=1 if collective in {3, 4, 5, 6} else 0,
                group_size=4 if name in ("two_level", "multi_leader") else 0,
            )
            if not oracle.admits(call, position):
                continue
            moves = len(oracle.record(call, position).moves)
            if busiest is None or moves > busiest[0]:
                busiest = (moves, call)
        if busiest is None:
            continue
        call = busiest[1]
        cpu = Cpu(library, words)
        cold, new, warm = measure(cpu, call, position)
        cpu.close()
        assert len(warm.moves) == busiest[0]
        named = Collective(collective).name.lower()
        lines.append(
            f"| {named} | {name} | {call.rank} | {len(warm.moves)} | {len(warm.pool)} | {_first(cold)} | "
            f"{_first(new)} | {_first(warm)} | {_per_move(warm)} | {warm.end_cycle - warm.taken[0]} |"
        )
    return lines


def main() -> int:
    """Entry point."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else RANKS
    print("| collective | algorithm | rank | moves | list words | cold | new | warm | per move | whole, warm |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for line in rows(ranks):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
