"""unisono_memory_write_items: the items of each command and packet, also of those that do not fit one another."""

from collections import Counter, deque

import cocotb
import pytest
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


def items_of(address, length, given, width, most):
    """What is to be made of a command of `length` bytes at an address and a packet of `given` bytes."""
    written, offset = min(length, given), address % width
    common = {"offset": offset}
    if written == 0:
        # The first word counts for nothing: the command has no beat.
        return [common | {"empty": True, "first": True, "close": True, "end": True, "kept": 0}]
    made = []
    words = -(-written // width)
    for beat in range(-(-(offset + written) // width)):
        kept = (1 << min(width, written - beat * width)) - 1 if beat < words else 0
        index = address // width + beat
        last = (beat + 1) * width >= offset + written
        close = last or index % most == most - 1
        made.append(common | {"empty": False, "first": beat == 0, "close": close, "end": last, "kept": kept})
        made[-1] |= {"index": index}
    return made


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_packets(dut):
    rng, seen = new_random("items"), Counter()
    values = parameters()
    width, most = values["DataBytes"], values["BurstBeats"]
    full_word = (1 << width) - 1
    for name in ("cmd_valid", "cmd_address", "cmd_bytes", "cmd_user", "in_valid", "in_keep", "in_last", "space"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        commands, packet, expected, waits = deque(), deque(), deque(), Waits(seen)
        offered, lengths = None, deque()
        for cycle in range(scaled(20000, 6000)):
            if cycle % 100 == 0:
                often, pace, asks = rng.choice((0.3, 1.0)), rng.choice((0.2, 0.9, 1.0)), rng.choice((0.3, 1.0))
            if offered is None and rng.random() < asks:
                length = rng.choice((0, 1, rng.randint(1, 3 * width), rng.randint(1, 2 * most * width)))
                offered = rng.randrange(0, 1 << 16), length, rng.getrandbits(len(dut.cmd_user_i))
            if not packet and len(lengths) < 8:
                # Most packets are as long as their commands, which may come later.
                given = None
                if commands and rng.random() < 0.8:
                    given = commands[0][1]
                elif commands:
                    given = rng.choice(
                        (0, 1, commands[0][1] + 1, max(0, commands[0][1] - 1), rng.randint(0, 3 * width))
                    )
                if given is not None:
                    address, length, user = commands.popleft()
                    made = items_of(address, length, given, width, most)
                    for one in made:
                        one |= {"user": user, "mismatch": given != length}
                    expected.extend(made)
                    seen["fits" if given == length else "short" if given < length else "long"] += 1
                    for word in range(max(1, -(-given // width))):
                        packet.append(((1 << min(width, given - word * width)) - 1, (word + 1) * width >= given))
            space = rng.random() < pace
            valid = bool(packet) and ("in" in waits or rng.random() < often)
            dut.cmd_valid_i.value = offered is not None
            if offered is not None:
                dut.cmd_address_i.value, dut.cmd_bytes_i.value, dut.cmd_user_i.value = offered
            dut.in_valid_i.value, dut.space_i.value = valid, space
            if valid:
                dut.in_keep_i.value, dut.in_last_i.value = packet[0]
            else:
                dut.in_keep_i.value, dut.in_last_i.value = full_word, 0
            await FallingEdge(dut.clk_i)
            ready = bool(int(dut.in_ready_o.value))
            if int(dut.item_o.value):
                assert space
                one = expected.popleft()
                for name in ("empty", "first", "close", "offset", "kept"):
                    if name != "kept" or not one["empty"]:
                        assert int(getattr(dut, f"{name}_o").value) == one[name], name
                if one["close"]:
                    assert bool(int(dut.end_o.value)) == one["end"]
                    if one["end"]:
                        assert bool(int(dut.mismatch_o.value)) == one["mismatch"]
                        assert int(dut.user_o.value) == one["user"]
                    if not one["empty"]:
                        assert int(dut.block_o.value) == one["index"] // most
                        assert int(dut.start_o.value) + int(dut.length_o.value) == one["index"] % most
                        seen["bursts"] += 1
                    else:
                        seen["empty"] += 1
            taken = waits.taken("in", valid, ready, packet[0] if valid else None)
            accepted = waits.taken("cmd", offered is not None, bool(int(dut.cmd_ready_o.value)), offered)
            await RisingEdge(dut.clk_i)
            if taken:
                packet.popleft()
            if accepted:
                commands.append(offered)
                offered = None
        for name in ("cmd_valid", "in_valid", "space"):
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("fits", "short", "long", "empty", "bursts", "in waits"):
        assert seen[what] > 20, what


@pytest.mark.parametrize(("data_bytes", "beats"), [(8, 4), (64, 16)])
def test_unisono_memory_write_items(data_bytes, beats):
    values = {"DataBytes": data_bytes, "BurstBeats": beats, "AddressWidth": 32}
    simulate("unisono_memory_write_items", __file__, values)
