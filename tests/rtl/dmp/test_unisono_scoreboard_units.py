"""unisono_scoreboard_units: random events, and examinations that leave rows waiting or not; each unit has its turn."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

EVENTS = ("consumed", "sent", "complete", "trivial", "issued")
NAMES = ("arm", "arm_unit", "arm_streams", "left_valid", "left_unit", "window_valid", "window_unit", "test_valid",
         "test_unit", "clear", "finish", *EVENTS, *(f"{name}_slot" for name in EVENTS))  # fmt: skip


class Model:
    """Of each unit: whether rows wait, for an issue too, and whether there is news."""

    def __init__(self, calls, units):
        self.calls, self.units = calls, units
        self.waits, self.news, self.streams = [False] * units, [False] * units, [False] * units

    def hears(self, unit, events, arm):
        slot = unit % self.calls
        told = any(events.get(name) == slot for name in EVENTS[:4])
        return told or arm == unit or (events.get("issued") == slot and self.streams[unit])

    def picked(self, events, arm, left, window, test, clear):
        """The unit that is next, by turns behind the one in the first step."""
        now = [
            unit
            for unit in range(self.units)
            if (self.waits[unit] or unit in (arm, left))
            and (self.news[unit] or self.hears(unit, events, arm))
            and unit not in (window[1] if window[0] else None, test)
            and unit % self.calls != clear
        ]
        behind = [unit for unit in now if unit > window[1]]
        return min(behind or now, default=None)

    def step(self, events, arm, arm_streams, left, window, clear, finish):
        for unit in range(self.units):
            examined = window == (True, unit)
            gone = unit % self.calls == clear
            heard = self.hears(unit, events, arm)
            self.waits[unit] = (unit in (arm, left) or (self.waits[unit] and not examined)) and not gone
            self.news[unit] = heard or (self.news[unit] and not examined)
            self.streams[unit] = (self.streams[unit] or (unit == arm and arm_streams)) and not (
                gone or unit % self.calls == finish
            )


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_events(dut):
    rng, seen = new_random("units"), Counter()
    calls, units = parameters()["Calls"], parameters()["Units"]
    for name in NAMES:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        model, window, test, left = Model(calls, units), (False, 0), None, None
        part = 0.1
        for cycle in range(scaled(16000, 5000)):
            if cycle % 200 == 0:
                part = rng.choice((0.02, 0.1, 0.5))
            events = {name: rng.randrange(calls) for name in EVENTS if rng.random() < part}
            arm = rng.randrange(units) if rng.random() < part else None
            arm_streams = rng.random() < 0.3
            clear = rng.randrange(calls) if rng.random() < 0.01 else None
            finish = rng.randrange(calls) if rng.random() < 0.01 else None
            for name in EVENTS:
                getattr(dut, f"{name}_i").value = name in events
                getattr(dut, f"{name}_slot_i").value = events.get(name, rng.randrange(calls))
            for name, unit in (("arm", arm), ("left", left), ("test", test)):
                valid = "arm_i" if name == "arm" else f"{name}_valid_i"
                getattr(dut, valid).value = unit is not None
                getattr(dut, f"{name}_unit_i").value = rng.randrange(units) if unit is None else unit
            dut.arm_streams_i.value = arm_streams
            dut.window_valid_i.value, dut.window_unit_i.value = window
            dut.clear_i.value = 0 if clear is None else 1 << clear
            dut.finish_i.value = 0 if finish is None else 1 << finish
            await FallingEdge(dut.clk_i)
            wanted = model.picked(events, arm, left, window, test, clear)
            assert bool(int(dut.pick_o.value)) == (wanted is not None)
            if wanted is not None:
                assert int(dut.pick_unit_o.value) == wanted
                seen["picked"] += 1
                seen["behind"] += wanted > window[1]
                seen["around"] += wanted <= window[1]
                seen["for an issue"] += list(events) == ["issued"] and not model.news[wanted]
            await RisingEdge(dut.clk_i)
            model.step(events, arm, arm_streams, left, window, clear, finish)
            # The steps go on, unless who takes what is ready is not there.
            left = None
            if rng.random() < 0.7:
                left = test if test is not None and test % calls != clear and rng.random() < 0.5 else None
                test = window[1] if window[0] and window[1] % calls != clear else None
                window = (True, wanted) if wanted is not None else (False, window[1])
            else:
                if not window[0] and wanted is not None:
                    window = True, wanted
                if window[1] % calls == clear:
                    window = False, window[1]
                test = None if test is not None and test % calls == clear else test
        for name in NAMES:
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("picked", "behind", "around", "for an issue"):
        assert seen[what] > 20, what


def test_unisono_scoreboard_units():
    simulate("unisono_scoreboard_units", __file__, {"Calls": 8, "Units": 32})
