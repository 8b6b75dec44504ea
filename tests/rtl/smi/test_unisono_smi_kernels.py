"""unisono_smi_cks, unisono_smi_ckr: packets go where the table says, in order; what cannot go holds up nobody."""

from collections import defaultdict, deque

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate
from smi_support import SEND, SYNCH, Packet, packet_of

SIZE = 32
RANKS, OWN, PORTS = 7, 3, 3


class Kernel:
    """A CKS or CKR: writes into its inner inputs when they have room, watches its output."""

    def __init__(self, dut, kind):
        self.dut, self.kind = dut, kind
        self.links, self.link, self.ends = (parameters()[name] for name in ("Links", "Link", "Endpoints"))
        self.virtual = parameters()["VirtualChannels"]
        self.channels = 2 * self.virtual
        self.rng = new_random(kind)
        self.table = {}

    async def start(self):
        dut = self.dut
        dut.wr_en_i.value = dut.in_valid_i.value = 0
        if self.kind == "cks":
            dut.ranks_i.value, dut.end_valid_i.value = RANKS, 0
        else:
            dut.ports_i.value, dut.rank_i.value, dut.link_valid_i.value, dut.end_room_i.value = PORTS, OWN, 0, 0
        dut.out_room_i.value = 0
        await start_clock_and_reset(dut)
        if self.kind == "cks":
            for channel in range(self.virtual):
                for to in range(RANKS):
                    code = self.rng.choice([*range(self.links + 1), 15])
                    entry = code | self.rng.randrange(self.virtual) << 4
                    await self.write(channel * parameters()["MaxRanks"] + to, entry)
                    self.table[channel, to] = entry
        else:
            for place in range(2 * PORTS):
                entry = self.rng.randrange(self.links + self.ends + 2)
                await self.write(place, entry)
                self.table[place] = entry

    async def write(self, address, entry):
        dut = self.dut
        dut.wr_en_i.value, dut.wr_address_i.value, dut.wr_entry_i.value = 1, address, entry
        await RisingEdge(dut.clk_i)
        dut.wr_en_i.value = 0

    def packet(self):
        rng = self.rng
        return Packet(
            src=rng.randrange(RANKS),
            dst=rng.randrange(RANKS + 2) if self.kind == "cks" or rng.random() < 0.4 else OWN,
            port=rng.randrange(PORTS + 2),
            op=rng.choice((SEND, SYNCH, SEND)),
            count=rng.randrange(8),
            payload=rng.randbytes(28),
        )

    def other(self, number):
        return number + (number >= self.link)

    def way(self, packet, channel):
        """Target and channel, or None for a packet that nobody wants."""
        if self.kind == "cks":
            if packet.dst >= RANKS:
                return None
            entry = self.table[channel % self.virtual, packet.dst]
            code, on = entry & 15, entry >> 4
            if code > self.links:
                return None
            target = self.links if code == 0 else self.link if code == 1 else self.other(code - 2)
            return target, channel // self.virtual * self.virtual + on
        if packet.dst != OWN:
            return self.link, channel
        if packet.port >= PORTS:
            return None
        entry = self.table[2 * packet.port + (packet.op == SYNCH)]
        if entry == 0 or entry >= self.links + self.ends:
            return None
        return (entry if entry >= self.links else self.other(entry - 1)), channel


