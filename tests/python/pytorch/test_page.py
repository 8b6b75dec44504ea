"""The program of docs/torch.md, as a reader would start it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .support import ROOT, SECONDS, environment, interpreter


def test_program_of_the_page(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    page = (ROOT / "docs/torch.md").read_text()
    (listing,) = [each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if each.startswith("# train.py")]
    program.write_text(listing)
    losses = []
    for launcher in (["torch.distributed.run", "--standalone", "--nproc-per-node", "2"], ["unisono", "run", "-n", "2"]):
        done = subprocess.run(
            [interpreter(), "-m", *launcher, str(program)],
            capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        losses.append(re.fullmatch(r"loss (\d\.\d{4})\n", done.stdout)[1])  # type: ignore[index]
    assert losses[0] == losses[1]
    assert float(losses[0]) < 0.1
