"""unisono_core_notices: answers before refusals before requests, and what each of them says."""

from collections import Counter

import cocotb
from bus import new_random
from cocotb.triggers import Timer
from hdl import scaled, simulate
from records import load, pack

WHO = [("communicator", 4), ("peer", 6)]
ANSWER = [*WHO, ("sequence", 32), ("code", 16)]
REFUSAL = [*WHO, ("slot", 16), ("generation", 16)]
REQUEST = [*WHO, ("dtype", 6), ("offset", 48), ("bytes", 48), ("slot", 16), ("generation", 16)]
NOTICE = [
    *(*WHO, ("kind", 4), ("dtype", 6), ("sequence", 32), ("bytes", 48), ("offset", 48), ("slot", 16)),
    ("generation", 16),
]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_notices(dut):
    rng, seen, spec = new_random("notices"), Counter(), load()
    kinds = spec.ControlKind

    def some(fields):
        values = {name: rng.getrandbits(bits) for name, bits in fields}
        if "dtype" in values:
            values["dtype"] = int(rng.choice(list(spec.Datatype)))
        if "code" in values:
            values["code"] = int(rng.choice(list(spec.ErrorCode)))
        return values

    for _ in range(scaled(20000, 5000)):
        answers, refuses, requests, ready = (rng.random() < 0.5 for _ in range(4))
        answer, refusal, request = some(ANSWER), some(REFUSAL), some(REQUEST)
        dut.answer_valid_i.value, dut.answer_i.value = answers, pack(ANSWER, answer)
        dut.refuse_valid_i.value, dut.refuse_i.value = refuses, pack(REFUSAL, refusal)
        dut.request_valid_i.value, dut.request_i.value = requests, pack(REQUEST, request)
        dut.notice_ready_i.value = ready
        await Timer(1, unit="ns")
        assert bool(int(dut.notice_valid_o.value)) == (answers or refuses or requests)
        assert bool(int(dut.answer_ready_o.value)) == ready
        assert bool(int(dut.refuse_ready_o.value)) == (ready and not answers)
        assert bool(int(dut.request_ready_o.value)) == (ready and not answers and not refuses)
        if answers:
            told = {**answer, "kind": kinds.PUT_DONE, "generation": answer["code"]}
            del told["code"]
        elif refuses:
            told = {**refusal, "kind": kinds.GET_FAILED, "offset": spec.ErrorCode.BUFFER_TOO_SMALL}
        else:
            told = {**request, "kind": kinds.GET}
        if answers or refuses or requests:
            assert int(dut.notice_o.value) == pack(NOTICE, told)
            seen[int(told["kind"])] += 1
    assert min(seen[int(kind)] for kind in (kinds.PUT_DONE, kinds.GET_FAILED, kinds.GET)) > 300


def test_unisono_core_notices():
    simulate("unisono_core_notices", __file__)
