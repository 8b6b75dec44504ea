"""What agents say: whatever it is, the launcher takes it or names what is wrong, in bounded memory and time."""

from __future__ import annotations

import itertools
import json
import os
import selectors
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unisono import __version__
from unisono.cli.channel import MOST_BEFORE, Decoder, ProtocolError, greeting
from unisono.cli.command import Command
from unisono.cli.hostlist import read_list
from unisono.cli.hosts import Host
from unisono.cli.pipes import WINDOW, Credit, Feed, Pump
from unisono.cli.way import Plan, Way

MOST = 1000


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def decoded(parts: list[bytes], *, greeted: bool) -> tuple[list[tuple[dict[str, Any], bytes]], str]:
    decoder = Decoder(MOST, greeted=greeted)
    messages: list[tuple[dict[str, Any], bytes]] = []
    try:
        for part in parts:
            messages += decoder.feed(part)
            kept = MOST if decoder.greeting is not None else MOST_BEFORE
            assert len(decoder._rest) <= max(kept, WINDOW) + len(part)
    except ProtocolError as failure:
        return messages, str(failure)
    return messages, ""


@given(st.binary(max_size=3000), st.lists(st.integers(0, 3000)), st.booleans())
def test_arbitrary_bytes_in_arbitrary_pieces(data: bytes, cuts: list[int], greeted: bool) -> None:
    whole, fault = decoded([data], greeted=greeted)
    parts, other = decoded(pieces(data, cuts), greeted=greeted)
    assert (whole == parts) or fault or other
    assert bool(fault) == bool(other)


def test_messages_and_what_stands_before_them() -> None:
    parts = b'{"kind": "x", "bytes": 5}\nab\ncd{"kind": "y"}\n'
    expected = [({"kind": "x", "bytes": 5}, b"ab\ncd"), ({"kind": "y"}, b"")]
    banner = b"Welcome to node b\nlast login: today\nno end of line"
    for data, greeted in ((parts, True), (banner + greeting("1.2") + parts, False)):
        for size in (1, 3, len(data)):
            decoder = Decoder(MOST, greeted=greeted)
            got = [one for at in range(0, len(data), size) for one in decoder.feed(data[at : at + size])]
            assert got == expected
    assert decoder.greeting == (1, "1.2")
    assert decoder.first == b"Welcome to node b"


@pytest.mark.parametrize(
    "line",
    [
        b"bash: warning",
        b"[1, 2]",
        b'{"bytes": 3}',
        b'{"kind": 3}',
        b'{"kind": "x", "bytes": -1}',
        b'{"kind": "x", "bytes": true}',
        b'{"kind": "x", "bytes": 65537}',
        b"[" * 900,
        b'{"kind": ' + b"9" * 900 + b"}",
        b"\xff\xfe",
        b"x" * (MOST + 1),
    ],
)
def test_what_is_no_message(line: bytes) -> None:
    messages, fault = decoded([line + b"\n"], greeted=True)
    assert messages == []
    assert fault


def test_an_endless_banner_is_refused() -> None:
    for data in (b"x" * MOST_BEFORE, b"a line\n" * (MOST_BEFORE // 7)):
        assert decoded([data, b"once more\n"], greeted=False)[1]


# ------------------------------------------------------------------------------------------- a whole host


class Play:
    """A host whose agent says what a test has it say, and reads nothing."""

    def __init__(self, path: Path, said: bytes, *, reads: bool = True) -> None:
        path.write_bytes(said)
        end = "" if reads else "; exec sleep 1000"
        plan = Plan(read_list("a:2,b:2"), Way(f"sh -c 'cat {path}{end}' {{host}}"), Command("true", []), "/")
        self.selector = selectors.DefaultSelector()
        self.ended: list[int] = []
        self.reports: list[str] = []
        self.host = Host(
            plan,
            plan.hosts[0],
            {},
            self.selector,
            lambda rank: self.ended.append(rank.number),
            lambda _, text: self.reports.append(text),
            lambda _: None,
        )
        self.host.open(lambda: None)

    def until_over(self) -> str:
        deadline = time.monotonic() + 20
        while self.host.fault is None and not self.host._done:
            assert time.monotonic() < deadline, "hangs"
            for key, _ in self.selector.select(0.5):
                key.data()
            self.host.greet()
        return str(self.host.fault)

    def close(self) -> None:
        self.host.sweep()
        for rank in self.host.ranks:
            rank.stdout.close()
            rank.stderr.close()
        assert self.host._process is not None
        self.host._process.kill()
        self.host.wait(time.monotonic() + 5)
        self.selector.close()


def after(path: Path, said: bytes) -> tuple[str, Play]:
    play = Play(path, said)
    try:
        return play.until_over(), play
    finally:
        play.close()


HELLO = greeting(__version__)


def message(kind: str, payload: bytes | None = None, **fields: object) -> bytes:
    if payload is not None:
        fields["bytes"] = len(payload)
    return json.dumps({"kind": kind} | fields).encode() + b"\n" + (payload or b"")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2000), greeted=st.booleans())
