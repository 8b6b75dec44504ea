"""unisono_communicators: every word is kept and read back; look-ups in every cycle while software writes."""

from collections import deque

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import simulate

COMMUNICATORS, RANKS, MEMBER_BASE = 16, 64, 1024
MASKS = [0xFFFFFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x003F7F7F, 1, 0]


class Model:
    """What has been written."""

    def __init__(self):
        self.words = [[None] * 6 + [0, 0] for _ in range(COMMUNICATORS)]
        self.members = [0] * (COMMUNICATORS * RANKS)

    def write(self, at, value):
        if at >= MEMBER_BASE:
            self.members[at - MEMBER_BASE] = value & 0x8000FFFF
        elif at < COMMUNICATORS * 8:
            self.words[at // 8][at % 8] = value & MASKS[at % 8]

    def read(self, at):
        if at >= MEMBER_BASE:
            return self.members[at - MEMBER_BASE]
        return self.words[at // 8][at % 8] if at < COMMUNICATORS * 8 else 0

    def find(self, number, epoch):
        found = [c for c, words in enumerate(self.words) if words[6] and words[:2] == [number, epoch]]
        return found[0] if found else None

    def entry(self, c):
        """Valid, and the record from its lowest field up, or None while it is not written completely."""
        words = self.words[c]
        if None in words[:6]:
            return words[6], None
        rank, members, size = words[5] >> 16, words[5] >> 8 & 0x7F, words[5] & 0x7F
        openings, buffers = words[4] >> 16, words[4] & 0xFFFF
        raw = rank | members << 6 | size << 13 | openings << 20 | buffers << 36 | words[3] << 52 | words[2] << 84
        raw |= words[1] << 116 | words[0] << 132
        return words[6], raw

    def peer(self, c, rank):
        value = self.members[c * RANKS + rank]
        return value >> 31 << 16 | value & 0xFFFF


def ports(dut, **values):
    for name, value in values.items():
        getattr(dut, name).value = value


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def look_ups_while_software_writes(dut):
    rng = new_random("communicators")
    ports(dut, reg_valid_i=0, find_valid_i=0, entry_communicator_i=0)
    ports(dut, tx_communicator_i=0, tx_rank_i=0, rx_communicator_i=0, rx_rank_i=0)
    model = Model()
    await start_clock_and_reset(dut)
    edge = RisingEdge(dut.clk_i)
    # Members are swept away first; nothing is found meanwhile.
    sweep = 0
    while not int(dut.reg_ready_o.value):
        assert not int(dut.tx_peer_o.value) >> 16
        assert not int(dut.rx_peer_o.value) >> 16
        await edge
        sweep += 1
    assert COMMUNICATORS * RANKS - 2 <= sweep <= COMMUNICATORS * RANKS + 2
    await edge
    await edge
    # Few numbers, that differ in one bit, and epochs likewise.
    numbers = [0x5A5A5A5A ^ 1 << bit for bit in range(32)] + [0, 0xFFFFFFFF]
    epochs = [0, 1, 2, 0x8000, 0xFFFF]
    reads, finds = deque([None, None]), deque([None, None])
    entry = tx = rx = None
    hits = misses = checked = 0
    write = find = None
    for _ in range(40000):
        await edge
        # Answers to what was asked in earlier cycles.
        want = reads.popleft()
        assert int(dut.reg_valid_o.value) == (want is not None)
        if want is not None:
            value = want[0]
            assert value is None or int(dut.reg_data_o.value) == value, f"word {want[1]}"
        want = finds.popleft()
        assert int(dut.found_valid_o.value) == (want is not None)
        if want is not None:
            found = want[0]
            assert int(dut.found_o.value) == (found is not None)
            if found is not None:
                assert int(dut.found_communicator_o.value) == found
                hits += 1
            else:
                misses += 1
        if entry is not None:
            valid, raw = entry
            assert int(dut.entry_valid_o.value) == valid
            if raw is not None:
                assert int(dut.entry_o.value) == raw
                checked += 1
        for name, value in (("tx", tx), ("rx", rx)):
            if value is not None:
                assert int(getattr(dut, f"{name}_peer_o").value) == value
        # What this cycle asked, of the state before its own write.
        asked = int(dut.reg_valid_i.value) and not int(dut.reg_write_i.value)
        word = int(dut.reg_word_i.value) if int(dut.reg_valid_i.value) else 0
        reads.append((model.read(word), word) if asked else None)
        finds.append((model.find(*find),) if find is not None else None)
        c = int(dut.entry_communicator_i.value)
        entry = model.entry(c)
        tx = model.peer(int(dut.tx_communicator_i.value), int(dut.tx_rank_i.value))
        rx = model.peer(int(dut.rx_communicator_i.value), int(dut.rx_rank_i.value))
        if write is not None:
            model.write(*write)
        # The next cycle.
        write = None
        busy = rng.random() < 0.7
        ports(dut, reg_valid_i=int(busy), reg_data_i=rng.getrandbits(32))
        if busy:
            c, kind = rng.randrange(COMMUNICATORS), rng.random()
            at = c * 8 + rng.randrange(8)
            if kind < 0.4:
                at = MEMBER_BASE + c * RANKS + rng.randrange(RANKS)
            elif kind < 0.45:
                at = rng.randrange(MEMBER_BASE)
            is_write = rng.random() < 0.5
            data = rng.getrandbits(32)
            if at < COMMUNICATORS * 8:
                # Two valid communicators of one number and epoch are forbidden: here number c // 2 is near
                # others', epochs are of a communicator's own.
                if at % 8 == 0:
                    data = rng.choice(numbers)
                elif at % 8 == 1:
                    data = rng.choice(epochs)
                elif at % 8 == 6:
                    data = rng.getrandbits(1)
                if is_write and at % 8 in (0, 1, 6):
                    c = at // 8
                    trial = list(model.words[c])
                    trial[at % 8] = data & MASKS[at % 8]
                    twins = [w for i, w in enumerate(model.words) if i != c and w[6] and w[:2] == trial[:2]]
                    is_write = not (trial[6] and (twins or None in trial[:2]))
            ports(dut, reg_write_i=int(is_write), reg_word_i=at, reg_data_i=data)
            if is_write:
                write = (at, data)
        find = None
        if rng.random() < 0.8:
            known = [w[:2] for w in model.words if w[6]]
            find = rng.choice(known) if known and rng.random() < 0.7 else [rng.choice(numbers), rng.choice(epochs)]
            if None in find:
                find = None
        ports(dut, find_valid_i=int(find is not None))
        if find is not None:
            ports(dut, find_number_i=find[0], find_epoch_i=find[1])
        # Often the member that is being written.
        for name in ("tx", "rx"):
            at = write[0] - MEMBER_BASE if write and write[0] >= MEMBER_BASE and rng.random() < 0.5 else None
            at = rng.randrange(COMMUNICATORS * RANKS) if at is None else at
            ports(dut, **{f"{name}_communicator_i": at // RANKS, f"{name}_rank_i": at % RANKS})
        ports(dut, entry_communicator_i=rng.randrange(COMMUNICATORS))
    dut._log.info("found %d, not found %d, entries checked %d", hits, misses, checked)
    assert min(hits, misses, checked) > 2000


def test_unisono_communicators():
    simulate("unisono_communicators", __file__, limit_s=300)
