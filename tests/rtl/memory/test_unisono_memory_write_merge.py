"""unisono_memory_write_merge: bytes of words in their places in beats, items back to back and alone."""

from collections import Counter, deque

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

LATENCY = 4


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_items(dut):
    rng, seen = new_random("merge"), Counter()
    width = parameters()["DataBytes"]
    for name in ("item", "beat", "first", "close", "offset", "kept", "data"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        coming = deque([None] * LATENCY)
        former = [(False, 0)] * width  # the word before: of each byte whether it counts, and it
        offset, begins, often = 0, True, 0.5
        for cycle in range(scaled(12000, 4000)):
            if cycle % 50 == 0:
                often = rng.choice((0.05, 0.5, 1.0))
            item = rng.random() < often
            begins = begins or rng.random() < 0.2
            if item and begins:
                offset = rng.randrange(width)
            beat = rng.random() < 0.9
            data, kept = rng.randbytes(width), rng.choice((0, (1 << width) - 1, rng.getrandbits(width)))
            close = rng.random() < 0.4
            dut.item_i.value, dut.beat_i.value, dut.first_i.value = item, item and beat, begins
            dut.close_i.value, dut.offset_i.value = item and beat and close, offset
            dut.kept_i.value, dut.data_i.value = kept, int.from_bytes(data, "little")
            await FallingEdge(dut.clk_i)
            expected = coming.popleft()
            assert bool(int(dut.beat_valid_o.value)) == (expected is not None)
            if expected is None:
                assert not int(dut.beat_close_o.value)
            else:
                assert bool(int(dut.beat_close_o.value)) == expected[1]
                strobe, told = int(dut.beat_strobe_o.value), int(dut.beat_data_o.value)
                for place, (counts, value) in enumerate(expected[0]):
                    assert bool(strobe >> place & 1) == counts, place
                    assert not counts or told >> 8 * place & 255 == value, place
            await RisingEdge(dut.clk_i)
            coming.append(None)
            if item and beat:
                word = [(bool(kept >> place & 1), data[place]) for place in range(width)]
                turned = [word[(place - offset) % width] for place in range(width)]
                whole = [
                    turned[place] if place >= offset else (former[place][0] and not begins, former[place][1])
                    for place in range(width)
                ]
                coming[-1] = whole, close
                former = turned
                seen["first" if begins else "later"] += 1
                seen["closed"] += close
                begins = False
            seen["alone"] += item and not any(coming)
        for name in ("item", "beat", "close"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut, 4)
        for _ in range(8):
            assert not int(dut.beat_valid_o.value)
            await RisingEdge(dut.clk_i)
    assert min(seen["first"], seen["later"], seen["closed"]) > 100


@pytest.mark.parametrize("data_bytes", [8, 64])
def test_unisono_memory_write_merge(data_bytes):
    simulate("unisono_memory_write_merge", __file__, {"DataBytes": data_bytes})
