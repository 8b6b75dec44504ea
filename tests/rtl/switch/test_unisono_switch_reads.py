"""unisono_switch_reads: words are written and read in any order, byte for byte; rate, latency and room."""

from collections import Counter, deque

import cocotb
from bus import new_random, paces, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

BYTES = 64
LATENCY = 3
NAMES = ("write", "write_address", "write_data", "read", "read_eager", "read_entry", "read_place", "read_address",
         "read_bytes", "own_ready")  # fmt: skip


class Bench:
    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.words, self.most = parameters()["Words"], parameters()["MostWords"]
        self.memory: dict[int, int] = {}
        self.reads = deque()  # words that are to come: data, keep, who is free behind it
        for name in NAMES:
            getattr(dut, f"{name}_i").value = 0

    def write(self, address):
        self.memory[address] = self.rng.getrandbits(8 * BYTES)
        dut = self.dut
        dut.write_i.value, dut.write_address_i.value, dut.write_data_i.value = 1, address, self.memory[address]

    def read(self):
        """A read of words that have been written; the last may be cut short."""
        rng, dut = self.rng, self.dut
        count = rng.choice((1, 1, 2, self.most, rng.randint(1, self.most)))
        start = rng.randrange(self.words - count)
        if any(start + place not in self.memory for place in range(count)):
            return
        size = BYTES * (count - 1) + rng.choice((1, BYTES - 1, BYTES, rng.randint(1, BYTES)))
        owner = rng.randrange(8), rng.randrange(16)
        eager = rng.random() < 0.5
        dut.read_i.value, dut.read_eager_i.value = 1, eager
        dut.read_entry_i.value, dut.read_place_i.value = owner
        dut.read_address_i.value, dut.read_bytes_i.value = start, size
        for place in range(count):
            last = place == count - 1
            keep = (1 << (size - 1) % BYTES + 1) - 1 if last else (1 << BYTES) - 1
            self.reads.append((self.memory[start + place], keep, owner if last and eager else None))
        self.seen["cut short"] += size % BYTES != 0
        self.seen["longest"] += count == self.most

    async def step(self, ready, reads):
        """A cycle."""
        dut, rng = self.dut, self.rng
        dut.own_ready_i.value = ready
        dut.read_i.value = dut.write_i.value = 0
        if reads and int(dut.ready_o.value):
            self.read()
        elif not self.reads:
            self.write(rng.randrange(self.words))
        await FallingEdge(dut.clk_i)
        taken = ready and int(dut.own_valid_o.value)
        freed = int(dut.freed_o.value)
        if taken:
            data, keep, owner = self.reads.popleft()
            assert (int(dut.own_data_o.value), int(dut.own_keep_o.value)) == (data, keep)
            assert bool(freed) == (owner is not None)
            if freed:
                assert (int(dut.freed_entry_o.value), int(dut.freed_place_o.value)) == owner
                self.seen["freed"] += 1
        else:
            assert not freed
        await RisingEdge(dut.clk_i)
        return taken


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_reads(dut):
    rng = new_random("reads")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for address in range(bench.words):
        bench.write(address)
        await RisingEdge(dut.clk_i)
    for _ in range(scaled(4, 2)):
        for name, pause in paces(rng):
            for _ in range(1500):
                taken = await bench.step(not pause(), rng.random() < (0.5 if name == "free" else 0.1))
                bench.seen["full"] += not int(dut.ready_o.value)
                bench.seen["words"] += bool(taken)
            while bench.reads:
                await bench.step(1, False)
            # Words change between, so that what is read is what is there.
            for _ in range(200):
                await bench.step(0, False)
    for what in ("cut short", "longest", "freed", "full", "words"):
        assert bench.seen[what] > 20, what


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_per_cycle(dut):
    """Short reads one behind the other, without a gap; the first word 3 cycles after its read."""
    rng = new_random("rate")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for address in range(bench.words):
        bench.write(address)
        await RisingEdge(dut.clk_i)
    taken = [bool(await bench.step(1, True)) for _ in range(300)]
    first = taken.index(True)
    assert first == LATENCY
    assert all(taken[first:])


def test_unisono_switch_reads():
    simulate("unisono_switch_reads", __file__, {"Words": 256, "MostWords": 8})
