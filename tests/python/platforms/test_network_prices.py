"""`unisono explain --network` and `unisono calibrate --switch`: prices of calls in simulated networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unisono.cli import main, price_program, simulated_prices
from unisono.errors import InvalidArgumentError

FABRIC = "topology = leaf_spine\nleaves = 4\nspines = 2\npolicy = pause\naggregation = ais@leaf*|ais@spine0\n"


@pytest.fixture(autouse=True)
def built() -> None:
    """Skips where the program is not built."""
    try:
        price_program.find_program()
    except InvalidArgumentError as absent:
        pytest.skip(str(absent))


@pytest.fixture
def network(tmp_path: Path) -> Path:
    file = tmp_path / "network.conf"
    file.write_text(FABRIC)
    return file


def explain(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["explain", *map(str, arguments), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([*map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_switches_are_chosen_and_priced(capsys: pytest.CaptureFixture[str], network: Path) -> None:
    answer = explain(capsys, "allreduce", "--bytes", "64K", "--ranks", 16, "--network", network)
    assert answer["choice"] == "switch"
    assert answer["tree"] == "((0 1 2 3) (4 5 6 7) (8 9 10 11) (12 13 14 15))"
    priced = [each for each in answer["candidates"] if each.get("cycles")]
    assert len(priced) > 5
    left_out = next(each for each in answer["candidates"] if each["algorithm"] == "two_level")
    assert "times as long as the quickest" in left_out["missing"]
    assert [each["cycles"] for each in priced] == sorted(each["cycles"] for each in priced)
    first = priced[0]
    assert first["algorithm"] == "switch"
    assert first["terms"]["N"] == 3
    assert sum(value for name, value in first["terms"].items() if name != "N") == pytest.approx(first["logcn"])
    # A vector over each cable: 8 segments of 8128 bytes and one of 512, with 64 of header and 66 of framing each.
    assert first["busiest"]["wire_bytes"] == 65536 + 9 * 130
    for each in priced:
        assert each["cycles"] >= answer["bound"], each
        assert 0 < each["busy"]["share"] <= 1, each


def test_without_switches_it_is_as_without_a_line(
    capsys: pytest.CaptureFixture[str], network: Path, tmp_path: Path
) -> None:
    off = explain(capsys, "reduce", "--ranks", 8, "--network", network, "--switch", "off")
    assert off["choice"] != "switch"
    assert all(not each["switched"] for each in off["candidates"])
    plain = tmp_path / "plain.conf"
    plain.write_text(FABRIC.replace("aggregation", "# aggregation"))
    without = explain(capsys, "reduce", "--ranks", 8, "--network", plain)
    assert [each.get("cycles") for each in without["candidates"]] == [each.get("cycles") for each in off["candidates"]]


def test_switches_in_hardware_take_time(capsys: pytest.CaptureFixture[str], network: Path) -> None:
    """By what their pages say, for each further rank of a fold too: of integers less than of sums in floating point."""
    call = ("allreduce", "--bytes", 64, "--network", network, "--algorithm", "switch")
    cycles = {}
    for switch, ranks, dtype in (("native", 16, "fp32"), ("rtl", 16, "fp32"), ("rtl", 8, "fp32"), ("rtl", 8, "int32")):
        answer = explain(capsys, *call, "--ranks", ranks, "--switch", switch, "--dtype", dtype)
        (one,) = answer["candidates"]
        assert (one["terms"]["c"] > 0) == (switch == "rtl")
        cycles[switch, ranks, dtype] = one["cycles"]
    assert cycles["rtl", 16, "fp32"] > cycles["native", 16, "fp32"] + 100
    # Four ranks more at each of two leaves' cells.
    assert cycles["rtl", 8, "fp32"] - cycles["rtl", 8, "int32"] > 20


def test_faster_links_make_it_faster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    times = []
    for gbps in (10, 100):
        file = tmp_path / f"{gbps}.conf"
        file.write_text(f"policy = pause\ngbps = {gbps}\n")
        answer = explain(capsys, "bcast", "--bytes", "1M", "--ranks", 4, "--network", file, "--algorithm", "chain")
        (only,) = answer["candidates"]
        times.append(only["cycles"])
        assert only["loggp"] == pytest.approx(only["cycles"], rel=0.1)
    assert 7 < times[0] / times[1] < 10.5


def test_segments_are_as_long_as_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "star.conf"
    file.write_text("policy = pause\n")
    call = ("allreduce", "--bytes", "64K", "--network", file, "--algorithm", "recursive_doubling")
    # Verilated engines took 2188 cycles with both: messages of that length have shorter segments.
    for more in ((), ("--segment-bytes", 4096)):
        (only,) = explain(capsys, *call, *more)["candidates"]
        assert only["cycles"] == pytest.approx(2188, rel=0.01)
    longer = ("allreduce", "--bytes", "1M", *call[3:])
    (most,), (short,) = (explain(capsys, *longer, *more)["candidates"] for more in ((), ("--segment-bytes", 4096)))
    assert short["cycles"] > 1.005 * most["cycles"]
    for length in (4100, 0):
        assert f"--segment-bytes: {length} bytes were given" in refused(
            capsys, "explain", *call, "--segment-bytes", length
        )


def test_the_table_fits_and_says_what_to_name(
    capsys: pytest.CaptureFixture[str], network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(network.parent)
    assert main(["explain", "allreduce", "--bytes", "4K", "--ranks", "8", "--network", network.name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "allreduce of 4096 bytes fp32, 8 ranks in network.conf: switch"
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("LoGcN: 2o ") for line in lines)
    assert any(line.startswith("Bound: ") for line in lines)
    chosen = [line.split() for line in lines if line.rstrip().endswith("  chosen")]
    assert [row[0] for row in chosen] == ["switch"]
    # Where the rules' choice is not the quickest, a call can name what is.
    answer = explain(capsys, "bcast", "--bytes", "64K", "--ranks", 8, "--network", network.name, "--switch", "off")
    best, choice = answer["candidates"][0], answer["choice"]
    sentences = "\n".join(simulated_prices.sentences(answer))
    assert (f'algorithm="{best["algorithm"]}"' in sentences) == (best["algorithm"] != choice)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("topology = ring\ngbps@node* = 40\n", ("--ranks", 4), "line 2: gbps@node* does nothing here"),
        ("nodes = 8\n", ("--ranks", 4), "line 1: nodes = 8, but the job has 4 ranks"),
        ("sped = 3\n", ("--ranks", 4), "line 1: sped: is no key"),
        ("# fast\ngbps = quick\n", (), "line 2: gbps: 'quick' is not allowed"),
        ("topology = cables\n", (), "line 1: topology = cables"),
        ("tlb_entries = x\n", (), "line 1: tlb_entries: 'x'"),
        ("topology = leaf_spine\nleaves = 4\nspines = 1\n", ("--ranks", 6), "leaves"),
        ("policy = pause\n", ("--ranks", 129), "--ranks is 129; allowed are 2 to 128"),
        ("policy = pause\n", ("--ranks", 1), "--ranks is 1; allowed are 2 to 128"),
        ("policy = pause\n", ("--switch", "native"), "names no switches"),
        ("policy = pause\n", ("--algorithm", "best"), "allreduce has no algorithm best"),
        ("policy = pause\n", ("--bytes", 6), "6 bytes are no whole number of fp32"),
        ("policy = pause\n", ("--hosts", "a:1,b:1"), "--hosts says nothing of a simulated network"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, options: tuple[object, ...], said: str
) -> None:
    file = tmp_path / "net.conf"
    file.write_text(text)
    told = refused(capsys, "explain", "allreduce", "--network", file, *options)
    assert said in told
    if "line " in said:
        assert f"--network: {file}" in told


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path, network: Path) -> None:
    nowhere = tmp_path / "nowhere.conf"
    assert f"--network: there is no file {nowhere}" in refused(capsys, "explain", "bcast", "--network", nowhere)
    assert "counts by rank" in refused(capsys, "explain", "gatherv", "--network", network)
    call = ("explain", "bcast", "--network", network, "--ranks", 16)
    assert "invalid_argument: 3 bytes are" in refused(capsys, *call, "--bytes", 3)
    assert "--switch is of a simulated network" in refused(capsys, "explain", "bcast", "--switch", "off")
    assert "name one of them" in refused(capsys, "calibrate", "--network", "--switch")


def test_frames_that_are_lost_are_no_price(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "lossy.conf"
    file.write_text("policy = pause\nloss = 0.5\n")
    answer = explain(capsys, "allreduce", "--bytes", "64K", "--ranks", 4, "--network", file, "--algorithm", "ring")
    assert answer["faults"] == ["loss"]
    (only,) = answer["candidates"]
    assert only["cycles"] is None
    assert "does the network lose frames?" in only["missing"]
    assert only["loggp"] > 0


def test_parameters_are_written_and_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, network: Path) -> None:
    file = tmp_path / "parameters.json"
    assert main(["calibrate", "--switch", "--file", str(file)]) == 0
    assert f"Written to {file}" in capsys.readouterr().out
    written = json.loads(file.read_text())
    assert set(written["parameters"]) == set(simulated_prices.PARAMETERS)
    call = ("allreduce", "--ranks", 8, "--network", network)
    usual = explain(capsys, *call)
    assert usual["parameters"] == written["parameters"], "equal costs give equal parameters"
    assert explain(capsys, *call, "--parameters", file) == usual
    written["parameters"]["alpha"]["first"] += 100
    file.write_text(json.dumps(written))
    slower = explain(capsys, *call, "--parameters", file)
    forms = [each["candidates"][0]["logcn"] for each in (slower, usual)]
    assert forms[0] == pytest.approx(forms[1] + 3 * 100), "three switches"
    assert slower["candidates"][0]["cycles"] == usual["candidates"][0]["cycles"], "costs are not parameters"
    file.write_text("{}")
    assert "is no file of `unisono calibrate --switch`" in refused(capsys, "explain", *call, "--parameters", file)


@pytest.mark.parametrize("switch", ["native", "rtl"])
def test_short_reductions_are_quicker_below_leaves_than_on_a_torus(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, switch: str
) -> None:
    """64 ranks, a switch in every leaf and one spine, or in every router (docs/simulated-switches.md)."""
    cycles = {}
    for name, lines in {
        "leaves": "topology = leaf_spine\nleaves = 8\nspines = 8\naggregation = ais@leaf*|ais@spine0\n",
        "torus": "topology = torus\ncolumns = 4\nrows = 4\nplanes = 4\naggregation = ais@router*\n",
    }.items():
        file = tmp_path / f"{name}.conf"
        file.write_text(lines + "policy = pause\n")
        for size in ("64", "4K"):
            options = ["--ranks", 64, "--network", file, "--switch", switch, "--algorithm", "switch"]
            answer = explain(capsys, "allreduce", "--bytes", size, *options)
            cycles[name, size] = answer["candidates"][0]["cycles"]
    assert cycles["leaves", "64"] == {"native": 690, "rtl": 934}[switch]
    assert cycles["torus", "64"] == {"native": 2026, "rtl": 2641}[switch]
    assert all(cycles["torus", size] >= 1.2 * cycles["leaves", size] for size in ("64", "4K"))
