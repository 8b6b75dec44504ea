"""unisono_replay_compare: descriptors, read or caught, equal to kept ones but for a bit or a byte."""

from collections import Counter
from dataclasses import dataclass, replace

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ENTRIES, PROGRAMS, COMMUNICATORS = 16, 8, 32
PROGRAM = 31
MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Call:
    """What decides about a call's moves, its sizes and its tag."""

    head: int
    flags: int
    communicator: int
    root: int
    count: int
    sizes: tuple[int, int, int, int]
    tag: int
    program: int = 0

    def quads(self, rng):
        """The rows, four at a time; what does not matter is noise."""

        def rows(*values):
            return sum(value << 64 * place for place, value in enumerate(values))

        src, dst, scratch, params = self.sizes
        noise = [rng.getrandbits(64) for _ in range(6)]
        return [
            rows(rng.getrandbits(19) << 45 | self.flags << 32 | self.head, self.root << 32 | self.communicator,
                 rng.getrandbits(32) << 32 | self.tag, self.count),
            rows(noise[0], src, noise[1], dst),
            rows(noise[2], scratch, noise[3], params),
            rows(noise[4], self.program << 32 | rng.getrandbits(32), noise[5], 0),
        ]  # fmt: skip

    def key(self, state):
        return (self.head, self.flags, self.communicator, self.root, self.count, state)


def random_call(rng):
    return Call(
        head=rng.randrange(12) | rng.getrandbits(24) << 8,
        flags=rng.getrandbits(13),
        communicator=rng.choice((0, 3, COMMUNICATORS - 1, COMMUNICATORS, 1 << 31)),
        root=rng.getrandbits(32),
        count=rng.getrandbits(64),
        sizes=tuple(rng.choice((0, 64, 4096)) for _ in range(4)),
        tag=rng.getrandbits(32),
    )


def near(rng, call):
    """The same call, longer or shorter, or another one that differs in one bit."""
    kind = rng.choice(("same", "same", "longer", "shorter", "other"))
    if kind == "longer":
        return replace(call, sizes=tuple(size + rng.choice((0, 1, 1 << 40)) for size in call.sizes))
    if kind == "shorter":
        place = rng.randrange(4)
        return replace(call, sizes=tuple(max(0, size - (at == place)) for at, size in enumerate(call.sizes)))
    if kind == "other":
        name, bits = rng.choice((("head", 32), ("flags", 13), ("communicator", 5), ("root", 32), ("count", 64)))
        call = replace(call, **{name: getattr(call, name) ^ 1 << rng.randrange(bits)})
        return call if call.head & 0xFF != PROGRAM else replace(call, head=1)
    return replace(call, tag=rng.getrandbits(32))


