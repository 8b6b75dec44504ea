#include "kernels/node_ports.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "kernels/link.hpp"
#include "kernels/rank.hpp"
#include "sim/software/software_node.hpp"

namespace unisono::kernels {

namespace {

/// Cycles that a kernel waits before a packet that is not full leaves.
constexpr std::uint64_t kPatience = 8;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "UNISONO_CABLES: " + why + "; `unisono run --cables` sets it");
}

/// Which of the words a variable has; the first if it is not set. Throws Error.
std::size_t choice_of(const char* variable, const std::vector<std::string>& words) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == 0) return 0;
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string known;
  for (const std::string& word : words) known += (known.empty() ? "" : ", ") + word;
  throw Error(ErrorCode::kInvalidArgument, formatted("{} is \"{}\"; known are {}", variable, text, known));
}

/// Whether a list of ranks with commas between them has that one.
bool names(const std::string& list, std::uint32_t rank) {
  std::istringstream ranks(list);
  for (std::string each; std::getline(ranks, each, ',');) {
    if (std::stoul(each) == rank) return true;
  }
  return false;
}

std::unique_ptr<SmiNode> software_node(const SmiNodeSettings& settings) {
  try {
    return std::make_unique<sim::SoftwareNode>(settings);
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorCode::kInvalidArgument, formatted("cables: {}", failure.what()));
  }
}

std::unique_ptr<SmiNode> open_node(const std::string& library, const SmiNodeSettings& settings) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
    refuse(why == nullptr ? library + " cannot be loaded" : why);
  }
  const auto* const version = static_cast<const std::uint32_t*>(dlsym(handle, "unisono_smi_node_version"));
  const auto open = reinterpret_cast<SmiNodeOpen>(dlsym(handle, "unisono_smi_node_open"));
  if (version == nullptr || open == nullptr || *version != kSmiNodeVersion) {
    refuse(library + " is no node of this version of Unisono; build it anew");
  }
  char why[1024] = {};
  std::unique_ptr<SmiNode> node(open(&settings, why, sizeof why));
  if (node == nullptr) throw Error(ErrorCode::kInvalidArgument, formatted("cables: {}", static_cast<char*>(why)));
  return node;
}

}  // namespace

std::unique_ptr<NodePorts> NodePorts::of_environment(Rank& rank, std::uint32_t number, std::uint32_t ranks) {
  const char* const text = std::getenv("UNISONO_CABLES");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == 0) return nullptr;
  SmiNodeSettings settings;
  settings.rank = number;
  settings.ranks = ranks;
  std::map<std::string, std::string> given;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('=');
    if (at != std::string::npos) given[line.substr(0, at)] = line.substr(at + 1);
  }
  try {
    settings.memory = std::stoi(given.at("memory"));
    settings.latency = static_cast<std::uint32_t>(std::stoul(given.at("latency")));
    settings.bytes_per_cycle = std::stod(given.at("bytes_per_cycle"));
    settings.clock_khz = std::stoull(given.at("clock_khz"));
    settings.routes = given.at("routes").c_str();
    settings.ports = static_cast<std::uint32_t>(std::stoul(given.at("ports")));
    settings.packet_bytes = static_cast<std::uint32_t>(std::stoul(given.at("packet")));
    settings.delay = std::stoull(given.at("delay"));
    settings.units.broadcasts = std::stoull(given.at("broadcasts"));
    settings.units.reductions = std::stoull(given.at("reductions"));
    settings.units.datatypes = std::stoull(given.at("datatypes"));
    settings.units.funcs = std::stoull(given.at("funcs"));
    if (std::stoul(given.at("ranks")) != ranks) {
      refuse(formatted("the cables are of {} ranks, and the job has {}", given.at("ranks"), ranks));
    }
    static std::atomic<bool> has_node{false};
    if (has_node.exchange(true)) refuse("a second context of this process asks for its rank's node; there is one");
    const bool software = names(given.at("software"), number);
    return std::make_unique<NodePorts>(rank,
                                       software ? software_node(settings) : open_node(given.at("library"), settings));
  } catch (const std::logic_error&) {
    refuse(formatted("\"{}\" is not understood", text));
  }
}

NodePorts::NodePorts(Rank& rank, std::unique_ptr<SmiNode> node)
    : rank_(rank), node_(std::move(node)), send_(node_->push.size()), receive_(node_->pop.size()) {}

NodePorts::~NodePorts() = default;

bool NodePorts::by_channels() {
  static const bool given = choice_of("UNISONO_SMI_COLLECTIVES", {"units", "channels"}) == 1;
  return given;
}

NodePorts::Protocol NodePorts::protocol() {
  static const auto given = static_cast<Protocol>(choice_of("UNISONO_SMI_PROTOCOL", {"degree", "eager", "credits"}));
  return given;
}

void NodePorts::wait_until(std::uint64_t cycle) {
  Task& me = rank_.here();
  while (now() < cycle) {
    due_[cycle].push_back(&me);
    rank_.block({});
  }
}

void NodePorts::wake_next(Task& task) { due_[now() + 1].push_back(&task); }

