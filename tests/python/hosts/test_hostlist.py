"""Which hosts a job has: lists, files, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unisono.cli.hostlist import HostListError, HostRanks, read_file, read_list
from unisono.cli.run import TRANSPORTS
from unisono.cli.way import HostError, Way

from .support import ROOT, run


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a:4,b:4", {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}),
        ("a", {"a": [0]}),
        ("a,b , c:2", {"a": [0], "b": [1], "c": [2, 3]}),
        ("a:2,b:2,a:1", {"a": [0, 1, 4], "b": [2, 3]}),
        ("me@a.example:1,[fd00::1]:2,[::1]", {"me@a.example": [0], "fd00::1": [1, 2], "::1": [3]}),
    ],
)
def test_lists(text: str, hosts: dict[str, list[int]]) -> None:
    assert read_list(text) == [HostRanks(name, ranks) for name, ranks in hosts.items()]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# of the lab\na:2\n\nb slots=2  # the new one\na\n[fd00::1]:1\n")
    assert read_file(str(path)) == [HostRanks("a", [0, 1, 4]), HostRanks("b", [2, 3]), HostRanks("fd00::1", [5])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no host"),
        ("a:2,,b:2", "names no host"),
        (":4", "names no host"),
        ("-oProxyCommand=x:4", "names no host"),
        ("a b:4", "names no host"),
        ("fd00::1:4", "names no host"),
        ("[fd00::1:4", "names no host"),
        ("a:0", "asks for '0' ranks; write a number above 0, such as a:4"),
        ("a:", "asks for '' ranks"),
        ("a:-1", "asks for '-1' ranks"),
        ("a:two", "asks for 'two' ranks"),
        ("a:²", "asks for '²' ranks"),
        ("a:1000,b:1000,c:49", "2049 ranks were asked for; allowed are 1 to 2048"),
        ("a:1000,b:2,a:25", "1025 ranks on a were asked for; allowed are 1 to 1024"),
    ],
)
def test_bad_lists(text: str, said: str) -> None:
    with pytest.raises(HostListError, match=re.escape(said)):
        read_list(text)


@given(st.text())
def test_any_text_is_a_list_or_an_error(text: str) -> None:
    try:
        hosts = read_list(text)
    except HostListError:
        return
    ranks = sorted(rank for host in hosts for rank in host.ranks)
    assert ranks == list(range(len(ranks)))
    assert 1 <= len(ranks) <= 2048


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--hosts", "a:0", "true"], "--hosts: 'a:0' asks for '0' ranks"),
        (["--hosts", "a:2,b:2", "-n", 3, "true"], "-n asks for 3 ranks, and the hosts have 4"),
        (["--hosts", "a:2", "--hostfile", "x", "true"], "--hosts and --hostfile are both given"),
        (["--hostfile", "/no/file", "true"], "/no/file cannot be read: No such file or directory"),
        (["true"], "-n 4, or name hosts"),
        (["-n", 2, "--agent", "local", "true"], "--agent goes with --hosts"),
        (["--hosts", "a:2", "--platform", "rtl", "true"], "runs on this machine"),
        (["--hosts", "a:2"], "no program was given; name the one to run on 2 ranks"),
        (
            ["--hosts", "a:2", "--transport", "tcp,pigeon", "true"],
            "there is no network 'pigeon'; known are tcp, udp, ofi",
        ),
        (["-n", 2, "--env", "NO_SUCH_VARIABLE", "true"], "the environment has no variable NO_SUCH_VARIABLE here"),
        (["-n", 2, "--env", "UNISONO_SECRET=00", "true"], "`unisono run` itself sets"),
        (["--hosts", "a:2", "--agent", "sh 'x", "true"], "is no command: No closing quotation"),
    ],
)
def test_command_line_errors(arguments: list[object], text: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_networks_are_those_of_the_library() -> None:
    header = (ROOT / "platform/join/job.hpp").read_text()
    found = re.search(r"kTransports = \{([^}]*)\}", header)
    assert found is not None
    assert tuple(re.findall(r'"([^"]+)"', found[1])) == TRANSPORTS


def test_ways_to_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    agent = ["/a b/python", "-m", "unisono.cli.agent"]
    quoted = "'/a b/python' -m unisono.cli.agent"

    def command(template: str | None, host: str = "far") -> list[str]:
        return Way(template, "/a b/python").command(host)

    assert command(None)[0] == "ssh"
    assert command(None)[-2:] == ["far", quoted]  # a shell there reads it
    assert command(None, "localhost") == agent
    assert command("local") == agent
    assert command("ip netns exec {host}") == ["ip", "netns", "exec", "far", *agent]
    assert command("ip netns exec") == ["ip", "netns", "exec", "far", *agent]
    assert command("/usr/bin/ssh -p 2222", "localhost") == ["/usr/bin/ssh", "-p", "2222", "localhost", quoted]
    assert command("sh -c {command} {host}") == ["sh", "-c", quoted, "far"]
    monkeypatch.setenv("PYTHONPATH", "/x")
    assert command("rexec {host}") == ["rexec", "far", "env", "PYTHONPATH=/x", *agent]
    with pytest.raises(HostError, match="no command was given"):
        command("")
