"""unisono_switch_judge: which heads go on together, and what ends a run; its CCM has a test of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, Timer
from hdl import full, parameters, scaled, simulate
from headers import Datatype, spec
from unit_records import ENTRIES, LOOK, RUNS, TRANSFER, WAITING, pack, random_record, unpack, width_of

HEAD = {"shares": 14, "first_port": 5, "has_up": 1, "up": 5, "count": 14, "first": 13, "members": 14, "ports": 5}
PORT = {"is_switch": 1, "count": 14, "first": 13}
ALLREDUCE, BCAST, ALLGATHER = (int(getattr(spec.Collective, name)) for name in ("ALLREDUCE", "BCAST", "ALLGATHER"))
EAGER = 512


def tag_of(place: int, opcode: int, down: int) -> int:
    """Bits of the step tag."""
    return place << 11 | int(spec.Func.SUM) << 6 | opcode << 1 | down


def lowest(ports: set[int]) -> int:
    """The port that leads."""
    return min(ports)


class Bench:
    """A switch with a member behind each port but the last, which leads up to two others; the model beside it."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng, self.ports = dut, new_random("judge"), parameters()["Ports"]
        self.up = self.ports - 1
        self.below = set(range(self.up))
        self.members = self.up + 2
        self.next: dict[int, tuple[int, int]] = {}
        """Of runs whose blocks come by several ports: the next position, and the sequence."""
        self.seen: Counter[str] = Counter()

    async def entry(self) -> None:
        """Positions 0 on are behind the ports in their order; what is above comes last."""
        dut = self.dut
        for name in (
            "open_valid",
            "open_run",
            "fails",
            "over",
            "begin",
            "place",
            "action",
            "run",
            "down",
            "look",
            "look_q",
        ):
            getattr(dut, f"{name}_i").value = 0
        await start_clock_and_reset(dut)
        head = {"shares": self.up, "first_port": 0, "has_up": 1, "up": self.up, "count": self.up, "first": 0}
        dut.head_i.value = pack(HEAD, head | {"members": self.members, "ports": self.up})
        dut.ports_i.value = sum(
            pack(PORT, {"is_switch": 0, "count": 1, "first": p}) << width_of(PORT) * p for p in range(self.up)
        )
        dut.eager_limit_i.value = EAGER
        for run in range(ENTRIES * RUNS):
            dut.open_valid_i.value, dut.open_run_i.value = 1, run
            await FallingEdge(dut.clk_i)
        dut.open_valid_i.value = 0

    def heads(self, opcode: int, down: int, due: int) -> list[dict[str, Any]]:
        """What ports say: mostly of one call, with some that differ or are missing."""
        rng = self.rng
        call = {"sequence": rng.randrange(2), "signature": 5, "dtype": int(Datatype.INT32)}
        root = rng.randrange(self.members)
        bytes_ = rng.choice((0, 4, EAGER, EAGER + 4))
        spoils = rng.random() < 0.3
        looks = []
        for p in range(self.ports):
            look = random_record(rng, LOOK)
            look["there"], look["has_credit"] = int(rng.random() < 0.95), int(rng.random() < 0.95)
            above = p == self.up
            if opcode == ALLGATHER:
                place = p if not above else rng.choice((due, *range(self.up, self.members)))
            else:
                place = root if opcode == BCAST else 0
            head = look["head"]
            head |= call | {"asked": int(rng.random() < 0.1), "bytes": bytes_}
            head["tag"] = tag_of(place, opcode, int(above and opcode == ALLREDUCE))
            look["grant"] |= {"sequence": rng.randrange(3), "signature": 5}
            if spoils and rng.random() < 0.3:
                name = rng.choice(("sequence", "signature", "dtype", "tag", "bytes"))
                head[name] ^= 1 << (10 if name == "tag" else 0)
            if spoils and rng.random() < 0.1:
                look["grant"]["signature"] = 6
            if down and not above and opcode == ALLREDUCE and rng.random() < 0.5:
                look["there"] = 0
            looks.append(look)
        return looks

    def action(self, tag: int, lead: int) -> tuple[bool, set[int], set[int], bool]:
        """Whether it is a fold, from where and to where it goes (nowhere, if no tree carries it), whether down."""
        opcode, place, tag_down = tag >> 1 & 31, tag >> 11, tag & 1
        from_above = lead == self.up
        if tag_down != int(opcode == ALLREDUCE and from_above):
            return False, {lead}, set(), False
        if opcode == ALLREDUCE:
            if from_above:
                return False, {lead}, self.below, True
            return True, self.below, {self.up}, False
        if (place >= self.up) != from_above or (not from_above and place != lead):
            return False, {lead}, set(), False
        return False, {lead}, (self.below - {lead}) | (set() if from_above else {self.up}), False

    async def look(self) -> None:
        """One look at a run, from its beginning to the message."""
        dut, rng, seen = self.dut, self.rng, self.seen
        run, down = rng.randrange(3), rng.randrange(2)
        opcode = rng.choice((ALLREDUCE, ALLREDUCE, BCAST, ALLGATHER))
        due, of_call = self.next.get(run, (0, 0))
        looks = self.heads(ALLGATHER if due else opcode, down, due)
        word = sum(pack(LOOK, look) << width_of(LOOK) * p for p, look in enumerate(looks))
        dut.run_i.value, dut.down_i.value = run, down
        for _ in range(3):
            await FallingEdge(dut.clk_i)
        dut.look_i.value, dut.begin_i.value = word, 1
        await Timer(1, "ns")
        way = {self.up} if down else self.below
        there = {p for p in range(self.ports) if looks[p]["there"]}
        if due:
            there = {p for p in there if looks[p]["head"]["sequence"] == of_call}
        several = bool(there) and looks[lowest(there)]["head"]["tag"] >> 1 & 31 == ALLGATHER
        assert int(dut.way_ports_o.value) == sum(1 << p for p in way)
        assert int(dut.neighbours_o.value) == (1 << self.ports) - 1
        assert bool(int(dut.is_several_o.value)) == several
        assert bool(int(dut.nothing_o.value)) == (not there & way)
        await FallingEdge(dut.clk_i)
        dut.look_q_i.value, dut.look_i.value, dut.begin_i.value = word, rng.getrandbits(width_of(LOOK)), 0
        if several:
            lead, seen["several"] = min(due, self.up), seen["several"] + 1
            await FallingEdge(dut.clk_i)
            dut.place_i.value = 1
            await Timer(1, "ns")
            assert bool(int(dut.past_o.value)) == (due == self.members)
            assert not int(dut.skips_o.value)
            assert int(dut.place_port_o.value) == 1 << lead
            assert bool(int(dut.mine_o.value)) == (lead in there & way)
            await FallingEdge(dut.clk_i)
            dut.place_i.value = 0
            if lead not in there & way:
                seen["not mine"] += 1
                return
        elif there & way:
            lead = lowest(there & way)
        else:
            seen["nothing"] += 1
            return
        dut.action_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.action_i.value = 0
        for _ in range(2):
            await FallingEdge(dut.clk_i)
        await self.judged(looks, there, lead, several, due)

    async def judged(self, looks: list[Any], there: set[int], lead: int, several: bool, due: int) -> None:
        """What is said of the heads."""
        dut, seen, run = self.dut, self.seen, int(self.dut.run_i.value)
        first = looks[lead]["head"]
        fold, given, out, goes_down = self.action(first["tag"], lead)
        alike = ("signature", "dtype", "bytes", "tag")
        ready = {p for p in there if looks[p]["head"]["sequence"] == first["sequence"]}
        # Of the two datatypes of this test both are computed.
        known = not fold or not first["bytes"] or first["tag"] >> 6 & 31 == int(spec.Func.SUM)
        differs = not out or not known
        differs |= any(looks[p]["head"][name] != first[name] for p in given & ready for name in alike)
        differs |= any(
            look["grant"]["signature"] != first["signature"]
            for look in looks
            if look["has_grant"] and look["grant"]["sequence"] == first["sequence"]
        )
        assert unpack(WAITING, int(dut.lead_o.value)) == first
        assert bool(int(dut.differs_o.value)) == differs, (looks, lead)
        seen["differs"] += differs
        if differs:
            return
        missing = given - ready
        assert int(dut.missing_o.value) == sum(1 << p for p in missing)
        seen["missing"] += bool(missing)
        if missing:
            return
        short = first["bytes"] <= EAGER
        credit = {p for p in out if looks[p]["has_credit"]}
        placed = {p for p in given if not looks[p]["head"]["asked"]}
        immediate = short and credit == out and placed == given
        assert bool(int(dut.immediate_o.value)) == immediate
        for name, ports in (
            ("in", given),
            ("in_place", placed),
            ("out", out),
            ("out_eager", credit if short else set()),
        ):
            assert int(getattr(dut, f"{name}_o").value) == sum(1 << p for p in ports), name
        got = unpack(TRANSFER, int(dut.message_o.value))
        want = {name: first[name] for name in ("sequence", "signature", "dtype", "tag", "bytes")}
        want |= {"several": int(several), "goes_down": int(goes_down), "granted": 0, "gone": 0, "done": 0}
        want["func"] = int(spec.Func.SUM) if fold else 0
        for name, value in want.items():
            assert got[name] == value, name
        seen["fold" if fold else "pass"] += 1
        seen["immediate" if immediate else "asks"] += 1
        if several:
            following = due + 1 if due + 1 < self.members else 0
            assert got["next"] == following
            dut.over_i.value, dut.over_next_i.value, dut.over_sequence_i.value = 1, following, first["sequence"]
            await FallingEdge(dut.clk_i)
            dut.over_i.value = 0
            self.next[run] = (following, first["sequence"])
            seen["wraps"] += not following
        elif self.rng.random() < 0.02:
            dut.fails_i.value = 1
            await FallingEdge(dut.clk_i)
            dut.fails_i.value = 0
            self.next.pop(run, None)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_heads(dut: Any) -> None:
    bench = Bench(dut)
    await bench.entry()
    for _ in range(scaled(6000)):
        await bench.look()
    assert min(bench.seen.values()) > 5, bench.seen
    assert len(bench.seen) == 10, bench.seen


@pytest.mark.parametrize("ports", [4, full(8)])
def test_unisono_switch_judge(ports: int) -> None:
    simulate("unisono_switch_judge", __file__, {"Ports": ports})
