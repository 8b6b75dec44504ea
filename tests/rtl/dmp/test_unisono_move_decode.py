"""unisono_move_decode against core/program_check.cpp, and what it says of good moves against the fields themselves."""

import ctypes
import importlib.util
import json
import subprocess
import sys
from collections import Counter, deque
from dataclasses import replace
from pathlib import Path

import cocotb
import pytest
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import BUILD, ROOT, full, parameters, scaled, simulate
from verilated import locked


def load_spec():
    """The generated Python module, without the package that needs the C++ core."""
    found = importlib.util.spec_from_file_location("unisono_spec", ROOT / "python" / "unisono" / "_spec.py")
    module = importlib.util.module_from_spec(found)
    sys.modules["unisono_spec"] = module
    found.loader.exec_module(module)
    return module


S = load_spec()
KIND, REMOTE = S.OperandKind, S.RemoteKind
SHIM = BUILD / "program_check_shim.so"
VECTORS = scaled(30_000, 10_000)

# First words of the messages of core/program_check.cpp, by the reason that stands for them. The first that fits.
REASONS = [
    ("reserved", "Fields"),
    ("a field holds", "Fields"),
    ("segment dependency", "Distance"),
    ("has cast wire", "Cast"),
    ("names stream port", "Port"),
    ("is the params word", "Params"),
    ("a strided move", "Strided"),
    ("op1 is remote memory of any", "Peer"),
    ("names rank", "Peer"),
    ("names pool index", "Peer"),
    ("lists rank", "Peer"),
    ("goes to any of a list", "Peer"),
    ("is a stream of a list", "Peer"),
    ("of a peer; peers can reach", "Region"),
    ("allowed are none, memory", "Operand"),
    ("on which it is not defined", "Undefined"),
    ("two operands and no function", "Func"),
    ("function avg divides", "Func"),
    ("with one operand", "Func"),
    ("no function to combine", "Func"),
    ("no operand and a count", "Count"),
    ("elements of datatype none", "Count"),
    ("no result", "Count"),
    ("signal set", "Signal"),
]
CODES = {
    "Fields": 1, "Distance": 2, "Operand": 3, "Cast": 4, "Port": 5, "Params": 6, "Strided": 7, "Peer": 8,
    "Region": 9, "Func": 10, "Undefined": 11, "Count": 12, "Signal": 13,
}  # fmt: skip


def reason_of(text):
    return next(CODES[name] for part, name in REASONS if part in text)


def build_shim():
    """Once for all tests, unless something it is made of is newer."""
    sources = [Path(__file__).with_name("program_check_shim.cpp"), *(ROOT / "core" / f for f in CORE)]
    inputs = [*sources, *(ROOT / "core").rglob("*.hpp")]
    with locked(SHIM.parent):
        if SHIM.exists() and SHIM.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
            return
        command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}", *map(str, sources), "-o", str(SHIM)]
        subprocess.run(command, check=True, timeout=300)


CORE = ("program_check.cpp", "text.cpp", "user_op.cpp")


class Oracle:
    def __init__(self):
        self.check = ctypes.CDLL(str(SHIM)).unisono_check_move
        self.text = ctypes.create_string_buffer(512)

    def __call__(self, raw, size, pool):
        words = (ctypes.c_uint64 * 8)(*(raw >> 64 * i & (1 << 64) - 1 for i in range(8)))
        array = (ctypes.c_uint32 * max(1, len(pool)))(*pool)
        bad = self.check(words, size, array, len(pool), self.text, 511)
        assert bad >= 0, self.text.value
        return self.text.value.decode() if bad else ""


def random_pool(rng, size, ranks):
    """Peer lists, some with members that do not exist."""
    pool = []
    for _ in range(rng.randint(1, 4)):
        span = size if rng.random() < 0.9 else ranks
        members = rng.sample(range(span), rng.randint(1, min(span, 6)))
        pool += [len(members), *members]
    if rng.random() < 0.1:
        pool += [0]
    return pool


def lists_of(pool):
    at, found = 0, []
    while at < len(pool) and pool[at]:
        found.append(at)
        at += 1 + pool[at]
    return found


