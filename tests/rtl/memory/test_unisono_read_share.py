"""unisono_read_share: commands and words of two users at random paces; each cycle against a list of whose are due."""

from __future__ import annotations

from collections import Counter, deque

import cocotb
import pytest
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_a_list(dut):
    rng = new_random("share")
    depth = parameters()["Depth"]
    for port in ("command0_valid", "command1_valid", "read_command_ready", "read_valid", "out0_ready", "out1_ready"):
        getattr(dut, f"{port}_i").value = 0
    await start_clock_and_reset(dut)
    due: deque[list[int]] = deque()  # of each command under way: its user, words left, cycle of its command
    offered: list[tuple[int, int] | None] = [None, None]
    shown = False  # the reader's word stays until it is taken
    seen: Counter[str] = Counter()
    paces = [never, share(rng, 0.3), share(rng, 0.9), bursts(rng)]
    for cycle in range(scaled(12_000, 6000)):
        if cycle % 400 == 0:
            asks, takes, answers = [rng.choice(paces) for _ in range(2)], rng.choice(paces), rng.choice(paces)
            ready_paces = [rng.choice(paces) for _ in range(2)]
        for user in range(2):
            if offered[user] is None and not asks[user]():
                offered[user] = rng.getrandbits(64), rng.randint(1, 8192)
            address, size = offered[user] or (rng.getrandbits(64), rng.getrandbits(14))
            getattr(dut, f"command{user}_valid_i").value = offered[user] is not None
            getattr(dut, f"command{user}_address_i").value = address
            getattr(dut, f"command{user}_bytes_i").value = size
        takes_command = not takes()
        dut.read_command_ready_i.value = takes_command
        # Memory answers a command two cycles later, or any time after.
        shown = shown or (bool(due) and cycle - due[0][2] >= 2 and not answers())
        last = due[0][1] == 1 if shown else rng.random() < 0.5
        dut.read_valid_i.value, dut.read_last_i.value = shown, last
        ready = [not pace() for pace in ready_paces]
        dut.out0_ready_i.value, dut.out1_ready_i.value = ready

        await FallingEdge(dut.clk_i)
        room, wish = len(due) < depth, [command is not None for command in offered]
        chosen = 1 if wish[1] else 0
        asked = int(dut.read_command_valid_o.value)
        assert asked == (any(wish) and room), f"cycle {cycle}: {wish}, {len(due)} under way"
        if asked:
            got = int(dut.read_command_address_o.value), int(dut.read_command_bytes_o.value)
            assert got == offered[chosen], f"cycle {cycle}: not the command of user {chosen}"
        for user in range(2):
            goes = int(getattr(dut, f"command{user}_ready_o").value)
            assert not wish[user] or goes == (asked and takes_command and chosen == user), f"cycle {cycle}: {user}"
            valid = int(getattr(dut, f"out{user}_valid_o").value)
            assert valid == (shown and due[0][0] == user), f"cycle {cycle}: a word for user {user}"
        moves = shown and ready[due[0][0]]
        assert not shown or int(dut.read_ready_o.value) == moves, f"cycle {cycle}: read_ready_o"
        seen["both ask"] += all(wish) and room
        seen["no room"] += any(wish) and not room
        if shown:
            seen[f"word of {due[0][0]} waits"] += not moves

        await RisingEdge(dut.clk_i)
        if moves:
            shown = False
            seen[f"word of {due[0][0]}"] += 1
            due[0][1] -= 1
            if due[0][1] == 0:
                due.popleft()
        if asked and takes_command:
            due.append([chosen, rng.choice((1, 1, 2, rng.randint(1, 20))), cycle])
            offered[chosen] = None
    wanted = ("both ask", "no room", *(f"word of {user}{more}" for user in range(2) for more in ("", " waits")))
    assert all(seen[what] > 50 for what in wanted), seen


@pytest.mark.parametrize("depth", [16, full(3)])
def test_unisono_read_share(depth):
    simulate("unisono_read_share", __file__, {"Depth": depth})
