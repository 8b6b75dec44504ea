"""The extension module: Unisono's engine and interpreter. Use the package; this is its inside."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

_Hints = tuple[int, int, float, bool, str, int]
_Status = tuple[int, int, int, int, int]

class Program:
    @property
    def size(self) -> int: ...

class Request:
    def wait(self, seconds: float) -> bool: ...
    def test(self) -> bool: ...
    def start(self) -> None: ...
    def offload(self) -> None: ...
    def on_complete(self, function: Callable[[], object]) -> None: ...
    @property
    def received(self) -> int: ...
    def status(self) -> _Status: ...

class Graph:
    sources: int
    destinations: int

class Communicator:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def number(self) -> int: ...
    name: str
    def split(self, colour: int, key: int, hints: _Hints) -> Communicator | None: ...
    def dup(self, hints: _Hints) -> Communicator | None: ...
    def subset(self, ranks: list[int], hints: _Hints) -> Communicator | None: ...
    def create_group(self, ranks: list[int], tag: int, hints: _Hints) -> Communicator | None: ...
    def free(self) -> None: ...
    def set_timeout(self, seconds: float) -> None: ...
    def revoke(self, reason: str) -> None: ...
    def group_begin(self) -> None: ...
    def group_end(self) -> None: ...
    def graph(self, sources: list[int], destinations: list[int]) -> Graph: ...
    def shrink(self) -> Communicator: ...
    def agree(self, value: int) -> int: ...
    def failed(self) -> list[int]: ...
    def last_algorithm(self) -> tuple[str | None, bool]: ...
    def counters(self) -> list[tuple[str, int]]: ...
    def state(self) -> tuple[int, int, int, int, int, int, float, int, int, bool, bool, int, int]: ...
    def window(self, buffer: npt.NDArray[Any] | None) -> object: ...
    def start(
        self,
        collective: int,
        datatype: int,
        op: int,
        in_place: bool,
        root: int,
        tag: int,
        count: int,
        src: npt.NDArray[Any] | None,
        dst: npt.NDArray[Any] | None,
        send_counts: list[int] | None,
        send_displacements: list[int] | None,
        recv_counts: list[int] | None,
        recv_displacements: list[int] | None,
        algorithm: str | None,
        window_offset: int,
        wait_for: list[Request],
        timeout: float,
        program: Program | None,
        graph: Graph | None,
        send_datatypes: list[int] | None,
        recv_datatypes: list[int] | None,
        wire_datatype: int,
        element_bytes: int,
        starts: bool,
    ) -> Request: ...
    def quick(self, collective: int, src: object, dst: object, op: object, root: object, in_place: object) -> bool: ...
    def quick_counted(
        self,
        collective: int,
        src: object,
        dst: object,
        op: object,
        root: object,
        in_place: object,
        send_counts: object,
        send_displacements: object,
        recv_counts: object,
        recv_displacements: object,
    ) -> bool: ...
    def quick_send(self, src: object, peer: object, tag: object) -> bool: ...
    def quick_recv(self, dst: object, peer: object, tag: object) -> int: ...
    def quick_recv_status(self, dst: object, peer: object, tag: object) -> _Status | None: ...
    def quick_put(self, src: object, peer: object, offset: object) -> bool: ...
    def quick_get(self, dst: object, peer: object, offset: object) -> bool: ...
    def probe(self, source: int, tag: int, timeout: float) -> _Status: ...
    def iprobe(self, source: int, tag: int) -> _Status | None: ...
    def quick_sendrecv(
        self, src: object, to: object, send_tag: object, dst: object, source: object, recv_tag: object
    ) -> int: ...
    def run(
        self,
        collective: int,
        datatype: int,
        op: int,
        in_place: bool,
        root: int,
        tag: int,
        count: int,
        src: npt.NDArray[Any] | None,
        dst: npt.NDArray[Any] | None,
        send_counts: list[int] | None,
        send_displacements: list[int] | None,
        recv_counts: list[int] | None,
        recv_displacements: list[int] | None,
        algorithm: str | None,
        window_offset: int,
        wait_for: list[Request],
        timeout: float,
        program: Program | None,
        graph: Graph | None,
        send_datatypes: list[int] | None,
        recv_datatypes: list[int] | None,
        wire_datatype: int,
        element_bytes: int,
    ) -> None: ...
    def sendrecv(
        self,
        datatype: int,
        element_bytes: int,
        src: npt.NDArray[Any],
        count: int,
        to: int,
        send_tag: int,
        dst: npt.NDArray[Any],
        source: int,
        recv_tag: int,
        wait_for: list[Request],
        timeout: float,
        wire_datatype: int,
    ) -> int: ...

class Allocation:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def another(self, bytes: int) -> Allocation: ...

class Registration:
    def __init__(self, buffer: object) -> None: ...
    @property
    def kernel_copies(self) -> bool: ...
    @property
    def allocated(self) -> bool: ...

class Context:
    def allocate(self, bytes: int) -> Allocation: ...
    @property
    def world(self) -> Communicator: ...
    def dump(self, history: bool) -> str: ...
    def configure(
        self,
        eager_limit: int,
        segment_bytes: int,
        rx_buffer_count: int,
        timeout: float,
        lanes: int,
        offload: int,
        determinism: int,
        algorithms: str | None,
        deadlines: int,
    ) -> None: ...
    def progress(self) -> None: ...
    def descriptor(self) -> int: ...
    def arm(self) -> bool: ...
    def abort(self, reason: str) -> None: ...
    def settings(self) -> tuple[int, int, int, float, bool, bool, int, str, int]: ...
    def reset(self) -> None: ...
    def take_array_memory(self) -> object: ...
    def close(self, compares: bool) -> None: ...

class ThreadJob:
    def __init__(self, size: int, network: str = "shm") -> None: ...

def init(
    eager_limit: int,
    segment_bytes: int,
    rx_buffer_count: int,
    timeout: float,
    lanes: int,
    offload: int,
    determinism: int,
    algorithms: str | None,
    deadlines: int,
) -> Context: ...
def join(
    rank: int,
    size: int,
    put: Callable[[str, bytes, float], None],
    get: Callable[[str, float], bytes | None],
    eager_limit: int,
    segment_bytes: int,
    rx_buffer_count: int,
    timeout: float,
    lanes: int,
    offload: int,
    determinism: int,
    algorithms: str | None,
    deadlines: int,
) -> Context: ...
def thread_context(
    job: ThreadJob,
    rank: int,
    eager_limit: int,
    segment_bytes: int,
    rx_buffer_count: int,
    timeout: float,
    lanes: int,
    offload: int,
    determinism: int,
    algorithms: str | None,
    deadlines: int,
) -> Context: ...
def dump_process(pid: int, what: int) -> str: ...
def process_configure(pid: int, eager_limit: int, segment_bytes: int, rx_buffer_count: int, timeout: float) -> None: ...
def process_reset(pid: int) -> None: ...
def set_wait_hook(function: Callable[[], object] | None) -> None: ...
def set_in_place(sentinel: object) -> None: ...
def wait_any(requests: list[Request], seconds: float) -> int | None: ...
def wait_some(requests: list[Request], seconds: float) -> list[int]: ...
def wait_all(requests: list[Request], seconds: float) -> bool: ...
def load_program(path: str) -> Program: ...
def parse_program(file: bytes) -> Program: ...
def version() -> str: ...
def calibrate(most_ranks: int) -> str: ...
def tune_network(
    text: str,
    transport: str,
    latency: float,
    message: float,
    byte: float,
    near_latency: float,
    near_message: float,
    connections: int,
    register_from: int | None,
    most_ranks: int,
) -> str: ...
def check_tuning(text: str) -> dict[str, Any]: ...
def tuning_in_force() -> dict[str, Any]: ...
def usual_tuning_path() -> str: ...
def bytes_of(datatype: int) -> int: ...
def cores_for_ranks() -> int: ...
def copy_class() -> dict[str, Any]: ...
def measure_copy_class() -> dict[str, Any]: ...
def copied_from(collective: int, ranks: int) -> int | None: ...
def explain(
    collective: int,
    size: int,
    count: int,
    datatype: int,
    op: int,
    root: int,
    in_place: bool,
    reachable: bool,
    cores: int,
    algorithm: str = "",
    hosts: Sequence[int] = ...,
) -> dict[str, Any]: ...
def cgroup_quota(root: str) -> tuple[float, str]: ...
def algorithms() -> list[dict[str, Any]]: ...
def interpret(
    collective: int,
    algorithm: str,
    size: int,
    root: int,
    op: int,
    datatype: int,
    count: int,
    in_place: bool,
    group_size: int,
    src: Sequence[Any],
    dst: Sequence[Any],
    layouts: Sequence[Sequence[Sequence[int]]],
    policy: str,
    seed: int,
) -> list[bytes]: ...
def check_algorithm(
    collective: int, algorithm: str, ranks: Sequence[int], schedules: int, seed: int, mixes: int = 12
) -> dict[str, Any]: ...
def build_program(ranks: Sequence[tuple[bytes, Sequence[int], Sequence[int]]]) -> bytes: ...
def program_file_listings(file: bytes) -> list[str]: ...
def draw_program(file: bytes) -> str: ...
def check_program(
    file: bytes,
    schedules: int,
    seed: int,
    meaning: tuple[int, int, int | None, bool, int | None, list[int]] | None,
    mixes: int = 12,
) -> dict[str, Any]: ...
def program_file(
    collective: int,
    algorithm: str,
    size: int,
    root: int,
    op: int,
    datatype: int,
    count: int,
    in_place: bool,
    group_size: int,
) -> bytes: ...
def draw_algorithm(
    collective: int,
    algorithm: str,
    size: int,
    root: int,
    op: int,
    datatype: int,
    count: int,
    in_place: bool,
    group_size: int,
) -> str: ...
def program_listing(
    collective: int,
    algorithm: str,
    size: int,
    rank: int,
    root: int,
    op: int,
    datatype: int,
    count: int,
    in_place: bool,
    group_size: int,
) -> str: ...
def array_at(address: int, count: int, dtype: object, owner: object) -> npt.NDArray[Any]: ...
def create_op(
    name: str, function: Callable[[memoryview, memoryview, memoryview, int], str | None], commutative: bool
) -> int: ...
def free_op(op: int) -> None: ...
def threads_inside() -> int: ...
def restore_array_memory(before: object) -> None: ...
def forget_threads() -> None: ...
def fail_at_exit() -> None: ...
