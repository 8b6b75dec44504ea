"""Reads the part of LLVM's textual IR that handlers can be compiled to; everything else is refused."""

from __future__ import annotations

import re
import struct

from .ir import VOID, Address, Block, Code, Const, Inst, Lanes, Module, Ref, Type, Value, Variable
from .refusal import Refusal

_TOKEN = re.compile(
    r'c?"(?:[^"\\]|\\.)*"|[%@!](?:"[^"]*"|[-\w.$]+)|!|0x[HKLM]?[0-9A-Fa-f]+|-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+'
    r"|[\w.$]+|\.\.\.|[^\s\w]"
)
_FLAGS = frozenset(("nuw", "nsw", "exact", "inbounds", "fast", "nnan", "ninf", "nsz", "arcp", "contract", "reassoc",
                    "afn", "volatile", "tail", "musttail", "notail", "fastcc", "noundef", "nonnull", "signext",
                    "zeroext", "nocapture", "immarg", "readonly", "writeonly", "noalias", "spir_func"))  # fmt: skip
#: A null pointer: an address behind all memory, for a variable begins at 0.
NULL = 1 << 30
_BEGINS = "a variable that begins as an address; pointers cannot stay in memory"
BINARY = frozenset(("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
                    "fadd", "fsub", "fmul", "fdiv"))  # fmt: skip
CASTS = frozenset(("zext", "sext", "trunc", "bitcast", "fptoui", "fptosi", "uitofp", "sitofp", "fpext", "fptrunc"))


def float_bits(number: float, bits: int) -> int:
    """A floating-point number's bits."""
    form, back = ("<f", "<I") if bits == 32 else ("<d", "<Q")
    return int(struct.unpack(back, struct.pack(form, number))[0])


def _character(found: re.Match[bytes]) -> bytes:
    """What LLVM writes behind a backslash: another one, or a byte's two digits."""
    return found[1] if found[1] == b"\\" else bytes([int(found[1], 16)])


