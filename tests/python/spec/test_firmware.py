"""The collectives build for the microcontroller, and what would not run there is refused."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console
from spec_support import ROOT


def _load() -> ModuleType:
    found = importlib.util.spec_from_file_location("unisono_firmware_build", ROOT / "firmware/build.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


firmware = _load()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Every collective, compiled and linked."""
    return firmware.build(tmp_path_factory.mktemp("firmware"), 2)


def test_every_source_compiles_and_the_table_links(built: Any) -> None:
    units, image = built
    assert [unit.source for unit in units] == firmware.sources()
    assert all(unit.code > 0 for unit in units)
    header = image.path.read_bytes()[:20]
    assert header[:5] == b"\x7fELF\x01", "32 bits"
    assert int.from_bytes(header[18:20], "little") == 243, "RISC-V"
    assert 0 < image.code <= sum(unit.code for unit in units) + 8192, "libgcc adds its arithmetic only"


def test_the_image_fits_the_memory_of_the_microcontroller(tmp_path: Path) -> None:
    image = firmware.build_image(tmp_path, 2)
    assert 0 < image.code + image.constants + image.memory <= image.total <= 128 * 1024


def test_the_report_names_every_source_and_adds_up(built: Any) -> None:
    units, image = built
    console = Console(width=120, record=True, file=io.StringIO())
    firmware.report(units, image, console)
    text = console.export_text()
    for unit in units:
        assert unit.source.stem in text
        assert unit.collective in text
    assert str(sum(unit.code for unit in units)) in text
    assert str(image.code) in text


REFUSED = {
    "a library header": ("#include <vector>\nint f() { return 0; }", "includes <vector>|fatal error"),
    "an allowed name without the library": ("#include <string_view>\nint f() { return 0; }", "string_view"),
    "an exception": ("int f() { throw 1; }", "exception handling disabled"),
    "state": ("int counter = 3;\nint f() { return counter++; }", "keeps 4 bytes of state"),
    "a static constructor": ("int g();\nint x = g();\nint f() { return x; }", "static constructors"),
    "a warning": ("int f(long long x) { int y = x; return y; }", "Wconversion|conversion"),
    "no C++": ("int f( { }", "error"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_run_there_is_refused(name: str, tmp_path: Path) -> None:
    text, sentence = REFUSED[name]
    source = tmp_path / "bad.cpp"
    source.write_text(text, encoding="utf-8")
    with pytest.raises(firmware.BuildError, match=sentence) as caught:
        firmware.compile_unit(source, tmp_path, firmware.header_folders())
    assert "bad" in str(caught.value)


def test_an_unknown_function_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "bad.cpp"
    source.write_text("double g(double);\ndouble f(double x) { return g(x) * x; }\n", encoding="utf-8")
    unit = firmware.compile_unit(source, tmp_path, firmware.header_folders())
    monkeypatch.setattr(firmware, "ROOT", tmp_path)
    with pytest.raises(firmware.BuildError, match=r"bad\.cpp: needs (g\(double\)|__muldf3), which"):
        firmware.check_symbols([unit])


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    source = tmp_path / "lonely.cpp"
    source.write_text("int f(int x) { return x * x; }\n", encoding="utf-8")
    unit = firmware.compile_unit(source, tmp_path, firmware.header_folders())
    with pytest.raises(firmware.BuildError, match=r"no source under collectives/ defines .*algorithms"):
        firmware.link([unit], tmp_path)
