"""unisono_move_params: moves whose counts and offsets stand in memory, against a model of that memory."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import replace

import cocotb
import pytest
import records
from bus import ChannelSink, ChannelSource, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge, with_timeout
from hdl import full, parameters, scaled, simulate

S = records.load()
CALLS = 8
INVALID_COUNT, MALFORMED, INTERNAL = 2, 11, 23
OPERANDS = ("op0", "op1", "local")


class Memory:
    """Words that depend on nothing but their address: counts and offsets, some too large, some that cannot be read."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __getitem__(self, address: int) -> tuple[int, bool]:
        rng = random.Random(f"{self.seed}/{address}")
        bits = rng.choice((3, 20, 38, 39, 40, 40, 40, 40, 40, 40, 41, 48, 49, 64))
        return rng.getrandbits(bits), rng.random() < 0.04


class Commands(ChannelSink):
    """Answers each command with a word, later."""

    def __init__(self, dut, memory: Memory, answers: ChannelSource, data_bytes: int) -> None:
        self.memory, self.answers, self.more = memory, answers, 8 * (data_bytes - 8)
        self.count = 0
        super().__init__(dut, "read_command", ("address",))

    def _accept(self, lane, word):
        self.count += 1
        value, bad = self.memory[word[0]]
        self.answers.put((value | self.answers.rng.getrandbits(self.more + 1) >> 1 << 64, bad))


async def bind(dut, bindings: list[tuple[int, int]], pause) -> None:
    """Grants when it likes; the answer stands one cycle later, and never else."""
    rng = new_random("bind")
    ready = False
    while True:
        await RisingEdge(dut.clk_i)
        granted = ready and int(dut.binding_valid_o.value)
        address, size = bindings[int(dut.binding_slot_o.value)] if granted else (0, 0)
        dut.binding_i.value = size << 64 | address if granted else rng.getrandbits(112)
        ready = not pause()
        dut.binding_ready_i.value = ready


async def watch_failures(dut, failures: deque[tuple[int, int]]) -> None:
    while True:
        await RisingEdge(dut.clk_i)
        if int(dut.rst_ni.value) and int(dut.fail_valid_o.value):
            failures.append((int(dut.fail_slot_o.value), int(dut.fail_code_o.value)))


def resolved(move, memory: Memory, binding: tuple[int, int]):
    """The move with its words in their places, the code of what went wrong, and how many words were read."""
    address, size = binding
    reads = 0

    def word(at: int, bits: int) -> int:
        nonlocal reads
        if at + 8 > size:
            raise ValueError(MALFORMED)
        reads += 1
        value, bad = memory[address + at & (1 << 64) - 1]
        if bad:
            raise ValueError(INTERNAL)
        if value >> bits:
            raise ValueError(INVALID_COUNT)
        return value

    try:
        if move.count_indirect:
            move = replace(move, count=word(move.count, 40), count_indirect=False)
        for name in OPERANDS:
            operand = getattr(move, name)
            if operand.kind == S.OperandKind.MEMORY and operand.indirect:
                move = replace(move, **{name: replace(operand, offset=word(operand.offset, 48), indirect=False)})
    except ValueError as error:
        return move, error.args[0], reads
    return move, 0, reads


def harmless(move):
    """What is certain of a move that failed: no elements, no message; where it would have been does not matter."""
    bare = {name: replace(getattr(move, name), offset=0, indirect=False) for name in OPERANDS}
    return replace(move, count=0, count_indirect=False, signal=False, **bare)


