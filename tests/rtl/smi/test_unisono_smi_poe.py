"""unisono_smi_poe: segments of all sessions go over the cable and come back, in order, whole."""

import sys
from collections import defaultdict, deque
from pathlib import Path

import cocotb
import pytest
from bus import ChannelSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import RisingEdge, with_timeout
from hdl import parameters, scaled, simulate
from smi_cable import cable
from smi_support import all_on_one_link

sys.path.append(str(Path(__file__).parents[1] / "poe"))
from poe_bench import CONTROL, Receiver, Registers, Segment, Sender, length_near_words


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def segments_come_back(dut):
    rng = new_random("poe")
    shape = parameters()
    image_port = ChannelSource(dut, "image", ("data", "last"))
    registers = Registers(dut)
    sender = Sender(dut, pause=rng.choice(paces(rng))[1], grant_pause=rng.choice(paces(rng))[1])
    receiver = Receiver(dut, pause=rng.choice(paces(rng))[1], meta_pause=rng.choice(paces(rng))[1])
    dut.event_ready_i.value = 1
    cocotb.start_soon(cable(dut, shape["Links"], 2 * shape["VirtualChannels"]))
    await start_clock_and_reset(dut)
    image = all_on_one_link(shape["Nodes"], 0, shape["Links"], shape["VirtualChannels"], 1)
    for number, word in enumerate(image):
        image_port.put((word, int(number == len(image) - 1)))
    while not int(dut.running_o.value):
        await RisingEdge(dut.clk_i)
    # What goes to a rank comes back from it.
    sessions = list(range(shape["Nodes"] - 1))
    for session in sessions:
        await registers.open(session, session + 1)
    expected = defaultdict(deque)
    sent = []
    for _ in range(scaled(160)):
        control = rng.random() < 0.3
        most = shape["MaxControl"] if control else shape["MaxPayload"]
        session = rng.choice(sessions) | (CONTROL if control else 0)
        sent.append(Segment(session, rng.randbytes(length_near_words(rng, most, 64))))

    async def send():
        for segment in sent:
            expected[segment.session].append(segment.data)
            await sender.send(segment)

    cocotb.start_soon(send())
    for _ in sent:
        segment = await with_timeout(receiver.receive(), 400, "us")
        assert segment.data == expected[segment.session].popleft()
    counted = await registers.counters()
    assert counted["tx_segments"] == counted["rx_segments"] == len(sent)
    assert not any(count for name, count in counted.items() if name.endswith(("unknown", "length", "full", "damaged")))
    # Ordered, reliable, datagrams; see poe_capability_t.
    assert int(dut.capability_o.value) >> 32 == 0b111
    assert int(dut.strays_o.value) == int(dut.dropped_o.value) == 0


@pytest.mark.parametrize(("links", "virtual"), [(2, 1)])
def test_unisono_smi_poe(links, virtual):
    given = {"Links": links, "VirtualChannels": virtual, "Nodes": 8, "Sessions": 8, "MaxPayload": 4160}
    simulate("unisono_smi_poe", __file__, given | {"MaxControl": 256}, testcase="segments_come_back")
