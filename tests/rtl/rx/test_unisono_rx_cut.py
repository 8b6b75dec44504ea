"""unisono_rx_cut: packets as announced, shorter and longer; rooms that fill up; nothing makes it stop."""

from collections import Counter, deque

import cocotb
import pytest
from bus import ChannelSource, Packet, StreamSource, never, new_random, paces, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate
from records import unpack

HEADER = [("is_short", 1), ("broken", 1), ("payload", 1), ("session", 16), ("bytes", 16), ("header", 512)]


class Bench:
    """What is sent, and what must come of it."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.width = parameters()["DataBytes"]
        self.meta = ChannelSource(dut, "meta", ("session", "bytes", "error"))
        self.words = StreamSource(dut, "rx")
        self.headers, self.payload, self.wrong = deque(), deque(), deque()
        dut.header_space_i.value = dut.payload_space_i.value = 0

    def send(self):
        """A packet of a length, announced with this or another."""
        rng, width = self.rng, self.width
        length = rng.choice((0, 1, 63, 64, 65, 64 + width, 64 + 5 * width, rng.randint(0, 64 + 9 * width)))
        actual = length
        if rng.random() < 0.3:
            actual = max(0, length + rng.choice((-1, 1, -width, width, rng.randint(-200, 200))))
        if not length or not actual:
            actual = length  # a packet without words has none
        session, error, data = rng.getrandbits(16), rng.random() < 0.1, rng.randbytes(actual)
        self.meta.put((session, length, int(error)))
        if actual:
            self.words.send(Packet(data))
        whole = min(length, 64)
        if length != actual:
            self.seen["shorter" if actual < length else "longer"] += 1
        # Where the packet ended or should have ended with its header, what is wrong is told with that.
        ends = actual <= 64 or length <= 64
        self.headers.append(
            {
                "is_short": length < 64,
                "broken": int(error or (ends and actual != length)),
                "payload": int(not ends),
                "session": session,
                "bytes": length - 64 & 0xFFFF,
                "header": data[: min(whole, actual)],
            }
        )
        if not ends:
            content = (data[64:length] + bytes(max(0, length - actual)))[: length - 64]
            self.payload.append((content, min(actual, length) - 64))
            if actual != length:
                self.wrong.append(session)
        self.seen["none" if not length else "header" if length <= 64 else "payload"] += 1

    async def run(self, rooms):
        """Until all has come."""
        dut, width = self.dut, self.width
        place, quiet = 0, 0
        while self.headers or self.payload or self.wrong or quiet < 20:
            header_space, payload_space = not rooms(), not rooms()
            dut.header_space_i.value, dut.payload_space_i.value = header_space, payload_space
            await FallingEdge(dut.clk_i)
            quiet += 1
            assert header_space or not int(dut.done_o.value), "a header has its place"
            if int(dut.header_valid_o.value):
                self.check_header(unpack(HEADER, int(dut.header_o.value)), self.headers.popleft())
                quiet = 0
            if int(dut.push_o.value):
                assert payload_space
                content, sound = self.payload[0]
                part = content[place : place + width]
                assert int(dut.push_keep_o.value) == (1 << len(part)) - 1
                got = int(dut.push_data_o.value).to_bytes(width, "little")[: max(0, min(len(part), sound - place))]
                assert got == part[: len(got)]
                assert place < sound or not int(dut.push_data_o.value), "filled with zeros"
                place += width
                assert bool(int(dut.push_last_o.value)) == (place >= len(content))
                if place >= len(content):
                    self.payload.popleft()
                    place = 0
                quiet = 0
            if int(dut.wrong_o.value):
                assert int(dut.wrong_session_o.value) == self.wrong.popleft()
            self.seen["full"] += not (header_space and payload_space)
            await RisingEdge(dut.clk_i)
        assert not place

    def check_header(self, got, wanted):
        sent = wanted.pop("header")
        data = got.pop("header").to_bytes(64, "little")
        if not wanted["is_short"] and not wanted["broken"]:
            assert data == sent
        for name in ("is_short", "broken", "session", "bytes"):
            assert got[name] == wanted[name] or (name == "broken" and wanted["is_short"]), (name, got, wanted)
        assert got["payload"] == wanted["payload"], (got, wanted)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_packets(dut):
    rng = new_random("cut")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for name, pause in paces(rng):
        bench.meta.pauses = [pause]
        bench.words.pauses = [dict(paces(new_random(name)))[name]]
        for part in (0, 0.3, 0.8):
            for _ in range(scaled(200, 60)):
                bench.send()
            await bench.run(never if part == 0 else share(rng, part))
    for what in ("shorter", "longer", "none", "header", "payload", "full"):
        assert bench.seen[what] > 20, what


@pytest.mark.parametrize("data_bytes", [64, 8, full(16), full(32)])
def test_unisono_rx_cut(data_bytes):
    simulate("unisono_rx_cut", __file__, {"DataBytes": data_bytes})
