"""What a look of the dispatcher asks, in which order, and how it ends: unisono_dispatcher_look without its cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Case:
    """A look: its run, how far it is, what holds it up, and what others will answer."""

    kind: str  # issue, kick or offer
    run: dict[str, int]
    progress: dict[str, int]
    state: Mapping[str, int]
    size: Mapping[str, int]
    lowered: Mapping[str, int]
    live: bool
    peers: list[int]  # that it receives from
    heads: list[dict[str, int]]  # the oldest segment of each
    credit: bool
    space: bool
    more: int  # of those that it sends to, those after the present one
    all_peers: int
    from_stream: bool
    offer: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Outcome:
    """What others are asked, in this order, and what is told in the last cycle."""

    asked: list[Any] = field(default_factory=list)
    events: set[str] = field(default_factory=set)
    writes: dict[str, int] | None = None  # what becomes of progress
    accepted: bool = False
    answered: bool = False  # the offer
    ends: bool = False  # the message
    forgets: bool = False  # its grant
    begins: bool = False


def lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


class Look:
    """Goes through a case."""

    def __init__(self, case: Case) -> None:
        self.case, self.out = case, Outcome()
        self.run, self.progress = dict(case.run), dict(case.progress)
        self.offered = case.kind == "offer"
        getattr(self, "issue" if case.kind == "issue" else "look")()

    def end(self, *events: str, refuse: bool = True) -> None:
        """It goes no further; what is offered goes to a buffer."""
        self.out.events |= set(events)
        self.out.answered |= refuse and self.offered

    def write(self, **changes: int) -> None:
        self.progress |= changes
        self.out.writes = dict(self.progress)

    def issue(self) -> None:
        case, run, given = self.case, self.run, self.case.lowered
        self.write(credited=given["credited"], peers=case.all_peers, peer=given["lowest"], made=not case.from_stream)
        if given["outside"]:
            self.write(done=1)
            self.out.begins = bool(given["credited"])
            return self.end("fail")
        if not given["exists"]:
            return self.end("consumed", "sent", "complete")
        self.out.begins = bool(run["send"] and not run["put"])
        if run["fan_in"] or run["arrival"]:
            sources = case.peers if run["fan_in"] else [run["source"]]
            self.out.asked += [("post", source) for source in sources]
            return self.end()
        if given["credited"] and (given["one_piece"] or run["opens"]):
            run["eager"] |= run["opens"]
            return self.space()
        if not run["fan_out"] and case.state["free"]:
            return self.credit()
        return self.look()

    def look(self) -> None:
        case, run, progress = self.case, self.run, self.progress
        run["eager"] = (run["eager"] and not progress["requested"]) or progress["credited"]
        if run["fan_out"]:
            run["peer"] = progress["peer"]
            if not progress["made"]:
                run["send"] = 0
            elif run["op0_used"]:
                run |= dict.fromkeys(("arrival", "fan_in", "func", "op0_used", "op1_memory", "local"), 0)
                run["op0_address"] = run["local_address"]
        if not (case.live or case.kind == "issue") or (self.offered and run["fan_out"]):
            return self.end()
        if progress["done"] or progress["making"]:
            return self.end()
        if not self.offered and run["arrival"]:
            sources = case.peers if run["fan_in"] else [run["source"]]
            for place, (source, head) in enumerate(zip(sources, case.heads, strict=False)):
                self.out.asked.append(("head", source))
                if not head["valid"]:
                    return self.end()
                if place and head["bytes"] != case.heads[place - 1]["bytes"]:
                    return self.end("fail")
                if case.state["point_to_point"]:
                    run["bytes"] = head["total"]
        if self.offered and case.state["point_to_point"]:
            run["bytes"] = case.offer["total"]
        return self.credit()

    @property
    def opens(self) -> bool:
        """Its next segment may go on credit, though it is long and not granted."""
        known = self.case.run["opens"] and self.case.state["point_to_point"]
        return bool(known and (not self.progress["requested"] or self.progress["opening"]))

    def open(self) -> None:
        """A long message that is not granted yet asks for credit for its next segment."""
        self.out.asked.append("kept credit")
        self.run["eager"] = self.case.credit
        if self.case.credit:
            self.write(credited=1)
            return self.space()
        self.write(credited=0)
        if self.progress["requested"]:
            self.write(opening=0)
            return self.end("announced", refuse=False)
        return self.request()

    def credit(self) -> None:
        run, state = self.run, self.case.state
        if not state["follows"]:
            return self.end("follow_waits")
        if not state["streams"]:
            return self.end("stream_waits")
        if (run["put"] or run["get"]) and state["remote_busy"]:
            return self.end("again", refuse=False)
        if run["get"]:
            self.write(done=1)
            return self.end("remote_begin", refuse=False)
        if run["put"]:
            return self.space()
        if not run["send"]:
            return self.dispatch()
        if state["held"]:
            return self.end(refuse=False)
        if run["eager"]:
            if self.progress["credited"]:
                return self.space()
            self.out.asked.append("credit")
            if self.case.credit:
                self.write(credited=1)
                return self.space()
            return self.request()
        if (state["point_to_point"] or state["to_switch"]) and not self.progress["requested"] and not self.opens:
            return self.request()
        if not self.case.size["granted"] and self.opens:
            return self.open()
        if not self.case.size["granted"]:
            self.out.asked.append("adopt")
        if self.case.size["waits"]:
            if self.progress["opening"]:
                self.write(opening=0)
                return self.end("announced")
            return self.end()
        return self.space()

    def request(self) -> None:
        """Its peer is asked to grant it; what is at the head of Rx does not wait for that."""
        self.out.answered, self.offered = self.out.answered or self.offered, False
        self.space(request=True)

    def space(self, request: bool = False) -> None:
        if not self.case.state["overtakes"]:
            self.out.asked.append("space")
        if self.case.state["overtakes"] or not self.case.space:
            return self.end(*(() if self.offered else ("again",)))
        if request:
            self.out.asked.append("job")
            self.write(requested=1)
            return self.end("announced")
        return self.dispatch()

    def dispatch(self) -> None:
        case, run, size, out = self.case, self.run, self.case.size, self.out
        makes = run["fan_out"] and not self.progress["made"]
        keeps = run["fan_out"] and not makes and case.more != 0
        if run["fan_in"]:
            for place, source in enumerate(case.peers):
                out.asked.append(("head", source))
                if place < len(case.peers) - 1:
                    out.asked += [*(["job"] if run["bytes"] else []), *([] if keeps else [("take", source)])]
        source = case.peers[-1] if run["fan_in"] else run["source"]
        if not run["bytes"] and not run["send"]:
            out.asked.append(("take", source))
            self.write(done=1)
            return self.end("complete", *(["consumed"] if run["fan_in"] else []), refuse=False)
        out.asked.append("job")
        if run["arrival"] and not self.offered and not keeps:
            out.asked.append(("take", source))
        sends, last = run["send"] and not run["put"], size["last"]
        ended = last and not makes and not keeps
        opens = self.opens
        if opens:
            self.write(opening=run["eager"] and not last, requested=1, credited=0)
        events = {"announced"} if sends and not self.progress["opening"] else set()
        if run["put"] and self.progress["position"] == 0:
            events.add("remote_begin")
        if last and run["fan_in"] and not keeps:
            events.add("consumed")
        if ended and sends:
            events.add("sent")
        if not ended and not makes:
            events.add("again")
        out.ends = bool(last and sends)
        out.forgets = out.ends and (not run["eager"] or opens)
        first = self.progress["position"] == 0
        if not makes and not keeps:
            self.progress["position"] = size["after"]
        self.write(done=ended, making=makes)
        if run["fan_out"] and run["send"]:
            left = case.more or case.all_peers
            self.write(
                peers=left, peer=lowest(case.more) if case.more else case.lowered["lowest"], credited=0, requested=0
            )
            if not case.more:
                self.write(made=not case.from_stream)
            out.begins |= bool(case.more) and first
        out.accepted = self.offered
        return self.end(*events)
