"""unisono_switch_grants: grants of many runs that come, are raised and are over, against queues of two."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import pack

RUNS = 64
GRANTED = [("sequence", 32), ("signature", 32), ("slot", 16), ("generation", 16), ("limit", 48)]
TOKEN = ("sequence", "slot", "generation")


def random_grant(rng, like):
    """A grant; of one that is here, or almost."""
    grant = {name: rng.choice((0, rng.getrandbits(bits))) for name, bits in GRANTED}
    if like is not None:
        grant |= {name: like[name] for name in TOKEN}
        if rng.random() < 0.3:
            name = rng.choice(TOKEN)
            grant[name] ^= 1 << rng.randrange(dict(GRANTED)[name])
    return grant


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_grants(dut):
    rng, seen = new_random("grants"), Counter()
    for name in ("open_valid", "open_run", "run", "grant", "new", "raise", "look_run", "pop"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        runs: dict[int, list[dict[str, int]]] = {run: [] for run in range(RUNS)}
        few = rng.sample(range(RUNS), 5)
        own, looked, shown, written = 0, 0, None, True
        grant = random_grant(rng, None)
        for _ in range(scaled(16000, 5000)):
            # A grant is judged in the cycle after it and its run were named, or later; what a new one wrote counts from
            # the second cycle on.
            moves = rng.random() < 0.6
            fresh = moves or written
            if moves:
                own = rng.choice(few)
            grants = runs[own]
            if moves:
                grant = random_grant(rng, rng.choice(grants) if grants and rng.random() < 0.5 else None)
            like = [one for one in grants if all(one[name] == grant[name] for name in TOKEN)]
            comes = not fresh and rng.random() < 0.7
            new, raised = comes and not like and len(grants) < 2, comes and bool(like)
            looked = rng.choice(few)
            opened = rng.choice(few) if rng.random() < 0.01 else None
            # While a run begins anew nothing of it is under way.
            if opened in (own, looked):
                opened = None
            pops = bool(runs[looked]) and rng.random() < 0.3
            dut.run_i.value, dut.grant_i.value = own, pack(GRANTED, grant)
            dut.new_i.value, dut.raise_i.value, dut.look_run_i.value, dut.pop_i.value = new, raised, looked, pops
            dut.open_valid_i.value, dut.open_run_i.value = opened is not None, opened or rng.choice(few)
            await FallingEdge(dut.clk_i)
            if not fresh:
                assert bool(int(dut.known_o.value)) == bool(like)
                assert bool(int(dut.full_o.value)) == (len(grants) == 2)
                seen["known"] += bool(like)
                seen["third"] += comes and not like and len(grants) == 2
            # What was there at the end of the cycle before.
            if shown is not None:
                assert bool(int(dut.has_grant_o.value)) == bool(shown)
                if shown:
                    assert int(dut.grant_o.value) == pack(GRANTED, shown[0])
            shown = [dict(one) for one in runs[looked]]
            await RisingEdge(dut.clk_i)
            written = new
            seen["together"] += (new or raised) and pops and own == looked
            if raised:
                like[-1]["limit"] = grant["limit"]
                seen["raised", grants.index(like[-1])] += 1
            if pops:
                runs[looked].pop(0)
                seen["over"] += 1
            if new:
                grants.append(grant)
                seen["new", len(grants)] += 1
            if opened is not None:
                runs[opened] = []
                seen["opened"] += 1
        dut.open_valid_i.value = dut.new_i.value = dut.raise_i.value = dut.pop_i.value = 0
        await reset_again(dut)
    for what in ("known", "third", ("raised", 0), ("raised", 1), ("new", 1), ("new", 2), "over", "opened", "together"):
        assert seen[what] > 20, what


def test_unisono_switch_grants():
    simulate("unisono_switch_grants", __file__)
