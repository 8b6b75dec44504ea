"""The description of an IP in IP-XACT (IEEE 1685-2014), for tools that take one."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tools.ip.design import Design
from tools.ip.interfaces import Interface
from tools.ip.registers import Register

SPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
BUSES = {
    "axi4": ("amba.com", "AMBA4", "AXI4", "r0p0_0"),
    "axi4lite": ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0"),
    "axis": ("amba.com", "AMBA4", "AXI4Stream", "r0p0_1"),
    "clock": ("xilinx.com", "signal", "clock", "1.0"),
    "reset": ("xilinx.com", "signal", "reset", "1.0"),
    "interrupt": ("xilinx.com", "signal", "interrupt", "1.0"),
}
ACCESS = {"rw": "read-write", "ro": "read-only", "wo": "write-only"}


def _below(parent: ElementTree.Element, name: str, text: str | None = None) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, f"{{{SPACE}}}{name}")
    child.text = text
    return child


def _bus(parent: ElementTree.Element, one: Interface) -> None:
    bus = _below(parent, "busInterface")
    _below(bus, "name", one.name)
    vendor, library, name, version = BUSES[one.kind]
    _below(bus, "busType").attrib.update(vendor=vendor, library=library, name=name, version=version)
    kind = _below(_below(bus, "abstractionTypes"), "abstractionType")
    _below(kind, "abstractionRef").attrib.update(vendor=vendor, library=library, name=f"{name}_rtl", version=version)
    maps = _below(kind, "portMaps")
    for signal, port in one.ports.items():
        joined = _below(maps, "portMap")
        _below(_below(joined, "logicalPort"), "name", signal)
        _below(_below(joined, "physicalPort"), "name", port.name)
    mode = _below(bus, one.mode)
    if one.kind == "axi4lite":
        _below(mode, "memoryMapRef").attrib.update(memoryMapRef="exchange")


def _registers(parent: ElementTree.Element, registers: Sequence[Register], size: int) -> None:
    memory = _below(parent, "memoryMap")
    _below(memory, "name", "exchange")
    block = _below(memory, "addressBlock")
    _below(block, "name", "registers")
    _below(block, "baseAddress", "0x0")
    _below(block, "range", hex(size))
    _below(block, "width", "32")
    for one in registers:
        register = _below(block, "register")
        _below(register, "name", one.name)
        _below(register, "description", one.doc)
        if one.bytes > 4:
            _below(register, "dim", str(one.bytes // 4))
        _below(register, "addressOffset", hex(one.offset))
        _below(register, "size", "32")
        _below(register, "access", ACCESS[one.access])
    _below(memory, "addressUnitBits", "8")


def component(
    design: Design, interfaces: Sequence[Interface], registers: Sequence[Register], size: int, version: str
) -> str:
    """The text of component.xml. `size`: bytes of the registers' address space."""
    ElementTree.register_namespace("ipxact", SPACE)
    root = ElementTree.Element(f"{{{SPACE}}}component")
    for name, text in (("vendor", "unisono"), ("library", "cclo"), ("name", design.top), ("version", version)):
        _below(root, name, text)
    buses = _below(root, "busInterfaces")
    for one in interfaces:
        _bus(buses, one)
    _registers(_below(root, "memoryMaps"), registers, size)
    model = _below(root, "model")
    view = _below(_below(model, "views"), "view")
    _below(view, "name", "rtl")
    _below(view, "componentInstantiationRef", "rtl")
    instance = _below(_below(model, "instantiations"), "componentInstantiation")
    _below(instance, "name", "rtl")
    _below(instance, "language", "systemVerilog")
    _below(instance, "moduleName", design.top)
    _below(_below(instance, "fileSetRef"), "localName", "sources")
    ports = _below(model, "ports")
    for port in design.ports:
        element = _below(ports, "port")
        _below(element, "name", port.name)
        wire = _below(element, "wire")
        _below(wire, "direction", port.direction)
        if port.width > 1:
            vector = _below(_below(wire, "vectors"), "vector")
            _below(vector, "left", str(port.width - 1))
            _below(vector, "right", "0")
    files = _below(_below(root, "fileSets"), "fileSet")
    _below(files, "name", "sources")
    for path in design.files:
        file = _below(files, "file")
        _below(file, "name", path)
        _below(file, "fileType", "systemVerilogSource" if path.endswith(".sv") else "verilogSource")
    _below(root, "description", "A collective engine for distributed applications; untested on hardware")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
