"""docs/shmem.md: its programs print what it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .support import ROOT, build, hosts, run

PAGE = (ROOT / "docs" / "shmem.md").read_text()


def listing(opening: str) -> str:
    found = re.search(rf"^```{re.escape(opening)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, opening
    return found[1]


@pytest.mark.parametrize("on", [["-n", "4"], hosts("a:2,b:2")], ids=["one_host", "two_hosts"])
@pytest.mark.parametrize("name", ["ring.c", "ring.py"])
def test_the_programs_print_what_the_page_says(tmp_path: Path, name: str, on: list[str]) -> None:
    source = tmp_path / name
    source.write_text(listing(f'{"c" if name.endswith(".c") else "python"} title="{name}"'))
    program = build(tmp_path, source) if name.endswith(".c") else source
    done = run(program, on=on)
    assert (done.returncode, done.stdout, done.stderr) == (0, listing("text"), "")


def test_the_library_has_the_functions_of_the_header_and_no_others() -> None:
    include = ROOT / "doors" / "shmem" / "include"
    command = ["cc", "-std=c11", "-E", "-P", f"-I{include}", str(include / "shmem.h")]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    declared = set(re.findall(r"visibility\(\"default\"\)\)\) (?!extern)[^;(]*?\b(\w+)\(", text))
    others = dict(re.findall(r"__typeof__\((shmem_\w+)\) (\w+);", text))
    assert others == {name: f"p{name}" for name in declared if name.startswith("shmem_")}
    declared |= set(others.values())
    libraries = sorted((ROOT / "build").glob("*/libunisono_shmem.so"), key=os.path.getmtime)
    assert libraries, "no build/*/libunisono_shmem.so; run `make build` first"
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(libraries[-1])], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    exported = {line.split()[-1].partition("@")[0] for line in symbols.splitlines()} - {"UNISONO_SHMEM_1"}
    assert declared == exported
    assert {"shmem_ctx_ptrdiff_atomic_fetch_add", "shmem_uint64_xor_reduce", "shmem_short_sum_to_all"} <= declared
    assert len(declared) > 1500


def test_the_page_names_functions_that_there_are() -> None:
    declared = (ROOT / "doors" / "shmem" / "include" / "shmem.h").read_text()
    plain = set(re.findall(r"\b(shmem_\w+)\(", declared))
    for name in re.findall(r"`(shmem_(?:team|ctx|info|set|signal|my|n|pe|addr)_\w+)`", PAGE):
        assert name in plain, name
