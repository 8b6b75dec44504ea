"""Tensors of PyTorch in memory that ranks share. What needs torch is skipped where it is not installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def run(tmp_path: Path, program: str, ranks: int = 2) -> str:
    """What a program's rank 0 prints; all ranks must end well."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torch_is_not_imported_for_it(tmp_path: Path) -> None:
    program = """
    import sys
    import unisono
    with unisono.init() as context, unisono.allocating():
        print("torch" in sys.modules)
    """
    assert run(tmp_path, program, 1).strip() == "False"


@needs_torch
def test_tensors_made_inside_are_reached_by_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithms of direct access say of ordinary tensors that they cannot reach them."""
    monkeypatch.setenv("UNISONO_KERNEL_COPY", "off")
    program = """
    import numpy as np
    import torch
    import unisono

    with unisono.init() as context:
        comm, n = context.world, 100_000
        like = torch.zeros(n)

        def reachable(tensor):
            tensor.fill_(1.0 + comm.rank)
            total = context.empty(n, np.float32)
            try:
                comm.allreduce(tensor.numpy().reshape(-1), total, algorithm="direct")
            except unisono.UnisonoError as error:
                assert "memory of unisono_allocate" in str(error), error
                return False
            assert (total == sum(range(1, comm.size + 1))).all()
            return True

        makers = [
            lambda: torch.empty(n), lambda: torch.zeros((n // 10, 10)), lambda: torch.ones(n // 10, 10),
            lambda: torch.full((n,), 3.0), lambda: torch.rand(n), lambda: torch.randn(n),
            lambda: torch.empty_like(like), lambda: torch.zeros_like(like), lambda: torch.ones_like(like),
            lambda: torch.full_like(like, 2.0), lambda: torch.rand_like(like), lambda: torch.randn_like(like),
            lambda: like.new_empty(n), lambda: like.new_zeros(n), lambda: like.new_ones((n,)),
            lambda: like.new_full((n,), 7.0), lambda: torch.tensor([1.0] * n),
            lambda: torch.arange(n, dtype=torch.float32), lambda: torch.linspace(0, 1, n),
        ]
        with unisono.allocating():
            inside = [make() for make in makers]
            summed = inside[1] + 1
        outside = [make() for make in makers]
        assert all([reachable(tensor) for tensor in inside])
        assert not any([reachable(tensor) for tensor in outside])
        assert not reachable(summed)  # results of operations are ordinary
        if comm.rank == 0:
            print(len(inside))
    # They outlive the context.
    assert float(inside[0].sum()) > 0
    """
    assert run(tmp_path, program).strip() == "19"


@needs_torch
def test_tensors_are_those_that_torch_would_make(tmp_path: Path) -> None:
    program = """
    import copy
    import torch
    import unisono

    n = 5000
    like = torch.randn(50, 100).t()
    image = torch.zeros(2, 3, 40, 50).to(memory_format=torch.channels_last)
    makers = [
        lambda: torch.zeros(n), lambda: torch.zeros(n, dtype=torch.bfloat16), lambda: torch.zeros([2, n]),
        lambda: torch.ones(n, dtype=torch.bool), lambda: torch.ones(size=(n,), dtype=torch.complex64),
        lambda: torch.full((n,), 7), lambda: torch.full((n,), True), lambda: torch.full((n,), 1 + 2j),
        lambda: torch.full(size=(n, 2), fill_value=0.5, dtype=torch.float16, requires_grad=True),
        lambda: torch.rand(n), lambda: torch.randn(n, 2, dtype=torch.float64), lambda: torch.randn(3, 700),
        lambda: torch.rand(n, generator=torch.Generator().manual_seed(5)),
        lambda: torch.zeros_like(like), lambda: torch.randn_like(like), lambda: torch.full_like(like, 3),
        lambda: torch.ones_like(image), lambda: torch.ones_like(image, dtype=torch.int64),
        lambda: torch.rand_like(image, memory_format=torch.contiguous_format),
        lambda: like.new_full((n,), 4, dtype=torch.int32), lambda: like.new_zeros(n, 2),
        lambda: torch.zeros_like(torch.nn.Parameter(torch.zeros(n))),
        lambda: torch.tensor([1.5] * n, requires_grad=True), lambda: torch.tensor(list(range(n))),
        lambda: torch.arange(n), lambda: torch.eye(90), lambda: torch.randint(9, (n,)), lambda: torch.randperm(n),
        lambda: torch.zeros(0), lambda: torch.zeros(()), lambda: torch.ones(3),
        lambda: torch.nn.Linear(60, 70).weight, lambda: torch.ones(n, out=torch.empty(n)),
        lambda: torch.zeros(1, n).expand(4, n), lambda: torch.zeros_like(torch.ones(1, n).expand(4, n)),
    ]
    with unisono.init() as context:
        for number, make in enumerate(makers):
            torch.manual_seed(number)
            wanted = make()
            torch.manual_seed(number)
            with unisono.allocating():
                tensor = make()
                after = torch.rand(3)
            torch.manual_seed(number)
            make()
            assert torch.equal(after, torch.rand(3)), number  # as many random numbers were taken
            facts = lambda one: (type(one), one.dtype, one.shape, one.stride(), one.requires_grad, one.is_leaf)
            assert facts(tensor) == facts(wanted), (number, facts(tensor), facts(wanted))
            assert torch.equal(tensor, wanted), number
        with unisono.allocating():
            assert torch.zeros(n, device="meta").is_meta
            with torch.device("meta"):
                assert torch.zeros(n).is_meta
            try:
                torch.zeros(-1)
            except RuntimeError as error:
                assert "negative" in str(error), error
            # What is computed with them has gradients as usual.
            layer = torch.nn.Linear(100, 50)
            layer(torch.ones(64, 100)).sum().backward()
            assert layer.weight.grad.shape == (50, 100) and float(layer.weight.grad[0, 0]) == 64.0
            copied = copy.deepcopy(layer)
            assert torch.equal(copied.weight, layer.weight)
        assert not torch.overrides._len_torch_function_stack()
        print("all")
    """
    assert run(tmp_path, program, 1).strip() == "all"
