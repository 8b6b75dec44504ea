"""How ranks leave: in order, at the end of Python, by exit, by exec; and what the others learn of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., subprocess.CompletedProcess[str]]

HEAD = """
import atexit, os, subprocess, sys, threading, time
import numpy as np

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"
"""


def job(run: Run, tmp_path: Path, ranks: int, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "job.py"
    script.write_text(HEAD + text)
    return run([], "run", "-n", ranks, "--timeout", 60, sys.executable, script, *arguments)


@pytest.mark.parametrize(
    ("how", "words"),
    [("close", "has left the job"), ("exit", "has left the job"), ("_exit", "has died"), ("fork", "has died")],
)
def test_what_was_sent_before_is_still_taken(run: Run, tmp_path: Path, how: str, words: str) -> None:
    text = """
import unisono
how = sys.argv[1]
context = unisono.init(timeout=30)
world = context.world
world.barrier()
if world.rank == 1:
    world.send_async(np.arange(3.0), 0)
    if how == "close":
        context.close()
        time.sleep(3)  # the process is there, and the rank is not
    elif how == "fork" and os.fork() == 0:
        time.sleep(30)  # a child that lives on stands for nobody
    if how in ("_exit", "fork"):
        os._exit(0)
    sys.exit(0)
time.sleep(0.5)
say(world.recv(np.zeros(3), 1))
begin = time.monotonic()
say(error_of(world.recv, np.zeros(3), 1))
assert time.monotonic() - begin < 10
"""
    done = job(run, tmp_path, 2, text, how)
    assert done.returncode == 0, done.stderr
    message, error = done.stdout.splitlines()
    assert message == "[0. 1. 2.]"
    assert error.startswith("PeerDeadError")
    assert words in error


def test_leaving_cancels_what_is_in_flight(run: Run, tmp_path: Path) -> None:
    """A large message has not been sent because it was started."""
    text = """
import unisono
with unisono.init(timeout=30) as context:
    world = context.world
    world.barrier()
    if world.rank == 1:
        world.send_async(np.ones(1_000_000), 0)
    else:
        time.sleep(0.5)
        say(error_of(world.recv, np.zeros(1_000_000), 1))
"""
    done = job(run, tmp_path, 2, text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PeerDeadError")


def test_a_rank_that_became_another_program_has_not_died(run: Run, tmp_path: Path) -> None:
    """The kernel knows it by the same number. Only the deadline ends waits for it; and it has nothing of the job."""
    text = """
import unisono
context = unisono.init(timeout=1.5)
world = context.world
world.barrier()
if world.rank == 1:
    look = "import os, time; names = [os.readlink(f'/proc/self/fd/{n}') for n in range(3, 200) " \\
        "if os.path.lexists(f'/proc/self/fd/{n}')]; " \\
        "mapped = 'unisono' in open('/proc/self/maps').read(); print('other program', names, mapped, flush=True); " \\
        "time.sleep(3)"
    os.execv(sys.executable, [sys.executable, "-S", "-c", look])
say(error_of(world.recv, np.zeros(3), 1))
"""
    done = job(run, tmp_path, 2, text)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[0].startswith("DeadlineError")
    assert lines[1] == "other program [] False"


def test_functions_at_exit(run: Run, tmp_path: Path) -> None:
    """They run in the reverse order of their registration, and the package has registered its own on import."""
    text = """
atexit.register(lambda: say("last", error_of(world.barrier).split(":")[0]))
import unisono
atexit.register(lambda: say("first", error_of(world.barrier)))
context = unisono.init(timeout=10)
world = context.world
"""
    done = job(run, tmp_path, 2, text)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[:2] == ["first nothing"] * 2
    assert lines[2] in ("last WrongProcessError", "last FreedCommunicatorError")


@pytest.mark.parametrize("closes", ["closed", "left to the end"])
def test_python_ends_while_a_thread_waits(run: Run, tmp_path: Path, closes: str) -> None:
    """Its call is cancelled, and it comes out of the library before Python is gone."""
    text = """
import unisono
context = unisono.init(timeout=30)
world = context.world
world.barrier()
for peer in range(world.size):
    threading.Thread(target=lambda: error_of(world.recv, np.zeros(3), peer, tag=peer), daemon=True).start()
time.sleep(0.3)
world.barrier()
if sys.argv[1] == "closed":
    context.close()
"""
    for _ in range(3):
        done = job(run, tmp_path, 2, text, closes)
        assert done.returncode == 0, done.stderr


def test_children_inherit_the_description_of_the_job(run: Run, tmp_path: Path) -> None:
    """A program that a rank starts would join that rank's job, where there is no room for it."""
    text = """
import unisono
program = [sys.executable, "-c", "import unisono; print(unisono.init().world.size)"]
with unisono.init(timeout=30) as context:
    world = context.world
    if world.rank == 1:
        alone = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
        say(subprocess.run(program, env=alone, capture_output=True, text=True).stdout.strip())
        again = subprocess.run(program, env=os.environ | {"UNISONO_JOIN_TIMEOUT_S": "0.5"}, capture_output=True,
                               text=True)
        say(again.returncode, again.stderr.strip().splitlines()[-1])
    world.barrier()
"""
    done = job(run, tmp_path, 2, text)
    assert done.returncode == 0, done.stderr
    size, refusal = done.stdout.splitlines()
    assert size == "1"
    assert refusal.startswith("1 unisono.errors.BootstrapError")
    assert "the job was complete without this process" in refusal


def test_a_c_program_that_does_not_finalize(run: Run, tmp_path: Path) -> None:
    """Its functions at exit may still use what it has; then it has died, for the others."""
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    if not libraries:
        pytest.fail("no build/*/libunisono.so; run `make build` first")
    source, program = tmp_path / "leaves.c", tmp_path / "leaves"
    source.write_text(r"""
        #include <stdio.h>
        #include <stdlib.h>
        #include <unisono/unisono.h>
        static unisono_communicator* world;
        static void at_exit(void) {
          const unisono_call call = {.struct_size = sizeof call, .collective = UNISONO_BARRIER};
          printf("barrier at exit: %s\n", unisono_result_name(unisono_run(world, &call)));
        }
        int main(void) {
          unisono_context* context;
          uint32_t rank = 0;
          if (unisono_init(NULL, &context) != 0 || unisono_world(context, &world) != 0) return 1;
          if (unisono_communicator_rank(world, &rank) != 0) return 1;
          atexit(at_exit);
          if (rank == 1) return 0;
          at_exit();
          const unisono_call call = {.struct_size = sizeof call, .collective = UNISONO_BARRIER};
          if (unisono_run(world, &call) == 0) return 1;
          printf("afterwards: %s\n", unisono_last_error());
          fflush(stdout);
          _Exit(0);
        }
    """)
    subprocess.run(
        ["gcc", "-std=c11", f"-I{ROOT}/driver/include", source, f"-L{libraries[-1].parent}", "-lunisono",
         f"-Wl,-rpath,{libraries[-1].parent}", "-o", program],
        check=True, timeout=120,
    )  # fmt: skip
    done = run([], "run", "-n", 2, "--timeout", 60, program)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[1:] == ["barrier at exit: ok"] * 2
    assert "afterwards" in lines[0]
    assert "has died" in lines[0]


def test_a_job_can_be_left_and_formed_again(run: Run, tmp_path: Path) -> None:
    text = """
import unisono
for step in range(3):
    with unisono.init(timeout=30) as context:
        assert context.world.allreduce(np.array([step]))[0] == 3 * step
say("good")
"""
    done = job(run, tmp_path, 3, text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["good"] * 3
