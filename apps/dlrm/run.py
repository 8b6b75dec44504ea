"""Inference of a recommendation model on ten engines, beside a CPU: `make bench-dlrm`.

python apps/dlrm/run.py                       # on a simulated cluster: throughput and latency in cycles
python apps/dlrm/run.py --platform native     # the same kernels in processes: results alone
python apps/dlrm/run.py --small --queries 3   # small layers, for a look

The model is that of ACCL+ (OSDI '24, 6.1, table 3), spread over nodes as in figure 16. Every score is compared with
NumPy's. The status is 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import cpu
import numpy as np
import numpy.typing as npt
from model import KERNEL_MHZ, MHZ, NODES, RANKS, Model, rates
from rich import box
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
SMALL = Model(tables=8, row=16, layers=(128, 64, 16), rows=50)
ACCESS = 23  #: cycles of the kernels' clock that a random access takes: 200 ns, HBM behind its switch
HOP = 200  #: cycles from node to node in the simulated network: two cables of 50, a switch of 100
HOPS = 6  #: vector, four of the reduction, result of FC2
WARM = 8  #: queries before those that count: the first calls of an engine find nothing in its caches
CALM_WARM, CALM = 2, 4  #: the same of queries that come one by one, and how many count

Times = npt.NDArray[np.int64]
Line = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run of the ten ranks. `gap`: cycles between the starts of queries; 0: as fast as they go."""

    model: Model
    platform: str
    queries: int
    gap: int = 0
    seed: int = 1
    fed: bool = False  #: queries come from a processor, rank 10


def unisono(*words: object) -> None:
    """Runs the command; ends with its status if it fails."""
    done = subprocess.run([sys.executable, "-m", "unisono", *map(str, words)], check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)


def run(folder: Path, job: Job) -> list[Times]:
    """Cycles of each rank, of each query two, as dlrm.cpp says. Ends the program if a score is wrong."""
    settings = {"rx_buffer_count": 32}  # with fewer, credits of the reduction come late now and then
    timeout = 0.05 if job.platform == "rtl" else 60
    given = {"queries": job.queries, "access": ACCESS, "gap": job.gap, "timeout": timeout, "settings": settings}
    (folder / "job.json").write_text(json.dumps({"model": asdict(job.model), **given}))
    (folder / "scores.npy").unlink(missing_ok=True)
    network = ["--seed", job.seed] if job.platform == "rtl" else []
    if job.fed and job.platform == "rtl":
        network += ["--native", RANKS]
    unisono(
        "run", "-n", RANKS + job.fed, "--kernels", folder / "dlrm.so", "--platform", job.platform, *network,
        HERE / "host.py", folder,
    )  # fmt: skip
    scores, expected = np.load(folder / "scores.npy"), job.model.scores(job.queries)
    if not np.array_equal(scores, expected):
        wrong = np.flatnonzero(scores != expected)
        raise SystemExit(f"dlrm: {len(wrong)} of {job.queries} scores differ from NumPy's, the first is {wrong[0]}")
    return [np.load(folder / f"times-{rank}.npy") for rank in range(RANKS)]


def interval(times: list[Times]) -> float:
    """Cycles from score to score, when the pipeline is full."""
    ends = times[-1][WARM:, 1]
    return float(ends[-1] - ends[0]) / (len(ends) - 1)


def latencies(times: list[Times]) -> Times:
    """Cycles of each query, from the first node that looks up for it to its score."""
    begin = np.min([times[node][:, 0] for node in range(NODES)], axis=0)
    found: Times = times[-1][:, 1] - begin
    if any(np.any(times[node][1:, 0] - begin[1:] > MHZ) for node in range(NODES)):
        raise SystemExit("dlrm: the nodes did not begin their queries in the same cycles; try another --seed")
    return found


def engine_cycles(kernel_cycles: float) -> float:
    """From one clock to the other."""
    return kernel_cycles * MHZ / KERNEL_MHZ


def least_latency(model: Model) -> float:
    """What the stages take one after the other, and the wires: nothing for engines."""
    return engine_cycles(ACCESS + sum(model.cycles())) + HOPS * HOP


def events(times: list[Times]) -> list[tuple[str, float]]:
    """Where an undisturbed query is when: medians of cycles since it began."""
    counts = [of_rank[CALM_WARM:] for of_rank in times]
    begin = counts[0][:, 0]
    upper, lower = counts[:NODES], counts[NODES : 2 * NODES]
    at = [
        ("the last reducing node has the vector's first word", np.max([one[:, 0] for one in lower], axis=0)),
        ("FC1: the upper half is done", np.max([one[:, 1] for one in upper], axis=0)),
        ("FC1: the lower half has gone to the reduction", np.max([one[:, 1] for one in lower], axis=0)),
        ("FC2 has the first word of the sum", counts[-2][:, 0]),
        ("FC2 is done", counts[-2][:, 1]),
        ("FC3 has the first word", counts[-1][:, 0]),
        ("the score", counts[-1][:, 1]),
    ]
    return [(name, float(np.median(cycles - begin))) for name, cycles in at]


def us(cycles: float) -> float:
    """Of the simulated clock."""
    return cycles / MHZ


