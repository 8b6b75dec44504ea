"""unisono_rbm_head: random headers against random records, most of them near to one another; each verdict in words."""

from collections import Counter

import cocotb
from bus import new_random
from calls import INFO, record_fields
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from hdl import scaled, simulate
from records import load, noisy_header, pack, unpack

DROP, EARLY, WAIT, ADOPT, GRANT, REQUEST, REFUSE, TAKE = range(8)
TRUNCATED, MISMATCHED = "TRUNCATED", "MISMATCHED_CALL"
FLAGS = ("known", "active", "same_communicator", "same_signature", "matched", "over", "early", "must_wait", "untouched")


def due(header, record, flag, same_peer):
    """Which arrival's message a write is of: `posted`, `next`, or none."""
    if not (flag["active"] and flag["known"] and same_peer and flag["same_communicator"]):
        return None
    if record["posted"] and record["rendezvous"] and header.token_generation == record["generation"]:
        return "posted"
    waits = record["listed"] or record["written"]
    after = header.token_generation == (record["generation"] + 1) & 0xFFFF
    return "next" if record["next_posted"] and record["next_rendezvous"] and waits and after else None


def judge(spec, header, record, flag, same_peer):
    """The verdict, and why what does not fit does not."""
    kind, apart, write = header.type, header.point_to_point, header.type == spec.MessageType.WRITE
    longer = record["posted"] and header.message_bytes > record["total"]
    begun = record["listed"] or record["written"]
    if kind not in (spec.MessageType.EAGER, spec.MessageType.WRITE, spec.MessageType.GRANT, spec.MessageType.REQUEST):
        return DROP, None
    if write and not due(header, record, flag, same_peer):
        return DROP, None
    if not write and not flag["matched"]:
        # What continues a message that has not begun early is of a receive that has failed.
        late = kind == spec.MessageType.EAGER and not header.first and not flag["early"]
        over = kind == spec.MessageType.GRANT or late if apart else flag["over"]
        return (DROP if over else EARLY), None
    if flag["must_wait"] or flag["untouched"]:
        return (WAIT if flag["must_wait"] else ADOPT), None
    if kind == spec.MessageType.GRANT:
        return (GRANT if flag["active"] else DROP), None
    if kind == spec.MessageType.REQUEST:
        fresh = record["posted"] and not (begun or record["received"] or record["consumed"])
        bad = longer if apart else header.message_bytes != record["total"]
        bad = not flag["same_signature"] or (fresh and bad)
        return REQUEST, (TRUNCATED if apart and longer else MISMATCHED) if bad else None
    if not flag["same_signature"]:
        return REFUSE, MISMATCHED
    if apart and longer and not write:
        return REFUSE, TRUNCATED
    end = header.offset + header.segment_bytes
    fits = header.offset == record["received"]
    if write:
        fits &= end <= record["limit" if due(header, record, flag, same_peer) == "posted" else "next_limit"]
    if record["posted"] and not begun and not apart:
        fits &= header.tag & 0xFFFFFF == record["tag"] and header.message_bytes == record["total"]
    return (TAKE, None) if fits else (REFUSE, TRUNCATED if apart and longer else MISMATCHED)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_headers(dut):
    rng, seen, spec = new_random("head"), Counter(), load()
    fields, kinds = record_fields(len(dut.seen_i)), list(spec.MessageType)
    dut.received_i.value = dut.seen_i.value = dut.peer_i.value = 0
    for name in FLAGS:
        getattr(dut, f"{name}_i").value = 0
    Clock(dut.clk_i, 4, unit="ns").start()
    for turn in range(scaled(40000, 12000)):
        record = {name: rng.getrandbits(bits) for name, bits in fields}
        record |= {name: rng.choice((2, 3, 4)) * 4096 for name in ("total", "limit", "next_limit")}
        record["received"], record["consumed"] = rng.choice((0, 0, 4096)), rng.choice((0, 0, 4096))
        record["written"] = rng.choice((0, 0, 1))
        likely = [kind for kind in kinds if kind.name in ("EAGER", "WRITE", "GRANT", "REQUEST")]
        header = noisy_header(
            rng,
            type=rng.choice(likely if rng.random() < 0.95 else kinds),
            offset=rng.choice((record["received"], record["received"], 4096)),
            segment_bytes=rng.choice((0, 4096, 4096, 8192)),
            message_bytes=rng.choice((record["total"], record["total"], 4096, 4 * 4096)),
            token_generation=(record["generation"] + rng.choice((0, 0, 1, 1, 2))) & 0xFFFF,
            tag=record["tag"] | rng.choice((0, 0, 0xFF000000)) if rng.random() < 0.8 else rng.getrandbits(32),
        )
        flag = {name: rng.random() < 0.85 for name in FLAGS} | {"over": rng.random() < 0.5}
        flag |= {name: rng.random() < 0.1 for name in ("must_wait", "untouched")}
        source, of = rng.getrandbits(6), rng.getrandbits(4)
        same_peer = rng.random() < 0.9
        raw = int.from_bytes(header.encode(), "little")
        await FallingEdge(dut.clk_i)
        dut.received_i.value = ((rng.getrandbits(16) << 512 | raw) << 4 | of) << 6 | source
        dut.peer_i.value = source if same_peer else source ^ 1
        dut.seen_i.value = pack(fields, record)
        for name in FLAGS:
            getattr(dut, f"{name}_i").value = flag[name]
        await FallingEdge(dut.clk_i)
        verdict, why = judge(spec, header, record, flag, same_peer)
        assert int(dut.verdict_o.value) == verdict, f"{turn}: {header} {record} {flag} {same_peer}"
        if verdict == REQUEST:
            assert int(dut.request_bad_o.value) == (why is not None)
        if why:
            assert int(dut.code_o.value) == spec.ErrorCode[why], f"{turn}: {header} {record} {flag}"
        seen[verdict] += 1
        seen[why] += 1
        # What is kept, and what the record says of the message.
        end, apart = header.offset + header.segment_bytes, header.point_to_point
        write, grant = header.type == spec.MessageType.WRITE, header.type == spec.MessageType.GRANT
        request, eager = header.type == spec.MessageType.REQUEST, header.type == spec.MessageType.EAGER
        continues, opens = apart and eager and not header.first, apart and eager and header.first and not header.last
        assert int(dut.message_o.value) >> 106 & 15 == (apart << 3 | grant << 2 | continues << 1 | opens)
        seen["continues"] += continues
        assert (int(dut.end_o.value), int(dut.empty_o.value)) == (end, header.segment_bytes == 0)
        token = header.token_generation << 16 | header.token_slot
        assert unpack(INFO, int(dut.info_o.value)) == {
            "grant": grant,
            "request": request,
            "point_to_point": apart,
            "continues": continues,
            "opens": opens,
            "communicator": of,
            "source": source,
            "key": header.tag if apart else header.sequence,
            "signature": token if grant else header.signature,
            "ends": header.sequence if request or opens else end,
            "bytes": header.segment_bytes,
            "last": header.last,
            "tag": header.tag & 0xFFFFFF,
            "total": header.message_bytes,
        }
        assert int(dut.owner_o.value) == (eager << 4 | of) << 6 | source
        noted = record | ({"bound": 1, "total": header.message_bytes} if apart and not write else {})
        if opens and record["posted"] and not record["rendezvous"]:
            noted |= {"rendezvous": 1, "generation": (record["generation"] + 1) & 0xFFFF}
            seen["opens"] += 1
        assert unpack(fields, int(dut.noted_o.value)) == noted
    assert min(seen[what] for what in (*range(8), TRUNCATED, MISMATCHED, "opens", "continues")) > 30, seen


def test_unisono_rbm_head():
    simulate("unisono_rbm_head", __file__)
