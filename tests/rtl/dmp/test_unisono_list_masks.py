"""unisono_list_masks: random moves and lists against sets of their members, while other words of the pool change."""

from __future__ import annotations

import random
from collections import Counter, deque

import cocotb
import records
from bus import ChannelSink, ChannelSource, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from hdl import scaled, simulate

S = records.load()
CALLS, WORDS, RANKS = 8, 512, 64
IN, OUT = ("slot", "move", "end"), ("slot", "move", "end", "receives", "sends")
Lists = dict[int, list[int]]
"""The lists of a slot's pool by their index."""


class Pool:
    """Writes words, one per cycle; between them it changes, at times, words that no list covers."""

    def __init__(self, dut) -> None:
        self.dut, self.rng = dut, new_random("pool")
        self.lists: list[Lists] = [{} for _ in range(CALLS)]
        self.free: list[list[int]] = [list(range(WORDS)) for _ in range(CALLS)]
        self.queue: deque[tuple[int, int, int]] = deque()
        self.noise = 0.5
        dut.pool_write_i.value = 0
        cocotb.start_soon(self.drive())

    def set(self, slot: int, lists: Lists) -> None:
        self.lists[slot] = lists
        covered = set()
        for index, members in lists.items():
            for at, word in enumerate([len(members), *members], index):
                self.queue.append((slot, at, word))
                covered.add(at)
        self.free[slot] = [at for at in range(WORDS) if at not in covered]

    async def written(self) -> None:
        """Returns when all is there."""
        while self.queue:
            await RisingEdge(self.dut.clk_i)
        await RisingEdge(self.dut.clk_i)

    async def drive(self) -> None:
        rng, dut = self.rng, self.dut
        while True:
            await RisingEdge(dut.clk_i)
            write = None
            if self.queue:
                write = self.queue.popleft()
            elif rng.random() < self.noise:
                slot = rng.randrange(CALLS)
                write = slot, rng.choice(self.free[slot]), rng.randrange(RANKS)
            dut.pool_write_i.value = write is not None
            slot, index, word = write or (rng.randrange(CALLS), rng.randrange(WORDS), rng.randrange(RANKS))
            dut.pool_write_slot_i.value, dut.pool_write_index_i.value = slot, index
            dut.pool_write_word_i.value = word


def random_lists(rng: random.Random) -> Lists:
    """Lists of 1 to 63 ranks, one at each end of the pool, some side by side."""
    lists, at = {}, 0
    while at < WORDS - 1:
        count = min(rng.choice((1, 1, 2, 3, rng.randint(1, 63), 63)), WORDS - at - 1)
        lists[at] = rng.sample(range(RANKS), count)
        at += count + 1
        if rng.random() < 0.5:
            at += rng.randint(1, 80)
    last = WORDS - 2
    if all(index + len(members) < last for index, members in lists.items()):
        lists[last] = [rng.randrange(RANKS)]
    return lists


def random_move(rng: random.Random, lists: Lists):
    arrives, sends = rng.random() < 0.6, rng.random() < 0.6
    one = rng.choice(list(lists))
    other = one if rng.random() < 0.2 else rng.choice(list(lists))
    modes = rng.choices(list(S.PeerMode), (1, 2, 1), k=2)
    peers = [
        rng.getrandbits(24) if mode == S.PeerMode.RANK else at for mode, at in zip(modes, (one, other), strict=True)
    ]
    kinds = [kind for kind in S.OperandKind if kind != S.OperandKind.ARRIVAL]
    others = [kind for kind in S.RemoteKind if kind != S.RemoteKind.MESSAGE]
    return S.Move(
        kind=rng.choice(list(S.MoveKind)),
        func=rng.choice(list(S.Func)),
        dtype=rng.choice(list(S.Datatype)),
        count=rng.getrandbits(40),
        dependencies=rng.getrandbits(32),
        op0=S.Operand(kind=rng.choice(kinds), offset=rng.getrandbits(48)),
        op1=S.Operand(kind=S.OperandKind.ARRIVAL if arrives else rng.choice(kinds), offset=rng.getrandbits(48)),
        arrival=S.Arrival(peer=peers[0], mode=modes[0], tag=rng.getrandbits(24)),
        remote=S.Remote(
            kind=S.RemoteKind.MESSAGE if sends else rng.choice(others),
            peer=peers[1],
            mode=modes[1],
            tag=rng.getrandbits(24),
        ),
    )


def named(move, lists: Lists) -> tuple[list[int] | None, list[int] | None]:
    """The lists that count: of the arrival, and of the message that is sent."""
    receives = sends = None
    if move.op1.kind == S.OperandKind.ARRIVAL and move.arrival.mode != S.PeerMode.RANK:
        receives = lists[move.arrival.peer]
    if move.remote.kind == S.RemoteKind.MESSAGE and move.remote.mode != S.PeerMode.RANK:
        sends = lists[move.remote.peer]
    return receives, sends


def mask(members: list[int] | None) -> int:
    return sum(1 << rank for rank in members or ())


def raw(move) -> int:
    return int.from_bytes(move.encode(), "little")


