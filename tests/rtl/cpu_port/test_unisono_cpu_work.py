"""unisono_cpu_work: items and steps with and without room, moves that wait, programs that end, faults."""

from collections import Counter, deque

import cocotb
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

START, MORE, CONTROL = 1, 2, 3
SLOTS = 8


class Model:
    """What the module holds: the item that waits, the slot that is stepped, and when its last move went."""

    def __init__(self):
        self.item, self.slot, self.stepping, self.ended, self.quiet = None, 0, False, False, 0
        self.step = None  # told in this cycle


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_items(dut):
    rng, seen = new_random("work"), Counter()
    for name in ("work_valid", "work", "room", "asks", "answered", "ends", "fault", "move_valid", "blocked"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        model, offered, asks, moves, fault = Model(), None, False, 0, False
        waits = Waits(seen)
        expected = deque()
        hurry, room_part = 0.5, 0.5
        for cycle in range(scaled(24000, 8000)):
            if cycle % 100 == 0:
                hurry, room_part = rng.choice((0.05, 0.5, 1.0)), rng.choice((0.0, 0.3, 1.0))
            if offered is None and rng.random() < hurry:
                offered = rng.choice((START, MORE, MORE, CONTROL)), rng.randrange(SLOTS)
            # A move that stays on offer until it is taken; the core asks when it has done with the item before.
            moves = moves or (model.stepping and not asks and rng.random() < 0.3)
            blocked = bool(moves) and rng.random() < 0.5
            ends = model.stepping and not asks and rng.random() < 0.1
            fault = rng.random() < 0.5 if fault else rng.random() < 0.01
            asks = asks or (not ends and rng.random() < 0.3)
            dut.work_valid_i.value = offered is not None
            kind, slot = offered or (rng.randrange(4), rng.randrange(SLOTS))
            dut.work_i.value = kind << 3 | slot
            room = sum((rng.random() < room_part) << one for one in range(SLOTS))
            dut.room_i.value, dut.asks_i.value, dut.ends_i.value = room, asks, ends
            dut.fault_i.value, dut.move_valid_i.value, dut.blocked_i.value = fault, bool(moves), blocked
            dut.answered_i.value = 0
            await FallingEdge(dut.clk_i)
            # What is said depends on the item and the slot alone.
            there, again = int(dut.there_o.value), int(dut.again_o.value)
            assert bool(there) == (model.item is not None)
            assert int(dut.slot_o.value) == model.slot
            if there:
                assert int(dut.item_o.value) == model.item[0] << 3 | model.item[1]
            wanted = model.stepping and not model.ended and not there and bool(room >> model.slot & 1)
            assert bool(again) == (wanted and not moves and model.quiet >= 2)
            assert bool(int(dut.step_valid_o.value)) == (model.step is not None)
            if model.step is not None:
                assert int(dut.step_slot_o.value) == model.step
                assert expected.popleft() == model.step
            answered = asks and not blocked and bool(there or again or fault) and rng.random() < 0.8
            dut.answered_i.value = answered
            taken = waits.taken("work", offered is not None, bool(int(dut.work_ready_o.value)), offered)
            await RisingEdge(dut.clk_i)
            takes = answered and not fault and model.item is not None
            done = asks and model.stepping and not fault and not blocked and not again
            model.step = model.slot if done else None
            if done:
                seen["steps"] += 1
                model.stepping = False
            model.quiet = 0 if moves else model.quiet + 1
            if takes:
                kind, slot = model.item
                seen[kind] += 1
                model.item, model.ended = None, False
                model.stepping = kind != CONTROL
                if model.stepping:
                    model.slot = slot
                    expected.append(slot)
            elif ends:
                model.ended = True
                seen["ends"] += 1
            seen["again"] += answered and bool(again)
            seen["fault"] += answered and fault
            if taken:
                model.item, offered = offered, None
            if answered:
                asks = False
            if not blocked:
                moves = 0
        assert len(expected) <= 1
        dut.work_valid_i.value = dut.asks_i.value = dut.answered_i.value = dut.move_valid_i.value = 0
        await reset_again(dut)
    for what in (START, MORE, CONTROL, "steps", "ends", "again", "fault", "work waits"):
        assert seen[what] > 50, what


def test_unisono_cpu_work():
    simulate("unisono_cpu_work", __file__)
