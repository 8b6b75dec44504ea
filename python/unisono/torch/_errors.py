"""Errors of this backend: those of Unisono, which torch's programs can catch as they catch those of other backends."""

from __future__ import annotations

import torch.distributed as dist

from ..errors import UnisonoError

_classes: dict[type[UnisonoError], type[UnisonoError]] = {}


def _class_of(kind: type[UnisonoError]) -> type[UnisonoError]:
    """`kind`, and a torch.distributed.DistBackendError as well, which is a RuntimeError."""
    made = _classes.get(kind)
    if made is None:
        bases = (kind,) if issubclass(kind, dist.DistBackendError) else (kind, dist.DistBackendError)
        made = _classes[kind] = type(kind.__name__, bases, {"__module__": kind.__module__, "__doc__": kind.__doc__})
    return made


def as_torch_error(error: UnisonoError) -> UnisonoError:
    """The same error, of a class that is both Unisono's and torch's."""
    if isinstance(error, dist.DistBackendError):
        return error
    # Programs look for these words in errors of torch's backends.
    made = _class_of(type(error))(str(error).replace("timed out after", "Timed out after"))
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    return made
