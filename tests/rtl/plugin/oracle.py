"""The operators in NumPy and ml_dtypes, and operands on which wrong hardware differs from them.

Elements are handled as their bits. The formats' own arithmetic comes from NumPy; minimum and maximum, whose zeros
NumPy leaves open, are written down from IEEE 754-2019.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hdl
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _load_spec() -> Any:
    """The specification without the package around it, which needs the compiled library."""
    spec = importlib.util.spec_from_file_location("unisono_spec", hdl.ROOT / "python" / "unisono" / "_spec.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_SPEC = _load_spec()
Datatype: Any = _SPEC.Datatype
Func: Any = _SPEC.Func


@dataclass(frozen=True)
class Format:
    """A format of floating point: bits of fraction and exponent, and NumPy's type."""

    bits: int
    fraction: int
    type: Any

    @property
    def unsigned(self) -> Any:
        return {16: np.uint16, 32: np.uint32, 64: np.uint64}[self.bits]

    @property
    def exponent(self) -> int:
        return self.bits - 1 - self.fraction

    @property
    def top(self) -> int:
        """The exponent of infinity and NaN."""
        return (1 << self.exponent) - 1

    @property
    def bias(self) -> int:
        return self.top >> 1

    @property
    def infinity(self) -> int:
        return self.top << self.fraction

    def is_nan(self, bits: Array) -> Array:
        result: Array = (bits & self.unsigned((1 << (self.bits - 1)) - 1)) > self.unsigned(self.infinity)
        return result

    def is_quiet(self, bits: Array) -> Array:
        result: Array = self.is_nan(bits) & ((bits >> self.unsigned(self.fraction - 1) & self.unsigned(1)) == 1)
        return result

    def build(self, sign: Array, exponent: Array, fraction: Array) -> Array:
        """Numbers from fields; exponents are clipped to finite ones."""
        clipped = np.clip(exponent, 0, self.top - 1).astype(self.unsigned)
        result: Array = (
            (sign.astype(self.unsigned) & self.unsigned(1)) << self.unsigned(self.bits - 1)
            | clipped << self.unsigned(self.fraction)
            | (fraction.astype(self.unsigned) & self.unsigned((1 << self.fraction) - 1))
        )
        return result

    def specials(self) -> Array:
        """Zeros, the ends of subnormal and normal numbers, ones, powers near them, infinities, NaN; both signs."""
        f, one = self.fraction, self.bias << self.fraction
        values = [
            *(0, 1, 2, 3, (1 << f) - 1, (1 << f) - 2, 1 << f, (1 << f) + 1, 1 << (f - 1), (1 << (f - 1)) + 1),
            *(one, one + 1, one - 1, one + (1 << (f - 1)), one + (1 << f), one - (1 << f)),
            *(self.infinity - 1, self.infinity - 2, self.infinity - (1 << f), self.infinity - (1 << (f - 1))),
            *(self.infinity, self.infinity + 1, self.infinity | 1 << (f - 1), (1 << (self.bits - 1)) - 1),
            *(one + (d << f) for d in (-f - 2, -f - 1, -f, f, f + 1, f + 2)),
            *(one + (d << f) + 1 for d in (-f - 2, -f - 1, -f, f, f + 1, f + 2)),
            (self.bias - self.bias // 2) << f,
            ((self.bias - self.bias // 2) << f) + 1,
            ((self.bias - f // 2) << f) | ((1 << f) - 1),
        ]
        positive = np.array([value & ((1 << (self.bits - 1)) - 1) for value in values], self.unsigned)
        return np.concatenate([positive, positive | self.unsigned(1 << (self.bits - 1))])


FORMATS = {
    Datatype.FP16: Format(16, 10, np.float16),
    Datatype.BF16: Format(16, 7, ml_dtypes.bfloat16),
    Datatype.FP32: Format(32, 23, np.float32),
    Datatype.FP64: Format(64, 52, np.float64),
}
INTEGERS = {
    Datatype.INT8: np.int8,
    Datatype.UINT8: np.uint8,
    Datatype.INT16: np.int16,
    Datatype.UINT16: np.uint16,
    Datatype.INT32: np.int32,
    Datatype.UINT32: np.uint32,
    Datatype.INT64: np.int64,
    Datatype.UINT64: np.uint64,
}
PARTS = {Datatype.COMPLEX64: Datatype.FP32, Datatype.COMPLEX128: Datatype.FP64}
"""Complex numbers and what their parts are."""

PAIRS = {
    Datatype.FP32_INT32: (np.dtype([("value", np.uint32), ("index", np.int32)]), Datatype.FP32),
    Datatype.FP64_INT32: (np.dtype([("value", np.uint64), ("index", np.int32), ("pad", np.uint32)]), Datatype.FP64),
    Datatype.INT32_INT32: (np.dtype([("value", np.int32), ("index", np.int32)]), None),
    Datatype.INT64_INT64: (np.dtype([("value", np.int64), ("index", np.int64)]), None),
}

Operation = Callable[[Array, Array], Array]


def _key(format: Format, bits: Array) -> Array:
    """Integers in the order of the numbers, -0 before +0."""
    signed = bits.view(np.dtype(f"i{format.bits // 8}"))
    lowest = np.iinfo(signed.dtype).min
    return np.where(signed < 0, lowest - signed - 1, signed)


def _float_extreme(format: Format, a: Array, b: Array, greater: bool) -> Array:
    first = (_key(format, a) < _key(format, b)) != greater
    result = np.where(first, a, b)
    nan = format.unsigned(format.infinity | 1 << (format.fraction - 1))
    return np.where(format.is_nan(a) | format.is_nan(b), nan, result)


def _float(format: Format, func: Any, a: Array, b: Array) -> Array:
    if func in (Func.MIN, Func.MAX):
        return _float_extreme(format, a, b, func == Func.MAX)
    x, y = a.view(format.type), b.view(format.type)
    with np.errstate(all="ignore"):
        result: Array = x + y if func == Func.SUM else x * y
    return np.ascontiguousarray(result).view(format.unsigned)


_PLAIN: dict[Any, Operation] = {
    Func.SUM: lambda a, b: a + b,
    Func.PROD: lambda a, b: a * b,
    Func.MIN: np.minimum,
    Func.MAX: np.maximum,
    Func.BITWISE_AND: lambda a, b: a & b,
    Func.BITWISE_OR: lambda a, b: a | b,
    Func.BITWISE_XOR: lambda a, b: a ^ b,
    Func.LOGICAL_AND: lambda a, b: ((a != 0) & (b != 0)).astype(a.dtype),
    Func.LOGICAL_OR: lambda a, b: ((a != 0) | (b != 0)).astype(a.dtype),
    Func.LOGICAL_XOR: lambda a, b: ((a != 0) ^ (b != 0)).astype(a.dtype),
}
_TRUTH = {
    Func.MIN: Func.LOGICAL_AND,
    Func.MAX: Func.LOGICAL_OR,
    Func.BITWISE_AND: Func.LOGICAL_AND,
    Func.BITWISE_OR: Func.LOGICAL_OR,
    Func.BITWISE_XOR: Func.LOGICAL_XOR,
}


def _located(func: Any, dtype: Any, a: Array, b: Array) -> Array:
    layout, value_type = PAIRS[dtype]
    x, y = a.view(layout), b.view(layout)
    greater = func == Func.MAXLOC
    if value_type is None:
        before = x["value"] > y["value"] if greater else x["value"] < y["value"]
        tie = x["value"] == y["value"]
    else:
        format = FORMATS[value_type]
        keys = _key(format, np.ascontiguousarray(x["value"])), _key(format, np.ascontiguousarray(y["value"]))
        nans = format.is_nan(x["value"]), format.is_nan(y["value"])
        numbers = keys[0] > keys[1] if greater else keys[0] < keys[1]
        before = np.where(nans[0] | nans[1], nans[0] & ~nans[1], numbers)
        tie = np.where(nans[0] | nans[1], nans[0] & nans[1], keys[0] == keys[1])
    first = np.where(tie, x["index"] <= y["index"], before)
    result = np.where(first, x, y)
    if "pad" in (layout.names or ()):
        result["pad"] = 0
    return result


def element_bytes(dtype: Any) -> int:
    """Bytes of an element."""
    if dtype in PAIRS:
        return int(PAIRS[dtype][0].itemsize)
    if dtype in PARTS:
        return FORMATS[PARTS[dtype]].bits // 4
    if dtype in FORMATS:
        return FORMATS[dtype].bits // 8
    return int(np.dtype(INTEGERS.get(dtype, np.uint8)).itemsize)


def apply(func: Any, dtype: Any, op0: Array, op1: Array) -> Array:
    """func(op0, op1) on bytes."""
    a, b = op0.reshape(-1), op1.reshape(-1)
    if dtype in PAIRS:
        result = _located(func, dtype, a, b)
    elif dtype in PARTS or dtype in FORMATS:
        format = FORMATS[PARTS.get(dtype, dtype)]
        result = _float(format, func, a.view(format.unsigned), b.view(format.unsigned))
    else:
        if dtype == Datatype.BOOL:
            func = _TRUTH.get(func, func)
        kind = INTEGERS.get(dtype, np.uint8)
        result = _PLAIN[func](a.view(kind), b.view(kind))
    return np.ascontiguousarray(result).view(np.uint8).reshape(op0.shape)


def differs(func: Any, dtype: Any, got: Array, want: Array) -> Array:
    """Where bytes of results differ, element by element; any quiet NaN stands for another, in pairs any NaN."""
    size = element_bytes(dtype)
    if dtype in PAIRS and PAIRS[dtype][1] is not None:
        layout, value_type = PAIRS[dtype]
        x, y = got.reshape(-1).view(layout), want.reshape(-1).view(layout)
        nan = FORMATS[value_type].is_nan
        value: Array = (x["value"] != y["value"]) & ~(nan(x["value"]) & nan(y["value"]))
        rest = [x[name] != y[name] for name in layout.names or () if name != "value"]
        return np.asarray(np.logical_or.reduce([value, *rest]))
    if dtype in PARTS or dtype in FORMATS:
        format = FORMATS[PARTS.get(dtype, dtype)]
        x, y = got.reshape(-1).view(format.unsigned), want.reshape(-1).view(format.unsigned)
        bad: Any = (x != y) & ~(format.is_quiet(x) & format.is_nan(y))
        parts = size // (format.bits // 8)
    else:
        bad, parts = got.reshape(-1) != want.reshape(-1), size
    found: Any = np.asarray(bad).reshape(-1, parts).any(axis=1)
    return np.asarray(found)


def floats(rng: np.random.Generator, format: Format, count: int, func: Any) -> tuple[Array, Array]:
    """Pairs of numbers: all bit patterns alike, and those on which rounding, cancellation and underflow turn."""
    f = format.fraction

    def uniform(n: int) -> Array:
        return (
            rng.integers(0, 1 << format.bits, n, format.unsigned)
            if format.bits < 64
            else rng.integers(0, 1 << 63, n, np.uint64) | rng.integers(0, 2, n, np.uint64) << np.uint64(63)
        )

    def fraction(n: int) -> Array:
        """Long and short ones, and ones with long runs of ones or zeros."""
        bits = uniform(n)
        kept = rng.integers(0, f + 1, n).astype(format.unsigned)
        ones = (format.unsigned(1) << kept) - format.unsigned(1)
        kind = rng.integers(0, 4, n)
        return np.select([kind == 0, kind == 1, kind == 2], [bits, bits & ~ones, bits | ones], ones)

    def signs(n: int) -> Array:
        return rng.integers(0, 2, n)

    share = count // 6
    parts: list[tuple[Array, Array]] = [(uniform(n := count - 5 * share), uniform(n))]
    n = share
    # Exponents close to one another: alignment, ties, carries.
    exponent = rng.integers(0, format.top, n)
    near = exponent + rng.integers(-f - 4, f + 5, n)
    parts.append((format.build(signs(n), exponent, fraction(n)), format.build(signs(n), near, fraction(n))))
    # Nearly opposite: cancellation of all or nearly all bits.
    a = format.build(signs(n), rng.integers(0, format.top, n), fraction(n))
    step = rng.integers(-3, 4, n) << rng.integers(0, f, n)
    b = (a ^ format.unsigned(1 << (format.bits - 1))) + step.astype(format.unsigned)
    parts.append((a, b))
    # Subnormal and barely normal operands.
    parts.append(
        (
            format.build(signs(n), rng.integers(0, 3, n), fraction(n)),
            format.build(signs(n), rng.integers(0, 3, n), fraction(n)),
        )
    )
    # Exactly half a unit in the last place, and a bit more or less.
    exponent = rng.integers(f + 2, format.top, n)
    half = format.build(np.zeros(n), exponent - f - 1, np.zeros(n)) + rng.integers(-1, 2, n).astype(format.unsigned)
    b = half ^ (signs(n).astype(format.unsigned) << format.unsigned(format.bits - 1))
    parts.append((format.build(signs(n), exponent, fraction(n)), b))
    # Products at the limits: results that become subnormal or vanish, and those that overflow.
    exponent = rng.integers(0, format.top, n)
    low, high = format.bias + rng.integers(-f - 4, 4, n), 3 * format.bias + rng.integers(-3, 3, n)
    other = np.where(signs(n) == 1, low, high) - exponent
    parts.append((format.build(signs(n), exponent, fraction(n)), format.build(signs(n), other, fraction(n))))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _integers(rng: np.random.Generator, kind: Any, count: int) -> tuple[Array, Array]:
    info = np.iinfo(kind)
    a = rng.integers(info.min, info.max, count, kind, endpoint=True)
    b = rng.integers(info.min, info.max, count, kind, endpoint=True)
    with np.errstate(all="ignore"):
        close = (a + rng.integers(-2, 3, count).astype(kind)).astype(kind)
    ends = np.array(
        [info.min, info.min + 1, -1 & info.max if info.min == 0 else -1, 0, 1, info.max - 1, info.max], kind
    )
    end_a, end_b = rng.choice(ends, count), rng.choice(ends, count)
    # All bytes equal but one: comparisons that must look at every byte.
    at = (rng.integers(0, info.bits, count)).astype(kind)
    one_off = a ^ (np.ones(count, kind) << at)
    which = rng.integers(0, 6, count)
    first = np.where(which == 4, end_a, a)
    second = np.select([which == 0, which == 1, which == 2, which == 3, which == 4], [close, a, one_off, b, end_b], b)
    zero = rng.integers(0, 8, count)
    return np.where(zero == 0, kind(0), first), np.where(zero == 1, kind(0), second)


def operands(rng: np.random.Generator, func: Any, dtype: Any, count: int) -> tuple[Array, Array]:
    """`count` pairs of elements, as bytes."""
    if dtype in PAIRS:
        layout, value_type = PAIRS[dtype]
        a, b = np.zeros(count, layout), np.zeros(count, layout)
        if value_type is None:
            a["value"], b["value"] = _integers(rng, layout["value"].type, count)
        else:
            format = FORMATS[value_type]
            x, y = floats(rng, format, count, func)
            special = format.specials()
            known = rng.integers(0, 4, count)
            x = np.where(known == 0, rng.choice(special, count), x)
            a["value"] = x
            b["value"] = np.select([known == 0, known == 1], [rng.choice(special, count), x], y)
        a["index"], b["index"] = _integers(rng, layout["index"].type, count)
        if "pad" in (layout.names or ()):
            a["pad"], b["pad"] = rng.integers(0, 1 << 32, (2, count), np.uint32)
    elif dtype in PARTS or dtype in FORMATS:
        parts = 2 if dtype in PARTS else 1
        a, b = floats(rng, FORMATS[PARTS.get(dtype, dtype)], count * parts, func)
    elif dtype in INTEGERS:
        a, b = _integers(rng, INTEGERS[dtype], count)
    else:
        a, b = _integers(rng, np.uint8, count)
        if dtype == Datatype.BOOL:
            a, b = (
                a & rng.choice([0, 1, 0xFF], count).astype(np.uint8),
                b & rng.choice([0, 1, 0xFF], count).astype(np.uint8),
            )
    return np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8)
