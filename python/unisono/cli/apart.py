"""Work by a library that some inputs end, in a process of its own: what ends that says so, in a sentence."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArgumentError, UnisonoError

#: Seconds of the processor that the work may take, and in all three times as many; then it is ended.
MOST_SECONDS = 20
#: How the process ends that has left a sentence: none of the statuses of commands.
_REFUSED = 99


def apart(work: Callable[[Callable[[str], None]], int], library: str) -> int:
    """Runs `work(at)` in a child of this process and returns what it returns, a status; `at(what)` notes what it is at.

    Raises InvalidArgumentError. It has the text of the error that `work` raised; if a signal ended the child, it has
    what `at` noted last.
    """
    with tempfile.TemporaryFile() as notes:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _end(work, notes)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except KeyboardInterrupt:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        notes.seek(0)
        note = notes.read().decode(errors="replace")
    if code == _REFUSED:
        raise InvalidArgumentError(note)
    if code in (-signal.SIGXCPU, -signal.SIGALRM):
        raise InvalidArgumentError(f"{note}: {library} was not done with it after {MOST_SECONDS} s, and was ended")
    if code < 0:
        raise InvalidArgumentError(
            f"{note}: {library} itself ended while it was at it (signal {-code}, {signal.Signals(-code).name}); its "
            "expressions or blocks are probably nested thousands of times, which no compiler takes"
        )
    return code


def _end(work: Callable[[Callable[[str], None]], int], notes: Any) -> None:
    """Does the work, and ends this process."""

    def at(what: str) -> None:
        os.ftruncate(notes.fileno(), 0)
        os.pwrite(notes.fileno(), what.encode(), 0)

    code = 1
    try:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        # A source that is read from a pipe may come late, without use of the processor.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(3 * MOST_SECONDS)
        code = work(at)
        sys.stdout.flush()
    except UnisonoError as error:
        at(str(error))
        code = _REFUSED
    except BrokenPipeError:
        code = 141
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # it ends with this process, which is not the command
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)
