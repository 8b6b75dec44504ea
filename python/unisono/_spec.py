# Generated from spec/ by `python -m spec.generator`. Do not edit.
"""The specification in Python: enumerations, records with their encoded form, limits, errors, exchange memory.

Records are frozen dataclasses. `encode` gives the little-endian bytes that every engine reads; `decode` is its
inverse and accepts legal values only: reserved bits zero, enumerators known. Both raise ValueError with a
sentence that names record, field, the value given and what is allowed.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Final, TypeVar

_E = TypeVar("_E", bound=IntEnum)


def _unsigned(value: int, bits: int, where: str) -> int:
    """`value`, if it fits `bits` bits."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{where}: {value} does not fit {bits} bits; allowed is 0 to {(1 << bits) - 1}")
    return value


def _flag(value: int, where: str) -> int:
    """`value` as one bit."""
    if value not in (0, 1):
        raise ValueError(f"{where}: {value} is no truth value; allowed is False or True")
    return int(value)


def _enumerator(kind: type[_E], value: int, where: str) -> _E:
    """The enumerator of `kind` with number `value`."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{e.value} {e.name}" for e in kind)
        raise ValueError(f"{where}: {value} is no {kind.__name__}; allowed is {known}") from None


def _bits(raw: int, offset: int, bits: int) -> int:
    """`bits` bits of `raw` from bit `offset`."""
    return raw >> offset & (1 << bits) - 1


def _zero(raw: int, offset: int, bits: int, where: str) -> None:
    """Refuses reserved bits that are set."""
    value = _bits(raw, offset, bits)
    if value:
        raise ValueError(f"{where}: reserved bits {offset} to {offset + bits - 1} hold {value:#x}; they must be zero")


def _integer(data: bytes, size: int, where: str) -> int:
    """`data` as a little-endian number, if it is `size` bytes long."""
    if len(data) != size:
        raise ValueError(f"{where}: given {len(data)} bytes; the encoded form has {size}")
    return int.from_bytes(data, "little")


class Datatype(IntEnum):
    """Element types of buffers, moves and messages."""

    #: no element type (barrier, signal)
    NONE = 0
    #: uninterpreted byte; has bitwise operators only
    BYTE = 1
    #: two's complement 32-bit integer; arithmetic wraps
    INT32 = 2
    #: two's complement 64-bit integer; arithmetic wraps
    INT64 = 3
    #: IEEE 754 binary16; accumulates in fp32 within a move
    FP16 = 4
    #: bfloat16; accumulates in fp32 within a move
    BF16 = 5
    #: IEEE 754 binary32
    FP32 = 6
    #: IEEE 754 binary64
    FP64 = 7
    #: complex number of two fp32: real part, imaginary part
    COMPLEX64 = 8
    #: complex number of two fp64: real part, imaginary part
    COMPLEX128 = 9
    #: two's complement 8-bit integer; arithmetic wraps
    INT8 = 10
    #: unsigned 8-bit integer; arithmetic wraps
    UINT8 = 11
    #: two's complement 16-bit integer; arithmetic wraps
    INT16 = 12
    #: unsigned 16-bit integer; arithmetic wraps
    UINT16 = 13
    #: unsigned 32-bit integer; arithmetic wraps
    UINT32 = 14
    #: unsigned 64-bit integer; arithmetic wraps
    UINT64 = 15
    #: truth value: 0 is false, any other byte true; results are 0 or 1
    BOOL = 16
    #: pair for minloc and maxloc: fp32 value, int32 index
    FP32_INT32 = 17
    #: pair: fp64 value, int32 index, 4 bytes of padding (zero in results)
    FP64_INT32 = 18
    #: pair: int32 value, int32 index
    INT32_INT32 = 19
    #: pair: int64 value, int64 index
    INT64_INT64 = 20

    @property
    def bytes(self) -> int:
        """Attribute `bytes` of the datatype."""
        return _DATATYPE_BYTES[self]


_DATATYPE_BYTES: Final[dict[Datatype, int]] = {
    Datatype.NONE: 0,
    Datatype.BYTE: 1,
    Datatype.INT32: 4,
    Datatype.INT64: 8,
    Datatype.FP16: 2,
    Datatype.BF16: 2,
    Datatype.FP32: 4,
    Datatype.FP64: 8,
    Datatype.COMPLEX64: 8,
    Datatype.COMPLEX128: 16,
    Datatype.INT8: 1,
    Datatype.UINT8: 1,
    Datatype.INT16: 2,
    Datatype.UINT16: 2,
    Datatype.UINT32: 4,
    Datatype.UINT64: 8,
    Datatype.BOOL: 1,
    Datatype.FP32_INT32: 8,
    Datatype.FP64_INT32: 16,
    Datatype.INT32_INT32: 8,
    Datatype.INT64_INT64: 16,
}


class Func(IntEnum):
    """Function of a move; the reduction operators."""

    #: no function: the one operand present passes through
    NONE = 0
    #: addition
    SUM = 1
    #: multiplication
    PROD = 2
    #: IEEE 754-2019 minimum: NaN propagates, -0 < +0
    MIN = 3
    #: IEEE 754-2019 maximum: NaN propagates, -0 < +0
    MAX = 4
    #: 1 if both operands are not 0, otherwise 0
    LOGICAL_AND = 5
    #: 1 if an operand is not 0, otherwise 0
    LOGICAL_OR = 6
    #: 1 if one operand is 0 and the other is not, otherwise 0
    LOGICAL_XOR = 7
    #: bits that both operands have
    BITWISE_AND = 8
    #: bits that an operand has
    BITWISE_OR = 9
    #: bits that one operand has
    BITWISE_XOR = 10
    #: the pair of the lesser value; of equal values, that of the lower index
    MINLOC = 11
    #: the pair of the greater value; of equal values, that of the lower index
    MAXLOC = 12
    #: of a call: sum, divided once by the number of ranks; of a move: the one operand, divided by it
    AVG = 13
    #: an operator of the user that commutes
    USER0 = 16
    #: an operator of the user that commutes
    USER1 = 17
    #: an operator of the user that commutes
    USER2 = 18
    #: an operator of the user that commutes
    USER3 = 19
    #: an operator of the user that commutes
    USER4 = 20
    #: an operator of the user that commutes
    USER5 = 21
    #: an operator of the user that commutes
    USER6 = 22
    #: an operator of the user that commutes
    USER7 = 23
    #: an operator of the user that does not commute
    ORDERED0 = 24
    #: an operator of the user that does not commute
    ORDERED1 = 25
    #: an operator of the user that does not commute
    ORDERED2 = 26
    #: an operator of the user that does not commute
    ORDERED3 = 27
    #: an operator of the user that does not commute
    ORDERED4 = 28
    #: an operator of the user that does not commute
    ORDERED5 = 29
    #: an operator of the user that does not commute
    ORDERED6 = 30
    #: an operator of the user that does not commute
    ORDERED7 = 31


class Collective(IntEnum):
    """What a call asks for."""

    #: an empty program; measures the cost of a call
    NOP = 0
    #: dst = src on one rank
    COPY = 1
    #: dst = func(src, dst) on one rank
    COMBINE = 2
    #: point-to-point message to a peer
    SEND = 3
    #: point-to-point message from a peer
    RECV = 4
    #: write into a peer's window
    PUT = 5
    #: read from a peer's window
    GET = 6
    #: the root's dst to every rank's dst
    BCAST = 7
    #: func over all ranks' src into the root's dst
    REDUCE = 8
    #: func over all ranks' src into every dst
    ALLREDUCE = 9
    #: func over all ranks' src (size blocks); block r into rank r's dst
    REDUCE_SCATTER = 10
    #: every rank's src block into every dst, by rank
    ALLGATHER = 11
    #: every rank's src block into the root's dst, by rank
    GATHER = 12
    #: block r of the root's src into rank r's dst
    SCATTER = 13
    #: gather with a count and displacement per rank
    GATHERV = 14
    #: scatter with a count and displacement per rank
    SCATTERV = 15
    #: allgather with a count and displacement per rank
    ALLGATHERV = 16
    #: block j of rank i's src into block i of rank j's dst
    ALLTOALL = 17
    #: alltoall with counts and displacements per pair
    ALLTOALLV = 18
    #: func over src of ranks 0..r into rank r's dst
    SCAN = 19
    #: func over src of ranks 0..r-1 into rank r's dst; rank 0's dst is untouched
    EXSCAN = 20
    #: no rank leaves before every rank has entered
    BARRIER = 21
    #: reduce_scatter with a count and displacement per rank
    REDUCE_SCATTERV = 22
    #: a program given by the user
    PROGRAM = 31

    @property
    def is_collective(self) -> bool:
        """Whether all ranks take part, by a program of the library."""
        return self in _COLLECTIVE_IS_COLLECTIVE

    @property
    def data(self) -> bool:
        """Whether it moves data: else it has neither a count nor a datatype."""
        return self in _COLLECTIVE_DATA

    @property
    def reduces(self) -> bool:
        """Whether it takes an operator."""
        return self in _COLLECTIVE_REDUCES

    @property
    def rooted(self) -> bool:
        """Whether it has a root, or a peer."""
        return self in _COLLECTIVE_ROOTED

    @property
    def vectors(self) -> bool:
        """Whether it has a count for each rank."""
        return self in _COLLECTIVE_VECTORS


_COLLECTIVE_IS_COLLECTIVE: Final[frozenset[Collective]] = frozenset(
    {
        Collective.BCAST,
        Collective.REDUCE,
        Collective.ALLREDUCE,
        Collective.REDUCE_SCATTER,
        Collective.ALLGATHER,
        Collective.GATHER,
        Collective.SCATTER,
        Collective.GATHERV,
        Collective.SCATTERV,
        Collective.ALLGATHERV,
        Collective.ALLTOALL,
        Collective.ALLTOALLV,
        Collective.SCAN,
        Collective.EXSCAN,
        Collective.BARRIER,
        Collective.REDUCE_SCATTERV,
    }
)


_COLLECTIVE_DATA: Final[frozenset[Collective]] = frozenset(
    {
        Collective.COPY,
        Collective.COMBINE,
        Collective.SEND,
        Collective.RECV,
        Collective.PUT,
        Collective.GET,
        Collective.BCAST,
        Collective.REDUCE,
        Collective.ALLREDUCE,
        Collective.REDUCE_SCATTER,
        Collective.ALLGATHER,
        Collective.GATHER,
        Collective.SCATTER,
        Collective.GATHERV,
        Collective.SCATTERV,
        Collective.ALLGATHERV,
        Collective.ALLTOALL,
        Collective.ALLTOALLV,
        Collective.SCAN,
        Collective.EXSCAN,
        Collective.REDUCE_SCATTERV,
    }
)


_COLLECTIVE_REDUCES: Final[frozenset[Collective]] = frozenset(
    {
        Collective.COMBINE,
        Collective.REDUCE,
        Collective.ALLREDUCE,
        Collective.REDUCE_SCATTER,
        Collective.SCAN,
        Collective.EXSCAN,
        Collective.REDUCE_SCATTERV,
    }
)


_COLLECTIVE_ROOTED: Final[frozenset[Collective]] = frozenset(
    {
        Collective.SEND,
        Collective.RECV,
        Collective.PUT,
        Collective.GET,
        Collective.BCAST,
        Collective.REDUCE,
        Collective.GATHER,
        Collective.SCATTER,
        Collective.GATHERV,
        Collective.SCATTERV,
        Collective.PROGRAM,
    }
)


_COLLECTIVE_VECTORS: Final[frozenset[Collective]] = frozenset(
    {
        Collective.GATHERV,
        Collective.SCATTERV,
        Collective.ALLGATHERV,
        Collective.ALLTOALLV,
        Collective.REDUCE_SCATTERV,
    }
)


class Region(IntEnum):
    """Memory a program may name. Bound by the call, so a program holds no address."""

    #: the call's source buffer
    SRC = 0
    #: the call's destination buffer
    DST = 1
    #: temporary memory of the size the algorithm asks for
    SCRATCH = 2
    #: 64-bit little-endian words that indirect counts and offsets read
    PARAMS = 3
    #: memory exposed to peers for put and get
    WINDOW = 4


class MoveKind(IntEnum):
    """What an instruction is."""

    #: does nothing, completes at once when its dependencies have
    NOP = 0
    #: result = func(op0, op1)
    MOVE = 1
    #: end of a stored program
    END = 2


class OperandKind(IntEnum):
    """Where an operand comes from, or a local result goes."""

    #: absent
    NONE = 0
    #: local memory: region and byte offset
    MEMORY = 1
    #: a kernel's stream: offset holds the port
    STREAM = 2
    #: op1 only: a message as it arrives (peer and tag in the arrival word)
    ARRIVAL = 3
    #: op1 only: memory of the peer in the arrival word, address in the remote-memory word
    REMOTE_MEMORY = 4


class RemoteKind(IntEnum):
    """Where a remote result goes."""

    #: no remote result
    NONE = 0
    #: a message, matched by an arrival of the peer's program
    MESSAGE = 1
    #: memory of the peer (address in the remote-memory word)
    MEMORY = 2
    #: a stream port of the peer
    STREAM = 3


class PeerMode(IntEnum):
    """How a peer field is read."""

    #: the field is one rank
    RANK = 0
    #: the field is the index of a list in the constant pool; arrivals combine in listed order
    LIST = 1
    #: as list, arrivals combine in any order
    ANY = 2


class Protocol(IntEnum):
    """Message synchronisation (ACCL+ section 4.2.3)."""

    #: by the message's bytes and the communicator's eager limit
    AUTO = 0
    #: sent at once, against receive-buffer credit
    EAGER = 1
    #: sent when the receiver has granted a landing area
    RENDEZVOUS = 2


class Cast(IntEnum):
    """Conversion at a slot."""

    #: the move's datatype
    NONE = 0
    #: between the move's datatype and the call's wire datatype
    WIRE = 1


class MessageType(IntEnum):
    """Type of a message on the wire."""

    #: data sent against credit
    EAGER = 0
    #: asks for a grant (rendezvous), or announces eager data without credit
    REQUEST = 1
    #: names a landing area by token, and how far the sender may write into it
    GRANT = 2
    #: data into a granted landing area: token and offset
    WRITE = 3
    #: all data of a token has been written (transports whose writes bypass the engine)
    DONE = 4
    #: returns receive-buffer credits
    CREDIT = 5
    #: membership, revocation, errors
    CONTROL = 6
    #: reduced in the network
    AGGREGATE = 7


class ControlKind(IntEnum):
    """Kind of a control message; it travels in the header's tag."""

    #: not sent
    NONE = 0
    #: the communicator has failed; token_generation: error code; offset: 1 if it is passed on; payload: the reason
    REVOKE = 1
    #: a send was refused by its receiver; token_generation: error code; payload: the sentence
    REJECT = 2
    #: asks for bytes of the window: offset, message_bytes and a landing token; payload: its limit, without one all may
    #: come; then a reach, if the landing area may be written to
    GET = 3
    #: raises the limit of a get
    GET_MORE = 4
    #: a get was refused; token of the landing area; offset: error code
    GET_FAILED = 5
    #: a put stands in memory, or was refused; sequence: the put's; token_generation: error code
    PUT_DONE = 6
    #: asks whether a rank has entered a collective call
    PROBE = 7
    #: yes
    ENTERED = 8
    #: ranks called different operations; payload: what the sender of this message called
    MISMATCH = 9
    #: a rank's word in an agreement of those that are left; sequence: which agreement; offset: round; signature: what
    #: it is for; payload: two 64-bit words, then a bit for each rank that is gone; in communicators of more than 16
    #: ranks, a TreeWord (engine/tree_word.hpp)
    AGREE = 10


