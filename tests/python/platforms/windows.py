"""A program for any platform: windows that their ranks and peers change at the same time, puts, gets, refusals."""

import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    rank, size = world.rank, world.size
    window = np.arange(3000, dtype=np.int32) + 10000 * rank
    world.window(window)
    left, right = (rank - 1) % size, (rank + 1) % size
    # The host changes one part of its window, a peer another one at the same time.
    window[100:200] = -rank
    world.put(np.full(1501, rank, np.int32), right, offset=4 * 1001)
    world.barrier()
    expected = np.arange(3000, dtype=np.int32) + 10000 * rank
    expected[100:200] = -rank
    expected[1001:2502] = left
    assert (window == expected).all()
    got = world.get(np.empty(2000, np.int32), right, offset=4 * 50)
    expected = np.arange(3000, dtype=np.int32) + 10000 * right
    expected[100:200] = -right
    expected[1001:2502] = rank
    assert (got == expected[50:2050]).all()
    for call in (world.put, world.get):
        refusal = ""
        try:
            call(got, right, offset=4 * 1001)
        except unisono.BufferTooSmallError as error:
            refusal = str(error)
        assert call.__name__ in refusal, "a place outside the window"
    world.barrier()
    world.window(None)
    print(f"rank {rank} of {size} is right\n", end="")  # in one piece, whatever Python buffers
