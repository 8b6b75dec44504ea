"""unisono_memory_interleave: cocotbext-axi's master in front, one memory per channel behind."""

import cocotb
import pytest
from axi_memory import AXI_PORTS, PAGE, AxiMemory
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiMaster
from hdl import full, parameters, simulate


class Bench:
    """One port in front; memory as the port should see it."""

    def __init__(self, dut, **memory):
        size = parameters()
        self.rng = new_random("interleave")
        self.channels, self.block = size["Channels"], size["InterleaveBytes"]
        # Masters of other makes use one id for several bursts, started anywhere.
        self.memory = AxiMemory(dut, lanes=self.channels, unique_ids=False, aligned=False, **memory)

    def bytes_at(self, address, length):
        data = bytearray()
        for at in range(address, address + length):
            number, within = divmod(at, self.block)
            data += self.memory.pages[number % self.channels].read(number // self.channels * self.block + within, 1)
        return bytes(data)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_traffic(dut):
    """Reads and writes of one port come out in order, with every pace in front and behind."""
    bench = Bench(dut, latency=(0, 50))
    rng = bench.rng
    await start_clock_and_reset(dut)
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk_i, None, max_burst_len=16)
    for pace in (never, share(rng, 0.4), bursts(rng)):
        bench.memory.set_pause(lambda channel, lane, pace=pace: pace)
        for interface in (master.read_if.r_channel, master.write_if.b_channel):
            interface.set_pause_generator(iter(pace, None))
        image = {}
        writes = []
        for number in range(16):
            data = rng.randbytes(rng.choice((1, rng.randint(1, 200), 3000)))
            address = number * 3 * PAGE + rng.randrange(2 * PAGE)
            writes.append(cocotb.start_soon(master.write(address, data)))
            image[address] = data
        for write in writes:
            await with_timeout(write, 2000, "us")
        for address, data in image.items():
            assert bench.bytes_at(address, len(data)) == data
        reads = [(address, cocotb.start_soon(master.read(address, len(data)))) for address, data in image.items()]
        for address, read in reads:
            assert bytes((await with_timeout(read, 2000, "us")).data) == image[address]
    assert all(bench.memory.beats["r"])
    assert all(bench.memory.beats["w"])


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def order_and_speed(dut):
    """Requests of one id to a slow channel and then to a fast one are answered in that order, and nothing is lost."""
    bench = Bench(dut, latency=(2, 2))
    await start_clock_and_reset(dut)
    dut.s_axi_rready.value = 1
    dut.s_axi_awvalid.value = 0
    dut.s_axi_wvalid.value = 0
    dut.s_axi_bready.value = 1
    width = len(dut.s_axi_rdata) // 8
    size = width.bit_length() - 1
    slow = share(bench.rng, 0.9)
    bench.memory.set_pause(lambda channel, lane: slow if lane == 0 and channel == "r" else never)
    wanted, got = [], []

    async def watch():
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.s_axi_rvalid.value) and int(dut.s_axi_rready.value):
                got.append((int(dut.s_axi_rdata.value), int(dut.s_axi_rlast.value)))

    cocotb.start_soon(watch())
    for fast in (False, True):
        if fast:
            bench.memory.set_pause(lambda channel, lane: never)
        start = len(wanted)
        for number in range(40):
            address = number * bench.block + 8 * width
            for at in range(8):
                word = int.from_bytes(bench.bytes_at(address + at * width, width), "little")
                wanted.append((word, int(at == 7)))
            dut.s_axi_arvalid.value = 1
            dut.s_axi_arid.value = 0
            dut.s_axi_araddr.value = address
            dut.s_axi_arlen.value = 7
            dut.s_axi_arsize.value = size
            dut.s_axi_arburst.value = 1
            await RisingEdge(dut.clk_i)
            while not int(dut.s_axi_arready.value):
                await RisingEdge(dut.clk_i)
        dut.s_axi_arvalid.value = 0
        waited = 0
        while len(got) < len(wanted):
            await ClockCycles(dut.clk_i, 1)
            waited += 1
            assert waited < 5000
        assert got[start:] == wanted[start:]
        if fast:
            cycles = bench.memory.last["r"]
            dut._log.info(f"{len(wanted) - start} beats, the last in cycle {cycles}")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def remembers_no_more_than_fits(dut):
    """With channels that answer nothing, requests stop at Outstanding and nothing is lost."""
    bench = Bench(dut, pause=lambda channel, lane: lambda: channel == "r")
    await start_clock_and_reset(dut)
    dut.s_axi_rready.value = 1
    dut.s_axi_awvalid.value = 0
    dut.s_axi_wvalid.value = 0
    dut.s_axi_arid.value = 1
    dut.s_axi_arlen.value = 0
    dut.s_axi_arsize.value = (len(dut.s_axi_rdata) // 8).bit_length() - 1
    dut.s_axi_arburst.value = 1
    dut.s_axi_araddr.value = 0
    dut.s_axi_arvalid.value = 1
    await ClockCycles(dut.clk_i, 100)
    assert bench.memory.bursts["ar"] == parameters()["Outstanding"]


@pytest.mark.parametrize(
    "values",
    [
        {"Channels": 2, "DataBytes": 64, "InterleaveBytes": 4096, "Outstanding": 32},
        full({"Channels": 4, "DataBytes": 8, "InterleaveBytes": 4096, "Outstanding": 6, "AddressWidth": 36}),
    ],
    ids=lambda values: f"{values['Channels']}x{values['DataBytes']}",
)
def test_unisono_memory_interleave(values):
    simulate("unisono_memory_interleave", __file__, values, verilator_args=[AXI_PORTS])
