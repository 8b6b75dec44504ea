"""unisono_handler_arrivals: sound frames, whole and in their order; a slot that is full refuses its own alone."""

from __future__ import annotations

import random
from collections import deque
from typing import Any, ClassVar

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import parameters, scaled, simulate
from station_frames import ENGINE, Facts, frame_of, taken

MOST = 8192


class LinkSource(StreamSource):
    """Frames; `user` says that one is damaged."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "bad")


class Bench:
    def __init__(self, dut: Any) -> None:
        given = parameters()
        self.dut, self.rng = dut, new_random("arrivals")
        self.form, self.ports, self.slots = given["Format"], given["Ports"], given["Machines"]
        self.source = LinkSource(dut, "in", lanes=self.ports)
        self.sink = StreamSink(dut, "out", lanes=self.slots)
        self.wanted = [[deque[bytes]() for _ in range(self.ports)] for _ in range(self.slots)]
        self.counts = [0] * 4

    def frame(self, facts: Facts, length: int) -> bytearray:
        return bytearray(frame_of(self.form, facts, self.rng.randbytes(length), random.Random(1)))

    def send(self, frame: bytes, lane: int, kind: int, *, damaged: bool = False) -> None:
        """A frame; `kind` is what it counts as."""
        found = taken(self.form, frame, self.slots)
        assert (found is None or damaged) == bool(kind)
        if found is not None and not damaged:
            self.wanted[found[0].slot][lane].append(frame)
        self.counts[kind] += 1
        self.source.send(Packet(frame, int(damaged)), lane)

    async def finish(self) -> None:
        """All that is sound has come, each port's in its order, and all is counted."""
        await self.source.drain()
        await ClockCycles(self.dut.clk_i, 20)
        for slot, wanted in enumerate(self.wanted):
            while any(wanted):
                packet = await self.sink.receive(slot, timeout_us=200)
                mine = [frames for frames in wanted if frames and frames[0] == packet.data]
                assert mine, f"a frame that nobody sent to slot {slot}"
                mine[0].popleft()
        await ClockCycles(self.dut.clk_i, 20)
        assert not any(self.sink.packets), "frames that should have been dropped"
        names = ("sound", "bad_header", "bad_length", "bad_checksum")
        found = [int(getattr(self.dut, f"counter_{name}_o").value) for name in names]
        assert found == self.counts, f"{found} frames are counted, must be {self.counts}"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_frames(dut: Any) -> None:
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    rng = bench.rng
    for _, pace in paces(rng):
        bench.source.pauses = [pace] * bench.ports
        bench.sink.pauses = [rng.choice(paces(rng))[1] for _ in range(bench.slots)]
        for _ in range(scaled(200, 60)):
            length = rng.choice((0, 1, 2, 63, 64, 65, rng.randint(0, 1500), MOST if rng.random() < 0.1 else 7))
            facts = Facts(rng.randrange(bench.slots), rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(16),
                          1 + rng.getrandbits(15), 5, 9, rng.getrandbits(32), rng.getrandbits(16))  # fmt: skip
            lane = rng.randrange(bench.ports)
            frame = bench.frame(facts, length)
            kind = rng.randrange(4) if rng.random() < 0.5 else 0
            if kind == 1:
                wrong = rng.choice(
                    (Facts(bench.slots), Facts(0, packet=3, packets=3), Facts(0, ranks=0), Facts(end=True))
                )
                frame = rng.choice(
                    (bench.frame(wrong, length), frame[: rng.randint(1, 63)], bytearray(rng.randbytes(200)))
                )
            elif kind == 2:
                more = rng.choice((1, 64, 8300)) if length < 2 or rng.random() < 0.5 else 0
                frame = frame + rng.randbytes(more) if more else frame[: 64 + rng.randrange(length)]
            elif kind == 3:
                # Of the engine's format only the header is summed up; of UDP all but the link's addresses.
                at = rng.choice((8, 20, 33, 62)) if bench.form == ENGINE else rng.choice((24, 27, 41, len(frame) - 1))
                if bench.form == ENGINE:
                    frame[60] ^= 1 << rng.randrange(8)
                else:
                    frame[at] ^= 1 << rng.randrange(8)
            bench.send(bytes(frame), lane, kind)
        await bench.finish()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def damaged_or_without_a_checksum(dut: Any) -> None:
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    frame = bench.frame(Facts(0), 100)
    bench.send(bytes(frame), 0, 3, damaged=True)
    if bench.form != ENGINE:
        frame[40:42] = bytes(2)
        frame[70] ^= 1
        bench.send(bytes(frame), 0, 0)
    await bench.finish()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def full_queues(dut: Any) -> None:
    """What has begun never stops; a slot whose queue is full stops no other one."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    stopped = True
    bench.sink.pauses[0] = lambda: stopped
    longest = bench.frame(Facts(0), MOST)
    for _ in range(8):
        bench.send(bytes(longest), 0, 0)
    words = len(longest) // 64
    for _ in range(8 * words):
        await RisingEdge(dut.clk_i)
        # Between the first word of a frame and its last one `ready` stays.
        if bench.source.sent[0] % words:
            assert int(dut.in_ready_o.value) & 1, f"it stops at word {bench.source.sent[0] % words}"
    whole = bench.source.sent[0]
    assert whole in (3 * words, 4 * words), f"{whole} words are taken"
    if bench.slots > 1 and bench.ports > 1:
        for _ in range(8):
            bench.send(bytes(bench.frame(Facts(1), MOST)), 1, 0)
        await ClockCycles(dut.clk_i, 8 * (words + 6))
        assert not bench.source.queues[1], "a slot waits for another one"
    stopped = False
    await bench.finish()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_link_that_withdraws(dut: Any) -> None:
    """Before a frame has begun, the link may offer another one, of another slot."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    if bench.slots < 2:
        return
    frames = [bench.frame(Facts(slot), 0) for slot in range(2)]
    for turn in range(8):
        dut.in_data_i.value = int.from_bytes(frames[turn & 1], "little")
        dut.in_keep_i.value = (1 << 64) - 1
        dut.in_last_i.value, dut.in_bad_i.value = 1, 0
        dut.in_valid_i.value = 1
        await RisingEdge(dut.clk_i)
        assert not int(dut.in_ready_o.value) & 1
    for _ in range(4):
        await RisingEdge(dut.clk_i)
        if int(dut.in_ready_o.value) & 1:
            break
    dut.in_valid_i.value = 0
    bench.counts[0] += 1
    bench.wanted[1][0].append(bytes(frames[1]))
    await bench.finish()


@pytest.mark.parametrize(("form", "ports", "slots"), [(1, 2, 2), (0, 1, 1), (0, 3, 2)])
def test_unisono_handler_arrivals(form: int, ports: int, slots: int) -> None:
    simulate("unisono_handler_arrivals", __file__, {"Format": form, "Ports": ports, "Machines": slots, "Queue": 512})
