"""unisono_switch_slots: random contributions, copies, turns too early and too late, releases, openings; a model."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import parameters, scaled, simulate

FREE, TWICE, OUTSIDE = range(3)
TURNS = 1 << 16
LATENCY = 5


class Model:
    """What has come, by entry and turn; turns count without end."""

    def __init__(self, rng: Any, entries: int, slots: int, children: int) -> None:
        self.slots, self.children = slots, children
        self.shares = [rng.choice((1, 2, children, rng.randint(1, children))) for _ in range(entries)]
        self.oldest = [0] * entries
        self.given = [0] * entries
        """The turn that is given next."""
        self.came: list[dict[int, set[int]]] = [{} for _ in range(entries)]

    def answer(self, entry: int, turn: int, child: int) -> int:
        inside = self.oldest[entry] <= turn < self.oldest[entry] + self.slots
        if not inside or child >= self.shares[entry]:
            return OUTSIDE
        return TWICE if child in self.came[entry].get(turn, ()) else FREE

    def complete(self, entry: int, turn: int) -> bool:
        return len(self.came[entry].get(turn, ())) == self.shares[entry]

    def release(self, entry: int) -> None:
        self.came[entry].pop(self.oldest[entry])
        self.oldest[entry] += 1

    def open(self, entry: int, shares: int) -> None:
        self.oldest[entry] = self.given[entry] = 0
        self.came[entry] = {}
        self.shares[entry] = shares


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def against_a_model(dut: Any) -> None:
    given = parameters()
    entries, slots, children = given["Entries"], given["Slots"], given["Children"]
    rng, seen = new_random("slots"), Counter[str]()
    model = Model(rng, entries, slots, children)
    for name in ("open_valid", "come_valid", "give_ready", "release_valid"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    edge = RisingEdge(dut.clk_i)
    answers: deque[tuple[int, bool, bool] | None] = deque([None])
    offered: tuple[int, int] | None = None
    in_fold: list[tuple[int, int]] = []
    """Entry and cycle of release of each turn that is given; those of an entry end in their order."""
    completed: dict[tuple[int, int], int] = {}
    come: tuple[int, int, int, bool] | None = None
    opening: tuple[int, int] | None = None
    few = entries
    for cycle in range(scaled(60000)):
        await edge
        # What is answered now was asked in the cycle before.
        want = answers.popleft()
        assert int(dut.answer_valid_o.value) == (want is not None)
        if want is not None:
            got = (int(dut.answer_o.value), bool(int(dut.answer_last_o.value)))
            assert got == (want[0], want[2]), f"{got} instead of {want}"
            assert want[0] == OUTSIDE or int(dut.answer_first_o.value) == want[1]
        # Offers.
        if int(dut.give_valid_o.value):
            offer = (int(dut.give_entry_o.value), int(dut.give_slot_o.value))
            entry = offer[0]
            if offered is None:
                turn = model.given[entry]
                assert offer[1] == turn % slots, f"entry {entry}: slot {offer[1]} is given, not that of turn {turn}"
                assert model.complete(entry, turn), f"entry {entry}: turn {turn} is given, and not complete"
                model.given[entry] += 1
                waited = cycle - completed.pop((entry, turn))
                seen["at once"] += waited == LATENCY
                assert waited >= 2
            assert offered in (None, offer), "an offer changed"
            offered = offer
            if int(dut.give_ready_i.value):
                last = max((when for e, when in in_fold if e == entry), default=0)
                in_fold.append((entry, max(last, cycle + rng.choice((0, 1, 5, 40))) + 1))
                offered = None
                seen["given"] += 1
        else:
            assert offered is None, "an offer was taken back"
        # What the edge has taken.
        answer = None
        if come is not None and int(dut.come_ready_o.value):
            entry, turn, child, mark = come
            kind = model.answer(entry, turn, child)
            first = not model.came[entry].get(turn)
            if mark and kind == FREE:
                model.came[entry].setdefault(turn, set()).add(child)
                if model.complete(entry, turn):
                    completed[entry, turn] = cycle
            answer = (kind, first, mark and kind == FREE and model.complete(entry, turn))
            seen[("free", "twice", "outside")[kind]] += 1
            come = None
        answers.append(answer)
        if int(dut.release_valid_i.value):
            model.release(int(dut.release_entry_i.value))
            seen["released"] += 1
        if opening is not None and int(dut.open_ready_o.value):
            model.open(*opening)
            completed = {key: when for key, when in completed.items() if key[0] != opening[0]}
            opening = None
            seen["opened"] += 1
        # The next cycle.
        if rng.random() < 0.001:
            few = rng.choice((1, 2, entries))  # phases in which the contributions are of few entries
        if come is None and rng.random() < 0.9:
            entry = rng.randrange(few)
            turn = model.oldest[entry] + rng.choice((*range(slots), *range(slots), slots, slots + 1, -1, 2 * slots))
            missing = [c for c in range(model.shares[entry]) if model.answer(entry, turn, c) == FREE]
            child = rng.choice(missing) if missing and rng.random() < 0.8 else rng.randrange(children)
            come = (entry, max(turn, 0), child, rng.random() < 0.8)
        busy = {entry for entry, _ in in_fold} | ({offered[0]} if offered else set())
        if opening is None and rng.random() < 0.01:
            idle = [e for e in range(entries) if e not in busy and not any(key[0] == e for key in completed)]
            if idle:
                opening = (rng.choice(idle), rng.randint(1, children))
        if opening is not None and (opening[0] in busy or any(key[0] == opening[0] for key in completed)):
            opening = None
        dut.open_valid_i.value = int(opening is not None)
        dut.open_entry_i.value = opening[0] if opening else rng.randrange(entries)
        due = [item for item in in_fold if item[1] <= cycle]
        dut.release_valid_i.value = int(bool(due))
        dut.release_entry_i.value = due[0][0] if due else rng.randrange(entries)
        if due:
            in_fold.remove(due[0])
        dut.come_valid_i.value = int(come is not None)
        entry, turn, child, mark = come or (rng.randrange(entries), rng.getrandbits(16), 0, True)
        dut.come_entry_i.value, dut.come_turn_i.value = entry, turn % TURNS
        dut.come_child_i.value, dut.come_mark_i.value = child, int(mark)
        dut.come_shares_i.value = model.shares[entry]
        dut.give_ready_i.value = int(rng.random() < 0.7)
    dut._log.info("%s", dict(seen))
    assert min(seen["free"], seen["twice"], seen["outside"], seen["given"], seen["released"], seen["at once"]) > 100
    assert seen["opened"] > 20
    assert seen["given"] - seen["released"] <= entries * slots
    # What is complete has been given, but for the newest.
    assert all(cycle - when < 8 * entries for (e, t), when in completed.items() if t == model.given[e])


@pytest.mark.parametrize(("entries", "slots", "children"), [(64, 4, 32), (2, 2, 3), (8, 8, 28)])
def test_unisono_switch_slots(entries: int, slots: int, children: int) -> None:
    simulate("unisono_switch_slots", __file__, {"Entries": entries, "Slots": slots, "Children": children}, limit_s=300)
