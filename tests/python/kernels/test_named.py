"""Kernels called by name: one source, one library and one host on every engine, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from unisono.config import cflags, libs

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).with_name("named_kernels.cpp")

PROGRAM = """
import numpy as np
import unisono

with unisono.init(timeout={timeout}) as context:
    world = context.world
    rank, size = world.rank, world.size
    comm = world.dup(streams=True)
    n = 1003
    x = (np.arange(n) % 97 + 100 * rank).astype("f4")
    y = (np.arange(n) % 31 - rank).astype("f4")
    expected = y + np.float32(1.5) * x
    first = context.kernel("axpy")(1.5, x, y)
    # Another kernel, and a call, follow it.
    expected += np.float32(2) * x
    second = context.kernel("axpy")(2, x, y, wait_for=[first])
    total = np.zeros(n, "f4")
    summed = comm.allreduce_async(y, total, algorithm="reduce_bcast", wait_for=[second])
    summed.wait()
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(total, np.sum([
        (np.arange(n) % 31 - r).astype("f4") + np.float32(3.5) * (np.arange(n) % 97 + 100 * r).astype("f4")
        for r in range(size)], axis=0, dtype="f4"))
    # Words from rank to rank, in pairs.
    words = {words}
    if rank ^ 1 < size:
        values = (np.arange(16 * words) % 1009 + 5000 * (rank & ~1)).astype("f4")
        if rank & 1:
            got = np.zeros_like(values)
            context.kernel("recv_words")(got, words, rank ^ 1, comm).wait()
            np.testing.assert_array_equal(got, 2 * values + 1)
        else:
            context.kernel("send_words")(values, words, rank ^ 1, comm).wait()
    # Elements one by one, to one rank's memory.
    results = np.zeros(16 * {words}, "i4")
    context.kernel("squares")(results, 3, comm).wait()
    if rank == 0:
        ones = np.arange(1, 16 * {words} + 1, dtype="i4")
        np.testing.assert_array_equal(results, size * ones * ones + 1000 * sum(range(size)))
    world.barrier()
    print(f"rank {{rank}} is right\\n", end="")
"""

ERRORS = """
import numpy as np
import unisono

def refused(words, kind, action):
    try:
        action()
    except kind as error:
        for word in words:
            assert word in str(error), (word, str(error))
    else:
        raise SystemExit(f"nothing was refused: {{words}}")

with unisono.init(timeout={timeout}) as context:
    wrong = unisono.InvalidArgumentError
    x = np.zeros(10, "f4")
    refused(["no kernel saxpy", "axpy"], wrong, lambda: context.kernel("saxpy"))
    axpy = context.kernel("axpy")
    refused(["2 arguments", "it takes 3", "const float32*"], wrong, lambda: axpy(1.0, x))
    refused(["argument 0", "'two'", "float32"], wrong, lambda: axpy("two", x, x))
    refused(["argument 1", "float64", "const float32*"], wrong, lambda: axpy(1.0, np.zeros(10), x))
    refused(["argument 2", "not contiguous"], wrong, lambda: axpy(1.0, x, np.zeros(20, "f4")[::2]))
    refused(["argument 0", "300", "uint8"], wrong, lambda: context.kernel("fails")(300))
    refused(["argument 3", "communicator"], wrong, lambda: context.kernel("send_words")(x, 1, 0, 3))
    context.kernel("fails")(7).wait()
    failed = context.kernel("fails")(8)
    refused(["kernel fails (rank 0)", "it was given 8, and needs 7"], unisono.UnisonoError, failed.wait)
    returns = context.kernel("returns")
    returns(0).wait()
    refused(["kernel returns (rank 0)", "it returned 4: invalid_"], unisono.UnisonoError, returns(4).wait)
    refused(["it returned -3, which is no error's code"], unisono.UnisonoError, returns(-3).wait)
    late = context.kernel("stuck")(timeout={short})
    refused(["stream port 0 is used by kernel stuck"], unisono.UnisonoError, context.kernel("stuck")().wait)
    refused(["kernel stuck (rank 0)", "timed out", "stream port 0"], unisono.DeadlineError, late.wait)
    print("all are refused")
