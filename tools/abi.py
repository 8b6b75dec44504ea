"""The binary interface of libunisono: read from the header by libclang, recorded, compared.

A record has a line for everything that a compiled program depends on. To change or remove a line breaks programs; to
add one does not, with one exception: a field of a structure may be added only behind all others, to a structure whose
first field is `struct_size`, by which the library tells how much of it a program knows.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clang import cindex

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "driver" / "include" / "unisono" / "unisono.h"
#: Headers beside it, whose functions are the library's, too.
OTHERS = [HEADER.with_name(name) for name in ("smi.h", "kernel_library.h", "kernels.h")]
RECORD = ROOT / "driver" / "abi.txt"
MAJOR, MINOR = "UNISONO_ABI_VERSION", "UNISONO_ABI_MINOR"
PREAMBLE = """\
# The binary interface of libunisono: what compiled programs depend on. Written by `tools/abi` from unisono.h and
# those beside it, checked by tests/python/api/test_abi.py. Fields: offset, size, type (bytes).
"""


@dataclass(frozen=True, order=True)
class Version:
    """Programs run with every library of the same major and an equal or greater minor version."""

    major: int
    minor: int

    def __str__(self) -> str:
        """As in the record."""
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True)
class Interface:
    """A version, and by name what a program depends on."""

    version: Version
    items: dict[str, str]

    def text(self) -> str:
        """The record."""
        lines = (f"{name}: {meaning}" for name, meaning in self.items.items())
        return f"{PREAMBLE}\nversion {self.version}\n\n" + "\n".join(lines) + "\n"


def parse_record(text: str) -> Interface:
    """The interface that a record describes."""
    version, items = Version(0, 0), {}
    for line in text.splitlines():
        if found := re.fullmatch(r"version (\d+)\.(\d+)", line):
            version = Version(int(found[1]), int(found[2]))
        elif line and not line.startswith("#"):
            name, _, meaning = line.partition(": ")
            items[name] = meaning
    return Interface(version, items)


def _system_folders() -> list[str]:
    """The folders of the C compiler's own headers, which the libclang of PyPI comes without."""
    said = subprocess.run(
        ["cc", "-E", "-v", "-x", "c", "/dev/null"], capture_output=True, text=True, timeout=60, check=True
    ).stderr
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return [f"-isystem{folder.strip()}" for folder in listed.splitlines() if folder.strip()]


def _items(unit: cindex.Cursor, only: Path | None = None) -> Iterator[tuple[str, str]]:
    """What a header declares, with those of its folder that it includes; or `only` what stands in one."""
    kind = cindex.CursorKind
    for cursor in unit.get_children():
        if only is not None and (cursor.location.file is None or Path(cursor.location.file.name) != only):
            continue
        if cursor.location.file is None or HEADER.parent not in Path(cursor.location.file.name).resolve().parents:
            continue
        if cursor.kind == kind.FUNCTION_DECL and cursor.storage_class == cindex.StorageClass.STATIC:
            continue  # compiled into programs
        if cursor.kind == kind.FUNCTION_DECL:
            arguments = ", ".join(argument.type.spelling for argument in cursor.get_arguments())
            yield f"function {cursor.spelling}", f"{cursor.result_type.spelling} ({arguments or 'void'})"
        elif cursor.kind == kind.ENUM_DECL:
            for constant in cursor.get_children():
                yield f"enumerator {constant.spelling}", str(constant.enum_value)
        elif cursor.kind == kind.TYPEDEF_DECL:
            meaning = cursor.underlying_typedef_type
            declared = meaning.get_declaration()
            if declared.kind == kind.STRUCT_DECL and declared.is_definition():
                yield f"struct {cursor.spelling}", f"{meaning.get_size()} bytes, aligned to {meaning.get_align()}"
                for field in declared.get_children():
                    if field.kind == kind.FIELD_DECL:
                        yield (
                            f"field {cursor.spelling}.{field.spelling}",
                            f"{field.get_field_offsetof() // 8} {field.type.get_size()} {field.type.spelling}",
                        )
            else:
                opaque = declared.kind == kind.STRUCT_DECL
                yield f"type {cursor.spelling}", "opaque" if opaque else meaning.spelling


