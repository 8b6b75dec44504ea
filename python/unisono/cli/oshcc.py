"""The command `unisono-oshcc`: the C compiler, with what programs of OpenSHMEM need (docs/shmem.md)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from .. import config


def command(arguments: Sequence[str]) -> list[str]:
    """What is run: the compiler that UNISONO_CC names, or cc."""
    compiler = shlex.split(os.environ.get("UNISONO_CC", "cc"))
    return [*compiler, *config.shmem_cflags(), *arguments, *config.shmem_libs()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles; with --showme first it prints the command instead."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--showme"]:
        print(shlex.join(command(given[1:])))
        return 0
    words = command(given)
    if shutil.which(words[0]) is None:
        print(f"unisono-oshcc: there is no compiler {words[0]}; install one, or name it by UNISONO_CC", file=sys.stderr)
        return 127
    return subprocess.call(words)


if __name__ == "__main__":
    sys.exit(main())
