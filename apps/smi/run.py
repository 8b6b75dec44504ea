"""The applications of the SMI paper: kernels and host are compiled, run, and compared with NumPy.

python apps/smi/run.py gesummv --ranks 2
python apps/smi/run.py stencil --ranks 8 --topology bus
python apps/smi/run.py kmeans --ranks 8 --platform rtl
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
Array = npt.NDArray[np.float32]
#: How a stencil's plane is cut: rows of ranks, and ranks of a row.
GRIDS = {"torus": {1: (1, 1), 4: (2, 2), 8: (2, 4)}, "bus": {1: (1, 1), 4: (1, 4), 8: (1, 8)}}
DIMS, CLUSTERS = 64, 8


def unisono(*words: object) -> None:
    """Runs the command; ends with its sentence if it fails."""
    done = subprocess.run([sys.executable, "-m", "unisono", *map(str, words)], check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)


def topology(folder: Path, shape: str, ranks: int, programs: list[str]) -> Path:
    """A topology file; the paper's torus of 2 by N, or a bus."""
    path = folder / "topology.json"
    if ranks == 1:
        path.write_text(json.dumps({"fpgas": {"node-0:board0": programs[0]}, "connections": {}}))
        return path
    sides = ["--bus", ranks] if shape == "bus" or ranks == 2 or ranks % 2 else ["--torus", f"2x{ranks // 2}"]
    named = [word for program in programs for word in ("--program", program)]
    unisono("route", *sides, *named, "-o", path)
    return path


def build(folder: Path, host: str, programs: list[str], shape: str, ranks: int, macros: Sequence[str] = ()) -> Path:
    """Checks and compiles kernels and host, and makes routes for the topology. Returns the host's program."""
    defined = [word for macro in macros for word in ("-D", macro)]
    folder.mkdir(parents=True, exist_ok=True)
    sources = [HERE / f"{program}.cl" for program in programs]
    network = topology(folder, shape, ranks, programs)
    unisono("kernel", "check", *defined, *sources)
    unisono("kernel", "generate", *defined, *sources, "--topology", network, "-o", folder)
    described = [word for program in programs for word in ("--program", folder / f"{program}.json")]
    if ranks > 1:
        unisono("route", network, *described, "-o", folder / "routes")
    for program, source in zip(programs, sources, strict=True):
        unisono("kernel", "build", *defined, source, "-o", folder / f"{program}.so")
    unisono("kernel", "host", *defined, HERE / f"{host}_host.cpp", "-I", folder, "-o", folder / host)
    return folder / host


def run(options: argparse.Namespace, program: Path, *words: object) -> str:
    """Runs a host on all ranks. What it took: seconds, with starting it, or cycles of the simulated clock."""
    begin = time.perf_counter()
    if options.platform == "native":
        unisono("run", "-n", options.ranks, program, *words)
        return f"{time.perf_counter() - begin:.2f} s"
    folder = program.parent
    on = ["--platform", "rtl", "--cables", folder / "topology.json", "--cycles", folder / "cycles.json"]
    unisono("run", "-n", options.ranks, *on, program, *words)
    cycles = json.loads((folder / "cycles.json").read_text())["cycles"]
    return f"{cycles} cycles"


def gesummv(options: argparse.Namespace, folder: Path, random: np.random.Generator) -> str:
    """GESUMMV, 1.5 A x - 0.25 B x. Small whole numbers: sums are exact in whatever order."""
    n = options.size or 256
    if options.ranks not in (1, 2) or n % 16:
        raise SystemExit("GESUMMV runs on 1 or 2 ranks, and its size is a multiple of 16")
    programs = ["gesummv"] if options.ranks == 1 else ["gesummv_rank0", "gesummv_rank1"]
    # On one rank both matrices share its memory.
    program = build(folder, "gesummv", programs, options.topology, options.ranks, [f"MATRICES={3 - options.ranks}"])
    a, b, x = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((n, n), (n, n), n))
    for name, values in (("a", a), ("b", b), ("x", x)):
        values.tofile(folder / f"{name}.bin")
    took = run(options, program, folder, n)
    result = np.fromfile(folder / "y.bin", np.float32)
    expected = np.float32(1.5) * (a @ x) + np.float32(-0.25) * (b @ x)
    compare("y", result, expected)
    return f"gesummv: {n} x {n} on {options.ranks} ranks, {took}: equal to NumPy's, bit for bit"


def step(plane: Array) -> Array:
    """One step of the stencil, with additions in the kernels' order."""
    after = plane.copy()
    around = plane[:-2, 1:-1] + plane[1:-1, :-2] + plane[1:-1, 2:] + plane[2:, 1:-1]
    after[1:-1, 1:-1] = np.float32(0.25) * around
    return after