class SlotKind(IntEnum):
    """What a frame between a member and a switch that aggregates is (docs/switch-protocol.md)."""

    #: not sent
    NONE = 0
    #: up: a member's share in a turn
    CONTRIBUTE = 1
    #: down: the turn is complete; payload: its result, for those who get it
    RESULT = 2
    #: up: the member knows the generation; turn: the first that it has no result of; total: its incarnation
    RESUME = 3
    #: down: all members have resumed; turn: where all of them begin; total: the incarnation that it is for
    BEGIN = 4
    #: down: a generation has begun that the member may not know; it resumes
    RENEW = 5
    #: down: the turn waits; count: for how many children, root: the lowest rank below the first of them or, to a child
    #: that is one of them, below itself; all bits set: for the switch above
    MISSING = 6
    #: either way: members do not agree, and the pool is closed; payload: a slot_refusal
    REFUSE = 7


class SlotField(IntEnum):
    """What members of a pool of slots do not agree on, or what the switch does not do."""

    #: nothing
    NONE = 0
    #: the collective
    OPCODE = 1
    #: the operator
    FUNC = 2
    #: the datatype
    DTYPE = 3
    #: elements of the call
    TOTAL = 4
    #: elements of the chunk
    COUNT = 5
    #: the sequence of the call
    CALL = 6
    #: the root, or the owner of the block
    ROOT = 7
    #: one rank sends a payload of another length than the turn has; both values are bytes
    PAYLOAD = 8
    #: the switch lacks the operator on the datatype; the values are func and dtype
    OPERATOR = 9
    #: the operator's bits depend on the order, and the pool has no room to keep it; the values are func and dtype
    ORDER = 10
    #: what the result is multiplied by (post_scale); the values are digests
    FACTOR = 11


class Counter(IntEnum):
    """Performance counters of an engine in hardware, 64 bits each at `counters` in exchange memory.

    They count from power-up; a soft reset leaves them.
    """

    #: cycles of the engine's clock
    CYCLES = 0
    #: cycles in which a call is active
    BUSY = 1
    #: words of call descriptors taken from kernels' streams
    DESCRIPTOR_WORDS = 2
    #: calls that the microcontroller has begun
    CALLS = 3
    #: calls that ended well
    CALLS_COMPLETED = 4
    #: calls that ended with an error
    CALLS_FAILED = 5
    #: answers given to kernels
    ANSWERS = 6
    #: items of work given to the microcontroller
    CPU_ITEMS = 7
    #: cycles in which the microcontroller has an item to work on
    CPU_BUSY = 8
    #: moves that the microcontroller emitted, or that were replayed
    MOVES = 9
    #: moves that entered the window of their call
    MOVES_ENTERED = 10
    #: moves whose dependencies were complete
    MOVES_ISSUED = 11
    #: moves complete, and all moves before them
    MOVES_RETIRED = 12
    #: jobs given to the compute lane
    COMPUTE_JOBS = 13
    #: jobs given to the send lane
    SEND_JOBS = 14
    #: jobs of the compute lane that have ended
    JOBS_ENDED = 15
    #: segments with data or a signal that Tx took from the lanes
    SEGMENTS_SENT = 16
    #: requests for a grant
    REQUESTS_SENT = 17
    #: grants
    GRANTS_SENT = 18
    #: messages that only return credits
    CREDITS_SENT = 19
    #: segments with data or a signal that passed Rx
    SEGMENTS_RECEIVED = 20
    #: requests of peers
    REQUESTS_RECEIVED = 21
    #: grants of peers
    GRANTS_RECEIVED = 22
    #: segments written to a receive buffer
    SEGMENTS_BUFFERED = 23
    #: segments that went from Rx to the compute lane, past the buffers
    SEGMENTS_BYPASSED = 24
    #: messages that Rx refused
    RX_FAULTS = 25
    #: largest number of receive buffers in use at once; not a count of events
    BUFFERS_HIGH = 26
    #: words, headers included, that Tx gave to the transports
    TX_WORDS = 27
    #: words, headers included, that Rx took from the transports
    RX_WORDS = 28
    #: words that left at the MAC
    MAC_TX_WORDS = 29
    #: words that came in at the MAC
    MAC_RX_WORDS = 30
    #: words read from memory as first operand
    OP0_WORDS = 31
    #: words read from memory as second operand or from receive buffers, and params
    OP1_WORDS = 32
    #: words read from memory by the send lane
    SEND_WORDS = 33
    #: words of local results
    RESULT_WORDS = 34
    #: words written to receive buffers
    BUFFER_WORDS = 35
    #: cycles in which a lane lacks a word that memory has not delivered
    STALL_READ = 36
    #: cycles in which memory does not take a word that is written
    STALL_WRITE = 37
    #: cycles in which Tx has begun a message and no lane has a word of it
    STALL_TX_DATA = 38
    #: cycles in which a transport does not take a word of Tx
    STALL_TX_NETWORK = 39
    #: cycles in which the dispatcher has a job and the lane's queue is full
    STALL_LANE = 40
    #: cycles in which a move waits because its peer has given no credit
    STALL_CREDIT = 41
    #: cycles in which a move waits for its peer to grant more of a long message
    STALL_GRANT = 42
    #: cycles in which a move waits for room in its transport, or for the message before it
    STALL_SPACE = 43
    #: cycles in which a move waits for a segment from a peer
    STALL_ARRIVAL = 44
    #: cycles in which a move waits for the move that it follows by segments
    STALL_PRODUCER = 45
    #: cycles in which the microcontroller is idle, and a program has more moves than its window has room
    STALL_WINDOW = 46


