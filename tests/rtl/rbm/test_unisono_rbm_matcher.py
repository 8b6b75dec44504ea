"""unisono_rbm_matcher: calls of few communicators, peers and tags come and go; each answer compared with a search."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from calls import CALLS, Context, drive_context
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from hdl import scaled, simulate


class Calls:
    """The active calls, and what is known of them."""

    def __init__(self):
        self.contexts: dict[int, Context] = {}
        self.partner: dict[int, tuple[bool, int]] = {}  # of point-to-point calls whose move has come
        self.waiting: list[int] = []  # receives without message, the oldest first
        self.bound: dict[int, int] = {}  # sequences of messages
        self.sent: set[int] = set()  # sends that need no grant any more
        self.open: set[int] = set()  # receives whose message has begun and goes on

    def key(self, slot):
        return self.contexts[slot].communicator, self.partner[slot][1], self.contexts[slot].tag

    def first(self, slot):
        """The oldest waiting receive with the key of this one."""
        return next(one for one in self.waiting if self.key(one) == self.key(slot))

    def match(self, message, active):
        """The slots that a message fits."""
        for slot in active:
            context = self.contexts[slot]
            apart, grant, continues, of, source, sequence, tag = message
            if context.point_to_point != apart or context.communicator != of:
                continue
            if not apart:
                fits = context.sequence == sequence
            elif grant:
                fits = self.partner.get(slot) == (True, source) and context.sequence == sequence
                fits &= slot not in self.sent
            elif continues:
                same = slot in self.partner and self.key(slot) == (of, source, tag)
                fits = same and slot in self.open and self.bound[slot] == sequence
            else:
                fits = slot in self.waiting and self.key(slot) == (of, source, tag) and self.first(slot) == slot
            if fits:
                yield slot


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    rng, seen, calls = new_random("matcher"), Counter(), Calls()
    names = ("active", "partner_valid", "partner", "clear_valid", "clear_slot", "forgets", "message", "slot", "bind")
    for name in (*names, "bind_early", "bind_sequence", "bind_opens", "sent_valid", "sent_slot"):
        getattr(dut, f"{name}_i").value = 0
    for slot in range(CALLS):
        drive_context(dut, slot, Context(0, 0, 0, False, 0))
    await start_clock_and_reset(dut)
    clearing, since, early, later, number, gone = None, 0, None, {}, 0, None
    for cycle in range(scaled(24000, 12000)):
        await FallingEdge(dut.clk_i)
        for name, value in later.items():
            assert int(getattr(dut, f"{name}_o").value) == value, f"cycle {cycle}: {name}"
        later = {}
        crowd = cycle % 1000 < 300  # many receives of one key
        # A call begins, not in a slot that has just been cleared.
        free = [slot for slot in range(CALLS) if slot not in calls.contexts and slot != gone]
        gone = None
        if free and rng.random() < 0.2:
            slot, apart, number = rng.choice(free), crowd or rng.random() < 0.7, number + 1
            context = Context(
                rng.choice((5, 6)),
                1 if crowd else rng.choice((1, 2)),
                number,
                apart,
                0 if crowd else rng.choice((0, 3)),
            )
            calls.contexts[slot] = context
            drive_context(dut, slot, context)
        # Its move comes.
        apart = [one for one, context in calls.contexts.items() if context.point_to_point]
        lacking = [one for one in apart if one not in calls.partner and one != clearing]
        partner = rng.choice(lacking) if lacking and rng.random() < 0.3 else None
        sends, peer = not crowd and rng.random() < 0.3, 0 if crowd else rng.choice((0, 17))
        dut.partner_valid_i.value = partner is not None
        dut.partner_i.value = ((partner or 0) << 1 | sends) << 6 | peer
        # A call is cleared, and at last forgotten; only then is its slot free.
        forgets = clearing is not None and since > 1 and rng.random() < 0.5
        dut.clear_valid_i.value, dut.clear_slot_i.value = clearing is not None, clearing or 0
        dut.forgets_i.value = forgets
        active = [one for one in calls.contexts if one != clearing or since == 0]
        dut.active_i.value = sum(1 << one for one in calls.contexts)
        # All of a message has been sent.
        sending = [one for one, of_it in calls.partner.items() if of_it[0] and one != partner]
        sent = rng.choice(sending) if sending and rng.random() < 0.05 else None
        dut.sent_valid_i.value, dut.sent_slot_i.value = sent is not None, sent or 0
        # A message comes.
        model = rng.choice(list(calls.contexts.values()) or [Context(0, 1, 1, True, 0)])
        apart = rng.random() < 0.7 if rng.random() < 0.3 else model.point_to_point
        grant, source = rng.random() < 0.4, rng.choice((0, 0, 0, 17))
        sequence = model.sequence + rng.choice((0, 0, 0, 1))
        of, tag, signature = rng.choice((model.communicator, 0)), rng.choice((1, 2)), rng.choice((5, 6))
        continues = apart and not grant and rng.random() < 0.4
        opens = apart and not grant and not continues and rng.random() < 0.7
        if continues and calls.open and rng.random() < 0.8:
            of, source, tag = calls.key(one := rng.choice(sorted(calls.open)))
            sequence = calls.bound[one] ^ (rng.random() < 0.2)
        message = ((apart << 3 | grant << 2 | continues << 1 | opens) << 4 | of) << 6 | source
        dut.message_i.value = ((message << 32 | sequence) << 32 | tag) << 32 | signature
        # Operations on a pair: an early message is told a cycle before it counts.
        if early is None:
            slot = calls.waiting[-1] if calls.waiting and rng.random() < 0.4 else rng.randrange(CALLS)
            may = slot in calls.waiting and slot != partner and not forgets and slot != clearing
            bind, bind_early = may and rng.random() < (0.05 if crowd else 0.15), False
            if may and not bind and rng.random() < (0.05 if crowd else 0.15):
                bind_early, early = True, (slot, sequence + 1000 * cycle, rng.random() < 0.7)
        else:
            slot, bind, bind_early = early[0], False, False
        dut.slot_i.value, dut.bind_i.value, dut.bind_early_i.value = slot, bind, bind_early
        dut.bind_sequence_i.value = early[1] if bind_early else rng.getrandbits(32)
        dut.bind_opens_i.value = early[2] if bind_early else rng.random() < 0.5
        await ReadOnly()
        assert int(dut.active_o.value) == sum(1 << one for one in active), f"cycle {cycle}"
        assert int(dut.sends_o.value) == sum(1 << one for one, of_it in calls.partner.items() if of_it[0])
        oldest = {calls.first(one) for one in calls.waiting}
        assert int(dut.first_o.value) == sum(1 << one for one in oldest), f"cycle {cycle}"
        found = list(calls.match((apart, grant, continues, of, source, sequence, tag), active))
        assert len(found) < 2
        assert int(dut.match_valid_o.value) == len(found), f"cycle {cycle}: {found}"
        if found:
            assert int(dut.match_o.value) == found[0], f"cycle {cycle}"
            what = "grant" if grant else "continues" if continues else "receive"
            seen[what if apart else "collective"] += 1
        if slot in calls.bound:
            assert int(dut.sequence_o.value) == calls.bound[slot], f"cycle {cycle}"
            seen["sequence"] += 1
        for name, value in (("signature", signature), ("communicator", of)):
            same = {one for one, context in calls.contexts.items() if getattr(context, name) == value}
            if len(calls.contexts) == CALLS:  # of a slot without call nothing is said
                later[f"same_{name}"] = sum(1 << one for one in same)
                seen[name] += 1
        if slot in calls.waiting:
            later["elder"] = calls.first(slot)
            seen["elder"] += calls.first(slot) != slot
            same_key = [one for one in calls.waiting if calls.key(one) == calls.key(slot)]
            seen["many elders"] += same_key.index(slot) > 1
        await RisingEdge(dut.clk_i)
        if bind:
            calls.waiting.remove(slot)
            calls.bound[slot] = sequence
            calls.open |= {slot} if opens else set()
        if early is not None and not bind_early:
            if early[0] in calls.waiting:
                calls.waiting.remove(early[0])
            calls.bound[early[0]] = early[1]
            calls.open |= {early[0]} if early[2] else set()
            early = None
        calls.sent |= {sent} - {None}
        if partner is not None:
            calls.sent.discard(partner)
            calls.partner[partner] = sends, peer
            if not sends:
                calls.waiting.append(partner)
        since += 1
        if forgets:
            for table in (calls.contexts, calls.partner, calls.bound):
                table.pop(clearing, None)
            calls.waiting = [one for one in calls.waiting if one != clearing]
            calls.open.discard(clearing)
            clearing, gone = None, clearing
        elif clearing is None and calls.contexts and rng.random() < 0.1:
            clearing, since = rng.choice([one for one in calls.contexts if early is None or one != early[0]]), 0
    wanted = ("grant", "receive", "continues", "collective", "sequence", "elder", "many elders", "signature")
    assert min(seen[what] for what in wanted) > 20, seen


def test_unisono_rbm_matcher():
    simulate("unisono_rbm_matcher", __file__)
