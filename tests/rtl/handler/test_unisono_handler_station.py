"""unisono_handler_station: all that leaves is what the interpreter makes of what came, whatever comes between."""

from __future__ import annotations

import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import cocotb
import pytest
from bus import Packet, paces, share
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, scaled, simulate
from station_bench import EXAMPLES, StationBench, compiled, started, with_packet
from station_frames import ENGINE, Facts
from unisono import handler

SOURCES = tempfile.TemporaryDirectory()
FOLDER = Path(SOURCES.name)

NOTHING = "#include <unisono_handler.h>\nint payload(void) { return US_GO_ON; }\n"

# Says of each packet what is known of it, and of all packets at the end.
TELLER = """#include <unisono_handler.h>
static uint32_t bytes, packets;
int header(void) { bytes = packets = 0; us_put_u32(us_source()); us_put_u32(us_ranks()); return US_GO_ON; }
int payload(void) {
  bytes += us_length();
  ++packets;
  us_put_u32(us_packet());
  us_put_u32(us_tag());
  return US_GO_ON;
}
int completion(void) { us_put_u32(bytes); us_put_u32(packets); us_put_u32(us_packets()); return US_GO_ON; }
"""

# A packet's first byte says what happens.
WILFUL = """#include <unisono_handler.h>
static uint32_t seen[8];
int payload(void) {
  const uint32_t what = us_length() ? us_u8_at(0) & 7 : 6;
  ++seen[what];
  us_put_u32(seen[what]);
  if (what == 0) return US_DROP;
  if (what == 1) return 77;
  if (what == 2) us_put_u32(us_tag() / (us_u8_at(0) - 2));
  if (what == 3) us_put_u32(us_u32_at(us_length()));
  return US_GO_ON;
}
int completion(void) { us_put_u32(1234); return seen[5] & 1 ? US_DROP : US_GO_ON; }
"""

# Writes 20 times what it gets, at most some thousand bytes of it.
LONG = """#include <unisono_handler.h>
int payload(void) {
  for (uint32_t k = 0; k < 20; ++k)
    for (uint32_t at = 0; at < us_length() && at < 1000; at += 64) us_streamout_u32(us_u32x16_at(at, k), 16);
  return us_length() == 5 ? 3 : US_GO_ON;
}
"""

SLOW = """#include <unisono_handler.h>
static uint32_t sum;
int payload(void) { for (uint32_t i = 0; i < 2000; ++i) sum += i * us_packet(); us_put_u32(sum); return US_GO_ON; }
"""


def example(name: str) -> handler.Handler:
    return handler.compile(EXAMPLES / f"{name}.c")


def any_pace(bench: StationBench) -> None:
    some = [pace for _, pace in paces(bench.rng)]
    bench.source.pauses = [bench.rng.choice(some) for _ in range(bench.ports)]
    bench.sink.pauses = [bench.rng.choice(some)]


def interleaved(bench: StationBench, messages: list[tuple[Facts, list[bytes]]], bad: float = 0) -> None:
    """Packets of messages among each other, those of a message in their order and by one port."""
    rng = bench.rng
    left = [(facts, list(enumerate(payloads)), rng.randrange(bench.ports)) for facts, payloads in messages]
    while left:
        facts, packets, lane = rng.choice(left)
        number, payload = packets.pop(0)
        count = next(len(payloads) for other, payloads in messages if other is facts)
        if rng.random() < bad:
            bad_frame(bench, with_packet(facts, number, count), payload, rng.randrange(bench.ports))
        bench.send(with_packet(facts, number, count), payload, lane)
        left = [one for one in left if one[1]]


