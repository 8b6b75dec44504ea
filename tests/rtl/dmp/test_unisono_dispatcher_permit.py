"""unisono_dispatcher_permit: each step against what must be done in it, and whole messages on credit and by grants."""

from collections import Counter

import cocotb
from bus import new_random
from cocotb.triggers import Timer
from hdl import scaled, simulate
from look_records import LOOK, PERMIT, PROGRESS, RUN, SIZE, STATE, pack, random_record, unpack

IDLE, CREDIT, GRANTS, SIZE_STEP, OPEN, SPACE, DISPATCH = 0, 12, 13, 14, 15, 16, 17
SEGMENT = 2048
TELLS = (CREDIT, GRANTS, SIZE_STEP, OPEN)


def may_open(run, progress, state):
    """A long message whose next segment may go before it is granted."""
    return run["opens"] and state["point_to_point"] and (not progress["requested"] or progress["opening"])


class Expected:
    """What must be done in a step."""

    def __init__(self, look, run, progress, size, state, answers):
        self.look, self.run, self.progress = look, run, progress
        self.size, self.state, self.answers = size, state, answers
        self.opens = bool(may_open(run, progress, state))
        self.permit = dict.fromkeys((name for name, _ in PERMIT), 0) | progress
        self.permit |= {name: look[name] for name in ("step", "offered", "asks", "adopted")}
        self.permit |= {"next_bytes": look["bytes"], "eager": run["eager"], "forgets": not run["eager"] or self.opens}
        self.asks = set()
        self.way = "none"
        steps = {CREDIT: self.credit, GRANTS: self.grants, SIZE_STEP: self.sized, OPEN: self.open}
        steps.get(look["step"], self.dispatch if look["step"] == DISPATCH else lambda: None)()

    def goes(self, way, step, **changes):
        self.way = way
        self.permit |= {"step": step, **changes}

    def refuse(self):
        self.permit["refuses"] = self.look["offered"]

    def question(self):
        """A question is asked once."""
        if not self.look["credit_asked"]:
            self.asks.add("credit")
        asked = self.look["credit_asked"] or self.answers["credit_ready"]
        self.permit["credit_asked"] = asked and not self.answers["credit_answer"]

    def request(self, way):
        self.goes(way, SPACE, asks=1)

    def credit(self):
        run, state, given = self.run, self.state, self.answers["credit_granted"]
        asked = self.look["credit_asked"]
        if not (state["follows"] or asked):
            self.goes("producers", IDLE, follow_waits=1)
            self.refuse()
        elif not (state["streams"] or asked):
            self.goes("streams", IDLE, stream_waits=1)
            self.refuse()
        elif (run["put"] or run["get"]) and state["remote_busy"]:
            self.goes("remote busy", IDLE, again=1)
        elif run["get"]:
            self.goes("get", IDLE, remote_begin=1, done=1, writes=1)
        elif run["put"]:
            self.goes("put", SPACE, next_bytes=self.size["own"])
        elif not run["send"]:
            self.goes("local", DISPATCH, next_bytes=self.size["own"], computes=1)
        elif state["held"]:
            self.goes("held", IDLE)
        elif run["eager"]:
            self.permit["next_bytes"] = self.size["own"]
            if self.progress["credited"]:
                self.goes("has credit", SPACE)
            else:
                self.question()
                self.way = "asks for credit"
                if self.answers["credit_answer"] and given:
                    self.goes("credit", SPACE, credited=1, writes=1)
                elif self.answers["credit_answer"]:
                    self.request("no credit")
        elif (state["point_to_point"] or state["to_switch"]) and not (self.progress["requested"] or self.opens):
            self.request("unknown to its peer")
        else:
            self.goes("by grant", SIZE_STEP, adopted=0)
        if self.permit["asks"]:
            # Rx does not wait for a request.
            self.permit |= {"next_bytes": 0, "offered": 0}
            self.refuse()

    def grants(self):
        self.asks.add("adopt")
        self.way = "asks for grants"
        if self.answers["adopt_ready"]:
            self.goes("asked for grants", SIZE_STEP, adopted=1)

    def sized(self):
        run, size = self.run, self.size
        self.permit |= {"next_bytes": size["sized"], "computes": 1}
        needs = run["send"] and not run["eager"]
        if needs and not size["granted"] and self.opens:
            self.goes("opens", OPEN)
        elif needs and not size["granted"] and not self.look["adopted"]:
            self.goes("grants first", GRANTS)
        elif needs and size["waits"]:
            self.goes("waits for its grant", IDLE)
            self.refuse()
            if self.progress["opening"]:
                self.goes("opens no more", IDLE, opening=0, writes=1, announced=1)
        else:
            self.goes("goes", SPACE if run["send"] else DISPATCH)

    def open(self):
        self.question()
        self.asks.add("keep")
        self.permit["next_bytes"] = self.size["own"]
        self.way = "asks to open"
        if not self.answers["credit_answer"]:
            return
        given = self.answers["credit_granted"]
        self.permit |= {"credited": given, "eager": given, "writes": 1}
        if given:
            self.goes("opened", SPACE)
        elif self.progress["requested"]:
            self.goes("rest by grant", IDLE, opening=0, announced=1)
        else:
            self.goes("not opened", SPACE, asks=1, next_bytes=0)

    def dispatch(self):
        sends = self.run["send"] and not self.run["put"]
        if self.look["asks"]:
            self.permit |= {"requested": 1, "announced": 1}
            self.way = "request"
        elif self.opens:
            opening = self.run["eager"] and not self.size["last"]
            self.permit |= {"opening": opening, "requested": 1, "credited": 0, "announced": sends and not opening}
            self.way = "opening goes" if opening else "opening ends"
        else:
            self.permit["announced"] = sends and not self.progress["opening"]
            self.way = "job"


