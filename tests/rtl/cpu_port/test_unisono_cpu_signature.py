"""unisono_cpu_signature: words of all sizes against the remainder of a polynomial."""

from collections import Counter

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

BEGIN, LONG, WORD, HALF, OTHER = 0, 1, 2, 3, 4
BYTES = {LONG: 8, WORD: 4, HALF: 2}


def crc32c(data: bytes) -> int:
    """By long division: the message's first bit is the highest power, and the first 32 are inverted."""
    bits = [byte >> place & 1 for byte in data for place in range(8)] + [0] * 32
    value = int("".join(map(str, bits)), 2) ^ (0xFFFFFFFF << len(bits) - 32)
    for power in reversed(range(32, len(bits))):
        if value >> power & 1:
            value ^= 0x11EDC6F41 << power - 32
    return int(f"{value:032b}"[::-1], 2) ^ 0xFFFFFFFF


def undone(crc: int) -> int:
    """The word that makes the signature 0 after it: what is left of the register is all its bits."""
    register = 0xFFFFFFFF
    for _ in range(32):  # the register as it must be before 32 bits of zeros
        register = (register ^ 0x82F63B78) << 1 | 1 if register >> 31 else register << 1
    return register ^ crc ^ 0xFFFFFFFF


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_words(dut):
    assert crc32c(b"123456789") == 0xE3069283
    rng, seen = new_random("signature"), Counter()
    dut.valid_i.value = dut.operation_i.value = dut.data_i.value = 0
    Clock(dut.clk_i, 4, unit="ns").start()  # there is no reset: each signature begins anew
    data = None
    for _ in range(scaled(6000, 2000)):
        valid = rng.random() < 0.8
        operation = rng.choice((BEGIN, LONG, LONG, WORD, WORD, HALF, HALF, OTHER, 9)) if data is not None else BEGIN
        word = rng.choice((0, (1 << 64) - 1, rng.getrandbits(64)))
        if data is not None and rng.random() < 0.02:
            valid, operation, word = True, WORD, rng.getrandbits(32) << 32 | undone(crc32c(data))
        dut.valid_i.value, dut.operation_i.value, dut.data_i.value = valid, operation, word
        await RisingEdge(dut.clk_i)
        if valid and operation == BEGIN:
            data = b""
        elif valid and operation in BYTES:
            data += (word & (1 << 8 * BYTES[operation]) - 1).to_bytes(BYTES[operation], "little")
            seen[operation] += 1
        dut.valid_i.value = 0
        await FallingEdge(dut.clk_i)
        if data is not None:
            seen["zero"] += crc32c(data) == 0
            assert int(dut.signature_o.value) == (crc32c(data) or 1)
    assert min(seen[LONG], seen[WORD], seen[HALF]) > 100
    assert seen["zero"] > 10


def test_unisono_cpu_signature():
    simulate("unisono_cpu_signature", __file__)
