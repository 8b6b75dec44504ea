"""tools/coverage.py SUMMARY FOLDER...: the share of each folder's lines that tests reach, from gcovr's summary."""

from __future__ import annotations

import json
import sys
from pathlib import Path

LEAST = 90  #: per cent of each folder's lines


def main(summary: str, *folders: str) -> int:
    """Prints a line for each folder, and its files that lack most. 1 if a folder has too little."""
    enough = True
    files = json.loads(Path(summary).read_text())["files"]
    for folder in folders:
        own = [file for file in files if file["filename"].startswith(f"{folder}/")]
        total = sum(file["line_total"] for file in own)
        reached = sum(file["line_covered"] for file in own)
        share = 100 * reached / total if total else 0
        lacking = sorted(own, key=lambda file: file["line_covered"] - file["line_total"])[:3]
        least = ", ".join(
            f"{file['filename'].removeprefix(folder + '/')} {file['line_total'] - file['line_covered']}"
            for file in lacking
        )
        enough = enough and share >= LEAST
        print(f"{folder + '/':<10} {share:5.1f} % of {total} lines; not reached, most: {least}")
    if not enough:
        print(
            f"Less than {LEAST} % of the lines of a folder are reached; build/coverage/index.html shows which are not."
        )
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
