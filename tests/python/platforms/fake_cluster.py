"""A cluster that speaks the protocol of platform/device/protocol.hpp until it misbehaves, in the way MISBEHAVIOUR says.

Started by `unisono run` in place of `unisono-cluster`, with its options. It serves one rank after the other, so it is
for jobs of one rank; its node knows the registers of the bring-up.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import struct
import sys
import time
from pathlib import Path

MAGIC = 0x554E4344
HELLO, READ, WRITE, STORE, LOAD, WAIT = range(6)
IDENTITY, VERSION, CONTROL, STATUS = 0x0, 0x4, 0x10, 0x14
FIRMWARE_ADDRESS, FIRMWARE_DATA = 0x60, 0x64
COUNTERS = '{"clock_khz": 250000, "nodes": [{"cycles": 1234567, "busy": 0, "moves": 21}]}'

HEADER = Path(__file__).resolve().parents[3] / "platform/device/protocol.hpp"


def version() -> int:
    """The protocol's version as the library has it, so that only `another version` is refused for its version."""
    found = re.search(r"kProtocolVersion = (\d+);", HEADER.read_text())
    assert found is not None
    return int(found[1])


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("--fd")
    parser.add_argument("--check", action="store_true")
    for name in (
        "--config",
        "--seed",
        "--memory",
        "--wave",
        "--trace",
        "--counters",
        "--native",
        "--native-delay",
        "--ready",
    ):
        parser.add_argument(name)
    options = parser.parse_args()
    if options.check:
        return 0
    how = os.environ.get("MISBEHAVIOUR", "")
    print(f"options: {options.config} {options.seed} {options.memory} {options.wave}", flush=True)
    for name, text in ((options.trace, "a trace"), (options.counters, COUNTERS)):
        if name is not None:
            with open(name, "w") as file:
                file.write(text)
    if options.native is not None:
        print(f"native: {options.native} {options.native_delay}", flush=True)
    if how == "refuses":
        print(f"unisono-cluster: {options.config}:1: there is no key 'colour'\nusage: ...", flush=True)
        return 1
    os.write(int(options.ready), b"r")
    os.close(int(options.ready))
    ends = [socket.socket(fileno=int(text)) for text in options.fd.split(",")]
    assert len(ends) == options.n
    if how == "exits at once":
        print("no licence for this", flush=True)
        return 3
    status = serve(ends[0], how)
    if how == "lingers":
        for end in ends:
            end.close()
        time.sleep(600)
    print("last words: 0 cycles", flush=True)
    return status


def serve(end: socket.socket, how: str) -> int:
    """One host, until it goes."""
    # It can do everything but reach remote memory, streams, casts and what a user brings.
    registers = {IDENTITY: 0x554E4953, VERSION: 1 << 16 | 1, 0x8: 0xFFFFFF01, 0xC: 0x00433FFE, CONTROL: 0}
    firmware: dict[int, int] = {}
    time_ns = 0
    while True:
        head = end.recv(24, socket.MSG_WAITALL)
        if len(head) < 24:
            return 0
        magic, kind, argument, length = struct.unpack("<IIQQ", head)
        assert magic == MAGIC
        payload = end.recv(length, socket.MSG_WAITALL) if kind in (WRITE, STORE) and length else b""
        time_ns += 100
        value, answer, code = 0, b"", 0
        if kind == HELLO:
            answer = struct.pack("<IIIIQQQ", 9 if how == "another version" else version(), 0, 1, 250, 4096, 1 << 20, 0)
        elif kind == READ:
            if how == "never answers":
                return 0 if end.recv(1) == b"" else 1
            if how == "dies":
                os.abort()
            value = registers.get(argument, 0)
            if argument == STATUS:
                value = registers[CONTROL] >> 1 & 1
            if argument == FIRMWARE_DATA:
                value = firmware.get(registers[FIRMWARE_ADDRESS], 0)
        elif kind == WRITE:
            for i, (word,) in enumerate(struct.iter_unpack("<I", payload)):
                at = argument + 4 * i
                if at == FIRMWARE_DATA:
                    firmware[registers[FIRMWARE_ADDRESS]] = word
                    registers[FIRMWARE_ADDRESS] += 4
                else:
                    registers[at] = word & ~1 if at == CONTROL else word
        if how == "ends during a call" and kind == WRITE and argument == 0x20:
            return 0
        end.sendall(struct.pack("<IIQQQ", 0 if how == "wrong magic" else MAGIC, code, value, time_ns, len(answer)))
        end.sendall(answer)
        if kind == WAIT:
            time_ns += argument


if __name__ == "__main__":
    sys.exit(main())
