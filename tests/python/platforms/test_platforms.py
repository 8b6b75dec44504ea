"""`unisono run --platform`: the same programs on devices, and what is said when a device fails."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from unisono.cli import cluster

ROOT = Path(__file__).resolve().parents[3]
FAKE = Path(__file__).with_name("fake_cluster.py")
SECONDS = 100

PROGRAM = """
import sys
import numpy as np
import unisono

with unisono.init(timeout=60) as context:
    world = context.world
    rank, size = world.rank, world.size
    mine = np.arange(3000, dtype=np.float64) * (rank + 1) + rank
    total = world.allreduce(mine)
    assert np.allclose(total, sum(np.arange(3000) * (r + 1) + r for r in range(size)))
    blocks = world.alltoall(np.arange(size, dtype=np.int32) + 100 * rank)
    assert blocks.tolist() == [100 * r + rank for r in range(size)]
    counts = [r + 1 for r in range(size)]
    together = world.allgatherv(np.full(rank + 1, rank, np.int16), np.empty(sum(counts), np.int16), counts)
    assert together.tolist() == [r for r in range(size) for _ in range(r + 1)]
    half = world.split(rank % 2, rank)
    assert half.allreduce(np.array([rank])).tolist() == [sum(range(rank % 2, size, 2))]
    request = world.scan_async(np.array([rank + 1.0]), np.empty(1))
    request.wait()
    if size > 1:
        got = np.empty(7, np.float32)
        ahead = world.send_async(np.full(7, rank, np.float32), (rank + 1) % size, tag=5)
        world.recv(got, (rank - 1) % size, tag=5)
        ahead.wait()
        assert (got == (rank - 1) % size).all()
    for algorithm in unisono.algorithms("allreduce"):
        try:
            again = world.allreduce(mine, algorithm=algorithm.name)
            assert np.allclose(again, total)
        except unisono.UnsupportedError as error:
            assert algorithm.name.startswith(("direct", "switch")), error

    def backwards(p):
        # Everybody's vector to everybody, summed from the last rank to the first.
        order = [r for r in reversed(range(p.size)) if r != p.rank]
        mine, result = p.src(0, 5), p.dst(0, 5)
        p.move(take=mine, send=p.message(order, tag=1))
        p.move(take=mine, combine=p.arrival(order, tag=1), func="sum", keep=result)

    if size > 1:
        program = unisono.Program.build(size, backwards, dtype="fp64")
        for turn in range(3):
            sums = world.run_program(program, np.full(5, 10.0**rank + turn), np.zeros(5))
            assert (sums == sum(10.0**r + turn for r in range(size))).all(), sums
    world.barrier()
    print(f"rank {rank} of {size} is right\\n", end="")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return script


def run(*arguments: object, **environment: object) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    around |= {"PYTHONPATH": str(ROOT / "python")} | {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-m", "unisono", "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=SECONDS, env=around,
    )  # fmt: skip


