"""unisono_dispatcher_look: random looks, answered late or at once, against the order of the model."""

from __future__ import annotations

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hdl import scaled, simulate
from look_model import Case, Look, lowest
from look_records import (
    ANSWERS,
    EVENTS,
    LIST,
    LOOK,
    LOWERED,
    MEMORY,
    PROGRESS,
    RUN,
    SEGMENT,
    SIZE,
    STATE,
    TAKES,
    pack,
    random_record,
    unpack,
)

IDLE, SWEEP = 0, 21
KEEP, POST, CHECK, DISPATCH, COUNT, NEXT = range(6)
ASKS = ("credit", "credit_back", "adopt", "space", "post", "head", "take", "job")
PLACED = ("post", "head", "take")
"""Questions about the peer that the run receives from."""


def random_case(rng, kind):
    """A look as there may be."""
    run, progress = random_record(rng, RUN), random_record(rng, PROGRESS)
    run["bytes"] = rng.choice((0, 64, 1 << 20))
    likely = {"put": 0.1, "get": 0.1, "send": 0.6, "fan_out": 0.3, "fan_in": 0.4, "arrival": 0.6, "eager": 0.5}
    run |= {name: rng.random() < share for name, share in likely.items()}
    run["arrival"] |= kind == "offer"
    run["fan_in"] &= run["arrival"] and kind != "offer"
    if run["put"] or run["get"]:
        run |= {"get": run["get"] and not run["put"], "send": run["put"]}
        run |= dict.fromkeys(("fan_in", "fan_out", "arrival"), kind == "offer" and 0)
        if kind == "offer":
            run |= {"put": 0, "get": 0, "arrival": 1}
    run["fan_out"] &= run["send"]
    # A long message from memory may begin on credit.
    run["opens"] = kind != "offer" and run["send"] and rng.random() < 0.5
    if run["opens"]:
        run |= dict.fromkeys(("put", "get", "fan_out", "fan_in", "arrival", "eager"), 0)
        run["bytes"] = 1 << 20
    waits = kind != "offer" and rng.random() < 0.1
    progress |= {"done": waits, "making": 0, "made": rng.random() < 0.7, "credited": rng.random() < 0.3}
    progress |= {"requested": rng.random() < 0.2, "position": rng.choice((0, 1 << 13)), "opening": 0}
    if run["opens"] and progress["requested"]:
        progress["opening"] = rng.random() < 0.7
        progress["credited"] &= progress["opening"]
    if kind == "issue":
        progress = dict.fromkeys(progress, 0)
    state = {name: rng.random() < 0.85 for name, _ in STATE}
    state |= {name: rng.random() < 0.15 for name in ("held", "remote_busy", "overtakes", "to_switch", "point_to_point")}
    if run["opens"]:
        state["point_to_point"] = rng.random() < 0.7
    size = random_record(rng, SIZE) | {"granted": rng.random() < 0.6, "waits": rng.random() < 0.3}
    lowered = {name: rng.random() < 0.3 for name in ("outside", "credited", "one_piece")}
    lowered |= {"exists": rng.random() < 0.9, "lowest": rng.randrange(64)}
    lowered["credited"] &= not run["opens"] or state["point_to_point"]
    count = rng.choice((1, 2, 5)) if run["fan_in"] else 1
    total = rng.choice((0, 64))
    heads = [{"valid": 1, "bytes": 512, "total": total, "buffer": place} for place in range(count)]
    if rng.random() < 0.1:
        heads[-1] |= rng.choice(({"valid": 0}, {"bytes": 256}))
    return Case(
        kind=kind,
        run=run,
        progress=progress,
        state=state,
        size=size,
        lowered=lowered,
        live=rng.random() < 0.9,
        peers=[rng.randrange(64) for _ in range(count)],
        heads=heads,
        credit=rng.random() < 0.5,
        space=rng.random() < 0.8,
        more=rng.choice((0, rng.getrandbits(64))),
        all_peers=rng.getrandbits(64) | 1 << rng.randrange(64),
        from_stream=rng.random() < 0.3,
        offer={"bytes": 512, "total": rng.choice((0, 4096))},
    )