def test_arbitrary_bytes_end_the_host_with_a_sentence(tmp_path: Path, data: bytes, greeted: bool) -> None:
    fault, play = after(tmp_path / "said", (HELLO if greeted else b"") + data)
    assert fault.startswith("host a: ")
    assert "\n" not in fault
    assert sorted(play.ended) == [0, 1]


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3))
KINDS = (
    "output", "ended", "ready", "started", "refused", "done", "report", "input-room", "counters", "greeting", "é",
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.dictionaries(
                st.sampled_from(["rank", "stream", "status", "port", "addresses", "pids", "text", "room", "values"]),
                st.one_of(VALUES, st.integers(-1, 2)),
            ),
            st.one_of(st.none(), st.binary(max_size=50)),
        ),
        max_size=8,
    )
)
def test_arbitrary_messages_end_the_host_with_a_sentence(tmp_path: Path, said: list[Any]) -> None:
    fault, play = after(tmp_path / "said", HELLO + b"".join(message(kind, data, **more) for kind, more, data in said))
    assert fault.startswith("host a: ") or fault == "None"
    assert sorted(play.ended) == [0, 1]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (b"", "host a: no agent answers; sh ended with status 0"),
        (b"Welcome!\n", "host a: no agent answers; sh ended with status 0; it wrote 'Welcome!'"),
        (HELLO, "host a: sh ended with status 0"),
        (HELLO + b"Segmentation fault\n", "host a: its agent said 'Segmentation fault'"),
        (greeting("0.0.7"), f"host a: has Unisono 0.0.7 (protocol 1), and this is {__version__} (protocol 1); use one"),
        (HELLO.replace(b"agent 1", b"agent 2"), "(protocol 2), and this is"),
        (HELLO + message("refused", text="there is no file x", status=127), "host a: there is no file x"),
        (HELLO + message("refused", text="two\nlines \x1b[31m", status=2), "host a: two lines  [31m"),
        (HELLO + message("output", b"x", rank=2, stream=1), "host a: its agent said something of rank 2, which anoth"),
        (HELLO + message("ended", rank=3, status=0), "something of rank 3"),
        (HELLO + message("output", b"x", rank=0, stream=3), "stream is '3' in a message of kind 'output'"),
        (HELLO + message("started", pids=[1]), "another number of processes than ranks"),
        (HELLO + message("done"), "that all is done, while ranks run"),
        (HELLO + message("explode"), "a message of kind 'explode'"),
        (HELLO + message("counters", rank=4, values={"calls": 1}), "rank is '4' in a message of kind 'counters'"),
        (HELLO + message("counters", rank=0, values=[1]), "no counters in a message of kind 'counters'"),
        (HELLO + message("counters", rank=0, values={"a b": 1}), "a counter 'a b'"),
        (HELLO + message("counters", rank=0, values={"calls": -1}), "calls is '-1' in a message of kind 'counters'"),
        (
            HELLO + b"".join(message("counters", rank=0, values={f"n{i}_{j}": 1 for j in range(200)}) for i in (1, 2)),
            "more counters of rank 0 than there are",
        ),
        (HELLO + b"x" * (1 << 19), "a line that begins 'xxxx"),
        (
            HELLO + 3 * message("output", b"x" * 60000, rank=0, stream=1),
            "more of rank 0's output than it was asked for",
        ),
    ],
)
def test_sentences(tmp_path: Path, said: bytes, sentence: str) -> None:
    assert sentence in after(tmp_path / "said", said)[0]


def test_an_agent_that_does_not_read_is_given_up(tmp_path: Path) -> None:
    """What the launcher keeps for it is bounded."""
    play = Play(tmp_path / "said", HELLO, reads=False)
    try:
        while not play.host.greeted:
            for key, _ in play.selector.select(5):
                key.data()
            play.host.greet()
        for _ in range(1000):
            play.host.put_input(b"x" * WINDOW)
        assert str(play.host.fault) == "host a: its agent said nothing: it does not read what is sent to it"
    finally:
        play.close()


# ------------------------------------------------------------------------------------------- pipes


def turn(selector: selectors.BaseSelector) -> bool:
    events = selector.select(0)
    for key, _ in events:
        key.data()
    return bool(events)


def test_a_pump_reads_as_far_as_there_is_room() -> None:
    with selectors.DefaultSelector() as selector:
        source, sink = os.pipe()
        got = bytearray()
        pump = Pump(selector, source, got.extend)
        pump.resume()
        feed = Feed(selector, sink)
        feed.put(b"a" * (3 * WINDOW))
        while turn(selector):
            pass
        assert len(got) == WINDOW
        assert pump.blocked
        pump.allow(10)
        while turn(selector):
            pass
        assert len(got) == WINDOW + 10
        feed.close()
        for _ in range(20):
            pump.allow(WINDOW)
            while turn(selector):
                pass
        assert (len(got), pump.over, feed.closed) == (3 * WINDOW, True, True)
        os.close(source)


def test_a_file_is_read_as_well(tmp_path: Path) -> None:
    """epoll takes none."""
    path = tmp_path / "file"
    path.write_bytes(b"b" * (WINDOW + 5))
    with selectors.DefaultSelector() as selector, path.open("rb") as file:
        got = bytearray()
        pump = Pump(selector, file.fileno(), got.extend)
        pump.resume()
        assert len(got) == WINDOW
        pump.allow(WINDOW)
        assert (len(got), pump.over) == (WINDOW + 5, True)


def test_a_feed_into_a_pipe_that_nobody_reads() -> None:
    with selectors.DefaultSelector() as selector:
        source, sink = os.pipe()
        feed = Feed(selector, sink)
        feed.put(b"x" * (4 * WINDOW))
        os.close(source)
        while turn(selector):
            pass
        assert feed.closed
        feed.put(b"more")


def test_credit_is_given_back_by_halves() -> None:
    granted: list[int] = []
    credit = Credit(granted.append)
    assert credit.take(WINDOW)
    assert not Credit(granted.append).take(WINDOW + 1)
    credit.written(WINDOW // 2 - 1)
    assert granted == []
    credit.written(1)
    assert granted == [WINDOW // 2]
    assert credit.take(WINDOW // 2)
    assert not credit.take(1)


def test_the_agent_ends_with_its_launcher() -> None:
    done = subprocess.run([*Way("local").command("x")], input=b"", capture_output=True, timeout=60, env=os.environ)
    assert done.returncode == 1
    assert done.stdout == HELLO
    assert done.stderr == b""
