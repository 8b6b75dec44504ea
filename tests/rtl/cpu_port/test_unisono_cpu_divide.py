"""unisono_cpu_divide: random and extreme numbers in all slots, some of which were divided before."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

SLOTS = 8


def number(rng, bits):
    return rng.choice(
        (0, 1, (1 << bits) - 1, 1 << bits // 2, rng.getrandbits(bits), rng.getrandbits(rng.randint(1, bits)))
    )


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_divisions(dut):
    rng, seen = new_random("divide"), Counter()
    for name in ("slot", "total_valid", "total", "divide", "parts"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    last: dict[int, tuple[int, int]] = {}
    for _ in range(2):
        kept: dict[int, tuple[int, int]] = {}  # a reset forgets what was divided
        for _ in range(scaled(1200, 300)):
            slot = rng.randrange(SLOTS)
            total, parts = number(rng, 64), number(rng, 32) or 1
            like = rng.random()
            if slot in last and like < 0.6:
                total = last[slot][0] if like > 0.1 else total
                parts = last[slot][1] if like < 0.5 else parts
            dut.slot_i.value, dut.total_valid_i.value, dut.total_i.value = slot, 1, total
            await RisingEdge(dut.clk_i)
            dut.total_valid_i.value, dut.total_i.value = 0, rng.getrandbits(64)
            for _ in range(rng.choice((0, 0, 3))):
                dut.parts_i.value = rng.getrandbits(32)  # not yet a divisor
                await RisingEdge(dut.clk_i)
            dut.parts_i.value, dut.divide_i.value = parts, 1
            cycles = 0
            await FallingEdge(dut.clk_i)
            while not int(dut.done_o.value):
                cycles += 1
                await FallingEdge(dut.clk_i)
            known = kept.get(slot) == (total, parts)
            assert cycles == (0 if known else 33 if total < 1 << 32 else 65)
            assert (int(dut.quotient_o.value), int(dut.rest_o.value)) == divmod(total, parts)
            seen["known" if known else "new"] += 1
            seen["total alone"] += slot in kept and kept[slot][0] == total and not known
            seen["parts alone"] += slot in kept and kept[slot][1] == parts and not known
            last[slot] = kept[slot] = total, parts
            await RisingEdge(dut.clk_i)
            dut.divide_i.value, dut.parts_i.value = 0, rng.getrandbits(32)
            for other in rng.sample(sorted(kept), 1):
                dut.slot_i.value = other
                await FallingEdge(dut.clk_i)
                assert (int(dut.quotient_o.value), int(dut.rest_o.value)) == divmod(*kept[other])
                await RisingEdge(dut.clk_i)
        await reset_again(dut)
    for what in ("known", "new", "total alone", "parts alone"):
        assert seen[what] > 20, what


def test_unisono_cpu_divide():
    simulate("unisono_cpu_divide", __file__)
