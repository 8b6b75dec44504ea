"""Jobs that something else than `unisono run` starts: mpiexec, mpirun, scripts, functions of a caller."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 120
LAUNCHERS = {
    "mpich": ["mpiexec.mpich"],
    "mpich-pmi2": ["mpiexec.mpich", "-genv", "UNISONO_START", "pmi2"],
    "mpich-port": ["mpiexec.mpich", "-pmi-port"],
    "srun-pmi": ["srun", "--mpi=pmi2", "--overcommit", "--quiet"],
    "srun-pmi2": ["env", "UNISONO_START=pmi2", "srun", "--mpi=pmi2", "--overcommit", "--quiet"],
    "srun-pmix": ["srun", "--mpi=pmix", "--overcommit", "--quiet"],
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
}
PROGRAM = """
import os, sys
import numpy as np
import unisono

rank = next(int(os.environ[name]) for name in ("PMIX_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID", "UNISONO_RANK")
            if name in os.environ)
hosts, turns = int(sys.argv[1]), int(sys.argv[2])
if hosts:
    os.environ["UNISONO_HOST"] = f"host{rank % hosts}"
for turn in range(turns):
    with unisono.init() as context:
        comm = context.world
        assert comm.rank == rank
        mine = np.arange(5000, dtype=np.int64) * (rank + 1) + turn
        total = np.empty_like(mine)
        comm.allreduce(mine, total, "sum")
        expected = np.arange(5000) * (comm.size * (comm.size + 1) // 2) + turn * comm.size
        np.testing.assert_array_equal(total, expected)
        gathered = np.empty(comm.size * 7, np.int64)
        comm.allgather(np.arange(7) + 100 * rank, gathered)
        np.testing.assert_array_equal(gathered.reshape(comm.size, 7),
                                      np.arange(7) + 100 * np.arange(comm.size)[:, None])
        print(f"turn {turn}: rank {rank} of {comm.size}\\n", end="", flush=True)
"""
ENDING = """
import os, sys, time
import unisono

rank = next(int(os.environ[name]) for name in ("PMIX_RANK", "PMI_RANK", "PMI_ID") if name in os.environ)
if sys.argv[1] == "late" and rank in (1, 3):
    time.sleep(6)
if sys.argv[1] == "unable":
    os.environ["UNISONO_HOST"] = f"host{rank}"
    if rank == 2:
        os.environ["UNISONO_INTERFACES"] = "nosuch0"
try:
    unisono.init()
except unisono.UnisonoError as error:
    print(f"rank {rank}: {error}\\n", end="", flush=True)
    time.sleep(2)  # so that the launcher lets the others say theirs
"""


def clean() -> dict[str, str]:
    """The environment without jobs and launchers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PMI_", "PMIX_", "OMPI_", "SLURM_", "MPI_LOCAL", "UNISONO_", "TORCHELASTIC_"))
        or name == "SLURM_CONF"
    }
    return kept | {"UNISONO_KERNEL_COPY": "off", "PYTHONPATH": str(ROOT / "python")}


def launcher(name: str, ranks: int) -> list[str]:
    words = LAUNCHERS[name]
    program = next(word for word in words if word != "env" and "=" not in word)
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed" + ("" if program == "srun" else " (make peers)"))
    return [*words, "-n", str(ranks)]


def python(tmp_path: Path, text: str, *arguments: object) -> list[str]:
    script = tmp_path / "program.py"
    script.write_text(text)
    return [sys.executable, str(script), *map(str, arguments)]


def run(command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=clean() | environment)


def together(
    commands: Sequence[Sequence[str]], environments: Sequence[dict[str, str]], cwd: Path | None = None
) -> list[tuple[int, str, str]]:
    """A process for each rank: exit status, output, errors."""
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean() | own, cwd=cwd)
        for command, own in zip(commands, environments, strict=True)
    ]
    try:
        said = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(process.returncode, *texts) for process, texts in zip(started, said, strict=True)]


