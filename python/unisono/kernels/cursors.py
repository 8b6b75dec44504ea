"""Questions about libclang's cursors that its own functions do not answer."""

from __future__ import annotations

import re
from typing import Any

from .._spec import Datatype
from . import constants
from .interface import CLASSES, ELEMENTS, KINDS, OPEN_FIELDS, Place
from .libclang import cindex
from .parsing import kinds

#: What stands around an expression and does not change which it is.
_AROUND = kinds(("UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR"))
_VARIABLES = kinds(("VAR_DECL", "PARM_DECL"))


def place_of(cursor: Any) -> Place:
    """Where it stands; of what a macro makes, where the macro is used."""
    return Place(cursor.location.file.name if cursor.location.file else "", cursor.location.line)


def inner(cursor: Any) -> Any:
    """An expression without what stands around it."""
    while cursor is not None and cursor.kind in _AROUND:
        children = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def variable(cursor: Any) -> Any:
    """The variable that an expression names; None if it is another expression."""
    cursor = inner(cursor)
    if cursor is None or cursor.kind != cindex.CursorKind.DECL_REF_EXPR or cursor.referenced is None:
        return None
    return cursor.referenced if cursor.referenced.kind in _VARIABLES else None


def base(cursor: Any) -> Any:
    """The variable that an element or a field is of, however deep."""
    found = variable(cursor)
    while found is None:
        cursor = inner(cursor)
        children = list(cursor.get_children()) if cursor is not None else []
        if not children or cursor.kind not in (
            cindex.CursorKind.ARRAY_SUBSCRIPT_EXPR, cindex.CursorKind.MEMBER_REF_EXPR, cindex.CursorKind.UNARY_OPERATOR,
        ):  # fmt: skip
            return None
        cursor = children[0]
        found = variable(cursor)
    return found


def member(cursor: Any) -> tuple[int, int] | None:
    """A name for the field of a variable that an expression is."""
    cursor = inner(cursor)
    if cursor is None or cursor.kind != cindex.CursorKind.MEMBER_REF_EXPR or cursor.referenced is None:
        return None
    of = base(cursor)
    return (of.hash, cursor.referenced.hash) if of is not None else None


def assigns(cursor: Any) -> bool:
    """Whether an operator changes its first operand."""
    if cursor.kind == cindex.CursorKind.UNARY_OPERATOR:
        return constants.unary_operator(cursor) in (
            constants.POST_INCREMENT, constants.INCREMENT, constants.POST_DECREMENT, constants.DECREMENT,
        )  # fmt: skip
    operator = constants.binary_operator(cursor)
    return operator == constants.ASSIGN or operator in constants.COMPOUND


def initializer(cursor: Any) -> Any:
    """What a variable is given first; None if it is given nothing."""
    function = cindex.conf.lib.clang_Cursor_getVarDeclInitializer
    function.restype = cindex.Cursor
    return cindex.Cursor.from_result(function(cursor), function, (cursor,))


def parameters(function: Any) -> list[Any]:
    """Of a function, or of a lambda."""
    return [child for child in function.get_children() if child.kind == cindex.CursorKind.PARM_DECL]


def source_of(cursor: Any) -> str:
    """An expression as the source says it."""
    words = [token.spelling for token in cursor.get_tokens()]
    return "".join(words) if 0 < len(words) < 16 else cursor.spelling


def text_in(cursor: Any) -> str | None:
    """The text of a string that an argument is made of."""
    for at in cursor.walk_preorder():
        if at.kind == cindex.CursorKind.LAMBDA_EXPR:
            return None
        if at.kind == cindex.CursorKind.STRING_LITERAL:
            return str(at.spelling).strip('"')
    return None


def lambda_in(cursor: Any) -> Any:
    """The lambda that an argument is made of."""
    for at in cursor.walk_preorder():
        if at.kind == cindex.CursorKind.LAMBDA_EXPR:
            return at
    return None


def open_fields(cursor: Any) -> dict[str, Any]:
    """The expressions that a unisono::smi::Open is made of, by its fields."""
    found: dict[str, Any] = {}
    made = next((at for at in cursor.walk_preorder() if at.kind == cindex.CursorKind.INIT_LIST_EXPR), None)
    for place, child in enumerate(made.get_children() if made is not None else ()):
        parts = list(child.get_children())
        if parts and parts[0].kind == cindex.CursorKind.MEMBER_REF:
            found[parts[0].spelling] = parts[-1]
        elif place < len(OPEN_FIELDS):
            found[OPEN_FIELDS[place]] = child
    return found


def class_of(cursor: Any) -> tuple[str, Datatype | None] | None:
    """Which kind of channel of C++ an expression makes, and of what; None if it is no channel."""
    found = cursor.type.get_canonical()
    declared = found.get_declaration()
    parent = declared.semantic_parent
    if parent is None or parent.spelling != "smi":
        return None
    element = datatype_of_element(found.get_template_argument_type(0))
    if declared.spelling in CLASSES:
        return CLASSES[declared.spelling], element
    number = re.search(r",\s*(\d+)>$", found.spelling)
    if declared.spelling == "ExchangeChannel" and number is not None:
        return KINDS[int(number[1]) - 1], element
    return None


def datatype_of_element(found: Any) -> Datatype | None:
    """The datatype of a type of C++, if it is a number of the language."""
    told = classify(found)
    return next((datatype for datatype, own in ELEMENTS.items() if own == told), None)


_UNSIGNED = ("BOOL", "CHAR_U", "UCHAR", "USHORT", "UINT", "ULONG", "ULONGLONG")
_SIGNED = ("CHAR_S", "SCHAR", "SHORT", "INT", "LONG", "LONGLONG")
_FLOATING = ("FLOAT", "DOUBLE", "LONGDOUBLE")


def classify(found: Any) -> tuple[str, int]:
    """Class and bytes of a type, as in ELEMENTS; "" for one that is no number."""
    found = found.get_canonical()
    if found.kind == cindex.TypeKind.ENUM:
        found = found.get_declaration().enum_type.get_canonical()
    name = found.kind.name
    kind = "u" if name in _UNSIGNED else "i" if name in _SIGNED else "f" if name in _FLOATING else ""
    return kind, found.get_size()
