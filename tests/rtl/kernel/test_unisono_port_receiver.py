"""unisono_port_receiver: a receive for each message to a port, one at a time for each."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import pytest
import records
from bus import ChannelSink, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, FallingEdge
from hdl import full, parameters, scaled, simulate

S = records.load()
RANK_BITS, COMMUNICATOR_BITS = 6, 4
STREAM_TAG = 0xFFFF0000
BYTES = {
    **dict.fromkeys(("BYTE", "INT8", "UINT8", "BOOL"), 1),
    **dict.fromkeys(("FP16", "BF16", "INT16", "UINT16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("COMPLEX128", "FP64_INT32", "INT64_INT64"), 16),
}


class Bench:
    """Says what was heard, takes the calls, and knows which must come."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.ports = parameters()["StreamPorts"]
        self.waiting: list[deque[tuple[int, int, Any, int]]] = [deque() for _ in range(self.ports)]
        self.calls = ChannelSink(dut, "call", ("data", "last"))
        self.busy = [False] * self.ports
        dut.heard_valid_i.value = dut.begins_valid_i.value = dut.answer_valid_i.value = 0

    def message(self) -> tuple[Any, int, int]:
        """A header, and whether it is of a message to a port: which, or -1."""
        rng = self.rng
        header = records.noisy_header(
            rng,
            point_to_point=rng.random() < 0.9,
            tag=rng.choice((rng.getrandbits(32), *(STREAM_TAG + rng.getrandbits(bits) for bits in (1, 2, 2, 4, 16)))),
            type=rng.choice((S.MessageType.EAGER, S.MessageType.REQUEST, *S.MessageType)),
            message_bytes=rng.choice((0, 16, 4096, 16 * rng.getrandbits(30))),
        )
        port = header.tag - STREAM_TAG
        begins = header.type == S.MessageType.REQUEST or (header.type == S.MessageType.EAGER and header.first)
        mine = header.point_to_point and begins and 0 <= port < self.ports
        return header, port if mine else -1, rng.randrange(1 << RANK_BITS)

    async def hear(self, count: int) -> None:
        """So many headers, some of them one behind the other."""
        for _ in range(count):
            header, port, source = self.message()
            communicator = self.rng.randrange(1 << COMMUNICATOR_BITS)
            raw = int.from_bytes(header.encode(), "little")
            word = (self.rng.getrandbits(16) << 512 | raw) << COMMUNICATOR_BITS | communicator
            self.dut.heard_i.value = word << RANK_BITS | source
            self.dut.heard_valid_i.value = 1
            await FallingEdge(self.dut.clk_i)
            self.dut.heard_valid_i.value = 0
            if port >= 0:
                self.waiting[port].append((communicator, source, header.dtype, header.message_bytes))
            if self.rng.random() < 0.3:
                await ClockCycles(self.dut.clk_i, self.rng.randint(1, 6), rising=False)

    async def expect_calls(self) -> None:
        """Each port that is free and has a message gives its call; no other one comes."""
        due = {port for port in range(self.ports) if not self.busy[port] and self.waiting[port]}
        while due:
            call = await self.take()
            port = call.call_id - 1
            assert port in due, f"port {port}, where {due} are due"
            communicator, source, dtype, size = self.waiting[port].popleft()
            expected = S.CallDescriptor(
                collective=S.Collective.RECV, communicator=communicator, dtype=dtype, root=source,
                count=size // BYTES.get(dtype.name, 1 if dtype == S.Datatype.NONE else 8), tag=STREAM_TAG + port,
                dst_stream=True, dst_address=port, call_id=port + 1,
            )  # fmt: skip
            assert call == expected
            self.busy[port] = True
            due.remove(port)
        await ClockCycles(self.dut.clk_i, 20, rising=False)
        assert not self.calls.words[0], "a call of a port that has one, or has no message"

    async def take(self) -> Any:
        """The next call's descriptor."""
        data, width = b"", parameters()["DataBytes"]
        while True:
            word, last = await self.calls.get()
            data += word.to_bytes(width, "little")
            if last:
                return S.CallDescriptor.decode(data)

    async def answer(self, port: int) -> None:
        assert self.busy[port]
        self.busy[port] = False
        self.dut.answer_i.value = self.rng.getrandbits(16) << 32 | (port + 1)
        self.dut.answer_valid_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.answer_valid_i.value = 0

    async def begin_anew(self) -> None:
        """A communicator begins anew: what was heard of it before is forgotten."""
        communicator = self.rng.randrange(1 << COMMUNICATOR_BITS)
        self.dut.begins_communicator_i.value = communicator
        self.dut.begins_valid_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.begins_valid_i.value = 0
        self.waiting = [deque(one for one in port if one[0] != communicator) for port in self.waiting]


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_messages(dut: Any) -> None:
    rng = new_random("port receiver")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    await FallingEdge(dut.clk_i)
    forgotten = 0
    for _ in range(scaled(200)):
        for _, pace in paces(rng):
            bench.calls.pauses = [pace]
            await bench.hear(rng.randint(0, 30))
            await bench.expect_calls()
            if rng.random() < 0.5:
                before = sum(map(len, bench.waiting))
                await bench.begin_anew()
                forgotten += before - sum(map(len, bench.waiting))
            for port in range(bench.ports):
                if bench.busy[port] and rng.random() < 0.6:
                    await bench.answer(port)
    assert forgotten > 10
    while any(bench.waiting):
        await bench.expect_calls()
        for port in range(bench.ports):
            if bench.busy[port]:
                await bench.answer(port)


@pytest.mark.parametrize(("ports", "data_bytes"), [full(1, 64), (3, 64), full(16, 16)])
def test_unisono_port_receiver(ports: int, data_bytes: int) -> None:
    simulate("unisono_port_receiver", __file__, {"StreamPorts": ports, "DataBytes": data_bytes})