async def told(dut, look, run, progress, size, state, answers):
    """What the module says."""
    dut.look_i.value, dut.run_i.value, dut.progress_i.value = pack(LOOK, look), pack(RUN, run), pack(PROGRESS, progress)
    dut.size_i.value, dut.state_i.value = pack(SIZE, size), pack(STATE, state)
    for name in ("credit_ready", "credit_answer", "credit_granted", "adopt_ready"):
        getattr(dut, f"{name}_i").value = answers.get(name, 0)
    await Timer(1, unit="ns")
    asks = {name for name in ("credit", "keep", "adopt") if int(getattr(dut, f"ask_{name}_o").value)}
    return unpack(PERMIT, int(dut.permit_o.value)), asks


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_steps(dut):
    rng, seen = new_random("permit"), Counter()
    for _ in range(scaled(24000, 12000)):
        look, run, progress = (random_record(rng, fields) for fields in (LOOK, RUN, PROGRESS))
        size, state = random_record(rng, SIZE), {name: rng.random() < 0.8 for name, _ in STATE}
        look["step"] = rng.choice((CREDIT, CREDIT, *TELLS, DISPATCH, SPACE))
        look["asks"] = look["step"] in (SPACE, DISPATCH) and rng.random() < 0.3
        run |= {"send": rng.random() < 0.8, "put": rng.random() < 0.1, "get": rng.random() < 0.1}
        state |= {name: rng.random() < 0.3 for name in ("held", "remote_busy", "to_switch")}
        names = ("credit_ready", "credit_answer", "credit_granted", "adopt_ready")
        answers = {name: rng.random() < 0.5 for name in names}
        want = Expected(look, run, progress, size, state, answers)
        permit, asks = await told(dut, look, run, progress, size, state, answers)
        wrong = {name: (permit[name], int(value)) for name, value in want.permit.items() if permit[name] != value}
        assert not wrong, (want.way, wrong)
        assert asks == want.asks, want.way
        seen[want.way] += 1
    ways = ("producers", "streams", "remote busy", "get", "put", "local", "held", "has credit", "asks for credit")
    ways += ("credit", "no credit", "unknown to its peer", "by grant", "asks for grants", "asked for grants", "opens")
    ways += ("grants first", "waits for its grant", "opens no more", "goes", "asks to open", "opened", "rest by grant")
    for what in (*ways, "not opened", "request", "opening goes", "opening ends", "job"):
        assert seen[what] > 20, what


