"""Tables of what bench/rtl/bench_rtl.cpp measures, beside targets and what the papers measured on cards.

Run by tools/bench-rtl, which builds the program first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

Line = dict[str, Any]
WIDE = 132
MHZ = 250  # of the clock that is simulated

ACCL_PLUS = "ACCL+ (OSDI 24)"
ACCL = "ACCL (H2RC 21)"


class Platform(NamedTuple):
    """What a host's call costs in the model of sim/cluster/main.cpp (`platform_of`)."""

    name: str
    invocation_us: float
    copy_us: float  # of each copy; none where the memory is shared
    copy_gbps: float

    def of(self, device_us: float, source: int, result: int) -> float:
        """Host to host: copy in, call, the engines' own time, copy out."""
        return device_us + self.invocation_us + self._copy(source) + self._copy(result)

    def _copy(self, count: int) -> float:
        if count == 0 or self.copy_gbps == 0:
            return 0
        return self.copy_us + count * 8 / (self.copy_gbps * 1000)


PLATFORMS = (Platform("partitioned", 50, 5, 100), Platform("unified", 2, 0, 0))


class Target(NamedTuple):
    """A figure to be held against: a target of this project, or what a paper's text says."""

    value: float
    unit: str
    source: str


SEND_SHARE = Target(0.985, "of the framing bound", "target, large messages")
SEND_PEAK = (
    Target(95, "Gb/s", f"{ACCL_PLUS}, section 5 and Figure 8, RDMA, peak"),
    Target(76, "Gb/s", f"{ACCL}, section VI.C and Figure 6, TCP, peak"),
    Target(80, "Gb/s", f"{ACCL}, section VI.C and Figure 5: “almost 80” with 3 memory channels or more"),
)
FIRST_WORD = Target(74, "cycles", "target, kernel's call to first word, replayed: 24, and the modelled read of 50")
NOP = Target(9, "cycles", "the call front end alone")


def size(count: int) -> str:
    """Bytes by the largest binary unit."""
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B" if count else "-"


def time(line: Line) -> str:
    """Microseconds of a line."""
    return f"{line['us']:.2f}" if line["us"] < 100 else f"{line['us']:.1f}"


def judged(value: float, target: float, higher: bool) -> str:
    """Value over target, and whether that is enough."""
    good = value >= target if higher else value <= target
    color = "green" if good else "red"
    return f"[{color}]{value / target:.2f}[/{color}]"


class Printer:
    """Prints tables in one of two forms, both of which can stand in a page."""

    def __init__(self, form: Literal["rich", "markdown"]) -> None:
        """`markdown`: as docs/rtl/figures.md has them."""
        self.form = form
        self.console = Console(highlight=False, width=WIDE if form == "rich" and not sys.stdout.isatty() else None)

    def table(self, title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], notes: Iterable[str]) -> None:
        """The first column is text, the others are figures."""
        columns = list(columns)
        if self.form == "markdown":
            # Colours are for terminals.
            print(f"### {title}\n")
            print("| " + " | ".join(columns) + " |")
            print("|---" + "|--:" * (len(columns) - 1) + "|")
            for row in rows:
                print("| " + " | ".join(_plain(cell) for cell in row) + " |")
            print()
            for note in notes:
                print(f"- {note}")
            print()
            return
        table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
        for note in notes:
            self.console.print(f"  {note}", style="dim")
        self.console.print()


def _plain(cell: str) -> str:
    for color in ("green", "red"):
        cell = cell.replace(f"[{color}]", "").replace(f"[/{color}]", "")
    return cell


def _nop(lines: list[Line], printer: Printer) -> None:
    rows = [
        (
            line["from"],
            str(line["cycles"]),
            f"{line['us'] * 1000:.0f}",
            judged(line["cycles"], NOP.value, False) if line["from"] == "kernel" else "",
        )
        for line in lines
    ]
    printer.table(
        "Invocation: a nop, from the request to its answer",
        ("from", "cycles", "ns", f"× {NOP.value:.0f}"),
        rows,
        (
            f"{NOP.value:.0f} {NOP.unit}: {NOP.source}.",
            "From the host: AXI4-Lite at the engine's own pins; what PCIe and a driver add is not in it.",
            f"{ACCL_PLUS}, Figure 9, shows the same; its text has no figures.",
            f"{ACCL}, section VI.C: about 150 µs to begin a call of the CCLO through XRT.",
        ),
    )


