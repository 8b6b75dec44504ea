"""Command lines that are wrong, or odd and right: a sentence and status 2, or what was asked for; no traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import unisono
from unisono import config
from unisono.cli import main, mpirun, parser
from unisono.cli.calibrate import write as write_tuning


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "allreduce/ring", "--group-size", "99999999999999999999"], "is too large; allowed is up to"),
        (["show", "allreduce/ring", "--ranks", "1" * 5000], "--ranks"),  # Python reads no integer of so many digits
        (["check", "allreduce/ring", "--schedules", "99999999999"], "is no number from 0 to 4294967295"),
        (["check", "allreduce/ring", "--mixes", "99999999999999999999"], "is no number from 0 to 4294967295"),
        (["explain", "allreduce", "--bytes", "99999999999999999999"], "is no number of bytes"),
        (["ps", "--deadline", "nan"], "is no number of seconds"),
        (["switch", "stat", "127.0.0.1:1", "--secret-file", "\udcff"], "is a lone surrogate"),
        (["run", "--transport=--", "-n", "1", "true"], "there is no network '--'"),
        (["explain", "allreduce", "--algorithm", "\udcff"], "is no text in UTF-8"),
        (["show", "allreduce/ring", "--tree", "\udcff"], "is no text in UTF-8"),
        (["show", "allreduce/ring", "--datatype=--"], "invalid choice: '--'"),
        (["run", "--timeout=--", "-n", "1", "true"], "'--' is no number of seconds"),
        (["run", "--env=--", "-n", "1", "true"], "the environment has no variable --"),
    ],
)
def test_wrong_ones_are_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr().err
    assert status == 2
    assert words in re.sub(r"\s+", " ", said)
    assert len(said) < 7000


def test_two_dashes_are_the_name_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", "allreduce/ring", "--file=--"]) == 0
    assert Path("--").stat().st_size > 0
    assert parser().parse_args(["run", "-n", "2", "--", "prog", "--x=--", "--"]).arguments == ["--x=--", "--"]
    capsys.readouterr()


def test_a_program_of_this_folder_is_named_as_a_shell_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring").write_text("#!/bin/sh\n")
    assert main(["run", "-n", "1", "ring"]) == 126
    assert "ring is not executable" in capsys.readouterr().err
    Path("ring").chmod(0o755)
    assert main(["run", "-n", "1", "ring"]) == 127
    assert "there is no program ring in PATH; that of this folder is ./ring" in capsys.readouterr().err
    assert main(["run", "-n", "1", "./ring"]) == 0


def test_folders_are_told_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """For FOLDER=$(python -m unisono.config --libdir); options are quoted, for a shell takes them apart."""
    monkeypatch.setattr(config, "library_dir", lambda: Path("/a folder"))
    assert config.main(["--libdir"]) == 0
    assert capsys.readouterr().out == "/a folder\n"
    assert config.main(["--libs"]) == 0
    assert capsys.readouterr().out == "'-L/a folder' '-Wl,-rpath,/a folder' -lunisono\n"


def test_a_shim_that_the_loader_would_pass_over_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "libunisono_mpi_openmpi.so").touch()
    monkeypatch.setattr(config, "library_dir", lambda: folder)
    with pytest.raises(mpirun.MpiError, match="spaces or colons"):
        mpirun.shim_of(mpirun.KINDS[0])


def test_a_deadline_may_be_of_years(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--timeout", "1e18", "-n", "1", "true"]) == 0
    assert capfd.readouterr().err == ""


def test_a_tuning_file_is_written_where_a_link_leads_and_into_what_is_no_file(tmp_path: Path) -> None:
    """A device or pipe was replaced by a file: /dev/null, where root calibrated to it."""
    target, link, pipe = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "pipe"
    target.write_text("before")
    link.symlink_to(target)
    write_tuning(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        write_tuning(pipe, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    for folder in (tmp_path, Path("/"), Path()):
        with pytest.raises(unisono.InvalidArgumentError, match="cannot be written: Is a directory"):
            write_tuning(folder, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "pipe", "real.json"]


def test_errors_say_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--env", "a\x1b[2Jb", "-n", "1", "true"])
    assert main(["check", "allreduce/ring", "--as", "a\x1b[2Jb"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["explain", "allreduce"], ["doctor", "--json"], ["algorithms", "bcast"]])
def test_any_encoding_of_the_output_will_do(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", *arguments],
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr
    assert done.stdout.isascii()


def test_a_full_disk_is_told_of() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "unisono", "algorithms"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == "unisono: standard output cannot be written: No space left on device\n"


def test_results_of_a_benchmark_that_are_none_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    assert main(["explain", "allreduce", "--format", "json", "--json", str(deep)]) == 0
    assert json.loads(capsys.readouterr().out)


def test_comments_of_kernels_may_be_in_any_encoding(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.cl"
    source.write_bytes(b"// Gr\xfc\xdfe\n__kernel void k(__global int *a) { a[0] = 1; }\n")
    assert main(["kernel", "check", str(source)]) == 0, capfd.readouterr().err
    assert main(["kernel", "build", str(source), "-o", str(tmp_path / "k.so")]) == 0, capfd.readouterr().err
