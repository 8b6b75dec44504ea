#include "platform/join/meeting_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/secret.hpp"
#include "network/tcp/interfaces.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/hexadecimal.hpp"
#include "platform/join/host.hpp"
#include "platform/join/pmi.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kFirstLine = "unisono meeting 1";
constexpr std::string_view kLastLine = "end";
constexpr std::size_t kMostAddresses = 64;

[[noreturn]] void fail(const JobEnvironment& environment, const std::string& text) {
  throw Error(ErrorCode::kBootstrap, formatted("rank {} could not join {} of {} ranks: {}", environment.rank,
                                               environment.title(), environment.size, text));
}

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Without what would end a field of the file.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c <= ' ' || c > '~') c = '?';
  }
  return text.empty() ? "?" : text;
}

/// What a look into the file found.
struct Look {
  enum class Found { kNothing, kMeeting, kOther } found = Found::kNothing;
  Meeting meeting;
  bool whole = false;  ///< `meeting` is one
};

/// Throws Error(kBootstrap) if the file is not this user's alone.
Look look_into(const JobEnvironment& environment) {
  const std::string& path = environment.file;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
  struct stat what {};
  if (!file.valid() || fstat(file.get(), &what) != 0) {
    if (errno == ENOENT || errno == ESTALE) return {};
    fail(environment, formatted("the file {} cannot be read: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(what.st_mode)) fail(environment, path + " is no file");
  if (what.st_uid != geteuid()) {
    fail(environment, formatted("the file {} belongs to user {}, not to user {}; its owner could have this "
                                "process join a job of its own. Take a folder that is yours",
                                path, what.st_uid, geteuid()));
  }
  if ((what.st_mode & 077U) != 0) {
    fail(environment, formatted("the file {} can be read by others, who would know the job's secret; rank 0 makes it "
                                "for its user alone, so somebody has changed it, or the file system keeps no such "
                                "rights: take another folder",
                                path));
  }
  std::string text(kMaxMeeting + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t bytes = read(file.get(), text.data() + have, text.size() - have);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == ESTALE) return {};
    if (bytes < 0) fail(environment, formatted("the file {} cannot be read: {}", path, std::strerror(errno)));
    if (bytes == 0) break;
    have += static_cast<std::size_t>(bytes);
  }
  text.resize(have);
  Look look;
  look.found = text.starts_with(kFirstLine) || text.empty() ? Look::Found::kMeeting : Look::Found::kOther;
  if (auto meeting = parse_meeting(text)) {
    look.meeting = *std::move(meeting);
    look.whole = true;
  }
  return look;
}

/// As a member would see the job that a file describes.
JobEnvironment joining(const JobEnvironment& environment, const Meeting& meeting) {
  JobEnvironment made = environment;
  made.addresses = meeting.addresses;
  made.listener = -1;
  made.secret = meeting.secret;
  made.secret_source = "file " + environment.file;
  return made;
}

/// Where others may reach this host: all addresses that are up; those of the loopback if there is nothing else.
std::vector<HostPort> own_addresses(std::uint16_t port) {
  std::vector<HostPort> outside;
  std::vector<HostPort> inside;
  for (const tcp::OwnAddress& own : tcp::in_order(tcp::own_addresses(), nullptr)) {
    if (own.address.link_local()) continue;  // other hosts call the interface otherwise
    (own.address.loopback() ? inside : outside).push_back({tcp::text_without_port(own.address), port});
  }
  auto& chosen = outside.empty() ? inside : outside;
  if (chosen.size() > kMostAddresses) chosen.resize(kMostAddresses);
  return chosen;
}

/// The file of a job that forms: there from here on, and removed at the end if it is still this one.
class OwnFile {
 public:
  OwnFile(const JobEnvironment& environment, const Meeting& meeting)
      : environment_(environment), secret_(meeting.secret) {
    std::array<std::byte, 8> random{};
    fill_random(random);
    const std::string beside = environment.file + "." + hexadecimal_of(random);
    const Descriptor file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) fail(environment, formatted("the file {} cannot be made: {}", beside, std::strerror(errno)));
    struct Removed {
      const std::string& path;
      ~Removed() { unlink(path.c_str()); }
    } removed{beside};
    const std::string text = meeting.text();
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t bytes = write(file.get(), text.data() + done, text.size() - done);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) fail(environment, formatted("the file {} cannot be written: {}", beside, std::strerror(errno)));
      done += static_cast<std::size_t>(bytes);
    }
    if (fsync(file.get()) != 0) {
      fail(environment, formatted("the file {} cannot be written: {}", beside, std::strerror(errno)));
    }
    // A link, not a new name: of two processes that are both rank 0 only one gets the place.
    if (link(beside.c_str(), environment.file.c_str()) == 0) return;
    if (errno == EEXIST) {
      fail(environment, formatted("another process has just made the file {}: a second rank 0 of this job, or another "
                                  "job with the same file",
                                  environment.file));
    }
    // A file system without links.
    if (rename(beside.c_str(), environment.file.c_str()) != 0) {
      fail(environment, formatted("the file {} cannot be made: {}", environment.file, std::strerror(errno)));
    }
  }
  ~OwnFile() {
    try {
      const Look look = look_into(environment_);
      if (look.whole && look.meeting.secret == secret_) unlink(environment_.file.c_str());
    } catch (const Error&) {  // somebody else's by now
    }
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

 private:
  const JobEnvironment& environment_;
  const std::string secret_;
};