"""

simulated = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set (make test-rtl)"
)
PLATFORMS = [
    "native",
    "functional",
    pytest.param("rtl", marks=simulated),
    pytest.param("rtl --native 1", marks=simulated),
]


def unisono(*arguments: object) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    around["PYTHONPATH"] = str(ROOT / "python")
    command = [sys.executable, "-m", "unisono", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, env=around)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kernels") / "k.so"
    done = unisono("kernel", "build", SOURCE, "-o", made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_same_source_on_every_engine(library: Path, tmp_path: Path, platform: str) -> None:
    script = tmp_path / "host.py"
    # Native nodes take a word from their host, and give it one, in a microsecond.
    script.write_text(PROGRAM.format(timeout=30, words=30 if "--native" in platform else 300))
    ranks = 2 if "rtl" in platform else 4
    done = unisono("run", "-n", ranks, "--kernels", library, "--platform", *platform.split(), script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(ranks)]


@pytest.mark.parametrize("platform", PLATFORMS[:3])
def test_what_is_refused(library: Path, tmp_path: Path, platform: str) -> None:
    script = tmp_path / "host.py"
    script.write_text(ERRORS.format(timeout=30, short=0.0005 if platform == "rtl" else 0.5))
    done = unisono("run", "-n", 1, "--kernels", library, "--platform", platform, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all are refused\n"


def test_without_a_library(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text("import unisono\nwith unisono.init() as context:\n    context.kernel('axpy')\n")
    done = unisono("run", "-n", 1, script)
    assert "no library of kernels is loaded; start the program with `unisono run --kernels FILE.so`" in done.stderr
    assert "there is no file" in unisono("run", "-n", 1, "--kernels", tmp_path / "k.so", script).stderr


def test_what_is_no_library(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text("import unisono\nwith unisono.init() as context:\n    context.kernel('axpy')\n")
    done = unisono("run", "-n", 1, "--kernels", script, script)
    assert f"kernels: {script}: " in done.stderr


@simulated
def test_cycles_do_not_depend_on_the_host(library: Path, tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(PROGRAM.format(timeout=30, words=64))
    counted = []
    for load in (0, 3):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
        try:
            done = unisono("run", "-n", 2, "--kernels", library, "--platform", "rtl", script)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.search(r"nodes, (\d+) cycles", done.stdout + done.stderr)
        assert found is not None
        counted.append(int(found[1]))
    assert counted[0] == counted[1]


TICKS = """
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>
using namespace unisono::kernel;
void computes(std::uint64_t cycles) { tick(cycles); }
const Export<computes> kComputes{"computes"};
"""


@simulated
def test_a_tick_is_a_cycle(tmp_path: Path) -> None:
    source, script, library = tmp_path / "k.cpp", tmp_path / "host.py", tmp_path / "k.so"
    source.write_text(TICKS)
    assert unisono("kernel", "build", source, "-o", library).returncode == 0
    counted = []
    for cycles in (100, 5100):
        script.write_text(
            "import unisono\nwith unisono.init() as context:\n"
            f"    context.kernel('computes')({cycles}).wait()\n    print('ended')\n"
        )
        done = unisono("run", "-n", 1, "--kernels", library, "--platform", "rtl", script)
        assert "ended" in done.stdout, done.stdout + done.stderr
        found = re.search(r"nodes, (\d+) cycles", done.stdout + done.stderr)
        assert found is not None
        counted.append(int(found[1]))
    assert counted[1] - counted[0] == 5000


PACE = """
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>
using namespace unisono::kernel;
void looks_at_clock(std::uint64_t cycles, std::span<std::int64_t> seen) {
  seen[0] = static_cast<std::int64_t>(cycle());
  tick(cycles);
  seen[1] = static_cast<std::int64_t>(cycle());
}
const Export<looks_at_clock> kClock{"clock"};

