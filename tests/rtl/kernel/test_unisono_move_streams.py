"""unisono_move_streams: programs that keep to their regions' order and such that do not, against a model of them."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import replace
from typing import Any

import cocotb
import records
from bus import ChannelSink, ChannelSource, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge, with_timeout
from hdl import scaled, simulate

S = records.load()
CALLS = 8
UNSUPPORTED = int(S.ErrorCode.UNSUPPORTED)
SRC, DST = S.Region.SRC, S.Region.DST
OPERANDS = ("op0", "op1", "local")
CASES = (
    *(f"{place} {where}" for place in ("op0 in SRC", "op0 in DST", "local in DST") for where in ("behind", "ahead")),
    *("reads and writes", "reads what is written", "writes what is read"),
    *("streams 0", "streams 1", "streams 2", "empty", "casts", "end", "clears"),
)
"""What must have been seen: each reason of a refusal by itself, and each way on."""


class Call:
    """What a slot's call has bound, and how far its program has come."""

    def __init__(self, rng: random.Random) -> None:
        self.streams = {SRC: rng.random() < 0.6, DST: rng.random() < 0.6}
        self.dst_is_read = rng.random() < 0.5  # by most of its moves; else written
        self.at = {SRC: 0, DST: 0}
        self.reads = self.writes = False  # dst
        self.port = {SRC: rng.getrandbits(4), DST: rng.getrandbits(4)}

    def named(self, move: Any) -> dict[str, Any]:
        """The operands of a move in a region that is a stream, and which of the two."""
        found = {}
        for name in OPERANDS:
            operand = getattr(move, name)
            if operand.kind == S.OperandKind.MEMORY and self.streams.get(operand.region, False):
                found[name] = operand.region
        return found

    def refusals(self, move: Any, named: dict[str, Any]) -> list[str]:
        """Everything that is wrong with a move that has elements."""
        wrong = [f"{name} in {region.name}" for name, region in named.items() if name == "op1"]
        wrong += [f"{name} in {region.name}" for name, region in named.items() if (name, region) == ("local", SRC)]
        reads, writes = named.get("op0") == DST, named.get("local") == DST
        if reads and writes:
            wrong.append("reads and writes")
        elif reads and self.writes:
            wrong.append("reads what is written")
        elif writes and self.reads:
            wrong.append("writes what is read")
        for name, region in named.items():
            away = getattr(move, name).offset - self.at[region]
            if away:
                wrong.append(f"{name} in {region.name} {'behind' if away < 0 else 'ahead'}")
        return wrong

    def step(self, move: Any) -> tuple[Any, list[str], list[Any]]:
        """The move as it goes on, why it is refused, and the regions whose port it gets."""
        named = self.named(move) if move.kind == S.MoveKind.MOVE else {}
        if not named:
            return move, [], []
        if not move.count:
            return replace(move, **{name: replace(getattr(move, name), offset=0) for name in named}), [], []
        wrong = self.refusals(move, named)
        if wrong:
            return S.Move(kind=S.MoveKind.MOVE), wrong, []
        changes = {}
        for name, region in named.items():
            self.at[region] = self.at[region] + move.count * move.dtype.bytes & (1 << 48) - 1
            port, cast = self.port[region], getattr(move, name).cast
            changes[name] = S.Operand(kind=S.OperandKind.STREAM, cast=cast, offset=port)
        self.reads |= named.get("op0") == DST
        self.writes |= named.get("local") == DST
        return replace(move, **changes), [], [region for region in (SRC, DST) if region in named.values()]


