"""unisono_message_segment: lengths around all limits, against the rule of the engine in C++."""

from __future__ import annotations

from collections import Counter

import cocotb
from bus import new_random
from cocotb.triggers import Timer
from hdl import scaled, simulate
from segments import segment_of, steps


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lengths(dut):
    rng, seen = new_random("segments"), Counter()
    edges = [0, 64, *(edge for pair in steps() for edge in pair), 8192, 1 << 47]
    for _ in range(scaled(20000, 5000)):
        bytes_ = max(0, min(rng.choice(edges) + rng.choice((-64, -1, 0, 1, 64)), (1 << 48) - 1))
        eager = rng.choice((16, 64, 2048, 4096, 8192))
        agreed = rng.choice((64, 2048, 2112, 4096, 5952, 8128, 8192))
        whole = rng.random() < 0.2
        want = segment_of(bytes_, eager, agreed, whole)
        dut.bytes_i.value, dut.whole_i.value = bytes_, whole
        dut.eager_limit_i.value, dut.segment_bytes_i.value = eager, agreed
        await Timer(1, unit="ns")
        assert int(dut.segment_o.value) == want, (bytes_, eager, agreed, whole)
        seen["agreed" if want == agreed else str(want)] += 1
    assert len(seen) == 3, seen
    assert min(seen.values()) > 100, seen


def test_unisono_message_segment():
    simulate("unisono_message_segment", __file__)