def mask_of(pool, index, ranks=64):
    """What reads the pool gives the decoder: nothing if no list stands there, or one that names a rank twice."""
    if index >= len(pool) or not 0 < pool[index] < len(pool) - index:
        return 0
    members = pool[index + 1 : index + 1 + pool[index]]
    if len(set(members)) < len(members) or max(members) >= ranks:
        return 0
    return sum(1 << rank for rank in members)


REACHABLE = (S.Region.SRC, S.Region.DST, S.Region.WINDOW)
OWN = (S.Region.SRC, S.Region.DST, S.Region.SCRATCH, S.Region.PARAMS)


def memory(rng, streams=True):
    if streams and rng.random() < 0.15:
        return S.Operand(kind=S.OperandKind.STREAM, offset=rng.randrange(16))
    indirect = rng.random() < 0.3
    offset = rng.getrandbits(rng.choice((4, 12, 48)))
    return S.Operand(
        kind=S.OperandKind.MEMORY,
        region=rng.choice([*S.Region, *OWN, *OWN]),
        indirect=indirect,
        offset=offset & ~7 if indirect else offset,
    )


def peer(rng, size, pool, lists, any_allowed):
    if lists and rng.random() < 0.4:
        mode = S.PeerMode.ANY if any_allowed and rng.random() < 0.4 else S.PeerMode.LIST
        return rng.choice(lists_of(pool)), mode
    return rng.randrange(size), S.PeerMode.RANK


def random_move(rng, size, pool):
    """A move that is mostly well formed."""
    op0 = memory(rng) if rng.random() < 0.5 else S.Operand()
    kind1 = rng.choice((KIND.NONE, KIND.MEMORY, KIND.ARRIVAL, KIND.ARRIVAL, KIND.REMOTE_MEMORY))
    op1 = memory(rng, streams=False) if kind1 == KIND.MEMORY else S.Operand(kind=kind1)
    index, mode = peer(rng, size, pool, True, kind1 == KIND.ARRIVAL)
    arrival = S.Arrival(peer=index, mode=mode, tag=rng.getrandbits(24))
    kind = rng.choice((REMOTE.NONE, REMOTE.MESSAGE, REMOTE.MESSAGE, REMOTE.MEMORY, REMOTE.STREAM))
    index, mode = peer(rng, size, pool, kind != REMOTE.STREAM, False)
    remote = S.Remote(kind=kind, peer=index, mode=mode, tag=rng.getrandbits(24), port=rng.randrange(16))
    local = memory(rng) if kind == REMOTE.NONE or rng.random() < 0.5 else S.Operand()
    address = S.RemoteAddress(
        region=rng.choice(REACHABLE), result_region=rng.choice(REACHABLE), offset=rng.getrandbits(48)
    )
    operands = (op0.kind != KIND.NONE) + (kind1 != KIND.NONE)
    fan_in = kind1 in (KIND.ARRIVAL, KIND.REMOTE_MEMORY) and arrival.mode != S.PeerMode.RANK
    count = rng.choice((0, 1, 8, rng.getrandbits(16), rng.getrandbits(40))) if operands else 0
    indirect = bool(operands) and rng.random() < 0.2
    func = S.Func.NONE
    dtype = rng.choice(list(S.Datatype))
    if operands == 2 or fan_in:
        func = rng.choice([f for f in S.Func if f < 13])
    elif operands == 1 and rng.random() < 0.2:
        func = S.Func.AVG
    signal = (kind1 == KIND.ARRIVAL or kind == REMOTE.MESSAGE) and rng.random() < 0.4
    return S.Move(
        kind=rng.choices(list(S.MoveKind), (1, 20, 1))[0],
        func=func,
        dtype=dtype,
        protocol=rng.choice(list(S.Protocol)),
        log2_segment=rng.randrange(32),
        swap=rng.random() < 0.5,
        signal=signal,
        count_indirect=indirect,
        dependencies=rng.getrandbits(32),
        count=count & ~7 if indirect else count,
        segment_dependency0=rng.randrange(32),
        segment_dependency1=rng.randrange(32),
        op0=op0,
        op1=op1,
        arrival=arrival,
        local=local,
        remote=remote,
        remote_address=address,
    )


