"""unisono_cclo_context: calls of all spaces, and the numbers of those that are point to point."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import load, pack

GIVEN = [("signature", 32), ("number", 32), ("communicator", 8), ("algorithm", 8), ("space", 2), ("dtype", 6)]
CONTEXT = [
    *(("signature", 32), ("tag", 32), ("sequence", 32), ("dtype", 6)),
    ("point_to_point", 1),
    ("communicator", 4),
]
LOCAL, COLLECTIVE, POINT_TO_POINT = range(3)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_calls(dut):
    rng, seen, dtypes = new_random("context"), Counter(), [int(dtype) for dtype in load().Datatype]
    dut.valid_i.value = dut.given_i.value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        pairs = 0
        for _ in range(scaled(8000, 2500)):
            given = {name: rng.getrandbits(bits) for name, bits in GIVEN}
            given |= {"space": rng.randrange(3), "dtype": rng.choice(dtypes)}
            valid, space = rng.random() < 0.5, given["space"]
            dut.valid_i.value, dut.given_i.value = valid, pack(GIVEN, given)
            await FallingEdge(dut.clk_i)
            collective = space == COLLECTIVE
            expected = {
                "signature": given["signature"],
                "tag": 0 if collective else given["number"],
                "sequence": given["number"] if collective else pairs,
                "dtype": given["dtype"],
                "point_to_point": space == POINT_TO_POINT,
                "communicator": given["communicator"] & 15,
            }
            assert int(dut.context_o.value) == pack(CONTEXT, expected)
            assert bool(int(dut.local_o.value)) == (space == LOCAL)
            await RisingEdge(dut.clk_i)
            pairs += valid and space == POINT_TO_POINT
            seen[space, valid] += 1
        dut.valid_i.value = 0
        await reset_again(dut)
    assert min(seen[space, valid] for space in range(3) for valid in (False, True)) > 100


def test_unisono_cclo_context():
    simulate("unisono_cclo_context", __file__)
