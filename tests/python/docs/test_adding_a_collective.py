"""The collective of docs/adding-a-collective.md, which nobody knows, added to a copy of the tree as the page says.

An entry, a folder, an oracle: with these the copy builds, and the collective is proven and runs on every engine. That
takes minutes, since everything knows the list of collectives: it runs in `make test-all`, when it is named, and for
commits that touch what it is about.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "adding-a-collective.md"
SECONDS = 900
sys.path.insert(0, str(ROOT / "tools"))

import draw  # noqa: E402

pytestmark = pytest.mark.skipif(
    draw.enabled()
    and not any(path.startswith(("spec/", "docs/adding-a-coll", "tests/python/docs/")) for path in draw.find_touched()),
    reason="takes minutes: `make test-all` runs it, and commits that touch spec/",
)

#: What no part of the library is built from.
SPARED = ("apps/", "bench/", "docs/", "mpi/", "rtl/", "tests/")

EVERYWHERE = """
import sys
import numpy as np
import unisono
from unisono import Communicator, ThreadJob

P = 5
COUNTS = [4, 0, 70000, 1, 9]
PLACES = [70010, 3, 5, 0, 70020]  # with gaps, in another order

def check(comm, op, dtype, root):
    mine = np.random.default_rng(comm.rank).integers(-9, 9, COUNTS[comm.rank]).astype(dtype)
    src = np.random.default_rng(99).integers(-9, 9, 70040).astype(dtype)
    block = src[PLACES[comm.rank] :][: COUNTS[comm.rank]]
    expected = {"sum": np.add, "min": np.minimum, "prod": np.multiply}[op](block, mine)
    given = src if comm.rank == root else None
    comm.spreadv_async(given, mine, COUNTS, op, root, displacements=PLACES).wait()
    np.testing.assert_array_equal(mine, expected)

def member(comm: Communicator) -> None:
    for root in range(P):
        for op, dtype in (("sum", "f8"), ("min", "i4"), ("prod", "i8")):
            check(comm, op, dtype, root)
    # The short way, and what is refused before anything is sent.
    packed = np.arange(sum(COUNTS), dtype=np.float32)
    mine = np.ones(COUNTS[comm.rank], np.float32)
    comm.spreadv(packed if comm.rank == 2 else None, mine, COUNTS, root=2)
    np.testing.assert_array_equal(mine, 1 + packed[sum(COUNTS[: comm.rank]) :][: len(mine)])
    assert comm.last_algorithm.name == "linear", comm.last_algorithm
    for wrong, sentence in (
        (lambda: comm.spreadv(packed, None, COUNTS), "spreadv: dst is missing"),
        (lambda: comm.spreadv(packed, mine, COUNTS[1:]), "spreadv: counts has 4 entries"),
        (lambda: comm.spreadv(packed, mine, COUNTS, root=P), "spreadv: root 5 was given"),
        (lambda: comm.spreadv(packed, mine, COUNTS, "mean"), "spreadv"),
        *([(lambda: comm.spreadv(packed, mine[1:], COUNTS), "dst holds")] if len(mine) else []),
    ):
        try:
            wrong()
        except (unisono.UnisonoError, ValueError) as error:
            assert sentence in str(error), error
        else:
            raise AssertionError(sentence)

for lanes in (True, False):
    ThreadJob(P, timeout=60, lanes=lanes).run(member)
print("done")
"""

#: An editable installation goes before PYTHONPATH.
NOT_THE_INSTALLED = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""

IN_CPP = """
#include <unisono/unisono.hpp>

#include <cstdio>
#include <thread>
#include <vector>

