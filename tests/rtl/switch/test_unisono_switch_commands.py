"""unisono_switch_commands: what each decision has the ports do, and that nothing else is done."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from bus import new_random
from cocotb.triggers import Timer
from hdl import full, parameters, scaled, simulate
from headers import MessageType
from unit_records import RUNS, SEND, TRANSFER, pack, random_record, unpack

DECISIONS = ("throws", "asks", "windows", "segments", "read_all", "over", "fails", "")
MASKS = (
    *("neighbours", "thrown", "thrown_grants", "in", "in_place", "out", "out_eager", "by_grant", "by_write", "asked"),
)
COMMANDS = ("pop", "pop_grant", "take_credit", "window_open", "window_raise", "window_close", "read", "send")


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def every_decision(dut: Any) -> None:
    rng, ports = new_random("commands"), parameters()["Ports"]
    for count in range(scaled(4000)):
        what = DECISIONS[count % len(DECISIONS)]
        message = random_record(rng, TRANSFER)
        message["done"] = rng.choice((0, message["done"]))
        masks = {name: rng.getrandbits(ports) for name in MASKS}
        numbers = {"run": rng.randrange(8 * RUNS), "fail_sequence": rng.getrandbits(32), "length": rng.choice((0, 64))}
        numbers |= {"fail_signature": rng.getrandbits(32), "last": rng.randrange(2), "immediate": rng.randrange(2)}
        numbers |= {"window_end": rng.getrandbits(48)}
        generations = [rng.getrandbits(16) for _ in range(ports)]
        for name in DECISIONS[:-1]:
            getattr(dut, f"{name}_i").value = int(name == what)
        for name, value in (masks | numbers).items():
            getattr(dut, f"{name}_i").value = value
        dut.message_i.value = pack(TRANSFER, message)
        dut.generation_i.value = sum(one << 16 * p for p, one in enumerate(generations))
        await Timer(1, "ns")

        want = dict.fromkeys(COMMANDS, 0)
        tag = message["tag"] & ~1
        send = {"kind": None, "by_grant": 0, "first": 1, "last": 1, "entry": numbers["run"] // RUNS, "offset": 0}
        send |= {name: message[name] for name in ("dtype", "sequence", "signature")}
        send |= {"tag": tag | message["goes_down"], "message_bytes": message["bytes"], "segment_bytes": 0}
        send |= {"token_slot": 0, "token_generation": 0}
        if what == "throws":
            want |= {"pop": masks["thrown"], "pop_grant": masks["thrown_grants"]}
        elif what == "asks":
            want |= {"take_credit": masks["out_eager"], "send": masks["asked"]}
            send |= {"kind": MessageType.REQUEST}
        elif what == "windows":
            want |= {
                "window_raise" if message["granted"] else "window_open": masks["by_write"],
                "send": masks["by_write"],
            }
            send |= {"kind": MessageType.GRANT, "tag": message["tag"], "message_bytes": numbers["window_end"]}
            send |= {"token_slot": numbers["run"]}
        elif what == "segments":
            want |= {"send": masks["out"], "take_credit": masks["out"] if numbers["immediate"] else 0}
            want |= {"read": masks["in"] if numbers["length"] else 0}
            send |= {"kind": MessageType.EAGER, "first": int(message["done"] == 0), "last": numbers["last"]}
            send |= {"offset": message["done"], "segment_bytes": numbers["length"]}
        elif what == "read_all":
            want |= {"pop": masks["in_place"]}
        elif what == "over":
            want |= {"pop": masks["in" if numbers["immediate"] else "by_write"], "pop_grant": masks["by_grant"]}
        elif what == "fails":
            want |= {"window_close": masks["neighbours"], "send": masks["neighbours"]}
            send |= {"kind": MessageType.GRANT, "dtype": 0, "tag": 0, "message_bytes": 0}
            send |= {"sequence": numbers["fail_sequence"], "signature": numbers["fail_signature"] ^ 0xFFFFFFFF}
        for name, value in want.items():
            assert int(getattr(dut, f"{name}_o").value) == value, f"{name} when {what}"
        if send["kind"] is not None:
            send["kind"] = int(send["kind"])
            assert unpack(SEND, int(dut.send_message_o.value)) == send, what
            made = int(dut.send_generation_o.value)
            for p, one in enumerate(generations):
                opened = (one + (not message["granted"])) % (1 << 16) if what == "windows" else 0
                assert made >> 16 * p & 0xFFFF == opened


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_commands(ports: int) -> None:
    simulate("unisono_switch_commands", __file__, {"Ports": ports})
