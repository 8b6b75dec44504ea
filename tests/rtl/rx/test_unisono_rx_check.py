"""unisono_rx_check: sound headers and headers with a flaw, one per cycle, against the rules in their order."""

from collections import Counter, deque
from dataclasses import replace

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from headers import random_header, reseal, sealed
from records import pack
from rx_model import FAULT, Arrival, judge, random_table

HEADER = [("is_short", 1), ("broken", 1), ("payload", 1), ("session", 16), ("bytes", 16), ("header", 512)]
LATENCY = 3


def random_arrival(rng, table):
    """A packet, most often sound but for one thing."""
    row = rng.choice(table)
    sources = [rank for rank in range(row.size) if row.sessions[rank] is not None]
    source = rng.choice(sources)
    free = sorted(set(range(row.size)) - set(sources))
    length = rng.choice((0, rng.randint(1, 300), row.segment_bytes, row.segment_bytes + 1, 8193))
    fixed = {"communicator": row.number, "epoch": row.epoch, "source": source, "destination": row.rank}
    flaw = rng.choice(("none", "none", "bit", "field", "length", "session", "error", "short", "extent", "nobody"))
    session = row.sessions[source] | rng.getrandbits(1) << 15
    if flaw == "nobody" and free:
        fixed["source"] = rng.choice(free)
    if flaw == "field":
        name = rng.choice(("communicator", "epoch", "source", "destination"))
        fixed[name] ^= 1 << rng.randrange(16 if name == "epoch" else 32)
    header = random_header(rng, length, **fixed)
    if flaw == "extent":
        header = replace(
            header, offset=rng.choice((0, 1, (1 << 48) - 20, header.offset)), message_bytes=rng.getrandbits(14)
        )
    raw = sealed(header)
    if flaw == "bit":
        bit = rng.randrange(rng.choice((48, 512)))
        raw = (int.from_bytes(raw, "little") ^ 1 << bit).to_bytes(64, "little")
        raw = reseal(raw) if rng.random() < 0.5 else raw
    if flaw == "session":
        session ^= 1 << rng.randrange(15)
    if flaw == "length":
        length ^= 1 << rng.randrange(12)
    data = raw[:63] if flaw == "short" else raw + bytes(length)
    return raw, Arrival(session, data, error=flaw == "error")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_headers(dut):
    rng, seen = new_random("check"), Counter()
    table = random_table(rng)
    for name in ("valid", "header", "found", "found_communicator", "entry", "peer"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    expected: deque[tuple[int, int, int, bytes]] = deque()  # cycle, fault, communicator
    asked, next_asked, found, rank = None, None, None, 0
    came = deque([0] * LATENCY, LATENCY)  # sessions, by cycle
    for cycle in range(scaled(16000, 8000)):
        # Who it is two cycles after the request; what is known of it one cycle later; noise otherwise.
        entry, peer = rng.getrandbits(148), rng.getrandbits(17)
        if found is not None:
            entry = table[found].entry(rng)
            session = table[found].sessions[rank] if rank < table[found].size else None
            # Where nobody is stands the session that came, so that it alone does not tell.
            peer = came[-LATENCY] if session is None else 1 << 16 | session | rng.getrandbits(1) << 15
        dut.entry_i.value, dut.peer_i.value = entry, peer
        found = asked if asked is not None and asked >= 0 else None
        if asked is None:
            dut.found_i.value, dut.found_communicator_i.value = rng.getrandbits(1), rng.getrandbits(4)
        else:
            dut.found_i.value = asked >= 0
            dut.found_communicator_i.value = rng.getrandbits(4) if asked < 0 else asked
        valid = rng.random() < 0.8
        raw, arrival = random_arrival(rng, table)
        values = {
            "is_short": len(arrival.data) < 64,
            "broken": arrival.error,
            "payload": len(arrival.data) > 64,
            "session": arrival.session,
            "bytes": len(arrival.data) - 64 & 0xFFFF,
            "header": int.from_bytes(raw, "little"),
        }
        dut.valid_i.value, dut.header_i.value = valid, pack(HEADER, values)
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.find_valid_o.value)) == valid
        number, epoch = int(dut.find_number_o.value), int(dut.find_epoch_o.value)
        rank = int(dut.peer_rank_o.value)
        if found is not None:
            assert int(dut.entry_communicator_o.value) == int(dut.peer_communicator_o.value) == found
        due = bool(expected) and expected[0][0] == cycle
        assert bool(int(dut.verdict_valid_o.value)) == due
        if due:
            _, fault, communicator, data = expected.popleft()
            said = int(dut.verdict_o.value)
            assert said >> 4 == fault, data.hex()
            assert fault or said & 15 == communicator
            seen[fault] += 1
        await RisingEdge(dut.clk_i)
        rows = [index for index, row in enumerate(table) if (row.number, row.epoch) == (number, epoch)]
        asked, next_asked = next_asked, (rows[0] if rows else -1) if valid else None
        came.append(arrival.session)
        if valid:
            fault, communicator, _ = judge(table, arrival)
            expected.append((cycle + LATENCY, fault, communicator, arrival.data[:64]))
    for fault, number in FAULT.items():
        assert seen[number] > 5, fault


def test_unisono_rx_check():
    simulate("unisono_rx_check", __file__)