class Lists:
    """Where it is in a list, as unisono_dispatcher_lists has it."""

    def __init__(self, peers):
        self.peers, self.walk, self.index, self.count = peers, 0, 0, 0
        self.first = self.last = False

    def step(self, command):
        self.first, self.last = self.index == 1, self.index == self.count
        if command in (POST, CHECK, DISPATCH):
            self.walk, self.index = command - POST, int(command == DISPATCH)
        elif command == COUNT:
            self.count, self.index = len(self.peers), 1
        elif command == NEXT:
            self.index += 1

    def word(self):
        return len(self.peers) if self.index == 0 else self.peers[(self.index - 1) % len(self.peers)]


class Bench:
    """All that stands around the look."""

    def __init__(self, dut):
        self.dut, self.rng, self.seen = dut, new_random("look"), Counter()
        for name in ("clear", "offer", "issue", "wake", "next"):
            getattr(dut, f"{name}_valid_i").value = 0
        dut.clear_slot_i.value = 0
        for name in (
            "offer_id",
            "offer_bytes",
            "offer_total",
            "issue_id",
            "wake_id",
            "next_id",
            "run",
            "progress",
            "live",
        ):
            getattr(dut, f"{name}_i").value = 0
        for name in ("peers", "from_stream", "binds", "ready", "lowered", "list", "pool_word", "size", "pair_sends"):
            getattr(dut, f"{name}_i").value = 0
        for name in ("pair_sender", "holds", "state", "answers", "head"):
            getattr(dut, f"{name}_i").value = 0

    def out(self, fields, name):
        return unpack(fields, int(getattr(self.dut, f"{name}_o").value))

    def asks(self):
        return {name for name in ASKS if int(getattr(self.dut, f"ask_{name}_o").value)}

    async def sweep(self):
        """After a reset each pair is ended, and nothing is looked at before."""
        dut, swept = self.dut, {(0, 0)}  # the first one, in the cycle after the reset
        dut.issue_valid_i.value = 1
        while True:
            await FallingEdge(dut.clk_i)
            look = self.out(LOOK, "look")
            if look["step"] != SWEEP:
                break
            assert int(dut.ends_o.value)
            assert int(dut.forget_o.value) == 3
            assert self.out(MEMORY, "memory")["live_clear"]
            swept.add((look["slot"], self.out(RUN, "run")["peer"]))
            await RisingEdge(dut.clk_i)
        assert len(swept) == 512
        dut.issue_valid_i.value = 0
        await RisingEdge(dut.clk_i)

    def surround(self, case, lists):
        """What the parts say in this cycle."""
        dut, run, progress = self.dut, self.out(RUN, "run"), self.out(PROGRESS, "progress")
        makes = run["fan_out"] and not progress["made"]
        keeps = run["fan_out"] and not makes and case.more != 0
        known = {"walk": lists.walk, "counts": lists.index == 0, "first": lists.first, "last": lists.last}
        known |= {"makes": makes, "keeps": keeps, "more": case.more != 0, "peers": case.more}
        dut.list_i.value = pack(LIST, known | {"peer": lowest(case.more) if case.more else 0})
        dut.pool_word_i.value = lists.word()
        place = (lists.index - 1) % len(case.heads) if run["fan_in"] else 0
        dut.head_i.value = pack(SEGMENT, case.heads[place])
        return run["source"]

    def begin(self, case, id_):
        """Shows the look to be begun, beside others that come later."""
        dut, rng = self.dut, self.rng
        others = {"offer": ("issue", "wake", "next"), "issue": ("wake", "next"), "kick": ()}[case.kind]
        for name in others:
            getattr(dut, f"{name}_valid_i").value = rng.random() < 0.5
            getattr(dut, f"{name}_id_i").value = rng.randrange(256)
        name = "next" if case.kind == "kick" else case.kind
        getattr(dut, f"{name}_valid_i").value, getattr(dut, f"{name}_id_i").value = 1, id_
        dut.offer_bytes_i.value, dut.offer_total_i.value = case.offer["bytes"], case.offer["total"]
        dut.state_i.value, dut.size_i.value = pack(STATE, case.state), pack(SIZE, case.size)
        dut.lowered_i.value = pack(LOWERED, case.run | case.lowered)
        dut.run_i.value, dut.progress_i.value = pack(RUN, case.run), pack(PROGRESS, case.progress)
        dut.live_i.value = case.live and case.kind != "issue"
        dut.peers_i.value, dut.from_stream_i.value = case.all_peers, case.from_stream

    async def look(self, case):
        dut, rng = self.dut, self.rng
        want, lists = Look(case).out, Lists(case.peers)
        id_, hurry = rng.randrange(256), rng.choice((0.2, 0.6, 1.0))
        self.begin(case, id_)
        asked, events, written = [], set(), None
        answered = accepted = ends = begins = forgets = False
        due = {}  # questions whose answer comes later, in so many cycles
        for cycle in range(2000):
            await FallingEdge(dut.clk_i)
            if cycle and self.out(LOOK, "look")["step"] == IDLE:
                break
            source = self.surround(case, lists)
            dut.ready_i.value, dut.binds_i.value = rng.random() < hurry, rng.random() < 0.5
            ready = {name: rng.random() < hurry for name, _ in ANSWERS if name.endswith("_ready")}
            given = ready | {"take_ready": 0, "credit_granted": case.credit, "space_granted": case.space}
            for name in ("credit", "space"):
                given[f"{name}_answer"] = due.get(name) == 0
            dut.answers_i.value = pack(ANSWERS, given)
            await Timer(200, unit="ps")
            asks = self.asks()
            # These two are answers: they come only where they are asked for.
            given["head_answer"] = "head" in asks and rng.random() < hurry
            given["take_ready"] = "take" in asks and ready["take_ready"]
            dut.answers_i.value = pack(ANSWERS, given)
            await Timer(200, unit="ps")
            asks, now, takes = self.asks(), self.out(LOOK, "look"), self.out(TAKES, "takes")
            assert cycle == 0 or (now["slot"] << 5 | now["entry"]) == id_
            due = {name: left - 1 for name, left in due.items() if left}
            for name in ("post", "head", "credit", "adopt", "space", "job", "take"):
                answer = "head_answer" if name == "head" else f"{name}_ready"
                if name in asks and given[answer]:
                    kept = "kept " if name == "credit" and int(dut.ask_keep_o.value) else ""
                    asked.append((name, source) if name in PLACED else kept + name)
                    if name in ("credit", "space"):
                        due[name] = rng.choice((0, 0, 1, 4))
            told = {name for name, bit in self.out(EVENTS, "events").items() if bit}
            if cycle == 0:
                assert told == {"begins"}
                wanted = {"issue": {"issue"}, "kick": {"next"}, "offer": set()}[case.kind]
                assert {name for name, bit in takes.items() if bit} == wanted
            memory = self.out(MEMORY, "memory")
            if memory["progress_write"]:
                written = self.out(PROGRESS, "progress_write")
            assert not memory["live_raise"] or case.kind == "issue"
            events |= told - {"begins", "parks"}
            answered, accepted = answered or bool(takes["offer_answer"]), accepted or bool(takes["offer_accepted"])
            ends, begins = ends or bool(int(dut.ends_o.value)), begins or bool(int(dut.begins_o.value))
            if int(dut.forget_o.value):
                assert int(dut.forget_o.value) == 1 << case.size["parity"]
                forgets = True
            lists.step(int(dut.list_command_o.value))
            await RisingEdge(dut.clk_i)
            if cycle == 0:
                dut.issue_valid_i.value = dut.wake_valid_i.value = dut.next_valid_i.value = 0
            if takes["offer_answer"]:
                dut.offer_valid_i.value = 0
        dut.offer_valid_i.value = 0
        await RisingEdge(dut.clk_i)
        found = (asked, events, answered, accepted, ends, forgets, begins)
        expected = (want.asked, want.events, want.answered, want.accepted, want.ends, want.forgets, want.begins)
        assert found == expected, (found, expected, case)
        assert written == want.writes, (written, want.writes, case)
        for what in (*events, *(one if isinstance(one, str) else one[0] for one in asked)):
            self.seen[what] += 1
        self.seen["accepted"] += accepted
        self.seen["refused"] += answered and not accepted
        self.seen["nothing"] += not asked and not events


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_looks(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    await bench.sweep()
    for _ in range(scaled(12000, 3000)):
        await bench.look(random_case(bench.rng, bench.rng.choice(("issue", "kick", "kick", "offer"))))
    asked = ("post", "head", "credit", "kept credit", "adopt", "space", "job", "take")
    events = (
        "again",
        "announced",
        "consumed",
        "sent",
        "complete",
        "fail",
        "remote_begin",
        "follow_waits",
        "stream_waits",
    )
    for what in (*asked, *events, "accepted", "refused", "nothing"):
        assert bench.seen[what] > 20, what


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_local_result_is_there(dut):
    """What waits for it is looked at again, if its call has not been cleared meanwhile."""
    bench = Bench(dut)
    rng = bench.rng
    await start_clock_and_reset(dut)
    await bench.sweep()
    for live in (True, False, True):
        progress = random_record(rng, PROGRESS) | {"making": 1, "made": 0}
        dut.wake_valid_i.value, dut.wake_id_i.value, dut.live_i.value = 1, 77, live
        dut.progress_i.value = pack(PROGRESS, progress)
        await FallingEdge(dut.clk_i)
        assert bench.out(MEMORY, "memory")["read_run"]
        assert int(dut.next_id_o.value) == 77
        await RisingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)
        assert bench.out(TAKES, "takes")["wake"]
        assert bench.out(MEMORY, "memory")["progress_write"] == live
        assert bench.out(EVENTS, "events")["again"] == live
        assert bench.out(PROGRESS, "progress_write") == progress | {"making": 0, "made": 1}
        await RisingEdge(dut.clk_i)
        dut.wake_valid_i.value = 0
        await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_call_is_cleared(dut):
    """Each pair ends its message and its grants; credit of those that live and have it is given back."""
    bench = Bench(dut)
    rng = bench.rng
    await start_clock_and_reset(dut)
    await bench.sweep()
    for share in (0.0, 0.3, 1.0):
        sends = {peer: rng.randrange(32) for peer in range(64) if rng.random() < share}
        credited = {entry for entry in range(32) if rng.random() < 0.5}
        live = {entry for entry in range(32) if rng.random() < 0.7}
        back, ended, forgotten, read = Counter(), [], set(), None
        want = Counter(entry for entry in sends.values() if entry in credited & live)
        dut.clear_valid_i.value, dut.clear_slot_i.value = 1, 5
        dut.offer_valid_i.value = 1  # a call is cleared before anything is looked at
        left = [len(sends)] * 3
        for _ in range(400):
            await FallingEdge(dut.clk_i)
            look, peer = bench.out(LOOK, "look"), bench.out(RUN, "run")["peer"]
            if look["cleared"]:
                break
            dut.pair_sends_i.value, dut.pair_sender_i.value = peer in sends, sends.get(peer, rng.randrange(32))
            dut.holds_i.value = left[0] != 0
            dut.live_i.value = read in live
            dut.progress_i.value = pack(PROGRESS, {"credited": read in credited})
            ready = rng.random() < 0.5
            dut.answers_i.value = pack(ANSWERS, {"credit_back_ready": ready})
            await Timer(200, unit="ps")
            if "credit_back" in bench.asks() and ready:
                back[look["entry"]] += 1
            if int(dut.forget_o.value) == 3:
                forgotten.add(peer)
            if int(dut.ends_o.value):
                ended.append(peer)
                del sends[peer]
            read = int(dut.next_id_o.value) & 31
            left = [*left[1:], len(sends)]
            await RisingEdge(dut.clk_i)
        assert look["cleared"]
        assert look["slot"] == 5
        assert back == want
        assert not sends
        assert not share or forgotten == set(range(64))
        dut.clear_valid_i.value = dut.offer_valid_i.value = 0
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        assert not bench.out(LOOK, "look")["cleared"]


def test_unisono_dispatcher_look():
    simulate("unisono_dispatcher_look", __file__)
