// Handlers in a switch that serves: a connection that loads and runs them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "core/text.hpp"
#include "platform/join/hexadecimal.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "switch/handler/generated/isa.hpp"
#include "switch/handler_control.hpp"

namespace unisono::python {
namespace {

using slots::ControlKind;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}

/// Bytes of packets in one request; a packet more may come to it.
constexpr std::size_t kAtOnce = std::size_t{256} * 1024;

join::Deadline after(double timeout_s) {
  const double seconds = std::isfinite(timeout_s) && timeout_s > 0 && timeout_s < 1e6 ? timeout_s : 5;
  return join::Clock::now() + std::chrono::duration_cast<join::Clock::duration>(std::chrono::duration<double>(seconds));
}

/// One thread at a time.
class SwitchHandlers {
 public:
  SwitchHandlers(const std::string& where, const std::string& secret, double timeout_s) : where_(where) {
    connection_ = without_gil(
        [&] { return std::make_unique<slots::ControlConnection>(where, bytes_of(secret), after(timeout_s)); });
  }

  std::string name() const { return connection_->welcome().name; }

  nb::tuple load(const std::string& name, const nb::bytes& binary, bool stays, bool anew, double timeout_s) {
    const auto bytes = bytes_of(binary);
    const Digest hash = sha256_of(bytes);
    const slots::LoadAnswer answer = without_gil([&] {
      slots::LoadRequest request{{owner_, checked(name)}, stays, anew, hash, {bytes.begin(), bytes.end()}};
      const join::Blob words = packed(request);
      if (words.size() + 64 > slots::kMostControlBytes) {
        throw Error(ErrorCode::kInvalidArgument, formatted("the binary has {} bytes; a switch takes {} at most",
                                                           bytes.size(), slots::kMostControlBytes - 1024));
      }
      const auto said = slots::load_answer_in(connection_->ask(ControlKind::kLoad, words, after(timeout_s)));
      return understood(said);
    });
    if (!answer.refusal.empty()) refused(answer.refusal);
    return nb::make_tuple(join::hexadecimal_of(hash), answer.fresh);
  }

  void unload(const std::string& name, double timeout_s) {
    const join::Blob said = without_gil([&] {
      return connection_->ask(ControlKind::kUnload, packed(slots::UnloadRequest{{owner_, checked(name)}}),
                              after(timeout_s));
    });
    if (!said.empty()) refused({reinterpret_cast<const char*>(said.data()), said.size()});
  }

  /// State, sentence, instructions, outputs.
  nb::tuple run(const std::string& name, const std::vector<nb::bytes>& packets, std::uint32_t source,
                std::uint32_t ranks, std::uint32_t tag, std::uint64_t budget, double timeout_s) {
    std::vector<std::span<const std::byte>> payloads;
    payloads.reserve(packets.size());
    for (const nb::bytes& packet : packets) payloads.push_back(bytes_of(packet));
    const slots::RunAnswer all = without_gil([&] {
      slots::RunRequest request{{owner_, checked(name)}, source, ranks, tag, 0, 0, budget, {}};
      return run_message(std::move(request), payloads, after(timeout_s));
    });
    nb::list outputs;
    for (const join::Blob& output : all.outputs) outputs.append(nb::bytes(output.data(), output.size()));
    return nb::make_tuple(static_cast<int>(all.state), all.sentence, all.executed, outputs);
  }

 private:
  static std::string checked(const std::string& name) {
    if (slots::is_switch_name(name)) return name;
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a handler's name has 1 to {} printable characters, without blanks, quotes and backslashes",
                          slots::kMostSwitchName));
  }
  [[noreturn]] void refused(const std::string& sentence) const {
    raise(ErrorCode::kUnsupported, formatted("the switch at {}: {}", where_, sentence));
  }
  template <class Answer>
  Answer understood(const std::optional<Answer>& answer) const {
    if (answer) return *answer;
    throw Error(ErrorCode::kBootstrap, formatted("the switch at {} says something else than expected", where_));
  }

  /// All packets of a message, as many at once as a request takes.
  slots::RunAnswer run_message(slots::RunRequest request, std::span<const std::span<const std::byte>> payloads,
                               join::Deadline deadline) {
    using State = slots::RunAnswer::State;
    slots::RunAnswer all;
    request.packets = static_cast<std::uint32_t>(payloads.size());
    std::size_t at = 0;
    do {
      request.first = static_cast<std::uint32_t>(at);
      request.payloads.clear();
      std::size_t bytes = 0;
      for (std::size_t i = at; i < payloads.size() && bytes < kAtOnce; ++i) {
        if (request.payloads.size() == slots::kMostPacketsAtOnce) break;
        request.payloads.emplace_back(payloads[i].begin(), payloads[i].end());
        bytes += payloads[i].size();
      }
      const auto said = slots::run_answer_in(connection_->ask(ControlKind::kRun, packed(request), deadline));
      slots::RunAnswer answer = understood(said);
      if (answer.state == State::kGoesOn && answer.taken == 0 && !request.payloads.empty()) {
        return understood<slots::RunAnswer>(std::nullopt);
      }
      at += answer.taken;
      all.executed += answer.executed;
      all.state = answer.state;
      all.sentence = answer.sentence;
      std::move(answer.outputs.begin(), answer.outputs.end(), std::back_inserter(all.outputs));
    } while (all.state == State::kGoesOn && at < payloads.size());
    return all;
  }

  std::string where_;
  slots::HandlerOwner owner_{};
  std::unique_ptr<slots::ControlConnection> connection_;
};

}  // namespace

void bind_switch_handlers(nb::module_& module) {
  nb::class_<SwitchHandlers>(module, "SwitchHandlers", "A connection to a switch by which handlers are loaded and run.")
      .def(nb::init<const std::string&, const std::string&, double>(), nb::arg("where"), nb::arg("secret"),
           nb::arg("timeout_s"))
      .def_prop_ro("name", &SwitchHandlers::name)
      .def("load", &SwitchHandlers::load, nb::arg("name"), nb::arg("binary"), nb::arg("stays"), nb::arg("anew"),
           nb::arg("timeout_s"), "Its hash, and whether its memory is as at the beginning.")
      .def("unload", &SwitchHandlers::unload, nb::arg("name"), nb::arg("timeout_s"))
      .def("run", &SwitchHandlers::run, nb::arg("name"), nb::arg("packets"), nb::arg("source"), nb::arg("ranks"),
           nb::arg("tag"), nb::arg("budget"), nb::arg("timeout_s"),
           "Runs a message: state (goes on, dropped, stopped, refused), sentence, instructions, outputs.");
}

}  // namespace unisono::python
