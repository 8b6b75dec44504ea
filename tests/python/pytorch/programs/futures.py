"""Futures of works: each completes once, beside the program, in batches; tensors live until then."""

import ctypes
import gc
import threading
import time
import weakref

import torch
import torch.distributed as dist
import unisono.torch  # noqa: F401
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from unisono import _core

dist.init_process_group("unisono")
rank, size = dist.get_rank(), dist.get_world_size()
TOTAL = sum(range(size))
CALLS = 200


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# Programs that hold the GIL: calls end meanwhile, and few batches tell of them all. The last rank comes late.
tensors = [torch.full((3000,), float(rank + i)) for i in range(CALLS)]
heard: list[int] = []
beside = dist.new_group(backend="gloo")
last = size > 1 and rank == size - 1
if last:
    dist.barrier(beside)
    time.sleep(0.1)
before = _core.completions()
works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
for number, work in enumerate(works):
    work.get_future().then(lambda _, number=number: heard.append(number))
if not last:
    dist.barrier(beside)
    ctypes.PyDLL(None).usleep(1_500_000)  # as C code that never lets go of it
    ended = sum(int(tensor[7] == TOTAL + i * size) for i, tensor in enumerate(tensors))
    assert ended == CALLS, f"{ended} calls ended while the program held the GIL"
until(lambda: len(heard) == CALLS)
assert sorted(heard) == list(range(CALLS))
called, taken, waiting = (now - then for now, then in zip(_core.completions(), before, strict=True))
assert waiting == 0
assert last or size == 1 or (called == CALLS and taken <= 20), f"{called} completions took the GIL {taken} times"

# Nobody keeps tensors or works but the calls; each is told of once, whoever waits, looks or asks at that moment.
told: dict[int, int] = {}
lock = threading.Lock()


def count(number, value):
    with lock:
        told[number] = told.get(number, 0) + (1 if value[0] == TOTAL else 100)


groups = [dist.new_group() for _ in range(3)]


def many(thread):
    for call in range(60):
        number = 1000 * thread + call
        work = dist.all_reduce(torch.full((4000,), float(rank)), group=groups[thread], async_op=True)
        work.get_future().then(lambda done, number=number: count(number, done.value()[0]))
        if call % 3 == 0:
            work.wait()
            assert work.get_future().done(), "a wait has returned before the future was complete"
        elif call % 3 == 1:
            work.is_completed()


failed: list[object] = []
threading.excepthook = failed.append
threads = [threading.Thread(target=many, args=(thread,)) for thread in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join(60)
assert not failed, failed
until(lambda: len(told) == 180)
assert set(told.values()) == {1}, told

# What has been told is let go of, with the next call at the latest.
tensor = torch.ones(5000)
gone = weakref.ref(tensor)
work = dist.all_reduce(tensor, async_op=True)
work.get_future().wait()
work.wait()
del work, tensor
dist.all_reduce(torch.ones(1))
until(lambda: gc.collect() >= 0 and gone() is None)

# A callback that raises harms no other.
works = [dist.all_reduce(torch.ones(3000), async_op=True) for _ in range(30)]
futures = [work.get_future().then(lambda _, n=n: n // (n % 3)) for n, work in enumerate(works)]
for number, future in enumerate(futures):
    try:
        assert future.wait() == number // (number % 3)
    except Exception as error:
        assert number % 3 == 0, error
        assert "division" in str(error) or "modulo" in str(error), error

# Callbacks may wait for other works and block in calls, as torch's own do.
nested = (
    dist.all_reduce(torch.ones(4), async_op=True)
    .get_future()
    .then(lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0])
)
assert nested.wait().tolist() == [size * size] * 4
blocking = (
    dist.all_reduce(torch.ones(4), async_op=True)
    .get_future()
    .then(lambda done: dist.all_reduce(done.value()[0]) or done.value()[0])
)
assert blocking.wait().tolist() == [size * size] * 4

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.005)
state = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=0.5)
model.register_comm_hook(state, power.powerSGD_hook)
for _ in range(5):
    model(torch.randn(16, 64) + rank).square().mean().backward()
    own = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    everyone = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(everyone, own)
    assert all(torch.equal(each, own) for each in everyone)
    assert own.abs().sum() > 0

dist.destroy_process_group()
print("right", flush=True)
