"""One rank of `engines.Processes`: reads the cases, writes this rank's outcomes."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import unisono

from .engines import run_rank


def main() -> None:
    """Argument: the folder of the cases."""
    folder = Path(sys.argv[1])
    cases = pickle.loads((folder / "cases").read_bytes())
    with unisono.init(timeout=60.0) as context:
        outcomes = run_rank(context.world, cases)
        (folder / f"rank{context.world.rank}").write_bytes(pickle.dumps(outcomes))
        context.world.barrier()


if __name__ == "__main__":
    main()
