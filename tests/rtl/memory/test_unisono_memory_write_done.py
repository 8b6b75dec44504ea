"""unisono_memory_write_done: answers in any order, completions in that of commands, errors, and no burst."""

from collections import Counter, deque

import cocotb
import pytest
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_bursts(dut):
    rng, seen = new_random("done"), Counter()
    slots = parameters()["Outstanding"]
    names = ("close", "empty", "end", "mismatch", "user", "answer_id", "answer_error", "answer_valid", "done_ready")
    ports = {name: getattr(dut, f"{name}_i") for name in names}
    for port in ports.values():
        port.value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        flying, used, slot = {}, deque(), 0  # flying: slots without an answer; used: slots in their order
        expected, user, failed, waits = deque(), 0, False, Waits(seen)
        retired = 0
        for cycle in range(scaled(16000, 5000)):
            if cycle % 80 == 0:
                often, answers, pace = rng.choice((0.2, 0.9)), rng.choice((0.05, 0.3, 0.9)), rng.choice((0.1, 0.9))
            await FallingEdge(dut.clk_i)
            space = bool(int(dut.space_o.value))
            close = space and rng.random() < often
            empty = rng.random() < 0.2
            end, mismatch = empty or rng.random() < 0.5, rng.random() < 0.2
            user = rng.getrandbits(len(dut.user_i))
            which, bad = None, rng.random() < 0.2
            if flying and rng.random() < answers:
                which = rng.choice(list(flying))
                seen["out of order"] += which != next(iter(flying))
            ready = rng.random() < pace
            for name, value in zip(
                names,
                (close, empty, end, mismatch, user, which or 0, bad, which is not None, ready),
                strict=True,
            ):
                ports[name].value = value
            assert int(dut.slot_o.value) == slot
            valid = bool(int(dut.done_valid_o.value))
            word = (int(dut.done_user_o.value), int(dut.done_error_o.value)) if valid else None
            if valid:
                # All of its bursts have been answered, and those of the commands before.
                assert expected[0][0] is not None
                assert word == (expected[0][1], expected[0][2])
            if waits.taken("done", valid, ready, word):
                seen["error" if word[1] else "good"] += 1
                expected.popleft()
                retired += 1
            await RisingEdge(dut.clk_i)
            if which is not None:
                flying[which]["bad"] = bad
                del flying[which]
            if close:
                used.append({"empty": empty, "end": end, "mismatch": mismatch, "user": user, "bad": None})
                if empty:
                    used[-1]["bad"] = False
                    seen["empty"] += 1
                else:
                    flying[slot] = used[-1]
                slot = (slot + 1) % slots
            while used and used[0]["bad"] is not None:
                one = used.popleft()
                failed = failed or one["bad"]
                if one["end"]:
                    expected.append((True, one["user"], int(failed or one["mismatch"])))
                    failed = False
            seen["full"] += not space
            assert len(expected) <= slots + 2
        for name in ("close", "answer_valid", "done_ready"):
            ports[name].value = 0
        await reset_again(dut)
    for what in ("good", "error", "empty", "out of order", "done waits", "full"):
        assert seen[what] > 20, what


@pytest.mark.parametrize("outstanding", [2, 16])
def test_unisono_memory_write_done(outstanding):
    simulate("unisono_memory_write_done", __file__, {"Outstanding": outstanding, "UserWidth": 8})
