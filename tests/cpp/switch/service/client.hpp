// Those who load handlers into a switch that serves, and run them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "switch/handler/binary.hpp"
#include "switch/handler_control.hpp"
#include "tests/cpp/switch/handler/words.hpp"
#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {

/// Adds the lengths of all packets that ever came, and writes the sum behind each message. `step` more for each packet,
/// so that others are other binaries.
inline join::Blob adds_lengths(std::uint32_t step = 0, std::uint32_t memory_bytes = 4096) {
  handler::Program program = handler::payload_of(
      {
          handler::numbered(handler::Op::kLoad, 1, 0, 0),
          handler::numbered(handler::Op::kInfo, 2, 0, static_cast<std::uint32_t>(handler::Info::kLength)),
          handler::registers(handler::Op::kAdd, handler::Element::kI64, 1, 1, 2),
          handler::immediate(handler::Op::kAdd, handler::Element::kI64, 1, 1, step),
          handler::numbered(handler::Op::kStore, 1, 0, 0),
          handler::end(),
          handler::numbered(handler::Op::kLoad, 1, 0, 0),
          handler::registers(handler::Op::kPut, handler::Element::kI64, 0, 1),
          handler::end(),
      },
      memory_bytes);
  program.entries[static_cast<std::size_t>(handler::Function::kCompletion)] = 6;
  program.source = "lengths.c";
  return handler::write_binary(program);
}

/// A connection that loads and runs.
class Client {
 public:
  explicit Client(const std::string& address) : connection_(call_at(address)) {}

  LoadAnswer load(const std::string& name, const join::Blob& binary, bool stays = true, bool anew = false) {
    return load(LoadRequest{{owner, name}, stays, anew, sha256_of(binary), binary});
  }
  LoadAnswer load(const LoadRequest& request) {
    return *load_answer_in(connection_->ask(ControlKind::kLoad, packed(request), within(std::chrono::seconds(5))));
  }
  std::string unload(const std::string& name) {
    const auto said =
        connection_->ask(ControlKind::kUnload, packed(UnloadRequest{{owner, name}}), within(std::chrono::seconds(5)));
    return {reinterpret_cast<const char*>(said.data()), said.size()};
  }
  /// Packets of these lengths, from `first` on.
  RunAnswer run(const std::string& name, const std::vector<std::size_t>& lengths, std::uint32_t first,
                std::uint32_t packets, std::uint64_t budget = 0) {
    RunRequest request{{owner, name}, 1, 2, 3, first, packets, budget, {}};
    for (const std::size_t length : lengths) request.payloads.emplace_back(length);
    return *run_answer_in(connection_->ask(ControlKind::kRun, packed(request), within(std::chrono::seconds(60))));
  }
  RunAnswer run(const std::string& name, const std::vector<std::size_t>& lengths) {
    return run(name, lengths, 0, static_cast<std::uint32_t>(lengths.size()));
  }
  ControlConnection& connection() { return *connection_; }

  HandlerOwner owner{};

 private:
  std::unique_ptr<ControlConnection> connection_;
};

}  // namespace unisono::slots
