"""Hooks of the documentation site (mkdocs.yml): patterns in the navigation, and the list of decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def title(page: Path) -> str:
    """Text of a page's first heading."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    raise ValueError(f"{page} has no heading")


def expand(entry: Any, docs: Path) -> Any:
    """A navigation entry with each pattern replaced by the pages it stands for, in order of name."""
    if isinstance(entry, list):
        return [expand(item, docs) for item in entry]
    if isinstance(entry, dict):
        return {name: expand(value, docs) for name, value in entry.items()}
    if isinstance(entry, str) and "*" in entry:
        pages = sorted(docs.glob(entry), key=lambda page: (page.name != "index.md", page.name))
        return [page.relative_to(docs).as_posix() for page in pages]
    return entry


def on_config(config: Any) -> Any:
    """Expands the patterns of the navigation."""
    config["nav"] = expand(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Puts the list of decisions where decisions/index.md asks for it."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    folder = Path(config["docs_dir"]) / "decisions"
    pages = sorted(path for path in folder.glob("*.md") if path.name != "index.md")
    return markdown.replace("<!-- list -->", "\n".join(f"- [{title(path)}]({path.name})" for path in pages))
