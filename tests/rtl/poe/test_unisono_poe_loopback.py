"""unisono_poe_loopback: what is granted comes back, in order, whole; what is not is dropped."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import pytest
from bus import new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, with_timeout
from hdl import full, parameters, simulate
from poe_bench import CONTROL, Receiver, Segment, Sender, length_near_words


def segments(rng: random.Random, count: int) -> list[Segment]:
    """Data and control of all lengths."""
    shape = parameters()
    chosen = []
    for _ in range(count):
        control = rng.random() < 0.3
        most = shape["MaxControl"] if control else shape["MaxPayload"]
        chosen.append(
            Segment(CONTROL if control else 0, rng.randbytes(length_near_words(rng, most, shape["DataBytes"])))
        )
    return chosen


async def comes_back(dut: Any, number: int) -> None:
    rng = new_random(f"loopback {number}")
    sender = Sender(dut, pause=rng.choice(paces(rng))[1], grant_pause=rng.choice(paces(rng))[1])
    receiver = Receiver(dut, pause=rng.choice(paces(rng))[1], meta_pause=rng.choice(paces(rng))[1])
    await start_clock_and_reset(dut)
    sent = segments(rng, 150)
    expected: dict[int, deque[bytes]] = {0: deque(), CONTROL: deque()}

    async def send() -> None:
        for segment in sent:
            expected[segment.session].append(segment.data)
            await sender.send(segment)

    cocotb.start_soon(send())
    for _ in sent:
        segment = await with_timeout(receiver.receive(), 100, "us")
        assert segment.data == expected[segment.session].popleft()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def what_is_sent_comes_back(dut: Any) -> None:
    await comes_back(dut, 0)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def what_is_sent_comes_back_at_other_paces(dut: Any) -> None:
    await comes_back(dut, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def control_passes_data_that_is_not_taken(dut: Any) -> None:
    """Data fills all space; a control segment then still has its own, and is the next to come back but one."""
    rng = new_random("control")
    shape = parameters()
    stalled = True
    sender = Sender(dut)
    receiver = Receiver(dut, pause=lambda: stalled, meta_pause=lambda: stalled)
    await start_clock_and_reset(dut)
    length = 4 * shape["DataBytes"]
    count = 0
    while await sender.ask(0, length):
        count += 1
    assert count == shape["DataWords"] // 4
    sender.commit(0, rng.randbytes(length))
    await ClockCycles(dut.clk_i, 60)
    control = rng.randbytes(shape["MaxControl"])
    assert await sender.ask(CONTROL, len(control))
    sender.commit(CONTROL, control)
    for _ in range(count - 1):
        sender.commit(0, rng.randbytes(length))
    await ClockCycles(dut.clk_i, 60)
    stalled = False
    sessions = [(await with_timeout(receiver.receive(), 20, "us")).session for _ in range(count + 1)]
    assert sessions.index(CONTROL) <= 2
    assert sessions.count(0) == count


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def drops_what_it_did_not_grant(dut: Any) -> None:
    rng = new_random("drops")
    shape = parameters()
    sender, receiver = Sender(dut), Receiver(dut)
    await start_clock_and_reset(dut)
    dropped = 0

    async def count() -> None:
        nonlocal dropped
        while True:
            await ClockCycles(dut.clk_i, 1)
            dropped += int(dut.dropped_o.value)

    cocotb.start_soon(count())
    sender.commit(0, rng.randbytes(20))  # nothing was asked for
    assert await sender.ask(1, 20)  # the session is not open: granted, and lost
    sender.commit(1, rng.randbytes(20))
    assert await sender.ask(0, shape["MaxPayload"] + 1)  # can never be sent
    sender.commit(0, rng.randbytes(shape["MaxPayload"] + 1))
    for wrong in (19, 21, 200):
        assert await sender.ask(0, 20)
        sender.commit(0, rng.randbytes(wrong), stated=20)
    right = rng.randbytes(20)
    assert await sender.ask(0, 20)
    sender.commit(0, right)
    segment = await with_timeout(receiver.receive(), 100, "us")
    assert segment == Segment(0, right)
    await ClockCycles(dut.clk_i, 20)
    assert dropped == 6
    # What was dropped has given its space back.
    words = 0
    while await sender.ask(0, shape["DataBytes"]):
        words += 1
    assert words == shape["DataWords"]


@pytest.mark.parametrize("data_bytes", [full(16), 64])
def test_unisono_poe_loopback(data_bytes: int) -> None:
    shape = {"DataBytes": data_bytes, "DataWords": 32, "ControlWords": 16, "MaxPayload": 30 * data_bytes}
    simulate("unisono_poe_loopback", __file__, {**shape, "MaxControl": 4 * data_bytes}, limit_s=400)
