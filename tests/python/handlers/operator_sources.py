"""Operators in C for tests, and what ranks do with them. Data differ on every rank."""

from __future__ import annotations

from pathlib import Path

SOURCES = {
    "larger": """#include <unisono_operator.h>
struct pair { float value; uint32_t index; };
US_OPERATOR(struct pair, a, b) {
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}
""",
    "three": """#include <unisono_operator.h>
struct three { uint16_t low; uint8_t high; } __attribute__((packed));
US_OPERATOR(struct three, a, b) {
  struct three c = {a.low + b.low, a.high ^ b.high};
  return c;
}
""",
    # Does not commute: affine maps x -> scale * x + shift of integers, one after the other.
    "affine": """#include <unisono_operator.h>
struct affine { uint64_t scale, shift; };
US_OPERATOR(struct affine, a, b) {
  struct affine c = {a.scale * b.scale, a.shift * b.scale + b.shift};
  return c;
}
""",
    # Does not commute, and no datatype is as large: the same with two shifts.
    "wide": """#include <unisono_operator.h>
struct wide { uint64_t scale, shift, other; uint32_t count; };
US_OPERATOR(struct wide, a, b) {
  struct wide c = {a.scale * b.scale, a.shift * b.scale + b.shift, a.other * b.scale + b.other, a.count + b.count};
  return c;
}
""",
    "divides": """#include <unisono_operator.h>
US_OPERATOR(uint32_t, a, b) {
  return a / b;
}
""",
    "sum": """#include <unisono_operator.h>
US_OPERATOR(float, a, b) {
  return a + b;
}
""",
    "none": """#include <unisono_handler.h>
int payload(void) { return US_GO_ON; }
""",
}

#: Before every program: what the operators give, as NumPy says it.
BEGIN = """
import sys
import numpy as np
import unisono

folder = sys.argv[1]
PAIR = np.dtype([("value", "f4"), ("index", "u4")])
THREE = np.dtype([("low", "u2"), ("high", "u1")])
AFFINE = np.dtype([("scale", "u8"), ("shift", "u8")])
WIDE = np.dtype([("scale", "u8"), ("shift", "u8"), ("other", "u8"), ("count", "u4")], align=True)

def given(dtype, count, rank, salt=0):
    source = np.random.default_rng(1000 * salt + rank)
    values = np.zeros(count, dtype)
    for field in dtype.names:
        values[field] = source.integers(0, 50, count)
    return values

def larger(a, b):
    right = (b["value"] > a["value"]) | ((b["value"] == a["value"]) & (b["index"] < a["index"]))
    return np.where(right, b, a)

def three(a, b):
    c = a.copy()
    c["low"], c["high"] = a["low"] + b["low"], a["high"] ^ b["high"]
    return c

def affine(a, b):
    c = a.copy()
    c["scale"], c["shift"] = a["scale"] * b["scale"], a["shift"] * b["scale"] + b["shift"]
    return c

def wide(a, b):
    c = affine(a, b)
    c["other"], c["count"] = a["other"] * b["scale"] + b["other"], a["count"] + b["count"]
    return c

def folded(function, parts):
    result = parts[0]
    for part in parts[1:]:
        result = function(result, part)
    return result
"""

#: All reductions, with all four operators.
REDUCTIONS = (
    BEGIN
    + """
with unisono.init(timeout=60) as context:
    world = context.world
    rank, size = world.rank, world.size
    for name, function, dtype in (("larger", larger, PAIR), ("three", three, THREE), ("affine", affine, AFFINE),
                                  ("wide", wide, WIDE)):
        ordered = name in ("affine", "wide")
        op = world.load_operator(f"{folder}/{name}.uh", commutative=not ordered)
        assert op.element_bytes == dtype.itemsize and name in op.name, op
        assert op.carrier.startswith("its ranks: "), op.carrier
        for salt, count in enumerate((1, 7, 600, 5000)):
            parts = [given(dtype, count * size, of, salt) for of in range(size)]
            mine, whole = parts[rank], folded(function, parts)
            root = salt % size
            assert np.array_equal(world.allreduce(mine, op=op), whole), (name, count)
            got = world.reduce(mine, root=root, op=op)
            assert rank != root or np.array_equal(got, whole), (name, count)
            in_place = mine.copy()
            world.allreduce(unisono.IN_PLACE, in_place, op=op)
            assert np.array_equal(in_place, whole)
            block = slice(count * rank, count * (rank + 1))
            got = world.reduce_scatter(mine, op=op)
            assert np.array_equal(got, whole[block]), (name, count)
            assert np.array_equal(world.scan(mine, op=op), folded(function, parts[: rank + 1]))
            got = world.exscan(mine, op=op)
            assert rank == 0 or np.array_equal(got, folded(function, parts[:rank]))
            if dtype.itemsize in (1, 2, 4, 8, 16):
                dst = np.empty_like(mine)
                world.allreduce_async(mine, dst, op=op).wait()
                assert np.array_equal(dst, whole)
            # Every second element, which lies apart.
            apart = world.allreduce(mine[::2], op=op)
            assert np.array_equal(apart, whole[::2])
        again = world.load_operator(open(f"{folder}/{name}.uh", "rb").read(), name=name, commutative=not ordered)
        assert again.hash == op.hash
        op.free()
        assert np.array_equal(world.allreduce(mine, op=again), whole)
        again.free()
    if rank == 0:
        print("right")
"""
)

