"""unisono_rbm_early: segments come before their calls, in few lists; they are taken over or thrown away."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from calls import INFO, Context
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import scaled, simulate
from records import pack, unpack

NONE, LOOK, APPEND, BEGIN, READ, CHECK, END, SWEEP, AIM, VOID = 0, *(1 << bit for bit in range(9))
ADOPTED = [("requested", 1), ("bound", 1), ("listed", 1), ("head", 10), ("tail", 10), ("total", 48), ("received", 48)]
INPUTS = ("op", "bucket", "append", "store", "wipe", "peer", "context", "key", "active", "begins_valid", "info", "bad")
BUCKETS = 512


def hashed(communicator, source, key):
    return (key ^ source << 3 ^ communicator << 2) % BUCKETS


class Early:
    """Drives one operation per cycle, with the memories of segments beside it, and keeps the lists."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.lists: dict[int, list[int]] = {}
        self.infos, self.links, self.bad = {}, {}, {}
        self.opening: dict[tuple[int, int], int] = {}  # by communicator and source: the first segment of what goes on
        self.free = list(range(1024))
        rng.shuffle(self.free)
        for name in (*INPUTS, "begins_communicator", "renew", "link", "give_back_full", "grant_ready"):
            getattr(dut, f"{name}_i").value = 0

    def out(self, name):
        return int(getattr(self.dut, f"{name}_o").value)

    async def step(self, op, **inputs):
        """One cycle. What the outputs say in it is kept in `now`."""
        dut = self.dut
        dut.op_i.value = op
        for name, value in inputs.items():
            getattr(dut, f"{name}_i").value = value
        await ReadOnly()
        names = ("pending", "any", "has", "renews", "sweeps", "hold", "last", "at", "give_back", "mute", "grant_valid")
        self.now = {name: self.out(name) for name in (*names, "bind", "fail", "fail_bad")}
        self.now["adopted"] = unpack(ADOPTED, self.out("adopted"))
        look = self.out("look")
        write = (self.out("link_buffer"), self.out("link_next")) if self.out("link_write") else None
        assert op in (CHECK, APPEND) or not (write or self.now["give_back"] or self.now["grant_valid"])
        await RisingEdge(dut.clk_i)
        dut.op_i.value = NONE
        # The memories answer a cycle later; what is written in the cycle of a read is not seen by it.
        dut.info_i.value = pack(INFO, self.infos.get(look, {}))
        dut.bad_i.value = self.bad.get(look, 0)
        dut.link_i.value = self.links.get(look, 0)
        if write:
            self.links[write[0]] = write[1]

    async def arrive(self, **fields):
        """A segment is stored, and then, or when others have been, appended."""
        buffer = self.free.pop()
        self.infos[buffer] = fields
        self.bad[buffer] = self.rng.random() < 0.1
        await self.step(NONE, store=1)
        await self.step(NONE, store=0)
        assert self.now["pending"]
        whose = fields["communicator"], fields["source"]
        bucket = hashed(*whose, fields["key"])
        if fields["point_to_point"] and not fields["continues"]:
            self.opening.pop(whose, None)
            if fields["opens"]:
                self.opening[whose] = buffer
        await self.step(LOOK, bucket=bucket)
        assert self.now["has"] == bool(self.lists.get(bucket))
        await self.step(APPEND, append=buffer)
        self.lists.setdefault(bucket, []).append(buffer)
        await self.step(NONE)
        assert self.now["any"]
        assert not self.now["pending"]

    async def walk(self, bucket, check):
        """Through one list; `check` says of each segment whether it goes, and looks at what is said of it."""
        stays = []
        for buffer in self.lists[bucket]:
            await self.step(READ)
            while True:
                full, ready = self.rng.random() < 0.3, self.rng.random() < 0.5
                await self.step(CHECK, give_back_full=full, grant_ready=ready)
                assert self.now["at"] == buffer
                assert self.now["last"] == (buffer == self.lists[bucket][-1])
                goes, holds = check(buffer, full, ready)
                assert self.now["hold"] == holds
                if not holds:
                    break
                self.seen["holds"] += 1
            if not goes:
                stays.append(buffer)
            if self.now["give_back"]:
                self.free.insert(0, buffer)
        await self.step(END)
        self.seen["none stays"] += not stays
        self.seen["some stay"] += 0 < len(stays) < len(self.lists[bucket])
        self.lists[bucket] = stays

    def outcome(self, **named):
        """Whatever is not named must be low."""
        for name in ("give_back", "mute", "grant_valid", "bind", "fail"):
            assert self.now[name] == bool(named.get(name)), name

    async def adopt(self, context, peer, active):
        """A pair of a new call takes over what is its own."""
        key = context.tag if context.point_to_point else context.sequence
        bucket = hashed(context.communicator, peer, key)
        bits = context.bits(len(self.dut.context_i) - 101)
        await self.step(BEGIN, context=bits, peer=peer, key=key, active=active)
        assert self.now["any"] == any(self.lists.values())
        assert self.now["has"] == bool(self.lists.get(bucket))
        want, mine, goes_on = dict.fromkeys((name for name, _ in ADOPTED), 0), [], False

        def check(buffer, full, ready):
            nonlocal goes_on
            info = self.infos[buffer]
            same = (info["communicator"], info["source"], info["key"]) == (context.communicator, peer, key)
            same &= info["point_to_point"] == context.point_to_point
            follows = same and info["continues"] and goes_on
            goes_on &= not same or info["continues"]
            if not same or (want["bound"] and not follows):
                self.seen["bound already"] += same and want["bound"]
                self.outcome()
                return False, False
            self.seen["follows"] += follows
            if info["grant"]:
                self.outcome(give_back=ready or not active, grant_valid=active)
                return True, active and not ready
            wrong = info["signature"] != context.signature or self.bad[buffer]
            binds = context.point_to_point and not follows
            self.outcome(give_back=info["request"], bind=binds, fail=wrong and active)
            assert self.now["fail_bad"] == self.bad[buffer]
            self.seen["fails"] += self.now["fail"]
            if context.point_to_point:
                want["bound"], want["total"] = 1, info["total"]
                goes_on = follows or info["opens"]
                # What continues it from now on is not early.
                self.opening = {one: first for one, first in self.opening.items() if first != buffer}
            if info["request"]:
                want["requested"] = 1
            else:
                mine.append(buffer)
                want["received"] = 0 if info["last"] else info["bytes" if info["opens"] else "ends"]
            return True, False

        if self.now["has"]:
            await self.walk(bucket, check)
        else:
            await self.step(END)
        if mine:
            want |= {"listed": 1, "head": mine[0], "tail": mine[-1]}
        assert self.now["adopted"] == want
        at = mine[0] if mine else None
        for following in mine[1:]:
            assert self.links[at] == following, "what is taken over is not in its order"
            at = following
        self.seen["several"] += len(mine) > 1
        self.free[:0] = mine
        await self.step(NONE)
        assert self.now["any"] == any(self.lists.values())

    async def renew(self, communicator):
        """What is early of a communicator goes away."""
        await self.step(NONE, begins_valid=1, begins_communicator=communicator)
        await self.step(NONE, begins_valid=0)
        assert self.now["renews"]
        await self.step(NONE, renew=1)
        self.dut.renew_i.value = 0

        def check(buffer, full, ready):
            goes = self.infos[buffer]["communicator"] == communicator
            if goes:
                self.opening = {one: first for one, first in self.opening.items() if first != buffer}
            self.outcome(give_back=goes and not full, mute=goes and not full)
            return goes, goes and full

        for bucket in range(BUCKETS):
            await self.step(SWEEP)
            assert self.now["sweeps"]
            assert self.now["has"] == bool(self.lists.get(bucket))
            if self.now["has"]:
                await self.walk(bucket, check)
        await self.step(NONE)
        assert not self.now["sweeps"]
        assert not self.now["renews"]


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_segments(dut):
    rng = new_random("early")
    early = Early(dut, rng)
    await start_clock_and_reset(dut)
    # After a reset the lists are emptied, whatever they were.
    for bucket in range(BUCKETS):
        await early.step(AIM, bucket=bucket, wipe=1)
        await early.step(VOID)
    await early.step(NONE, wipe=0)
    assert not early.now["any"]
    for turn in range(scaled(2000, 700)):
        # Keys that meet in few lists: 512 apart, or of another source.
        of, source = rng.choice((0, 2)), rng.choice((0, 1))
        key = hashed(of, source, rng.choice((3, 3 + BUCKETS, 4)))
        if rng.random() < 0.75:
            kind, apart = rng.choice(("grant", "request", "data", "data", "data")), rng.random() < 0.5
            fields = {"grant": kind == "grant", "request": kind == "request", "point_to_point": apart}
            last, opening = rng.random() < 0.5, early.opening.get((of, source))
            continues = kind == "data" and apart and opening is not None and rng.random() < 0.8
            if continues:
                key = early.infos[opening]["key"]
            fields |= {"continues": continues, "opens": kind == "data" and apart and not continues and not last}
            fields |= {"communicator": of, "source": source, "key": key, "signature": rng.choice((7, 7, 7, 8))}
            fields |= {"ends": rng.getrandbits(48), "bytes": rng.getrandbits(13), "last": last}
            await early.arrive(**fields, tag=rng.getrandbits(24), total=rng.getrandbits(48))
        else:
            context = Context(7, key, key, rng.random() < 0.5, of)
            await early.adopt(context, source, rng.random() < 0.85)
        while turn % 100 == 50 and any(early.lists.values()):
            # All are taken over, the last of each list too.
            info = early.infos[next(buffers for buffers in early.lists.values() if buffers)[0]]
            key = info["key"]
            await early.adopt(Context(7, key, key, info["point_to_point"], info["communicator"]), info["source"], True)
        if turn % 200 == 199:
            await early.renew(rng.choice((0, 2, 9)))
    for what in ("holds", "follows", "some stay", "none stays", "bound already", "fails", "several"):
        assert early.seen[what] > 5, early.seen


def test_unisono_rbm_early():
    simulate("unisono_rbm_early", __file__)
