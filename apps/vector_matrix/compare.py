"""A fully connected layer on several ranks, beside Open MPI: `make bench-vector-matrix`.

Weights are split by columns; each rank multiplies its block with its part of the input (Eigen), and a reduce sums the
partial products on rank 0 (ACCL+, OSDI '24, 6.2 and figure 17). Sizes come from the caches of this machine, so that for
some a rank's block fits where the whole matrix does not. Every system runs in every round, one after the other; a
figure is the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

Line = dict[str, Any]


def cache_bytes(level: int) -> int:
    """Of this level, what one core has; 0 if the system does not say."""
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "level").read_text().strip() == str(level) and (
            index / "type"
        ).read_text().strip() != "Instruction":
            text = (index / "size").read_text().strip()
            return int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]]
    return 0


def layers(level2: int, level3: int, ranks: int) -> list[tuple[str, int]]:
    """What each size shows, and the edge of its square matrix."""
    sizes = [
        ("a quarter of L2", level2 // 4),
        ("half of L2", level2 // 2),
        ("a part fits L2, the whole does not", int(level2 * (1 + ranks) / 2 * 0.8)),
        ("4 x L2", level2 * 4),
        ("half of L3", level3 // 2),
        ("2 x L3", level3 * 2),
    ]
    step = 16 * ranks
    return [(what, max(step, round(math.sqrt(size / 4) / step) * step)) for what, size in sizes if size]


def build(folder: Path) -> dict[str, Path]:
    """The programs, by system; Open MPI's only where its compiler is."""
    flags = ["-std=c++20", "-O3", "-march=native", "-I/usr/include/eigen3"]
    library = Path(os.environ.get("UNISONO_BUILD", ROOT / "build/release")).resolve()
    linked = [f"-L{library}", "-lunisono", f"-Wl,-rpath,{library}"]
    commands = {
        "unisono": ["g++", *flags, f"-I{ROOT / 'driver/include'}", str(HERE / "unisono.cpp"), *linked],
    }
    if shutil.which("mpicxx.openmpi"):
        commands["openmpi"] = ["mpicxx.openmpi", *flags, str(HERE / "mpi.cpp")]
    for system, command in commands.items():
        subprocess.run([*command, "-o", str(folder / system)], check=True)
    return {system: folder / system for system in commands}


def launch(system: str, program: Path, ranks: int, edges: list[int]) -> list[Line]:
    """One run of a program over all sizes. Raises CalledProcessError if a result is wrong."""
    starter = {
        "unisono": [sys.executable, "-m", "unisono", "run", "-n", str(ranks), "--timeout", "300"],
        "openmpi": ["mpirun.openmpi", "-n", str(ranks), "--bind-to", "core", "--oversubscribe", "--timeout", "300"]
        + (["--allow-run-as-root"] if os.geteuid() == 0 else []),
    }[system]
    done = subprocess.run(
        [*starter, str(program), *(f"{edge}x{edge}" for edge in edges)], stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def processor() -> str:
    """As the system names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def main() -> int:
    """Builds, measures, prints a table; the exit status is 1 if a result was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("-n", type=int, default=len(os.sched_getaffinity(0)), metavar="RANKS", help="default: cores")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="a JSON line for each size and system")
    options = parser.parse_args()
    ranks: int = options.n
    if ranks < 2 or options.rounds < 1:
        parser.error("at least two ranks, and one round")
    level2, level3 = cache_bytes(2), cache_bytes(3)
    sizes = layers(level2, level3, ranks)
    edges = [edge for _, edge in sizes]
    with tempfile.TemporaryDirectory() as scratch:
        programs = build(Path(scratch))
        runs = [("unisono", 1), *((system, ranks) for system in programs)]
        rounds: dict[tuple[str, int], list[list[Line]]] = {run: [] for run in runs}
        for number in range(options.rounds):
            order = runs if number % 2 == 0 else runs[::-1]
            for run in order:
                if sys.stderr.isatty():
                    print(f"\rround {number + 1} of {options.rounds}: {run[0]}  ", end="", file=sys.stderr)
                rounds[run].append(launch(run[0], programs[run[0]], run[1], edges))
        if sys.stderr.isatty():
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr)

    def median(run: tuple[str, int], size: int, field: str) -> float:
        return float(statistics.median(lines[size][field] for lines in rounds[run]))

    print(f"y = W x, fp32, {ranks} ranks of {processor()}; L2 {level2 >> 10} KiB, L3 {level3 >> 20} MiB")
    print("       W        bytes      1 rank     unisono     openmpi  ratio  speed-up")
    lines: list[Line] = []
    for size, (what, edge) in enumerate(sizes):
        alone = median(("unisono", 1), size, "total_us")
        ours = median(("unisono", ranks), size, "total_us")
        theirs = median(("openmpi", ranks), size, "total_us") if "openmpi" in programs else None
        ratio = ours / theirs if theirs else None
        times = [f"{time:8.1f} µs" if time else f"{'-':>11}" for time in (alone, ours, theirs)]
        print(
            f"{edge:>6}²  {edge * edge * 4:>11} {' '.join(times)}  {f'{ratio:.2f}' if ratio else '-':>5}  "
            f"{alone / ours:7.2f}x  {what}{', super-linear' if alone / ours > ranks else ''}"
        )
        for run in runs:
            lines.append(
                {
                    "system": run[0],
                    "op": "vector_matrix",
                    "network": "shm",
                    "ranks": run[1],
                    "bytes": edge * edge * 4,
                    "buffers": "ordinary",
                    "product_us": median(run, size, "product_us"),
                    "total_us": median(run, size, "total_us"),
                    "speed_up": alone / median(run, size, "total_us"),
                    "ratio": ratio if run == ("unisono", ranks) else None,
                    "limit_ratio": median(run, size, "total_us") / median(run, size, "product_us"),
                    "processor": processor(),
                    "verified": all(of_round[size]["verified"] for of_round in rounds[run]),
                }
            )
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    right = all(line["verified"] for line in lines)
    print(f"{'✓ every result is' if right else '✗ not every result is'} the one computed in integers.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
