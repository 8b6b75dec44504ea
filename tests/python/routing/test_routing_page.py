"""The example of docs/routing.md prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from unisono.cli import main
from unisono.routing import programs, proof, report, schemes, topology
from unisono.routing.topology import Topology

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "routing.md").read_text(encoding="utf-8")


def blocks() -> list[tuple[list[str], str | None]]:
    """The page's commands, with what the last of each block prints."""
    example = PAGE.partition("## Example")[2].partition("\n## ")[0]
    found = re.findall(r"^```\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", example, re.MULTILINE | re.DOTALL)
    return [(commands.splitlines(), printed or None) for commands, printed in found]


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(blocks()) == 3
    for commands, printed in blocks():
        said = ""
        for command in commands:
            program, *words = shlex.split(command)
            assert program == "unisono"
            assert main(words) == int("smi" in words)
            said = capsys.readouterr().out
        if printed is not None:
            assert said == printed
    assert "8 ranks, 15 cables" in said


def test_the_topology_of_the_page_is_one() -> None:
    shown = re.search(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown
    assert topology.parse(shown[1], "page").size == 2


SHAPES = {
    "torus 2x4": topology.torus([2, 4]),
    "torus 4x4": topology.torus([4, 4]),
    "cube 2x2x2": topology.torus([2, 2, 2]),
    "bus of 8": topology.bus(8),
    "ring of 4": topology.bus(4, closed=True),
    "ring of 5": topology.bus(5, closed=True),
    "ring of 8": topology.bus(8, closed=True),
}


def figures(network: Topology, scheme: str) -> str:
    tables = schemes.make(network, programs.of_nodes(network, [], 1), scheme)
    finding = proof.examine(network, tables)
    found = report.summary(network, finding)
    ways = "**circle**" if finding.circle else f"{tables.channels} channel{'s' * (tables.channels > 1)}"
    alike = sum(finding.loads.values()) / len(finding.loads)
    return f"{found.mean:.3f} hops, {ways}, {found.load:.4g} ({alike:.4g})"


@pytest.mark.parametrize("name", SHAPES)
def test_the_figures_of_the_page(name: str) -> None:
    cells = (name, *(figures(SHAPES[name], scheme) for scheme in schemes.SCHEMES))
    assert f"| {' | '.join(cells)} |\n" in PAGE
