"""`unisono run` as a user starts it: output, exit codes, signals, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "unisono", "run"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}
SECONDS = 60


def run(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT, input=stdin
    )


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*RUN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not reaped (by whoever adopted it) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(alive(pid) for pid in pids)


@pytest.fixture
def collective(tmp_path: Path) -> Path:
    script = tmp_path / "collective.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport unisono\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    total = world.allreduce(np.array([world.rank + 1.0]))\n"
        "    print(f'{world.rank} of {world.size}: {total[0]:g} {sys.argv[1:]}\\n', end='')\n"
    )
    return script


def test_a_script_on_several_ranks(collective: Path) -> None:
    done = run("-n", 3, collective, "--an-option", "x")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{r} of 3: 6 ['--an-option', 'x']" for r in range(3)]


def test_prefix(collective: Path) -> None:
    done = run("-n", 3, "--prefix", "--", collective)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{r}] {r} of 3: 6 []" for r in range(3)]


def test_prefix_ends_an_unfinished_line() -> None:
    done = run("-n", 2, "--prefix", "sh", "-c", "printf out$UNISONO_RANK; printf err >&2")
    assert sorted(done.stdout.splitlines()) == ["[0] out0", "[1] out1"]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_lines_are_whole_when_all_ranks_write_at_once(tmp_path: Path, unbuffered: str) -> None:
    ranks, lines = 4, 200
    script = tmp_path / "writes.py"
    script.write_text(
        "import os\nrank = os.environ['UNISONO_RANK']\n"
        f"for line in range({lines}):\n"
        "    stream = 1 + line % 2\n"
        "    for piece in (rank, ':', str(line), ' ', rank * (1 + 37 * line % 5000), '\\n'):\n"
        "        os.write(stream, piece.encode())\n"
    )
    # Both streams into one pipe: that is where lines of different streams could mix as well.
    done = subprocess.run(
        [*RUN, "-n", str(ranks), "--prefix", str(script)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[{rank}] {rank}:{line} {str(rank) * (1 + 37 * line % 5000)}" for rank in range(ranks) for line in range(lines)
    )


def test_prefixed_output_comes_in_time(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text("import time\nprint('at once')\ntime.sleep(60)\n")
    job = start("-n", 1, "--prefix", script)
    assert job.stdout is not None
    begin = time.monotonic()
    assert job.stdout.readline() == "[0] at once\n"
    assert time.monotonic() - begin < 30
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=SECONDS)


def test_a_shell_script(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho $UNISONO_RANK of $UNISONO_SIZE: $1\n")
    script.chmod(0o755)
    done = run("-n", 2, "--prefix", script, "an argument")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] 0 of 2: an argument", "[1] 1 of 2: an argument"]
    script.write_text("no interpreter is named\n")
    done = run("-n", 2, script)
    assert done.returncode == 126
    assert f"{script} cannot be run: Exec format error" in done.stderr


def test_a_module(tmp_path: Path) -> None:
    """As `python -m` finds it: from the working directory."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text(
        "import os, sys\nprint(__name__, os.environ['UNISONO_RANK'], sys.argv[1:], sys.path[0])\n"
    )
    done = subprocess.run(
        [*RUN, "-n", "2", "--prefix", "-m", "package.part", "-n", "7", "--prefix", "x"],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}] __main__ {rank} ['-n', '7', '--prefix', 'x'] {tmp_path}" for rank in range(2)
    ]


def test_a_package_that_brings_a_module(tmp_path: Path) -> None:
    done = run("-n", 2, "-m", "this", "--", "-v")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Beautiful is better than ugly.") == 2


def test_the_limit_of_open_files(tmp_path: Path) -> None:
    """The launcher takes what it may have, and the ranks have the limit that was theirs."""
    words = " ".join([*RUN, "-n", "40", "sh", "-c"])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -Sn 100; {words} 'ulimit -Sn'"], capture_output=True, text=True, timeout=SECONDS,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["100"] * 40
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 100; {words} true"], capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT
    )
    assert done.returncode == 2
    assert done.stderr == (
        "unisono run: the launcher of 40 ranks needs some 152 open files, and 100 are allowed; raise the limit "
        "(ulimit -n)\n"
    )


def test_the_first_failing_rank_gives_the_status() -> None:
    begin = time.monotonic()
    done = run("-n", 3, "sh", "-c", "[ $UNISONO_RANK != 1 ] && exec sleep 60; exit 7")
    assert done.returncode == 7
    assert "rank 1 of 3 exited with status 7; the others were ended" in done.stderr
    assert time.monotonic() - begin < 20


