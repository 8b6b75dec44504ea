"""unisono_replay_slots: programs that are kept, too long, failed, given out, forgotten, against a model."""

from collections import Counter
from dataclasses import dataclass

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

SLOTS, ENTRIES, MOVES, WORDS = 8, 16, 32, 64
FLAGS = ("settles", "hit", "keeps", "move", "move_end", "list", "fail", "step", "end", "clear", "load", "forget")
OTHERS = ("start_slot", "start_entry", "move_slot", "list_slot", "list_index", "fail_slot", "play_slot", "play_count",
          "clear_slot", "load_entry")  # fmt: skip


@dataclass
class Slot:
    """A call: what is done with its program."""

    does: str = ""  # play, keep
    entry: int = 0
    moves: int = 0
    words: int = 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_programs(dut):
    rng, seen = new_random("slots"), Counter()
    for name in (*FLAGS, *OTHERS):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        slots, known = [Slot() for _ in range(SLOTS)], set()
        ending = 0.0
        for cycle in range(scaled(24000, 8000)):
            if cycle % 400 == 0:
                ending = rng.choice((0.0, 0.03, 0.3))
            on = dict.fromkeys(FLAGS, 0)
            word = {name: rng.getrandbits(len(getattr(dut, f"{name}_i"))) for name in OTHERS}
            free = [at for at, slot in enumerate(slots) if not slot.does]
            used = {slot.entry for slot in slots if slot.does}
            kept = [at for at, slot in enumerate(slots) if slot.does == "keep"]
            played = [at for at, slot in enumerate(slots) if slot.does == "play"]
            if free and rng.random() < 0.1:
                on["settles"], word["start_slot"] = 1, rng.choice(free)
                whole = sorted(known - {slots[at].entry for at in kept})
                on["hit"] = int(bool(whole) and rng.random() < 0.5)
                if on["hit"]:
                    word["start_entry"] = rng.choice(whole)
                on["keeps"] = int(word["start_entry"] not in used)
            # Moves and lists of calls, whether they are kept or not.
            if rng.random() < 0.7:
                on["move"], word["move_slot"] = 1, rng.choice(kept or range(SLOTS))
                on["move_end"] = int(rng.random() < ending)
            if rng.random() < 0.3:
                on["list"], word["list_slot"] = 1, rng.choice(kept or range(SLOTS))
                word["list_index"] = slots[word["list_slot"]].words + (rng.random() < 0.005) * WORDS
            if kept and rng.random() < 0.004:
                on["fail"], word["fail_slot"] = 1, rng.choice(kept)
            if played and rng.random() < 0.2:
                on["step"], word["play_slot"], on["end"] = 1, rng.choice(played), int(rng.random() < 0.3)
            if rng.random() < 0.005:
                on["clear"] = 1
            loads = rng.randrange(ENTRIES)
            if rng.random() < 0.01 and not any(slots[at].entry == loads for at in played):
                on["load"], word["load_entry"] = int(not on["settles"] or word["start_entry"] != loads), loads
            on["forget"] = int(rng.random() < 0.001)
            for name, value in (on | word).items():
                getattr(dut, f"{name}_i").value = value
            await FallingEdge(dut.clk_i)
            for at, slot in enumerate(slots):
                assert int(dut.playing_o.value) >> at & 1 == (slot.does == "play")
                assert int(dut.recording_o.value) >> at & 1 == (slot.does == "keep")
                if slot.does:
                    assert int(dut.entries_o.value) >> 4 * at & 15 == slot.entry
                    assert int(dut.counts_o.value) >> 13 * at & 0x1FFF == slot.moves
                if slot.does == "keep":
                    assert int(dut.lists_o.value) >> 7 * at & 127 == slot.words
            assert {entry for entry in range(ENTRIES) if int(dut.known_o.value) >> entry & 1} == known
            mover, lister = slots[word["move_slot"]], slots[word["list_slot"]]
            keeps = on["move"] and mover.does == "keep"
            assert bool(int(dut.keeps_move_o.value)) == (keeps and not on["move_end"] and mover.moves < MOVES)
            assert bool(int(dut.keeps_length_o.value)) == (keeps and bool(on["move_end"]))
            words = on["list"] and lister.does == "keep"
            assert bool(int(dut.keeps_list_o.value)) == bool(words and word["list_index"] < WORDS)
            await RisingEdge(dut.clk_i)
            # Later ones win: what ends a program goes before what goes on with it.
            ended = set()
            if keeps and on["move_end"]:
                known.add(mover.entry)
                ended.add(word["move_slot"])
                seen["whole"] += 1
            elif keeps and mover.moves >= MOVES:
                ended.add(word["move_slot"])
                seen["too long"] += 1
            elif keeps:
                mover.moves += 1
            if words and word["list_index"] < WORDS:
                lister.words = word["list_index"] + 1
            elif words:
                ended.add(word["list_slot"])
                seen["too many words"] += 1
            if on["fail"]:
                ended.add(word["fail_slot"])
                seen["failed"] += 1
            for at in ended:
                slots[at].does = slots[at].does if slots[at].does == "play" else ""
            if on["clear"]:
                slots[word["clear_slot"]].does = ""
            if on["settles"]:
                does = "play" if on["hit"] else "keep" if on["keeps"] else ""
                slots[word["start_slot"]] = Slot(does, word["start_entry"])
                seen[does] += 1
                if does == "keep":
                    known.discard(word["start_entry"])
            if on["load"]:
                known.discard(word["load_entry"])
                for slot in slots:
                    if slot.does == "keep" and slot.entry == word["load_entry"]:
                        slot.does = ""
                        seen["loaded over"] += 1
            if on["step"]:
                slots[word["play_slot"]].moves = word["play_count"]
                if on["end"]:
                    slots[word["play_slot"]].does = ""
                    seen["given out"] += 1
            if on["forget"]:
                known.clear()
                for slot in slots:
                    slot.does = "" if slot.does == "keep" else slot.does
        for name in FLAGS:
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("whole", "too long", "too many words", "failed", "play", "keep", "loaded over", "given out"):
        assert seen[what] > 10, what


def test_unisono_replay_slots():
    simulate("unisono_replay_slots", __file__)
