"""The scoreboard's rules in Python: what may issue, what must, and what a call's window holds.

Knows nothing of how the module works. Moves are numbered from 0 in each program; conditions are looked up by number.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Move:
    """One move of a program, and how far it has come."""

    number: int
    dependencies: int
    distance: int
    receives: int
    sends: int
    trivial: bool
    streams: int = 0
    malformed: bool = False
    issued: bool = False
    consumed: bool = False
    sent: bool = False
    complete: bool = False
    retired: bool = False
    eligible_for: int = 0
    """Cycles in which the move could have been issued and nothing kept the module from it."""

    @property
    def beats(self) -> int:
        """Cycles that the push takes."""
        return max(1, self.receives.bit_count(), self.sends.bit_count())


@dataclass
class Call:
    """A program that is carried out in one slot."""

    window: int
    moves: list[Move] = field(default_factory=list)
    retired: int = 0
    closed: bool = False

    @property
    def held(self) -> int:
        """Moves in the window."""
        return len(self.moves) - self.retired

    def push(self, move: Move) -> None:
        """Takes a move in; finds out whether it reaches before the first."""
        assert move.number == len(self.moves)
        known = min(move.number, self.window)
        move.malformed = bool(move.dependencies >> known) or (known < self.window and move.distance > known)
        self.moves.append(move)

    def done(self, number: int) -> bool:
        """Whether a move is complete. One that need not be issued is, once it may."""
        move = self.moves[number]
        if not move.complete and move.trivial and not move.malformed and self.may_start(move):
            move.complete = True
        return move.complete

    def may_start(self, move: Move) -> bool:
        """Whether all that holds a move back has happened."""
        if move.malformed:
            return False
        for bit in range(self.window):
            other = move.number - 1 - bit
            if move.dependencies >> bit & 1 and other >= self.retired and not self.done(other):
                return False
            if move.streams >> bit & 1 and other >= self.retired and not (self.moves[other].issued or self.done(other)):
                return False
        for earlier in self.moves[self.retired : move.number]:
            if earlier.receives & move.receives and not (earlier.consumed or earlier.sent or self.done(earlier.number)):
                return False
            if earlier.sends & move.sends and not (earlier.sent or self.done(earlier.number)):
                return False
        return True
