"""What ranks write, as it leaves `unisono run`: nothing is lost, lines are whole, equal tracebacks appear once."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from unisono.cli.tracebacks import grouped, heading, is_cut, named

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "unisono", "run"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "PYTHONPATH": str(ROOT / "python")
}
SECONDS = 100


def run(*arguments: object, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT | more,
        input=stdin,
    )  # fmt: skip


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS,
        env=ENVIRONMENT | {"RUN": " ".join(RUN)},
    )  # fmt: skip


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text("import os, sys, time\nrank = int(os.environ['UNISONO_RANK'])\n" + text)
        return path

    return write


def meet(folder: Path, ranks: int) -> str:
    """Lines of a program behind which all ranks are there."""
    return (
        f"open(f'{folder}/{{rank}}', 'w').close()\n"
        f"while len([name for name in os.listdir('{folder}') if name.isdigit()]) < {ranks}: time.sleep(0.01)\n"
    )


# ------------------------------------------------------------------------------------------- nothing is lost


def test_what_was_printed_before_a_hang_is_seen(script) -> None:
    program = script("print('step', 10 + rank)\ntime.sleep(600)\n")
    done = shell(f"$RUN -n 2 --timeout 3 {program} | cat; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 124
    assert sorted(done.stdout.splitlines()) == ["step 10", "step 11"]


def test_lines_of_all_ranks_survive_the_failure_of_one(script, tmp_path: Path) -> None:
    program = script(f"print('line of', rank)\n{meet(tmp_path, 4)}if rank == 2: sys.exit(3)\ntime.sleep(600)\n")
    done = run("-n", 4, program)
    assert done.returncode == 3
    assert sorted(done.stdout.splitlines()) == [f"line of {rank}" for rank in range(4)]


@pytest.mark.parametrize("way", ["lines", "blocks"])
def test_lines_of_a_c_program_survive(tmp_path: Path, way: str) -> None:
    """C's stdout is a block of 4 KB in front of a pipe, unless the library has it written by lines."""
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    assert libraries, "no build/*/libunisono.so; run `make build` first"
    source = tmp_path / "hang.c"
    source.write_text(
        "#include <stdio.h>\n#include <unistd.h>\n#include <unisono/unisono.h>\n"
        "int main(void) {\n  unisono_context* context;\n  unisono_communicator* world;\n  uint32_t rank;\n"
        '  printf("before\\n");\n'
        "  if (unisono_init(NULL, &context) || unisono_world(context, &world)) return 1;\n"
        '  unisono_communicator_rank(world, &rank);\n  printf("after %u\\n", rank);\n  pause();\n}\n'
    )
    folder = libraries[-1].parent
    subprocess.run(
        ["gcc", f"-I{ROOT}/driver/include", source, f"-L{folder}", "-lunisono", f"-Wl,-rpath,{folder}", "-o",
         tmp_path / "hang"],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    more = {} if way == "lines" else {"UNISONO_STDOUT": way}
    done = run("-n", 2, "--timeout", 5, tmp_path / "hang", **more)
    assert done.returncode == 124
    expected = ["after 0", "after 1", "before", "before"] if way == "lines" else []
    assert sorted(done.stdout.splitlines()) == expected


def test_unfinished_lines_are_written_at_the_end() -> None:
    done = run("-n", 3, "sh", "-c", "printf 'end of '$UNISONO_RANK")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"end of {rank}" for rank in range(3)]
    done = run("-n", 2, "--timeout", 2, "sh", "-c", "printf 'begin of '$UNISONO_RANK; sleep 600")
    assert sorted(done.stdout.splitlines()) == ["begin of 0", "begin of 1"]


