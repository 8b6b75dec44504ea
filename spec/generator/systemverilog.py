"""Emits the SystemVerilog package: enumerations, packed structs, checks, limits, errors, exchange memory.

Names follow the lowRISC style: `name_e` and `name_t` for types, UpperCamelCase for constants and enumerators,
the latter prefixed by their type. A field whose name is a keyword of SystemVerilog takes a trailing underscore.
"""

from __future__ import annotations

import textwrap

from .model import Enumeration, Field, Record, Specification, Value

WIDTH = 100

# IEEE 1800-2017, annex B.
_KEYWORD_LIST = """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind
    bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config
    const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable
    dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
    endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask
    enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin
    function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import
    incdir include initial inout input inside instance int integer interconnect interface intersect join join_any
    join_none large let liblist library local localparam logic longint macromodule matches medium modport module
    nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed
    parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg
    reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime
    s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify
    specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on
    table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior
    trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
    wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
KEYWORDS = frozenset(_KEYWORD_LIST.split())


def pascal(name: str) -> str:
    """snake_case to UpperCamelCase."""
    return "".join(part.capitalize() for part in name.split("_"))


def member(name: str) -> str:
    """A field's name in SystemVerilog. Verilator warns of those that mean something in C++."""
    return name + "_" if name in KEYWORDS or name == "vector" else name


def _comment(text: str, indent: str = "") -> list[str]:
    lead = indent + "// "
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=lead) if text else []


def _range(bits: int) -> str:
    return f"[{bits - 1}:0]"


def _enum_type(name: str, doc: str, bits: int, values: tuple[Value, ...]) -> list[str]:
    lines = [*_comment(doc, "  "), f"  typedef enum logic {_range(bits)} {{"]
    for i, v in enumerate(values):
        comma = "," if i + 1 < len(values) else ""
        lines += [*_comment(v.doc, "    "), f"    {pascal(name)}{pascal(v.name)} = {bits}'d{v.value}{comma}"]
    return [*lines, f"  }} {name}_e;", ""]


def emit_enumeration(e: Enumeration) -> list[str]:
    """The type, whether a value is known, and a function for each attribute."""
    name = pascal(e.name)
    lines = _enum_type(e.name, e.doc, e.bits, e.values)
    lines += [f"  // Whether `value` is one of the enumerators of {e.name}_e."]
    lines += [f"  function automatic logic {e.name}_known(logic {_range(e.bits)} value);", "    case (value)"]
    labels = ", ".join(f"{name}{pascal(v.name)}" for v in e.values)
    lines += textwrap.wrap(f"{labels}: return 1'b1;", WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    lines += ["      default: return 1'b0;", "    endcase", "  endfunction", ""]
    for attribute in sorted({key for v in e.values for key in v.attributes}):
        lines += [f"  // Attribute `{attribute}` of a {e.name.replace('_', ' ')}; 0 for a value that is none."]
        lines += [f"  function automatic int unsigned {e.name}_{attribute}({e.name}_e value);", "    case (value)"]
        lines += [f"      {name}{pascal(v.name)}: return 32'd{v.attributes[attribute]};" for v in e.values]
        lines += ["      default: return 32'd0;", "    endcase", "  endfunction", ""]
    return lines


def has_enum_type(f: Field, spec: Specification) -> bool:
    """Whether the member has the enumeration's type; a field of another width is a plain vector."""
    return f.type is not None and f.type != "bool" and spec.enumerations[f.type].bits == f.bits


def _member_type(f: Field, spec: Specification) -> str:
    if f.record is not None:
        return f"{f.record}_t"
    if has_enum_type(f, spec):
        return f"{f.type}_e"
    return "logic" if f.bits == 1 else f"logic {_range(f.bits)}"


def _check(f: Field, spec: Specification) -> str | None:
    value = f"value.{member(f.name)}"
    if f.reserved:
        return f"{value} == '0"
    if f.record is not None:
        return f"{f.record}_well_formed({value})"
    if f.type is None or f.type == "bool":
        return None
    width = spec.enumerations[f.type].bits
    if f.bits > width:
        return f"{value} < {f.bits}'d{1 << width} && {f.type}_known({value}{_range(width)})"
    padded = value if f.bits == width else f"{width}'({value})"
    return f"{f.type}_known({padded})"


def emit_record(r: Record, spec: Specification) -> list[str]:
    """The packed structure, its width, and whether a value is well formed."""
    lines = [*_comment(r.doc, "  "), "  typedef struct packed {"]
    for f in reversed(r.fields):
        doc = f.doc
        if f.type is not None and f.type != "bool" and not has_enum_type(f, spec):
            doc += f" ({f.type}_e, zero-extended)"
        lines += [*_comment(doc, "    "), f"    {_member_type(f, spec)} {member(f.name)};"]
    lines += [f"  }} {r.name}_t;", ""]
    lines += [f"  localparam int unsigned {pascal(r.name)}Width = {r.bits};", ""]
    checks = [check for check in (_check(f, spec) for f in r.fields) if check is not None]
    lines += ["  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at."]
    lines += ["  // verilator lint_off UNUSEDSIGNAL"]
    lines += [f"  function automatic logic {r.name}_well_formed({r.name}_t value);"]
    lines += ["    return " + " &&\n           ".join(checks or ["1'b1"]) + ";", "  endfunction"]
    return [*lines, "  // verilator lint_on UNUSEDSIGNAL", ""]


def emit_limit(v: Value) -> list[str]:
    """A constant."""
    kind, width = ("int unsigned", 32) if v.value < 1 << 32 else ("longint unsigned", 64)
    return [*_comment(v.doc, "  "), f"  localparam {kind} {pascal(v.name)} = {width}'d{v.value};"]


def emit(spec: Specification) -> str:
    """The whole package as text."""
    lines = [
        "// Generated from spec/ by `python -m spec.generator`. Do not edit.",
        "//",
        "// Bit 0 of a record is the lowest bit of its first field, hence the last member of the struct.",
        "// A member whose name would be a keyword of SystemVerilog ends in an underscore.",
        "",
        "package unisono_spec_pkg;",
        "",
        "  // A design uses only a part of the specification.",
        "  // verilator lint_off UNUSEDPARAM",
        "",
    ]
    for e in spec.enumerations.values():
        lines += emit_enumeration(e)
    lines += _enum_type("error_code", "Result of every operation.", 16, spec.errors)
    lines += ["  // Numbers every engine agrees on.", ""]
    for v in spec.limits:
        lines += emit_limit(v)
    lines += [""]
    for r in spec.records.values():
        lines += emit_record(r, spec)
    lines += ["  // Exchange memory: byte offset and bytes of each register.", ""]
    lines += [f"  localparam int unsigned ExchangeBytes = 32'd{spec.exchange_bytes};"]
    for g in spec.registers:
        lines += [*_comment(f"{g.access}: {g.doc}", "  ")]
        lines += [f"  localparam int unsigned Exchange{pascal(g.name)}Offset = 32'h{g.offset:04x};"]
        lines += [f"  localparam int unsigned Exchange{pascal(g.name)}Bytes = 32'd{g.bytes};"]
    return "\n".join([*lines, "", "  // verilator lint_on UNUSEDPARAM", "", "endpackage : unisono_spec_pkg", ""])
