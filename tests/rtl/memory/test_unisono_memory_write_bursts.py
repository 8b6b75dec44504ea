"""unisono_memory_write_bursts: requests only when all beats are here, beats in their order, and room."""

from collections import Counter, deque

import cocotb
import pytest
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

WAY = 4
"""Cycles of a beat from its making to the buffer."""


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_bursts(dut):
    rng, seen = new_random("bursts"), Counter()
    values = parameters()
    width, most, slots, words = (values[name] for name in ("DataBytes", "BurstBeats", "Outstanding", "BufferWords"))
    names = ("beat", "beat_valid", "beat_close", "beat_strobe", "beat_data", "burst", "burst_slot", "burst_block")
    for name in (*names, "burst_start", "burst_length", "request_ready", "out_ready"):
        getattr(dut, f"{name}_i").value = 0
    block_bits = len(dut.burst_block_i)
    await start_clock_and_reset(dut)
    for _ in range(2):
        way = deque([None] * WAY)  # beats on their way
        flying = slot = left = 0
        complete, requests, beats = deque(), deque(), deque()
        waits = Waits(seen)
        for cycle in range(scaled(16000, 5000)):
            if cycle % (3 * words) == 0:
                often, asks, sends = rng.choice((0.2, 1.0)), rng.choice((0.05, 1.0)), rng.choice((0.05, 0.5, 1.0))
            await FallingEdge(dut.clk_i)
            space = bool(int(dut.space_o.value))
            # Two beats at most have left the buffer, and are not taken yet.
            assert len(beats) < words + 2 if space else len(beats) >= words
            seen["full"] += not space
            # A burst begins only with a slot that is free.
            beat = space and (left > 0 or flying < slots) and rng.random() < often
            close = False
            if beat:
                if left == 0:
                    start = rng.choice((0, rng.randrange(most)))
                    length = rng.choice((most - start, rng.randint(1, most - start)))
                    left, burst = length, (slot, rng.getrandbits(block_bits), start, length - 1)
                    flying += 1
                    slot = (slot + 1) % slots
                left -= 1
                close = left == 0
                word = rng.getrandbits(8 * width), rng.getrandbits(width), close
            coming = way.popleft()
            way.append(word if beat else None)
            dut.beat_i.value, dut.burst_i.value = beat, close
            if close:
                dut.burst_slot_i.value, dut.burst_block_i.value = burst[:2]
                dut.burst_start_i.value, dut.burst_length_i.value = burst[2:]
            dut.beat_valid_i.value = coming is not None
            dut.beat_close_i.value = coming is not None and coming[2]
            if coming is not None:
                dut.beat_data_i.value, dut.beat_strobe_i.value = coming[:2]
            request_ready, out_ready = rng.random() < asks, rng.random() < sends
            dut.request_ready_i.value, dut.out_ready_i.value = request_ready, out_ready
            # What goes out.
            ports = ("request_id", "request_address", "request_length")
            valid = bool(int(dut.request_valid_o.value))
            asked = tuple(int(getattr(dut, f"{name}_o").value) for name in ports) if valid else None
            if valid:
                at, block, first, length = requests[0]
                assert complete, "a request before its last beat"
                assert asked == (at, (block * most + first) * width, length)
            if waits.taken("request", valid, request_ready, asked):
                requests.popleft()
                complete.popleft()
                seen["requests"] += 1
            valid = bool(int(dut.out_valid_o.value))
            told = tuple(int(getattr(dut, f"out_{name}_o").value) for name in ("data", "strobe", "last"))
            if valid:
                assert told == beats[0]
            if waits.taken("out", valid, out_ready, told if valid else None):
                beats.popleft()
                flying -= told[2]
            await RisingEdge(dut.clk_i)
            if close:
                requests.append(burst)
            if coming is not None and coming[2]:
                complete.append(True)
            if beat:
                beats.append((word[0], word[1], int(word[2])))
        for name in (*names, "request_ready", "out_ready"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("requests", "request waits", "out waits", "full"):
        assert seen[what] > 20, what


@pytest.mark.parametrize(
    ("data_bytes", "beats", "outstanding", "words"), [(8, 4, 2, 8), (8, 16, 16, 64), (64, 64, 16, 512)]
)
def test_unisono_memory_write_bursts(data_bytes, beats, outstanding, words):
    values = {"DataBytes": data_bytes, "BurstBeats": beats, "Outstanding": outstanding, "BufferWords": words}
    simulate("unisono_memory_write_bursts", __file__, values | {"AddressWidth": 32})
