"""Unisono: collective communication whose programs can be read, checked and priced before they run.

>>> import numpy as np
>>> import unisono
>>> with unisono.init() as context:
...     world = context.world
...     total = world.allreduce(np.arange(4.0))

Run it on four ranks with `unisono run -n 4 script.py`. docs/guide-python.md is the introduction.
"""

from ._arrays import pair_dtype
from ._joining import Store
from ._messages import ANY_SOURCE, ANY_TAG, Status
from ._operators import LoadedOperator
from ._spec import Collective, Datatype, ErrorCode, Func
from .algorithms import Algorithm, algorithms
from .communicator import IN_PLACE, Communicator, CommunicatorSettings, CommunicatorState, LastAlgorithm, Options
from .context import Context, ContextSettings, Settings, ThreadJob, allocating, init, set_wait_hook
from .errors import (
    BootstrapError,
    BufferTooSmallError,
    CapacityError,
    CorruptMessageError,
    DeadlineError,
    DeviceLostError,
    FramesLostError,
    FreedCommunicatorError,
    InternalError,
    InvalidArgumentError,
    InvalidCountError,
    InvalidDatatypeError,
    InvalidOpError,
    InvalidRootError,
    MalformedProgramError,
    MismatchedCallError,
    NoMemoryError,
    OverlappingBuffersError,
    PartitionedError,
    PeerDeadError,
    ReadOnlyBufferError,
    RevokedError,
    TruncatedError,
    UnisonoError,
    UnknownAlgorithmError,
    UnsupportedError,
    WrongProcessError,
)
from .graph import Graph
from .kernel import Kernel, load_kernels
from .operator import Operator
from .program import Builder, Program, Report
from .registration import Registration, register
from .request import Request, test_all, test_any, wait_all, wait_any, wait_some
from .stream import Stream, StreamPort
from .version import __version__

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "Algorithm",
    "BootstrapError",
    "BufferTooSmallError",
    "Builder",
    "CapacityError",
    "Collective",
    "Communicator",
    "CommunicatorSettings",
    "CommunicatorState",
    "Context",
    "ContextSettings",
    "CorruptMessageError",
    "Datatype",
    "DeadlineError",
    "DeviceLostError",
    "ErrorCode",
    "FramesLostError",
    "FreedCommunicatorError",
    "Func",
    "Graph",
    "IN_PLACE",
    "InternalError",
    "InvalidArgumentError",
    "InvalidCountError",
    "InvalidDatatypeError",
    "InvalidOpError",
    "InvalidRootError",
    "Kernel",
    "LastAlgorithm",
    "MalformedProgramError",
    "MismatchedCallError",
    "NoMemoryError",
    "LoadedOperator",
    "Operator",
    "Options",
    "OverlappingBuffersError",
    "PartitionedError",
    "PeerDeadError",
    "Program",
    "ReadOnlyBufferError",
    "Registration",
    "Report",
    "Request",
    "RevokedError",
    "Settings",
    "Status",
    "Stream",
    "StreamPort",
    "Store",
    "ThreadJob",
    "TruncatedError",
    "UnisonoError",
    "UnknownAlgorithmError",
    "UnsupportedError",
    "WrongProcessError",
    "__version__",
    "algorithms",
    "allocating",
    "init",
    "load_kernels",
    "pair_dtype",
    "register",
    "set_wait_hook",
    "test_all",
    "test_any",
    "wait_all",
    "wait_any",
    "wait_some",
]
