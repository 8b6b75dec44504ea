"""What hardware has no place for in a source of kernels, looked for in its text: where libclang is not installed."""

from __future__ import annotations

import re

from .dialect import balanced, blank, line_of

#: What a kernel that is to become hardware cannot have, and what that is.
_REFUSED = (
    (re.compile(r"\b(?:malloc|calloc|realloc|free|alloca|aligned_alloc|posix_memalign)\s*\("), "memory of the heap"),
    (re.compile(r"\b(?:new|delete)\b"), "memory of the heap"),
    (re.compile(r"\bstd\s*::\s*(?:vector|string|map|set|list|deque|unordered_\w+|function|make_\w+)\b"),
     "a class that uses the heap"),
    (re.compile(r"\b(?:try|catch|throw)\b"), "an exception"),
    (re.compile(r"\b(?:virtual|dynamic_cast|typeid)\b"), "a choice of functions at run time"),
)  # fmt: skip
_DEFINITION = re.compile(r"\b(\w+)\s*\(")
_NO_FUNCTIONS = {
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "do",
    "else",
    "__attribute__",
    "alignof",
    "decltype",
}


def _functions(bare: str) -> dict[str, tuple[int, str]]:
    """The functions that are defined at the outermost level, by name: where, and their bodies."""
    found: dict[str, tuple[int, str]] = {}
    place = 0
    while (start := _DEFINITION.search(bare, place)) is not None:
        behind = balanced(bare, start.end() - 1)
        body = re.compile(r"(?:\s|\bconst\b|\bnoexcept\b|__attribute__\s*\(\([^{;]*\)\))*\{").match(bare, behind)
        if start[1] in _NO_FUNCTIONS or body is None:
            place = start.end()
            continue
        depth, end = 1, body.end()
        while depth and end < len(bare):
            depth += {"{": 1, "}": -1}.get(bare[end], 0)
            end += 1
        found.setdefault(start[1], (start.start(), bare[body.end() : end]))
        place = end
    return found


def refused(text: str) -> list[tuple[int, str]]:
    """What hardware has no place for: lines, and why. Read as text: what macros and headers bring is not seen."""
    bare = blank(text)
    bare = re.sub(
        r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda line: re.sub(r"[^\n]", " ", line[0]), bare, flags=re.MULTILINE
    )
    found = [(line_of(bare, at.start()), what) for pattern, what in _REFUSED for at in pattern.finditer(bare)]
    functions = _functions(bare)
    calls = {
        name: [called for called in functions if re.search(rf"\b{called}\s*\(", body)]
        for name, (_, body) in functions.items()
    }
    for name, (place, _) in functions.items():
        way, seen = [*calls[name]], set[str]()
        while way:
            at = way.pop()
            if at == name:
                found.append((line_of(bare, place), f"recursion: {name} calls itself" + ("" if name in calls[name] else
                              ", by way of others")))  # fmt: skip
                break
            if at not in seen:
                seen.add(at)
                way += calls[at]
    return sorted(found)
