"""Data-parallel training: every rank learns from its own share of the digits, all keep equal weights.

Run it with `unisono run -n 4 apps/digits/digits.py`. The network (64-48-10, ReLU, softmax) is plain
NumPy. After each mini-batch the ranks' gradients are summed by one all-reduce, in memory that all ranks
reach (`comm.zeros`), and every rank takes the same step.
The training runs twice; since an all-reduce adds in the order of its program, the two runs must
give the same weights, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from dataclasses import dataclass

import numpy as np
import unisono
from numpy.typing import NDArray
from rich.console import Console
from threadpoolctl import threadpool_limits

Array = NDArray[np.float32]
LAYERS = (64, 48, 10)
TRAINING = 1437  # of the 1797 images; the others are for the test
STEPS = 15  # mini-batches of an epoch; about 96 images each, over all ranks
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 brightnesses in [0, 1], and which digit each one shows."""

    images: Array
    labels: NDArray[np.int64]

    def part(self, which: slice | NDArray[np.int64]) -> Digits:
        """The images of an index."""
        return Digits(self.images[which], self.labels[which])


def load() -> tuple[Digits, Digits]:
    """Training and test images, shuffled alike on every rank."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(labels))
    all_digits = Digits((images[order] / 16).astype(np.float32), labels[order].astype(np.int64))
    return all_digits.part(slice(TRAINING)), all_digits.part(slice(TRAINING, None))


class Network:
    """A two-layer perceptron whose weights, and whose gradient, are one flat vector each.

    One vector means one all-reduce. The matrices are views of it.
    """

    def __init__(self, seed: int) -> None:
        inputs, hidden, outputs = LAYERS
        shapes = ((inputs, hidden), (hidden,), (hidden, outputs), (outputs,))
        self.weights: Array = np.zeros(sum(int(np.prod(shape)) for shape in shapes), np.float32)
        self.gradient: Array = np.zeros_like(self.weights)
        self.w1, self.b1, self.w2, self.b2 = self._views(self.weights, shapes)
        self.g_w1, self.g_b1, self.g_w2, self.g_b2 = self._views(self.gradient, shapes)
        random = np.random.default_rng(seed)
        self.w1[:] = random.normal(0, np.sqrt(2 / inputs), self.w1.shape)
        self.w2[:] = random.normal(0, np.sqrt(2 / hidden), self.w2.shape)

    @staticmethod
    def _views(flat: Array, shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]

    def logits(self, images: Array) -> tuple[Array, Array]:
        """Activations of the hidden and of the output layer."""
        hidden = np.maximum(images @ self.w1 + self.b1, 0)
        return hidden, hidden @ self.w2 + self.b2

    def backward(self, digits: Digits) -> float:
        """Sets the gradient to the sum over these images, and returns their summed loss."""
        rows = np.arange(len(digits.labels))
        hidden, logits = self.logits(digits.images)
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        probability = exponentials / exponentials.sum(axis=1, keepdims=True)
        loss = -np.log(probability[rows, digits.labels] + 1e-12).sum()

        error = probability
        error[rows, digits.labels] -= 1
        back = (error @ self.w2.T) * (hidden > 0)
        self.g_w1[:], self.g_b1[:] = digits.images.T @ back, back.sum(axis=0)
        self.g_w2[:], self.g_b2[:] = hidden.T @ error, error.sum(axis=0)
        return float(loss)

    def accuracy(self, digits: Digits) -> float:
        """Share of the images that are recognised."""
        return float((self.logits(digits.images)[1].argmax(axis=1) == digits.labels).mean())


def train(comm: unisono.Communicator, mine: Digits, epochs: int) -> tuple[Network, list[float]]:
    """Trains on all ranks, each with images of its own; returns the network and each epoch's mean loss."""
    network = Network(seed=3)
    momentum = np.zeros_like(network.weights)
    # What a step sends: the gradient, and behind it the loss and the number of images. The ranks read and write these
    # buffers directly.
    part = comm.zeros(len(network.weights) + 2, np.float32)
    total = comm.zeros(part.shape, np.float32)
    losses: list[float] = []
    for epoch in range(epochs):
        order = np.random.default_rng([2, epoch, comm.rank]).permutation(len(mine.labels))
        loss = images = 0.0
        for batch in np.array_split(order, STEPS):
            part[-2:] = network.backward(mine.part(batch)), len(batch)
            part[:-2] = network.gradient
            comm.allreduce(part, total, op="sum")
            momentum = np.float32(0.9) * momentum - np.float32(0.08) * total[:-2] / total[-1]
            network.weights += momentum
            loss, images = loss + float(total[-2]), images + float(total[-1])
        losses.append(loss / images)
    return network, losses