def _send(lines: list[Line], printer: Printer) -> None:
    rows = []
    for line in lines:
        large = line["bytes"] >= 1 << 18 and line["outstanding"] > 1
        rows.append(
            (
                size(line["bytes"]),
                str(line["outstanding"]),
                str(line["messages"]),
                str(line["cycles"]),
                time(line),
                f"{line['cycles_per_message']:.0f}",
                f"{line['gbps']:.1f}",
                f"{line['bound_gbps']:.1f}",
                f"{line['share_of_bound']:.3f}",
                judged(line["share_of_bound"], SEND_SHARE.value, True) if large else "",
                *(f"{line['gbps'] / peak.value:.2f}" if large else "" for peak in SEND_PEAK[:2]),
            )
        )
    printer.table(
        "Send and receive, two engines, payload",
        (
            "message",
            "at once",
            "messages",
            "cycles",
            "µs",
            "cycles each",
            "Gb/s",
            "bound Gb/s",
            "share",
            "× target",
            "× ACCL+",
            "× ACCL",
        ),
        rows,
        (
            "From the first call to the last answer of the receiver; called by kernels on both nodes in one cycle.",
            "Bound: a header of 64 bytes and 66 of framing for each 8192 bytes, at 50 bytes a cycle; "
            "up to 256 KB segments are shorter.",
            f"Target: {SEND_SHARE.value} {SEND_SHARE.unit}, {SEND_SHARE.source}.",
            *(f"{peak.value:.0f} {peak.unit}: {peak.source}." for peak in SEND_PEAK),
        ),
    )


def _latency(lines: list[Line], printer: Printer) -> None:
    rows = []
    for line in lines:
        kernel = "first word" in line["what"] and "new arguments" not in line["what"]
        rows.append(
            (
                line["what"],
                size(line["bytes"]),
                str(line["cycles"]),
                time(line),
                judged(line["cycles"], FIRST_WORD.value, False) if kernel else "",
            )
        )
    printer.table(
        "Latency of a kernel's call",
        ("what", "bytes", "cycles", "µs", f"× {FIRST_WORD.value:.0f}"),
        rows,
        (
            f"{FIRST_WORD.value:.0f} {FIRST_WORD.unit}: {FIRST_WORD.source}.",
            "New arguments: the first call of its kind, which the firmware admits before its first move.",
            "Later calls are given out by the microcode memory.",
        ),
    )


def _issue(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Moves that only send, given out by the microcode memory",
        ("what", "cycles a frame"),
        [(line["what"], f"{line['cycles_per_frame']:.1f}") for line in lines],
        (
            "From the end of a node's first frame to that of its last; control frames are counted too.",
            "Programs of more than 32 moves come from the firmware. It alone: docs/rtl/firmware.md.",
        ),
    )


def _collective_rows(lines: list[Line], ranks: bool) -> Iterator[tuple[str, ...]]:
    for line in lines:
        host = [f"{platform.of(line['us'], line['source_bytes'], line['result_bytes']):.1f}" for platform in PLATFORMS]
        yield (
            line["collective"],
            line["algorithm"] + ("" if line["automatic"] else " (asked for)"),
            *((str(line["ranks"]),) if ranks else ()),
            size(line["bytes"]),
            str(line["cycles"]),
            str(line["cold_cycles"]),
            time(line),
            f"{line['gbps']:.1f}" if line["bytes"] else "",
            f"{line['bound_cycles']:.0f}",
            f"{line['ratio_to_bound']:.2f}",
            *host,
        )


def _collectives(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Collectives on 8 engines",
        (
            "collective",
            "algorithm",
            "buffer",
            "cycles",
            "first time",
            "F2F µs",
            "Gb/s",
            "bound",
            "× bound",
            "H2H part.",
            "H2H unif.",
        ),
        _collective_rows(lines, ranks=False),
        (
            "F2F: kernels of all nodes call in one cycle; to the last answer. fp32 sums; data in the cards' memory.",
            "Buffer: the longest one of a rank, so of scatter, gather, allgather, reduce_scatter and alltoall all "
            "eight blocks together.",
            "Bound: the payload that some node must send or receive at least, framed, and one way through the switch. "
            "All-reduce: 2(P-1)/P of the buffer, which only algorithms of minimal traffic (ring) have to meet.",
            "H2H is modelled, not measured: F2F + what sim/cluster charges a host. Partitioned: 50 µs a call, 5 µs + "
            "bytes at 100 Gb/s for each copy in and out. Unified: 2 µs a call, no copies; data is taken to stand in "
            "the cards' memory even so.",
            f"{ACCL_PLUS}, Figures 11 and 12, and {ACCL}, Figure 7, plot the same; their texts have no figures of "
            f"single collectives. {ACCL}, section VI.C: XRT's copies take about 300 µs and the call 150 µs more.",
        ),
    )


