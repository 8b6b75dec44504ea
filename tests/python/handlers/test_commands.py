"""`unisono switch compile` and `try`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from unisono import handler
from unisono.cli import main

from .support import EXAMPLES, needs_clang


class Done:
    """What a command has come to, in this process: Python's start would take most of the time."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: object) -> None:
        self.returncode = main(["switch", *map(str, words)])
        self.stdout, self.stderr = capsys.readouterr()


@needs_clang
def test_compile_and_try(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary, message, written = tmp_path / "f.uh", tmp_path / "m", tmp_path / "w"
    done = Done(capsys, "compile", EXAMPLES / "histogram.c", "-o", binary)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{binary}: ")
    assert "executes at most: header " in done.stdout
    message.write_bytes(bytes(range(200)) * 20)
    done = Done(capsys, "try", binary, message, message, "-o", written, "--packet-bytes", 1000)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith(f"{message}: 4 packets; 1 written, 1024 bytes; ")
    assert re.search(r"; [1-9]\d* instructions, [\d.e+-]+ ms, [\d.e+-]+ MB/s$", done.stdout.splitlines()[0])
    assert written.read_bytes() == 2 * (200 * b"\x14\0\0\0" + 56 * b"\0\0\0\0")
    text = Done(capsys, "compile", binary, "--text")
    assert text.stdout == handler.load(binary).text
    assert "take_lanes.i8.v" in text.stdout
    assert "; histogram.c:" in text.stdout
    done = Done(capsys, "try", EXAMPLES / "histogram.c", message, "--budget", 200)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is stopped at packet 0: it has executed 200 instructions" in done.stderr


@needs_clang
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "h.c"
    source.write_text("int payload(void) {\n  return payload();\n}\nint other;\n}\n")
    done = Done(capsys, "compile", source, "-o", source)
    assert (done.returncode, done.stdout) == (2, "")
    assert "which is what is to be compiled" in done.stderr
    done = Done(capsys, "compile", source, "-o", tmp_path / "h.uh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{source}:5:1: ")
    assert not (tmp_path / "h.uh").exists()


def test_what_is_no_handler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.uh").write_bytes(b"UHDL" + bytes(60))
    for words, said in (
        (("compile", tmp_path / "h.uh", "--text"), "handler: version 0; this library reads version 1"),
        (("compile", tmp_path / "none.c", "-o", tmp_path / "x"), "none.c: there is no such file"),
        (("compile", tmp_path / "h.uh"), "compile makes no file without -o FILE.uh"),
        (("try", tmp_path / "none.uh", tmp_path / "h.uh"), "none.uh: No such file or directory"),
        (
            ("try", tmp_path / "h.uh", tmp_path / "h.uh", "--packet-bytes", "0"),
            "--packet-bytes is 0; allowed are 1 to 8192",
        ),
    ):
        done = Done(capsys, *words)
        assert done.returncode == 2
        assert said in done.stderr


def test_without_clang_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_CLANG", "no-such-clang")
    with pytest.raises(handler.HandlerError, match=r"there is no no-such-clang here.*make handlers"):
        handler.compile(EXAMPLES / "filter.c")