def gradient_difference(comm: unisono.Communicator, digits: Digits) -> float:
    """Relative difference of the ranks' summed gradient and the gradient of all images on one rank."""
    network = Network(seed=4)
    network.backward(digits.part(slice(comm.rank, None, comm.size)))
    total = np.zeros_like(network.gradient)
    comm.allreduce(network.gradient.copy(), total, op="sum")
    network.backward(digits)
    return float(np.abs(total - network.gradient).max() / np.abs(network.gradient).max())


def sparkline(values: list[float]) -> str:
    """One block per value, its height on a logarithmic scale from the least to the largest."""
    heights = np.log(np.array(values))
    heights = (heights - heights.min()) / max(float(np.ptp(heights)), 1e-9)
    return "".join(BLOCKS[1 + round(7 * float(height))] for height in heights)


def fingerprint(network: Network) -> str:
    """Hash of all bits of the weights."""
    return hashlib.sha256(network.weights.tobytes()).hexdigest()[:16]


def same_on_all_ranks(comm: unisono.Communicator, network: Network) -> bool:
    """Whether every rank holds the very same bits."""
    everyone = np.zeros(comm.size * len(network.weights), np.float32)
    comm.allgather(network.weights, everyone)
    rows = everyone.view(np.uint32).reshape(comm.size, -1)
    return bool((rows == rows[0]).all())


def main() -> int:
    """Trains twice and compares; 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="Data-parallel training on hand-written digits.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--accuracy", type=float, default=0.95, help="least test accuracy (default 0.95)")
    options = parser.parse_args()
    training, test = load()
    problems: list[str] = []
    # The ranks are the parallelism: one thread each for NumPy's matrix products.
    with threadpool_limits(1), unisono.init() as context:
        comm = context.world
        console = Console(quiet=comm.rank != 0, highlight=False, soft_wrap=True)
        mine = training.part(slice(comm.rank, None, comm.size))
        console.print(
            f"\n[bold]Digits[/bold]: {comm.size} ranks train one network, each on its own share of "
            f"{len(training.labels)} images;\n  gradients are summed where they stand, in memory that all ranks reach."
        )
        difference = gradient_difference(comm, training)
        console.print(f"  gradient, all ranks together against one alone: {difference:.1e} relative difference")
        if difference > 1e-4:
            problems.append(f"the summed gradient differs from that of one rank by {difference:.1e}")

        runs: list[str] = []
        accuracy = 0.0
        for run in ("first", "second"):
            begin = time.perf_counter()
            network, losses = train(comm, mine, options.epochs)
            seconds = time.perf_counter() - begin
            accuracy = network.accuracy(test)
            runs.append(fingerprint(network))
            console.print(
                f"  {run:6} run  loss {losses[0]:.3f} [cyan]{sparkline(losses)}[/cyan] {losses[-1]:.4f}"
                f"   test {accuracy:6.2%}   weights {runs[-1]}   {seconds:.1f} s"
            )
            if not same_on_all_ranks(comm, network):
                problems.append(f"after the {run} run the ranks hold different weights")
            if losses[-1] >= losses[0]:
                problems.append(f"the loss has not fallen: {losses[0]:.4f} to {losses[-1]:.4f}")

        if runs[0] != runs[1]:
            problems.append(f"the two runs differ: weights {runs[0]} and {runs[1]}")
        if accuracy < options.accuracy:
            problems.append(f"test accuracy {accuracy:.2%}, at least {options.accuracy:.1%} expected")
        for problem in problems:
            print(f"rank {comm.rank}: {problem}", file=sys.stderr)
        if not problems:
            console.print(
                f"[green]✓[/green] {accuracy:.2%} of {len(test.labels)} unseen digits recognised; weights equal on "
                f"{comm.size} ranks and in both runs, bit for bit."
            )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
