"""unisono_dispatcher_size: looks at random runs and grants, whose limits lie around the ends of segments."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from look_records import GRANT, RUN, SIZE, pack, random_record, unpack

DECODE, LOOK, HEAD, CREDIT, SIZE_STEP, OPEN, SPACE = 5, 10, 11, 12, 14, 15, 16
SEGMENT = 2048


class Bench:
    def __init__(self, dut):
        self.dut, self.rng, self.seen = dut, new_random("size"), Counter()
        names = ("step", "run", "position", "segment_bytes", "measures", "next_bytes", "next_segment", "next_position")
        for name in (
            *names,
            "arrives",
            "arrives_bytes",
            "issued_bytes",
            "issued_segment",
            "granted",
            "parity",
            "grant",
        ):
            getattr(dut, f"{name}_i").value = 0

    async def cycle(self, step, **inputs):
        """One cycle in this step; what is not named is noise."""
        dut = self.dut
        dut.step_i.value = step
        for name in ("next_bytes", "next_segment", "next_position", "arrives_bytes"):
            port = getattr(dut, f"{name}_i")
            port.value = inputs.get(name, self.rng.getrandbits(len(port)))
        for name in ("measures", "arrives"):
            getattr(dut, f"{name}_i").value = inputs.get(name, 0)
        await FallingEdge(dut.clk_i)
        found = unpack(SIZE, int(dut.size_o.value))
        await RisingEdge(dut.clk_i)
        return found

    async def look(self):
        dut, rng = self.dut, self.rng
        run = random_record(rng, RUN)
        total = rng.choice((0, 16, SEGMENT - 16, SEGMENT, 3 * SEGMENT, 3 * SEGMENT + 48, 1 << 40))
        position = min(total, rng.choice((0, 0, SEGMENT, 3 * SEGMENT, 16)))
        run["bytes"], run["segment"] = total, SEGMENT
        piece = min(total - position, SEGMENT)
        came = rng.choice((0, 16, piece))
        # Less may be granted than has gone on credit.
        limit = max(0, position + rng.choice((-SEGMENT, -16, 0, 16, piece - 16, piece, piece + 16, 1 << 30)))
        granted, parity = rng.random() < 0.8, rng.randrange(2)
        # The run, and where it is, are there in the cycle after Look.
        dut.run_i.value = rng.getrandbits(len(dut.run_i))
        await self.cycle(LOOK, measures=1, next_bytes=total, next_segment=SEGMENT, next_position=position)
        dut.run_i.value, dut.position_i.value = pack(RUN, run), position
        dut.granted_i.value, dut.parity_i.value = granted, parity
        grant = random_record(rng, GRANT) | {"limit": limit}
        dut.grant_i.value = pack(GRANT, grant)
        own, end = piece, position + piece
        if run["arrival"]:
            await self.cycle(HEAD, arrives=1, arrives_bytes=came)
            dut.segment_bytes_i.value = came
            own, end = came, position + came
        else:
            dut.segment_bytes_i.value = rng.getrandbits(14)
            await self.cycle(HEAD)
        ends = []
        for step in (CREDIT, SIZE_STEP):
            found = await self.cycle(step)
            assert (found["own"], found["end"]) == (own, end)
            assert (found["granted"], found["parity"]) == (granted, parity)
            cut = step == SIZE_STEP and run["send"] and not run["eager"] and not (run["arrival"] or run["fan_out"])
            cut = cut and end > limit
            whole = run["arrival"] or run["fan_out"] or limit <= position
            waits = not granted or (total != 0 and (own == 0 or (end > limit and whole)))
            assert found["waits"] == waits
            goes = limit - position if cut else own
            assert waits or found["sized"] == goes
            ends.append(limit if cut else end)
            self.seen["cut"] += cut
            self.seen["waits"] += waits
            self.seen["waits for more"] += bool(granted and waits and limit > position)
            self.seen["goes"] += not waits
        if not granted and not run["arrival"] and rng.random() < 0.5:
            # Without a grant it goes on credit.
            await self.cycle(OPEN)
            ends.append(end)
        found = await self.cycle(SPACE)
        assert found["after"] == ends[-1]
        assert found["last"] == (ends[-1] == total)
        self.seen["last"] += found["last"]
        self.seen["not last"] += not found["last"]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_looks(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _ in range(scaled(20000, 6000)):
        await bench.look()
    for what in ("cut", "waits", "waits for more", "goes", "last", "not last"):
        assert bench.seen[what] > 50, what


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def from_decode_to_space(dut):
    """What goes on to space from Decode is one segment."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for total in (0, 16, SEGMENT, SEGMENT + 1, 1 << 40):
        dut.issued_bytes_i.value, dut.issued_segment_i.value = total, SEGMENT
        await bench.cycle(DECODE, measures=1, next_bytes=total, next_segment=SEGMENT, next_position=0)
        dut.issued_bytes_i.value, dut.issued_segment_i.value = 77, 9
        dut.run_i.value = pack(RUN, {"bytes": total, "segment": SEGMENT, "send": 1, "eager": 1})
        dut.position_i.value = 0
        found = await bench.cycle(SPACE)
        goes = min(total, SEGMENT)
        assert (found["own"], found["after"], found["last"]) == (goes, goes, goes == total)


def test_unisono_dispatcher_size():
    simulate("unisono_dispatcher_size", __file__)
