"""unisono_rbm_grants: random arrivals that are granted, taken and returned, against a plain account of each pair."""

from collections import Counter, deque

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from calls import COMMUNICATOR, Context, record_fields
from cocotb.triggers import FallingEdge
from hdl import full, parameters, scaled, simulate
from records import load, pack, unpack
from segments import segment_of

INPUTS = (
    "pair",
    "known",
    "seen",
    "context",
    "communicator",
    "sequence",
    "session",
    "push",
    "ask",
    "record",
    "head_take",
)
EAGER, SEGMENT = 2048, 8192
TERMS = {"eager_limit": EAGER, "segment_bytes": SEGMENT, "members": 40}


def segment_from(pair, total):
    """Of a message of so many bytes: ranks behind the members are switches."""
    return segment_of(total, EAGER, SEGMENT, whole=pair % 64 >= TERMS["members"])


def wants_more(record, step):
    """Whether a pair's posted arrival is due for more."""
    ends = record["consumed"] + (step if record["ample"] else 0)
    more = record["limit"] != record["total"] and record["limit"] <= ends
    return record["posted"] and record["rendezvous"] and (not record["granted"] or more)


class Grants:
    """Drives the module as the operations do, and keeps what must be so."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.segments, self.buffers = parameters()["GrantSegments"], parameters()["GrantBuffers"]
        self.fields = record_fields(len(dut.seen_i))
        self.queue: deque[int] = deque()
        self.records: dict[int, dict] = {}
        self.reserved, self.seen = 0, Counter()
        for name in (*INPUTS, "step", "wipe", "return_now", "return_next"):
            getattr(dut, f"{name}_i").value = 0
        dut.communicator_i.value = pack(COMMUNICATOR, TERMS)

    def enter(self, pair):
        if pair not in self.queue:
            self.queue.append(pair)
        else:
            self.seen["waits already"] += 1

    async def touch(self, pair, push, ask):
        """A pair's record is written; it is granted more for sure, or if the record says so."""
        dut = self.dut
        dut.pair_i.value, dut.push_i.value, dut.ask_i.value = pair, push, ask
        dut.record_i.value = pack(self.fields, self.records[pair])
        await FallingEdge(dut.clk_i)
        dut.push_i.value = dut.ask_i.value = 0
        dut.record_i.value = self.rng.getrandbits(len(dut.record_i))
        await FallingEdge(dut.clk_i)
        step = self.segments * segment_from(pair, self.records[pair]["total"])
        if push or (ask and wants_more(self.records[pair], step)):
            self.enter(pair)

    async def give_back(self, now, following):
        dut = self.dut
        dut.return_now_i.value, dut.return_next_i.value = now, following
        await FallingEdge(dut.clk_i)
        dut.return_now_i.value = dut.return_next_i.value = 0
        self.reserved -= 2 * self.segments * (now + following)

    async def grant(self):
        """Takes the pair that has waited longest through its steps."""
        dut, rng = self.dut, self.rng
        for _ in range(8):
            if int(dut.head_valid_o.value):
                break
            await FallingEdge(dut.clk_i)
        assert int(dut.head_valid_o.value) == bool(self.queue)
        if not self.queue:
            return
        pair = self.queue.popleft()
        assert int(dut.head_o.value) == pair
        dut.head_take_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.head_take_i.value = 0
        record, known = self.records[pair], rng.random() < 0.9
        context = Context(rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(32), rng.random() < 0.5, 5)
        of = {"number": rng.getrandbits(32), "epoch": rng.getrandbits(16), "rank": rng.getrandbits(6)}
        sequence, session = rng.getrandbits(32), rng.getrandbits(16)
        dut.pair_i.value, dut.known_i.value, dut.seen_i.value = pair, known, pack(self.fields, record)
        dut.context_i.value = context.bits(len(dut.context_i) - 101)
        dut.communicator_i.value = pack(COMMUNICATOR, of | TERMS)
        dut.sequence_i.value, dut.session_i.value = sequence, session
        now = (
            record["posted"] and record["rendezvous"] and not (record["granted"] and record["limit"] == record["total"])
        )
        following = record["rendezvous"] and record["next_posted"] and record["next_rendezvous"]
        following = not now and following and not record["next_granted"]
        await FallingEdge(dut.clk_i)
        assert int(dut.due_o.value) == (known and bool(now or following))
        if not int(dut.due_o.value):
            self.seen["nothing due"] += 1
            return
        prefix = "" if now else "next_"
        want, total = dict(record), record[f"{prefix}total"]
        # What has come on credit needs no grant any more.
        limit, first = max(record["limit"], record["received"]) if now else 0, not (now and record["granted"])
        self.seen["on credit"] += bool(now and record["received"] > record["limit"])
        ample = self.reserved + 2 * self.segments <= self.buffers if first else bool(record["ample"])
        segment = segment_from(pair, total)
        self.seen[f"segments of {segment}"] += 1
        step = segment * (1 if not ample else 2 * self.segments if first else self.segments)
        want[f"{prefix}limit"] = min(total, limit + step)
        want[f"{prefix}ample"], want[f"{prefix}granted"] = ample, 1
        self.seen[f"{prefix}{'ample' if ample else 'scarce'} {'first' if first else 'more'}"] += 1
        self.reserved += 2 * self.segments * (ample and first)
        dut.step_i.value = 1
        assert unpack(self.fields, int(dut.stepped_o.value)) == want
        await FallingEdge(dut.clk_i)
        dut.step_i.value = 0
        self.records[pair] = want
        if now and want["limit"] == total and record["next_posted"] and record["next_rendezvous"]:
            self.enter(pair)
        # The message stays as it is while it waits.
        for _ in range(rng.choice((1, 4))):
            sent = int(dut.transmit_o.value)
            spec = load()
            header = spec.Header.decode((sent >> 27).to_bytes(64, "little"))
            assert (sent >> 23 & 15, sent >> 17 & 63, sent >> 1 & 0xFFFF, sent & 1) == (5, pair & 63, session, 1)
            apart = context.point_to_point
            assert header.type == spec.MessageType.GRANT
            assert (header.communicator, header.epoch, header.source) == (of["number"], of["epoch"], of["rank"])
            assert (header.destination, header.point_to_point) == (pair & 63, apart)
            assert header.sequence == (sequence if apart else context.sequence)
            assert header.tag == (context.tag if apart else 0)
            assert (header.message_bytes, header.signature) == (want[f"{prefix}limit"], context.signature)
            assert header.token_slot == pair
            assert header.token_generation == (record["generation"] + (not now)) & 0xFFFF
            await FallingEdge(dut.clk_i)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_arrivals(dut):
    rng = new_random("grants")
    grants = Grants(dut, rng)
    await start_clock_and_reset(dut)
    await FallingEdge(dut.clk_i)
    for _ in range(scaled(12000, 9000)):
        pair = rng.choice((0, 1, 70, 511))
        what = rng.random()
        if what < 0.38:
            await grants.grant()
        elif pair not in grants.records or what < 0.42:
            # An arrival issues, perhaps with another behind it. What the former had in reserve is free.
            old = grants.records.get(pair, {})
            now = bool(old.get("posted") and old["rendezvous"] and old["ample"])
            await grants.give_back(now, bool(old.get("next_posted") and old["next_ample"]))
            record = dict.fromkeys((name for name, _ in grants.fields), 0)
            record["posted"], record["generation"] = 1, rng.getrandbits(16)
            record["rendezvous"], record["total"] = rng.random() < 0.8, rng.randint(1, rng.choice((4, 60)) * SEGMENT)
            record["next_posted"] = rng.random() < 0.7
            record["next_rendezvous"], record["next_total"] = rng.random() < 0.8, rng.randint(1, 60 * SEGMENT)
            grants.records[pair] = record
            await grants.touch(pair, rng.random() < 0.9 and record["rendezvous"], False)
        else:
            # Some of what was granted is taken.
            record = grants.records[pair]
            limit = record["limit"]
            if rng.random() < 0.3:  # and some that has come on credit
                limit = min(record["total"], max(limit, record["received"]) + rng.choice((0, SEGMENT, 3 * SEGMENT)))
            left = max(0, limit - record["consumed"])
            record["consumed"] += min(left, rng.choice((SEGMENT, left, 5 * SEGMENT)))
            record["received"] = max(record["received"], record["consumed"])
            await grants.touch(pair, False, True)
    for what in ("segments of 2048", "segments of 4096", "segments of 8192"):
        assert grants.seen[what] > 10, grants.seen
    for what in ("ample first", "ample more", "scarce first", "scarce more", "next_ample first", "next_scarce first"):
        assert grants.seen[what] > 10, grants.seen
    assert min(grants.seen[what] for what in ("waits already", "nothing due", "on credit")) > 10, grants.seen


@pytest.mark.parametrize(("segments", "buffers"), [(4, 28), full(16, 96)])
def test_unisono_rbm_grants(segments, buffers):
    simulate("unisono_rbm_grants", __file__, {"GrantSegments": segments, "GrantBuffers": buffers})
