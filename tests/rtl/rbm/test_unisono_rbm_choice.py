"""unisono_rbm_choice: random requests, against the order in words."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import pack
from states import early_ops, states

CHOICE = [("step", 5), ("reads", 1), ("by_match", 1), ("pair", 9), ("renews", 1), ("clears", 1)]
FLAGS = ("shown_valid", "shown_early", "sweeps", "early_has", "renews", "early_pending", "payload_idle", "offering")
FLAGS += ("clear_valid", "cleared", "clear_failed", "epoch_over", "signal_full", "take_valid", "head_valid")
FLAGS += ("post_valid", "adopt_valid", "answered", "grants_valid", "received_valid", "is_write")
ANSWERS = ("take_ready", "head_answer", "post_ready", "adopt_ready")
PAIRS = ("shown", "clear", "take", "head", "post", "adopt", "offer", "grants", "token", "")
OF_THE_DISPATCHER = (("take", "TakeRead"), ("head", "HeadRead"), ("post", "PostRead"), ("adopt", "AdoptAsk"))
PEER_BITS = 6


def chosen(on, pairs, before):
    """What is done, as names and numbers, and what becomes of early segments. `before`: who was answered."""

    def begins(step, pair, **others):
        return {"step": step, "reads": 1, "pair": pairs[pair]} | others

    nothing = {"step": "Idle", "pair": pairs[""]}
    if on["shown_valid"]:
        return begins("AppendEarly" if on["shown_early"] else "Append", "shown"), "EarlyLook"
    if on["sweeps"]:
        return nothing | ({"step": "AdoptRead"} if on["early_has"] else {}), "EarlySweep"
    quiet = on["payload_idle"] and not on["offering"]
    if on["renews"] and quiet and not on["early_pending"]:
        return nothing | {"renews": 1}, "EarlyNone"
    clear = on["clear_valid"] and not on["cleared"]
    if clear and not on["clear_failed"]:
        wipe = {"step": "WipeRead", "pair": pairs["clear"] >> PEER_BITS << PEER_BITS} if on["epoch_over"] else {}
        return nothing | wipe | {"clears": 1}, "EarlyNone"
    if clear and not on["offering"] and not on["signal_full"]:
        return begins("ClearRead", "clear"), "EarlyNone"
    for (name, step), answered in zip(OF_THE_DISPATCHER, before, strict=True):
        if on[f"{name}_valid"] and not answered:
            return begins(step, name), "EarlyNone"
    if on["answered"]:
        return begins("Offered", "offer"), "EarlyNone"
    if on["grants_valid"]:
        return begins("Grant", "grants"), "EarlyNone"
    if on["received_valid"] and quiet and not on["renews"]:
        return begins("Segment", "token", by_match=int(not on["is_write"])), "EarlyNone"
    return nothing, "EarlyNone"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_requests(dut):
    rng, seen, steps, ops = new_random("choice"), Counter(), states(), early_ops()
    for name in (*FLAGS, *ANSWERS, *(f"{name}_pair" if name else "pair" for name in PAIRS)):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    before = (0, 0, 0, 0)
    for _ in range(scaled(20000, 6000)):
        # Few at a time, so that the last of the order has its turn, too.
        part = rng.choice((0.02, 0.1, 0.5))
        on = {name: int(rng.random() < part) for name in FLAGS}
        on |= {name: int(rng.random() < 0.7) for name in ("payload_idle", "early_has", "is_write", "epoch_over")}
        if rng.random() < 0.5:
            on |= {"clear_valid": 0, "sweeps": 0}
        elif rng.random() < 0.2:
            on |= {"clear_valid": 1, "cleared": 0, "clear_failed": 1}
        pairs = {name: rng.getrandbits(9) for name in PAIRS}
        answers = tuple(int(rng.random() < 0.3) for _ in ANSWERS)
        for name, value in on.items():
            getattr(dut, f"{name}_i").value = value
        for name, value in pairs.items():
            getattr(dut, f"{name}_pair_i" if name else "pair_i").value = value
        for name, value in zip(ANSWERS, answers, strict=True):
            getattr(dut, f"{name}_i").value = value
        await FallingEdge(dut.clk_i)
        wanted, early = chosen(on, pairs, before)
        seen[wanted["step"]] += 1
        seen["renews"] += wanted.get("renews", 0)
        seen["clears"] += wanted.get("clears", 0)
        assert int(dut.choice_o.value) == pack(CHOICE, wanted | {"step": steps.index(wanted["step"])}), wanted
        assert int(dut.early_op_o.value) == ops[early]
        await RisingEdge(dut.clk_i)
        before = answers
    for what in ("Append", "AppendEarly", "AdoptRead", "renews", "clears", "WipeRead", "ClearRead", "TakeRead",
                 "HeadRead", "PostRead", "AdoptAsk", "Offered", "Grant", "Segment", "Idle"):  # fmt: skip
        assert seen[what] > 20, what


def test_unisono_rbm_choice():
    simulate("unisono_rbm_choice", __file__)
