"""state_e and early_op_e of unisono_rbm_pkg, as tests name them."""

import re

from hdl import RTL


def states() -> list[str]:
    """The names of state_e, in their order."""
    text = (RTL / "rbm" / "unisono_rbm_pkg.sv").read_text()
    found = re.search(r"enum logic \[4:0\] \{(.*?)\} state_e;", text, re.S)
    assert found
    return re.findall(r"(\w+)", re.sub(r"//.*", "", found[1]))


def early_ops() -> dict[str, int]:
    """early_op_e."""
    text = (RTL / "rbm" / "unisono_rbm_pkg.sv").read_text()
    return {name: int(value) for name, value in re.findall(r"(Early\w+) = 9'd(\d+)", text)}