def random_put_or_get(rng, size):
    """Of one peer's window, as the operations make them."""
    here = replace(memory(rng, streams=False), region=rng.choice(OWN))
    there = rng.randrange(size)
    address = S.RemoteAddress(
        region=S.Region.WINDOW, result_region=S.Region.WINDOW, offset=rng.getrandbits(rng.choice((4, 48)))
    )
    puts = rng.random() < 0.5
    return S.Move(
        kind=S.MoveKind.MOVE,
        dtype=rng.choice([d for d in S.Datatype if d != S.Datatype.NONE]),
        dependencies=rng.getrandbits(32),
        count=rng.getrandbits(rng.choice((1, 10, 40))),
        segment_dependency0=rng.choice((0, rng.randrange(32))),
        op0=here if puts else S.Operand(),
        op1=S.Operand() if puts else S.Operand(kind=KIND.REMOTE_MEMORY),
        arrival=S.Arrival() if puts else S.Arrival(peer=there),
        local=S.Operand() if puts else here,
        remote=S.Remote(kind=REMOTE.MEMORY, peer=there) if puts else S.Remote(),
        remote_address=address,
    )


def mutated(rng, move, size):
    """One field of another value."""
    slot = rng.choice(("op0", "op1", "local"))
    operand = getattr(move, slot)
    return rng.choice(
        (
            lambda: replace(move, **{slot: replace(operand, kind=rng.choice(list(KIND)))}),
            lambda: replace(move, **{slot: replace(operand, cast=S.Cast.WIRE)}),
            lambda: replace(move, **{slot: replace(operand, indirect=True, offset=rng.getrandbits(12))}),
            lambda: replace(move, **{slot: S.Operand(kind=KIND.STREAM, offset=rng.getrandbits(rng.choice((5, 48))))}),
            lambda: replace(move, func=rng.choice(list(S.Func))),
            lambda: replace(move, dtype=rng.choice(list(S.Datatype))),
            lambda: replace(move, count=rng.choice((0, rng.getrandbits(40)))),
            lambda: replace(move, count_indirect=not move.count_indirect),
            lambda: replace(move, signal=not move.signal),
            lambda: replace(move, segment_dependency0=rng.randrange(64)),
            lambda: replace(move, segment_dependency1=rng.randrange(64)),
            lambda: replace(
                move, arrival=replace(move.arrival, peer=rng.choice((size, size - 1, rng.getrandbits(24))))
            ),
            lambda: replace(move, arrival=replace(move.arrival, mode=rng.choice(list(S.PeerMode)))),
            lambda: replace(move, remote=replace(move.remote, peer=rng.choice((size, size - 1, rng.getrandbits(24))))),
            lambda: replace(move, remote=replace(move.remote, mode=rng.choice(list(S.PeerMode)))),
            lambda: replace(move, remote=replace(move.remote, kind=rng.choice(list(S.RemoteKind)))),
            lambda: replace(move, remote=replace(move.remote, cast=S.Cast.WIRE)),
            lambda: replace(move, remote=replace(move.remote, port=rng.randrange(256))),
            lambda: replace(move, remote_address=replace(move.remote_address, strided=True)),
            lambda: replace(move, remote_address=replace(move.remote_address, region=rng.choice(list(S.Region)))),
            lambda: replace(
                move, remote_address=replace(move.remote_address, result_region=rng.choice(list(S.Region)))
            ),
        )
    )()


def is_put_or_get(move, gets):
    """Whether a move does no more with remote memory than put and get."""
    if move.func != S.Func.NONE:
        return False
    if move.op1.kind == KIND.REMOTE_MEMORY:
        return (
            bool(gets)
            and move.op0.kind == KIND.NONE
            and move.local.kind == KIND.MEMORY
            and move.remote.kind == REMOTE.NONE
            and move.arrival.mode == S.PeerMode.RANK
            and move.remote_address.region == S.Region.WINDOW
            and move.segment_dependency0 == move.segment_dependency1 == 0
        )
    return (
        move.op0.kind != KIND.NONE
        and move.op1.kind == move.local.kind == KIND.NONE
        and move.remote.mode == S.PeerMode.RANK
        and move.remote_address.result_region == S.Region.WINDOW
    )