int main() {
  unisono::ThreadJob job(3);
  std::vector<int> good(3);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      unisono::Context context(job, rank);
      unisono::Communicator world = context.world();
      const std::vector<std::int64_t> counts{1, 2, 3};
      const std::vector<int> src = rank == 2 ? std::vector<int>{1, 2, 3, 4, 5, 6} : std::vector<int>{};
      std::vector<int> mine(rank + 1, 10);
      world.spreadv(src, mine, {counts, {}}, unisono::Op::kSum, 2);
      world.spreadv_async(src, mine, {counts, {}}, unisono::Op::kMax, 2).wait();
      good[rank] = mine.front() == 10 + static_cast<int>(rank == 0 ? 1 : rank == 1 ? 2 : 4);
      context.finalize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\\n", good[0] + good[1] + good[2]);
}
"""


def listings() -> dict[str, str]:
    """The page's listings, by the file they belong to."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r'^```\w+ title="([\w./]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))


class Tree:
    """A copy of the tree with one collective more."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{root / 'python'}{os.pathsep}{root / 'site'}",
            "CCACHE_BASEDIR": str(root),
            "CCACHE_NOHASHDIR": "1",
        }

    def run(self, *command: str | Path) -> str:
        """Output of a command in the copy."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
        return done.stdout

    def python(self, *arguments: str | Path) -> str:
        """Output of Python, with the package of the copy."""
        return self.run(sys.executable, *arguments)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("added") / "tree"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in names:
        if name and not name.startswith(SPARED) and (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    for name, text in listings().items():
        path = root / name
        if name == "spec/collectives.yaml":
            text = path.read_text(encoding="utf-8") + "\n" + text
        elif name == "reference/expectation.cpp":
            whole = path.read_text(encoding="utf-8")
            begin = "    case Collective::kNop:\n"
            assert whole.count(begin) == 1
            text = whole.replace(begin, text + begin)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "site").mkdir()
    (root / "site" / "sitecustomize.py").write_text(NOT_THE_INSTALLED)
    made = Tree(root)
    assert "core/generated/collectives.hpp" in made.python("-m", "spec.generator")
    made.python("-m", "spec.generator", "--check")
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    made.run(
        "cmake", "-G", "Ninja", "-B", "build", f"-DPython_EXECUTABLE={sys.executable}", "-DUNISONO_TESTS=OFF",
        "-DUNISONO_BENCH=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-DHWY_COMPILE_ONLY_STATIC",
        "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *launcher,
    )  # fmt: skip
    made.run("cmake", "--build", "build", "-j", str(os.cpu_count() or 1), "--target", "python/all", "unisono")
    return made


def test_it_is_proven(tree: Tree) -> None:
    report = tree.python("-m", "unisono", "check", "spreadv/linear")
    assert re.search(r"all right: \d{3,} calls proven", report), report


def test_it_is_known_everywhere(tree: Tree) -> None:
    assert "linear" in tree.python("-m", "unisono", "algorithms", "spreadv")
    said = tree.python("-c", "import unisono; help(unisono.Communicator.spreadv)")
    assert "`op` of block r of the root's src" in said
    assert "counts: 'Sequence[int] | None' = None" in said
    assert "wait_for" in said
    tree.python("-m", "unisono", "show", "spreadv/linear", "--ranks", "4")
    # What `unisono explain` and `bench` ask.
    facts = (
        "from unisono._spec import Collective; c = Collective.SPREADV; print(c.reduces, c.rooted, c.vectors, c.data)"
    )
    assert tree.python("-c", facts) == "True True True True\n"


def test_it_runs_on_lanes_and_by_messages(tree: Tree) -> None:
    (tree.root / "everywhere.py").write_text(EVERYWHERE)
    assert tree.python("everywhere.py") == "done\n"


@pytest.mark.parametrize("platform", ["native", "functional"])
def test_the_program_of_the_page(tree: Tree, platform: str) -> None:
    tree.python("-m", "unisono", "run", "-n", "4", "--platform", platform, "spread.py")


def test_it_is_called_from_cpp(tree: Tree) -> None:
    (tree.root / "spread.cpp").write_text(IN_CPP)
    tree.run(
        "g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Idriver/include", "spread.cpp", "-Lbuild", "-lunisono",
        f"-Wl,-rpath,{tree.root / 'build'}", "-pthread", "-o", "spread",
    )  # fmt: skip
    assert tree.run("./spread") == "3\n"
