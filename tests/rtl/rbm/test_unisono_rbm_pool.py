"""unisono_rbm_pool: random takers and returners against a set of the buffers that are out."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from hdl import full, parameters, scaled, simulate

INPUTS = ("free_take", "owner", "release_valid", "release_buffer", "signal_valid", "signal_mute", "signal_buffer")
EAGER = 1 << 10  # of the owner's bits; below it are communicator and source


class Pool:
    """Drives the pool, one cycle at a time, and keeps what must be true."""

    def __init__(self, dut):
        self.dut = dut
        self.depth = parameters()["Depth"]
        self.forget()

    def forget(self):
        for name in (*INPUTS, "bypass_valid"):
            getattr(self.dut, f"{name}_i").value = 0
        self.out: dict[int, int] = {}
        self.came_back, self.owed = Counter(), Counter()
        self.seen = Counter()
        self.bypassed = self.full = False

    async def cycle(self, rng, take=0.0, back=0.0, bypass=0.0):
        """One cycle. Takes, gives back and goes past the buffers with these probabilities."""
        dut = self.dut
        owner = rng.getrandbits(11)
        held = list(self.out)
        rng.shuffle(held)
        released = held.pop() if held and rng.random() < back else None
        signalled = held.pop() if held and not self.full and rng.random() < back else None
        mute = rng.random() < 0.3
        past = not self.bypassed and rng.random() < bypass
        await FallingEdge(dut.clk_i)  # then it is known whether one is on offer
        dut.owner_i.value = owner
        dut.release_valid_i.value, dut.release_buffer_i.value = released is not None, released or 0
        dut.signal_valid_i.value, dut.signal_buffer_i.value = signalled is not None, signalled or 0
        dut.signal_mute_i.value, dut.bypass_valid_i.value = mute, past
        takes = not past and int(dut.free_valid_o.value) and rng.random() < take
        dut.free_take_i.value = takes
        await ReadOnly()
        count = int(dut.free_count_o.value)
        assert count + len(self.out) <= self.depth, "there are more buffers than there are"
        if takes:
            buffer = int(dut.free_buffer_o.value)
            assert buffer not in self.out, f"buffer {buffer} is given twice"
            self.seen["used again"] += self.seen[f"buffer {buffer}"] > 0
            self.seen[f"buffer {buffer}"] += 1
        self.seen["none is free"] += len(self.out) == self.depth
        self.seen["signals wait"] += int(dut.signal_full_o.value)
        if int(dut.owed_valid_o.value):
            self.owed[int(dut.owed_communicator_o.value) << 6 | int(dut.owed_peer_o.value)] += 1
            assert self.owed <= self.came_back, "a credit is owed that nobody gave back"
        self.full, self.bypassed = bool(int(dut.signal_full_o.value)), past
        for one, silent in ((released, False), (signalled, mute)):
            if one is None:
                continue
            of = self.out.pop(one)
            if of & EAGER and not silent:
                self.came_back[of & ~EAGER] += 1
        if past:
            self.came_back[owner & ~EAGER] += 1
        if takes:
            self.out[buffer] = owner
        await RisingEdge(dut.clk_i)

    async def settle(self, rng):
        """When nothing comes back any more, all buffers are free or out, and every credit was owed."""
        for _ in range(200):
            await self.cycle(rng)
        assert int(self.dut.free_count_o.value) == self.depth - len(self.out)
        assert int(self.dut.free_valid_o.value) == (len(self.out) != self.depth)
        assert self.owed == self.came_back


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_users(dut):
    rng = new_random("pool")
    pool = Pool(dut)
    await start_clock_and_reset(dut)
    for take, back, bypass in ((0.9, 0.1, 0.0), (1.0, 0.3, 0.2), (0.3, 0.24, 0.5), (0.05, 0.2, 1.0), (1.0, 0.01, 0.1)):
        for _ in range(scaled(2400, 900)):
            await pool.cycle(rng, take, back, bypass)
        await pool.settle(rng)
    # All are taken, then all come back, as fast as they may.
    while len(pool.out) < pool.depth:
        await pool.cycle(rng, take=1.0)
    await pool.settle(rng)
    while pool.out:
        await pool.cycle(rng, back=0.25 if pool.depth > 64 else 1.0)
    await pool.settle(rng)
    assert pool.seen["used again"] > pool.depth
    assert pool.seen["none is free"] > 10
    if pool.depth <= 64:
        assert pool.seen["signals wait"] > 3 or pool.depth < 16
    # A reset gives all back, and owes nothing.
    while len(pool.out) < pool.depth // 2:
        await pool.cycle(rng, take=1.0)
    pool.forget()
    await reset_again(dut)
    await pool.settle(rng)
    while len(pool.out) < pool.depth:
        await pool.cycle(rng, take=1.0)
    assert list(pool.out) == list(range(pool.depth))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut):
    """When a buffer that comes back is owed and on offer; what is released goes before what is signalled."""
    rng = new_random("latency")
    pool = Pool(dut)
    await start_clock_and_reset(dut)
    while len(pool.out) < pool.depth:
        await pool.cycle(rng, take=1.0)
    pool.forget()
    dut.release_valid_i.value, dut.release_buffer_i.value = 1, 3
    dut.signal_valid_i.value, dut.signal_buffer_i.value = 1, 2
    order, offered = [], None
    for cycle in range(12):
        await ReadOnly()
        if offered is None and int(dut.free_valid_o.value):
            offered = cycle
            order.append(int(dut.free_buffer_o.value))
        await RisingEdge(dut.clk_i)
        dut.release_valid_i.value = dut.signal_valid_i.value = 0
    assert (offered, order) == (3 if pool.depth <= 64 else 5, [3])
    dut.free_take_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.free_take_i.value = 0
    await ReadOnly()
    assert int(dut.free_buffer_o.value) == 2


@pytest.mark.parametrize("depth", [8, 64, full(1024)])
def test_unisono_rbm_pool(depth):
    simulate("unisono_rbm_pool", __file__, {"Depth": depth})
