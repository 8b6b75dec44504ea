"""unisono_dispatcher_lists: lists of random lengths in a pool are gone through; peers that are sent to, one by one."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate
from look_records import LIST, unpack

KEEP, POST, CHECK, DISPATCH, COUNT, NEXT = range(6)
WALKS = {POST: 0, CHECK: 1, DISPATCH: 2}
POOL = 512


def quiet(dut):
    dut.command_i.value, dut.pool_i.value, dut.pool_word_i.value = KEEP, 0, 0
    dut.fan_out_i.value, dut.made_i.value, dut.peers_i.value, dut.peer_i.value = 0, 0, 0, 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def lists_of_the_pool(dut):
    """Each list is posted, checked and dispatched some times, with pauses."""
    rng, seen = new_random("lists"), Counter()
    quiet(dut)
    await start_clock_and_reset(dut)

    async def command(what, word=0):
        """Gives a command, and lets two cycles pass, in the second of which its effect is there."""
        dut.command_i.value, dut.pool_word_i.value = what, word
        await RisingEdge(dut.clk_i)
        dut.command_i.value, dut.pool_word_i.value = KEEP, rng.getrandbits(6)
        await FallingEdge(dut.clk_i)
        asked, counts = int(dut.pool_index_o.value), unpack(LIST, int(dut.list_o.value))["counts"]
        for _ in range(rng.choice((1, 1, 2, 5))):
            await RisingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)
        found = unpack(LIST, int(dut.list_o.value))
        assert int(dut.pool_index_o.value) == asked
        assert found["counts"] == counts
        return asked, found

    for _ in range(scaled(400, 120)):
        place, length = rng.randrange(POOL), rng.choice((1, 2, 3, 8, 63))
        dut.pool_i.value = place
        for begin in (POST, CHECK, DISPATCH):
            asked, found = await command(begin)
            assert found["walk"] == WALKS[begin]
            if begin != DISPATCH:
                assert (asked, found["counts"]) == (place, 1)
                asked, found = await command(COUNT, length)
            for peer in range(1, length + 1):
                assert asked == (place + peer) % POOL
                assert (found["counts"], found["walk"]) == (0, WALKS[begin])
                assert (found["first"], found["last"]) == (peer == 1, peer == length), (peer, length)
                seen["first and last"] += length == 1
                if peer < length:
                    asked, found = await command(NEXT)
            if begin == CHECK and rng.random() < 0.3:
                break
    assert seen["first and last"] > 10


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def peers_that_are_sent_to(dut):
    """In random order of questions: those after the present one a cycle later, the first of them two cycles later."""
    rng, seen = new_random("peers"), Counter()
    quiet(dut)
    await start_clock_and_reset(dut)
    before: list[tuple[int, int]] = []
    for _ in range(scaled(6000, 1500)):
        peers = rng.choice((0, 1 << rng.randrange(64), 1 << 63 | 1, rng.getrandbits(64), (1 << 64) - 1))
        peer, fan_out, made = rng.randrange(64), rng.random() < 0.7, rng.random() < 0.7
        dut.peers_i.value, dut.peer_i.value, dut.fan_out_i.value, dut.made_i.value = peers, peer, fan_out, made
        await FallingEdge(dut.clk_i)
        found = unpack(LIST, int(dut.list_o.value))
        assert found["makes"] == (fan_out and not made)
        if before:
            left, sent = before[-1]
            assert found["peers"] == left & ~(1 << sent)
        if len(before) > 1:
            left = before[-2][0] & ~(1 << before[-2][1])
            assert found["more"] == (left != 0)
            assert not left or found["peer"] == (left & -left).bit_length() - 1
            assert found["keeps"] == (fan_out and made and left != 0)
            seen["keeps"] += found["keeps"]
            seen["none is left"] += not left
        before = [*before[-1:], (peers, peer)]
        await RisingEdge(dut.clk_i)
    assert min(seen["keeps"], seen["none is left"]) > 100


def test_unisono_dispatcher_lists():
    simulate("unisono_dispatcher_lists", __file__)
