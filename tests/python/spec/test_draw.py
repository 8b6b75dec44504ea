"""What runs for a commit: the same seed draws the same, nothing is lost over many, what is touched runs whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import draw
import pytest

ROOT = Path(__file__).parents[3]
CASES = [f"tests/python/{module}::test_it[{case}]" for module in ("a/test_a.py", "b/test_b.py") for case in range(30)]
PART = 6
"""Of the thirty cases of a module, the fifth that is drawn (conftest.SHARE)."""
CASES += ["tests/python/c/test_c.py::test_alone"]
TABLE = {"python": {"engine/": ["a/"]}, "cpp": {"engine/": ["engine"]}}


def run_in(folder: Path, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    return subprocess.run(command, cwd=folder, env=clean | environment, capture_output=True, text=True, timeout=120)


def chosen(drawing: draw.Draw) -> set[str]:
    """What tests/python/conftest.py runs of the cases above."""
    program = (
        "import sys, json; sys.path[:0] = ['tests/python', 'tools']; import conftest, draw\n"
        "seed, touched, table, names = json.loads(sys.stdin.read())\n"
        "print(json.dumps(sorted(conftest.chosen(draw.Draw(seed, frozenset(touched), table), names))))"
    )
    given = json.dumps([drawing.seed, sorted(drawing.touched), drawing.table, CASES])
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stdout))


def test_the_same_seed_draws_the_same_in_any_order() -> None:
    one = draw.Draw("1")
    assert one.part(CASES, 0.3) == one.part(reversed(CASES), 0.3)
    assert one.part(CASES, 0.3) != draw.Draw("2").part(CASES, 0.3)


@pytest.mark.parametrize("share", [0.01, 0.3, 1])
def test_a_share_is_a_share_and_one_at_least(share: float) -> None:
    drawn = draw.Draw("seed").part(CASES, share)
    assert max(1, share * len(CASES)) <= len(drawn) < share * len(CASES) + 1
    assert draw.Draw("seed").part([], share) == set()


def test_nothing_is_lost_over_many_seeds() -> None:
    assert set().union(*(draw.Draw(str(seed)).part(CASES, 0.3) for seed in range(60))) == set(CASES)


def test_every_module_runs_and_touched_ones_whole() -> None:
    nothing = chosen(draw.Draw("seed", table=TABLE))
    assert {name.split("::")[0] for name in nothing} == {name.split("::")[0] for name in CASES}
    assert len(nothing) == 2 * PART + 1
    engine = chosen(draw.Draw("seed", frozenset({"engine/rx.cpp"}), TABLE))
    assert engine - nothing <= set(CASES[:30]) <= engine
    itself = chosen(draw.Draw("seed", frozenset({"tests/python/b/test_b.py"}), TABLE))
    assert itself - nothing <= set(CASES[30:60]) <= itself


def test_of_slow_modules_a_part_runs_in_any_case() -> None:
    table = TABLE | {"slow": {"python": ["a/test_a"]}}
    for touched in ("engine/rx.cpp", "tests/python/a/test_a.py"):
        names = chosen(draw.Draw("seed", frozenset({touched}), table))
        assert sum("a/test_a.py" in name for name in names) == PART


def test_of_a_large_commit_a_part_runs_of_what_it_touches() -> None:
    many = frozenset({"engine/engine.cpp", *(f"docs/{i}.md" for i in range(draw.LARGE))})
    names = chosen(draw.Draw("3", many, TABLE))
    assert sum("a/test_a.py" in name for name in names) == 30 * draw.PART_OF_LARGE
    assert sum("b/test_b.py" in name for name in names) == PART
    assert (
        len(draw.Draw("3", many).files([f"docs/{i}.md" for i in range(draw.LARGE)], 0.1))
        == draw.LARGE * draw.PART_OF_LARGE
    )
    floors = ["engine", "core", "driver", "network", "reference"]
    for size in (1, draw.LARGE + 1):
        touching = draw.Draw("3", frozenset(sorted(many)[-size:]) | {"engine/rx.cpp"}, TABLE)
        assert len(touching.named(floors, 0.25, "cpp")) == 2  # one of the others, and the touched one
    assert len(draw.Draw("3", many, {"cpp": {"engine/": floors}}).named(floors, 0.1, "cpp")) == 2


def test_never_more_runs_than_there_is_time_for() -> None:
    cases = [f"tests/python/a/test_{module}.py::test_x[{i}]" for module in range(100) for i in range(100)]
    code = (
        "import sys; sys.path[:0] = ['tests/python', 'tools']; import conftest, draw\n"
        "cases = eval(sys.stdin.read()); always = frozenset(cases[:1])\n"
        "drawing = draw.Draw('seed', frozenset({'engine/rx.cpp'}), {'python': {'engine/': ['a/']}}, always)\n"
        "names = conftest.chosen(drawing, cases); print(len(names), cases[0] in names, conftest.MOST)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=repr(cases), capture_output=True, text=True, cwd=ROOT)
    count, always, most = done.stdout.split()
    assert always == "True"
    assert int(most) <= int(count) <= int(most) + 1


def test_a_failure_of_once_always_runs() -> None:
    for seed in range(20):
        drawing = draw.Draw(str(seed), always=frozenset({CASES[7], "Suite.Gone"}))
        assert CASES[7] in drawing.part(CASES, 0.1)
        assert "Suite.Gone" not in drawing.part(CASES, 0.1)


def test_of_cpp_tests_each_label_has_its_share() -> None:
    tests = [(f"Engine.{n}", "engine") for n in range(10)] + [(f"Core.{n}", "core") for n in range(10)]
    listing = json.dumps(
        {"tests": [{"name": name, "properties": [{"name": "LABELS", "value": [label]}]} for name, label in tests]}
    )
    some = draw.Draw("seed", table=TABLE).ctest(listing, 0.5)
    assert len([number for number in some if number <= 10]) == 5 == len([number for number in some if number > 10])
    whole = draw.Draw("seed", frozenset({"engine/rx.cpp"}), TABLE).ctest(listing, 0.5)
    assert whole[:10] == list(range(1, 11))
    assert len(whole) == 15


def test_of_sources_those_beside_a_touched_header_come() -> None:
    sources = [f"{folder}/{n}.cpp" for folder in ("engine", "driver") for n in range(10)]
    drawn = draw.Draw("seed", frozenset({"engine/rx.hpp", "driver/3.cpp"})).files(sources, 0.1)
    assert {f"engine/{n}.cpp" for n in range(10)} | {"driver/3.cpp"} <= drawn
    assert len(drawn) == 12


def test_what_a_commit_touches_is_asked_of_git(tmp_path: Path) -> None:
    """In a repository of its own: the last commit, the working tree, a base; and none at all."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests").mkdir()
    for name in ("tools/draw.py", "tests/touches.toml", "tests/always.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    drawing = (sys.executable, "tools/draw.py")
    assert run_in(tmp_path, *drawing, "seed", GIT_CEILING_DIRECTORIES=str(tmp_path.parent)).stdout.startswith("seed 0,")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    run_in(tmp_path, *git, "init", "-q")
    for name in ("engine/a.cpp", "apps/b.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
        run_in(tmp_path, *git, "add", ".")
        assert run_in(tmp_path, *git, "commit", "-q", "-m", name).returncode == 0
    assert run_in(tmp_path, *drawing, "touches", "python").returncode == 0
    assert run_in(tmp_path, *drawing, "touches", "cpp").returncode == 1
    (tmp_path / "engine" / "new.cpp").write_text("new")
    assert run_in(tmp_path, *drawing, "touches", "cpp").returncode == 0
    (tmp_path / "engine" / "new.cpp").unlink()
    assert run_in(tmp_path, *drawing, "touches", "python", UNISONO_BASE="HEAD").returncode == 1
    head = run_in(tmp_path, "git", "rev-parse", "--short=12", "HEAD").stdout.strip()
    assert run_in(tmp_path, *drawing, "seed").stdout == f"seed {head}, 1 files touched\n"
    assert run_in(tmp_path, *drawing, "seed", UNISONO_SEED="7").stdout.startswith("seed 7,")
    for wrong in (("names", "0"), ("names", "2"), ("nonsense",), ()):
        assert run_in(tmp_path, *drawing, *wrong).returncode == 2


def test_the_table_names_what_exists() -> None:
    table = tomllib.loads((ROOT / "tests" / "touches.toml").read_text())
    assert set(table) == {"python", "slow", "cpp", "rtl", "fuzz"}
    for module in table.pop("slow")["python"]:
        assert (ROOT / "tests" / "python" / f"{module}.py").is_file(), module
    for kind, rules in table.items():
        for place, names in rules.items():
            assert list((ROOT / place).parent.glob(f"{Path(place).name}*")), place
            for name in names:
                if kind == "python":
                    where = ROOT / "tests" / "python" / name
                    assert where.is_dir() or list(where.parent.glob(f"{where.name}*")), name
                elif kind == "cpp":
                    # A folder within another is named after both, as its target is: switch/service, switch_service.
                    assert (ROOT / "tests" / "cpp" / name.replace("_", "/")).is_dir() or name == "rtl", name
                elif kind == "fuzz":
                    assert (ROOT / "tests" / "fuzz" / f"{name}_fuzz.cpp").is_file(), name


def test_what_always_runs_exists() -> None:
    for name in draw.of_this_commit().always:
        if name.startswith("tests/"):
            path, case = name.split("::", 1)
            assert f"def {case.split('[')[0].split('::')[-1]}(" in (ROOT / path).read_text(), name
        else:
            suite = name.split(".")[0].split("/")[-1]
            assert any(suite in path.read_text() for path in (ROOT / "tests" / "cpp").rglob("*.cpp")), name
