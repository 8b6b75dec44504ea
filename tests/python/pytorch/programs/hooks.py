"""What the communication hooks refuse, and what they make of gradients: run by each rank of a job."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import unisono
import unisono.torch
from unisono.torch import hooks


class Bucket:
    """What a hook uses of torch's GradBucket."""

    def __init__(self, gradients: torch.Tensor) -> None:
        self._gradients = gradients

    def buffer(self) -> torch.Tensor:
        """The gradients."""
        return self._gradients


def refused(words: str, group: dist.ProcessGroup | None, gradients: torch.Tensor) -> None:
    before = gradients.clone()
    with pytest.raises(unisono.InvalidArgumentError, match=words) as raised:
        hooks.bf16_wire_hook(group, Bucket(gradients))
    assert isinstance(raised.value, RuntimeError), "torch's programs do not catch it"
    assert torch.equal(gradients, before), "what was refused was changed"


def means() -> None:
    """Gradients that bf16 or fp16 have not; the ranks' means are told apart by what they are rounded to."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for hook, narrow in ((hooks.bf16_wire_hook, torch.bfloat16), (hooks.fp16_wire_hook, torch.float16)):
        everyone = [torch.linspace(0.1, 3.0 + each, 1000) for each in range(size)]
        own = everyone[rank].clone()
        mean = hook(None, Bucket(own)).wait()
        assert mean.data_ptr() == own.data_ptr(), "the mean stands elsewhere"
        rounded = [(each / size).to(narrow).float() for each in everyone]
        assert torch.equal(mean, sum(rounded).to(narrow).float())
        assert not torch.equal(mean, sum(everyone) / size), "nothing was rounded"


def main() -> None:
    dist.init_process_group("unisono")
    refused("the group's backend is gloo", dist.new_group(backend="gloo"), torch.ones(3))
    refused("the gradients are torch.float64", None, torch.ones(3, dtype=torch.float64))
    means()
    dist.destroy_process_group()
    print("fine")


if __name__ == "__main__":
    main()
