"""The rest of the engine, as the call front end sees it: microcontroller, scoreboard, kernels, host.

`FrontBench` plays all of them with random timing and checks every event against the calls that were submitted. What a
call must answer is decided here, from its descriptor, from the calls it waits for and from what was done to it.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from bus import ChannelSink, Packet, StreamSource, new_random
from call_descriptors import NOP_RUN, SLOTS, spec
from call_descriptors import field as part
from cocotb.triggers import RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp  # type: ignore[import-untyped]

START, MORE, CONTROL = 1, 2, 3
LATE_CODE = 99
CODE = spec.ErrorCode
REGISTER = spec.Exchange
REGIONS = ("src", "dst", "scratch", "params")


@dataclass(eq=False)
class Call:
    """A call, what is going to be done to it, and what has happened to it."""

    requester: int
    index: int
    value: int
    refused: int = 0
    """Code with which the descriptor itself must be refused."""
    plan: str = "ok"
    code: int = 0
    items: int = 1
    delay: int = 20
    waits: list[Call] = field(default_factory=list)

    started: int | None = None
    """Cycle in which its slot or kernel took it."""
    ended: bool = False
    allowed: set[int] = field(default_factory=set)
    """Codes that may be answered, by what has been done to it."""
    answer: int | None = None

    @property
    def call_id(self) -> int:
        return part(self.value, "call_id")

    @property
    def nop(self) -> bool:
        return bool(part(self.value, "collective") == spec.Collective.NOP and part(self.value, "algorithm") == 0)

    @property
    def for_kernel(self) -> bool:
        return bool(part(self.value, "collective") == spec.Collective.NOP and part(self.value, "algorithm") != 0)

    def has_ended(self) -> bool:
        """Whether a call that waits for it may start."""
        if self.answer is not None or self.refused or self.ended:
            return True
        return self.nop and all(call.has_ended() for call in self.waits)

    def order(self) -> tuple[int, int, str] | None:
        """Calls of one requester with the same of these start in the order of their submission."""
        c = spec.Collective
        kind = part(self.value, "collective")
        if kind in (c.NOP, c.COPY, c.COMBINE):
            return None
        name = {c.SEND: "send", c.RECV: "recv", c.PUT: "put", c.GET: "get"}.get(kind, "collective")
        return self.requester, part(self.value, "communicator"), name


@dataclass
class Slot:
    """What the microcontroller and the scoreboard know of a slot."""

    call: Call | None = None
    out: bool = False
    done: int = 0
    last: bool = False
    events: dict[str, int] = field(default_factory=dict)
    active_since: int | None = None


class FrontBench:
    """Everything around unisono_call_front."""

    def __init__(self, dut: Any, *, kernels: int, clock_mhz: int, hurry: float = 0.5) -> None:
        self.dut, self.kernels, self.clock_mhz = dut, kernels, clock_mhz
        self.rng = new_random("bench")
        self.hurry = hurry
        self.cycle = 0
        self.calls: list[Call] = []
        self.open: dict[tuple[int, int], list[Call]] = {}
        self.by_value: dict[int, Call] = {}
        self.by_tag: dict[int, Call] = {}
        self.slots = [Slot() for _ in range(SLOTS)]
        self.room = [32] * SLOTS
        self.order: dict[tuple[int, int, str], int] = {}
        self.answers: list[tuple[int, int, int]] = []
        self.deadlines: list[tuple[int, int]] = []
        """Of calls that only their deadline could end: microseconds asked for, cycles it took."""
        self.most_active = 0
        self.controls = self.controls_asked = 0
        self.control_share = 0.0
        self.overtakers: int | None = None
        """Items that were taken since a control item was asked for; None: none is known to be due."""
        self.latencies: dict[str, list[int]] = {}
        self.work_share = 0.3
        self.source = StreamSource(dut, "call", lanes=kernels)
        self.sink = ChannelSink(dut, "answer", lanes=kernels)
        self.clear_blocks = len(dut.clear_done_i)
        self.fault_ports = len(dut.fault_valid_i)
        self.axi: AxiLiteMaster | None = None
        for name in (
            *(
                "work_ready_i",
                "item_done_valid_i",
                "item_done_slot_i",
                "ended_valid_i",
                "ended_slot_i",
                "cpu_fail_valid_i",
                "cpu_fail_slot_i",
                "cpu_fail_code_i",
            ),
            *("descriptor_slot_i", "descriptor_row_i", "program_loaded_i", "firmware_data_i", "binding_slot_i"),
            *(
                "binding_region_i",
                "finished_valid_i",
                "finished_slot_i",
                "fault_valid_i",
                "fault_i",
                "clear_done_i",
                "ready_i",
            ),
            *(
                "table_data_i",
                "table_valid_i",
                "communicator_changed_i",
                "counter_i",
                "rx_buffer_data_i",
                "kernel_start_ready_i",
            ),
            *("kernel_done_valid_i", "kernel_done_code_i", "room_i"),
        ):
            getattr(dut, name).value = 0
        dut.table_ready_i.value = 1

    def start(self, *, host: bool = True) -> None:
        """Begins to play; after reset."""
        if host:
            logging.getLogger("cocotb").getChild(f"{self.dut._name}.s_axi").setLevel(logging.WARNING)
            self.axi = AxiLiteMaster(AxiLiteBus.from_prefix(self.dut, "s_axi"), self.dut.clk_i)
        cocotb.start_soon(self._engine())
        cocotb.start_soon(self._kernels())

    # ------------------------------------------------------------------------------------------ requesters

    def submit(self, call: Call, length: int | None = None) -> None:
        """Notes a call; for a kernel's, queues its packet of `length` bytes too."""
        self.calls.append(call)
        self.open.setdefault((call.requester, call.call_id), []).append(call)
        if not call.refused and not call.nop:
            if call.for_kernel:
                self.by_tag[part(call.value, "tag")] = call
            else:
                assert call.value not in self.by_value
                self.by_value[call.value] = call
        if call.requester > 0:
            data = call.value.to_bytes(128, "little")
            data = data + self.rng.randbytes(256) if length is not None and length > 128 else data
            self.source.send(Packet(data[: length or 128]), call.requester - 1)

    async def ring(self, call: Call) -> None:
        """Writes the host's descriptor and rings, again while the slot is taken."""
        assert self.axi is not None
        while True:
            status = int.from_bytes((await self.axi.read(int(REGISTER.STATUS), 4)).data, "little")
            if not status & 4:
                break
        self.submit(call)
        result = await self.axi.write(int(REGISTER.CALL_SLOT), call.value.to_bytes(128, "little"))
        assert result.resp == AxiResp.OKAY
        result = await self.axi.write(int(REGISTER.DOORBELL), b"\1\0\0\0")
        assert result.resp == AxiResp.OKAY

    async def collect_host(self, stop: Any) -> None:
        """Reads the host's completions until `stop()`."""
        assert self.axi is not None
        while not stop():
            status = int.from_bytes((await self.axi.read(int(REGISTER.STATUS), 4)).data, "little")
            if status & 8:
                call_id = int.from_bytes((await self.axi.read(int(REGISTER.COMPLETED), 4)).data, "little")
                code = int.from_bytes((await self.axi.read(int(REGISTER.COMPLETED_CODE), 4)).data, "little")
                assert code >> 16 == 0x8000
                self._answered(0, call_id, code & 0xFFFF)
            else:
                await Timer(self.rng.randint(1, 400), "ns")

    def collect_kernels(self) -> None:
        """Takes what the kernels have been answered."""
        for lane, words in enumerate(self.sink.words):
            while words:
                (word,) = words.popleft()
                self._answered(lane + 1, word & 0xFFFF_FFFF, word >> 32)

    def _answered(self, requester: int, call_id: int, code: int) -> None:
        """Every call is answered once, with a code that what has happened to it explains."""
        waiting = self.open.get((requester, call_id), [])
        assert waiting, f"requester {requester}: answer to {call_id}, which is not outstanding"
        call = waiting[0]
        if len(waiting) > 1:
            call = next((c for c in waiting if c.refused == code), call)
        waiting.remove(call)
        call.answer = code
        self.answers.append((requester, call_id, code))
        where = f"call {call_id} of {requester} ({call.plan}) answered {code}"
        if call.refused:
            assert code == call.refused, f"{where}; must be refused with {call.refused}"
            return
        bad = {p.answer if p.answer is not None else LATE_CODE for p in call.waits if p.answer != 0}
        if any(p.answer is None for p in call.waits):
            # Its predecessor's answer is still on its way to us.
            bad = {c for p in call.waits for c in ({p.answer} if p.answer is not None else self._codes(p)) if c}
        if call.started is not None:
            assert code in call.allowed, f"{where}; allowed: {call.allowed}"
        elif code:
            # A deadline runs from the slot on; the microcontroller hears of such a call all the same, because peers
            # count their calls, too.
            # A kernel's run is none of its calls; it may have to wait for that kernel until its deadline.
            if call.plan == "kernel" and part(call.value, "deadline_us"):
                bad = bad | {int(CODE.TIMEOUT)}
            assert code in bad, f"{where}, but was never started; its predecessors say {bad}"
        else:
            assert call.nop, f"{where}, but was never started"
            assert all(p.answer in (0, None) for p in call.waits), f"{where}, but a predecessor failed"

    def _codes(self, call: Call) -> set[int]:
        """What a call that has not been answered may yet be answered."""
        codes = {call.refused} if call.refused else set(call.allowed) | {int(CODE.TIMEOUT)}
        for p in call.waits:
            codes |= {p.answer} if p.answer is not None else self._codes(p)
        return codes

    # ---------------------------------------------------------------------------------------------- engine

    def _delay(self, most: int) -> int:
        return 0 if self.rng.random() < self.hurry else self.rng.randint(0, most)

    async def _engine(self) -> None:
        dut, rng = self.dut, self.rng
        edge = RisingEdge(dut.clk_i)
        queue: deque[tuple[int, int]] = deque()
        current: tuple[int, int] | None = None
        phase, think = 0, 0
        rows: list[int] = []
        quads: list[int] = []
        bindings: list[int] = []
        ready = 0
        clearing: int | None = None
        clear_at: list[int] = []
        clear_hold: list[bool] = []
        active_before = failing_before = 0
        room_grows = [0] * SLOTS
        while True:
            await edge
            self.cycle += 1
            now = self.cycle
            active, failing = int(dut.active_o.value), int(dut.failing_o.value)
            generations = int(dut.generation_o.value)
            self.most_active = max(self.most_active, active.bit_count())
            for s in range(SLOTS):
                if active >> s & 1 and not active_before >> s & 1:
                    self.slots[s].active_since = now
                if failing >> s & 1 and not failing_before >> s & 1:
                    self._failing(s, now)
            active_before, failing_before = active, failing

            # Items come in. One is in the register and another may stand behind a control item, no more.
            if int(dut.communicator_changed_i.value):
                self.controls_asked += 1
                self.overtakers = self.overtakers or 0
            dut.communicator_changed_i.value = int(rng.random() < self.control_share)
            if ready and int(dut.work_valid_o.value):
                item = int(dut.work_kind_o.value), int(dut.work_slot_o.value)
                queue.append(item)
                self._item(item, now)
            ready = int(len(queue) < 2 and rng.random() > self.work_share)
            dut.work_ready_i.value = ready

            # The microcontroller works on one after the other.
            done = last = fail = 0
            if current is None and queue:
                current = queue.popleft()
                phase, think, rows, quads, bindings = 0, self._delay(40), [], [], []
            if current is not None:
                kind, s = current
                slot = self.slots[s]
                if kind == START and phase < 18:
                    # Rows are asked for one a cycle and come two edges later, bindings beside them.
                    if phase >= 2:
                        rows.append(int(dut.descriptor_data_o.value))
                        quads.append(int(dut.descriptor_quad_o.value))
                        bindings.append(int(dut.binding_o.value))
                    if phase < 16:
                        dut.descriptor_slot_i.value, dut.descriptor_row_i.value = s, phase
                        dut.binding_slot_i.value, dut.binding_region_i.value = s, phase % 5
                    phase += 1
                    if phase == 18:
                        self._begin(s, rows, bindings, now)
                        whole = [sum(row << 64 * i for i, row in enumerate(rows[at : at + 4])) for at in (0, 4, 8, 12)]
                        assert quads == [quad for quad in whole for _ in range(4)], "four rows that stand together"
                elif think:
                    think -= 1
                elif kind == CONTROL:
                    current = None
                else:
                    call = slot.call
                    assert call is not None
                    if call.plan == "cpu" and slot.done + 1 == call.items and "cpu" not in slot.events:
                        fail = 1
                        dut.cpu_fail_slot_i.value, dut.cpu_fail_code_i.value = s, call.code
                        slot.events["cpu"] = now
                        call.allowed.add(call.code)
                    elif not slot.last and slot.done + 1 >= call.items and call.plan != "hang-open":
                        # The end of the program comes with the item's, or before.
                        last = 1
                        slot.last = True
                        dut.ended_slot_i.value = s
                        slot.events["finish"] = now + 1 + self._delay(call.delay)
                        think = self._delay(4)
                    if not fail and not think and (slot.last or slot.done + 1 < call.items or call.plan == "hang-open"):
                        slot.done += 1
                        done = 1
                        dut.item_done_slot_i.value = s
                        slot.out = False
                        current = None
                        self.room[s] = rng.randint(0, 32)
                        room_grows[s] = now + self._delay(30)
            dut.item_done_valid_i.value, dut.ended_valid_i.value, dut.cpu_fail_valid_i.value = done, last, fail

            # The scoreboard.
            finished = 0
            for s, slot in enumerate(self.slots):
                if slot.call is not None and self.room[s] < 16 and now >= room_grows[s] and not slot.out:
                    self.room[s] = rng.randint(self.room[s], 32)
                    room_grows[s] = now + self._delay(30) + 1
                due = slot.events.get("finish", now + 1) <= now and "finished" not in slot.events
                if due and not finished and slot.call is not None and slot.call.plan != "hang" and clearing != s:
                    finished = 1
                    dut.finished_slot_i.value = s
                    slot.events["finished"] = now
            dut.finished_valid_i.value = finished
            dut.room_i.value = sum(room << 6 * s for s, room in enumerate(self.room))

            # Faults: of calls that are to have one, and late ones of calls that are gone.
            valid = faults = 0
            for s, slot in enumerate(self.slots):
                if slot.call is not None and slot.call.plan == "fault" and "fault" not in slot.events:
                    assert slot.call.started is not None
                    if now >= slot.call.started + slot.call.delay and clearing != s:
                        port = rng.randrange(self.fault_ports)
                        if not valid >> port & 1:
                            valid |= 1 << port
                            faults |= (s << 12 | (generations >> 4 * s & 15) << 8 | slot.call.code) << port * 15
                            slot.events["fault"] = now
                            slot.call.allowed.add(slot.call.code)
            if rng.random() < 0.1:
                port, s = rng.randrange(self.fault_ports), rng.randrange(SLOTS)
                if not valid >> port & 1:
                    valid |= 1 << port
                    faults |= (s << 12 | ((generations >> 4 * s) - 1 & 15) << 8 | LATE_CODE) << port * 15
            dut.fault_valid_i.value, dut.fault_i.value = valid, faults

            # Clearing.
            acknowledge = 0
            if int(dut.clear_valid_o.value):
                s = int(dut.clear_slot_o.value)
                if clearing is None:
                    clearing = s
                    self._clear(s, bool(int(dut.clear_failed_o.value)), now)
                    clear_at = [now + self._delay(25) for _ in range(self.clear_blocks)]
                    clear_hold = [rng.random() < 0.5 for _ in range(self.clear_blocks)]
                assert clearing == s
                for b in range(self.clear_blocks):
                    if now == clear_at[b] or (now > clear_at[b] and clear_hold[b]):
                        acknowledge |= 1 << b
            elif clearing is not None:
                call = self.slots[clearing].call
                if call is not None:
                    call.ended = True
                self.slots[clearing] = Slot()
                self.room[clearing] = 32
                clearing = None
            dut.clear_done_i.value = acknowledge

    def _item(self, item: tuple[int, int], now: int) -> None:
        """An item was taken: it must be one that is due."""
        kind, s = item
        if kind == CONTROL:
            self.controls += 1
            assert self.controls <= self.controls_asked, "a control item that nobody asked for"
            self.overtakers = None
            return
        if self.overtakers is not None:
            self.overtakers += 1
            assert self.overtakers <= 2, "a control item waits behind starts or steps"
        slot = self.slots[s]
        assert not slot.out, f"slot {s}: two items at once"
        assert not slot.last, f"slot {s}: an item after the last"
        slot.out = True
        if kind == START:
            assert slot.call is None, f"slot {s}: a second start"
        else:
            assert kind == MORE
            assert slot.call is not None, f"slot {s}: more before the start"
            assert self.room[s] >= 16, f"slot {s}: more without room"

    def _begin(self, s: int, rows: list[int], bindings: list[int], now: int) -> None:
        """The microcontroller has read the descriptor: a call that may start, preserved bit for bit."""
        value = sum(row << 64 * i for i, row in enumerate(rows))
        assert value in self.by_value, f"slot {s}: descriptor {value:#x} was never submitted"
        call = self.by_value.pop(value)
        assert call.started is None
        for p in call.waits:
            assert p.has_ended(), f"call {call.call_id} started before {p.call_id} ended"
            assert not p.refused, f"call {call.call_id} started, although {p.call_id} was refused"
            assert p.answer in (0, None)
        order = call.order()
        if order is not None:
            assert self.order.get(order, -1) < call.index, f"call {call.call_id} overtook another one of {order}"
            self.order[order] = call.index
        for i, binding in enumerate(bindings):
            region = i % 5
            if region == 4:
                expected = part(value, "window_offset"), 0
            else:
                stream = region < 2 and part(value, f"{REGIONS[region]}_stream")
                size = 0 if stream else part(value, f"{REGIONS[region]}_bytes")
                expected = part(value, f"{REGIONS[region]}_address"), size
            assert (binding & (1 << 64) - 1, binding >> 64) == expected, f"binding of region {region}"
        for name in ("src", "dst"):
            streams = int(getattr(self.dut, f"{name}_stream_o").value) >> s & 1
            assert streams == part(value, f"{name}_stream")
            if streams:
                port = int(getattr(self.dut, f"{name}_port_o").value) >> 4 * s & 15
                assert port == part(value, f"{name}_address"), f"port of {name}"
        slot = self.slots[s]
        slot.call, call.started = call, now

    def _failing(self, s: int, now: int) -> None:
        """A slot has begun to fail: by its deadline, if nothing else was done to it."""
        slot = self.slots[s]
        if slot.call is None or {"cpu", "fault"} & slot.events.keys():
            return
        us = part(slot.call.value, "deadline_us")
        assert us, f"call {slot.call.call_id} failed, and nothing was done to it"
        assert slot.active_since is not None
        slot.call.allowed.add(int(CODE.TIMEOUT))
        self.deadlines.append((us, now - slot.active_since))

    def _clear(self, s: int, failed: bool, now: int) -> None:
        """A slot is to be cleared: its program has ended and finished, or something failed it."""
        slot = self.slots[s]
        assert not slot.out, f"slot {s} cleared while the microcontroller works on it"
        if slot.call is None:
            assert failed, f"slot {s} cleared without a call"
            return
        if failed:
            us = part(slot.call.value, "deadline_us")
            if us and slot.active_since is not None and now - slot.active_since >= us * self.clock_mhz:
                slot.call.allowed.add(int(CODE.TIMEOUT))
            assert slot.call.allowed, f"slot {s} cleared as failed, and nothing was done to it"
            assert 0 not in slot.call.allowed
        else:
            assert slot.last
            assert slot.events["finished"] <= now
            # Faults after this are too late.
            slot.call.allowed = {0}

    # --------------------------------------------------------------------------------------------- kernels

    async def _kernels(self) -> None:
        """Each kernel runs what it is started with, and is done after a while: perhaps long after the deadline."""
        dut, rng = self.dut, self.rng
        edge = RisingEdge(dut.clk_i)
        running: list[tuple[Call, int] | None] = [None] * self.kernels
        ready = 0
        while True:
            await edge
            now = self.cycle
            valid = int(dut.kernel_start_valid_o.value)
            data = int(dut.kernel_start_data_o.value)
            for k in range(self.kernels):
                if ready >> k & valid >> k & 1:
                    word = data >> 64 * k & (1 << 64) - 1
                    call = self.by_tag.pop(word >> 32)
                    assert word & 0xFFFF_FFFF == call.call_id
                    assert running[k] is None, f"kernel {k} started while it runs"
                    assert part(call.value, "root") == k
                    assert part(call.value, "algorithm") == NOP_RUN
                    for p in call.waits:
                        assert p.has_ended(), f"kernel call {call.call_id} started before {p.call_id} ended"
                    if call.answer is None:
                        call.started = now
                        call.allowed.add(int(CODE.TIMEOUT))
                    running[k] = call, now + call.delay
            ready = sum(int(rng.random() < 0.3) << k for k in range(self.kernels))
            dut.kernel_start_ready_i.value = ready
            done = codes = 0
            for k in range(self.kernels):
                run = running[k]
                if run is not None and now >= run[1]:
                    done |= 1 << k
                    codes |= run[0].code << 16 * k
                    run[0].allowed.add(run[0].code)
                    run[0].ended = True
                    running[k] = None
            dut.kernel_done_valid_i.value, dut.kernel_done_code_i.value = done, codes

    async def all_answered(self, limit: int) -> None:
        """Returns when every call has been answered; fails after `limit` cycles."""
        end = self.cycle + limit
        while True:
            self.collect_kernels()
            if all(call.answer is not None for call in self.calls):
                return
            left = [call for call in self.calls if call.answer is None]
            assert self.cycle < end, f"{len(left)} calls without an answer, first {left[0]}"
            await Timer(100, "ns")


def random_pause(rng: random.Random, part: float) -> Any:
    """For channels of cocotbext-axi: an endless choice whether to pause."""
    while True:
        yield rng.random() < part
