"""Every algorithm on the microcontroller makes the native generator's moves, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from . import model
from .cases import ALLGATHER, NO_DATA, POINT_TO_POINT, REDUCING, VECTORS, calls_of, programs_of
from .check import same_context, same_program
from .cpu import Call, Communicator, Cpu, Descriptor, Oracle, describe

pytestmark = pytest.mark.together

_TABLE = Oracle(model.oracle()).algorithms
# Calls of the engine have no trees of switches.
SERVED = [i for i, (_, name, direct) in enumerate(_TABLE) if not direct and name != "switch"]
CALLS = 60  # of each algorithm


def _enter(cpu: Cpu, index: int, call: Call, generation: int) -> None:
    cpu.communicator(
        index, Communicator(call.rank, call.size, call.group_size, generation=generation, number=77 + index)
    )


@pytest.mark.parametrize("position", SERVED, ids=lambda i: f"{_TABLE[i][0]}-{_TABLE[i][1]}")
def test_moves_are_those_of_the_native_generator(position: int, cpu: Cpu, oracle: Oracle) -> None:
    collective = _TABLE[position][0]
    made = 0
    for i, call in enumerate(programs_of(oracle, collective, position, 1, CALLS)):
        expected = oracle.record(call, position)
        if not expected.fits:
            continue
        index = i % 32
        _enter(cpu, index, call, i + 1)
        run = cpu.call(describe(call, position + 1, index, tag=i), slot=i % 8)
        same_program(run, expected, call)
        same_context(run, expected, call, position, index)
        assert run.context is not None
        assert run.context.sequence_or_tag == (i if collective in POINT_TO_POINT else run.context.sequence_or_tag)
        made += 1
    assert made >= (1 if collective in NO_DATA else 8), "the cases reach the algorithm"


def test_large_communicators(cpu: Cpu, oracle: Oracle) -> None:
    """Ranks beyond 16 bits, with few moves a rank."""
    generation = 0
    for position in SERVED:
        collective, name, _ = _TABLE[position]
        if name not in {"chain", "binomial", "recursive_doubling", "dissemination", "direct"} or collective in VECTORS:
            continue
        if (collective, name) == (ALLGATHER, "chain"):
            continue  # a move for each rank
        for rank in (0, 1, 99_999, 0xFFFFFF):
            call = Call(
                collective,
                count=0 if collective in NO_DATA else 3,
                size=1 << 24,
                rank=rank,
                root=5,
                func=1 if collective in REDUCING else 0,
                dtype=0 if collective in NO_DATA else 2,
            )
            generation += 1
            _enter(cpu, 3, call, generation)
            expected = oracle.record(call, position)
            assert expected.fits
            same_program(cpu.call(describe(call, position + 1, 3)), expected, call)


def _mixture(oracle: Oracle, seed: int, number: int) -> list[tuple[Call, int]]:
    draw = random.Random(seed)
    calls: list[tuple[Call, int]] = []
    while len(calls) < number:
        position = draw.choice(SERVED)
        call = draw.choice(list(calls_of(_TABLE[position][0], seed, 40)))
        if oracle.admits(call, position) and oracle.record(call, position).fits:
            calls.append((call, position))
    return calls


@pytest.mark.parametrize(("ready", "retire", "shortcut"), [(256, 256, True), (96, 40, True), (200, 12, False)])
def test_eight_calls_interleave(
    ready: int, retire: int, shortcut: bool, make: Callable[..., Cpu], oracle: Oracle
) -> None:
    for seed in range(12):
        cpu = make(seed=seed)
        cpu.pace(ready, retire)
        cpu.shortcut(shortcut)
        calls = _mixture(oracle, seed, 8)
        for slot, (call, position) in enumerate(calls):
            _enter(cpu, slot, call, 1)
            cpu.start(slot, describe(call, position + 1, slot, tag=slot))
        runs = cpu.finish()
        for slot, (call, position) in enumerate(calls):
            expected = oracle.record(call, position)
            same_program(runs[slot], expected, call)
            same_context(runs[slot], expected, call, position, slot)


def test_steps_of_two_calls_take_turns(cpu: Cpu, oracle: Oracle) -> None:
    position = next(i for i in SERVED if _TABLE[i] == (9, "ring", False))
    call = Call(9, count=1000, size=32, rank=3, func=1)
    for slot in (0, 1):
        _enter(cpu, slot, call, 1)
        cpu.start(slot, describe(call, position + 1, slot))
    runs = cpu.finish()
    spans = [(run.move_cycles[0], run.move_cycles[-1]) for run in runs.values()]
    assert spans[0][0] < spans[1][1]
    assert spans[1][0] < spans[0][1]
    for run in runs.values():
        same_program(run, oracle.record(call, position), call)


def test_a_plan_is_found_again_and_makes_the_same(cpu: Cpu, oracle: Oracle) -> None:
    """Many calls that share the places of plans, each twice in a row and again later."""
    mixture = _mixture(oracle, 5, 40)
    generation: dict[tuple[int, int, int], int] = {}
    for call, position in [entry for entry in mixture for _ in range(2)] + mixture:
        group = (call.rank, call.size, call.group_size)
        # One entry of the table, which changes all the time: a state stands for its contents.
        _enter(cpu, 9, call, generation.setdefault(group, len(generation) + 1))
        same_program(cpu.call(describe(call, position + 1, 9)), oracle.record(call, position), call)


def test_the_choice_is_that_of_the_native_engine(cpu: Cpu, oracle: Oracle) -> None:
    generation = 0
    for collective in sorted({entry[0] for entry in _TABLE}):
        for call in calls_of(collective, 3, 24):
            for crowded in (False, True):
                generation += 1
                position = oracle.choose(call, crowded)
                expected = oracle.record(call, position)
                if not expected.fits:
                    continue
                entry = Communicator(call.rank, call.size, call.group_size, generation=generation, crowded=crowded)
                cpu.communicator(2, entry)
                run = cpu.call(describe(call, 0, 2))
                same_program(run, expected, call)
                same_context(run, expected, call, position, 2)


def test_facts_agree_with_the_definitions(oracle: Oracle) -> None:
    assert oracle.operators() == -1


def test_only_point_to_point_has_a_tag(cpu: Cpu) -> None:
    def tag(descriptor: Descriptor) -> int:
        run = cpu.call(descriptor)
        assert run.context is not None, run.fail
        return run.context.sequence_or_tag

    cpu.communicator(0, Communicator(rank=0, size=2))
    for _ in range(2):
        assert tag(Descriptor(21, dtype=0, tag=5, communicator=0)) == 0
        assert tag(Descriptor(3, count=1, root=1, tag=123, communicator=0)) == 123
        assert tag(Descriptor(1, count=4, tag=6, communicator=0)) == 0


OK, INVALID, COUNT, DTYPE, OP, ROOT, SMALL, UNKNOWN, UNSUPPORTED, FREED, REVOKED, CAPACITY = (
    0, 1, 2, 3, 4, 5, 6, 9, 10, 12, 13, 22,
)  # fmt: skip

REFUSED = {
    "unknown collective": (Descriptor(25), INVALID),
    "collective beyond the table": (Descriptor(200), INVALID),
    "a program": (Descriptor(31), UNSUPPORTED),
    "unknown datatype": (Descriptor(7, count=1, dtype=21), DTYPE),
    "no datatype": (Descriptor(7, count=1, dtype=0), DTYPE),
    "unknown operator": (Descriptor(9, count=1, func=14), OP),
    "no operator": (Descriptor(9, count=1), OP),
    "mean of a scan": (Descriptor(19, count=1, func=13), OP),
    "operator of the user": (Descriptor(9, count=1, func=16), UNSUPPORTED),
    "operator not on the datatype": (Descriptor(9, count=1, func=10, dtype=6), DTYPE),
    "operator some member lacks": (Descriptor(9, count=1, func=2), UNSUPPORTED),
    "datatype some member lacks": (Descriptor(9, count=1, func=1, dtype=9), UNSUPPORTED),
    "other datatype on the wire": (Descriptor(9, count=1, func=1, wire_dtype=4), UNSUPPORTED),
    "root outside": (Descriptor(7, count=1, root=4), ROOT),
    "peer outside": (Descriptor(3, count=1, root=0xFFFFFFFF), ROOT),
    "count too large": (Descriptor(7, count=1 << 40), COUNT),
    "count without end": (Descriptor(7, count=-1), COUNT),
    "algorithm of another collective": (Descriptor(7, count=1, algorithm=1), UNKNOWN),
    "algorithm beyond the table": (Descriptor(7, count=1, algorithm=250), UNKNOWN),
    "tag too large": (Descriptor(3, count=1, root=1, tag=1 << 31), INVALID),
    "src too small": (Descriptor(9, count=10, func=1, src_bytes=39), SMALL),
    "dst too small": (Descriptor(9, count=10, func=1, dst_bytes=39), SMALL),
    "dst far too small": (Descriptor(11, count=1 << 38, dst_bytes=1 << 32), SMALL),
    "scratch too small": (Descriptor(20, count=1000, func=1, scratch_bytes=3999), SMALL),
    "params too small": (Descriptor(16, count=1000, params_bytes=8), SMALL),
    "communicator outside": (Descriptor(7, count=1, communicator=32), FREED),
    "communicator far outside": (Descriptor(7, count=1, communicator=0xFFFFFF00), FREED),
    "communicator freed": (Descriptor(7, count=1, communicator=1), FREED),
    "communicator revoked": (Descriptor(7, count=1, communicator=2), REVOKED),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, cpu: Cpu, oracle: Oracle) -> None:
    descriptor, code = REFUSED[name]
    cpu.communicator(0, Communicator(rank=2, size=4, funcs=0xFFFB, datatypes=0xFFFDFF))
    cpu.communicator(1, Communicator(rank=2, size=4, valid=False))
    cpu.communicator(2, Communicator(rank=2, size=4, revoked=True))
    good = Descriptor(7, count=10, root=1)
    for _ in range(2):  # as a new call, and if it has a plan
        run = cpu.call(descriptor, slot=3)
        assert run.fail == code
        assert not run.moves
        assert not run.ended
        assert run.context is None
        # The next call is served as if nothing had been.
        after = cpu.call(good, slot=3)
        assert after.fail is None
        assert after.ended
        assert after.moves


def test_direct_algorithms_and_restrictions_are_refused(cpu: Cpu, oracle: Oracle) -> None:
    cpu.communicator(0, Communicator(rank=2, size=100))
    for position, (collective, name, direct) in enumerate(_TABLE):
        call = Call(collective, count=4, size=100, rank=2, func=1 if collective in REDUCING else 0, dtype=6)
        if collective in NO_DATA:
            continue
        if direct or not oracle.admits(call, position):
            assert cpu.call(describe(call, position + 1)).fail == UNSUPPORTED, name


def test_streams_have_no_size(cpu: Cpu) -> None:
    cpu.communicator(0, Communicator(rank=0, size=4))
    assert cpu.call(Descriptor(9, count=10, func=1, src_bytes=0)).fail == SMALL
    assert cpu.call(Descriptor(9, count=10, func=1, src_bytes=0, src_stream=True)).fail is None


def test_lists_that_are_too_long_end_the_call(cpu: Cpu, oracle: Oracle) -> None:
    """A broadcast to more peers than the engine's lists hold; the call beside it is not touched."""
    position = next(i for i in SERVED if _TABLE[i] == (7, "linear", False))
    cpu.communicator(0, Communicator(rank=0, size=2000))
    long = Call(7, count=4, size=2000)
    short = Call(7, count=4, size=1000)
    cpu.communicator(1, Communicator(rank=0, size=1000))
    for _ in range(2):
        cpu.start(0, describe(long, position + 1, 0))
        cpu.start(1, describe(short, position + 1, 1))
        runs = cpu.finish()
        assert runs[0].fail == CAPACITY
        assert not runs[0].moves
        assert not runs[0].ended
        same_program(runs[1], oracle.record(short, position), short)


