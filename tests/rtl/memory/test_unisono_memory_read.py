"""unisono_memory_read: data at any alignment, order, errors, stalls everywhere, answers in any order, throughput."""

import cocotb
import pytest
from axi_memory import AXI_PORTS, AxiMemory, random_range
from bus import ChannelSink, ChannelSource, bursts, never, new_random, paces, share, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiRamRead, AxiReadBus
from hdl import full, parameters, simulate


class Bench:
    """Commands in, packets out, and what they should be."""

    def __init__(self, dut, **memory):
        self.dut = dut
        self.rng = new_random("read")
        self.commands = ChannelSource(dut, "cmd", ("address", "bytes", "user"))
        self.sink = ChannelSink(dut, "out", ("data", "keep", "last", "user", "error"))
        self.memory = AxiMemory(dut, most_beats=parameters().get("BurstBeats", 64), **memory)
        self.width = len(dut.out_data_o) // 8
        self.address_bits = len(dut.cmd_address_i)
        self.start = self.end = 0

    def command(self, address, length):
        user = self.rng.getrandbits(len(self.dut.cmd_user_i))
        self.commands.put((address, length, user))
        return address, length, user

    async def check(self, address, length, user):
        """The next packet is this command's."""
        data = bytearray()
        words = max(1, -(-length // self.width))
        touched = address // self.width * self.width
        bad = length and self.memory.is_bad(0, touched, address + length - touched)
        if bad:  # beats, not bytes, are bad
            bad = any(self.memory.is_bad(0, beat, self.width) for beat in range(touched, address + length, self.width))
        for number in range(words):
            value, keep, last, got_user, error = await with_timeout(self.sink.get(), 400, "us")
            assert got_user == user
            assert last == (number == words - 1), f"word {number} of {words}"
            expected = length - number * self.width if last else self.width
            assert keep == (1 << expected) - 1
            data += value.to_bytes(self.width, "little")[:expected]
            if last:
                assert error == bool(bad), f"error {error} for {address:#x}+{length}"
            else:
                assert not error
        assert data == self.memory.pages[0].read(address, length), f"{address:#x}+{length}"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_traffic(dut):
    """Every pace on every channel, answers out of order and interleaved, errors in between."""
    bench = Bench(dut, latency=(0, 60), shuffle=True)
    rng, memory = bench.rng, bench.memory
    await start_clock_and_reset(dut)
    for region in (0, 1 << 20, (1 << bench.address_bits) - (1 << 24)):
        for _ in range(4):
            low = region + rng.randrange(9 * 4096) // bench.width * bench.width
            memory.bad[0].append((low, low + bench.width * rng.randint(1, 3)))
    for name, _ in paces(rng):
        for back in (never, share(rng, 0.5), bursts(rng)):
            bench.commands.pauses = [share(rng, 0.3)]
            bench.sink.pauses = [back]
            memory.set_pause(lambda channel, lane, name=name: dict(paces(rng))[name])
            longest = 3 * 4096 if bench.width > 16 else 4096
            sent = [bench.command(*random_range(rng, longest, address_bits=bench.address_bits)) for _ in range(14)]
            for command in sent:
                await bench.check(*command)
    assert memory.idle()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def every_alignment(dut):
    """All offsets of the first byte with all places of the last one, two words around."""
    bench = Bench(dut, latency=(5, 5))
    await start_clock_and_reset(dut)
    step = max(1, bench.width // 16)
    sent = []
    for offset in range(bench.width):
        for length in {*range(0, 2 * bench.width + 2, step * 5 + 1), bench.width - offset, bench.width, 1}:
            sent.append(bench.command(8192 - bench.width + offset, length))
    for command in sent:
        await bench.check(*command)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def throughput(dut):
    """64 KiB at one word per cycle, aligned or not, behind 40 cycles of latency, where so much may be in flight."""
    if parameters().get("Outstanding", 16) * parameters().get("BurstBeats", 64) < 64:
        return
    bench = Bench(dut, latency=(40, 40))
    await start_clock_and_reset(dut)
    size = 65536 if bench.width > 8 else 16384
    for address in (1 << 16, (1 << 16) + bench.width // 2 + 1):
        bench.memory.first["r"] = 0
        before, began = bench.sink.taken[0], bench.sink.cycle
        command = bench.command(address, size)
        taken = []
        while len(taken) < size // bench.width:
            await bench.sink.wait(lambda before=before, taken=taken: bench.sink.taken[0] > before + len(taken))
            taken.append(bench.sink.cycle)
        await bench.check(*command)
        words, cycles = len(taken), taken[-1] - taken[0] + 1
        dut._log.info(
            f"{size} bytes at {address:#x}: {words / cycles:.4f} words per cycle, "
            f"first word after {taken[0] - began} cycles"
        )
        assert words / cycles >= 0.98


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def no_cycle_lost_between_commands(dut):
    """Short unaligned commands run at one beat per cycle, where enough of them may be in flight."""
    if parameters().get("Commands", 16) < 16 or parameters().get("Outstanding", 16) < 16:
        return
    bench = Bench(dut, latency=(12, 12))
    await start_clock_and_reset(dut)
    sent = [bench.command(bench.width * 8 * i + i % bench.width, bench.width * 4) for i in range(60)]
    sent += [bench.command(4096 + bench.width * 8 * i, bench.width * 2) for i in range(60)]
    for command in sent:
        await bench.check(*command)
    memory = bench.memory
    beats, cycles = memory.beats["r"][0], memory.last["r"] - memory.first["r"] + 1
    dut._log.info(f"{beats} beats of {len(sent)} commands in {cycles} cycles")
    assert beats / cycles >= 0.97


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut):
    """The cycles that the module's header promises, behind a memory that answers in the next cycle."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    await ClockCycles(dut.clk_i, 5)
    command = bench.command(3, 2 * bench.width)
    seen = {}
    for cycle in range(60):
        await RisingEdge(dut.clk_i)
        for name in ("cmd_valid_i", "m_axi_arvalid", "m_axi_rvalid", "out_valid_o"):
            if int(getattr(dut, name).value):
                seen.setdefault(name, cycle)
    dut._log.info(f"{seen}")
    assert seen["m_axi_arvalid"] - seen["cmd_valid_i"] == 2
    assert seen["out_valid_o"] - seen["m_axi_rvalid"] == 9
    await bench.check(*command)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def empty_at_once(dut):
    """A command without bytes needs no memory."""
    bench = Bench(dut, pause=lambda channel, lane: lambda: True)
    await start_clock_and_reset(dut)
    for _ in range(40):
        await bench.check(*bench.command(bench.rng.getrandbits(20), 0))
    assert bench.memory.bursts["ar"] == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def never_holds_up_memory(dut):
    """With nobody taking words, requests stop but every answer is taken; nothing is lost."""
    bench = Bench(dut, latency=(3, 9), shuffle=True)
    await start_clock_and_reset(dut)
    bench.sink.pauses = [lambda: True]
    sent = [bench.command(4096 * i + 3 * i, 3000) for i in range(12)]
    await ClockCycles(dut.clk_i, 4000)
    assert bench.memory.idle(), "an answer was held up"
    assert bench.memory.beats["r"][0] > 0
    bench.sink.pauses = [never]
    for command in sent:
        await bench.check(*command)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def against_axi_ram(dut):
    """The same against cocotbext-axi's memory model, as an opinion from elsewhere."""
    rng = new_random("ram")
    await start_clock_and_reset(dut)
    ram = AxiRamRead(AxiReadBus.from_prefix(dut, "m_axi"), dut.clk_i, None, size=1 << 16)
    image = rng.randbytes(1 << 16)
    ram.write(0, image)
    ram.ar_channel.set_pause_generator(iter(share(rng, 0.4), None))
    ram.r_channel.set_pause_generator(iter(bursts(rng), None))
    commands = ChannelSource(dut, "cmd", ("address", "bytes", "user"))
    sink = ChannelSink(dut, "out", ("data", "keep", "last", "user", "error"), pause=share(rng, 0.2))
    width = len(dut.out_data_o) // 8
    for _ in range(40):
        address, length = random_range(rng, 1500, region=0)
        commands.put((address, length, 1))
        data = b""
        while True:
            value, keep, last, _, error = await with_timeout(sink.get(), 400, "us")
            data += value.to_bytes(width, "little")[: keep.bit_length()]
            assert not error
            if last:
                break
        assert data == image[address : address + length]


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
def test_unisono_memory_read(values):
    simulate("unisono_memory_read", __file__, values, verilator_args=[AXI_PORTS])
