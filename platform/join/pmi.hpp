// PMI: what processes speak with MPICH's mpiexec, Intel MPI's and `srun --mpi=pmi2`, over a socket that they inherit
// (PMI_FD) or connect to (PMI_PORT): version 1 in lines of text, version 2 in messages that say how long they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "platform/join/job.hpp"
#include "platform/join/sockets.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {

/// Bytes of a line or of a message of the launcher's, at most, with its end.
inline constexpr std::size_t kMaxPmiLine = std::size_t{32} * 1024;

/// What the launcher says: "cmd=put_result rc=0 msg=success" in version 1, "cmd=kvs-put-response;rc=0;" in version 2.
struct PmiLine {
  std::string command;
  std::map<std::string, std::string> words;
  std::string word(const std::string& name) const;
};
/// A line of version 1. Nothing if it is none. A word without = belongs to the one before it, which is a sentence.
std::optional<PmiLine> parse_pmi_line(std::string_view line);
/// A message of version 2, without its length. Nothing if it is none. Two semicolons are one, of a value.
std::optional<PmiLine> parse_pmi_message(std::string_view message);
/// A message of version 2 with its length: the command, and pairs of name and value.
std::string pmi_message(std::string_view command,
                        std::initializer_list<std::pair<std::string_view, std::string_view>> words);

/// A process's place in the job, as the launcher says.
struct PmiPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};

/// The bytes of a connection to the launcher. It is not closed: a library of MPI in this process may use it as well.
/// Every wait has a deadline; after one has passed the connection is of no use, for the answer may come later. Throws
/// Error(kBootstrap) that names the connection. One thread.
class PmiSocket {
 public:
  /// `name`: in messages, such as "PMI_FD 7".
  PmiSocket(int connection, std::string name);

  [[noreturn]] void fail(const std::string& text);
  void say(std::string_view text, Deadline deadline);
  /// Without its end. Nothing if the deadline has passed.
  std::optional<std::string> line(Deadline deadline);
  /// A message with its length before it, in six places. Nothing if the deadline has passed.
  std::optional<std::string> message(Deadline deadline);
  /// A number that the launcher has said.
  std::uint32_t number(const PmiLine& line, const std::string& name, std::uint32_t least, std::uint32_t most);

 private:
  /// Hears more; false if the deadline has passed.
  bool hear(Deadline deadline);

  int connection_;
  std::string name_;
  std::string heard_;  ///< and not yet taken apart
  bool out_of_step_ = false;
};

/// What either version is asked for. Throws Error(kBootstrap) that says what the launcher said instead. One thread.
class PmiClient {
 public:
  virtual ~PmiClient() = default;
  PmiClient() = default;
  PmiClient(const PmiClient&) = delete;
  PmiClient& operator=(const PmiClient&) = delete;

  virtual std::uint32_t version() const = 0;
  /// Has the launcher begin. False if it refuses this version.
  virtual bool begin(Deadline deadline) = 0;
  /// The same; refusing is a failure.
  virtual void init(Deadline deadline) = 0;
  virtual std::size_t max_value() const = 0;  ///< characters
  virtual const std::string& store_name() const = 0;
  /// Who this is, if beginning has told it.
  virtual std::optional<PmiPlace> place() const = 0;
  /// How many ranks run on this host, if beginning has told it.
  virtual std::optional<std::uint32_t> local_ranks() const = 0;
  virtual void put(const std::string& key, const std::string& value, Deadline deadline) = 0;
  /// Nothing if the store has no such key, or does not tell by the deadline.
  virtual std::optional<std::string> get(const std::string& key, Deadline deadline) = 0;
  /// False if the deadline has passed.
  virtual bool barrier(Deadline deadline) = 0;
  /// The launcher forgets the connection; without it, it takes the end of this process for a failure.
  virtual void finalize(Deadline deadline) = 0;
};

/// Version 1.
class Pmi1Client final : public PmiClient {
 public:
  Pmi1Client(int connection, std::string name) : socket_(connection, std::move(name)) {}

  /// At PMI_PORT, before either version begins: says which process this is, and learns rank and size.
  PmiPlace introduce(const std::string& id, Deadline deadline);
  std::uint32_t version() const override { return 1; }
  bool begin(Deadline deadline) override;
  void init(Deadline deadline) override;
  std::size_t max_value() const override { return max_value_; }
  const std::string& store_name() const override { return store_; }
  std::optional<PmiPlace> place() const override { return std::nullopt; }
  std::optional<std::uint32_t> local_ranks() const override { return std::nullopt; }
  void put(const std::string& key, const std::string& value, Deadline deadline) override;
  std::optional<std::string> get(const std::string& key, Deadline deadline) override;
  bool barrier(Deadline deadline) override;
  void finalize(Deadline deadline) override;

 private:
  PmiLine hear(const std::string& command, Deadline deadline, const char* after);
  PmiLine ask(const std::string& line, const std::string& command, Deadline deadline);

  PmiSocket socket_;
  std::string refused_;  ///< what it said when this was to begin
  std::string store_;
  std::size_t max_value_ = 0;
};

/// Version 2. In some launchers a barrier ends at once, and `get` waits for those who have not come to it.
class Pmi2Client final : public PmiClient {
 public:
  Pmi2Client(int connection, std::string name) : socket_(connection, std::move(name)) {}

  std::uint32_t version() const override { return 2; }
  bool begin(Deadline deadline) override;
  void init(Deadline deadline) override;
  std::size_t max_value() const override { return kMaxValue; }
  const std::string& store_name() const override { return store_; }
  std::optional<PmiPlace> place() const override { return place_; }
  std::optional<std::uint32_t> local_ranks() const override { return local_ranks_; }
  void put(const std::string& key, const std::string& value, Deadline deadline) override;
  std::optional<std::string> get(const std::string& key, Deadline deadline) override;
  bool barrier(Deadline deadline) override;
  void finalize(Deadline deadline) override;

 private:
  /// The standard's, less its end. Keys may have more characters than ours.
  static constexpr std::size_t kMaxValue = 1023;

  using Words = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  /// Nothing if there is no answer by the deadline.
  std::optional<PmiLine> try_ask(std::string_view command, Words words, Deadline deadline);
  PmiLine ask(std::string_view command, Words words, Deadline deadline);

  PmiSocket socket_;
  std::string refused_;
  std::string store_;
  std::optional<PmiPlace> place_;
  std::optional<std::uint32_t> local_ranks_;
};

/// The store of this process's launcher. Fills in the version of PMI, and the job's size if the environment has not
/// said it, or throws Error(kBootstrap) if the launcher says other than it has. The connection lives until the process
/// ends, and is taken leave of then: later jobs of this process use it again, and so can an MPI library.
std::unique_ptr<Store> open_pmi(JobEnvironment& environment);
/// The same with a connection of the caller's, for tests.
std::unique_ptr<Store> make_pmi_store(PmiClient& client, const JobEnvironment& environment);

}  // namespace unisono::join