/// Looks at its port in each cycle, and never waits there.
void give(std::uint32_t to, std::span<const std::int32_t> words, Comm comm, CommandStream& commands,
          StatusStream& status, ToCclo<0> to_cclo) {
  Command cclo(commands, status, comm);
  Data data(to_cclo, {});
  cclo.send(UNISONO_INT32, words.size(), to);
  for (std::size_t at = 0; at != words.size(); tick()) {
    at += data.push_some(&words[at], std::min<std::size_t>(64, 4 * (words.size() - at))) / 4;
  }
  if (cclo.finalize() != 0) throw unisono::Error(1, cclo.error());
}
const Export<give> kGive{"give"};

void take(std::uint32_t from, std::span<std::int32_t> words, std::span<std::int64_t> seen, Comm comm,
          CommandStream& commands, StatusStream& status, FromCclo<0> from_cclo) {
  Command cclo(commands, status, comm);
  Data data({}, from_cclo);
  cclo.recv(UNISONO_INT32, words.size(), from);
  for (std::size_t at = 0; at != words.size();) {
    const std::size_t room = std::min<std::size_t>(128, 4 * (words.size() - at));
    const std::uint64_t come = data.pull_some(&words[at], room) / 4;
    for (std::size_t i = 0; i < come; ++i) seen[at + i] = static_cast<std::int64_t>(cycle());
    at += come;
    if (come == 0) poll();
    else tick();
  }
  if (cclo.finalize() != 0) throw unisono::Error(1, cclo.error());
}
const Export<take> kTake{"take"};
"""

PACE_HOST = """
import sys
import numpy as np
import unisono
with unisono.init(timeout=30) as context:
    comm = context.world.dup(streams=True)
    seen = np.zeros(2, "i8")
    context.kernel("clock")(100 + comm.rank, seen).wait()
    assert seen[1] - seen[0] == 100 + comm.rank, seen
    values = np.arange(1024, dtype="i4") * 7 - 3
    if comm.rank == 0:
        context.kernel("give")(1, values, comm).wait()
    else:
        got, cycles = np.zeros(1024, "i4"), np.zeros(1024, "i8")
        context.kernel("take")(0, got, cycles, comm).wait()
        np.testing.assert_array_equal(got, values)
        if "rtl" in sys.argv:
            assert cycles[0] > seen[1]
            assert cycles[-1] - cycles[0] == 1024 // 16 - 1, cycles[::16]
    comm.barrier()
    print(f"rank {comm.rank} is right\\n", end="")
"""


@pytest.mark.parametrize("platform", PLATFORMS[:3])
def test_the_clock_and_ports_that_are_looked_at(tmp_path: Path, platform: str) -> None:
    """A kernel that looks at its ports in each cycle moves a word in each."""
    source, script, library = tmp_path / "k.cpp", tmp_path / "host.py", tmp_path / "k.so"
    source.write_text(PACE)
    script.write_text(PACE_HOST)
    built = unisono("kernel", "build", source, "-o", library)
    assert built.returncode == 0, built.stderr
    done = unisono("run", "-n", 2, "--kernels", library, "--platform", platform, script, platform)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 is right", "rank 1 is right"]


HOST_IN_C = """
#include <stdio.h>
#include <unisono/kernels.h>

static int check(unisono_result result) {
  if (result != 0) printf("%s: %s\\n", unisono_result_name(result), unisono_last_error());
  return result != 0;
}

