"""Tables in Unisono's format: one JSON file of the network, and for each node an image that hardware loads.

docs/routing.md describes both.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidArgumentError
from .programs import KINDS, MOST_CODES, Program
from .tables import LOCAL_CKR, MOST_CHANNELS, NO_WAY, OWN_LINK, Step, Tables, code_of, other_of
from .topology import MOST_LINKS, MOST_RANKS, Port, Topology, read_text

FORMAT = "unisono-routes"
VERSION = 1
NAME = "routes.json"
IMAGE = re.compile(r"rank(\d+)\.(bin|hex)")
MAGIC = b"UROU"
HEAD = struct.Struct("<4sBBBBHHHH")


def encode(topology: Topology, tables: Tables, programs: Sequence[Program] = ()) -> dict[str, bytes]:
    """All files by name."""
    files = {NAME: (_layout(describe(topology, tables, programs)) + "\n").encode()}
    for rank in range(tables.size):
        data = image(tables, rank)
        files[f"rank{rank}.bin"] = data
        words = (int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4))
        files[f"rank{rank}.hex"] = "".join(f"{word:08x}\n" for word in words).encode()
    return files


# ------------------------------------------------------------------------------------------------ JSON


def describe(topology: Topology, tables: Tables, programs: Sequence[Program] = ()) -> dict[str, Any]:
    """The content of the JSON file."""
    nodes = []
    for rank, name in enumerate(topology.names):
        links = []
        for link in range(tables.links):
            peer = topology.peers.get(Port(rank, link))
            links.append(None if peer is None else {"rank": peer.rank, "link": peer.link})
        nodes.append(
            {
                "rank": rank,
                "node": name,
                "program": programs[rank].name or topology.programs[rank] if programs else topology.programs[rank],
                "links": links,
                "ports": _ports(tables, rank),
                "cks": [
                    [[_word(link, step) for step in table] for table in tables.cks[rank][link]]
                    for link in range(tables.links)
                ],
                "ckr": [
                    [_target(link, code, tables.links) for code in tables.ckr[rank][link]]
                    for link in range(tables.links)
                ],
            }
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "scheme": tables.scheme,
        "ranks": tables.size,
        "links": tables.links,
        "virtual_channels": tables.channels,
        "nodes": nodes,
    }


def _word(link: int, step: Step) -> str | None:
    """An entry of CKS: "link", "ckr" or "cks2", and behind "@" the virtual channel, if it is not 0."""
    if step.code == NO_WAY:
        return None
    if step.code == OWN_LINK:
        word = "link"
    elif step.code == LOCAL_CKR:
        word = "ckr"
    else:
        word = f"cks{other_of(link, step.code)}"
    return f"{word}@{step.channel}" if step.channel else word


def _target(link: int, code: int, links: int) -> str | None:
    """An entry of CKR: "ckr2", or the endpoint of this CKR as "endpoint0"."""
    if code == 0:
        return None
    if code < links:
        return f"ckr{code - 1 + (code - 1 >= link)}"
    return f"endpoint{code - links}"


def _ports(tables: Tables, rank: int) -> list[dict[str, dict[str, int] | None]]:
    """For each port who takes its data and its control: a CKR, and the number of an endpoint there."""
    ends: list[dict[str, int] | None] = []
    for index in range(len(tables.ckr[rank][0])):
        places = ((link, tables.ckr[rank][link][index]) for link in range(tables.links))
        ends.append(
            next(({"ckr": k, "endpoint": code - tables.links} for k, code in places if code >= tables.links), None)
        )
    return [dict(zip(KINDS, ends[at : at + 2], strict=True)) for at in range(0, len(ends), 2)]


def _layout(data: dict[str, Any]) -> str:
    """JSON with a line for each table."""
    text = re.sub(r"{[^\[\]{}]*}", _one_line, json.dumps(data, indent=1))
    return re.sub(r"\[[^\[\]{}]*\]", _one_line, text)


def _one_line(found: re.Match[str]) -> str:
    return re.sub(r"(?<=[\[{])\s+|\s+(?=[\]}])", "", re.sub(r"\s*\n\s*", " ", found[0]))


def decode(topology: Topology, folder: Path) -> Tables:
    """Reads the JSON file of a folder, and compares the nodes' images with it."""
    path = folder / NAME
    text = read_text(path)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as failure:
        raise InvalidArgumentError(f"{path}, line {failure.lineno}: this is no JSON: {failure.msg}") from failure
    except RecursionError as failure:
        raise InvalidArgumentError(f"{path} has no tables: its lists stand within one another") from failure
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidArgumentError(f'{path} has no tables: its "format" is not "{FORMAT}"')
    if data.get("version") != VERSION:
        raise InvalidArgumentError(f"{path} has version {data.get('version')}; version {VERSION} is read here")
    try:
        tables = _tables(topology, data)
    except (KeyError, TypeError, ValueError, IndexError) as failure:
        if isinstance(failure, InvalidArgumentError):
            raise InvalidArgumentError(f"{path}: {failure}") from failure
        raise InvalidArgumentError(f"{path} is incomplete or wrong: {failure!r}") from failure
    for rank in range(tables.size):
        for name, right in ((f"rank{rank}.bin", image(tables, rank)), (f"rank{rank}.hex", None)):
            if (folder / name).is_file():
                data_of = (folder / name).read_bytes()
                found = data_of if right is not None else from_hex(folder / name)
                if found != image(tables, rank):
                    raise InvalidArgumentError(f"{folder / name} does not say what {NAME} says")
    return tables


