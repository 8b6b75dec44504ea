"""Operators of the user: results, order, agreement, and what is refused. Every rank has different data."""

from __future__ import annotations

import gc
import re
import traceback
import weakref
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import Communicator, Operator, ThreadJob, _core
from unisono._spec import Collective, Datatype

P = 5
REDUCTIONS = [
    a for a in unisono.algorithms()
    if a.collective in ("reduce", "allreduce", "reduce_scatter", "scan") and a.name != "switch"
]  # fmt: skip


def affine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """b after a, maps x -> m x + c that wrap; m and c are the halves of an element. Does not commute."""
    m, c = a >> np.uint64(32), a & np.uint64(0xFFFFFFFF)
    n, d = b >> np.uint64(32), b & np.uint64(0xFFFFFFFF)
    return ((m * n) << np.uint64(32)) | ((n * c + d) & np.uint64(0xFFFFFFFF))


def absmax(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.abs(a) >= np.abs(b), np.abs(a), np.abs(b))


@pytest.fixture
def composition() -> Iterator[Operator]:
    made = Operator("composition", affine, commutative=False)
    yield made
    made.free()


@pytest.fixture
def largest() -> Iterator[Operator]:
    made = Operator("largest", absmax)
    yield made
    made.free()


def values(rank: int, n: int) -> np.ndarray:
    return np.random.default_rng([rank, n]).integers(0, 2**63, size=n, dtype=np.uint64)


def folded(ranks: int, n: int) -> np.ndarray:
    total = values(0, n)
    for rank in range(1, ranks):
        total = affine(total, values(rank, n))
    return total


@pytest.mark.parametrize("count", [1, 17, 5000, 100_000])
def test_what_does_not_commute_is_folded_in_rank_order(composition: Operator, count: int) -> None:
    def member(comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
        return comm.allreduce(values(comm.rank, count), op=composition), comm.scan(
            values(comm.rank, count), op=composition
        )

    for rank, (everything, prefix) in enumerate(ThreadJob(P, timeout=30).run(member)):
        np.testing.assert_array_equal(everything, folded(P, count))
        np.testing.assert_array_equal(prefix, folded(rank + 1, count))


@pytest.mark.parametrize("algorithm", REDUCTIONS, ids=lambda a: f"{a.collective}/{a.name}")
def test_every_algorithm_folds_in_order_or_refuses(composition: Operator, algorithm: unisono.Algorithm) -> None:
    n = 40

    def member(comm: Communicator) -> np.ndarray | None:
        call = getattr(comm, algorithm.collective)
        return call(values(comm.rank, n), op=composition, algorithm=algorithm.name)

    job = ThreadJob(P, timeout=30)
    if not algorithm.ordered:
        with pytest.raises(unisono.UnsupportedError, match="composition does not commute"):
            job.run(member)
        return
    for rank, result in enumerate(job.run(member)):
        match algorithm.collective:
            case "reduce":
                assert rank == 0 or result is None
                expected = folded(P, n)
            case "reduce_scatter":
                expected = folded(P, n)[rank * n // P : (rank + 1) * n // P]
            case "scan":
                expected = folded(rank + 1, n)
            case _:
                expected = folded(P, n)
        if result is not None:
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int8])
def test_what_commutes_on_any_algorithm(largest: Operator, dtype: type) -> None:
    data = [np.random.default_rng([rank, 3]).integers(-99, 99, size=300).astype(dtype) for rank in range(P)]
    expected = np.abs(np.stack(data)).max(axis=0)
    for name in ("ring", "recursive_doubling", "rabenseifner"):
        for result in ThreadJob(P, timeout=30).run(
            lambda comm, name=name: comm.allreduce(data[comm.rank], op=largest, algorithm=name)
        ):
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("policy", ["generous", "least_permissive", "random"])
@pytest.mark.parametrize("dtype", ["uint64", "fp16"])
def test_the_interpreter_runs_them_too(composition: Operator, largest: Operator, policy: str, dtype: str) -> None:
    if dtype == "uint64":
        op, data = composition, [values(rank, 9) for rank in range(P)]
    else:
        op, data = largest, [np.random.default_rng(rank).standard_normal(9).astype(np.float16) for rank in range(P)]
    engine = ThreadJob(P, timeout=30).run(
        lambda comm: comm.allreduce(data[comm.rank], op=op, algorithm="recursive_doubling")
    )
    raw = _core.interpret(
        collective=int(Collective.ALLREDUCE), algorithm="recursive_doubling", size=P, root=0, op=int(op.func),
        datatype=int(Datatype[dtype.upper()]), count=9, in_place=False, group_size=0,
        src=[own.view(np.uint8) for own in data], dst=[np.zeros(9 * own.itemsize, np.uint8) for own in data],
        layouts=[], policy=policy, seed=3,
    )  # fmt: skip
    for rank in range(P):
        assert bytes(raw[rank]) == engine[rank].tobytes()


def test_ranks_agree_on_the_name(composition: Operator, largest: Operator) -> None:
    def member(comm: Communicator) -> None:
        comm.allreduce(np.arange(4), op=largest if comm.rank == 0 else composition, algorithm="recursive_doubling")

    with pytest.raises(unisono.UnisonoError, match=r"largest|composition"):
        ThreadJob(2, timeout=10).run(member)


#: How a call that a function fails is made, and waited for.
FORMS = {
    "blocking": lambda comm, op: comm.allreduce(np.arange(4) + comm.rank, op=op),
    "in messages": lambda comm, op: comm.allreduce(np.arange(90_000) + comm.rank, op=op, algorithm="reduce_bcast"),
    "in flight": lambda comm, op: comm.allreduce_async(np.arange(4) + comm.rank, op=op).wait(),
    "several": lambda comm, op: unisono.wait_all([comm.allreduce_async(np.arange(4) + comm.rank, op=op)]),
    "here": lambda comm, op: comm.combine(np.arange(4), np.arange(4) + comm.rank, op=op),
}


