// A job: how its endpoints find each other, share memory, and reach those of other hosts.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "network/poe.hpp"
#include "network/shm/segment.hpp"
#include "platform/join/sockets.hpp"

namespace unisono {

namespace join {
struct CallerFunctions;
}

/// Who has said which rank this process is: nobody but the environment or the caller, or a launcher of others.
enum class Launcher { kNone, kPmix, kPmi, kTorchrun, kSlurm };

/// Where the members meet: at a socket of rank 0 that all know, at one that a file names, in the launcher's key-value
/// store, or through functions of the caller.
enum class MeetingPlace { kSocket, kFile, kStore, kCaller };

/// What between hosts is encrypted: nothing, what goes by TCP (data, and the lifelines of other networks), or all, so
/// that networks which encrypt nothing may carry no data.
enum class Encryption : std::uint8_t { kNone, kTcp, kAll };

/// How a process learns of its job; `unisono run` sets these variables, or a launcher has its own.
struct JobEnvironment {
  std::uint32_t rank = 0;                   ///< UNISONO_RANK, or the launcher's
  std::uint32_t size = 1;                   ///< UNISONO_SIZE, or the launcher's; 0: it tells when it is asked
  std::optional<std::uint32_t> local_rank;  ///< among those of its host, if a launcher says so
  Launcher launcher = Launcher::kNone;
  MeetingPlace meeting = MeetingPlace::kSocket;
  std::string size_source = "UNISONO_SIZE";  ///< the variable that has told the size
  std::string file;                          ///< UNISONO_JOIN=file:///path: rank 0 writes it
  int pmi_descriptor = -1;                   ///< PMI_FD
  std::optional<join::HostPort> pmi_port;    ///< PMI_PORT
  std::uint32_t pmi_version = 0;             ///< which one is to be spoken, or is; 0: 1, or 2 if that is refused
  std::shared_ptr<const join::CallerFunctions> caller;
  /// UNISONO_JOIN=unix://name, once UNISONO_RENDEZVOUS: name of an abstract Unix socket that rank 0 listens on; for
  /// jobs of one host.
  std::string rendezvous;
  /// UNISONO_JOIN=tcp://host:port,…: where rank 0 listens instead; where there are several, members try one after the
  /// other.
  std::vector<join::HostPort> addresses;
  /// UNISONO_JOIN_FD: of rank 0: a socket that listens there already, which a launcher has made; -1: none.
  int listener = -1;
  /// UNISONO_JOIN_HOSTS=a:2,b:2: of rank 0: the hosts on which a launcher has started the ranks, by rank; empty: not
  /// known. For errors only.
  std::vector<std::string> hosts_of_ranks;
  std::string secret;                            ///< without it nobody can join
  std::string secret_source = "UNISONO_SECRET";  ///< where it comes from: that, or the file of UNISONO_SECRET_FILE
  std::string host;  ///< UNISONO_HOST: ranks that say the same are on one host; empty: as found
  /// UNISONO_TRANSPORT: networks between hosts that may be taken, the first that reaches is.
  std::vector<std::string> transports = {"tcp"};
  Encryption tls = Encryption::kNone;  ///< UNISONO_TLS: off, tcp or on; the same on all ranks
  /// UNISONO_TCP_CONNECTIONS: of TCP, for a pair of ranks, 1 to 16; nothing: it is not said. The lesser number of both
  /// ranks holds.
  std::optional<std::uint32_t> tcp_connections;
  /// UNISONO_OFI_REGISTER_FROM: see ofi::OfiSettings; nothing: it is not said. Ranks may have different ones.
  std::optional<std::uint64_t> ofi_register_from;
  std::string interfaces;                     ///< UNISONO_INTERFACES: of networks; see tcp::TcpSettings
  std::chrono::milliseconds timeout{60'000};  ///< UNISONO_JOIN_TIMEOUT_S
  /// UNISONO_HOST_TIMEOUT_S: another host that answers nothing for so long has vanished; see tcp::TcpSettings.
  std::chrono::milliseconds host_timeout{3000};
  std::string observer;  ///< UNISONO_OBSERVER: abstract Unix socket of one who looks at the job
  /// UNISONO_KERNEL_COPY: "off" (0), "auto" (nothing: what the machine does faster), or from so many bytes on.
  std::optional<std::uint64_t> kernel_copy;
  bool lines = false;  ///< UNISONO_STDOUT=lines: C's stdout is to be written line by line

  /// Reads the environment; without UNISONO_* and without a launcher a job of one rank. Asks nobody. Throws
  /// Error(kBootstrap) naming the variable, what it holds and what it should.
  static JobEnvironment from_environment();
  /// The same without rank, size and where to meet, which a caller says: networks, host, time and so on.
  static JobEnvironment without_job();
  /// The job in messages to people.
  std::string title() const;
};

/// Networks between hosts that UNISONO_TRANSPORT may name.
inline constexpr std::array<std::string_view, 3> kTransports = {"tcp", "udp", "ofi"};
/// Endpoints of a job; of one host shm::kMaxEndpoints. The words of an agreement, which name sets of them, must fit a
/// control message (see Consensus::fits), and rank 0 has a descriptor for each while they join.
inline constexpr std::uint32_t kMaxJobSize = 2048;
/// Bytes of one member's capabilities.
inline constexpr std::uint32_t kMaxCapabilities = 64 * 1024;

/// A joined job: the endpoint's network, and what every member brought (see Engine::capabilities).
struct JoinedJob {
  std::unique_ptr<Poe> poe;
  std::vector<std::vector<std::byte>> all_capabilities;  ///< by endpoint
};

/// From how many bytes on a machine has the kernel copy. Called by the process of rank 0, once all have come and wait.
using FindCopyFrom = std::function<shm::CopyFrom()>;

/// Joins as a process. The members meet, tell each other on which hosts they are, share memory within each host and a
/// network between hosts. Collective over the job. Throws Error(kBootstrap) that says who has not come. Without
/// `copy_from` what is usual holds, if the environment says nothing.
JoinedJob join_job(const JobEnvironment& environment, std::span<const std::byte> capabilities,
                   const FindCopyFrom& copy_from = {});

/// Has C's stdout, which is written in blocks if it leads into a pipe, written line by line, beginning with what it
/// holds. So a program that hangs or is killed has shown its lines.
void write_stdout_by_lines();

/// A job whose endpoints are threads of this process: same segment layout, same code.
class ThreadJob {
 public:
  explicit ThreadJob(std::uint32_t size);
  ~ThreadJob();
  ThreadJob(const ThreadJob&) = delete;
  ThreadJob& operator=(const ThreadJob&) = delete;
  /// The endpoint's network; once per rank, from any thread.
  std::unique_ptr<Poe> endpoint(std::uint32_t rank);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace unisono
