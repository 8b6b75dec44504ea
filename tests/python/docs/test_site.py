"""The site's navigation, its home page and its reference: what a reader finds, and where."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import unisono
import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
COLUMNS = 120  # of code, that fit into a window of 1300 pixels with the site's style


def hooks() -> Any:
    """tools/site.py, as mkdocs loads it."""
    description = importlib.util.spec_from_file_location("site_hooks", ROOT / "tools" / "site.py")
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def leaves(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for item in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(item)


def navigation() -> dict[str, list[str]]:
    """Pages of each section of the site, in order."""
    entries = hooks().navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"], DOCS)
    return {name: list(leaves(pages)) for section in entries for name, pages in section.items()}


def run(*words: object, folder: Path = ROOT, seconds: int = 120) -> str:
    """What a command of the project prints."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True, text=True, timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sections_stand_in_the_order_in_which_readers_need_them() -> None:
    assert list(navigation()) == [
        "Start", "Guides", "Understand", "Tools", "When something is wrong", "Reference", "Hardware",
        "Hardware engine: modules", "Decisions",
    ]  # fmt: skip


def test_every_page_stands_in_one_place() -> None:
    pages = [page for section in navigation().values() for page in section]
    assert sorted(pages) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_modules_have_a_section_of_their_own() -> None:
    sections = navigation()
    hardware, modules = sections["Hardware"], sections["Hardware engine: modules"]
    assert hardware[0] == "rtl/index.md"
    # Who runs programs, or attaches a kernel, meets no page of a module.
    for page in ("devices", "simulated-cluster", "rtl/engine", "rtl/attaching-a-kernel", "rtl/figures", "rtl/testing"):
        assert f"{page}.md" in hardware, page
    assert {f"rtl/{module}.md" for module in ("cclo", "scoreboard", "tx", "skid", "poe_frame")} <= set(modules)
    assert len(hardware) < 30 < len(modules)
    others = [pages for name, pages in sections.items() if name not in ("Hardware", "Hardware engine: modules")]
    assert not [page for pages in others for page in pages if "rtl/" in page]


def words_of_the_glossary() -> list[str]:
    page = (DOCS / "glossary.md").read_text()
    return [word.strip("* ") for row in re.findall(r"^\| (\*\*.*?) \|", page, re.M) for word in row.split(", ")]


def test_glossary_says_each_word_once_in_order() -> None:
    words = words_of_the_glossary()
    assert len(words) == len(set(words)) > 50
    for section in (DOCS / "glossary.md").read_text().split("\n## ")[1:]:
        firsts = [row.lower() for row in re.findall(r"^\| \*\*(.*?)\*\*", section, re.M)]
        assert firsts == sorted(firsts), section.splitlines()[0]
    assert "](glossary.md)" in (DOCS / "index.md").read_text()


def listings(page: Path) -> Iterator[tuple[int, str]]:
    """Lines of code of a page, with their numbers; what commands print wraps on the site, and is left out."""
    fence = ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if opened := re.match(r"\s*```+(\w*)", line):
            fence = "" if fence else opened[1] or "plain"
        elif fence and fence != "text":
            yield number, line


def test_no_listing_is_cut_at_1300_pixels() -> None:
    cut = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} columns"
        for page in DOCS.rglob("*.md")
        for number, line in listings(page)
        if len(line) > COLUMNS
    ]
    assert cut == []


@pytest.mark.parametrize("platform", ["native", "functional"])
def test_program_of_the_home_page(tmp_path: Path, platform: str) -> None:
    found = re.search(r'^```python title="hello.py"\n(.*?)^```$', (DOCS / "index.md").read_text(), re.M | re.S)
    assert found is not None
    (tmp_path / "hello.py").write_text(found[1])
    printed = run("unisono", "run", "-n", 4, "--prefix", "--platform", platform, "hello.py", folder=tmp_path)
    assert sorted(re.sub(r"^\[\d\] ", "", line) for line in printed.splitlines()) == [
        f"rank {rank} of 4: [10. 10. 10. 10.]" for rank in range(4)
    ]


def test_home_page_tells_of_the_hardware_and_of_targets_that_exist() -> None:
    page = (DOCS / "index.md").read_text()
    for text in ("](rtl/index.md)", "SystemVerilog", "--platform rtl"):
        assert text in page
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)", page, re.M)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:.*## ", makefile, re.M), target


def test_moves_of_the_page_are_those_of_the_program() -> None:
    shown = re.search(r"^```text\n(reduce/binomial.*?)^```$", (DOCS / "why.md").read_text(), re.M | re.S)
    assert shown is not None
    assert run("unisono", "show", "reduce/binomial", "--ranks", 4) == shown[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning fails."""
    place = tmp_path_factory.mktemp("site")
    run("mkdocs", "build", "--strict", "--site-dir", place, seconds=600)
    return place


def plain(markup: str) -> str:
    """Text of a page."""
    return re.sub("<[^>]+>", "", markup)


def test_site_needs_no_other_site(site: Path) -> None:
    """It is read from a folder, and without a network: diagrams are pictures, and no script comes from elsewhere."""
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    assert len(pages) > 100
    loaded = r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//'
    assert [page for page, text in pages.items() if re.search(loaded, text) or 'class="mermaid"' in text] == []


def test_reference_has_everything_that_the_package_exports(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "reference" / "python").glob("*.html"))
    assert "Unpack" not in text
    identifiers = set(re.findall(r'id="(unisono\.[\w.]+)"', text))
    elsewhere = {"Collective", "Datatype", "ErrorCode", "Func", "__version__"}  # in the specification's page
    missing = [
        name
        for name in set(unisono.__all__) - elsewhere
        if not {f"unisono.{name}", f"{getattr(getattr(unisono, name), '__module__', '')}.{name}"} & identifiers
    ]
    assert missing == []
    for kind in (unisono.Communicator, unisono.Context, unisono.Request, unisono.Program, unisono.Builder):
        for name in vars(kind):
            if not name.startswith("_") and not name.endswith("_async") and name != "result":
                assert f"unisono.{kind.__name__}.{name}" in identifiers, name


def test_reference_shows_options_by_name(site: Path) -> None:
    page = (site / "reference" / "python" / "communicators.html").read_text()
    part = page.split('id="unisono.Communicator.allreduce"', 1)[1].split('id="unisono.Communicator.scan"', 1)[0]
    for name in inspect.signature(unisono.Communicator.allreduce).parameters:
        assert name == "self" or re.search(rf"\b{name}:", plain(part)), name
    assert not re.search(r"\bstart:", plain(part))
    # Pages that docstrings name are links.
    assert 'href="../../compressed.html"' in page
    assert "docs/" not in plain(page)
