"""unisono_switch_egress: every frame bit for bit, in the order of its channel, and credit taken once and never lost."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import cocotb
import pytest
from bus import StreamSink, never, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, scaled, simulate
from headers import MAGIC, VERSION, Datatype, Header, MessageType, sealed
from unit_records import ENTRIES, GRANTED, NEIGHBOUR, SEND, TERMS, pack, random_record

LATENCY, DATA_LATENCY, GAP = 7, 4, 6
APART = 3
DATA = (MessageType.EAGER, MessageType.WRITE)
KINDS = (MessageType.EAGER, MessageType.EAGER, MessageType.EAGER, MessageType.REQUEST, MessageType.GRANT)
ON_CONTROL = (MessageType.GRANT, MessageType.CREDIT)


class FrameSink(StreamSink):
    """Frames; `user` says that one is on the channel for control, `dest` is its address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "control", "address")


@dataclass
class Expected:
    """A frame but for credit and the number in its session."""

    entry: int
    header: Header
    payload: bytes


class Bench:
    """Sends as the control does, gives words as the fold does, and frees buffers; compares each frame that comes."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("egress")
        self.most = parameters()["BufferBytes"]
        self.sink = FrameSink(dut, "out")
        self.terms: dict[int, tuple[dict[str, int], dict[str, int]]] = {}
        self.wanted: dict[bool, deque[Expected]] = {False: deque(), True: deque()}  # by whether it is a grant
        self.words: deque[int] = deque()
        self.to_send: deque[tuple[dict[str, Any], dict[str, int], bytes]] = deque()
        self.word_pause = never
        self.to_free: deque[int] = deque()
        self.free_share = 0.0
        self.freed: Counter[int] = Counter()
        self.taken: Counter[int] = Counter()
        self.freed_at_end: Counter[int] = Counter()  # when the last frame was over
        self.sessions: Counter[tuple[int, bool]] = Counter()
        self.seen: Counter[str] = Counter()
        self.cycle = 0
        self.sent_at = 0
        for port in ("open_valid_i", "send_i", "freed_valid_i", "data_valid_i"):
            getattr(dut, port).value = 0

    async def open(self, entry: int, address: int, credits: int) -> None:
        """Agrees on random terms."""
        terms = random_record(self.rng, TERMS) | {"credits": credits}
        neighbour = random_record(self.rng, NEIGHBOUR) | {"address": address}
        self.terms[entry] = terms, neighbour
        self.dut.open_valid_i.value, self.dut.open_entry_i.value = 1, entry
        self.dut.open_terms_i.value = pack(TERMS, terms)
        self.dut.open_neighbour_i.value = pack(NEIGHBOUR, neighbour)
        await RisingEdge(self.dut.clk_i)
        self.dut.open_valid_i.value = 0
        self.freed[entry] = self.taken[entry] = self.freed_at_end[entry] = 0

    def message(self, entry: int, length: int | None = None, **fixed: Any) -> None:
        """Queues a message for the control to send."""
        rng = self.rng
        message = random_record(rng, SEND) | {"entry": entry, "dtype": int(rng.choice(list(Datatype)))}
        message |= {"kind": int(rng.choice(KINDS)), "segment_bytes": 0, **fixed}
        payload = b""
        if message["kind"] in DATA:
            if length is None:
                length = rng.choice((0, 1, 63, 64, 65, self.most - 1, self.most, rng.randint(1, self.most)))
            payload = rng.randbytes(length)
            message["segment_bytes"] = length
        else:
            message["by_grant"] = message["by_grant"] if rng.random() < 0.5 else 0  # says nothing there
        self.to_send.append((message, random_record(rng, GRANTED), payload))

    async def drive(self) -> None:
        """Inputs, cycle by cycle."""
        dut, rng, edge = self.dut, self.rng, RisingEdge(self.dut.clk_i)
        while True:
            await edge
            self.cycle += 1
            ready = int(dut.ready_o.value)
            dut.send_i.value = dut.data_valid_i.value = dut.freed_valid_i.value = 0
            dut.data_i.value = rng.getrandbits(512)
            dut.message_i.value = pack(SEND, random_record(rng, SEND))
            # Words come behind the message that they are of.
            if self.words and not self.word_pause():
                dut.data_valid_i.value, dut.data_i.value = 1, self.words.popleft()
            if self.to_send and ready and self.cycle - self.sent_at >= APART:
                self.send(*self.to_send.popleft())
            elif self.to_send and not ready:
                self.seen["no room"] += 1
            if self.terms and rng.random() < self.free_share:
                self.to_free.append(rng.choice(list(self.terms)))
            if self.to_free:
                entry = self.to_free.popleft()
                dut.freed_valid_i.value, dut.freed_entry_i.value = 1, entry
                self.freed[entry] += 1

    def send(self, message: dict[str, Any], token: dict[str, int], payload: bytes) -> None:
        """One message, and what its frame must be."""
        self.sent_at = self.cycle
        self.dut.send_i.value, self.dut.message_i.value = 1, pack(SEND, message)
        self.dut.token_i.value = pack(GRANTED, token)
        terms, neighbour = self.terms[message["entry"]]
        write = message["kind"] in DATA and message["by_grant"]
        header = Header(
            magic=MAGIC,
            version=VERSION,
            type=MessageType.WRITE if write else MessageType(message["kind"]),
            dtype=Datatype(message["dtype"]),
            first=bool(message["first"]),
            last=bool(message["last"]),
            communicator=terms["communicator"],
            epoch=terms["epoch"],
            source=terms["rank"],
            destination=neighbour["rank"],
            sequence=message["sequence"],
            tag=message["tag"],
            segment_bytes=len(payload),
            message_bytes=message["message_bytes"],
            offset=message["offset"],
            token_slot=token["slot"] if write else message["token_slot"],
            token_generation=token["generation"] if write else message["token_generation"],
            signature=message["signature"],
        )
        self.wanted[message["kind"] == MessageType.GRANT].append(Expected(message["entry"], header, payload))
        for at in range(0, len(payload), 64):
            part = payload[at : at + 64]
            self.words.append(
                int.from_bytes(part, "little") | self.rng.getrandbits(8 * (64 - len(part))) << 8 * len(part)
                if len(part) < 64
                else int.from_bytes(part, "little")
            )
        self.seen["write" if write else MessageType(message["kind"]).name.lower()] += 1

    async def watch(self) -> None:
        """Compares what comes, frame by frame."""
        while True:
            packet = await self.sink.receive(timeout_us=100_000)
            header = Header.decode(packet.data[:64])
            credits, control = header.credits, header.type in ON_CONTROL
            if header.type == MessageType.CREDIT:
                (entry,) = (e for e, (t, n) in self.terms.items() if t["communicator"] == header.communicator)
                terms, neighbour = self.terms[entry]
                wanted = Expected(
                    entry,
                    Header(
                        magic=MAGIC,
                        version=VERSION,
                        type=MessageType.CREDIT,
                        first=True,
                        last=True,
                        communicator=terms["communicator"],
                        epoch=terms["epoch"],
                        source=terms["rank"],
                        destination=neighbour["rank"],
                    ),
                    b"",
                )
                assert 2 * credits >= terms["credits"], f"{credits} of {terms['credits']} credits in a message"
                self.seen["credit"] += 1
            else:
                wanted = self.wanted[control].popleft()
                self.seen["credit beside"] += credits > 0
                self.seen["overtaken"] += control and len(self.wanted[False]) > 1
            entry = wanted.entry
            address = self.terms[entry][1]["address"]
            assert (packet.dest, bool(packet.user)) == (address, control)
            # All that was owed when the frame before was over; nothing that was not.
            owed = self.freed_at_end[entry] - self.taken[entry]
            assert owed <= credits <= self.freed[entry] - self.taken[entry], f"{credits} credits, {owed} were owed"
            self.taken[entry] += credits
            want = replace(wanted.header, credits=credits, session_sequence=self.sessions[address, control])
            self.sessions[address, control] += 1
            assert packet.data[:64] == sealed(want), f"{header} instead of {want}"
            assert packet.data[64:] == wanted.payload
            self.freed_at_end = Counter(self.freed)

    def left(self) -> int:
        """Frames that have not come."""
        return sum(map(len, self.wanted.values()))

    async def settle(self, most: int = 20_000) -> None:
        """Until all that was sent has come."""
        for _ in range(most):
            await RisingEdge(self.dut.clk_i)
            if not (self.to_send or self.left() or self.words):
                break
        else:
            raise AssertionError(f"{len(self.to_send)} messages wait, {self.left()} frames have not come")
        self.free_share = 0.0
        await ClockCycles(self.dut.clk_i, 40 * ENTRIES)
        for entry, (terms, _) in self.terms.items():
            owed = self.freed[entry] - self.taken[entry]
            assert owed == 0 or 2 * owed < terms["credits"], f"entry {entry}: {owed} of {terms['credits']} are owed"


async def start(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    cocotb.start_soon(bench.drive())
    cocotb.start_soon(bench.watch())
    return bench


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_traffic(dut: Any) -> None:
    """Messages of all kinds and entries at every pace, with credit in between."""
    bench = await start(dut)
    rng = bench.rng
    # Entries share neighbours, and so sessions; other addresses differ in one bit.
    addresses = [0x1200 ^ bit for bit in (0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 0xFF, 0, 1, 2, 0x55, 0xAA)]
    rng.shuffle(addresses)
    for entry in range(ENTRIES):
        await bench.open(entry, addresses[entry], rng.choice((1, 2, 3, 8, 15, 16)))
    for name, pace in paces(rng):
        for words, pause in paces(random.Random(name)):
            bench.sink.pauses, bench.word_pause = [pace], pause
            bench.free_share = rng.choice((0.0, 0.02, 0.08))
            for _ in range(scaled(120)):
                bench.message(rng.randrange(ENTRIES))
            await bench.settle()
            bench.seen[f"{name} {words}"] += 1
    # The rest of what is owed goes with a message of each.
    for entry in range(ENTRIES):
        bench.message(entry, kind=int(MessageType.REQUEST))
    await bench.settle()
    assert bench.freed == bench.taken
    dut._log.info("%s", dict(bench.seen))
    for what in ("eager", "write", "request", "grant", "credit", "credit beside", "no room", "overtaken"):
        assert bench.seen[what] > 20, what


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credit_goes_at_half_of_what_is_allowed(dut: Any) -> None:
    bench = await start(dut)
    for entry, credits in enumerate((1, 2, 3, 7, 16)):
        await bench.open(entry, entry, credits)
    for entry, credits in enumerate((1, 2, 3, 7, 16)):
        for count in range(1, 2 * credits + 1):
            before = bench.seen["credit"]
            bench.to_free.append(entry)
            await ClockCycles(dut.clk_i, 20)
            step = (credits + 1) // 2
            assert bench.seen["credit"] - before == int(count % step == 0), f"{count} of {credits}"
    # An entry that is opened anew owes nothing.
    await bench.open(4, 9, 16)
    bench.message(4, kind=int(MessageType.REQUEST))
    await bench.settle()
    assert bench.taken[4] == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credit_does_not_wait_for_data(dut: Any) -> None:
    """A frame that has begun is first; of those that wait, credit is."""
    bench = await start(dut)
    await bench.open(3, 77, 4)
    bench.word_pause = lambda: True
    bench.message(3, 64, kind=int(MessageType.EAGER))
    for _ in range(2):
        bench.message(3, kind=int(MessageType.REQUEST))
    await ClockCycles(dut.clk_i, 30)
    for _ in range(2):
        bench.to_free.append(3)
    await ClockCycles(dut.clk_i, 5)
    bench.word_pause = never
    while bench.left() > 1:
        await RisingEdge(dut.clk_i)
    assert bench.seen["credit"] == 1
    await bench.settle()
    assert bench.freed == bench.taken


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_and_rate(dut: Any) -> None:
    bench = await start(dut)
    await bench.open(0, 1, 16)
    sink = bench.sink
    starts: list[tuple[int, int]] = []

    async def note() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.out_valid_o.value) and int(dut.out_ready_i.value):
                starts.append((bench.cycle, int(dut.out_last_o.value)))

    cocotb.start_soon(note())
    await ClockCycles(dut.clk_i, 5)
    bench.message(0, kind=int(MessageType.GRANT))
    await bench.settle()
    # `sent_at` is the cycle before the one in which send_i is high.
    assert starts[0][0] - bench.sent_at - 1 == LATENCY, f"{starts[0][0] - bench.sent_at - 1} cycles"
    # The header of a message whose word is late.
    starts.clear()
    bench.word_pause = lambda: bench.cycle < bench.sent_at + 50
    bench.message(0, 64, kind=int(MessageType.EAGER))
    await bench.settle()
    assert starts[0][0] - bench.sent_at - 51 == DATA_LATENCY, f"{starts[0][0] - bench.sent_at - 51} cycles"
    bench.word_pause = never
    starts.clear()
    for _ in range(20):
        bench.message(0, bench.most, kind=int(MessageType.EAGER))
    await bench.settle()
    ends = [cycle for cycle, last in starts if last]
    words = 1 + bench.most // 64
    assert ends[-1] - ends[4] == 15 * (words + GAP), f"{ends[-1] - ends[4]} cycles for 15 frames of {words} words"
    assert not sink.incomplete()


@pytest.mark.parametrize(("buffer_bytes", "buffers"), [(256, 4), full(256, 8), full(4096, 4)])
def test_unisono_switch_egress(buffer_bytes: int, buffers: int) -> None:
    simulate("unisono_switch_egress", __file__, {"BufferBytes": buffer_bytes, "Buffers": buffers}, limit_s=300)
