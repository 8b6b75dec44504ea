"""unisono_rbm_clear: calls end and fail while their pairs hold buffers, early segments and reserves."""

from collections import Counter
from dataclasses import dataclass, field

import cocotb
from bus import new_random, start_clock_and_reset
from calls import record_fields
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from records import pack, unpack
from states import states

STEP = [("state", 5), ("pair", 9), ("reads", 1), ("writes", 1), ("voids", 1), ("returns", 1), ("returns_next", 1)]
STEP += [("gives_back", 1)]
SLOTS, RANKS = 8, 64
NAMES = states()


@dataclass
class Pair:
    """What a record says that counts here."""

    buffers: int = 0
    on_the_way: int = 0
    early: bool = False
    fields: dict[str, int] = field(default_factory=dict)


class Bench:
    """The steps of the operations around the module: reads, the lists of buffers, what is early."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.fields = record_fields(len(dut.seen_i))
        self.pairs: dict[int, Pair] = {}
        self.state, self.pair = "WipeRead", 0
        self.rank = 0

    def random_pair(self):
        rng = self.rng
        names = ("posted", "rendezvous", "ample", "next_posted", "next_ample")
        return Pair(
            buffers=rng.choice((0, 0, 1, 2)),
            on_the_way=rng.choice((0, 0, 0, 1)),
            early=rng.random() < 0.1,
            fields={name: rng.getrandbits(1) for name in names},
        )

    def record(self, pair):
        """Its record; what does not count is noise."""
        rng = self.rng
        known = pair is not None and not pair.early
        noise = {name: rng.getrandbits(bits) for name, bits in self.fields}
        if known:
            noise |= pair.fields | {"listed": int(pair.buffers > 0), "written": pair.on_the_way}
        return int(known), pack(self.fields, noise)

    async def step(self, *, clears=False, wait=False):
        """A cycle: what the module says of it."""
        dut = self.dut
        pair = self.pairs.get(self.pair)
        dut.known_i.value, dut.seen_i.value = self.record(pair)
        dut.takes_over_i.value = pair is not None and pair.early
        dut.must_wait_i.value = wait
        dut.state_i.value, dut.pair_i.value, dut.clears_i.value = NAMES.index(self.state), self.pair, clears
        await FallingEdge(dut.clk_i)
        self.rank = int(dut.rank_o.value)
        said = unpack(STEP, int(dut.step_o.value))
        forgets, done, wipe = (int(getattr(dut, f"{name}_o").value) for name in ("forgets", "clear_done", "wipe"))
        await RisingEdge(dut.clk_i)
        return said, forgets, done, wipe

    async def wipe(self, pairs, whole):
        """Records are made void, one after the other."""
        for place in pairs:
            self.state, self.pair = "WipeRead", place
            said, forgets, _, wipe = await self.step()
            assert (NAMES[said["state"]], said["reads"], said["writes"], wipe, forgets) == ("Wipe", 1, 0, whole, 0)
            self.state = "Wipe"
            said, forgets, _, _ = await self.step()
            last = place == pairs[-1]
            assert said == {
                "state": NAMES.index("Idle" if last else "WipeRead"),
                "pair": place + 1 & SLOTS * RANKS - 1,
            } | {"reads": 0, "writes": 1, "voids": 1, "returns": 0, "returns_next": 0, "gives_back": 0}
            assert forgets == (last and not whole)
        self.state = "Idle"

    async def others(self):
        """Other operations go on meanwhile, with pairs of any kind."""
        for _ in range(self.rng.choice((0, 0, 1))):
            self.state = self.rng.choice(("Idle", "Append", "Take", "Segment", "Store", "Kick", "Adopt"))
            saved, self.pair = self.pair, self.rng.randrange(SLOTS * RANKS)
            said, forgets, done, _ = await self.step()
            assert not forgets
            assert not done
            assert not said["writes"]
            assert not said["gives_back"]
            assert not said["returns"]
            self.pair = saved

    async def fail(self, slot, epoch_over):
        """A call that failed: all that its pairs hold is given back, rank by rank."""
        rng = self.rng
        rank = 0
        while rank < RANKS:
            await self.others()
            self.state, self.pair = "ClearRead", slot * RANKS + rank
            pair = self.pairs.get(self.pair)
            wait = rng.random() < 0.3
            said, forgets, done, _ = await self.step(wait=wait)
            assert self.rank == rank
            then = NAMES[said["state"]]
            last = rank == RANKS - 1
            assert not done
            if pair is not None and pair.early:
                assert then == ("Idle" if wait else "Adopt")
                assert not said["writes"]
                assert not forgets
                if not wait:
                    pair.early = False  # its record says now what has come
                    self.seen["early"] += 1
            elif pair is not None and pair.on_the_way:
                assert then == "Idle"
                assert not said["writes"]
                assert not forgets
                pair.on_the_way, pair.buffers = pair.on_the_way - 1, pair.buffers + 1
                self.seen["on the way"] += 1
            elif pair is not None and pair.buffers:
                assert then == "ClearTake"
                assert not said["writes"]
                assert not forgets
                self.state = then
                said, forgets, done, _ = await self.step()
                assert (NAMES[said["state"]], said["writes"], said["gives_back"]) == ("Idle", 1, 1)
                assert not forgets
                assert not done
                pair.buffers -= 1
                self.seen["given back"] += 1
            else:
                assert said["writes"] == (pair is not None)
                if pair is not None:
                    one = pair.fields
                    assert said["returns"] == (one["posted"] and one["rendezvous"] and one["ample"])
                    assert said["returns_next"] == (one["next_posted"] and one["next_ample"])
                    self.seen["returns"] += said["returns"]
                    del self.pairs[self.pair]
                assert not said["gives_back"]
                assert forgets == (last and not epoch_over)
                assert then == ("WipeRead" if last and epoch_over else "Idle")
                rank += 1
        assert not any(place // RANKS == slot for place in self.pairs)

    async def end(self, slot, failed, epoch_over):
        """A call ends."""
        dut, rng = self.dut, self.rng
        dut.clear_valid_i.value, dut.clear_slot_i.value, dut.epoch_over_i.value = 1, slot, epoch_over
        if failed:
            await self.fail(slot, epoch_over)
        else:
            await self.others()
            self.state = "Idle"
            said, forgets, done, _ = await self.step(clears=True)
            assert (forgets, done, said["writes"]) == (not epoch_over, 0, 0)
        if epoch_over:
            await self.wipe(range(slot * RANKS, (slot + 1) * RANKS), 0)
            self.seen["wiped"] += 1
        self.pairs = {place: pair for place, pair in self.pairs.items() if place // RANKS != slot}
        # It is done until the call is gone.
        for _ in range(rng.choice((1, 1, 3))):
            self.state = "Idle"
            _, forgets, done, _ = await self.step()
            assert done
            assert not forgets
        dut.clear_valid_i.value = 0
        await self.step()
        _, _, done, _ = await self.step()
        assert not done
        self.seen["failed" if failed else "ended"] += 1


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("clear")
    names = ("clear_valid", "clear_slot", "clears", "epoch_over", "pair", "known", "seen", "takes_over", "must_wait")
    for name in names:
        getattr(dut, f"{name}_i").value = 0
    bench = Bench(dut, rng)
    dut.state_i.value = NAMES.index("Idle")
    await start_clock_and_reset(dut)
    await bench.wipe(range(SLOTS * RANKS), 1)
    _, _, done, wipe = await bench.step()
    assert (done, wipe) == (0, 0)
    for _ in range(scaled(240, 60)):
        slot = rng.randrange(SLOTS)
        ranks = rng.sample(range(RANKS), rng.choice((0, 1, 5, RANKS)))
        bench.pairs |= {slot * RANKS + rank: bench.random_pair() for rank in ranks}
        other = rng.randrange(SLOTS * RANKS)
        if other // RANKS != slot:
            bench.pairs[other] = bench.random_pair()
        await bench.end(slot, rng.random() < 0.7, rng.random() < 0.3)
    for what in ("early", "on the way", "given back", "returns", "wiped", "failed", "ended"):
        assert bench.seen[what] > 5, what


def test_unisono_rbm_clear():
    simulate("unisono_rbm_clear", __file__)
