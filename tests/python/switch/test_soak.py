"""A short soak of switches (`make soak-switch`)."""

from __future__ import annotations

from .soak import soak


def test_a_short_soak() -> None:
    good, wrong, sentence = soak(10, 11, each=2.0)
    assert good, sentence
    assert wrong == 0, sentence
