// An engine whose peers send whatever they like: headers that a transport lets pass, with any numbers in them, between
// calls of its own. Time is the input's, so that deadlines pass without waiting.
#include <deque>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/header.hpp"
#include "engine/engine.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint32_t kSize = 3;
constexpr std::uint32_t kSegment = 256;

constexpr std::size_t index_of(Lane lane) { return lane == Lane::kData ? 0 : 1; }

/// Endpoint 0 of three; the others say what the input says.
class Forgery final : public Poe {
 public:
  std::uint32_t self() const override { return 0; }
  std::uint32_t size() const override { return kSize; }
  std::uint32_t max_payload(Lane lane) const override { return lane == Lane::kData ? kSegment : 256; }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    claim(peer < kSize && bytes <= max_payload(lane), "a message that the network takes");
    if (full) return nullptr;
    Space& space = spaces_[peer][index_of(lane)];
    space.memory = std::make_unique<std::byte[]>(bytes);
    space.bytes = bytes;
    return space.memory.get();
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override {
    Space& space = spaces_[peer][index_of(lane)];
    claim(space.memory != nullptr && header.segment_bytes <= space.bytes, "a message no longer than was reserved");
    space.memory.reset();
    sent = header;
  }
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override {
    auto& queue = queues[peer][index_of(lane)];
    if (queue.empty()) return false;
    incoming.header = queue.front().header;
    incoming.payload = {queue.front().payload.get(), queue.front().header.segment_bytes};
    return true;
  }
  void release(std::uint32_t peer, Lane lane) override { queues[peer][index_of(lane)].pop_front(); }
  std::uint32_t activity() const override { return ++looks_; }
  void wait(std::uint32_t /*seen*/, std::chrono::microseconds at_most) override {
    time += std::min(at_most, std::chrono::microseconds(1'000'000));
  }
  std::chrono::steady_clock::time_point now() const override { return std::chrono::steady_clock::time_point(time); }
  Liveness liveness(std::uint32_t peer) override { return gone[peer]; }
  std::string describe(std::uint32_t peer) const override { return "endpoint " + std::to_string(peer); }

  struct Message {
    Header header;
    std::unique_ptr<std::byte[]> payload;
  };
  std::deque<Message> queues[kSize][2];
  Header sent{};
  bool full = false;
  std::chrono::microseconds time{1'000'000'000};
  Liveness gone[kSize] = {Liveness::kAlive, Liveness::kAlive, Liveness::kAlive};

 private:
  struct Space {
    std::unique_ptr<std::byte[]> memory;
    std::uint32_t bytes = 0;
  };
  Space spaces_[kSize][2];
  mutable std::uint32_t looks_ = 0;
};

/// A call of the engine with memory of exactly the length it needs.
struct Pending {
  CallId id = 0;
  std::unique_ptr<std::byte[]> src;
  std::unique_ptr<std::byte[]> dst;
  std::vector<std::uint64_t> counts;
};

class Scene {
 public:
  explicit Scene(fuzz::Input& input) : input_(input) {
    settings_.timeout = std::chrono::milliseconds(100);
    settings_.eager_limit = 200;
    settings_.segment_bytes = kSegment;
    settings_.rx_buffer_count = 2;
    settings_.lanes = false;
    engine_ = std::make_unique<NativeEngine>(network_, settings_);
    create(0);
  }

  void play() {
    for (int act = 0; act < 200 && !input_.empty(); ++act) {
      switch (const auto kind = input_.take<std::uint8_t>(); kind % 16) {
        case 0:
        case 1:
        case 2:
          call();
          break;
        case 3:
          network_.time += std::chrono::microseconds(input_.take<std::uint16_t>());
          engine_->progress();
          break;
        case 4:
          bind();
          break;
        case 5:
          network_.full = kind >= 128;
          break;
        case 6:
          communicators();
          break;
        case 7:
          network_.gone[1 + kind / 16 % 2] = kind >= 224 ? Poe::Liveness::kDead : Poe::Liveness::kLeft;
          break;
        default:
          message();
          if (kind < 192) engine_->progress();
      }
    }
    network_.full = false;
    for (Pending& pending : calls_) {
      const CallResult result = engine_->wait(pending.id);
      claim(result.complete, "every call ends");
      claim((result.code == ErrorCode::kOk) == result.message.empty(), "a failure has a message, success has none");
      engine_->forget(pending.id);
    }
  }

 private:
  void create(std::uint32_t number) {
    const std::vector<std::uint32_t> all{0, 1, 2};
    try {
      engine_->create_communicator(number, 0, all, engine_->capabilities());
    } catch (const Error&) {
      // It stands already.
    }
  }

  void communicators() {
    const auto kind = input_.take<std::uint8_t>();
    try {
      if (kind % 2 == 0) create(kind / 2 % 3);
      if (kind % 2 == 1) engine_->free_communicator(kind / 2 % 3);
    } catch (const Error&) {
      // There is none.
    }
  }

  void bind() {
    const auto bytes = input_.take<std::uint8_t>();
    auto window = std::make_unique<std::byte[]>(bytes);
    try {
      engine_->bind_window(0, {window.get(), bytes});
      window_ = std::move(window);
    } catch (const Error&) {
      // The communicator has gone; what was bound to it stays.
    }
  }

