"""How tests start switches, and ask them."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hosts.support import ENVIRONMENT, SECONDS, run

UNISONO = [sys.executable, "-m", "unisono"]


def make_secret(folder: Path, name: str = "secret") -> Path:
    path = folder / name
    path.write_text(secrets.token_hex(32) + "\n")
    path.chmod(0o600)
    return path


def command(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """`unisono switch` with these words."""
    return subprocess.run(
        [*UNISONO, "switch", *map(str, words)], capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT | more
    )


@dataclass
class Switch:
    """A process that aggregates."""

    secret: Path
    words: list[str]
    before: list[str] = field(default_factory=list)  #: what starts it somewhere else
    more: dict[str, str] = field(default_factory=dict)  #: variables of its environment
    address: str = ""
    line: str = ""
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        words = [*self.before, *UNISONO, "switch", "start", "--secret-file", str(self.secret), *self.words]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | self.more,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()
        if not self.line:
            raise AssertionError(self.process.communicate(timeout=SECONDS)[1])
        self.address = self.line.split()[1]

    def start_again(self) -> None:
        """At the address that it had."""
        self.words[self.words.index("--listen") + 1] = self.address
        self.start()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit status, and what it wrote."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, output, errors

    def ask(self, *words: object) -> dict[str, Any]:
        question = [*map(str, words), self.address, "--secret-file", str(self.secret), "--json"]
        done = subprocess.run(
            [*self.before, *UNISONO, "switch", *question],
            capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@contextmanager
def switch(
    secret: Path, *words: object, listen: str = "127.0.0.1:0", before: Sequence[str] = (), **more: str
) -> Iterator[Switch]:
    made = Switch(secret, ["--listen", listen, *map(str, words)], list(before), more)
    made.start()
    try:
        yield made
    finally:
        assert made.process is not None
        if made.process.poll() is None:
            made.process.kill()
        made.process.communicate(timeout=SECONDS)


def local(count: int, each: int = 1) -> list[str]:
    """Options of `unisono run`: so many hosts that are only names."""
    return ["--hosts", ",".join(f"h{number}:{each}" for number in range(count)), "--agent", "local"]


__all__ = ["ENVIRONMENT", "SECONDS", "Switch", "command", "local", "make_secret", "run", "switch"]
