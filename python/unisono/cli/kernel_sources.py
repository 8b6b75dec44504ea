"""`unisono kernel check`, `metadata` and `generate`: what sources of kernels say, before they are compiled."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import InvalidArgumentError
from ..kernels import checks, host, parsing, program, text_check
from ..kernels.dialect import KernelError
from ..kernels.hardware import NO_PLACE
from ..routing import topology
from .apart import apart
from .show import write


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the actions to `unisono kernel`."""
    check = actions.add_parser(
        "check", help="say by line what is wrong with channels, and what hardware has no place for"
    )
    add_sources(check)
    check.add_argument(
        "--one-program", action="store_true", help="the sources are one program, whose kernels all run at once"
    )
    check.set_defaults(execute=execute_check)
    metadata = actions.add_parser("metadata", help="describe a program: its ports, types, functions, degrees")
    add_sources(metadata)
    _add_shape(metadata)
    metadata.add_argument("--format", choices=("smi", "unisono"), default="smi",
                          help="as SMI's generator, or as Unisono's hardware is configured (smi)")  # fmt: skip
    metadata.add_argument("-o", dest="output", type=Path, help="the file; without it, standard output")
    metadata.set_defaults(execute=execute_metadata)
    generate = actions.add_parser("generate", help="descriptions of programs, and what their host includes")
    add_sources(generate)
    _add_shape(generate)
    generate.add_argument("--topology", type=Path, metavar="T.json", help="which program each rank runs")
    generate.add_argument("-o", dest="output", type=Path, required=True, metavar="DIR", help="folder for the files")
    generate.set_defaults(execute=execute_generate)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The sources, and what a compiler is told beside them."""
    parser.add_argument("sources", nargs="+", help="sources in the dialect (.cl), in C or in C++")
    parser.add_argument("-I", dest="folders", action="append", default=[], help="a folder of headers")
    parser.add_argument("-D", dest="macros", action="append", default=[], help="a macro, as NAME or NAME=VALUE")


def _add_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranks", type=int, default=8, help="for how many ranks hardware is built (8)")
    parser.add_argument("--reads", type=int, default=8, metavar="R",
                        help="messages that an arbiter takes of one input in a row (8)")  # fmt: skip
    parser.add_argument("--packet", type=int, default=32, choices=program.PACKETS, help="bytes of a packet (32)")
    parser.add_argument("--protocol", choices=program.PROTOCOLS, default="credits",
                        help="of channels between two ranks (credits)")  # fmt: skip


def _shape_of(arguments: argparse.Namespace) -> program.Shape:
    if not 1 <= arguments.ranks <= topology.MOST_RANKS:
        raise InvalidArgumentError(f"{arguments.ranks} ranks were asked for; there may be 1 to {topology.MOST_RANKS}")
    if not 1 <= arguments.reads <= 255:
        raise InvalidArgumentError(f"R is {arguments.reads}; it may be 1 to 255")
    return program.Shape(arguments.ranks, arguments.reads, arguments.packet, arguments.protocol)


def options_of(arguments: argparse.Namespace) -> parsing.Options:
    """What sources are read with."""
    return parsing.Options(tuple(arguments.folders), tuple(arguments.macros))


def execute_check(arguments: argparse.Namespace) -> int:
    """Prints what is found, a line each; the exit status is 1 if anything is."""
    if not parsing.available():
        return _by_text(arguments)
    return apart(lambda at: _check(arguments, at), "libclang")


def _check(arguments: argparse.Namespace, at: Callable[[str], None]) -> int:
    options, status = options_of(arguments), 0
    sources = []
    for path in arguments.sources:
        at(path)
        try:
            sources.append(parsing.parse(path, options))
        except OSError as error:
            print(f"unisono kernel: {path}: {error.strerror}", file=sys.stderr)
            return 1
        except KernelError as error:
            print(error)
            status = 1
    programs = [sources] if arguments.one_program else [[source] for source in sources]
    for together in programs:
        at(", ".join(source.path for source in together))
        for finding in checks.check(together):
            print(checks.as_line(finding))
            status = 1
    return status


def _by_text(arguments: argparse.Namespace) -> int:
    print("unisono kernel: libclang is not installed (pip install libclang, or unisono[kernels]): the sources are read "
          "as text, without macros and headers; types and ports of channels are not looked at",
          file=sys.stderr)  # fmt: skip
    status = 0
    for path in arguments.sources:
        try:
            lines = text_check.refused(Path(path).read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            print(f"unisono kernel: {path}: {error.strerror}", file=sys.stderr)
            return 1
        for line, what in lines:
            print(f"{path}:{line}: {what}{NO_PLACE}")
            status = 1
    return status


def _described(
    name: str, paths: list[str], arguments: argparse.Namespace, at: Callable[[str], None]
) -> program.Program:
    """The program of some sources. Raises InvalidArgumentError with all that is wrong in them, by line."""
    if not parsing.available():
        raise InvalidArgumentError(
            "libclang is not installed, by which sources are read; pip install libclang, or unisono[kernels]"
        )
    try:
        sources = []
        for path in paths:
            at(path)
            sources.append(parsing.parse(path, options_of(arguments)))
        return program.describe(name, sources)
    except OSError as error:
        raise InvalidArgumentError(f"{error.filename}: {error.strerror}") from error
    except KernelError as error:
        raise InvalidArgumentError(str(error)) from error


def _json(data: object) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


def execute_metadata(arguments: argparse.Namespace) -> int:
    """Describes the program that all sources make together; it is named as the first."""
    return apart(lambda at: _metadata(arguments, at), "libclang")


def _metadata(arguments: argparse.Namespace, at: Callable[[str], None]) -> int:
    shape = _shape_of(arguments)
    described = _described(Path(arguments.sources[0]).stem, arguments.sources, arguments, at)
    try:
        data = program.metadata(described, shape) if arguments.format == "smi" else program.configuration(
            described, shape)  # fmt: skip
    except KernelError as error:
        raise InvalidArgumentError(str(error)) from error
    if arguments.output is None:
        print(_json(data).decode(), end="")
    else:
        write(arguments.output, _json(data))
    return 0


def execute_generate(arguments: argparse.Namespace) -> int:
    """Writes what is generated; each source is a program, named as its file."""
    return apart(lambda at: _generate(arguments, at), "libclang")


def _generate(arguments: argparse.Namespace, at: Callable[[str], None]) -> int:
    shape = _shape_of(arguments)
    described = [_described(Path(path).stem, [path], arguments, at) for path in arguments.sources]
    names = [each.name for each in described]
    of_ranks: list[str] = []
    if arguments.topology is not None:
        network = topology.load(arguments.topology, None)
        if network.size > shape.ranks:
            raise InvalidArgumentError(f"{arguments.topology} has {network.size} ranks, and --ranks is {shape.ranks}")
        of_ranks = [_named(arguments.topology, node, name, names)
                    for node, name in zip(network.names, network.programs, strict=True)]  # fmt: skip
    elif len(names) > 1:
        raise InvalidArgumentError("there are several programs; --topology says which rank runs which")
    files: dict[str, bytes] = {}
    try:
        for each in described:
            files[f"{each.name}.json"] = _json(program.metadata(each, shape, beyond=True))
            files[f"{each.name}.endpoints.json"] = _json(program.configuration(each, shape))
    except KernelError as error:
        raise InvalidArgumentError(str(error)) from error
    files[host.HEADER] = host.header(names, of_ranks, shape.ranks).encode()
    files[host.SOURCE] = host.source().encode()
    files["report.txt"] = "\n".join(program.report(each, shape) for each in described).encode()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write(arguments.output / name, data)
    return 0


def _named(path: Path, node: str, name: str | None, names: list[str]) -> str:
    if name is None and len(names) == 1:
        return names[0]
    found = (name or "").removesuffix(".json")
    if found not in names:
        what = f"the program {name} of {node}" if name else f"no program for {node}"
        raise InvalidArgumentError(f"{path} says {what}; those given are {', '.join(names)}")
    return found