class ErrorCode(IntEnum):
    """Result of every operation."""

    #: success
    OK = 0
    #: an argument is outside what is allowed
    INVALID_ARGUMENT = 1
    #: a count or displacement is negative or too large
    INVALID_COUNT = 2
    #: the datatype is unknown, or the operation does not take it
    INVALID_DATATYPE = 3
    #: the reduction operator is unknown, or does not take this datatype
    INVALID_OP = 4
    #: the root or peer is not a rank of the communicator
    INVALID_ROOT = 5
    #: a buffer holds fewer elements than the call needs
    BUFFER_TOO_SMALL = 6
    #: a buffer that the call writes is read-only
    READ_ONLY_BUFFER = 7
    #: source and destination overlap and the call is not in place
    OVERLAPPING_BUFFERS = 8
    #: no algorithm of that name for this collective
    UNKNOWN_ALGORITHM = 9
    #: the algorithm's restrictions, or an engine of some member, do not admit the call
    UNSUPPORTED = 10
    #: a program breaks a rule of the model
    MALFORMED_PROGRAM = 11
    #: the communicator was freed
    FREED_COMMUNICATOR = 12
    #: the communicator was revoked after an error on some rank
    REVOKED = 13
    #: a deadline passed
    TIMEOUT = 14
    #: a member process ended while the communicator was in use
    PEER_DEAD = 15
    #: ranks called different operations, or the same with different arguments
    MISMATCHED_CALL = 16
    #: a message is longer than the receive that matched it
    TRUNCATED = 17
    #: a message failed its checks
    CORRUPT_MESSAGE = 18
    #: memory could not be had
    OUT_OF_MEMORY = 19
    #: the job could not be joined
    BOOTSTRAP = 20
    #: used in a child of fork, or after close
    WRONG_PROCESS = 21
    #: a fixed limit was reached
    CAPACITY = 22
    #: an invariant of Unisono does not hold
    INTERNAL = 23
    #: the device of this rank does not answer any more
    DEVICE_LOST = 24
    #: the network lost messages or delivered them out of order, and its transport repeats none
    FRAMES_LOST = 25
    #: the network is cut, and the larger part of the job goes on without this rank
    PARTITIONED = 26

    @property
    def meaning(self) -> str:
        """What the code means."""
        return _MEANING[self]

    @property
    def advice(self) -> str:
        """What to do."""
        return _ADVICE[self]


_MEANING: Final[dict[ErrorCode, str]] = {
    ErrorCode.OK: "success",
    ErrorCode.INVALID_ARGUMENT: "an argument is outside what is allowed",
    ErrorCode.INVALID_COUNT: "a count or displacement is negative or too large",
    ErrorCode.INVALID_DATATYPE: "the datatype is unknown, or the operation does not take it",
    ErrorCode.INVALID_OP: "the reduction operator is unknown, or does not take this datatype",
    ErrorCode.INVALID_ROOT: "the root or peer is not a rank of the communicator",
    ErrorCode.BUFFER_TOO_SMALL: "a buffer holds fewer elements than the call needs",
    ErrorCode.READ_ONLY_BUFFER: "a buffer that the call writes is read-only",
    ErrorCode.OVERLAPPING_BUFFERS: "source and destination overlap and the call is not in place",
    ErrorCode.UNKNOWN_ALGORITHM: "no algorithm of that name for this collective",
    ErrorCode.UNSUPPORTED: "the algorithm's restrictions, or an engine of some member, do not admit the call",
    ErrorCode.MALFORMED_PROGRAM: "a program breaks a rule of the model",
    ErrorCode.FREED_COMMUNICATOR: "the communicator was freed",
    ErrorCode.REVOKED: "the communicator was revoked after an error on some rank",
    ErrorCode.TIMEOUT: "a deadline passed",
    ErrorCode.PEER_DEAD: "a member process ended while the communicator was in use",
    ErrorCode.MISMATCHED_CALL: "ranks called different operations, or the same with different arguments",
    ErrorCode.TRUNCATED: "a message is longer than the receive that matched it",
    ErrorCode.CORRUPT_MESSAGE: "a message failed its checks",
    ErrorCode.OUT_OF_MEMORY: "memory could not be had",
    ErrorCode.BOOTSTRAP: "the job could not be joined",
    ErrorCode.WRONG_PROCESS: "used in a child of fork, or after close",
    ErrorCode.CAPACITY: "a fixed limit was reached",
    ErrorCode.INTERNAL: "an invariant of Unisono does not hold",
    ErrorCode.DEVICE_LOST: "the device of this rank does not answer any more",
    ErrorCode.FRAMES_LOST: "the network lost messages or delivered them out of order, and its transport repeats none",
    ErrorCode.PARTITIONED: "the network is cut, and the larger part of the job goes on without this rank",
}


_ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.OK: "",
    ErrorCode.INVALID_ARGUMENT: "",
    ErrorCode.INVALID_COUNT: "Pass a count between 0 and the limit the message names.",
    ErrorCode.INVALID_DATATYPE: "`unisono algorithms` and the datatype table list what is accepted.",
    ErrorCode.INVALID_OP: "",
    ErrorCode.INVALID_ROOT: "Ranks count from 0 to size-1.",
    ErrorCode.BUFFER_TOO_SMALL: "",
    ErrorCode.READ_ONLY_BUFFER: "Pass a writable array.",
    ErrorCode.OVERLAPPING_BUFFERS: "Pass disjoint buffers, or ask for the in-place form.",
    ErrorCode.UNKNOWN_ALGORITHM: "`unisono algorithms` lists the names.",
    ErrorCode.UNSUPPORTED: "Leave the algorithm to automatic choice, or change the call.",
    ErrorCode.MALFORMED_PROGRAM: "Run `unisono check` on it: the report names rank and move.",
    ErrorCode.FREED_COMMUNICATOR: "Use a live communicator.",
    ErrorCode.REVOKED: "Read the first rank's error; create a new communicator.",
    ErrorCode.TIMEOUT: "See who has not arrived; if the peers are only slow, raise the timeout.",
    ErrorCode.PEER_DEAD: "Look for that rank's own error or exit status.",
    ErrorCode.MISMATCHED_CALL: "Compare the two descriptors in the message.",
    ErrorCode.TRUNCATED: "Receive at least as many elements as are sent.",
    ErrorCode.CORRUPT_MESSAGE: "A member's memory or version differs; the communicator is revoked.",
    ErrorCode.OUT_OF_MEMORY: "Use smaller buffers, or raise the limit.",
    ErrorCode.BOOTSTRAP: "Start the program with `unisono run`, or check UNISONO_* in the environment.",
    ErrorCode.WRONG_PROCESS: "Create a context in this process.",
    ErrorCode.CAPACITY: "",
    ErrorCode.INTERNAL: "Please report it with the message.",
    ErrorCode.DEVICE_LOST: (
        "Look for the message of the simulated cluster or the driver of the card; start the job again."
    ),
    ErrorCode.FRAMES_LOST: (
        "Run on a network without `loss`, `reorder`, `corrupt` and `down`, and with room in its buffers (`policy = "
        "pause`), or over a transport that repeats; then start the job again."
    ),
    ErrorCode.PARTITIONED: (
        "End this process: what it computes from here on is not part of the job. Look for what has cut the network, "
        "then start the job again."
    ),
}