def bad_frame(bench: StationBench, facts: Facts, payload: bytes, lane: int) -> None:
    """A frame that must not count: a bit is wrong, it is cut, its lengths lie, or it is none of handlers."""
    rng = bench.rng
    frame = bytearray(bench.frame(facts, payload))
    kind = rng.randrange(5)
    header = range(60) if bench.form == ENGINE else range(12, len(frame))  # Ethernet's addresses are nobody's
    if kind == 0:
        frame[rng.choice(header)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        frame = frame[: rng.randrange(1, len(frame))]
    elif kind == 2:
        frame += rng.randbytes(rng.choice((1, 63, 64, 65, 9000)))
    elif kind == 3:
        frame = bytearray(bench.frame(Facts(**{**facts.__dict__, "slot": rng.choice((bench.machines, 255))}), payload))
    else:
        frame = bytearray(rng.randbytes(rng.choice((1, 64, 200))))
    bench.source.send(Packet(bytes(frame), int(rng.random() < 0.1)), lane)


def some_packets(rng: random.Random, name: str) -> list[bytes]:
    """As the handler wants them."""
    packets = []
    for _ in range(rng.randint(1, 4)):
        count = rng.randint(1, 12)
        if name == "filter":
            packets.append(struct.pack(f"<{count}f", *(rng.gauss(0, 1) for _ in range(count))))
        elif name == "compressor":
            packets.append(struct.pack(f"<{count}I", *sorted(rng.getrandbits(20) for _ in range(count))))
        elif name == "sparse_accumulate":
            packets.append(
                struct.pack("<16I16f", *rng.choices(range(4200), k=16), *(rng.gauss(0, 1) for _ in range(16)))
            )
        else:
            packets.append(rng.randbytes(rng.choice((0, 1, 64, 100, 130))))
    return packets


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def examples(dut: Any) -> None:
    """Each in a slot, messages of several sources among each other, and bad frames."""
    bench = await started(dut)
    rng = bench.rng
    for names in (("histogram", "filter", "sparse_accumulate"), ("compressor", "filter", "histogram")):
        names = names[: bench.machines]
        for slot, name in enumerate(names):
            await bench.load(slot, example(name))
        for turn in range(scaled(6, 2)):
            any_pace(bench)
            messages = []
            for number in range(10):
                slot = rng.randrange(bench.machines)
                facts = Facts(slot, 3, turn, number, rng.randint(1, 12), 0, 0, rng.getrandbits(32), rng.getrandbits(16),
                              rng.getrandbits(16))  # fmt: skip
                messages.append((facts, some_packets(rng, names[slot])))
            interleaved(bench, messages, 0.2)
            await bench.finish()
        for slot in range(bench.machines):
            made = bench.row.handlers[slot]
            assert made is not None
            assert await bench.memory(slot) == made.memory, f"slot {slot} has other memory"
    counted = sum([await bench.read(word) for word in (0x22, 0x23, 0x24)])
    assert counted == bench.bad > 0, f"{counted} bad frames are counted of {bench.bad}"


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def chains(dut: Any) -> None:
    """Of two and of three; messages also come to the second machine by themselves."""
    bench = await started(dut)
    if bench.machines < 3:
        return
    rng = bench.rng
    on = 1 << 29
    rows: list[tuple[tuple[handler.Handler, int], ...]] = [
        ((example("filter"), on), (example("compressor"), 0), (compiled("teller", TELLER, FOLDER), 0)),
        ((example("filter"), on), (compiled("teller", TELLER, FOLDER), on), (example("histogram"), 0)),
        ((compiled("wilful", WILFUL, FOLDER), on), (compiled("long", LONG, FOLDER), on), (example("compressor"), 0)),
        ((compiled("wilful", WILFUL, FOLDER), on), (compiled("wilful2", WILFUL, FOLDER), on),
         (compiled("teller", TELLER, FOLDER), 0)),
    ]  # fmt: skip
    for row in rows:
        for slot, (made, way) in enumerate(row):
            await bench.load(slot, made, way)
        for turn in range(scaled(6, 2)):
            any_pace(bench)
            messages = [
                (
                    Facts(0, 2, turn, number, 4, 0, 0, rng.getrandbits(32), 5),
                    some_packets(rng, rng.choice(("filter", ""))),
                )
                for number in range(6)
            ]
            interleaved(bench, messages, 0.05)
            await bench.finish()
        for slot in range(3):
            assert await bench.memory(slot) == row[slot][0].memory, f"slot {slot} has other memory"


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def verdicts_and_stops(dut: Any) -> None:
    """Nothing of a message is looked at any more; its end and the registers say why."""
    bench = await started(dut)
    rng = bench.rng
    made = compiled("wilful", WILFUL, FOLDER)
    await bench.load(0, made)
    ends: list[int] = []
    for turn in range(scaled(16, 4)):
        any_pace(bench)
        messages = []
        for number in range(12):
            payloads = [bytes([rng.choice((0, 1, 2, 3, 4, 4, 5, 6, 6, 6, 6, 7))]) * rng.choice((4, 64, 70))
                        for _ in range(rng.randint(1, 6))]  # fmt: skip
            messages.append((Facts(0, 1, turn, number, 16, 0, 0, rng.getrandbits(32), number), payloads))
        interleaved(bench, messages)
        ends += [message.ended[1].reason for message in await bench.finish() if message.ended]
    assert await bench.memory(0) == made.memory
    counts = [await bench.read(word) for word in (8, 9, 10, 11, 12, 13, 14)]
    assert counts == [len(ends), 0, 0, 0, ends.count(0), ends.count(1), sum(reason > 1 for reason in ends)]
    assert set(ends) == {0, 1, 2, 16}
    # The last failure: one more message, alone.
    bench.message(Facts(0, 1, 999, 300, 400, 0, 0, 0xABCD), [b"\x06" * 4, b"\x01" * 4, b"\x06" * 4])
    (last,) = await bench.finish()
    assert last.ended is not None
    first, verdict, _, packet, source, tag = [await bench.read(word) for word in range(0x11, 0x17)]
    assert (first & 0xFF, first >> 8 & 0xFF, first >> 16, verdict) == (2, 0, 1, 77)
    assert (packet, source, tag) == (1, 300, 0xABCD)


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def order(dut: Any) -> None:
    """Copies and strays are dropped and counted; a message with a gap, or of another length, ends and says where."""
    bench = await started(dut)
    assert await bench.read(0x20) == 28, "without a word from software no message waits for ever"
    await bench.load(0, compiled("teller", TELLER, FOLDER))
    rng = bench.rng
    for number in range(scaled(40, 12)):
        any_pace(bench)
        facts = Facts(0, 7, number, 1, 9, 0, 0, rng.getrandbits(32), 17)
        packets = rng.randint(2, 6)
        numbers = list(range(packets))
        match number % 4:
            case 0:  # a copy of an earlier one
                at = rng.randrange(1, packets)
                numbers.insert(at, rng.randrange(at))
            case 1:  # one is missing
                del numbers[rng.randrange(1, packets - 1) if packets > 2 else 1]
            case 2:  # two change places
                at = rng.randrange(1, packets)
                numbers[at - 1], numbers[at] = numbers[at], numbers[at - 1]
        if numbers[0]:
            numbers = numbers[1:]
        for at, packet in enumerate(numbers):
            # A copy of packet 0 behind an end would be a new message, or none, as that has left.
            say = packets + (at > 0 and number % 4 > 0 and rng.random() < 0.1)
            bench.send(with_packet(facts, packet, say), rng.randbytes(rng.choice((0, 4, 64))), 0)
        await bench.finish()
        for key in list(bench.row.messages):
            # What has not come: it is given up.
            await bench.write(0x20, 6)
            await ClockCycles(dut.clk_i, 5 * 64)
            bench.row.late(key)
            await bench.finish()
            await bench.write(0x20, 0)
    assert [await bench.read(word) for word in (10, 11)] == [bench.row.copies, bench.row.strays]
    assert bench.row.copies
    assert bench.row.strays


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def no_room(dut: Any) -> None:
    """Messages beyond the places are refused, and told; so are those for a slot without a handler."""
    bench = await started(dut)
    bench.message(Facts(0, 1, 1, 1), [b"nobody is here", b"still nobody"])
    await bench.finish()
    assert bench.row.strays == 1
    await bench.load(0, compiled("teller", TELLER, FOLDER))
    bench.row.places = parameters()["Messages"] - 1
    any_pace(bench)
    for source in range(bench.row.places + 5):
        bench.send(Facts(0, 1, 2, source, 1, 0, 2), b"first", source % bench.ports)
    ends = [message.ended[1].reason for message in await bench.finish() if message.ended]
    assert ends == [32] * 5
    for source in range(bench.row.places):
        bench.send(Facts(0, 1, 2, source, 1, 1, 2), b"last", source % bench.ports)
    await bench.finish()
    bench.message(Facts(0, 1, 3, 9), [b"there is room again"])
    await bench.finish()
    assert await bench.read(9) == 6


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ways(dut: Any) -> None:
    """To the packet's destination, back, or to a named one; long packets are cut into several."""
    bench = await started(dut)
    made = compiled("long", LONG, FOLDER)
    for way in (0, 1 << 30, 1 << 31 | 0x4321, 3 << 30 | 0x77):
        await bench.load(0, made, way)
        payloads = [bench.rng.randbytes(length) for length in (1, 5, 1000)]
        bench.message(Facts(0, 1, way >> 30, 1, 1, 0, 0, 0, 0x1111, 0x2222), payloads[:2])
        bench.message(Facts(0, 1, way >> 30, 2, 1, 0, 0, 0, 0x1111, 0x2222), payloads[2:] + payloads[:1])
        await bench.finish()
    await bench.load(0, example("histogram"))
    bench.message(Facts(0, 1, 9, 1), [bench.rng.randbytes(8192), bench.rng.randbytes(8191)])
    await bench.finish()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_link_that_is_full(dut: Any) -> None:
    """All that can wait does. Ends still come behind the last packets of their messages, and before the next ones'."""
    bench = await started(dut)
    await bench.load(0, compiled("teller", TELLER, FOLDER))
    bench.sink.pauses = [share(bench.rng, 0.95)]
    for source in range(4):
        bench.message(Facts(0, 1, 1, source), [bytes(source)] * 120)
    await bench.finish(timeout_us=5000)
    for source in range(12):
        bench.message(Facts(0, 1, 2, source), [bytes(source)] * 30)
    await bench.finish(timeout_us=5000)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_slow_one_stops_nobody_else(dut: Any) -> None:
    bench = await started(dut)
    if bench.machines < 2 or bench.ports < 2:
        return
    await bench.load(0, compiled("slow", SLOW, FOLDER))
    await bench.load(1, compiled("teller", TELLER, FOLDER))
    packets = 40
    bench.message(Facts(0, 1, 1, 1), [bytes(1408)] * packets, 0)
    await ClockCycles(dut.clk_i, 3000)
    waits = len(bench.source.queues[0])
    assert waits, "its queue takes all"
    bench.message(Facts(1, 1, 1, 2), [bytes(1408)] * packets, 1)
    for _ in range(packets * 60):
        await RisingEdge(dut.clk_i)
        if not bench.source.queues[1]:
            break
    assert not bench.source.queues[1], "a slot waits for another one"
    await bench.finish(timeout_us=20000)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def rate_and_latency(dut: Any) -> None:
    """Frames of 1408 bytes come at the rate of a 100 Gb/s link, which brings one every 30.8 cycles at 250 MHz."""
    bench = await started(dut)
    await bench.load(0, compiled("nothing", NOTHING, FOLDER))
    bench.message(Facts(0, 1, 1, 1), [bytes(1408)] * 40)
    await bench.source.drain()
    begin = bench.sink.cycle
    bench.message(Facts(0, 1, 2, 1), [bytes(1408)] * 40)
    await bench.source.drain()
    cycles = (bench.sink.cycle - begin) / 40
    dut._log.info("%.1f cycles for a frame of 1408 bytes", cycles)
    assert cycles <= 27
    await bench.finish()
    last = bench.source.sent[0]
    bench.message(Facts(0, 1, 3, 1), [bytes(64)])
    while bench.source.sent[0] < last + 2:
        await RisingEdge(dut.clk_i)
    begin = bench.sink.cycle
    while not bench.sink.packets[0]:
        await RisingEdge(dut.clk_i)
    dut._log.info("%d cycles from a frame's last word to the first of the end", bench.sink.packets[0][0].start - begin)
    await bench.finish()


def compiles() -> None:
    try:
        example("histogram")
    except handler.HandlerError as error:
        if "clang" not in str(error):
            raise
        pytest.skip(f"handlers are not compiled here: {error}")


@pytest.mark.parametrize(("form", "machines", "ports"), [(1, 3, 2), (0, 1, 1), full(0, 3, 2), full(1, 1, 1)])
def test_unisono_handler_station(form: int, machines: int, ports: int) -> None:
    compiles()
    values: dict[str, int | str] = {"Format": form, "Machines": machines, "Ports": ports, "Messages": 16}
    values |= {"Columns": 1, "Banks": 1, "Words": 1024, "MemoryBytes": 32768, "Elements": "8'h1f"}
    simulate("unisono_handler_station", __file__, values, limit_s=600)
