"""unisono_send_turns: sends of few pairs come, are announced and cleared, against a list for each pair."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

CALLS = 8


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_sends(dut):
    rng, seen = new_random("send turns"), Counter()
    names = ("add_valid", "add_id", "add_communicator", "add_peer", "announced_valid", "announced_slot", "clear")
    for name in (*names, "slot", "kick_ready"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    entry_bits = len(dut.add_id_i) - 3
    queues: dict[tuple[int, int], list[int]] = {}  # slots by pair, in the order in which they came
    entries: dict[int, int] = {}
    kicks: dict[int, int] = {}  # that are due, and since when
    for cycle in range(scaled(20000, 6000)):
        waiting = {slot for queue in queues.values() for slot in queue[1:]}
        present = {slot for queue in queues.values() for slot in queue}
        free = [slot for slot in range(CALLS) if slot not in present and slot not in kicks]
        adds, announces, clears = rng.random() < 0.2 and free, rng.random() < 0.15 and queues, rng.random() < 0.02
        pair = rng.choice((3, 4)), rng.choice((0, 0, 17))
        slot = rng.choice(free) if adds else 0
        entry = rng.randrange(1 << entry_bits)
        dut.add_valid_i.value, dut.add_id_i.value = bool(adds), slot << entry_bits | entry
        dut.add_communicator_i.value, dut.add_peer_i.value = pair
        announced = rng.choice(list(queues.values()))[0] if announces else None
        dut.announced_valid_i.value, dut.announced_slot_i.value = announced is not None, announced or 0
        cleared = rng.choice(sorted(present)) if clears and present else None
        dut.clear_i.value = 0 if cleared is None else 1 << cleared
        asked, ready = rng.randrange(CALLS), rng.random() < 0.4
        dut.slot_i.value, dut.kick_ready_i.value = asked, ready
        await FallingEdge(dut.clk_i)
        assert int(dut.held_o.value) == (asked in waiting), f"cycle {cycle}"
        seen["held"] += asked in waiting
        if int(dut.kick_valid_o.value):
            kicked = int(dut.kick_id_o.value)
            kicked, at = kicked >> entry_bits, kicked & (1 << entry_bits) - 1
            assert at == entries[kicked], f"cycle {cycle}"
            assert kicks[kicked] <= cycle, f"cycle {cycle}: too early"
            if ready:
                del kicks[kicked]
                seen["kicks"] += 1
        else:
            assert all(since > cycle for since in kicks.values()), f"cycle {cycle}: {kicks}"
        # What goes lets the next one of its pair begin.
        for gone in {announced, cleared} - {None}:
            for queue in queues.values():
                if gone in queue:
                    queue.remove(gone)
        if cleared is not None:
            kicks.pop(cleared, None)
        for slot_ in {queue[0] for queue in queues.values() if queue} & waiting:
            kicks[slot_] = cycle + 2
            seen["turns"] += 1
        queues = {key: queue for key, queue in queues.items() if queue}
        if adds:
            queues.setdefault(pair, []).append(slot)
            entries[slot] = entry
        await RisingEdge(dut.clk_i)
    assert min(seen[what] for what in ("held", "kicks", "turns")) > 50, seen


def test_unisono_send_turns():
    simulate("unisono_send_turns", __file__)
