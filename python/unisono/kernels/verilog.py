"""Kernels in SystemVerilog: Verilated, and described for their library."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Ports that are no arguments (docs/kernels.md, "Kernels in SystemVerilog").
_NEEDED = ("clk_i", "rst_ni", "start_valid_i", "start_ready_o", "done_valid_o", "done_code_o", "call_valid_o",
           "call_ready_i", "call_data_o", "call_keep_o", "call_last_o", "answer_valid_i", "answer_ready_o",
           "answer_data_i")  # fmt: skip
_IN = ("in_valid_i", "in_ready_o", "in_data_i", "in_keep_i", "in_last_i")
_OUT = ("out_valid_o", "out_ready_i", "out_data_o", "out_keep_o", "out_last_o")
_PORT = re.compile(r"VL_(IN|OUT)(?:8|16|64|W)?\(&(\w+),(\d+),(\d+)")
#: By width: the type in C++, the kind and the datatype of a parameter.
_SCALARS = {1: "UNISONO_BOOL", 8: "UNISONO_UINT8", 16: "UNISONO_UINT16", 32: "UNISONO_UINT32", 64: "UNISONO_UINT64"}


class VerilogError(Exception):
    """Sources that make no kernel, and why."""


@dataclass(frozen=True)
class Verilated:
    """What the unit of a library needs of a module."""

    lines: list[str]
    folders: list[str]
    objects: list[str]


def _module(sources: Sequence[str], top: str | None) -> str:
    if top is not None:
        return top
    names: list[str] = [
        name for source in sources for name in re.findall(r"^\s*module\s+(\w+)", _text(source), re.MULTILINE)
    ]
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise VerilogError(f"the sources have modules {found}; name the kernel by --top")
    return names[0]


def _text(source: str) -> str:
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise VerilogError(f"{source}: {error.strerror}") from None


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise VerilogError(f"{words[0]} has failed:\n{(done.stderr or done.stdout).strip()}")


def _parameters(title: str, widths: dict[str, tuple[bool, int]], order: Sequence[str]) -> list[tuple[str, str, str]]:
    """Of each argument: its port, and its parameter's kind, and the rest of that."""
    parameters = []
    for name in order:
        width = widths[name][1]
        if name == "communicator_i":
            parameters.append((name, "UNISONO_KERNEL_COMMUNICATOR", "0, 0, 0"))
        elif name.endswith("_address_i") and width == 64:
            parameters.append((name, "UNISONO_KERNEL_MEMORY", "UNISONO_BYTE, 1, 0"))
        elif width in _SCALARS:
            parameters.append((name, "UNISONO_KERNEL_SCALAR", f"{_SCALARS[width]}, 0, 0"))
        else:
            raise VerilogError(f"{title}: port {name} has {width} bits; an argument has 1, 8, 16, 32 or 64")
    return parameters


def verilate(sources: Sequence[str], top: str | None, folder: Path) -> Verilated:
    """Compiles a module, the only one or that named `top`. Raises `VerilogError`."""
    module = _module(sources, top)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", "".join(map(_text, sources)), flags=re.DOTALL)  # names stand in comments
    if shutil.which("verilator") is None:
        raise VerilogError("there is no verilator, which compiles SystemVerilog; install it")
    prefix = f"V{module}"
    _run(["verilator", "--cc", "--build", "-O3", "--assert", "-Wno-fatal", "--prefix", prefix, "--top-module", module,
          "--Mdir", str(folder), "-CFLAGS", "-fPIC -O2",
          *(str(Path(source).resolve()) for source in sources)])  # fmt: skip
    root = subprocess.run(["verilator", "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True).stdout.strip()
    header = (folder / f"{prefix}.h").read_text()
    widths = {name: (way == "IN", int(high) - int(low) + 1) for way, name, high, low in _PORT.findall(header)}
    title = f"module {module}"
    if missing := [name for name in _NEEDED if name not in widths]:
        raise VerilogError(f"{title}: it has no port {missing[0]}; docs/kernels.md lists what a kernel has")
    lanes = {}
    for group in (_IN, _OUT):
        there = [name for name in group if name in widths]
        if there and len(there) != len(group):
            lacking = next(name for name in group if name not in widths)
            raise VerilogError(f"{title}: it has a port {there[0]} and no {lacking}")
        lanes[group] = widths[group[0]][1] if there else 0
        data = next(name for name in group if "_data_" in name)
        if there and widths[data][1] != 512 * lanes[group]:
            raise VerilogError(f"{title}: {data} has {widths[data][1]} bits; a word has 512, for each stream port")
    if widths["call_data_o"][1] != 512:
        raise VerilogError(f"{title}: call_data_o has {widths['call_data_o'][1]} bits; a word has 512")
    others = [name for name, (enters, _) in widths.items() if name not in {*_NEEDED, *_IN, *_OUT}]
    if outputs := [name for name in others if not widths[name][0]]:
        raise VerilogError(f"{title}: port {outputs[0]} is an output that nothing takes")
    places = {name: re.search(rf"\b{name}\b", text) for name in others}
    order = sorted(others, key=lambda name: found.start() if (found := places[name]) else 0)
    parameters = _parameters(title, widths, order)
    table = ", ".join(f"{{{kind}, {rest}}}" for _, kind, rest in parameters)
    sets = " ".join(
        f"unisono::kernel::verilated::assign(module.top().{name}, given->values[{place}].bits);"
        for place, (name, _, _) in enumerate(parameters)
    )
    lines = [
        f'#include "{prefix}.h"',
        "#include <unisono/kernel_verilated.hpp>",
        "namespace {",
        f"const unisono_kernel_parameter kParameters[] = {{{table or '{}'}}};",
        "unisono_result run_module(const unisono_kernel_run* given) {",
        "  try {",
        f"    unisono::kernel::verilated::Module<{prefix}, {lanes[_IN]}, {lanes[_OUT]}> module(*given);",
        f"    {sets}",
        "    module.run();",
        "    return 0;",
        "  } catch (const unisono::Error& error) {",
        '    std::snprintf(given->sentence, given->sentence_bytes, "%s", error.what());',
        "    return error.code();",
        "  } catch (const std::exception& error) {",
        '    std::snprintf(given->sentence, given->sentence_bytes, "%s", error.what());',
        "    return 23;",
        "  }",
        "}",
        "const bool kAdded = (unisono::kernel::detail_of_exports::entries().push_back(",
        f'    {{"{module}", kParameters, {len(parameters)}, (1U << {lanes[_OUT]}) - 1, (1U << {lanes[_IN]}) - 1, 0, '
        "run_module}), true);",
        "}",
    ]
    include = f"{root}/include"
    return Verilated(
        lines,
        [f"-I{folder}", f"-isystem{include}", f"-isystem{include}/vltstd", "-Wno-unused-parameter"],
        [f"{folder}/{prefix}__ALL.a", f"{include}/verilated.cpp", f"{include}/verilated_threads.cpp"],
    )