#: Version of the C interface.
ABI_VERSION: Final = 1
#: Version of the message header.
WIRE_VERSION: Final = 1
#: First 16 bits of every message: 'NU' in memory order.
MAGIC: Final = 21838
#: Moves of one call that may be in flight.
WINDOW: Final = 32
#: Most moves one generation step emits.
MOVES_PER_STEP: Final = 16
#: Ranks a peer field can name (24 bits).
MAX_RANKS: Final = 16777216
#: Largest element count of a move (40 bits).
MAX_COUNT: Final = 1099511627775
#: Largest step tag (24 bits).
MAX_TAG: Final = 16777215
#: Largest tag of a send or receive.
MAX_USER_TAG: Final = 2147483647
#: Calls an RTL engine executes at once.
MAX_ACTIVE_CALLS: Final = 8
#: Calls queued in an engine, parked ones included.
MAX_OUTSTANDING_CALLS: Final = 32
#: Bytes of one data-path word.
WORD_BYTES: Final = 64
#: Bytes of the logical message header.
HEADER_BYTES: Final = 64
#: Bytes of a move's interchange form.
MOVE_BYTES: Final = 64
#: Stream ports of one engine.
MAX_STREAM_PORTS: Final = 16
#: Programs that a device holds at once.
LOADED_PROGRAMS: Final = 8
#: Moves of each that a device holds itself; those after them stand in its memory.
LOADED_MOVES: Final = 32
#: Moves of each, on one rank.
PROGRAM_MOVES: Final = 4096
#: Words of its peer lists.
LOADED_WORDS: Final = 64
#: First 16 bits of every frame between a member and a switch: 'SL' in memory order.
SLOT_MAGIC: Final = 19539
#: Version of that protocol.
SLOT_PROTOCOL: Final = 1
#: Bytes of a slot frame before its payload.
SLOT_FRAME_BYTES: Final = 64
#: Slots of one communicator in a switch; a power of two.
MAX_SLOTS: Final = 32768
#: Session of a device's transport that leads back to itself; those of the network are below.
SELF_SESSION: Final = 64
#: Token slot of what names no landing area but the communicator's window: a put's data, request, grant, done.
WINDOW_SLOT: Final = 65535
#: Largest offset of a put or get in a window: 2^47 - 1.
MAX_WINDOW_OFFSET: Final = 140737488355327


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand, or the local result, of a move."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: source or destination
    kind: OperandKind = OperandKind.NONE
    #: conversion at this slot
    cast: Cast = Cast.NONE
    #: memory region
    region: Region = Region.SRC
    #: offset is a byte offset into params, where the 64-bit byte offset stands
    indirect: bool = False
    #: byte offset in the region; stream port for streams
    offset: int = 0

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(OperandKind, self.kind, "Operand.kind")
        raw |= _enumerator(Cast, self.cast, "Operand.cast") << 3
        raw |= _enumerator(Region, self.region, "Operand.region") << 5
        raw |= _flag(self.indirect, "Operand.indirect") << 10
        raw |= _unsigned(self.offset, 48, "Operand.offset") << 11
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Operand:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "Operand")
        _zero(raw, 59, 5, "Operand.reserved0")
        return cls(
            kind=_enumerator(OperandKind, _bits(raw, 0, 3), "Operand.kind"),
            cast=_enumerator(Cast, _bits(raw, 3, 2), "Operand.cast"),
            region=_enumerator(Region, _bits(raw, 5, 5), "Operand.region"),
            indirect=_bits(raw, 10, 1) != 0,
            offset=_bits(raw, 11, 48),
        )


@dataclass(frozen=True, slots=True)
class Arrival:
    """Which message, or which peers' memory, op1 is."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: rank, or pool index of a list
    peer: int = 0
    #: how peer is read
    mode: PeerMode = PeerMode.RANK
    #: step tag the message must carry
    tag: int = 0

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.peer, 24, "Arrival.peer")
        raw |= _enumerator(PeerMode, self.mode, "Arrival.mode") << 24
        raw |= _unsigned(self.tag, 24, "Arrival.tag") << 26
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Arrival:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "Arrival")
        _zero(raw, 50, 14, "Arrival.reserved0")
        return cls(
            peer=_bits(raw, 0, 24),
            mode=_enumerator(PeerMode, _bits(raw, 24, 2), "Arrival.mode"),
            tag=_bits(raw, 26, 24),
        )


@dataclass(frozen=True, slots=True)
class Remote:
    """Where the remote result goes."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: message, memory or stream
    kind: RemoteKind = RemoteKind.NONE
    #: conversion at this slot
    cast: Cast = Cast.NONE
    #: rank, or pool index of a list
    peer: int = 0
    #: how peer is read (rank or list)
    mode: PeerMode = PeerMode.RANK
    #: step tag
    tag: int = 0
    #: stream port of the peer
    port: int = 0

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(RemoteKind, self.kind, "Remote.kind")
        raw |= _enumerator(Cast, self.cast, "Remote.cast") << 3
        raw |= _unsigned(self.peer, 24, "Remote.peer") << 5
        raw |= _enumerator(PeerMode, self.mode, "Remote.mode") << 29
        raw |= _unsigned(self.tag, 24, "Remote.tag") << 31
        raw |= _unsigned(self.port, 8, "Remote.port") << 55
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Remote:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "Remote")
        _zero(raw, 63, 1, "Remote.reserved0")
        return cls(
            kind=_enumerator(RemoteKind, _bits(raw, 0, 3), "Remote.kind"),
            cast=_enumerator(Cast, _bits(raw, 3, 2), "Remote.cast"),
            peer=_bits(raw, 5, 24),
            mode=_enumerator(PeerMode, _bits(raw, 29, 2), "Remote.mode"),
            tag=_bits(raw, 31, 24),
            port=_bits(raw, 55, 8),
        )


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Address in the memory of each peer, for op1 remote_memory, a remote result to memory, or both."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: region that op1 reads
    region: Region = Region.SRC
    #: reserved for two-dimensional strides; zero in this version
    strided: bool = False
    #: region that the remote result writes
    result_region: Region = Region.SRC
    #: byte offset in either region, the same at every peer
    offset: int = 0

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(Region, self.region, "RemoteAddress.region")
        raw |= _flag(self.strided, "RemoteAddress.strided") << 5
        raw |= _enumerator(Region, self.result_region, "RemoteAddress.result_region") << 6
        raw |= _unsigned(self.offset, 48, "RemoteAddress.offset") << 16
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> RemoteAddress:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "RemoteAddress")
        _zero(raw, 11, 5, "RemoteAddress.reserved0")
        return cls(
            region=_enumerator(Region, _bits(raw, 0, 5), "RemoteAddress.region"),
            strided=_bits(raw, 5, 1) != 0,
            result_region=_enumerator(Region, _bits(raw, 6, 5), "RemoteAddress.result_region"),
            offset=_bits(raw, 16, 48),
        )


@dataclass(frozen=True, slots=True)
class Move:
    """One instruction: result = func(op0, op1), delivered locally, remotely, or both (ACCL+ section 4.2.1)."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 64

    #: instruction kind
    kind: MoveKind = MoveKind.NOP
    #: function of the two operands; none if one operand is present
    func: Func = Func.NONE
    #: element type
    dtype: Datatype = Datatype.NONE
    #: of the remote result and of the arrival
    protocol: Protocol = Protocol.AUTO
    #: log2 of the preferred segment in bytes; 0 leaves it to the engine
    log2_segment: int = 0
    #: result = func(op1, op0)
    swap: bool = False
    #: message is sent, or awaited, although count is 0
    signal: bool = False
    #: count is a byte offset into params, where the 64-bit count stands
    count_indirect: bool = False
    #: bit i: waits until move n-1-i has completed
    dependencies: int = 0
    #: elements
    count: int = 0
    #: distance back to a move whose element k must be done before element k here; 0 = none
    segment_dependency0: int = 0
    #: a second one
    segment_dependency1: int = 0
    #: first operand: none, memory or stream
    op0: Operand = field(default_factory=Operand)
    #: second operand: none, memory, arrival or remote memory
    op1: Operand = field(default_factory=Operand)
    #: peer of op1
    arrival: Arrival = field(default_factory=Arrival)
    #: local result: none, memory or stream
    local: Operand = field(default_factory=Operand)
    #: remote result
    remote: Remote = field(default_factory=Remote)
    #: address in the peer's memory
    remote_address: RemoteAddress = field(default_factory=RemoteAddress)

    def encode(self) -> builtins.bytes:
        """The 64 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(MoveKind, self.kind, "Move.kind")
        raw |= _enumerator(Func, self.func, "Move.func") << 4
        raw |= _enumerator(Datatype, self.dtype, "Move.dtype") << 12
        raw |= _enumerator(Protocol, self.protocol, "Move.protocol") << 18
        raw |= _unsigned(self.log2_segment, 5, "Move.log2_segment") << 20
        raw |= _flag(self.swap, "Move.swap") << 25
        raw |= _flag(self.signal, "Move.signal") << 26
        raw |= _flag(self.count_indirect, "Move.count_indirect") << 27
        raw |= _unsigned(self.dependencies, 32, "Move.dependencies") << 32
        raw |= _unsigned(self.count, 40, "Move.count") << 64
        raw |= _unsigned(self.segment_dependency0, 6, "Move.segment_dependency0") << 104
        raw |= _unsigned(self.segment_dependency1, 6, "Move.segment_dependency1") << 110
        raw |= int.from_bytes(self.op0.encode(), "little") << 128
        raw |= int.from_bytes(self.op1.encode(), "little") << 192
        raw |= int.from_bytes(self.arrival.encode(), "little") << 256
        raw |= int.from_bytes(self.local.encode(), "little") << 320
        raw |= int.from_bytes(self.remote.encode(), "little") << 384
        raw |= int.from_bytes(self.remote_address.encode(), "little") << 448
        return raw.to_bytes(64, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Move:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 64, "Move")
        _zero(raw, 28, 4, "Move.reserved0")
        _zero(raw, 116, 12, "Move.reserved1")
        return cls(
            kind=_enumerator(MoveKind, _bits(raw, 0, 4), "Move.kind"),
            func=_enumerator(Func, _bits(raw, 4, 8), "Move.func"),
            dtype=_enumerator(Datatype, _bits(raw, 12, 6), "Move.dtype"),
            protocol=_enumerator(Protocol, _bits(raw, 18, 2), "Move.protocol"),
            log2_segment=_bits(raw, 20, 5),
            swap=_bits(raw, 25, 1) != 0,
            signal=_bits(raw, 26, 1) != 0,
            count_indirect=_bits(raw, 27, 1) != 0,
            dependencies=_bits(raw, 32, 32),
            count=_bits(raw, 64, 40),
            segment_dependency0=_bits(raw, 104, 6),
            segment_dependency1=_bits(raw, 110, 6),
            op0=Operand.decode(_bits(raw, 128, 64).to_bytes(8, "little")),
            op1=Operand.decode(_bits(raw, 192, 64).to_bytes(8, "little")),
            arrival=Arrival.decode(_bits(raw, 256, 64).to_bytes(8, "little")),
            local=Operand.decode(_bits(raw, 320, 64).to_bytes(8, "little")),
            remote=Remote.decode(_bits(raw, 384, 64).to_bytes(8, "little")),
            remote_address=RemoteAddress.decode(_bits(raw, 448, 64).to_bytes(8, "little")),
        )