ERRORS = (
    BEGIN
    + """
def refused(kind, call, *said):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in said), str(error)
    else:
        raise AssertionError(f"nothing was refused: {said}")

from unisono import handler
with unisono.init(timeout=20) as context:
    world = context.world
    rank = world.rank
    other = "three" if rank == 2 else "larger"
    refused(unisono.MismatchedCallError, lambda: world.load_operator(f"{folder}/{other}.uh"), "rank 2 three-")
    refused(unisono.MismatchedCallError, lambda: world.load_operator(f"{folder}/affine.uh", commutative=rank != 1),
            "does not commute")
    broken = f"{folder}/none.uh" if rank == 1 else f"{folder}/larger.uh"
    refused(handler.HandlerError, lambda: world.load_operator(broken), "US_OPERATOR")
    refused(handler.HandlerError, lambda: world.load_operator(f"{folder}/nowhere.uh"), "No such file")
    whatever = 5 if rank == 3 else f"{folder}/larger.uh"
    refused(handler.HandlerError, lambda: world.load_operator(whatever), "TypeError: ")
    for _ in range(20):  # none of these has taken a number
        refused(unisono.MismatchedCallError, lambda: world.load_operator(f"{folder}/{other}.uh"))
    op = world.load_operator(f"{folder}/larger.uh")
    refused(unisono.InvalidDatatypeError, lambda: world.allreduce(np.zeros(3, "f4"), op=op), "4 bytes", "elements of 8")
    op.free()
    # Each rank has its own path; and the same binary is another operator where it does not commute.
    binary = open(f"{folder}/affine.uh", "rb").read()
    plain = world.load_operator(binary, name=f"of{rank}" + 100 * "\u00e4")
    ordered = world.load_operator(binary, name=f"of{rank}", commutative=False)
    assert plain.name.startswith("of0") and len(plain.name.encode()) <= 64, plain.name
    assert (plain.hash, ordered.hash) == (ordered.hash, plain.hash) and plain.func != ordered.func
    parts = [given(AFFINE, 50, of) for of in range(world.size)]
    assert np.array_equal(world.allreduce(parts[rank], op=ordered), folded(affine, parts))
    plain.free()
    ordered.free()
    # Rank 2 has no number left.
    mine = [unisono.Operator(f"mine{i}", np.add) for i in range(8 * (rank == 2))]
    refused(handler.HandlerError, lambda: world.load_operator(f"{folder}/larger.uh"), "at most 8 ops")
    for one in mine:
        one.free()
    three_op = world.load_operator(f"{folder}/three.uh")
    refused(unisono.InvalidArgumentError, lambda: world.allreduce_async(given(THREE, 4, rank), op=three_op), "block")
    three_op.free()
    refused(unisono.InvalidArgumentError, lambda: world.allreduce(given(THREE, 4, rank), op=three_op), "was freed")
    divides = world.load_operator(f"{folder}/divides.uh")
    values = np.full(10, 40 if rank == 0 else 2 - (rank == 3) * 2, np.uint32)
    refused(unisono.UnisonoError, lambda: world.allreduce(values, op=divides), "divides.c:3", "it divides by 0")
    print("right")
"""
)


def write(folder: Path) -> Path:
    """Binaries of all operators, in a folder."""
    from unisono import handler

    for name, text in SOURCES.items():
        (folder / f"{name}.c").write_text(text)
        (folder / f"{name}.uh").write_bytes(handler.compile(folder / f"{name}.c").binary)
    for name, text in (("reductions", REDUCTIONS), ("errors", ERRORS)):
        (folder / f"{name}.py").write_text(text)
    return folder
