"""unisono_engine_control: grants and other messages take turns, none is lost, and nothing overtakes in the queue."""

from collections import Counter, deque

import cocotb
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_messages(dut):
    rng, seen = new_random("control"), Counter()
    for name in ("grants_valid", "grants", "notice_valid", "notice", "out_ready"):
        getattr(dut, f"{name}_i").value = 0
    bits = len(dut.grants_i)
    await start_clock_and_reset(dut)
    for _ in range(2):
        offers = {"grants": None, "notice": None}
        queue, prefers, waits = deque(), False, Waits(seen)  # queue: when a message shows, and it
        for cycle in range(scaled(16000, 5000)):
            if cycle % 60 == 0:
                often = {name: rng.choice((0.1, 0.5, 1.0)) for name in offers}
                pace = rng.choice((0.1, 0.5, 1.0))
            for name, offer in offers.items():
                if offer is None and rng.random() < often[name]:
                    offers[name] = rng.getrandbits(bits)
                getattr(dut, f"{name}_valid_i").value = offers[name] is not None
                getattr(dut, f"{name}_i").value = rng.getrandbits(bits) if offers[name] is None else offers[name]
            out_ready = rng.random() < pace
            dut.out_ready_i.value = out_ready
            await FallingEdge(dut.clk_i)
            notice = offers["notice"] is not None and (offers["grants"] is None or prefers)
            name = "notice" if notice else "grants"
            ready = len(queue) < 4
            assert bool(int(dut.notice_ready_o.value)) == (ready and notice)
            assert bool(int(dut.grants_ready_o.value)) == (ready and not notice)
            shown = bool(queue) and queue[0][0] <= cycle
            assert bool(int(dut.out_valid_o.value)) == shown
            word = int(dut.out_o.value) if shown else None
            if shown:
                assert word == queue[0][1]
            left = waits.taken("out", shown, out_ready, word)
            await RisingEdge(dut.clk_i)
            if left:
                queue.popleft()
            if ready and offers[name] is not None:
                seen[name] += 1
                seen["turn"] += None not in offers.values()
                queue.append((cycle + 1, offers[name]))
                offers[name] = None
                prefers = not notice
            elif offers[name] is not None:
                # It waits at a full queue, and is not to change when the other comes.
                seen["joined"] += None not in offers.values()
                prefers = notice
            seen["full"] += not ready
        for name in ("grants_valid", "notice_valid", "out_ready"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("grants", "notice", "turn", "full", "joined", "out waits"):
        assert seen[what] > 100, what


def test_unisono_engine_control():
    simulate("unisono_engine_control", __file__)
