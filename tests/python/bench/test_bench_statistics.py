"""Rounds, ratios and targets of `unisono bench`, with data whose answers are known."""

from __future__ import annotations

import io
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from unisono.bench import guard, machine, plan, plot, report, targets
from unisono.bench.machine import Placement
from unisono.bench.plan import Cell
from unisono.bench.session import Measured, Row
from unisono.bench.statistics import Ratio, Round, geometric_mean, paired_ratio, quiet_rounds, quietest_rounds
from unisono.errors import InvalidArgumentError


def test_rounds_with_a_slow_limit_are_left_out() -> None:
    rounds = [
        Round((1.0, 1.1, 1.29)),
        Round((1.0, 1.31, 1.0)),  # disturbed in the middle
        Round((1.3, 1.0)),  # just allowed
        Round((2.0, 1.0)),
    ]
    assert quiet_rounds(rounds) == [0, 2]


def test_rounds_are_compared_with_the_least_limit_of_all() -> None:
    assert quiet_rounds([Round((2.0, 2.0)), Round((2.0, 1.0)), Round((1.0, 1.0))]) == [2]


def test_rounds_with_a_stolen_core_are_left_out() -> None:
    assert quiet_rounds([Round((1.0,), 0.06), Round((1.0,), 0.04)]) == [1]


def test_the_quietest_rounds() -> None:
    rounds = [Round((1.0, 9.0)), Round((1.0, 2.0)), Round((1.0,), 0.5), Round((1.0, 1.5))]
    assert quiet_rounds(rounds) == []
    assert quietest_rounds(rounds, 2) == [1, 3]  # in the order of time
    assert quietest_rounds(rounds, 3) == [0, 1, 3]


def test_no_rounds() -> None:
    assert quiet_rounds([]) == []


def test_the_ratio_is_that_of_pairs() -> None:
    # The machine changes its speed from round to round; the ratio of pairs does not.
    speed = np.array([1.0, 5.0, 2.0, 9.0, 3.0])
    ratio = paired_ratio(list(0.5 * speed), list(speed))
    assert ratio == Ratio(0.5, 0.5, 0.5)


def test_an_outlier_does_not_move_the_median() -> None:
    times = [2.0, 2.1, 1.9, 2.0, 2.05, 1.95, 200.0]
    ratio = paired_ratio(times, [1.0] * 7)
    assert ratio.value == 2.0
    assert ratio.low < 2.0 < ratio.high


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for trial in range(200):
        noise = random.lognormal(0.0, 0.3, size=25)
        ratio = paired_ratio(list(3.0 * noise), [1.0] * 25, seed=trial)
        assert ratio.low <= ratio.value <= ratio.high
        covered += ratio.low <= 3.0 <= ratio.high
    # 95 % of 200 are 190; the percentile bootstrap of a median is a little off for few rounds.
    assert 176 <= covered <= 199


def test_the_interval_narrows_with_more_rounds() -> None:
    random = np.random.default_rng(3)
    widths = []
    for size in (10, 1000):
        ratio = paired_ratio(list(random.lognormal(0.0, 0.3, size=size)), [1.0] * size)
        widths.append(ratio.high - ratio.low)
    assert widths[1] < widths[0] / 3


def test_unequal_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="2 times and 1 others"):
        paired_ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("4:32", [4, 8, 16, 32]), ("1K", [1024]), ("4,3K,4M", [4, 3072, 4 << 20]), ("5:9,8", [8]), ("48", [48])],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert plan.parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "said"),
    [("4X", "no size"), ("", "no size"), ("8:4", "must not be above"), ("9:15", "no power of two"),
     ("0", "allowed are"), ("2G", "allowed are"), ("-4", "no size")],
)  # fmt: skip
def test_sizes_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        plan.parse_sizes(text)


def test_size_text() -> None:
    assert [plan.size_text(size) for size in (4, 1024, 1536, 4 << 20, 1 << 30)] == ["4", "1K", "1536", "4M", "1G"]


def test_names() -> None:
    assert plan.parse_names("bcast,reduce,bcast", plan.OPS, "operation") == ["bcast", "reduce"]
    assert plan.parse_names("all", plan.OPS, "operation") == list(plan.OPS)
    with pytest.raises(InvalidArgumentError, match="operation 'allreduec' was given; there are pingpong"):
        plan.parse_names("allreduec", plan.OPS, "operation")


def test_cells_need_whole_elements() -> None:
    with pytest.raises(InvalidArgumentError, match="multiples of 8 bytes"):
        list(
            plan.cells(
                ops=["bcast"], sizes=[4], dtypes=["fp64"], buffers=["malloc"], ranks=2, algorithm=None, counts=["equal"]
            )
        )


