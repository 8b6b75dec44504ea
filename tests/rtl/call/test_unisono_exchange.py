"""unisono_exchange: the whole map against spec/exchange.yaml, with random strobes and random timing."""

from __future__ import annotations

import logging
from pathlib import Path

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from call_bench import random_pause
from call_descriptors import spec
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from hdl import full, parameters, simulate

REGISTER = spec.Exchange
SIZES = {int(r.offset): r.size for r in spec.REGISTERS}
ACCESS = {int(r.offset): r.access for r in spec.REGISTERS}
SETTINGS = ("EAGER_LIMIT", "SEGMENT_BYTES", "RX_BUFFER_COUNT", "RX_BUFFER_BYTES", "TIMEOUT_US")
TABLES = ("TRANSPORT", "PROGRAMS", "COMMUNICATORS", "MEMBERS")
CAPABILITY = 0x0123_4567_89AB_CDEF
RESET = {"EAGER_LIMIT": 4096, "SEGMENT_BYTES": 4096, "RX_BUFFER_COUNT": 4, "RX_BUFFER_BYTES": 4096, "TIMEOUT_US": 777}


def register_of(address):
    """The register that has the word at this address, or None."""
    return next((at for at, size in SIZES.items() if at <= address < at + size), None)


class Bench:
    """AXI on one side; on the other, memories behind the ports, which answer after ReadLatency cycles."""

    def __init__(self, dut):
        self.dut = dut
        self.rng = new_random("exchange")
        logging.getLogger("cocotb").getChild(f"{dut._name}.s_axi").setLevel(logging.WARNING)
        self.axi = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk_i)
        self.tables = {
            at + 4 * word: self.rng.getrandbits(32)
            for at, size in ((int(REGISTER[name]), SIZES[int(REGISTER[name])]) for name in TABLES)
            for word in range(size // 4)
        }
        self.rx_buffers = bytearray(self.rng.randbytes(4096))
        self.counters = [self.rng.getrandbits(64) for _ in range(64)]
        self.firmware: dict[int, int] = {}
        self.quads: list[int] = []
        self.take_quads = True
        self.responses: list[tuple[int, int]] = []
        for name in ("ready_i", "waits_for_cpu_i", "outstanding_i", "active_i", "failed_i", "failed_response_i"):
            getattr(dut, name).value = 0
        dut.quad_ready_i.value = dut.response_valid_i.value = dut.response_i.value = 0
        dut.table_ready_i.value = dut.table_valid_i.value = 0
        cocotb.start_soon(self._ports())

    def pauses(self, part):
        for channel in (
            *(self.axi.write_if.aw_channel, self.axi.write_if.w_channel, self.axi.write_if.b_channel),
            *(self.axi.read_if.ar_channel, self.axi.read_if.r_channel),
        ):
            channel.set_pause_generator(random_pause(self.rng, part))

    async def read(self, address, size=4):
        result = await with_timeout(self.axi.read(address, size), 20, "us")
        return result.resp, int.from_bytes(result.data, "little")

    async def write(self, address, value, size=4):
        result = await with_timeout(self.axi.write(address, value.to_bytes(size, "little")), 20, "us")
        return result.resp

    async def get(self, name, size=4):
        resp, value = await self.read(int(REGISTER[name]), size)
        assert resp == AxiResp.OKAY
        return value

    async def put(self, name, value, size=4):
        assert await self.write(int(REGISTER[name]), value, size) == AxiResp.OKAY

    async def _ports(self):
        dut, rng = self.dut, self.rng
        latency = parameters()["ReadLatency"]
        pipes = [[None] * (latency - 1) for _ in range(3)]
        ports = ("rx_buffer_data_i", "counter_i", "firmware_data_i")
        table_busy = 0
        table_read = None
        edge = RisingEdge(dut.clk_i)
        quad_ready = 0
        offered = None
        while True:
            await edge
            if not int(dut.rst_ni.value):
                continue
            dut.table_valid_i.value = 0
            if int(dut.table_write_o.value) or int(dut.table_read_o.value):
                assert table_busy == 0, "a table was used that was not ready"
                at = 4 * int(dut.table_address_o.value)
                table_busy = rng.choice((0, 0, 1, 12))
                if int(dut.table_write_o.value):
                    self.tables[at] = int(dut.table_data_o.value)
                else:
                    table_read = at
                    table_busy += 1
            elif table_busy:
                table_busy -= 1
            if table_busy == 0 and table_read is not None:
                dut.table_valid_i.value = 1
                dut.table_data_i.value = self.tables[table_read]
                table_read = None
            dut.table_ready_i.value = int(table_busy == 0)
            answers = [None] * 3
            if int(dut.rx_buffer_read_o.value):
                at = 4 * int(dut.rx_buffer_address_o.value)
                answers[0] = int.from_bytes(self.rx_buffers[at : at + 4], "little")
            if int(dut.counter_read_o.value):
                answers[1] = self.counters[int(dut.counter_index_o.value)]
            if int(dut.firmware_valid_o.value):
                at = int(dut.firmware_address_o.value)
                if int(dut.firmware_write_o.value):
                    self.firmware[at] = int(dut.firmware_data_o.value)
                else:
                    answers[2] = self.firmware.get(at, 0)
            for i, port in enumerate(ports):
                pipes[i].append(answers[i])
                value = pipes[i].pop(0)
                getattr(dut, port).value = rng.getrandbits(64 if i == 1 else 32) if value is None else value
            if quad_ready and int(dut.quad_valid_o.value):
                self.quads.append(int(dut.quad_data_o.value))
            quad_ready = int(self.take_quads and rng.random() < 0.5)
            dut.quad_ready_i.value = quad_ready
            if offered is not None and int(dut.response_ready_o.value):
                offered = None
                dut.response_valid_i.value = 0
            if offered is None and self.responses and rng.random() < 0.3:
                offered = self.responses.pop(0)
                dut.response_valid_i.value = 1
                dut.response_i.value = offered[1] << 32 | offered[0]


async def begin(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    return bench


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def constants_and_settings(dut):
    bench = await begin(dut)
    assert await bench.get("IDENTITY") == 0x554E4953
    assert await bench.get("VERSION") == spec.ABI_VERSION << 16 | spec.WIRE_VERSION
    assert await bench.get("CAPABILITY", 8) == CAPABILITY
    for name in SETTINGS:
        port = getattr(dut, f"{name.lower()}_o")
        assert await bench.get(name) == RESET[name] == int(port.value)
        value = bench.rng.getrandbits(32)
        await bench.put(name, value)
        assert await bench.get(name) == value == int(port.value)
    for name in ("WINDOW_ADDRESS", "WINDOW_BYTES"):
        value = bench.rng.getrandbits(64)
        await bench.put(name, value, 8)
        assert await bench.get(name, 8) == value == int(getattr(dut, f"{name.lower()}_o").value)
    dut.ready_i.value, dut.waits_for_cpu_i.value = 1, 1
    dut.outstanding_i.value, dut.active_i.value = 21, 0xA5
    assert await bench.get("STATUS") == 0b10001
    assert await bench.get("CALLS") == 0xA515


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_map(dut):
    """Any access to any address: the right data or SLVERR, bytes that were not strobed untouched, and no hang."""
    bench = await begin(dut)
    rng = bench.rng
    bench.take_quads = False
    memory: dict[int, int] = {}
    for name in SETTINGS:
        memory.update(dict(enumerate(RESET[name].to_bytes(4, "little"), int(REGISTER[name]))))
    for name in ("WINDOW_ADDRESS", "WINDOW_BYTES"):
        memory.update(dict.fromkeys(range(int(REGISTER[name]), int(REGISTER[name]) + 8), 0))
    slot = int(REGISTER.CALL_SLOT)
    await bench.axi.write(slot, bytes(range(128)))
    memory.update({slot + i: i for i in range(128)})
    for at, word in bench.tables.items():
        memory.update(dict(enumerate(word.to_bytes(4, "little"), at)))
    rx = int(REGISTER.RX_BUFFERS)
    memory.update({rx + i: b for i, b in enumerate(bench.rx_buffers)})
    counters = int(REGISTER.COUNTERS)
    special = {int(REGISTER[n]) for n in ("CONTROL", "STATUS", "DOORBELL", "FIRMWARE_ADDRESS", "FIRMWARE_DATA")}
    edges = [a for at, size in SIZES.items() for a in (at - 4, at, at + size - 4, at + size) if 0 <= a < 16384]
    refused = 0
    for step in range(700):
        bench.pauses(0.0 if step < 300 else 0.5)
        address = rng.choice((rng.choice(edges), rng.randrange(0, 16384, 4), rng.randrange(0, 0x480, 4)))
        if address in special:
            continue
        at = register_of(address)
        if rng.random() < 0.5:
            first = rng.randrange(4)
            size = rng.randint(1, 4 - first)
            value = rng.getrandbits(8 * size)
            resp = await bench.write(address + first, value, size)
            allowed = at is not None and ACCESS[at] != "ro" and (size == 4 or address not in bench.tables)
            assert resp == (AxiResp.OKAY if allowed else AxiResp.SLVERR), f"write to {address:#x}"
            if allowed:
                memory.update(dict(enumerate(value.to_bytes(size, "little"), address + first)))
        else:
            resp, value = await bench.read(address)
            allowed = at is not None and ACCESS[at] != "wo"
            assert resp == (AxiResp.OKAY if allowed else AxiResp.SLVERR), f"read of {address:#x}"
            if allowed and address in memory:
                assert value == int.from_bytes(bytes(memory[address + i] for i in range(4)), "little"), f"{address:#x}"
            if allowed and counters <= address < counters + 512 and not address & 4:
                assert value == bench.counters[(address - counters) // 8] & 0xFFFF_FFFF
        refused += not allowed
    assert refused > 100
    for at, word in bench.tables.items():
        assert word == int.from_bytes(bytes(memory[at + i] for i in range(4)), "little"), f"{at:#x}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def doorbell(dut):
    """The descriptor leaves as it was written; until it has left, neither it nor the doorbell can be touched."""
    bench = await begin(dut)
    for _ in range(6):
        data = bench.rng.randbytes(128)
        await bench.axi.write(int(REGISTER.CALL_SLOT), data)
        bench.take_quads = False
        bench.quads.clear()
        await bench.put("DOORBELL", 1)
        assert await bench.get("STATUS") & 4
        assert await bench.write(int(REGISTER.CALL_SLOT) + 64, 0) == AxiResp.SLVERR
        assert await bench.write(int(REGISTER.DOORBELL), 0) == AxiResp.SLVERR
        bench.take_quads = True
        while await bench.get("STATUS") & 4:
            pass
        assert b"".join(quad.to_bytes(32, "little") for quad in bench.quads) == data


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def completions_and_errors(dut):
    bench = await begin(dut)
    assert await bench.get("COMPLETED") == 0
    assert await bench.get("COMPLETED_CODE") == 0
    expected = [(bench.rng.getrandbits(32), bench.rng.choice((0, 0, 14))) for _ in range(20)]
    bench.responses = list(expected)
    got = []
    while len(got) < len(expected):
        if await bench.get("STATUS") & 8:
            call_id = await bench.get("COMPLETED")
            code = await bench.get("COMPLETED_CODE")
            assert code == await bench.get("COMPLETED_CODE")
            assert code >> 31 == 1
            got.append((call_id, code & 0xFFFF))
    assert got == expected
    assert await bench.get("COMPLETED") == 0
    assert await bench.get("COMPLETED_CODE") == 0
    dut.failed_i.value, dut.failed_response_i.value = 1, 17 << 32 | 0xCAFE
    await RisingEdge(dut.clk_i)
    dut.failed_i.value = 0
    assert await bench.get("STATUS") & 2
    assert (await bench.get("ERROR"), await bench.get("ERROR_CALL")) == (17, 0xCAFE)
    await bench.put("STATUS", 1)
    assert await bench.get("STATUS") & 2
    await bench.put("STATUS", 2)
    assert not await bench.get("STATUS") & 2


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def counters_are_whole(dut):
    """The upper half belongs to the lower half that was read, however the counter runs on."""
    bench = await begin(dut)
    at = int(REGISTER.COUNTERS)
    for _ in range(20):
        i = bench.rng.randrange(32)
        before = bench.counters[i] = bench.rng.getrandbits(32) << 32 | 0xFFFF_FFFF
        _, low = await bench.read(at + 8 * i)
        bench.counters[i] += 1
        _, high = await bench.read(at + 8 * i + 4)
        assert high << 32 | low == before


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def firmware_and_control(dut):
    """The image goes in word by word while the engine does not run; reading and writing at once lose nothing."""
    bench = await begin(dut)
    image = [bench.rng.getrandbits(32) for _ in range(40)]
    await bench.put("FIRMWARE_ADDRESS", 0x1000)
    for word in image:
        await bench.put("FIRMWARE_DATA", word)
    assert await bench.get("FIRMWARE_ADDRESS") == 0x1000 + 4 * len(image)
    assert [bench.firmware[0x400 + i] for i in range(40)] == image
    await bench.put("FIRMWARE_ADDRESS", 0x1000)
    assert [await bench.get("FIRMWARE_DATA") for _ in image] == image
    assert await bench.write(int(REGISTER.FIRMWARE_DATA) + 1, 5, 1) == AxiResp.SLVERR
    # One address serves both, so what each finds there depends on their order; but the address counts both.
    before = await bench.get("FIRMWARE_ADDRESS")
    tasks = []
    for i in range(60):
        tasks.append(cocotb.start_soon(bench.write(int(REGISTER.FIRMWARE_DATA), i)))
        tasks.append(cocotb.start_soon(bench.read(int(REGISTER.FIRMWARE_DATA))))
    for task in tasks:
        result = await task
        assert (result[0] if isinstance(result, tuple) else result) == AxiResp.OKAY
    assert await bench.get("FIRMWARE_ADDRESS") == before + 4 * 120
    await bench.put("CONTROL", 2)
    assert int(dut.run_o.value) == 1
    assert await bench.write(int(REGISTER.FIRMWARE_DATA), 1) == AxiResp.SLVERR
    assert (await bench.read(int(REGISTER.FIRMWARE_DATA)))[0] == AxiResp.SLVERR
    await bench.put("CONTROL", 3)
    assert await bench.get("CONTROL") == 3
    assert int(dut.soft_reset_o.value) == 1
    for _ in range(70):
        await RisingEdge(dut.clk_i)
    assert int(dut.soft_reset_o.value) == 0
    assert await bench.get("CONTROL") == 2


@pytest.mark.parametrize("latency", [full(1), 2, full(5)])
def test_unisono_exchange(latency):
    simulate(
        "unisono_exchange",
        __file__,
        {"ReadLatency": latency, "TimeoutUs": 777, "Capability": f"64'h{CAPABILITY:016x}"},
        verilator_args=[str(Path(__file__).with_name("axi.vlt"))],
    )
