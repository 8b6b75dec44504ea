"""unisono_remote_operations: random operations, answers that are right or wrong in one respect, and landings."""

import importlib.util
import sys
from collections import Counter, deque
from pathlib import Path

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import simulate

# The generated specification, without the package around it, which needs its compiled part.
found = importlib.util.spec_from_file_location(
    "unisono_spec", Path(__file__).resolve().parents[3] / "python" / "unisono" / "_spec.py"
)
S = importlib.util.module_from_spec(found)
sys.modules["unisono_spec"] = S
found.loader.exec_module(S)

CALLS, CYCLES, LANDING = 8, 30000, 0xFF00
COMMUNICATOR = [3, 3, 5, 5, 0, 15, 7, 7]  # of each slot
PUT_DONE, GET_FAILED, GET = (
    int(kind) for kind in (S.ControlKind.PUT_DONE, S.ControlKind.GET_FAILED, S.ControlKind.GET)
)
INTERNAL, CORRUPT = int(S.ErrorCode.INTERNAL), int(S.ErrorCode.CORRUPT_MESSAGE)


class Slot:
    """What is known of a slot's operation."""

    def __init__(self):
        self.pending = self.get = self.asks = False
        self.entry = self.peer = self.dtype = self.offset = self.bytes = self.address = 0
        self.generation = 1  # the first; memory starts with 0 as that of the last


