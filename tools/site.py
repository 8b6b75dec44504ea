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


def named(entry: Any) -> set[str]:
    """The pages that a navigation names itself, without patterns."""
    if isinstance(entry, str):
        return set() if "*" in entry else {entry}
    return {page for item in (entry.values() if isinstance(entry, dict) else entry) for page in named(item)}


def expand(entry: Any, docs: Path, taken: set[str]) -> Any:
    """A navigation entry with each pattern replaced by the pages it stands for and that are not taken, by name."""
    if isinstance(entry, dict):
        return {name: expand(value, docs, taken) for name, value in entry.items()}
    items = []
    for item in entry if isinstance(entry, list) else [entry]:
        if isinstance(item, str) and "*" in item:
            found = sorted(docs.glob(item), key=lambda page: (page.name != "index.md", page.name))
            pages = [page.relative_to(docs).as_posix() for page in found if page.suffix == ".md"]
            items += [page for page in pages if page not in taken]
            taken.update(pages)
        elif isinstance(item, str):
            items.append(item)
        else:
            items.append(expand(item, docs, taken))
    return items[0] if isinstance(entry, str) and "*" not in entry else items


def modules(entry: Any) -> Any:
    """The pages of a navigation entry, each under the name of its module instead of its heading."""
    if isinstance(entry, dict):
        return {name: modules(value) for name, value in entry.items()}
    return [{Path(item).stem: item} if isinstance(item, str) else modules(item) for item in entry]


def navigation(entries: list[Any], docs: Path) -> list[Any]:
    """The navigation as mkdocs has it."""
    expanded: list[Any] = expand(entries, docs, named(entries))
    for section in expanded:
        for part in section.get("Hardware", []):
            part.update((name, modules(value)) for name, value in part.items() if name == "Modules")
    return expanded


def on_config(config: Any) -> Any:
    """Expands the patterns of the navigation."""
    config["nav"] = navigation(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Puts the list of decisions where decisions/index.md asks for it."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    folder = Path(config["docs_dir"]) / "decisions"
    pages = sorted(path for path in folder.glob("*.md") if path.name != "index.md")
    return markdown.replace("<!-- list -->", "\n".join(f"- [{title(path)}]({path.name})" for path in pages))
