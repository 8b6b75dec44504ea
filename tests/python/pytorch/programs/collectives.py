"""Drawn calls of torch.distributed: each rank computes what all have given from the seed, and compares."""

import random
import sys

import torch
import torch.distributed as dist
import unisono.torch

SEED, CALLS = sys.argv[1], int(sys.argv[2])
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
OTHERS = [torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.float8_e4m3fn]
FOLD = {
    dist.ReduceOp.SUM: lambda a, b: a + b,
    dist.ReduceOp.PRODUCT: lambda a, b: a * b,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.BAND: lambda a, b: a & b,
    dist.ReduceOp.BOR: lambda a, b: a | b,
    dist.ReduceOp.BXOR: lambda a, b: a ^ b,
}
BITWISE = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


def values(key: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small whole numbers, which every order of a reduction sums up to the same."""
    generator = torch.Generator().manual_seed(hash_of(key))
    whole = torch.randint(0, 4, shape, generator=generator)
    if dtype.is_complex:
        return torch.complex(whole.double(), torch.randint(0, 4, shape, generator=generator).double()).to(dtype)
    return whole.to(dtype)


def hash_of(key: str) -> int:
    return random.Random(key).getrandbits(48)


def strided(tensor: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """The same elements: as they are, with gaps, transposed, or as a part of a larger tensor."""
    form = draw.randrange(4)
    if form == 1 and tensor.dim() == 2:
        return tensor.t().contiguous().t()
    if form == 2:
        large = torch.zeros((*tensor.shape, 3), dtype=tensor.dtype)
        large[..., 1] = tensor
        return large[..., 1]
    if form == 3 and tensor.dim() == 1:
        large = torch.zeros(tensor.shape[0] + 5, dtype=tensor.dtype)
        large[3 : 3 + tensor.shape[0]] = tensor
        return large[3 : 3 + tensor.shape[0]]
    return tensor.clone()


def same(got: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
    as_bytes = got.dtype in (torch.float8_e4m3fn,)
    a, b = (got.view(torch.uint8), wanted.view(torch.uint8)) if as_bytes else (got, wanted)
    assert torch.equal(a, b), f"{what}: got {got}, wanted {wanted}"


class Calls:
    def __init__(self, draw: random.Random, key: str) -> None:
        self.draw, self.key = draw, key
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.asynchronous = draw.random() < 0.5
        self.how = draw.randrange(3)

    def end(self, work: object) -> None:
        if not self.asynchronous:
            return
        if self.how == 0:
            work.wait()
        elif self.how == 1:
            work.get_future().wait()
            assert work.is_completed()
            assert work.is_success()
            work.wait()
        else:
            while not work.is_completed():
                pass
            assert work.exception() is None

    def shape(self) -> tuple[int, ...]:
        return self.draw.choice([(), (1,), (7,), (5, 3), (1000,), (64, 33), (70_000,), (0,)])

    def of(self, rank: int, shape: tuple[int, ...], dtype: torch.dtype, part: object = "") -> torch.Tensor:
        return values(f"{self.key}/{rank}/{part}", shape, dtype)

    def mine(self, shape: tuple[int, ...], dtype: torch.dtype, part: object = "") -> torch.Tensor:
        draw = random.Random(f"{self.key}/{self.rank}/{part}/form")
        return strided(self.of(self.rank, shape, dtype, part), draw)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype, part: object = "") -> torch.Tensor:
        draw = random.Random(f"{self.key}/{self.rank}/{part}/target")
        return strided(torch.zeros(shape, dtype=dtype), draw)

    def reduction(self) -> tuple[dist.ReduceOp, torch.dtype]:
        op = self.draw.choice(list(FOLD))
        return op, self.draw.choice(INTEGERS if op in BITWISE else FLOATS + INTEGERS)

    def folded(self, op: object, parts: list[torch.Tensor]) -> torch.Tensor:
        total = parts[0]
        for part in parts[1:]:
            total = FOLD[op](total, part)
        return total

    def all_reduce(self) -> None:
        (op, dtype), shape = self.reduction(), self.shape()
        tensor = self.mine(shape, dtype)
        self.end(dist.all_reduce(tensor, op, async_op=self.asynchronous))
        same(tensor, self.folded(op, [self.of(r, shape, dtype) for r in range(self.size)]), "all_reduce")

    def average(self) -> None:
        shape = self.shape()
        tensor = self.mine(shape, torch.float64)
        self.end(dist.all_reduce(tensor, dist.ReduceOp.AVG, async_op=self.asynchronous))
        total = self.folded(dist.ReduceOp.SUM, [self.of(r, shape, torch.float64) for r in range(self.size)])
        torch.testing.assert_close(tensor, total / self.size)

    def premultiplied(self) -> None:
        """PREMUL_SUM, whose factor differs by rank; each is a power of two. Sources stay as they are."""
        dtype, shape = self.draw.choice(FLOATS), self.shape()
        factors = [self.draw.choice([0.0, 0.25, 0.5, 2.0, -4.0]) for _ in range(self.size)]
        root, kind, as_tensor = self.draw.randrange(self.size), self.draw.randrange(3), self.draw.random() < 0.5
        factor = factors[self.rank]
        op = dist._make_nccl_premul_sum(torch.tensor([factor], dtype=dtype) if as_tensor else factor)
        parts = [self.of(r, shape, dtype) * f for r, f in enumerate(factors)]
        total = self.folded(dist.ReduceOp.SUM, parts)
        tensor = self.mine(shape, dtype)
        if kind == 0:
            self.end(dist.all_reduce(tensor, op, async_op=self.asynchronous))
            same(tensor, total, "all_reduce with factors")
        elif kind == 1:
            self.end(dist.reduce(tensor, root, op, async_op=self.asynchronous))
            same(tensor, total if self.rank == root else self.of(self.rank, shape, dtype), "reduce with factors")
        else:
            given = torch.cat([tensor.reshape(-1)] * self.size)
            before, output = given.clone(), torch.empty(tensor.numel(), dtype=dtype)
            self.end(dist.reduce_scatter_single(output, given, op, async_op=self.asynchronous))
            same(output, total.reshape(-1), "reduce_scatter with factors")
            same(given, before, "the input of reduce_scatter with factors")

    def truths(self) -> None:
        op = self.draw.choice([dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT])
        shape = self.shape()
        tensor = self.mine(shape, torch.bool)
        self.end(dist.all_reduce(tensor, op, async_op=self.asynchronous))
        parts = [self.of(r, shape, torch.bool) for r in range(self.size)]
        fold = torch.logical_or if op in (dist.ReduceOp.MAX, dist.ReduceOp.SUM) else torch.logical_and
        total = parts[0]
        for part in parts[1:]:
            total = fold(total, part)
        same(tensor, total, "all_reduce of truth values")

    def reduce(self) -> None:
        (op, dtype), shape, root = self.reduction(), self.shape(), self.draw.randrange(self.size)
        tensor = self.mine(shape, dtype)
        self.end(dist.reduce(tensor, root, op, async_op=self.asynchronous))
        if self.rank == root:
            same(tensor, self.folded(op, [self.of(r, shape, dtype) for r in range(self.size)]), "reduce")

    def broadcast(self) -> None:
        dtype, shape, root = self.draw.choice(FLOATS + INTEGERS + OTHERS), self.shape(), self.draw.randrange(self.size)
        tensor = self.mine(shape, dtype)
        self.end(dist.broadcast(tensor, root, async_op=self.asynchronous))
        same(tensor, self.of(root, shape, dtype), "broadcast")

    def all_gather(self) -> None:
        dtype, shape = self.draw.choice(FLOATS + INTEGERS + OTHERS[:-1]), self.shape()
        uneven = self.draw.random() < 0.3
        shapes = [(r + 1, *shape) if uneven else shape for r in range(self.size)]
        if self.draw.random() < 0.5 and not uneven:
            outputs = list(torch.empty((self.size, *shape), dtype=dtype).unbind())
        else:
            outputs = [self.empty(one, dtype, r) for r, one in enumerate(shapes)]
        self.end(dist.all_gather(outputs, self.mine(shapes[self.rank], dtype), async_op=self.asynchronous))
        for r, output in enumerate(outputs):
            same(output, self.of(r, shapes[r], dtype), "all_gather")

    def all_gather_single(self) -> None:
        dtype, shape = self.draw.choice(FLOATS + INTEGERS + OTHERS), self.draw.choice([(3,), (20, 7), (40_000,)])
        output = self.empty((self.size * shape[0], *shape[1:]), dtype)
        tensor = self.mine(shape, dtype)
        if self.draw.random() < 0.4:  # in place
            tensor = output[self.rank * shape[0] : (self.rank + 1) * shape[0]]
            tensor.copy_(self.of(self.rank, shape, dtype))
        self.end(dist.all_gather_single(output, tensor, async_op=self.asynchronous))
        wanted = [self.of(r, shape, dtype) for r in range(self.size)]
        raw = [one.view(torch.uint8) if dtype == torch.float8_e4m3fn else one for one in wanted]
        same(output.contiguous().view(raw[0].dtype), torch.cat(raw), "all_gather_single")

    def gather(self) -> None:
        dtype, shape, root = self.draw.choice(FLOATS + INTEGERS), self.shape(), self.draw.randrange(self.size)
        outputs = [self.empty(shape, dtype, r) for r in range(self.size)] if self.rank == root else None
        self.end(dist.gather(self.mine(shape, dtype), outputs, root, async_op=self.asynchronous))
        for r, output in enumerate(outputs or []):
            same(output, self.of(r, shape, dtype), "gather")

    def scatter(self) -> None:
        dtype, shape, root = self.draw.choice(FLOATS + INTEGERS), self.shape(), self.draw.randrange(self.size)
        inputs = [self.mine(shape, dtype, r) for r in range(self.size)] if self.rank == root else None
        output = self.empty(shape, dtype)
        self.end(dist.scatter(output, inputs, root, async_op=self.asynchronous))
        same(output, self.of(root, shape, dtype, self.rank), "scatter")

    def reduce_scatter(self) -> None:
        (op, dtype), shape = self.reduction(), self.shape()
        shapes = [(r + 1, *shape) if self.how == 0 else shape for r in range(self.size)]
        inputs = [self.mine(one, dtype, r) for r, one in enumerate(shapes)]
        output = self.empty(shapes[self.rank], dtype)
        self.end(dist.reduce_scatter(output, inputs, op, async_op=self.asynchronous))
        parts = [self.of(r, shapes[self.rank], dtype, self.rank) for r in range(self.size)]
        same(output, self.folded(op, parts), "reduce_scatter")

    def reduce_scatter_single(self) -> None:
        op, dtype = self.reduction()
        rows = self.draw.choice([1, 9, 30_000])
        tensor = self.mine((self.size * rows, 2), dtype)
        output = self.empty((rows, 2), dtype, "out")
        if self.draw.random() < 0.3 and tensor.is_contiguous():  # the result replaces a part of the input
            output = tensor[self.rank * rows : (self.rank + 1) * rows]
        self.end(dist.reduce_scatter_single(output, tensor, op, async_op=self.asynchronous))
        parts = [self.of(r, (self.size * rows, 2), dtype)[self.rank * rows : (self.rank + 1) * rows] for r in
                 range(self.size)]  # fmt: skip
        same(output, self.folded(op, parts), "reduce_scatter_single")

    def all_to_all_single(self) -> None:
        dtype, width = self.draw.choice(FLOATS + INTEGERS), self.draw.choice([(), (3,), (500,)])
        if self.draw.random() < 0.5:
            splits = [[self.draw.randrange(4) for _ in range(self.size)] for _ in range(self.size)]
        else:
            splits = [[2] * self.size for _ in range(self.size)]
        sent, received = splits[self.rank], [splits[r][self.rank] for r in range(self.size)]
        output = self.empty((sum(received), *width), dtype, "out")
        even = all(split == [2] * self.size for split in splits)
        given = () if self.how == 0 and even else (received, sent)
        self.end(dist.all_to_all_single(
            output, self.mine((sum(sent), *width), dtype), *given, async_op=self.asynchronous
        ))  # fmt: skip
        parts = [self.of(r, (sum(splits[r]), *width), dtype).split(splits[r])[self.rank] for r in range(self.size)]
        same(output, torch.cat(parts), "all_to_all_single")

    def all_to_all(self) -> None:
        dtype = self.draw.choice(FLOATS + INTEGERS)
        shapes = [[(self.draw.randrange(6), 2) for _ in range(self.size)] for _ in range(self.size)]
        outputs = [self.empty(shapes[r][self.rank], dtype, r) for r in range(self.size)]
        inputs = [self.mine(shapes[self.rank][r], dtype, r) for r in range(self.size)]
        self.end(dist.all_to_all(outputs, inputs, async_op=self.asynchronous))
        for r, output in enumerate(outputs):
            same(output, self.of(r, shapes[r][self.rank], dtype, self.rank), "all_to_all")

    def coalesced(self) -> None:
        shapes = [self.shape() for _ in range(self.draw.randrange(1, 6))]
        tensors = [self.mine(shape, torch.float32, i) for i, shape in enumerate(shapes)]
        with dist._coalescing_manager(async_ops=self.asynchronous) as manager:
            for tensor in tensors:
                dist.all_reduce(tensor)
        if self.asynchronous:
            manager.wait()
        for i, (shape, tensor) in enumerate(zip(shapes, tensors, strict=True)):
            parts = [self.of(r, shape, torch.float32, i) for r in range(self.size)]
            same(tensor, self.folded(dist.ReduceOp.SUM, parts), "coalesced")

    def ring(self) -> None:
        dtype, shape = self.draw.choice(FLOATS + INTEGERS), self.shape()
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        output, tensor = self.empty(shape, dtype), self.mine(shape, dtype)
        batch = [dist.P2POp(dist.isend, tensor, right, tag=3), dist.P2POp(dist.irecv, output, left, tag=3)]
        self.draw.shuffle(batch)
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        same(output, self.of(left, shape, dtype), "batch_isend_irecv")

    def message(self) -> None:
        if self.size == 1:
            return
        dtype, shape = self.draw.choice(FLOATS + INTEGERS), self.shape()
        source = self.draw.randrange(self.size)
        sink = (source + 1 + self.draw.randrange(self.size - 1)) % self.size
        if self.rank == source:
            dist.send(self.mine(shape, dtype), sink, tag=9)
        if self.rank == sink:
            output = self.empty(shape, dtype)
            found = dist.recv(output, tag=9) if self.how == 0 else dist.recv(output, source, tag=9)
            assert found == source
            same(output, self.of(source, shape, dtype), "recv")

    def objects(self) -> None:
        found = [None] * self.size
        dist.all_gather_object(found, (self.key, self.rank))
        assert found == [(self.key, r) for r in range(self.size)]

    def barrier(self) -> None:
        self.end(dist.barrier(async_op=self.asynchronous))
        unisono.torch.monitored_barrier()


def main() -> None:
    dist.init_process_group("unisono")
    names = [name for name, _ in Calls.__dict__.items() if name not in (
        "__module__", "__init__", "__doc__", "__dict__", "__weakref__", "end", "shape", "of", "mine", "empty",
        "reduction", "folded",
    )]  # fmt: skip
    for number in range(CALLS):
        key = f"{SEED}/{number}"
        draw = random.Random(key)
        name = draw.choice(names)
        try:
            getattr(Calls(draw, key), name)()
        except BaseException as error:
            error.add_note(f"call {number} of seed {SEED}: {name}")
            raise
    dist.destroy_process_group()
    print("right", flush=True)


if __name__ == "__main__":
    main()
