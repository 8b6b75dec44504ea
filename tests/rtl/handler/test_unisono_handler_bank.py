"""unisono_handler_bank: a bank of a table, beside its memory and its adder: sums in their order, and at their rate."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import scaled, simulate

I32, I64, FP32, FP64 = 2, 3, 4, 5
ROWS = 16
DEPTH = 16
ADDER = 8  # cycles


def added(element: int, a: int, b: int) -> int:
    """The sum, as the columns' adder has it; of two numbers of fp32, fp64 has enough bits to round twice."""
    if element in (I32, I64):
        return a + b & ((1 << (32 if element == I32 else 64)) - 1)
    letter, integer = ("f", "I") if element == FP32 else ("d", "Q")
    left, right = (struct.unpack(f"<{letter}", struct.pack(f"<{integer}", x))[0] for x in (a, b))
    return int(struct.unpack(f"<{integer}", struct.pack(f"<{letter}", left + right))[0])


class Bank:
    """Memory of 8 bytes a row, of which an entry may be a half, and the adder."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("bank")
        self.rows = [0] * ROWS
        self.sums: deque[int | None] = deque([None] * (ADDER - 1))
        self.element = I32
        self.cycles = self.fill = 0
        dut.push_i.value = 0
        dut.element_i.value = I32
        dut.rd_data_i.value = dut.added_i.value = 0

    async def cycle(self, push: tuple[int, int] | None = None) -> None:
        """One, with an entry to add to, or none."""
        dut = self.dut
        dut.push_i.value = push is not None
        if push is not None:
            dut.at_i.value, dut.value_i.value = push
        await RisingEdge(dut.clk_i)
        self.cycles += 1
        assert int(dut.room_o.value) == (self.fill < DEPTH)
        self.fill += (push is not None) - int(dut.rd_en_o.value)
        # What the edge has taken: a write, a read of what was before it, and an addition.
        read = self.rows[int(dut.rd_address_o.value) >> 3] if int(dut.rd_en_o.value) else None
        if int(dut.wr_en_o.value):
            self.write(int(dut.wr_address_o.value), int(dut.wr_data_o.value))
        both = (int(dut.add_a_o.value), int(dut.add_b_o.value)) if int(dut.add_o.value) else None
        self.sums.append(None if both is None else added(self.element, *both))
        total = self.sums.popleft()
        dut.added_i.value = self.rng.getrandbits(64) if total is None else total
        dut.rd_data_i.value = self.rng.getrandbits(64) if read is None else read

    def write(self, address: int, value: int) -> None:
        row = address >> 3
        if self.element in (I64, FP64):
            self.rows[row] = value
        else:
            shift = 32 * (address >> 2 & 1)
            self.rows[row] = self.rows[row] & ~(0xFFFFFFFF << shift) | (value & 0xFFFFFFFF) << shift

    async def settle(self) -> None:
        for _ in range(400):
            await self.cycle()
            if not int(self.dut.busy_o.value):
                return
        raise AssertionError("it does not come to an end")

    def number(self) -> int:
        if self.element == FP32:
            return struct.unpack("<I", struct.pack("<f", self.rng.gauss(0, 1000)))[0]
        if self.element == FP64:
            return struct.unpack("<Q", struct.pack("<d", self.rng.gauss(0, 1000)))[0]
        return self.rng.getrandbits(32 if self.element == I32 else 64)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_entries(dut: Any) -> None:
    bank = Bank(dut)
    await start_clock_and_reset(dut)
    rng = bank.rng
    for turn in range(scaled(60, 20)):
        bank.element = dut.element_i.value = (I32, I64, FP32, FP64)[turn % 4]
        wide = bank.element in (I64, FP64)
        bytes_ = 8 if wide else 4
        entries = rng.choice((1, 2, 4, ROWS * 8 // bytes_))
        start = [bank.number() for _ in range(ROWS * 8 // bytes_)]
        for index, value in enumerate(start):
            bank.write(bytes_ * index, value)
        share = rng.choice((0.2, 0.7, 1))
        for _ in range(120):
            push = None
            if bank.fill < DEPTH and rng.random() < share:
                index, value = rng.randrange(entries), bank.number()
                push = (bytes_ * index, value)
                start[index] = added(bank.element, start[index], value)
            await bank.cycle(push)
        await bank.settle()
        found = b"".join(row.to_bytes(8, "little") for row in bank.rows)
        wanted = b"".join(value.to_bytes(bytes_, "little") for value in start)
        assert found == wanted, f"turn {turn}: element {bank.element}"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def rates(dut: Any) -> None:
    """Integers an entry a cycle, the same one too; of floating point other entries do so, the same one every 10."""
    bank = Bank(dut)
    await start_clock_and_reset(dut)
    for element, same, cycles in ((I32, True, 1), (I64, False, 1), (FP32, False, 1), (FP32, True, 10)):
        bank.element = dut.element_i.value = element
        bank.rows = [0] * ROWS
        one = 1 if element in (I32, I64) else 0x3F800000
        begin = bank.cycles
        for index in range(12):
            await bank.cycle((0 if same else 8 * index, one))
        await bank.settle()
        taken = bank.cycles - begin
        least = 12 * cycles
        assert least <= taken <= least + 14, f"element {element}: {taken} cycles"
        twelve = 12 if element == I32 else 0x41400000
        assert bank.rows[:12] == ([twelve] + [0] * 11 if same else [one] * 12)


def test_unisono_handler_bank() -> None:
    simulate("unisono_handler_bank", __file__, {"AddressBits": 8})