def stencil(options: argparse.Namespace, folder: Path, random: np.random.Generator) -> str:
    """Means of four neighbours."""
    n = options.size or 512
    if options.ranks not in GRIDS[options.topology]:
        raise SystemExit("the stencil runs on 1, 4 or 8 ranks")
    px, py = GRIDS[options.topology][options.ranks]
    program = build(folder, "stencil", ["stencil"], options.topology, options.ranks, [f"B={options.banks}"])
    plane = random.random((n, n), np.float32)
    plane.tofile(folder / "plane.bin")
    took = run(options, program, folder, n, n, options.rounds, px, py)
    for _ in range(options.rounds):
        plane = step(plane)
    rows, columns = n // px, n // py
    for rank in range(options.ranks):
        x, y = divmod(rank, py)
        tile = np.fromfile(folder / f"tile-{rank}.bin", np.float32).reshape(rows, columns)
        compare(f"the tile of rank {rank}", tile, plane[x * rows : (x + 1) * rows, y * columns : (y + 1) * columns])
    return (
        f"stencil: {n} x {n}, {options.rounds} steps on {px} x {py} ranks, {options.topology}, {took}: "
        "equal to NumPy's, bit for bit"
    )


def kmeans(options: argparse.Namespace, folder: Path, random: np.random.Generator) -> str:
    """Points about eight centres."""
    count = options.size or 4096
    if not 1 <= options.ranks <= 8 or count < CLUSTERS * options.ranks:
        raise SystemExit("k-means runs on 1 to 8 ranks, each with some points")
    program = build(folder, "kmeans", ["kmeans"], options.topology, options.ranks)
    # So near each other that a few dimensions do not tell them apart, and all do.
    middle = random.standard_normal((CLUSTERS, DIMS), np.float32)
    # The points of a rank are about some of the centres more than about others.
    chosen = np.sort(random.integers(0, CLUSTERS, count))
    points = (middle[chosen] + random.standard_normal((count, DIMS), np.float32)).astype(np.float32)
    centres = (middle + random.standard_normal(middle.shape, np.float32) / 2).astype(np.float32)
    points.tofile(folder / "points.bin")
    centres.tofile(folder / "centres.bin")
    took = run(options, program, folder, count, options.rounds)
    exact, labels = centres.astype(np.float64), np.zeros(count, np.int64)
    for _ in range(options.rounds):
        labels = np.square(points[:, None, :] - exact[None]).sum(axis=2).argmin(axis=1)
        exact = np.stack([points[labels == k].mean(axis=0, dtype=np.float64) for k in range(CLUSTERS)])
    for rank in range(options.ranks):
        first, last = count * rank // options.ranks, count * (rank + 1) // options.ranks
        own = np.fromfile(folder / f"labels-{rank}.bin", np.int32)
        if not np.array_equal(own, labels[first:last]):
            raise SystemExit(f"wrong: labels of rank {rank} differ from NumPy's")
        result = np.fromfile(folder / f"centres-{rank}.bin", np.float32).reshape(CLUSTERS, DIMS)
        if not np.allclose(result, exact, rtol=1e-4, atol=1e-4):
            raise SystemExit(f"wrong: centres of rank {rank} differ from NumPy's by {np.abs(result - exact).max():g}")
    return (
        f"kmeans: {count} points, {options.rounds} rounds on {options.ranks} ranks, {took}: labels equal to "
        "NumPy's, centres to four digits"
    )


def compare(what: str, result: Array, expected: Array) -> None:
    """Ends the program if one element differs."""
    if result.shape != expected.shape or not np.array_equal(result, expected):
        raise SystemExit(f"wrong: {what} differs from NumPy's in {np.count_nonzero(result != expected)} elements")


def main() -> None:
    """Runs one application."""
    parser = argparse.ArgumentParser(description="An application of the SMI paper, compared with NumPy.")
    parser.add_argument("application", choices=("gesummv", "stencil", "kmeans"))
    parser.add_argument("--ranks", type=int, default=None, help="2 for gesummv, 8 for the others, if none are given")
    parser.add_argument("--size", type=int, default=0, help="rows and columns, or points")
    parser.add_argument("--rounds", type=int, default=8, help="steps of the stencil, rounds of k-means (8)")
    parser.add_argument(
        "--platform",
        choices=("native", "rtl"),
        default="native",
        help="rtl: kernels stand at nodes of SMI's transport in hardware, simulated, and cycles are told",
    )
    parser.add_argument("--topology", choices=("torus", "bus"), default="torus")
    parser.add_argument("--banks", type=int, choices=(1, 4), default=4, help="memory banks of the stencil (4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / "build" / "apps-smi")
    options = parser.parse_args()
    options.ranks = options.ranks or (2 if options.application == "gesummv" else 8)
    folder = options.folder / f"{options.application}-{options.ranks}-{options.topology}"
    function = {"gesummv": gesummv, "stencil": stencil, "kmeans": kmeans}[options.application]
    print(function(options, folder, np.random.default_rng(options.seed)))


if __name__ == "__main__":
    main()
