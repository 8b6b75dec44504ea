"""What a host of kernels includes: SmiInit_NAME for each program, and which program each rank runs."""

from __future__ import annotations

from collections.abc import Sequence

HEADER, SOURCE = "smi_generated_host.h", "smi_generated_host.c"

_HEADER = """\
// Written by `unisono kernel generate`. What hosts need of their programs of kernels: @programs@.
#ifndef UNISONO_GENERATED_HOST_H
#define UNISONO_GENERATED_HOST_H

#include <hlslib/intel/OpenCL.h>
#include <smi/communicator.h>

#include <string>
#include <utils/smi_utils.hpp>
#include <vector>

/// The program that a rank runs.
inline std::string SmiProgram(int rank) {
  static const char* const of_ranks[] = {@of_ranks@};
  return of_ranks[@index@];
}
/// The library of its kernels, which lies beside the host's program.
inline std::string SmiLibrary(int rank) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string own(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return own.substr(0, own.rfind('/') + 1) + SmiProgram(rank) + ".so";
}
/// The communicator of all ranks. Ends the program if there are more than hardware would be built for.
inline SMI_Comm SmiCommunicator(int rank, int ranks) {
  if (ranks > @most@) {
    cl::fail("the kernels are generated for up to @most@ ranks, and the job has " + std::to_string(ranks));
  }
  return SMI_Comm(static_cast<char>(rank), static_cast<char>(ranks));
}
/// The same, for whatever program the rank runs. Where ranks run several, the job has those of the topology.
template <class... OfTransport>
inline SMI_Comm SmiInit(int rank, int ranks, OfTransport&&...) {
  if (ranks @differs@) {
    cl::fail("the kernels are generated for @ranks_text@ ranks, and the job has " + std::to_string(ranks));
  }
  return SmiCommunicator(rank, ranks);
}
// Those of SMI's hosts, which call the first one's on all ranks. What its transport is given is not needed here.
@functions@
#endif
"""
_FUNCTION = """\
template <class... OfTransport>
inline SMI_Comm SmiInit_@name@(int rank, int ranks, OfTransport&&...) {
  return SmiCommunicator(rank, ranks);
}
"""


def header(programs: Sequence[str], of_ranks: Sequence[str], most_ranks: int) -> str:
    """The header. `of_ranks`: the program of each rank, where a topology says it; else all run the only one."""
    known = list(of_ranks) or [programs[0]]
    several = len(set(known)) > 1
    known = known if several else known[:1]
    return _fill(
        _HEADER,
        programs=", ".join(programs),
        of_ranks=", ".join(f'"{name}"' for name in known),
        index=f"rank < {len(known)} ? rank : {len(known) - 1}" if several else "0 * rank",
        differs=f"!= {len(known)}" if several else f"> {most_ranks}",
        most=str(most_ranks),
        ranks_text=str(len(known)) if several else f"up to {most_ranks}",
        functions="".join(_fill(_FUNCTION, name=name) for name in programs),
    )


def source() -> str:
    """The file that SMI's hosts include by its name."""
    return f'#include "{HEADER}"\n'


def _fill(text: str, **words: str) -> str:
    for name, word in words.items():
        text = text.replace(f"@{name}@", word)
    return text