/// Offers the node the next word of a channel, if the one before was taken.
void NodePorts::load(std::uint32_t port) {
  SendPort& from = send_[port];
  PushEnd& to = node_->push[port];
  if (from.open && from.flush_at <= now()) {
    // Behind the last element a packet leaves anyway.
    from.flush = from.left != 0;
    from.flush_at = kNever - 1;  // until the next element
  }
  if (to.valid || !from.open || (from.queue.empty() && !from.flush)) return;
  // Strictly, a word is one element, so that each may go when there is room for one.
  const std::size_t bytes = std::min(from.queue.size(), from.exact ? from.element : kPortWordBytes);
  std::copy_n(from.queue.begin(), bytes, to.word.begin());
  from.queue.erase(from.queue.begin(), from.queue.begin() + static_cast<std::ptrdiff_t>(bytes));
  to.count = static_cast<std::uint32_t>(bytes / from.element);
  to.valid = true;
  to.flush = from.flush && from.queue.empty();
  if (to.flush) from.flush = false;
}

void NodePorts::waits(const Task& task) {
  for (SendPort& port : send_) {
    if (port.open && port.link != nullptr && port.link->owner() == &task && port.flush_at == kNever) {
      port.flush_at = now() + kPatience;
    }
  }
}

/// After a cycle: what has come, what has gone, and who may go on.
void NodePorts::settle(std::uint32_t port) {
  SendPort& from = send_[port];
  const PushEnd& to = node_->push[port];
  const UnitEnd& unit = node_->unit[port];
  if (from.open) {
    if (!to.valid && to.count != 0) {
      from.accepted += to.count;
      node_->push[port].count = 0;
      if (from.link != nullptr) from.link->notify();
    }
    if (!to.opening && !to.active && !from.pending && !(unit.opening && unit.pushes)) {
      from.open = false;
      node_->push[port].valid = false;
      from.queue.clear();
      if (from.link != nullptr) from.link->notify();
      from.link = nullptr;
    }
  }
  ReceivePort& into = receive_[port];
  PopEnd& end = node_->pop[port];
  if (into.link == nullptr) return;
  if (end.count != 0) {
    // Of an element that goes in parts, one may be there already.
    into.held.insert(into.held.end(), end.word.begin(),
                     end.word.begin() + std::size_t{end.count} * Carried(into.link->element()).bytes);
    end.count = 0;
    into.link->notify();
  }
  if (end.complaint) into.link->notify();
  if (into.open && !end.opening && !end.active && !into.pending && !(unit.opening && unit.pops)) {
    into.open = false;
    into.link->notify();
  }
}

bool NodePorts::cycle(std::chrono::microseconds at_most) {
  for (std::uint32_t port = 0; port < send_.size(); ++port) load(port);
  if (!node_->cycle(at_most)) return false;
  for (std::uint32_t port = 0; port < send_.size(); ++port) {
    if (send_[port].open || receive_[port].link != nullptr) settle(port);
  }
  while (!due_.empty() && due_.begin()->first <= now()) {
    for (Task* const task : due_.begin()->second) rank_.wake(*task);
    due_.erase(due_.begin());
  }
  return true;
}

bool NodePorts::turn(unisono_kernel_queue& queue, bool writes, bool waits) {
  QueueClock& clock = queues_[&queue];
  // Another one was there before.
  if (clock.written.size() != queue.written - queue.read) clock = {};
  Task& me = rank_.here();
  (writes ? queue.writer : queue.reader) = &me;
  int& waiting = writes ? queue.writer_waits : queue.reader_waits;
  for (;;) {
    const unsigned long long held = queue.written - queue.read;
    bool blocked = writes ? held >= queue.depth : held == 0;
    // What it holds, and a place that is free, can be used from the next cycle on.
    bool early = false;
    if (!blocked && writes) {
      early = clock.last_write == now() || (held + 1 == queue.depth && clock.last_read == now());
    } else if (!blocked) {
      early = clock.last_read == now() || clock.written.front() == now();
    }
    if (!blocked && !early) break;
    if (!waits) return false;
    if (early) {
      wait_until(now() + 1);
      continue;
    }
    waiting = 1;
    Wait wait;
    wait.kind = writes ? Wait::Kind::kWrite : Wait::Kind::kRead;
    wait.name = queue.name;
    wait.towards = static_cast<Task*>(writes ? queue.reader : queue.writer);
    rank_.block(wait);
  }
  waiting = 0;
  node_->moved();
  if (writes) {
    clock.last_write = now();
    clock.written.push_back(now());
  } else {
    clock.last_read = now();
    clock.written.pop_front();
  }
  return true;
}

bool NodePorts::all_gone() const {
  return std::none_of(send_.begin(), send_.end(), [](const SendPort& port) { return port.open; });
}

void NodePorts::kernel_begins() { begin_ = std::min(begin_, now()); }

void NodePorts::kernel_ends() {
  node_->moved();
  node_->report(std::min(begin_, now()), now());
}

}  // namespace unisono::kernels