@pytest.mark.parametrize("call", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("lanes", [True, False])
def test_what_a_function_raises_reaches_its_user(call: Callable[[Communicator, Operator], object], lanes: bool) -> None:
    def broken(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise ArithmeticError(f"no such sum,\nof {a[0]} and {b[0]}")

    op = Operator("broken", broken)
    outcomes: list[unisono.UnisonoError | None] = [None] * 3

    def member(comm: Communicator) -> None:
        try:
            call(comm, op)
        except unisono.UnisonoError as error:
            outcomes[comm.rank] = error

    try:
        ThreadJob(3, timeout=10, lanes=lanes).run(member)
    finally:
        op.free()
    failed = [error for error in outcomes if isinstance(error, unisono.InvalidOpError)]
    told = [error for error in outcomes if isinstance(error, unisono.RevokedError)]
    assert failed
    assert len(failed) + len(told) == 3
    for error in failed:
        assert 'op "broken" failed: ArithmeticError: no such sum, of ' in str(error)
        assert isinstance(error.__cause__, ArithmeticError)
        assert str(error.__cause__).startswith("no such sum,\nof ")
        frames = traceback.extract_tb(error.__cause__.__traceback__)
        assert [frame.name for frame in frames] == ["broken"]
    for error in told:
        assert re.search(r"rank \d", str(error)), error
        assert 'op "broken" failed: ArithmeticError: no such sum, of ' in str(error)


def test_a_rank_alone_that_fails_is_named_to_the_others() -> None:
    def member(comm: Communicator) -> str:
        try:
            comm.reduce(np.arange(4) + comm.rank, op=op, root=2, algorithm="linear")
            comm.barrier()
        except unisono.UnisonoError as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    def raises(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise KeyError("only here")

    op = Operator("raises", raises)
    try:
        texts = ThreadJob(3, timeout=10).run(member)
    finally:
        op.free()
    assert texts[2].startswith("InvalidOpError")
    for text in texts[:2]:
        assert text.startswith("RevokedError")
        assert "rank 2" in text
        assert "KeyError: 'only here'" in text


@pytest.mark.parametrize("raised", [ValueError(), ValueError("ä" * 500), ValueError("\udc80 half a pair")], ids=ascii)
def test_any_words_will_do(raised: Exception) -> None:
    def broken(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise raised

    op = Operator("broken", broken)
    try:
        with pytest.raises(unisono.InvalidOpError, match='op "broken" failed: ValueError') as failure:
            ThreadJob(1).run(lambda comm: comm.combine(np.arange(4), np.arange(4), op=op))
        assert failure.value.__cause__ is raised
        assert len(str(failure.value)) < 400
    finally:
        op.free()


def test_what_a_function_kept_can_be_looked_at_later() -> None:
    def broken(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise LookupError(a, b)

    op = Operator("broken", broken)
    try:
        with pytest.raises(unisono.InvalidOpError) as failure:
            ThreadJob(1).run(lambda comm: comm.combine(np.arange(300), np.arange(300) + 5, op=op))
    finally:
        op.free()
    assert failure.value.__cause__ is not None
    a, b = failure.value.__cause__.args
    np.testing.assert_array_equal(a, np.arange(300))
    np.testing.assert_array_equal(b, np.arange(300) + 5)


def test_a_function_must_not_call_unisono() -> None:
    seen: list[str] = []

    def member(comm: Communicator) -> None:
        def recursive(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            try:
                comm.barrier()
            except unisono.InvalidArgumentError as failure:
                seen.append(str(failure))
            return a + b

        op = Operator(f"recursive{comm.rank}", recursive)
        try:
            comm.combine(np.arange(4), np.arange(4), op=op)
        finally:
            op.free()

    ThreadJob(2, timeout=10).run(member)
    assert len(seen) == 2
    assert "must not call Unisono" in seen[0]


def test_names_and_numbers_are_checked(largest: Operator) -> None:
    for name, text in [("largest", "already"), ("sum", "already"), ("", "1 to 64"), ("x" * 65, "1 to 64")]:
        with pytest.raises(unisono.InvalidArgumentError, match=text):
            Operator(name, absmax)
    made = [Operator(f"op{k}", absmax) for k in range(7)]
    with pytest.raises(unisono.CapacityError, match="at most 8 ops"):
        Operator("one more", absmax)
    for op in made:
        op.free()
    with pytest.raises(unisono.InvalidArgumentError, match="was freed"):
        ThreadJob(1).run(lambda comm: comm.allreduce(np.arange(3), op=made[0]))
    with pytest.raises(unisono.InvalidOpError, match="none that unisono_op_create gave"):
        ThreadJob(1).run(lambda comm: comm.allreduce(np.arange(3), op=unisono.Func.USER7))


def test_what_a_function_holds_goes_when_its_operator_is_freed() -> None:
    class Held:
        def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return a + b

    freed, refused = Held(), Held()
    seen = [weakref.ref(freed), weakref.ref(refused)]
    op = Operator("held", freed)
    assert ThreadJob(2).run(lambda comm: comm.allreduce(1, op=op)) == [2, 2]
    with pytest.raises(unisono.InvalidArgumentError, match="already"):
        Operator("held", refused)
    op.free()
    del freed, refused
    gc.collect()
    assert [of() for of in seen] == [None, None]
