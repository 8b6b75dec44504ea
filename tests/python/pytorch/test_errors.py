"""Wrong use, ranks that are late, and ranks that die."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from .support import SECONDS, environment, interpreter, launched, right, unisono_run


@pytest.mark.parametrize("ranks", [2, 3])
def test_wrong_use_is_refused_before_anything_is_sent(ranks: int) -> None:
    right(unisono_run(ranks, "wrong.py"), ranks)


@pytest.mark.parametrize("case", ["late", "awaited", "future", "aborted"])
def test_others_are_told(case: str) -> None:
    right(unisono_run(2, "late.py", case), 2)


@pytest.mark.parametrize("which", ["all", "first"])
def test_a_monitored_barrier_says_who_has_not_come(which: str) -> None:
    right(unisono_run(4, "late.py", "monitored", which), 4)


def test_a_killed_rank_raises_in_the_others_within_a_second() -> None:
    done = launched(["-m", "unisono", "run", "-n", "3", "--keep-going"], "late.py", "killed")
    assert done.stdout.count("told") == 2, done.stdout + done.stderr


def test_a_wait_takes_ctrl_c(tmp_path: Path) -> None:
    """A rank that waits for one that computes."""
    program = tmp_path / "waits.py"
    program.write_text(
        "import time, torch, torch.distributed as dist, unisono.torch\n"
        "dist.init_process_group('unisono')\n"
        "dist.barrier()\n"
        "if dist.get_rank(): time.sleep(60)\n"
        "print('waits', flush=True)\n"
        "try: dist.all_reduce(torch.ones(3), async_op=True).wait()\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    from .test_starting import free_port

    port = free_port()
    ranks = [
        subprocess.Popen(
            [interpreter(), program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        assert ranks[0].stdout is not None
        assert ranks[0].stdout.readline() == "waits\n"
        time.sleep(0.5)
        begun = time.monotonic()
        ranks[0].send_signal(signal.SIGINT)
        assert ranks[0].stdout.readline() == "interrupted\n"
        assert time.monotonic() - begun < 2
    finally:
        for each in ranks:
            each.kill()
            each.wait(SECONDS)