def heard(source, communicator, tag, sequence=0, token_slot=0, generation=0, offset=0):
    """A control message behind Rx."""
    header = tag << 224 | sequence << 192 | token_slot << 368 | generation << 432 | offset << 384
    return header << 10 | communicator << 6 | source


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agrees_with_a_model(dut):
    rng = new_random("remote operations")
    for name in ("clear_valid", "begin_valid", "heard_valid", "landed_valid", "request_ready", "complete_ready"):
        getattr(dut, f"{name}_i").value = 0
    for slot in range(CALLS):
        dut.contexts_i[slot].value = COMMUNICATOR[slot]
    await start_clock_and_reset(dut)
    slots = [Slot() for _ in range(CALLS)]
    completes, seen = deque(), Counter()
    last_asked, last_answer, expected, event = (0, 0), False, None, None
    for _ in range(CYCLES):
        clear = rng.randrange(CALLS) if rng.random() < 0.02 else None
        programs = rng.getrandbits(2 * CALLS)
        dut.generations_i.value = programs
        dut.clear_valid_i.value, dut.clear_slot_i.value = clear is not None, clear or 0
        # What begins was asked about in the cycle before, and was free then.
        begin, (slot, asked_entry), free = None, last_asked, last_answer
        if rng.random() < 0.5 and free and not slots[slot].pending and slot != clear:
            begin = Slot()
            begin.get, begin.entry, begin.peer = rng.random() < 0.5, asked_entry, rng.randrange(64)
            begin.dtype, begin.offset = rng.randrange(1, 25), rng.getrandbits(48)
            begin.bytes, begin.address = rng.getrandbits(48), rng.getrandbits(64)
            fields = ((slot, 3), (begin.entry, 5), (begin.peer, 6), (begin.get, 1), (begin.dtype, 6))
            word = 0
            for value, width in (*fields, (begin.offset, 48), (begin.bytes, 48), (begin.address, 64)):
                word = word << width | value
            dut.begin_i.value = word
        dut.begin_valid_i.value = begin is not None

        # An answer to some operation, of which one thing may be wrong.
        about = rng.randrange(CALLS)
        one = slots[about]
        wrong = rng.choice(("", "", "", "kind", "generation", "source", "communicator", "slot", "pad"))
        kind = one.get != (wrong == "kind")
        generation = (one.generation + (wrong == "generation") * rng.randrange(1, 1 << 16)) & 0xFFFF
        named = (about + (wrong == "slot") * rng.randrange(1, CALLS)) % CALLS
        code = rng.choice((0, 0, 6, rng.randrange(1, 24), rng.getrandbits(16)))
        message = heard(
            one.peer ^ (wrong == "source"),
            COMMUNICATOR[about] ^ (wrong == "communicator"),
            (GET_FAILED if kind else PUT_DONE) if rng.random() < 0.95 else GET,
            sequence=0 if kind else named << 16 | generation | (wrong == "pad") << 19,
            token_slot=LANDING | named if kind else 0,
            generation=generation if kind else code,
            offset=code if kind else 0,
        )
        tag = message >> 10 >> 224 & 0xFFFFFFFF
        speaks, lands, lands_bad = rng.random() < 0.5, rng.random() < 0.15, rng.random() < 0.2
        landed = rng.randrange(CALLS)
        dut.heard_valid_i.value, dut.heard_i.value = speaks, message
        dut.landed_valid_i.value, dut.landed_slot_i.value, dut.landed_error_i.value = lands, landed, lands_bad
        asked, looked, entry = rng.randrange(CALLS), rng.randrange(CALLS), rng.randrange(32)
        dut.ask_id_i.value, dut.landing_slot_i.value = asked << 5 | entry, looked
        takes, goes = rng.random() < 0.5, rng.random() < 0.7
        dut.request_ready_i.value, dut.complete_ready_i.value = takes, goes
        await ReadOnly()

        # The answer to the question of the cycle before, as things were then.
        if expected is not None:
            assert (int(dut.busy_o.value), int(dut.generation_o.value)) == expected
        expected = slots[asked].pending and slots[asked].entry != entry, slots[asked].generation
        last_asked, last_answer = (asked, entry), not slots[asked].pending
        assert int(dut.heard_ready_o.value) == (not lands)
        landing, there = int(dut.landing_o.value), slots[looked]
        assert landing >> 138 == (there.pending and there.get)
        if there.pending and there.get:
            known = (COMMUNICATOR[looked] << 6 | there.peer) << 16 | there.generation
            assert landing & (1 << 138) - 1 == (known << 48 | there.bytes) << 64 | there.address
        asking = [s for s in range(CALLS) if slots[s].asks and slots[s].pending]
        assert int(dut.request_valid_o.value) == bool(asking)
        if asking:
            first = slots[asking[0]]
            assert int(dut.request_slot_o.value) == LANDING | asking[0]
            for name in ("peer", "dtype", "offset", "bytes", "generation"):
                assert int(getattr(dut, f"request_{name}_o").value) == getattr(first, name), name
            assert int(dut.request_communicator_o.value) == COMMUNICATOR[asking[0]]

        # What was said, or has landed, in the cycle before: whether it ends something now, and how.
        ends, bad, error = None, False, 0
        if event is not None:
            subject, get, match, bad, error = event
            there = slots[subject]
            if there.pending and there.get == get and match in (None, (there.generation, there.peer, subject)):
                ends = subject
        if ends == clear:
            ends = None
        event = None
        if lands:
            event = landed, True, None, lands_bad, INTERNAL
        elif speaks and tag != GET and (kind or wrong != "pad"):
            # A communicator that is not the slot's is one of no slot.
            origin = named if COMMUNICATOR[named] == message >> 6 & 15 else None
            event = (
                named,
                kind,
                (generation, message & 63, origin),
                kind or code != 0,
                (code if 0 < code <= INTERNAL else CORRUPT),
            )
        assert int(dut.fail_valid_o.value) == (ends is not None and bad)
        if ends is not None and bad:
            assert (int(dut.fail_slot_o.value), int(dut.fail_code_o.value)) == (ends, error)
            seen["fails"] += 1
        if int(dut.complete_valid_o.value) and goes:
            got = int(dut.complete_id_o.value), int(dut.complete_generation_o.value)
            assert got == completes.popleft()
            seen["completes"] += 1
        await RisingEdge(dut.clk_i)
        seen[f"wrong {wrong}"] += speaks
        if asking and takes:
            slots[asking[0]].asks = False
            seen["asks"] += 1
        if ends is not None and not bad:
            completes.append((ends << 5 | slots[ends].entry, programs >> 2 * ends & 3))
        for over in {ends, clear} - {None}:
            slots[over].generation = slots[over].generation + slots[over].pending & 0xFFFF
            slots[over].pending = slots[over].asks = False
        if begin is not None:
            begin.pending, begin.asks, begin.generation = True, begin.get, slots[slot].generation
            slots[slot] = begin
    assert min(seen["completes"], seen["fails"], seen["asks"]) > 300, seen
    assert len(completes) <= 2 * CALLS


def test_unisono_remote_operations():
    simulate("unisono_remote_operations", __file__)
