"""Whether what is pushed into a channel, or popped from it, is of the channel's type."""

from __future__ import annotations

import re
from typing import Any

from .._spec import Datatype
from .cursors import classify, source_of
from .interface import ELEMENTS, Channel, Use
from .libclang import cindex
from .parsing import kinds

_CASTS = kinds(
    ("UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR")
)
_OF_SMI = {
    Datatype.INT32: "SMI_INT",
    Datatype.FP32: "SMI_FLOAT",
    Datatype.FP64: "SMI_DOUBLE",
    Datatype.INT8: "SMI_CHAR",
    Datatype.INT16: "SMI_SHORT",
}
_VECTOR = re.compile(r"(?:^|::)Vector<")


def type_name(datatype: Datatype) -> str:
    """A datatype as programs of SMI name it."""
    return _OF_SMI.get(datatype, f"SMI_TYPE_OF(UNISONO_{datatype.name})")


def differing(name: str, use: Use, channel: Channel, arguments: list[Any]) -> str | None:
    """What is wrong with a use of a channel: its kind, or the type of the data that its arguments point to."""
    port = channel.port if channel.port is not None else channel.port_text
    what = f"the channel of port {port} opened at {channel.place}"
    if use.kinds and channel.kind not in use.kinds:
        return f"{name} is for channels of {use.kinds[0]}, and {what} is of {channel.kind}"
    if channel.type is None or channel.type not in ELEMENTS:
        return None
    for at in use.data:
        if at >= len(arguments):
            continue
        pointed = _pointed(arguments[at])
        if pointed is None:
            continue
        element = _element(pointed, use.vector)
        if not _agree(classify(element), ELEMENTS[channel.type]):
            text = source_of(arguments[at])
            return f"{name} is given `{text}`, of type {element.spelling}; {what} is of {type_name(channel.type)}"
    return None


def _pointed(argument: Any) -> Any:
    """The type that an argument points to, before it became a pointer to anything; None if that is not known."""
    at = argument
    while True:
        found = at.type.get_canonical()
        if found.kind == cindex.TypeKind.POINTER and found.get_pointee().get_canonical().kind != cindex.TypeKind.VOID:
            return at.type.get_pointee() if at.type.kind == cindex.TypeKind.POINTER else found.get_pointee()
        children = [child for child in at.get_children() if child.kind.is_expression()]
        if at.kind not in _CASTS or len(children) != 1:
            return None
        at = children[0]


def _element(pointed: Any, vector: bool) -> Any:
    found = pointed
    while found.get_canonical().kind in (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY):
        found = found.get_canonical().get_array_element_type()
    if vector and _VECTOR.search(found.get_canonical().spelling):
        found = found.get_canonical().get_template_argument_type(0)
    return found


def _agree(given: tuple[str, int], wanted: tuple[str, int]) -> bool:
    if wanted[0] == "?":
        return given[1] == wanted[1]
    return given == wanted