/// Removes what an earlier job has left. If its rank 0 still waits there, this one is the second: both hear it.
void remove_stale(const JobEnvironment& environment, Deadline deadline) {
  const Look look = look_into(environment);
  if (look.found == Look::Found::kNothing) return;
  if (look.found == Look::Found::kOther) {
    fail(environment, formatted("the file {} is there already, and is none of a job that forms; remove it, or take "
                                "another name",
                                environment.file));
  }
  if (look.whole) {
    std::string failure;
    JobEnvironment asking = joining(environment, look.meeting);
    asking.size = look.meeting.size;
    if (const auto other = try_member_of_hub(asking, deadline, failure)) {
      other->all_gather({});
      fail(environment, formatted("process {} on {} is rank 0 of a job that forms by the same file", look.meeting.pid,
                                  look.meeting.host));
    }
  }
  if (unlink(environment.file.c_str()) != 0 && errno != ENOENT) {
    fail(environment,
         formatted("the file {} of an earlier job cannot be removed: {}", environment.file, std::strerror(errno)));
  }
}

std::unique_ptr<Exchange> as_root(const JobEnvironment& environment) {
  const Deadline deadline = Clock::now() + environment.timeout;
  remove_stale(environment, deadline);
  const Descriptor listener = listen_anywhere();
  std::array<std::byte, 32> secret{};
  fill_random(secret);
  Meeting meeting;
  meeting.host = printable(this_host(environment.host).name);
  meeting.pid = static_cast<std::uint32_t>(getpid());
  meeting.size = environment.size;
  meeting.secret = hexadecimal_of(secret);
  meeting.addresses = own_addresses(port_of(listener));
  JobEnvironment hub = joining(environment, meeting);
  const OwnFile file(environment, meeting);
  hub.listener = listener.get();  // of which the hub has a copy
  return make_hub(hub);
}

std::unique_ptr<Exchange> as_member(JobEnvironment& environment) {
  const Deadline deadline = Clock::now() + environment.timeout;
  milliseconds pause{1};
  constexpr milliseconds kLongestPause{50};
  std::string last = "there is no such file: rank 0 has not come, or the job was complete without this process";
  for (;;) {
    const Look look = look_into(environment);
    if (look.whole) {
      std::string failure;
      JobEnvironment asking = joining(environment, look.meeting);
      auto hub = try_member_of_hub(asking, deadline, failure);
      if (hub) {
        environment.addresses = asking.addresses;
        return hub;
      }
      last = formatted("it is of process {} on {} with {} ranks, which is not there, or is of an earlier job ({})",
                       look.meeting.pid, look.meeting.host, look.meeting.size, failure);
    } else if (look.found == Look::Found::kOther) {
      last = "something else stands in it, which no rank 0 has written";
    }
    if (Clock::now() >= deadline) {
      fail(environment, formatted("the file {} has led to no rank 0 within {}; when last looked at, {}",
                                  environment.file, seconds_text(environment.timeout), last));
    }
    WaitHook::sleep_for(std::chrono::duration_cast<std::chrono::microseconds>(
        std::clamp<Clock::duration>(deadline - Clock::now(), Clock::duration::zero(), pause)));
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace

std::string Meeting::text() const {
  std::string text = formatted("{}\nhost {}\npid {}\nsize {}\nsecret {}\n", kFirstLine, host, pid, size, secret);
  for (const HostPort& address : addresses) text += formatted("address {}\n", address.text());
  return text + std::string(kLastLine) + "\n";
}

std::optional<Meeting> parse_meeting(std::string_view text) {
  if (text.size() > kMaxMeeting || !text.ends_with('\n')) return std::nullopt;
  Meeting found;
  const auto next = [&] {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
  };
  /// The rest of the next line, if it begins so.
  const auto field = [&](std::string_view name) -> std::optional<std::string_view> {
    if (text.empty()) return std::nullopt;
    std::string_view line = next();
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') return std::nullopt;
    return line.substr(name.size() + 1);
  };
  if (next() != kFirstLine) return std::nullopt;
  const auto host = field("host");
  const auto pid = field("pid");
  const auto size = field("size");
  const auto secret = field("secret");
  if (!host || !pid || !size || !secret || host->empty()) return std::nullopt;
  if (std::any_of(host->begin(), host->end(), [](char c) { return c <= ' ' || c > '~'; })) return std::nullopt;
  const auto pid_number = number_of(*pid);
  const auto size_number = number_of(*size);
  constexpr std::size_t kDigits = 64;
  if (!pid_number || !size_number || *size_number == 0 || *size_number > kMaxJobSize || secret->size() != kDigits ||
      !bytes_of_hexadecimal(*secret)) {
    return std::nullopt;
  }
  found.host = *host;
  found.pid = *pid_number;
  found.size = *size_number;
  found.secret = *secret;
  while (text != "end\n") {
    const auto line = field("address");
    const auto address = line ? parse_host_port(*line) : std::nullopt;
    if (!address || found.addresses.size() >= kMostAddresses) return std::nullopt;
    found.addresses.push_back(*address);
  }
  if (found.addresses.empty()) return std::nullopt;
  return found;
}

std::unique_ptr<Exchange> make_file_exchange(JobEnvironment& environment) {
  return environment.rank == 0 ? as_root(environment) : as_member(environment);
}

}  // namespace unisono::join
