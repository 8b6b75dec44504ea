"""`unisono doctor`: what it finds on machines made of files, and what it finds here when things are refused."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from unisono import machine
from unisono.cli import main
from unisono.machine import cores, kernel
from unisono.machine.finding import Finding, State, bytes_text

from .conftest import Run, sandboxed


def named(findings: list[Finding], name: str) -> Finding:
    (found,) = [finding for finding in findings if finding.name == name]
    return found


def entry(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [finding for finding in report["findings"] if finding["name"] == name]
    return dict(found)


def doctor(options: list[str], status: int = 0) -> dict[str, Any]:
    done = sandboxed(options, [sys.executable, "-m", "unisono", "doctor", "--json"])
    assert done.returncode == status, done.stderr
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["can_run"] == (status == 0)
    return report


class FakeRoot:
    def __init__(self, path: Path) -> None:
        self.path = path

    def with_file(self, name: str, text: str) -> FakeRoot:
        place = Path(f"{self.path}{name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")
        return self

    def examine(self) -> list[Finding]:
        return machine.examine(str(self.path))


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    return FakeRoot(tmp_path)


# ------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11\n", {0, 1, 8, 10, 11}), ("", set()), (None, set()),
     ("x,2", {2}), ("-1", set()), ("3-", {3})],
)  # fmt: skip
def test_cpu_lists(text: str | None, numbers: set[int]) -> None:
    assert cores.cpu_list(text) == numbers
    assert cores.cpu_list(cores.as_list(numbers)) == numbers


def test_lists_are_short() -> None:
    assert cores.as_list({4, 0, 1, 2, 9}) == "0-2,4,9"
    assert cores.as_list([]) == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (64 << 20, "64 MiB"),
     (3 << 40, "3 TiB"), (5000 << 40, "5e+03 TiB")],
)  # fmt: skip
def test_sizes(count: int, text: str) -> None:
    assert bytes_text(count) == text


# ------------------------------------------------------------------------------------- machines made of files


def test_a_machine_of_two_nodes_and_hardware_threads(fake: FakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    fake.with_file("/sys/devices/system/cpu/online", "0-15")
    for core in range(8):
        fake.with_file(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", f"{core % 4},{core % 4 + 4}")
    fake.with_file("/sys/devices/system/node/node0/cpulist", "0-1,4-5")
    fake.with_file("/sys/devices/system/node/node1/cpulist", "2-3,6-7,8-15")
    cache = "/sys/devices/system/cpu/cpu0/cache"
    for index, (level, kind, size, shared) in enumerate(
        [(1, "Data", "48K", "0,4"), (1, "Instruction", "32K", "0,4"), (2, "Unified", "2M", "0,4"),
         (3, "Unified", "36864K", "0-7")]
    ):  # fmt: skip
        fake.with_file(f"{cache}/index{index}/level", str(level)).with_file(f"{cache}/index{index}/type", kind)
        fake.with_file(f"{cache}/index{index}/size", size).with_file(f"{cache}/index{index}/shared_cpu_list", shared)
        fake.with_file(f"{cache}/index{index}/coherency_line_size", "64")
    findings = fake.examine()

    assert named(findings, "usable cores").data == {"count": 8}
    affinity = named(findings, "affinity")
    assert affinity.state is State.IMPROVABLE
    assert affinity.value == "0-7 of 0-15"
    assert "taskset -c 0-15" in affinity.remedy
    threads = named(findings, "hardware threads")
    assert threads.data == {"physical": 4, "first_of_each": [0, 1, 2, 3]}
    assert threads.remedy == "taskset -c 0-3 unisono run -n 4 PROGRAM"
    nodes = named(findings, "memory nodes")
    assert nodes.data == {"nodes": {"0": [0, 1, 4, 5], "1": [2, 3, 6, 7]}}
    assert "numactl --cpunodebind=0 --membind=0 unisono run -n 4" in nodes.remedy
    levels = [finding.data for finding in findings if finding.name.startswith("cache, level")]
    assert [(level["level"], level["bytes"], level["line_bytes"]) for level in levels] == [
        (1, 48 << 10, 64), (2, 2 << 20, 64), (3, 36 << 20, 64)]  # fmt: skip
    assert levels[2]["shared_by"] == list(range(8))


@pytest.mark.parametrize(
    ("quota", "usable", "state"),
    [("150000", 1, State.IMPROVABLE), ("250000", 2, State.IMPROVABLE), ("400000", 4, State.OK), ("-1", 4, State.OK)],
)
def test_a_quota(fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, quota: str, usable: int, state: State) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    fake.with_file("/proc/self/mountinfo", "31 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu")
    fake.with_file("/proc/self/cgroup", "1:cpu:/job")
    fake.with_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", quota)
    fake.with_file("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000")
    findings = fake.examine()
    assert machine.usable_cores(str(fake.path)) == usable
    assert named(findings, "usable cores").data == {"count": usable}
    found = named(findings, "time quota")
    assert found.state is state
    if state is not State.OK:
        assert found.remedy.startswith("echo -1 > /sys/fs/cgroup/cpu/job/cpu.cfs_quota_us ")
    assert named(findings, "cgroups").data == {"v1": True, "v2": False}


@pytest.mark.parametrize(
    ("text", "state"),
    [("always within_size advise [never] deny force", State.IMPROVABLE), ("always [advise] never", State.OK),
     ("[always] advise never", State.OK), (None, State.MISSING)],
)  # fmt: skip
def test_huge_pages(fake: FakeRoot, text: str | None, state: State) -> None:
    if text is not None:
        fake.with_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text)
    fake.with_file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "12")
    findings = fake.examine()
    assert named(findings, "huge pages, shared memory").state is state
    assert named(findings, "huge pages, reserved").data == {"free": {"2097152": 12}}


def test_clock_overcommit_and_memory(fake: FakeRoot) -> None:
    folder = "/sys/devices/system/clocksource/clocksource0"
    fake.with_file(f"{folder}/current_clocksource", "hpet").with_file(f"{folder}/available_clocksource", "hpet tsc")
    fake.with_file("/proc/sys/vm/overcommit_memory", "2")
    fake.with_file("/proc/meminfo", "MemTotal:  1000000 kB\nMemAvailable:     204800 kB")
    findings = fake.examine()
    clock = named(findings, "clock source")
    assert clock.state is State.IMPROVABLE
    assert clock.remedy == f"echo tsc > {folder}/current_clocksource   # as root"
    assert named(findings, "overcommit").state is State.IMPROVABLE
    memory = named(findings, "free memory")
    assert (memory.state, memory.data["bytes"]) == (State.IMPROVABLE, 200 << 20)
    fake.with_file(f"{folder}/available_clocksource", "hpet acpi_pm")
    assert "dmesg" in named(fake.examine(), "clock source").remedy


def test_an_empty_machine_is_examined(fake: FakeRoot) -> None:
    findings = fake.examine()
    assert named(findings, "cgroups").data == {"v1": False, "v2": False}
    assert named(findings, "caches").value == "not shown here"


def test_signs_of_a_container(fake: FakeRoot) -> None:
    fake.with_file("/run/.containerenv", "").with_file("/proc/self/cgroup", "0::/kubepods/besteffort/pod1")
    fake.with_file("/proc/self/status", "Name:\tpython\nNoNewPrivs:\t1\nSeccomp:\t2")
    findings = fake.examine()
    assert named(findings, "container").data == {"hints": ["podman", "kubepods"]}
    assert named(findings, "seccomp").data == {"mode": 2, "no_new_privileges": True}


@pytest.mark.parametrize(
    ("scope", "closed", "opened", "state", "remedy"),
    [(None, "", "", State.OK, ""),
     (1, "refused", "", State.OK, ""),
     (3, "refused", "refused", State.MISSING, "sysctl kernel.yama.ptrace_scope=0"),
     (0, "refused", "refused", State.MISSING, "docker run --cap-add SYS_PTRACE")],
)  # fmt: skip
def test_copies_between_processes(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, scope: int | None, closed: str, opened: str, state: State,
    remedy: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(kernel, "_copy_between_processes", {"closed": closed, "open": opened}.__getitem__)
    monkeypatch.delenv("UNISONO_KERNEL_COPY", raising=False)
    if scope is not None:
        fake.with_file("/proc/sys/kernel/yama/ptrace_scope", str(scope))
    found = named(fake.examine(), "CMA (process_vm_readv, _writev)")
    assert (found.state, found.data["works"], found.data["ptrace_scope"]) == (state, not closed, scope)
    assert found.remedy.startswith(remedy)
    # Whatever a measurement has found of other calls.
    assert ("serves put and get" in found.value) == (state == State.OK)


# ----------------------------------------------------------------------------------------------- this machine


def test_structure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["can_run"] is True
    assert report["usable_cores"] == machine.usable_cores() <= len(os.sched_getaffinity(0))
    names = [finding["name"] for finding in report["findings"]]
    assert len(names) == len(set(names))
    for finding in report["findings"]:
        assert set(finding) == {"area", "name", "state", "value", "effect", "remedy", "essential", "data"}
        assert finding["state"] in ("ok", "could be better", "missing")
        assert finding["value"]
        # What is not ok says why that matters; what is ok needs neither reason nor change.
        assert bool(finding["effect"]) == (finding["state"] != "ok"), finding
        if finding["state"] == "ok":
            assert not finding["remedy"]
    essential = {finding["name"] for finding in report["findings"] if finding["essential"]}
    assert essential == {"memfd with seals", "futex", "abstract Unix sockets"}
    assert {"usable cores", "affinity", "time quota", "hardware threads", "memory nodes", "membarrier", "pidfd",
            "clock source", "open files", "address space", "locked memory", "/dev/shm", "container", "seccomp",
            "huge pages, shared memory", "huge pages, reserved", "version"} <= set(names)  # fmt: skip


def test_for_people(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "Unisono can run here" in output
    for finding in machine.examine():
        assert finding.name in output
        if finding.remedy:
            assert f"    {finding.remedy}\n" in output  # whole, to be copied


def test_one_core_of_several() -> None:
    core = max(os.sched_getaffinity(0))
    report = doctor(["--cores", str(core)])
    assert report["usable_cores"] == 1
    assert entry(report, "usable cores")["state"] == "could be better"
    affinity = entry(report, "affinity")
    assert affinity["data"]["cores"] == [core]
    assert (affinity["state"] == "ok") == (len(affinity["data"]["online"]) == 1)


def test_what_jobs_can_do_without() -> None:
    report = doctor(["--deny", "membarrier,pidfd_open,process_vm_readv"])
    for name in ("membarrier", "pidfd", "CMA (process_vm_readv, _writev)"):
        finding = entry(report, name)
        assert finding["state"] == "missing"
        assert finding["data"]["works"] is False
        assert "Operation not permitted" in finding["value"]
        assert "docker run" in finding["remedy"]
    assert entry(report, "seccomp")["data"] == {"mode": 2, "no_new_privileges": True}


def test_cma_is_tried_in_both_directions() -> None:
    here = doctor([])
    if not entry(here, "CMA (process_vm_readv, _writev)")["data"]["works"]:
        pytest.skip(f"CMA is refused here: {entry(here, 'CMA (process_vm_readv, _writev)')['value']}")
    refused = entry(doctor(["--deny", "process_vm_writev"]), "CMA (process_vm_readv, _writev)")
    assert refused["value"] == "refused: process_vm_writev: Operation not permitted"


def test_what_they_cannot_do_without(run: Run) -> None:
    finding = entry(doctor(["--deny", "memfd_create"], status=1), "memfd with seals")
    assert finding["state"] == "missing"
    assert finding["essential"] is True
    assert "memfd_create" in finding["remedy"]
    done = run(["--deny", "memfd_create"], "doctor")
    assert done.returncode == 1
    assert "Unisono cannot run here: memfd with seals is missing." in done.stdout


def test_limits() -> None:
    report = doctor(["--limit", "NOFILE=100", "--limit", f"AS={4 << 30}", "--limit", "MEMLOCK=65536"])
    files, space = entry(report, "open files"), entry(report, "address space")
    assert (files["state"], files["data"]["limit"]) == ("could be better", 100)
    assert "36 ranks" in files["effect"]
    assert files["remedy"].startswith("ulimit -n ")
    assert (space["state"], space["data"]["limit"], space["remedy"]) == ("could be better", 4 << 30,
                                                                        "ulimit -v unlimited")  # fmt: skip
    locked = entry(report, "locked memory")
    assert (locked["state"], locked["data"]["limit"]) == ("ok", 65536)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert entry(doctor([]), "open files")["data"]["limit"] == (None if soft == resource.RLIM_INFINITY else soft)


def test_a_small_dev_shm_does_not_matter() -> None:
    found = entry(doctor(["--shm", "64"]), "/dev/shm")
    assert (found["state"], found["data"]["bytes"]) == ("ok", 64 << 20)


def test_an_ordinary_user(run_as_user: Run) -> None:
    done: subprocess.CompletedProcess[str] = run_as_user([], "doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert entry(json.loads(done.stdout), "user")["data"] == {"uid": 65534}
