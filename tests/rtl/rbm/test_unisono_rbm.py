"""unisono_rbm, the whole: segments come before their call, before their arrival, behind it; nothing may be lost."""

from collections import Counter, deque

import cocotb
from bus import Packet, StreamSink, StreamSource, new_random, share, start_clock_and_reset
from calls import COMMUNICATOR, Context, drive_context
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from hdl import scaled, simulate
from records import load, pack

SEGMENT, BUFFER, BUFFERS, COMMUNICATORS = 64, 8192, 1024, 2
INPUTS = (
    "clear_valid",
    "clear_slot",
    "clear_failed",
    "begins_valid",
    "begins_communicator",
    "partner_valid",
    "partner",
)
INPUTS += ("active", "communicator", "received_valid", "received", "written", "written_error", "offer_answer")
INPUTS += ("offer_accepted", "post_valid", "post", "head_valid", "head_pair", "head_entry", "take_valid", "take_pair")
INPUTS += ("partner", "adopt_valid", "adopt_pair", "grant_ready", "release_valid", "release_buffer", "transmit_ready")
INPUTS += ("peer",)


class Manager:
    """What stands around the manager: Rx, memory, the dispatcher."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        for name in INPUTS:
            getattr(dut, f"{name}_i").value = 0
        dut.communicator_i.value = pack(COMMUNICATOR, {"segment_bytes": SEGMENT, "number": 9})
        dut.kick_ready_i.value = dut.transmit_ready_i.value = dut.write_command_ready_i.value = 1
        for slot in range(8):
            drive_context(dut, slot, Context(0, 0, 0, False, 0))
        self.payload = StreamSource(dut, "payload", pause=share(rng, 0.3))
        self.write = StreamSink(dut, "write", pause=share(rng, 0.3))
        self.bypass = StreamSink(dut, "bypass", pause=share(rng, 0.3))
        self.written: dict[int, bytes] = {}
        self.commands: deque[int] = deque()
        self.offered: list[tuple[int, int]] = []  # arrivals whose segments went past the buffers, and how many bytes
        self.owed, self.fails = Counter(), []

    async def watch(self):
        """Notes what the manager says, and answers offers."""
        dut, answer = self.dut, None
        while True:
            await FallingEdge(dut.clk_i)
            dut.offer_answer_i.value = dut.offer_accepted_i.value = 0
            if int(dut.write_command_valid_o.value):
                self.commands.append(int(dut.write_command_address_o.value) // BUFFER)
            if int(dut.owed_valid_o.value):
                self.owed[int(dut.owed_communicator_o.value), int(dut.owed_peer_o.value)] += 1
            if int(dut.fail_valid_o.value):
                self.fails.append(int(dut.fail_code_o.value))
            if int(dut.offer_valid_o.value) and answer is None:
                answer = self.rng.choice((0, 1, 3))
            elif answer:
                answer -= 1
            if int(dut.offer_valid_o.value) and answer == 0:
                accepts, answer = self.rng.random() < 0.7, None
                dut.offer_answer_i.value, dut.offer_accepted_i.value = 1, accepts
                self.seen["accepted" if accepts else "refused"] += 1
                if accepts:
                    self.offered.append((int(dut.offer_id_o.value), int(dut.offer_bytes_o.value)))

    async def memory(self):
        """Takes what is written; answers later."""
        while True:
            packet = await self.write.receive(timeout_us=4000)
            self.written[self.commands.popleft()] = packet.data
            for _ in range(self.rng.choice((1, 3, 30))):
                await FallingEdge(self.dut.clk_i)
            self.dut.written_i.value = 1
            await FallingEdge(self.dut.clk_i)
            self.dut.written_i.value = 0

    async def until(self, output):
        """Waits for one cycle in which an output is high."""
        while not int(getattr(self.dut, output).value):
            await FallingEdge(self.dut.clk_i)

    async def segment(self, header, communicator, source, data):
        """A header, then its payload."""
        raw = int.from_bytes(header.encode(), "little")
        self.dut.received_i.value = (raw << 4 | communicator) << 6 | source
        self.dut.received_valid_i.value = 1
        if data:
            self.payload.send(Packet(data))
        await FallingEdge(self.dut.clk_i)
        await self.until("received_ready_o")
        await RisingEdge(self.dut.clk_i)
        self.dut.received_valid_i.value = 0
        await FallingEdge(self.dut.clk_i)

    async def ask(self, name, answer, **fields):
        """Something of the dispatcher, until it is answered."""
        for field, value in fields.items():
            getattr(self.dut, f"{name}_{field}_i" if field else f"{name}_i").value = value
        getattr(self.dut, f"{name}_valid_i").value = 1
        await FallingEdge(self.dut.clk_i)
        await self.until(answer)
        value = int(self.dut.head_o.value)
        await RisingEdge(self.dut.clk_i)
        getattr(self.dut, f"{name}_valid_i").value = 0
        await FallingEdge(self.dut.clk_i)
        return value

    async def clear(self, slot, failed):
        self.dut.clear_slot_i.value, self.dut.clear_failed_i.value, self.dut.clear_valid_i.value = slot, failed, 1
        await FallingEdge(self.dut.clk_i)
        await self.until("clear_done_o")
        await RisingEdge(self.dut.clk_i)
        self.dut.clear_valid_i.value = 0
        await FallingEdge(self.dut.clk_i)


class Message:
    """One of a call, in segments, and what of it has been taken."""

    def __init__(self, rng, spec, call, peer, entry):
        self.peer, self.entry, self.tag = peer, entry, rng.getrandbits(24)
        self.data = rng.randbytes(rng.choice((0, 1, SEGMENT, rng.randint(1, 4 * SEGMENT))))
        self.taken, self.last, self.posted = b"", False, False
        offsets = range(0, max(1, len(self.data)), SEGMENT)
        self.segments = deque(
            (
                spec.Header(
                    type=spec.MessageType.EAGER,
                    offset=at,
                    message_bytes=len(self.data),
                    segment_bytes=len(self.data[at : at + SEGMENT]),
                    last=at + SEGMENT >= len(self.data),
                    sequence=call.sequence,
                    tag=self.tag,
                    signature=call.signature,
                ),
                self.data[at : at + SEGMENT],
            )
            for at in offsets
        )


async def take(manager, slot, message, entry_bits):
    """Takes the oldest segment of a posted arrival, if there is one in a buffer."""
    pair = slot << 6 | message.peer
    shown = await manager.ask("head", "head_answer_o", pair=pair, entry=message.entry)
    if not shown >> 73 & 1:
        return
    buffer, size, last = shown >> 63 & 1023, shown >> 49 & 0x3FFF, shown >> 48 & 1
    assert shown & (1 << 48) - 1 == len(message.data)
    await manager.ask("take", "take_ready_o", pair=pair)
    if size:
        message.taken += manager.written.pop(buffer)
        manager.dut.release_buffer_i.value, manager.dut.release_valid_i.value = buffer, 1
        await FallingEdge(manager.dut.clk_i)
        manager.dut.release_valid_i.value = 0
    message.last = bool(last)
    manager.seen["taken"] += 1


async def gather(manager, slot, messages, entry_bits):
    """What went past the buffers."""
    for arrival, size in manager.offered:
        message = next(one for one in messages if one.entry == arrival & (1 << entry_bits) - 1)
        assert arrival >> entry_bits == slot
        packet = await manager.bypass.receive()
        assert len(packet.data) == size
        message.taken += packet.data
    manager.offered.clear()


async def one_call(manager, number, slot, communicator, entry_bits, sequences):
    rng, dut, spec = manager.rng, manager.dut, load()
    call = Context(rng.getrandbits(32), 0, sequences[communicator], False, communicator)
    peers = rng.sample(range(64), rng.choice((1, 2, 4)))
    messages = [Message(rng, spec, call, peer, entry) for entry, peer in enumerate(peers)]
    total = {message.peer: len(message.segments) for message in messages}
    fails, begun = rng.random() < 0.25, False
    drive_context(dut, slot, call)
    while True:
        coming = [message for message in messages if message.segments]
        unposted = [message for message in messages if not message.posted]
        open_ = [message for message in messages if message.posted and not message.last]
        if begun and fails and rng.random() < 0.2:
            break
        choice = rng.random()
        if not begun and (not coming or rng.random() < 0.2):
            begun = True
            dut.active_i.value = 1 << slot
            manager.seen["begun late"] += sum(total.values()) > sum(len(one.segments) for one in messages)
            await FallingEdge(dut.clk_i)
        elif coming and choice < 0.5:
            message = rng.choice(coming)
            header, data = message.segments.popleft()
            await manager.segment(header, communicator, message.peer, data)
            await gather(manager, slot, messages, entry_bits)
        elif begun and unposted and choice < 0.7:
            message = rng.choice(unposted)
            post = (slot << entry_bits | message.entry) << 6 | message.peer
            post = ((post << 24 | message.tag) << 48 | len(message.data)) << 4
            await manager.ask("post", "post_ready_o", **{"": post})
            message.posted = True
        elif begun and open_:
            message = rng.choice(open_)
            await take(manager, slot, message, entry_bits)
            message.last |= bool(message.data) and len(message.taken) == len(message.data)
        elif begun and not coming and not unposted:
            break
    if not fails:
        for message in messages:
            assert message.taken == message.data, f"call {number}: peer {message.peer}"
    # A call that has ended: what still comes for it is dropped. Before that, all payload has found its way.
    dut.active_i.value = 0
    for message in messages:
        for header, data in message.segments:
            await manager.segment(header, communicator, message.peer, data)
            manager.seen["over"] += 1
    for _ in range(80):
        await FallingEdge(dut.clk_i)
    await gather(manager, slot, messages, entry_bits)
    await manager.clear(slot, fails)
    for _ in range(40):
        await FallingEdge(dut.clk_i)
    manager.written.clear()
    assert int(dut.free_buffers_o.value) == BUFFERS, f"call {number}"
    assert manager.owed == {(communicator, peer): count for peer, count in total.items()}, f"call {number}"
    assert not manager.fails
    manager.owed.clear()
    sequences[communicator] += 1
    manager.seen["failed" if fails else "ended"] += 1


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("rbm")
    manager, sequences = Manager(dut, rng), [rng.getrandbits(31) for _ in range(COMMUNICATORS)]
    entry_bits = len(dut.head_entry_i)
    await start_clock_and_reset(dut)
    cocotb.start_soon(manager.watch())
    cocotb.start_soon(manager.memory())
    for _ in range(1100):
        await FallingEdge(dut.clk_i)
    for number in range(scaled(300, 100)):
        communicator = rng.randrange(COMMUNICATORS)
        await with_timeout(one_call(manager, number, rng.randrange(8), communicator, entry_bits, sequences), 200, "us")
    for what in ("accepted", "refused", "taken", "begun late", "over", "failed", "ended"):
        assert manager.seen[what] > 5, manager.seen


def test_unisono_rbm():
    simulate("unisono_rbm", __file__, {"DataBytes": 8, "EpochWidth": 3})