class _Line:
    """The tokens of a line, and how types and values are read from them."""

    def __init__(self, reader: Reader, text: str) -> None:
        self.reader = reader
        self.tokens: list[str] = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def accept(self, *words: str) -> bool:
        if self.peek() in words:
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if self.next() != word:
            raise Refusal("what the compiler makes of it is not understood")

    def flags(self) -> None:
        """Skips what says nothing here."""
        while True:
            token = self.peek()
            if token in _FLAGS:
                self.at += 1
            elif token in ("align", "dereferenceable", "byval", "sret"):
                self.at += 1
                if self.accept("("):
                    while self.next() != ")":
                        pass
                else:
                    self.at += 1
            else:
                return

    def type(self, called: bool = False) -> Type:
        """A type; of what is called the type of its result."""
        found = self._plain_type()
        while self.peek() in ("*", "addrspace", "(") and not (called and self.peek() == "("):
            if self.accept("*"):
                found = Type("pointer", 64)
            else:
                raise Refusal("a pointer to a function or to another address space; handlers have neither")
        return found

    def _plain_type(self) -> Type:
        token = self.next()
        if re.fullmatch(r"i\d+", token):
            return Type("int", int(token[1:]))
        if token in ("float", "double"):
            return Type("float", 32 if token == "float" else 64)
        if token == "void":
            return VOID
        if token == "ptr":
            return Type("pointer", 64)
        if token.startswith("%"):
            return self.reader.named(token)
        if token == "[":
            count = int(self.next())
            self.expect("x")
            of = self.type()
            self.expect("]")
            return Type("array", of=(of,), count=count)
        packed = token == "<" and self.accept("{")
        if token == "<" and not packed:
            count = int(self.next())
            self.expect("x")
            of = self.type()
            self.expect(">")
            return Type("vector", of=(of,), count=count)
        if packed or token == "{":
            fields: list[Type] = []
            while not self.accept("}"):
                fields.append(self.type())
                self.accept(",")
            if packed:
                self.expect(">")
            return Type("struct", of=tuple(fields), packed=packed)
        if token in ("half", "bfloat", "x86_fp80", "fp128", "ppc_fp128"):
            raise Refusal(
                f"the type {token}; numbers are float and double (us_widen_fp16 and us_widen_bf16 read the narrow ones)"
            )
        return Type("other")

    def typed(self) -> Value:
        kind = self.type()
        self.flags()
        return self.value(kind)

    def value(self, kind: Type) -> Value:
        token = self.next()
        if token.startswith("%"):
            return Ref(kind, token)
        if token.startswith("@"):
            return Address(kind, token)
        if token == "null":
            return Const(kind, NULL)
        if token in ("zeroinitializer", "undef", "poison", "none"):
            return Lanes(kind, (0,) * kind.count) if kind.is_vector else Const(kind, 0)
        if token in ("true", "false"):
            return Const(kind, int(token == "true"))
        if token == "<" and kind.is_vector:
            values: list[int] = []
            while not self.accept(">"):
                values.append(self.constant(self.typed()))
                self.accept(",")
            return Lanes(kind, tuple(values))
        if token == "getelementptr":
            return self._element(kind)
        if token == "bitcast":
            self.expect("(")
            inner = self.typed()
            self.expect("to")
            self.type()
            self.expect(")")
            if isinstance(inner, Address):
                return Address(kind, inner.name, inner.offset)
        if token in ("ptrtoint", "inttoptr"):
            raise Refusal("a pointer is made a number, or a number a pointer; handlers cannot")
        if kind.kind == "float":
            if token.startswith("0x"):
                number = struct.unpack("<d", int(token, 16).to_bytes(8, "little"))[0]
                return Const(kind, float_bits(number, kind.bits) if number == number else self._nan(token, kind))
            return Const(kind, float_bits(float(token), kind.bits))
        if re.fullmatch(r"-?\d+", token):
            return Const(kind, int(token) & ((1 << kind.bits) - 1))
        raise Refusal(f"a constant that is not understood ({token})")

    @staticmethod
    def _nan(token: str, kind: Type) -> int:
        bits = int(token, 16)
        return bits if kind.bits == 64 else (bits >> 32 & 0x80000000) | 0x7F800000 | (bits >> 29 & 0x7FFFFF)

    @staticmethod
    def constant(value: Value) -> int:
        if not isinstance(value, Const):
            raise Refusal("a vector of addresses; vectors hold numbers")
        return value.value

    def _element(self, kind: Type) -> Value:
        self.flags()
        self.expect("(")
        base = self.type()
        self.expect(",")
        begin = self.typed()
        offset = 0
        step: Type | None = None
        while self.accept(","):
            self.accept("inrange")
            index = self.typed()
            assert isinstance(index, Const)
            number = index.value - (1 << index.type.bits if index.value >> (index.type.bits - 1) else 0)
            if step is None:
                offset += number * base.bytes()
                step = base
            elif step.kind == "struct":
                offset += step.offset(number)
                step = step.of[number]
            else:
                step = step.of[0]
                offset += number * step.bytes()
        self.expect(")")
        if not isinstance(begin, Address):
            raise Refusal("an address that is a number; handlers have none")
        return Address(kind, begin.name, begin.offset + offset)

    def image(self, kind: Type) -> bytes:
        """The bytes of an initialiser."""
        size = kind.bytes()
        token = self.peek()
        if token in ("zeroinitializer", "undef", "poison"):
            self.next()
            return bytes(size)
        if token.startswith('c"'):
            text = self.next()[2:-1]
            return re.sub(rb"\\(\\|[0-9A-Fa-f]{2})", _character, text.encode("latin-1"))
        if kind.kind == "array" or kind.kind == "struct":
            closing = {"[": "]", "{": "}", "<": "}"}[self.next()]
            if kind.packed:
                self.expect("{")
            out = bytearray()
            for i in range(kind.count if kind.kind == "array" else len(kind.of)):
                part = self.type()
                if kind.kind == "struct":
                    out += bytes(kind.offset(i) - len(out))
                out += self.image(part)
                self.accept(",")
            self.expect(closing)
            if kind.packed:
                self.expect(">")
            return bytes(out) + bytes(size - len(out))
        if token in ("trunc", "sub", "blockaddress", "ptrtoint", "inttoptr"):
            raise Refusal(_BEGINS)
        value = self.value(kind)
        # A pointer that is null may never be used; one that is used is refused where it is.
        if kind.kind == "pointer" and isinstance(value, Const):
            return bytes(size)
        if isinstance(value, Const):
            return value.value.to_bytes(size, "little")
        if isinstance(value, Lanes):
            return b"".join(v.to_bytes(kind.of[0].bytes(), "little") for v in value.values)
        raise Refusal(_BEGINS)


