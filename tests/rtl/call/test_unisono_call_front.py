"""unisono_call_front: hundreds of random calls of host and kernels, chains, failures, deadlines; measured latencies."""

from __future__ import annotations

from itertools import cycle, pairwise
from pathlib import Path

import cocotb
import pytest
from bus import bursts, never, new_random, start_clock_and_reset
from call_bench import CODE, REGISTER, Call, FrontBench, random_pause
from call_descriptors import (
    NOP_AWAIT,
    NOP_PLAIN,
    NOP_RUN,
    NOP_START,
    bad_descriptor,
    encode,
    expected_code,
    random_descriptor,
    spec,
)
from cocotb.triggers import RisingEdge, Timer
from cocotb.utils import get_sim_time
from hdl import full, parameters, simulate

LOADED = 0xFFFF & ~(1 << 5 | 1 << 9)
PROGRAMS = 16


def make_bench(dut, **options):
    given = parameters()
    return FrontBench(dut, kernels=given["KernelPorts"], clock_mhz=given["ClockMHz"], **options)


class Maker:
    """Random calls of one requester: chains among its last calls, ids used anew once they have been answered."""

    def __init__(self, bench: FrontBench, requester: int, *, hang: float = 0.1, fail: float = 0.15) -> None:
        self.bench, self.requester = bench, requester
        self.rng = new_random(f"maker {requester}")
        self.hang, self.fail = hang, fail
        self.next_id = requester << 24 | 1
        self.recent: list[Call] = []
        self.count = 0

    def _id(self) -> int:
        answered = [c for c in self.recent if c.answer is not None and c.call_id]
        if answered and self.rng.random() < 0.1:
            call_id = self.rng.choice(answered).call_id
            if not any(c.call_id == call_id and c.answer is None for c in self.recent):
                return call_id
        self.next_id += 1
        return self.next_id

    def make(self) -> tuple[Call, int | None]:
        """A call, and the length of its packet if that is wrong."""
        rng = self.rng
        call_id = self._id()
        waits: list[Call] = []
        fixed: dict[str, int] = {}
        latest = {c.call_id: c for c in self.recent}
        latest.pop(call_id, None)
        latest.pop(0, None)
        for name in ("wait_for0", "wait_for1"):
            if latest and rng.random() < 0.3:
                waits.append(rng.choice(list(latest.values())[-8:]))
                fixed[name] = waits[-1].call_id
            elif rng.random() < 0.05:
                fixed[name] = 0xDEAD_0000 | rng.getrandbits(12)  # never given: nothing to wait for
        fixed["deadline_us"] = rng.choice((0, 0, 0, 200))
        length = None
        kernels = self.bench.kernels
        call = Call(self.requester, self.count, 0, waits=waits, items=rng.randint(1, 4), delay=rng.randint(0, 60))
        kind = rng.random()
        if kind < 0.08:
            call.value = bad_descriptor(rng, call_id, **fixed)
        elif kind < 0.28:
            call.value = random_descriptor(rng, call_id, collective=0, algorithm=NOP_PLAIN, **fixed)
        elif kind < 0.4:
            call.plan = "kernel"
            call.code = rng.choice((0, 0, 0, 21))
            call.delay = rng.randint(1, 200)
            fixed["deadline_us"] = rng.choice((0, 200))
            if rng.random() < self.hang:
                fixed["deadline_us"], call.delay = rng.randint(1, 8), rng.randint(1, 1000)
            call.value = random_descriptor(
                rng, call_id, collective=0, algorithm=NOP_RUN, root=rng.randrange(kernels), **fixed
            )
        else:
            if rng.random() < 0.1:
                fixed |= {"collective": int(spec.Collective.PROGRAM), "program": rng.choice((0, 3, 8, 15))}
            if rng.random() < self.hang:
                call.plan = rng.choice(("hang", "hang-open"))
                fixed["deadline_us"] = rng.randint(1, 12)
            elif rng.random() < self.fail:
                call.plan = rng.choice(("cpu", "fault"))
                call.code = rng.randint(1, 23)
            call.value = random_descriptor(rng, call_id, **fixed)
        call.refused = expected_code(call.value, kernels, PROGRAMS, LOADED)
        if self.requester and rng.random() < 0.03:
            length = rng.choice((64, 192, 256))
            if length == 64:
                call.value &= (1 << 512) - 1
                call.waits = []
            call.refused = expected_code(call.value, kernels, PROGRAMS, LOADED) or int(CODE.INVALID_ARGUMENT)
        self.count += 1
        self.recent = [*self.recent[-30:], call]
        return call, length