def test_one_rank_writes_what_it_writes() -> None:
    """Byte for byte, with nothing added at the end."""
    data = bytes(range(256)) * 3000
    code = f"import sys; sys.stdout.buffer.write(bytes(range(256)) * {len(data) // 256})"
    for ranks, only in ((1, ""), (2, "if __import__('os').environ['UNISONO_RANK'] == '0': ")):
        done = subprocess.run(
            [*RUN, "-n", str(ranks), sys.executable, "-c", code.replace("sys.stdout", f"{only}sys.stdout", 1)]
            if not only
            else [*RUN, "-n", str(ranks), sys.executable, "-c", f"import sys\n{only}{code.partition('; ')[2]}"],
            capture_output=True, timeout=SECONDS, env=ENVIRONMENT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == data


# ------------------------------------------------------------------------------------------- lines are whole


@pytest.mark.parametrize("prefix", [False, True])
def test_pieces_of_lines_do_not_mix(script, prefix: bool) -> None:
    """As `print` of an unbuffered Python writes them, with time in between; both streams into one pipe."""
    ranks, lines = 4, 30
    program = script(
        f"for line in range({lines}):\n"
        "    for piece in (rank, ':', line, ' ', str(rank) * (1 + 37 * line % 500), '\\n'):\n"
        "        print(piece, end='', file=(sys.stdout, sys.stderr)[line % 2])\n"
        "        time.sleep(0.001 * (rank + 1))\n"
    )
    done = subprocess.run(
        [*RUN, "-n", str(ranks), *["--prefix"] * prefix, str(program)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[{rank}] "[: 4 * prefix] + f"{rank}:{line} {str(rank) * (1 + 37 * line % 500)}"
        for rank in range(ranks)
        for line in range(lines)
    )


def test_arrays_of_several_ranks(script) -> None:
    program = script(
        "import numpy as np, unisono\nwith unisono.init() as context:\n    comm = context.world\n"
        "    mine = np.arange(6, dtype=np.float32) * (rank + 1)\n    total = comm.allreduce(mine)\n"
        "    print(comm.rank, total, mine)\n"
    )
    done = run("-n", 4, program)
    assert done.returncode == 0, done.stderr
    assert [re.fullmatch(r"\d \[[^][]*\] \[[^][]*\]", line) is not None for line in done.stdout.splitlines()] == [
        True
    ] * 4


def test_long_lines_are_whole(script) -> None:
    """Longer than the launcher keeps."""
    program = script("sys.stdout.write(str(rank) * 3_000_000 + '\\n')\n")
    done = run("-n", 3, program)
    assert sorted(done.stdout.splitlines()) == [str(rank) * 3_000_000 for rank in range(3)]


def test_memory_is_bounded_and_nothing_lost_when_nobody_reads(script) -> None:
    size = 100_000_000
    program = script(
        f"data = bytes([65 + rank]) * 1_000_000\n"
        f"for _ in range({size} // len(data)): sys.stdout.buffer.write(data)\nsys.stdout.buffer.write(b'\\n')\n"
    )
    with subprocess.Popen([*RUN, "-n", "1", "--prefix", str(program)], stdout=subprocess.PIPE, env=ENVIRONMENT) as job:
        assert job.stdout is not None
        time.sleep(1)
        got = len(job.stdout.read(size // 2))
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{job.pid}/status").read_text())
        got += len(job.stdout.read())
    assert got == size + len("[0] \n")
    assert peak is not None
    assert int(peak[1]) < 100_000, "kB, of which Python and NumPy have more than the half"


def test_a_flood_does_not_drown_the_others(script) -> None:
    program = script(
        "if rank == 0:\n    while True: print('flood' * 10)\n"
        "time.sleep(1)\n"
        "for line in range(3): print('still', rank, line); time.sleep(0.1)\n"
        "sys.exit(rank * 5)\n"
    )
    with subprocess.Popen([*RUN, "-n", "2", str(program)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as job:
        assert job.stdout is not None
        kinds = {"flood" * 10: 0}
        for line in job.stdout:
            kinds[line.rstrip("\n")] = kinds.get(line.rstrip("\n"), 0) + 1
    assert job.returncode == 5
    assert set(kinds) == {"flood" * 10, *(f"still 1 {line}" for line in range(3))}


def test_a_line_without_end_does_not_stop_the_others(script, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = script(
        "if rank == 0:\n    while True: sys.stdout.write('endless' * 1000)\n"
        "time.sleep(1)\nprint('still', rank)\n"
        "for _ in range(400):\n"
        f"    if os.path.exists('{seen}'): sys.exit(5)\n"
        "    time.sleep(0.1)\n"
        "sys.exit(6)\n"
    )
    with subprocess.Popen([*RUN, "-n", "2", str(program)], stdout=subprocess.PIPE, env=ENVIRONMENT) as job:
        assert job.stdout is not None
        end = b"\n"
        while piece := job.stdout.read1(1 << 20):  # more than this process could keep
            if b"\nstill 1\n" in end + piece:
                seen.touch()
            end = piece[-16:]
    assert job.returncode == 5


# ------------------------------------------------------------------------------------------- prompts


def test_a_prompt_is_seen_before_it_is_answered(script) -> None:
    program = script("if rank == 0: print('hello', input('name? '))\n")
    with subprocess.Popen(
        [*RUN, "-n", "3", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.read(6) == b"name? "
        job.stdin.write(b"Ada\n")
        job.stdin.flush()
        assert job.stdout.read() == b"hello Ada\n"
    assert job.returncode == 0


def test_others_do_not_wait_for_ever_behind_a_prompt(script) -> None:
    program = script(
        "if rank == 0: print('hello', input('name? '))\nelse:\n    time.sleep(2)\n    print('working on it')\n"
    )
    with subprocess.Popen(
        [*RUN, "-n", "2", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.read(len(b"name? \nworking on it\n")) == b"name? \nworking on it\n"
        job.stdin.write(b"Ada\n")
        job.stdin.flush()
        assert job.stdout.read() == b"hello Ada\n"


def test_on_a_terminal(script) -> None:
    """Ranks write into pipes there too, know its width, and what they ask is seen."""
    program = script("print('terminal', sys.stdout.isatty(), os.environ.get('COLUMNS'))\nif rank == 0: input('go? ')\n")
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(ENVIRONMENT)
        os.execv(sys.executable, [*RUN, "-n", "2", str(program)])
    seen = b""
    deadline = time.monotonic() + SECONDS
    answered = False
    while time.monotonic() < deadline:
        if select.select([master], [], [], 1)[0]:
            try:
                seen += os.read(master, 4096)
            except OSError:
                break
        if b"go? " in seen and not answered:
            answered = True
            os.write(master, b"yes\n")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0, seen
    assert seen.count(b"terminal False 80") == 2


# ------------------------------------------------------------------------------------------- tracebacks


def test_equal_tracebacks_appear_once(script, tmp_path: Path) -> None:
    program = script(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"{meet(tmp_path, 4)}"
        "raise ValueError('no such colour')\n"
    )
    done = run("-n", 4, program)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == done.stderr.count("ValueError: no such colour") == 1
    assert done.stderr.startswith("ranks 0–3:\nTraceback (most recent call last):\n")
    for path in tmp_path.glob("[0-3]"):
        path.unlink()
    done = run("-n", 4, "--prefix", program)
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.startswith("ranks 0–3:\n[0–3] Traceback (most recent call last):\n[0–3]   File")


def test_different_tracebacks_appear_all(script, tmp_path: Path) -> None:
    program = script(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"{meet(tmp_path, 4)}"
        "print('ahead', file=sys.stderr)\nraise ValueError(f'colour {rank % 2}')\n"
    )
    done = run("-n", 4, program)
    assert done.stderr.count("Traceback") == 2, done.stderr
    assert "ranks 0, 2:\nTraceback" in done.stderr
    assert "ranks 1, 3:\nTraceback" in done.stderr
    assert done.stderr.count("ahead") == 4


def test_a_program_goes_on_after_a_traceback(script) -> None:
    program = script(
        "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()\n"
        "print('and on', rank, file=sys.stderr)\n"
    )
    done = run("-n", 2, program)
    assert done.returncode == 0
    assert done.stderr.count("Traceback") == done.stderr.count("ZeroDivisionError: ") == 2 or "ranks 0–1" in done.stderr
    assert "and on 0\n" in done.stderr
    assert "and on 1\n" in done.stderr


HEAD = b'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n'


def test_alike_but_for_the_ranks_own_numbers() -> None:
    def text(rank: int, pid: int) -> bytes:
        return HEAD + b"DeadlineError: barrier (rank %d): rank 3 (pid 77) has not come to rank %d, pid %d\n" % (
            rank, rank, pid,
        )  # fmt: skip

    (group,) = grouped([(rank, 100 + rank, text(rank, 100 + rank)) for rank in (2, 0, 1)])
    assert heading(group) == "ranks 0–2 (the words of rank 2):"
    assert group.text == text(2, 102)
    # A number of another rank is no number of one's own.
    assert len(grouped([(0, 100, text(0, 100)), (1, 101, text(0, 101))])) == 2


def test_a_traceback_that_was_cut_off_is_like_the_whole_one() -> None:
    whole = HEAD + b"ValueError: x\n"
    assert is_cut(HEAD)
    assert not is_cut(whole)
    (group,) = grouped([(1, 11, HEAD), (0, 10, whole)])
    assert group.text == whole
    assert heading(group) == "ranks 0–1:"
    assert named([0, 2, 3, 4, 9]) == "ranks 0, 2–4, 9"
    assert named([7]) == "rank 7"


# ------------------------------------------------------------------------------------------- closed and broken


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("prefix", ["", "--prefix"])
def test_closed_streams(script, closed: str, prefix: str) -> None:
    program = script("print('out')\nprint('err', file=sys.stderr)\nsys.exit(4 * rank)\n")
    done = shell(f"$RUN -n 2 {prefix} {program} {closed}")
    assert done.returncode == 4
    assert "AttributeError" not in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout == "") == (">&-" in closed.split())
    assert ("err" in done.stderr) == ("2>&-" not in closed)


def test_other_commands_with_closed_streams() -> None:
    done = shell("${RUN% run} ps >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_ends_the_job(script) -> None:
    program = script("while True: print('line', rank); time.sleep(0.01)\n")
    done = shell(f"$RUN -n 2 {program} | head -1; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 128 + signal.SIGPIPE
    assert done.stdout in ("line 0\n", "line 1\n")
    assert done.stderr == ""


def test_a_reader_that_does_not_read_holds_up_no_deadline(script) -> None:
    program = script("while True: print('line', rank)\n")
    with subprocess.Popen(
        [*RUN, "-n", "2", "--timeout", "2", str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT,
    ) as job:  # fmt: skip
        assert job.stdout is not None
        assert job.stderr is not None
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
        deadline = time.monotonic() + 30
        while len(children.read_text().split()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        while children.read_text().split() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert children.read_text() == ""
        # All that has been written comes when it is read, and then the launcher ends.
        lines = job.stdout.read().splitlines()
        assert set(lines[:-2]) <= {"line 0", "line 1"}
        assert len(lines) > 1000
        assert "has not ended within 2 s" in job.stderr.read()
    assert job.returncode == 124


def test_a_full_disk_is_named(script) -> None:
    program = script("while True: print('line', rank)\n")
    done = shell(f"$RUN -n 2 {program} >/dev/full")
    assert done.returncode == 1
    assert "standard output cannot be written: No space left on device" in done.stderr
