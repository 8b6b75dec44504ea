"""What happens to the switches of the soak meanwhile: they are killed and started again, stopped, and sent rubbish."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .support import Switch

MOST_HEARD = 400  #: datagrams that are kept, also those of jobs before


def port_of(one: Switch) -> int:
    return int(one.address.rpartition(":")[2])


class Ear:
    """Hears what goes to the switches over the loopback, where this process may."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket: socket.socket | None = None
        with contextlib.suppress(PermissionError, AttributeError):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
            self._socket.bind(("lo", 0x0800))
            self._socket.settimeout(0.2)

    def listen(self, ports: set[int], count: int, rng: random.Random) -> None:
        """Keeps some of the next datagrams to these ports."""
        if self._socket is None:
            return
        with contextlib.suppress(TimeoutError):
            while self._socket.recv(1 << 16, socket.MSG_DONTWAIT):
                pass  # what has waited since the last time
        with contextlib.suppress(TimeoutError, BlockingIOError):
            for _ in range(count):
                packet = self._socket.recv(1 << 16)
                begin = 4 * (packet[0] & 15)
                if packet[9] != socket.IPPROTO_UDP or int.from_bytes(packet[begin + 2 : begin + 4], "big") not in ports:
                    continue
                if len(self.heard) < MOST_HEARD:
                    self.heard.append(packet[begin + 8 :])
                else:
                    self.heard[rng.randrange(MOST_HEARD)] = packet[begin + 8 :]

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def send_rubbish(to: Switch, heard: list[bytes], rng: random.Random) -> None:
    """Datagrams: what was overheard, as it was and altered, and what never was any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(200):
            datagram = rng.randbytes(rng.randrange(1500))
            if heard and rng.random() < 0.8:
                altered = bytearray(rng.choice(heard))
                for _ in range(rng.randrange(3)):
                    altered[rng.randrange(len(altered))] ^= 1 << rng.randrange(8)
                datagram = bytes(altered[: rng.randrange(len(altered))] if rng.random() < 0.1 else altered)
            with contextlib.suppress(OSError):
                stranger.sendto(datagram, ("127.0.0.1", port_of(to)))


def call_as_stranger(to: Switch, rng: random.Random) -> None:
    """Connections of those who do not know the secret: silent, garbled, cut off."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as open_ones:
        for _ in range(4):
            one = open_ones.enter_context(socket.create_connection(("127.0.0.1", port_of(to)), 2))
            one.sendall(rng.randbytes(rng.choice((0, 1, 40, 3000))))


class Trouble:
    """Does one thing after the other to the switches, from a thread of its own, until it is ended."""

    def __init__(self, killed: list[Switch], others: list[Switch], ear: Ear, rng: random.Random) -> None:
        self._killed, self._others, self._ear, self._rng = killed, others, ear, rng
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.done: list[str] = []
        self.failure: BaseException | None = None
        self._thread.start()

    def end(self) -> None:
        """Afterwards all switches run."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(0.2 + self._rng.random() * 2):
                self._act()
        except BaseException as failure:
            self.failure = failure

    def _act(self) -> None:
        rng = self._rng
        every = [*self._killed, *self._others]
        match rng.choice(("kill", "kill", "stop", "stop", "rubbish", "rubbish", "strangers", "drain")):
            case "kill" if self._killed:
                one = rng.choice(self._killed)
                self.done.append("kill")
                one.end(signal.SIGKILL)
                self._over.wait(rng.choice((0.0, 0.3, 1.0, 4.5)) * rng.random())
                one.start_again()
            case "stop":
                one = rng.choice(every)
                self.done.append("stop")
                one.send(signal.SIGSTOP)
                self._over.wait(rng.choice((0.2, 1.0, 4.5)) * rng.random())
                one.send(signal.SIGCONT)
            case "strangers":
                self.done.append("strangers")
                call_as_stranger(rng.choice(every), rng)
            case "drain":
                one = rng.choice(every)
                self.done.append("drain")
                one.ask("drain")
                self._over.wait(0.5 * rng.random())
                one.ask("drain", "--undo")
            case _:
                self.done.append("rubbish")
                self._ear.listen({port_of(one) for one in every}, 60, rng)
                for _ in range(5):
                    send_rubbish(rng.choice(every), self._ear.heard, rng)


@contextmanager
def trouble(killed: list[Switch], others: list[Switch], ear: Ear, rng: random.Random) -> Iterator[Trouble]:
    """Meanwhile things happen: `killed` may be killed, the others not."""
    made = Trouble(killed, others, ear, rng)
    try:
        yield made
    finally:
        made.end()
        if made.failure is not None:
            raise made.failure


# ------------------------------------------------------------------------------------- what a switch holds


def open_files(one: Switch) -> list[str]:
    assert one.process is not None
    names = []
    for path in Path(f"/proc/{one.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(os.readlink(path))
    return sorted(name.partition(":")[0] for name in names)


def resident_kib(one: Switch) -> int:
    assert one.process is not None
    status = Path(f"/proc/{one.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
