"""`unisono doctor`: what this machine offers, and what to change."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..machine import Finding, State, can_run, examine, usable_cores
from . import table as tables

MARKS = {State.OK: "✓", State.IMPROVABLE: "!", State.MISSING: "✗"}
COLOURS = {State.OK: "green", State.IMPROVABLE: "yellow", State.MISSING: "red"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="say what this machine offers and what to change",
        description="Looks at what jobs on this machine depend on, trying what can be tried. The exit status is 0 if "
        "Unisono can run here, 1 if something is missing without which it cannot.",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    findings = examine()
    runs = can_run(findings)
    if options.json:
        entries = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"can_run": runs, "usable_cores": usable_cores(), "findings": entries}, indent=2))
        return 0 if runs else 1
    console = Console(highlight=False, soft_wrap=False)
    console.print(_table(findings))
    console.print()
    for finding in findings:
        if finding.state is not State.OK:
            _advise(console, finding)
    if runs:
        cores = usable_cores()
        console.print(f"[green]Unisono can run here[/]; up to {cores} rank{'s' * (cores != 1)} with a core each.")
    else:
        missing = ", ".join(each.name for each in findings if each.essential and each.state is State.MISSING)
        console.print(f"[red]Unisono cannot run here[/]: {escape(missing)} is missing.")
    return 0 if runs else 1


def _table(findings: list[Finding]) -> Table:
    table = tables.plain()
    table.add_column("", no_wrap=True)
    table.add_column("property", no_wrap=True)
    table.add_column("found")
    for _, group in itertools.groupby(findings, key=lambda finding: finding.area):
        members = list(group)
        for finding in members:
            colour = COLOURS[finding.state]
            state = "" if finding.state is State.OK else f"[{colour}]{finding.state}[/]: "
            table.add_row(
                f"[{colour}]{MARKS[finding.state]}[/]", escape(finding.name), f"{state}{escape(finding.value)}",
                end_section=finding is members[-1],
            )  # fmt: skip
    return table


def _advise(console: Console, finding: Finding) -> None:
    console.print(f"[{COLOURS[finding.state]}]{escape(finding.name)}[/]: {escape(finding.effect)}")
    if finding.remedy:
        # Whole, however long, so that it can be copied.
        console.print(f"    {escape(finding.remedy)}", soft_wrap=True)
