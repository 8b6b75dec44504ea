"""unisono_memory_read_ring: bursts of commands, places of beats that come in any order, and room."""

from collections import Counter, deque

import cocotb
import pytest
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_commands(dut):
    rng, seen = new_random("ring"), Counter()
    values = parameters()
    width, most, slots, words = (values[name] for name in ("DataBytes", "BurstBeats", "Outstanding", "BufferWords"))
    names = ("cmd_valid", "cmd_address", "cmd_bytes", "request_ready", "answer_valid", "answer_id", "take", "take_last")
    for name in names:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        offered, bursts, waits = None, deque(), Waits(seen)  # bursts: to be requested, their first beat and beats
        asked = {}  # of each id that is asked for: its next place, beats that are to come
        reading = deque()  # of each burst in order: its id, beats that are to be taken
        arrived, place, begin, slot = Counter(), 0, 0, 0  # arrived: beats of an id that are there and not taken
        for cycle in range(scaled(16000, 5000)):
            if cycle % 100 == 0:
                asks, answers, takes, pace = (rng.choice((0.1, 0.5, 1.0)) for _ in range(4))
            if offered is None and len(bursts) < 40 and rng.random() < asks:
                length = rng.choice((1, rng.randint(1, 3 * width), rng.randint(1, 3 * most * width)))
                offered = rng.randrange(0, 1 << 20), length
            ready = rng.random() < pace
            which = rng.choice(list(asked)) if asked and rng.random() < answers else None
            dut.cmd_valid_i.value, dut.request_ready_i.value = offered is not None, ready
            if offered is not None:
                dut.cmd_address_i.value, dut.cmd_bytes_i.value = offered
            dut.answer_valid_i.value, dut.answer_id_i.value = which is not None, which or 0
            await FallingEdge(dut.clk_i)
            there = bool(reading) and arrived[reading[0][0]] > 0
            assert bool(int(dut.arrived_o.value)) == there
            assert int(dut.place_o.value) == place
            take = there and rng.random() < takes
            dut.take_i.value, dut.take_last_i.value = take, take and reading[0][1] == 1
            if which is not None:
                assert int(dut.answer_place_o.value) == asked[which][0]
            valid = bool(int(dut.request_valid_o.value))
            fields = ("id", "address", "length")
            word = tuple(int(getattr(dut, f"request_{name}_o").value) for name in fields) if valid else None
            if valid:
                first, beats = bursts[0]
                assert word == (slot, first * width, beats - 1)
                # Room is reserved before the request: what is asked for and not taken never passes the buffer.
                assert sum(left for _, left in reading) + beats <= words
                assert len(reading) < slots
                seen["full"] += len(reading) == slots - 1
            accepted = waits.taken("cmd", offered is not None, bool(int(dut.cmd_ready_o.value)), offered)
            requested = waits.taken("request", valid, ready, word)
            await RisingEdge(dut.clk_i)
            if which is not None:
                arrived[which] += 1
                seen["out of order"] += which != next(iter(asked))
                asked[which] = (asked[which][0] + 1) % words, asked[which][1] - 1
                if asked[which][1] == 0:
                    del asked[which]
            if take:
                arrived[reading[0][0]] -= 1
                reading[0][1] -= 1
                place = (place + 1) % words
                if reading[0][1] == 0:
                    reading.popleft()
            if requested:
                beats = bursts.popleft()[1]
                asked[slot] = begin, beats
                reading.append([slot, beats])
                begin = (begin + beats) % words
                slot = (slot + 1) % slots
                seen["requests"] += 1
            if accepted:
                first, end = offered[0] // width, -(-(offered[0] + offered[1]) // width)
                while first < end:
                    beats = min(end - first, most - first % most)
                    bursts.append((first, beats))
                    first += beats
                offered = None
        for name in names:
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("requests", "out of order", "request waits", "cmd waits", "full"):
        assert seen[what] > 20, what


@pytest.mark.parametrize(
    ("data_bytes", "beats", "outstanding", "words"), [(8, 4, 2, 8), (8, 16, 16, 64), (64, 64, 16, 512)]
)
def test_unisono_memory_read_ring(data_bytes, beats, outstanding, words):
    values = {"DataBytes": data_bytes, "BurstBeats": beats, "Outstanding": outstanding, "BufferWords": words}
    simulate("unisono_memory_read_ring", __file__, values | {"AddressWidth": 32})
