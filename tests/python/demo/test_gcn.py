"""A graph network summed in a switch: what is counted, the handlers' bits, the model and what it chooses."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
APP = ROOT / "apps/gcn"
NAMES = (
    "graphs", "tiles", "model", "sums", "expected", "packets", "job", "learn", "rank", "study",
)  # fmt: skip


def modules() -> SimpleNamespace:
    """The application's modules, which import one another by names that others may have, too."""
    others = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    sys.path.insert(0, str(APP))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    finally:
        sys.path.remove(str(APP))
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(others)


app = modules()


def has_clang() -> bool:
    from unisono.handler.compiler import HandlerError, clang

    try:
        clang()
    except HandlerError:
        return False
    return True


needs_clang = pytest.mark.skipif(not has_clang(), reason="clang, which reads handlers, is not installed: make handlers")


def graph_of(vertices: int, edges: int, classes: int = 5, seed: int = 1) -> Any:
    return app.graphs.generate(app.graphs.Sizes(vertices, edges, 7, classes), seed)


def random_offload(nodes: int, seed: int = 1) -> Any:
    offload = np.random.default_rng(seed).random((nodes, nodes)) < 0.6
    np.fill_diagonal(offload, False)
    return offload


def pairs_of(graph: Any) -> list[tuple[int, int]]:
    return list(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True))


@pytest.mark.parametrize("name", ["ppi", "citeseer", "pubmed"])
def test_generated_graphs_have_the_tables_numbers(name: str) -> None:
    sizes = app.graphs.TABLE[name]
    graph = app.graphs.generate(sizes, 1)
    keys = graph.rows * sizes.vertices + graph.columns
    assert len(np.unique(keys)) == len(keys) == sizes.edges
    assert (graph.rows != graph.columns).all()
    degrees = np.sort(np.bincount(graph.columns, minlength=sizes.vertices))
    assert degrees[-1] > 4 * degrees.mean()  # a few vertices have many edges
    assert not np.array_equal(app.graphs.generate(sizes, 2).columns, graph.columns)


def test_no_graph_has_more_edges_than_pairs() -> None:
    with pytest.raises(ValueError, match="no room for 20000 edges"):
        graph_of(100, 20000)


def test_sums_have_their_order() -> None:
    random = np.random.default_rng(3)
    table = (random.standard_normal((40, 3)) * 10.0 ** random.integers(-4, 5, (40, 1))).astype(np.float32)
    rows, columns = random.integers(0, 6, 300), random.integers(0, 40, 300)
    wanted = np.zeros((6, 3), np.float32)
    for row, column in zip(rows, columns, strict=True):
        wanted[row] += table[column]
    found, other = np.zeros_like(wanted), np.zeros_like(wanted)
    app.sums.add_in_order(found, rows, columns, table)
    app.sums.add_in_order(other, rows[::-1], columns[::-1], table)
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    assert (found != other).any()