@dataclass(frozen=True, slots=True)
class Header:
    """Logical header of every message (64 bytes)."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 64

    #: 0x554e
    magic: int = 0
    #: wire version
    version: int = 0
    #: message type
    type: MessageType = MessageType.EAGER
    #: wire datatype
    dtype: Datatype = Datatype.NONE
    #: first segment of its message
    first: bool = False
    #: last segment of its message
    last: bool = False
    #: matched in the point-to-point space
    point_to_point: bool = False
    #: goes to a stream port
    stream: bool = False
    #: a CRC-32C of the payload follows it
    trailer: bool = False
    #: may be reduced in the network
    aggregate: bool = False
    #: receive-buffer credits returned
    credits: int = 0
    #: communicator number
    communicator: int = 0
    #: communicator epoch
    epoch: int = 0
    #: stream port
    port: int = 0
    #: rank that sends, in the communicator
    source: int = 0
    #: rank that receives, in the communicator
    destination: int = 0
    #: collective sequence, or per-pair sequence for point to point
    sequence: int = 0
    #: step tag, or user tag for point to point
    tag: int = 0
    #: payload bytes of this segment
    segment_bytes: int = 0
    #: counts messages of the session
    session_sequence: int = 0
    #: payload bytes of the whole message; in a grant, the end of what may be written
    message_bytes: int = 0
    #: grant token: slot of the landing area
    token_slot: int = 0
    #: of this segment in the message
    offset: int = 0
    #: grant token: generation of the slot
    token_generation: int = 0
    #: CRC-32C of the call's agreed fields
    signature: int = 0
    #: CRC-32C of the 60 bytes before it
    checksum: int = 0

    def encode(self) -> builtins.bytes:
        """The 64 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.magic, 16, "Header.magic")
        raw |= _unsigned(self.version, 4, "Header.version") << 16
        raw |= _enumerator(MessageType, self.type, "Header.type") << 20
        raw |= _enumerator(Datatype, self.dtype, "Header.dtype") << 24
        raw |= _flag(self.first, "Header.first") << 32
        raw |= _flag(self.last, "Header.last") << 33
        raw |= _flag(self.point_to_point, "Header.point_to_point") << 34
        raw |= _flag(self.stream, "Header.stream") << 35
        raw |= _flag(self.trailer, "Header.trailer") << 36
        raw |= _flag(self.aggregate, "Header.aggregate") << 37
        raw |= _unsigned(self.credits, 16, "Header.credits") << 48
        raw |= _unsigned(self.communicator, 32, "Header.communicator") << 64
        raw |= _unsigned(self.epoch, 16, "Header.epoch") << 96
        raw |= _unsigned(self.port, 16, "Header.port") << 112
        raw |= _unsigned(self.source, 32, "Header.source") << 128
        raw |= _unsigned(self.destination, 32, "Header.destination") << 160
        raw |= _unsigned(self.sequence, 32, "Header.sequence") << 192
        raw |= _unsigned(self.tag, 32, "Header.tag") << 224
        raw |= _unsigned(self.segment_bytes, 32, "Header.segment_bytes") << 256
        raw |= _unsigned(self.session_sequence, 32, "Header.session_sequence") << 288
        raw |= _unsigned(self.message_bytes, 48, "Header.message_bytes") << 320
        raw |= _unsigned(self.token_slot, 16, "Header.token_slot") << 368
        raw |= _unsigned(self.offset, 48, "Header.offset") << 384
        raw |= _unsigned(self.token_generation, 16, "Header.token_generation") << 432
        raw |= _unsigned(self.signature, 32, "Header.signature") << 448
        raw |= _unsigned(self.checksum, 32, "Header.checksum") << 480
        return raw.to_bytes(64, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Header:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 64, "Header")
        _zero(raw, 38, 10, "Header.reserved0")
        return cls(
            magic=_bits(raw, 0, 16),
            version=_bits(raw, 16, 4),
            type=_enumerator(MessageType, _bits(raw, 20, 4), "Header.type"),
            dtype=_enumerator(Datatype, _bits(raw, 24, 8), "Header.dtype"),
            first=_bits(raw, 32, 1) != 0,
            last=_bits(raw, 33, 1) != 0,
            point_to_point=_bits(raw, 34, 1) != 0,
            stream=_bits(raw, 35, 1) != 0,
            trailer=_bits(raw, 36, 1) != 0,
            aggregate=_bits(raw, 37, 1) != 0,
            credits=_bits(raw, 48, 16),
            communicator=_bits(raw, 64, 32),
            epoch=_bits(raw, 96, 16),
            port=_bits(raw, 112, 16),
            source=_bits(raw, 128, 32),
            destination=_bits(raw, 160, 32),
            sequence=_bits(raw, 192, 32),
            tag=_bits(raw, 224, 32),
            segment_bytes=_bits(raw, 256, 32),
            session_sequence=_bits(raw, 288, 32),
            message_bytes=_bits(raw, 320, 48),
            token_slot=_bits(raw, 368, 16),
            offset=_bits(raw, 384, 48),
            token_generation=_bits(raw, 432, 16),
            signature=_bits(raw, 448, 32),
            checksum=_bits(raw, 480, 32),
        )


@dataclass(frozen=True, slots=True)
class HeaderConnection:
    """Compressed header for connection-oriented transports (32 bytes).

    Source, destination, magic, version and session sequence are the connection's.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 32

    #: message type
    type: MessageType = MessageType.EAGER
    #: as in header
    first: bool = False
    #: as in header
    last: bool = False
    #: as in header
    point_to_point: bool = False
    #: as in header
    stream: bool = False
    #: wire datatype
    dtype: Datatype = Datatype.NONE
    #: as in header
    trailer: bool = False
    #: as in header
    aggregate: bool = False
    #: communicator number, low 16 bits
    communicator: int = 0
    #: epoch, low 8 bits
    epoch: int = 0
    #: stream port
    port: int = 0
    #: credits returned
    credits: int = 0
    #: as in header
    sequence: int = 0
    #: as in header
    tag: int = 0
    #: message bytes in a first segment and in a grant, offset in the others
    message_or_offset: int = 0
    #: low 16 bits of the signature in grant, write and done; else zero
    signature_low: int = 0
    #: as in header
    segment_bytes: int = 0
    #: signature in eager and request; token (generation << 16 | slot) in grant, write and done
    token_or_signature: int = 0

    def encode(self) -> builtins.bytes:
        """The 32 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(MessageType, self.type, "HeaderConnection.type")
        raw |= _flag(self.first, "HeaderConnection.first") << 4
        raw |= _flag(self.last, "HeaderConnection.last") << 5
        raw |= _flag(self.point_to_point, "HeaderConnection.point_to_point") << 6
        raw |= _flag(self.stream, "HeaderConnection.stream") << 7
        raw |= _enumerator(Datatype, self.dtype, "HeaderConnection.dtype") << 8
        raw |= _flag(self.trailer, "HeaderConnection.trailer") << 14
        raw |= _flag(self.aggregate, "HeaderConnection.aggregate") << 15
        raw |= _unsigned(self.communicator, 16, "HeaderConnection.communicator") << 16
        raw |= _unsigned(self.epoch, 8, "HeaderConnection.epoch") << 32
        raw |= _unsigned(self.port, 8, "HeaderConnection.port") << 40
        raw |= _unsigned(self.credits, 16, "HeaderConnection.credits") << 48
        raw |= _unsigned(self.sequence, 32, "HeaderConnection.sequence") << 64
        raw |= _unsigned(self.tag, 32, "HeaderConnection.tag") << 96
        raw |= _unsigned(self.message_or_offset, 48, "HeaderConnection.message_or_offset") << 128
        raw |= _unsigned(self.signature_low, 16, "HeaderConnection.signature_low") << 176
        raw |= _unsigned(self.segment_bytes, 32, "HeaderConnection.segment_bytes") << 192
        raw |= _unsigned(self.token_or_signature, 32, "HeaderConnection.token_or_signature") << 224
        return raw.to_bytes(32, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> HeaderConnection:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 32, "HeaderConnection")
        return cls(
            type=_enumerator(MessageType, _bits(raw, 0, 4), "HeaderConnection.type"),
            first=_bits(raw, 4, 1) != 0,
            last=_bits(raw, 5, 1) != 0,
            point_to_point=_bits(raw, 6, 1) != 0,
            stream=_bits(raw, 7, 1) != 0,
            dtype=_enumerator(Datatype, _bits(raw, 8, 6), "HeaderConnection.dtype"),
            trailer=_bits(raw, 14, 1) != 0,
            aggregate=_bits(raw, 15, 1) != 0,
            communicator=_bits(raw, 16, 16),
            epoch=_bits(raw, 32, 8),
            port=_bits(raw, 40, 8),
            credits=_bits(raw, 48, 16),
            sequence=_bits(raw, 64, 32),
            tag=_bits(raw, 96, 32),
            message_or_offset=_bits(raw, 128, 48),
            signature_low=_bits(raw, 176, 16),
            segment_bytes=_bits(raw, 192, 32),
            token_or_signature=_bits(raw, 224, 32),
        )


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """Header of a message that shares a cache line with its payload, behind 48 bytes of it.

    The lane gives sender, receiver, communicator and order.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 16

    #: payload bytes; up to 48 stand in the line, more in the lane's cells
    bytes: int = 0
    #: step tag, or user tag for point to point
    tag: int = 0
    #: eager: data; request: addresses of the regions of a call with direct access, or a message that is lent
    type: MessageType = MessageType.EAGER
    #: number of the line in its lane, from 1; the word with it is written last and publishes the line
    flag: int = 0
    #: digest of the communicator's collective calls up to this one: signatures, chained
    signature: int = 0

    def encode(self) -> builtins.bytes:
        """The 16 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.bytes, 32, "HeaderLine.bytes")
        raw |= _unsigned(self.tag, 24, "HeaderLine.tag") << 32
        raw |= _enumerator(MessageType, self.type, "HeaderLine.type") << 56
        raw |= _unsigned(self.flag, 32, "HeaderLine.flag") << 64
        raw |= _unsigned(self.signature, 32, "HeaderLine.signature") << 96
        return raw.to_bytes(16, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> HeaderLine:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 16, "HeaderLine")
        _zero(raw, 60, 4, "HeaderLine.reserved0")
        return cls(
            bytes=_bits(raw, 0, 32),
            tag=_bits(raw, 32, 24),
            type=_enumerator(MessageType, _bits(raw, 56, 4), "HeaderLine.type"),
            flag=_bits(raw, 64, 32),
            signature=_bits(raw, 96, 32),
        )


