"""unisono_dispatcher_job: random runs in a look, against what a lane must be told and the header must say."""

from collections import Counter

import cocotb
import pytest
import records
from bus import new_random
from cocotb.triggers import Timer
from hdl import parameters, scaled, simulate
from look_records import COMMUNICATOR, CONTEXT, GRANT, JOB, LIST, LOOK, RUN, pack, random_record, unpack

S = records.load()
NONE, MEMORY, ACCUMULATOR, STREAM = range(4)
BYPASS = 2
WIDE = ("FP16", "BF16")
BASE = 1 << 40


def work_of(run, look, list_, position, last, buffer):
    """What the lane is told, in words: a dictionary of what matters of the job."""
    some, several = run["bytes"] != 0, run["fan_in"]
    partial = several and not list_["last"]
    ends = last and not list_["makes"] and not list_["keeps"]
    first_added = several and list_["first"] and not run["op0"]
    writes = run["local"] and some and not partial and not list_["keeps"]
    job = {
        "last": ends and not partial and not run["put"],
        "wakes": list_["makes"] and not partial,
        "func": 0 if first_added else run["func"],
        "wide": several and S.Func(run["func"]).name in ("SUM", "PROD") and S.Datatype(run["dtype"]).name in WIDE,
        "op0": NONE,
        "op1": NONE,
        "releases": run["arrival"] and some and not look["offered"] and not list_["keeps"],
        "accumulate": partial,
        "local": writes,
        "stream": writes and run["local_used"],
        "send": run["send"] and not partial,
    }
    if some and several and not list_["first"]:
        job["op0"] = ACCUMULATOR
    elif some and run["op0_used"]:
        job |= {"op0": STREAM, "op0_address": run["op0_address"]}
    elif some and run["op0"]:
        job |= {"op0": MEMORY, "op0_address": (run["op0_address"] + position) % (1 << 64)}
    if some and look["offered"]:
        job["op1"] = BYPASS
    elif some and run["arrival"]:
        step = parameters().get("BufferBytes", 8192)
        base = 0 if step == 8192 else BASE
        job |= {"op1": MEMORY, "op1_address": base + buffer * step}
    elif some and run["op1_memory"]:
        job |= {"op1": MEMORY, "op1_address": (run["op1_address"] + position) % (1 << 64)}
    if job["releases"]:
        job["buffer"] = buffer
    if job["stream"]:
        job["local_address"] = run["local_address"]
    elif writes:
        job["local_address"] = (run["local_address"] + position) % (1 << 64)
    if look["asks"]:
        job |= {"op0": NONE, "op1": NONE, "send": True}
        job |= dict.fromkeys(("last", "wakes", "releases", "accumulate", "local", "stream"), False)
        for name in ("op0_address", "op1_address", "local_address", "buffer"):
            job.pop(name, None)
    return job


def header_of(run, look, context, communicator, grant, position, last, put_generation):
    """The header of what is sent."""
    kind = S.MessageType.EAGER if run["eager"] else S.MessageType.WRITE
    tokens = (0, 0) if run["eager"] or not run["send"] else (grant["slot"], grant["generation"])
    apart = bool(context["point_to_point"])
    header = {
        "type": kind,
        "dtype": run["dtype"],
        "first": position == 0,
        "last": bool(last),
        "point_to_point": apart,
        "communicator": communicator["number"],
        "epoch": communicator["epoch"],
        "source": communicator["rank"],
        "destination": run["peer"],
        "sequence": context["sequence"],
        "tag": context["tag"] if apart else run["tag"],
        "segment_bytes": look["bytes"],
        "message_bytes": run["bytes"],
        "offset": position,
        "signature": context["signature"],
        "token_slot": tokens[0],
        "token_generation": tokens[1],
    }
    if run["put"]:
        place = run["op1_address"] % (1 << 48)
        header |= {
            "type": S.MessageType.WRITE,
            "first": False,
            "sequence": look["slot"] << 16 | put_generation,
            "message_bytes": (place + run["bytes"]) % (1 << 48),
            "offset": (place + position) % (1 << 48),
            "token_slot": 65535,
            "token_generation": 0,
        }
    if look["asks"]:
        header |= {"type": S.MessageType.REQUEST, "first": True, "last": True, "offset": 0}
        header |= {"token_slot": 0, "token_generation": 0}
    return header


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_looks(dut):
    rng, seen = new_random("job"), Counter()
    for _ in range(scaled(16000, 4000)):
        run, look, list_ = (random_record(rng, fields) for fields in (RUN, LOOK, LIST))
        run["func"], run["dtype"] = rng.choice([*S.Func, *[S.Func.SUM] * 9]), rng.choice(list(S.Datatype))
        run["bytes"] = rng.choice((0, run["bytes"]))
        run["put"] &= run["send"]
        look["asks"] = rng.random() < 0.2 and run["send"] and not run["put"]
        communicator, context, grant = (random_record(rng, fields) for fields in (COMMUNICATOR, CONTEXT, GRANT))
        position, last = rng.choice((0, rng.getrandbits(48))), rng.random() < 0.5
        buffer, session, generation = rng.getrandbits(10), rng.getrandbits(16), rng.getrandbits(16)
        dut.run_i.value, dut.look_i.value, dut.list_i.value = pack(RUN, run), pack(LOOK, look), pack(LIST, list_)
        dut.communicator_i.value, dut.context_i.value = pack(COMMUNICATOR, communicator), pack(CONTEXT, context)
        dut.grant_i.value, dut.position_i.value, dut.size_last_i.value = pack(GRANT, grant), position, last
        dut.buffer_i.value, dut.session_i.value, dut.put_generation_i.value = buffer, session, generation
        await Timer(1, unit="ns")
        found = unpack(JOB, int(dut.job_o.value))
        want = work_of(run, look, list_, position, last, buffer)
        want |= {name: run[name] for name in ("generation", "dtype", "swap", "peer")}
        want |= {"slot": look["slot"], "entry": look["entry"], "bytes": look["bytes"], "session": session}
        want |= {"starts": position == 0, "communicator": context["communicator"], "control": 0, "serves": 0}
        wrong = {name: (found[name], value) for name, value in want.items() if found[name] != value}
        assert not wrong, (wrong, run, look, list_)
        if found["send"]:
            header = S.Header.decode(found["header"].to_bytes(64, "little"))
            said = header_of(run, look, context, communicator, grant, position, last, generation)
            wrong = {
                name: (getattr(header, name), value) for name, value in said.items() if getattr(header, name) != value
            }
            assert not wrong, (wrong, run, look)
            seen[header.type.name] += 1
            seen["put"] += run["put"]
        for name in ("last", "wakes", "wide", "releases", "accumulate", "local", "stream"):
            seen[name] += found[name]
        for name in ("op0", "op1"):
            seen[f"{name} {found[name]}"] += 1
    names = ("EAGER", "WRITE", "REQUEST", "put", "last", "wakes", "wide", "releases", "accumulate", "local", "stream")
    for what in (*names, *(f"op0 {kind}" for kind in range(4)), *(f"op1 {kind}" for kind in range(3))):
        assert seen[what] > 10, what


@pytest.mark.parametrize("moved", [False, True])
def test_unisono_dispatcher_job(moved):
    simulate("unisono_dispatcher_job", __file__, {"BufferBase": f"64'd{BASE}", "BufferBytes": 4096} if moved else {})
