"""unisono_rx_faults: random faults, counted one by one; of those that wait behind a report the newest is told."""

from collections import Counter

import cocotb
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

TRANSPORT = 9


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_faults(dut):
    rng, seen = new_random("faults"), Counter()
    for name in ("good", "refused", "fault", "session", "communicator", "wrong", "wrong_session", "fault_ready"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        good, counts, waits = 0, Counter(), Waits(seen)
        newest = report = None
        for cycle in range(scaled(12000, 4000)):
            if cycle % 100 == 0:
                part, hurry = rng.choice((0.05, 0.5)), rng.choice((0.1, 0.6, 1.0))
            what = "good" if rng.random() < 0.3 else "refused" if rng.random() < part else ""
            fault, session, communicator = rng.randint(1, 9), rng.getrandbits(16), rng.getrandbits(32)
            wrong, wrong_session = rng.random() < part * 0.3, rng.getrandbits(16)
            ready = rng.random() < hurry
            dut.good_i.value, dut.refused_i.value = what == "good", what == "refused"
            dut.fault_i.value, dut.session_i.value, dut.communicator_i.value = fault, session, communicator
            dut.wrong_i.value, dut.wrong_session_i.value, dut.fault_ready_i.value = wrong, wrong_session, ready
            await FallingEdge(dut.clk_i)
            valid = bool(int(dut.fault_valid_o.value))
            assert valid == (report is not None)
            said = int(dut.fault_code_o.value), int(dut.fault_session_o.value), int(dut.fault_communicator_o.value)
            if valid:
                assert said == report
            waits.taken("report", valid, ready, said)
            assert int(dut.counter_good_o.value) == good
            counters = int(dut.counter_fault_o.value)
            assert [counters >> 32 * (f - 1) & 0xFFFFFFFF for f in range(1, 10)] == [counts[f] for f in range(1, 10)]
            await RisingEdge(dut.clk_i)
            good += what == "good"
            counts[fault] += what == "refused"
            counts[TRANSPORT] += wrong
            if report is None or ready:
                report, newest = newest, None
            if wrong or what == "refused":
                seen["newer"] += newest is not None
                newest = (TRANSPORT, wrong_session, 0) if wrong else (fault, session, communicator)
            seen["both"] += wrong and what == "refused" and fault == TRANSPORT
        dut.refused_i.value = dut.wrong_i.value = dut.good_i.value = 0
        await reset_again(dut)
    assert min(seen["newer"], seen["report waits"]) > 50
    assert seen["both"] > 2


def test_unisono_rx_faults():
    simulate("unisono_rx_faults", __file__)
