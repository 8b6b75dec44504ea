"""Handlers compiled for the processor by an ordinary compiler: what ours must do."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from unisono import handler
from unisono.handler.compiler import HandlerError, clang

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLES = ROOT / "examples" / "handlers"


def has_clang() -> bool:
    try:
        clang()
    except HandlerError:
        return False
    return shutil.which("cc") is not None


needs_clang = pytest.mark.skipif(not has_clang(), reason="clang, which reads handlers, is not installed: make handlers")


class Native:
    """A handler as a library of this process; its memory begins anew with each object."""

    def __init__(self, source: Path, folder: Path) -> None:
        library = folder / f"{source.stem}.so"
        command = ["cc", "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv",
                   "-fno-strict-aliasing", f"-I{handler.include_dir()}", f'-DHANDLER="{source}"',
                   str(HERE / "native.c"), "-o", str(library)]  # fmt: skip
        subprocess.run(command, check=True, timeout=60, capture_output=True)
        self.library = ctypes.CDLL(str(library))
        self.library.native_written.restype = ctypes.c_uint64

    def run(self, packets: list[bytes], source: int = 0, ranks: int = 1, tag: int = 0) -> tuple[list[bytes], bool]:
        """What the handler writes for a message, and whether it dropped the rest of it."""
        output = ctypes.create_string_buffer(1 << 16)
        outputs = []
        todo = [
            ("header", 0, b""),
            *(("payload", n, p) for n, p in enumerate(packets)),
            ("completion", max(0, len(packets) - 1), b""),
        ]
        for name, number, payload in todo:
            if not hasattr(self.library, name):
                continue
            info = (ctypes.c_uint32 * 6)(len(payload), number, len(packets), source, ranks, tag)
            held = ctypes.create_string_buffer(payload, len(payload) + 1)  # as long as the function runs
            self.library.native_begin(info, held, output)
            verdict = getattr(self.library, name)()
            written = output.raw[: self.library.native_written()]
            if written:
                outputs.append(written)
            if verdict == 1:
                return outputs, True
        return outputs, False