async def traffic(dut, kind):
    bench = Kernel(dut, kind)
    await bench.start()
    rng = bench.rng
    links, ends, channels = bench.links, bench.ends, bench.channels
    targets = links + 1 if kind == "cks" else links
    if kind == "ckr":
        targets += ends
    expected = defaultdict(deque)
    sent = got = strays = 0
    shut = set()
    for cycle in range(5000):
        if cycle % 250 == 0:
            # Some targets are full on some channels; everything else goes on.
            shut = {(rng.randrange(targets), rng.randrange(channels)) for _ in range(rng.randrange(4))}
            if cycle >= 4000:
                shut = set()
        valid = channel_bits = data = 0
        written = []
        if cycle < 4200:
            room = int(dut.in_room_o.value)
            for i in range(links):
                on = rng.randrange(channels)
                if not room >> (i * channels + on) & 1 or rng.random() < 0.4:
                    continue
                packet = bench.packet()
                # Control and data keep to their channels.
                on = on % bench.virtual + (bench.virtual if packet.op == SYNCH else 0)
                if not room >> (i * channels + on) & 1:
                    continue
                valid |= 1 << i
                channel_bits |= on << i * (channels - 1).bit_length()
                data |= packet.word(SIZE) << i * SIZE * 8
                written.append((i, on, packet))
        dut.in_valid_i.value, dut.in_channel_i.value, dut.in_data_i.value = valid, channel_bits, data
        room = 0
        for t in range(targets):
            for c in range(channels):
                if (t, c) not in shut and (rng.random() < 0.9):
                    room |= 1 << t * channels + c
        if kind == "cks":
            dut.out_room_i.value = room
        else:
            dut.out_room_i.value = room & ((1 << links * channels) - 1)
            # An endpoint has one queue for all channels.
            dut.end_room_i.value = sum(1 << e for e in range(ends) if (links + e, 0) not in shut)
        for i, on, packet in written:
            way = bench.way(packet, on)
            expected[i, on, way].append(packet.word(SIZE))
            sent += 1
        await ReadOnly()
        out = int(dut.out_valid_o.value)
        if kind == "ckr":
            out |= int(dut.end_valid_o.value) << links
        stray = int(dut.stray_o.value)
        assert out & (out - 1) == 0
        assert not (out and stray)
        if out or stray:
            word = int(dut.out_data_o.value)
            on = int(dut.out_channel_o.value)
            way = (out.bit_length() - 1, on) if out else None
            # It is the oldest of some input and channel that goes this way.
            keys = [key for key, queue in expected.items() if key[2] == way and queue and queue[0] == word]
            assert keys, f"cycle {cycle}: {packet_of(word, SIZE)} comes out at {way}"
            expected[keys[0]].popleft()
            got += 1
            strays += stray
        await RisingEdge(dut.clk_i)
    assert sent == got > 1000
    assert strays > 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cks_traffic(dut):
    await traffic(dut, "cks")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ckr_traffic(dut):
    await traffic(dut, "ckr")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def channels_pass_each_other(dut):
    """CKS: one channel to the link is shut and its queue full; the other goes on, and so does another target."""
    bench = Kernel(dut, "cks")
    await bench.start()
    links, channels = bench.links, bench.channels
    for to in range(RANKS):
        for channel in range(bench.virtual):
            await bench.write(channel * parameters()["MaxRanks"] + to, (1 if to == OWN else 0) | channel << 4)
    source = (bench.link + 1) % links
    all_room = (1 << (links + 1) * channels) - 1
    dut.out_room_i.value = all_room & ~(1 << links * channels)

    async def feed(packet, on):
        await ReadOnly()
        room = int(dut.in_room_o.value) >> (source * channels + on) & 1
        await RisingEdge(dut.clk_i)
        if not room:
            return False
        dut.in_valid_i.value = 1 << source
        dut.in_channel_i.value = on << source * (channels - 1).bit_length()
        dut.in_data_i.value = packet.word(SIZE) << source * SIZE * 8
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = 0
        return True

    fed = 0
    while await feed(Packet(1, 5, 0, SEND, 7, bytes([fed] * 28)), 0):
        fed += 1
    assert fed >= 4
    assert await feed(Packet(2, 5, 1, SYNCH, 0, b"control" * 4), bench.virtual)
    for _ in range(20):
        await ReadOnly()
        if int(dut.out_valid_o.value):
            break
        await RisingEdge(dut.clk_i)
    assert int(dut.out_valid_o.value) == 1 << links
    assert packet_of(int(dut.out_data_o.value), SIZE).payload == b"control" * 4


@pytest.mark.parametrize(
    ("links", "link", "ends", "virtual"), [(4, 1, 2, 1), full(3, 0, 1, 2), full(8, 7, 1, 3), full(2, 0, 0, 1)]
)
@pytest.mark.parametrize("kind", ["cks", "ckr"])
def test_unisono_smi_kernels(kind, links, link, ends, virtual):
    given = {"Links": links, "Link": link, "Endpoints": ends, "VirtualChannels": virtual, "Depth": 8}
    given["MaxRanks" if kind == "cks" else "MaxPorts"] = 8
    cases = r"cks_traffic|channels_pass_each_other" if kind == "cks" else "ckr_traffic"
    for case in cases.split("|"):
        simulate(f"unisono_smi_{kind}", __file__, given, testcase=case)
