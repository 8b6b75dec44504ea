"""unisono_dispatcher_lower: random moves of all kinds, one after the other, against what their run must be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import cocotb
import records
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from look_records import COMMUNICATOR, LOWERED, USES, pack, random_record, unpack
from segments import segment_of

S = records.load()
BIND0, BIND1, BIND2, DECODE, IDLE = 2, 3, 4, 5, 0
EAGER, SEGMENT, MEMBERS = 4096, 8192, 40
TERMS = {"eager_limit": EAGER, "segment_bytes": SEGMENT, "members": MEMBERS}


def random_move(rng):
    """A move as they come: offsets near to the ends of what is bound, counts near to the limits."""
    kinds = S.OperandKind

    def operand(*choices):
        offset = rng.choice((0, 64, 8192 - 64, 8192, rng.getrandbits(48)))
        return S.Operand(kind=rng.choice(choices), region=rng.choice(list(S.Region)), offset=offset)

    dtype = rng.choice([one for one in S.Datatype if one.name != "NONE"])
    bytes_ = rng.choice(
        (0, 64, 64, EAGER, EAGER, EAGER + 16, 8192, 8208, 65536, 65552, 262144, 262160, rng.getrandbits(38) & ~15)
    )
    put = rng.random() < 0.15
    remote = S.RemoteKind.MEMORY if put else rng.choice((S.RemoteKind.NONE, S.RemoteKind.MESSAGE, S.RemoteKind.MESSAGE))
    mode = S.PeerMode.RANK if put else rng.choice((S.PeerMode.RANK, S.PeerMode.RANK, S.PeerMode.LIST))
    get = remote == S.RemoteKind.NONE and rng.random() < 0.2
    # Of memory here and a place in a window a move has one.
    second = [kinds.REMOTE_MEMORY] if get else [kinds.NONE] if put else [kinds.NONE, kinds.MEMORY, kinds.ARRIVAL]
    return S.Move(
        kind=rng.choice((S.MoveKind.MOVE,) * 9 + (S.MoveKind.NOP,)),
        func=rng.choice(list(S.Func)),
        dtype=dtype,
        protocol=rng.choice((S.Protocol.AUTO, S.Protocol.AUTO, S.Protocol.EAGER, S.Protocol.RENDEZVOUS)),
        swap=rng.random() < 0.5,
        signal=rng.random() < 0.3,
        count=bytes_ // dtype.bytes,
        op0=operand(kinds.NONE, kinds.MEMORY),
        op1=operand(*second),
        arrival=S.Arrival(peer=rng.randrange(64), mode=rng.choice(list(S.PeerMode)), tag=rng.getrandbits(24)),
        local=operand(kinds.NONE, kinds.MEMORY),
        remote=S.Remote(kind=remote, peer=rng.randrange(64), mode=mode, tag=rng.getrandbits(24)),
        remote_address=S.RemoteAddress(offset=rng.choice((0, 64, (1 << 48) - 4096, rng.getrandbits(48)))),
    )


class Case:
    """A move, with what is bound, and what it must become."""

    def __init__(self, rng):
        self.move = move = random_move(rng)
        self.uses = random_record(rng, USES)
        self.uses["source_used"], self.uses["sink_used"] = rng.random() < 0.1, rng.random() < 0.1
        self.peers = rng.choice((0, 1 << rng.randrange(64), rng.getrandbits(64)))
        self.generation = rng.randrange(4)
        self.agreed = rng.random() < 0.7  # that long messages begin on credit
        self.apart = rng.random() < 0.7  # point to point
        self.bound = {region: (rng.getrandbits(63), rng.choice((8192, 8192, 1 << 47))) for region in S.Region}
        self.bound[S.Region.WINDOW] = (rng.choice((0, 64, 1 << 47, (1 << 48) - 64)), 1 << 47)
        self.put = move.remote.kind == S.RemoteKind.MEMORY
        self.get = move.op1.kind == S.OperandKind.REMOTE_MEMORY
        self.bytes = move.count * move.dtype.bytes
        self.exists = move.kind == S.MoveKind.MOVE and bool(move.count or move.signal)
        second = move.op1.kind == S.OperandKind.MEMORY or move.local.kind == S.OperandKind.MEMORY
        self.binds = second or self.put or self.get

    def segment(self):
        """Only messages among members are cut by their length."""
        move = self.move
        sends, arrives = move.remote.kind == S.RemoteKind.MESSAGE, move.op1.kind == S.OperandKind.ARRIVAL
        end = move.remote if sends else move.arrival
        with_switch = end.mode == S.PeerMode.RANK and end.peer >= MEMBERS
        return segment_of(self.bytes, EAGER, SEGMENT, whole=with_switch or not (sends or arrives))

    def regions(self):
        """What is asked for in Bind0, Bind1 and the last step before Decode."""
        move, window = self.move, self.put or self.get
        return [move.op0.region, S.Region.WINDOW if window else move.op1.region, move.local.region]

    def asks_early(self, free):
        """Whether credit is all that it can want."""
        move = self.move
        return (
            self.exists
            and move.remote.kind == S.RemoteKind.MESSAGE
            and move.remote.mode == S.PeerMode.RANK
            and move.op1.kind != S.OperandKind.ARRIVAL
            and not self.uses["sink_used"]
            and move.protocol != S.Protocol.RENDEZVOUS
            and (self.bytes <= EAGER or (self.apart and self.opens()))
            and free
        )

    def opens(self):
        """Whether its first segments may go on credit."""
        move = self.move
        remote = move.remote
        among = remote.kind == S.RemoteKind.MESSAGE and remote.mode == S.PeerMode.RANK and remote.peer < MEMBERS
        streams = self.uses["source_used"] or self.uses["sink_used"]
        long = move.protocol != S.Protocol.RENDEZVOUS and self.bytes > EAGER
        return self.agreed and self.apart and among and move.op1.kind != S.OperandKind.ARRIVAL and not streams and long

    def beyond(self, operand):
        return operand.kind == S.OperandKind.MEMORY and operand.offset + self.bytes > self.bound[operand.region][1]

    def run(self):
        """The run's fields that it says something about."""
        move, uses = self.move, self.uses
        kinds, remote = S.OperandKind, move.remote

        def place(operand, use):
            there = (self.bound[operand.region][0] + operand.offset) % (1 << 64)
            return uses[f"{use}_port"] if uses[f"{use}_used"] else there

        send = remote.kind == S.RemoteKind.MESSAGE or self.put
        fan_out = send and remote.mode != S.PeerMode.RANK
        lowest = (self.peers & -self.peers).bit_length() - 1
        arrival = move.op1.kind == kinds.ARRIVAL
        run = {
            "generation": self.generation,
            "func": move.func,
            "dtype": move.dtype,
            "swap": move.swap,
            "op0": move.op0.kind == kinds.MEMORY or uses["source_used"],
            "op1_memory": move.op1.kind == kinds.MEMORY,
            "arrival": arrival,
            "fan_in": arrival and move.arrival.mode != S.PeerMode.RANK,
            "pool": move.arrival.peer,
            "source": move.arrival.peer,
            "local": move.local.kind == kinds.MEMORY or uses["sink_used"],
            "send": send,
            "put": self.put,
            "get": self.get,
            "fan_out": fan_out,
            "eager": move.protocol != S.Protocol.RENDEZVOUS and self.bytes <= EAGER,
            "opens": self.opens(),
            "tag": remote.tag,
            "bytes": self.bytes,
            "segment": self.segment(),
            "exists": self.exists,
            "one_piece": self.bytes <= SEGMENT,
        }
        run |= {f"op0_{name}": uses[f"source_{name}"] for name in ("used", "port", "ticket")}
        run |= {f"local_{name}": uses[f"sink_{name}"] for name in ("used", "port", "ticket")}
        if not fan_out:
            run["peer"] = move.arrival.peer if self.get else remote.peer
        elif self.peers:
            run["peer"] = lowest
        if self.peers:
            run["lowest"] = lowest
        if run["op0"]:
            run["op0_address"] = place(move.op0, "source")
        if run["local"]:
            run["local_address"] = place(move.local, "sink")
        window = self.bound[S.Region.WINDOW][0] + move.remote_address.offset
        if self.put or self.get:
            run["op1_address"] = window
        elif run["op1_memory"]:
            run["op1_address"] = (self.bound[move.op1.region][0] + move.op1.offset) % (1 << 64)
        outside = self.beyond(move.op0) or self.beyond(move.op1) or self.beyond(move.local)
        run["outside"] = outside or ((self.put or self.get) and window + self.bytes >= 1 << 48)
        return run


