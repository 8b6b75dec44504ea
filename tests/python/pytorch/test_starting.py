"""How groups are made: launchers, stores, several groups, again after the end."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from .support import PROGRAMS, SECONDS, environment, interpreter, launched, right, unisono_run


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def test_by_our_launcher() -> None:
    right(unisono_run(3, "groups.py"), 3)


def test_by_our_launcher_over_hosts() -> None:
    right(launched(["-m", "unisono", "run", "--hosts", "a:2,b:2", "--agent", "local"], "groups.py"), 4)


def test_by_torchrun() -> None:
    right(launched(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], "groups.py"), 2)


def test_by_torchrun_on_two_hosts() -> None:
    """One torchrun each; what Unisono takes for a host is a name here."""
    port = free_port()
    nodes = []
    for node, name in enumerate("ab"):
        words = ["--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
        nodes.append(subprocess.Popen(
            [interpreter(), "-m", "torch.distributed.run", *words, "--master-port", port,
             PROGRAMS / "groups.py"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(UNISONO_HOST=name),
        ))  # fmt: skip
    for one in nodes:
        out, _ = one.communicate(timeout=SECONDS)
        assert one.returncode == 0, out[-4000:]
        assert out.count("right") == 2, out[-4000:]


def test_by_mpirun() -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun: `make peers` installs Open MPI")
    done = subprocess.run(
        ["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root", interpreter(), PROGRAMS / "groups.py"],
        capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False,
    )  # fmt: skip
    right(done, 2)


@pytest.mark.parametrize("way", ["env", "tcp", "file"])
def test_by_hand(way: str, tmp_path: Path) -> None:
    port = free_port()
    methods = {"env": "env://", "tcp": f"tcp://127.0.0.1:{port}", "file": f"file://{tmp_path / 'store'}"}
    ranks = []
    for rank in range(2):
        more = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(subprocess.Popen(
            [interpreter(), PROGRAMS / "by_hand.py", methods[way], str(rank)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(**more if way == "env" else {}),
        ))  # fmt: skip
    for one in ranks:
        out, _ = one.communicate(timeout=SECONDS)
        assert one.returncode == 0, out
        assert "right" in out


def test_without_a_launcher_torch_says_what_it_needs() -> None:
    done = launched([], "groups.py")
    assert done.returncode != 0
    assert "environment variable RANK expected, but not set" in done.stderr


def test_a_release_with_another_interface_is_told_of_at_import() -> None:
    code = (
        "import torch.distributed as dist\n"
        "del dist.ProcessGroup.all_gather_single\n"
        "import unisono.torch\n"
    )  # fmt: skip
    done = subprocess.run([interpreter(), "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode != 0
    assert "lacks what unisono.torch needs of it: ProcessGroup.all_gather_single" in done.stderr


def test_without_torch_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport unisono.torch\n"
    done = subprocess.run([interpreter(), "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode != 0
    assert "unisono.torch needs torch" in done.stderr
    assert "pip install torch==" in done.stderr
