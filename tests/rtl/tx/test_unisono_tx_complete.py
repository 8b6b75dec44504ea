"""unisono_tx_complete: headers of several sessions, one per cycle, sessions that are opened, credits that come late."""

from collections import Counter, defaultdict, deque

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate
from headers import MAGIC, VERSION, crc32c
from records import noisy_header, pack

TRANSMIT = [("header", 512), ("communicator", 4), ("peer", 6), ("session", 16), ("control", 1)]
LATE = [("checksum", 32), ("session_sequence", 32), ("credits", 16)]
OWED_LATENCY = 3


def clean(raw):
    """A header as it leaves, but for what comes last."""
    for begin, width, value in ((0, 16, MAGIC), (16, 4, VERSION), (36, 1, 0), (38, 10, 0), (48, 16, 0), (288, 32, 0)):
        raw = raw & ~((1 << width) - 1 << begin) | value << begin
    return raw & (1 << 480) - 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_commands(dut):
    rng, seen = new_random("complete"), Counter()
    sources, sessions = parameters()["Sources"], parameters()["Sessions"]
    for name in ("chosen", "choice", "command", "take", "owed_take_ready", "owed", "session_open_valid"):
        getattr(dut, f"{name}_i").value = 0
    dut.session_open_session_i.value = 0
    await start_clock_and_reset(dut)
    sequences = defaultdict(int)
    bodies, lates = deque(), deque()
    opening = None
    offer, ready = None, False
    for cycle in range(scaled(16000, 5000)):
        if offer is None and rng.random() < 0.8:
            choice = rng.randrange(sources + 1)
            header = noisy_header(rng, segment_bytes=rng.randint(0, 8192), trailer=False)
            offer = (
                choice,
                {
                    "header": int.from_bytes(header.encode(), "little"),
                    "communicator": rng.getrandbits(4),
                    "peer": rng.getrandbits(6),
                    "session": rng.choice((0, 1, sessions - 1, rng.randrange(sessions))),
                    "control": choice == sources,
                },
            )
        if opening is None and rng.random() < 0.05:
            opening = rng.choice((0, 1, sessions - 1, rng.randrange(sessions)))
        choice, values = offer or (rng.randrange(sources + 1), {name: rng.getrandbits(bits) for name, bits in TRANSMIT})
        dut.chosen_i.value, dut.choice_i.value = offer is not None, choice
        dut.command_i.value = pack(TRANSMIT, values)
        dut.session_open_valid_i.value = opening is not None
        dut.session_open_session_i.value = rng.getrandbits(10) if opening is None else opening
        dut.owed_take_ready_i.value = rng.random() < 0.8
        owed = rng.getrandbits(16)
        dut.owed_i.value = owed
        dut.take_i.value = 0
        # The command is taken where it may be: what chooses it sees that in the same cycle.
        await FallingEdge(dut.clk_i)
        may = bool(int(dut.may_take_o.value))
        asks = bool(int(dut.owed_take_valid_o.value))
        assert not (may and opening is not None)
        assert cycle < 3 * sessions or may == (opening is None and bool(int(dut.owed_take_ready_i.value)))
        ready = ready or may  # all sequences are 0, some time after the reset
        assert asks == (offer is not None and opening is None and ready) or not ready
        if asks:
            assert int(dut.owed_take_communicator_o.value) == values["communicator"]
            assert int(dut.owed_take_peer_o.value) == values["peer"]
        take = may and offer is not None
        dut.take_i.value = take
        opened = bool(int(dut.session_open_ready_o.value))
        body_due = bool(bodies) and bodies[0][0] == cycle
        assert bool(int(dut.body_valid_o.value)) == body_due
        if body_due:
            _, source, session, body = bodies.popleft()
            assert int(dut.body_source_o.value) == source
            assert bool(int(dut.body_control_o.value)) == (source == sources)
            assert int(dut.body_session_o.value) == session
            assert int(dut.body_o.value) == body
        late_due = bool(lates) and lates[0][0] == cycle
        assert bool(int(dut.late_valid_o.value)) == late_due
        if late_due:
            _, source, body, sequence = lates.popleft()
            whole = (body | owed << 48 | sequence << 288).to_bytes(64, "little")[:60]
            late = {"checksum": crc32c(whole), "session_sequence": sequence, "credits": owed}
            assert int(dut.late_o.value) == pack(LATE, late)
            assert bool(int(dut.late_control_o.value)) == (source == sources)
            seen["control" if source == sources else "data"] += 1
            seen["later"] += sequence > 1
        await RisingEdge(dut.clk_i)
        if take:
            channel = values["session"], choice == sources
            body = clean(values["header"])
            bodies.append((cycle + 1, choice, values["session"], body))
            lates.append((cycle + OWED_LATENCY, choice, body, sequences[channel]))
            sequences[channel] += 1
            offer = None
        if opened:
            sequences[opening, False] = sequences[opening, True] = 0
            opening = None
            seen["opened"] += 1
    for what in ("control", "data", "later", "opened"):
        assert seen[what] > 50, what


def test_unisono_tx_complete():
    simulate("unisono_tx_complete", __file__, {"Sources": 2, "Sessions": 1024})
