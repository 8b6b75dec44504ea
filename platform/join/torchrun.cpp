#include "platform/join/torchrun.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/secret.hpp"
#include "platform/join/hexadecimal.hpp"
#include "platform/join/pmi.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {
namespace {

constexpr std::uint32_t kMostPort = 65535;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// MASTER_ADDR and the port of ours.
HostPort place() {
  const std::uint32_t port = whole_number("MASTER_PORT", 1, kMostPort, "the port of torchrun's store (it sets it)");
  std::uint32_t own = port + kTorchrunStep <= kMostPort ? port + kTorchrunStep : port - kTorchrunStep;
  if (variable("UNISONO_PORT")) {
    own = whole_number("UNISONO_PORT", 1, kMostPort, "the port at which rank 0 listens, the same on all ranks");
  }
  const auto host = variable("MASTER_ADDR");
  std::optional<HostPort> found;
  if (host) {
    const bool bare = host->find(':') != std::string::npos && !host->starts_with('[');  // an IPv6 address
    found = parse_host_port((bare ? "[" + *host + "]" : *host) + ":" + std::to_string(own));
  }
  if (!found) refuse("MASTER_ADDR", host, "the name or the address of the host of rank 0 (torchrun sets it)");
  return *found;
}

/// Whether all ranks run on one host, as far as torchrun says so.
bool one_host(const JobEnvironment& environment, const HostPort& where) {
  if (variable("LOCAL_WORLD_SIZE")) {
    const std::uint32_t here =
        whole_number("LOCAL_WORLD_SIZE", 1, environment.size,
                     formatted("the number of ranks on this host, 1 to {} (torchrun sets it)", environment.size));
    return here == environment.size;
  }
  // Scripts that set torchrun's variables may leave it out; but this address is good for no other host.
  return where.host == "localhost" || where.host == "::1" || where.host.starts_with("127.");
}

/// Of the run, and of the restart that it is at: torchrun has ended the processes of those before.
std::string file_of_run(const HostPort& where) {
  const std::string folder = variable("TMPDIR").value_or("");
  const Digest run = digest_of({}, "unisono torchrun file",
                               {bytes_of(variable("TORCHELASTIC_RUN_ID").value_or("")), bytes_of(where.text())});
  constexpr std::size_t kBytes = 8;
  constexpr std::uint32_t kMostRestarts = 1U << 30U;
  const std::uint32_t restart =
      variable("TORCHELASTIC_RESTART_COUNT")
          ? whole_number("TORCHELASTIC_RESTART_COUNT", 0, kMostRestarts, "how often torchrun has restarted the ranks")
          : 0;
  return formatted("{}/unisono-torchrun-{}-{}-{}", folder.starts_with('/') ? folder : "/tmp", geteuid(),
                   hexadecimal_of(std::span(run).first(kBytes)), restart);
}

}  // namespace

void meet_by_torchrun(JobEnvironment& environment, bool secret_given) {
  const HostPort where = place();
  if (secret_given) {
    environment.addresses = {where};
    return;
  }
  if (!one_host(environment, where)) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the ranks that torchrun has started on several hosts (LOCAL_WORLD_SIZE is {}, WORLD_SIZE is "
                          "{}) meet at tcp://{}, for which they need a secret: have UNISONO_SECRET_FILE name a file "
                          "with 16 to 256 hexadecimal digits, the same on all ranks and of mode 0600; or hand over "
                          "torch's store, as unisono.init(store=...) does",
                          variable("LOCAL_WORLD_SIZE").value_or("not set"), environment.size, where.text()));
  }
  if (variable("UNISONO_PORT")) {
    throw Error(ErrorCode::kBootstrap, formatted("UNISONO_PORT is {}, at which ranks meet only with a secret: name its "
                                                 "file by UNISONO_SECRET_FILE, or leave UNISONO_PORT away",
                                                 where.port));
  }
  environment.meeting = MeetingPlace::kFile;
  environment.file = file_of_run(where);
}

std::string secret_of_run(const std::string& secret) {
  return hexadecimal_of(
      digest_of(bytes_of(secret), "unisono torchrun", {bytes_of(variable("TORCHELASTIC_RUN_ID").value_or(""))}));
}

}  // namespace unisono::join
