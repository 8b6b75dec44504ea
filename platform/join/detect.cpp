#include "platform/join/detect.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {
namespace {

[[noreturn]] void contradiction(const std::string& one, std::uint32_t its, const std::string& other,
                                std::uint32_t others, const std::string& advice) {
  throw Error(ErrorCode::kBootstrap,
              formatted("environment variable {} is \"{}\", but {} is \"{}\": two launchers describe this process. {}",
                        one, its, other, others, advice));
}

std::uint32_t rank_of(const char* name, std::uint32_t size) {
  return whole_number(name, 0, size - 1, formatted("this process's rank, 0 to {} (its launcher sets it)", size - 1));
}

std::uint32_t size_of(const char* name) {
  return whole_number(name, 1, kMaxJobSize,
                      formatted("the number of ranks, 1 to {} (its launcher sets it)", kMaxJobSize));
}

std::optional<std::uint32_t> local_rank_of(const char* name) {
  if (!variable(name)) return std::nullopt;
  return whole_number(name, 0, kMaxJobSize - 1,
                      formatted("this process's rank on its host, 0 to {} (its launcher sets it)", kMaxJobSize - 1));
}

std::optional<Detected> pmix() {
  const auto space = variable("PMIX_NAMESPACE");
  if (!variable("PMIX_RANK") || !space || space->empty()) return std::nullopt;
  Detected found;
  found.launcher = Launcher::kPmix;
  found.rank = rank_of("PMIX_RANK", kMaxJobSize);
  found.rank_source = "PMIX_RANK";
  return found;
}

std::optional<Detected> pmi() {
  const auto descriptor = variable("PMI_FD");
  const auto port = variable("PMI_PORT");
  if (!descriptor && !port) return std::nullopt;
  Detected found;
  found.launcher = Launcher::kPmi;
  if (descriptor) {
    found.pmi_descriptor = static_cast<int>(
        whole_number("PMI_FD", 0, INT_MAX, "the number of the socket that leads to the launcher, which sets it"));
  } else {
    found.pmi_port = parse_host_port(*port);
    if (!found.pmi_port) refuse("PMI_PORT", port, "host:port, where the launcher, which sets it, listens");
  }
  // Over a port it tells both when it is asked, and knows the process by its number.
  const bool tells = descriptor || variable("PMI_RANK") || variable("PMI_SIZE");
  found.rank_source = tells ? "PMI_RANK" : "PMI_ID";
  if (tells) {
    found.size = size_of("PMI_SIZE");
    found.size_source = "PMI_SIZE";
  }
  found.rank = rank_of(found.rank_source, tells ? found.size : kMaxJobSize);
  found.local_rank = local_rank_of("MPI_LOCALRANKID");
  return found;
}

/// Others have a variable RANK as well: it counts beside what torchrun alone sets, or what all need who start ranks of
/// torch.distributed.
std::optional<Detected> torchrun() {
  const bool all = variable("RANK") && variable("WORLD_SIZE") && variable("MASTER_ADDR") && variable("MASTER_PORT");
  if (!variable("TORCHELASTIC_RUN_ID") && !all) return std::nullopt;
  Detected found;
  found.launcher = Launcher::kTorchrun;
  found.size = size_of("WORLD_SIZE");
  found.size_source = "WORLD_SIZE";
  found.rank = rank_of("RANK", found.size);
  found.rank_source = "RANK";
  found.local_rank = local_rank_of("LOCAL_RANK");
  return found;
}

std::optional<Detected> slurm() {
  if (!variable("SLURM_PROCID") || !variable("SLURM_NTASKS")) return std::nullopt;
  Detected found;
  found.launcher = Launcher::kSlurm;
  found.size = size_of("SLURM_NTASKS");
  found.size_source = "SLURM_NTASKS";
  found.rank = rank_of("SLURM_PROCID", found.size);
  found.rank_source = "SLURM_PROCID";
  found.local_rank = local_rank_of("SLURM_LOCALID");
  return found;
}

const char* name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::kPmix:
      return "pmix";
    case Launcher::kPmi:
      return "pmi";
    case Launcher::kTorchrun:
      return "torchrun";
    case Launcher::kSlurm:
      return "slurm";
    case Launcher::kNone:
      break;
  }
  return "none";
}

