"""From a source in C to a binary: clang's IR, words, their order, registers, and the bits.

What it costs: clang's start and work, then some ten milliseconds for a handler of a few hundred words.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from .. import _core
from .._spec import ErrorCode
from ..errors import UnisonoError
from . import ir, reader
from ._isa import MOST_LOOPS, MOST_MEMORY_BYTES, MOST_WORDS, Function, Instruction, Op
from .allocate import allocate, remove_dead
from .bounds import bound_loops
from .coalesce import coalesce, leave_out_empty
from .flow import find_flow, split_edges
from .refusal import Refusal
from .schedule import copied, schedule
from .select import Selector
from .words import NONE, Part, Selected, Word

#: Options by which clang leaves loops and vectors as they are written. Its target hands vectors over whole.
OPTIONS = ("--target=nvptx64", "-std=gnu11", "-S", "-emit-llvm", "-O2", "-gline-tables-only", "-ffreestanding",
           "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-finite-loops",
           "-fno-strict-aliasing", "-fwrapv", "-nostdlibinc", "-Werror=implicit-function-declaration",
           "-fno-crash-diagnostics", "-fno-math-errno", "-fno-discard-value-names", "-Wall", "-Wno-psabi",
           "-Wno-unused-function", "-fno-color-diagnostics", "-Xclang", "-disable-lifetime-markers",
           "-mllvm", "-replexitval=never", "-mllvm", "-disable-vector-combine",
           "-mllvm", "-inline-threshold=1000000", "-mllvm", "-inlinecold-threshold=1000000",
           "-mllvm", "-inline-cold-callsite-threshold=1000000")  # fmt: skip
OPERATOR = "us_operator"  #: the variable that unisono_operator.h declares
_ERROR = re.compile(r": (fatal )?error: ")
_SECONDS = 60  #: for clang
_CLANGS = ("clang-14", "clang")
_BACK, _ALWAYS = Op.AGAIN, 2


class HandlerError(UnisonoError):
    """A source or a binary that can be no handler; says where and why."""

    code = ErrorCode.MALFORMED_PROGRAM


def include_dir() -> Path:
    """The folder of `unisono_handler.h`."""
    return Path(__file__).resolve().parent / "include"


def clang() -> str:
    """The compiler: UNISONO_CLANG, or the first that there is."""
    named = os.environ.get("UNISONO_CLANG")
    for name in (named,) if named else _CLANGS:
        found = shutil.which(name)
        if found:
            return found
    raise HandlerError(f"there is no {named or 'clang'} here, which reads handlers; `make handlers` installs it, "
                       f"or name another by UNISONO_CLANG")  # fmt: skip


def to_ir(source: Path, macros: tuple[str, ...] = ()) -> str:
    """LLVM's IR of a source; HandlerError with what clang says if it is no C."""
    command = [clang(), *OPTIONS, f"-I{include_dir()}", *(f"-D{m}" for m in macros), "-o", "-", str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise HandlerError(f"{source}: clang takes longer than {_SECONDS} seconds; make the source smaller") from None
    if done.returncode != 0:
        raise HandlerError(_errors(done.stderr, source))
    return done.stdout


def _errors(said: str, source: Path) -> str:
    """What clang says is wrong, `file:line:column: reason` in each line."""
    lines = [line for line in said.splitlines() if _ERROR.search(line) and not line.startswith("clang")]
    if not lines:  # nothing is wrong with a line: clang cannot be run so, or has crashed
        return f"{source}: clang fails: {(said.strip().splitlines() or ['it says nothing'])[-1]}"
    return "\n".join(re.sub(r" \[-W[^\]]*\]$", "", _ERROR.sub(": ", line)) for line in lines)


def compile_handler(source: str | os.PathLike[str], macros: tuple[str, ...] = ()) -> bytes:
    """The binary of a handler in C; HandlerError `file:line: reason` if it is none."""
    path = Path(source)
    if not path.is_file():
        raise HandlerError(f"{path}: there is no such file")
    return assemble(to_ir(path, macros), str(path))


def assemble(text: str, source: str) -> bytes:
    """The binary of LLVM's IR; HandlerError if it has what handlers cannot have."""
    try:
        return _assemble(text, source)
    except Refusal as refusal:
        line = refusal.line or _line_of(refusal.variable, source)
        where = f"{source}:{line}" if line else source
        raise HandlerError(f"{where}: {refusal.reason}") from None


def _line_of(variable: str, source: str) -> int:
    """The first line that names a variable: IR that has lines of code only does not say it. 0 if there is none. Of
    `payload.table`, a function's own, the function's name does not count.
    """
    try:
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    if variable:
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"\b{re.escape(variable.split('.')[-1])}\b", line):
                return number
    return 0