def test_a_rank_ended_by_a_signal() -> None:
    done = run("-n", 2, "sh", "-c", "[ $UNISONO_RANK != 0 ] && exec sleep 60; kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "rank 0 of 2 was ended by SIGSEGV" in done.stderr


def test_ranks_that_do_not_heed_sigterm_are_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = tmp_path / "stubborn.sh"
    script.write_text(
        f"if [ $UNISONO_RANK = 0 ]; then trap '' TERM; touch {ready}; while :; do sleep 1; done; fi\n"
        f"while [ ! -e {ready} ]; do sleep 0.05; done; exit 3\n"
    )
    done = run("-n", 2, "sh", script)
    assert done.returncode == 3
    assert "1 had to be killed 5 s later" in done.stderr


def test_a_rank_that_dies_is_noticed_by_the_others(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, signal\nimport numpy as np\nimport unisono\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    world.barrier()\n"
        "    if world.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    try: world.allreduce(np.zeros(4))\n"
        "    except unisono.UnisonoError as error: print(type(error).__name__, error, flush=True)\n"
    )
    done = run("-n", 3, script)
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 of 3 was ended by SIGKILL" in done.stderr
    assert "PeerDeadError" in done.stdout
    assert "rank 1" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(number: signal.Signals) -> None:
    job = start("-n", 2, "sh", "-c", "echo $$; exec sleep 60")
    assert job.stdout is not None
    pids = [int(job.stdout.readline()) for _ in range(2)]
    job.send_signal(number)
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 128 + number
    assert f"{number.name} was passed on to all ranks" in errors
    assert gone(pids)


def test_ctrl_c_interrupts_a_wait(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        "import os\nimport numpy as np\nimport unisono\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    world.barrier()\n"
        "    try:\n"
        "        os.write(1, b'ready\\n')\n"
        "        world.recv(np.zeros(1), (world.rank + 1) % 2)\n"
        "    except KeyboardInterrupt: os.write(1, b'interrupted\\n'); raise SystemExit(9)\n"
    )
    job = start("-n", 2, script)
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    job.send_signal(signal.SIGINT)
    output, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 9
    assert output.count("interrupted") == 2


def test_nothing_is_left_when_the_launcher_is_killed() -> None:
    job = start("-n", 2, "sh", "-c", "echo $$; exec sleep 60")
    assert job.stdout is not None
    pids = [int(job.stdout.readline()) for _ in range(2)]
    job.kill()
    job.wait(SECONDS)
    assert gone(pids)


def test_what_ranks_leave_behind_ends_with_them() -> None:
    done = run("-n", 2, "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    assert done.returncode == 0
    assert gone([int(line) for line in done.stdout.split()])


def test_timeout() -> None:
    done = run("-n", 2, "--timeout", 0.5, "sleep", 60)
    assert done.returncode == 124
    assert "has not ended within 0.5 s" in done.stderr


def test_input_goes_to_rank_0() -> None:
    done = run("-n", 2, "--prefix", "cat", stdin="a line\n")
    assert done.returncode == 0
    assert done.stdout == "[0] a line\n"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["-n", 0, "true"], 2, "allowed are 1 to 1024"),
        (["-n", 200000, "true"], 2, "'200000' ranks were asked for; allowed are 1 to 1024"),
        (["-n", -1, "true"], 2, "allowed are 1 to 1024"),
        (["-n", "two", "true"], 2, "'two' ranks were asked for"),
        (["-n", 2, "no-such-program"], 127, "there is no program no-such-program"),
        (["-n", 2, "no-such-script.py"], 127, "there is no file no-such-script.py"),
        (["-n", 2, ROOT / "LICENSE"], 126, "is not executable"),
        (["-n", 2, "--timeout", 0, "true"], 2, "no number of seconds"),
        (["true"], 2, "-n"),
        (["-n", 4], 2, "no program was given; name the one to run on 4 ranks: `unisono run -n 4 hello.py`"),
        (["-n", 1, "--"], 2, "no program was given; name the one to run on 1 rank:"),
        (["-n", 4, "-m"], 2, "-m: name a module, such as"),
        (["-n", 4, "-m", "no_such.module"], 127, "there is no module no_such.module"),
        (["-n", 2, "--trace", "t", "true"], 2, "--trace: the native engine writes no trace yet; a later release will."),
    ],
)
def test_command_line_errors(arguments: list[object], status: int, text: str) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert text in done.stderr
