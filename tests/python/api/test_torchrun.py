"""Jobs that torchrun starts, and ranks that meet through a store. Torch itself is needed by the last tests alone."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import unisono
from unisono import _joining

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 120
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "SLURM_", "MPI_LOCAL", "UNISONO_", "TORCHELASTIC_", "MASTER_")
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TMPDIR")
SUMS = """
with context:
    comm = context.world
    total = comm.allreduce(np.arange(5000, dtype=np.int64) * (comm.rank + 1))
    np.testing.assert_array_equal(total, np.arange(5000) * (comm.size * (comm.size + 1) // 2))
    print(f"rank {comm.rank} of {comm.size}\\n", end="", flush=True)
"""
PROGRAM = f"""
import numpy as np
import unisono

for turn in range(2):
    context = unisono.init()
{SUMS.replace(chr(10), chr(10) + "    ")}
"""
STORES = '''
import os, sys, time
from pathlib import Path
import numpy as np
import unisono

class Folder:
    """A store: a file for each key. What it does not know, torch's stores do not promise."""
    def __init__(self, path):
        self.path = Path(path)
    def file(self, key):
        assert isinstance(key, str)
        return self.path / key.replace("/", "_")
    def set(self, key, value):
        assert isinstance(value, bytes)
        beside = self.path / f"{os.getpid()}.new"
        beside.write_bytes(value)
        beside.replace(self.file(key))
    def wait(self, keys, timeout):
        until = time.monotonic() + timeout.total_seconds()
        while not all(self.file(key).exists() for key in keys):
            if time.monotonic() > until:
                raise RuntimeError("wait timeout")
            time.sleep(0.001)
    def get(self, key):
        return self.file(key).read_bytes()
'''
BY_STORE = f"""{STORES}
for turn in range(2):
    context = unisono.init(store=Folder(sys.argv[1]))
{SUMS.replace(chr(10), chr(10) + "    ")}
"""


def clean() -> dict[str, str]:
    """The environment without jobs and launchers."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS) and k not in TORCHRUN}
    return kept | {"UNISONO_KERNEL_COPY": "off", "PYTHONPATH": str(ROOT / "python")}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def torchrun(rank: int, size: int, **others: str) -> dict[str, str]:
    """What torchrun sets."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "run",
        "TORCHELASTIC_RESTART_COUNT": "0",
    } | others


def together(
    tmp_path: Path, text: str, environments: Sequence[dict[str, str]], *arguments: object
) -> list[tuple[int, str, str]]:
    """A process for each rank: exit status, output, errors."""
    script = tmp_path / "program.py"
    script.write_text(text)
    command = [sys.executable, str(script), *map(str, arguments)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean() | own)
        for own in environments
    ]
    try:
        said = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(process.returncode, *texts) for process, texts in zip(started, said, strict=True)]


def joined(done: list[tuple[int, str, str]], turns: int = 2) -> None:
    for rank, (status, output, errors) in enumerate(done):
        assert (status, output) == (0, f"rank {rank} of {len(done)}\n" * turns), errors


def secret_file(tmp_path: Path) -> str:
    file = tmp_path / "job.secret"
    file.touch(mode=0o600)
    file.write_text("0123456789abcdef" * 4)
    return str(file)


# ----------------------------------------------------------------------------------------------------- without a store


def test_ranks_of_one_host_need_nothing(tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    joined(together(tmp_path, PROGRAM, [torchrun(rank, 3, TMPDIR=str(meet)) for rank in range(3)]))
    assert not list(meet.iterdir())


def test_a_secret_lets_several_hosts_meet(tmp_path: Path) -> None:
    said = {"UNISONO_SECRET_FILE": secret_file(tmp_path), "UNISONO_PORT": str(free_port()), "LOCAL_WORLD_SIZE": "2"}
    joined(together(tmp_path, PROGRAM, [torchrun(r, 4, UNISONO_HOST=f"host{r // 2}", **said) for r in range(4)]))


def test_several_hosts_without_a_secret_are_refused(tmp_path: Path) -> None:
    [(status, _, errors)] = together(tmp_path, PROGRAM, [torchrun(0, 4, LOCAL_WORLD_SIZE="2")])
    assert status != 0
    assert "meet at tcp://127.0.0.1:30500, for which they need a secret" in errors


def test_another_run_with_the_same_secret_is_not_let_in(tmp_path: Path) -> None:
    said = {
        "UNISONO_SECRET_FILE": secret_file(tmp_path),
        "UNISONO_PORT": str(free_port()),
        "UNISONO_JOIN_TIMEOUT_S": "2",
    }
    ranks = [torchrun(0, 2, **said), torchrun(1, 2, **said | {"TORCHELASTIC_RUN_ID": "another"})]
    done = together(tmp_path, PROGRAM, ranks)
    assert "rank 1 has not come" in done[0][2]
    assert "secret" in done[1][2]


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        said = {"UNISONO_SECRET_FILE": secret_file(tmp_path), "UNISONO_PORT": port}
        [(status, _, errors)] = together(tmp_path, PROGRAM, [torchrun(0, 2, **said)])
    assert status != 0
    assert f"port {port} of the rendezvous 127.0.0.1:{port} is in use on this host" in errors


# -------------------------------------------------------------------------------------------------------- with a store


@pytest.mark.parametrize("hosts", [1, 3])
def test_ranks_meet_through_a_store(hosts: int, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    # No secret is needed: it is in the store.
    ranks = [torchrun(r, 3, LOCAL_WORLD_SIZE="1", UNISONO_HOST=f"host{r % hosts}") for r in range(3)]
    joined(together(tmp_path, BY_STORE, ranks, store))


def test_restarted_ranks_do_not_read_what_those_before_have_left(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()

    def attempt(**said: str) -> list[tuple[int, str, str]]:
        return together(tmp_path, BY_STORE, [torchrun(rank, 2, **said) for rank in range(2)], store)

    for said in ({}, {"TORCHELASTIC_RESTART_COUNT": "1"}, {"TORCHELASTIC_RUN_ID": "another"}):
        before = {path.name: path.stat().st_mtime_ns for path in store.iterdir()}
        joined(attempt(**said))
        after = {path.name: path.stat().st_mtime_ns for path in store.iterdir()}
        assert before.items() <= after.items(), "what was in the store before was written again"
        assert after.keys() - before.keys(), said


def test_rank_and_size_can_be_said(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    text = BY_STORE.replace(
        "store=Folder(sys.argv[1])", 'store=Folder(sys.argv[1]), rank=int(os.environ["MY_RANK"]), size=2'
    )
    joined(together(tmp_path, text, [{"MY_RANK": str(rank)} for rank in range(2)], store))


def test_late_ranks_are_listed(tmp_path: Path) -> None:
    [(status, _, errors)] = together(tmp_path, BY_STORE, [torchrun(0, 3, UNISONO_JOIN_TIMEOUT_S="0.5")], tmp_path)
    assert status != 0
    assert "ranks 1 and 2 have not come within 0.5 s" in errors


@pytest.mark.parametrize("method", ["set", "wait", "get"])
def test_what_a_store_raises_is_the_cause(method: str, tmp_path: Path) -> None:
    text = f"""{STORES}
class Broken(Folder):
    def {method}(self, *arguments):
        raise ConnectionError("the store has gone")
try:
    unisono.init(store=Broken(sys.argv[1]))
except unisono.BootstrapError as error:
    assert isinstance(error.__cause__, ConnectionError), error
    print("told")
class Stopped(Folder):
    def {method}(self, *arguments):
        raise KeyboardInterrupt
try:
    unisono.init(store=Stopped(sys.argv[1]))
except KeyboardInterrupt:
    print("stopped")
"""
    [(status, output, errors)] = together(tmp_path, text, [torchrun(0, 2)], tmp_path)
    assert (status, output) == (0, "told\nstopped\n"), errors


class Nothing:
    def set(self, key: str, value: bytes) -> None:
        raise AssertionError

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        raise AssertionError

    def get(self, key: str) -> bytes:
        raise AssertionError


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in os.environ:
        if name.startswith(LAUNCHERS) or name in TORCHRUN:
            monkeypatch.delenv(name)
    return monkeypatch


def test_what_is_no_store_is_refused(no_launcher: pytest.MonkeyPatch) -> None:
    with pytest.raises(unisono.InvalidArgumentError, match="a dict, has no method set"):
        unisono.init(store={}, rank=0, size=1)  # type: ignore[arg-type]
    with pytest.raises(unisono.InvalidArgumentError, match="pass both, or neither"):
        unisono.init(store=Nothing(), rank=0)
    with pytest.raises(unisono.InvalidArgumentError, match="nothing says which rank this is"):
        unisono.init(store=Nothing())
    with pytest.raises(unisono.InvalidArgumentError, match="go with a store"):
        unisono.init(rank=0, size=1)
    for rank, size, told in ((-1, 2, "rank is -1"), (0, True, "size is True"), (2, 2, "2 of 2"), (0, 2049, "is 2049")):
        with pytest.raises(unisono.InvalidArgumentError, match=told):
            unisono.init(store=Nothing(), rank=rank, size=size)
    # Of a job of one rank nobody needs to know anything.
    with unisono.init(store=Nothing(), rank=0, size=1) as context:
        assert context.world.size == 1


def test_what_the_environment_says(no_launcher: pytest.MonkeyPatch) -> None:
    assert _joining.prefix() == "unisono/"
    no_launcher.setenv("RANK", "1")
    with pytest.raises(unisono.InvalidArgumentError, match="nothing says which rank this is"):
        _joining.place(None, None)
    no_launcher.setenv("WORLD_SIZE", "4")
    no_launcher.setenv("TORCHELASTIC_RUN_ID", "7")
    assert _joining.place(None, None) == (1, 4)
    assert _joining.place(0, 2) == (0, 2)
    assert _joining.prefix() == "unisono/7/0/"
    no_launcher.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    assert _joining.prefix() == "unisono/7/2/"
    no_launcher.setenv("UNISONO_RANK", "1")
    no_launcher.setenv("UNISONO_SIZE", "5")
    with pytest.raises(unisono.BootstrapError, match='UNISONO_SIZE is "5", but WORLD_SIZE is "4"'):
        _joining.place(None, None)
    no_launcher.setenv("RANK", "x")
    with pytest.raises(unisono.BootstrapError, match='RANK is "x"'):
        _joining.place(None, None)


# ---------------------------------------------------------------------------------------------------------- with torch

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
WAYS = {
    "nothing": "context = unisono.init()",
    "agent": """
from torch.distributed import TCPStore
context = unisono.init(store=TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False))
""",
    "rendezvous": """
from torch.distributed import rendezvous
store, rank, size = next(rendezvous("env://"))
context = unisono.init(store=store, rank=rank, size=size)
""",
    "halves": """
import torch.distributed as torch
rank = int(os.environ["RANK"])
store = torch.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
context = unisono.init(store=torch.PrefixStore(f"half {rank % 2}", store), rank=rank // 2, size=2)
""",
}


@needs_torch
@pytest.mark.parametrize("way", WAYS)
def test_torchrun_itself(way: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"import os\nimport numpy as np\nimport unisono\n{WAYS[way]}\n{SUMS}")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=clean(), check=False)
    assert done.returncode == 0, done.stderr
    size = 2 if way == "halves" else 4
    assert sorted(done.stdout.split("\n")[:-1]) == sorted(f"rank {r % size} of {size}" for r in range(4))


@needs_torch
@pytest.mark.parametrize("way", ["nothing", "agent"])
def test_torchrun_restarts_ranks(way: str, tmp_path: Path) -> None:
    """A rank fails after the job has formed; torchrun starts all of them again."""
    script = tmp_path / "program.py"
    fails = 'if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":\n    os._exit(1)\n'
    script.write_text(f"import os\nimport numpy as np\nimport unisono\n{WAYS[way]}\n{fails}{SUMS}")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "1", str(script)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=clean(), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank 0 of 2\n") == 1
    assert time.monotonic() - begin < SECONDS / 2
