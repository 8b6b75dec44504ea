"""unisono_call_check: random descriptors, half of them with a flaw, with pauses between their rows."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from call_descriptors import FIELDS, bad_descriptor, expected_code, field, random_descriptor, spec
from call_records import CANDIDATE, KERNEL, NONE, SLOT, unpack
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

LOADED = 0b0110_0101
PROGRAMS = 8
ORDERS = {"NOP": 0, "COPY": 0, "COMBINE": 0, "SEND": 2, "RECV": 3, "PUT": 4, "GET": 5}


def want_of(value, code):
    """What is kept of a descriptor."""
    get = {name: field(value, name) for name in FIELDS}
    want = {name: get[name] for name in ("call_id", "tag", "deadline_us", "src_stream", "dst_stream")}
    want |= {"wait0": get["wait_for0"], "wait1": get["wait_for1"], "code": code, "mode": get["algorithm"] & 3}
    want["communicator"] = min(get["communicator"], 256)
    if get["src_stream"]:
        want["src_port"] = get["src_address"] & 15
    if get["dst_stream"]:
        want["dst_port"] = get["dst_address"] & 15
    if code == 0:
        name = spec.Collective(get["collective"]).name
        want["order"] = ORDERS.get(name, 1)
        want["place"] = SLOT if name != "NOP" else KERNEL if get["algorithm"] else NONE
    return want


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_descriptors(dut):
    rng, seen = new_random("check"), Counter()
    kernels = parameters()["KernelPorts"]
    for name in ("begin", "step", "index", "quad", "bad"):
        getattr(dut, f"{name}_i").value = 0
    dut.program_loaded_i.value = LOADED
    await start_clock_and_reset(dut)
    for call in range(scaled(6000, 1500)):
        make = rng.choice((random_descriptor, bad_descriptor))
        value = make(rng, call + 1, wait_for0=rng.getrandbits(32), deadline_us=rng.getrandbits(32))
        if rng.random() < 0.1:
            nop = {
                "collective": int(spec.Collective.NOP),
                "algorithm": rng.randrange(4),
                "root": rng.randrange(kernels),
            }
            value = random_descriptor(rng, call + 1, **nop)
        short = rng.random() < 0.05
        dut.begin_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.begin_i.value = 0
        for quad in range(4):
            while rng.random() < 0.2:
                dut.step_i.value, dut.quad_i.value, dut.bad_i.value = 0, rng.getrandbits(256), rng.getrandbits(1)
                await RisingEdge(dut.clk_i)
            dut.step_i.value, dut.index_i.value = 1, quad
            dut.quad_i.value = value >> 256 * quad & (1 << 256) - 1
            # Whether it is too short is said with the last rows.
            dut.bad_i.value = short if quad == 3 else rng.getrandbits(1)
            await RisingEdge(dut.clk_i)
        dut.step_i.value = 0
        await FallingEdge(dut.clk_i)
        assert int(dut.checks_o.value)
        await RisingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)
        assert not int(dut.checks_o.value)
        code = expected_code(value, kernels, PROGRAMS, LOADED)
        if short and code == 0:
            code = int(spec.ErrorCode.INVALID_ARGUMENT)
            seen["short"] += 1
        found, want = unpack(CANDIDATE, int(dut.candidate_o.value)), want_of(value, code)
        wrong = {name: (found[name], number) for name, number in want.items() if found[name] != number}
        assert not wrong, (wrong, hex(value))
        if found["place"] == KERNEL and code == 0:
            assert int(dut.kernel_o.value) == field(value, "root")
        seen[spec.ErrorCode(code).name if code else "taken"] += 1
        seen[f"place {found['place']}"] += code == 0
        await RisingEdge(dut.clk_i)
    codes = ("INVALID_ARGUMENT", "UNKNOWN_ALGORITHM", "INVALID_OP", "INVALID_DATATYPE", "INVALID_COUNT")
    for what in ("taken", "short", *codes, "place 0", "place 1", "place 2"):
        assert seen[what] > 10, what


@pytest.mark.parametrize("kernel_ports", [1, 3])
def test_unisono_call_check(kernel_ports):
    simulate("unisono_call_check", __file__, {"KernelPorts": kernel_ports, "Programs": PROGRAMS})