class Reader:
    """Reads a module. Names of types are resolved when they are met: LLVM writes them first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.types: dict[str, str] = {}
        self._resolved: dict[str, Type] = {}
        self.lines: dict[str, int] = {}
        self.module = Module()

    def named(self, name: str) -> Type:
        """A type that has a name."""
        found = self._resolved.get(name)
        if found is None:
            found = self._resolved[name] = Type("other")  # of a structure that points to itself no more is asked
            if name in self.types:
                found = _Line(self, self.types[name]).type()
            self._resolved[name] = found
        return found

    def read(self) -> Module:
        """The module; Refusal where something is not for handlers."""
        rows = self.text.splitlines()
        for row in rows:
            if row.startswith("!") and ("DILocation(" in row or "DISubprogram(" in row):
                found = re.search(r"[( ]line: (\d+)", row)
                self.lines[row.split(" ", 1)[0]] = int(found[1]) if found else 0
        index = 0
        while index < len(rows):
            row = rows[index]
            if row.startswith("%") and " = type " in row:
                name, _, rest = row.partition(" = type ")
                self.types[name] = rest
            elif row.startswith("@"):
                self._variable(row)
            elif row.startswith("define "):
                end = rows.index("}", index)
                self._function(rows[index:end])
                index = end
            index += 1
        return self.module

    def _variable(self, row: str) -> None:
        name, _, rest = row.partition(" = ")
        words = rest.split(" ")
        if name.startswith("@llvm."):
            return
        if "external" in words[:4]:
            raise Refusal(f"the variable {name[1:]} is not defined in the source", variable=name[1:])
        if "thread_local" in row:
            raise Refusal(f"the variable {name[1:]} is thread_local; a handler has one memory", variable=name[1:])
        for keyword in ("global ", "constant "):
            if f" {keyword}" in f" {rest}":
                rest = f" {rest}".split(f" {keyword}", 1)[1]
                break
        line = _Line(self, rest)
        try:
            kind = line.type()
            image = line.image(kind)
        except Refusal as refusal:
            called = name[1:].split(".")[-1]  # of `payload.table`, a function's own, what the source says
            reason = f"variable {called}: {refusal.reason}"
            if name.startswith("@reltable."):  # of pointers, which LLVM has made numbers
                reason = f"a table of addresses in {called}; pointers cannot stay in memory"
            raise Refusal(reason, variable=name[1:]) from None
        aligned = re.search(r", align (\d+)", row)
        alignment = int(aligned[1]) if aligned else kind.alignment()
        self.module.variables[name] = Variable(name[1:], kind, image, min(alignment, 128))

    def _function(self, rows: list[str]) -> None:
        head = re.search(r"@([\w.$]+|\"[^\"]+\")\((.*)\)", rows[0])
        attached = re.search(r"!dbg (![0-9]+)", rows[0])
        line = self.lines.get(attached[1], 0) if attached else 0
        if head is None:
            raise Refusal("a function whose name is not understood", line)
        plain = not head[2].strip() and re.search(r" (i32|void) @", rows[0]) is not None
        code = Code(head[1], {}, line, plain)
        # The first block's name is left out if it has none: it is the number after the parameters'.
        parameters = head[2].count("%")
        block = Block(f"%{parameters}")
        open_switch: list[str] = []
        for row in rows[1:]:
            if not row.strip() or row.lstrip().startswith(";"):
                continue
            if row[0] != " ":
                name = "%" + row.split(":", 1)[0].strip('"')
                if block.insts or code.blocks:
                    code.blocks[block.name] = block
                block = Block(name)
                continue
            if open_switch or (row.lstrip().startswith("switch ") and "]" not in row):
                open_switch.append(row)
                if "]" not in row:
                    continue
                row = " ".join(open_switch)
                open_switch = []
            inst = self._inst(row)
            if inst is not None:
                block.insts.append(inst)
        code.blocks[block.name] = block
        self.module.functions[code.name] = code

    def _inst(self, row: str) -> Inst | None:
        attached = re.search(r"!dbg (![0-9]+)", row)
        where = self.lines.get(attached[1], 0) if attached else 0
        line = _Line(self, re.split(r", !", row, maxsplit=1)[0])
        try:
            inst = _read_inst(line)
        except Refusal as refusal:
            raise Refusal(refusal.reason, refusal.line or where) from None
        if inst is not None:
            inst.line = where
        return inst


def _read_inst(line: _Line) -> Inst | None:
    name = ""
    if line.peek().startswith("%"):
        name = line.next()
        line.expect("=")
    line.flags()
    op = line.next()
    line.flags()
    if op in BINARY or op == "fneg":
        first = line.typed()
        args = [first]
        if line.accept(","):
            args.append(line.value(first.type))
        return Inst(op, first.type, name, args)
    if op in ("icmp", "fcmp"):
        line.flags()
        predicate = line.next()
        first = line.typed()
        line.expect(",")
        second = line.value(first.type)
        bit = Type("int", 1)
        kind = Type("vector", of=(bit,), count=first.type.count) if first.type.is_vector else bit
        return Inst(op, kind, name, [first, second], predicate)
    if op in CASTS:
        first = line.typed()
        line.expect("to")
        return Inst(op, line.type(), name, [first])
    if op == "phi":
        kind = line.type()
        args, blocks = [], []
        while line.accept("["):
            args.append(line.value(kind))
            line.expect(",")
            blocks.append(line.next())
            line.expect("]")
            line.accept(",")
        return Inst(op, kind, name, args, blocks=blocks)
    if op == "load":
        kind = line.type()
        line.expect(",")
        return Inst(op, kind, name, [line.typed()])
    if op == "store":
        value = line.typed()
        line.expect(",")
        return Inst(op, VOID, name, [value, line.typed()])
    if op == "getelementptr":
        base = line.type()
        args = []
        while line.accept(","):
            args.append(line.typed())
        return Inst(op, Type("pointer", 64), name, args, base=base)
    if op == "alloca":
        base = line.type()
        count = 1
        if line.accept(",") and line.peek() != "align":
            number = line.typed()
            if not isinstance(number, Const):
                raise Refusal("an array whose size is not known when the handler is compiled")
            count = number.value
        return Inst(op, Type("pointer", 64), name, [], base=Type("array", of=(base,), count=count))
    if op == "br":
        if line.accept("label"):
            return Inst(op, VOID, blocks=[line.next()])
        condition = line.typed()
        blocks = []
        while line.accept(","):
            line.expect("label")
            blocks.append(line.next())
        return Inst(op, VOID, args=[condition], blocks=blocks)
    if op == "switch":
        args = [line.typed()]
        line.expect(",")
        line.expect("label")
        blocks = [line.next()]
        line.expect("[")
        while not line.accept("]"):
            args.append(line.typed())
            line.expect(",")
            line.expect("label")
            blocks.append(line.next())
        return Inst(op, VOID, args=args, blocks=blocks)
    if op == "ret":
        kind = line.type()
        return Inst(op, VOID, args=[] if kind.kind == "void" else [line.value(kind)])
    if op == "unreachable":
        return Inst(op, VOID)
    if op in ("select", "extractelement", "insertelement", "freeze", "shufflevector"):
        args = [line.typed()]
        while line.accept(","):
            args.append(line.typed())
        kind = args[1].type if op == "select" else args[0].type
        if op == "shufflevector":  # as many lanes as its mask
            kind = Type("vector", of=kind.of, count=args[2].type.count)
        return Inst(op, kind.of[0] if op == "extractelement" else kind, name, args)
    if op == "extractvalue":
        whole = line.typed()
        line.expect(",")
        index = int(line.next())
        if line.peek() or not index < len(whole.type.of):
            raise Refusal("a part of a structure that is no variable; keep it in one")
        return Inst(op, whole.type.of[index], name, [whole], str(index))
    if op == "call":
        return _read_call(line, name)
    if op in ("ptrtoint", "inttoptr"):
        raise Refusal("a pointer is made a number, or a number a pointer; handlers cannot")
    if op in ("fence", "cmpxchg", "atomicrmw"):
        raise Refusal("an atomic operation; a handler has its memory alone")
    raise Refusal(f"it needs LLVM's {op}, which handlers do not have")


def _read_call(line: _Line, name: str) -> Inst | None:
    kind = line.type(called=True)
    if line.accept("("):  # the types of arguments, where their number varies
        while line.next() != ")":
            pass
    line.flags()
    callee = line.next()
    if callee.startswith(("@llvm.dbg", "@llvm.lifetime", "@llvm.assume", "@llvm.experimental.noalias")):
        return None
    if callee == "asm":
        raise Refusal("assembly; handlers are compiled for a machine of their own")
    if not callee.startswith("@"):
        raise Refusal("a function is called by a pointer; handlers cannot")
    line.expect("(")
    args = []
    while not line.accept(")"):
        args.append(line.typed())
        line.accept(",")
    return Inst("call", kind, name, args, callee[1:])


def read(text: str) -> Module:
    """The module of LLVM's text; Refusal, with the source's line where it is known, of what handlers cannot have."""
    return Reader(text).read()
