"""What the tests of the microcontroller share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import model
from .cpu import Cpu, Oracle


@pytest.fixture(scope="session")
def library() -> Path:
    return model.model()


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    return Oracle(model.oracle())


@pytest.fixture(scope="session")
def image() -> list[int]:
    return model.image()


@pytest.fixture
def make(library: Path, image: list[int]) -> Iterator[Callable[..., Cpu]]:
    """Makes microcontrollers that run the image, or another."""
    made: list[Cpu] = []

    def one(words: list[int] | None = None, seed: int = 1) -> Cpu:
        made.append(Cpu(library, image if words is None else words, seed))
        return made[-1]

    yield one
    for cpu in made:
        cpu.close()


@pytest.fixture
def cpu(make: Callable[..., Cpu]) -> Cpu:
    return make()
