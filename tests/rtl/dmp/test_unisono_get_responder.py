"""unisono_get_responder: requests of all kinds become the jobs, questions and refusals that its page promises."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest
import records
from bus import Pause, Waits, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, scaled, simulate

S = records.load()
OP0_MEMORY = 1
SEGMENT_MAX = 8192
QUIET = 400
"""Cycles with nothing to wait for after which something must have happened."""


@dataclass(frozen=True)
class Request:
    """What stands behind Rx and window_writes of one request."""

    header: Any
    session: int
    communicator: int
    peer: int
    fits: bool
    address: int
    segment: int

    def received(self) -> int:
        """The request as a received_t."""
        header = int.from_bytes(self.header.encode(), "little")
        return ((self.session << 512 | header) << 4 | self.communicator) << 6 | self.peer

    def reason(self) -> str:
        """Why it is refused, or nothing."""
        if not self.fits:
            return "beyond the window"
        if self.header.segment_bytes:
            return "a limit"
        if not self.header.message_bytes:
            return "no bytes"
        return "" if self.segment else "no segment"

    def pieces(self) -> list[tuple[int, int]]:
        """Offset and bytes of each segment: all as long as the communicator allows, but the last."""
        size = self.header.message_bytes
        return [(at, min(self.segment, size - at)) for at in range(0, size, self.segment)]


def wanted_job(request: Request, offset: int, size: int, other_bits: int) -> int:
    """The job_t of a segment, field by field from the highest bit; all that is not named is 0."""
    asked = request.header
    header = S.Header(
        type=S.MessageType.WRITE,
        dtype=asked.dtype,
        first=offset == 0,
        last=offset + size == asked.message_bytes,
        communicator=asked.communicator,
        epoch=asked.epoch,
        source=asked.destination,
        destination=request.peer,
        segment_bytes=size,
        message_bytes=asked.message_bytes,
        offset=offset,
        token_slot=asked.token_slot,
        token_generation=asked.token_generation,
    )
    fields = (
        *(
            (0, 12),
            (size, 14),
            (0, other_bits),
            (0, 2),
            (OP0_MEMORY, 2),
            (request.address + offset & (1 << 64) - 1, 64),
        ),
        *((0, 2), (0, 64), (0, 1), (0, 10), (0, 2), (0, 64), (0, 2), (1, 1), (1, 1)),
        *((int.from_bytes(header.encode(), "little"), 512), (request.communicator, 4), (request.peer, 6)),
        *((request.session, 16), (0, 1)),
    )
    job = 0
    for value, width in fields:
        job = job << width | value
    return job


def random_request(rng: random.Random) -> Request:
    segment = rng.choice((1, 64, rng.randint(1, 64), 256, 4096, rng.randint(1, SEGMENT_MAX), SEGMENT_MAX))
    pieces = rng.choice((1, 1, 2, 3, rng.randint(4, 9)))
    size = max(1, segment * pieces - rng.choice((0, 0, 1, segment - 1, rng.randrange(segment))))
    unusual = rng.random()
    address = rng.getrandbits(64)
    if rng.random() < 0.1:
        address = (1 << 64) - rng.randint(1, size)
    return Request(
        header=records.noisy_header(
            rng,
            type=S.MessageType.CONTROL,
            source=rng.getrandbits(6),
            destination=rng.getrandbits(6),
            tag=int(S.ControlKind.GET),
            segment_bytes=rng.choice((1, 8, 1 << 31)) if unusual < 0.06 else 0,
            message_bytes=0 if 0.06 <= unusual < 0.12 else size,
            token_slot=0xFF00 | rng.randrange(8) if rng.random() < 0.5 else rng.getrandbits(16),
        ),
        session=rng.getrandbits(16),
        communicator=rng.getrandbits(4),
        peer=rng.getrandbits(6),
        fits=unusual < 0.9,
        address=address,
        segment=0 if 0.12 <= unusual < 0.18 else segment,
    )


class Bench:
    """Drives every port cycle by cycle, and compares what comes out with what is still owed."""

    def __init__(self, dut, name: str) -> None:
        self.dut, self.rng = dut, new_random(name)
        self.to_come: deque[Request] = deque()
        self.taken: deque[Request] = deque()
        """Taken and not yet served; the first is being served."""
        self.todo: deque[tuple[int, int]] = deque()
        """Segments of the first that have no job yet."""
        self.granted = False
        self.asked: int | None = None
        """Cycles until the transport answers, if it was asked."""
        self.seen: Counter[str] = Counter()
        self.cycle = self.quiet = 0
        self.jobs: list[int] = []
        """In which cycles jobs went."""
        self.arrivals: list[int] = []
        self.heard_pause: Pause = never
        self.space_pause: Pause = never
        self.job_pause: Pause = never
        self.refuse_pause: Pause = never
        self.refusals_of_space = 0.0
        self.patience = 1
        self.answer_after: int | None = None
        """Cycles after which the transport answers, if it is not to be random."""
        self.other_bits = len(dut.job_o) - len_of_known()
        self.waits = Waits(self.seen)
        for port in ("heard_valid", "space_ready", "space_answer", "job_ready", "refuse_ready"):
            getattr(dut, f"{port}_i").value = 0
        self.valid = self.ready_space = self.ready_job = self.ready_refuse = self.answers = self.grants = False

    def drive(self) -> None:
        dut, rng = self.dut, self.rng
        if not self.valid:
            self.valid = bool(self.to_come) and not self.heard_pause()
            # Noise where nothing is offered.
            one = self.to_come[0] if self.valid else random_request(rng)
            dut.heard_i.value, dut.heard_fits_i.value = one.received(), one.fits
            dut.heard_address_i.value, dut.heard_segment_i.value = one.address, one.segment
            dut.heard_valid_i.value = self.valid
        self.ready_space, self.ready_job = not self.space_pause(), not self.job_pause()
        self.ready_refuse = not self.refuse_pause()
        dut.space_ready_i.value, dut.job_ready_i.value = self.ready_space, self.ready_job
        dut.refuse_ready_i.value = self.ready_refuse
        self.answers = self.asked == 0
        self.grants = rng.random() >= self.refusals_of_space
        dut.space_answer_i.value = self.answers
        dut.space_granted_i.value = self.grants if self.answers else rng.getrandbits(1)

    async def step(self) -> None:
        dut = self.dut
        self.drive()
        await RisingEdge(dut.clk_i)
        self.cycle += 1
        self.quiet += 1
        asks, gives = bool(int(dut.space_valid_o.value)), bool(int(dut.job_valid_o.value))
        refuses, takes = bool(int(dut.refuse_valid_o.value)), bool(int(dut.heard_ready_o.value))
        assert asks + gives + refuses <= 1, f"cycle {self.cycle}: two things at once"
        where = f"cycle {self.cycle}: {self.taken[0] if self.taken else 'no request'}, {list(self.todo)[:3]}"

        question = (int(dut.space_session_o.value), int(dut.space_bytes_o.value)) if asks else None
        if asks:
            assert self.todo, f"a question for nothing; {where}"
            assert not self.granted, f"asked again; {where}"
            assert self.asked is None, f"two questions at once; {where}"
            assert question == (self.taken[0].session, self.todo[0][1]), f"{question}; {where}"
        asked = self.waits.taken("a question", asks, self.ready_space, question)

        job = int(dut.job_o.value) if gives else None
        if gives:
            assert self.todo, f"a job for nothing; {where}"
            assert self.granted, f"a job without space; {where}"
            wanted = wanted_job(self.taken[0], *self.todo[0], self.other_bits)
            assert job == wanted, f"{job:#x} instead of {wanted:#x}; {where}"
        given = self.waits.taken("a job", gives, self.ready_job, job)

        names = ("communicator", "peer", "slot", "generation")
        refusal = tuple(int(getattr(dut, f"refuse_{name}_o").value) for name in names) if refuses else None
        if refuses:
            assert self.taken, f"a refusal of nothing; {where}"
            one = self.taken[0]
            assert one.reason(), f"refused without a reason; {where}"
            token = one.header.token_slot, one.header.token_generation
            assert refusal == (one.communicator, one.peer, *token), f"{refusal}; {where}"
        refused = self.waits.taken("a refusal", refuses, self.ready_refuse, refusal)

        # What this cycle changes.
        inside = len(self.taken)
        if self.answers:
            self.granted, self.asked = self.grants, None
            self.seen["space" if self.grants else "no space"] += 1
        elif self.asked is not None:
            self.asked -= 1
        if asked:
            self.asked = self.rng.randrange(self.patience) if self.answer_after is None else self.answer_after - 1
        if given:
            self.todo.popleft()
            self.granted = False
            self.jobs.append(self.cycle)
            if not self.todo:
                self.seen["served"] += 1
                self.taken.popleft()
                self.next()
        if refused:
            self.seen[self.taken.popleft().reason()] += 1
            self.next()
        if self.valid:
            if takes:
                self.taken.append(self.to_come.popleft())
                self.arrivals.append(self.cycle)
                self.valid = False
                if len(self.taken) == 1:
                    self.next()
            else:
                self.seen["the queue is full"] += 1
                # What is being served still has its place.
                assert inside == parameters()["Requests"], f"no place, but only {inside} requests are inside"
        if asked or given or refused or self.answers or not self.taken:
            self.quiet = 0
        assert self.quiet < QUIET, f"nothing goes on; {where}"

    def next(self) -> None:
        """Another request is the first."""
        if self.taken and not self.taken[0].reason():
            self.todo.extend(self.taken[0].pieces())
            self.seen[f"{min(3, len(self.todo))} segments"] += 1
            if self.taken[0].address + self.taken[0].header.message_bytes > 1 << 64:
                self.seen["around the end"] += 1

    async def finish(self, cycles: int = 100000) -> None:
        """Until all that is to come has been served."""
        for _ in range(cycles):
            if not self.to_come and not self.taken:
                return
            await self.step()
        raise AssertionError(f"{len(self.to_come)} requests have not come, {len(self.taken)} were not served")


def len_of_known() -> int:
    """Bits of job_t without function and datatype, whose widths are the specification's."""
    return 12 + 14 + 2 + 2 + 64 + 2 + 64 + 1 + 10 + 2 + 64 + 2 + 2 + 512 + 4 + 6 + 16 + 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_requests(dut):
    bench = Bench(dut, "responder")
    rng = bench.rng
    await start_clock_and_reset(dut)
    for part in range(scaled(80, 30)):
        paces = [rng.choice((never, share(rng, 0.4), share(rng, 0.85), bursts(rng))) for _ in "hsjr"]
        bench.heard_pause, bench.space_pause, bench.job_pause, bench.refuse_pause = paces
        bench.refusals_of_space = rng.choice((0.0, 0.3, 0.8))
        bench.patience = rng.choice((1, 3, 12))
        bench.to_come.extend(random_request(rng) for _ in range(20))
        if part % 3:
            await bench.finish()
        else:  # the next phase finds requests that wait
            for _ in range(200):
                await bench.step()
    await bench.finish()
    for _ in range(10):
        await bench.step()
    reasons = ("beyond the window", "a limit", "no bytes", "no segment")
    stalls = ("a question waits", "a job waits", "a refusal waits", "no space")
    for what in (*reasons, *stalls, "served", "1 segments", "2 segments", "3 segments", "around the end"):
        assert bench.seen[what] >= 5, f"{what}: {bench.seen}"
    cocotb.log.info("%s", dict(bench.seen))


