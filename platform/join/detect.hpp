// Launchers of others: what they say of this process in its environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/join/job.hpp"

namespace unisono::join {

/// UNISONO_START: which launcher holds.
enum class WantedStart { kAny, kPmix, kPmi, kPmi2, kTorchrun, kSlurm, kNone };
/// Throws Error(kBootstrap) for other values.
WantedStart wanted_start();

/// A launcher, and what it says.
struct Detected {
  Launcher launcher = Launcher::kNone;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;  ///< 0: it tells when it is asked
  const char* rank_source = "";
  const char* size_source = "";
  std::optional<std::uint32_t> local_rank{};
  int pmi_descriptor = -1;
  std::uint32_t pmi_version = 0;  ///< the one that is wanted
  std::optional<HostPort> pmi_port{};
};

/// The launcher that holds, if there is one: the wanted one, else PMIx, else PMI, else torchrun. SLURM's variables
/// hold only if `slurm_counts`: a batch script has them as well, and all that mpirun starts from one. `pmix_loads` is
/// asked if PMIx is there. Throws Error(kBootstrap) if a variable is broken, the wanted launcher is not there, or PMIx,
/// PMI and torchrun contradict each other.
std::optional<Detected> detect(WantedStart wanted, bool slurm_counts, bool (*pmix_loads)());

/// Has the environment say what the launcher says. With `compare` it has a rank and a size: throws Error(kBootstrap) if
/// they differ.
void take_over(const Detected& found, JobEnvironment& environment, bool compare);

/// Where the ranks of a SLURM step meet if nothing else is said: a file in the working folder. Throws
/// Error(kBootstrap).
std::string slurm_file();

}  // namespace unisono::join
