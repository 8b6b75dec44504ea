"""A queue of places in which each stands at most once, cycle by cycle, as unisono_kick_queue is."""

from __future__ import annotations


class KickQueue:
    """`kicked` is what was kicked in the cycle before: it is seen to be in the queue, or not, in this one."""

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.kicked: int | None = None

    def offer(self) -> int | None:
        """The place on offer in this cycle."""
        return self.queue[0] if self.queue and self.queue[0] != self.kicked else None

    def cycle(self, kick: int | None, taken: bool) -> None:
        """What a cycle changes."""
        assert not taken or self.offer() is not None
        if self.kicked is not None and self.kicked not in self.queue:
            self.queue.append(self.kicked)
        if taken:
            self.queue.pop(0)
        self.kicked = kick
