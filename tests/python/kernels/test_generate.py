"""`unisono kernel metadata` and `generate`: descriptions of programs, and what their host includes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernels_support import HERE, unisono
from unisono.kernels import parsing

pytestmark = pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")
SOURCE = """#include <smi.h>
#define PORT 4
__kernel void give(int n, SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel_ad(n, SMI_DOUBLE, 1, PORT, comm, 100);
  SMI_RChannel sums = SMI_Open_reduce_channel(12, SMI_FLOAT, SMI_MIN, 2, 0, comm);
}
__kernel void take(int n, SMI_Comm comm) {
  for (int i = 0; i < n; i++) {
    SMI_Channel from = SMI_Open_receive_channel(1, SMI_SHORT, 1, PORT, comm);
  }
}
"""


def test_a_program_as_smi_describes_it(tmp_path: Path) -> None:
    source = tmp_path / "p.cl"
    source.write_text(SOURCE)
    done = unisono("kernel", "metadata", source, "--ranks", 4, "--reads", 16, "--protocol", "eager")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "operations": [
            {"type": "reduce", "port": 2, "data_type": "float", "buffer_size": 16, "args": {"op_type": "min"}},
            {"type": "pop", "port": 4, "data_type": "short", "buffer_size": 16, "args": {}},
            # 100 doubles are 34 packets of three.
            {"type": "push", "port": 4, "data_type": "double", "buffer_size": 40, "args": {}},
        ],
        "consecutive_reads": 16,
        "max_ranks": 4,
        "p2p_rendezvous": False,
    }


def test_a_program_as_hardware_is_configured(tmp_path: Path) -> None:
    source = tmp_path / "p.cl"
    source.write_text(SOURCE)
    wanted = tmp_path / "p.json"
    done = unisono("kernel", "metadata", source, "--format", "unisono", "--packet", 64, "-o", wanted)
    assert done.returncode == 0, done.stderr
    data = json.loads(wanted.read_text())
    endpoints = data.pop("endpoints")
    assert data == {
        "format": "unisono-endpoints", "version": 1, "program": "p", "ranks": 8, "reads": 8, "packet": 64,
        "protocol": "credits",
    }  # fmt: skip
    assert endpoints[2] == {
        "port": 4, "kind": "send", "direction": "send", "type": "fp64", "element_bytes": 8, "op": None, "degree": 100,
        "count": None, "kernels": ["give"], "line": f"{source}:4",
    }  # fmt: skip
    assert [(each["port"], each["direction"], each["op"], each["count"]) for each in endpoints] == [
        (2, "both", "min", 12), (4, "receive", None, 1), (4, "send", None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("SMI_Channel a = SMI_Open_send_channel(1, SMI_INT, 1, n, comm);", ":3: the port `n` is no constant"),
        (
            "SMI_Channel a = SMI_Open_send_channel(1, n, 1, 0, comm);",
            ":3: the type of this send channel is no constant",
        ),
        (
            "{ SMI_Channel a = SMI_Open_send_channel(1, SMI_INT, 1, 0, comm); }\n"
            "{ SMI_Channel a = SMI_Open_send_channel(1, SMI_FLOAT, 1, 0, comm); }",
            ":4: the send endpoint of port 0 is of SMI_FLOAT here and of SMI_INT at",
        ),
        (
            "{ SMI_Channel a = SMI_Open_send_channel(1, SMI_INT, 1, 0, comm); }\n"
            "{ SMI_BChannel a = SMI_Open_bcast_channel(1, SMI_INT, 0, 0, comm); }",
            "a collective needs both directions: take another port",
        ),
        (
            "SMI_Channel a = SMI_Open_allgather_channel(1, SMI_INT, 0, comm);",
            ":3: SMI's description of programs has no allgather",
        ),
    ],
)
def test_what_cannot_be_described_is_told_by_line(tmp_path: Path, body: str, sentence: str) -> None:
    source = tmp_path / "p.cl"
    source.write_text(f"#include <smi.h>\n__kernel void f(int n, SMI_Comm comm) {{\n{body}\n}}\n")
    done = unisono("kernel", "metadata", source)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_what_smi_has_not_is_generated_and_routed(tmp_path: Path) -> None:
    source = tmp_path / "more.cl"
    source.write_text(
        """#include <smi.h>
