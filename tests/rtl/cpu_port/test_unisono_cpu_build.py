"""unisono_cpu_build: random instructions, and moves put together as the specification packs them."""

from collections import Counter
from dataclasses import replace

import cocotb
import records
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

S = records.load()
INSTRUCTION = [("operation", 7), ("group", 3), ("first", 32), ("second", 32)]
PLACE, PEER, BUILD = 1, 2, 3
BEGIN, COUNT, COUNT_INDIRECT, SIGNAL, SWAP, AFTER, STREAM_AFTER, FUNCTION, TAKE_STREAM, KEEP_STREAM, AFTER_ALL, EMIT = (
    range(12)
)
REGIONS = list(S.Region)


class Model:
    """The move at hand, the call's function, and tickets."""

    def __init__(self):
        self.move, self.func, self.override = None, 0, False
        self.ticket, self.open = 0, False

    def expected(self):
        move = self.move
        kinds = S.OperandKind
        several = move.op1.kind in (kinds.ARRIVAL, kinds.REMOTE_MEMORY) and move.arrival.mode != S.PeerMode.RANK
        combines = self.override or several or kinds.NONE not in (move.op0.kind, move.op1.kind)
        return replace(move, func=S.Func(self.func) if combines else S.Func.NONE)


def random_place(rng, model):
    """An operand or a place in a peer's memory."""
    region, offset, indirect = (
        rng.choice(REGIONS),
        rng.choice((0, rng.getrandbits(48), (1 << 48) - 1)),
        rng.random() < 0.3,
    )
    which, far = rng.randrange(4), rng.random() < 0.5 or int(region) > 7
    beyond = rng.choice((0, 0, 0, 1 << rng.randrange(8)))  # bits that an offset does not have
    second = offset >> 32 | beyond << 16
    if far:
        operation, second = 0x40 | rng.getrandbits(4) << 2 | which, second | int(region) << 24 | indirect << 31
        second |= rng.getrandbits(2) << 29  # these do not matter
    else:
        operation = indirect << 5 | int(region) << 2 | which
        if not beyond and rng.random() < 0.2:
            beyond = 1 << rng.randrange(8)
            second |= beyond << 24
    move = model.move
    place = S.Operand(S.OperandKind.MEMORY, S.Cast.NONE, region, indirect, offset)
    if which == 3:
        address = replace(move.remote_address, offset=offset)
        changed = "result_region" if indirect else "region"
        model.move = replace(move, remote_address=replace(address, **{changed: region}))
    else:
        model.move = replace(move, **{("op0", "op1", "local")[which]: place})
    return operation, offset & 0xFFFFFFFF, second, bool(beyond)


def random_peer(rng, model):
    """An arrival, a message, a fetch or a store."""
    what, mode = rng.randrange(4), rng.choice(list(S.PeerMode))
    peer, tag = rng.getrandbits(24), rng.choice((0, rng.getrandbits(24)))
    beyond = rng.choice((0, 0, 0, 1 << rng.randrange(24, 32)))
    first, second = (peer | beyond, tag) if rng.random() < 0.5 else (peer, tag | beyond)
    if what in (1, 3):
        kind = S.RemoteKind.MESSAGE if what == 1 else S.RemoteKind.MEMORY
        model.move = replace(model.move, remote=S.Remote(kind=kind, peer=peer, mode=mode, tag=tag))
    else:
        kind = S.OperandKind.ARRIVAL if what == 0 else S.OperandKind.REMOTE_MEMORY
        arrival = S.Arrival(peer, mode, tag)
        model.move = replace(model.move, op1=replace(model.move.op1, kind=kind), arrival=arrival)
    return int(mode) << 2 | what, first, second, bool(beyond)


