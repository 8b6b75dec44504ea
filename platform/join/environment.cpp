// Reads a job's description from the environment.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/ofi/make.hpp"
#include "network/tcp/handshake.hpp"
#include "platform/join/detect.hpp"
#include "platform/join/job.hpp"
#include "platform/join/pmix.hpp"
#include "platform/join/ranks_in_words.hpp"
#include "platform/join/sockets.hpp"
#include "platform/join/torchrun.hpp"
#include "platform/join/variables.hpp"

namespace unisono {
namespace {

using join::is_printable;
using join::refuse;
using join::variable;
using join::whole_number;

constexpr std::size_t kMinSecret = 16;
constexpr double kLongestTimeout = 7 * 24 * 3600.0;

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::chrono::milliseconds timeout_from(const char* name, std::chrono::milliseconds otherwise, double least = 0.001) {
  const auto value = variable(name);
  if (!value) return otherwise;
  double seconds = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, seconds);
  if (fault != std::errc() || stop != end || !std::isfinite(seconds) || seconds < least || seconds > kLongestTimeout) {
    refuse(name, value, formatted("a number of seconds from {} to {}", least, static_cast<long>(kLongestTimeout)));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::optional<std::uint64_t> kernel_copy_from(const char* name) {
  const auto value = variable(name);
  if (!value || *value == "auto") return std::nullopt;
  if (*value == "off") return 0;
  std::uint64_t bytes = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, bytes);
  if (fault != std::errc() || stop != end || bytes == 0) {
    refuse(name, value,
           "auto (what this machine does faster), off, or the number of bytes from which on the kernel copies");
  }
  return bytes;
}

std::optional<std::uint64_t> register_from(const char* name) {
  const auto value = variable(name);
  if (!value) return std::nullopt;
  if (*value == "off") return ofi::kNeverRegistered;
  std::uint64_t bytes = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, bytes);
  if (fault != std::errc() || stop != end || bytes < ofi::kRegisterFrom) {
    refuse(name, value,
           formatted("from how many bytes on ordinary memory is registered for a message over libfabric, at least {}, "
                     "or off",
                     ofi::kRegisterFrom));
  }
  return bytes;
}

/// The secret in a file of the user's own, which others cannot read.
std::string secret_in(const std::string& path) {
  const auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::kBootstrap, formatted("the file {} of UNISONO_SECRET_FILE {}", path, text));
  };
  const join::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat what {};
  if (!file.valid() || fstat(file.get(), &what) != 0) fail(formatted("cannot be read: {}", std::strerror(errno)));
  if (!S_ISREG(what.st_mode)) fail("is no file");
  if (what.st_uid != geteuid()) fail(formatted("belongs to user {}, not to user {}", what.st_uid, geteuid()));
  if ((what.st_mode & 077U) != 0) fail("can be read by others; make it yours alone: chmod 600");
  std::array<char, join::kMaxSecret + 2> text{};
  const ssize_t bytes = read(file.get(), text.data(), text.size());
  if (bytes < 0) fail(formatted("cannot be read: {}", std::strerror(errno)));
  std::string secret(text.data(), static_cast<std::size_t>(bytes));
  if (secret.ends_with('\n')) secret.pop_back();
  return secret;
}

void read_secret(JobEnvironment& environment) {
  std::optional<std::string> secret = variable("UNISONO_SECRET");
  if (const auto path = variable("UNISONO_SECRET_FILE")) {
    environment.secret_source = "file " + *path;
    secret = secret_in(*path);
  }
  if (secret && secret->size() >= kMinSecret && secret->size() <= join::kMaxSecret && is_hexadecimal(*secret)) {
    environment.secret = *secret;
    return;
  }
  // The value itself must not get into logs.
  const std::string given = !secret ? "not set" : formatted("set to {} characters", secret->size());
  throw Error(
      ErrorCode::kBootstrap,
      environment.secret_source == "UNISONO_SECRET"
          ? formatted("environment variable UNISONO_SECRET is {}, but should be {} to {} hexadecimal digits, the "
                      "same on all ranks",
                      given, kMinSecret, join::kMaxSecret)
          : formatted("the file {} of UNISONO_SECRET_FILE holds {} characters, but should hold {} to {} "
                      "hexadecimal digits, the same on all ranks",
                      environment.secret_source.substr(5), secret->size(), kMinSecret, join::kMaxSecret));
}