__kernel void f(int n, SMI_Comm comm) {
  SMI_Channel a = SMI_Open_allgather_channel(n, SMI_INT, 0, comm);
  SMI_Channel b = SMI_Open_allreduce_channel(n, SMI_FLOAT, SMI_MAX, 1, comm);
  SMI_Channel c = SMI_Open_alltoall_channel(n, SMI_DOUBLE, 2, comm);
}
"""
    )
    folder = tmp_path / "made"
    done = unisono("kernel", "generate", source, "-o", folder)
    assert done.returncode == 0, done.stderr
    operations = json.loads((folder / "more.json").read_text())["operations"]
    assert [(each["type"], each["port"], each["args"]) for each in operations] == [
        ("allgather", 0, {}), ("allreduce", 1, {"op_type": "max"}), ("alltoall", 2, {}),
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(
        json.dumps({"fpgas": {"n:b0": "more", "n:b1": "more"}, "connections": {"n:b0:ch0": "n:b1:ch0"}})
    )
    done = unisono("route", tmp_path / "t.json", "--program", folder / "more.json", "-o", tmp_path / "tables")
    assert done.returncode == 0, done.stderr


def test_hosts_know_which_rank_runs_which_program(tmp_path: Path) -> None:
    """Three ranks of two programs."""
    for name, verb in (("first", "send"), ("second", "receive")):
        (tmp_path / f"{name}.cl").write_text(
            f"#include <smi.h>\n__kernel void f(SMI_Comm comm) {{\n  SMI_Channel c = SMI_Open_{verb}_channel"
            "(1, SMI_INT, 0, 3, comm);\n}\n"
        )
    (tmp_path / "t.json").write_text(
        json.dumps(
            {
                "fpgas": {"n:b0": "first", "n:b1": "second", "n:b2": "first.json"},
                "connections": {"n:b0:ch0": "n:b1:ch1", "n:b1:ch0": "n:b2:ch1"},
            }
        )
    )
    sources = [tmp_path / "first.cl", tmp_path / "second.cl"]
    folder = tmp_path / "made"
    refused = unisono("kernel", "generate", *sources, "-o", folder)
    assert "--topology says which rank runs which" in refused.stderr
    done = unisono("kernel", "generate", *sources, "--topology", tmp_path / "t.json", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert "second: 1 endpoints, packets of 32 bytes, R = 8" in (folder / "report.txt").read_text()
    host = tmp_path / "host.cpp"
    host.write_text(
        '#include <mpi.h>\n#include "smi_generated_host.c"\n#include <cstdio>\n'
        "int main(int argc, char** argv) {\n  MPI_Init(&argc, &argv);\n  int rank, size;\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n  MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
        "  SMI_Comm comm = argc > 1 ? SmiInit_second(rank, size) : SmiInit(rank, size);\n"
        '  std::printf("%d %s\\n", rank, SmiProgram(rank).c_str());\n  MPI_Finalize();\n}\n'
    )
    done = unisono("kernel", "host", host, "-I", folder, "-o", tmp_path / "host")
    assert done.returncode == 0, done.stderr
    right = unisono("run", "-n", 3, tmp_path / "host")
    assert sorted(right.stdout.splitlines()) == ["0 first", "1 second", "2 first"], right.stderr
    # SMI's hosts call that of one program on all ranks.
    assert unisono("run", "-n", 3, tmp_path / "host", "second").returncode == 0
    fewer = unisono("run", "-n", 2, tmp_path / "host")
    assert "the kernels are generated for 3 ranks, and the job has 2" in fewer.stderr


def test_a_topology_of_other_programs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"fpgas": {"n:b0": "other"}, "connections": {}}')
    done = unisono("kernel", "generate", HERE / "pipeline.cl", "--topology", tmp_path / "t.json", "-o", tmp_path)
    assert done.returncode == 2
    assert "says the program other of n:b0; those given are pipeline" in done.stderr