def _assemble(text: str, source: str) -> bytes:
    module = reader.read(text)
    functions = [f for f in Function if f.name.lower() in module.functions]
    if not functions:
        raise Refusal("there is no function header, payload or completion; a handler has one of them at least")
    for code in module.functions.values():
        if code.name.upper() not in Function.__members__:
            _refuse_uncalled(module, code)
    places, data, end = _layout(module)
    encoded = bytearray()
    lines: list[int] = []
    entries = [0xFFFFFFFF] * len(Function)
    loops = 0
    frame = end
    for function in functions:
        code = module.functions[function.name.lower()]
        if not code.plain:
            raise Refusal(f"{code.name} must be `int {code.name}(void)`", code.line)
        split_edges(code)
        flow = find_flow(code)
        bound_loops(flow)
        if loops + len(flow.loops) > MOST_LOOPS:
            raise Refusal(f"there are more than {MOST_LOOPS} loops", code.line)
        selected = Selector(flow, places, loops).select()
        loops += len(flow.loops)
        remove_dead(selected)
        copies = copied(selected.parts)
        for part in selected.parts:
            schedule(part, copies)
        coalesce(selected)
        leave_out_empty(selected)
        # A function's values do not outlive it: all functions have the same places for what finds no register.
        frame = max(frame, allocate(selected, end))
        entries[function] = len(lines)
        for word in _laid_out(selected, len(lines)):
            encoded += _encode(word)
            lines.append(word.line)
        if len(lines) > MOST_WORDS:
            raise Refusal(f"it has more than {MOST_WORDS} instructions", code.line)
    memory = -(-frame // 64) * 64
    if memory > MOST_MEMORY_BYTES:
        raise Refusal(f"it needs {memory} bytes of memory; allowed are {MOST_MEMORY_BYTES}")
    return _core.write_handler(bytes(encoded), lines, entries, memory, data.rstrip(b"\0"), os.path.basename(source))


def _refuse_uncalled(module: ir.Module, code: ir.Code) -> None:
    """Functions that are there and are none of a handler's were called, and not put in place of their calls; or they
    are meant for somebody else.
    """
    for block in code.blocks.values():
        for inst in block.insts:
            if inst.op == "call" and inst.text == code.name:
                raise Refusal(f"{code.name} calls itself; handlers have no recursion", inst.line or code.line)
    raise Refusal(f"{code.name} is a function that the compiler does not put in place of its calls, or that nobody "
                  f"calls; make it `static inline`", code.line)  # fmt: skip


def _layout(module: ir.Module) -> tuple[dict[str, int], bytes, int]:
    """Where variables and local arrays are, what memory begins with, and where it ends so far."""
    places: dict[str, int] = {}
    at = 0
    data = bytearray()
    # Those that begin with something come first: of the others the binary has nothing. A loader of operators looks for
    # their shape where memory begins.
    for variable in sorted(module.variables.values(), key=lambda v: (v.name != OPERATOR, not any(v.image))):
        at = -(-at // variable.alignment) * variable.alignment
        places[f"@{variable.name}"] = at
        if any(variable.image):
            data += bytes(at - len(data)) + variable.image
        at += len(variable.image)
    if at > MOST_MEMORY_BYTES:
        largest = max(module.variables.values(), key=lambda v: len(v.image))
        raise Refusal(f"its variables have {at} bytes; allowed are {MOST_MEMORY_BYTES}", variable=largest.name)
    for code in module.functions.values():
        for block in code.blocks.values():
            for inst in block.insts:
                if inst.op == "alloca" and inst.base is not None:
                    at = -(-at // 128) * 128
                    places[f"{code.name}{inst.name}"] = at
                    at += inst.base.bytes()
    return places, bytes(data), at


def _laid_out(selected: Selected, begin: int) -> list[Word]:
    """All words of a function in their order, with the words that they go to."""
    words: list[Word] = []
    entered: dict[str, int] = {}  # where a block begins for those that come from before it
    heads: dict[str, int] = {}  # and for those that go round
    numbers = {part.name: part.loop for part in selected.parts}
    going: list[tuple[Word, Part]] = []
    for i, part in enumerate(selected.parts):
        entered[part.name] = begin + len(words)
        if part.loop != NONE:
            words.append(Word(Op.ENTER, rd=part.loop, imm=part.rounds, line=part.body[0].line if part.body else 0))
        heads[part.name] = begin + len(words)
        words += part.body
        following = selected.parts[i + 1].name if i + 1 < len(selected.parts) else ""
        for word in _ends(part, selected, following, numbers):
            words.append(word)
            if word.target:
                going.append((word, part))
    for word, part in going:
        back = (part.name, word.target) in selected.back
        word.imm = heads[word.target] if back else entered[word.target]
    return words


def _ends(part: Part, selected: Selected, following: str, numbers: dict[str, int]) -> list[Word]:
    """A block's last words: those that go round are `again`, and no word goes to the one behind it."""
    ends = list(part.ends)
    if len(ends) >= 2 and ends[-1].op == Op.JUMP and ends[-2].op == Op.BRANCH and ends[-2].target == following:
        # The branch would only jump over the jump.
        branch, jump = ends[-2], ends[-1]
        ends[-2:] = [Word(Op.BRANCH, aux=1 - branch.aux, ra=branch.ra, target=jump.target, line=branch.line)]
    made = []
    for word in ends:
        if (part.name, word.target) in selected.back:
            aux = _ALWAYS if word.op == Op.JUMP else word.aux
            made.append(Word(_BACK, aux=aux, rd=numbers[word.target], ra=word.ra, target=word.target, line=word.line))
        elif word.op != Op.JUMP or word.target != following:
            made.append(word)
    return made


def _encode(word: Word) -> bytes:
    registers = max(word.rb, 0) | max(word.rc, 0) << 8
    return Instruction(word.op, word.vector, word.element, word.immediate, word.aux, max(word.rd, 0), max(word.ra, 0),
                       word.imm & 0xFFFFFFFF if word.immediate or not registers else registers).encode()  # fmt: skip