class Bench:
    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.kept: dict[int, tuple] = {}
        self.states = [rng.getrandbits(30) << 2 | 1 for _ in range(COMMUNICATORS)]
        names = ("look", "looking", "descriptor_quad", "store_data", "store_valid", "store_quad", "may_catch", "forget")
        for name in (*names, "communicator_data", "known", "pinned", "loaded", "settles", "keeps"):
            getattr(dut, f"{name}_i").value = 0
        dut.idle_i.value = 1

    def state(self, call):
        return self.states[call.communicator] if call.communicator < COMMUNICATORS else 0

    def known(self):
        self.dut.known_i.value = sum(1 << entry for entry in self.kept)

    def check(self, call, loaded):
        """What the comparison must have found."""
        dut, state = self.dut, self.state(call)
        entry, match, fits = int(dut.entry_o.value), int(dut.match_o.value), int(dut.fits_o.value)
        if call.head & 0xFF == PROGRAM:
            slot = call.program % PROGRAMS
            assert int(dut.is_program_o.value)
            assert entry == ENTRIES - 1 - slot
            assert match == (loaded >> slot & 1 and state & 3 == 1)
            assert fits
            self.seen["program"] += match
        else:
            key, sizes = self.kept.get(entry, (None, (0, 0, 0, 0)))
            assert not int(dut.is_program_o.value)
            assert match == (key == call.key(state)), (call, key)
            if match:
                assert fits == all(size >= least for size, least in zip(call.sizes, sizes, strict=True))
            self.seen["known"] += match and fits
            self.seen["too short"] += match and not fits
            self.seen["another"] += key is not None and not match
        assert int(dut.tag_o.value) == call.tag
        return match and fits, entry

    async def read(self, call):
        """The descriptor is read after its start item."""
        dut, rng, quads = self.dut, self.rng, call.quads(self.rng)
        loaded = rng.getrandbits(PROGRAMS)
        dut.loaded_i.value, dut.forget_i.value = loaded, 1
        await RisingEdge(dut.clk_i)
        dut.forget_i.value, dut.idle_i.value, dut.looking_i.value = 0, 0, 1
        third = 3 if call.head & 0xFF == PROGRAM else 1
        for look, quad in ((1, quads[0]), (2, quads[third]), (3, quads[2])):
            dut.look_i.value, dut.descriptor_quad_i.value = look, quad
            dut.communicator_data_i.value = self.state(call) if look == 2 else rng.getrandbits(32)
            await RisingEdge(dut.clk_i)
        dut.look_i.value, dut.descriptor_quad_i.value = 4, rng.getrandbits(256)
        await FallingEdge(dut.clk_i)
        hit, entry = self.check(call, loaded)
        keeps = not hit and call.head & 0xFF != PROGRAM and rng.random() < 0.7
        dut.settles_i.value, dut.keeps_i.value = 1, keeps
        await RisingEdge(dut.clk_i)
        dut.settles_i.value = dut.keeps_i.value = dut.look_i.value = dut.looking_i.value = 0
        dut.idle_i.value = 1
        if keeps:
            self.kept[entry] = (call.key(self.state(call)), call.sizes)
        self.known()

    async def catch(self, call):
        """The descriptor is caught as it is stored; sometimes it is interrupted."""
        dut, rng, quads = self.dut, self.rng, call.quads(self.rng)
        lost = rng.random() < 0.2
        dut.may_catch_i.value = 1
        for place, quad in enumerate(quads):
            while rng.random() < 0.2:
                dut.store_valid_i.value, dut.store_data_i.value = 0, rng.getrandbits(256)
                await RisingEdge(dut.clk_i)
            dut.store_valid_i.value, dut.store_quad_i.value, dut.store_data_i.value = 1, place, quad
            dut.communicator_data_i.value = self.state(call)
            dut.may_catch_i.value = not (lost and place == 2)
            await RisingEdge(dut.clk_i)
        dut.store_valid_i.value = 0
        for _ in range(3):
            await FallingEdge(dut.clk_i)
            assert not int(dut.ahead_o.value)
            await RisingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.ahead_o.value)) != lost
        assert bool(int(dut.catches_o.value)) != lost
        if not lost and call.head & 0xFF != PROGRAM:
            self.check(call, 0)
            self.seen["caught"] += 1
        if rng.random() < 0.3:
            dut.forget_i.value = 1
            await RisingEdge(dut.clk_i)
            dut.forget_i.value = 0
            await FallingEdge(dut.clk_i)
            assert not int(dut.ahead_o.value)
        await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_descriptors(dut):
    rng = new_random("compare")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    calls = [random_call(rng) for _ in range(10)]
    for turn in range(scaled(9000, 4000)):
        call = near(rng, rng.choice(calls))
        if rng.random() < 0.15:
            head = PROGRAM | rng.getrandbits(24) << 8
            call = replace(call, head=head, communicator=rng.randrange(4), program=rng.randrange(PROGRAMS))
        if rng.random() < 0.02:
            bench.states[rng.randrange(4)] = rng.getrandbits(32)
        if turn % 400 == 399:
            bench.kept.clear()
            bench.known()
        await (bench.read if rng.random() < 0.6 else bench.catch)(call)
    for what in ("known", "too short", "another", "program", "caught"):
        assert bench.seen[what] > 15, what


def test_unisono_replay_compare():
    simulate("unisono_replay_compare", __file__)
