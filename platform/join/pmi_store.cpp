// The launcher's store as PMI has it, and the connection of this process to it.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/hexadecimal.hpp"
#include "platform/join/pmi.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {
namespace {

/// Who of this host has come to a fence: what PMI does not tell. Each rank that waits there has an abstract socket
/// open whose name says so; nobody says anything over it.
class RollCall {
 public:
  RollCall(const JobEnvironment& environment, const PmiClient& client)
      : environment_(environment),
        store_(
            client.store_name().substr(client.store_name().size() - std::min(client.store_name().size(), kMostOfName))),
        local_ranks_(client.local_ranks()) {}

  void here() {
    // All ranks count alike, over all jobs of the process.
    static std::atomic<std::uint32_t> fences{0};
    fence_ = fences.fetch_add(1, std::memory_order_relaxed);
    try {
      own_ = listen_on(name(environment_.rank));
    } catch (const Error&) {  // then it is not seen; that is all
      own_.reset();
    }
  }

  /// The others, by whether they are there. This one stays to be seen by those whose time ends a little later.
  std::string absent() {
    std::string text = absent_now();
    constexpr std::chrono::milliseconds kLonger{1'000};
    WaitHook::sleep_for(kLonger);
    // And for as long as the process lives: few jobs fail so in one.
    static_cast<void>(own_.release());
    return text;
  }

 private:
  static constexpr std::size_t kMostOfName = 48;

  std::string absent_now() const {
    std::string there;
    std::string missing;
    std::uint32_t count = 0;
    for (std::uint32_t rank = 0; rank < environment_.size; ++rank) {
      const bool came = rank == environment_.rank || is_there(rank);
      count += came ? 1 : 0;
      std::string& text = came ? there : missing;
      text += (text.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (count == environment_.size) return "all ranks have come, but not together: some have given up before";
    const auto local = local_ranks();
    if (local == environment_.size) {
      return formatted("of the ranks, all on this host, these have not come, or have gone again: {}", missing);
    }
    return formatted("not all ranks have come: on this host there are {}; of others PMI tells nothing", there);
  }

  std::string name(std::uint32_t rank) const { return formatted("unisono-at-{}-{}-{}", store_, fence_, rank); }
  bool is_there(std::uint32_t rank) const {
    try {
      return try_connect(name(rank)).valid();
    } catch (const Error&) {
      return false;
    }
  }
  /// How many ranks the launcher has started on this host, if it says so.
  std::optional<std::uint32_t> local_ranks() const {
    if (local_ranks_) return local_ranks_;
    const char* const allowed = "the number of ranks on this host (the launcher sets it)";
    if (!variable("MPI_LOCALNRANKS")) {
      // srun, whose PMI-2 does not know it.
      return variable("SLURM_STEP_NUM_NODES") == "1" ? std::optional(environment_.size) : std::nullopt;
    }
    return whole_number("MPI_LOCALNRANKS", 1, kMaxJobSize, allowed);
  }

  const JobEnvironment& environment_;
  const std::string store_;
  const std::optional<std::uint32_t> local_ranks_;
  std::uint32_t fence_ = 0;
  Descriptor own_;
};

class PmiStore final : public Store {
 public:
  PmiStore(PmiClient& client, const JobEnvironment& environment)
      : client_(client), environment_(environment), roll_(environment_, client) {}

  // Values are text without spaces and ends of lines.
  std::size_t max_value() const override { return client_.max_value() / 2; }
  void put(const std::string& key, std::span<const std::byte> value, Deadline deadline) override {
    client_.put(key, hexadecimal_of(value), deadline);
  }
  bool fence(Deadline deadline) override {
    roll_.here();
    return client_.barrier(deadline);
  }
  std::optional<Blob> get(std::uint32_t /*rank*/, const std::string& key, Deadline deadline) override {
    const auto text = client_.get(key, deadline);
    if (!text) return std::nullopt;
    auto bytes = bytes_of_hexadecimal(*text);
    if (!bytes) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("the launcher's store holds something else under {} than was put there", key));
    }
    return bytes;
  }
  // What has been put is not seen before the barrier's end.
  std::optional<std::string> late() override { return roll_.absent(); }

 private:
  PmiClient& client_;
  const JobEnvironment environment_;
  RollCall roll_;
};

/// This process's connection. Ends it when the process ends by itself: after MPI_Finalize, if that was called.
class PmiOfProcess {
 public:
  ~PmiOfProcess() {
    // A child of fork has a copy of this, and is not what the launcher started.
    if (!client_ || process_ != getpid() || !same(descriptor_of_connection())) return;
    const WaitHook::Quiet quiet;
    constexpr std::chrono::seconds kPatience{2};
    try {
      client_->finalize(Clock::now() + kPatience);
    } catch (const Error&) {  // the launcher has gone, or MPI has taken leave already
    }
  }