def random_move(rng: random.Random, call: Call) -> Any:
    """One that goes on where the program is, with something wrong now and then."""
    dtype = rng.choice([dtype for dtype in S.Datatype if dtype.bytes])

    def operand(name: str) -> Any:
        natural: tuple[Any, ...] = (S.Region.SCRATCH, S.Region.WINDOW)
        if name == "op0":
            natural = (SRC, DST) if call.dst_is_read else (SRC,)
        elif name == "local":
            natural = (S.Region.SCRATCH, S.Region.SCRATCH, DST) if call.dst_is_read else (DST,)
        region = rng.choice(natural) if rng.random() < 0.9 else rng.choice(list(S.Region))
        offset = call.at.get(region, rng.getrandbits(48))
        if rng.random() < 0.12:
            offset = rng.choice(
                (offset - dtype.bytes, offset - 1, offset + 1, offset + dtype.bytes, rng.getrandbits(48))
            )
            offset ^= rng.choice((0, 0, 1 << rng.randrange(48)))
        kind = rng.choices(list(S.OperandKind)[:4], (2, 6, 1, 1 if name == "op1" else 0))[0]
        cast = S.Cast.WIRE if rng.random() < 0.1 else S.Cast.NONE
        return S.Operand(kind=kind, cast=cast, region=region, offset=offset & (1 << 48) - 1)

    return S.Move(
        kind=rng.choices(list(S.MoveKind), (1, 18, 1))[0],
        func=rng.choice(list(S.Func)),
        dtype=dtype,
        protocol=rng.choice(list(S.Protocol)),
        log2_segment=rng.getrandbits(5),
        swap=rng.random() < 0.5,
        signal=rng.random() < 0.5,
        dependencies=rng.getrandbits(32),
        count=rng.choice((0, 1, rng.randint(1, 4096), rng.randint(1, 4096), rng.getrandbits(40))),
        segment_dependency0=rng.getrandbits(6),
        segment_dependency1=rng.getrandbits(6),
        op0=operand("op0"),
        op1=operand("op1"),
        local=operand("local"),
        arrival=S.Arrival(peer=rng.getrandbits(24), tag=rng.getrandbits(24)),
        remote=S.Remote(kind=rng.choice(list(S.RemoteKind)), peer=rng.getrandbits(24), tag=rng.getrandbits(24)),
    )


