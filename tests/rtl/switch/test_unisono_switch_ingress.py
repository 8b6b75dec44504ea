"""unisono_switch_ingress: what is sound comes to its run and to the fold, byte for byte, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
import pytest
from bus import never, new_random, paces
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, scaled, simulate
from headers import MessageType
from ingress_bench import Bench
from unit_records import EAGER_BUFFERS, RUNS

LOOK_UP, LATENCY, TAIL, PERIOD = 3, 8, 3, 4


def random_fault(bench: Bench, run: int) -> None:
    """A frame that nobody sends who keeps to the protocol."""
    rng, terms, state = bench.rng, bench.terms[run // RUNS], bench.runs[run]
    segment = terms["segment_bytes"]
    length = rng.choice((0, 1, 64, terms["eager_limit"]))
    length = min(length, terms["eager_limit"])
    eager = bench.header(run, MessageType.EAGER, length)
    write = bench.header(run, MessageType.WRITE, segment, token_slot=run, token_generation=state.generation, last=False)
    write = replace(write, message_bytes=1 << 20)
    empty = bench.header(run, rng.choice((MessageType.REQUEST, MessageType.GRANT, MessageType.CREDIT)))
    cases = {
        "communicator": replace(eager, communicator=eager.communicator ^ 1 << rng.randrange(32)),
        "epoch": replace(eager, epoch=eager.epoch ^ 1 << rng.randrange(16)),
        "source": replace(eager, source=eager.source ^ 1 << rng.randrange(32)),
        "destination": replace(eager, destination=eager.destination ^ 1 << rng.randrange(32)),
        "point to point": replace(eager, point_to_point=True),
        "stream": replace(eager, stream=True),
        "tag": replace(eager, tag=eager.tag | 1 << rng.randrange(24, 32)),
        "not first": replace(eager, first=False),
        "not last": replace(eager, last=False),
        "beyond the eager limit": replace(
            eager, segment_bytes=terms["eager_limit"] + 1, message_bytes=terms["eager_limit"] + 1
        ),
        "data with a request": replace(empty, segment_bytes=65, message_bytes=65),
        "slot": replace(write, token_slot=write.token_slot ^ 1 << rng.randrange(16)),
        "generation": replace(write, token_generation=write.token_generation ^ 1 << rng.randrange(8, 16)),
    }
    # Of a window. What is sent ahead must be wrong whenever it comes, so no limit that may still be raised.
    windows = {}
    if not state.open:
        windows["no window"] = write
    elif state.over:
        windows["after the last"] = replace(write, first=False, offset=len(state.queue[0].payload))
    else:
        known = replace(write, first=False)
        windows["skipped"] = replace(known, offset=state.sent + segment)
        if state.sent:
            windows["again"] = replace(known, offset=state.sent - segment)
        if segment > 64:
            windows["cut"] = replace(known, offset=state.sent, segment_bytes=segment - 64)
        beyond = state.limit - state.sent + 1
        if state.limit == len(state.queue[0].payload) and beyond <= segment:
            windows["beyond the limit"] = replace(
                known, offset=state.sent, segment_bytes=beyond, message_bytes=state.limit + 1, last=True
            )
    if rng.random() < 0.5:
        cases = windows
    name = rng.choice(sorted(cases))
    header = cases[name]
    bench.send(header, rng.randbytes(header.segment_bytes), fault=name)


def random_step(bench: Bench, run: int) -> None:
    """The neighbour sends something that it may send, or a fault."""
    rng, state, entry = bench.rng, bench.runs[run], run // RUNS
    terms = bench.terms[entry]
    credits = rng.choice((0, 0, 0, 1, 3))
    kind = rng.choice(("eager", "eager", "request", "write", "write", "write", "grant", "credit", "fault", "bad"))
    if kind == "eager" and bench.member_credit[entry] > 0 and len(state.queue) < bench.depth:
        most = terms["eager_limit"]
        bench.eager(run, rng.choice((0, 1, most, rng.randint(1, most))), credits=credits)
    elif kind == "request" and len(state.queue) < bench.depth:
        most = terms["segment_bytes"]
        length = rng.choice((0, 1, most, most + 1, 2 * most, rng.randint(1, 9 * most)))
        bench.request(run, length, credits=credits)
    elif kind == "write":
        bench.write(run)
    elif kind == "grant":
        rising = [grant for grant in state.grants if grant.limit != grant.end]
        if len(state.grants) < 2 and rng.random() < 0.5:
            state.grants.append(grant := bench.new_grant(run))
            bench.send(bench.grant(run, grant, credits=credits))
        elif rising:
            grant = rng.choice(rising)
            grant.limit = rng.choice((grant.end, rng.randint(grant.limit, grant.end)))
            bench.send(bench.grant(run, grant, credits=credits))
            bench.seen["raises"] += 1
    elif kind == "credit":
        bench.send(bench.header(run, MessageType.CREDIT, credits=credits))
    elif kind == "fault":
        random_fault(bench, run)
    elif kind == "bad":
        random_bad(bench, run)


def random_bad(bench: Bench, run: int) -> None:
    """A payload of another length than its header says: its message is dropped, and what it took is free again."""
    rng, state, entry = bench.rng, bench.runs[run], run // RUNS
    found = bench.next_segment(run)
    if found is None or not found[1]:
        if bench.member_credit[entry] <= 0 or len(state.queue) >= bench.depth:
            return
        length = rng.randint(1, bench.terms[entry]["eager_limit"])
        found = bench.header(run, MessageType.EAGER, length), rng.randbytes(length)
    header, payload = found
    longer = rng.random() < 0.5 or len(payload) == 1
    payload = payload + b"x" if longer else payload[:-1]
    bench.counts["bad"] += 1
    bench.send(header, payload, fault=f"bad {header.type.name.lower()}")


def rest(bench: Bench, run: int) -> None:
    """What has begun is ended."""
    bench.write(run)
    for grant in bench.runs[run].grants:
        if grant.limit != grant.end:
            grant.limit = grant.end
            bench.send(bench.grant(run, grant))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_traffic(dut: Any) -> None:
    """Messages, writes, grants and faults of several communicators, at every pace."""
    bench = Bench(dut, "ingress")
    rng = bench.rng
    await bench.start()
    for entry, credits in ((0, 1), (6, 3)):
        await bench.open(entry, credits=credits)
    await bench.open(7, credits=EAGER_BUFFERS, segment_bytes=parameters()["BufferBytes"])
    control = cocotb.start_soon(bench.control())
    runs = [entry * RUNS + index for entry in bench.terms for index in range(RUNS)]
    for name, pace in paces(rng):
        for other, pause in paces(new_random(name)):
            bench.source.pauses, bench.own.pauses = [pace], [pause]
            bench.find_share = rng.choice((1.0, 0.3))
            bench.forget_share = rng.choice((0.0, 0.05))
            for _ in range(scaled(1600)):
                random_step(bench, rng.choice(runs))
                # Sometimes ahead of what is there, sometimes one by one.
                while len(bench.source.queues[0]) > rng.choice((0, 4, 40)):
                    await RisingEdge(dut.clk_i)
            quiet = cocotb.start_soon(bench.settled())
            while not quiet.done():
                for run in runs:
                    rest(bench, run)
                await ClockCycles(dut.clk_i, 5)
            await quiet
            bench.seen[f"{name}, {other}"] += 1
    dut._log.info("%s", dict(bench.seen))
    for what in (
        "eager",
        "request",
        "write",
        "grant",
        "credit",
        "raised",
        "raises",
        "grant over",
        "discarded",
        "extended",
    ):
        assert bench.seen[what] > 20, what
    for what in (
        "bad eager",
        "bad write",
        "again",
        "skipped",
        "beyond the limit",
        "cut",
        "slot",
        "generation",
        "source",
    ):
        assert bench.seen[what] > 0, what
    # The switch's credit is as much as was given, and taken once. One looks at a time.
    control.cancel()
    await ClockCycles(dut.clk_i, 1)
    for entry in bench.terms:
        while bench.credit[entry]:
            assert (await bench.look(entry * RUNS))["has_credit"]
            bench.credit[entry] -= 1
            await bench.command(entry * RUNS, "take_credit")
        assert not (await bench.look(entry * RUNS + 3))["has_credit"]


async def fill(bench: Bench, entry: int) -> None:
    """All buffers of an entry are taken."""
    for number in range(EAGER_BUFFERS):
        bench.eager(entry * RUNS + number % RUNS, 1 + number)
    await arrived(bench)


async def arrived(bench: Bench) -> None:
    """Until what was sent has been looked at."""
    await bench.source.drain()
    await ClockCycles(bench.dut.clk_i, 40 + 8 * bench.depth * RUNS)
    assert int(bench.dut.counter_faults_o.value) == bench.counts["faults"]
    assert int(bench.dut.counter_messages_o.value) == bench.counts["messages"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_has_no_room_is_dropped(dut: Any) -> None:
    bench = Bench(dut, "full")
    await bench.start()
    await bench.open(6, credits=EAGER_BUFFERS, segment_bytes=128, eager_limit=100)
    await bench.open(3, credits=EAGER_BUFFERS, segment_bytes=128, eager_limit=100)
    # Twice: buffers that were discarded are free again.
    for _ in range(2):
        await fill(bench, 6)
        bench.send(bench.header(6 * RUNS, MessageType.EAGER, 70), bytes(70), fault="no buffer")
        # One without data needs none, and another communicator has its own.
        bench.member_credit[6] += 1
        bench.eager(6 * RUNS, 0)
        bench.eager(3 * RUNS + 1, 9)
        await arrived(bench)
        for entry in (6, 3):
            for run in range(entry * RUNS, entry * RUNS + RUNS):
                while bench.runs[run].queue:
                    assert (await bench.look(run))["there"]
                    if len(bench.runs[run].queue[0].payload) == 0:
                        bench.member_credit[6] -= 1
                    await bench.pop(run, discard=True)
        await ClockCycles(dut.clk_i, 5)
        assert bench.member_credit[6] == EAGER_BUFFERS
    # A run has Depth messages.
    run = 3 * RUNS + 2
    for number in range(bench.depth):
        bench.request(run, 1000 + number)
    bench.send(bench.header(run, MessageType.REQUEST, message_bytes=5), fault="no place")
    bench.send(bench.header(run, MessageType.EAGER, 3), bytes(3), fault="no place")
    bench.request(run + 1, 77)
    await arrived(bench)
    for each in (run, run + 1):
        while bench.runs[each].queue:
            assert (await bench.look(each))["there"]
            await bench.pop(each, discard=True)
        assert not (await bench.look(each))["there"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def two_grants_of_a_run(dut: Any) -> None:
    bench = Bench(dut, "grants")
    await bench.start()
    await bench.open(4)
    run = 4 * RUNS + 3
    state = bench.runs[run]
    for _ in range(5):
        for _ in range(2):
            state.grants.append(grant := bench.new_grant(run))
            bench.send(bench.grant(run, grant))
        bench.send(bench.grant(run, bench.new_grant(run)), fault="a third grant")
        await arrived(bench)
        # A token is all of it.
        for name in ("slot", "generation"):
            other = replace(state.grants[1], **{name: getattr(state.grants[1], name) ^ 1})
            bench.send(bench.grant(run, other), fault="a third grant")
        for grant in (state.grants[1], state.grants[0]):
            grant.limit = grant.end + 1
            bench.send(bench.grant(run, grant))
        await arrived(bench)
        for _ in range(2):
            look = await bench.look(run)
            assert look["has_grant"]
            assert look["grant"]["limit"] == state.grants[0].limit
            state.grants.popleft()
            await bench.command(run, "pop_grant")
        assert not (await bench.look(run))["has_grant"]
        # An odd number in between, so that either place comes first.
        state.grants.append(grant := bench.new_grant(run))
        bench.send(bench.grant(run, grant))
        await arrived(bench)
        await bench.look(run)
        state.grants.popleft()
        await bench.command(run, "pop_grant")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_window_that_is_closed_takes_nothing(dut: Any) -> None:
    bench = Bench(dut, "closed")
    await bench.start()
    await bench.open(2, segment_bytes=128)
    run = 2 * RUNS + 1
    state = bench.runs[run]
    bench.request(run, 1000)
    await arrived(bench)
    assert (await bench.look(run))["there"]
    state.open, state.limit, state.generation = True, 256, 1
    await bench.command(run, "window_open", window_limit=256)
    assert bench.write(run)
    await arrived(bench)
    assert (await bench.look(run))["arrived"] == 128
    late = bench.next_segment(run)
    assert late is not None
    state.open, state.generation = False, 2
    await bench.command(run, "window_close")
    await bench.pop(run, discard=True)
    # It may have been under way: its data are dropped, its credit counts.
    bench.send(replace(late[0], credits=3), late[1])
    bench.send(replace(late[0], token_generation=2), late[1], fault="late")
    bench.send(replace(late[0], token_generation=0), late[1], fault="late")
    await arrived(bench)
    # The next message begins at 0.
    bench.request(run, 100)
    await arrived(bench)
    await bench.look(run)
    state.open, state.limit, state.generation, state.sent = True, 100, 3, 0
    await bench.command(run, "window_open", window_limit=100)
    look = await bench.look(run)
    assert (look["arrived"], look["whole"]) == (0, 0)
    bench.send(replace(late[0], credits=3), late[1])
    bench.send(replace(late[0], token_generation=2), late[1], fault="late")
    payload = state.queue[0].payload
    assert bench.write(run)
    await arrived(bench)
    look = await bench.look(run)
    assert (look["arrived"], look["whole"]) == (100, 1)
    await bench.read(run, payload, window=True)
    await ClockCycles(dut.clk_i, 20)
    assert not bench.reads


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def buffers_that_are_free_at_once(dut: Any) -> None:
    """Short messages leave in every cycle while others are thrown away: each gives its credit back."""
    bench = Bench(dut, "at once")
    await bench.start()
    await bench.open(1, credits=EAGER_BUFFERS, segment_bytes=64, eager_limit=64)
    await bench.open(7, credits=EAGER_BUFFERS, segment_bytes=64, eager_limit=64)
    for number in range(12):
        bench.eager(RUNS + number % RUNS, 64)
        bench.eager(7 * RUNS + number % RUNS, 1 + number)
    await arrived(bench)
    bench.own.pauses = [lambda: True]
    for number in range(12):
        run = RUNS + number % RUNS
        await bench.look(run)
        await bench.read(run, bench.runs[run].queue[0].payload, window=False)
        await bench.pop(run)
    await ClockCycles(dut.clk_i, 5)
    bench.own.pauses = [lambda: False]
    # As often as the control does it.
    for number in range(12):
        run = 7 * RUNS + number % RUNS
        await bench.look(run)
        await bench.pop(run, discard=True)
        await RisingEdge(dut.clk_i)
    await ClockCycles(dut.clk_i, 40)
    assert not bench.reads
    assert (bench.freed[1], bench.freed[7]) == (12, 12)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_and_rate(dut: Any) -> None:
    bench = Bench(dut, "latency")
    await bench.start()
    most_bytes = parameters()["BufferBytes"]
    await bench.open(5, credits=EAGER_BUFFERS, segment_bytes=most_bytes, eager_limit=most_bytes)
    most = bench.terms[5]["segment_bytes"] // 64

    async def latency(length: int) -> int:
        """From the header's word to the event."""
        bench.events.clear()
        before = bench.source.sent[0]
        bench.eager(5 * RUNS, length)
        while bench.source.sent[0] == before:
            await RisingEdge(dut.clk_i)
        begin = bench.cycle
        await arrived(bench)
        return bench.events[0][0] - begin

    # One word is told of before it is in its place. The entry found last needs no look-up.
    for words, cycles in ((0, LOOK_UP), (0, 0), (1, 0), (2, 2), (most, most)):
        took = await latency(64 * words)
        assert took == LATENCY + cycles, f"{took} cycles with {words} words"
    dut.forget_i.value = 1
    await ClockCycles(dut.clk_i, 1)
    dut.forget_i.value = 0
    took = await latency(64)
    assert took == LATENCY + LOOK_UP, f"{took} cycles after entries have changed"
    # A last word that is late.
    await latency(0)
    bench.source.sent[0], late = 0, bench.cycle + 200
    bench.source.pauses = [lambda: bench.source.sent[0] == most and bench.cycle < late]
    bench.eager(5 * RUNS + 3, 64 * most)
    bench.events.clear()
    while bench.source.sent[0] <= most:
        await RisingEdge(dut.clk_i)
    begin = bench.cycle
    assert begin >= late
    await arrived(bench)
    assert bench.events[0][0] - begin == TAIL, f"{bench.events[0][0] - begin} cycles from the last word"
    bench.source.pauses = [never]
    for words in (0, 1, most):
        bench.events.clear()
        for number in range(4):
            bench.eager(5 * RUNS + 1 + number % 2, 64 * words)
        await arrived(bench)
        periods = {b[0] - a[0] for a, b in zip(bench.events, bench.events[1:], strict=False)}
        assert periods == {PERIOD + words}, f"{periods} cycles with {words} words"


@pytest.mark.parametrize(("buffer_bytes", "segments", "depth"), [(256, 2, 8), full(128, 4, 8), full(1024, 4, 64)])
def test_unisono_switch_ingress(buffer_bytes: int, segments: int, depth: int) -> None:
    values = {"BufferBytes": buffer_bytes, "WindowSegments": segments, "Depth": depth}
    simulate("unisono_switch_ingress", __file__, values, limit_s=300)
