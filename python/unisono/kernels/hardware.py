"""What hardware has no place for: memory of the heap, exceptions, choices of functions at run time, recursion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .cursors import place_of
from .interface import Finding
from .libclang import cindex
from .parsing import is_own, kinds

NO_PLACE = "; hardware has no place for it"
_HEAP = "memory of the heap"
_EXCEPTION = "an exception"
_CHOICE = "a choice of functions at run time"
_WHAT = {
    **dict.fromkeys(kinds(("CXX_NEW_EXPR", "CXX_DELETE_EXPR")), _HEAP),
    **dict.fromkeys(kinds(("CXX_TRY_STMT", "CXX_CATCH_STMT", "CXX_THROW_EXPR")), _EXCEPTION),
    **dict.fromkeys(kinds(("CXX_DYNAMIC_CAST_EXPR", "CXX_TYPEID_EXPR")), _CHOICE),
}
_ALLOCATE = frozenset(
    {"malloc", "calloc", "realloc", "free", "alloca", "__builtin_alloca", "aligned_alloc", "posix_memalign", "strdup"}
    | {"make_unique", "make_shared", "allocate_shared", "unisono_allocate"}
)
_CLASSES = frozenset(
    {"vector", "basic_string", "map", "multimap", "set", "multiset", "list", "forward_list", "deque", "function"}
    | {"unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset", "queue", "stack"}
    | {"priority_queue", "unique_ptr", "shared_ptr", "any"}
)


def refused(bodies: Iterable[Any]) -> list[Finding]:
    """What functions, and all that they call of the user's own, have that hardware cannot."""
    functions = _reached(bodies)
    found: dict[tuple[str, int, str], Finding] = {}
    for function in functions:
        for at in function.walk_preorder():
            what = _what(at)
            if what is not None and is_own(at):
                finding = Finding(place_of(at), what + NO_PLACE)
                found.setdefault((*finding.place, what), finding)
    return [*found.values(), *_recursion(functions)]


def _reached(bodies: Iterable[Any]) -> list[Any]:
    waiting, seen, found = list(bodies), set[int](), []
    while waiting:
        at = waiting.pop(0)
        if at.hash in seen:
            continue
        seen.add(at.hash)
        found.append(at)
        waiting += _called(at)
    return found


def _called(function: Any) -> list[Any]:
    """The user's own functions that one names, by their definitions."""
    found = []
    for at in function.walk_preorder():
        if at.kind not in (cindex.CursorKind.CALL_EXPR, cindex.CursorKind.DECL_REF_EXPR) or at.referenced is None:
            continue
        called = at.referenced
        if called.kind in _FUNCTIONS and is_own(called):
            definition = called.get_definition()
            if definition is not None:
                found.append(definition)
    return found


_FUNCTIONS = kinds(("FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION"))


def _what(at: Any) -> str | None:
    kind = cindex.CursorKind
    if at.kind in _WHAT:
        return _WHAT[at.kind]
    if at.kind == kind.CALL_EXPR:
        called = at.referenced
        if called is None:
            return None
        if called.spelling in _ALLOCATE and not is_own(called):
            return _HEAP
        if called.kind == kind.CXX_METHOD and called.is_virtual_method():
            return _CHOICE
        return None
    if at.kind == kind.VAR_DECL:
        declared = at.type.get_canonical().get_declaration()
        if declared.spelling in _CLASSES and _is_standard(declared):
            return "a class that uses the heap"
    return None


def _is_standard(declared: Any) -> bool:
    at = declared.semantic_parent
    while at is not None and at.kind == cindex.CursorKind.NAMESPACE:
        if at.spelling == "std":
            return True
        at = at.semantic_parent
    return False


def _recursion(functions: list[Any]) -> list[Finding]:
    calls = {function.hash: {called.hash for called in _called(function)} for function in functions}
    found = []
    for function in functions:
        own = function.hash
        way, seen = list(calls[own]), set[int]()
        while way:
            at = way.pop()
            if at == own:
                others = "" if own in calls[own] else ", by way of others"
                sentence = f"recursion: {function.spelling} calls itself{others}{NO_PLACE}"
                found.append(Finding(place_of(function), sentence))
                break
            if at not in seen:
                seen.add(at)
                way += calls.get(at, ())
    return found
