"""unisono_smi_arbiter: against a model; bursts, no idle cycle, the bound on waiting."""

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_a_model(dut):
    rng = new_random("smi arbiter")
    count, burst = parameters()["Requests"], parameters()["Burst"]
    dut.request_i.value = 0
    await start_clock_and_reset(dut)
    turn, last, left = count - 1, None, 0
    waits = [0] * count
    longest = 0
    request = 0
    part = 0.5
    for cycle in range(4000):
        if cycle % 200 == 0:
            part = rng.choice((0.1, 0.5, 0.9, 1.0))
        for i in range(count):
            if not request >> i & 1 and rng.random() < part:
                request |= 1 << i
        dut.request_i.value = request
        await ReadOnly()
        grant, index = int(dut.grant_o.value), int(dut.index_o.value)
        if left and last is not None and request >> last & 1:
            expected, left = last, left - 1
        else:
            order = [(turn + 1 + step) % count for step in range(count)]
            expected = next((i for i in order if request >> i & 1), None)
            left = 0
            if expected is not None:
                turn = last = expected
                left = burst - 1
        assert grant == (0 if expected is None else 1 << expected)
        if expected is not None:
            assert index == expected
            for i in range(count):
                waits[i] = waits[i] + 1 if request >> i & 1 and i != expected else 0
            longest = max(longest, *waits)
            request &= ~(1 << expected)
        await RisingEdge(dut.clk_i)
    assert longest <= (count - 1) * burst
    assert count == 1 or longest > (count - 2) * burst


@pytest.mark.parametrize(("requests", "burst"), [(3, 1), (10, 8), full(5, 4), full(1, 8), full(18, 16)])
def test_unisono_smi_arbiter(requests, burst):
    simulate("unisono_smi_arbiter", __file__, {"Requests": requests, "Burst": burst})
