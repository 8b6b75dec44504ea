"""What runs for a commit: what it touches runs whole; of everything else a part, drawn by a seed.

The seed is UNISONO_SEED or, without it, the commit's hash: the same seed draws the same part, and over many commits
everything has its turn. tests/touches.toml says which tests belong to which folders; what tests/always.txt names always
runs. What a commit touches is what differs between the working tree and UNISONO_BASE or, without it, the commit before
(where there is none, as in a shallow clone, nothing counts as touched). Of what a commit of many files touches a part
is drawn, too, for it touches nearly everything, and what runs must end in its time. Nothing is drawn unless
UNISONO_DRAW is 1, as in `make test` and `.ci/run`; `make test-all` runs everything.

    draw.py seed            what is drawn, in one line
    draw.py names SHARE [KIND]  of the names on standard input (a line each) those drawn, and those that KIND (a table
                            of touches.toml) runs for what the commit touches
    draw.py files SHARE     the same of C++ files: touched ones and those beside a touched header come first
    draw.py ctest SHARE     of `ctest --show-only=json-v1` on standard input those drawn, as `ctest -I` takes them
    draw.py touches KIND    exit status 0 if the commit touches what KIND names

SHARE is a number above 0, up to 1. Of names at least one is drawn.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]


#: A commit that touches more files than this is large.
LARGE = 60
#: The part that runs of what a large commit touches.
PART_OF_LARGE = 0.3


def enabled() -> bool:
    """Whether a part is to be drawn; if not, everything runs."""
    return os.environ.get("UNISONO_DRAW") == "1"


def _git(*arguments: str) -> str | None:
    """What git prints, or None where there is no git, no repository or no such commit."""
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), *arguments]  # a checkout may be another user's
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find_seed() -> str:
    """UNISONO_SEED, or the beginning of the commit's hash, or `0` outside a repository."""
    return os.environ.get("UNISONO_SEED") or _git("rev-parse", "--short=12", "HEAD") or "0"


def find_touched() -> frozenset[str]:
    """Paths from the root that the commit or the working tree changes."""
    base = os.environ.get("UNISONO_BASE") or "HEAD~1"
    changed = _git("diff", "--name-only", "--no-renames", base) or _git("diff", "--name-only", "HEAD") or ""
    new = _git("ls-files", "--others", "--exclude-standard") or ""
    return frozenset(line for line in [*changed.splitlines(), *new.splitlines()] if line)


def below(path: str, place: str) -> bool:
    """Whether a path is the place or in it. The last name of a place may be the beginning of a name: `cli/run`."""
    return path.startswith(place)


@dataclass(frozen=True)
class Draw:
    """A drawing. The same seed draws the same names, whatever their order."""

    seed: str
    touched: frozenset[str] = frozenset()
    table: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    always: frozenset[str] = frozenset()

    def of_touched(self, share: float) -> float:
        """The share of what the commit touches, where that of all else is `share`."""
        return 1 if len(self.touched) <= LARGE else max(share, PART_OF_LARGE)

    def whole(self, kind: str) -> frozenset[str]:
        """What `kind` (python, cpp, rtl, fuzz) runs whole, or of a large commit more than of the others, as the table
        names it: files, folders, labels.
        """
        rules = self.table.get(kind, {})
        return frozenset(
            name for place, names in rules.items() if any(below(path, place) for path in self.touched) for name in names
        )

    def _order(self, name: str) -> str:
        return hashlib.sha256(f"{self.seed} {name}".encode()).hexdigest()

    def part(self, names: Iterable[str], share: float) -> set[str]:
        """Of these names the share, rounded up, and those that always run."""
        every = sorted(set(names), key=self._order)
        return {*every[: math.ceil(len(every) * share)], *(name for name in every if name in self.always)}

    def named(self, names: Iterable[str], share: float, kind: str) -> set[str]:
        """Of these names the share, and those that `kind` runs for what is touched."""
        every = set(names)
        mine = every & self.whole(kind)
        return self.part(every - mine, share) | self.part(mine, self.of_touched(share))

    def files(self, paths: Iterable[str], share: float) -> set[str]:
        """Of C++ sources: what is touched, what stands in the folder of a touched header, and a share of the rest."""
        every = set(paths)
        folders = {str(PurePosixPath(path).parent) for path in self.touched if path.endswith((".hpp", ".h"))}
        mine = {path for path in every if path in self.touched or str(PurePosixPath(path).parent) in folders}
        return self.part(mine, self.of_touched(share)) | self.part(every - mine, share)

    def ctest(self, listing: str, share: float) -> list[int]:
        """Of what `ctest --show-only=json-v1` has printed the numbers of tests to run: of each label the share."""
        labels: dict[str, dict[str, int]] = {}
        for number, test in enumerate(json.loads(listing)["tests"], 1):
            found = [p["value"] for p in test.get("properties", ()) if p["name"] == "LABELS"]
            name = test["name"].split("  #")[0]  # what follows is the parameter, as GoogleTest prints it
            labels.setdefault(found[0][0] if found else "", {})[name] = number
        chosen: list[int] = []
        whole = self.whole("cpp")
        for label, tests in labels.items():
            drawn = self.part(tests, self.of_touched(share) if label in whole else share)
            chosen += [number for name, number in tests.items() if name in drawn]
        return sorted(chosen)

    def __str__(self) -> str:
        return f"seed {self.seed}, {len(self.touched)} files touched"


def of_this_commit() -> Draw:
    """The drawing of the checkout that this file is in."""
    lines = (ROOT / "tests" / "always.txt").read_text().splitlines()
    always = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    table = tomllib.loads((ROOT / "tests" / "touches.toml").read_text())
    return Draw(find_seed(), find_touched(), table, always)


def main(arguments: Sequence[str]) -> int:
    """See the top."""
    draw = of_this_commit()
    match list(arguments):
        case ["seed"]:
            print(draw)
        case ["touches", kind]:
            return 0 if draw.whole(kind) else 1
        case [("names" | "files" | "ctest") as what, share_text, *kind] if len(kind) <= (what == "names"):
            share = float(share_text)
            if not 0 < share <= 1:
                print(f"draw.py: a share is above 0 and at most 1, not {share_text}", file=sys.stderr)
                return 2
            if what == "ctest":
                # Start, end and stride of no range, then the numbers.
                print(",".join(map(str, [0, 0, 0, *draw.ctest(sys.stdin.read(), share)])))
            else:
                names = sys.stdin.read().split()
                drawn = draw.files(names, share) if what == "files" else draw.named(names, share, "".join(kind))
                print(*(name for name in names if name in drawn), sep="\n")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
