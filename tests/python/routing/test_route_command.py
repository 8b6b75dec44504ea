"""`unisono route`: what it writes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from routing_support import smi_port, smi_torus
from unisono.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torus.json").write_text(smi_torus())
    return tmp_path


def route(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["route", *words]) == status
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["route", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("invalid_argument: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("invalid_argument: ").rstrip()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_tables_are_made_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = route(capsys, "torus.json", "-o", "out", "--json", "out.json")
    assert "8 ranks, 16 cables; shortest\n" in said
    assert "hops between two ranks  min 1  mean 1.714  max 3, all shortest\n" in said
    assert "virtual channels used   1\n" in said
    assert "most loaded link        fpga-00" in said
    assert "no circle: proven over 32 links and " in said
    assert "A kernel of SMI is held up altogether; then a circle is left, through fpga-00" in said
    tables = {f"{side}-rank{rank}-channel{link}" for side in ("cks", "ckr") for rank in range(8) for link in range(4)}
    images = {f"rank{rank}.{kind}" for rank in range(8) for kind in ("bin", "hex")}
    assert names(place / "out") == tables | images | {"hostfile", "routes.json"}
    assert (place / "out" / "hostfile").read_text().splitlines()[2] == "fpga-0007  # acl0, rank2"
    found = json.loads((place / "out.json").read_text())
    assert (found["ok"], found["ranks"], found["virtual_channels"], found["circle"]) == (True, 8, 1, [])
    assert found["hops"] == {"min": 1, "mean": pytest.approx(12 / 7), "max": 3}
    assert sorted(names(place / "out")) == found["files"]
    said = route(capsys, "--check", "out", "--topology", "torus.json")
    assert said.count("no circle: proven over 32 links") == 2
    assert "SMI's tables in out" in said
    assert "routes.json in out" in said


def test_the_circle_of_smi_is_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = route(capsys, "torus.json", "-o", "smi", "--scheme", "smi", status=1)
    assert "links 0 -> 1 -> 3 -> 2 -> 0\n" in said
    assert "  1  link fpga-0006:acl0:ch2 to fpga-0006:acl1:ch3 (rank 0 to 1)  message 0 -> " in said
    assert "no circle" not in said
    (place / "smi" / "routes.json").unlink()
    again = route(capsys, "--check", "smi", "--topology", "torus.json", "--json", "found.json", status=1)
    assert again[again.index("✗") :] in said
    found = json.loads((place / "found.json").read_text())
    assert found["ok"] is False
    assert [step["rank"] for step in found["circle"] if step["kind"] == "link"] == [0, 1, 3, 2]
    assert found["circle"][0]["message"]["from"] == 0


def test_the_circle_of_serial_kernels_counts_if_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    route(capsys, "--bus", "3", "-o", "bus.json")
    said = route(capsys, "bus.json", "--kernels", "serial", status=1)
    assert "fpga-0001:acl0 (rank 1): the message that CKS_0 holds" in said
    assert "fpga-0001:acl0 (rank 1): FIFO CKS_0 to CKS_1" in said
    route(capsys, "bus.json", "--ranks", "2", "--kernels", "serial")


def test_another_network_needs_nothing_but_tables(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The torus, a cable less, a bus of all boards, then seven of them: the folder holds the last one's tables."""
    kept = ["602-613", "611-710", "702-713", "701-800", "802-813", "811-910", "903-912"]
    every = json.loads(smi_torus())["connections"]
    bus = {smi_port(cable[:3]): smi_port(cable[4:]) for cable in kept}
    assert set(bus.items()) <= set(every.items())
    cut = [f"--without={a}-{b}" for a, b in every.items() if a not in bus]
    assert "8 ranks, 15 cables" in route(capsys, "torus.json", cut[0], "-o", "out")
    assert "mean 3.000  max 7, all shortest" in route(capsys, "torus.json", *cut, "-o", "out")
    end = "fpga-0009:acl0"
    assert refused(capsys, "torus.json", *cut, "--ranks", "7") == f"the topology is disconnected: {end} has no cable"
    assert "7 ranks, 6 cables" in route(capsys, "torus.json", *cut, "--leave-out", end, "-o", "out")
    assert len([name for name in names(place / "out") if name.startswith("cks-")]) == 28
    assert (place / "out" / "cks-rank0-channel0").stat().st_size == 7
    assert "rank7.bin" not in names(place / "out")
    assert "7 ranks, 12 cables" in route(capsys, "torus.json", "--ranks", "7", "-o", "out")
    route(capsys, "torus.json", "--leave-out", "fpga-0009:acl0", "-o", "out")
    route(capsys, "torus.json", "--leave-out", "fpga-0009:acl0", "--check", "out")
    assert refused(capsys, "torus.json", "--check", "out") == "out has tables of 7 ranks; the topology has 8"