def test_a_barrier_has_one_cell() -> None:
    cells = list(
        plan.cells(
            ops=["barrier", "bcast"],
            sizes=[8, 16],
            dtypes=["fp32", "int64"],
            buffers=["malloc", "allocated"],
            ranks=2,
            algorithm=None,
            counts=["equal"],
        )
    )
    assert [cell.bytes for cell in cells if cell.op == "barrier"] == [0]
    assert len(cells) == 1 + 2 * 2 * 2


def test_cells_of_v_collectives_have_counts() -> None:
    cells = list(
        plan.cells(
            ops=["gather", "gatherv"], sizes=[8], dtypes=["fp32"], buffers=["malloc"], ranks=3, algorithm=None,
            counts=["equal", "changing"], interface="python",
        )
    )  # fmt: skip
    assert [(cell.op, cell.counts, cell.turns) for cell in cells] == [
        ("gather", None, 3),
        ("gatherv", "equal", 3),
        ("gatherv", "changing", 48),
    ]
    assert [cell.title for cell in cells] == ["gather", "gatherv", "gatherv, changing counts"]
    assert {cell.interface for cell in cells} == {"python"}


def test_kinds_of_buffers_in_old_and_new_lines() -> None:
    assert plan.kind_of_buffers({"buffers": "registered"}) == "allocated"
    assert plan.kind_of_buffers({"buffers": "malloc"}) == "malloc"
    assert plan.kind_of_buffers({"schema": report.SCHEMA, "buffers": "registered"}) == "registered"
    assert plan.kind_of_buffers({}) is None