int main(void) {
  unisono_context* context;
  unisono_request *first, *second;
  float alpha = 3, x[100], y[100];
  unisono_kernel_argument arguments[3] = {{UNISONO_KERNEL_SCALAR, UNISONO_FP32, 0, NULL, 0, NULL},
                                          {UNISONO_KERNEL_MEMORY, UNISONO_FP32, 0, x, sizeof x, NULL},
                                          {UNISONO_KERNEL_MEMORY, UNISONO_FP32, 0, y, sizeof y, NULL}};
  unisono_kernel_options after = {sizeof after, &first, 1, 0};
  if (check(unisono_init(NULL, &context))) return 1;
  for (int i = 0; i < 100; ++i) x[i] = (float)i, y[i] = 1;
  __builtin_memcpy(&arguments[0].bits, &alpha, sizeof alpha);
  if (check(unisono_kernel_start(context, "axpy", arguments, 3, NULL, &first))) return 1;
  if (check(unisono_kernel_start(context, "axpy", arguments, 3, &after, &second))) return 1;
  if (check(unisono_wait(second))) return 1;
  for (int i = 0; i < 100; ++i) if (y[i] != 1 + 6 * (float)i) return 2;
  unisono_request_free(first);
  unisono_request_free(second);
  arguments[0].datatype = UNISONO_FP64;
  check(unisono_kernel_start(context, "axpy", arguments, 3, NULL, &first));
  return check(unisono_finalize(context));
}
"""


@pytest.mark.parametrize("platform", PLATFORMS[:3])
def test_a_host_in_c(library: Path, tmp_path: Path, platform: str) -> None:
    source, program = tmp_path / "host.c", tmp_path / "host"
    source.write_text(HOST_IN_C)
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", *cflags(), source, "-o", program, *libs()], check=True)
    done = unisono("run", "-n", 1, "--kernels", library, "--platform", platform, program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernel axpy(fp32, const fp32*, fp32*): argument 0 is fp64; needed is fp32" in done.stdout, done.stdout


VECTOR_ADD = """
import numpy as np
import unisono

with unisono.init(timeout=30) as context:
    comm = context.world.dup(streams=True)
    rank, size, n = comm.rank, comm.size, 1003
    a = (np.arange(n) * 7 % 1001 + 100000 * rank).astype("i4")
    b = (np.arange(n) * 3 % 505 - 77 * rank).astype("i4")
    right, left = (rank + 1) % size, (rank - 1) % size
    got = np.zeros(n, "i4")
    receive = comm.recv_async(got, left, tag=5)
    context.kernel("unisono_kernel_vector_add")(comm, right, False, 5, 0, n, a, b).wait()
    receive.wait()
    np.testing.assert_array_equal(got, np.arange(n) * 7 % 1001 + np.arange(n) * 3 % 505 + (100000 - 77) * left)
    try:
        context.kernel("unisono_kernel_vector_add")(comm, size, False, 5, 0, n, a, b, timeout=0.001).wait()
        raise SystemExit("there is no such peer")
    except unisono.UnisonoError as error:
        assert "kernel unisono_kernel_vector_add" in str(error), error
    print(f"rank {rank} is right\\n", end="")
"""


@simulated
def test_a_kernel_in_systemverilog(tmp_path: Path) -> None:
    library, script = tmp_path / "k.so", tmp_path / "host.py"
    sources = (ROOT / "rtl/generated/unisono_spec_pkg.sv", ROOT / "rtl/examples/unisono_kernel_vector_add.sv")
    built = unisono("kernel", "build", *sources, "-o", library)
    assert built.returncode == 0, built.stderr
    script.write_text(VECTOR_ADD)
    for platform in ("native", "rtl"):
        done = unisono("run", "-n", 2, "--kernels", library, "--platform", platform, script)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.splitlines()) == ["rank 0 is right", "rank 1 is right"]


def test_what_is_no_kernel_in_systemverilog(tmp_path: Path) -> None:
    two = tmp_path / "two.sv"
    two.write_text("module a; endmodule\nmodule b; endmodule\n")
    done = unisono("kernel", "build", two, "-o", tmp_path / "k.so")
    assert "the sources have modules a, b; name the kernel by --top" in done.stderr
    assert done.returncode == 1
