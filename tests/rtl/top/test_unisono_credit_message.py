"""unisono_credit_message: requests and notices at random, each message against a header of the specification."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import cocotb
import records
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

S = records.load()
COMMUNICATORS, RANKS = 16, 64
FIELDS = (("tag", 4), ("dtype", 6), ("sequence", 32), ("message_bytes", 48), ("offset", 48))
TOKEN = (("token_slot", 16), ("token_generation", 16))


class Tables:
    """Communicators, and the sessions of their members; no two are alike."""

    def __init__(self, rng: random.Random) -> None:
        self.entries = [(rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(6)) for _ in range(COMMUNICATORS)]
        """Number, epoch and this engine's rank."""
        self.rest = rng.getrandbits(110)
        self.sessions = rng.sample(range(1 << 16), COMMUNICATORS * RANKS)

    def raw(self, c: int) -> int:
        number, epoch, rank = self.entries[c]
        return (number << 16 | epoch) << 116 | self.rest << 6 | rank

    def message(self, c: int, peer: int, notice: dict[str, Any]) -> int:
        """What Tx must get; a request is an empty notice."""
        number, epoch, rank = self.entries[c]
        header = S.Header(
            type=S.MessageType.CONTROL if notice else S.MessageType.CREDIT,
            first=True,
            last=True,
            communicator=number,
            epoch=epoch,
            source=rank,
            destination=peer,
            **notice,
        )
        raw = int.from_bytes(header.encode(), "little")
        return (((raw << 4 | c) << 6 | peer) << 16 | self.sessions[c * RANKS + peer]) << 1 | 1


def random_notice(rng: random.Random) -> dict[str, Any]:
    notice = {name: rng.getrandbits(bits) for name, bits in (*FIELDS, *TOKEN)}
    return {**notice, "tag": rng.randint(1, 9), "dtype": rng.choice(list(S.Datatype))}


def packed(c: int, peer: int, notice: dict[str, Any]) -> int:
    word = c << 6 | peer
    for name, bits in (*FIELDS, *TOKEN):
        word = word << bits | int(notice[name])
    return word


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def both_by_turns(dut: Any) -> None:
    rng = new_random("messages")
    tables, seen = Tables(rng), Counter[str]()
    request: tuple[int, int] | None = None
    notice: tuple[int, int, dict[str, Any]] | None = None
    wanted: int | None = None
    taken_at = left_at = -1
    last = ""
    dut.request_valid_i.value = dut.notice_valid_i.value = dut.out_ready_i.value = 0
    await start_clock_and_reset(dut)
    pauses = [never, never, never]
    for cycle in range(scaled(30000, 8000)):
        if cycle % 200 == 0:
            pauses = [rng.choice([never, share(rng, 0.5), share(rng, 0.95), bursts(rng)]) for _ in pauses]
        if request is None and not pauses[0]():
            request = rng.randrange(COMMUNICATORS), rng.randrange(RANKS)
        if notice is None and not pauses[1]():
            notice = rng.randrange(COMMUNICATORS), rng.randrange(RANKS), random_notice(rng)
        c, peer = request or (rng.randrange(COMMUNICATORS), rng.randrange(RANKS))
        dut.request_valid_i.value, dut.notice_valid_i.value = request is not None, notice is not None
        dut.request_communicator_i.value, dut.request_peer_i.value = c, peer
        dut.notice_i.value = packed(*notice) if notice else rng.getrandbits(180)
        dut.out_ready_i.value = takes = not pauses[2]()
        await FallingEdge(dut.clk_i)
        dut.entry_i.value = tables.raw(int(dut.entry_communicator_o.value))
        asked = int(dut.peer_communicator_o.value) * RANKS + int(dut.peer_rank_o.value)
        await RisingEdge(dut.clk_i)
        dut.peer_i.value = rng.getrandbits(1) << 16 | tables.sessions[asked]
        # A message is offered from the second cycle on, until it is taken.
        offered = bool(int(dut.out_valid_o.value))
        assert offered == (wanted is not None and cycle >= taken_at + 2), f"cycle {cycle}"
        gets = [
            name
            for name, one in (("request", request), ("notice", notice))
            if one is not None and int(getattr(dut, f"{name}_ready_o").value)
        ]
        assert len(gets) <= 1
        assert not gets or wanted is None, "taken while a message is at hand"
        # What can be taken is taken, in the cycle after the last message has left.
        if wanted is None and (request or notice):
            assert gets, f"cycle {cycle}: nothing is taken"
        if offered:
            assert int(dut.out_transmit_o.value) == wanted, f"{int(dut.out_transmit_o.value):#x}, not {wanted:#x}"
            seen["stalls"] += not takes
            if takes:
                wanted, left_at = None, cycle
                seen["left"] += 1
        if gets:
            if request and notice:
                assert gets != [last], f"two of {last}, while the other waits"
                seen["both wait"] += 1
            else:
                seen["again"] += gets == [last]
            seen["at once"] += cycle == left_at + 1
            last, taken_at = gets[0], cycle
            seen[last] += 1
            if last == "request":
                assert request
                wanted, request = tables.message(*request, {}), None
            else:
                assert notice
                wanted, notice = tables.message(*notice), None
    for what in ("request", "notice", "both wait", "again", "at once", "stalls", "left"):
        assert seen[what] > 50, f"{what}: {seen}"


def test_unisono_credit_message() -> None:
    simulate("unisono_credit_message", __file__)
