"""What a switch says of itself, for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import table as tables
from .asking import plain

#: Of the counters of a switch, those that are shown only if something came; and what they mean.
UNWANTED = {
    "garbage": "datagrams too short to be any",
    "strangers": "datagrams of no communicator that is here",
    "forged": "datagrams that no member has made",
    "lost": "datagrams that the system had no room for",
    "over_share": "datagrams of the job that sent most meanwhile",
    "broken": "datagrams that ended in an error",
    "wrong_secrets": "callers with another secret",
    "other_versions": "callers of another version",
    "foreign": "callers with another protocol",
    "slow": "callers that were too slow",
    "crowded": "callers too many",
}


def _text(value: object) -> str:
    """What came from elsewhere, without what would steer a terminal."""
    return escape(plain(str(value)))


def _table(*columns: str) -> Table:
    """Columns: those whose names begin with > have numbers, and those with * take several lines where a terminal is
    too narrow for all of them.
    """
    table = tables.plain()
    for name in columns:
        table.add_column(name.lstrip(">*"), justify="right" if name.startswith(">") else "left",
                         no_wrap=not name.startswith("*"), overflow="fold")  # fmt: skip
    return table


def print_status(console: Console, status: dict[str, Any]) -> None:
    """The answer to `status`."""
    counters = status["counters"]
    draining = ", [yellow]is being drained[/]" if status["draining"] else ""
    console.print(f"[bold]switch {_text(status['name'])}[/] at {_text(status['listen'])}{draining}")
    table = _table("", "*")
    table.show_header = False
    uplink = status["uplink"]
    if uplink is None:
        above = "none: this is the top"
    elif uplink["connected"]:
        above = f"{_text(uplink['where'])} ({_text(uplink['name'])})"
    else:
        above = f"{_text(uplink['where'])}, [red]not reached[/]: {_text(uplink.get('fault', ''))}"
    slots = status["slots"]
    unwanted = [(name, text) for name, text in UNWANTED.items() if counters.get(name)]
    for name, value in (
        ("version", _text(status["version"])),
        ("up for", f"{status['uptime_s']:.0f} s"),
        ("uplink", above),
        ("jobs", f"{status['jobs']:,}, with {status['pools']:,} communicators"),
        ("slots", f"{slots['used']:,} of {slots['total']:,} taken, {status['memory_bytes']:,} bytes"),
        ("threads", f"{status['threads']:,}"),
        ("frames", f"{counters['frames_in']:,} in, {counters['frames_out']:,} out"),
        *((name.replace("_", " "), f"{counters[name]:,} {text}") for name, text in unwanted),
    ):
        table.add_row(name, value)
    console.print(table)


def print_jobs(console: Console, answer: dict[str, Any]) -> None:
    """The answer to `jobs`."""
    if not answer["jobs"]:
        console.print("no jobs")
        return
    table = _table("job", "*communicators", ">slots", ">frames", ">bytes", "*program")
    for job in answer["jobs"]:
        numbers = ", ".join(map(str, job["communicators"]))
        counts = (f"{job[name]:,}" for name in ("slots", "frames", "bytes"))
        table.add_row(_text(job["job"])[:8], numbers, *counts, _text(job["name"]))
    console.print(table)


def who(member: dict[str, Any]) -> str:
    """Rank 3; ranks 4-7 behind switch rack2."""
    first, last = member["first"], member["first"] + member["ranks"] - 1
    ranks = f"rank {first}" if first == last else f"ranks {first}-{last}"
    return f"{ranks} behind switch {_text(member['switch'])}" if "switch" in member else ranks


def print_pools(console: Console, answer: dict[str, Any]) -> None:
    """The answer to `show`."""
    for pool in answer["pools"]:
        above = f", below switch {_text(pool['above'])}" if pool["above"] else ""
        console.print(
            f"[bold]communicator {pool['communicator']}[/] of job {_text(pool['job'])[:8]} "
            f"({_text(pool['job_name'])}): "
            f"{_text(pool['state'])}, {len(pool['members'])} members, {pool['slots']} slots of {pool['payload_bytes']} "
            f"bytes{above}"
        )
        if pool["state"] == "refused":
            console.print(f"[red]{_text(pool['refusal'])}[/]")
        table = _table("member", "*is", "waited for by")
        waited: dict[int, list[int]] = {}
        for wait in pool["waits"]:
            for member in wait["missing"]:
                waited.setdefault(member["position"], []).append(wait["turn"])
        silent = {member["position"] for member in pool.get("silent", [])}
        for member in pool["members"]:
            turns = waited.get(member["position"], [])
            text = "the beginning" if member["position"] in silent else ""
            if turns:
                text = f"turn {turns[0]}" + (f" and {len(turns) - 1} more" if len(turns) > 1 else "")
            table.add_row(str(member["position"]), who(member), text)
        console.print(table)
        counters = pool["counters"]
        console.print(
            f"{counters['contributions']:,} contributions, {counters['results']:,} results, {counters['duplicates']:,} "
            f"duplicates, {counters['late']:,} late; {counters['frames_in']:,} frames in, "
            f"{counters['frames_out']:,} out; generation {pool['generation']}",
            style="dim",
        )


def print_handlers(console: Console, answer: dict[str, Any]) -> None:
    """The answer to `stat`."""
    memory = answer["memory_bytes"]
    if answer["handlers"]:
        table = _table("*handler", "hash", "job", ">bytes", ">packets", ">instructions", ">stops")
        for one in answer["handlers"]:
            stops = sum(one["stops"].values())
            table.add_row(
                _text(one["name"]), _text(one["hash"])[:8], _text(one["job"] or "all")[:8],
                *(f"{value:,}" for value in (one["memory_bytes"], one["packets"], one["executed"])),
                f"{stops:,}",
            )  # fmt: skip
        console.print(table)
        for one in answer["handlers"]:
            if one["last_stop"]:
                reasons = ", ".join(f"{times:,} {reason}" for reason, times in one["stops"].items())
                console.print(f"[red]{_text(one['name'])}[/] ({_text(reasons)}): {_text(one['last_stop'])}")
    else:
        console.print("no handlers")
    if answer.get("operators"):  # which switches of earlier releases do not list
        table = _table("*operator of", "communicator", "hash", "element", ">bytes", ">elements", ">stops")
        for one in answer["operators"]:
            table.add_row(
                _text(one["job_name"]), str(one["communicator"]), _text(one["hash"])[:8], f"{one['element_bytes']} B",
                *(f"{one[key]:,}" for key in ("memory_bytes", "elements", "stops")),
            )  # fmt: skip
        console.print(table)
        for one in answer["operators"]:
            if one["last_stop"]:
                console.print(f"[red]{_text(one['source'])}[/]: {_text(one['last_stop'])}")
    console.print(
        f"{memory['used']:,} of {memory['total']:,} bytes for {answer['most']:,} handlers at most; a function may "
        f"execute {answer['budget']:,} instructions",
        style="dim",
    )
