"""unisono_handler_round: numbers of 64 bits, and what was lost below, rounded once, as exact integers say."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from hdl import scaled, simulate

LATENCY = 3
# Element: bits of the fraction, bits of the exponent.
FORMATS = {4: (23, 8), 5: (52, 11), 6: (10, 5), 7: (7, 8)}


def rounded(sign: int, exponent: int, significand: int, lost: int, element: int) -> int:
    """To nearest even: the number is significand / 2^63 * 2^exponent, and less than a unit of it more if lost."""
    fraction, width = FORMATS[element]
    bias = (1 << width - 1) - 1
    top = sign << fraction + width
    if not significand:
        return top
    least = max(exponent, 1 - bias)  # exponent of the last bit that is kept, and `fraction`
    down = 63 - fraction + least - exponent
    exact = significand << 1 | lost  # half a unit below is more than nothing, and no tie
    whole, rest = exact >> down + 1, exact & (1 << down + 1) - 1
    half = 1 << down
    whole += rest > half or (rest == half and whole & 1)
    # The hidden bit of a normal number is 1 in the exponent.
    total = whole if least != exponent else (exponent + bias - 1 << fraction) + whole
    return top | min(total, (1 << width) - 1 << fraction)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_numbers(dut: Any) -> None:
    rng = new_random("round")
    Clock(dut.clk_i, 4, unit="ns").start()
    expected: deque[tuple[int, tuple[int, ...]]] = deque()
    kinds = dict.fromkeys(("subnormal", "infinite", "tie", "zero"), 0)
    for cycle in range(scaled(40_000, 8_000)):
        element = rng.choice(list(FORMATS))
        fraction, width = FORMATS[element]
        bias = (1 << width - 1) - 1
        significand = 1 << 63 | rng.getrandbits(63)
        lost = int(rng.random() < 0.5)
        exponent = rng.choice((rng.randint(-bias - 70, bias + 2), rng.randint(-bias - fraction - 3, 2 - bias),
                               bias, bias + 1, 0, rng.randint(-2000, 2000)))  # fmt: skip
        what = rng.random()
        if what < 0.5:
            # Near the middle between two numbers of the format: a tie, or a bit above or below it.
            cut = 63 - fraction + max(0, 1 - bias - exponent)
            if 0 < cut < 63:
                significand = significand >> cut << cut | 1 << cut - 1
                if rng.random() < 0.3:
                    significand += rng.choice((-1, 1))
                elif not lost:
                    kinds["tie"] += 1
                significand = significand & (1 << 64) - 1 | 1 << 63
        elif what < 0.6:
            significand = (1 << 64) - 1
        elif what < 0.62:
            significand = lost = exponent = 0
            kinds["zero"] += 1
        sign = rng.getrandbits(1)
        dut.value_i.value = sign << 79 | (exponent & 0x3FFF) << 65 | significand << 1 | lost
        dut.element_i.value = element
        result = rounded(sign, exponent, significand, lost, element)
        kinds["subnormal"] += 0 < result & (1 << fraction + width) - 1 < 1 << fraction
        kinds["infinite"] += result & (1 << fraction + width) - 1 == (1 << width) - 1 << fraction
        await RisingEdge(dut.clk_i)
        if len(expected) == LATENCY:
            wanted, given = expected.popleft()
            found = int(dut.result_o.value)
            assert found == wanted, f"cycle {cycle}: {given} is {found:#x}, must be {wanted:#x}"
        expected.append((result, (sign, exponent, significand, lost, element)))
    assert min(kinds.values()) > 50, kinds


def test_unisono_handler_round() -> None:
    simulate("unisono_handler_round", __file__)
