"""unisono_exchange_calls: descriptors, completions, failures and soft resets in random order, against a model."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ROWS, QUAD = 16, 4
INPUTS = ("soft_reset", "write", "write_word", "write_data", "write_strobe", "read_word", "ring", "quad_ready")
INPUTS += ("remove", "response_valid", "response_code", "failed", "failed_response", "forget")


class Model:
    """What the host has of its calls."""

    def __init__(self, rng):
        self.descriptor = bytearray(rng.randbytes(8 * ROWS))
        self.left = b""  # of the descriptor that was rung for, what has not left
        self.due = 0  # cycles until the next four rows stand at the port
        self.code = self.error = 0
        self.completed = self.seen = False

    def forget(self):
        self.left, self.due, self.code, self.error, self.completed, self.seen = b"", 0, 0, 0, False, False

    def outputs(self, read_word):
        """What there is in a cycle."""
        word = self.descriptor[4 * read_word : 4 * read_word + 4]
        return {
            "taken": bool(self.left),
            "quad_valid": bool(self.left) and not self.due,
            "read_data": int.from_bytes(word, "little"),
            "completed": self.completed,
            "completed_code": self.code,
            "error_seen": self.seen,
            "error": self.error,
        }

    def step(self, given):
        """The next cycle."""
        if given["write"]:
            for byte in range(4):
                if given["write_strobe"] >> byte & 1:
                    at = 4 * given["write_word"] + byte
                    self.descriptor[at] = given["write_data"] >> 8 * byte & 0xFF
        if given["soft_reset"]:
            self.forget()
            return
        if given["ring"]:
            self.left, self.due = bytes(self.descriptor), QUAD - 1
        elif self.left and self.due:
            self.due -= 1
        elif self.left and given["quad_ready"]:
            self.left, self.due = self.left[8 * QUAD :], QUAD - 1
        if given["remove"]:
            self.completed = bool(given["response_valid"])
            self.code = given["response_code"] if self.completed else 0
        if given["failed"]:
            self.seen, self.error = True, given["failed_response"]
        elif given["forget"]:
            self.seen = False


def draw(rng, model, hurry):
    """Inputs of a cycle."""
    given = dict.fromkeys(INPUTS, 0)
    given |= {"write_word": rng.randrange(2 * ROWS), "read_word": rng.randrange(2 * ROWS)}
    given |= {"write_data": rng.getrandbits(32), "write_strobe": rng.choice((15, rng.getrandbits(4)))}
    given |= {"response_code": rng.getrandbits(16), "failed_response": rng.getrandbits(48)}
    given |= {"response_valid": rng.random() < 0.5, "quad_ready": rng.random() < hurry}
    # What has been rung for is left alone until it has left.
    given["ring"] = not model.left and rng.random() < 0.1
    given["write"] = not model.left and not given["ring"] and rng.random() < 0.7
    likely = {"remove": 0.2, "failed": 0.1, "forget": 0.2, "soft_reset": 0.01}
    return given | {name: rng.random() < share for name, share in likely.items()}


def show(dut, given):
    for name, value in given.items():
        getattr(dut, f"{name}_i").value = value


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    rng, seen = new_random("exchange calls"), Counter()
    show(dut, dict.fromkeys(INPUTS, 0))
    await start_clock_and_reset(dut)
    for _ in range(2):
        model = Model(rng)
        for word in range(2 * ROWS):
            data = int.from_bytes(model.descriptor[4 * word : 4 * word + 4], "little")
            show(dut, {"write": 1, "write_word": word, "write_data": data, "write_strobe": 15})
            await RisingEdge(dut.clk_i)
        hurry = 1.0
        for cycle in range(scaled(40000, 12000)):
            if cycle % 200 == 0:
                hurry = rng.choice((0.1, 0.5, 1.0))
            given = draw(rng, model, hurry)
            show(dut, given)
            await FallingEdge(dut.clk_i)
            want = model.outputs(given["read_word"])
            found = {name: int(getattr(dut, f"{name}_o").value) for name in want}
            assert found == {name: int(value) for name, value in want.items()}
            if want["quad_valid"]:
                quad = model.left[: 8 * QUAD]
                assert int(dut.quad_data_o.value).to_bytes(8 * QUAD, "little") == quad
                seen["waits" if not given["quad_ready"] else "leaves"] += 1
                seen["last"] += bool(given["quad_ready"]) and len(model.left) == 8 * QUAD
            seen["reset in between"] += given["soft_reset"] and want["taken"]
            seen["no completion"] += given["remove"] and not given["response_valid"]
            seen["failed and forgotten"] += given["failed"] and given["forget"]
            seen["completed"] += want["completed"]
            model.step(given)
            await RisingEdge(dut.clk_i)
        show(dut, dict.fromkeys(INPUTS, 0))
        await reset_again(dut)
        for name in ("taken", "quad_valid", "completed", "completed_code", "error_seen", "error"):
            assert int(getattr(dut, f"{name}_o").value) == 0
    for what in ("waits", "leaves", "last", "reset in between", "no completion", "failed and forgotten", "completed"):
        assert seen[what] > 20, what


def test_unisono_exchange_calls():
    simulate("unisono_exchange_calls", __file__)
