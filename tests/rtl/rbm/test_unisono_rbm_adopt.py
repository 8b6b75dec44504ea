"""unisono_rbm_adopt: the steps that take over what is early, and which of several receives is asked first."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import unpack
from states import early_ops, states

STEP = [("state", 5), ("asks_elder", 1), ("ready", 1), ("writes", 1), ("grants", 1)]
STEP += [("gives_back", 1), ("mute", 1), ("fails", 1), ("bad", 1)]
NAMES, OPS = states(), early_ops()
LOOKS = ("untouched", "must_wait", "sweeps", "any_early", "early_has", "early_hold", "early_last")
CHECKS = {"grant_early": "grants", "early_give_back": "gives_back", "early_mute": "mute", "early_fail": "fails"}
CHECKS["early_bad"] = "bad"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_operations(dut):
    rng, seen = new_random("adopt"), Counter()
    for name in ("state", "slot", "asks", "forgets", "elder_now", *LOOKS, *CHECKS):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        state, slot, asked, known = "Idle", 0, False, None  # known: the oldest receive, if it has been asked
        for _ in range(scaled(24000, 8000)):
            asks = state == "Idle" and rng.random() < 0.3
            forgets = state == "Idle" and not asks and rng.random() < 0.03
            looks = {name: rng.random() < 0.5 for name in LOOKS}
            checks = {name: rng.random() < 0.3 for name in CHECKS}
            # Few slots, so that the oldest is often this one or the one that was asked.
            elder = rng.randrange(3)
            dut.state_i.value, dut.slot_i.value, dut.asks_i.value = NAMES.index(state), slot, asks
            dut.forgets_i.value, dut.elder_now_i.value = forgets, elder
            for name, value in (looks | checks).items():
                getattr(dut, f"{name}_i").value = value
            await FallingEdge(dut.clk_i)
            told = unpack(STEP, int(dut.step_o.value)) | {"early_op": int(dut.early_op_o.value)}
            expected = dict.fromkeys(told, 0) | {"state": NAMES.index("Idle")}

            def goes(name, op="EarlyNone", expected=expected):
                expected["state"], expected["early_op"] = NAMES.index(name), OPS[op]

            following = None
            if state == "AdoptAsk":
                if looks["must_wait"]:
                    seen["waits"] += 1
                elif looks["untouched"]:
                    goes("Adopt")
                else:
                    expected["ready"] = asked
                    seen["answered" if asked else "elder was here"] += 1
                    if not asked:
                        known = slot
            elif state == "Adopt":
                goes("AdoptRead" if looks["any_early"] and looks["early_has"] else "AdoptEnd", "EarlyBegin")
            elif state == "AdoptRead":
                goes("AdoptCheck", "EarlyRead")
            elif state == "AdoptCheck":
                held, last = looks["early_hold"], looks["early_last"]
                goes("AdoptCheck" if held else "AdoptEnd" if last else "AdoptRead", "EarlyCheck")
                expected |= {field: checks[name] for name, field in CHECKS.items()}
                seen["checked"] += 1
            elif state == "AdoptEnd":
                goes("Idle", "EarlyEnd")
                expected["writes"] = not looks["sweeps"]
            elif state == "PostElder":
                goes("Adopt")
                if elder not in (slot, known):
                    goes("AdoptAsk")
                    expected["asks_elder"] = 1
                    following = elder
                    seen["asks elder"] += 1
                else:
                    seen["is elder" if elder == slot else "was asked"] += 1
            if state in ("Idle", "Post"):
                # What other operations do is said elsewhere.
                assert not any(told[name] for name in told if name != "state")
            else:
                assert told == {name: int(value) for name, value in expected.items()}, state
            await RisingEdge(dut.clk_i)
            if following is not None:
                slot, asked, state = following, False, "AdoptAsk"
            elif state == "Idle":
                if asks:
                    asked, state, slot = True, "AdoptAsk", rng.randrange(3)
                elif rng.random() < 0.6:
                    state, slot = rng.choice(("PostElder", "PostElder", "Post", "Adopt")), rng.randrange(3)
                if forgets:
                    seen["forgets"] += known is not None
                    known = None
            elif state == "Post":
                state, known = "Idle", None
            else:
                state = NAMES[expected["state"]]
        dut.state_i.value = dut.asks_i.value = dut.forgets_i.value = 0
        await reset_again(dut)
    for what in (
        *("waits", "answered", "elder was here", "checked", "asks elder", "is elder", "was asked"),
        "forgets",
    ):
        assert seen[what] > 10, what


def test_unisono_rbm_adopt():
    simulate("unisono_rbm_adopt", __file__)
