"""unisono_deadline: never early, at most a microsecond and the stated cycles late, under random settings and stops.

With Skips, edges that stand for many cycles, or none, come in between, as a simulation has them: while nothing is set
or stopped, no walk is under way, and for as long as calm_o allows.
"""

from __future__ import annotations

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import NextTimeStep, ReadOnly, RisingEdge
from hdl import full, parameters, simulate

DEFAULT_US = 9


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_deadlines(dut):
    given = parameters()
    places, mhz, skips = given["Places"], given["ClockMHz"], given["Skips"]
    rng = new_random("deadline")
    dut.cycles_i.value = 1
    dut.set_i.value = dut.stop_i.value = 0
    dut.default_us_i.value = DEFAULT_US
    await start_clock_and_reset(dut)
    edge = RisingEdge(dut.clk_i)
    # Of each place: the cycle of its setting, its microseconds, whether it has fired.
    state: list[tuple[int, int, bool] | None] = [None] * places
    fired = at_edge = ticks = last_tick = 0
    set_now: tuple[int, int] | None = None
    stop_now = 0
    recent: list[int] = []
    now, passes, skipped, longest = -1, 1, 0, 0
    for _ in range(60_000):
        await edge
        now += passes
        # What was asked for in the cycle that ends here.
        expired = int(dut.expired_o.value)
        for p in range(places):
            if not expired >> p & 1:
                continue
            current = state[p]
            assert current is not None, f"place {p} fired without a deadline"
            begin, us, already = current
            if not already:
                late = now - begin - us * mhz
                assert late >= 0, f"{us} us ended {-late} cycles early"
                sets = sum(begin < at for at in recent if at > now - mhz)
                assert late <= mhz + 2 * places + 3 + sets, f"{us} us ended {late} cycles late"
                at_edge += late <= 2
                fired += 1
                state[p] = (begin, us, True)
        for p in range(places):
            current = state[p]
            if current is not None and not current[2]:
                sets = sum(current[0] < at for at in recent if at > now - mhz)
                assert now <= current[0] + (current[1] + 1) * mhz + 2 * places + 3 + sets, f"place {p} never fires"
            if current is not None and current[2]:
                assert expired >> p & 1, f"place {p}: the mark fell"
        if int(dut.tick_o.value):
            since = now - last_tick
            assert ticks == 0 or (since % mhz == 0 if skips else since == mhz)
            ticks, last_tick = ticks + 1, now
        for p in range(places):
            if stop_now >> p & 1:
                state[p] = None
        if set_now is not None:
            state[set_now[0]] = (now, set_now[1], False)
            recent = [*recent[-40:], now]
        set_now, stop_now = None, 0
        if rng.random() < 0.03:
            place, us = rng.randrange(places), rng.choice((0, 1, 1, 2, 3, rng.randint(1, 40)))
            set_now = place, us or DEFAULT_US
            dut.set_place_i.value, dut.set_us_i.value = place, us
        if rng.random() < 0.02:
            stop_now = 1 << rng.randrange(places)
        dut.set_i.value, dut.stop_i.value = int(set_now is not None), stop_now
        passes = 1
        if skips and set_now is None and stop_now == 0 and rng.random() < 0.1:
            await ReadOnly()
            rests = not any(int(signal.value) for signal in (dut.walking_q, dut.read_q, dut.set_q, dut.tick_o))
            rests = rests and int(dut.expired_o.value) == expired  # or the mark would be seen late here
            calm = int(dut.calm_o.value)
            await NextTimeStep()
            if rests and calm > 0:
                passes = rng.choice((0, calm, rng.randint(1, calm), min(calm, 3))) if calm < 100 * mhz else 3 * mhz + 1
                skipped, longest = skipped + passes, max(longest, passes)
        dut.cycles_i.value = passes
    dut._log.info(f"{fired} deadlines passed, {at_edge} of them within 2 cycles")
    assert fired > 200
    assert not skips or (skipped > 60_000 and longest > 10 * mhz)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def without_default(dut):
    """No deadline and no default: the longest one, not none and not at once."""
    dut.set_i.value = dut.stop_i.value = dut.default_us_i.value = 0
    dut.cycles_i.value = 1
    await start_clock_and_reset(dut)
    dut.set_i.value, dut.set_place_i.value, dut.set_us_i.value = 1, 0, 0
    await RisingEdge(dut.clk_i)
    dut.set_i.value = 0
    for _ in range(5000):
        await RisingEdge(dut.clk_i)
        assert int(dut.expired_o.value) == 0


@pytest.mark.parametrize(
    ("places", "mhz", "skips"),
    [(9, 25, 0), (9, 25, 1), full(15, 100, 0), full(2, 8, 0), full(15, 100, 1)],
)
def test_unisono_deadline(places, mhz, skips):
    simulate("unisono_deadline", __file__, {"Places": places, "ClockMHz": mhz, "Skips": skips})
