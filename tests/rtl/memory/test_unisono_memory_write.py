"""unisono_memory_write: every byte in its place and no other, errors, wrong lengths, stalls everywhere, throughput."""

import cocotb
import pytest
from axi_memory import AXI_PORTS, AxiMemory, random_range
from bus import (
    ChannelSink,
    ChannelSource,
    Packet,
    StreamSource,
    bursts,
    never,
    new_random,
    paces,
    share,
    start_clock_and_reset,
)
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiRamWrite, AxiWriteBus
from hdl import full, parameters, simulate


class Bench:
    """Commands and packets in, completions out, and what memory should hold."""

    def __init__(self, dut, **memory):
        self.dut = dut
        self.rng = new_random("write")
        self.commands = ChannelSource(dut, "cmd", ("address", "bytes", "user"))
        self.packets = StreamSource(dut, "in")
        self.done = ChannelSink(dut, "done", ("user", "error"))
        self.memory = AxiMemory(dut, most_beats=parameters().get("BurstBeats", 64), **memory)
        self.width = len(dut.in_data_i) // 8
        self.address_bits = len(dut.cmd_address_i)
        self.expected = {}  # what memory holds, byte by byte, where something was written

    def put(self, address, length, given=None):
        """A command of `length` bytes and a packet of `given`; returns what its completion should be."""
        given = length if given is None else given
        user = self.rng.getrandbits(len(self.dut.cmd_user_i))
        packet = Packet(self.rng.randbytes(given))
        self.commands.put((address, length, user))
        self.packets.send(packet)
        written = min(length, given)
        error = given != length
        for i in range(written):
            beat = (address + i) // self.width * self.width
            if self.memory.is_bad(0, beat, self.width):
                error = True
            else:
                self.expected[address + i] = packet.data[i]
        return user, int(error)

    async def check(self, completion):
        """The next completion is this."""
        assert await with_timeout(self.done.get(), 400, "us") == completion

    def compare(self, before):
        """Memory is as expected everywhere that was touched."""
        pages = self.memory.pages[0].pages
        for number, page in pages.items():
            wanted = bytearray(before.page(number))
            for i in range(4096):
                wanted[i] = self.expected.get(number * 4096 + i, wanted[i])
            assert page == wanted, f"page {number:#x}: {[hex(i) for i in range(4096) if page[i] != wanted[i]][:20]}"
        assert {address // 4096 for address in self.expected} <= set(pages)


def untouched(memory):
    """The memory's content before anything was written."""
    return type(memory.pages[0])(memory.pages[0].seed)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_traffic(dut):
    """Every pace on every channel, answers out of order, errors and wrong lengths in between."""
    bench = Bench(dut, latency=(0, 60), shuffle=True)
    rng, memory = bench.rng, bench.memory
    await start_clock_and_reset(dut)
    for region in (0, 1 << 20, (1 << bench.address_bits) - (1 << 24)):
        for _ in range(4):
            low = region + rng.randrange(9 * 4096) // bench.width * bench.width
            memory.bad[0].append((low, low + bench.width * rng.randint(1, 3)))
    for name, _ in paces(rng):
        for source in (never, share(rng, 0.5), bursts(rng)):
            bench.commands.pauses = [share(rng, 0.3)]
            bench.packets.pauses = [source]
            bench.done.pauses = [dict(paces(rng))[name]]
            memory.set_pause(lambda channel, lane, name=name: dict(paces(rng))[name])
            longest = 3 * 4096 if bench.width > 16 else 4096
            done = []
            for _ in range(14):
                address, length = random_range(rng, longest, address_bits=bench.address_bits)
                given = length
                if rng.random() < 0.25:
                    given = max(
                        0,
                        rng.choice(
                            (
                                0,
                                length - 1,
                                length + 1,
                                length + bench.width,
                                rng.randint(0, 4096),
                                length // bench.width * bench.width,
                            )
                        ),
                    )
                done.append(bench.put(address, length, given))
            for completion in done:
                await bench.check(completion)
            assert memory.idle(), "a completion came before its answers"
    bench.compare(untouched(memory))


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def every_alignment(dut):
    """All offsets of the first byte with many places of the last one."""
    bench = Bench(dut, latency=(5, 5))
    await start_clock_and_reset(dut)
    step = max(1, bench.width // 16)
    done = []
    for offset in range(bench.width):
        for length in sorted({*range(0, 2 * bench.width + 2, step * 5 + 1), bench.width - offset, bench.width, 1}):
            done.append(bench.put(8192 - bench.width + offset, length))
    for completion in done:
        await bench.check(completion)
    bench.compare(untouched(bench.memory))


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def wrong_lengths(dut):
    """All small commands with all small packets: only the common part is written, and the engine goes on."""
    bench = Bench(dut, latency=(1, 20), shuffle=True)
    await start_clock_and_reset(dut)
    width = bench.width
    lengths = [0, 1, width - 1, width, width + 1, 2 * width, 2 * width + 3]
    done = []
    for address in (4096 - width, 4096 - 3, 5, 128):
        for length in lengths:
            for given in lengths:
                done.append(bench.put(address, length, given))
    for completion in done:
        await bench.check(completion)
    bench.compare(untouched(bench.memory))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nothing_is_written_for_nothing(dut):
    """Commands or packets without bytes complete in order, with no burst."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    done = [bench.put(bench.rng.getrandbits(20), 0) for _ in range(20)]
    done += [bench.put(64, 0, 3 * bench.width), bench.put(64, 100, 0), bench.put(64, 0)]
    for completion in done:
        await bench.check(completion)
    assert bench.memory.bursts["aw"] == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def no_data_without_command(dut):
    """Data waits for its command; a completion waits for its answers."""
    bench = Bench(dut, pause=lambda channel, lane: lambda: channel == "b")
    await start_clock_and_reset(dut)
    bench.packets.send(Packet(bench.rng.randbytes(3 * bench.width)))
    await ClockCycles(dut.clk_i, 50)
    assert bench.packets.sent[0] == 0
    bench.commands.put((64, 3 * bench.width, 1))
    await bench.packets.drain()
    await ClockCycles(dut.clk_i, 50)
    assert bench.memory.beats["w"][0] == 3
    assert not bench.done.words[0], "completed without an answer"
    bench.memory.set_pause(lambda channel, lane: never)
    await bench.check((1, 0))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def never_holds_up_memory(dut):
    """A burst is not requested before its data is there; answers are taken though completions are not."""
    bench = Bench(dut, latency=(0, 5))
    await start_clock_and_reset(dut)
    bench.done.pauses = [lambda: True]
    bench.commands.put((0, 40 * bench.width, 1))
    beats = min(40, parameters().get("BurstBeats", 64))
    for _ in range(beats - 1):
        bench.packets.put((bench.rng.getrandbits(bench.width * 8), (1 << bench.width) - 1, 0, 0, 0))
    await ClockCycles(dut.clk_i, 200)
    assert bench.memory.bursts["aw"] == 0
    for i in range(41 - beats):
        bench.packets.put((bench.rng.getrandbits(bench.width * 8), (1 << bench.width) - 1, int(i == 40 - beats), 0, 0))
    await ClockCycles(dut.clk_i, 300)
    assert bench.memory.bursts["aw"] == -(-40 // parameters().get("BurstBeats", 64))
    assert bench.memory.idle(), "an answer was held up"
    bench.done.pauses = [never]
    await bench.check((1, 0))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def more_commands_than_slots(dut):
    """Completions that nobody takes stop the writer in time, and none is lost."""
    bench = Bench(dut, latency=(0, 5), shuffle=True)
    await start_clock_and_reset(dut)
    bench.done.pauses = [lambda: True]
    slots = parameters().get("Outstanding", 16)
    done = [bench.put(64 * number, 1) for number in range(3 * slots)]
    await ClockCycles(dut.clk_i, 40 * slots)
    assert bench.memory.idle(), "an answer was held up"
    assert bench.memory.bursts["aw"] == slots + 2, "a slot each, and two completions on offer"
    bench.done.pauses = [never]
    for completion in done:
        await bench.check(completion)
    bench.compare(untouched(bench.memory))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def throughput(dut):
    """64 KiB at one word per cycle, aligned or not, behind 40 cycles of latency, where so much may be in flight."""
    if parameters().get("Outstanding", 16) * parameters().get("BurstBeats", 64) < 64:
        return
    bench = Bench(dut, latency=(40, 40))
    await start_clock_and_reset(dut)
    size = 65536 if bench.width > 8 else 16384
    for address in (1 << 16, (1 << 18) + bench.width // 2 + 1):
        bench.memory.first["w"] = 0
        began, sent = bench.done.cycle, bench.packets.sent[0]
        completion = bench.put(address, size)
        while bench.packets.sent[0] == sent:
            await RisingEdge(dut.clk_i)
        first = bench.done.cycle
        while bench.packets.sent[0] - sent < size // bench.width:
            await RisingEdge(dut.clk_i)
        taken = bench.done.cycle - first + 1
        await bench.check(completion)
        words = size // bench.width
        cycles = bench.memory.last["w"] - bench.memory.first["w"] + 1
        dut._log.info(
            f"{size} bytes at {address:#x}: in {words / taken:.4f}, out {words / cycles:.4f} words per cycle,"
            f" completed {bench.done.cycle - began} cycles after the command"
        )
        assert words / cycles >= 0.98
        assert words / taken >= 0.98
    bench.compare(untouched(bench.memory))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def no_cycle_lost_between_commands(dut):
    """Short unaligned commands run at one beat per cycle, where enough of them may be in flight."""
    if parameters().get("Outstanding", 16) < 16:
        return
    bench = Bench(dut, latency=(8, 8))
    await start_clock_and_reset(dut)
    done = [bench.put(bench.width * 8 * i + i % bench.width, bench.width * 4) for i in range(60)]
    done += [bench.put((1 << 16) + bench.width * 8 * i, bench.width * 2) for i in range(60)]
    for completion in done:
        await bench.check(completion)
    memory = bench.memory
    beats, cycles = memory.beats["w"][0], memory.last["w"] - memory.first["w"] + 1
    dut._log.info(f"{beats} beats of {len(done)} commands in {cycles} cycles")
    assert beats / cycles >= 0.97
    bench.compare(untouched(memory))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut):
    """The cycles that the module's header promises, behind a memory that answers in the next cycle."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    await ClockCycles(dut.clk_i, 5)
    completion = bench.put(0, bench.width)
    seen = {}
    for cycle in range(60):
        await RisingEdge(dut.clk_i)
        for name in ("in_ready_o", "m_axi_awvalid", "m_axi_wvalid", "m_axi_bvalid", "done_valid_o"):
            if int(getattr(dut, name).value):
                seen.setdefault(name, cycle)
    dut._log.info(f"{seen}")
    assert seen["m_axi_awvalid"] - seen["in_ready_o"] == 6
    assert seen["m_axi_wvalid"] - seen["in_ready_o"] == 8
    assert seen["done_valid_o"] - seen["m_axi_bvalid"] == 2
    await bench.check(completion)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def against_axi_ram(dut):
    """The same against cocotbext-axi's memory model, as an opinion from elsewhere."""
    rng = new_random("ram")
    await start_clock_and_reset(dut)
    ram = AxiRamWrite(AxiWriteBus.from_prefix(dut, "m_axi"), dut.clk_i, None, size=1 << 16)
    image = bytearray(rng.randbytes(1 << 16))
    ram.write(0, bytes(image))
    ram.aw_channel.set_pause_generator(iter(share(rng, 0.4), None))
    ram.w_channel.set_pause_generator(iter(bursts(rng), None))
    ram.b_channel.set_pause_generator(iter(share(rng, 0.4), None))
    commands = ChannelSource(dut, "cmd", ("address", "bytes", "user"))
    packets = StreamSource(dut, "in", pause=share(rng, 0.2))
    done = ChannelSink(dut, "done", ("user", "error"))
    for _ in range(40):
        address, length = random_range(rng, 1500, region=0)
        data = rng.randbytes(length)
        commands.put((address, length, 1))
        packets.send(Packet(data))
        image[address : address + length] = data
        assert await with_timeout(done.get(), 400, "us") == (1, 0)
        assert ram.read(0, 1 << 16) == image


@pytest.mark.parametrize(
    "values",
    [
        {"DataBytes": 64},
        full({"DataBytes": 8, "AddressWidth": 40, "UserWidth": 3, "Commands": 4}),
        full({"DataBytes": 32, "BurstBeats": 16, "BufferWords": 64, "Outstanding": 32}),
        {"DataBytes": 16, "BurstBeats": 2, "BufferWords": 16, "Outstanding": 2, "UserWidth": 1},
    ],
    ids=lambda values: "-".join(f"{name}{value}" for name, value in values.items()),
)
def test_unisono_memory_write(values):
    simulate("unisono_memory_write", __file__, values, verilator_args=[AXI_PORTS])