def random_build(rng, model):
    """The rest of a move's fields; new moves are begun elsewhere."""
    operation = rng.choice((COUNT, COUNT_INDIRECT, SIGNAL, SWAP, AFTER, AFTER, STREAM_AFTER, FUNCTION, TAKE_STREAM,
                            KEEP_STREAM, AFTER_ALL))  # fmt: skip
    first, second, beyond = rng.getrandbits(32), rng.getrandbits(32), False
    move = model.move
    if operation in (COUNT, COUNT_INDIRECT):
        second = rng.choice((0, 0xFF, rng.getrandbits(8), rng.getrandbits(32), 0x100))
        beyond = second > 0xFF
        indirect = move.count_indirect or operation == COUNT_INDIRECT
        move = replace(move, count=(second & 0xFF) << 32 | first, count_indirect=indirect)
    elif operation == SIGNAL:
        move = replace(move, signal=True)
    elif operation == SWAP:
        move = replace(move, swap=bool(first & 1))
    elif operation in (AFTER, AFTER_ALL):
        first = rng.choice((0, 1, 2, 5, 31, 32, 33, 64, 0xFFFFFFFF))
        below = (1 << min(first, 32)) - 1
        mask = below if operation == AFTER_ALL else below & ~(below >> 1) if first <= 32 else 0
        move = replace(move, dependencies=move.dependencies | mask)
    elif operation == STREAM_AFTER:
        first = rng.choice((0, 1, 32, 63))
        if first and not move.segment_dependency0:
            move = replace(move, segment_dependency0=first)
        elif first:
            move = replace(move, segment_dependency1=first)
    elif operation == FUNCTION:
        model.func, model.override = int(rng.choice(list(S.Func))), True
        first = first & ~0xFF | model.func
    elif operation in (TAKE_STREAM, KEEP_STREAM):
        stream = S.Operand(kind=S.OperandKind.STREAM, offset=first)
        move = replace(move, **{"op0" if operation == TAKE_STREAM else "local": stream})
    model.move = move
    return operation, first, second, beyond


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_moves(dut):
    rng, seen, model = new_random("build"), Counter(), Model()
    dut.valid_i.value = dut.instruction_i.value = 0
    await start_clock_and_reset(dut)
    for _ in range(scaled(30000, 10000)):
        valid, draw = rng.random() < 0.9, rng.random()
        before = model.move, model.func, model.override, model.ticket, model.open
        shown = model.expected() if model.move is not None else None
        group, beyond, stale = BUILD, False, None
        second = rng.getrandbits(32)
        if model.move is None or draw < 0.1:
            dtype, func = rng.choice(list(S.Datatype)), rng.choice(list(S.Func))
            operation, first = BEGIN, int(func) << 8 | int(dtype) << 16 | rng.getrandbits(8) | rng.getrandbits(10) << 22
            model.move = S.Move(kind=S.MoveKind.MOVE, dtype=dtype)
            model.func, model.override = int(func), False
            model.ticket, model.open = model.ticket + 1, True
        elif draw < 0.25:
            operation, first = EMIT, max(0, model.ticket - rng.choice((0, 0, 0, 1, 2))) ^ (rng.random() < 0.05) << 31
            stale, model.open = not model.open or first != model.ticket, False
            seen["stale" if stale else "given out"] += 1
        elif draw < 0.5:
            group, (operation, first, second, beyond) = PLACE, random_place(rng, model)
        elif draw < 0.7:
            group, (operation, first, second, beyond) = PEER, random_peer(rng, model)
        elif draw < 0.95:
            operation, first, second, beyond = random_build(rng, model)
        else:  # instructions of other units
            group, operation, first = rng.choice((0, 4, 5, 6, 7)), rng.getrandbits(7), rng.getrandbits(32)
        if not valid:
            model.move, model.func, model.override, model.ticket, model.open = before
        values = {"operation": operation, "group": group, "first": first, "second": second}
        dut.instruction_i.value, dut.valid_i.value = records.pack(INSTRUCTION, values), valid
        await FallingEdge(dut.clk_i)
        if shown is not None:
            assert int(dut.move_o.value) == int.from_bytes(shown.encode(), "little")
            seen["combines"] += shown.func != S.Func.NONE
        assert bool(int(dut.range_o.value)) == beyond
        if stale is not None:
            assert bool(int(dut.stale_o.value)) == stale
        assert int(dut.ticket_o.value) == before[3] + 1
        await RisingEdge(dut.clk_i)
        seen["beyond"] += beyond
        seen[group, operation & 3 if group != BUILD else operation] += valid
    wanted = [(PLACE, which) for which in range(4)] + [(PEER, which) for which in range(4)]
    for what in (*wanted, *((BUILD, operation) for operation in range(12)), "stale", "given out", "beyond", "combines"):
        assert seen[what] > 50, what


def test_unisono_cpu_build():
    simulate("unisono_cpu_build", __file__)
