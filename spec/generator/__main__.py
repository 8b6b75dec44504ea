"""`python -m spec.generator [--check]`: writes the generated files, or says which are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import cpp, cpp_calls, cpp_collectives, handlers, markdown, python, python_collectives, systemverilog
from .model import SpecError, load, load_handlers

ROOT = Path(__file__).resolve().parents[2]


def outputs() -> dict[Path, str]:
    """Every generated file with its text."""
    spec = load(ROOT / "spec")
    machine = load_handlers(ROOT / "spec")
    return {
        ROOT / "core/generated/spec.hpp": cpp.emit(spec),
        ROOT / "core/generated/collectives.hpp": cpp_collectives.emit(spec),
        ROOT / "collectives/generated/algorithms.hpp": cpp_collectives.emit_algorithms(spec),
        ROOT / "driver/include/unisono/generated/collectives.h": cpp_collectives.emit_c(spec),
        ROOT / "driver/include/unisono/generated/collectives.hpp": cpp_calls.emit(spec),
        ROOT / "python/unisono/_spec.py": python.emit(spec),
        ROOT / "python/unisono/_collective_calls.py": python_collectives.emit(spec),
        ROOT / "rtl/generated/unisono_spec_pkg.sv": systemverilog.emit(spec),
        ROOT / "rtl/generated/unisono_handler_isa_pkg.sv": handlers.emit_systemverilog(machine),
        ROOT / "switch/handler/generated/isa.hpp": handlers.emit_cpp(machine),
        ROOT / "python/unisono/handler/_isa.py": handlers.emit_python(machine),
        ROOT / "docs/reference/handler-isa.md": handlers.emit_markdown(machine),
        ROOT / "docs/reference/spec.md": markdown.emit(spec),
        ROOT / "docs/reference/errors.md": markdown.emit_errors(spec),
    }


def main() -> int:
    """Entry point; 1 if --check finds a stale file or the specification contradicts itself."""
    parser = argparse.ArgumentParser(prog="python -m spec.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is stale")
    check = parser.parse_args().check
    try:
        files = outputs()
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    stale = 0
    for path, text in files.items():
        name = path.relative_to(ROOT)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            print(f"stale: {name} (run `python -m spec.generator`)")
            stale += 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
