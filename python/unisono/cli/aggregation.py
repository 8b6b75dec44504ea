"""Which switches aggregate the calls of a job: --aggregate of `unisono run` and `unisono mpirun`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import _core
from .._texts import text_of
from ..errors import UnisonoError

AGGREGATE = "UNISONO_AGGREGATE"  #: what ranks read: addresses with commas between them, or off
SECRET = "UNISONO_AGGREGATE_SECRET"  #: and the secret of all of these switches
SECRET_FILE = "UNISONO_AGGREGATE_SECRET_FILE"
SWITCHES = "UNISONO_SWITCHES"  #: the file that `auto` reads
SYSTEM_WIDE = Path("/etc/unisono/switches")
OFF, AUTO = "off", "auto"
MOST_SWITCHES = 256
LONGEST_HOST = 253
_HOST = re.compile(r"\[[^\]\[/\s]+\]|[^:\]\[/\s]+")


class AggregationError(Exception):
    """The switches cannot be used as they were named, and why."""


@dataclass(frozen=True)
class Switches:
    """What was found out. `told`: a sentence for people, or nothing."""

    variables: dict[str, str]
    told: str = ""


def address(text: str, where: str) -> str:
    """HOST:PORT, [ ] around an IPv6 address. Raises `AggregationError`, which begins with `where`."""
    host, _, port = text.rpartition(":")
    right = bool(_HOST.fullmatch(host)) and len(host.strip("[]")) <= LONGEST_HOST
    if not right or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        raise AggregationError(f"{where}: {text!r} is no address of a switch; write HOST:PORT, such as rack1:7000")
    return text


def addresses(text: str, where: str) -> list[str]:
    """Of a list with commas. Raises `AggregationError`."""
    return _distinct([address(part.strip(), where) for part in text.split(",")], where)


def find(given: str | None, secret_file: str | None, environment: Mapping[str, str]) -> Switches:
    """The variables that ranks get on all hosts.

    `given` and `secret_file` are the options of the command; what is not given, the environment says. Raises
    `AggregationError`.
    """
    value = environment.get(AGGREGATE, "") if given is None else given
    where = AGGREGATE if given is None else "--aggregate"
    if value in ("", OFF):
        if secret_file is not None and value == "":
            raise AggregationError("--aggregate-secret-file goes with --aggregate, and no switch is named")
        return Switches({} if given is None else {AGGREGATE: OFF})
    beside: Path | None = None
    if value == AUTO:
        path = _usual_file(environment)
        listed = [] if path is None else _in_file(path)
        if path is None or not listed:
            missing = "there is no list of switches" if path is None else f"{path} names no switch"
            return Switches(
                {AGGREGATE: OFF},
                f"{where} auto: {missing}, so nothing is aggregated; write their addresses, HOST:PORT in each line, "
                f"into {_own_file(environment) if path is None else path}",
            )
        beside = path.with_name(f"{path.name}.secret")
    else:
        listed = addresses(value, where)
    if environment.get("UNISONO_TLS") == "on":
        raise AggregationError(
            f"{where}: all data between hosts are to be encrypted, and what goes to switches is not; leave one of both "
            "out, or set UNISONO_TLS=tcp instead to encrypt what goes by TCP alone"
        )
    return Switches({AGGREGATE: ",".join(listed), SECRET: _secret(secret_file, environment, beside, where)})


def secret_in(path: str | os.PathLike[str]) -> str:
    """The secret in a file that only its owner may read. Raises `AggregationError`."""
    try:
        return _core.switch_secret(text_of("switch", "the secret's file", os.fspath(path)))
    except UnisonoError as failure:
        raise AggregationError(str(failure)) from failure


def _secret(given: str | None, environment: Mapping[str, str], beside: Path | None, where: str) -> str:
    if given is not None:
        return secret_in(given)
    if environment.get(SECRET):
        return environment[SECRET]
    if environment.get(SECRET_FILE):
        return secret_in(environment[SECRET_FILE])
    if beside is not None:
        return secret_in(beside)
    raise AggregationError(
        f"{where}: the secret of the switches is not known; name its file by --aggregate-secret-file or {SECRET_FILE}"
    )


def _own_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "~"), ".config")
    return Path(folder) / "unisono" / "switches"


def _usual_file(environment: Mapping[str, str]) -> Path | None:
    if named := environment.get(SWITCHES):
        return Path(named)
    return next((path for path in (_own_file(environment), SYSTEM_WIDE) if path.exists()), None)


def _in_file(path: Path) -> list[str]:
    """An address in each line; # begins a comment."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise AggregationError(f"the list of switches, {path}, cannot be read: {reason}") from failure
    texts = [(number, line.partition("#")[0].strip()) for number, line in enumerate(lines, 1)]
    return _distinct([address(text, f"line {number} of {path}") for number, text in texts if text], str(path))


def _distinct(listed: list[str], where: str) -> list[str]:
    if len(listed) > MOST_SWITCHES:
        raise AggregationError(f"{where}: {len(listed)} switches were named; allowed are up to {MOST_SWITCHES}")
    twice = next((one for number, one in enumerate(listed) if one in listed[:number]), None)
    if twice is not None:
        raise AggregationError(f"{where}: {twice} stands there twice; name each switch once")
    return listed
