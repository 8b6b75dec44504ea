"""The course of a measurement, with systems whose times are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import pytest
from unisono.bench.machine import Facts, Processor
from unisono.bench.network import FLOORS, Network, divide
from unisono.bench.plan import Cell, Effort
from unisono.bench.report import record
from unisono.bench.session import Session
from unisono.bench.systems import Outcome, System, SystemFailedError
from unisono.bench.targets import Target

FACTS = Facts(Processor("a processor"))
EFFORT = Effort(rounds=8, most_rounds=24, block_seconds=0.01, limit_seconds=0.001, sample_seconds=0.01)
CELL = Cell("allreduce", 1024, "fp32", "malloc", 2)


class Fake:
    """A system that takes `seconds(time)` for a call, on a clock that all share."""

    clock = 0.0

    def __init__(self, name: str, seconds: Callable[[float], float], **changes: Any) -> None:
        self.name = name
        self.size = 2
        self.is_unisono = name not in ("openmpi", "mpich", "limit", "sockets")
        self.seconds = seconds
        self.asked: list[dict[str, Any]] = []
        self.fails = changes.pop("fails", False)
        self.changes = changes
        self.ended = ""

    def start(self) -> None:
        pass

    def offers(self, op: str) -> bool:
        return self.name not in FLOORS or op in FLOORS[self.name]

    def stop(self) -> None:
        self.ended = "stopped"

    def kill(self) -> None:
        self.ended = "killed"

    def block(self, **arguments: Any) -> Outcome:
        self.asked.append(arguments)
        if self.fails:
            raise SystemFailedError("no answer in time from rank 1")
        assert arguments["calls"] >= 1
        total = arguments["calls"] * self.seconds(Fake.clock)
        Fake.clock += total
        each = total / arguments["calls"]
        outcome = {
            "seconds": total,
            "stolen": 0.0,
            "median": each,
            "p99": 3 * each,
            "verified": True,
            "algorithm": None,
        }
        return Outcome(**(outcome | self.changes))


def session(*systems: Fake, limit: Fake | None = None, crowded: bool = False) -> Session:
    fakes = [cast(System, system) for system in systems]
    return Session(fakes, cast(System, limit or Fake("limit", lambda _: 1e-7)), EFFORT, crowded=crowded)


def test_figures_of_a_cell() -> None:
    row = session(Fake("unisono", lambda _: 2e-6), Fake("openmpi", lambda _: 8e-6)).measure(CELL)
    ours, peer = row.systems
    assert ours.ratios["openmpi"].value == pytest.approx(0.25)
    assert ours.limit_ratio == pytest.approx(20)
    assert (row.rounds, row.quiet, row.noisy) == (8, 8, False)
    line = record(ours, FACTS)
    assert line["median_us"] == pytest.approx(2.0)
    assert line["p99_us"] == pytest.approx(6.0)
    assert line["ratio"] == {"openmpi": pytest.approx(0.25)}
    assert record(peer, FACTS)["ratio"] == {}


def test_a_pingpong_counts_one_way() -> None:
    row = session(Fake("unisono", lambda _: 2e-6)).measure(Cell("pingpong", 4, "fp32", "malloc", 2))
    assert record(row.systems[0], FACTS)["median_us"] == pytest.approx(1.0)
    assert record(row.systems[0], FACTS)["p99_us"] == pytest.approx(3.0)


def test_a_machine_that_changes_speed_does_not_change_the_ratio() -> None:
    def speed(time: float) -> float:
        return 1.0 + 0.25 * (int(time / 0.05) % 2)

    ours = Fake("unisono", lambda time: 2e-6 * speed(time))
    peer = Fake("openmpi", lambda time: 4e-6 * speed(time))
    row = session(ours, peer).measure(CELL)
    assert row.systems[0].ratios["openmpi"].value == pytest.approx(0.5, rel=0.01)


def test_disturbed_rounds_are_left_out_and_made_up_for() -> None:
    # The limit is slow during every other tenth of a second, and so is Unisono, but not its peer.
    Fake.clock = 0.0

    def slow(time: float) -> float:
        return 3.0 if int(time / 0.1) % 2 else 1.0

    limit = Fake("limit", lambda time: 1e-7 * slow(time))
    row = session(Fake("unisono", lambda time: 2e-6 * slow(time)), Fake("mpich", lambda _: 4e-6), limit=limit).measure(
        CELL
    )
    assert 5 <= row.quiet < row.rounds
    assert row.systems[0].ratios["mpich"].value == pytest.approx(0.5)
    assert max(row.systems[0].kept_times) == pytest.approx(2e-6)


def test_rounds_with_stolen_cores_are_left_out_unless_ranks_share_them() -> None:
    thief = {"stolen": 0.009}
    row = session(Fake("unisono", lambda _: 2e-6, **thief)).measure(CELL)
    assert (row.quiet, row.rounds, row.noisy) == (0, EFFORT.most_rounds, True)
    assert len(row.systems[0].kept) == EFFORT.most_rounds // 4
    row = session(Fake("unisono", lambda _: 2e-6, **thief), crowded=True).measure(CELL)
    assert (row.quiet, row.noisy) == (8, False)


def test_all_systems_get_the_same_call_and_new_data_in_every_block() -> None:
    systems = [Fake("unisono", lambda _: 2e-6), Fake("openmpi", lambda _: 3e-6)]
    session(*systems).measure(Cell("bcast", 4096, "fp64", "allocated", 4, "chain"))
    for system in systems:
        assert {(ask["op"], ask["dtype"], ask["count"], ask["buffers"]) for ask in system.asked} == {
            ("bcast", "fp64", 512, "allocated")
        }
        assert all(ask["calls"] % 4 == 0 for ask in system.asked)  # every rank is the root equally often
    assert {ask["algorithm"] for ask in systems[0].asked} == {"chain"}
    assert {ask["algorithm"] for ask in systems[1].asked} == {None}
    seeds = [ask["seed"] for system in systems for ask in system.asked]
    assert len(set(seeds)) == len(seeds)


def test_the_order_of_systems_changes() -> None:
    order: list[str] = []
    systems = [Fake(name, lambda _: 2e-6) for name in ("unisono", "openmpi", "mpich")]
    for system in systems:
        system.seconds = lambda _, name=system.name: (order.append(name), 2e-6)[1]  # type: ignore[misc]
    session(*systems).measure(CELL)
    rounds = order[len(order) - 3 * EFFORT.rounds - 3 : -3]
    assert {tuple(rounds[i : i + 3]) for i in range(0, len(rounds), 3)} == set(
        itertools.permutations(("unisono", "openmpi", "mpich"))
    ), "so that none follows another one more often than others do"


def test_a_peer_that_fails_does_not_stop_the_others_and_is_given_up() -> None:
    peer = Fake("mpich", lambda _: 1.0, fails=True)
    measuring = session(Fake("unisono", lambda _: 2e-6), peer, Fake("openmpi", lambda _: 4e-6))
    rows = [measuring.measure(CELL) for _ in range(4)]
    for row in rows:
        assert set(row.systems[0].ratios) == {"openmpi"}
        line = record(row.systems[1], FACTS)
        assert (line["median_us"], line["iterations"], line["verified"]) == (None, 0, False)
    assert [row.systems[1].failure for row in rows] == 2 * ["no answer in time from rank 1"] + 2 * ["given up"]
    assert len(peer.asked) == 2


def test_a_peer_that_fails_between_rounds() -> None:
    peer = Fake("mpich", lambda _: 4e-6)

    def seconds(_: float) -> float:
        peer.fails = len(peer.asked) > 6
        return 4e-6

    peer.seconds = seconds
    row = session(Fake("unisono", lambda _: 2e-6), peer).measure(CELL)
    assert row.systems[1].failure is not None
    assert row.systems[0].ratios == {}
    assert row.systems[0].limit_ratio == pytest.approx(20)


def test_a_wrong_result_in_any_block_counts() -> None:
    row = session(Fake("unisono", lambda _: 2e-6, verified=False)).measure(CELL)
    assert record(row.systems[0], FACTS)["verified"] is False


def test_systems_are_asked_to_end_or_else_made_to() -> None:
    fake, limit = Fake("unisono", lambda _: 1.0), Fake("limit", lambda _: 1.0)
    with session(fake, limit=limit):
        pass
    assert (fake.ended, limit.ended) == ("stopped", "stopped")
    with pytest.raises(KeyboardInterrupt), session(fake, limit=limit):
        raise KeyboardInterrupt
    assert (fake.ended, limit.ended) == ("killed", "killed")


def test_the_limit_is_the_larger_one() -> None:
    limit = Fake("limit", lambda _: 0.0)
    times = {"line": 1e-7, "share": 3e-7, "core": 1.0}  # a line's time is there and back
    limit.seconds = lambda _: times[limit.asked[-1]["algorithm"]]
    row = session(Fake("unisono", lambda _: 6e-7), limit=limit).measure(CELL)
    assert row.limit.algorithm == "share"
    assert row.systems[0].limit_ratio == pytest.approx(2)
    row = session(Fake("unisono", lambda _: 6e-7), limit=limit).measure(Cell("barrier", 0, "fp32", "malloc", 2))
    assert row.limit.algorithm == "line"
    assert row.systems[0].limit_ratio == pytest.approx(12)


def limits(*, copy: float, cells: float, refused: bool = False) -> Fake:
    """A limit whose ways take these times; a line takes 0.1 µs, the share of a call 1 µs."""
    times = {"line": 2e-7, "share": 1e-6, "copy": copy, "cells": cells}
    limit = Fake("limit", lambda _: 0.0)

    def block(**arguments: Any) -> Outcome:
        limit.asked.append(arguments)
        if refused and arguments["algorithm"] == "copy":
            return Outcome(1.0, 0.0, 0.0, 0.0, True, "refused")
        return Outcome(arguments["calls"] * times[arguments["algorithm"]], 0.0, 0.0, 0.0, True, None)

    limit.block = block  # type: ignore[method-assign]
    return limit


@pytest.mark.parametrize(
    ("cell", "limit", "kind", "ratio"),
    [
        (Cell("bcast", 1 << 20, "fp32", "malloc", 2), limits(copy=5e-6, cells=4e-6), "cells", 2.0),
        (Cell("bcast", 1 << 20, "fp32", "malloc", 2), limits(copy=2e-6, cells=4e-6), "copy", 4.0),
        (Cell("bcast", 1 << 20, "fp32", "registered", 2), limits(copy=2e-6, cells=4e-6), "copy", 4.0),
        (Cell("bcast", 1 << 20, "fp32", "malloc", 2), limits(copy=2e-6, cells=4e-6, refused=True), "cells", 2.0),
        (Cell("bcast", 1 << 20, "fp32", "allocated", 2), limits(copy=2e-6, cells=4e-6), "share", 8.0),
        (Cell("bcast", 1 << 10, "fp32", "malloc", 2), limits(copy=2e-6, cells=4e-6), "share", 8.0),
        (Cell("bcast", 1 << 20, "fp32", "malloc", 2), limits(copy=5e-8, cells=4e-6), "line", 80.0),
        (Cell("barrier", 0, "fp32", "malloc", 2), limits(copy=5e-6, cells=4e-6), "line", 80.0),
    ],
)
def test_the_limit_is_that_of_the_kind_of_memory(cell: Cell, limit: Fake, kind: str, ratio: float) -> None:
    measuring = session(Fake("unisono", lambda _: 8e-6), limit=limit)
    row = measuring.measure(cell)
    assert row.limit.algorithm == kind
    assert row.systems[0].limit_ratio == pytest.approx(ratio)
    tried = [asked for asked in limit.asked if asked["algorithm"] == "copy"]
    refused = kind == "cells" and len(tried) == 1
    assert measuring.kernel_copies is (None if not tried else not refused)
    assert record(row.limit, measuring.facts(FACTS.processor))["kernel_copies"] is measuring.kernel_copies


def test_the_way_of_a_cache_line_is_told() -> None:
    limit = Fake("limit", lambda _: 1e-7)
    measuring = session(Fake("unisono", lambda _: 2e-6), limit=limit)
    assert measuring.facts(FACTS.processor).cache_line_ns is None
    measuring.machine_limit("cache_line", "fp32", 64)
    assert measuring.facts(FACTS.processor).cache_line_ns == pytest.approx(50)
    limit.seconds = lambda _: 4e-7  # the host has moved the cores
    line = record(measuring.measure(CELL).systems[0], measuring.facts(FACTS.processor))
    assert line["cache_line_ns"] == pytest.approx(200)
    assert line["processor"]["name"] == "a processor"


def test_another_state_of_unisono_is_a_peer_and_gets_the_same_call() -> None:
    before = Fake("before", lambda _: 4e-6)
    row = session(Fake("unisono", lambda _: 2e-6), before).measure(Cell("bcast", 4096, "fp32", "malloc", 2, "chain"))
    assert row.systems[0].ratios["before"].value == pytest.approx(0.5)
    assert {asked["algorithm"] for asked in before.asked} == {"chain"}
    assert record(row.systems[1], FACTS)["network"] == "shm"


def test_all_sets_of_changing_counts_are_in_every_block() -> None:
    ours = Fake("unisono", lambda _: 2e-3)  # slower than a block should be
    session(ours).measure(Cell("gatherv", 4096, "fp32", "malloc", 3, counts="changing"))
    assert {asked["counts"] for asked in ours.asked if asked["op"] == "gatherv"} == {"changing"}
    assert all(asked["calls"] % 48 == 0 for asked in ours.asked)


def test_a_v_collective_is_compared_with_what_it_generalises() -> None:
    ours = Fake("unisono", lambda _: 0.0)
    real = ours.block

    def block(**arguments: Any) -> Outcome:
        ours.seconds = lambda _: 6e-6 if arguments["op"] == "gatherv" else 4e-6
        return real(**arguments)

    ours.block = block  # type: ignore[method-assign]
    measuring = session(ours, Fake("openmpi", lambda _: 3e-6))
    for counts in ("equal", "changing"):
        row = measuring.measure(Cell("gatherv", 4096, "fp32", "malloc", 2, counts=counts))
        assert [measured.system for measured in row.systems] == ["unisono", "openmpi", "uniform"]
        assert row.systems[0].ratios["uniform"].value == pytest.approx(1.5)
        assert row.systems[2].ratios == {}
        assert record(row.systems[2], FACTS)["median_us"] == pytest.approx(4.0)
    made = {(asked["op"], asked["counts"]) for asked in ours.asked}
    assert made == {("gatherv", "equal"), ("gatherv", "changing"), ("gather", "equal")}
    row = measuring.measure(Cell("gather", 4096, "fp32", "malloc", 2))
    assert [measured.system for measured in row.systems] == ["unisono", "openmpi"]


def test_calls_in_flight_are_compared_with_the_same_calls_each_waited_for() -> None:
    ours = Fake("unisono", lambda _: 0.0)
    real = ours.block

    def block(**arguments: Any) -> Outcome:
        ours.seconds = lambda _: 2e-6 if arguments["op"] == "inflight" else 5e-6
        return real(**arguments)

    ours.block = block  # type: ignore[method-assign]
    row = session(ours, Fake("openmpi", lambda _: 4e-6)).measure(Cell("inflight", 4, "fp32", "malloc", 2, "ring"))
    assert [measured.system for measured in row.systems] == ["unisono", "openmpi", "waited"]
    ratios = {name: ratio.value for name, ratio in row.systems[0].ratios.items()}
    assert ratios == {"openmpi": pytest.approx(0.5), "waited": pytest.approx(0.4)}
    assert {(asked["op"], asked["algorithm"]) for asked in ours.asked} == {("inflight", "ring"), ("waited", "ring")}
    target = Target("in flight", ("inflight",), 4, 4, waited=0.6)
    assert target.is_met(row.systems[0]) is True
    assert Target("in flight", ("inflight",), 4, 4, waited=0.3).is_met(row.systems[0]) is False


def test_a_disturbed_calibration_does_not_keep_blocks_short() -> None:
    ours = Fake("unisono", lambda _: 0.0)
    real = ours.block

    def block(**arguments: Any) -> Outcome:
        ours.seconds = lambda _: 2e-6 if len(ours.asked) > 2 else 1e-2  # the first looks meet something else
        return real(**arguments)

    ours.block = block  # type: ignore[method-assign]
    row = session(ours).measure(CELL)
    measured = row.systems[0]
    assert measured.made[0] == 1
    assert measured.made[-1] >= EFFORT.block_seconds / 2 / 2e-6
    assert measured.calls == sum(measured.made[i] for i in measured.kept)
    assert record(measured, FACTS)["iterations"] == measured.calls


def test_between_hosts_plain_sockets_take_the_place_of_the_limit() -> None:
    network = Network("tcp", divide(4, 2))
    sockets = Fake("sockets", lambda _: 1e-6)
    systems = (Fake("unisono", lambda _: 2e-6), sockets)
    row = session(*systems).measure(Cell("allreduce", 4, "fp32", "malloc", 4, network=network))
    assert (row.limit.system, row.limit.limit_ratio) == ("sockets", 1.0)
    by_name = {measured.system: measured for measured in row.systems}
    assert set(by_name) == {"unisono", "flat"}
    assert by_name["unisono"].limit_ratio == pytest.approx(2)
    assert by_name["unisono"].ratios["flat"].value == pytest.approx(1)
    line = record(row.limit, FACTS)
    assert (line["network"], line["hosts"], line["link"]) == ("tcp", 2, "loopback")
    # They do not have all operations.
    asked = len(sockets.asked)
    row = session(*systems).measure(Cell("bcast", 4, "fp32", "malloc", 4, network=network))
    assert len(sockets.asked) == asked
    assert (row.limit.times, row.limit.failure) == ([], None)
    assert next(measured for measured in row.systems if measured.system == "unisono").limit_ratio is None
