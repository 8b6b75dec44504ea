"""unisono_smi_loader: writes exactly the tables of an image, and refuses those that do not fit or are damaged."""

import cocotb
import pytest
from bus import ChannelSource, bursts, new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate
from smi_support import image

GOOD, MAGIC, LINKS, CHANNELS, RANKS, PORTS, LENGTH, SUM = range(8)


class ImageSource(ChannelSource):
    """Words of images."""

    def load(self, words):
        for number, word in enumerate(words):
            self.put((word, int(number == len(words) - 1)))


async def settle(dut, source):
    """What has been written, once the image is through."""
    written = {}
    quiet = 0
    while quiet < 12:
        await ReadOnly()
        for kind in ("cks", "ckr"):
            enables = int(getattr(dut, f"{kind}_wr_en_o").value)
            for link in range(parameters()["Links"]):
                if enables >> link & 1:
                    place = (kind, link, int(getattr(dut, f"{kind}_wr_address_o").value))
                    assert place not in written
                    written[place] = int(dut.wr_entry_o.value)
        await RisingEdge(dut.clk_i)
        quiet = quiet + 1 if source._idle.is_set() else 0
    return written


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def images(dut):
    rng = new_random("loader")
    links, channels, most, ports = (parameters()[name] for name in ("Links", "VirtualChannels", "MaxRanks", "Ports"))
    source = ImageSource(dut, "image", ("data", "last"), pause=bursts(rng))
    await start_clock_and_reset(dut)
    assert not int(dut.running_o.value)

    def tables(ranks, virtual=channels, of_links=links, of_ports=ports):
        cks = [[[rng.getrandbits(7) for _ in range(ranks)] for _ in range(virtual)] for _ in range(of_links)]
        return cks, [[rng.getrandbits(7) for _ in range(2 * of_ports)] for _ in range(of_links)]

    async def load(words):
        source.load(words)
        return await settle(dut, source)

    for ranks in (most, 1, most - 1, rng.randint(1, most)):
        for virtual in range(1, channels + 1):
            rank = rng.randrange(ranks)
            cks, ckr = tables(ranks, virtual)
            written = await load(image(rank, cks, ckr))
            assert int(dut.image_o.value) == GOOD
            assert int(dut.running_o.value)
            assert (int(dut.rank_o.value), int(dut.ranks_o.value), int(dut.ports_o.value)) == (rank, ranks, ports)
            expected = {
                ("cks", k, c * most + to): entry
                for k, of_link in enumerate(cks)
                for c, of_channel in enumerate(of_link)
                for to, entry in enumerate(of_channel)
            }
            expected |= {("ckr", k, place): entry for k, table in enumerate(ckr) for place, entry in enumerate(table)}
            assert written == expected

    good = image(0, *tables(most - 1))
    bad = {
        MAGIC: [good[0] ^ 1, *good[1:]],
        LINKS: image(0, *tables(2, of_links=links + 1)),
        CHANNELS: image(0, *tables(2, virtual=channels + 1)),
        RANKS: image(0, *tables(most + 1)),
        PORTS: image(0, *tables(2, of_ports=ports + 1)),
        SUM: [*good[:-2], good[-2] ^ 1 << rng.randrange(32), good[-1]],
    }
    for reason, words in bad.items():
        await load(words)
        assert int(dut.image_o.value) == reason
        assert not int(dut.running_o.value)
        await load(good)
        assert int(dut.running_o.value)
    # A rank beyond the last; too short, by any number of words; too long.
    await load(image(3, *tables(3)))
    assert int(dut.image_o.value) == RANKS
    for end in range(1, len(good)):
        await load(good[:end])
        assert int(dut.image_o.value) == LENGTH, end
        assert not int(dut.running_o.value)
    await load([*good, 0])
    assert int(dut.image_o.value) == LENGTH
    await load(good)
    assert int(dut.running_o.value)


@pytest.mark.parametrize(
    ("links", "virtual", "ranks", "ports"), [(4, 1, 8, 3), full(2, 3, 6, 1), full(1, 1, 5, 2), full(8, 8, 16, 4)]
)
def test_unisono_smi_loader(links, virtual, ranks, ports):
    given = {"Links": links, "VirtualChannels": virtual, "MaxRanks": ranks, "Ports": ports}
    simulate("unisono_smi_loader", __file__, given)