@dataclass(frozen=True, slots=True)
class MessageLine:
    """Header of a point-to-point message on a lane, behind 48 bytes of payload.

    The lane gives sender, receiver, communicator and order.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 16

    #: payload bytes; up to 48 stand in the line, more in the lane's cells
    bytes: int = 0
    #: element type
    dtype: Datatype = Datatype.NONE
    #: eager: a whole message; request: a long one is announced; write: a piece of it; done: it was written; grant,
    #: done, control: answers
    type: MessageType = MessageType.EAGER
    #: user tag; those beyond max_user_tag are the library's own
    tag: int = 0
    #: number of the line in its lane, from 1; the word with it is written last and publishes the line
    flag: int = 0
    #: of a long message, in all lines that concern it
    id: int = 0

    def encode(self) -> builtins.bytes:
        """The 16 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.bytes, 20, "MessageLine.bytes")
        raw |= _enumerator(Datatype, self.dtype, "MessageLine.dtype") << 20
        raw |= _enumerator(MessageType, self.type, "MessageLine.type") << 26
        raw |= _unsigned(self.tag, 32, "MessageLine.tag") << 30
        raw |= _unsigned(self.flag, 32, "MessageLine.flag") << 64
        raw |= _unsigned(self.id, 32, "MessageLine.id") << 96
        return raw.to_bytes(16, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> MessageLine:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 16, "MessageLine")
        _zero(raw, 62, 2, "MessageLine.reserved0")
        return cls(
            bytes=_bits(raw, 0, 20),
            dtype=_enumerator(Datatype, _bits(raw, 20, 6), "MessageLine.dtype"),
            type=_enumerator(MessageType, _bits(raw, 26, 4), "MessageLine.type"),
            tag=_bits(raw, 30, 32),
            flag=_bits(raw, 64, 32),
            id=_bits(raw, 96, 32),
        )


@dataclass(frozen=True, slots=True)
class SlotFrame:
    """Frame between a member and a switch that aggregates (64 bytes, docs/switch-protocol.md).

    A payload follows, and a CRC-32C of the payload.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 64

    #: slot_magic
    magic: int = 0
    #: slot_protocol
    version: int = 0
    #: what it is
    kind: SlotKind = SlotKind.NONE
    #: the collective; like the fields down to count, zero where kind concerns no turn
    opcode: Collective = Collective.NOP
    #: operator; none where nothing is combined
    func: Func = Func.NONE
    #: element type
    dtype: Datatype = Datatype.NONE
    #: of the pool that the frame goes to or comes from; 0: the member knows none yet
    generation: int = 0
    #: communicator number
    communicator: int = 0
    #: communicator epoch
    epoch: int = 0
    #: turn modulo slots
    slot: int = 0
    #: which version of the slot: turn divided by slots, modulo 2
    second: bool = False
    #: number of the chunk, over all calls of the communicator
    turn: int = 0
    #: elements of the whole call; in resume and begin, the member's incarnation
    total: int = 0
    #: collective sequence of the call
    call: int = 0
    #: rank that gives or gets the data, where it is one
    root: int = 0
    #: elements of the chunk
    count: int = 0
    #: bytes of payload
    bytes: int = 0
    #: digest of what the result is multiplied by afterwards, by the members; 0: by nothing
    factor: int = 0
    #: up: position of the child at its switch; down: the same, or all bits set for all children
    member: int = 0
    #: CRC-32C of the 60 bytes before it
    checksum: int = 0

    def encode(self) -> builtins.bytes:
        """The 64 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.magic, 16, "SlotFrame.magic")
        raw |= _unsigned(self.version, 8, "SlotFrame.version") << 16
        raw |= _enumerator(SlotKind, self.kind, "SlotFrame.kind") << 24
        raw |= _enumerator(Collective, self.opcode, "SlotFrame.opcode") << 32
        raw |= _enumerator(Func, self.func, "SlotFrame.func") << 40
        raw |= _enumerator(Datatype, self.dtype, "SlotFrame.dtype") << 48
        raw |= _unsigned(self.generation, 64, "SlotFrame.generation") << 64
        raw |= _unsigned(self.communicator, 32, "SlotFrame.communicator") << 128
        raw |= _unsigned(self.epoch, 16, "SlotFrame.epoch") << 160
        raw |= _unsigned(self.slot, 15, "SlotFrame.slot") << 176
        raw |= _flag(self.second, "SlotFrame.second") << 191
        raw |= _unsigned(self.turn, 64, "SlotFrame.turn") << 192
        raw |= _unsigned(self.total, 64, "SlotFrame.total") << 256
        raw |= _unsigned(self.call, 32, "SlotFrame.call") << 320
        raw |= _unsigned(self.root, 32, "SlotFrame.root") << 352
        raw |= _unsigned(self.count, 32, "SlotFrame.count") << 384
        raw |= _unsigned(self.bytes, 16, "SlotFrame.bytes") << 416
        raw |= _unsigned(self.factor, 16, "SlotFrame.factor") << 432
        raw |= _unsigned(self.member, 32, "SlotFrame.member") << 448
        raw |= _unsigned(self.checksum, 32, "SlotFrame.checksum") << 480
        return raw.to_bytes(64, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> SlotFrame:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 64, "SlotFrame")
        _zero(raw, 56, 8, "SlotFrame.reserved0")
        return cls(
            magic=_bits(raw, 0, 16),
            version=_bits(raw, 16, 8),
            kind=_enumerator(SlotKind, _bits(raw, 24, 8), "SlotFrame.kind"),
            opcode=_enumerator(Collective, _bits(raw, 32, 8), "SlotFrame.opcode"),
            func=_enumerator(Func, _bits(raw, 40, 8), "SlotFrame.func"),
            dtype=_enumerator(Datatype, _bits(raw, 48, 8), "SlotFrame.dtype"),
            generation=_bits(raw, 64, 64),
            communicator=_bits(raw, 128, 32),
            epoch=_bits(raw, 160, 16),
            slot=_bits(raw, 176, 15),
            second=_bits(raw, 191, 1) != 0,
            turn=_bits(raw, 192, 64),
            total=_bits(raw, 256, 64),
            call=_bits(raw, 320, 32),
            root=_bits(raw, 352, 32),
            count=_bits(raw, 384, 32),
            bytes=_bits(raw, 416, 16),
            factor=_bits(raw, 432, 16),
            member=_bits(raw, 448, 32),
            checksum=_bits(raw, 480, 32),
        )


@dataclass(frozen=True, slots=True)
class SlotRefusal:
    """Payload of a slot frame refuse: two ranks, and what they do not agree on.

    The same rank twice: what the switch does not do for it.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 32

    #: which field
    field: SlotField = SlotField.NONE
    #: sequence of the call
    call: int = 0
    #: a rank
    first: int = 0
    #: another rank
    second: int = 0
    #: what the first says
    first_value: int = 0
    #: what the second says
    second_value: int = 0

    def encode(self) -> builtins.bytes:
        """The 32 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(SlotField, self.field, "SlotRefusal.field")
        raw |= _unsigned(self.call, 32, "SlotRefusal.call") << 32
        raw |= _unsigned(self.first, 32, "SlotRefusal.first") << 64
        raw |= _unsigned(self.second, 32, "SlotRefusal.second") << 96
        raw |= _unsigned(self.first_value, 64, "SlotRefusal.first_value") << 128
        raw |= _unsigned(self.second_value, 64, "SlotRefusal.second_value") << 192
        return raw.to_bytes(32, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> SlotRefusal:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 32, "SlotRefusal")
        _zero(raw, 8, 24, "SlotRefusal.reserved0")
        return cls(
            field=_enumerator(SlotField, _bits(raw, 0, 8), "SlotRefusal.field"),
            call=_bits(raw, 32, 32),
            first=_bits(raw, 64, 32),
            second=_bits(raw, 96, 32),
            first_value=_bits(raw, 128, 64),
            second_value=_bits(raw, 192, 64),
        )