async def feed_kernel(bench, maker, count):
    requester = maker.requester
    queue = bench.source.queues[requester - 1]
    rng = new_random(f"feed {requester}")
    for _ in range(count):
        while len(queue) > 2:
            bench.collect_kernels()
            await Timer(40, "ns")
        if rng.random() < 0.05:
            await Timer(rng.randint(100, 4000), "ns")
        bench.collect_kernels()
        call, length = maker.make()
        bench.submit(call, length)


async def feed_host(bench, maker, count):
    for _ in range(count):
        call, _ = maker.make()
        await bench.ring(call)


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def random_calls(dut):
    """Every call is answered once and rightly, whatever the timing of the other sides."""
    bench = make_bench(dut)
    rng = new_random("random")
    await start_clock_and_reset(dut)
    dut.program_loaded_i.value = LOADED
    bench.start()
    assert bench.axi is not None
    for channel in (bench.axi.write_if.aw_channel, bench.axi.write_if.w_channel, bench.axi.read_if.ar_channel):
        channel.set_pause_generator(random_pause(rng, 0.2))
    for channel in (bench.axi.write_if.b_channel, bench.axi.read_if.r_channel):
        channel.set_pause_generator(random_pause(rng, 0.4))
    stop = False
    makers = [Maker(bench, r) for r in range(bench.kernels + 1)]
    reader = cocotb.start_soon(bench.collect_host(lambda: stop))
    for work, source, sink in ((0.3, never, never), (0.9, bursts(rng), bursts(rng)), (0.0, never, bursts(rng))):
        bench.work_share = work
        bench.control_share = 0.01
        bench.source.pauses = [source] * bench.kernels
        bench.sink.pauses = [sink] * bench.kernels
        feeds = [cocotb.start_soon(feed_kernel(bench, maker, 120)) for maker in makers[1:]]
        feeds.append(cocotb.start_soon(feed_host(bench, makers[0], 20)))
        for feed in feeds:
            await feed
        await bench.all_answered(200_000)
        bench.by_tag.clear()
    stop = True
    await reader
    count = len(bench.answers)
    for _ in range(2000):
        await RisingEdge(dut.clk_i)
    bench.collect_kernels()
    assert len(bench.answers) == count == len(bench.calls)
    calls = await bench.axi.read(int(REGISTER.CALLS), 4)
    assert int.from_bytes(calls.data, "little") == 0
    places = 8 + bench.kernels
    assert bench.deadlines
    for us, cycles in bench.deadlines:
        low, high = us * bench.clock_mhz, (us + 1) * bench.clock_mhz + 2 * places + 3
        assert low <= cycles <= high, f"deadline of {us} us after {cycles} cycles"
    codes = {code for _, _, code in bench.answers}
    assert {0, int(CODE.TIMEOUT), int(CODE.INVALID_ARGUMENT)} <= codes
    assert bench.most_active >= 6
    dut._log.info(f"{count} calls, {len(bench.deadlines)} deadlines, {bench.cycle} cycles, codes {sorted(codes)}")


def clock() -> int:
    """Clock cycles since the simulation began."""
    return round(get_sim_time("ns") / 4)


