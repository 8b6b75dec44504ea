"""Emits the calls of `Communicator` in C++: blocking, started, and in place where the root's buffers alone differ."""

from __future__ import annotations

import textwrap

from .collectives import Collective, SpecError, Use
from .model import Specification

WIDTH = 120

PREAMBLE = """\
// Generated from spec/ by `python -m spec.generator`. Do not edit.
// The calls of a communicator, of which Communicator is made. Part of unisono.hpp, which includes it.
#ifndef UNISONO_GENERATED_COLLECTIVES_HPP
#define UNISONO_GENERATED_COLLECTIVES_HPP

namespace unisono {
inline namespace api {
namespace detail {

/// Calls that engines know by name. Every one has an `_async` form, which returns a Request.
class Calls : public Caller {
 public:"""

BY_HAND = "by hand"  # unisono.hpp has its own calls of it

END = """
 protected:
  Calls() = default;
  using Caller::Caller;
};

}  // namespace detail
}  // namespace api
}  // namespace unisono

#endif
"""


def _everywhere(use: Use, in_place: bool = False) -> str:
    """The part that every rank uses; empty if ranks differ."""
    parts = {use.on(root=root, in_place=in_place) for root in (False, True)}
    return parts.pop() if len(parts) == 1 else ""


def _length(name: str, part: str) -> str:
    return f"length({name})" + (" / size()" if part == "all" else "")


def _count(c: Collective, dst: str) -> str:
    """The count, from the buffers that every rank has; the shorter of two is the one that can be read from."""
    for wanted in ("n", "all"):
        for name, use in (("src", c.src), (dst, c.dst)):
            if _everywhere(use) == wanted:
                plain = _length(name, wanted)
                if not c.in_place or c.rooted:
                    return plain
                there = _length(dst, _everywhere(c.dst, in_place=True))
                return plain if there == plain else f"in_place(src) ? {there} : {plain}"
    raise SpecError(f"collectives.yaml: {c.name}: C++ cannot tell the count from a buffer that every rank has")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  /// ", subsequent_indent="  /// ")


def _function(template: str, result: str, name: str, parameters: list[str], body: list[str]) -> list[str]:
    begin = f"  {result} {name}("
    line = f"{begin}{', '.join(parameters)}) const {{"
    if len(line) > WIDTH:
        line = "\n".join(
            textwrap.wrap(
                begin + ", ".join(parameter.replace(" ", "\0") for parameter in parameters) + ")\0const\0{",
                WIDTH,
                subsequent_indent=" " * len(begin),
            )
        ).replace("\0", " ")
    return [*([f"  {template}"] if template else []), *line.split("\n"), *(f"    {row}" for row in body), "  }"]


def _both(template: str, name: str, parameters: list[str], body: list[str]) -> list[str]:
    return [
        *_function(template, "void", name, parameters, [*body, "run(call);"]),
        *_function(template, "Request", f"{name}_async", parameters, [*body, "return start(call);"]),
    ]


def _settings(c: Collective, *, buffers: bool) -> str:
    """What a call under construction is told, in a chain."""
    chain = ""
    if buffers:
        chain += ".src(src)" * c.has("src") + ".dst(dst)" * c.has("dst") + ".dst(buffer)" * c.has("buffer")
    chain += ".op(op)" * c.reduces
    if buffers:
        chain += ".root(root)" * c.has("root") + ".root(peer)" * c.has("peer")
        chain += ".tag(tag)" * c.has("tag") + ".window_offset(offset)" * c.has("offset")
    if c.sends and c.receives:
        chain += ".receives(receives, size())"
    elif c.counts_at_root:
        own, side = ("dst", "sends") if c.sends else ("src", "receives")
        length = f"length({own if buffers else 'buffer'})"
        chain += f".{side}(layout, size(), rank() == root, {length})"
    elif c.vectors:
        chain += f".{'sends' if c.sends else 'receives'}(layout, size())"
    elif c.data and buffers:
        chain += f".count({_count(c, 'buffer' if c.has('buffer') else 'dst')})"
    return chain


def _template(c: Collective) -> str:
    if c.has("src") and c.has("dst"):
        return "template <Destination D, SourceFor<D> S>"
    return "template <Source S>" if c.has("src") else "template <Destination D>" if c.data else ""


def _plain(c: Collective) -> list[str]:
    text = " ".join([*c.text, *c.cpp.split()]).replace("`size`", "size()").replace("size * ", "size() * ")
    if c.in_place and not c.rooted:
        text += " src may be kInPlace."
    for name, use in (("dst", c.dst), ("src", c.src)):
        if use.conditions == ("root",) and not use.otherwise:
            text += f" Elsewhere {name} may be empty."
    if c.counts_at_root:
        text += f" So may layout: the length of {'dst' if c.sends else 'src'} is that rank's count then."
    body = [f"Prepared call(UNISONO_{c.name.upper()}, options);"]
    if chain := _settings(c, buffers=True):
        body.append(f"call{chain};")
    if c.sends and c.receives:
        body.append("if (!in_place(src)) call.sends(sends, size());")
    parameters = [*(argument.cpp for argument in c.arguments), "const Options& options = {}"]
    return ["", *_comment(text), *_both(_template(c), c.name, parameters, body)]


def _at_root(c: Collective) -> list[str]:
    """The form in place of a collective with a root, which all ranks call."""
    gathers = bool(c.dst.on(root=True, in_place=True))
    whose = ("dst, in which its input stands", "src") if gathers else ("src, in which its block stays", "dst")
    text = f"As {c.name}, in place: buffer is the root's {whose[0]}, and the others' {whose[1]}."
    text += f" They may call {c.name} as well."
    body = [f"Prepared call = rooted(UNISONO_{c.name.upper()}, {str(gathers).lower()}, buffer, root, options);"]
    chain = _settings(c, buffers=False)
    if not c.vectors:
        on_root = (c.dst if gathers else c.src).on(root=True, in_place=True)
        blocks = "rank() == root ? length(buffer) / size() : length(buffer)"
        chain += f".count({blocks if on_root == 'all' else 'length(buffer)'})"
    body.append(f"call{chain};")
    others = [argument.cpp for argument in c.arguments if argument.name not in ("src", "dst")]
    parameters = ["D&& buffer", *others, "const Options& options = {}"]
    return ["", *_comment(text), *_both("template <Destination D>", f"{c.name}_in_place", parameters, body)]


def emit(spec: Specification) -> str:
    """driver/include/unisono/generated/collectives.hpp as text."""
    lines = [PREAMBLE]
    for c in spec.collectives:
        if c.text and c.cpp != BY_HAND:
            lines += _plain(c)
            lines += _at_root(c) if c.in_place_at_root else []
    lines[1:2] = []  # no empty line behind `public:`
    return "\n".join(lines) + "\n" + END
