"""unisono_replay_numbers: collectives of random communicators, some of them made anew, against a dictionary."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

LIFE = 3
"""From this bit on the state tells a new communicator from one that has changed."""


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_collectives(dut):
    rng, seen = new_random("numbers"), Counter()
    dut.communicator_i.value = dut.state_i.value = dut.count_i.value = 0
    await start_clock_and_reset(dut)
    lives: dict[int, int] = {}
    for _ in range(2):
        numbers: dict[int, tuple[int, int]] = {}  # a reset forgets them, although the communicators are the same
        for _ in range(scaled(4000, 1200)):
            one = rng.choice((0, 1, 31, rng.randrange(32)))
            if rng.random() < 0.1 or one not in lives:
                lives[one] = rng.getrandbits(32 - LIFE)
                seen["anew"] += one in numbers
            dut.communicator_i.value, dut.state_i.value = one, lives[one] << LIFE | rng.getrandbits(LIFE)
            await RisingEdge(dut.clk_i)
            counts = rng.random() < 0.7
            dut.count_i.value = counts
            await FallingEdge(dut.clk_i)
            life, number = numbers.get(one, (None, 0))
            number = number if life == lives[one] else 0
            assert int(dut.number_o.value) == number
            seen["goes on"] += number > 1
            if counts:
                numbers[one] = (lives[one], number + 1)
            await RisingEdge(dut.clk_i)
            dut.count_i.value = 0
        await reset_again(dut)
    assert min(seen["anew"], seen["goes on"]) > 50


def test_unisono_replay_numbers():
    simulate("unisono_replay_numbers", __file__)
