"""What all calls of a communicator have in common."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, cast

from . import _core
from ._arguments import factor, integer, integers, requests_of, seconds_of, wire_datatype
from ._arrays import Array
from ._buffers import NO_LAYOUT, Arguments, Buffers, Call, Layout
from ._options import Options
from ._spec import MAX_COUNT, Collective, Func
from ._texts import shown, text_of
from .errors import InvalidArgumentError, InvalidCountError, InvalidDatatypeError
from .graph import Graph
from .program import Program
from .request import Request

if TYPE_CHECKING:
    from .communicator import Communicator


class Calls:
    """Makes calls of a communicator, and runs or starts them."""

    def __init__(self, core: _core.Communicator, context: _core.Context) -> None:
        self._core = core
        self._context = context
        self._number: Final = core.number
        self._groups: dict[int, list[Request]] = {}  # calls of open groups, by thread
        #: This process's number in the communicator, 0 .. size-1.
        self.rank: Final = core.rank
        #: Number of ranks.
        self.size: Final = core.size

    def _made(self, core: _core.Communicator) -> Communicator:
        """A communicator of the same context."""
        raise NotImplementedError

    @property
    def _all(self) -> Communicator:
        """The communicator that this is: nothing else is one of these."""
        return cast("Communicator", self)

    def _blocks(self, operation: str, name: str, array: Array) -> int:
        """Elements of one of `size` blocks of an array."""
        if array.size % self.size:
            raise InvalidCountError(
                f"{operation}: {name} has {array.size} elements; needed is a multiple of the {self.size} ranks"
            )
        return array.size // self.size

    def _block_shape(self, array: Array) -> tuple[int, ...]:
        """Shape of one block: the leading axis is cut, or else the block is flat."""
        if array.ndim > 1 and array.shape[0] == self.size:
            return array.shape[1:]
        if array.ndim >= 1 and array.shape[0] % self.size == 0:
            return (array.shape[0] // self.size, *array.shape[1:])
        return (array.size // self.size,)

    def _layout(
        self, operation: str, side: str, counts: Any, displacements: Any, entries: int | None = None, of: str = "ranks"
    ) -> Layout:
        needed = self.size if entries is None else entries
        layout = Layout(
            integers(operation, f"{side}counts", counts), integers(operation, f"{side}displacements", displacements)
        )
        for name, values in (("counts", layout.counts), ("displacements", layout.displacements)):
            if values is not None and len(values) != needed:
                raise InvalidCountError(
                    f"{operation}: {side}{name} has {len(values)} entries; needed is one for each of the {needed} {of}"
                )
            for rank, value in enumerate(values or ()):
                if not 0 <= value <= MAX_COUNT:
                    raise InvalidCountError(
                        f"{operation}: {side}{name}[{rank}] is {value}; allowed are 0 to {MAX_COUNT} elements"
                    )
        return layout

    def _call(
        self,
        collective: Collective,
        buffers: Buffers,
        count: int,
        options: Options,
        *,
        op: Func = Func.NONE,
        root: int = 0,
        tag: int = 0,
        offset: int = 0,
        sends: Layout = NO_LAYOUT,
        receives: Layout = NO_LAYOUT,
        program: Program | None = None,
        graph: Graph | None = None,
        datatypes: tuple[list[int] | None, list[int] | None] = (None, None),
    ) -> Call:
        if unknown := options.keys() - Options.__annotations__.keys():
            raise TypeError(
                f"{buffers.operation}: {', '.join(sorted(unknown))} is no option; options are "
                f"{', '.join(Options.__annotations__)}"
            )
        if op != Func.NONE and buffers.own_bytes:
            raise InvalidDatatypeError(
                f"{buffers.operation}: elements of {buffers.own_bytes} bytes are not folded by this call; allowed "
                "are 1, 2, 4, 8 and 16"
            )
        given = options.get("count")
        timeout = options.get("timeout")
        algorithm = options.get("algorithm")
        operation = buffers.operation
        if algorithm is not None:
            text_of(operation, "algorithm", algorithm, "pass its name, or None,")
        starts = options.get("start", True)
        if not isinstance(starts, bool):
            raise InvalidArgumentError(f"{operation}: start is {shown(starts)}; allowed are True and False")
        if not starts:
            buffers.need_lasting(
                "start=False means a call that uses its buffers in place, at each start", of_values=True
            )
        before = requests_of(operation, options.get("wait_for") or ())
        if before:
            buffers.need_lasting("it would be packed before what the call waits for has ended")
        pair = collective in (Collective.SEND, Collective.RECV, Collective.PUT, Collective.GET)
        arguments = Arguments(
            collective,
            buffers.datatype,
            op,
            buffers.in_place,
            integer(operation, "peer" if pair else "root", root),
            integer(operation, "tag", tag),
            count if given is None else integer(operation, "count", given),
            buffers.src,
            buffers.dst,
            sends.counts,
            sends.displacements,
            receives.counts,
            receives.displacements,
            algorithm,
            offset,
            before,
            0.0 if timeout is None else seconds_of(operation, timeout),
            None if program is None else program._core,
            None if graph is None else graph._core,
            *datatypes,
            wire_datatype(operation, options.get("wire_datatype")),
            buffers.own_bytes,
            buffers.src_port,
            buffers.dst_port,
            factor(operation, "pre_scale", options.get("pre_scale")),
            factor(operation, "post_scale", options.get("post_scale")),
        )
        return Call(arguments, buffers, starts)

    def _quick_start(
        self, options: Options, operation: str, collective: int, src: Any, dst: Any, op: Any, root: Any, in_place: Any
    ) -> Request | None:
        """Starts a collective in the short way; None, having done nothing, if it must go the long one."""
        if options or self._groups:
            return None
        started = self._core.quick_start(collective, src, dst, op, root, in_place)
        if started is None:
            return None
        return Request(started[0], started[1], None, (operation, self._number, collective, root or 0, 0))

    def _quick_start_counted(
        self,
        options: Options,
        operation: str,
        collective: int,
        src: Any,
        dst: Any,
        op: Any,
        root: Any,
        in_place: Any,
        send_counts: Any,
        send_displacements: Any,
        recv_counts: Any,
        recv_displacements: Any,
    ) -> Request | None:
        """The same of a collective with counts."""
        if options or self._groups:
            return None
        started = self._core.quick_start_counted(
            collective,
            src,
            dst,
            op,
            root,
            in_place,
            send_counts,
            send_displacements,
            recv_counts,
            recv_displacements,
        )
        if started is None:
            return None
        return Request(started[0], started[1], None, (operation, self._number, collective, root or 0, 0))

    @staticmethod
    def _blocks_here(call: Call) -> None:
        if not call.starts:
            raise InvalidArgumentError("start=False was given for a call that blocks; use its _async form")

    def _run(self, call: Call) -> Array | None:
        self._blocks_here(call)
        if call.by_hand is None:
            self._core.run(*call.arguments)
        else:
            call.by_hand()
        return call.buffers.finish()

    def _result(self, call: Call) -> Array:
        result = self._run(call)
        assert result is not None or call.arguments.dst_port >= 0
        return cast("Array", result)

    def _start(self, call: Call) -> Request:
        if call.by_hand is not None:
            raise InvalidArgumentError(
                f"{call.buffers.operation}: elements of {call.arguments.own_bytes} bytes are folded by calls that "
                f"block; pass elements of 1, 2, 4, 8 or 16 bytes"
            )
        core = self._core.start(*call.arguments, call.starts)
        told = call.arguments
        of = (call.buffers.operation, self._number, told.collective, told.root, told.tag)
        unpacks = call.buffers if call.starts and call.buffers.finishes else None
        request = Request(core, call.buffers.target, unpacks, of)
        if self._groups and call.starts and (group := self._groups.get(threading.get_ident())) is not None:
            group.append(request)
        return request
