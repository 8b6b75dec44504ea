"""unisono_ram_sdp: against a model, with many reads of the address being written (read-first)."""

import cocotb
import pytest
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_a_model(dut):
    rng = new_random("ram")
    depth, registered = parameters()["Depth"], parameters()["OutputRegister"]
    bits = parameters()["Width"]
    Clock(dut.clk_i, 4, unit="ns").start()
    memory = [None] * depth
    first = second = None
    collisions = 0
    dut.wr_en_i.value = dut.rd_en_i.value = dut.rd_out_en_i.value = 0
    await RisingEdge(dut.clk_i)
    for _ in range(3000):
        write, read, move = rng.random() < 0.6, rng.random() < 0.7, rng.random() < 0.7
        address = rng.randrange(depth)
        other = address if rng.random() < 0.3 else rng.randrange(depth)
        data = rng.getrandbits(bits)
        dut.wr_en_i.value, dut.wr_addr_i.value, dut.wr_data_i.value = int(write), address, data
        dut.rd_en_i.value, dut.rd_out_en_i.value, dut.rd_addr_i.value = int(read), int(move), other
        await RisingEdge(dut.clk_i)
        # The edge has not acted yet: this is the state before it.
        expected = second if registered else first
        if expected is not None:
            assert int(dut.rd_data_o.value) == expected
        if move:
            second = first
        if read:
            first = memory[other]
            collisions += write and other == address and first is not None
        if write:
            memory[address] = data
    assert collisions > 100


@pytest.mark.parametrize(
    ("width", "depth", "registered", "style"),
    [full(1, 2, 0, "auto"), (36, 33, 0, "distributed"), (72, 512, 1, "block"), full(577, 16, 1, "block")],
)
def test_unisono_ram_sdp(width, depth, registered, style):
    simulate(
        "unisono_ram_sdp",
        __file__,
        {"Width": width, "Depth": depth, "OutputRegister": registered, "RamStyle": f'"{style}"'},
    )
