"""The version, from the compiled library."""

from . import _core

__version__: str = _core.version()