def print_engines(console: Console, lines: list[Line], parts: list[tuple[str, float]]) -> None:
    """Two figures beside their bounds, and where the latency goes."""
    table = Table(title="Ten engines, no batch", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(("", "cycles", "bound", "", "× bound")):
        table.add_column(name, justify="left" if number == 0 else "right")
    rate, latency = lines
    table.add_row(
        "a query each", f"{rate['cycles']:.1f}", f"{rate['bound_cycles']:.1f}",
        f"{rate['queries_per_second']:,.0f} /s", f"{1 / rate['limit_ratio']:.3f}",
    )  # fmt: skip
    table.add_row(
        "latency", f"{latency['cycles']:.0f}", f"{latency['bound_cycles']:.0f}", f"{latency['us']:.1f} µs",
        f"{latency['limit_ratio']:.3f}",
    )  # fmt: skip
    console.print(table)
    ways = Table(
        title="A query that has them all for itself", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    ways.add_column("")
    ways.add_column("cycles", justify="right")
    ways.add_column("µs", justify="right")
    for name, cycles in parts:
        ways.add_row(name, f"{cycles:.0f}", f"{us(cycles):.2f}")
    console.print(ways)


def engines(console: Console, folder: Path, options: argparse.Namespace) -> list[Line]:
    """Throughput, then latency of queries that come one by one."""
    model: Model = options.model
    fast = run(folder, Job(model, "rtl", options.queries, seed=options.seed, fed=options.feed))
    period, bound = interval(fast), engine_cycles(max(model.cycles()))
    least = least_latency(model)
    calm = run(folder, Job(model, "rtl", CALM_WARM + CALM, round(1.5 * least), options.seed))
    latency = float(np.median(latencies(calm)[CALM_WARM:]))
    common = {
        "system": "unisono",
        "network": "rtl",
        "ranks": RANKS,
        "buffers": "streams",
        "mhz": MHZ,
        "kernel_mhz": KERNEL_MHZ,
        "table_bytes": model.table_bytes,
        "verified": True,
    }
    bytes_ = [4 * model.inputs, 2 * model.layers[0], 4 * model.layers[0]]
    lines: list[Line] = [
        common | {"op": "dlrm_throughput", "bytes": bytes_, "batch": 1, "cycles": period, "bound_cycles": bound,
                  "queries_per_second": MHZ * 1e6 / period, "limit_ratio": period / bound},
        common | {"op": "dlrm_latency", "bytes": bytes_, "batch": 1, "cycles": latency, "bound_cycles": least,
                  "us": us(latency), "limit_ratio": latency / least},
    ]  # fmt: skip
    print_engines(console, lines, events(calm))
    return lines


def beside_cpu(console: Console, options: argparse.Namespace, ours: list[Line]) -> list[Line]:
    """Batches of 1 to 1024 on this machine, and how they compare."""
    model = replace(options.model, rows=options.cpu_rows)
    lines: list[Line] = []
    table = Table(
        title=f"This machine, NumPy in fp32, tables of {model.table_bytes / 1e6:.0f} MB", title_justify="left",
        box=box.SIMPLE_HEAD, pad_edge=False,
    )  # fmt: skip
    for name in ("batch", "latency", "queries /s", "engines' latency ×", "engines' throughput ×"):
        table.add_column(name, justify="right")
    rate, latency = ours
    for batch in cpu.measure(model, [1, 4, 16, 64, 256, 1024]):
        faster, sooner = rate["queries_per_second"] / batch.rate, latency["us"] / batch.latency_us
        lines.append(
            {
                "system": "numpy", "op": "dlrm", "network": "none", "ranks": 1, "bytes": model.table_bytes,
                "buffers": "ordinary", "batch": batch.size, "us": batch.latency_us, "queries_per_second": batch.rate,
                "ratio": faster, "latency_ratio": sooner, "verified": True,
            }
        )  # fmt: skip
        table.add_row(
            str(batch.size),
            f"{batch.latency_us:,.0f} µs",
            f"{batch.rate:,.0f}",
            f"1/{1 / sooner:,.0f}",
            f"{faster:.0f}",
        )
    console.print(table)
    return lines


def main() -> None:
    """Builds the kernels, runs and compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--platform", choices=("rtl", "native", "functional"), default="rtl")
    parser.add_argument("--queries", type=int, default=40, help=f"the first {WARM} do not count in times (40)")
    parser.add_argument("--feed", action="store_true", help="a processor, rank 10, sends the queries")
    parser.add_argument("--small", action="store_true", help="small layers and tables")
    parser.add_argument("--rows", type=int, help="of each of the tables (1000)")
    parser.add_argument("--cpu-rows", type=int, default=20_000, help="of each table on the CPU (20000: 256 MB)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="a JSON line for each figure")
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / "build" / "apps-dlrm")
    options = parser.parse_args()
    model = SMALL if options.small else Model()
    options.model = replace(model, rows=options.rows or model.rows, seed=options.seed)
    options.model.check()
    if options.queries < 1:
        parser.error("at least one query")
    options.folder.mkdir(parents=True, exist_ok=True)
    unisono("kernel", "build", HERE / "dlrm.cpp", "-o", options.folder / "dlrm.so")
    figures = options.platform == "rtl" and not options.small
    if figures and options.queries < WARM + 2:
        parser.error(f"figures need {WARM + 2} queries at least")
    console = Console(highlight=False)
    console.print(
        f"{options.model.tables} tables of {options.model.rows} rows ({options.model.table_bytes / 1e6:.1f} MB; the "
        f"paper's have 50 GB), layers {options.model.layers}; "
        f"kernels at {KERNEL_MHZ} MHz with {rates()} products in a cycle of theirs, engines at {MHZ} MHz"
    )
    lines: list[Line] = []
    if figures:
        lines = engines(console, options.folder, options)
        lines += beside_cpu(console, options, lines)
    else:
        run(options.folder, Job(options.model, options.platform, options.queries, seed=options.seed, fed=options.feed))
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    console.print(f"dlrm: all scores of {options.queries} queries on {options.platform} are NumPy's, bit for bit")


if __name__ == "__main__":
    main()
