"""unisono_handler_checksum: sums are those of RFC 1071, and come 4 cycles after the last word."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import scaled, simulate
from station_frames import checksum

LATENCY = 4


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_packets(dut: Any) -> None:
    rng = new_random("checksum")
    dut.valid_i.value = 0
    await start_clock_and_reset(dut)
    awaited: deque[tuple[int, int]] = deque()
    cycle, words = 0, []
    for _ in range(scaled(800, 200)):
        length = rng.choice((rng.randint(1, 64), rng.randint(1, 400), 64, 128, 8192 if rng.random() < 0.02 else 63))
        packet = rng.choice((rng.randbytes(length), b"\xff" * length, bytes(length)))
        words += [(packet[at : at + 64], at + 64 >= length, packet) for at in range(0, length, 64)]
    while words or awaited:
        valid = bool(words) and rng.random() < 0.8
        dut.valid_i.value = valid
        dut.data_i.value = rng.getrandbits(512)
        dut.keep_i.value = rng.getrandbits(64)
        dut.last_i.value = rng.getrandbits(1)
        if valid:
            part, last, packet = words.pop(0)
            dut.data_i.value = int.from_bytes(part.ljust(64, b"\xa5"), "little")
            dut.keep_i.value = (1 << len(part)) - 1
            dut.last_i.value = last
            if last:
                awaited.append((cycle + LATENCY, checksum(packet) ^ 0xFFFF))
        await RisingEdge(dut.clk_i)
        if int(dut.valid_o.value):
            due, total = awaited.popleft()
            assert due == cycle, f"it comes in cycle {cycle}, must be {due}"
            found = int(dut.sum_o.value)
            assert (found & 0xFF) << 8 | found >> 8 == total
        assert not awaited or awaited[0][0] > cycle
        cycle += 1


def test_unisono_handler_checksum() -> None:
    simulate("unisono_handler_checksum", __file__)