async def directed(dut, **options):
    """A bench whose engine is quick."""
    bench = make_bench(dut, hurry=1.0, **options)
    bench.work_share = 0.0
    await start_clock_and_reset(dut)
    dut.program_loaded_i.value = LOADED
    bench.start()
    return bench


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latencies(dut):
    """The figures of the documentation."""
    bench = await directed(dut)
    rng = new_random("latency")

    async def kernel_nop(call_id):
        bench.submit(Call(1, call_id, encode(call_id=call_id)))
        begin = end = None
        while end is None:
            await RisingEdge(dut.clk_i)
            if begin is None and int(dut.call_valid_i.value) & 1:
                begin = clock()
            if int(dut.answer_valid_o.value) & 1:
                end = clock()
        return end - begin

    for _ in range(10):
        await RisingEdge(dut.clk_i)
    measured = {await kernel_nop(call_id) for call_id in range(1, 12)}
    await bench.all_answered(100)
    dut._log.info(f"nop of a kernel, first word on offer to answer on offer: {measured} cycles")
    # Words narrower than four rows of the descriptor take longer.
    longer = 4 * (max(32 // bench.source.data_bytes, 1) - 1)
    assert measured == {KERNEL_NOP + longer}

    # Calls in a row: the time from one answer to the next.
    for call_id in range(20, 40):
        bench.submit(Call(1, call_id, encode(call_id=call_id)))
    ends = []
    while len(ends) < 20:
        await RisingEdge(dut.clk_i)
        if int(dut.answer_valid_o.value) & 1:
            ends.append(clock())
    apart = {after - before for before, after in pairwise(ends[2:])}
    dut._log.info(f"nops in a row: one in {apart} cycles")
    assert max(apart) <= CALL_TIME + longer

    call = Call(1, 10, random_descriptor(rng, 77, collective=int(spec.Collective.BARRIER)))
    bench.submit(call)
    times: dict[str, int] = {}
    while "answer" not in times:
        await RisingEdge(dut.clk_i)
        for name, event in (
            ("call", int(dut.call_valid_i.value) & 1),
            ("work", int(dut.work_valid_o.value)),
            ("finished", int(dut.finished_valid_i.value)),
            ("clear", int(dut.clear_valid_o.value)),
            ("answer", int(dut.answer_valid_o.value) & 1),
        ):
            if event and name not in times:
                times[name] = clock()
    dut._log.info(
        f"call to work item {times['work'] - times['call']} cycles, "
        f"finished to clear {times['clear'] - times['finished']}, "
        f"clear to answer {times['answer'] - times['clear']} with blocks that answer at once"
    )
    assert times["work"] - times["call"] == KERNEL_WORK + longer

    # The host: doorbell alone, then with its descriptor and with the read of the completion.
    assert bench.axi is not None
    for whole in (False, True):
        call = Call(0, 100 + whole, encode(call_id=900 + whole))
        if not whole:
            await bench.axi.write(int(REGISTER.CALL_SLOT), call.value.to_bytes(128, "little"))
        bench.submit(call)
        begin = clock()
        if whole:
            await bench.axi.write(int(REGISTER.CALL_SLOT), call.value.to_bytes(128, "little"))
        await bench.axi.write(int(REGISTER.DOORBELL), b"\0\0\0\0")
        status = 0
        while not status & 8:
            status = int.from_bytes((await bench.axi.read(int(REGISTER.STATUS), 4)).data, "little")
        call_id = int.from_bytes((await bench.axi.read(int(REGISTER.COMPLETED), 4)).data, "little")
        assert call_id == 900 + whole
        code = int.from_bytes((await bench.axi.read(int(REGISTER.COMPLETED_CODE), 4)).data, "little")
        assert code == 1 << 31
        call.answer = 0
        dut._log.info(
            f"nop of the host, {'with' if whole else 'without'} writing its descriptor, polled: "
            f"{clock() - begin} cycles"
        )


KERNEL_NOP = 9
KERNEL_WORK = 8
CALL_TIME = 6


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def search_time(dut):
    """The search takes a cycle for every four outstanding calls, and for every four failures of the requester."""
    bench = await directed(dut)
    rng = new_random("search")
    copy, edge = int(spec.Collective.COPY), RisingEdge(dut.clk_i)

    async def nop_of_second(call_id):
        nop = Call(2, call_id, encode(call_id=call_id))
        bench.submit(nop)
        while not int(dut.call_valid_i.value) & 2:
            await edge
        begin = bench.cycle
        while not int(dut.answer_valid_o.value) & 2:
            await edge
        return bench.cycle - begin

    times = {(0, 0): await nop_of_second(1)}
    failures = hanging = 0
    for count in (1, 9, 17):
        while failures < count:
            failures += 1
            refused = Call(2, 0, encode(call_id=100 + failures, count=1 << 40), refused=int(CODE.INVALID_COUNT))
            bench.submit(refused)
            await bench.all_answered(100)
        times[0, failures] = await nop_of_second(1)
    for count in (8, 16, 24):
        while hanging < count:
            hanging += 1
            bench.submit(Call(1, 0, random_descriptor(rng, hanging, collective=copy), plan="hang"))
        for _ in range(400):
            await edge
        times[hanging, failures] = await nop_of_second(1)
    dut._log.info(f"nop of a kernel by outstanding calls and failures: {times}")
    least = times[0, 0]
    lines = {key: (key[0] + 3) // 4 + (key[1] + 3) // 4 for key in times}
    assert times == {key: least + max(0, count - 1) for key, count in lines.items()}


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def chains_and_failures(dut):
    """A failure goes down its chain, also to followers that come after it was answered; others are untouched."""
    bench = await directed(dut)
    rng = new_random("chains")
    barrier = int(spec.Collective.BARRIER)

    def call(index, call_id, waits=(), **options):
        names = ("wait_for0", "wait_for1")
        fixed = {name: w.call_id for name, w in zip(names, waits, strict=False)}
        made = Call(1, index, 0, waits=list(waits), **options)
        made.value = random_descriptor(rng, call_id, collective=barrier, communicator=index, **fixed)
        return made

    first = call(0, 10, plan="cpu", code=int(CODE.MISMATCHED_CALL))
    chain = [first]
    for i in range(1, 6):
        chain.append(call(i, 10 + i, [chain[-1]]))
    beside = call(7, 20)
    both = call(8, 21, [beside, chain[2]])
    for c in (*chain, beside, both):
        bench.submit(c)
    await bench.all_answered(3000)
    assert [c.answer for c in chain] == [int(CODE.MISMATCHED_CALL)] * 6
    assert (beside.answer, both.answer) == (0, int(CODE.MISMATCHED_CALL))
    late = call(30, 40, [chain[3]])
    bench.submit(late)
    fine = call(31, 41, [beside])
    bench.submit(fine)
    await bench.all_answered(3000)
    assert (late.answer, fine.answer) == (int(CODE.MISMATCHED_CALL), 0)
    # The id of a failed call, used anew: the failure is forgotten.
    again = call(32, 10)
    bench.submit(again)
    await bench.all_answered(3000)
    follower = call(33, 42, [again])
    bench.submit(follower)
    await bench.all_answered(3000)
    assert (again.answer, follower.answer) == (0, 0)
    # 32 failures and their followers: the oldest one is still known.
    failed = [call(50 + i, 100 + i, plan="cpu", code=1 + i % 20) for i in range(32)]
    for c in failed:
        bench.submit(c)
        await bench.all_answered(3000)
    for i, c in enumerate(failed):
        f = call(100 + i, 200 + i, [c])
        f.refused = c.code
        if i == 0:
            bench.submit(f)
            await bench.all_answered(3000)
            assert f.answer == c.code


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def order_over_failed_calls(dut):
    """A collective that fails before it starts does not let those behind it overtake those before it."""
    bench = await directed(dut)
    rng = new_random("order")
    copy, barrier = int(spec.Collective.COPY), int(spec.Collective.BARRIER)

    def call(index, collective, waits=(), us=0, **options):
        fixed = {"wait_for0": waits[0].call_id} if waits else {}
        fixed["deadline_us"] = us
        value = random_descriptor(rng, 10 + index, collective=collective, communicator=7, **fixed)
        return Call(1, index, value, waits=list(waits), **options)

    # The scoreboard does not finish the first one until it is told to.
    slow, failing = call(0, copy, plan="hang"), call(1, copy, us=8, plan="hang")
    first = call(2, barrier, [slow])
    second = call(3, barrier, [failing])
    third = call(4, barrier)
    fourth = call(5, barrier, [failing])
    fifth = call(6, barrier)
    last = call(7, barrier, [failing])
    for c in (slow, failing, first, second, third, fourth, fifth, last):
        bench.submit(c)
    for _ in range(500):
        await RisingEdge(dut.clk_i)
    bench.collect_kernels()
    assert [c.answer for c in (failing, second, fourth)] == [int(CODE.TIMEOUT)] * 3
    # What comes after the last of the order has failed still stands behind the one before it.
    after = call(8, barrier)
    bench.submit(after)
    for _ in range(150):
        await RisingEdge(dut.clk_i)
    assert [c.started for c in (first, third, fifth, after)] == [None] * 4
    slow.plan = "ok"
    await bench.all_answered(1000)
    assert first.started < third.started < fifth.started < after.started


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def twins(dut):
    """An id that is outstanding cannot be given again; the first call of it is not disturbed."""
    bench = await directed(dut)
    rng = new_random("twins")
    first = Call(1, 0, random_descriptor(rng, 5, collective=int(spec.Collective.BARRIER)), delay=600)
    bench.hurry = 0.0
    bench.submit(first)
    twin = Call(1, 1, random_descriptor(rng, 5, collective=int(spec.Collective.BARRIER)))
    twin.refused = int(CODE.INVALID_ARGUMENT)
    bench.submit(twin)
    other = Call(2, 0, encode(call_id=5))
    bench.submit(other)
    while twin.answer is None or other.answer is None:
        await RisingEdge(dut.clk_i)
        bench.collect_kernels()
    assert (first.answer, twin.answer, other.answer) == (None, int(CODE.INVALID_ARGUMENT), 0)
    # A follower waits for the first, and does not see the twin's failure.
    follower = Call(1, 2, random_descriptor(rng, 6, collective=int(spec.Collective.COPY), wait_for0=5), waits=[first])
    bench.submit(follower)
    await bench.all_answered(4000)
    assert (first.answer, follower.answer) == (0, 0)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def full_and_fair(dut):
    """One requester fills the entries with calls that hang; the others still get one each."""
    bench = await directed(dut)
    rng = new_random("full")
    hanging = [
        Call(1, i, random_descriptor(rng, 1 + i, collective=int(spec.Collective.COPY), deadline_us=60), plan="hang")
        for i in range(40)
    ]
    for c in hanging:
        bench.submit(c)
    while bench.source.sent[0] < 128 // bench.source.data_bytes * 30:
        await RisingEdge(dut.clk_i)
    for _ in range(200):
        await RisingEdge(dut.clk_i)
    others = 1 + bench.kernels - 1
    outstanding = int.from_bytes((await bench.axi.read(int(REGISTER.CALLS), 4)).data, "little")
    assert outstanding & 0xFF == 32 - others
    assert outstanding >> 8 == 0xFF
    nop = Call(2, 0, encode(call_id=1))
    bench.submit(nop)
    host = Call(0, 0, encode(call_id=1))
    await bench.ring(host)
    for _ in range(300):
        await RisingEdge(dut.clk_i)
    bench.collect_kernels()
    assert nop.answer == 0
    stop = False
    reader = cocotb.start_soon(bench.collect_host(lambda: stop))
    await bench.all_answered(40_000)
    stop = True
    await reader
    assert {c.answer for c in hanging} == {int(CODE.TIMEOUT)}
    assert bench.most_active == 8


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def tables_before_calls(dut):
    """Calls given behind a written table meet a microcontroller that has heard of it, however many wait already."""
    bench = await directed(dut)
    rng = new_random("tables")
    bench.work_share = 1.0
    for i in range(6):
        bench.submit(Call(1, i, random_descriptor(rng, 1 + i, collective=int(spec.Collective.COPY))))
    for _ in range(400):
        await RisingEdge(dut.clk_i)
    for bench.control_share in (1.0, 0.0, 0.0, 0.0):
        await RisingEdge(dut.clk_i)
    bench.work_share = 0.0
    await bench.all_answered(4000)
    assert bench.controls == 1
    # Always asked for, it still leaves every second item to the calls.
    bench.control_share = 1.0
    for i in range(6):
        bench.submit(Call(1, 10 + i, random_descriptor(rng, 11 + i, collective=int(spec.Collective.COPY))))
    await bench.all_answered(4000)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def unread_answers(dut):
    """A requester that does not take its answers stops only itself."""
    bench = await directed(dut)
    bench.sink.pauses = [lambda: True] + [never] * (bench.kernels - 1)
    calls = [Call(1, i, encode(call_id=1 + i)) for i in range(50)]
    for c in calls:
        bench.submit(c)
    for _ in range(50 * 40):
        await RisingEdge(dut.clk_i)
    assert bench.source.sent[0] <= 128 // bench.source.data_bytes * 33
    nop = Call(2, 0, encode(call_id=1))
    bench.submit(nop)
    for _ in range(60):
        await RisingEdge(dut.clk_i)
    bench.collect_kernels()
    assert nop.answer == 0
    bench.sink.pauses = [never] * bench.kernels
    await bench.all_answered(5000)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def kernels_in_chains(dut):
    """Start, await and run a kernel as calls; a kernel's `done` is counted until a call awaits it."""
    bench = make_bench(dut, hurry=1.0)
    await start_clock_and_reset(dut)
    bench.axi = None
    cocotb.start_soon(bench._engine())
    edge = RisingEdge(dut.clk_i)

    async def quiet(cycles):
        for _ in range(cycles):
            await edge
        bench.collect_kernels()

    async def done(kernel, code=0):
        dut.kernel_done_valid_i.value, dut.kernel_done_code_i.value = 1 << kernel, code << 16 * kernel
        await edge
        dut.kernel_done_valid_i.value = 0

    def nop(call_id, mode, kernel=0, **fields):
        call = Call(1, call_id, encode(call_id=call_id, algorithm=mode, root=kernel, **fields))
        call.allowed = set(range(30))
        call.started = 0
        bench.submit(call)
        return call

    # A start alone completes when the kernel has taken it.
    start = nop(1, NOP_START, tag=7)
    await quiet(60)
    assert int(dut.kernel_start_valid_o.value) == 1
    assert int(dut.kernel_start_data_o.value) & (1 << 64) - 1 == 7 << 32 | 1
    assert start.answer is None
    dut.kernel_start_ready_i.value = 1
    await edge
    dut.kernel_start_ready_i.value = 0
    await quiet(20)
    assert start.answer == 0
    # Its done comes before anybody awaits it, with a code.
    await done(0, 9)
    await quiet(5)
    waiter = nop(2, NOP_AWAIT)
    await quiet(60)
    assert waiter.answer == 9
    # The next one has to wait, and a follower with it.
    waiter = nop(3, NOP_AWAIT)
    follower = nop(4, NOP_PLAIN, wait_for0=3)
    await quiet(200)
    assert (waiter.answer, follower.answer) == (None, None)
    await done(1)
    await quiet(20)
    assert waiter.answer is None
    await done(0)
    await quiet(20)
    assert (waiter.answer, follower.answer) == (0, 0)
    # Two runs of one kernel go one after the other; one of another kernel goes beside them.
    runs = [nop(5, NOP_RUN), nop(6, NOP_RUN), nop(7, NOP_RUN, kernel=1)]
    dut.kernel_start_ready_i.value = 3
    await quiet(150)
    await done(1)
    await quiet(20)
    assert [r.answer for r in runs] == [0, None, 0] or runs[2].answer == 0
    await done(0)
    await quiet(20)
    assert [r.answer for r in runs] == [0, None, 0]
    await done(0, 5)
    await quiet(20)
    assert [r.answer for r in runs] == [0, 5, 0]
    # Deadline while the start is on offer: it stays there, and the done that follows is dropped.
    dut.kernel_start_ready_i.value = 0
    late = nop(8, NOP_RUN, deadline_us=2)
    await quiet(250)
    assert late.answer == int(CODE.TIMEOUT)
    assert int(dut.kernel_start_valid_o.value) == 1
    after = nop(9, NOP_RUN, deadline_us=100)
    await quiet(60)
    dut.kernel_start_ready_i.value = 1
    await edge
    dut.kernel_start_ready_i.value = 0
    await quiet(20)
    assert int(dut.kernel_start_valid_o.value) == 0
    await done(0, 3)
    await quiet(3)
    assert int(dut.kernel_start_valid_o.value) == 1
    assert int(dut.kernel_start_data_o.value) & 0xFFFF_FFFF == 9
    dut.kernel_start_ready_i.value = 1
    await edge
    await quiet(20)
    assert after.answer is None
    await done(0)
    await quiet(20)
    assert after.answer == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_descriptors(dut):
    """Each flaw gets its code, and the next call is carried out."""
    bench = await directed(dut)
    rng = new_random("bad")
    seen = cycle((1, 2))
    for i in range(1, 120):
        requester = next(seen)
        value = bad_descriptor(rng, i)
        call = Call(requester, i, value)
        call.refused = expected_code(value, bench.kernels, PROGRAMS, LOADED)
        if not call.refused:
            continue
        bench.submit(call)
        good = Call(requester, i, random_descriptor(rng, 1000 + i))
        bench.submit(good)
    await bench.all_answered(20_000)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def soft_reset(dut):
    """A soft reset ends everything without an answer; settings stay, and calls work again."""
    bench = await directed(dut)
    rng = new_random("reset")
    axi = bench.axi
    await axi.write(int(REGISTER.TIMEOUT_US), (777).to_bytes(4, "little"))
    hanging = [Call(1, i, random_descriptor(rng, 1 + i), plan="hang") for i in range(12)]
    for c in hanging:
        bench.submit(c)
    while bench.source.sent[0] < 128 // bench.source.data_bytes * 12:
        await RisingEdge(dut.clk_i)
    for _ in range(300):
        await RisingEdge(dut.clk_i)
    assert int(dut.active_o.value) == 0xFF
    await axi.write(int(REGISTER.CONTROL), b"\3\0\0\0")
    assert int.from_bytes((await axi.read(int(REGISTER.CONTROL), 4)).data, "little") == 3
    for _ in range(100):
        await RisingEdge(dut.clk_i)
    assert int.from_bytes((await axi.read(int(REGISTER.CONTROL), 4)).data, "little") == 2
    assert int(dut.active_o.value) == 0
    assert int.from_bytes((await axi.read(int(REGISTER.CALLS), 4)).data, "little") == 0
    assert int.from_bytes((await axi.read(int(REGISTER.TIMEOUT_US), 4)).data, "little") == 777
    bench.calls.clear()
    bench.open.clear()
    bench.submit(Call(1, 99, encode(call_id=3)))
    bench.submit(Call(2, 99, encode(call_id=3)))
    await bench.all_answered(200)


@pytest.mark.parametrize(("kernels", "data_bytes"), [(2, 64), full(3, 16)])
def test_unisono_call_front(kernels, data_bytes):
    simulate(
        "unisono_call_front",
        __file__,
        {"KernelPorts": kernels, "DataBytes": data_bytes, "ClockMHz": 32, "TimeoutUs": 1_000_000},
        verilator_args=[str(Path(__file__).with_name("axi.vlt"))],
        limit_s=500,
    )
