"""unisono_core_moves: moves in their order, malformed ones, ends, slots that are cleared, room."""

from collections import Counter, deque

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import load, pack

SLOTS, ROOM, WINDOW = 8, 6, 32
ENTERING = [("slot", 3), ("move", 512), ("receives", 64), ("sends", 64), ("distance", 6), ("trivial", 1)]
SIZES = (2, 3, 5, 8, 17, 33, 63, 64)


def some_move(rng, spec, size):
    """A move that sends, receives or copies, or names a rank that there is not; what is to be entered, or nothing."""
    kind = rng.choice(("send", "receive", "copy", "nothing"))
    beyond = kind in ("send", "receive") and size < 64 and rng.random() < 0.2
    peer = rng.randrange(size, 64) if beyond else rng.randrange(size)
    memory = spec.Operand(kind=spec.OperandKind.MEMORY, region=spec.Region.SRC, offset=rng.getrandbits(20))
    result = spec.Operand(kind=spec.OperandKind.MEMORY, region=spec.Region.DST, offset=rng.getrandbits(20))
    numbers = {"segment_dependency0": rng.randrange(32), "segment_dependency1": rng.randrange(32)}
    numbers |= {"dependencies": rng.getrandbits(32), "count": 0 if kind == "nothing" else rng.randint(1, 1000)}
    fields = {"kind": spec.MoveKind.MOVE, "dtype": spec.Datatype.FP32} | numbers
    if kind == "send":
        remote = spec.Remote(kind=spec.RemoteKind.MESSAGE, peer=peer, tag=rng.getrandbits(24))
        move = spec.Move(**fields, op0=memory, remote=remote)
    elif kind == "receive":
        arrival = spec.Arrival(peer=peer, tag=rng.getrandbits(24))
        move = spec.Move(**fields, op1=spec.Operand(kind=spec.OperandKind.ARRIVAL), arrival=arrival, local=result)
    else:
        move = spec.Move(**fields, op0=memory, local=result)
    entering = {
        "receives": 1 << peer if kind == "receive" else 0,
        "sends": 1 << peer if kind == "send" else 0,
        "distance": max(numbers["segment_dependency0"], numbers["segment_dependency1"]),
        "trivial": int(kind == "nothing"),
    }
    return move, None if beyond else entering


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_programs(dut):
    rng, seen, spec = new_random("moves"), Counter(), load()
    names = ("move_valid", "move_slot", "move", "move_end", "pool_write", "pool", "streams", "drains", "forgets")
    for name in (*names, "clear_slot", "clearing", "binding_ready", "binding", "read_command_ready", "read_valid"):
        getattr(dut, f"{name}_i").value = 0
    for name in ("read_data", "read_error", "push_ready", "window_room"):
        getattr(dut, f"{name}_i").value = 0
    dut.sizes_i.value = sum(size << 7 * s for s, size in enumerate(SIZES))
    await start_clock_and_reset(dut)
    coming = deque()  # what is on its way: slot, move or none for an end, what enters
    offered, clear, drains, alone = None, None, False, 0
    for cycle in range(scaled(24000, 8000)):
        if cycle % 80 == 0:
            often, pace = rng.choice((0.3, 1.0)), rng.choice((0.1, 0.5, 1.0))
        if clear is None and offered is None and rng.random() < 0.01:
            # Mostly one that has something on its way.
            clear, drains = rng.choice([*(slot for slot, *_ in coming), rng.randrange(SLOTS)]), True
            seen["dropped"] += any(slot == clear for slot, *_ in coming)
            coming = deque(one for one in coming if one[0] != clear)
        if offered is None and rng.random() < often:
            slot = rng.choice([s for s in range(SLOTS) if s != clear])
            end = rng.random() < 0.2
            offered = (slot, None, None) if end else (slot, *some_move(rng, spec, SIZES[slot]))
        rooms = [rng.choice((0, 3, WINDOW)) for _ in range(SLOTS)]
        # What is thrown away needs no room.
        alone = alone + 1 if drains and not coming else 0
        assert alone < 20
        ready = not alone and rng.random() < pace
        dut.move_valid_i.value = offered is not None
        if offered is not None:
            dut.move_slot_i.value, dut.move_end_i.value = offered[0], offered[1] is None
            dut.move_i.value = 0 if offered[1] is None else int.from_bytes(offered[1].encode(), "little")
        dut.push_ready_i.value, dut.drains_i.value = ready, drains
        dut.clearing_i.value, dut.clear_slot_i.value = (0, 0) if clear is None else (1 << clear, clear)
        dut.window_room_i.value = sum(room << ROOM * s for s, room in enumerate(rooms))
        await FallingEdge(dut.clk_i)
        assert not int(dut.binding_valid_o.value)
        taken = offered is not None and bool(int(dut.move_ready_o.value))
        assert not (taken and drains)
        idle = bool(int(dut.idle_o.value))
        if clear is None:
            shown = int(dut.room_o.value)
            for s, room in enumerate(rooms):
                under_way = sum(1 for slot, move, _ in coming if slot == s and move is not None)
                assert shown >> ROOM * s & 63 == max(0, room - under_way), s
        pushes, closes = bool(int(dut.push_valid_o.value)), bool(int(dut.close_valid_o.value))
        malformed = int(dut.malformed_o.value)
        if malformed >> 19:
            slot, move, entering = coming.popleft()
            assert move is not None
            assert entering is None
            assert malformed >> 16 & 7 == slot
            assert malformed & 0xFFFF
            seen["malformed"] += 1
        elif pushes:
            slot, move, entering = coming[0]
            assert move is not None
            assert entering is not None
            given = entering | {"slot": slot, "move": int.from_bytes(move.encode(), "little")}
            assert int(dut.push_o.value) == pack(ENTERING, given)
            if ready:
                coming.popleft()
                seen["trivial" if entering["trivial"] else "entered"] += 1
            seen["waits"] += not ready
        if closes:
            slot, move, _ = coming.popleft()
            assert move is None
            assert int(dut.close_slot_o.value) == slot
            seen["closed"] += 1
        await RisingEdge(dut.clk_i)
        if taken:
            coming.append(offered)
            offered = None
        if drains:
            if idle:
                assert not any(move is not None for _, move, _ in coming)
                drains = False
        elif clear is not None and rng.random() < 0.2:
            clear = None
            seen["cleared"] += 1
    for what in ("entered", "trivial", "malformed", "closed", "waits", "dropped", "cleared"):
        assert seen[what] > 10, what


def test_unisono_core_moves():
    simulate("unisono_core_moves", __file__, {"DataBytes": 8})
