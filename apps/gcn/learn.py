"""Weights for the digits' graph: full-batch gradient descent in fp32 on one machine, a tenth of the labels known."""

from __future__ import annotations

import numpy as np
from graphs import HIDDEN, Floats, Graph, Ints
from numpy.typing import NDArray

STEPS = 200
RATE, MOMENTUM, DECAY = np.float32(0.5), np.float32(0.9), np.float32(5e-4)


def known(labels: Ints, seed: int) -> NDArray[np.bool_]:
    """Vertices whose labels training may see: one in ten."""
    chosen = np.zeros(len(labels), np.bool_)
    chosen[np.random.default_rng([seed, 3]).permutation(len(labels))[: len(labels) // 10]] = True
    return chosen


def train(graph: Graph, features: Floats, labels: Ints, seed: int) -> list[Floats]:
    """Both layers' weights."""
    from scipy.sparse import csr_matrix, identity

    n, scale = graph.sizes.vertices, graph.scale
    ones = np.ones(len(graph.columns), np.float32)
    plain = csr_matrix((ones, graph.columns, graph.first), (n, n)) + identity(n, np.float32)
    spread = plain.multiply(scale[:, None]).multiply(scale[None, :]).tocsr().astype(np.float32)
    random, seen = np.random.default_rng([seed, 4]), known(labels, seed)
    shapes = ((graph.sizes.features, HIDDEN), (HIDDEN, graph.sizes.classes))
    weights = [(random.standard_normal(s, np.float32) * np.float32(np.sqrt(2 / s[0]))) for s in shapes]
    speed = [np.zeros_like(w) for w in weights]
    first = spread @ features
    for _ in range(STEPS):
        hidden = np.maximum(first @ weights[0], 0)
        second = spread @ hidden
        logits = second @ weights[1]
        error = np.exp(logits - logits.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(n), labels] -= 1
        error *= seen[:, None] / np.float32(seen.sum())
        back = (spread.T @ (error @ weights[1].T)) * (hidden > 0)
        for weight, pace, gradient in zip(weights, speed, (first.T @ back, second.T @ error), strict=True):
            pace *= MOMENTUM
            pace -= RATE * (gradient + DECAY * weight)
            weight += pace
    return weights


def accuracy(logits: Floats, labels: Ints, seed: int) -> float:
    """Share of the vertices that training has not seen, and that are recognised."""
    unseen = ~known(labels, seed)
    return float((logits.argmax(axis=1) == labels)[unseen].mean())