def all_right(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of {ranks} is right" for r in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_program_on_functional_devices(program: Path, ranks: int) -> None:
    all_right(run("-n", ranks, "--platform", "functional", program), ranks)


LONG = """
import numpy as np
import unisono

def mirrored(n):
    def write(p):
        for i in range(n):
            p.move(take=p.src(i, 1), send=p.message((p.rank + 1) % p.size, tag=i))
            p.move(take=p.arrival((p.rank - 1) % p.size, tag=i), keep=p.dst(n - 1 - i, 1))
    return write

with unisono.init() as context:
    world = context.world
    rank, size = world.rank, world.size
    # More of them than a device holds at once, so that their memory is given back and taken again.
    lengths = (17, 40, 100, 101, 102, 103, 16, 2, 250)
    programs = {n: unisono.Program.build(size, mirrored(n), dtype="int32") for n in lengths}
    for n in [*programs, 250, 17]:
        got = world.run_program(programs[n], np.arange(n, dtype=np.int32) + rank, np.zeros(n, np.int32))
        assert (got == np.arange(n)[::-1] + (rank - 1) % size).all(), got
    endless = unisono.Program.build(size, mirrored(2049), dtype="int32")
    try:
        world.run_program(endless, np.zeros(2049, np.int32), np.zeros(2049, np.int32))
    except unisono.UnisonoError as error:
        assert "4098 moves" in str(error) and "a device holds 4096" in str(error), error
    else:
        raise AssertionError("a program that is too long was taken")
    print(f"rank {rank} of {size} is right\\n", end="")
"""


def test_programs_of_more_moves_than_a_device_holds_itself(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(LONG)
    all_right(run("-n", 2, "--platform", "functional", script), 2)


@pytest.mark.parametrize("ranks", [1, 3])
def test_windows_of_functional_devices(ranks: int) -> None:
    all_right(run("-n", ranks, "--platform", "functional", Path(__file__).with_name("windows.py")), ranks)


def test_create_group_says_what_to_do_instead(tmp_path: Path) -> None:
    script = tmp_path / "group.py"
    script.write_text(
        "import unisono\nwith unisono.init() as context:\n    world = context.world\n"
        "    try:\n        world.create_group([0, 1])\n"
        "    except unisono.UnsupportedError as error:\n        print(error)\n"
        "    assert world.subset([0, 1]).size == 2\n    world.barrier()\n"
    )
    done = run("-n", 2, "--platform", "functional", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("create_group on communicator 0") == 2
    assert done.stdout.count("use `split` or `subset`, which all ranks of the communicator call") == 2


def test_the_environment_says_the_same(program: Path) -> None:
    all_right(run("-n", 3, program, UNISONO_PLATFORM="functional"), 3)


def test_without_the_launcher(program: Path) -> None:
    around = os.environ | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_PLATFORM": "functional"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=SECONDS, env=around)
    all_right(done, 1)


def test_an_application(program: Path) -> None:
    done = run("-n", 2, "--platform", "functional", ROOT / "apps/tour/tour.py", "--largest", 1024)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results are right, on every rank" in done.stdout
    assert "not here" not in done.stdout


def test_a_compiled_program(tmp_path: Path) -> None:
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    if not libraries:
        pytest.fail("no build/*/libunisono.so; run `make build` first")
    folder = libraries[-1].parent
    source = tmp_path / "sum.c"
    source.write_text(
        """
#include <stdio.h>
#include <unisono/unisono.h>
int main(void) {
  unisono_context* context = NULL;
  unisono_communicator* world = NULL;
  uint32_t rank = 0;
  int mine[5], total[5];
  if (unisono_init(NULL, &context) || unisono_world(context, &world) || unisono_communicator_rank(world, &rank)) {
    fprintf(stderr, "%s\\n", unisono_last_error());
    return 1;
  }
  for (int i = 0; i < 5; ++i) mine[i] = i + 10 * (int)rank;
  unisono_call call = {.struct_size = sizeof call, .collective = UNISONO_ALLREDUCE, .datatype = UNISONO_INT32,
                       .op = UNISONO_SUM, .count = 5, .src = mine, .src_bytes = sizeof mine, .dst = total,
                       .dst_bytes = sizeof total};
  if (unisono_run(world, &call)) {
    fprintf(stderr, "%s\\n", unisono_last_error());
    return 1;
  }
  printf("%u: %d %d\\n", rank, total[0], total[4]);
  return unisono_finalize(context);
}
"""
    )
    subprocess.run(
        ["gcc", "-Wall", f"-I{ROOT}/driver/include", source, f"-L{folder}", "-lunisono", f"-Wl,-rpath,{folder}",
         "-o", tmp_path / "sum"],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    done = run("-n", 3, "--platform", "functional", tmp_path / "sum")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{rank}: 30 42" for rank in range(3)]


def test_ranks_of_different_platforms_do_not_join(tmp_path: Path) -> None:
    script = tmp_path / "mixed.py"
    script.write_text(
        "import os\nos.environ['UNISONO_PLATFORM'] = ('native', 'functional')[int(os.environ['UNISONO_RANK'])]\n"
        "import unisono\ntry:\n    unisono.init()\nexcept unisono.BootstrapError as error:\n    print(error)\n"
    )
    done = run("-n", 2, script)
    assert "rank 1 runs on platform functional, rank 0 on native" in done.stdout


def test_a_platform_that_is_none() -> None:
    done = run("-n", 1, "true", UNISONO_PLATFORM="fpga")
    assert done.returncode == 2
    assert "'fpga'" in done.stderr
    around = os.environ | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_PLATFORM": "fpga"}
    direct = subprocess.run(
        [sys.executable, "-c", "import unisono; unisono.init()"], capture_output=True, text=True, env=around
    )
    assert "UNISONO_PLATFORM" in direct.stderr
    assert "functional" in direct.stderr


def test_options_of_the_cluster_without_one() -> None:
    done = run("-n", 1, "--platform", "functional", "--seed", 3, "--wave", "x", "true")
    assert done.returncode == 2
    assert "--seed and --wave" in done.stderr


# ------------------------------------------------------------------------------------------- a cluster


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    image = tmp_path / "unisono.bin"
    image.write_bytes(bytes(range(256)) * 2)
    return image


@pytest.fixture
def functional_cluster() -> Path:
    """Functional devices behind the protocol of the simulated cluster."""
    built = sorted((ROOT / "build").glob("*/tests/cpp/functional_cluster"), key=os.path.getmtime)
    if not built:
        pytest.skip("functional_cluster is not built (tools/build --tests)")
    return built[-1]


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_program_on_a_cluster(program: Path, functional_cluster: Path, firmware: Path, ranks: int) -> None:
    done = run("-n", ranks, "--platform", "rtl", program, UNISONO_CLUSTER=functional_cluster, UNISONO_FIRMWARE=firmware)
    all_right(done, ranks)
    lines = [line for line in done.stderr.splitlines() if line.startswith("[cluster] ")]
    assert len(lines) == 1
    assert f"{ranks} nodes" in lines[0]


def test_a_rank_that_leaves_early_is_named(tmp_path: Path, functional_cluster: Path, firmware: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text(
        "import numpy as np\nimport unisono\nwith unisono.init(timeout=60) as context:\n"
        "    world = context.world\n    world.barrier()\n    if world.rank != 2:\n        world.allreduce(np.ones(3))\n"
    )
    done = run("-n", 3, "--platform", "rtl", script, UNISONO_CLUSTER=functional_cluster, UNISONO_FIRMWARE=firmware)
    assert done.returncode == 1
    assert "rank 2" in done.stderr
    assert "has left the job" in done.stderr


def test_a_process_has_its_device_once(tmp_path: Path, functional_cluster: Path, firmware: Path) -> None:
    script = tmp_path / "again.py"
    script.write_text(
        "import unisono\nwith unisono.init(timeout=60) as context:\n    context.world.barrier()\n"
        "try:\n    unisono.init()\nexcept unisono.BootstrapError as error:\n    print(error)\n"
    )
    done = run("-n", 2, "--platform", "rtl", script, UNISONO_CLUSTER=functional_cluster, UNISONO_FIRMWARE=firmware)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("joins with its device once") == 2


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    program = tmp_path / "unisono-cluster"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o755)
    return program


CALL = "import numpy as np, unisono\nwith unisono.init() as c:\n    c.world.allreduce(np.ones(3))\n"


@pytest.mark.parametrize(
    ("how", "words", "launcher"),
    [
        ("exits at once", "it has ended", "the simulated cluster exited with status 3"),
        ("dies", "it has ended", "the simulated cluster was ended by SIGABRT"),
        ("ends during a call", "allreduce (communicator 0, rank 0", None),
        ("wrong magic", "no reply of the protocol", None),
        ("another version", "version 9", None),
        ("never answers", "UNISONO_DEVICE_TIMEOUT_S", None),
    ],
)
def test_a_cluster_that_misbehaves(
    tmp_path: Path, fake: Path, firmware: Path, how: str, words: str, launcher: str | None
) -> None:
    script = tmp_path / "call.py"
    script.write_text(CALL)
    begin = time.monotonic()
    done = run(
        "-n", 1, "--platform", "rtl", script,
        UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware, MISBEHAVIOUR=how, UNISONO_DEVICE_TIMEOUT_S=2,
    )  # fmt: skip
    assert done.returncode != 0
    assert "DeviceLostError" in done.stderr
    assert words in done.stderr
    assert "rank 0 of 1 exited with status 1" in done.stderr
    if launcher is not None:
        assert launcher in done.stderr
    assert time.monotonic() - begin < 20


def test_options_are_passed_on(tmp_path: Path, fake: Path, firmware: Path) -> None:
    network = tmp_path / "network.yaml"
    network.write_text("")
    done = run(
        "-n", 1, "--platform", "rtl", "--network", network, "--seed", 7, "--platform-model", "unified", "--wave", "w",
        "true", UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"[cluster] options: {network} 7 unified w" in done.stderr
    assert "[cluster] last words: 0 cycles" in done.stderr
    done = run(
        "-n", 4, "--platform", "rtl", "--native", "3,1", "--native-delay", 25, "true",
        UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[cluster] native: 3,1 25" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--native", "1,2"), "there is no rank 2; the job has ranks 0 to 1"),
        (("--native", "1,1"), "names a rank twice"),
        (("--native", "all"), "no list of ranks"),
        (("--native", "-1"), "no list of ranks"),
        (("--native", "1", "--native-delay", "x"), "no whole number of cycles"),
        (("--native-delay", "3"), "none is named"),
        (("--native", "0", "--wave", "w"), "it has no signals"),
    ],
)
def test_native_ranks_that_cannot_be(fake: Path, firmware: Path, options: tuple[str, ...], words: str) -> None:
    done = run("-n", 2, "--platform", "rtl", *options, "true", UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware)
    assert done.returncode != 0
    assert words in done.stderr


def test_a_bad_network_is_one_sentence(tmp_path: Path, fake: Path, firmware: Path) -> None:
    """Whatever the cluster finds wrong with its options, no rank is started."""
    network, started = tmp_path / "network", tmp_path / "started"
    network.write_text("colour = red\n")
    done = run(
        "-n", 4, "--platform", "rtl", "--network", network, "touch", started,
        UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware, MISBEHAVIOUR="refuses",
    )  # fmt: skip
    assert done.returncode == 127
    assert done.stderr == f"unisono run: {network}:1: there is no key 'colour'\n"
    assert not started.exists()


def test_a_cluster_that_is_none(tmp_path: Path, firmware: Path) -> None:
    done = run("-n", 2, "--platform", "rtl", "true", UNISONO_CLUSTER="/bin/false", UNISONO_FIRMWARE=firmware)
    assert done.returncode == 127
    assert done.stderr == "unisono run: the simulated cluster did not start: it has said nothing\n"


def test_native_ranks_without_a_cluster() -> None:
    done = run("-n", 2, "--native", "1", "true")
    assert done.returncode == 2
    assert "--native goes with --platform rtl; the platform is native" in done.stderr


def test_what_is_missing_is_named(tmp_path: Path, fake: Path, firmware: Path) -> None:
    done = run("-n", 1, "--platform", "rtl", "true", UNISONO_CLUSTER=tmp_path / "none")
    assert done.returncode == 127
    assert "UNISONO_CLUSTER" in done.stderr
    done = run("-n", 1, "--platform", "rtl", "true", UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=tmp_path / "none")
    assert done.returncode == 127
    assert "UNISONO_FIRMWARE" in done.stderr
    done = run("-n", 65, "--platform", "rtl", "true", UNISONO_CLUSTER=fake, UNISONO_FIRMWARE=firmware)
    assert done.returncode == 127
    assert "up to 64 nodes" in done.stderr
    done = run("-n", 1, "--platform", "rtl", "--network", "none", "true", UNISONO_CLUSTER=fake)
    assert "no file none" in done.stderr


def test_how_to_build_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("UNISONO_CLUSTER", raising=False)
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    monkeypatch.setattr(cluster, "PACKAGE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cluster.ClusterError, match="make cluster"):
        cluster.find_cluster()
    built = tmp_path / "build/rtl/cluster" / cluster.NAME
    built.parent.mkdir(parents=True)
    shutil.copy(sys.executable, built)
    assert cluster.find_cluster() == str(built)
    monkeypatch.delenv("UNISONO_FIRMWARE", raising=False)
    assert cluster.named_firmware() == {}
    monkeypatch.setenv("UNISONO_FIRMWARE", str(tmp_path / "none"))
    with pytest.raises(cluster.ClusterError, match="UNISONO_FIRMWARE"):
        cluster.named_firmware()


def test_a_cluster_that_lingers_is_ended(monkeypatch: pytest.MonkeyPatch, fake: Path, firmware: Path) -> None:
    monkeypatch.setenv("UNISONO_CLUSTER", str(fake))
    monkeypatch.setenv("UNISONO_FIRMWARE", str(firmware))
    monkeypatch.setenv("MISBEHAVIOUR", "lingers")
    made = cluster.Cluster(2, cluster.ClusterOptions())
    made.start(lambda: None)
    hosts = [socket.socket(fileno=os.dup(made.descriptor(rank))) for rank in range(2)]
    process = made._process
    assert process is not None
    for host in hosts:
        host.close()
    made.finish(1.0)
    assert process.returncode == -signal.SIGTERM
    assert made.fault is not None
    assert "was ended" in made.fault


def test_a_rank_without_its_device(firmware: Path) -> None:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    around |= {"PYTHONPATH": str(ROOT / "python"), "UNISONO_PLATFORM": "rtl"}
    command = [sys.executable, "-c", "import unisono; unisono.init()"]
    done = subprocess.run(command, capture_output=True, text=True, env=around)
    assert "UNISONO_DEVICE_FD" in done.stderr
    assert "unisono run --platform rtl" in done.stderr
    odd = firmware.with_name("odd.bin")
    odd.write_bytes(b"abc")
    done = subprocess.run(command, capture_output=True, text=True, env=around | {"UNISONO_FIRMWARE": str(odd)})
    assert "whole words" in done.stderr