class Bench:
    def __init__(self, dut):
        self.dut, self.rng, self.seen = dut, new_random("lower"), Counter()
        for name in ("step", "issue_valid", "issue_generation", "given", "binding", "free"):
            getattr(dut, f"{name}_i").value = 0
        dut.point_to_point_i.value = 0
        dut.credit_ready_i.value = dut.credit_answer_i.value = dut.credit_granted_i.value = 0
        dut.communicator_i.value = pack(COMMUNICATOR, TERMS)

    async def cycle(self, step, answer=None):
        """One cycle in this step, with the answer about the region that was asked for before."""
        dut = self.dut
        dut.step_i.value = step
        address, size = answer or (self.rng.getrandbits(64), self.rng.getrandbits(48))
        dut.binding_i.value = size << 64 | address
        await FallingEdge(dut.clk_i)

    async def look(self, case):
        dut, rng, move = self.dut, self.rng, case.move
        dut.issue_valid_i.value, dut.issue_generation_i.value = 1, case.generation
        dut.communicator_i.value = pack(COMMUNICATOR, TERMS | {"opens": case.agreed})
        dut.point_to_point_i.value = case.apart
        await self.cycle(IDLE)
        assert not int(dut.region_asks_o.value)
        await RisingEdge(dut.clk_i)
        dut.issue_valid_i.value, dut.issue_generation_i.value = 0, rng.randrange(4)
        encoded = int.from_bytes(move.encode(), "little")
        uses = pack(USES, case.uses)
        dut.given_i.value = (uses << 64 | case.peers) << 512 | encoded
        regions, free, ready = case.regions(), rng.random() < 0.7, rng.random() < 0.7
        dut.free_i.value, dut.credit_ready_i.value = free, ready
        await self.cycle(BIND0)
        asks = case.asks_early(free)
        assert int(dut.bytes_o.value) == case.bytes
        assert bool(int(dut.credit_take_o.value)) == asks
        assert not asks or bool(int(dut.credit_keep_o.value)) == (case.bytes > EAGER)
        self.seen["asks for a long one"] += asks and case.bytes > EAGER
        assert int(dut.region_o.value) == regions[0]
        waits = rng.choice((0, 1, 2, 3, 6)) if asks and ready else None
        granted = rng.random() < 0.6
        self.seen["asks"] += asks and ready
        await RisingEdge(dut.clk_i)

        async def step(which, answer, region):
            nonlocal waits
            dut.credit_answer_i.value = waits == 0
            dut.credit_granted_i.value = granted if waits == 0 else rng.random() < 0.5
            dut.free_i.value = rng.random() < 0.5
            await self.cycle(which, case.bound[answer])
            assert int(dut.region_asks_o.value)
            assert region is None or int(dut.region_o.value) == region
            assert not int(dut.credit_take_o.value)
            answered = waits is None or waits == 0
            waits = None if answered else waits - 1
            return answered

        got = await step(BIND1, regions[0], regions[1])
        assert bool(int(dut.binds_o.value)) == case.binds
        await RisingEdge(dut.clk_i)
        if case.binds:
            got = await step(BIND2, regions[1], regions[2])
            await RisingEdge(dut.clk_i)
        last = regions[2] if case.binds else regions[1]
        for cycle in range(20):
            # What is asked for in Decode is the local result's region, again.
            got = await step(DECODE, last if cycle == 0 else regions[2], None)
            window = (case.put or case.get) and cycle < 2
            assert bool(int(dut.ready_o.value)) == (got and not window)
            if got and not window:
                break
            self.seen["waits for credit"] += not got
            await RisingEdge(dut.clk_i)
        found, want = unpack(LOWERED, int(dut.lowered_o.value)), case.run()
        want["credited"] = asks and ready and granted
        wrong = {name: (found[name], value) for name, value in want.items() if found[name] != value}
        assert not wrong, (wrong, move)
        for name in ("outside", "put", "get", "fan_in", "fan_out", "credited", "eager", "one_piece"):
            self.seen[name] += bool(want[name])
        self.seen[f"segments of {want['segment']}"] += 1
        self.seen["fits"] += case.exists and not want["outside"]
        await RisingEdge(dut.clk_i)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_moves(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _ in range(scaled(16000, 4000)):
        await bench.look(Case(bench.rng))
    names = ("asks", "waits for credit", "outside", "put", "get", "fan_in", "fan_out", "credited", "eager", "one_piece")
    for what in (*names, "asks for a long one", "fits", "segments of 2048", "segments of 4096"):
        assert bench.seen[what] > 40, what


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_last_byte(dut):
    """A move up to the last byte that is bound fits; one of an element more does not, whichever operand it is."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for name in ("op0", "op1", "local"):
        for offset, outside in ((8192 - 64, False), (8192 - 63, True)):
            memory = S.Operand(kind=S.OperandKind.MEMORY, region=S.Region.DST, offset=offset)
            move = S.Move(kind=S.MoveKind.MOVE, dtype=S.Datatype.INT32, count=16)
            case = Case(bench.rng)
            case.move = replace(move, **{name: memory})
            case.bound = dict.fromkeys(S.Region, (0, 8192))
            case.uses = dict.fromkeys(case.uses, 0)
            case.put = case.get = False
            case.bytes, case.exists, case.binds = 64, True, name != "op0"
            await bench.look(case)
            assert case.run()["outside"] == outside


def test_unisono_dispatcher_lower():
    simulate("unisono_dispatcher_lower", __file__)