/// Of two launchers the first, if they say the same; the other if the first is PMIx, whose library cannot be loaded.
std::optional<Detected> agreed(std::optional<Detected> one, const std::optional<Detected>& other,
                               bool (*pmix_loads)()) {
  if (!one) return other;
  if (!other) return one;
  const std::string advice = formatted("Say which one holds: UNISONO_START={} or UNISONO_START={}",
                                       name_of(one->launcher), name_of(other->launcher));
  if (one->rank != other->rank) {
    contradiction(one->rank_source, one->rank, other->rank_source, other->rank, advice);
  }
  if (one->size != 0 && other->size != 0 && one->size != other->size) {
    contradiction(one->size_source, one->size, other->size_source, other->size, advice);
  }
  if (one->launcher == Launcher::kPmix && !pmix_loads()) return other;
  if (one->size == 0) {
    // Compared with what the launcher tells when it is asked.
    one->size = other->size;
    one->size_source = other->size_source;
  }
  return one;
}

std::optional<Detected> wanted_one(const char* value, std::optional<Detected> found, const char* missing) {
  if (!found) refuse("UNISONO_START", value, formatted("what has started this process: {}", missing));
  return found;
}

}  // namespace

WantedStart wanted_start() {
  const auto value = variable("UNISONO_START");
  if (!value) return WantedStart::kAny;
  if (*value == "pmix") return WantedStart::kPmix;
  if (*value == "pmi") return WantedStart::kPmi;
  if (*value == "pmi2") return WantedStart::kPmi2;
  if (*value == "torchrun") return WantedStart::kTorchrun;
  if (*value == "slurm") return WantedStart::kSlurm;
  if (*value == "none") return WantedStart::kNone;
  refuse("UNISONO_START", value,
         "pmix, pmi, pmi2, torchrun or slurm (the launcher whose rank and size hold), or none (a job of one rank)");
}

std::optional<Detected> detect(WantedStart wanted, bool slurm_counts, bool (*pmix_loads)()) {
  const char* const no_pmi = "neither PMI_FD nor PMI_PORT is set, as a launcher with PMI would do";
  switch (wanted) {
    case WantedStart::kNone:
      return std::nullopt;
    case WantedStart::kPmix:
      return wanted_one("pmix", pmix(), "PMIX_RANK and PMIX_NAMESPACE are not set, as a launcher with PMIx would do");
    case WantedStart::kPmi:
      return wanted_one("pmi", pmi(), no_pmi);
    case WantedStart::kPmi2: {
      auto found = wanted_one("pmi2", pmi(), no_pmi);
      found->pmi_version = 2;
      return found;
    }
    case WantedStart::kTorchrun:
      return wanted_one("torchrun", torchrun(),
                        "neither TORCHELASTIC_RUN_ID is set, nor all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, "
                        "as torchrun would do");
    case WantedStart::kSlurm:
      return wanted_one("slurm", slurm(), "SLURM_PROCID and SLURM_NTASKS are not set, as srun would do");
    case WantedStart::kAny:
      break;
  }
  auto found = agreed(agreed(pmix(), pmi(), pmix_loads), torchrun(), pmix_loads);
  if (found) return found;
  if (!slurm_counts) return std::nullopt;
  auto last = slurm();
  return last && last->size > 1 ? last : std::nullopt;
}

void take_over(const Detected& found, JobEnvironment& environment, bool compare) {
  if (compare) {
    const std::string advice = "Leave UNISONO_RANK and UNISONO_SIZE away, or say by UNISONO_JOIN where its ranks meet";
    if (environment.rank != found.rank) {
      contradiction("UNISONO_RANK", environment.rank, found.rank_source, found.rank, advice);
    }
    if (found.size != 0 && environment.size != found.size) {
      contradiction("UNISONO_SIZE", environment.size, found.size_source, found.size, advice);
    }
  } else {
    environment.rank = found.rank;
    environment.size = found.size;
    environment.size_source = found.size_source;
  }
  environment.launcher = found.launcher;
  environment.local_rank = found.local_rank;
  environment.pmi_descriptor = found.pmi_descriptor;
  environment.pmi_port = found.pmi_port;
  environment.pmi_version = found.pmi_version;
}

std::string slurm_file() {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint32_t job = whole_number("SLURM_JOB_ID", 0, kMost, "the number of the job (srun sets it)");
  const std::uint32_t step = whole_number("SLURM_STEP_ID", 0, kMost, "the number of the step (srun sets it)");
  std::array<char, PATH_MAX> folder{};
  if (getcwd(folder.data(), folder.size()) == nullptr) {
    throw Error(ErrorCode::kBootstrap, formatted("the working folder, in which the ranks of a SLURM step meet, has no "
                                                 "name: {}; say by UNISONO_JOIN=file:///path where they meet",
                                                 std::strerror(errno)));
  }
  return formatted("{}/unisono-{}.{}", folder.data(), job, step);
}

}  // namespace unisono::join
