"""What Vitis reads: kernel.xml, and a script for Vivado that packages the wrapper as a kernel. Untested with either."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tools.ip.design import Design
from tools.ip.interfaces import Interface

#: Of arguments, which XRT never writes: the engine is managed by its registers. The register map leaves it free.
FIRST_ARGUMENT = 0x80


def kernel(design: Design, interfaces: Sequence[Interface], registers: int, version: str) -> str:
    """The text of kernel.xml. `registers`: bytes of the registers' address space."""
    root = ElementTree.Element("root", versionMajor="1", versionMinor="6")
    parts = {"name": design.top, "language": "ip_c", "vlnv": f"unisono:cclo:{design.top}:{version}"}
    parts |= {"attributes": "", "preferredWorkGroupSizeMultiple": "0", "workGroupSize": "1", "interrupt": "true"}
    element = ElementTree.SubElement(root, "kernel", parts | {"hwControlProtocol": "user_managed"})
    ports, arguments = ElementTree.SubElement(element, "ports"), ElementTree.SubElement(element, "args")
    number = 0
    for one in interfaces:
        if one.kind == "axi4lite":
            shape = {"range": hex(registers), "dataWidth": "32", "portType": "addressable", "base": "0x0"}
            ElementTree.SubElement(ports, "port", {"name": one.name, "mode": "slave"} | shape)
        elif one.kind == "axi4":
            shape = {"range": "0xFFFFFFFFFFFFFFFF", "dataWidth": str(one.width("RDATA"))}
            shape |= {"portType": "addressable", "base": "0x0"}
            ElementTree.SubElement(ports, "port", {"name": one.name, "mode": "master"} | shape)
            argument = {"name": one.name.removeprefix("m_axi_"), "addressQualifier": "1", "id": str(number)}
            argument |= {"port": one.name, "size": "0x8", "offset": hex(FIRST_ARGUMENT + 8 * number)}
            ElementTree.SubElement(
                arguments, "arg", argument | {"hostOffset": "0x0", "hostSize": "0x8", "type": "void*"}
            )
            number += 1
        elif one.kind == "axis":
            way = "write_only" if one.mode == "master" else "read_only"
            shape = {"dataWidth": str(one.width("TDATA")), "portType": "stream"}
            ElementTree.SubElement(ports, "port", {"name": one.name, "mode": way} | shape)
            argument = {"name": one.name, "addressQualifier": "4", "id": str(number), "port": one.name}
            argument |= {"size": hex(one.width("TDATA") // 8), "offset": "0x0", "hostOffset": "0x0"}
            sides = [str(one.width(side)) if side in one.ports else "0" for side in ("TUSER", "TDEST")]
            kind = f"stream<ap_axiu<{one.width('TDATA')},{sides[0]},0,{sides[1]}>>"
            ElementTree.SubElement(arguments, "arg", argument | {"hostSize": "0x0", "type": kind})
            number += 1
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def script(design: Design, interfaces: Sequence[Interface], version: str) -> str:
    """A script for Vivado in batch mode, to be run in the archive's folder."""
    clock = next(one.name for one in interfaces if one.kind == "clock")
    buses = [one.name for one in interfaces if one.kind in ("axi4", "axi4lite", "axis")]
    files = "\n".join(f"    {path}" for path in design.files)
    return f"""\
# Packages {design.top} as a kernel of Vitis: unisono_vitis.xo.
#   vivado -mode batch -source vitis/package.tcl -tclargs PART
# Run it in the archive's folder. Untested: no version of Vivado has run it yet.
set part [lindex $argv 0]
if {{$part eq ""}} {{
    error "say the part: vivado -mode batch -source vitis/package.tcl -tclargs xcu280-fsvh2892-2L-e"
}}
set work build-vitis
set sources {{
{files}
}}
set buses {{{" ".join(buses)}}}

create_project -force unisono $work -part $part
add_files -norecurse $sources
set_property top {design.top} [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $work/ip -vendor unisono -library cclo -taxonomy /KernelIP -import_files
set core [ipx::current_core]
set_property version {version} $core
foreach bus $buses {{
    ipx::associate_bus_interfaces -busif $bus -clock {clock} $core
}}
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property vitis_drc {{ctrl_protocol user_managed}} $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel $core
ipx::save_core $core
close_project

package_xo -force -xo_path unisono_vitis.xo -kernel_name {design.top} -ip_directory $work/ip \\
    -kernel_xml vitis/kernel.xml -ctrl_protocol user_managed
"""
