// The process that aggregates in the network, and questions to one.
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>

#include "core/text.hpp"
#include "network/udp/impairment.hpp"
#include "platform/join/variables.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "switch/control.hpp"
#include "switch/service/service.hpp"

namespace unisono::python {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// The service that signals end.
std::atomic<slots::Service*> served{nullptr};

void end_served(int) {
  if (slots::Service* const service = served.load()) service->stop();
}

/// While it lives, Ctrl-C and SIGTERM end the service; afterwards they do what they did.
class EndsBySignal {
 public:
  explicit EndsBySignal(slots::Service& service) {
    slots::Service* none = nullptr;
    if (!served.compare_exchange_strong(none, &service)) {
      throw Error(ErrorCode::kBootstrap, "this process serves as a switch already; start another process for another");
    }
    struct sigaction ends {};
    ends.sa_handler = end_served;
    sigaction(SIGINT, &ends, &interrupt_);
    sigaction(SIGTERM, &ends, &terminate_);
  }
  ~EndsBySignal() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    served.store(nullptr);
  }
  EndsBySignal(const EndsBySignal&) = delete;
  EndsBySignal& operator=(const EndsBySignal&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

void serve(const std::string& listen, const std::string& secret, const std::string& name, std::uint32_t slots,
           std::uint32_t threads, const std::string& uplink, const std::string& multicast, std::uint64_t up_to_bytes,
           std::uint32_t handlers, std::uint64_t handlers_memory, std::uint64_t handler_budget,
           const nb::callable& on_ready) {
  slots::ServiceSettings settings;
  settings.listen = listen;
  settings.secret = secret;
  settings.name = name;
  settings.slots = slots;
  settings.threads = threads;
  settings.uplink = uplink;
  settings.multicast = multicast;
  settings.up_to_bytes = up_to_bytes;
  settings.handlers = {handlers, handlers_memory, handler_budget};
  settings.impairment = udp::impairment_of(join::variable("UNISONO_UDP_IMPAIR").value_or(""));
  settings.say = [](const std::string& text) { std::fprintf(stderr, "unisono switch: %s\n", text.c_str()); };
  std::optional<slots::Service> service;
  without_gil([&] {
    service.emplace(settings);
    return true;
  });
  // Before it is told that the switch listens: whoever waits for that may end it at once.
  std::optional<EndsBySignal> ends(std::in_place, *service);
  on_ready(service->address());
  without_gil([&] {
    service->run();
    ends.reset();
    service.reset();
    return true;
  });
}

nb::bytes ask(const std::string& where, const std::string& secret, const std::string& kind, const nb::bytes& body,
              double timeout_s) {
  using slots::ControlKind;
  std::string text(body.c_str(), body.size());
  ControlKind asked = ControlKind::kAsk;
  if (kind == "status" || kind == "jobs") {
    text = kind;
  } else if (kind == "show") {
    text = "show " + text;
  } else if (kind == "stat") {
    text = text.empty() ? kind : kind + " " + text;
  } else if (kind == "drain" || kind == "undrain") {
    asked = ControlKind::kDrain;
    text.assign(1, kind == "drain" ? '\1' : '\0');
  } else if (kind == "stop") {
    asked = ControlKind::kStop;
    text.clear();
  } else {
    raise(ErrorCode::kInvalidArgument,
          formatted("a switch is asked \"{}\"; allowed are status, jobs, show, stat, drain, undrain and stop", kind));
  }
  const double seconds = std::isfinite(timeout_s) && timeout_s > 0 && timeout_s < 1e6 ? timeout_s : 5;
  const auto answer = without_gil([&] {
    const auto time = std::chrono::duration_cast<join::Clock::duration>(std::chrono::duration<double>(seconds));
    const join::Deadline deadline = join::Clock::now() + time;
    slots::ControlConnection connection(where, bytes_of(secret), deadline);
    return connection.ask(asked, bytes_of(text), deadline);
  });
  return nb::bytes(answer.data(), answer.size());
}

}  // namespace

void bind_switch(nb::module_& module) {
  module.def("switch_serve", serve, nb::arg("listen"), nb::arg("secret"), nb::arg("name"), nb::arg("slots"),
             nb::arg("threads"), nb::arg("uplink"), nb::arg("multicast"), nb::arg("up_to_bytes"), nb::arg("handlers"),
             nb::arg("handlers_memory"), nb::arg("handler_budget"), nb::arg("on_ready"),
             "Serves as a switch until Ctrl-C, SIGTERM or somebody's word; tells on_ready its HOST:PORT once it "
             "listens.");
  module.def("switch_ask", ask, nb::arg("where"), nb::arg("secret"), nb::arg("kind"), nb::arg("body"),
             nb::arg("timeout_s"),
             "Asks the switch at HOST:PORT: status, jobs, show (body: number of a communicator) and stat (body: name "
             "of a handler, or empty) give JSON; drain, "
             "undrain and stop nothing.");
  module.def(
      "switch_secret", [](const std::string& path) { return without_gil([&] { return slots::secret_in_file(path); }); },
      nb::arg("path"), "The secret that stands in a file; it must be its owner's alone.");
}

}  // namespace unisono::python
