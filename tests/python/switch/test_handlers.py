"""Handlers in a switch that serves: loaded, run, shown, from the command line, from Python and from ranks."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from handlers.support import EXAMPLES, needs_clang
from unisono import handler
from unisono.cli import main

from .support import Switch, local, make_secret, run, switch

pytestmark = needs_clang

SOURCES = {
    "total": """#include <unisono_handler.h>
static uint64_t total;
int payload(void) {
  for (uint32_t i = 0; i < us_length(); ++i) total += us_u8_at(i) * (us_source() + 1u);
  return US_GO_ON;
}
int completion(void) { us_put_u64(total); return US_GO_ON; }
""",
    "strict": """#include <unisono_handler.h>
int payload(void) {
  if (us_length() == 3) return US_DROP;
  us_put_u32(100u / (us_length() - 5));
  return us_length() == 7 ? 42 : US_GO_ON;
}
""",
    "long": """#include <unisono_handler.h>
static uint32_t sum;
int payload(void) {
  for (uint32_t i = 0; i < 4000000u; ++i)
    sum += i ^ us_packet();
  return US_GO_ON;
}
""",
}

RANKS = """
import unisono
from unisono import handler

world = unisono.init().world
with handler.at(ADDRESS, secret_file=SECRET) as switch:
    name = switch.load(BINARY)  # all ranks say it; the first one loads it
    for message in range(3):
        switch.run(name, [bytes([world.rank + 1]) * 100] * (world.rank + 1), source=world.rank, ranks=world.size)
    world.barrier()
    if world.rank == world.size - 1:
        (counts,) = switch.run(name, []).outputs
        print(int.from_bytes(counts[:8], "little"))
