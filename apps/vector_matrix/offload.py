"""What a layer's sum costs the processor, where it computes it and where a device does: `make bench-offload`.

Rank 0 of the layer of compare.py runs under callgrind, with its model of caches: the core's own L1, and its L2 as the
last level. Counted are the reduction, and the product, which finds in the caches what the reduction has left there. The
other ranks run as ever, and have come long before. On the native engine the processor reduces; on a simulated device
the driver hands the call over, and waits. What the system does in its calls is not counted. A count is that of one
call: the difference of two runs, by that of their repetitions. The others have come before rank 0 begins to sum.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from compare import HERE, ROOT, Line, cache_bytes

#: What callgrind cannot run is left out: AVX-512.
FLAGS = ["-std=c++20", "-O3", "-march=x86-64-v3", "-I/usr/include/eigen3", f"-I{ROOT / 'driver/include'}"]
EVENTS = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")
PARTS = {"reduction": "*layer::sum*", "product": "*layer::Part::multiply*"}
PLATFORMS = {"native": "by the processor", "rtl": "by a device"}
RANKS = 2
#: Rank 0 is counted; the launcher tells each process its rank.
WRAPPER = '[ "$UNISONO_RANK" = 0 ] || { shift {words}; }; exec "$@"'

Count = dict[str, float]


def valgrind(function: str, level1: int, level2: int, folder: Path) -> list[str]:
    """The command before the program's own."""
    return [
        "valgrind",
        "--tool=callgrind",
        "--cache-sim=yes",
        f"--D1={level1},8,64",
        f"--LL={level2},8,64",
        f"--toggle-collect={function}",
        f"--callgrind-out-file={folder}/out",
    ]


def collected(platform: str, program: Path, layer: str, command: list[str]) -> Count:
    """Of all calls of a run."""
    script = WRAPPER.replace("{words}", str(len(command)))
    starter = [sys.executable, "-m", "unisono", "run", "-n", str(RANKS), "--platform", platform]
    done = subprocess.run(
        [*starter, "sh", "-c", script, "layer", *command, str(program), layer],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    found = re.search(r"Collected :((?: \d+)+)", done.stderr)
    if done.returncode != 0 or found is None or '"verified": true' not in done.stdout:
        raise SystemExit(f"bench-offload: the layer on {platform} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return dict(zip(EVENTS, map(float, found[1].split()), strict=True))


def one_call(platform: str, program: Path, edge: int, command: list[str], repetitions: tuple[int, int]) -> Count:
    """Of one call."""
    few, many = (collected(platform, program, f"{edge}x{edge}x{each}", command) for each in repetitions)
    # A tenth of them goes before, to warm up.
    calls = sum(sign * (each + each // 10) for sign, each in zip((-1, 1), repetitions, strict=True))
    return {event: (many[event] - few[event]) / calls for event in EVENTS}


def main() -> int:
    """Counts and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--edges", default="352,576,1024", help="of the square matrices (352,576,1024)")
    parser.add_argument("--repetitions", default="5,20", metavar="FEW,MANY", help="of the two runs (5,20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="a JSON line for each count")
    options = parser.parse_args()
    edges = [int(edge) for edge in options.edges.split(",")]
    few, many = (int(each) for each in options.repetitions.split(","))
    level1, level2 = cache_bytes(1) or 32 << 10, cache_bytes(2) or 1 << 20
    lines: list[Line] = []
    print(f"Rank 0 of {RANKS}, one call; L1 {level1 >> 10} KiB, last level {level2 >> 10} KiB (the core's L2)")
    print("       W  part       reduced             instructions   L1 misses  L2 misses")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "layer"
        library = Path(os.environ.get("UNISONO_BUILD", ROOT / "build/release")).resolve()
        linked = [f"-L{library}", "-lunisono", f"-Wl,-rpath,{library}", "-o", str(program)]
        subprocess.run(["g++", *FLAGS, str(HERE / "unisono.cpp"), *linked], check=True)
        for edge in edges:
            for part, function in PARTS.items():
                for platform, who in PLATFORMS.items():
                    command = valgrind(function, level1, level2, Path(scratch))
                    count = one_call(platform, program, edge, command, (few, many))
                    first, last = count["D1mr"] + count["D1mw"], count["DLmr"] + count["DLmw"]
                    print(f"{edge:>6}²  {part:<9}  {who:<18}  {count['Ir']:>12,.0f}  {first:>10,.0f} {last:>10,.0f}")
                    lines.append(
                        {
                            "system": "unisono",
                            "op": f"vector_matrix_{part}",
                            "network": "shm" if platform == "native" else platform,
                            "ranks": RANKS,
                            "bytes": edge * edge * 4,
                            "buffers": "ordinary",
                            "instructions": round(count["Ir"]),
                            "l1_misses": round(first),
                            "l2_misses": round(last),
                            "verified": True,
                        }
                    )
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
