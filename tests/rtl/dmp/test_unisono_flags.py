"""unisono_flags: against a list of bits in Python, all ports at once, often on the same bit."""

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import simulate

DEPTH = 512


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_bits(dut):
    rng = new_random("flags")
    bits = [False] * DEPTH
    dut.raise_valid_i.value = dut.lower_valid_i.value = 0
    dut.raise_index_i.value = dut.lower_index_i.value = dut.read_index_i.value = 0
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    for some in ([5], [0, 1, DEPTH - 1], range(16), range(DEPTH)):
        for _ in range(4000):
            raised, lowered, read = (rng.choice(some) for _ in range(3))
            raises, lowers = rng.random() < 0.5, rng.random() < 0.5
            dut.raise_index_i.value, dut.lower_index_i.value, dut.read_index_i.value = raised, lowered, read
            dut.raise_valid_i.value, dut.lower_valid_i.value = raises, lowers
            await ReadOnly()
            found = [bool(int(port.value)) for port in (dut.raise_bit_o, dut.lower_bit_o, dut.read_bit_o)]
            assert found == [bits[raised], bits[lowered], bits[read]]
            await RisingEdge(dut.clk_i)
            if raises and lowers and raised == lowered:
                bits[raised] = not bits[raised]
            elif raises or lowers:
                if raises:
                    bits[raised] = True
                if lowers:
                    bits[lowered] = False


def test_unisono_flags():
    simulate("unisono_flags", __file__)