def test_what_needs_several_channels_is_not_for_smi(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    route(capsys, "--ring", "5", "-o", "ring.json")
    route(capsys, "torus.json", "-o", "out")
    said = route(capsys, "ring.json", "-o", "out")
    assert "virtual channels used   2\n" in said
    assert "Nothing for SMI: its tables have no virtual channels, and these need 2." in said
    (place / "out" / "hostfile").write_text("somebody's\n")
    route(capsys, "ring.json", "-o", "out")
    assert (place / "out" / "hostfile").read_text() == "somebody's\n"  # without SMI's tables beside it, it is not ours
    (place / "out" / "hostfile").unlink()
    assert names(place / "out") == {"routes.json"} | {f"rank{r}.{kind}" for r in range(5) for kind in ("bin", "hex")}
    assert (
        '"link@1"' in (place / "out" / "routes.json").read_text() or "@1" in (place / "out" / "routes.json").read_text()
    )
    assert "no circle" in route(capsys, "ring.json", "--check", "out")
    said = route(capsys, "ring.json", "-o", "out", "--scheme", "updown")
    assert "mean 1.600  max 3\n" in said
    assert "hostfile" in names(place / "out")
    assert refused(capsys, "ring.json", "--channels", "1").startswith(
        "shortest ways need 2 virtual channels here, and 1 were asked for"
    )


def test_generated_topologies(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(route(capsys, "--torus", "2x4", "--program", "one", "--program", "two"))
    assert len(made["connections"]) == 16
    assert list(made["fpgas"].values()) == ["one", "two"] * 4
    assert json.loads(route(capsys, "--bus", "3"))["connections"] == {
        "fpga-0000:acl0:ch0": "fpga-0001:acl0:ch1",
        "fpga-0001:acl0:ch0": "fpga-0002:acl0:ch1",
    }
    with pytest.raises(SystemExit):
        main(["route", "--torus", "2by4"])
    assert "'2by4' are no sides of a torus such as 2x4" in capsys.readouterr().err
    assert refused(capsys, "--ring", "2") == "a ring of 2 nodes was asked for; it has 3 to 128"


def test_changed_files_are_found(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    route(capsys, "torus.json", "-o", "out")
    image = (place / "out" / "rank3.bin").read_bytes()
    (place / "out" / "rank3.bin").write_bytes(image[:20] + b"\1" + image[21:])
    assert refused(capsys, "torus.json", "--check", "out") == "out/rank3.bin does not say what routes.json says"
    (place / "out" / "rank3.bin").write_bytes(image)
    (place / "out" / "rank3.hex").write_text("nothing\n")
    assert "out/rank3.hex is no list of 32-bit words" in refused(capsys, "torus.json", "--check", "out")
    (place / "out" / "rank3.hex").unlink()
    (place / "out" / "cks-rank0-channel3").write_bytes(bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    assert "✗" in route(capsys, "torus.json", "--check", "out", status=1)
    listed = json.loads((place / "out" / "routes.json").read_text())
    for path in list((place / "out").glob("c*")):
        path.unlink()
    for change, sentence in (
        ({"version": 2}, "out/routes.json has version 2; version 1 is read here"),
        ({"format": "x"}, 'out/routes.json has no tables: its "format" is not "unisono-routes"'),
        ({"ranks": 9}, "out/routes.json: these are tables of 9 ranks; the topology has 8"),
        ({"links": 0}, "out/routes.json: 0 links a node are none of 1 to 8"),
        ({"virtual_channels": 9}, "out/routes.json: 9 virtual channels are none of 1 to 8"),
        ({"nodes": listed["nodes"][:7]}, "out/routes.json: there are 7 nodes; there are to be 8"),
        ({"nodes": listed["nodes"][::-1]},
         "out/routes.json: rank 7 is fpga-0009:acl1 here, and fpga-0006:acl0 in the topology"),
        ({"nodes": 3}, "out/routes.json is incomplete or wrong: TypeError"),
    ):  # fmt: skip
        (place / "out" / "routes.json").write_text(json.dumps(listed | change))
        assert refused(capsys, "torus.json", "--check", "out").startswith(sentence)


def test_ports_are_compared_with_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "stencil.json").write_text('{"operations": [{"type": "push", "port": 0}, {"type": "pop", "port": 1}]}')
    route(capsys, "torus.json", "-o", "out", "--program", "stencil.json")
    assert (place / "out" / "ckr-rank5-channel0").read_bytes() == bytes([0, 1, 4, 0])
    route(capsys, "torus.json", "--check", "out", "--program", "stencil.json")
    said = route(capsys, "torus.json", "--check", "out", "--program", "stencil.json", "--eager", status=1)
    assert "fpga-0006:acl0 (rank 0): the table of CKR_0 is not that of stencil\n" in said


def test_what_the_command_line_gets_wrong(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty").mkdir()
    (place / "split.json").write_text('{"connections": {"a:x:ch0": "b:x:ch0", "c:x:ch0": "d:x:ch0"}}')
    (place / "latin.json").write_bytes(b"\xff")
    cut = "--without=fpga-0006:acl0:ch0-fpga-0009:acl0:ch1"
    for words, sentence in (
        ([], "no topology was given; name its file, or make one with --torus, --bus or --ring"),
        (["none.json"], "none.json cannot be read: No such file or directory"),
        (["latin.json"], "latin.json is no text in UTF-8: byte 0 cannot be read"),
        (["torus.json", "--topology", "torus.json"], "two topologies were given, torus.json and torus.json"),
        (["torus.json", "--check", "out", "-o", "x"], "--check makes no tables; leave out -o"),
        (["torus.json", "--check", "none"], "there is no folder none"),
        (["torus.json", "--check", "empty"], "empty has no tables: neither cks-rank0-channel0 nor routes.json"),
        (["torus.json", "--ring", "4"], "a topology is either generated or read from a file"),
        (["torus.json", "--channels", "9"], "9 channels were asked for; there are 1 to 8"),
        (["torus.json", "--ranks", "9"], "9 ranks were asked for; the topology has 8"),
        (["torus.json", "-o", "torus.json"], "torus.json cannot be written: File exists"),
        (["split.json"], "the topology is disconnected: no cables lead from a:x to c:x; "
         "2 of 4 nodes are cut off from a:x"),
        (["torus.json", cut, cut], "there is no cable fpga-0006:acl0:ch0-fpga-0009:acl0:ch1; a cable is named by "
         "both its ports, as fpga-0006:acl0:ch2-fpga-0006:acl1:ch3"),
    ):  # fmt: skip
        assert refused(capsys, *words) == sentence
