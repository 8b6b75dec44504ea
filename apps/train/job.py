"""Jobs of this folder's programs, started by torchrun as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = 300  # the longest that a job may take
GRACE = 10  # and what its launcher has to end it
LAUNCHERS = ("UNISONO_RANK", "UNISONO_SIZE", "UNISONO_JOIN", "TORCHELASTIC_", "MASTER_")


def torchrun(ranks: int, program: str, *arguments: object, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Runs a program of this folder on so many ranks: the exit status, and what they said."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *options]
    return run([*command, str(HERE / program), *map(str, arguments)])


def unisono(ranks: int, program: str, *arguments: object, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """The same by Unisono's launcher."""
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *options]
    return run([*command, str(HERE / program), *map(str, arguments)])


def run(command: list[str]) -> tuple[int, str]:
    """Runs a command that starts processes; none of them outlives this call."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    environment["OMP_NUM_THREADS"] = "1"  # the ranks are the parallelism
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )
    try:
        said, _ = started.communicate(timeout=SECONDS)
    except BaseException:
        _end(started)
        raise
    return started.returncode, said


def _end(launcher: subprocess.Popen[str]) -> None:
    """Has a launcher end its ranks, and ends it if it does not."""
    launcher.terminate()
    try:
        launcher.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()


class TrainingError(RuntimeError):
    """A training that did not come to its end."""


def training(ranks: int, folder: Path, *arguments: object, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What train.py told of itself, by torchrun: its lines of JSON, the last of which tells of the end."""
    journal = folder / "journal.jsonl"
    status, said = torchrun(ranks, "train.py", "--json", journal, *arguments, options=options)
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    # gloo's processes are ended by SIGABRT at times, after their work was done.
    if not lines or "done" not in lines[-1] or (status != 0 and "gloo" not in arguments):
        raise TrainingError(f"train.py {' '.join(map(str, arguments))} on {ranks} ranks ended with {status}:\n{said}")
    return lines
