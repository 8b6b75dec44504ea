"""unisono_round_robin: against a model of the order, and the bound on waiting."""

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_a_model(dut):
    rng = new_random("round robin")
    count = parameters()["Requests"]
    dut.request_i.value = dut.advance_i.value = 0
    await start_clock_and_reset(dut)
    last = count - 1
    waits = [0] * count
    longest = 0
    request = 0
    for _ in range(4000):
        # A request stays until it is granted and used; some come and go all the same.
        request |= rng.getrandbits(count) & rng.getrandbits(count)
        advance = rng.random() < 0.8
        dut.request_i.value, dut.advance_i.value = request, int(advance)
        await ReadOnly()
        grant, index = int(dut.grant_o.value), int(dut.index_o.value)
        order = [(last + 1 + step) % count for step in range(count)]
        expected = next((i for i in order if request >> i & 1), None)
        assert grant == (0 if expected is None else 1 << expected)
        if expected is not None:
            assert index == expected
        await RisingEdge(dut.clk_i)
        if advance and expected is not None:
            last = expected
            for i in range(count):
                waits[i] = waits[i] + 1 if request >> i & 1 and i != expected else 0
            longest = max(longest, *waits)
            request &= ~(1 << expected)
        if rng.random() < 0.05:
            request = rng.getrandbits(count)
            waits = [0] * count
    assert longest == count - 1


@pytest.mark.parametrize("requests", [full(1), full(2), 3, full(4), 8, full(13)])
def test_unisono_round_robin(requests):
    simulate("unisono_round_robin", __file__, {"Requests": requests})
