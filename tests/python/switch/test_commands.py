"""`unisono switch` from the command line: what it prints, what it refuses, and how a switch ends."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import ENVIRONMENT, SECONDS, UNISONO, Switch, command, make_secret, switch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("switch")


@pytest.fixture(scope="module")
def secret(folder: Path) -> Path:
    return make_secret(folder)


@pytest.fixture(scope="module")
def running(secret: Path) -> Iterator[Switch]:
    with switch(secret, "--name", "rack1", "--slots", 4096, "--threads", 2) as made:
        yield made


def refusal(*words: object, **more: str) -> str:
    """The one sentence of a command that is refused with status 2."""
    done = command(*words, **more)
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("unisono switch: ")
    return line.removeprefix("unisono switch: ")


def test_what_a_switch_says_when_it_listens(running: Switch) -> None:
    assert re.fullmatch(r"switch 127\.0\.0\.1:\d+ \(rack1\) listens; 4096 slots, 2 threads", running.line)


def test_status(running: Switch, secret: Path) -> None:
    status = running.ask("status")
    assert (status["name"], status["listen"], status["uplink"]) == ("rack1", running.address, None)
    assert status["slots"] == {"total": 4096, "used": 0}
    shown = command("status", running.address, "--secret-file", secret)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"switch rack1 at {running.address}" in shown.stdout
    assert re.search(r"slots +0 of 4,096 taken", shown.stdout)
    assert "none: this is the top" in shown.stdout


def test_the_secret_may_be_named_by_the_environment(running: Switch, secret: Path) -> None:
    shown = command("jobs", running.address, UNISONO_AGGREGATE_SECRET_FILE=str(secret))
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "no jobs\n", "")


def test_a_communicator_that_is_not_there(running: Switch, secret: Path) -> None:
    said = refusal("show", 7, running.address, "--secret-file", secret)
    assert said.startswith(f"the switch at {running.address} has no communicator 7; ")


def test_draining_and_back(running: Switch, secret: Path) -> None:
    done = command("drain", running.address, "--secret-file", secret)
    assert (done.returncode, done.stdout) == (
        0, f"the switch at {running.address} makes no more pools; those that are there go on\n"
    )  # fmt: skip
    assert running.ask("status")["draining"]
    assert "is being drained" in command("status", running.address, "--secret-file", secret).stdout
    assert running.ask("drain", "--undo") == {"done": "undrain"}
    assert not running.ask("status")["draining"]


def test_a_port_that_is_taken(running: Switch, secret: Path) -> None:
    said = refusal("start", "--listen", running.address, "--secret-file", secret)
    port = running.address.rpartition(":")[2]
    assert "cannot listen" in said
    assert f"another process of this host has port {port}" in said


def test_a_wrong_secret(running: Switch, folder: Path) -> None:
    said = refusal("status", running.address, "--secret-file", make_secret(folder, "other"))
    assert said.startswith(f"the switch at {running.address}: it has another secret than this caller")
    assert running.ask("status")["name"] == "rack1"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("short\n", 0o600, "its first line has 5 characters; allowed are 16 to 256"),
        ("", 0o600, "there is no line in it"),
        ("0123456789abcdef\n", 0o640, "others than its owner may read it; chmod 600"),
        (None, 0, "No such file or directory"),
    ],
)
def test_secrets_that_are_none(running: Switch, tmp_path: Path, text: str | None, mode: int, said: str) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    words = refusal("status", running.address, "--secret-file", path)
    assert str(path) in words
    assert said in words


def test_no_secret(running: Switch) -> None:
    assert "--secret-file or UNISONO_AGGREGATE_SECRET_FILE" in refusal("status", running.address)


def test_nobody_there(secret: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refusal("status", where, "--secret-file", secret) == f"the switch at {where}: Connection refused"


def test_somebody_who_does_not_answer(secret: Path) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        where = f"127.0.0.1:{deaf.getsockname()[1]}"
        said = refusal("status", where, "--secret-file", secret, "--deadline", "0.3")
        assert said == f"the switch at {where}: it does not answer"


def test_who_speaks_another_protocol(secret: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        where = f"127.0.0.1:{other.getsockname()[1]}"
        asking = subprocess.Popen(
            [*UNISONO, "switch", "status", where, "--secret-file", str(secret)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        connection, _ = other.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" * 4)
            _, errors = asking.communicate(timeout=SECONDS)
    assert asking.returncode == 2
    assert errors.startswith(f"unisono switch: the switch at {where}: that is no switch of Unisono")
    assert errors.count("\n") == 1


def test_a_stranger_at_a_switch_is_sent_away_and_counted(running: Switch) -> None:
    host, _, port = running.address.rpartition(":")
    before = running.ask("status")["counters"]["foreign"]
    with socket.create_connection((host, int(port)), timeout=SECONDS) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: switch\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(4096):
                pass
    assert running.ask("status")["counters"]["foreign"] == before + 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "rack1"], "'rack1' is no address of a switch; write HOST:PORT"),
        (["status", "rack1:0"], "'rack1:0' is no address"),
        (["status", "fd00::1:7000"], "'fd00::1:7000' is no address"),
        (["start", "--listen", "rack1"], "--listen: 'rack1' is no address"),
        (["start", "--listen", "127.0.0.1:0", "--uplink", "x:y"], "--uplink: 'x:y' is no address"),
        (["start", "--listen", "rack1:7000", "--uplink", "rack1:7000"], "--uplink names rack1:7000, where this switch"),
        (["start", "--listen", "127.0.0.1:0", "--slots", "3"], "--slots is 3; allowed are 8 to"),
        (["start", "--listen", "127.0.0.1:0", "--threads", "0"], "--threads is 0; allowed are 1 to 256"),
        (["start", "--listen", "127.0.0.1:0", "--name", "a b"], "its name may have up to 64 printable characters"),
    ],
)
def test_what_is_refused(secret: Path, words: list[str], said: str) -> None:
    assert said in refusal(*words, "--secret-file", secret)


def test_an_uplink(secret: Path) -> None:
    with switch(secret, "--name", "top") as top:
        with switch(secret, "--name", "leaf", "--uplink", top.address) as leaf:
            assert leaf.line.endswith(f"; uplink {top.address} connected")
            assert leaf.ask("status")["uplink"]["name"] == "top"
            assert f"{top.address} (top)" in command("status", leaf.address, "--secret-file", secret).stdout
        said = refusal(
            "start", "--listen", "127.0.0.1:0", "--secret-file", secret, "--name", "top", "--uplink", top.address
        )
        assert "top" in said


def test_an_uplink_that_comes_later(secret: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
    with switch(secret, "--name", "leaf", "--uplink", where) as leaf:
        assert leaf.line.endswith(f"; uplink {where} not reached")
        uplink = leaf.ask("status")["uplink"]
        assert (uplink["connected"], uplink["where"]) == (False, where)
        with switch(secret, "--name", "top", listen=where):
            for _ in range(40):
                if leaf.ask("status")["uplink"]["connected"]:
                    break
            assert leaf.ask("status")["uplink"]["name"] == "top"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_switch_and_it_may_be_started_again(secret: Path, number: signal.Signals) -> None:
    with switch(secret) as one:
        where = one.address
        assert one.end(number) == (0, "", "")
        one.start_again()
        assert one.address == where
        assert one.ask("jobs") == {"jobs": []}


def test_stop(secret: Path) -> None:
    with switch(secret) as one:
        done = command("stop", one.address, "--secret-file", secret)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"the switch at {one.address} ends; jobs go on by their endpoints\n"
        assert one.process is not None
        assert one.process.wait(timeout=SECONDS) == 0