def test_offsets_beyond_a_move_end_the_call(cpu: Cpu) -> None:
    """2^40 - 1 elements of 16 bytes for each of 32 ranks are 2^49 bytes, and an offset has 48 bits."""
    cpu.communicator(0, Communicator(rank=0, size=32))
    run = cpu.call(Descriptor(11, count=(1 << 40) - 1, dtype=9))
    assert run.fail == CAPACITY
    assert not run.ended


def test_the_memory_reads_back_and_a_new_run_begins_anew(cpu: Cpu, image: list[int]) -> None:
    cpu.communicator(0, Communicator(rank=0, size=2))
    barrier = Descriptor(21, dtype=0)
    first = cpu.call(barrier)
    cpu.run(False)
    for address in (0, 1, 17, len(image) // 2):
        assert cpu.read(address) == image[address]
    cpu.load([0x12345678], 32767)
    assert cpu.read(32767) == 0x12345678
    cpu.load(image)
    cpu.run(True)
    again = cpu.call(barrier)
    assert first.context is not None
    assert again.context == first.context


def test_rules_of_the_machine_come_first(make: Callable[..., Cpu], oracle: Oracle) -> None:
    """A rule in the image's table, as a host writes it, decides before those of the library."""
    call = Call(9, count=10, size=8, rank=3, func=1)
    ring = next(i for i in SERVED if _TABLE[i] == (9, "ring", False))
    assert oracle.choose(call) != ring
    cpu = make()
    cpu.communicator(0, Communicator(rank=3, size=8))
    same_program(cpu.call(describe(call)), oracle.record(call, oracle.choose(call)), call)
    cpu.run(False)
    # min_bytes, max_bytes, min_ranks, max_ranks, position
    words = [1, 0, 0, 0, 1000, 0, 1, 0xFFFFFFFF, ring, 0]
    cpu.load(words, model.rules_address() // 4)
    cpu.run(True)
    same_program(cpu.call(describe(call)), oracle.record(call, ring), call)
    larger = Call(9, count=1000, size=8, rank=3, func=1)
    same_program(cpu.call(describe(larger)), oracle.record(larger, oracle.choose(larger)), larger)


def test_control_forgets_plans(cpu: Cpu, oracle: Oracle) -> None:
    """A table entry rewritten without a new generation is seen after a control item, not before."""
    call = Call(7, count=10, size=4, rank=2)
    cpu.communicator(0, Communicator(rank=2, size=4))
    position = oracle.choose(call)
    same_program(cpu.call(describe(call)), oracle.record(call, position), call)
    cpu.communicator(0, Communicator(rank=0, size=4))
    other = Call(7, count=10, size=4, rank=0)
    cpu.control()
    cpu.finish()
    same_program(cpu.call(describe(call)), oracle.record(other, oracle.choose(other)), other)


NEW = """
#include "collectives/bcast/bcast.hpp"
#include "collectives/build.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace)

// A chain that runs downwards, in two halves.
std::uint32_t bcast_downwards_steps(const Call& /*call*/) { return 2; }

void bcast_downwards_step(const Call& call, std::uint32_t s, Emit& emit) {
  if (call.size == 1) return;
  const std::uint32_t next = minus(call.rank, 1, call.size);
  const Split halves{call.count, 2};
  Build move(call);
  const Place place = dst(halves.begin(s) * element_bytes(call));
  move.count(halves.count(s));
  if (call.rank == call.root) {
    move.take(place);
  } else {
    move.arrive(plus(call.rank, 1, call.size), s).keep(place);
  }
  if (next != call.root) move.send(next, s);
  emit(move);
}

}  // namespace unisono::collectives
"""
ENTRY = """    {.collective = Collective::kBcast,
     .name = "downwards",
     .source = "a test",
     .restriction = "",
     .cost = "",
     .summary = "",
     .ordered = true,
     .steps = bcast_downwards_steps,
     .step = bcast_downwards_step},
}};
"""


@pytest.mark.full  # builds another firmware
def test_a_new_algorithm_needs_a_new_image_only(
    tmp_path: Path, library: Path, make: Callable[..., Cpu], oracle: Oracle
) -> None:
    root = model.copy_sources(tmp_path)
    (root / "collectives/bcast/downwards.cpp").write_text(NEW, encoding="utf-8")
    table = root / "collectives/bcast/bcast.hpp"
    text = table.read_text(encoding="utf-8")
    before = len([name for collective, name, _ in _TABLE if collective == 7])
    text = text.replace(f"std::array<Algorithm, {before}>", f"std::array<Algorithm, {before + 1}>")
    text = text.replace("}};\n", ENTRY).replace(
        "inline constexpr std::array",
        "std::uint32_t bcast_downwards_steps(const Call& call);\n"
        "void bcast_downwards_step(const Call& call, std::uint32_t s, Emit& emit);\n\ninline constexpr std::array",
    )
    table.write_text(text, encoding="utf-8")
    position = max(i for i, entry in enumerate(_TABLE) if entry[0] == 7) + 1
    call = Call(7, count=1001, size=5, rank=2, root=4)

    # The model was built before; it is the same file.
    assert library == model.model()
    old = make()
    old.communicator(0, Communicator(rank=2, size=5))
    assert old.call(describe(call, position + 1)).fail == UNKNOWN, "another collective's"
    new = make(model.image(root, "firmware-new"))
    new.communicator(0, Communicator(rank=2, size=5))
    run = new.call(describe(call, position + 1))
    assert run.fail is None
    assert run.ended
    assert [model.decode_move(move.tobytes()) for move in run.moves] == [
        # count, peer of the arrival, tag, byte offset in dst, peer of the message
        (501, 3, 0, 0, 1),
        (500, 3, 1, 2004, 1),
    ]
    # The algorithms that were there before make what they made.
    before_it = oracle.choose(call)
    same_program(new.call(describe(call, before_it + 1)), oracle.record(call, before_it), call)


def test_both_sides_of_the_port_have_the_same_numbers() -> None:
    assert model.port_of_the_firmware() == model.port_of_the_design()


def test_nothing_is_said_while_it_waits(cpu: Cpu) -> None:
    assert cpu.finish() == {}
    cpu.communicator(0, Communicator(rank=0, size=2))
    assert cpu.call(Descriptor(21, dtype=0)).ended
    assert cpu.finish() == {}