/// Names with commas between them.
std::vector<std::string> transports_from(const char* name, std::vector<std::string> otherwise) {
  const auto value = variable(name);
  if (!value) return otherwise;
  std::vector<std::string> found;
  std::string_view rest = *value;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    if (std::find(kTransports.begin(), kTransports.end(), one) == kTransports.end()) {
      std::string known;
      for (const std::string_view transport : kTransports)
        known += (known.empty() ? "" : ", ") + std::string(transport);
      refuse(name, value, "names of networks with commas between them, out of: " + known);
    }
    found.emplace_back(one);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return found;
}

/// What is encrypted, of what these networks carry.
Encryption tls_from(const char* name, const std::vector<std::string>& transports) {
  const auto value = variable(name);
  if (!value || *value == "off") return Encryption::kNone;
  if (*value == "tcp") return Encryption::kTcp;
  if (*value != "on") {
    refuse(name, value, "off, on (all data between hosts are encrypted), or tcp (those that go by TCP are)");
  }
  // TCP reaches all: what stands behind it carries nothing.
  if (transports.front() != "tcp") {
    throw Error(
        ErrorCode::kBootstrap,
        formatted("{} is on, so that all data between hosts are encrypted, and UNISONO_TRANSPORT has them go by "
                  "{}, which encrypts nothing: leave that out, or set {}=tcp to encrypt what goes by TCP alone",
                  name, transports.front(), name));
  }
  return Encryption::kAll;
}

/// tcp:// and one or several of host:port.
std::vector<join::HostPort> addresses_from(const char* name, const std::string& value) {
  constexpr std::string_view kScheme = "tcp://";
  std::vector<join::HostPort> found;
  std::string_view rest = value;
  bool right = rest.starts_with(kScheme);
  if (right) rest.remove_prefix(kScheme.size());
  for (bool more = right; more;) {
    const std::size_t comma = rest.find(',');
    const auto one = join::parse_host_port(rest.substr(0, comma));
    if (one) found.push_back(*one);
    right = right && one.has_value();
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  if (!right) {
    refuse(name, value,
           "tcp://host:port, the same on all ranks: where rank 0 listens, for instance tcp://node1:4711 or "
           "tcp://[fe80::1%eth0]:4711; several, with commas between them, are tried in turn. Or file:///path, or "
           "unix://name for ranks of one host");
  }
  return found;
}

int inherited_listener(const char* name) {
  const auto value = variable(name);
  if (!value) return -1;
  int number = -1;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, number);
  int listens = 0;
  socklen_t bytes = sizeof listens;
  const bool whole = fault == std::errc() && stop == end && number >= 0;
  if (!whole || getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0) {
    refuse(name, value, "the number of a socket that listens, which a launcher hands to rank 0");
  }
  return number;
}

void read_own_ranks(JobEnvironment& environment) {
  environment.size = whole_number("UNISONO_SIZE", 1, kMaxJobSize,
                                  formatted("the number of ranks, 1 to {} (`unisono run` sets it)", kMaxJobSize));
  environment.rank = whole_number(
      "UNISONO_RANK", 0, environment.size - 1,
      formatted("this process's rank, 0 to {} (UNISONO_SIZE is {})", environment.size - 1, environment.size));
}

/// UNISONO_JOIN_HOSTS.
std::vector<std::string> hosts_from(const char* name, std::uint32_t size) {
  const auto value = variable(name);
  if (!value) return {};
  auto hosts = join::hosts_of_ranks(*value, size);
  if (!hosts) {
    refuse(name, value,
           formatted("the hosts of the {} ranks with commas between them, and how many of these each has, in order of "
                     "rank, such as a:2,b:2 (`unisono run --hosts` sets it)",
                     size));
  }
  return *std::move(hosts);
}