@cocotb.test(timeout_time=500, timeout_unit="us")
async def there_is_a_place_for_every_request(dut):
    """While the transport has no space, Requests of them are taken, one in each cycle, and then no more."""
    places = parameters()["Requests"]
    bench = Bench(dut, "places")
    await start_clock_and_reset(dut)
    bench.space_pause = bench.refuse_pause = lambda: True
    bench.to_come.extend(random_request(bench.rng) for _ in range(places + 3))
    for _ in range(places + 10):
        bench.quiet = 0
        await bench.step()
    assert len(bench.taken) == places
    assert bench.arrivals == list(range(bench.arrivals[0], bench.arrivals[0] + places))
    assert bench.seen["the queue is full"]
    bench.space_pause = bench.refuse_pause = never
    await bench.finish()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def as_fast_as_promised(dut):
    """The first job 6 cycles after its request (4 with a small queue) and the transport's answer, the others 3."""
    bench = Bench(dut, "speed")
    await start_clock_and_reset(dut)
    first = 6 if parameters()["Requests"] > 64 else 4
    for wait in (1, 4):
        bench.answer_after = wait
        for _ in range(4):
            request = random_request(bench.rng)
            while request.reason() or len(request.pieces()) < 3:
                request = random_request(bench.rng)
            bench.to_come.append(request)
            bench.jobs.clear()
            bench.arrivals.clear()
            await bench.finish()
            begin = bench.arrivals[0] + first + wait
            assert bench.jobs == [begin + (3 + wait) * number for number in range(len(bench.jobs))]


@pytest.mark.parametrize("requests", [512, 4, full(5)])
def test_unisono_get_responder(requests):
    simulate("unisono_get_responder", __file__, {"Requests": requests})