"""


def words(*words: object) -> int:
    """`unisono switch` in this process: Python's start would take most of the time."""
    return main(["switch", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("handlers")
    for name, text in SOURCES.items():
        (path / f"{name}.c").write_text(text)
        (path / f"{name}.uh").write_bytes(handler.compile(path / f"{name}.c").binary)
    return path


@pytest.fixture(scope="module")
def secret(folder: Path) -> Path:
    return make_secret(folder)


@pytest.fixture(scope="module")
def running(secret: Path) -> Iterator[Switch]:
    with switch(secret, "--name", "rack1", "--handlers", 5, "--handlers-memory", "1M") as made:
        yield made


@pytest.fixture
def there(running: Switch, secret: Path) -> Iterator[handler.RemoteHandlers]:
    with handler.at(running.address, secret_file=secret) as made:
        yield made


def test_from_the_command_line(running: Switch, secret: Path, folder: Path, tmp_path: Path,
                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    where, own = running.address, ("--secret-file", secret)
    message, written, report = tmp_path / "m", tmp_path / "w", tmp_path / "stat.json"
    message.write_bytes(bytes(range(256)) * 20)
    digest = hashlib.sha256((folder / "total.uh").read_bytes()).hexdigest()
    assert words("load", where, folder / "total.uh", *own) == 0
    assert capsys.readouterr().out.startswith(f"the switch at {where} has the handler total, {digest}; ")
    for total in (1, 2):
        assert words("try", "total", message, "--at", where, *own, "-o", written) == 0
        assert int.from_bytes(written.read_bytes(), "little") == total * 20 * sum(range(256))
    # A file's handler is there for its messages only, and begins anew.
    assert words("try", folder / "total.uh", message, "--at", where, *own, "-o", written) == 0
    assert int.from_bytes(written.read_bytes(), "little") == 20 * sum(range(256))
    capsys.readouterr()
    assert words("stat", where, "total", *own, "--json", tmp_path / "nowhere" / "stat.json") == 2
    assert f"{tmp_path / 'nowhere' / 'stat.json'}: No such file or directory" in capsys.readouterr().err
    assert words("stat", where, "total", *own, "--json", report) == 0
    (shown,) = json.loads(report.read_text())["handlers"]
    assert (shown["name"], shown["hash"], shown["messages"], shown["packets"]) == ("total", digest, 2, 8)
    assert words("stat", where, *own) == 0
    assert digest[:8] in capsys.readouterr().out
    assert words("load", where, folder / "strict.uh", "--name", "total", *own) == 2
    assert "another handler total is loaded" in capsys.readouterr().err
    assert words("load", where, folder / "strict.uh", "--name", "total", "--anew", *own) == 0
    assert words("unload", where, "total", *own) == 0
    assert words("unload", where, "total", *own) == 2
    assert words("stat", where, "total", *own) == 2
    said = capsys.readouterr().err
    assert "there is no handler total that this caller may unload" in said
    assert "has no handler total" in said


def test_the_same_as_here(there: handler.RemoteHandlers, folder: Path) -> None:
    packets = [bytes([n % 251]) * n for n in (9, 1, 200, 8192)]
    for path, about in ((EXAMPLES / "histogram.c", {}), (EXAMPLES / "filter.c", {"source": 3, "ranks": 5, "tag": 7})):
        made = handler.compile(path)
        name = there.load(made, anew=True)
        for _ in range(2):
            assert there.run(name, packets, **about) == made.run(packets, **about)
        there.unload(name)
    made = handler.load(folder / "strict.uh")
    name = there.load(made)
    for packets in ([b"four", b"six666"], [b"four", b"333", b"four"], [b"", b"five5"], [b"seven77"]):
        results = []
        for run_it in (made.run, lambda packets: there.run(name, packets)):
            try:
                results.append(run_it(packets))
            except handler.HandlerStopped as stopped:
                results.append(str(stopped))
        assert results[0] == results[1]
    assert results[0] == "strict.c:6: payload fails at packet 0 with 42"
    there.unload(name)


def test_over_budget_it_is_stopped_and_the_caller_told(there: handler.RemoteHandlers, folder: Path) -> None:
    name = there.load(folder / "long.uh")
    with pytest.raises(handler.HandlerStopped, match=r"^long\.c:[345]: payload is stopped at packet 0: it has executed "
                                                     r"1048576 instructions, which is its budget$"):  # fmt: skip
        there.run(name, [b"x"] * 9)
    (shown,) = there.stat(name)["handlers"]
    assert (shown["stops"], shown["packets"]) == ({"budget": 1}, 1)
    assert shown["last_stop"].startswith("long.c:")
    there.unload(name)


def test_four_ranks_fill_one_memory(running: Switch, secret: Path, folder: Path) -> None:
    text = f"ADDRESS = {running.address!r}\nSECRET = {str(secret)!r}\nBINARY = {str(folder / 'total.uh')!r}\n{RANKS}"
    (folder / "ranks.py").write_text(text)
    done = run(*local(4), folder / "ranks.py")
    assert done.returncode == 0, done.stderr
    # 3 messages, of rank r: r + 1 packets of 100 bytes of r + 1, which count r + 1 times.
    assert done.stdout.split() == [str(3 * sum(100 * (r + 1) ** 3 for r in range(4)))]
    with handler.at(running.address, secret_file=secret) as there:
        there.unload("total")


def test_without_room(there: handler.RemoteHandlers, running: Switch, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "large.c"
    source.write_text("#include <unisono_handler.h>\nstatic uint32_t table[1 << 18];\n"
                      "int payload(void) { us_put_u32(table[us_u8_at(0)]++); return US_GO_ON; }\n")  # fmt: skip
    with pytest.raises(handler.HandlerError, match=r"large takes \d+ bytes, and 1048576 of 1048576 .* are free"):
        there.load(source)
    for number in range(5):
        there.load(folder / "total.uh", f"n{number}")
    with pytest.raises(handler.HandlerError, match="5 handlers are loaded, which is the most; unload one"):
        there.load(folder / "total.uh", "n5")
    assert there.run("n4", [b"\1"]).outputs == [bytes([1, 0, 0, 0, 0, 0, 0, 0])]
    for number in range(5):
        there.unload(f"n{number}")


def test_a_switch_that_starts_again_has_no_handlers(secret: Path, folder: Path) -> None:
    with switch(secret) as made:
        there = handler.at(made.address, secret_file=secret, deadline=2)
        name = there.load(folder / "total.uh")
        made.end(signal.SIGKILL)
        begin = time.monotonic()
        with pytest.raises(handler.HandlerError, match=r"the switch at .*: it has closed the connection"):
            there.run(name, [b"x"])
        assert time.monotonic() - begin < 3
        made.start_again()
        with handler.at(made.address, secret_file=secret) as again:
            with pytest.raises(handler.HandlerError, match="there is no handler total that this caller may run"):
                again.run(name, [b"x"])
            assert again.load(folder / "total.uh") == name
            assert again.run(name, [b"\2"]).outputs == [(2).to_bytes(8, "little")]


def test_a_wrong_secret_and_nobody_there(running: Switch, tmp_path: Path) -> None:
    with pytest.raises(handler.HandlerError, match="it has another secret than this caller"):
        handler.at(running.address, secret_file=make_secret(tmp_path))
    with pytest.raises(handler.HandlerError, match=r"the switch at 127\.0\.0\.1:1: "):
        handler.at("127.0.0.1:1", secret_file=make_secret(tmp_path), deadline=1)