@dataclass(frozen=True, slots=True)
class CallDescriptor:
    """Call descriptor, one request to an engine (128 bytes). Addresses are byte addresses in the engine's memory."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 128

    #: what is asked for
    collective: Collective = Collective.NOP
    #: index in the algorithm table plus one; 0 = automatic
    algorithm: int = 0
    #: reduction operator
    func: Func = Func.NONE
    #: element type
    dtype: Datatype = Datatype.NONE
    #: element type on the wire; none = dtype
    wire_dtype: Datatype = Datatype.NONE
    #: input stands in dst
    in_place: bool = False
    #: src is in host memory
    src_host: bool = False
    #: dst is in host memory
    dst_host: bool = False
    #: src is a stream; src_address holds the port
    src_stream: bool = False
    #: dst is a stream; dst_address holds the port
    dst_stream: bool = False
    #: radix of an algorithm that takes one; 0 = its default, and all that engines without `radices` take
    radix: int = 0
    #: communicator number
    communicator: int = 0
    #: root, or peer for point to point
    root: int = 0
    #: user tag
    tag: int = 0
    #: microseconds until the call fails; 0 = the communicator's timeout
    deadline_us: int = 0
    #: elements (per block for gather, scatter, allgather, alltoall, reduce_scatter)
    count: int = 0
    #: source
    src_address: int = 0
    #: bytes bound to src
    src_bytes: int = 0
    #: destination
    dst_address: int = 0
    #: bytes bound to dst
    dst_bytes: int = 0
    #: scratch
    scratch_address: int = 0
    #: bytes bound to scratch
    scratch_bytes: int = 0
    #: params
    params_address: int = 0
    #: bytes bound to params
    params_bytes: int = 0
    #: number the requester gives the call
    call_id: int = 0
    #: call id that must complete first; 0 = none
    wait_for0: int = 0
    #: a second one
    wait_for1: int = 0
    #: slot of a loaded program, for collective program
    program: int = 0
    #: put, get: byte offset in the peer's window, less than 2^47
    window_offset: int = 0

    def encode(self) -> builtins.bytes:
        """The 128 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(Collective, self.collective, "CallDescriptor.collective")
        raw |= _unsigned(self.algorithm, 8, "CallDescriptor.algorithm") << 8
        raw |= _enumerator(Func, self.func, "CallDescriptor.func") << 16
        raw |= _enumerator(Datatype, self.dtype, "CallDescriptor.dtype") << 24
        raw |= _enumerator(Datatype, self.wire_dtype, "CallDescriptor.wire_dtype") << 32
        raw |= _flag(self.in_place, "CallDescriptor.in_place") << 40
        raw |= _flag(self.src_host, "CallDescriptor.src_host") << 41
        raw |= _flag(self.dst_host, "CallDescriptor.dst_host") << 42
        raw |= _flag(self.src_stream, "CallDescriptor.src_stream") << 43
        raw |= _flag(self.dst_stream, "CallDescriptor.dst_stream") << 44
        raw |= _unsigned(self.radix, 8, "CallDescriptor.radix") << 48
        raw |= _unsigned(self.communicator, 32, "CallDescriptor.communicator") << 64
        raw |= _unsigned(self.root, 32, "CallDescriptor.root") << 96
        raw |= _unsigned(self.tag, 32, "CallDescriptor.tag") << 128
        raw |= _unsigned(self.deadline_us, 32, "CallDescriptor.deadline_us") << 160
        raw |= _unsigned(self.count, 64, "CallDescriptor.count") << 192
        raw |= _unsigned(self.src_address, 64, "CallDescriptor.src_address") << 256
        raw |= _unsigned(self.src_bytes, 64, "CallDescriptor.src_bytes") << 320
        raw |= _unsigned(self.dst_address, 64, "CallDescriptor.dst_address") << 384
        raw |= _unsigned(self.dst_bytes, 64, "CallDescriptor.dst_bytes") << 448
        raw |= _unsigned(self.scratch_address, 64, "CallDescriptor.scratch_address") << 512
        raw |= _unsigned(self.scratch_bytes, 64, "CallDescriptor.scratch_bytes") << 576
        raw |= _unsigned(self.params_address, 64, "CallDescriptor.params_address") << 640
        raw |= _unsigned(self.params_bytes, 64, "CallDescriptor.params_bytes") << 704
        raw |= _unsigned(self.call_id, 32, "CallDescriptor.call_id") << 768
        raw |= _unsigned(self.wait_for0, 32, "CallDescriptor.wait_for0") << 800
        raw |= _unsigned(self.wait_for1, 32, "CallDescriptor.wait_for1") << 832
        raw |= _unsigned(self.program, 32, "CallDescriptor.program") << 864
        raw |= _unsigned(self.window_offset, 64, "CallDescriptor.window_offset") << 896
        return raw.to_bytes(128, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> CallDescriptor:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 128, "CallDescriptor")
        _zero(raw, 45, 3, "CallDescriptor.reserved0")
        _zero(raw, 56, 8, "CallDescriptor.reserved1")
        _zero(raw, 960, 64, "CallDescriptor.reserved2")
        return cls(
            collective=_enumerator(Collective, _bits(raw, 0, 8), "CallDescriptor.collective"),
            algorithm=_bits(raw, 8, 8),
            func=_enumerator(Func, _bits(raw, 16, 8), "CallDescriptor.func"),
            dtype=_enumerator(Datatype, _bits(raw, 24, 8), "CallDescriptor.dtype"),
            wire_dtype=_enumerator(Datatype, _bits(raw, 32, 8), "CallDescriptor.wire_dtype"),
            in_place=_bits(raw, 40, 1) != 0,
            src_host=_bits(raw, 41, 1) != 0,
            dst_host=_bits(raw, 42, 1) != 0,
            src_stream=_bits(raw, 43, 1) != 0,
            dst_stream=_bits(raw, 44, 1) != 0,
            radix=_bits(raw, 48, 8),
            communicator=_bits(raw, 64, 32),
            root=_bits(raw, 96, 32),
            tag=_bits(raw, 128, 32),
            deadline_us=_bits(raw, 160, 32),
            count=_bits(raw, 192, 64),
            src_address=_bits(raw, 256, 64),
            src_bytes=_bits(raw, 320, 64),
            dst_address=_bits(raw, 384, 64),
            dst_bytes=_bits(raw, 448, 64),
            scratch_address=_bits(raw, 512, 64),
            scratch_bytes=_bits(raw, 576, 64),
            params_address=_bits(raw, 640, 64),
            params_bytes=_bits(raw, 704, 64),
            call_id=_bits(raw, 768, 32),
            wait_for0=_bits(raw, 800, 32),
            wait_for1=_bits(raw, 832, 32),
            program=_bits(raw, 864, 32),
            window_offset=_bits(raw, 896, 64),
        )


@dataclass(frozen=True, slots=True)
class Capability:
    """Capability word of an engine. A communicator uses the intersection over its members."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: of this word
    version: int = 0
    #: bit n: datatype n can be reduced
    datatypes: int = 0
    #: bit n: func n; bit 15: operators of the user
    funcs: int = 0
    #: peer lists
    lists: bool = False
    #: arrivals from a list of peers
    fan_in: bool = False
    #: stream operands and results
    streams: bool = False
    #: put and get
    remote_memory: bool = False
    #: two-dimensional moves
    strides: bool = False
    #: wire casts
    casts: bool = False
    #: rendezvous protocol
    rendezvous: bool = False
    #: loaded programs
    programs: bool = False
    #: largest segment in bytes, log2
    log2_max_segment: int = 0
    #: lanes: messages in single cache lines of memory that all members share
    lanes: bool = False
    #: algorithms that take a radix, with any; else with their default
    radices: bool = False
    #: long messages point to point begin on credit, before they are granted
    openings: bool = False

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.version, 8, "Capability.version")
        raw |= _unsigned(self.datatypes, 24, "Capability.datatypes") << 8
        raw |= _unsigned(self.funcs, 16, "Capability.funcs") << 32
        raw |= _flag(self.lists, "Capability.lists") << 48
        raw |= _flag(self.fan_in, "Capability.fan_in") << 49
        raw |= _flag(self.streams, "Capability.streams") << 50
        raw |= _flag(self.remote_memory, "Capability.remote_memory") << 51
        raw |= _flag(self.strides, "Capability.strides") << 52
        raw |= _flag(self.casts, "Capability.casts") << 53
        raw |= _flag(self.rendezvous, "Capability.rendezvous") << 54
        raw |= _flag(self.programs, "Capability.programs") << 55
        raw |= _unsigned(self.log2_max_segment, 5, "Capability.log2_max_segment") << 56
        raw |= _flag(self.lanes, "Capability.lanes") << 61
        raw |= _flag(self.radices, "Capability.radices") << 62
        raw |= _flag(self.openings, "Capability.openings") << 63
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Capability:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "Capability")
        return cls(
            version=_bits(raw, 0, 8),
            datatypes=_bits(raw, 8, 24),
            funcs=_bits(raw, 32, 16),
            lists=_bits(raw, 48, 1) != 0,
            fan_in=_bits(raw, 49, 1) != 0,
            streams=_bits(raw, 50, 1) != 0,
            remote_memory=_bits(raw, 51, 1) != 0,
            strides=_bits(raw, 52, 1) != 0,
            casts=_bits(raw, 53, 1) != 0,
            rendezvous=_bits(raw, 54, 1) != 0,
            programs=_bits(raw, 55, 1) != 0,
            log2_max_segment=_bits(raw, 56, 5),
            lanes=_bits(raw, 61, 1) != 0,
            radices=_bits(raw, 62, 1) != 0,
            openings=_bits(raw, 63, 1) != 0,
        )


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """What became of one move, told when it retires.

    Times are cycles of the engine's clock since power-up, modulo 2^48.
    """

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 64

    #: number that the requester gave the call
    call_id: int = 0
    #: position of the move in its program
    index: int = 0
    #: it entered its window
    entered: int = 0
    #: of the call among the active ones
    slot: int = 0
    #: its function
    func: Func = Func.NONE
    #: its dependencies were complete, and the dispatcher took it
    issued: int = 0
    #: rank that it sends to; index of a list if it sends to several
    destination: int = 0
    #: its first segment was given to a lane; 0 if it needed none
    began: int = 0
    #: rank that it receives from; index of a list if there are several
    source: int = 0
    #: its last segment had ended: its result is visible, its sources may change
    completed: int = 0
    #: jobs given to lanes for it; 65535 also stands for more
    segments: int = 0
    #: it and all moves before it were complete
    retired: int = 0
    #: its element type
    dtype: Datatype = Datatype.NONE
    #: an operand arrives from a peer
    receives: bool = False
    #: the result is sent to a peer
    sends: bool = False
    #: the first operand is in memory
    reads0: bool = False
    #: the second operand is in memory
    reads1: bool = False
    #: it has a local result
    writes: bool = False
    #: of its result
    bytes: int = 0
    #: it had to wait for credit
    waited_credit: bool = False
    #: for a grant
    waited_grant: bool = False
    #: for room in the transport, or the message before it
    waited_space: bool = False
    #: for a segment from a peer
    waited_arrival: bool = False
    #: for the move that it follows
    waited_producer: bool = False
    #: number of its communicator
    communicator: int = 0
    #: of the communicator's collectives, or of the pair
    sequence: int = 0

    def encode(self) -> builtins.bytes:
        """The 64 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _unsigned(self.call_id, 32, "MoveRecord.call_id")
        raw |= _unsigned(self.index, 32, "MoveRecord.index") << 32
        raw |= _unsigned(self.entered, 48, "MoveRecord.entered") << 64
        raw |= _unsigned(self.slot, 8, "MoveRecord.slot") << 112
        raw |= _enumerator(Func, self.func, "MoveRecord.func") << 120
        raw |= _unsigned(self.issued, 48, "MoveRecord.issued") << 128
        raw |= _unsigned(self.destination, 16, "MoveRecord.destination") << 176
        raw |= _unsigned(self.began, 48, "MoveRecord.began") << 192
        raw |= _unsigned(self.source, 16, "MoveRecord.source") << 240
        raw |= _unsigned(self.completed, 48, "MoveRecord.completed") << 256
        raw |= _unsigned(self.segments, 16, "MoveRecord.segments") << 304
        raw |= _unsigned(self.retired, 48, "MoveRecord.retired") << 320
        raw |= _enumerator(Datatype, self.dtype, "MoveRecord.dtype") << 368
        raw |= _flag(self.receives, "MoveRecord.receives") << 376
        raw |= _flag(self.sends, "MoveRecord.sends") << 377
        raw |= _flag(self.reads0, "MoveRecord.reads0") << 378
        raw |= _flag(self.reads1, "MoveRecord.reads1") << 379
        raw |= _flag(self.writes, "MoveRecord.writes") << 380
        raw |= _unsigned(self.bytes, 48, "MoveRecord.bytes") << 384
        raw |= _flag(self.waited_credit, "MoveRecord.waited_credit") << 432
        raw |= _flag(self.waited_grant, "MoveRecord.waited_grant") << 433
        raw |= _flag(self.waited_space, "MoveRecord.waited_space") << 434
        raw |= _flag(self.waited_arrival, "MoveRecord.waited_arrival") << 435
        raw |= _flag(self.waited_producer, "MoveRecord.waited_producer") << 436
        raw |= _unsigned(self.communicator, 32, "MoveRecord.communicator") << 448
        raw |= _unsigned(self.sequence, 32, "MoveRecord.sequence") << 480
        return raw.to_bytes(64, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> MoveRecord:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 64, "MoveRecord")
        _zero(raw, 381, 3, "MoveRecord.reserved0")
        _zero(raw, 437, 11, "MoveRecord.reserved1")
        return cls(
            call_id=_bits(raw, 0, 32),
            index=_bits(raw, 32, 32),
            entered=_bits(raw, 64, 48),
            slot=_bits(raw, 112, 8),
            func=_enumerator(Func, _bits(raw, 120, 8), "MoveRecord.func"),
            issued=_bits(raw, 128, 48),
            destination=_bits(raw, 176, 16),
            began=_bits(raw, 192, 48),
            source=_bits(raw, 240, 16),
            completed=_bits(raw, 256, 48),
            segments=_bits(raw, 304, 16),
            retired=_bits(raw, 320, 48),
            dtype=_enumerator(Datatype, _bits(raw, 368, 8), "MoveRecord.dtype"),
            receives=_bits(raw, 376, 1) != 0,
            sends=_bits(raw, 377, 1) != 0,
            reads0=_bits(raw, 378, 1) != 0,
            reads1=_bits(raw, 379, 1) != 0,
            writes=_bits(raw, 380, 1) != 0,
            bytes=_bits(raw, 384, 48),
            waited_credit=_bits(raw, 432, 1) != 0,
            waited_grant=_bits(raw, 433, 1) != 0,
            waited_space=_bits(raw, 434, 1) != 0,
            waited_arrival=_bits(raw, 435, 1) != 0,
            waited_producer=_bits(raw, 436, 1) != 0,
            communicator=_bits(raw, 448, 32),
            sequence=_bits(raw, 480, 32),
        )