bool is_socket_name(std::string_view name) {
  return !name.empty() && name.size() <= join::kMaxName && is_printable(name);
}

/// UNISONO_JOIN.
void read_place(JobEnvironment& environment, const std::string& value) {
  constexpr std::string_view kHere = "unix://";
  if (value.starts_with(kHere)) {
    environment.rendezvous = value.substr(kHere.size());
    if (!is_socket_name(environment.rendezvous) || environment.rendezvous.starts_with('/')) {
      refuse("UNISONO_JOIN", value,
             formatted("unix://name, the same on all ranks, which are on one host: the job's name, which is no path, 1 "
                       "to {} printable characters without spaces",
                       join::kMaxName));
    }
    read_secret(environment);
    return;
  }
  constexpr std::string_view kFile = "file://";
  if (value.starts_with(kFile)) {
    environment.file = value.substr(kFile.size());
    constexpr std::size_t kLongest = 4000;  // of a path, with room for what stands beside it
    const bool whole =
        environment.file.starts_with('/') && !environment.file.ends_with('/') && environment.file.size() <= kLongest;
    if (!whole) {
      refuse(
          "UNISONO_JOIN", value,
          "file:///path, the same on all ranks: a file that all of them see, which rank 0 will make in a folder that "
          "is there, for instance file:///home/me/job-7");
    }
    environment.meeting = MeetingPlace::kFile;
    return;
  }
  environment.addresses = addresses_from("UNISONO_JOIN", value);
  if (environment.rank == 0) {
    environment.listener = inherited_listener("UNISONO_JOIN_FD");
    environment.hosts_of_ranks = hosts_from("UNISONO_JOIN_HOSTS", environment.size);
  }
  read_secret(environment);
}

/// What there was before UNISONO_JOIN.
void read_rendezvous(JobEnvironment& environment) {
  const auto rendezvous = variable("UNISONO_RENDEZVOUS");
  if (!rendezvous) {
    refuse("UNISONO_JOIN", rendezvous,
           "where the ranks meet, the same on all of them: unix://name on one host, tcp://host:port, or file:///path "
           "(`unisono run` sets it)");
  }
  if (!is_socket_name(*rendezvous)) {
    refuse("UNISONO_RENDEZVOUS", rendezvous,
           formatted("the job's name, the same on all ranks: 1 to {} printable characters without spaces",
                     join::kMaxName));
  }
  environment.rendezvous = *rendezvous;
  read_secret(environment);
  static std::atomic_flag said;
  if (environment.rank == 0 && !said.test_and_set()) {
    log(LogLevel::kWarn,
        formatted("UNISONO_RENDEZVOUS={} is the old form of UNISONO_JOIN=unix://{}", *rendezvous, *rendezvous));
  }
}

/// Both say where the ranks meet. A job within a job may have inherited one of them.
void check_one_place(const std::string& join) {
  const auto rendezvous = variable("UNISONO_RENDEZVOUS");
  if (!rendezvous || join == "unix://" + *rendezvous) return;
  throw Error(
      ErrorCode::kBootstrap,
      formatted("UNISONO_JOIN is \"{}\", but UNISONO_RENDEZVOUS, its old form, is \"{}\". Unset the one that is "
                "not of this job",
                join, *rendezvous));
}

}  // namespace

std::string JobEnvironment::title() const {
  switch (meeting) {
    case MeetingPlace::kFile:
      return formatted("job \"file://{}\"", file);
    case MeetingPlace::kStore:
      return formatted("the launcher's job ({})", launcher == Launcher::kPmix ? "PMIx"
                                                  : pmi_version == 2          ? "PMI-2"
                                                                              : "PMI-1");
    case MeetingPlace::kCaller:
      return "the caller's job";
    case MeetingPlace::kSocket:
      break;
  }
  return formatted("job \"{}\"", addresses.empty() ? "unix://" + rendezvous : "tcp://" + addresses.front().text());
}