class Message:
    """A message that is looked at until it has gone; its peer grants segments once it knows of it."""

    def __init__(self, dut, rng, seen):
        self.dut, self.rng, self.seen = dut, rng, seen
        self.kind = rng.choice(("short", "opens", "asks", "collective"))
        self.count = 1 if self.kind == "short" else rng.randint(1, 5)
        self.run = random_record(rng, RUN) | dict.fromkeys(("put", "get", "fan_in", "fan_out", "arrival"), 0)
        self.run |= {"send": 1, "bytes": self.count * SEGMENT, "opens": self.kind == "opens"}
        self.progress = dict.fromkeys((name for name, _ in PROGRESS), 0) | {"made": 1}
        self.state = dict.fromkeys((name for name, _ in STATE), 0) | {"free": 1, "follows": 1, "streams": 1}
        self.state["point_to_point"] = self.kind in ("opens", "asks") or (self.kind == "short" and rng.random() < 0.5)
        self.position = self.limit = self.requests = self.credits = self.by_credit = 0
        self.granted = self.announced = False

    async def look(self):
        """From Credit to the end of the look."""
        rng = self.rng
        short = self.kind == "short" and not self.progress["requested"]
        run = self.run | {"eager": short or self.progress["credited"]}
        look = random_record(rng, LOOK) | dict.fromkeys(("offered", "asks", "credit_asked", "space_asked"), 0)
        look |= {"step": CREDIT, "bytes": 0}
        if (self.progress["requested"] or self.kind == "collective") and rng.random() < 0.4:
            # Less may be granted than has gone on credit.
            self.limit, self.granted = min(self.count, self.limit + rng.randint(1, 3)), True
        generous = rng.random() < 0.6
        for _ in range(100):
            step = look["step"]
            waits = not self.granted or self.limit <= self.position
            size = {"own": SEGMENT, "sized": SEGMENT, "granted": self.granted, "waits": waits}
            size["last"] = self.position + 1 == self.count
            answers = {"adopt_ready": rng.random() < 0.5, "credit_ready": rng.random() < 0.5}
            answers["credit_answer"] = look["credit_asked"] and rng.random() < 0.5
            answers["credit_granted"] = generous
            permit, asks = await told(self.dut, look, run, self.progress, size, self.state, answers)
            if "keep" in asks:
                assert not self.announced, "what has been announced opens"
            if step in TELLS and answers["credit_answer"]:
                self.credits += generous
            if step in TELLS or step == DISPATCH:
                assert not permit["announced"] or not permit["opening"]
                self.announced |= bool(permit["announced"])
                if step == DISPATCH or permit["writes"]:
                    self.progress = {name: permit[name] for name, _ in PROGRESS}
            if step == SPACE:
                look["step"] = DISPATCH
            elif step == DISPATCH:
                self.job(look, run, waits)
                return
            else:
                look |= {name: permit[name] for name in ("step", "asks", "adopted", "credit_asked")}
                look["bytes"], run["eager"] = permit["next_bytes"], permit["eager"]
                if look["step"] == IDLE:
                    assert waits, "it may go, but waits"
                    return
        raise AssertionError("the look does not end")

    def job(self, look, run, waits):
        """What has been handed over."""
        if look["asks"]:
            self.requests += 1
            assert self.requests == 1
            assert self.position == 0
            assert look["bytes"] == 0
            self.seen[f"{self.kind} request"] += 1
            return
        assert look["bytes"] == SEGMENT
        if run["eager"]:
            self.by_credit += 1
            assert self.by_credit == self.credits, "it goes on credit that it has not"
        else:
            assert not waits, "it goes without a grant"
        self.seen[f"{self.kind} {'credit' if run['eager'] else 'grant'}"] += 1
        self.position += 1
        if self.kind == "short":
            self.progress["credited"] = 0


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def whole_messages(dut):
    """Nothing goes without credit or grant, a peer is asked once, and what has been announced opens no more."""
    rng, seen = new_random("messages"), Counter()
    for _ in range(scaled(4000, 1500)):
        message = Message(dut, rng, seen)
        for _ in range(200):
            await message.look()
            if message.position == message.count:
                break
        assert message.position == message.count, "it does not end"
        assert message.announced
        assert message.credits == message.by_credit, "credit is left over"
        assert not message.progress["opening"]
        first = "segment" if message.requests == 0 else "request"
        assert (message.kind, first) not in {("asks", "segment"), ("collective", "request")}
        seen[f"{message.kind} {first} first"] += 1
    names = ("short credit", "short grant", "short request", "opens credit", "opens grant", "opens request")
    for what in (*names, "opens segment first", "asks request", "asks grant", "collective grant"):
        assert seen[what] > 50, what


def test_unisono_dispatcher_permit():
    simulate("unisono_dispatcher_permit", __file__)