class Exchange(IntEnum):
    """Byte offsets in exchange memory."""

    #: 0x554e4953 ('UNIS')
    IDENTITY = 0x0000
    #: abi_version << 16 | wire_version
    VERSION = 0x0004
    #: capability word
    CAPABILITY = 0x0008
    #: bit 0 soft reset (falls by itself), bit 1 run
    CONTROL = 0x0010
    #: bit 0 ready, 1 a call failed (1 clears), 2 call_slot taken, 3 completion waits, 4 failure waits for the cpu
    STATUS = 0x0014
    #: error code of the last failed call
    ERROR = 0x0018
    #: call_id of that call
    ERROR_CALL = 0x001C
    #: a write submits the call descriptor at call_slot
    DOORBELL = 0x0020
    #: call_id of the oldest completion that was not yet read, 0 if there is none; a read pops it
    COMPLETED = 0x0024
    #: of the completion that completed gave last: error code in bits 0 to 15, bit 31 set; 0 if it gave none
    COMPLETED_CODE = 0x0028
    #: bits 0 to 7: calls admitted and not completed; bits 8 to 15: one for each active slot
    CALLS = 0x002C
    #: largest eager message in bytes
    EAGER_LIMIT = 0x0040
    #: largest segment in bytes
    SEGMENT_BYTES = 0x0044
    #: receive buffers per peer
    RX_BUFFER_COUNT = 0x0048
    #: bytes of one receive buffer
    RX_BUFFER_BYTES = 0x004C
    #: default deadline of a call, microseconds; 0 = the longest there is
    TIMEOUT_US = 0x0050
    #: byte address in the microcontroller's memory; grows by 4 with each access to firmware_data
    FIRMWARE_ADDRESS = 0x0060
    #: the word there; only whole words, and only while control says not to run
    FIRMWARE_DATA = 0x0064
    #: begin of a window, memory that peers put to and get from; a communicator's last word takes it
    WINDOW_ADDRESS = 0x0068
    #: bytes of it; 0 = none
    WINDOW_BYTES = 0x0070
    #: call descriptor written by the host
    CALL_SLOT = 0x0100
    #: performance counters, 64 bits each, in the order of `counter`
    COUNTERS = 0x0200
    #: registers of the transport: a word for each session, then counters and limits
    TRANSPORT = 0x0400
    #: loads programs: slot, list, move, signature, address (2) and number of moves in memory; docs/rtl/replay.md
    PROGRAMS = 0x0800
    #: state of the receive buffers
    RX_BUFFERS = 0x1000
    #: 16 words each: 8 for the microcontroller, 8 for the data path; the last: take (1) or give up (0) a window
    COMMUNICATORS = 0x2000
    #: a word for each rank of each communicator: the transport's session that leads there
    MEMBERS = 0x3000


@dataclass(frozen=True, slots=True)
class Register:
    """A place in exchange memory; access is ro, rw or wo, seen from the host."""

    offset: Exchange
    size: int
    access: str
    doc: str


#: Registers by offset.
REGISTERS: Final[tuple[Register, ...]] = (
    Register(Exchange.IDENTITY, 4, "ro", "0x554e4953 ('UNIS')"),
    Register(Exchange.VERSION, 4, "ro", "abi_version << 16 | wire_version"),
    Register(Exchange.CAPABILITY, 8, "ro", "capability word"),
    Register(Exchange.CONTROL, 4, "rw", "bit 0 soft reset (falls by itself), bit 1 run"),
    Register(
        Exchange.STATUS,
        4,
        "rw",
        "bit 0 ready, 1 a call failed (1 clears), 2 call_slot taken, 3 completion waits, 4 failure waits for the cpu",
    ),
    Register(Exchange.ERROR, 4, "ro", "error code of the last failed call"),
    Register(Exchange.ERROR_CALL, 4, "ro", "call_id of that call"),
    Register(Exchange.DOORBELL, 4, "wo", "a write submits the call descriptor at call_slot"),
    Register(
        Exchange.COMPLETED,
        4,
        "ro",
        "call_id of the oldest completion that was not yet read, 0 if there is none; a read pops it",
    ),
    Register(
        Exchange.COMPLETED_CODE,
        4,
        "ro",
        "of the completion that completed gave last: error code in bits 0 to 15, bit 31 set; 0 if it gave none",
    ),
    Register(
        Exchange.CALLS,
        4,
        "ro",
        "bits 0 to 7: calls admitted and not completed; bits 8 to 15: one for each active slot",
    ),
    Register(Exchange.EAGER_LIMIT, 4, "rw", "largest eager message in bytes"),
    Register(Exchange.SEGMENT_BYTES, 4, "rw", "largest segment in bytes"),
    Register(Exchange.RX_BUFFER_COUNT, 4, "rw", "receive buffers per peer"),
    Register(Exchange.RX_BUFFER_BYTES, 4, "rw", "bytes of one receive buffer"),
    Register(Exchange.TIMEOUT_US, 4, "rw", "default deadline of a call, microseconds; 0 = the longest there is"),
    Register(
        Exchange.FIRMWARE_ADDRESS,
        4,
        "rw",
        "byte address in the microcontroller's memory; grows by 4 with each access to firmware_data",
    ),
    Register(
        Exchange.FIRMWARE_DATA,
        4,
        "rw",
        "the word there; only whole words, and only while control says not to run",
    ),
    Register(
        Exchange.WINDOW_ADDRESS,
        8,
        "rw",
        "begin of a window, memory that peers put to and get from; a communicator's last word takes it",
    ),
    Register(Exchange.WINDOW_BYTES, 8, "rw", "bytes of it; 0 = none"),
    Register(Exchange.CALL_SLOT, 128, "rw", "call descriptor written by the host"),
    Register(Exchange.COUNTERS, 512, "ro", "performance counters, 64 bits each, in the order of `counter`"),
    Register(
        Exchange.TRANSPORT,
        1024,
        "rw",
        "registers of the transport: a word for each session, then counters and limits",
    ),
    Register(
        Exchange.PROGRAMS,
        32,
        "rw",
        "loads programs: slot, list, move, signature, address (2) and number of moves in memory; docs/rtl/replay.md",
    ),
    Register(Exchange.RX_BUFFERS, 4096, "ro", "state of the receive buffers"),
    Register(
        Exchange.COMMUNICATORS,
        1024,
        "rw",
        "16 words each: 8 for the microcontroller, 8 for the data path; the last: take (1) or give up (0) a window",
    ),
    Register(
        Exchange.MEMBERS,
        4096,
        "rw",
        "a word for each rank of each communicator: the transport's session that leads there",
    ),
)

#: Bytes of exchange memory.
EXCHANGE_BYTES: Final = 16384