def _tables(topology: Topology, data: dict[str, Any]) -> Tables:
    size, links, channels = data["ranks"], data["links"], data["virtual_channels"]
    if size != topology.size:
        raise InvalidArgumentError(f"these are tables of {size} ranks; the topology has {topology.size}")
    if not (isinstance(links, int) and 1 <= links <= MOST_LINKS):
        raise InvalidArgumentError(f"{links} links a node are none of 1 to {MOST_LINKS}")
    if not (isinstance(channels, int) and 1 <= channels <= MOST_CHANNELS):
        raise InvalidArgumentError(f"{channels} virtual channels are none of 1 to {MOST_CHANNELS}")
    cks, ckr = [], []
    for rank, node in enumerate(data["nodes"]):
        if rank >= size or node["rank"] != rank or node["node"] != topology.names[rank]:
            raise InvalidArgumentError(
                f"rank {node['rank']} is {node['node']} here, and {topology.names[rank % size]} in the topology"
            )
        if len(node["links"]) != links:
            raise InvalidArgumentError(f"{node['node']} has {len(node['links'])} links; a node has {links}")
        for link, end in enumerate(node["links"]):
            peer = topology.peers.get(Port(rank, link))
            if (None if end is None else (end["rank"], end["link"])) != peer:
                raise InvalidArgumentError(f"the cable of {topology.label(Port(rank, link))} is not the topology's")
        sent = [[[_step(link, word) for word in table] for table in node["cks"][link]] for link in range(links)]
        received = [[_code(link, word, links) for word in node["ckr"][link]] for link in range(links)]
        for link in range(links):
            if [len(table) for table in sent[link]] != [size] * channels:
                raise InvalidArgumentError(
                    f"the table of CKS_{link} of {node['node']} is no {channels} of {size} ranks"
                )
        cks.append(sent)
        ckr.append(received)
    if len(cks) != size:
        raise InvalidArgumentError(f"there are {len(cks)} nodes; there are to be {size}")
    return Tables(str(data["scheme"]), channels, cks, ckr)


def _step(link: int, word: str | None) -> Step:
    if word is None:
        return Step(NO_WAY)
    found = re.fullmatch(r"(link|ckr|cks(\d))(?:@(\d))?", word)
    if found is None or (found[2] and int(found[2]) == link):
        raise InvalidArgumentError(f"{word!r} is no entry of CKS_{link}")
    channel = int(found[3] or 0)
    if found[2]:
        return Step(code_of(link, int(found[2])), channel)
    return Step(OWN_LINK if found[1] == "link" else LOCAL_CKR, channel)


def _code(link: int, word: str | None, links: int) -> int:
    if word is None:
        return 0
    found = re.fullmatch(r"ckr(\d)|endpoint(\d{1,3})", word)
    if (
        found is None
        or int(found[2] or 0) + links >= MOST_CODES
        or (found[1] and int(found[1]) in (link, *range(links, 10)))
    ):
        raise InvalidArgumentError(f"{word!r} is no entry of CKR_{link}")
    if found[1]:
        return 1 + int(found[1]) - (int(found[1]) > link)
    return links + int(found[2])


# ------------------------------------------------------------------------------------------------ images


def image(tables: Tables, rank: int) -> bytes:
    """What the hardware of a node loads: head, tables of CKS, tables of CKR, check sum."""
    entries = len(tables.ckr[rank][0])
    head = HEAD.pack(
        MAGIC, VERSION, tables.links, tables.channels, 0, tables.size, rank, entries // len(KINDS), 0
    )  # fmt: skip
    body = b"".join(
        bytes(step.code | step.channel << 4 for step in table) for link in tables.cks[rank] for table in link
    )
    body += b"".join(map(bytes, tables.ckr[rank]))
    data = head + body
    data += bytes(-len(data) % 4)
    return data + zlib.crc32(data).to_bytes(4, "little")


def from_hex(path: Path) -> bytes:
    """The image that a file of 32-bit words, one a line, holds."""
    text = read_text(path)
    if not re.fullmatch(r"(?:[0-9a-f]{8}\n)+", text):
        raise InvalidArgumentError(f"{path} is no list of 32-bit words in hexadecimal, one a line")
    return b"".join(int(line, 16).to_bytes(4, "little") for line in text.split())


def read_image(data: bytes) -> tuple[int, list[list[list[Step]]], list[list[int]]]:
    """Rank and tables of an image. Refuses one that is damaged."""
    if len(data) < HEAD.size + 4 or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise InvalidArgumentError("the image is damaged: its check sum is wrong")
    magic, version, links, channels, _, size, rank, ports, _ = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise InvalidArgumentError(f"the image is none of version {VERSION}")
    long = HEAD.size + links * channels * size + links * ports * len(KINDS)
    if not size <= MOST_RANKS or len(data) != long + -long % 4 + 4:
        raise InvalidArgumentError(f"the image has {len(data)} bytes, and its head says otherwise")
    at = HEAD.size
    cks = []
    for _ in range(links):
        tables = []
        for _ in range(channels):
            tables.append([Step(byte & 15, byte >> 4) for byte in data[at : at + size]])
            at += size
        cks.append(tables)
    width = ports * len(KINDS)
    ckr = [list(data[at + link * width : at + (link + 1) * width]) for link in range(links)]
    return rank, cks, ckr
