"""What a switch says of itself, in a terminal of 80 columns: nothing is cut off."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from unisono.cli.switch_tables import print_handlers, print_jobs, print_pools, print_status

COUNTERS = ("contributions", "results", "duplicates", "late", "frames_in", "frames_out")
STOP = "h.c:3: payload is stopped at packet 0: it divides by 0"


def printed(what: Any, answer: dict[str, Any]) -> str:
    """All of it, with a blank in place of what ends a line."""
    stream = io.StringIO()
    what(Console(file=stream, width=80, highlight=False, soft_wrap=True), answer)
    text = stream.getvalue()
    assert "…" not in text, text
    return " ".join(text.split())


def test_status_of_a_switch_whose_uplink_does_not_answer() -> None:
    fault = "the switch at rack1.example.org:7000: it has another secret than this caller, or is no switch of Unisono"
    status = {
        "name": "rack1", "listen": "10.0.0.1:7000", "version": "0.1.0", "uptime_s": 5.0, "draining": False,
        "uplink": {"where": "rack1.example.org:7000", "connected": False, "fault": fault},
        "slots": {"used": 0, "total": 65536}, "memory_bytes": 0, "jobs": 0, "pools": 0, "threads": 1,
        "counters": {"frames_in": 0, "frames_out": 0, "strangers": 3},
    }  # fmt: skip
    text = printed(print_status, status)
    assert f"uplink rack1.example.org:7000, not reached: {fault}" in text
    assert "strangers 3 datagrams of no communicator that is here" in text


@pytest.mark.parametrize("communicators", [3, 200])
def test_jobs_with_many_communicators(communicators: int) -> None:
    job = {"job": "0123456789abcdef", "communicators": list(range(communicators)), "slots": 1234, "frames": 12345678901,
           "bytes": 123456789012, "name": "train_a_large_model_of_language.py"}  # fmt: skip
    text = printed(print_jobs, {"jobs": [job]})
    for word in ("01234567", "12,345,678,901", "123,456,789,012"):
        assert word in text
    assert str(communicators - 1) in text.split()


def test_a_communicator_with_switches_of_long_names() -> None:
    members = [{"position": n, "first": 100 * n, "ranks": 100, "switch": f"rack{n}." + "x" * 60} for n in range(2)]
    pool = {"communicator": 7, "job": "0123456789abcdef", "job_name": "program.py", "state": "begun", "above": "",
            "members": members, "slots": 64, "payload_bytes": 1344, "waits": [], "generation": 1, "silent": [],
            "counters": dict.fromkeys(COUNTERS, 0)}  # fmt: skip
    assert "ranks 100-199 behind switch" in printed(print_pools, {"pools": [pool]})


def test_handlers_with_long_names_and_large_counts() -> None:
    one = {"name": "a_handler_with_a_name_that_says_what_it_is", "hash": "0" * 64, "job": "", "memory_bytes": 16777216,
           "packets": 123456789012, "executed": 123456789012345, "stops": {"memory": 2}, "last_stop": STOP}  # fmt: skip
    answer = {
        "handlers": [one],
        "operators": [],
        "memory_bytes": {"used": 0, "total": 1},
        "most": 64,
        "budget": 1 << 20,
    }
    text = printed(print_handlers, answer)
    for word in ("123,456,789,012", "123,456,789,012,345", "16,777,216", STOP):
        assert word in text
