"""Draws the life of a call: docs/pictures/life-of-a-call.svg, and the table of docs/rtl/life-of-a-call.md.

The cycles are those of `life_of_a_call` (bench/rtl), which runs a send and a receive on two Verilated engines and
prints what happened in each cycle. With --check nothing is written; the exit status tells whether both are current.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
PROGRAM = BUILD / "bench" / "rtl" / "life_of_a_call"
PICTURE = ROOT / "docs" / "pictures" / "life-of-a-call.svg"
PAGE = ROOT / "docs" / "rtl" / "life-of-a-call.md"
BEGIN, END = "<!-- begin of what tools/rtl/life-of-a-call writes -->", "<!-- end -->"
BYTES = 1024

Course = dict[str, list[int]]


@dataclass(frozen=True)
class Row:
    """A line of the picture: an event of one of the nodes."""

    node: int
    event: str
    block: str
    text: str


SENDER = (
    Row(0, "descriptor_words", "call port", "two words of the descriptor are taken"),
    Row(0, "calls", "microcode memory", "a call like it is known; its context: communicator, tag, signature"),
    Row(0, "moves", "microcode memory", "the move is given out"),
    Row(0, "moves_entered", "decode", "it is checked and enters its window"),
    Row(0, "moves_issued", "scoreboard", "nothing holds it back: issued"),
    Row(0, "send_jobs", "dispatcher", "credit and space are there: a job for the send lane"),
    Row(0, "tx_words", "tx", "the header goes to the transport; the words follow as they come"),
    Row(0, "send_words", "send lane", "words come from memory"),
    Row(0, "moves_retired", "scoreboard", "the source may change: complete, retired"),
    Row(0, "mac_tx_words", "transport", "the frame leaves"),
    Row(0, "calls_completed", "call front end", "the slot is clear again: the call has ended"),
    Row(0, "answers", "call front end", "the kernel has its answer"),
)
RECEIVER = (
    Row(1, "descriptor_words", "call port", "two words of the descriptor are taken"),
    Row(1, "moves", "microcode memory", "the move is given out"),
    Row(1, "moves_issued", "scoreboard", "issued; the arrival is posted"),
    Row(1, "stall_arrival", "dispatcher", "waits for its message"),
    Row(1, "mac_rx_words", "transport", "the frame comes in"),
    Row(1, "rx_words", "rx", "header and words leave the transport"),
    Row(1, "segments_bypassed", "rbm, dispatcher", "checked and matched, it may go past the buffers"),
    Row(1, "compute_jobs", "dispatcher", "a job for the compute lane, in the same cycle"),
    Row(1, "segments_received", "rx, rbm", "the header is handed over, its words follow"),
    Row(1, "result_words", "compute lane", "words go to memory"),
    Row(1, "jobs_ended", "compute lane", "memory has them: the job has ended"),
    Row(1, "moves_retired", "scoreboard", "complete, retired"),
    Row(1, "calls_completed", "call front end", "the slot is clear again: the call has ended"),
    Row(1, "answers", "call front end", "the kernel has its answer"),
)


def measure() -> tuple[int, list[Course]]:
    """Builds and runs the program: bytes, and what happened on both nodes."""
    build = ["cmake", "--build", str(BUILD), "--target", "life_of_a_call"]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode:
        sys.exit(f"{built.stdout[-2000:]}{built.stderr}\nlife_of_a_call cannot be built; first `tools/build --cluster`")
    said = subprocess.run([str(PROGRAM), str(BYTES)], capture_output=True, text=True, check=True, timeout=600).stdout
    course = json.loads(said)
    return course["bytes"], course["nodes"]


def cycles_of(row: Row, nodes: list[Course]) -> list[int]:
    """When the event happened; a row without cycles is a mistake here."""
    cycles = nodes[row.node][row.event]
    if not cycles:
        sys.exit(f"node {row.node}: there was no {row.event}")
    return cycles


def runs(cycles: list[int]) -> list[tuple[int, int]]:
    """Stretches of cycles without a gap: first, last."""
    found: list[tuple[int, int]] = []
    for cycle in cycles:
        if found and found[-1][1] + 1 == cycle:
            found[-1] = (found[-1][0], cycle)
        else:
            found.append((cycle, cycle))
    return found


def picture(size: int, nodes: list[Course]) -> str:
    """The picture as SVG. Colours follow the reader's light or dark scheme."""
    left, right, height, top = 250, 20, 19, 46
    width = 1000
    last = max(cycles_of(row, nodes)[-1] for row in (*SENDER, *RECEIVER))
    step = next(s for s in (20, 25, 50, 100, 200, 250, 500) if last / s <= 14)
    end = -(-last // step) * step
    scale = (width - left - right) / end
    rows = len(SENDER) + len(RECEIVER) + 1
    bottom = top + rows * height + 8

    def at(cycle: float) -> float:
        return round(left + cycle * scale, 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 24}" font-family="sans-serif" '
        'font-size="11" role="img">',
        f"<title>The life of a call: send and receive of {size} bytes, in cycles</title>",
        "<!-- Made by tools/rtl/life-of-a-call from a run of two Verilated engines. Do not edit. -->",
        "<style>text{fill:#24292f}.grid{stroke:#d0d7de;stroke-width:.6}.s{fill:#0969da}.r{fill:#1a7f37}"
        ".w{fill:#bf8700;opacity:.45}.n{fill:#57606a;font-size:9px}.h{font-weight:bold}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.s{fill:#58a6ff}.r{fill:#3fb950}"
        ".n{fill:#8b949e}}</style>",
    ]
    for cycle in range(0, end + 1, step):
        lines.append(f'<line class="grid" x1="{at(cycle)}" y1="{top - 14}" x2="{at(cycle)}" y2="{bottom}"/>')
        lines.append(f'<text x="{at(cycle)}" y="{bottom + 14}" text-anchor="middle">{cycle}</text>')
    lines.append(f'<text x="{left - 10}" y="{bottom + 14}" text-anchor="end">cycle</text>')
    y = top
    for title, part, colour in (("sender", SENDER, "s"), ("receiver", RECEIVER, "r")):
        lines.append(f'<text class="h" x="8" y="{y - 4}">{title}</text>')
        for row in part:
            cycles = cycles_of(row, nodes)
            lines.append(f'<text x="{left - 10}" y="{y + 12}" text-anchor="end">{row.event}</text>')
            lines.append(f'<text class="n" x="8" y="{y + 12}">{row.block}</text>')
            for first, final in runs(cycles):
                wide = max(round((final + 1 - first) * scale, 1), 1.5)
                kind = "w" if row.event.startswith("stall") else colour
                lines.append(f'<rect class="{kind}" x="{at(first)}" y="{y + 3}" width="{wide}" height="{height - 7}"/>')
            label = str(cycles[0]) if cycles[0] == cycles[-1] else f"{cycles[0]} to {cycles[-1]}"
            beside, anchor = (at(cycles[-1] + 1) + 4, "start")
            if beside > width - 70:
                beside, anchor = (at(cycles[0]) - 4, "end")
            lines.append(f'<text class="n" x="{round(beside, 1)}" y="{y + 12}" text-anchor="{anchor}">{label}</text>')
            y += height
        y += height
    return "\n".join([*lines, "</svg>", ""])


def table(nodes: list[Course]) -> str:
    """The same as a table, with the time since the row before."""
    lines = []
    for title, part in (("Sender", SENDER), ("Receiver", RECEIVER)):
        lines += [f"| {title}: cycle | since | block | what happens |", "|---|---|---|---|"]
        before = 0
        for row in part:
            cycles = cycles_of(row, nodes)
            when = str(cycles[0]) if cycles[0] == cycles[-1] else f"{cycles[0]} to {cycles[-1]}"
            lines.append(f"| {when} | {cycles[0] - before:+d} | {row.block} | {row.text} |")
            before = cycles[0]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Measures, draws, and writes or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    size, nodes = measure()
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = {PICTURE: picture(size, nodes), PAGE: f"{head}{BEGIN}\n\n{table(nodes)}\n{END}{tail}"}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is not current' if options.check else 'written'}")
        if not options.check:
            path.write_text(wanted[path])
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