async def watch_idle(dut, source: ChannelSource, sink: ChannelSink, seen: Counter[str]) -> None:
    """Idle is said exactly while no move is inside."""
    inside = 0
    while True:
        await RisingEdge(dut.clk_i)
        if not int(dut.rst_ni.value):
            continue
        inside += int(dut.in_valid_i.value) and int(dut.in_ready_o.value)
        inside -= int(dut.out_valid_o.value) and int(dut.out_ready_i.value)
        held = int(dut.out_valid_o.value) and not int(dut.out_ready_i.value)
        seen["held up"] += int(held)
        seen["a move waits"] += int(int(dut.in_valid_i.value) and not int(dut.in_ready_o.value))
        await FallingEdge(dut.clk_i)
        assert int(dut.idle_o.value) == (not inside), f"{inside} inside"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_moves(dut):
    rng = new_random("lists")
    source, sink, pool = ChannelSource(dut, "in", IN), ChannelSink(dut, "out", OUT), Pool(dut)
    seen: Counter[str] = Counter()
    cocotb.start_soon(watch_idle(dut, source, sink, seen))
    await start_clock_and_reset(dut)
    for _ in range(scaled(40, 12)):
        for slot in rng.sample(range(CALLS), 3):
            pool.set(slot, random_lists(rng))
        await with_timeout(pool.written(), 20, "us")
        pool.noise = rng.choice((0, 0.5, 1))
        for port in (source, sink):
            port.pauses = [rng.choice([never, share(rng, 0.5), bursts(rng)])]
        wanted = []
        filled = [slot for slot in range(CALLS) if pool.lists[slot]]
        for _ in range(40):
            slot, end = rng.choice(filled), int(rng.random() < 0.15)
            move = random_move(rng, pool.lists[slot])
            receives, sends = named(move, pool.lists[slot])
            word = (slot, raw(move), end)
            source.put(word)
            wanted.append((*word, *((0, 0) if end else (mask(receives), mask(sends)))))
            lists = f"{'receives' if receives else ''}{'sends' if sends else ''}"
            seen[f"end that would have {lists}" if end else lists] += 1
            for members in () if end else (receives, sends):
                seen["all but one"] += len(members or ()) == RANKS - 1
                seen["one member"] += len(members or ()) == 1
            seen["one list twice"] += not end and bool(receives) and receives is sends
            if not end and WORDS - 2 in (move.arrival.peer, move.remote.peer) and (receives or sends):
                seen["the pool's end"] += 1
        for number, want in enumerate(wanted):
            got = await with_timeout(sink.get(), 40, "us")
            assert got == want, f"move {number}: {[hex(x) for x in got]}, not {[hex(x) for x in want]}"
    ends = {f"end that would have {what}" for what in ("receives", "sends", "receivessends")}
    lists = {"", "receives", "sends", "receivessends", "one list twice", "all but one", "one member", "the pool's end"}
    for what in ends | lists | {"held up", "a move waits"}:
        assert seen[what] >= 3, f"{what}: {seen}"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def as_many_cycles_as_said(dut):
    """1 cycle, 2 more for each list and one for each of its ranks."""
    rng = new_random("cycles")
    source, sink, pool = ChannelSource(dut, "in", IN), ChannelSink(dut, "out", OUT), Pool(dut)
    pool.noise = 0
    await start_clock_and_reset(dut)
    for number in range(30):
        slot = rng.randrange(CALLS)
        lists = {20: rng.sample(range(RANKS), rng.randint(1, 9)), 7: rng.sample(range(RANKS), rng.randint(1, 9))}
        arrives, sends = number & 1, number >> 1 & 1
        kind = S.OperandKind.ARRIVAL if arrives else S.OperandKind.NONE
        move = S.Move(
            kind=S.MoveKind.MOVE,
            op1=S.Operand(kind=kind),
            arrival=S.Arrival(peer=7, mode=S.PeerMode.LIST),
            remote=S.Remote(kind=S.RemoteKind(sends), peer=20, mode=S.PeerMode.ANY),
        )
        assert not sends or move.remote.kind == S.RemoteKind.MESSAGE
        pool.set(slot, lists)
        await with_timeout(pool.written(), 20, "us")
        source.put((slot, raw(move), 0))
        while not (int(dut.in_valid_i.value) and int(dut.in_ready_o.value)):
            await RisingEdge(dut.clk_i)
        taken = sink.cycle
        got = await with_timeout(sink.get(), 20, "us")
        found = named(move, lists)
        assert got == (slot, raw(move), 0, mask(found[0]), mask(found[1]))
        cycles = sink.cycle - taken
        assert cycles == 1 + sum(2 + len(members) for members in found if members), f"{cycles}: {found}"
    # Moves without lists, one per cycle.
    plain = [S.Move(kind=S.MoveKind.MOVE, count=rng.getrandbits(40)) for _ in range(40)]
    for move in plain:
        source.put((1, raw(move), 0))
    begun = 0
    for number, move in enumerate(plain):
        assert await with_timeout(sink.get(), 20, "us") == (1, raw(move), 0, 0, 0)
        begun = begun or sink.cycle
        assert sink.cycle == begun + number


def test_unisono_list_masks():
    simulate("unisono_list_masks", __file__)
