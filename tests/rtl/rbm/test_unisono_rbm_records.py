"""unisono_rbm_records: records are written, read, forgotten and made void, against a dictionary of what is known."""

from collections import Counter

import cocotb
import pytest
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from hdl import full, parameters, scaled, simulate

PAIRS, RANKS = 512, 64


class Records:
    """Drives the module as the operations do: a pair is read in one cycle, and perhaps written in the next."""

    def __init__(self, dut):
        self.dut = dut
        self.known: dict[int, int] = {}
        self.stored: dict[int, int] = {}  # also what is not known any more, and what is void
        self.width = len(dut.record_o)
        for name in ("next_pair", "read", "read_pair", "write", "write_void", "write_pair", "write_record", "forget"):
            getattr(dut, f"{name}_i").value = 0
        dut.forget_slot_i.value = 0

    async def access(self, pair, record=None, void=False):
        """Reads a pair, compares it, and writes it in the cycle in which it is there."""
        dut = self.dut
        dut.next_pair_i.value = dut.read_pair_i.value = pair
        dut.read_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.read_i.value = 0
        if pair in self.stored:
            assert int(dut.known_o.value) == (pair in self.known), f"pair {pair}"
            assert int(dut.record_o.value) == self.stored[pair], f"pair {pair}"
        if record is not None:
            dut.write_i.value, dut.write_void_i.value = 1, void
            dut.write_pair_i.value, dut.write_record_i.value = pair, record
            # What is read stays, also while it is written.
            await FallingEdge(dut.clk_i)
            if pair in self.stored:
                assert int(dut.record_o.value) == self.stored[pair]
            dut.write_i.value = 0
            self.stored[pair] = record
            self.known.pop(pair, None)
            if not void:
                self.known[pair] = record

    async def forget(self, slot):
        """The slot's call is no more. Says whether its records had to be made void."""
        dut = self.dut
        dut.forget_slot_i.value = slot
        await FallingEdge(dut.clk_i)
        last = int(dut.last_o.value)
        if last:
            for pair in range(slot * RANKS, slot * RANKS + RANKS):
                await self.access(pair, self.stored[pair], void=True)
        dut.forget_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.forget_i.value = 0
        self.known = {pair: record for pair, record in self.known.items() if pair // RANKS != slot}
        return last


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_records(dut):
    rng, seen, width = new_random("records"), Counter(), parameters()["EpochWidth"]
    Clock(dut.clk_i, 4, unit="ns").start()
    records = Records(dut)
    await FallingEdge(dut.clk_i)
    # After a reset all are gone through; what they hold stays.
    for pair in range(PAIRS):
        await records.access(pair, rng.getrandbits(records.width), void=True)
    forgotten = Counter()
    for _ in range(scaled(12000, 4000)):
        pair = rng.choice((rng.randrange(PAIRS), rng.randrange(8) * RANKS, rng.randrange(8) * RANKS + RANKS - 1))
        seen["known" if pair in records.known else "not known"] += 1
        write = rng.random() < 0.5
        await records.access(pair, rng.getrandbits(records.width) if write else None)
        if rng.random() < 0.02:
            slot = rng.choice((0, 0, 7, rng.randrange(8)))
            was_last = await records.forget(slot)
            # The first epoch is 1, and none is 0: the last one comes as often as there are others.
            forgotten[slot] += 1
            assert was_last == (forgotten[slot] % ((1 << width) - 1) == 0), f"{forgotten[slot]}"
            seen["last"] += was_last
    assert min(seen["known"], seen["not known"]) > 100
    assert seen["last"] > 3 or width > 4


@pytest.mark.parametrize("epoch_width", [2, full(12)])
def test_unisono_rbm_records(epoch_width):
    simulate("unisono_rbm_records", __file__, {"EpochWidth": epoch_width})