class Watch:
    """Keeps failures."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.failed: deque[tuple[int, int]] = deque()
        """One for each move at which `fail` rises."""
        self.held = 0
        """Cycles in which a failure stood for more than one."""
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        dut, failing = self.dut, False
        while True:
            await RisingEdge(dut.clk_i)
            if not int(dut.rst_ni.value):
                continue
            fails = bool(int(dut.fail_valid_o.value))
            if fails:
                about = int(dut.fail_slot_o.value), int(dut.fail_code_o.value)
                if failing:
                    assert self.failed[-1] == about
                    self.held += 1
                else:
                    self.failed.append(about)
            # It stands while the move that is in its place is offered.
            taken = int(dut.out_valid_o.value) and int(dut.out_ready_i.value)
            failing = fails and not taken


def show_streams(dut: Any, calls: list[Call]) -> None:
    dut.src_stream_i.value = sum(call.streams[SRC] << slot for slot, call in enumerate(calls))
    dut.dst_stream_i.value = sum(call.streams[DST] << slot for slot, call in enumerate(calls))
    dut.src_port_i.value = sum(call.port[SRC] << 4 * slot for slot, call in enumerate(calls))
    dut.dst_port_i.value = sum(call.port[DST] << 4 * slot for slot, call in enumerate(calls))


async def clear(dut: Any, slot: int) -> None:
    dut.clear_valid_i.value, dut.clear_slot_i.value = 1, slot
    await RisingEdge(dut.clk_i)
    dut.clear_valid_i.value, dut.clear_slot_i.value = 0, slot ^ 5
    await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def programs_in_all_slots(dut: Any) -> None:
    """Rounds of moves of some slots; meanwhile calls in others end and the next ones begin."""
    rng = new_random("streams")
    calls = [Call(rng) for _ in range(CALLS)]
    source = ChannelSource(dut, "in", ("slot", "move", "end"))
    sink = ChannelSink(dut, "out", ("move",))
    dut.clear_valid_i.value = 0
    show_streams(dut, calls)
    watch = Watch(dut)
    await start_clock_and_reset(dut)
    seen: Counter[str] = Counter()
    rounds, number = scaled(400, 100), -1
    while (number := number + 1) < rounds or (number < 5 * rounds and any(seen[what] < 3 for what in CASES)):
        source.pauses = [rng.choice([never, share(rng, 0.5), bursts(rng)])]
        sink.pauses = [rng.choice([never, share(rng, 0.5), bursts(rng)])]
        busy = rng.sample(range(CALLS), rng.choice((1, 2, 5)))
        expected: list[tuple[int, str]] = []
        failed: list[tuple[int, int]] = []
        for _ in range(16):
            slot, end = rng.choice(busy), rng.random() < 0.05
            move = random_move(rng, calls[slot])
            source.put((slot, int.from_bytes(move.encode(), "little"), end))
            wanted, wrong, streams = (move, [], []) if end else calls[slot].step(move)
            about = f"round {number}: slot {slot}: {move}{' (end)' * end}, {wrong}"
            expected.append((int.from_bytes(wanted.encode(), "little"), about))
            failed += [(slot, UNSUPPORTED)] if wrong else []
            # Only what is wrong for one reason shows that it is looked at.
            seen[wrong[0] if len(wrong) == 1 else "for several reasons" if wrong else f"streams {len(streams)}"] += 1
            seen["casts"] += bool(streams) and any(getattr(wanted, name).cast for name in OPERANDS)
            seen["empty"] += not wrong and not streams and wanted != move
            seen["end"] += end and bool(calls[slot].named(move))
        for slot in set(range(CALLS)) - set(busy):
            if rng.random() < 0.3:
                await clear(dut, slot)
                calls[slot] = Call(rng)
                show_streams(dut, calls)
                seen["clears"] += 1
        for wanted, about in expected:
            (raw,) = await with_timeout(sink.get(), 40, "us")
            assert raw == wanted, f"{raw:#x}, not {wanted:#x}; {about}"
        await RisingEdge(dut.clk_i)
        assert list(watch.failed) == failed, f"round {number}"
        watch.failed.clear()
    missing = {what: seen[what] for what in CASES if seen[what] < 3}
    assert not missing, f"{missing}: {seen}"
    assert watch.held > 10
    dut._log.info("seen: %s", dict(seen))


@cocotb.test(timeout_time=500, timeout_unit="us")
async def each_place_of_an_operand(dut: Any) -> None:
    """All operands, regions and streams of the call, at the begin of a program: one move each."""
    rng = new_random("places")
    calls = [Call(rng) for _ in range(CALLS)]
    source = ChannelSource(dut, "in", ("slot", "move", "end"))
    sink = ChannelSink(dut, "out", ("move",))
    dut.clear_valid_i.value = 0
    watch = Watch(dut)
    await start_clock_and_reset(dut)
    seen: Counter[str] = Counter()
    for number in range(2 * 2 * 3 * 3 * 3):
        slot = rng.randrange(CALLS)
        calls[slot] = Call(rng)
        calls[slot].streams = {SRC: bool(number & 1), DST: bool(number & 2)}
        show_streams(dut, calls)
        await clear(dut, slot)
        places, changes = number >> 2, {}
        for name in OPERANDS:
            places, region = divmod(places, 3)
            if region < 2:
                changes[name] = S.Operand(kind=S.OperandKind.MEMORY, region=(SRC, DST)[region])
        move = S.Move(kind=S.MoveKind.MOVE, dtype=S.Datatype.FP32, count=rng.randint(1, 100), **changes)
        source.put((slot, int.from_bytes(move.encode(), "little"), 0))
        wanted, wrong, _ = calls[slot].step(move)
        (raw,) = await with_timeout(sink.get(), 1, "us")
        assert raw == int.from_bytes(wanted.encode(), "little"), f"{number}: {move}; {wrong}"
        assert list(watch.failed) == [(slot, UNSUPPORTED)] * bool(wrong), f"{number}: {move}; {wrong}"
        watch.failed.clear()
        seen[", ".join(wrong)] += 1
    for reason in ("", "op1 in SRC", "op1 in DST", "local in SRC", "reads and writes"):
        assert seen[reason] >= 1, f"{reason}: {seen}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def latency(dut: Any) -> None:
    """None, with streams or without, 1 cycle for a refusal; then the next move at once."""
    rng = new_random("latency")
    calls = [Call(rng) for _ in range(CALLS)]
    for call in calls:
        call.streams = {SRC: True, DST: True}
    show_streams(dut, calls)
    dut.in_valid_i.value = dut.clear_valid_i.value = 0
    dut.out_ready_i.value = 1
    await start_clock_and_reset(dut)
    memory = S.OperandKind.MEMORY
    bare = S.Move(kind=S.MoveKind.MOVE, dtype=S.Datatype.INT32, count=3)
    for _ in range(20):
        slot = rng.randrange(CALLS)
        at = calls[slot].at
        from_src = replace(bare, op0=S.Operand(kind=memory, offset=at[SRC]))
        to_dst = replace(bare, local=S.Operand(kind=memory, region=DST, offset=at[DST]))
        cases = (
            (replace(bare, op0=S.Operand(kind=memory, region=S.Region.SCRATCH)), 0),
            (from_src, 0),
            (to_dst, 0),
            (replace(from_src, local=to_dst.local), 0),
            (replace(bare, op1=S.Operand(kind=memory)), 1),
        )
        move, wanted = rng.choice(cases)
        calls[slot].step(move)
        dut.in_valid_i.value, dut.in_slot_i.value, dut.in_end_i.value = 1, slot, 0
        dut.in_move_i.value = int.from_bytes(move.encode(), "little")
        await RisingEdge(dut.clk_i)
        waited = 0
        while not int(dut.in_ready_o.value):
            await RisingEdge(dut.clk_i)
            waited += 1
            assert waited < 10, f"{move}: no end"
        assert waited == wanted, f"{move}: {waited} cycles, not {wanted}"
    dut.in_valid_i.value = 0


def test_unisono_move_streams() -> None:
    simulate("unisono_move_streams", __file__)