def _scaling(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Scaling: more engines, the same buffer",
        (
            "collective",
            "algorithm",
            "ranks",
            "buffer",
            "cycles",
            "first time",
            "F2F µs",
            "Gb/s",
            "bound",
            "× bound",
            "H2H part.",
            "H2H unif.",
        ),
        _collective_rows(
            sorted(lines, key=lambda line: (line["collective"], line["bytes"], line["ranks"])), ranks=True
        ),
        (
            f"{ACCL_PLUS}, Figure 13, is reduce of 8 KB and 128 KB on up to ten cards; its text has no figures, but "
            "says: 8 KB goes all to one, with minimal increase across nodes; 128 KB goes along a binary tree, with "
            "an increase after four nodes, then stable until eight.",
        ),
    )


def _segments(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Segments and memory, 4 engines",
        ("what", "memory", "segment", "cycles", "µs", "Gb/s", "× bound"),
        [
            (
                line["what"],
                line["memory"],
                size(line["segment_bytes"]),
                str(line["cycles"]),
                time(line),
                f"{line['gbps']:.1f}",
                f"{line['ratio_to_bound']:.2f}",
            )
            for line in lines
        ],
        (
            f"{ACCL}, Figure 5, varies segments and memory channels of send/recv: 50 Gb/s with one channel, almost 80 "
            "with three; segments of 1 MB are best there. This engine always has two ports, and a segment is at most "
            "a receive buffer of 8 KB, so here latency and bandwidth of the memory vary instead.",
            "Bound: of the framing at that segment.",
        ),
    )


def _protocols(lines: list[Line], printer: Printer) -> None:
    eager = {(line["what"], line["bytes"]): line for line in lines if line["protocol"] == "eager"}
    rows = []
    for line in lines:
        if line["protocol"] == "eager":
            continue
        other = eager[line["what"], line["bytes"]]
        rows.append(
            (
                line["what"],
                size(line["bytes"]),
                str(other["cycles"]),
                str(line["cycles"]),
                f"{line['cycles'] / other['cycles']:.2f}",
            )
        )
    printer.table(
        "Eager and rendezvous",
        ("what", "bytes", "eager, cycles", "rendezvous, cycles", "ratio"),
        rows,
        (
            "By the communicator's eager limit: 8192, or 16 bytes.",
            f"{ACCL_PLUS}, section 5: eager can win at small sizes, as in broadcast; no figures.",
        ),
    )


def _incast(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Incast: nine engines to one",
        ("what", "block", "cycles", "µs", "Gb/s", "share of link", "share of bound", "dropped"),
        [
            (
                line["what"],
                size(line["bytes"]),
                str(line["cycles"]),
                time(line),
                f"{line['gbps']:.1f}",
                f"{line['share_of_link']:.3f}",
                f"{line['share_of_bound']:.3f}",
                str(line["dropped"]),
            )
            for line in lines
        ],
        ("Share of link: wire bytes on the root's link, over the whole time. The switch pauses, it does not drop.",),
    )


def _jitter(lines: list[Line], printer: Printer) -> None:
    def both(cycles: int) -> str:
        return f"{cycles} ({cycles / MHZ:.2f})"

    printer.table(
        "Jitter: cycles (µs)",
        ("what", "seeds", "least", "median", "99 %", "most", "most / median"),
        [
            (
                line["what"],
                str(line["seeds"]),
                both(line["least"]),
                both(line["median"]),
                both(line["p99"]),
                both(line["most"]),
                f"{line['most_over_median']:.3f}",
            )
            for line in lines
        ],
        (
            "A seed says how long each link is (30 to 70 cycles) and when the memory answers: up to 20 cycles later, "
            "and 3 % of cycles paused. The arguments are known to the engines.",
            f"{lines[0]['repeated']} of the seeds ran twice, and took the same cycles both times.",
            "The papers average 250 (ACCL+) and 100 (ACCL) runs on cards.",
        ),
    )


STALLS = {
    "cpu_busy": "cpu",
    "stall_read": "read",
    "stall_write": "write",
    "stall_tx_data": "tx data",
    "stall_tx_network": "tx net",
    "stall_lane": "lane",
    "stall_credit": "credit",
    "stall_grant": "grant",
    "stall_space": "space",
    "stall_arrival": "arrival",
    "stall_producer": "prod.",
    "stall_window": "wind.",
}


