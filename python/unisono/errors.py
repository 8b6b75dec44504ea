"""Exceptions: one class for each error code, all derived from `UnisonoError`."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import deque
from types import TracebackType

from ._spec import ErrorCode


class UnisonoError(Exception):
    """Every failure of Unisono.

    The text says what was given and what is allowed, or for failures in flight operation, communicator,
    sequence, peer and phase. `code` is the error code of the specification; its `advice` says what to do.
    """

    code: ErrorCode = ErrorCode.INTERNAL


class InvalidArgumentError(UnisonoError, ValueError):
    """An argument is outside what is allowed."""

    code = ErrorCode.INVALID_ARGUMENT


class InvalidCountError(UnisonoError, ValueError):
    """A count or displacement is negative or too large."""

    code = ErrorCode.INVALID_COUNT


class InvalidDatatypeError(UnisonoError, TypeError):
    """The datatype is unknown, or the operation does not take it."""

    code = ErrorCode.INVALID_DATATYPE


class InvalidOpError(UnisonoError, ValueError):
    """The reduction operator is unknown, or does not take this datatype."""

    code = ErrorCode.INVALID_OP


class InvalidRootError(UnisonoError, ValueError):
    """The root or peer is not a rank of the communicator."""

    code = ErrorCode.INVALID_ROOT


class BufferTooSmallError(UnisonoError, ValueError):
    """A buffer holds fewer elements than the call needs."""

    code = ErrorCode.BUFFER_TOO_SMALL


class ReadOnlyBufferError(UnisonoError, ValueError):
    """A buffer that the call writes is read-only."""

    code = ErrorCode.READ_ONLY_BUFFER


class OverlappingBuffersError(UnisonoError, ValueError):
    """Source and destination overlap and the call is not in place."""

    code = ErrorCode.OVERLAPPING_BUFFERS


class UnknownAlgorithmError(UnisonoError, ValueError):
    """No algorithm of that name for this collective."""

    code = ErrorCode.UNKNOWN_ALGORITHM


class UnsupportedError(UnisonoError, NotImplementedError):
    """The algorithm's restrictions, or an engine of some member, do not admit the call."""

    code = ErrorCode.UNSUPPORTED


class MalformedProgramError(UnisonoError, ValueError):
    """A program breaks a rule of the model."""

    code = ErrorCode.MALFORMED_PROGRAM


class FreedCommunicatorError(UnisonoError):
    """The communicator was freed."""

    code = ErrorCode.FREED_COMMUNICATOR


class RevokedError(UnisonoError):
    """The communicator was revoked after an error on some rank."""

    code = ErrorCode.REVOKED


class DeadlineError(UnisonoError, TimeoutError):
    """A deadline passed."""

    code = ErrorCode.TIMEOUT


class PeerDeadError(UnisonoError, ConnectionError):
    """A member process ended while the communicator was in use."""

    code = ErrorCode.PEER_DEAD


class MismatchedCallError(UnisonoError):
    """Ranks called different operations, or the same with different arguments."""

    code = ErrorCode.MISMATCHED_CALL


class TruncatedError(UnisonoError, ValueError):
    """A message is longer than the receive that matched it."""

    code = ErrorCode.TRUNCATED


class CorruptMessageError(UnisonoError):
    """A message failed its checks."""

    code = ErrorCode.CORRUPT_MESSAGE


class NoMemoryError(UnisonoError, MemoryError):
    """Memory could not be had."""

    code = ErrorCode.OUT_OF_MEMORY


class BootstrapError(UnisonoError):
    """The job could not be joined."""

    code = ErrorCode.BOOTSTRAP


class WrongProcessError(UnisonoError):
    """Used in a child of fork, or after close."""

    code = ErrorCode.WRONG_PROCESS


class CapacityError(UnisonoError):
    """A fixed limit was reached."""

    code = ErrorCode.CAPACITY


class InternalError(UnisonoError):
    """An invariant of Unisono does not hold."""

    code = ErrorCode.INTERNAL


class DeviceLostError(UnisonoError, ConnectionError):
    """The device of this rank does not answer any more."""

    code = ErrorCode.DEVICE_LOST


class FramesLostError(UnisonoError, ConnectionError):
    """The network lost messages or delivered them out of order, and its transport repeats none."""

    code = ErrorCode.FRAMES_LOST


#: With this status a program ends whose `PartitionedError` nobody has caught. `unisono run --keep-going` then lets the
#: others go on, as after a rank that a signal has ended.
PARTITIONED_STATUS = 75


class PartitionedError(UnisonoError, ConnectionError):
    """The network is cut, and the larger part of the job goes on without this rank.

    Let the program end. If nobody catches the exception its exit status is 75, by which `unisono run --keep-going`
    knows that the others go on.
    """

    code = ErrorCode.PARTITIONED


_CLASSES: dict[int, type[UnisonoError]] = {kind.code: kind for kind in UnisonoError.__subclasses__()}


#: What functions of operators have raised lately, with the words for it that the errors of their calls contain.
_raised: deque[tuple[str, BaseException]] = deque(maxlen=4)


def operator_raised(words: str, raised: BaseException) -> None:
    """Notes an exception of an operator's function, for the error of the call that it fails."""
    _raised.append((words, raised))


#: Destinations of calls that have failed, and to which a rank may still write because it was stopped while it copied,
#: each with the sentence of its error. Their memory must not be used for anything else before that process has ended,
#: of which nobody can be sure; so they are kept until this process ends. A failed call revokes its communicator, so
#: there are at most a few for each.
still_written: list[tuple[object, str]] = []


def keep(destination: object, sentence: str) -> None:
    """Keeps a destination that may still be written to; called by the extension module."""
    with contextlib.suppress(TypeError, ValueError, BufferError):
        destination = memoryview(destination)  # type: ignore[arg-type]  # nor may it be resized
    still_written.append((destination, sentence))


@functools.cache
def _tell_the_launcher() -> None:
    """From now on a `PartitionedError` that nobody catches gives the exit status that says so."""
    before = sys.excepthook

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if isinstance(error, PartitionedError):
            raise SystemExit(PARTITIONED_STATUS)

    sys.excepthook = say


def error_for(code: int, text: str) -> UnisonoError:
    """The exception of an error code. That of a failed operator has what its function raised as its cause."""
    if code == ErrorCode.PARTITIONED:
        _tell_the_launcher()
    error = _CLASSES.get(code, InternalError)(text)
    if code == ErrorCode.INVALID_OP:
        for words, raised in reversed(_raised):
            if words in text:
                error.__cause__ = raised
                break
    return error