@pytest.mark.parametrize(("hosts", "turns"), [(0, 1), (4, 1), (2, 2)], ids=["one host", "four hosts", "twice"])
@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_start_a_job(name: str, hosts: int, turns: int, tmp_path: Path) -> None:
    done = run([*launcher(name, 4), *python(tmp_path, PROGRAM, hosts, turns)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [
        f"turn {turn}: rank {r} of 4" for turn in range(turns) for r in range(4)
    ]
    assert done.stderr == ""


@pytest.mark.parametrize("name", LAUNCHERS)
def test_late_ranks_are_listed(name: str, tmp_path: Path) -> None:
    done = run([*launcher(name, 4), *python(tmp_path, ENDING, "late")], UNISONO_JOIN_TIMEOUT_S="2.5")
    heard = [line for line in done.stdout.split("\n") if line.startswith("rank 0: ")]
    assert len(heard) == 1, done.stdout + done.stderr
    assert "of 4 ranks" in heard[0]
    assert "within 2.5 s" in heard[0]
    if name in ("openmpi", "srun-pmix"):
        host = os.uname().nodename
        assert f"ranks 1 and 3 on {host} have not come" in heard[0]
    else:
        assert "these have not come, or have gone again: 1, 3" in heard[0]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_all_hear_why_one_cannot_join(name: str, tmp_path: Path) -> None:
    done = run([*launcher(name, 4), *python(tmp_path, ENDING, "unable")])
    heard = sorted(line for line in done.stdout.split("\n") if line.startswith("rank "))
    assert len(heard) == 4, done.stdout + done.stderr
    for line in heard:
        assert '"nosuch0" among the interfaces' in line
        assert line.startswith("rank 2") or "rank 2 (pid " in line


def test_a_child_of_a_rank_is_no_rank(tmp_path: Path) -> None:
    child = (
        "import subprocess, sys, unisono\n"
        "code = 'import unisono; unisono.init()'\n"
        "done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "assert done.returncode != 0 and 'UNISONO_START=none' in done.stderr, done.stderr\n"
        "done = subprocess.run(['env', 'UNISONO_START=none', sys.executable, '-c', code])\n"
        "assert done.returncode == 0\n"
        "unisono.init().world.barrier()\n"
        "sys.stdout.write('joined\\n')\n"  # in one piece: mpiexec mixes what ranks write
    )
    done = run([*launcher("mpich", 2), *python(tmp_path, child)])
    assert (done.returncode, done.stdout) == (0, "joined\n" * 2), done.stderr


def with_mpi(name: str, tmp_path: Path, text: str) -> str:
    """A program of Unisono and this MPI, compiled."""
    compiler = shutil.which(f"mpicc.{name}")
    if compiler is None:
        pytest.skip(f"mpicc.{name} is not installed (make peers)")
    source, program, build = tmp_path / "with_mpi.c", tmp_path / "with_mpi", library().parent
    source.write_text(text)
    subprocess.run(
        [compiler, f"-I{ROOT}/driver/include", str(source), "-o", str(program), f"-L{build}", "-lunisono",
         f"-Wl,-rpath,{build}"],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    return str(program)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
@pytest.mark.parametrize("order", ["unisono first", "MPI first"])
def test_mpi_in_the_same_process(name: str, order: str, tmp_path: Path) -> None:
    words = launcher(name, 2)
    steps = ["MPI_Init(&n, &w);", "joined = unisono_init(NULL, &context);"]
    first, second = steps if order == "MPI first" else reversed(steps)
    program = with_mpi(
        name,
        tmp_path,
        "#include <mpi.h>\n#include <stdio.h>\n#include <unisono/unisono.h>\n"
        "int main(int n, char** w) {\n"
        "  unisono_context* context;\n  unisono_communicator* world;\n  uint32_t rank;\n"
        "  int joined, its, mine, sum;\n"
        f"  {first}\n  {second}\n"
        '  if (joined != 0) return fprintf(stderr, "%s\\n", unisono_last_error());\n'
        "  unisono_world(context, &world);\n  unisono_communicator_rank(world, &rank);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &its);\n  mine = its + 1;\n"
        "  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);\n"
        '  printf("%d %d\\n", its == (int)rank, sum);\n'
        "  unisono_finalize(context);\n  MPI_Finalize();\n  return 0;\n}\n",
    )
    done = run([*words, program])
    assert (done.returncode, done.stdout) == (0, "1 3\n" * 2), done.stderr


def listing(name: str) -> str:
    """A program of the page."""
    page = (ROOT / "docs" / "starting.md").read_text()
    found = re.search(rf'^```\w+ title="{name}"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert found, f"starting.md has no {name}"
    return found[1]


def test_the_script_of_the_page(tmp_path: Path) -> None:
    script = tmp_path / "by-file"
    script.write_text(listing("by-file"))
    done = run(["sh", str(script), "3", *python(tmp_path, PROGRAM, 0, 1)], HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [f"turn 0: rank {rank} of 3" for rank in range(3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by-file", "program.py"]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_the_program_of_the_page(name: str, tmp_path: Path) -> None:
    words = launcher(name, 4)
    program = with_mpi(name, tmp_path, listing("join.c"))
    done = run([*words, program])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [f"rank {rank} of 2 has joined" for rank in (0, 0, 1, 1)]


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_file_and_a_script(hosts: int, tmp_path: Path) -> None:
    place = tmp_path / "job"
    command = python(tmp_path, PROGRAM, hosts, 2)
    ranks = [{"UNISONO_JOIN": f"file://{place}", "UNISONO_RANK": str(r), "UNISONO_SIZE": "4"} for r in range(4)]
    for status, _, errors in together([command] * 4, ranks):
        assert status == 0, errors
    assert not place.exists()


def test_the_variables_of_srun(tmp_path: Path) -> None:
    """SLURM is not here: what it would set, without it."""
    command = python(tmp_path, PROGRAM, 0, 1)
    step = {"UNISONO_START": "slurm", "SLURM_NTASKS": "3", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}
    ranks = [step | {"SLURM_PROCID": str(r), "SLURM_LOCALID": str(r)} for r in range(3)]
    for status, _, errors in together([command] * 3, ranks, tmp_path):
        assert status == 0, errors
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    place = tmp_path / "job"
    command = python(tmp_path, "import unisono\nunisono.init()\n")
    environment = {"UNISONO_JOIN": f"file://{place}", "UNISONO_RANK": "0", "UNISONO_SIZE": "2"}
    with subprocess.Popen(command, env=clean() | environment | {"UNISONO_JOIN_TIMEOUT_S": "30"}) as root:
        while not place.exists():
            assert root.poll() is None
            time.sleep(0.01)
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        place.chmod(0o644)
        done = run(command, **environment | {"UNISONO_RANK": "1"})
        assert "can be read by others" in done.stderr
        root.kill()


# ---------------------------------------------------------------------------------------------- functions of a caller


def library() -> Path:
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    assert libraries, "no build/*/libunisono.so; run `make build` first"
    return libraries[-1]


@pytest.fixture(scope="module")
def by_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("join") / "join_by_files"
    build = library().parent
    subprocess.run(
        ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/driver/include",
         str(Path(__file__).with_name("join_by_files.c")), "-o", str(program), f"-L{build}", "-lunisono",
         f"-Wl,-rpath,{build}"],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    return str(program)


@pytest.mark.parametrize("hosts", [1, 3])
@pytest.mark.parametrize("way", ["gather", "store"])
def test_functions_in_c(by_files: str, way: str, hosts: int, tmp_path: Path) -> None:
    commands = [[by_files, str(tmp_path), str(rank), "3", way] for rank in range(3)]
    # What describes another job does not count.
    environment = {"UNISONO_RANK": "7", "PMI_FD": "nonsense"}
    done = together(commands, [environment | {"UNISONO_HOST": f"host{rank % hosts}"} for rank in range(3)])
    assert done == [(0, "33 300\n", "")] * 3


@pytest.mark.parametrize("way", ["gather", "store"])
def test_failures_of_functions(by_files: str, way: str, tmp_path: Path) -> None:
    done = run([by_files, str(tmp_path), "1", "3", way], SECONDS="0.2")
    expected = {
        "gather": "the caller's all_gather has failed: it returned 4",
        "store": "ranks 0 and 2 have not come within 0.2 s",
    }
    assert expected[way] in done.stderr
    assert "rank 1 could not join the caller's job of 3 ranks" in done.stderr
    done = run([by_files, str(tmp_path / "nowhere"), "0", "3", "store"])
    assert "the caller's put has failed: it returned 7" in done.stderr
    done = run([by_files, str(tmp_path), "0", "3", "neither"])
    assert "either all_gather is to be given, or put and get together" in done.stderr
    for rank, size, told in (("3", "3", "rank is 3 of 3"), ("0", "0", "size is 0"), ("0", "2049", "size is 2049")):
        assert told in run([by_files, str(tmp_path), rank, size, way]).stderr


def test_all_hear_of_a_rank_that_cannot(by_files: str, tmp_path: Path) -> None:
    commands = [[by_files, str(tmp_path), str(rank), "3", "gather"] for rank in range(3)]
    environments = [{"UNISONO_HOST": f"host{rank}"} for rank in range(3)]
    environments[1]["UNISONO_INTERFACES"] = "nosuch0"
    for rank, (status, _, errors) in enumerate(together(commands, environments)):
        assert status == 1
        assert "nosuch0" in errors
        assert rank == 1 or "rank 1 (pid " in errors


def test_functions_in_python(tmp_path: Path) -> None:
    """By ctypes, over pipes: what an application with a channel of its own would do."""

    class Functions(ctypes.Structure):
        gather = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_double
        )
        _fields_ = [
            ("struct_size", ctypes.c_size_t), ("rank", ctypes.c_uint32), ("size", ctypes.c_uint32),
            ("user", ctypes.c_void_p), ("all_gather", gather), ("put", ctypes.c_void_p), ("get", ctypes.c_void_p),
            ("timeout_seconds", ctypes.c_double),
        ]  # fmt: skip

    size = 3
    pipes = [[os.pipe() for _ in range(size)] for _ in range(size)]  # from, to
    children = []
    for rank in range(size):
        if child := os.fork():
            children.append(child)
            continue
        status = 1
        try:
            unisono = ctypes.CDLL(str(library()))

            def all_gather(_user: int, own: int, count: int, everything: int, _seconds: float, rank: int = rank) -> int:
                mine = ctypes.string_at(own, count)
                for peer in range(size):
                    os.write(pipes[rank][peer][1], mine)
                for peer in range(size):
                    theirs = b""
                    while len(theirs) < count:
                        theirs += os.read(pipes[peer][rank][0], count - len(theirs))
                    ctypes.memmove(everything + peer * count, theirs, count)
                return 0

            functions = Functions(rank=rank, size=size, all_gather=Functions.gather(all_gather), timeout_seconds=30)
            functions.struct_size = ctypes.sizeof(functions)
            context, world, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
            assert unisono.unisono_join(ctypes.byref(functions), None, ctypes.byref(context)) == 0
            assert unisono.unisono_world(context, ctypes.byref(world)) == 0
            assert unisono.unisono_communicator_size(world, ctypes.byref(found)) == 0
            assert found.value == size
            assert unisono.unisono_communicator_rank(world, ctypes.byref(found)) == 0
            assert found.value == rank
            assert unisono.unisono_finalize(context) == 0
            status = 0
        finally:
            os._exit(status)
    for pair in (pair for row in pipes for pair in row):
        os.close(pair[0])
        os.close(pair[1])
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * size


# ------------------------------------------------------------------------------------- functions that know no deadline


def shared_object(tmp_path: Path, name: str, text: str) -> Path:
    source, made = tmp_path / "stands_in.c", tmp_path / name
    source.write_text("#include <unistd.h>\n" + text)
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(made)], check=True, timeout=SECONDS)
    return made


INIT = "import unisono\nunisono.init()\n"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_name_service_that_hangs(rank: int, tmp_path: Path) -> None:
    """Addresses are not asked for, names end at the deadline of the job's start."""
    hangs = shared_object(
        tmp_path,
        "hangs.so",
        "#include <netdb.h>\n#include <stddef.h>\n"
        "int getaddrinfo(const char* n, const char* s, const struct addrinfo* h, struct addrinfo** r) {\n"
        "  (void)n; (void)s; *r = NULL;\n"
        "  if (!(h->ai_flags & AI_NUMERICHOST)) sleep(60);\n  return EAI_NONAME;\n}\n",
    )
    begin = time.monotonic()
    done = run(
        python(tmp_path, INIT),
        LD_PRELOAD=str(hangs),
        UNISONO_JOIN="tcp://node7.invalid:4711",
        UNISONO_RANK=str(rank),
        UNISONO_SIZE="2",
        UNISONO_SECRET="0123456789abcdef",
        UNISONO_JOIN_TIMEOUT_S="1",
    )
    assert time.monotonic() - begin < 20
    assert "the host of node7.invalid:4711 has was not known in time" in done.stderr
    assert "(getaddrinfo) does not answer" in done.stderr
    assert done.returncode == 1


def a_free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_rank_0_that_does_not_come_to_a_named_host(tmp_path: Path) -> None:
    """Each attempt looks the name up; that the time ends during the last one says nothing of the name service."""
    done = run(
        python(tmp_path, INIT),
        UNISONO_JOIN=f"tcp://localhost:{a_free_port()}",
        UNISONO_RANK="1",
        UNISONO_SIZE="2",
        UNISONO_SECRET="0123456789abcdef",
        UNISONO_JOIN_TIMEOUT_S="1",
    )
    assert "nobody had the rendezvous open for 1 s: rank 0 has not come" in done.stderr, done.stderr
    assert "(Connection refused)" in done.stderr
    assert "name service" not in done.stderr


def test_ranks_of_different_networks_are_told_so(tmp_path: Path) -> None:
    common = {"UNISONO_JOIN": f"tcp://127.0.0.1:{a_free_port()}", "UNISONO_SIZE": "2",
              "UNISONO_SECRET": "0123456789abcdef", "UNISONO_JOIN_TIMEOUT_S": "10"}  # fmt: skip
    environments = [
        common | {"UNISONO_RANK": str(rank), "UNISONO_HOST": f"host{rank}", "UNISONO_TRANSPORT": transport}
        for rank, transport in enumerate(["udp", "tcp"])
    ]
    for _, _, errors in together([python(tmp_path, INIT)] * 2, environments):
        assert "endpoint 0 on host0 is reached by several networks, this endpoint by tcp alone" in errors, errors
        assert "set UNISONO_TRANSPORT alike on all ranks" in errors


def test_a_launcher_that_hangs(tmp_path: Path) -> None:
    functions = "PMIx_Finalize PMIx_Put PMIx_Commit PMIx_Fence_nb PMIx_Get_nb PMIx_Error_string"
    shared_object(
        tmp_path,
        "libpmix.so.2",
        "int PMIx_Init(void) { sleep(60); return -1; }\n"
        + "".join(f"int {name}(void) {{ return -1; }}\n" for name in functions.split()),
    )
    twice = (
        "import unisono\nfor i in range(2):\n    try:\n        unisono.init()\n    except unisono.UnisonoError as e:\n"
    )
    begin = time.monotonic()
    done = run(
        python(tmp_path, twice + "        print(e)\n"),
        LD_LIBRARY_PATH=str(tmp_path),
        PMIX_RANK="0",
        PMIX_NAMESPACE="job",
        UNISONO_JOIN_TIMEOUT_S="1",
    )
    assert time.monotonic() - begin < 20
    assert (done.returncode, done.stdout.count("has not answered through PMIx (PMIx_Init) in time\n")) == (0, 2), done