def _stalls(lines: list[Line], printer: Printer) -> None:
    printer.table(
        "Who waits for whom, 8 engines: % of the cycles in which an engine has a call",
        ("what", "bytes", "cycles", *STALLS.values()),
        [
            (
                line["what"],
                size(line["bytes"]),
                str(line["cycles"]),
                *(f"{100 * line[name]:.0f}" for name in STALLS),
            )
            for line in lines
        ],
        (
            "They overlap: one move may wait for credit, another for memory (docs/rtl/counters.md). cpu: the "
            "microcontroller works; prod.: a move waits for the one that it follows; wind.: more moves than places.",
            "All-reduces and broadcasts are of the buffer, gathers and all-to-alls of its eighths; sends go from node "
            "0 to node 1, so six engines of eight have no calls.",
        ),
    )


SECTIONS: dict[str, Callable[[list[Line], Printer], None]] = {
    "nop": _nop,
    "send": _send,
    "latency": _latency,
    "issue": _issue,
    "collectives": _collectives,
    "scaling": _scaling,
    "segments": _segments,
    "protocols": _protocols,
    "incast": _incast,
    "jitter": _jitter,
    "stalls": _stalls,
}


RUNS = [name for name in SECTIONS if name != "issue"]  # which is measured with latency


def _setup(line: Line, printer: Printer) -> None:
    link = f"{line['link_gbps']:g} Gb/s ({line['propagation']} cycles), MTU {line['mtu']}"
    segments = f"{line['segment_bytes']} bytes with {line['header_bytes']} of header"
    memory = f"reads after {line['memory_read_latency']} and writes after {line['memory_write_latency']} cycles"
    text = (
        f"Simulated in cycles of {line['clock_mhz']:g} MHz: engines by Verilator, network and memory modelled. "
        f"Links of {link}, {line['framing_bytes']} bytes of framing, one switch ({line['switch_latency']} cycles) "
        f"that pauses. Segments of {segments}, eager up to {line['eager_limit']}, {line['rx_buffers']} receive "
        f"buffers a peer. Memory answers {memory}. Every result was checked."
    )
    if printer.form == "markdown":
        print(text + "\n")
    else:
        printer.console.print(text + "\n")


def show(lines: Iterable[Line], printer: Printer) -> None:
    """Prints each section when it is complete."""
    gathered: list[Line] = []
    for line in lines:
        if line["section"] == "setup":
            _setup(line, printer)
            continue
        if gathered and gathered[0]["section"] != line["section"]:
            SECTIONS[gathered[0]["section"]](gathered, printer)
            gathered = []
        gathered.append(line)
    if gathered:
        SECTIONS[gathered[0]["section"]](gathered, printer)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="bench-rtl", description="measures the hardware engine in simulation")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="few sizes")
    amount.add_argument("--full", action="store_true", help="4 MB too")
    parser.add_argument(
        "--only",
        metavar="SECTION,...",
        help="nop send latency collectives scaling segments protocols incast jitter stalls",
    )
    parser.add_argument("--seeds", type=int, help="of the jitter; 250, or 20 with --quick")
    parser.add_argument("--outstanding", type=int, help="sends and receives at once, 1 to 8")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the lines here")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="print what such a file has")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument(
        "--program", type=Path, default=Path("build/release/bench/rtl/bench_rtl"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    printer = Printer("markdown" if options.markdown else "rich")
    if options.source is not None:
        show((json.loads(line) for line in options.source.read_text(encoding="utf-8").splitlines()), printer)
        return 0
    command = [str(options.program)]
    command += ["--quick"] if options.quick else ["--full"] if options.full else []
    command += ["--seeds", str(options.seeds)] if options.seeds else []
    command += ["--outstanding", str(options.outstanding)] if options.outstanding else []
    kept: list[str] = []

    def read(process: subprocess.Popen[str]) -> Iterator[Line]:
        assert process.stdout is not None
        for text in process.stdout:
            if not text.startswith("{"):  # an assertion of the hardware speaks here too
                sys.stderr.write(text)
                continue
            line = json.loads(text)
            if line["section"] == "setup" and kept:
                continue
            kept.append(text)
            yield line

    failed = []
    # A process each: an assertion of the hardware ends the process, and the other sections are still worth having.
    for section in options.only.split(",") if options.only else RUNS:
        with subprocess.Popen([*command, "--only", section], stdout=subprocess.PIPE, text=True) as process:
            show(read(process), printer)
            if process.wait() != 0:
                failed.append(section)
    if options.json is not None:
        options.json.write_text("".join(kept), encoding="utf-8")
    if failed:
        print(f"bench-rtl: failed: {', '.join(failed)}; see the messages above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
