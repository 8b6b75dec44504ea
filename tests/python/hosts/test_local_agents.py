"""Jobs of two hosts that are only names: agents on this machine, TCP between their ranks."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .support import ENVIRONMENT, EXCHANGE, LOCAL, ROOT, RUN, SECONDS, agents_of, alive, gone, run, start


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    path = tmp_path / "exchange.py"
    path.write_text(EXCHANGE)
    return path


def numbers(job: subprocess.Popen[str], count: int) -> list[int]:
    """Lines with a number that a job writes at its begin."""
    assert job.stdout is not None
    return [int(job.stdout.readline()) for _ in range(count)]


# ------------------------------------------------------------------------------------------- it works


@pytest.mark.parametrize("hosts", ["a:2,b:2", "a,b:2,a", "a,b,c", "a:3"])
def test_data_between_hosts(exchange: Path, hosts: str) -> None:
    done = run("--hosts", hosts, "--agent", "local", exchange)
    assert done.returncode == 0, done.stderr
    of_rank = {"a:2,b:2": "aabb", "a,b:2,a": "abba", "a,b,c": "abc", "a:3": "aaa"}[hosts]
    assert sorted(done.stdout.splitlines()) == [
        f"right {rank} {len(of_rank)} {host}" for rank, host in enumerate(of_rank)
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("transport", "impairment"),
    [("udp", ""), ("udp,tcp", "loss=0.02,reorder=0.1,duplicate=0.01,seed=5"), ("udp,tcp", "loss=1")],
)
def test_data_by_udp(exchange: Path, transport: str, impairment: str) -> None:
    """Through a network that loses some, or all: then TCP carries what UDP cannot."""
    done = run(
        "--hosts", "a:2,b:1", "--agent", "local", "--transport", transport,
        "--env", f"UNISONO_UDP_IMPAIR={impairment}", exchange,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["right 0 3 a", "right 1 3 a", "right 2 3 b"]


QUIET_HELPER = """
import time
from pathlib import Path
import numpy as np
import unisono

MESSAGES = 3000

