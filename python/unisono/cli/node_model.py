"""The library with a simulated node of a given shape: one that is there, or one that is built and kept."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .cluster import PACKAGE, ROOT
from .node_shape import NodeShape

READY_MADE = (4, 16)  #: ports of the nodes that `make cables` builds; R = 8, packets of 32 bytes, no units
BUILD_SECONDS = 1800.0  #: after which a build is given up, ours or another's
_TOP = "unisono_smi_node"
#: Beside the shape. A child of a reduction may be several cables away, and fills the way there and back with packets.
_FIXED = {"VirtualChannels": 2, "MaxRanks": 32, "LinkDepth": 64, "EndpointDepth": 256, "ChildDepth": 128}
_OWN = ("kernel_node.cpp", "cabled_node.cpp", "shared_cables.cpp", "routes.cpp", "trees.cpp")
_PACKAGES = (
    "rtl/generated/unisono_spec_pkg.sv",
    "rtl/plugin/unisono_plugin_pkg.sv",
    "rtl/smi/unisono_smi_pkg.sv",
)
_FOLDERS = ("rtl/smi", "rtl/stream", "rtl/plugin")
_TOOLS = ("verilator", "make", "g++")


class NodeError(Exception):
    """There is no such node, and why."""


def is_ready_made(shape: NodeShape) -> bool:
    """Whether a node of `make cables` does for it; its collectives then go over channels."""
    return shape.reads == 8 and shape.packet == 32 and shape.ports <= max(READY_MADE)


def ready_made(ports: int) -> str:
    """The library of a node that `make cables` has built, in the build folder or beside the package."""
    name = f"libunisono_smi_node_{ports}.so"
    for candidate in (ROOT / "build" / "release" / "sim" / "cables" / name, PACKAGE / name, PACKAGE / "lib" / name):
        if candidate.is_file():
            return str(candidate)
    raise NodeError(
        f"the simulated node ({name}) is not built: `make cables` in a checkout builds it (it needs Verilator, and "
        "takes minutes); or say where it is with UNISONO_SMI_NODE"
    )


def lacking() -> str | None:
    """What a node cannot be built without; None if all is there."""
    if not (ROOT / "rtl" / "smi" / f"{_TOP}.sv").is_file():
        return "its sources, which a checkout of Unisono has"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return " and ".join(missing) if missing else None


def folder() -> Path:
    """Where nodes are kept: UNISONO_NODES, or build/nodes of the checkout that they are built from."""
    named = os.environ.get("UNISONO_NODES")
    return Path(named) if named else ROOT / "build" / "nodes"


def built(shape: NodeShape, say: Callable[[str], None]) -> str:
    """The library of a node of that shape, which is built if it is not kept yet; `say` is told of the wait.

    Several may ask at once, also several processes: one builds, the others wait. Raises NodeError.
    """
    kept = folder()
    library = kept / f"node-{_key(shape)}.so"
    if library.is_file():
        return str(library)
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with _alone(library.with_suffix(".lock")):
            if not library.is_file():
                say(
                    f"building the simulated node for this program ({shape}); that takes a minute or a few, once: "
                    f"it is kept in {kept}"
                )
                _build(shape, library)
    except OSError as error:
        raise NodeError(f"the simulated node cannot be kept in {kept}: {error.strerror}; UNISONO_NODES names another "
                        "folder") from None  # fmt: skip
    return str(library)


def _sources() -> list[Path]:
    """Modules that the node is made of, packages first."""
    packages = [ROOT / name for name in _PACKAGES]
    return packages + sorted(path for path in (ROOT / "rtl" / "smi").glob("*.sv") if path not in packages)


def _key(shape: NodeShape) -> str:
    """Changes with whatever changes the library."""
    digest = hashlib.sha256(json.dumps(shape.parameters() | _FIXED).encode())
    read = [path for name in _FOLDERS for path in (ROOT / name).glob("*.sv")]
    own = [ROOT / "sim" / "cables" / name for name in _OWN]
    read += [ROOT / _PACKAGES[0], ROOT / "kernels" / "smi_node.hpp", *own, *(path.with_suffix(".hpp") for path in own)]
    for path in sorted(read):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:20]


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    until = time.monotonic() + BUILD_SECONDS
    with lock.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise NodeError(f"another process has held {lock} for {BUILD_SECONDS:g} s; end it, or remove the "
                                    "file") from None  # fmt: skip
                time.sleep(0.2)
        yield


def _build(shape: NodeShape, library: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="unisono-node-") as made:
        parameters = shape.parameters() | {name: str(value) for name, value in _FIXED.items()}
        _run(["verilator", "--cc", "--build", "-j", "2", "-O3", "--assert", "--x-assign", "fast", "--x-initial", "fast",
              "-Wno-fatal", "--prefix", f"V{_TOP}", "--top-module", _TOP, "--Mdir", made,
              "-CFLAGS", "-fPIC -w -fvisibility=hidden", "-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0",
              *(f"-G{name}={value}" for name, value in parameters.items()),
              *(f"-I{ROOT / name}" for name in _FOLDERS), *map(str, _sources())])  # fmt: skip
        root = _run(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()
        include = f"{root}/include"
        known = {
            "PORTS": shape.ports,
            "PACKET": shape.packet,
            "COLLECTIVES": shape.broadcasts,
            "REDUCTIONS": shape.reductions,
            "DATATYPES": shape.datatypes,
            "FUNCS": shape.funcs,
        }
        unfinished = Path(made) / "node.so"
        _run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-w", "-fvisibility=hidden", f"-I{ROOT}", f"-I{made}",
              f"-isystem{include}", f"-isystem{include}/vltstd",
              *(f"-DUNISONO_SMI_{name}={value}ULL" for name, value in known.items()),
              *(str(ROOT / "sim" / "cables" / name) for name in _OWN), f"{made}/V{_TOP}__ALL.a",
              f"{include}/verilated.cpp", f"{include}/verilated_threads.cpp", "-o", str(unfinished),
              "-lpthread"])  # fmt: skip
        # Whole or not at all, also for who looks meanwhile.
        moved = library.with_suffix(f".{os.getpid()}")
        shutil.copy(unfinished, moved)
        moved.replace(library)


def _run(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NodeError(f"{words[0]} has not ended in {BUILD_SECONDS:g} s; the node is not built") from None
    except FileNotFoundError:
        raise NodeError(f"there is no {words[0]}, which the simulated node is built with; install it") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise NodeError(f"{words[0]} has failed on the simulated node:\n" + "\n".join(lines[-30:]))
    return done.stdout


def say(sentence: str) -> None:
    """To the user, before the job's own output."""
    print(f"unisono run: {sentence}", file=sys.stderr, flush=True)
