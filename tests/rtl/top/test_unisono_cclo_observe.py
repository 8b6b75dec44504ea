"""unisono_cclo_observe: events of calls, items and moves in each cycle against a model; counters add them up."""

from collections import Counter
from dataclasses import replace

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import load

SLOTS, ROOM, STEP = 8, 6, 16
CALM = ("busy", "descriptor", "ended", "ended_failed", "answers")
PORTS = (
    *(*CALM, "begins", "begins_slot", "call_id", "item", "item_of_call", "step", "move", "move_end", "move_slot"),
    *("clear_valid", "clear_slot", "room", "events", "record", "free_buffers", "read", "index", "cycles"),
)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_events(dut):
    rng, seen, spec = new_random("observe"), Counter(), load()
    counter = spec.Counter
    for name in PORTS:
        getattr(dut, f"{name}_i").value = 0
    dut.engine_rst_ni.value = 0
    events_width = len(dut.events_i)
    record_width = len(dut.record_i)
    await start_clock_and_reset(dut)
    dut.engine_rst_ni.value = 1
    await RisingEdge(dut.clk_i)
    since = None
    for _ in range(2):
        items, unfinished = 0, set()
        for _ in range(scaled(12000, 4000)):
            bits = {name: rng.random() < 0.4 for name in (*CALM, "begins", "move", "move_end", "clear_valid")}
            item, of_call = items < 6 and rng.random() < 0.3, rng.random() < 0.7
            step = items > 0 and rng.random() < 0.4
            slots = {name: rng.randrange(SLOTS) for name in ("begins_slot", "move_slot", "clear_slot")}
            rooms = [rng.choice((0, 15, 16, 32)) for _ in range(SLOTS)]
            ids = [rng.getrandbits(32) for _ in range(SLOTS)]
            inner, record = rng.getrandbits(events_width), rng.getrandbits(record_width)
            for name, value in (bits | slots).items():
                getattr(dut, f"{name}_i").value = value
            dut.item_i.value, dut.item_of_call_i.value, dut.step_i.value = item, of_call, step
            dut.room_i.value = sum(room << ROOM * s for s, room in enumerate(rooms))
            dut.call_id_i.value = sum(number << 32 * s for s, number in enumerate(ids))
            dut.events_i.value, dut.record_i.value = inner, record
            await FallingEdge(dut.clk_i)
            full = any(rooms[s] < STEP for s in unfinished)
            expected = {
                counter.CYCLES: True,
                counter.BUSY: bits["busy"],
                counter.DESCRIPTOR_WORDS: bits["descriptor"],
                counter.CALLS: bits["begins"],
                counter.CALLS_COMPLETED: bits["ended"] and not bits["ended_failed"],
                counter.CALLS_FAILED: bits["ended"] and bits["ended_failed"],
                counter.ANSWERS: bits["answers"],
                counter.CPU_ITEMS: item,
                counter.CPU_BUSY: items > 0,
                counter.MOVES: bits["move"] and not bits["move_end"],
                counter.STALL_WINDOW: items == 0 and full,
            }
            word = inner
            for number, value in expected.items():
                word = word & ~(1 << int(number)) | bool(value) << int(number)
                seen[int(number), bool(value)] += 1
            assert int(dut.events_o.value) == word
            now = int(dut.cycle_o.value)
            assert since is None or now == since + 1
            since = now
            await RisingEdge(dut.clk_i)
            items += (item and of_call) - step
            if bits["move"] and bits["move_end"]:
                unfinished.discard(slots["move_slot"])
            if bits["clear_valid"]:
                unfinished.discard(slots["clear_slot"])
            if bits["begins"]:
                unfinished.add(slots["begins_slot"])
        # A reset by the host: the time goes on.
        for name in PORTS:
            getattr(dut, f"{name}_i").value = 0
        dut.engine_rst_ni.value = 0
        await RisingEdge(dut.clk_i)
        dut.engine_rst_ni.value = 1
        await FallingEdge(dut.clk_i)
        since += 2
        assert int(dut.cycle_o.value) in (since - 1, since)
        since = None
        await RisingEdge(dut.clk_i)
    assert all(seen[int(number), True] > 50 for number in expected)
    assert all(seen[int(number), False] > 50 for number in expected if number != counter.CYCLES)
    await reset_again(dut)
    await FallingEdge(dut.clk_i)
    assert int(dut.cycle_o.value) < 5


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def records_and_counters(dut):
    rng, spec = new_random("records"), load()
    for name in PORTS:
        getattr(dut, f"{name}_i").value = 0
    dut.engine_rst_ni.value = 1
    await start_clock_and_reset(dut)
    for _ in range(500):
        ids = [rng.getrandbits(32) for _ in range(SLOTS)]
        dut.call_id_i.value = sum(number << 32 * s for s, number in enumerate(ids))
        numbers = {"index": rng.getrandbits(16), "entered": rng.getrandbits(48), "retired": rng.getrandbits(48)}
        record = spec.MoveRecord(call_id=rng.getrandbits(32), slot=rng.randrange(SLOTS), **numbers)
        dut.record_i.value = int.from_bytes(record.encode(), "little")
        await FallingEdge(dut.clk_i)
        told = int(dut.record_o.value).to_bytes(spec.MoveRecord.BYTES, "little")
        assert told == replace(record, call_id=ids[record.slot]).encode()
        await RisingEdge(dut.clk_i)
    # A counter of what has happened: words of descriptors, in 100 cycles.
    before = []
    for wait in (0, 100):
        dut.descriptor_i.value = wait > 0
        for _ in range(wait):
            await RisingEdge(dut.clk_i)
        dut.descriptor_i.value = 0
        for _ in range(100):  # counters are brought up to date one after the other
            await RisingEdge(dut.clk_i)
        dut.read_i.value, dut.index_i.value = 1, int(spec.Counter.DESCRIPTOR_WORDS)
        await RisingEdge(dut.clk_i)
        dut.read_i.value = 0
        for _ in range(4):
            await RisingEdge(dut.clk_i)
        before.append(int(dut.value_o.value))
    assert before[1] - before[0] == 100


def test_unisono_cclo_observe():
    simulate("unisono_cclo_observe", __file__)
