"""unisono_core_completion: jobs of both lanes, moves without a job and gets, against a model of each cycle."""

from collections import Counter, deque

import cocotb
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import pack

SLOTS, ENTRY, GENERATION = 8, 5, 2
FLAGS = ("last", "wakes", "error", "serves", "releases")


def end_fields(dut):
    """The fields of job_end_t; what remains of it is the bytes and the buffer."""
    rest = len(dut.end_i) - (3 + ENTRY + GENERATION + len(FLAGS) + 10)
    return [
        *(("slot", 3), ("entry", ENTRY), ("generation", GENERATION), ("last", 1), ("wakes", 1), ("made", rest)),
        *(("error", 1), ("serves", 1), ("releases", 1), ("buffer", 10)),
    ]


def move_of(dut):
    assert len(dut.late_i) == 3 + ENTRY + GENERATION
    return [("slot", 3), ("entry", ENTRY), ("generation", GENERATION)]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_ends(dut):
    rng, seen = new_random("completion"), Counter()
    ports = ("begins", "begins_slot", "end_valid", "end", "send_end_valid", "send_end", "late_valid", "late")
    for name in (*ports, "remote_valid", "remote", "wake_ready", "slot"):
        getattr(dut, f"{name}_i").value = 0
    fields, names = end_fields(dut), move_of(dut)

    def some_move(slot=None):
        slot = rng.randrange(SLOTS) if slot is None else slot
        return {"slot": slot, "entry": rng.getrandbits(ENTRY), "generation": rng.getrandbits(GENERATION)}

    await start_clock_and_reset(dut)
    for _ in range(2):
        jobs, made_of, sent_of = Counter(), deque(), deque()  # under way of each slot, and by lane
        waking, late = deque(), deque()  # (cycle from which it shows, what)
        send_end = remote = None
        waits, hurry = Waits(seen), 0.5
        for cycle in range(scaled(16000, 5000)):
            if cycle % 60 == 0:
                hurry, lag = rng.choice((0.1, 0.5, 1.0)), rng.choice((0.0, 0.5, 0.9))
            # A slot has at most 60 jobs under way, and a queue has room.
            slot = rng.randrange(SLOTS)
            begins = jobs[slot] < 60 and rng.random() < hurry
            lane = rng.random() < 0.4
            flags = {flag: rng.random() < 0.4 for flag in FLAGS}
            noise = {"made": rng.getrandbits(dict(fields)["made"]), "buffer": rng.getrandbits(10)}
            end_valid = bool(made_of) and len(waking) < 60 and rng.random() < hurry
            end = some_move(made_of[0] if made_of else None) | flags | noise
            if send_end is None and rng.random() < hurry:
                serves = rng.random() < 0.3
                if serves or sent_of:
                    send_end = some_move(None if serves else sent_of.popleft()) | noise
                    send_end |= {flag: rng.random() < 0.5 for flag in FLAGS} | {"serves": serves}
            if remote is None and rng.random() < 0.3:
                remote = some_move()
            late_valid = len(late) < 40 and rng.random() < 0.3 * hurry
            late_move = some_move()
            wake_ready, asked = rng.random() >= lag, rng.randrange(SLOTS)
            dut.begins_i.value, dut.begins_slot_i.value = begins, slot
            dut.end_valid_i.value, dut.end_i.value = end_valid, pack(fields, end)
            dut.send_end_valid_i.value = send_end is not None
            dut.send_end_i.value = pack(fields, send_end or some_move() | flags | noise)
            dut.late_valid_i.value, dut.late_i.value = late_valid, pack(names, late_move)
            dut.remote_valid_i.value, dut.remote_i.value = remote is not None, pack(names, remote or some_move())
            dut.wake_ready_i.value, dut.slot_i.value = wake_ready, asked
            await FallingEdge(dut.clk_i)
            # What goes first.
            ends = end_valid and end["last"]
            sends = send_end is not None and send_end["last"] and not ends
            assert bool(int(dut.send_end_ready_o.value)) == (not ends)
            late_shown = bool(late) and late[0][0] <= cycle
            remote_ready = not end_valid and not sends and not late_shown
            assert bool(int(dut.remote_ready_o.value)) == remote_ready
            expected = None
            if ends:
                expected, what = end, "end"
            elif sends:
                expected, what = send_end, "sent"
            elif late_shown:
                expected, what = late[0][1], "late"
            elif remote is not None and remote_ready:
                expected, what = remote, "remote"
            assert bool(int(dut.complete_valid_o.value)) == (expected is not None)
            if expected is not None:
                told = {name: expected[name] for name, _ in names}
                assert int(dut.complete_o.value) == pack(names, told)
                seen[what] += 1
            seen["late behind"] += late_shown and (ends or sends)
            seen["remote behind"] += remote is not None and not remote_ready
            assert bool(int(dut.idle_o.value)) == (jobs[asked] == 0 and not any(w["slot"] == asked for w in waking))
            seen["idle"] += int(dut.idle_o.value)
            wake = bool(int(dut.wake_valid_o.value))
            word = int(dut.wake_id_o.value) if wake else None
            woken = waits.taken("wake", wake, wake_ready, word)
            if wake:
                assert word == waking[0]["slot"] << ENTRY | waking[0]["entry"]
            await RisingEdge(dut.clk_i)
            if begins:
                jobs[slot] += 1
                (sent_of if lane else made_of).append(slot)
            if woken:
                waking.popleft()
            if end_valid:
                made_of.popleft()
                jobs[end["slot"]] -= 1
                if end["wakes"]:
                    waking.append(end)
            if send_end is not None and not ends:
                if not send_end["serves"]:
                    jobs[send_end["slot"]] -= 1
                seen["served"] += send_end["serves"]
                send_end = None
            if late_shown and not ends and not sends:
                late.popleft()
            if late_valid:
                late.append((cycle + 1, late_move))
            if remote is not None and remote_ready:
                remote = None
        for name in ("begins", "end_valid", "send_end_valid", "late_valid", "remote_valid"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("end", "sent", "late", "remote", "late behind", "remote behind", "idle", "wake waits", "served"):
        assert seen[what] > 50, what


def test_unisono_core_completion():
    simulate("unisono_core_completion", __file__)
