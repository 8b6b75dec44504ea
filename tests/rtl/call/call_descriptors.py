"""What the tests of the call front end share: descriptors, and the checks that a descriptor must pass."""

from __future__ import annotations

import importlib.util
import random
import sys
from types import ModuleType
from typing import Any

from hdl import ROOT


def _load_spec() -> ModuleType:
    """The generated specification, without the package around it, which needs its compiled part."""
    spec = importlib.util.spec_from_file_location("unisono_spec", ROOT / "python" / "unisono" / "_spec.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


spec: Any = _load_spec()

SLOTS: int = spec.MAX_ACTIVE_CALLS
OUTSTANDING: int = spec.MAX_OUTSTANDING_CALLS

NOP_PLAIN, NOP_RUN, NOP_AWAIT, NOP_START = range(4)
LIBRARY_TAGS = 0xFFFF0000
"""From here on tags are those of messages to stream ports, and of sessions."""

#: Bit position and width of each field of a descriptor.
FIELDS: dict[str, tuple[int, int]] = {
    "collective": (0, 8),
    "algorithm": (8, 8),
    "func": (16, 8),
    "dtype": (24, 8),
    "wire_dtype": (32, 8),
    "in_place": (40, 1),
    "src_host": (41, 1),
    "dst_host": (42, 1),
    "src_stream": (43, 1),
    "dst_stream": (44, 1),
    "reserved0": (45, 19),
    "communicator": (64, 32),
    "root": (96, 32),
    "tag": (128, 32),
    "deadline_us": (160, 32),
    "count": (192, 64),
    "src_address": (256, 64),
    "src_bytes": (320, 64),
    "dst_address": (384, 64),
    "dst_bytes": (448, 64),
    "scratch_address": (512, 64),
    "scratch_bytes": (576, 64),
    "params_address": (640, 64),
    "params_bytes": (704, 64),
    "call_id": (768, 32),
    "wait_for0": (800, 32),
    "wait_for1": (832, 32),
    "program": (864, 32),
    "window_offset": (896, 64),
    "reserved2": (960, 64),
}


def encode(**fields: int) -> int:
    """A descriptor as one number, without the checks that spec.CallDescriptor makes."""
    value = 0
    for name, number in fields.items():
        at, width = FIELDS[name]
        assert 0 <= number < 1 << width, f"{name} = {number:#x}"
        value |= number << at
    return value


def field(value: int, name: str) -> int:
    """One field of an encoded descriptor."""
    at, width = FIELDS[name]
    return value >> at & (1 << width) - 1


def expected_code(value: int, kernel_ports: int, programs: int, loaded: int, stream_ports: int = 16) -> int:
    """The error with which a descriptor must be refused, 0 if it must be taken: the first check that fails counts."""
    code = spec.ErrorCode
    collectives = {int(c) for c in spec.Collective}
    get = {name: field(value, name) for name in FIELDS}
    nop = get["collective"] == spec.Collective.NOP
    checks: list[tuple[bool, int]] = [
        (get["collective"] not in collectives, code.INVALID_ARGUMENT),
        (nop and get["algorithm"] > NOP_START, code.UNKNOWN_ALGORITHM),
        (get["func"] not in {int(f) for f in spec.Func}, code.INVALID_OP),
        (get["dtype"] not in {int(d) for d in spec.Datatype}, code.INVALID_DATATYPE),
        (get["wire_dtype"] not in {int(d) for d in spec.Datatype}, code.INVALID_DATATYPE),
        (get["reserved0"] != 0, code.INVALID_ARGUMENT),
        (nop and get["algorithm"] != NOP_PLAIN and get["root"] >= kernel_ports, code.INVALID_ARGUMENT),
        (
            get["collective"] in (spec.Collective.SEND, spec.Collective.RECV)
            and spec.MAX_USER_TAG < get["tag"] < LIBRARY_TAGS,
            code.INVALID_ARGUMENT,
        ),
        (get["count"] > spec.MAX_COUNT, code.INVALID_COUNT),
    ]
    for region in ("src", "dst", "scratch", "params"):
        address, size = get[f"{region}_address"], get[f"{region}_bytes"]
        if region in ("src", "dst"):
            checks.append((bool(get[f"{region}_stream"]) and address >= stream_ports, code.INVALID_ARGUMENT))
        checks.append((size >= 1 << 48 or address + size > 1 << 64, code.INVALID_ARGUMENT))
    program = get["program"]
    checks += [
        (
            get["collective"] == spec.Collective.PROGRAM and not (program < programs and loaded >> program & 1),
            code.INVALID_ARGUMENT,
        ),
        (get["window_offset"] > spec.MAX_WINDOW_OFFSET, code.INVALID_ARGUMENT),
        (get["reserved2"] != 0, code.INVALID_ARGUMENT),
    ]
    return next((int(number) for bad, number in checks if bad), 0)


def random_descriptor(rng: random.Random, call_id: int, **fixed: int) -> int:
    """A descriptor that must be taken, with random values everywhere; `fixed` fields are as given."""
    c = spec.Collective
    fields: dict[str, int] = {
        "collective": rng.choice([int(x) for x in spec.Collective if x not in (c.PROGRAM, c.NOP)]),
        "algorithm": rng.getrandbits(8),
        "func": rng.choice([int(x) for x in spec.Func]),
        "dtype": rng.choice([int(x) for x in spec.Datatype]),
        "wire_dtype": rng.choice([int(x) for x in spec.Datatype]),
        "in_place": rng.getrandbits(1),
        "src_host": rng.getrandbits(1),
        "dst_host": rng.getrandbits(1),
        "communicator": rng.choice((7, 0xFFFF_FFFF)),
        "root": rng.getrandbits(32),
        "tag": rng.getrandbits(31),
        "count": rng.getrandbits(40),
        "call_id": call_id,
        "program": rng.getrandbits(32),
        "window_offset": rng.getrandbits(47),
    }
    for region in ("src", "dst"):
        fields[f"{region}_stream"] = int(rng.random() < 0.2)
        fields[f"{region}_address"] = rng.getrandbits(4) if fields[f"{region}_stream"] else rng.getrandbits(63)
        fields[f"{region}_bytes"] = rng.getrandbits(rng.randint(0, 48))
    for region in ("scratch", "params"):
        fields[f"{region}_address"] = rng.getrandbits(63)
        fields[f"{region}_bytes"] = rng.getrandbits(rng.randint(0, 48))
    fields.update(fixed)
    if fields["collective"] == c.NOP and "algorithm" not in fixed:
        fields["algorithm"] = NOP_PLAIN
    return encode(**fields)


def bad_descriptor(rng: random.Random, call_id: int, **fixed: int) -> int:
    """A descriptor with a flaw of a random kind."""
    value = random_descriptor(rng, call_id, **fixed)

    def put(name: str, number: int) -> int:
        at, width = FIELDS[name]
        return value & ~((1 << width) - 1 << at) | number << at

    used = {
        "collective": {int(x) for x in spec.Collective},
        "func": {int(x) for x in spec.Func},
        "dtype": {int(x) for x in spec.Datatype},
    }
    used["wire_dtype"] = used["dtype"]
    kind = rng.choice(
        [
            "collective",
            "func",
            "dtype",
            "wire_dtype",
            "reserved0",
            "window_offset",
            "reserved2",
            "count",
            "bytes",
            "wrap",
            "program",
            "port",
            "tag",
            "nop",
            "kernel",
        ]
    )
    if kind in used:
        return put(kind, rng.choice([x for x in range(256) if x not in used[kind]]))
    if kind.startswith("reserved"):
        return put(kind, 1 << rng.randrange(FIELDS[kind][1]))
    if kind == "window_offset":
        return put("window_offset", rng.randint(1 << 47, (1 << 64) - 1))
    if kind == "count":
        return put("count", rng.randint(1 << 40, (1 << 64) - 1))
    region = rng.choice(("src", "dst", "scratch", "params"))
    if kind == "bytes":
        return put(f"{region}_bytes", rng.randint(1 << 48, (1 << 64) - 1))
    if kind == "wrap":
        value = put(f"{region}_address", (1 << 64) - 5)
        return put(f"{region}_bytes", rng.randint(6, 1 << 47))
    if kind == "program":
        value = put("collective", int(spec.Collective.PROGRAM))
        return put("program", rng.choice((5, 9, 16, 1 << 20)))
    if kind == "port":
        value = put("dst_stream", 1)
        return put("dst_address", rng.randint(16, 1 << 50))
    if kind == "tag":
        value = put("collective", int(rng.choice((spec.Collective.SEND, spec.Collective.RECV))))
        return put("tag", rng.randrange(1 << 31, LIBRARY_TAGS))
    value = put("collective", int(spec.Collective.NOP))
    if kind == "nop":
        return put("algorithm", rng.randint(4, 255))
    value = put("algorithm", rng.randint(1, 3))
    return put("root", rng.randint(3, 1 << 31))
