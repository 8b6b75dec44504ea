"""unisono_memory_read_merge: words of commands of any offset and length, beats with errors, with pauses."""

from collections import Counter, deque

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_commands(dut):
    rng, seen = new_random("merge"), Counter()
    width, words = parameters()["DataBytes"], parameters()["BufferWords"]
    names = ("answer_valid", "answer_place", "answer_error", "answer_data", "item", "place", "first", "last", "user")
    for name in (*names, "empty", "flush", "offset", "tail"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        items, expected = deque(), deque()
        place, written, idle = 0, deque(), 0
        for cycle in range(scaled(16000, 5000)):
            if cycle % 60 == 0:
                often = rng.choice((0.05, 0.5, 1.0))
            if len(items) < 4:
                # A command: its beats go to the next places, and are there before its items are issued.
                offset, length = (
                    rng.randrange(width),
                    rng.choice((0, 1, rng.randint(1, width), rng.randint(1, 5 * width))),
                )
                user = rng.getrandbits(len(dut.user_i))
                beats, count = -(-(offset + length) // width), -(-length // width)
                data = rng.randbytes(max(1, beats) * width)
                bad = [rng.random() < 0.05 for _ in range(beats if length else 0)]
                shape = {
                    "user": user, "empty": length == 0, "flush": length == 0 or count == beats,
                    "offset": offset, "tail": (length - 1) % width,
                }  # fmt: skip
                for beat in range(max(1, beats)):
                    ends = {"first": beat == 0, "last": beat == max(1, beats) - 1, "place": place}
                    items.append(shape | ends)
                    if length:
                        content = int.from_bytes(data[beat * width : (beat + 1) * width], "little")
                        written.append((place, bad[beat], content))
                        place = (place + 1) % words
                for word in range(max(1, count)):
                    part = data[offset + word * width : offset + min(length, (word + 1) * width)]
                    last = word == max(1, count) - 1
                    expected.append((part if length else b"", last, user, int(last and any(bad))))
                seen["empty" if length == 0 else "flush" if shape["flush"] else "plain"] += 1
            # Beats come first; a place is read at least a cycle later.
            answer = written.popleft() if written else None
            dut.answer_valid_i.value = answer is not None
            if answer is not None:
                dut.answer_place_i.value, dut.answer_error_i.value, dut.answer_data_i.value = answer
            ready = items and (items[0]["empty"] or (not written and answer is None))
            ready = ready or (items and all(items[0]["place"] != one[0] for one in [*written, answer or (None,)]))
            item = bool(ready) and rng.random() < often
            dut.item_i.value = item
            if item:
                for name, value in items.popleft().items():
                    getattr(dut, f"{name}_i").value = value
            await FallingEdge(dut.clk_i)
            if int(dut.word_valid_o.value):
                part, last, user, error = expected.popleft()
                assert int(dut.word_keep_o.value) == (1 << len(part)) - 1
                mask = (1 << 8 * len(part)) - 1
                assert int(dut.word_data_o.value) & mask == int.from_bytes(part, "little")
                assert bool(int(dut.word_last_o.value)) == last
                assert int(dut.word_user_o.value) == user
                assert int(dut.word_error_o.value) == error
                seen["error"] += error
                idle = 0
            idle += 1
            assert idle < 500
            await RisingEdge(dut.clk_i)
        dut.item_i.value = dut.answer_valid_i.value = 0
        await reset_again(dut, 4)
        for _ in range(10):
            await FallingEdge(dut.clk_i)
            assert not int(dut.word_valid_o.value)
    for what in ("empty", "flush", "plain", "error"):
        assert seen[what] > 50, what


@pytest.mark.parametrize("data_bytes", [8, 64])
def test_unisono_memory_read_merge(data_bytes):
    values = {"DataBytes": data_bytes, "BufferWords": 64, "UserWidth": 8}
    simulate("unisono_memory_read_merge", __file__, values)