  PmiClient& open(JobEnvironment& environment) {
    const std::scoped_lock lock(mutex_);
    if (client_ && process_ != getpid()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("process {} is a child of rank {}, process {}, which the launcher started; it has no place "
                            "of its own in that job. With UNISONO_START=none in its environment it is a job of one "
                            "rank",
                            getpid(), environment.rank, process_));
    }
    const Deadline deadline = Clock::now() + environment.timeout;
    if (client_ && !same(descriptor_of_connection())) {
      throw Error(ErrorCode::kBootstrap,
                  "the connection to the launcher was closed in this process, as MPI_Finalize does: join before, or "
                  "meet by UNISONO_JOIN");
    }
    if (!client_) connect(environment, deadline);
    environment.pmi_version = client_->version();
    if (place_) {
      const char* const where = connection_.valid() ? "PMI_PORT" : "PMI_FD";
      if (environment.rank != place_->rank) {
        throw Error(ErrorCode::kBootstrap, formatted("the environment says that this process is rank {}, the launcher "
                                                     "at {} says {}: start the program with one launcher",
                                                     environment.rank, where, place_->rank));
      }
      if (environment.size != 0 && environment.size != place_->size) {
        throw Error(ErrorCode::kBootstrap, formatted("{} says that the job has {} ranks, the launcher at {} says {}: "
                                                     "start the program with one launcher",
                                                     environment.size_source, environment.size, where, place_->size));
      }
      environment.size = place_->size;
    }
    return *client_;
  }

 private:
  void connect(const JobEnvironment& environment, Deadline deadline) {
    process_ = getpid();
    std::string name = formatted("PMI_FD {}", environment.pmi_descriptor);
    descriptor_ = environment.pmi_descriptor;
    if (descriptor_ < 0) {
      const HostPort& where = *environment.pmi_port;
      NoConnection failure;
      connection_ = try_connect(where, deadline, failure);
      if (!connection_.valid()) {
        throw Error(ErrorCode::kBootstrap,
                    formatted("the launcher at PMI_PORT {} cannot be reached: {}", where.text(), failure.reason));
      }
      name = "PMI_PORT " + where.text();
    }
    const int connection = descriptor_of_connection();
    auto first = std::make_unique<Pmi1Client>(connection, name);
    if (connection_.valid()) place_ = first->introduce(std::to_string(environment.rank), deadline);
    remember(connection);
    std::unique_ptr<PmiClient> client = std::move(first);
    if (environment.pmi_version == 2 || !client->begin(deadline)) {
      client = std::make_unique<Pmi2Client>(connection, name);
      client->init(deadline);
    }
    if (!place_) place_ = client->place();
    client_ = std::move(client);
  }

  int descriptor_of_connection() const { return connection_.valid() ? connection_.get() : descriptor_; }
  void remember(int descriptor) {
    struct stat what {};
    if (fstat(descriptor, &what) == 0) socket_ = what.st_ino;
  }
  /// Whether it is still that socket: MPI_Finalize closes it, and its number may belong to something else.
  bool same(int descriptor) const {
    struct stat what {};
    return fstat(descriptor, &what) == 0 && S_ISSOCK(what.st_mode) && what.st_ino == socket_;
  }

  std::mutex mutex_;
  std::unique_ptr<PmiClient> client_;
  std::optional<PmiPlace> place_;
  Descriptor connection_;  ///< to PMI_PORT
  int descriptor_ = -1;    ///< PMI_FD
  ino_t socket_ = 0;
  pid_t process_ = 0;
};

}  // namespace

std::unique_ptr<Store> make_pmi_store(PmiClient& client, const JobEnvironment& environment) {
  return std::make_unique<PmiStore>(client, environment);
}

std::unique_ptr<Store> open_pmi(JobEnvironment& environment) {
  static PmiOfProcess process;
  PmiClient& client = process.open(environment);
  return make_pmi_store(client, environment);
}

}  // namespace unisono::join
