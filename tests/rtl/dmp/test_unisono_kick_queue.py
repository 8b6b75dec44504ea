"""unisono_kick_queue: random kicks, often of what stands in the queue, is on offer or has just left, against a list."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate
from kick_model import KickQueue


class Bench:
    """Drives the queue, one cycle at a time, and keeps which places must still be looked at."""

    def __init__(self, dut):
        self.dut, self.depth, self.seen = dut, parameters()["Depth"], Counter()
        self.forget()

    def forget(self):
        self.model, self.waiting = KickQueue(), set()
        self.dut.kick_valid_i.value = self.dut.next_take_i.value = self.dut.sweep_valid_i.value = 0
        self.dut.kick_place_i.value = self.dut.sweep_place_i.value = 0

    async def sweep(self):
        self.dut.sweep_valid_i.value = 1
        for place in range(self.depth):
            self.dut.sweep_place_i.value = place
            await RisingEdge(self.dut.clk_i)
        self.dut.sweep_valid_i.value = 0

    async def cycle(self, rng, kick=None, take=0.0):
        dut, model = self.dut, self.model
        dut.kick_valid_i.value = kick is not None
        dut.kick_place_i.value = rng.randrange(self.depth) if kick is None else kick
        await FallingEdge(dut.clk_i)
        offer = model.offer()
        assert bool(int(dut.next_valid_o.value)) == (offer is not None)
        assert offer is None or int(dut.next_place_o.value) == offer
        taken = offer is not None and rng.random() < take
        dut.next_take_i.value = taken
        if taken:
            assert offer in self.waiting, f"place {offer} comes twice for one kick"
            self.waiting.discard(offer)
            self.seen["kicked while it leaves"] += kick == offer
        self.seen["kicked on offer"] += bool(model.queue) and model.kicked == model.queue[0]
        self.seen["in the queue"] += model.kicked in model.queue
        self.seen["full"] += len(model.queue) == self.depth
        if kick is not None:
            self.waiting.add(kick)
        model.cycle(kick, taken)
        await RisingEdge(dut.clk_i)
        dut.next_take_i.value = 0

    async def drain(self, rng):
        """No kick is lost."""
        for _ in range(self.depth + 4):
            await self.cycle(rng, take=1.0)
        assert not self.waiting


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_kicks(dut):
    rng, bench = new_random("kicks"), Bench(dut)
    await start_clock_and_reset(dut)
    await bench.sweep()
    for some in ([1], [0, bench.depth - 1], range(4), range(bench.depth)):
        for kicks, take in ((1.0, 0.9), (0.5, 0.6), (0.1, 1.0), (1.0, 0.1)):
            for _ in range(scaled(2000, 600)):
                await bench.cycle(rng, rng.choice(some) if rng.random() < kicks else None, take)
        await bench.drain(rng)
    # All places at once.
    for place in range(bench.depth):
        await bench.cycle(rng, place)
    for _ in range(20):
        await bench.cycle(rng, rng.randrange(bench.depth))
    for what in ("kicked while it leaves", "kicked on offer", "in the queue", "full"):
        assert bench.seen[what] > 10, what
    # A reset forgets them all, and with the sweep each may come again.
    bench.forget()
    await reset_again(dut)
    await bench.sweep()
    for place in range(bench.depth):
        await bench.cycle(rng, place)
    await bench.drain(rng)


@pytest.mark.parametrize("depth", [4, 256])
def test_unisono_kick_queue(depth):
    simulate("unisono_kick_queue", __file__, {"Depth": depth})
