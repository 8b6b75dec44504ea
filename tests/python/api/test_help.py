"""What `help()` says of calls: every option by name, none behind `Unpack[...]`."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = list(unisono.Options.__annotations__)


def public_calls() -> Iterator[tuple[str, Any]]:
    """Everything that can be called by name: functions of the package, and methods of its classes."""
    for name in unisono.__all__:
        thing = getattr(unisono, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and thing.__module__.startswith("unisono.") and not hasattr(thing, "__total__"):
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if not method.startswith("_") or (method == "__init__" and method in vars(thing)):
                    yield f"{name}.{method}", function


def test_no_call_hides_its_options() -> None:
    calls = dict(public_calls())
    assert len(calls) > 100
    hidden = [
        name
        for name, function in calls.items()
        if function.__module__.startswith("unisono.")
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or "Unpack" in str(parameter.annotation)
    ]
    assert hidden == []


def rendered(thing: Any) -> tuple[str, str]:
    """What `help()` prints: the line of the call, and the text below it."""
    head, text = pydoc.plain(pydoc.render_doc(thing)).split(" -> ", 1)
    return head, text


@pytest.mark.parametrize("call", ["allreduce", "send", "bcast", "gatherv", "barrier", "run_program"])
def test_help_names_the_options(call: str) -> None:
    method, form = getattr(unisono.Communicator, call), getattr(unisono.Communicator, f"{call}_async")
    head, text = rendered(method)
    assert [option for option in OPTIONS if f"{option}:" in head] == [name for name in OPTIONS if name != "start"]
    assert "see `unisono.Options`" in text
    head, text = rendered(form)
    assert [option for option in OPTIONS if f"{option}:" in head] == OPTIONS
    # What a call returns and its own arguments are still there.
    assert next(iter(inspect.signature(method).parameters)) == "self"
    assert inspect.signature(form).return_annotation == "Request"


def test_help_names_the_settings() -> None:
    for call, described in (
        (unisono.init, unisono.ContextSettings),
        (unisono.Context.configure, unisono.ContextSettings),
        (unisono.ThreadJob, unisono.ContextSettings),
        (unisono.Communicator.dup, unisono.CommunicatorSettings),
    ):
        assert set(described.__annotations__) <= set(inspect.signature(call).parameters), call


@pytest.mark.parametrize("described", [unisono.Options, unisono.ContextSettings, unisono.CommunicatorSettings])
def test_every_option_is_explained(described: Any) -> None:
    text = pydoc.plain(pydoc.render_doc(described))
    for option in described.__annotations__:
        assert f"- `{option}`" in text, option


def test_calls_stay_as_they_were() -> None:
    """A signature is for readers: the call takes what it took, and refuses what it refused."""
    with unisono.init() as context:
        mine = np.arange(3.0)
        assert np.array_equal(context.world.allreduce(mine, op="max", algorithm=None, timeout=5), mine)
        with pytest.raises(TypeError, match="speed is no option; options are algorithm"):
            context.world.allreduce(mine, speed=3)  # type: ignore[call-arg]


def test_without_docstrings() -> None:
    script = "import inspect, unisono; print('algorithm' in inspect.signature(unisono.Communicator.bcast).parameters)"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "python")},
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
