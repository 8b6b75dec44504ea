"""One rank of `engines.Processes`: reads the cases, writes this rank's outcomes."""

from __future__ import annotations

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import unisono

from .engines import TIMEOUT, run_rank


def main() -> None:
    """Argument: the folder of the task."""
    folder = Path(sys.argv[1])
    cases, placement, settings, hosts = pickle.loads((folder / "task").read_bytes())
    if hosts > 1:
        os.environ["UNISONO_HOST"] = f"host{int(os.environ['UNISONO_RANK']) % hosts}"
    with unisono.init(**({"timeout": TIMEOUT} | settings)) as context, ThreadPoolExecutor(1) as thread:
        # Blocking calls are one piece only outside the main thread, where nobody looks for signals.
        outcomes = thread.submit(run_rank, context.world, cases, placement).result()
        (folder / f"rank{context.world.rank}").write_bytes(pickle.dumps(outcomes))
        context.world.barrier()


if __name__ == "__main__":
    main()