def switches():
    total = 0
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "unisono-helper\\n":
            lines = (task / "status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return total

with unisono.init() as context:
    comm = context.world
    mine = np.full(4, comm.rank)
    peer = 1 - comm.rank
    def exchange(messages):
        for _ in range(messages):
            if comm.rank == 0:
                comm.send(mine, peer)
            assert (comm.recv(np.empty_like(mine), peer) == peer).all()
            if comm.rank == 1:
                comm.send(mine, peer)
    exchange(50)
    before, begin = switches(), time.monotonic()
    exchange(MESSAGES)
    took, woken = time.monotonic() - begin, switches() - before
    # For acknowledgements, which are due after 1 ms, and perhaps as a rank waits where it looks; not for every message.
    assert woken <= 50 + 4 * took * 1000, (woken, took)
    print("quiet")
"""


def test_no_thread_is_woken_for_each_message_that_may_have_to_go_again(tmp_path: Path) -> None:
    path = tmp_path / "helper.py"
    path.write_text(QUIET_HELPER)
    done = run("--hosts", "a,b", "--agent", "local", "--transport", "udp", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["quiet", "quiet"]


LOOP = """
import os
import select
import signal
import subprocess
import time
import numpy as np
import unisono

with unisono.init() as context:
    comm = context.world
    peer = 1 - comm.rank
    for _ in range(3):
        comm.barrier()
    if comm.rank == 1:
        # Stopped, it acknowledges nothing, so rank 0 asks less and less often.
        waker = subprocess.Popen(["sh", "-c", f"sleep 1.5; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
        waker.wait()
        comm.send(np.array([time.monotonic()]), peer)
        comm.recv(np.empty(3), peer)
    else:
        comm.send(np.arange(3.0), peer)
        time.sleep(1.1)
        sent = np.empty(1)
        request = comm.recv_async(sent, peer)
        while not request.test():
            if not context.arm():
                assert select.select([context], [], [], 30)[0]
        late = time.monotonic() - sent[0]
        assert late < 0.3, late
    print("heard")
"""


def test_a_loop_hears_of_a_message_while_another_may_have_to_go_again(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    done = run("--hosts", "a,b", "--agent", "local", "--transport", "udp", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["heard", "heard"]


def test_udp_that_is_blocked_where_nothing_else_is_allowed(exchange: Path) -> None:
    done = run(
        "--hosts", "a,b", "--agent", "local", "--transport", "udp", "--env", "UNISONO_UDP_IMPAIR=loss=1", exchange
    )
    assert done.returncode == 1
    # The rank whose patience ends first says so; the other one may repeat its words, or only see it go.
    assert re.search(r"on (b cannot be sent data from a|a cannot be sent data from b): tried by udp: 127", done.stderr)


@pytest.mark.parametrize(
    ("transport", "provider"), [("ofi", "tcp;ofi_rxm"), ("ofi,tcp", "tcp;ofi_rxm"), ("ofi", "shm")]
)
def test_data_by_libfabric(exchange: Path, transport: str, provider: str) -> None:
    hosts = ["--hosts", "a:2,b:1", "--agent", "local", "--transport", transport]
    done = run(*hosts, "--env", f"UNISONO_OFI_PROVIDER={provider}", exchange)
    if "apt-get install" in done.stderr:  # libfabric, or its headers for the build
        pytest.skip(done.stderr.splitlines()[-1])
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["right 0 3 a", "right 1 3 a", "right 2 3 b"]


def test_a_provider_of_libfabric_that_there_is_not(exchange: Path) -> None:
    hosts = ["--hosts", "a,b", "--agent", "local", "--transport", "ofi"]
    done = run(*hosts, "--env", "UNISONO_OFI_PROVIDER=pigeons", exchange)
    assert done.returncode == 1
    assert "pigeons" in done.stderr or "apt-get install" in done.stderr


def test_a_job_is_formed_again(tmp_path: Path) -> None:
    """Rank 0 listens once more where it did."""
    script = tmp_path / "again.py"
    script.write_text(
        "import numpy as np, unisono\n"
        "for _ in range(2):\n"
        "    with unisono.init() as context: print(int(context.world.allreduce(np.ones(1))[0]))\n"
    )
    done = run(*LOCAL, script)
    assert (done.stdout.split(), done.stderr) == (["4"] * 8, "")


@pytest.mark.parametrize(
    ("hosts", "late", "said"),
    [
        ("a:2,b:2", (1, 2, 3), "rank 1 on a, ranks 2 and 3 on b have not come within 0.3 s"),
        ("a,b:2,a", (3,), "rank 3 on a has not come within 0.3 s"),
    ],
)
def test_late_ranks_are_listed_by_host(tmp_path: Path, hosts: str, late: tuple[int, ...], said: str) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        f"import os, time, unisono\nif int(os.environ['UNISONO_RANK']) in {late}: time.sleep(60)\nunisono.init()\n"
    )
    done = run("--hosts", hosts, "--agent", "local", script, UNISONO_JOIN_TIMEOUT_S="0.3")
    assert done.returncode == 1
    assert said in done.stderr


def test_a_hostfile(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("a slots=2\nb:1\n")
    done = run("--hostfile", path, "-n", 3, "--agent", "local", "sh", "-c", "echo $UNISONO_RANK$UNISONO_HOST")
    assert sorted(done.stdout.split()) == ["0a", "1a", "2b"]


def test_environment(tmp_path: Path) -> None:
    """Of a job around it, nothing is inherited; the secret is in no argument."""
    words = (
        "echo $COLOUR $UNISONO_LOG $UNISONO_TRANSPORT $UNISONO_INTERFACES ${#UNISONO_SECRET} "
        "${UNISONO_SECRET_FILE-no}; pwd; cat /proc/$PPID/cmdline | tr '\\0' ' '"
    )
    done = subprocess.run(
        [*RUN, *LOCAL, "--env", "COLOUR=blue", "--transport", "tcp", "--interfaces", "lo", "sh", "-c", words],
        capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path,
        env=ENVIRONMENT
        | {"UNISONO_LOG": "warn", "UNISONO_SECRET_FILE": "/x", "UNISONO_JOIN": "x", "UNISONO_HOST": "here",
           "UNISONO_RANK": "9", "COLOUR": "red"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("blue warn tcp lo 64 no") == 4
    assert lines.count(str(tmp_path)) == 4
    assert not re.search("[0-9a-f]{32}", done.stdout)


def test_a_job_of_this_machine_inherits_no_job(exchange: Path) -> None:
    done = run("-n", 2, "--env", "COLOUR=blue", exchange, UNISONO_JOIN="tcp://127.0.0.1:9", UNISONO_RANK="7")
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------- what ranks write


def test_lines_are_whole_and_none_is_lost(tmp_path: Path) -> None:
    lines = 3000
    script = tmp_path / "writes.py"
    script.write_text(
        "import os\nrank = os.environ['UNISONO_RANK']\n"
        f"for line in range({lines}):\n"
        "    for piece in (rank, ':', str(line), ' ', rank * (1 + 37 * line % 500), '\\n'):\n"
        "        os.write(1 + line % 2, piece.encode())\n"
        "os.write(1, b'end of ' + rank.encode())\n"
    )
    done = subprocess.run(
        [*RUN, *LOCAL, "--prefix", str(script)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(
        [f"[{r}] {r}:{line} {str(r) * (1 + 37 * line % 500)}" for r in range(4) for line in range(lines)]
        + [f"[{r}] end of {r}" for r in range(4)]
    )


def test_one_rank_writes_byte_by_byte() -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4000)"
    done = subprocess.run(
        [*RUN, "--hosts", "a", "--agent", "local", sys.executable, "-c", code],
        capture_output=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == bytes(range(256)) * 4000


def test_memory_is_bounded_and_nothing_lost_when_nobody_reads() -> None:
    size = 30_000_000
    code = f"import sys\nfor _ in range({size // 100_000}): sys.stdout.write('x' * 99_999 + '\\n')"
    with subprocess.Popen([*RUN, *LOCAL, sys.executable, "-c", code], stdout=subprocess.PIPE, env=ENVIRONMENT) as job:
        assert job.stdout is not None
        first = job.stdout.read(1)
        time.sleep(2)
        pids = [job.pid, *map(int, Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split())]
        for pid in pids:
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            assert peak is not None
            assert int(peak[1]) < 100_000, "kB, of which Python and NumPy have more than the half"
        assert len(first + job.stdout.read()) == 4 * size
    assert job.returncode == 0


def test_equal_tracebacks_appear_once(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "import unisono\nunisono.init().world.barrier()\nraise ValueError('no such colour')\n"
    )
    done = run(*LOCAL, script)
    assert done.returncode == 1
    assert done.stderr.startswith("ranks 0–3:\nTraceback (most recent call last):\n")
    assert done.stderr.count("Traceback") == 1


def test_a_reader_that_goes_ends_the_job() -> None:
    words = "while :; do echo line; sleep 0.01; done"
    done = subprocess.run(
        ["bash", "-c", f"{' '.join([*RUN, *LOCAL])} sh -c '{words}' | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (141, "line\n", "")


def test_what_ranks_leave_behind(tmp_path: Path) -> None:
    """It ends, or keeps nobody waiting if it cannot be found."""
    done = run(*LOCAL, "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; setsid sleep 7 & exit 0")
    assert done.returncode == 0
    assert gone([int(line) for line in done.stdout.split()])


# ------------------------------------------------------------------------------------------- input


def test_input_goes_to_rank_0(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(50_000))
    done = run(*LOCAL, "cat", stdin=text)
    assert (done.returncode, done.stdout) == (0, text)
    path = tmp_path / "input"
    path.write_text(text)
    with path.open() as file:
        done = subprocess.run([*RUN, *LOCAL, "cat"], stdin=file, capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, text)


def test_input_that_nobody_reads() -> None:
    done = run(*LOCAL, "true", stdin="x" * 1_000_000)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_prompt_is_seen_before_it_is_answered() -> None:
    words = "if [ $UNISONO_RANK = 0 ]; then printf 'name? '; read name; echo hello $name; fi"
    with start(*LOCAL, "sh", "-c", words) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.read(6) == "name? "
        job.stdin.write("Ada\n")
        job.stdin.flush()
        assert job.stdout.read() == "hello Ada\n"
    assert job.returncode == 0


def test_on_a_terminal() -> None:
    words = "if [ $UNISONO_RANK = 0 ]; then printf 'name? '; read name; echo hello $name; fi; echo $COLUMNS"
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(ENVIRONMENT)
        os.execv(sys.executable, [*RUN, *LOCAL, "sh", "-c", words])
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        seen += piece
        if seen.endswith(b"name? "):
            os.write(master, b"Ada\n")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0, seen
    assert b"hello Ada" in seen
    assert seen.count(b"80\r\n") == 4


# ------------------------------------------------------------------------------------------- ends


def test_the_first_failing_rank_gives_the_status() -> None:
    begin = time.monotonic()
    done = run(*LOCAL, "sh", "-c", "[ $UNISONO_RANK != 2 ] && exec sleep 60; exit 7")
    assert done.returncode == 7
    assert "rank 2 of 4 exited with status 7; the others were ended" in done.stderr
    assert time.monotonic() - begin < 40


def test_ranks_that_do_not_heed_sigterm_are_killed(tmp_path: Path) -> None:
    words = (
        f"if [ $UNISONO_RANK = 3 ]; then trap '' TERM; touch {tmp_path}/ready; while :; do sleep 1; done; fi; "
        f"while [ ! -e {tmp_path}/ready ]; do sleep 0.05; done; exit 3"
    )
    done = run(*LOCAL, "sh", "-c", words)
    assert done.returncode == 3
    assert "1 had to be killed 5 s later" in done.stderr


def test_timeout_says_what_ranks_do(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        "import numpy as np, time, unisono\n"
        "context = unisono.init()\n"
        "if context.world.rank == 3: time.sleep(600)\n"
        "context.world.barrier()\n"
    )
    done = run(*LOCAL, "--timeout", 8, script)
    assert done.returncode == 124
    assert "has not ended within 8 s; all ranks were ended" in done.stderr
    assert "what the ranks of host a are doing:" in done.stderr
    assert "in barrier" in done.stderr
    assert "what the ranks of host b are doing:" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(number: signal.Signals) -> None:
    job = start(*LOCAL, "sh", "-c", "echo $$; exec sleep 60")
    pids = numbers(job, 4)
    agents = agents_of(job)
    job.send_signal(number)
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 128 + number
    assert f"{number.name} was passed on to all ranks" in errors
    assert gone(pids + agents)


def test_usr1_and_stopping() -> None:
    words = "trap 'echo got; exit 0' USR1; echo $$; while :; do sleep 0.05; done"
    job = start(*LOCAL, "sh", "-c", words)
    pids = numbers(job, 4)

    def states() -> set[str]:
        return {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}

    job.send_signal(signal.SIGTSTP)
    deadline = time.monotonic() + 20
    while states() != {"T"} and time.monotonic() < deadline:
        time.sleep(0.02)
    assert states() == {"T"}
    job.send_signal(signal.SIGCONT)
    job.send_signal(signal.SIGUSR1)
    output, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 0
    assert output.count("got") == 4


def test_a_signal_before_the_ranks_have_started() -> None:
    job = start("--hosts", "a:2,b:2", "--agent", "sh -c 'sleep 60' {host}", "true")
    while len(agents_of(job)) < 2:
        time.sleep(0.02)
    agents = agents_of(job)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 130
    assert "SIGINT came before the ranks had started" in errors
    assert gone(agents)


def test_a_deadline_before_the_ranks_have_started() -> None:
    done = run("--hosts", "a:2,b:2", "--timeout", 1, "--agent", "sh -c 'sleep 60' {host}", "true")
    assert done.returncode == 124


def test_the_others_go_on_without_a_killed_rank(tmp_path: Path) -> None:
    script = tmp_path / "survives.py"
    script.write_text(
        "import os, signal\nimport numpy as np\nimport unisono\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    try:\n"
        "        world.barrier()\n"
        "        if world.rank == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        world.allreduce(np.zeros(4))\n"
        "    except unisono.UnisonoError: pass\n"
        "    rest = world.shrink()\n"
        "    print('rest', int(rest.allreduce(np.ones(1))[0]))\n"
    )
    done = run(*LOCAL, "--keep-going", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["rest 3"] * 3
    assert "rank 3 was ended by SIGKILL; the others go on" in done.stderr


# ------------------------------------------------------------------------------------------- agents end


def test_an_agent_that_is_killed() -> None:
    job = start(*LOCAL, "sh", "-c", "echo $$; exec sleep 60")
    pids = numbers(job, 4)
    os.kill(agents_of(job)[1], signal.SIGKILL)
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 137
    assert "host b: its agent was ended by SIGKILL\n" in errors
    assert re.search(r"rank [23] of 4 was lost with host b; the others were ended", errors)
    assert gone(pids)


def test_an_agent_that_is_killed_with_keep_going() -> None:
    job = start(*LOCAL, "--keep-going", "sh", "-c", "echo $$; sleep 4; echo $UNISONO_RANK goes on")
    pids = numbers(job, 4)
    os.kill(agents_of(job)[1], signal.SIGTERM)
    output, errors = job.communicate(timeout=SECONDS)
    assert sorted(output.splitlines()) == ["0 goes on", "1 goes on"]
    assert "host b: its agent ended with status 143\n" in errors
    assert "rank 2 was lost with host b; the others go on" in errors
    assert gone(pids)
    assert job.returncode == 0


def test_an_agent_that_hangs() -> None:
    """It is asked, waited for, and given up."""
    job = start(*LOCAL, "sh", "-c", "echo $$; exec sleep 60")
    pids = numbers(job, 4)
    agents = agents_of(job)
    os.kill(agents[1], signal.SIGSTOP)
    job.send_signal(signal.SIGTERM)
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 143
    assert "host b: its agent does not answer" in errors
    assert gone(pids + agents)


def test_nothing_is_left_when_the_launcher_is_killed() -> None:
    job = start(*LOCAL, "sh", "-c", "echo $$; exec sleep 60")
    pids = numbers(job, 4) + agents_of(job)
    assert all(map(alive, pids))
    job.kill()
    job.wait(SECONDS)
    assert gone(pids)


def test_an_agent_ends_what_ranks_have_started_when_its_launcher_has_gone() -> None:
    """Where it is no child of the launcher, as behind ssh."""
    way = f"sh -c '{sys.executable} -m unisono.cli.agent; true' {{host}}"
    job = start("--hosts", "a:2,b:2", "--agent", way, "sh", "-c", "sleep 60 & echo $!; echo $$; wait")
    pids = numbers(job, 8)
    job.kill()
    job.wait(SECONDS)
    assert gone(pids)


# ------------------------------------------------------------------------------------------- errors before the start


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--agent", "local", "no-such-program"], 127, "there is no program no-such-program\n"),
        (["--agent", "local", "no-such-script.py"], 127, "there is no file no-such-script.py\n"),
        (["--agent", "local", "-m", "no_such.module"], 127, "there is no module no_such.module\n"),
        (["--agent", "local", f"{ROOT}/LICENSE"], 126, "LICENSE is not executable\n"),
        (["--agent", "local", "--python", "/no/python", "true"], 126, "/no/python cannot be run: No such file"),
        (["--agent", "env", "true"], 2, "no agent answers; env ended with status 127: env: "),
        (["--agent", "/no/ssh", "true"], 126, "/no/ssh cannot be run: No such file or directory\n"),
        (["--agent", "sh -c 'echo no route >&2; exit 255' {host}", "true"], 2,
         "no agent answers; sh ended with status 255: no route\n"),
        (["--agent", "sh -c 'echo Welcome' {host}", "true"], 2,
         "no agent answers; sh ended with status 0; it wrote 'Welcome'\n"),
        (["--agent", "sh -c 'printf \"\\nunisono-agent 1 0.0.7\\n\"; sleep 60' {host}", "true"], 2,
         "has Unisono 0.0.7 (protocol 1), and this is"),
    ],
)  # fmt: skip
def test_errors_before_the_start(arguments: list[str], status: int, text: str) -> None:
    """The first host that fails is named, whichever it is."""
    done = run("--hosts", "a:2,b:2", *arguments)
    assert re.match("unisono run: host [ab]: " + re.escape(text), re.sub(r"/\S*/LICENSE", "LICENSE", done.stderr))
    assert done.returncode == status
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_no_rank_starts_when_a_host_cannot(tmp_path: Path) -> None:
    """Also what only the system can say of a program ends the ranks that run by then."""
    mark = tmp_path / "mark"
    way = f"sh -c 'if [ {{host}} = b ]; then sleep 1; exit 9; fi; exec {sys.executable} -m unisono.cli.agent' {{host}}"
    done = run("--hosts", "a:2,b:2", "--agent", way, "touch", mark)
    assert done.returncode == 2
    assert "host b: no agent answers; sh ended with status 9\n" in done.stderr
    assert not mark.exists()
    script = tmp_path / "script"
    script.write_text("no interpreter is named\n")
    script.chmod(0o755)
    done = run(*LOCAL, script)
    assert done.returncode == 126
    assert f"{script} cannot be run: Exec format error\n" in done.stderr


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """On the other host."""
    folder = tmp_path / "folder"
    folder.mkdir()
    way = f"sh -c 'rmdir {folder} 2>/dev/null; cd /; exec {sys.executable} -m unisono.cli.agent' {{host}}"
    done = subprocess.run(
        [*RUN, "--hosts", "a:2,b:2", "--agent", way, "true"],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 2
    assert re.search(rf"host [ab]: the working directory {folder} cannot be entered: No such file", done.stderr)


def test_banners_are_skipped(exchange: Path) -> None:
    way = f"sh -c 'echo Welcome to {{host}}; printf prompt; exec {sys.executable} -m unisono.cli.agent' {{host}}"
    done = run("--hosts", "a:2,b:2", "--agent", way, "sh", "-c", "echo $UNISONO_RANK")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1", "2", "3"]
