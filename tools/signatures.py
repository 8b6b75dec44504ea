"""Extension of griffe, which reads the package for the site's reference: what it shows is what `help()` shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from griffe import Attribute, Docstring, Function, Object, UnpackTypedDictExtension


class NamedOptions(UnpackTypedDictExtension):
    """Replaces `**options: Unpack[Options]` by the options; `start` is one of `_async` forms only.

    Comments that begin with `#:`, behind an attribute or in the line above, are its description. Pages that docstrings
    name, as docs/model.md, become links.
    """

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Changes the signature of a function that was read."""
        super().on_function(func=func, **kwargs)
        if not func.name.endswith("_async") and "start" in func.parameters:
            del func.parameters["start"]

    def on_attribute(self, *, attr: Attribute, **kwargs: Any) -> None:
        """Finds the description of an attribute that was read."""
        path = attr.filepath
        if not isinstance(path, Path) or path not in attr.lines_collection:
            return  # a compiled module has no lines but those of its stub
        if attr.docstring is None and attr.lineno is not None:
            lines = attr.lines_collection[path]
            own = "\n".join(lines[attr.lineno - 1 : attr.endlineno])
            found = re.search(r"#: (.*)", own) or re.match(r"\s*#: (.*)", lines[attr.lineno - 2])
            if found is not None:
                attr.docstring = Docstring(found[1], parent=attr)

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Makes links of the pages that a docstring names, and listings of its examples."""
        if obj.docstring is not None:
            text = re.sub(r"\bdocs/([\w/-]+)\.md(#[\w-]+)?", r"[\1](../../\1.md\2)", obj.docstring.value)
            obj.docstring.value = re.sub(r"^(>>> .*\n?)+(\.\.\. .*\n?)*", "```pycon\n\\g<0>\n```\n", text, flags=re.M)
