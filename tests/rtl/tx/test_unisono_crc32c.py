"""The header checksum against a bit-by-bit CRC and the C++ core."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from hdl import full, parameters, simulate
from headers import core_seals, crc32c


@cocotb.test(timeout_time=100, timeout_unit="us")
async def messages(dut: Any) -> None:
    """Single bits, extremes and random messages, one per cycle."""
    rng = new_random("crc")
    given = parameters()
    stages, linear = given["Stages"], given["Linear"]
    Clock(dut.clk_i, 4, unit="ns").start()
    values = [0, (1 << 480) - 1, *(1 << bit for bit in range(480)), *(rng.getrandbits(480) for _ in range(1000))]
    zeros = crc32c(bytes(60))
    wanted = [crc32c(value.to_bytes(60, "little")) ^ (zeros if linear else 0) for value in values]
    sealed = core_seals([value.to_bytes(64, "little") for value in values[-200:]])
    # A random message is no legal header: the core's encoder leaves reserved bits out. Those it kept must agree.
    kept = [raw for raw, value in zip(sealed, values[-200:], strict=True) if raw[:60] == value.to_bytes(60, "little")]
    assert all(int.from_bytes(raw[60:], "little") == crc32c(raw[:60]) for raw in sealed), f"{len(kept)} kept"
    got = []
    await RisingEdge(dut.clk_i)
    given_at = []
    offered: list[int | None] = [*values[:100]]
    for value in values[100:]:
        # Cycles without a message, in which anything may stand there.
        offered += [None] * rng.choice((0, 0, 0, 1, 3))
        offered.append(value)
    for cycle, offer in enumerate(offered + [None] * (stages + 1)):
        dut.valid_i.value = int(offer is not None)
        dut.data_i.value = rng.getrandbits(480) if offer is None else offer
        if offer is not None:
            given_at.append(cycle)
        await RisingEdge(dut.clk_i)
        got.append(int(dut.crc_o.value))
    # Sampled at the edge that ends the cycle in which the message was there.
    assert [got[cycle + stages] for cycle in given_at] == wanted


@pytest.mark.parametrize(("stages", "linear"), [(2, 0), full(1, 0), full(0, 0), (0, 1)])
def test_unisono_crc32c(stages: int, linear: int) -> None:
    simulate("unisono_crc32c", __file__, {"Stages": stages, "Linear": linear})
