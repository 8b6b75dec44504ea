"""Plugins bit for bit: against NumPy and ml_dtypes, and against core/arithmetic.hpp.

Every operator and datatype gets a million pairs or more, in the quick width a hundred thousand; words of all of them
follow one another in random order, with idle cycles full of noise between them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import bulk
import numpy as np
import oracle
import pytest
from hdl import is_full, scaled
from oracle import Datatype, Func

PAIRS_EACH = scaled(1_000_000, 100_000)
ROUNDS = 8 if is_full() else 1

BITWISE = (Func.BITWISE_AND, Func.BITWISE_OR, Func.BITWISE_XOR)
LOGICAL = (Func.LOGICAL_AND, Func.LOGICAL_OR, Func.LOGICAL_XOR)
EXTREMES = (Func.MIN, Func.MAX)

ALU = [
    *((func, dtype) for dtype in oracle.INTEGERS for func in (Func.SUM, *EXTREMES, *BITWISE, *LOGICAL)),
    *((func, dtype) for dtype in oracle.FORMATS for func in EXTREMES),
    *((func, Datatype.BOOL) for func in (*EXTREMES, *BITWISE, *LOGICAL)),
    *((func, Datatype.BYTE) for func in BITWISE),
    *((func, dtype) for dtype in oracle.PAIRS for func in (Func.MINLOC, Func.MAXLOC)),
]
SUM = [(Func.SUM, dtype) for dtype in (*oracle.FORMATS, *oracle.PARTS)]
PROD = [(Func.PROD, dtype) for dtype in (*oracle.FORMATS, *oracle.INTEGERS)]

# Fewer lanes where the model is large: a lane of every kind is still there twice.
PLUGINS: dict[str, tuple[str, int, int, list[tuple[Any, Any]]]] = {
    "alu": ("unisono_plugin_alu", 3, 32, ALU),
    "sum": ("unisono_plugin_sum", 8, 32, SUM),
    "prod": ("unisono_plugin_prod", 11, 16, PROD),
}


@cache
def model(name: str) -> bulk.Model:
    top, latency, data_bytes, _ = PLUGINS[name]
    return bulk.Model(top, latency, data_bytes)


def check(
    name: str, cases: list[tuple[Any, Any, np.ndarray, np.ndarray]], rng: np.random.Generator
) -> dict[tuple[Any, Any], int]:
    """Runs operands given as bytes in words of random order; returns the elements compared of each case."""
    plugin = model(name)
    word = plugin.data_bytes
    ops: list[tuple[np.ndarray, np.ndarray]] = []
    for _, _, a, b in cases:
        fill = -a.size % word
        # Whole words, filled up with the first elements.
        ops.append(tuple(np.concatenate([x, np.resize(x, fill)]).reshape(-1, word) for x in (a, b)))  # type: ignore[arg-type]
    words = [len(a) for a, _ in ops]
    func = np.repeat(np.array([case[0] for case in cases], np.uint8), words)
    dtype = np.repeat(np.array([case[1] for case in cases], np.uint8), words)
    op0, op1 = (np.concatenate([pair[k] for pair in ops]) for k in (0, 1))
    order = rng.permutation(len(func))
    shuffled = plugin(func[order], dtype[order], op0[order], op1[order], seed=int(rng.integers(1, 1 << 60)))
    got = np.empty_like(shuffled)
    got[order] = shuffled
    done: dict[tuple[Any, Any], int] = {}
    at = 0
    for (f, d, _, _), (a, b) in zip(cases, ops, strict=True):
        result = got[at : at + len(a)]
        at += len(a)
        size = oracle.element_bytes(d)
        for source, want in (("NumPy", oracle.apply(f, d, a, b)), ("C++", bulk.combine(f, d, a, b, size))):
            bad = np.flatnonzero(oracle.differs(f, d, result, want))
            if bad.size:
                lines = [
                    f"  {x[i][::-1].tobytes().hex()}, {y[i][::-1].tobytes().hex()}: "
                    f"{g[i][::-1].tobytes().hex()}, not {w[i][::-1].tobytes().hex()}"
                    for x, y, g, w in [tuple(z.reshape(-1, size) for z in (a, b, result, want))]
                    for i in bad[:8]
                ]
                pytest.fail(
                    f"{f.name} of {d.name}: {bad.size} of {a.size // size} differ from {source}\n" + "\n".join(lines)
                )
        done[f, d] = a.size // size
    return done


@pytest.mark.parametrize("name", PLUGINS)
def test_random_pairs(name: str) -> None:
    """Uniform bits, close exponents, cancellation, subnormals, ties, limits of range."""
    seed = 20261121
    compared: dict[tuple[Any, Any], int] = {}
    for round in range(ROUNDS):
        rng = np.random.default_rng([seed, round])
        cases = [
            (func, dtype, *oracle.operands(rng, func, dtype, PAIRS_EACH // ROUNDS)) for func, dtype in PLUGINS[name][3]
        ]
        for case, count in check(name, cases, rng).items():
            compared[case] = compared.get(case, 0) + count
    assert min(compared.values()) >= PAIRS_EACH
    assert set(compared) == set(PLUGINS[name][3])


@pytest.mark.parametrize("name", PLUGINS)
def test_all_pairs_of_special_values(name: str) -> None:
    rng = np.random.default_rng(7)
    cases = []
    for func, dtype in PLUGINS[name][3]:
        if dtype in oracle.FORMATS:
            special = oracle.FORMATS[dtype].specials()
            a, b = (np.ascontiguousarray(x.reshape(-1)) for x in np.meshgrid(special, special))
            cases.append((func, dtype, a.view(np.uint8), b.view(np.uint8)))
    if cases:
        check(name, cases, rng)


@pytest.mark.parametrize("dtype", [Datatype.FP16, Datatype.BF16], ids=lambda dtype: dtype.name)
def test_all_pairs_of_significands_near_underflow(dtype: Any) -> None:
    """Every product of two significands, shifted to the right by up to all of its bits: no rounding happens twice."""
    format = oracle.FORMATS[dtype]
    rng = np.random.default_rng(11)
    count = 1 << format.fraction
    a, b = (x.reshape(-1) for x in np.meshgrid(np.arange(count), np.arange(count)))
    cases = []
    depths = range(-2, format.fraction + 4) if dtype == Datatype.BF16 else [None]
    for depth in depths:
        down = rng.integers(-2, format.fraction + 4, a.size) if depth is None else np.full(a.size, depth)
        left = rng.integers(1, format.bias - 2, a.size)
        right = format.bias - down - left
        sign = rng.integers(0, 2, a.size)
        x, y = format.build(sign, left, a), format.build(0 * sign, right, b)
        cases.append((Func.PROD, dtype, x.view(np.uint8), y.view(np.uint8)))
    for case in cases:
        check("prod", [case], rng)


@pytest.mark.parametrize("dtype", [Datatype.FP16, Datatype.BF16], ids=lambda dtype: dtype.name)
def test_all_values_with_special_values(dtype: Any) -> None:
    """Every fp16 and bf16 number as an operand of every operator."""
    format = oracle.FORMATS[dtype]
    rng = np.random.default_rng(13)
    every = np.arange(1 << 16, dtype=np.uint16)
    special = format.specials()
    a = np.repeat(every, special.size)
    b = np.tile(special, every.size)
    for name, func in (("sum", Func.SUM), ("prod", Func.PROD), ("alu", Func.MIN), ("alu", Func.MAX)):
        check(name, [(func, dtype, a.view(np.uint8), b.view(np.uint8))], rng)


def test_passes() -> None:
    """Without a function the operand present passes."""
    rng = np.random.default_rng(17)
    plugin = model("alu")
    words = 20_000
    op0, op1 = rng.integers(0, 256, (2, words, plugin.data_bytes), np.uint8)
    dtype = rng.integers(0, 21, words).astype(np.uint8)
    use1 = rng.integers(0, 2, words).astype(np.uint8)
    got = plugin(np.zeros(words, np.uint8), dtype, op0, op1, use1=use1)
    assert np.array_equal(got, np.where(use1[:, None] == 1, op1, op0))
