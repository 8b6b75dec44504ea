"""Values of expressions that are known before a program runs: what libclang itself says, and folding."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .libclang import cindex

#: Numbers of clang's binary operators (LLVM 17 and newer) whose value can be told.
_FOLDS: dict[int, Callable[[int, int], int]] = {
    3: lambda a, b: a * b,
    6: lambda a, b: a + b,
    7: lambda a, b: a - b,
    8: lambda a, b: a << b,
    9: lambda a, b: a >> b,
    11: lambda a, b: int(a < b),
    12: lambda a, b: int(a > b),
    13: lambda a, b: int(a <= b),
    14: lambda a, b: int(a >= b),
    15: lambda a, b: int(a == b),
    16: lambda a, b: int(a != b),
    17: lambda a, b: a & b,
    18: lambda a, b: a ^ b,
    19: lambda a, b: a | b,
    20: lambda a, b: int(bool(a) and bool(b)),
    21: lambda a, b: int(bool(a) or bool(b)),
}
_DIVIDE, _REMAINDER = 4, 5
ASSIGN, COMMA = 22, 33
#: Compound assignments by the operators that they are made of.
COMPOUND = {23: 3, 24: 4, 25: 5, 26: 6, 27: 7, 28: 8, 29: 9, 30: 17, 31: 18, 32: 19}
POST_INCREMENT, POST_DECREMENT, INCREMENT, DECREMENT, ADDRESS, DEREFERENCE, PLUS, MINUS, NOT, LOGICAL_NOT = range(1, 11)
_INTEGER = 1  #: a kind of value


def binary_operator(cursor: Any) -> int:
    """The number of a binary operator."""
    return int(cindex.conf.lib.clang_getCursorBinaryOperatorKind(cursor))


def unary_operator(cursor: Any) -> int:
    """The number of a unary operator."""
    return int(cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor))


def evaluate(cursor: Any) -> int | None:
    """What libclang says an expression is, if that is a whole number."""
    lib = cindex.conf.lib
    lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    result = ctypes.c_void_p(lib.clang_Cursor_Evaluate(cursor))
    if result.value is None:
        return None
    try:
        if lib.clang_EvalResult_getKind(result) != _INTEGER:
            return None
        return int(lib.clang_EvalResult_getAsLongLong(result))
    finally:
        lib.clang_EvalResult_dispose(result)


def fold_binary(operator: int, left: Any, right: Any) -> int | None:
    """The value of two whole numbers' operation, if both are known."""
    if operator == COMMA:
        return right if isinstance(right, int) else None
    # One side may settle it.
    if operator == 20 and 0 in (left, right) and (left == 0 or right == 0):
        return 0
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    if operator in (_DIVIDE, _REMAINDER):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == _DIVIDE else left - quotient * right
    if operator in (8, 9) and not 0 <= right < 64:
        return None
    fold = _FOLDS.get(operator)
    return fold(left, right) if fold is not None else None


def fold_unary(operator: int, value: Any) -> int | None:
    """The value of an operation on a whole number, if it is known."""
    if not isinstance(value, int):
        return None
    return {PLUS: value, MINUS: -value, NOT: ~value, LOGICAL_NOT: int(not value)}.get(operator)