def parse_header(text: str, header: Path | None = None) -> cindex.Cursor:
    """What libclang makes of a header, if its text is this; without a name, of unisono.h."""
    header = header or HEADER
    unit = cindex.Index.create().parse(
        str(header),
        args=["-xc", "-std=c11", f"-I{OTHERS[0].parents[1]}", *_system_folders()],
        unsaved_files=[(str(header), text)],
    )
    faults = [str(found) for found in unit.diagnostics if found.severity >= cindex.Diagnostic.Warning]
    if faults:
        raise SystemExit(f"{header.name} does not compile:\n" + "\n".join(faults))
    return unit.cursor


def read_header(text: str | None = None) -> Interface:
    """The interface that the header declares, or would if its text were this."""
    text = HEADER.read_text() if text is None else text
    numbers = dict(re.findall(r"^#define (\w+) (\d+)$", text, re.MULTILINE))
    items = dict(_items(parse_header(text)))
    for other in OTHERS:
        items.update(_items(parse_header(other.read_text(), other), other))
    return Interface(Version(int(numbers[MAJOR]), int(numbers[MINOR])), items)


def compare(old: Interface, new: Interface) -> tuple[list[str], list[str]]:
    """What breaks programs, and what was added, each in a line."""
    breaks: list[str] = []
    additions: list[str] = []
    sizes = {name: int(meaning.split()[0]) for name, meaning in old.items.items() if name.startswith("struct ")}
    growing = {
        name for name in sizes if old.items.get(f"field {name.removeprefix('struct ')}.struct_size", "x")[0] == "0"
    }
    for name, meaning in old.items.items():
        now = new.items.get(name)
        if now is None:
            breaks.append(f"{name} is gone (it was {meaning})")
        elif now != meaning:
            grown = name in growing and int(now.split()[0]) > sizes[name] and now.split()[1:] == meaning.split()[1:]
            (additions if grown else breaks).append(f"{name} was {meaning}, and is {now}")
    for name, meaning in new.items.items():
        if name in old.items:
            continue
        struct = f"struct {name.removeprefix('field ').partition('.')[0]}"
        if name.startswith("field ") and struct in sizes and struct not in growing:
            breaks.append(f"{name} is new ({meaning}), in a structure whose size programs have compiled in")
        elif name.startswith("field ") and struct in sizes and int(meaning.split()[0]) < sizes[struct]:
            breaks.append(f"{name} is new ({meaning}), and not behind the {sizes[struct]} bytes that programs know")
        else:
            additions.append(f"{name} is new ({meaning})")
    return breaks, additions


def problem(old: Interface, new: Interface) -> str | None:
    """Why the header is not what was recorded; None if it is."""
    breaks, additions = compare(old, new)
    listed = "".join(f"\n  {line}" for line in breaks + additions)
    if breaks and new.version.major <= old.version.major:
        return f"programs compiled for version {old.version} would break; raise {MAJOR}, or keep what was:{listed}"
    if breaks or additions or new.version != old.version:
        return (
            f"the header is {new.version}, the record {old.version}; run tools/abi and commit what it writes:{listed}"
        )
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares, and records."""
    parser = argparse.ArgumentParser(prog="tools/abi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether header and record agree")
    check = parser.parse_args(arguments).check
    old = parse_record(RECORD.read_text()) if RECORD.exists() else None
    new = read_header()
    why = problem(old, new) if old else "there is no record"
    if check or why is None:
        print(why or f"The binary interface is that of version {new.version}, as recorded.")
        return 0 if why is None else 1
    if old:
        breaks, additions = compare(old, new)
        if breaks and new.version.major <= old.version.major:
            print(why)
            return 1
        if new.version.major > old.version.major:
            wanted = Version(new.version.major, 0)
        else:
            wanted = Version(old.version.major, old.version.minor + bool(additions))
        if wanted != new.version:
            text, times = re.subn(
                rf"^#define {MINOR} \d+$", f"#define {MINOR} {wanted.minor}", HEADER.read_text(), flags=re.M
            )
            assert times == 1, f"unisono.h has no line `#define {MINOR} N`"
            HEADER.write_text(text)
            new = Interface(wanted, new.items)
        print("\n".join(breaks + additions))
    RECORD.write_text(new.text())
    print(f"Recorded version {new.version} in {RECORD.relative_to(ROOT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
