"""Arrays of calls between hosts that have ended too soon: they are their owners' again, at both ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .support import run

COMMON = """
import json, os, pathlib, signal, sys, time
import numpy as np
import unisono

folder, end = pathlib.Path(sys.argv[1]), sys.argv[2]
COUNT = 4_000_003  # more than any kernel keeps of a connection: nothing of it arrives unless both ends look

def tell(name, text=""):
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / name)

def wait(name, look=lambda: None):
    until = time.monotonic() + 60
    while not (folder / name).exists():
        assert time.monotonic() < until, name
        look()
        time.sleep(0.001)
    return (folder / name).read_text()

def some(look, seconds=0.5):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        look()
        time.sleep(0.001)

def meet(world):
    # From now on both ends know by what network they reach each other, and have sent long messages by it.
    data = np.zeros(100_000) if world.rank else np.ones(100_000)
    world.bcast(data)
    assert data.all()
    return world.dup()
"""

# Rank 1 is somewhere in its message when the call of rank 0 ends, and goes on with it when that array has other data.
DESTINATION = (
    COMMON
    + """
with unisono.init(timeout=60) as context:
    world = context.world
    comm = meet(world)
    if world.rank == 1:
        request = comm.send_async(np.arange(COUNT), 0)
        wait("ready", context.progress)
        some(context.progress, 0.005)
        tell("begun", str(os.getpid()))
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if end == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            # Until the deadline has passed nothing more comes; then the other end is to be told that nothing will.
            time.sleep(1.3 if end == "deadline" else 0.3)
            wait("ended", context.progress)
        try:
            request.wait()
        except unisono.UnisonoError:
            pass  # it may have gone nowhere, which a sender need not know
        some(context.progress)
        tell("looked")
    else:
        data = np.zeros(COUNT, np.int64)
        request = comm.recv_async(data, 1, timeout=60 if end in ("revoked", "aborted", "killed") else 1)
        some(context.progress, 0.001)
        tell("ready")
        process = int(wait("begun", context.progress if end == "killed" else lambda: None))
        if end == "revoked":
            comm.revoke("enough")
        if end == "aborted":
            context.abort("enough")
        try:
            request.wait()
            error = None
        except unisono.UnisonoError as failure:
            error = failure
        data[:] = 77
        said = {"error": type(error).__name__, "text": str(error)}
        some(context.progress)
        if end == "stopped":
            os.kill(process, signal.SIGCONT)
        tell("ended")
        if end != "killed":
            wait("looked", context.progress)
        some(context.progress)
        said["intact"] = bool((data == 77).all())
        said["kept"] = any(getattr(each, "obj", each) is data for each, text in unisono.errors.still_written)
        print(json.dumps(said), flush=True)
    if end != "killed":
        context.reset()
        total = world.allreduce(np.full(COUNT, world.rank + 1))
        assert (total == 3).all()
"""
)
ERRORS = {
    "deadline": "DeadlineError", "stopped": "DeadlineError", "revoked": "RevokedError", "aborted": "RevokedError",
    "killed": "PeerDeadError",
}  # fmt: skip
networks = pytest.mark.parametrize("network", ["tcp", "udp", "ofi"])


@networks
@pytest.mark.parametrize("end", ERRORS)
def test_what_a_call_was_to_receive_into_is_written_no_more(tmp_path: Path, end: str, network: str) -> None:
    script = tmp_path / "destination.py"
    script.write_text(DESTINATION)
    done = run(
        "--hosts", "a,b", "--agent", "local", "--keep-going", "--timeout", 80, "--transport", network, script, tmp_path,
        end,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (said,) = map(json.loads, done.stdout.splitlines())
    assert said["error"] == ERRORS[end], said
    # A card may go on writing for a rank that gives no word. Then the error says so, and the array is kept.
    written = "may still come to the call's memory" in said["text"]
    assert not written or network == "ofi", said
    assert said["kept"] == written
    assert said["intact"] or written, said


# Rank 0 has some of a message when the call of rank 1 ends, and asks for the rest when that array has other data.
SOURCE = (
    COMMON
    + """
with unisono.init(timeout=60) as context:
    world = context.world
    comm = meet(world)
    if world.rank == 1:
        data = np.arange(1, COUNT + 1)
        request = comm.send_async(data, 0, timeout=1 if end == "deadline" else 60)
        wait("begun", context.progress)
        if end == "revoked":
            comm.revoke("enough")
        if end == "aborted":
            context.abort("enough")
        try:
            request.wait()
            said = "nothing"
        except unisono.UnisonoError as error:
            said = type(error).__name__
        data[:] = -1
        tell("ended", said)
        wait("looked", context.progress)
    else:
        data = np.zeros(COUNT, np.int64)
        request = comm.recv_async(data, 1)
        for _ in range(3):
            context.progress()
        tell("begun")
        said = {"sender": wait("ended")}
        some(context.progress)
        comm.revoke("enough")
        try:
            request.wait()
            said["receiver"] = "nothing"
        except unisono.UnisonoError as error:
            said["receiver"] = type(error).__name__
        said["right"] = bool(((data == 0) | (data == np.arange(1, COUNT + 1))).all())
        print(json.dumps(said), flush=True)
        tell("looked")
    context.reset()
    total = world.allreduce(np.full(COUNT, world.rank + 1))
    assert (total == 3).all()
"""
)


@networks
@pytest.mark.parametrize("end", ["deadline", "revoked", "aborted"])
def test_what_a_call_was_to_send_is_not_sent_once_it_has_ended(tmp_path: Path, end: str, network: str) -> None:
    script = tmp_path / "source.py"
    script.write_text(SOURCE)
    done = run(
        "--hosts", "a,b", "--agent", "local", "--timeout", 80, "--transport", network, script, tmp_path, end
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (said,) = map(json.loads, done.stdout.splitlines())
    if said["sender"] == "nothing":  # all of it had gone: an end that looks but little may look for long
        assert said["right"], said
        return
    assert said["sender"] == ERRORS[end], said
    # A receive that was given up promises nothing of its array. Only a card, for a peer that gives no word, may still
    # read what the sender has changed; such a message never comes to its end.
    assert said["receiver"] != "nothing", said
    assert said["right"] or network == "ofi", said
