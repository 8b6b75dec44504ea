"""unisono_rbm_offer: offers that are answered at once or late, and answers that wait to be carried out."""

from collections import Counter

import cocotb
from bus import Waits, new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

PEER_BITS = 6


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_offers(dut):
    rng, seen = new_random("offer"), Counter()
    names = ("begins", "looks", "pair", "entry", "ends", "offer_answer", "offer_accepted")
    for name in names:
        getattr(dut, f"{name}_i").value = 0
    entry_bits = len(dut.entry_i)
    await start_clock_and_reset(dut)
    for _ in range(2):
        offer = None  # pair, entry
        answer = None
        waits, hurry = Waits(seen), 0.5
        for cycle in range(scaled(8000, 2500)):
            if cycle % 50 == 0:
                hurry = rng.choice((0.1, 0.5, 1.0))
            pair, entry = rng.getrandbits(9), rng.getrandbits(entry_bits)
            looks = offer is None and rng.random() < hurry
            begins = looks and rng.random() < 0.6  # others are looked at, and not offered
            ends = answer is not None and rng.random() < hurry
            dut.pair_i.value, dut.entry_i.value = pair, entry
            dut.looks_i.value, dut.begins_i.value, dut.ends_i.value = looks, begins, ends
            valid = offer is not None and answer is None
            answers, accepted = valid and rng.random() < hurry, rng.random() < 0.5
            dut.offer_answer_i.value, dut.offer_accepted_i.value = answers, accepted
            await FallingEdge(dut.clk_i)
            assert bool(int(dut.offer_valid_o.value)) == valid
            assert bool(int(dut.offering_o.value)) == (offer is not None)
            assert bool(int(dut.answered_o.value)) == (answer is not None)
            word = None
            if offer is not None:
                word = int(dut.offer_id_o.value), int(dut.pair_o.value)
                assert word == (offer[0] >> PEER_BITS << entry_bits | offer[1], offer[0])
            if answer is not None:
                assert bool(int(dut.accepted_o.value)) == answer
            waits.taken("offer", valid, answers, word)
            await RisingEdge(dut.clk_i)
            seen["looked at"] += looks and not begins
            if begins:
                offer = pair, entry
            elif ends:
                seen["accepted" if answer else "refused"] += 1
                offer = answer = None
            elif answers:
                answer = accepted
        for name in names:
            getattr(dut, f"{name}_i").value = 0
        await reset_again(dut)
    for what in ("looked at", "accepted", "refused", "offer waits"):
        assert seen[what] > 50, what


def test_unisono_rbm_offer():
    simulate("unisono_rbm_offer", __file__)
