#include "switch/handler_control.hpp"

#include <algorithm>

#include "core/call.hpp"
#include "switch/handler/generated/isa.hpp"

namespace unisono::slots {

namespace {

using join::Blob;
using join::Packer;
using join::Unpacker;

constexpr std::uint32_t kMostPackets = 1U << 24U;

Packer& add(Packer& packer, const HandlerName& which) {
  return packer.add(std::span<const std::byte>(which.owner)).add(which.name);
}

HandlerName take_name(Unpacker& unpacker) {
  HandlerName which;
  which.owner = unpacker.take_value<HandlerOwner>();
  which.name = unpacker.take_text();
  return which;
}

Blob take_blob(Unpacker& unpacker) {
  const auto piece = unpacker.take();
  return {piece.begin(), piece.end()};
}

/// A byte that must be 0 or 1.
bool take_truth(Unpacker& unpacker, bool& sound) {
  const auto byte = unpacker.take_value<std::uint8_t>();
  sound = sound && byte <= 1;
  return byte == 1;
}

}  // namespace

Blob packed(const LoadRequest& request) {
  Packer packer;
  return add(packer, request.which)
      .add_value(static_cast<std::uint8_t>(request.stays))
      .add_value(static_cast<std::uint8_t>(request.anew))
      .add(std::span<const std::byte>(request.hash))
      .add(request.binary)
      .take();
}

std::optional<LoadRequest> load_request_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  bool sound = true;
  LoadRequest request;
  request.which = take_name(unpacker);
  request.stays = take_truth(unpacker, sound);
  request.anew = take_truth(unpacker, sound);
  request.hash = unpacker.take_value<Digest>();
  request.binary = take_blob(unpacker);
  sound = sound && unpacker.whole() && is_switch_name(request.which.name);
  return sound ? std::optional(std::move(request)) : std::nullopt;
}

Blob packed(const LoadAnswer& answer) {
  return Packer().add(answer.refusal).add_value(static_cast<std::uint8_t>(answer.fresh)).take();
}

std::optional<LoadAnswer> load_answer_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  bool sound = true;
  LoadAnswer answer;
  answer.refusal = unpacker.take_text();
  answer.fresh = take_truth(unpacker, sound);
  return sound && unpacker.whole() ? std::optional(std::move(answer)) : std::nullopt;
}

Blob packed(const UnloadRequest& request) {
  Packer packer;
  return add(packer, request.which).take();
}

std::optional<UnloadRequest> unload_request_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  UnloadRequest request{take_name(unpacker)};
  const bool sound = unpacker.whole() && is_switch_name(request.which.name);
  return sound ? std::optional(std::move(request)) : std::nullopt;
}

Blob packed(const RunRequest& request) {
  Packer packer;
  add(packer, request.which)
      .add_value(request.source)
      .add_value(request.ranks)
      .add_value(request.tag)
      .add_value(request.first)
      .add_value(request.packets)
      .add_value(request.budget);
  for (const Blob& payload : request.payloads) packer.add(payload);
  return packer.take();
}

std::optional<RunRequest> run_request_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  RunRequest request;
  request.which = take_name(unpacker);
  request.source = unpacker.take_value<std::uint32_t>();
  request.ranks = unpacker.take_value<std::uint32_t>();
  request.tag = unpacker.take_value<std::uint32_t>();
  request.first = unpacker.take_value<std::uint32_t>();
  request.packets = unpacker.take_value<std::uint32_t>();
  request.budget = unpacker.take_value<std::uint64_t>();
  while (!unpacker.empty()) {
    if (request.payloads.size() == kMostPacketsAtOnce) return std::nullopt;
    request.payloads.push_back(take_blob(unpacker));
    if (request.payloads.back().size() > handler::kMostPayloadBytes) return std::nullopt;
  }
  // A message without packets has a begin and an end; every other request has something to do.
  const bool counts = request.packets <= kMostPackets && request.first <= request.packets &&
                      request.payloads.size() <= request.packets - request.first &&
                      request.payloads.empty() == (request.packets == 0);
  const bool sound = unpacker.whole() && counts && is_switch_name(request.which.name);
  return sound ? std::optional(std::move(request)) : std::nullopt;
}

Blob packed(const RunAnswer& answer) {
  Packer packer;
  packer.add_value(static_cast<std::uint8_t>(answer.state))
      .add(answer.sentence)
      .add_value(answer.taken)
      .add_value(answer.executed);
  for (const Blob& output : answer.outputs) packer.add(output);
  return packer.take();
}

std::optional<RunAnswer> run_answer_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  RunAnswer answer;
  const auto state = unpacker.take_value<std::uint8_t>();
  answer.state = static_cast<RunAnswer::State>(state);
  answer.sentence = unpacker.take_text();
  answer.taken = unpacker.take_value<std::uint32_t>();
  answer.executed = unpacker.take_value<std::uint64_t>();
  while (!unpacker.empty()) answer.outputs.push_back(take_blob(unpacker));
  const bool sound = unpacker.whole() && state <= static_cast<std::uint8_t>(RunAnswer::State::kRefused);
  return sound ? std::optional(std::move(answer)) : std::nullopt;
}

Blob packed(const OperatorRequest& request) {
  return Packer()
      .add(std::span<const std::byte>(request.pool))
      .add_value(static_cast<std::uint32_t>(request.func))
      .add(std::span<const std::byte>(request.hash))
      .add(request.binary)
      .take();
}

std::optional<OperatorRequest> operator_request_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  OperatorRequest request;
  request.pool = unpacker.take_value<PoolId>();
  const auto func = unpacker.take_value<std::uint32_t>();
  request.func = static_cast<Func>(func);
  request.hash = unpacker.take_value<Digest>();
  request.binary = take_blob(unpacker);
  const bool sound = unpacker.whole() && func <= 0xff && is_user(request.func);
  return sound ? std::optional(std::move(request)) : std::nullopt;
}

}  // namespace unisono::slots
