"""unisono_switch_places: whose turn it is, against a search through all positions."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import cocotb
import pytest
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate
from unit_records import pack

HEAD = {"shares": 14, "first_port": 5, "has_up": 1, "up": 5, "count": 14, "first": 13, "members": 14, "ports": 5}
PORT = {"is_switch": 1, "count": 14, "first": 13}


class Entry:
    """A communicator's entry: ports one after the other, some of them gaps; its positions begin anywhere."""

    def __init__(self, rng: Random, ports: int) -> None:
        self.counts = [rng.choice((0, 1, 1, rng.randint(1, 9))) for _ in range(rng.randint(1, ports - 1))]
        self.counts[rng.randrange(len(self.counts))] = rng.randint(1, 9)
        self.above = rng.choice((0, rng.randint(1, 20)))
        self.members = sum(self.counts) + self.above
        self.first = rng.randint(0, self.above)
        # The port that leads up is the first one.
        self.first_port = 1 if self.above else rng.randrange(ports - len(self.counts) + 1)

    def give(self, dut: Any) -> None:
        """To the module."""
        head = {"shares": 1, "first_port": self.first_port, "has_up": int(self.above > 0), "up": 0}
        below = {"count": sum(self.counts), "first": self.first, "members": self.members, "ports": len(self.counts)}
        dut.head_i.value = pack(HEAD, head | below)
        number, first = 0, self.first
        for at, count in enumerate(self.counts):
            number |= pack(PORT, {"is_switch": int(count > 1), "count": count, "first": first}) << 28 * at
            first += count
        dut.ports_i.value = number
        dut.up_port_i.value = int(self.above > 0)

    def port_of(self, place: int) -> int:
        """By which port what is of this position comes."""
        first = self.first
        for at, count in enumerate(self.counts):
            if first <= place < first + count:
                return self.first_port + at
            first += count
        return 0

    def after(self, place: int) -> int:
        """The next position that is behind another port."""
        here = self.port_of(place)
        while place < self.members and self.port_of(place) == here:
            place += 1
        return place


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_entries(dut: Any) -> None:
    rng = new_random("places")
    seen = Counter[str]()
    Clock(dut.clk_i, 4, unit="ns").start()
    for _ in range(scaled(400)):
        entry = Entry(rng, parameters()["Ports"])
        entry.give(dut)
        for _ in range(6):
            gathers, root, place = rng.randrange(2), rng.randrange(entry.members), rng.randrange(entry.members)
            dut.gathers_i.value, dut.root_i.value, dut.place_i.value = gathers, root, place
            await RisingEdge(dut.clk_i)
            await FallingEdge(dut.clk_i)
            skips = bool(gathers) and entry.port_of(place) == entry.port_of(root)
            assert bool(int(dut.skips_o.value)) == skips
            if skips:
                assert int(dut.after_skip_o.value) == entry.after(place)
                seen["skipped"] += 1
            assert int(dut.port_o.value) == 1 << entry.port_of(place)
            following = place + 1
            if gathers and following < entry.members and entry.port_of(following) == entry.port_of(root):
                following = entry.after(following)
                seen["behind"] += 1
            assert int(dut.following_o.value) == (0 if following == entry.members else following)
    assert min(seen["skipped"], seen["behind"]) > 50


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_places(ports: int) -> None:
    simulate("unisono_switch_places", __file__, {"Ports": ports})