JobEnvironment JobEnvironment::without_job() {
  JobEnvironment environment;
  environment.timeout = timeout_from("UNISONO_JOIN_TIMEOUT_S", environment.timeout);
  environment.observer = variable("UNISONO_OBSERVER").value_or("");
  if (environment.observer.size() > join::kMaxName || !is_printable(environment.observer)) {
    refuse(
        "UNISONO_OBSERVER", environment.observer,
        formatted(
            "the name of an abstract Unix socket, at most {} printable characters (`unisono run --counters` sets it)",
            join::kMaxName));
  }
  const auto way = variable("UNISONO_STDOUT");
  if (way && *way != "lines" && *way != "blocks") {
    refuse("UNISONO_STDOUT", way, "lines (`unisono run` sets it) or blocks, which leaves C's stdout as it is");
  }
  environment.lines = way == "lines";
  environment.kernel_copy = kernel_copy_from("UNISONO_KERNEL_COPY");
  environment.transports = transports_from("UNISONO_TRANSPORT", std::move(environment.transports));
  environment.tls = tls_from("UNISONO_TLS", environment.transports);
  if (variable("UNISONO_TCP_CONNECTIONS")) {
    environment.tcp_connections =
        whole_number("UNISONO_TCP_CONNECTIONS", 1, tcp::kMostConnections,
                     formatted("how many connections of TCP two ranks of different hosts may have for long messages, "
                               "1 to {}",
                               tcp::kMostConnections));
  }
  environment.ofi_register_from = register_from("UNISONO_OFI_REGISTER_FROM");
  environment.interfaces = variable("UNISONO_INTERFACES").value_or("");
  // Connections are looked at four times a second, and a host may be late once.
  environment.host_timeout = timeout_from("UNISONO_HOST_TIMEOUT_S", environment.host_timeout, 1);
  environment.host = variable("UNISONO_HOST").value_or("");
  constexpr std::size_t kMostOfName = 255;
  if (environment.host.size() > kMostOfName || !is_printable(environment.host)) {
    refuse("UNISONO_HOST", environment.host,
           formatted("a name for this rank's host, at most {} printable characters; ranks with the same name share "
                     "memory",
                     kMostOfName));
  }
  return environment;
}

JobEnvironment JobEnvironment::from_environment() {
  JobEnvironment environment = without_job();
  const join::WantedStart wanted = join::wanted_start();
  if (wanted == join::WantedStart::kNone) return environment;
  const auto join = variable("UNISONO_JOIN");
  const bool ranks_said = variable("UNISONO_RANK") || variable("UNISONO_SIZE") || variable("UNISONO_RENDEZVOUS");
  const bool place_said = join || variable("UNISONO_RENDEZVOUS");
  const bool forced = wanted != join::WantedStart::kAny;
  // A job whose variables say all of it needs no launcher; one above it may be there for something else.
  std::optional<join::Detected> found;
  if (forced || !ranks_said || !place_said) found = join::detect(wanted, join.has_value(), join::pmix_loads);
  if (!found && !ranks_said && !join && !variable("UNISONO_SECRET")) return environment;

  if (!forced && (ranks_said || !found)) read_own_ranks(environment);
  if (found) join::take_over(*found, environment, ranks_said && !forced);
  if (environment.size == 1) return environment;

  if (join) {
    check_one_place(*join);
    read_place(environment, *join);
  } else if (!found) {
    read_rendezvous(environment);
  } else if (found->launcher == Launcher::kSlurm) {
    environment.meeting = MeetingPlace::kFile;
    environment.file = join::slurm_file();
  } else if (found->launcher == Launcher::kTorchrun) {
    const bool secret_given = variable("UNISONO_SECRET") || variable("UNISONO_SECRET_FILE");
    join::meet_by_torchrun(environment, secret_given);
    if (secret_given) {
      read_secret(environment);
      environment.secret = join::secret_of_run(environment.secret);
    }
  } else {
    environment.meeting = MeetingPlace::kStore;
  }
  return environment;
}

void write_stdout_by_lines() {
  // In this order: what is written out leaves a buffer that is line by line.
  static_cast<void>(std::setvbuf(stdout, nullptr, _IOLBF, 0));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace unisono
