"""Sources in SMI's dialect of OpenCL C as the compiler gets them: read as text, line by line what they were."""

from __future__ import annotations

import re

#: Words that may stand before the return type of a kernel.
_KERNEL = re.compile(r"\b(?:__kernel|kernel)\b")
_CHANNEL = re.compile(r"\bchannel\b")


class KernelError(Exception):
    """A source that is not understood, and where."""


def blank(text: str) -> str:
    """The source with comments and strings as blanks of the same length, so that places stay."""
    pattern = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def balanced(text: str, at: int) -> int:
    """Behind the bracket that closes the one at this place."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise KernelError("a bracket is not closed")


def line_of(text: str, at: int) -> int:
    """The number of the line of a place, from 1."""
    return text.count("\n", 0, at) + 1


def translate_channels(text: str) -> str:
    """The source with declarations of channels as what the header knows; lines stay where they are."""
    bare = blank(text)
    result, last = "", 0
    for found in _CHANNEL.finditer(bare):
        line_start = bare.rfind("\n", 0, found.start()) + 1
        if bare[line_start : found.start()].strip():
            continue  # another use of the word
        end = bare.find(";", found.end())
        words = bare[found.end() : end]
        declared = re.match(r"\s*((?:unsigned\s+|signed\s+|struct\s+)?\w+)\s+(\w+)\s*", words)
        if end < 0 or declared is None:
            raise KernelError(f"line {line_of(text, found.start())}: this declaration of a channel is not understood")
        place, extent, depth = declared.end(), "", "0"
        while place < len(words):
            if words[place] == "[":
                after = balanced(words, place)
                extent += words[place:after]
                place = after
            elif attribute := re.compile(r"__attribute__\s*\(").match(words, place):
                after = balanced(words, attribute.end() - 1)
                if depth_at := re.compile(r"\bdepth\s*\(").search(words, attribute.end(), after):
                    depth = words[depth_at.end() : balanced(words, depth_at.end() - 1) - 1]
                place = after
            elif words[place].isspace():
                place += 1
            else:
                raise KernelError(f"line {line_of(text, found.start())}: in this declaration of a channel, "
                                  f"`{words[place:].strip()}` is not understood")  # fmt: skip
        lines = "\n" * text.count("\n", found.start(), end + 1)
        result += text[last : found.start()]
        result += f"UNISONO_DIALECT_CHANNEL({declared[1]}, {declared[2]}, {extent}, {depth.strip() or '0'}){lines}"
        last = end + 1
    return result + text[last:]


#: Several elements of a vector by their numbers, as v.s0213; one is a name that the header has. Words of small letters
#: alone are names of fields.
_ELEMENTS = re.compile(
    r"\.\s*s(?=[a-fA-F]*[0-9]|[A-F]+\b)"
    r"([0-9a-fA-F]{2}|[0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{8}|[0-9a-fA-F]{16})\b"
)


def translate_elements(text: str) -> str:
    """The source with elements of vectors by several numbers as what the header knows."""
    bare, result, last = blank(text), "", 0
    for found in _ELEMENTS.finditer(bare):
        numbers = ", ".join(str(int(digit, 16)) for digit in found[1])
        result += f"{text[last : found.start()]}.elements<{numbers}>()"
        last = found.end()
    return result + text[last:]


#: A type in brackets, and what it is made of.
_LITERAL = re.compile(r"\(\s*([A-Za-z_]\w*)\s*\)\s*\(")


def translate_literals(text: str) -> str:
    """The source with vectors that are made of several values, `(float4)(a, b, c, d)`, as `float4(a, b, c, d)`.

    A function whose name stands in brackets is called all the same.
    """
    bare, result, last = blank(text), "", 0
    for found in _LITERAL.finditer(bare):
        before = bare[: found.start()].rstrip()
        word = re.search(r"(\w+|[)\]])$", before)
        if (word is not None and word[1] != "return") or not _has_comma(bare, found.end() - 1):
            continue
        lines = "\n" * text.count("\n", found.start(), found.end())
        result += f"{text[last : found.start()]}{found[1]}{lines}("
        last = found.end()
    return result + text[last:]


def _has_comma(text: str, at: int) -> bool:
    """Whether a comma stands in these brackets, and not in others within."""
    depth = 0
    for letter in text[at : balanced(text, at)]:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 1:
            return True
    return False


def translated(text: str) -> str:
    """The source as C++, line by line what it was."""
    return translate_literals(translate_elements(translate_channels(text)))


def kernel_names(text: str) -> list[str]:
    """The names of the kernels, in order; they may be macros."""
    bare, names = blank(text), []
    for found in _KERNEL.finditer(bare):
        place = found.end()
        while True:
            attribute = re.compile(r"\s*__attribute__\s*\(").match(bare, place)
            if attribute is None:
                break
            place = balanced(bare, attribute.end() - 1)
        declared = re.compile(r"\s*void\s+(\w+)\s*\(").match(bare, place)
        if declared is None:
            continue
        body = re.compile(r"\s*[{;]").match(bare, balanced(bare, declared.end() - 1))
        if body is not None and body[0].endswith("{"):
            names.append(declared[1])
    return names


def translate(text: str, name: str) -> str:
    """What the compiler gets for a source."""
    try:
        source = translated(text)
        names = kernel_names(text)
    except KernelError as error:
        raise KernelError(f"{name}: {error}") from None
    table = "\n".join(f"UNISONO_DIALECT_KERNEL({kernel})" for kernel in names)
    return f'#line 1 "{name}"\n{source}\n{table}\n'