def lacking(move, capability, stream_ports, gets):
    """Whether the engine of this capability word, with that many stream ports, refuses a well-formed move."""
    if move.kind != S.MoveKind.MOVE:
        return False
    able = S.Capability.decode(capability.to_bytes(8, "little"))
    ports = [operand.offset for operand in (move.op0, move.local) if operand.kind == KIND.STREAM]
    # What several peers get is read for each of them.
    read_again = move.op0 if move.local.kind == KIND.NONE else move.local
    several = move.remote.kind == REMOTE.MESSAGE and move.remote.mode != S.PeerMode.RANK
    fetches, arrives = move.op1.kind == KIND.REMOTE_MEMORY, move.op1.kind == KIND.ARRIVAL
    func = 15 if move.func >= 16 else int(move.func)
    computes = move.func != S.Func.NONE and (move.count != 0 or move.count_indirect)
    return (
        any(not able.streams or port >= stream_ports for port in ports)
        or move.remote.kind == REMOTE.STREAM
        or (several and read_again.kind == KIND.STREAM)
        or ((fetches or move.remote.kind == REMOTE.MEMORY) and not (able.remote_memory and is_put_or_get(move, gets)))
        or any(o.kind == KIND.MEMORY and o.region == S.Region.WINDOW for o in (move.op0, move.op1, move.local))
        or (move.remote.kind != REMOTE.NONE and move.remote.mode != S.PeerMode.RANK and not able.lists)
        or ((fetches or arrives) and move.arrival.mode != S.PeerMode.RANK and not able.fan_in)
        or (computes and not (able.funcs >> func & 1 and able.datatypes >> int(move.dtype) & 1))
        or (
            move.protocol == S.Protocol.RENDEZVOUS
            and (arrives or move.remote.kind == REMOTE.MESSAGE)
            and not able.rendezvous
        )
    )


