"""unisono_rbm_update: random records in each step, against the rules in words."""

from collections import Counter

import cocotb
from bus import new_random
from calls import INFO, record_fields
from cocotb.triggers import Timer
from hdl import scaled, simulate
from records import pack, unpack
from states import states

NEXT = ("posted", "entry", "program", "tag", "total", "limit", "rendezvous", "fan_in", "ample", "granted")
ADOPTED = [("requested", 1), ("bound", 1), ("listed", 1), ("head", 10), ("tail", 10), ("total", 48), ("received", 48)]
WRAP = 0xFFFF


def met(record):
    """A request for which nothing is left before it is of the arrival that takes what comes."""
    if record["posted"] and record["requested"] and not (record["listed"] or record["written"] or record["received"]):
        if not record["rendezvous"]:
            record["generation"] = record["generation"] + 1 & WRAP
        record["requested"], record["rendezvous"] = 0, 1


def promoted(record):
    """The next arrival takes what comes."""
    if record["next_posted"] and record["next_rendezvous"]:
        record["generation"] = record["generation"] + 1 & WRAP
    for name in NEXT:
        record[name], record[f"next_{name}"] = record[f"next_{name}"], 0
    record["consumed"] = 0
    met(record)


def becomes(state, seen, given):
    """The record after a step."""
    record, info, post, head = dict(seen), given["info"], given["post"], given["head"]
    after = seen["generation"] + 1 & WRAP
    if state == "Append":
        record |= {"listed": 1, "tail": given["shown"], "written": seen["written"] - 1 & 31}
        record["head"] = seen["head"] if seen["listed"] else given["shown"]
    elif state in ("AdoptEnd", "ClearRead", "Wipe"):
        record = dict.fromkeys(seen, 0) | {"generation": after if state == "ClearRead" else seen["generation"]}
        record |= given["adopted"] if state == "AdoptEnd" else {}
    elif state in ("Take", "ClearTake"):
        record |= {"listed": seen["head"] != seen["tail"], "head": given["link"]}
        if state == "Take":
            record["consumed"] = seen["consumed"] + info["bytes"] & (1 << 48) - 1
            if info["last"]:
                promoted(record)
    elif state == "Post" and seen["posted"]:
        record |= {f"next_{name}": 0 for name in NEXT} | {f"next_{name}": value for name, value in post.items()}
        record["next_posted"] = 1
    elif state == "Post":
        refused = seen["bound"] and seen["total"] > post["total"]
        record |= post | {"posted": 1, "consumed": 0, "limit": 0, "ample": 0, "granted": 0}
        record["total"] = seen["total"] if seen["bound"] else post["total"]
        record["rendezvous"] = post["rendezvous"] or (seen["bound"] and seen["received"] != 0)
        record["generation"] = after if record["rendezvous"] else seen["generation"]
        met(record)
        record["posted"] = not refused
    elif state == "GrantStep":
        record = dict(given["granted"])
    elif state == "Segment":
        record = dict(given["noted"])
        if head["request"]:
            record |= {"requested": not head["fresh"], "rendezvous": seen["rendezvous"] or head["fresh"]}
            record["generation"] = after if head["fresh"] else record["generation"]
    elif state == "Offered" and head["accepted"]:
        record["received"] = 0 if head["last"] else head["end"]
        record["consumed"] = seen["consumed"] + head["bytes"] & (1 << 48) - 1
        if head["last"]:
            promoted(record)
    elif state == "Store" and head["stores"]:
        record = given["noted"] | {"received": 0 if head["last"] else head["end"]}
        record["written"] = seen["written"] + 1 & 31
    return record


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_records(dut):
    rng, seen, names = new_random("update"), Counter(), states()
    fields = record_fields(len(dut.seen_i))
    entry_bits = dict(fields)["entry"]

    def noise(of):
        return {name: rng.getrandbits(bits) if rng.random() < 0.7 else 0 for name, bits in of}

    for turn in range(scaled(16000, 5000)):
        state = rng.choice(names)
        record, given = noise(fields), {"info": noise(INFO), "adopted": noise(ADOPTED)}
        given |= {"noted": noise(fields), "granted": noise(fields), "shown": rng.getrandbits(10)}
        given["link"] = rng.getrandbits(10)
        if rng.random() < 0.5:
            record["head"] = record["tail"]
        post = noise([("entry", entry_bits), ("tag", 24), ("total", 48), ("rendezvous", 1), ("fan_in", 1)])
        given["post"] = post | {"program": rng.getrandbits(2)}
        head = noise([("request", 1), ("fresh", 1), ("last", 1), ("accepted", 1), ("stores", 1)])
        given["head"] = head | noise([("end", 48), ("bytes", 14)])
        dut.state_i.value, dut.seen_i.value = names.index(state), pack(fields, record)
        for name, of in (("info", INFO), ("adopted", ADOPTED), ("noted", fields), ("granted", fields)):
            getattr(dut, f"{name}_i").value = pack(of, given[name])
        dut.shown_i.value, dut.link_i.value = given["shown"], given["link"]
        for name, value in given["head"].items():
            getattr(dut, f"{name}_i").value = value
        layout = [("slot", 3), ("entry", entry_bits), ("peer", 6), ("tag", 24), ("total", 48), ("rendezvous", 1)]
        layout += [("fan_in", 1), ("program", 2)]
        dut.post_i.value = pack(layout, given["post"] | {"slot": rng.getrandbits(3), "peer": rng.getrandbits(6)})
        await Timer(1, "ns")
        want = {name: int(value) for name, value in becomes(state, record, given).items()}
        assert unpack(fields, int(dut.record_o.value)) == want, f"{turn}: {state} of {record}"
        refused = not record["posted"] and record["bound"] and record["total"] > post["total"]
        assert int(dut.post_refused_o.value) == bool(refused)
        seen[state] += 1
        seen["refused"] += state == "Post" and bool(refused)
    assert min(seen[state] for state in (*names, "refused")) > 5, seen


def test_unisono_rbm_update():
    simulate("unisono_rbm_update", __file__)