@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_counts_against_brute_force(nodes: int) -> None:
    graph = graph_of(203, 1500)
    tiles, offload = app.tiles.tiles_of(graph, nodes), random_offload(nodes)
    of = [next(k for k in range(nodes) if v < tiles.bounds[k + 1]) for v in range(203)]
    pairs = pairs_of(graph)
    entries, needed = np.zeros((nodes, nodes), int), [[set() for _ in range(nodes)] for _ in range(nodes)]
    stored, results = [set() for _ in range(nodes)], [set() for _ in range(nodes)]
    far_of_row, far_of_column = np.zeros(203, int), np.zeros(203, int)
    for row, column in pairs:
        i, j = of[row], of[column]
        entries[i, j] += 1
        if i != j:
            needed[i][j].add(column)
            far_of_row[row] += 1
            far_of_column[column] += 1
        if offload[i, j]:
            stored[j].add(column)
            results[i].add(row)
    np.testing.assert_array_equal(tiles.entries, entries)
    np.testing.assert_array_equal(tiles.needed(), [[len(s) for s in line] for line in needed])
    np.testing.assert_array_equal(tiles.stored(offload), [len(s) for s in stored])
    np.testing.assert_array_equal(tiles.results(offload), [len(s) for s in results])
    assert tiles.row_beats.sum() == sum(-(-int(d) // 16) for d in far_of_row)
    assert tiles.column_beats.sum() == sum(-(-int(d) // 16) for d in far_of_column)


def test_too_many_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="give 2 to 24 nodes"):
        app.tiles.bounds(100, 25)


class Switch:
    """A job whose nodes and switch are in this process."""

    def __init__(self, folder: Path, graph: Any, width: int, nodes: int, plan: Any) -> None:
        sizes = replace(graph.sizes, classes=width)
        features, weights = app.graphs.features(sizes, 1), app.graphs.weights(sizes, 1)
        np.savez(folder / "graph.npz", sizes=astuple(sizes), first=graph.first, columns=graph.columns,
                 features=features, weight0=weights[1], weight1=weights[1])  # fmt: skip
        self.shared = app.rank.Shared(folder, nodes)
        self.shared.weights = self.shared.weights[:1]
        random = np.random.default_rng(5)
        scales = 10.0 ** random.integers(-4, 5, (sizes.vertices, 1))
        self.right = (random.standard_normal((sizes.vertices, width)) * scales).astype(np.float32)
        self.plan, self.lists = plan, []
        for rank in range(nodes):
            node = app.rank.Node(self.shared, SimpleNamespace(rank=rank), None)
            make = node.output_packets if plan.dataflow == "output" else node.weight_packets
            self.lists.append(make(self.right[node.mine], plan))
        self.results: dict[int, bytes] = {}

    def run(self) -> Any:
        world = SimpleNamespace(recv_object=self.lists.__getitem__, send_object=self.keep)
        app.rank.serve(self.shared, world, [app.rank.Way("switch", self.plan)])
        came = b"".join(self.results[node] for node in range(self.shared.nodes))
        return np.frombuffer(came, np.float32).reshape(-1, self.right.shape[1])

    def keep(self, value: bytes, node: int) -> None:
        self.results[node] = value

    def wanted(self) -> Any:
        """Entry by entry: columns in ascending order, or as packets of nodes come by turns."""
        rows, columns = self.shared.offloaded(self.plan)
        outputs, width = np.unique(rows), self.right.shape[1]
        sums = np.zeros((len(outputs), width), np.float32)
        if self.plan.dataflow == "output":
            for row, column in zip(np.searchsorted(outputs, rows), columns, strict=True):
                sums[row] += self.right[column]
            return sums
        for _, (_, payload) in app.rank.by_turns([lists[0] for lists in self.lists]):
            words = np.frombuffer(payload, np.uint32)
            at = 0
            while at < len(words):
                count = int(words[at])
                values = words[at + 1 : at + 1 + width].view(np.float32)
                for place in words[at + 1 + width : at + 1 + width + count]:
                    sums[place] += values
                at += 1 + width + count
        return sums


@needs_clang
@pytest.mark.parametrize("width", [3, 16, 37])
@pytest.mark.parametrize(("dataflow", "layout"), [(d, k) for d in ("output", "weight") for k in ("columns", "indexes")])
def test_handlers_give_the_bits_of_their_order(tmp_path: Path, dataflow: str, layout: str, width: int) -> None:
    # One row and one column have more entries than a packet has room for, and so have most nodes.
    base = graph_of(2900, 9000)
    others = np.arange(1, 2900)
    rows = np.concatenate([base.rows, np.zeros_like(others), others])
    columns = np.concatenate([base.columns, others, np.zeros_like(others)])
    pairs = np.unique(rows * 2900 + columns)
    graph = app.graphs.from_pairs(base.sizes, pairs // 2900, pairs % 2900)
    switch = Switch(tmp_path, graph, width, 4, app.model.Plan(app.tiles.circulant(4, 0), dataflow, layout))
    found, wanted = switch.run(), switch.wanted()
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    assert max(len(lists[0]) for lists in switch.lists) > 1
    assert all(len(payload) <= app.model.SEGMENT for lists in switch.lists for part in lists for _, payload in part)
    # The reference says the same without looking at packets.
    whole = app.expected.aggregate(graph, switch.right, switch.plan, 4)
    local = app.expected.aggregate(graph, switch.right, replace(switch.plan, offload=np.zeros((4, 4), bool)), 4)
    assert (whole != local).any()
    own = switch.right.copy()
    here = switch.shared.owner[graph.rows] == switch.shared.owner[graph.columns]
    app.sums.add_in_order(own, graph.rows[here], graph.columns[here], switch.right)
    own[np.unique(switch.shared.offloaded(switch.plan)[0])] += wanted
    np.testing.assert_array_equal(whole.view(np.uint32), own.view(np.uint32))


@needs_clang
@pytest.mark.parametrize("dataflow", ["output", "weight"])
def test_offloaded_tiles_may_be_empty(tmp_path: Path, dataflow: str) -> None:
    sizes = app.graphs.Sizes(40, 2, 7, 5)
    graph = app.graphs.from_pairs(sizes, np.array([0, 1]), np.array([5, 0]))  # all of it is local
    switch = Switch(tmp_path, graph, 5, 4, app.model.Plan(app.tiles.circulant(4, 0), dataflow))
    assert switch.run().shape == (0, 5)


def test_bytes_of_packets_are_those_that_the_model_counts(tmp_path: Path) -> None:
    graph, nodes, width = graph_of(1500, 12000), 5, 16
    plan = app.model.Plan(random_offload(nodes))
    tiles = app.tiles.tiles_of(graph, nodes)
    sent = [app.packets.size(lists[0]) + app.packets.size(lists[1])
            for lists in Switch(tmp_path, graph, width, nodes, plan).lists]  # fmt: skip
    frames = [len(lists[0]) for lists in Switch(tmp_path, graph, width, nodes, plan).lists]
    counted = 4 * width * tiles.stored(plan.offload) + 4 * np.where(plan.offload, tiles.entries, 0).sum(axis=1)
    np.testing.assert_array_equal(np.array(sent) - 4 * np.array(frames), counted)
    near = np.where(plan.offload | np.eye(nodes, dtype=bool), 0, tiles.needed()) * 4 * width
    down = near.sum(axis=1) + 4 * width * tiles.results(plan.offload)
    cost = app.model.in_switch(app.model.Machine(), tiles, 7, width, plan)
    assert cost.bytes == max((counted + near.sum(axis=0)).max(), down.max())


MACHINES: list[Callable[[Any], Any]] = [
    lambda m: m,
    lambda m: replace(m, pipelines=5),
    lambda m: m.hosts(0.05),
    lambda m: replace(m, link=500.0, step=10),
    lambda m: replace(m, memory=4000),
]


@pytest.mark.parametrize("change", range(len(MACHINES)))
@pytest.mark.parametrize("dataflow", ["output", "weight"])
@pytest.mark.parametrize("by", ["total", "communication"])
def test_what_is_chosen_is_not_slower_than_either_extreme(change: int, dataflow: str, by: str) -> None:
    machine = MACHINES[change](app.model.Machine())
    for vertices, edges, columns in [(600, 900, 6), (600, 20000, 121), (5000, 60000, 47)]:
        tiles = app.tiles.tiles_of(graph_of(vertices, edges), 5)
        plan, cost = app.model.choose(machine, tiles, 50, columns, dataflow, by)
        assert cost == app.model.in_switch(machine, tiles, 50, columns, plan)
        assert cost.memory <= machine.memory
        for near in (0, 4):
            pure = app.model.Plan(app.tiles.circulant(5, near), dataflow)
            assert getattr(cost, by) <= getattr(app.model.in_switch(machine, tiles, 50, columns, pure), by)


@pytest.mark.parametrize("dataflow", ["output", "weight"])
def test_on_three_nodes_nothing_is_quicker(dataflow: str) -> None:
    machine = app.model.Machine()
    tiles = app.tiles.tiles_of(graph_of(600, 9000), 3)
    least = np.inf
    for bits in range(64):
        offload = np.zeros((3, 3), bool)
        offload[~np.eye(3, dtype=bool)] = [bits >> k & 1 for k in range(6)]
        for strips in app.model.STRIPS[:-1]:
            plan = app.model.Plan(offload, dataflow, "columns", strips)
            least = min(least, app.model.in_switch(machine, tiles, 50, 121, plan).total)
    assert app.model.choose(machine, tiles, 50, 121, dataflow)[1].total == least


def test_without_offloaded_tiles_it_is_the_exchange_of_needed_rows() -> None:
    machine, tiles = app.model.Machine(), app.tiles.tiles_of(graph_of(900, 7000), 4)
    none = app.model.in_switch(machine, tiles, 50, 16, app.model.Plan(np.zeros((4, 4), bool)))
    rows = app.model.needed_rows(machine, tiles, 50, 16)
    assert (none.bytes, none.communication, none.total) == (rows.bytes, rows.communication, rows.total)


def test_slower_hosts_and_narrower_links_cost_more() -> None:
    machine, tiles = app.model.Machine(), app.tiles.tiles_of(graph_of(900, 7000), 4)
    plan = app.model.Plan(app.tiles.circulant(4, 1))
    cost = app.model.in_switch(machine, tiles, 50, 16, plan)
    assert app.model.in_switch(machine.hosts(0.25), tiles, 50, 16, plan).total > cost.total
    assert app.model.in_switch(machine.hosts(0.25), tiles, 50, 16, plan).communication == cost.communication
    assert app.model.in_switch(replace(machine, link=25.0), tiles, 50, 16, plan).communication > cost.communication
    # The right-hand matrix is charged in each layer: twice its columns take longer than their indexes alone.
    assert (
        app.model.in_switch(machine, tiles, 50, 32, plan).bytes > cost.bytes + 4 * 16 * tiles.stored(plan.offload).min()
    )


def test_too_large_for_the_switch_says_by_how_much() -> None:
    tiles, plan = app.tiles.tiles_of(graph_of(900, 7000), 4), app.model.Plan(app.tiles.circulant(4, 0))
    needs = int(tiles.stored(plan.offload).sum()) * 4 * 16
    machine = app.model.Machine(memory=needs - (1 << 14))
    assert app.study.needs(tiles) == needs
    said = app.study.too_large("small", tiles, machine)
    assert said is not None
    assert ": 16.0 KB too much" in said
    assert app.study.too_large("small", tiles, replace(machine, memory=needs)) is None
    assert np.isinf(app.model.in_switch(machine, tiles, 7, 16, plan).total)
    assert np.isfinite(app.model.choose(machine, tiles, 7, 16)[1].total)
    found = app.study.all_offloaded(machine, tiles, "output", "columns")
    lines = app.study.as_lines("small", tiles, machine, [*app.study.baselines(machine, tiles), found])
    assert [line["lacks_bytes"] for line in lines if line["system"].startswith("switch")] == [1 << 14] * 2
    json.dumps(lines, allow_nan=False)


@needs_clang
def test_ranks_have_the_references_bits() -> None:
    graph, nodes = graph_of(257, 2000, classes=19), 3
    features, weights = app.graphs.features(graph.sizes, 1), app.graphs.weights(graph.sizes, 1)
    ways = app.job.plans_to_try(nodes, [app.model.Plan(random_offload(nodes))] * 2)
    outcomes = app.job.run(graph, features, weights, nodes, ways)
    assert [one.how for one in outcomes] == ["all_gather", "needed_rows", *["switch"] * 5]
    tiles = app.tiles.tiles_of(graph, nodes)
    rows = 4 * (16 + 19)
    assert [moved[0] for moved in outcomes[0].bytes] == (rows * tiles.shares).tolist()
    assert [moved[0] for moved in outcomes[1].bytes] == (rows * tiles.needed().sum(axis=0)).tolist()


def test_a_bit_that_differs_is_said() -> None:
    logits = np.random.default_rng(1).standard_normal((257, 9), np.float32)
    spoilt = logits.copy()
    spoilt.view(np.uint32)[100, 7] ^= 1
    plans = [app.model.Plan(app.tiles.circulant(3, 1), "weight", "indexes")] * 2
    app.job.compare("switch", plans, logits, logits.copy())
    said = "gcn: switch, weight, indexes: 1 of 257 rows differ from the reference, the first is 100"
    with pytest.raises(SystemExit, match=said):
        app.job.compare("switch", plans, logits, spoilt)


def test_digits_are_recognised() -> None:
    pytest.importorskip("sklearn")
    from threadpoolctl import threadpool_limits

    graph, features, labels = app.graphs.digits()
    assert (np.diff(graph.first) >= app.graphs.NEIGHBOURS - 1).all()  # a digit is among its own nearest
    with threadpool_limits(1):
        weights = app.learn.train(graph, features, labels, 1)
    plans = [app.model.Plan(app.tiles.circulant(3, 1))] * 2
    logits = app.expected.forward(graph, features, weights, plans, 3)
    assert app.learn.accuracy(logits, labels, 1) > 0.94
    assert app.learn.accuracy(logits[::-1], labels, 1) < 0.3


def command(*words: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "160"}
    return subprocess.run([sys.executable, str(APP / "run.py"), *map(str, words)], capture_output=True, text=True,
                          timeout=120, env=environment, check=False)  # fmt: skip


def test_command(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    done = command("--graphs", "ppi", "--scale", 4, "--nodes", 3, "--memory", 0.1, "--no-ranks", "--json", file)
    assert done.returncode == 0, done.stderr
    assert "too much" in done.stdout
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["op"] for line in lines} == {"gcn", "gcn_communication"}
    assert {line["verified"] for line in lines} == {None}
    assert {line["pipelines"] for line in lines} == {1, 3}
    assert any(not line["fits"] and line["lacks_bytes"] > 0 for line in lines)
    assert sum("ratio_by_hosts" in line for line in lines) >= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nodes", 25), "give 2 to 24"),
        (("--scale", 99), "--scale 99: give 1 to 37"),
        (("--memory", 0), "--memory 0: give megabytes above 0"),
        (("--seed", -1), "--seed -1: give 0 or more"),
        (("--json", "nowhere/lines"), "--json nowhere/lines: No such file or directory"),
    ],
)
def test_command_refuses(words: tuple[object, ...], said: str) -> None:
    done = command("--no-ranks", *words)
    assert done.returncode == 2
    assert said in done.stderr
