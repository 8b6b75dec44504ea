"""unisono_producers: limits against a model that counts, and no wake-up is lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import cocotb
from bus import bursts, never, new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import simulate

CALLS, WINDOW, ALL = 8, 32, (1 << 48) - 1


@dataclass
class Move:
    """A move in a window: what it follows, and what it has made, with the cycles in which it did."""

    distances: tuple[int, int]
    total: int
    made: list[tuple[int, int]] = field(default_factory=lambda: [(-1000, 0)])

    def made_by(self, cycle: int) -> int:
        """Bytes of jobs that had ended before a cycle."""
        return max(bytes_ for when, bytes_ in self.made if when <= cycle)


class Bench:
    """Pushes, ends and questions, every cycle; the model beside them."""

    def __init__(self, dut):
        self.dut, self.rng = dut, new_random("producers")
        self.calls: list[list[Move]] = [[] for _ in range(CALLS)]
        self.head = [0] * CALLS
        self.generation = [0] * CALLS
        self.cycle = 0
        self.waiting: dict[tuple[int, int], int] = {}
        self.asked: tuple[int, int] | None = None
        self.asked_for = 0
        self.pause = never
        self.counts = dict.fromkeys(("limits", "unlimited", "waits", "kicks", "stale", "all at once"), 0)
        for name in ("push_valid", "end_valid", "wait_valid", "clear_valid", "kick_ready"):
            getattr(dut, f"{name}_i").value = 0

    def bounds(self, slot: int, number: int) -> tuple[int, int]:
        """The least and the greatest limit that a move may be told now."""
        low = high = ALL
        for distance in self.calls[slot][number].distances:
            if not distance:
                continue
            producer = self.calls[slot][number - distance]
            if number - distance < self.head[slot]:
                # Retired: either what it made, or nothing any more to wait for.
                low = min(low, producer.total)
            else:
                low = min(low, producer.made_by(self.cycle - 5))
                high = min(high, producer.made_by(self.cycle))
        return low, high

    def look(self) -> None:
        """What the module said in the cycle that has ended."""
        dut = self.dut
        if int(dut.kick_valid_o.value) and int(dut.kick_ready_i.value):
            slot, entry = divmod(int(dut.kick_id_o.value), WINDOW)
            self.counts["kicks"] += 1
            self.waiting = {k: v for k, v in self.waiting.items() if k[0] != slot or k[1] % WINDOW != entry}
        dut.wait_valid_i.value = 0
        if self.asked and self.asked_for >= 4:
            slot, number = self.asked
            limit, (low, high) = int(dut.limit_o.value), self.bounds(slot, number)
            if int(dut.limited_o.value):
                self.counts["limits"] += 1
                assert low <= limit <= high, f"limit {limit}, should be {low} to {high}"
            else:
                self.counts["unlimited"] += 1
                assert high == ALL, f"no limit, should be {low} to {high}"
            wanted = min(limit + 64, min(self.calls[slot][number - d].total for d in self.distances(slot, number)))
            if int(dut.limited_o.value) and limit < wanted:
                dut.wait_valid_i.value = 1
                dut.wait_id_i.value = slot * WINDOW + number % WINDOW
                self.waiting[slot, number] = wanted
                self.counts["waits"] += 1
                self.asked = None

    def distances(self, slot: int, number: int) -> list[int]:
        return [d for d in self.calls[slot][number].distances if d]

    def check_waiting(self) -> None:
        """Every call that could go on is kicked before long."""
        self.waiting = {k: v for k, v in self.waiting.items() if k[1] >= self.head[k[0]]}
        for (slot, number), wanted in self.waiting.items():
            made = [self.calls[slot][number - d].made_by(self.cycle - 400) for d in self.distances(slot, number)]
            assert min(made) < wanted, f"move {number} of call {slot} was not kicked"

    def drive(self) -> None:
        """What happens in the next cycle."""
        dut, rng = self.dut, self.rng
        slot = rng.randrange(CALLS)
        moves = self.calls[slot]
        room = len(moves) - self.head[slot] < WINDOW
        pushes = room and rng.random() < 0.3
        dut.push_valid_i.value = int(pushes)
        if pushes:
            known = min(len(moves), WINDOW - 1)
            distances = tuple(rng.randint(0, min(known, rng.choice((2, 31)))) for _ in range(2))
            same = [moves[len(moves) - d].total for d in distances if d]
            total = min(same) if same else 64 * rng.randint(1, 6)
            dut.push_id_i.value = slot * WINDOW + len(moves) % WINDOW
            dut.push_generation_i.value = self.generation[slot]
            dut.push_distance0_i.value, dut.push_distance1_i.value = distances
            moves.append(Move(distances, total))
        dut.end_valid_i.value = 0
        slot = rng.randrange(CALLS)
        open_ = [n for n in range(self.head[slot], len(self.calls[slot]) - 3) if self.left(slot, n)]
        if open_ and not self.pause():
            number = rng.choice(open_[:4])
            move = self.calls[slot][number]
            stale = rng.random() < 0.05
            # A get is there all at once, and says no length.
            all_ = len(move.made) == 1 and rng.random() < 0.1
            step = 0 if all_ else rng.choice((0, min(64, self.left(slot, number))))
            dut.end_valid_i.value = 1
            dut.end_id_i.value = slot * WINDOW + number % WINDOW
            dut.end_generation_i.value = (self.generation[slot] + 2 * stale) % 4
            dut.end_bytes_i.value = step
            dut.end_all_i.value = int(all_)
            self.counts["stale"] += stale
            self.counts["all at once"] += all_
            if not stale:
                move.made.append((self.cycle + 1, ALL if all_ else move.made[-1][1] + step))
        for s in range(CALLS):
            while self.head[s] < len(self.calls[s]) and not self.left(s, self.head[s]):
                # It retires some time after its last end.
                if self.calls[s][self.head[s]].made[-1][0] > self.cycle - 8:
                    break
                self.head[s] += 1
        # What has retired asks no more.
        if self.asked is None or self.asked[1] < self.head[self.asked[0]] or rng.random() < 0.02:
            slot = rng.randrange(CALLS)
            # Moves issue some cycles after they have entered.
            numbers = [n for n in range(self.head[slot], len(self.calls[slot]) - 3) if self.distances(slot, n)]
            self.asked = (slot, rng.choice(numbers)) if numbers else None
            self.asked_for = 0
        if self.asked:
            dut.ask_id_i.value = self.asked[0] * WINDOW + self.asked[1] % WINDOW
            self.asked_for += 1
        dut.kick_ready_i.value = int(rng.random() < 0.7)

    def left(self, slot: int, number: int) -> int:
        move = self.calls[slot][number]
        return max(0, move.total - move.made[-1][1])

    async def run(self, cycles: int) -> None:
        """So many cycles."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk_i)
            self.cycle += 1
            self.look()
            if self.cycle % 16 == 0:
                self.check_waiting()
            self.drive()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def limits_and_kicks(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _ in range(30):
        bench.pause = bench.rng.choice((never, bursts(bench.rng)))
        await bench.run(400)
    dut._log.info("counts %s", bench.counts)
    assert bench.counts["limits"] > 1000
    assert bench.counts["unlimited"] > 50
    assert bench.counts["waits"] > 100
    assert bench.counts["kicks"] > 150
    assert bench.counts["stale"] > 50
    assert bench.counts["all at once"] > 50


def test_unisono_producers():
    simulate("unisono_producers", __file__)