def test_the_processor(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\nmodel name : Some Xeon\n\nmodel : 7\n")
    assert machine.processor(info) == machine.Processor("Some Xeon", "GenuineIntel", 6, 143)
    assert machine.processor(info).text == "Some Xeon (GenuineIntel, family 6, model 143)"
    info.write_text("hart : 0\nisa : rv64gc\n")
    assert machine.processor(info).text == "rv64gc"
    assert machine.processor(tmp_path / "none").name  # the machine's kind, at least


# ------------------------------------------------------------------------------------- against another state


def test_the_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    with pytest.raises(ValueError, match="positive values are needed"):
        geometric_mean([])
    with pytest.raises(ValueError, match="positive values are needed"):
        geometric_mean([1.0, 0.0])


def compared(op: str, size: int, buffers: str, low: float, value: float, high: float, *, noisy: bool = False) -> Row:
    cell = Cell(op, size, "fp32", buffers, 2)
    ours = Measured("unisono", cell, ratios={"before": Ratio(value, low, high)})
    return Row(cell, Measured("limit", cell), [ours, Measured("before", cell)], 20, 20, noisy=noisy)


def test_the_guard_is_kept() -> None:
    rows = [
        compared("bcast", 4, "malloc", 0.9, 1.0, 1.2),
        compared("bcast", 1 << 20, "allocated", 1.0, 1.03, 1.1, noisy=True),
        compared("bcast", 1 << 20, "malloc", 3.0, 4.0, 5.0),  # not guarded
    ]
    comparison = guard.compare(rows, "before")
    assert comparison.kept
    assert (comparison.cells, comparison.guarded, comparison.noisy) == (3, 2, 1)
    assert comparison.mean == pytest.approx((1.03 * 4.0) ** (1 / 3))
    assert comparison.guarded_mean == pytest.approx(1.03**0.5)
    assert "no guarded cell's interval lies wholly above 1.05" in comparison.text
    assert "1 of them was noisy" in comparison.text


def test_the_guard_fails() -> None:
    one = guard.compare(
        [compared("bcast", 1 << 20, "allocated", 1.051, 1.06, 1.1), *[compared("scan", 4, "malloc", 0.9, 0.95, 1)] * 9],
        "before",
    )
    assert not one.kept
    assert one.guarded_mean is not None
    assert one.guarded_mean < 1
    assert "wholly above 1.05: bcast 1M fp32 allocated (1.05-1.10)" in one.text
    all_of_them = guard.compare([compared("scan", 4, "malloc", 1.0, 1.03, 1.04)] * 9, "before")
    assert not all_of_them.kept
    assert all_of_them.slower == ()
    nothing = guard.compare([compared("scan", 1 << 20, "malloc", 1.0, 1.0, 1.0)], "before")
    assert not nothing.kept
    assert "none of them is guarded" in nothing.text
    noisy = [compared("scan", 4, "malloc", 0.9, 1.0, 1.1, noisy=number < 3) for number in range(5)]
    assert not guard.compare(noisy, "before").kept
    assert "3 of them were noisy, too many to say more" in guard.compare(noisy, "before").text
    assert guard.compare(noisy[1:], "before").kept
    assert guard.compare([], "before").text == "Against before: nothing to compare."


def test_quota_of_a_control_group(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/a/b\n")
    for folder, text in (("", "max 100000"), ("a", "150000 100000"), ("a/b", "400000 100000")):
        (tmp_path / "root" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / folder / "cpu.max").write_text(text)
    assert machine._quota(tmp_path / "root", own) == 1.5
    own.write_text("3:cpu,cpuacct:/x\n")
    (tmp_path / "root/cpu,cpuacct/x").mkdir(parents=True)
    (tmp_path / "root/cpu,cpuacct/x/cpu.cfs_quota_us").write_text("300000")
    (tmp_path / "root/cpu,cpuacct/x/cpu.cfs_period_us").write_text("100000")
    assert machine._quota(tmp_path / "root", own) == 3.0
    assert machine._quota(tmp_path / "root", tmp_path / "none") == float("inf")


def test_binding() -> None:
    assert Placement(2, (3, 5, 7), 3).binding == "3,5"
    shared = Placement(4, (3, 5), 2)
    assert (shared.crowded, shared.binding, shared.limit_binding) == (True, "-", "3,5")
    assert Placement(4, (0, 1, 2, 3), 2).crowded  # a quota of two cores


HERE = Placement(2, (0, 1), 2)


def figure(
    op: str,
    size: int,
    limit: float,
    *,
    ranks: int = 2,
    buffers: str = "allocated",
    counts: str | None = None,
    interface: str = "c",
    **ratios: float,
) -> Measured:
    cell = Cell(op, size, "fp32", buffers, ranks, counts=counts, interface=interface)
    measured = Measured("unisono", cell, limit_ratio=limit)
    measured.ratios = {peer: Ratio(ratio, ratio, ratio) for peer, ratio in ratios.items()}
    return measured


@pytest.mark.parametrize(
    ("measured", "met"),
    [
        (figure("pingpong", 48, 1.4, openmpi=0.7, mpich=0.5), True),
        (figure("pingpong", 48, 1.6, openmpi=0.7, mpich=0.5), False),  # both bounds
        (figure("pingpong", 48, 1.4, openmpi=0.5, mpich=0.8), False),  # the better peer counts
        (figure("pingpong", 48, 1.4), None),  # no peer was measured
        (figure("pingpong", 48, 1.6), False),  # but already too slow
        (figure("scan", 1024, 1.9, openmpi=0.9), True),  # one of two bounds
        (figure("scan", 1024, 2.1, openmpi=0.7), True),
        (figure("scan", 1024, 2.1, openmpi=0.8), False),
        (figure("barrier", 0, 1.9), True),
        (figure("barrier", 0, 2.1), None),
        (figure("allreduce", 1 << 20, 9.0, openmpi=0.22), True),
        (figure("allreduce", 1 << 20, 9.0, openmpi=0.23), False),
        (figure("alltoall", 4 << 20, 9.0, mpich=0.6), True),
        (figure("alltoall", 65536, 9.0, mpich=0.6), False),
        (figure("allreduce", 65536, 9.0, buffers="malloc", mpich=0.6), True),
        (figure("allreduce", 65536, 1.2, buffers="malloc", mpich=0.61), False),
        (figure("allreduce", 65536, 1.15, buffers="registered", mpich=0.61), True),  # one of two bounds
        (figure("alltoall", 65536, 1.2, buffers="malloc", mpich=0.8), True),
        (figure("gatherv", 64, 1.2, counts="changing", mpich=0.76), False),
        (figure("gatherv", 65536, 9.0, counts="changing", uniform=1.1, mpich=9.0), True),
        (figure("gatherv", 65536, 9.0, counts="equal", uniform=1.11, mpich=0.1), False),
        (figure("gatherv", 65536, 9.0, counts="equal", mpich=0.1), None),
        (figure("gatherv", 64, 1.2, counts="equal", mpich=0.76), True),
        (figure("allreduce", 64, 9.0, buffers="malloc", interface="python", mpi4py=0.8), True),
        (figure("allreduce", 64, 9.0, buffers="malloc", interface="python", mpi4py=0.81), False),
        (figure("allreduce", 65536, 9.0, buffers="malloc", before=0.5), None),  # no peer to be better than
    ],
)
def test_targets(measured: Measured, met: bool | None) -> None:
    target = targets.find(targets.load(), measured, HERE)
    assert target is not None
    assert target.is_met(measured) is met


def test_targets_where_ranks_share_cores() -> None:
    crowded = Placement(4, (0, 1), 2)
    rooted = figure("bcast", 1024, 50.0, ranks=4, openmpi=0.9, mpich=3.0)  # at most 0.9
    target = targets.find(targets.load(), rooted, crowded)
    assert target is not None
    assert target.is_met(rooted) is True  # Open MPI alone is compared with
    everybody = figure("allreduce", 1024, 50.0, ranks=4, openmpi=0.9)
    target = targets.find(targets.load(), everybody, crowded)
    assert target is not None
    assert target.is_met(everybody) is False


def test_no_target_of_c_is_about_python() -> None:
    python = figure("bcast", 64, 1.0, interface="python", mpi4py=0.1)
    assert targets.find(targets.load(), python, HERE) is None


@pytest.mark.parametrize(("key", "value"), [("buffers", "[plain]"), ("counts", "[many]"), ("interface", "fortran")])
def test_a_target_with_an_unknown_word(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(f"- {{case: x, ops: [bcast], bytes: [0, 1K], {key}: {value}}}\n")
    with pytest.raises(InvalidArgumentError, match=f"{key} of a target are of"):
        targets.load(file)


def test_figures_without_a_target() -> None:
    assert targets.find(targets.load(), figure("allreduce", 2048, 1.0, openmpi=0.1), HERE) is None
    assert targets.find(targets.load(), figure("allreduce", 4, 1.0, ranks=4, openmpi=0.1), Placement(4, (0, 1), 2))


def test_a_target_with_an_unknown_key(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text("- {case: x, ops: [bcast], bytes: [0, 1K], pier: 0.5}\n")
    with pytest.raises(InvalidArgumentError, match="pier"):
        targets.load(file)


# --------------------------------------------------------------------------------------------- what people see


@pytest.mark.parametrize("panels", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "peers", [[], ["openmpi"], ["openmpi", "mpich"], ["openmpi", "mpich", "another", "a_long_name"]]
)
def test_nothing_of_the_plot_is_cut(panels: int, peers: list[str]) -> None:
    rows = [row(op, size, peers) for op in plan.OPS[:panels] for size in (4, 1 << 10, 4 << 20)]
    root = xml.etree.ElementTree.fromstring(plot.svg(rows))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 {width:g} {height:g}"
    legend = [element for element in root.iter() if element.get("class") == "legend"]
    assert sorted(str(element.text) for element in legend) == sorted(["limit", "unisono", *peers])
    boxes = []
    for element in legend:
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        boxes.append((x - 28, y, x + 7 * len(str(element.text))))
        assert boxes[-1][2] <= width, element.text
        assert y + 4 <= height, element.text
    for at, (left, y, right) in enumerate(boxes):
        assert not any(left < other[2] and other[0] < right and y == other[1] for other in boxes[at + 1 :])
    panel_bottoms = [
        float(group.attrib["transform"].split(",")[1].rstrip(")")) + plot.HEIGHT
        for group in root.iter("{http://www.w3.org/2000/svg}g")
    ]
    assert max(panel_bottoms) < min(y for _, y, _ in boxes)


def row(op: str, size: int, peers: list[str], *, rounds: int = 20, quiet: int = 20) -> Row:
    def measured(name: str, seconds: float) -> Measured:
        return Measured(name, Cell(op, size, "fp32", "allocated", 2), times=[seconds], kept=[0])

    ours = measured("unisono", 99.6e-6)
    ours.limit_ratio = 12.34
    ours.ratios = {peer: Ratio(1.66, 1.55, 1.77) for peer in peers}
    systems = [*(measured(peer, 9.8e-4) for peer in peers), ours]
    return Row(ours.cell, measured("limit", 1.72e-3), systems, rounds, quiet, noisy=quiet < rounds)


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("peers", [[], ["openmpi"], ["openmpi", "mpich"]])
def test_the_table_fits_the_terminal(width: int, peers: list[str]) -> None:
    out = io.StringIO()
    printer = report.TablePrinter(
        Console(file=out, width=width, highlight=False), [*peers, "unisono"], HERE, targets.load(), mean=False
    )
    printer.row(row("gatherv", 1024, [*peers, "uniform"]))
    for op in ("allreduce", "scan", "pingpong"):
        for size in (48, 1024, 4 << 20):
            printer.row(row(op, size, peers))
            printer.row(row(op, size, peers, quiet=7))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width, max(lines, key=len)
    assert sum("1.72 ms" in line for line in lines) == 19
    assert sum("rounds quiet" in line for line in lines) == 9
    heads = [line for line in lines if "unisono" in line]
    assert len(heads) == 4
    assert "1.66 (1.55-1.77) × uniform" in out.getvalue()
    for head in heads:
        for name in peers:
            assert f"to {name}" in head
    if width == 200 and peers:
        assert "1.66 (1.55-1.77)" in out.getvalue()