def wanted(move, pool):
    """What the decoder says of a move that it takes."""
    moves = move.kind == S.MoveKind.MOVE
    elements = moves and (move.count_indirect or move.count > 0)
    exists = elements or (moves and move.signal)

    def peers(where):
        return 1 << where.peer if where.mode == S.PeerMode.RANK else mask_of(pool, where.peer)

    return {
        "receives": peers(move.arrival) if exists and move.op1.kind == KIND.ARRIVAL else 0,
        "sends": peers(move.remote) if exists and move.remote.kind == REMOTE.MESSAGE else 0,
        "needs_op0": elements and move.op0.kind != KIND.NONE,
        "needs_op1_memory": elements and move.op1.kind == KIND.MEMORY,
        "has_local": elements and move.local.kind != KIND.NONE,
        "exists": exists,
        "distance": max(move.segment_dependency0, move.segment_dependency1),
    }


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def agrees_with_the_engine(dut):
    rng = new_random("decode")
    oracle = Oracle()
    ranks, capability, stream_ports, gets = (
        parameters()[name] for name in ("Ranks", "Capability", "StreamPorts", "Gets")
    )
    for port in ("in_valid", "out_ready"):
        getattr(dut, f"{port}_i").value = 0
    await start_clock_and_reset(dut)
    edge = RisingEdge(dut.clk_i)
    expected, offered, taken = deque(), None, 0
    seen = Counter()
    paces = [never, share(rng, 0.3), bursts(rng)]
    idle, back = never, never
    cycle = stalled = taken_remote = 0
    while taken < VECTORS:
        await edge
        cycle += 1
        if cycle % 500 == 0:
            idle, back = rng.choice(paces), rng.choice(paces)
        if int(dut.out_valid_o.value):
            raw, size, pool, single, slot = expected[0]
            values = (int(dut.out_move_o.value), int(dut.out_slot_o.value))
            assert values == (raw, slot), "the move changed on its way"
            text = oracle(raw, size, pool)
            reason, malformed = int(dut.out_reason_o.value), int(dut.out_malformed_o.value)
            about = f"{raw:#0130x}, {size} ranks, pool {pool}: {text or 'well formed'}, reason {reason}"
            assert malformed == (reason != 0), about
            if text:
                # The user's operators are malformed in C++ where none is registered; here they are not supported.
                code = reason_of(text)
                users = raw >> 4 & 0xFF >= 16
                assert malformed, about
                assert not single or reason == code or (users and code == CODES["Undefined"] and reason == 20), about
                assert int(dut.out_error_o.value) == (11 if reason < 16 else 10), about
            else:
                move = S.Move.decode(raw.to_bytes(64, "little"))
                lacks = lacking(move, capability, stream_ports, gets)
                assert malformed == lacks, about
                assert not lacks or reason >= 16, about
                assert int(dut.out_error_o.value) == (10 if lacks else 0), about
                if not lacks:
                    taken_remote += move.kind == S.MoveKind.MOVE and (
                        move.remote.kind == REMOTE.MEMORY or move.op1.kind == KIND.REMOTE_MEMORY
                    )
                    for name, value in wanted(move, pool).items():
                        got = int(getattr(dut, f"out_{name}_o").value)
                        assert got == int(value), f"{name} is {got:#x}, not {int(value):#x}; {about}"
            if int(dut.out_ready_i.value):
                seen[reason] += 1
                taken += 1
                expected.popleft()
                stalled = 0
            else:
                stalled += 1
        if offered is not None and int(dut.in_ready_o.value):
            expected.append(offered)
            offered = None
        assert len(expected) <= 1
        if offered is None and not idle():
            size = rng.choice((1, 2, 5, ranks - 1, ranks, rng.randint(1, ranks)))
            pool = random_pool(rng, size, ranks)
            move = random_put_or_get(rng, size) if rng.random() < 0.2 else random_move(rng, size, pool)
            changes = rng.choice((0, 0, 1, 1, 2, 4))
            for _ in range(changes):
                move = mutated(rng, move, size)
            raw = int.from_bytes(move.encode(), "little")
            flips = rng.random() < 0.1
            if flips:
                raw ^= 1 << rng.randrange(512)
            slot = rng.randrange(8)
            offered = (raw, size, pool, changes == 0 and not flips, slot)
            dut.in_move_i.value = raw
            dut.in_slot_i.value = slot
            dut.size_i.value = size
            dut.list_receives_i.value = mask_of(pool, raw >> 256 & 0xFFFFFF)
            dut.list_sends_i.value = mask_of(pool, raw >> 389 & 0xFFFFFF)
        dut.in_valid_i.value = int(offered is not None)
        dut.out_ready_i.value = int(not back())
    dut._log.info("moves by reason: %s", sorted(seen.items()))
    for code in range(1, 14):
        assert seen[code] > 20, f"reason {code} only {seen[code]} times"
    assert seen[0] > VECTORS // 20
    able = S.Capability.decode(capability.to_bytes(8, "little")).remote_memory
    assert taken_remote > VECTORS // 100 if able else taken_remote == 0


def capability(**fields):
    word = S.Capability(
        version=1,
        datatypes=fields.pop("datatypes", (1 << 24) - 1),
        funcs=fields.pop("funcs", 0x7FFF),
        log2_max_segment=13,
        **fields,
    )
    return int.from_bytes(word.encode(), "little")


EVERYTHING = dict.fromkeys(("streams", "remote_memory", "lists", "fan_in", "rendezvous"), True)


@pytest.fixture(scope="module", autouse=True)
def shim():
    build_shim()


@pytest.mark.parametrize(
    ("ranks", "word", "stream_ports", "gets"),
    [
        (64, capability(**EVERYTHING), 16, 1),
        full(64, capability(**EVERYTHING), 3, 0),
        full(64, capability(lists=True, fan_in=True, rendezvous=True), 0, 1),
        (16, capability(funcs=0x0006, datatypes=1 << 6 | 1 << 2), 16, 0),
    ],
)
def test_unisono_move_decode(ranks, word, stream_ports, gets):
    given = json.dumps({"Ranks": ranks, "Capability": word, "StreamPorts": stream_ports, "Gets": gets})
    simulate(
        "unisono_move_decode",
        __file__,
        {"Ranks": ranks, "Capability": f"64'h{word:x}", "StreamPorts": stream_ports, "Gets": gets},
        environment={"UNISONO_PARAMETERS": given},
        limit_s=500,
    )
