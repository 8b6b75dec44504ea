"""unisono_dispatcher_lane: random runs and busy lanes; no message ever overtakes another one to its peer."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from look_records import RUN, pack, random_record

COMPUTE, SENDER = 0, 1
# lane_command_t, from its highest bit.
COMMANDS = {name: 1 << place for place, name in enumerate(reversed(("compute", "choose", "blocked", "sent", "clear")))}


def random_run(rng):
    """A run; most of them only send."""
    run = random_record(rng, RUN)
    run["peer"] = rng.randrange(3)
    if rng.random() < 0.7:
        run |= {"send": 1, "arrival": 0, "func": 0, "local": 0, "op0_used": 0}
    run["fan_out"] &= run["send"] and rng.random() < 0.3
    return run


def only_sends(run):
    return run["send"] and not (run["arrival"] or run["func"] or run["local"] or run["op0_used"])


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_runs(dut):
    """Every run waits until it may go; meanwhile the lanes' messages leave."""
    rng, seen = new_random("lane"), Counter()
    dut.run_i.value = dut.next_run_i.value = dut.busy_i.value = dut.command_i.value = 0
    await start_clock_and_reset(dut)
    held = [Counter(), Counter()]  # by lane: messages to each peer on their way
    waits: list[dict] = []  # runs that may not go yet
    yields = None  # the peer for which a job of the compute lane waits
    for _ in range(scaled(30000, 10000)):
        for lane in held:
            for peer in list(lane):
                if lane[peer] and rng.random() < 0.5:
                    lane[peer] -= 1
        if yields is not None and rng.random() < 0.002:
            dut.command_i.value = COMMANDS["clear"]
            await RisingEdge(dut.clk_i)
            dut.command_i.value, yields = 0, None
            seen["cleared"] += 1
        run = waits.pop(0) if waits and rng.random() < 0.4 else random_run(rng)
        peer = run["peer"]
        dut.next_run_i.value = pack(RUN, run)
        dut.run_i.value = rng.getrandbits(len(dut.run_i))
        await RisingEdge(dut.clk_i)
        dut.run_i.value = pack(RUN, run)
        busy = [bool(lane[peer]) for lane in held]
        dut.busy_i.value = busy[COMPUTE] | busy[SENDER] << 1
        if not run["send"]:
            dut.command_i.value = COMMANDS["compute"]
            await RisingEdge(dut.clk_i)
            dut.command_i.value = 0
            await FallingEdge(dut.clk_i)
            assert int(dut.lane_o.value) == COMPUTE
            continue
        apart = only_sends(run) and (run["fan_out"] or not (busy[COMPUTE] or yields == peer))
        overtakes = busy[COMPUTE] and run["fan_out"] if apart else busy[SENDER]
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.overtakes_o.value)) == bool(overtakes)
        dut.command_i.value = COMMANDS["choose"] | (COMMANDS["blocked"] if overtakes else 0)
        await RisingEdge(dut.clk_i)
        dut.command_i.value = 0
        if overtakes:
            seen["waits"] += 1
            if yields is None and not only_sends(run):
                yields = peer
            waits.append(run)
            continue
        await FallingEdge(dut.clk_i)
        assert int(dut.lane_o.value) == (SENDER if apart else COMPUTE)
        lane = SENDER if apart else COMPUTE
        assert not held[1 - lane][peer], "it overtakes one in the other lane"
        held[lane][peer] += 1
        seen["yields"] += only_sends(run) and not apart and not busy[COMPUTE]
        seen[f"lane {lane}"] += 1
        dut.command_i.value = COMMANDS["sent"]
        await RisingEdge(dut.clk_i)
        dut.command_i.value = 0
        if lane == COMPUTE and yields == peer:
            yields = None
            seen["its turn"] += 1
    for what in ("waits", "yields", "lane 0", "lane 1", "its turn"):
        assert seen[what] > 30, what


def test_unisono_dispatcher_lane():
    simulate("unisono_dispatcher_lane", __file__)