def random_move(rng: random.Random, size: int):
    all_of_it = rng.random() < 0.15

    def place() -> int:
        if all_of_it and size > 8:
            return rng.randint(0, size - 8)
        near = size - 8 + rng.choice((-8, -1, 0, 1, 8, 4096))
        return max(0, rng.choice((near, rng.randint(0, max(0, size - 8)), rng.randint(0, max(0, size - 8)))))

    def operand():
        kind = rng.choice((S.OperandKind.NONE, S.OperandKind.MEMORY, S.OperandKind.MEMORY, S.OperandKind.STREAM))
        indirect = all_of_it or rng.random() < 0.5
        kind = S.OperandKind.MEMORY if all_of_it else kind
        offset = place() if indirect else rng.getrandbits(48)
        return S.Operand(kind=kind, region=rng.choice(list(S.Region)), indirect=indirect, offset=offset)

    indirect = all_of_it or rng.random() < 0.4
    return S.Move(
        kind=rng.choices(list(S.MoveKind), (1, 8, 1))[0],
        func=rng.choice(list(S.Func)),
        dtype=rng.choice(list(S.Datatype)),
        signal=rng.random() < 0.5,
        swap=rng.random() < 0.5,
        count_indirect=indirect,
        dependencies=rng.getrandbits(32),
        count=place() if indirect else rng.getrandbits(40),
        op0=operand(),
        op1=operand(),
        local=operand(),
        remote=S.Remote(kind=rng.choice(list(S.RemoteKind)), peer=rng.getrandbits(24), tag=rng.getrandbits(24)),
    )


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_moves(dut):
    rng = new_random("params")
    memory = Memory(rng.getrandbits(32))
    bindings = [(rng.getrandbits(64) & ~7, rng.choice((0, 8, 64, 4096, 1 << 39))) for _ in range(CALLS)]
    source = ChannelSource(dut, "in", ("slot", "move", "end", "receives", "sends"))
    sink = ChannelSink(dut, "out", ("slot", "move", "end", "receives", "sends"))
    answers = ChannelSource(dut, "read", ("data", "error"))
    commands = Commands(dut, memory, answers, parameters()["DataBytes"])
    failures: deque[tuple[int, int]] = deque()
    cocotb.start_soon(bind(dut, bindings, share(rng, 0.4)))
    cocotb.start_soon(watch_failures(dut, failures))
    await start_clock_and_reset(dut)
    seen: Counter[int] = Counter()
    expected_reads = 0
    for number in range(scaled(2400, 800)):
        if number % 50 == 0:
            for port in (source, sink, answers, commands):
                port.pauses = [rng.choice([never, share(rng, 0.5), bursts(rng)])]
        slot, end = rng.randrange(CALLS), rng.random() < 0.05
        move = random_move(rng, bindings[slot][1])
        raw = int.from_bytes(move.encode(), "little")
        sets = rng.getrandbits(64), rng.getrandbits(64)
        source.put((slot, raw, end, *sets))
        got = await with_timeout(sink.get(), 100, "us")
        direct = end or move.kind != S.MoveKind.MOVE
        wanted, code, reads = (move, 0, 0) if direct else resolved(move, memory, bindings[slot])
        expected_reads += reads
        seen[code] += 1
        seen[100 + reads] += 1
        came = S.Move.decode(got[1].to_bytes(64, "little"))
        about = f"move {number}: {move}, binding {bindings[slot]}"
        assert (got[0], *got[2:]) == (slot, end, *sets), about
        if code:
            assert came == replace(harmless(came), **{n: getattr(came, n) for n in OPERANDS}), f"{came}; {about}"
            assert not any(getattr(came, name).indirect for name in OPERANDS), f"{came}; {about}"
            assert harmless(came) == harmless(move), f"{came}; {about}"
            assert list(failures) == [(slot, code)], f"{failures}, not {code}; {about}"
            failures.clear()
        else:
            assert came == wanted, f"{came}, not {wanted}; {about}"
            assert not failures, about
        assert commands.count == expected_reads, about
    await RisingEdge(dut.clk_i)
    await RisingEdge(dut.clk_i)
    assert int(dut.idle_o.value)
    for what in (0, INVALID_COUNT, MALFORMED, INTERNAL, 100, 101, 102, 103, 104):
        assert seen[what] >= 3, f"{what}: {seen}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_direct_move_in_each_cycle(dut):
    rng = new_random("direct")
    source = ChannelSource(dut, "in", ("slot", "move", "end", "receives", "sends"))
    sink = ChannelSink(dut, "out", ("slot", "move", "end", "receives", "sends"))
    await start_clock_and_reset(dut)
    moves = [
        int.from_bytes(S.Move(kind=S.MoveKind.MOVE, count=rng.getrandbits(40)).encode(), "little") for _ in "a" * 40
    ]
    for move in moves:
        source.put((1, move, 0, 0, 0))
    first = await sink.get()
    begin = sink.cycle
    got = [first, *[await sink.get() for _ in moves[1:]]]
    assert [word[1] for word in got] == moves
    assert sink.cycle - begin == len(moves) - 1


@pytest.mark.parametrize("data_bytes", [64, full(8)])
def test_unisono_move_params(data_bytes):
    simulate("unisono_move_params", __file__, {"DataBytes": data_bytes})
