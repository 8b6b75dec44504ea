"""unisono_switch_narrow: words pass or are rounded as each asks, one a cycle, in 3 cycles."""

from __future__ import annotations

from collections import deque
from typing import Any

import bulk
import cocotb
import numpy as np
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge
from hdl import scaled, simulate

PASS, FP16, BF16 = 0, 1, 2


def numbers(rng: np.random.Generator) -> np.ndarray:
    """Bits of 32 numbers of fp32, many of them where fp16 ends, or half-way between two of either."""
    values = rng.integers(0, 1 << 32, 32, np.uint32)
    near = (
        (values & 0x80007FFF)
        | (rng.integers(100, 146, 32, np.uint32) << 23)
        | (rng.integers(0, 256, 32, np.uint32) << 15)
    )
    half = (near & 0xFFFFE000) | rng.choice(np.array([0, 0xFFF, 0x1000, 0x1001], np.uint32), 32)
    return np.where(rng.random(32) < 0.3, values, np.where(rng.random(32) < 0.5, near, half)).astype(np.uint32)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def any_mix(dut: Any) -> None:
    rng = new_random("narrow")
    draw = np.random.default_rng(rng.getrandbits(63))
    dut.in_valid_i.value = 0
    await start_clock_and_reset(dut)
    expected: deque[tuple[int, int, int] | None] = deque([None] * 3)
    seen = [0, 0, 0]
    for _ in range(scaled(4000)):
        await FallingEdge(dut.clk_i)
        want = expected.popleft()
        assert bool(int(dut.out_valid_o.value)) == (want is not None)
        if want:
            assert (int(dut.out_data_o.value), int(dut.out_last_o.value), int(dut.out_user_o.value)) == want
        word, mode, last, user = numbers(draw), rng.randrange(3), rng.randrange(2), rng.randrange(16)
        valid = rng.random() < 0.8
        dut.in_valid_i.value, dut.in_mode_i.value = int(valid), mode
        dut.in_last_i.value, dut.in_user_i.value = last, user
        dut.in_data_i.value = int.from_bytes(word[:16].tobytes(), "little")
        dut.in_upper_i.value = int.from_bytes(word[16:].tobytes(), "little")
        result = word[:16].tobytes() if mode == PASS else bulk.narrow(mode == BF16, word).tobytes()
        expected.append((int.from_bytes(result, "little"), last, user) if valid else None)
        seen[mode] += valid
    assert min(seen) > 100


def test_unisono_switch_narrow() -> None:
    bulk.narrow(False, np.zeros(4, np.uint32))
    simulate("unisono_switch_narrow", __file__, {"UserBits": 4})
