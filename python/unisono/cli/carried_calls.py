"""Whether switches would carry a call, and why not: for `unisono explain --aggregate`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._spec import Collective
from ..errors import InvalidArgumentError
from .aggregation import AGGREGATE, OFF, SECRET, AggregationError, find

CARRIED = ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather")
BLOCKS = ("reduce_scatter", "allgather")
#: Modes in which bits do not depend on where calls go, and datatypes whose sums have the same bits in any order.
STABLE = ("size_stable", "placement_stable")
EXACT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
UP_TO = "UNISONO_AGGREGATE_UP_TO"
USUAL_UP_TO = 32 << 10  #: bytes, if neither the switches nor the environment say otherwise
SECONDS = 5.0


def carried_by(
    given: str, secret_file: str | None, environment: Mapping[str, str], call: dict[str, Any]
) -> dict[str, Any] | None:
    """What the switches say, and whether the call would go by them. None: no switch is named.

    `call` has operation, dtype, bytes (of the vector or a block), ranks, hosts, in_place and algorithm. Raises
    `InvalidArgumentError`, also if a switch does not answer.
    """
    try:
        variables = find(given, secret_file, environment).variables
    except AggregationError as failure:
        raise InvalidArgumentError(str(failure)) from failure
    if variables.get(AGGREGATE, OFF) == OFF:
        return None
    switches = []
    for address in variables[AGGREGATE].split(","):
        status = json.loads(_core.switch_ask(address, variables[SECRET], "status", b"", SECONDS))
        switches.append({"address": address, "name": status["name"], "draining": status["draining"]} | _limit(status))
    advised = [one["up_to_bytes"] for one in switches if one["up_to_bytes"]]
    own = environment.get(UP_TO, "")
    if own and not (own.isascii() and own.isdigit() and int(own) > 0):
        raise InvalidArgumentError(f"environment variable {UP_TO} is {own!r}, but should be bytes, a number from 1 on")
    limit = int(own) if own else advised[-1] if advised else USUAL_UP_TO
    why = _obstacle(call, limit, environment)
    if not why and (drained := [one["address"] for one in switches if one["draining"]]):
        why = f"the switch at {drained[0]} is being drained"
    return {"switches": switches, "up_to_bytes": limit, "carried": not why, "why": why}


def _limit(status: dict[str, Any]) -> dict[str, int]:
    return {"up_to_bytes": int(status.get("up_to_bytes", 0))}


def _obstacle(call: dict[str, Any], limit: int, environment: Mapping[str, str]) -> str:
    """Why slots do not carry the call; empty if they do."""
    operation = call["operation"]
    if operation not in CARRIED:
        return f"switches carry {', '.join(CARRIED[:-1])} and {CARRIED[-1]}; {operation} goes between the ranks"
    if call["hosts"] < 2:
        return "its ranks are on one host, and share memory"
    if call["algorithm"]:
        return "a call that names its algorithm goes between the ranks"
    if call["in_place"] and operation == "reduce_scatter":
        return "reduce_scatter in place goes between the ranks"
    mode = environment.get("UNISONO_DETERMINISM", "")
    if mode in STABLE and Collective[operation.upper()].reduces and call["dtype"] not in EXACT:
        return f"sums of {call['dtype']} depend on their order, which is the ranks' own (UNISONO_DETERMINISM={mode})"
    whole = call["bytes"] * (call["ranks"] if operation in BLOCKS else 1) if Collective[operation.upper()].data else 0
    if whole > limit:
        blocks = " in all blocks" if operation in BLOCKS else ""
        return f"it has {whole} bytes{blocks}, and up to {limit} are carried ({UP_TO})"
    return ""


def verdict(answer: dict[str, Any]) -> str:
    """The same for people."""
    names = " and ".join(f"{one['name']} ({one['address']})" for one in answer["switches"])
    several = len(answer["switches"]) > 1
    subject = f"The switch{'es' * several} {names}"
    if answer["carried"]:
        return f"{subject} {'carry' if several else 'carries'} this call; the rest holds for ranks that go on alone."
    return f"{subject} {'do' if several else 'does'} not carry this call: {answer['why']}."