  void call() {
    constexpr Collective kKinds[] = {Collective::kSend,          Collective::kRecv,      Collective::kPut,
                                     Collective::kGet,           Collective::kBcast,     Collective::kReduce,
                                     Collective::kAllreduce,     Collective::kAllgather, Collective::kAlltoall,
                                     Collective::kReduceScatter, Collective::kScan,      Collective::kBarrier,
                                     Collective::kGather,        Collective::kScatter};
    constexpr Datatype kTypes[] = {Datatype::kByte, Datatype::kInt32, Datatype::kFp64, Datatype::kComplex128};
    constexpr std::uint32_t kCounts[] = {0, 1, 7, 40, 300};
    CallRequest request;
    request.call.collective = kKinds[input_.up_to(std::size(kKinds) - 1)];
    request.call.dtype = kTypes[input_.up_to(std::size(kTypes) - 1)];
    request.call.count = kCounts[input_.up_to(std::size(kCounts) - 1)];
    request.call.root = input_.up_to(kSize);
    request.call.in_place = input_.up_to(7) == 0;
    request.tag = input_.up_to(1);
    request.window_offset = input_.up_to(64);
    const bool reduces =
        request.call.collective == Collective::kReduce || request.call.collective == Collective::kAllreduce ||
        request.call.collective == Collective::kReduceScatter || request.call.collective == Collective::kScan;
    if (reduces) {
      request.call.func = Func::kSum;
      if (request.call.dtype == Datatype::kByte) request.call.dtype = Datatype::kFp32;
    }
    Pending pending;
    const std::uint64_t bytes = request.call.count * bytes_of(request.call.dtype);
    pending.src = std::make_unique<std::byte[]>(kSize * bytes);
    pending.dst = std::make_unique<std::byte[]>(kSize * bytes);
    request.src = {pending.src.get(), kSize * bytes};
    request.dst = {pending.dst.get(), kSize * bytes};
    try {
      pending.id = engine_->submit(request);
      calls_.push_back(std::move(pending));
    } catch (const Error& error) {
      claim(error.what()[0] != '\0', "a refusal has a message");
    }
  }

  /// Mostly a small number, sometimes any of so many bits.
  std::uint64_t number(std::uint32_t most, unsigned bits) {
    const auto kind = input_.take<std::uint8_t>();
    return kind < 16 ? input_.take<std::uint64_t>() & (~std::uint64_t{0} >> (64U - bits)) : kind % (most + 1);
  }

  void message() {
    const auto peer = input_.up_to(2);
    Header header = make_header(MessageType::kEager);
    const auto kind = input_.take<std::uint8_t>();
    // An answer to what was sent last knows sequence, signature and token.
    if ((kind & 1U) != 0) header = network_.sent;
    header.type = static_cast<MessageType>(1 + number(7, 3));
    header.source = (kind & 2U) != 0 ? peer : static_cast<std::uint32_t>(number(2, 32));
    header.destination = (kind & 4U) != 0 ? 0 : static_cast<std::uint32_t>(number(2, 32));
    header.communicator = static_cast<std::uint32_t>(number(1, 32));
    if ((kind & 8U) == 0) {
      header.dtype = static_cast<Datatype>(number(20, 6));
      header.sequence = static_cast<std::uint32_t>(number(3, 32));
      header.signature = static_cast<std::uint32_t>(number(1, 32));
      header.token_slot = static_cast<std::uint16_t>(number(3, 16));
      header.token_generation = static_cast<std::uint16_t>(number(3, 16));
    }
    header.tag = static_cast<std::uint32_t>(number(12, 32));
    header.first = (kind & 16U) != 0;
    header.last = (kind & 32U) != 0;
    header.point_to_point = (kind & 64U) != 0;
    header.credits = static_cast<std::uint16_t>(number(2, 16));
    header.segment_bytes = input_.up_to(kSegment);
    header.offset = number(255, 48);
    header.message_bytes = (kind & 128U) != 0 ? header.offset + header.segment_bytes : number(255, 48);
    const Lane lane = input_.up_to(1) == 0 ? Lane::kData : Lane::kControl;
    header.magic = kMagic;
    header.version = kWireVersion;
    const HeaderWords words = encode(header);
    // What a transport does not let pass never comes to an engine (RingReceiver::check).
    if (!well_formed_header(words) || decode_header(words) != header) return;
    Forgery::Message message{header, std::make_unique<std::byte[]>(header.segment_bytes)};
    const auto payload = input_.take_bytes(header.segment_bytes % 64);
    if (!payload.empty()) std::memcpy(message.payload.get(), payload.data(), payload.size());
    network_.queues[peer][index_of(lane)].push_back(std::move(message));
  }

  fuzz::Input& input_;
  Forgery network_;
  EngineSettings settings_;
  std::unique_ptr<std::byte[]> window_;
  std::vector<Pending> calls_;
  std::unique_ptr<NativeEngine> engine_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Scene(input).play();
  return 0;
}
