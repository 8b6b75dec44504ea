"""Rules by which a job in a simulated network chooses algorithms: what is cheapest there, as its tuning file."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import InvalidArgumentError
from .price_program import NoPriceError, said

TUNING = "UNISONO_TUNING"
PRICES = ("on", "off")
LIMIT = 30.0  #: seconds; it takes a tenth of a second for 8 ranks, and a few seconds for 64


def add_option(parser: argparse._ArgumentGroup) -> None:
    """--prices, of the commands that choose in a simulated network."""
    parser.add_argument(
        "--prices",
        choices=PRICES,
        help="whether calls that name no algorithm take the one that is cheapest in the network of --network (the "
        "default, unless UNISONO_TUNING says which rules hold), or what the built-in rules name (off)",
    )


def priced(environment: Mapping[str, str], prices: str | None) -> bool:
    """Whether a job with this environment gets rules by price. Raises `InvalidArgumentError` if it is told both."""
    named = environment.get(TUNING)
    if named and prices == "on":
        raise InvalidArgumentError(f"--prices on makes rules, and {TUNING} names others ({named}); take one of the two")
    return not named and prices != "off"


@contextlib.contextmanager
def rules_by_price(
    ranks: int, network: str, switches: str | None, operation: str | None = None
) -> Iterator[dict[str, str]]:
    """The variable that names a file with these rules, for as long as there is the file.

    `operation`: rules of this one only, for communicators of all ranks. Raises `InvalidArgumentError` if there are
    none.
    """
    arguments: list[object] = ["--rules", "--config", network, "-n", ranks]
    if switches is not None:
        arguments += ["--switch", switches]
    if operation is not None:
        arguments += ["--op", operation]
    text = said(*arguments, seconds=LIMIT)
    with tempfile.TemporaryDirectory(prefix="unisono-prices-") as folder:
        file = Path(folder) / "tuning.json"
        file.write_text(text)
        yield {TUNING: str(file)}


@contextlib.contextmanager
def rules_of_job(
    ranks: int, network: str | None, switches: str | None, environment: Mapping[str, str], prices: str | None
) -> Iterator[dict[str, str]]:
    """What a job's ranks have in their environment, for as long as it runs. `environment`: what they have without it.

    Where there are no prices, the built-in rules hold; a line says so if there could be some. Raises
    `InvalidArgumentError` if there must be some.
    """
    with contextlib.ExitStack() as stack:
        made: dict[str, str] = {}
        if network is not None and ranks > 1 and priced(os.environ | dict(environment), prices):
            try:
                made = stack.enter_context(rules_by_price(ranks, network, switches))
            except InvalidArgumentError as failure:
                if prices == "on":
                    raise
                # What is wrong with the configuration the cluster has said, or will; cables, say, have no prices.
                if not isinstance(failure, NoPriceError):
                    print(f"unisono run: the built-in rules choose algorithms: {failure}", file=sys.stderr)
        yield made
