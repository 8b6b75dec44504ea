"""Programs of OpenSHMEM in C: right results, wrong uses, PEs that die."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .support import PROGRAMS, build, hosts, run

ONE_HOST = [["-n", "1"], ["-n", "2"], ["-n", "4"]]
TWO_HOSTS = [hosts("a:2,b:2"), hosts("a:1,b:2")]
OTHERS = [hosts("a:1,b:1", "--transport", "udp"), hosts("a:2,b:1", "--transport", "ofi,tcp")]


def name_of(on: list[str]) -> str:
    return "_".join(word for word in on if not word.startswith("--"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for source in (*PROGRAMS.glob("*.c"), *PROGRAMS.glob("*.cpp")):
        build(folder, source)
    return folder


def right(done: subprocess.CompletedProcess[str]) -> None:
    if "apt-get install" in done.stderr:  # libfabric, or its headers for the build
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"right \d\n", done.stdout), done.stdout


@pytest.mark.parametrize("on", ONE_HOST + TWO_HOSTS + OTHERS, ids=name_of)
def test_random_accesses_agree_with_a_model(programs: Path, on: list[str]) -> None:
    right(run(programs / "accesses", 20, 1 + len(" ".join(on)), on=on))


@pytest.mark.parametrize("on", ONE_HOST + TWO_HOSTS + OTHERS, ids=name_of)
def test_all_functions(programs: Path, on: list[str]) -> None:
    right(run(programs / "functions", on=on))


@pytest.mark.parametrize("on", [["-n", "1"], ["-n", "3"]], ids=name_of)
def test_overloads_of_cpp(programs: Path, on: list[str]) -> None:
    right(run(programs / "overloads", on=on))


@pytest.mark.parametrize("on", [["-n", "2"], hosts("a:2,b:1")], ids=name_of)
def test_threads_of_a_pe_at_once(programs: Path, on: list[str]) -> None:
    right(run(programs / "threads", on=on))


@pytest.mark.parametrize("on", [["-n", "1"], ["-n", "3"], hosts("a:1,b:1")], ids=name_of)
def test_a_tool_comes_before_functions_and_calls_them_by_other_names(programs: Path, on: list[str]) -> None:
    right(run(programs / "tool", on=on))


def test_a_program_under_the_address_sanitizer(tmp_path: Path) -> None:
    """What it puts between variables does not keep them from being shared."""
    right(run(build(tmp_path, PROGRAMS / "accesses.c", "-fsanitize=address"), 3, 1, on=["-n", "2"]))


SENTENCES = {
    "before_init": "shmem_long_p: there is no job; call shmem_init before",
    "memory_before_init": "shmem_malloc: there is no job; call shmem_init before",
    "stack": r"shmem_long_p: 0x[0-9a-f]+ is not in symmetric memory; use what shmem_malloc gave, or a global",
    "malloc": r"shmem_putmem: 0x[0-9a-f]+ is not in symmetric memory",
    "get_stack": r"shmem_long_get: 0x[0-9a-f]+ is not in symmetric memory",
    "beyond": r"shmem_putmem: 1099511627776 bytes at 0x[0-9a-f]+ reach beyond the end of the symmetric heap",
    "pe": "shmem_long_p: PE 2 was given; there are PEs 0 to 1",
    "negative_pe": "shmem_long_atomic_add: PE -1 was given; there are PEs 0 to 1",
    "count": "shmem_long_put: 18446744073709551615 elements were given",
    "misaligned": "shmem_long_atomic_add: the address is not at a multiple of the 8 bytes of its type",
    "comparison": "shmem_long_wait_until: a comparison of 9 was given; allowed are SHMEM_CMP_EQ",
    "wait_stack": r"shmem_long_wait_until: 0x[0-9a-f]+ is not in symmetric memory",
    "signal": "shmem_putmem_signal: a signal operation of 7 was given",
    "step": "shmem_long_iput: steps of 0 and 1 were given; allowed are 1 and more",
    "free": "shmem_free: the address is not the begin of memory that shmem_malloc gave",
    "free_twice": "shmem_free: the address is not the begin of memory that shmem_malloc gave, or it was freed before",
    "different": "shmem_malloc: the PEs ask for different memory: 8 to 16 bytes, this one for",
    "alignment": "shmem_align: an alignment of 24 was given; allowed are powers of two",
    "team": "shmem_team_sync: the team was destroyed, or is none",
    "invalid_team": "shmem_team_sync: SHMEM_TEAM_INVALID was given",
    "root": "shmem_long_broadcast: root 2 was given; the team has PEs 0 to 1",
    "active_set": "shmem_barrier: PE_start 0, logPE_stride 1 and PE_size 2 were given; these must be PEs of 0 to 1",
    "context": "shmem_ctx_long_p: the context was destroyed, or is none",
    "lock": "shmem_clear_lock: this PE does not hold the lock",
    "lock_twice": "shmem_set_lock: this PE holds the lock already",
    "split": "shmem_team_split_strided: start 0, stride 2, size 2 were given",
}


@pytest.mark.parametrize("what", SENTENCES)
def test_wrong_use_ends_the_job_with_a_sentence(programs: Path, what: str) -> None:
    done = run(programs / "wrong", what, on=["-n", "2"])
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.search(rf"^unisono shmem( \(PE [01]\))?: {SENTENCES[what]}", done.stderr, re.MULTILINE), done.stderr


def test_a_wait_ends_at_its_deadline(programs: Path) -> None:
    done = run(programs / "wrong", "deadline", on=["-n", "1"], UNISONO_SHMEM_TIMEOUT_S="0.5")
    assert done.returncode == 1
    assert "shmem_long_wait_until: waited 0.5 s for memory of this PE that nobody has changed" in done.stderr


def test_a_deadline_may_only_warn(programs: Path) -> None:
    on = ["-n", "1", "--timeout", "3"]
    done = run(programs / "wrong", "deadline", on=on, UNISONO_SHMEM_TIMEOUT_S="0.5", UNISONO_DEADLINES="warn")
    assert done.returncode != 0
    assert done.stderr.count("unisono shmem (PE 0): shmem_long_wait_until: waited") > 2, done.stderr


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("-3M", "give bytes, as 1048576, or with K, M, G or T"), ("12Q", 'is "12Q"; give'), ("", "give bytes")],
)
def test_a_size_that_is_none(programs: Path, value: str, sentence: str) -> None:
    done = run(programs / "functions", on=["-n", "1"], SHMEM_SYMMETRIC_SIZE=value)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_a_small_heap_is_large_enough_for_what_fits(programs: Path) -> None:
    right(run(programs / "functions", on=["-n", "2"], SHMEM_SYMMETRIC_SIZE="64K"))
    done = run(programs / "accesses", on=["-n", "2"], SHMEM_SYMMETRIC_SIZE="64K")
    assert done.returncode == 3
    assert "counters && heap && bytes" in done.stderr


@pytest.mark.parametrize("on", [["-n", "2"], hosts("a,b")], ids=name_of)
@pytest.mark.parametrize("what", ["global_exit", "global_exit_in_barrier"])
def test_global_exit_ends_all_with_its_status(programs: Path, what: str, on: list[str]) -> None:
    done = run(programs / "wrong", what, on=on)
    assert done.returncode == 7, done.stderr
    assert "reached" not in done.stdout
    assert "unisono shmem" not in done.stderr


def test_who_returns_from_main_leaves_in_order(programs: Path) -> None:
    done = run(programs / "wrong", "no_finalize", on=["-n", "2"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("on", [["-n", "3"], hosts("a,b,a")], ids=name_of)
@pytest.mark.parametrize("what", ["wait_until", "test", "barrier", "lock", "atomic", "get", "put", "reduce"])
def test_when_a_pe_is_killed_the_job_ends_with_a_sentence(programs: Path, what: str, on: list[str]) -> None:
    done = run(programs / "killed", what, on=[*on, "--keep-going"])
    assert done.returncode != 0
    assert "went on" not in done.stdout
    assert re.search(r"unisono shmem \(PE [02]\): shmem_\w+: .*(PE|rank) 1\b.*(died|left)", done.stderr), done.stderr
