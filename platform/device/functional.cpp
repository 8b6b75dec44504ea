#include "platform/device/functional.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/facts.hpp"
#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "engine/engine.hpp"
#include "platform/device/device_engine.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

namespace {

using std::chrono::microseconds;

constexpr std::uint32_t kFirmwareBytes = 128 * 1024;
constexpr std::uint32_t kGroupSize = (1U << registers::kAboveShift) - 1;
constexpr std::size_t kRememberedFailures = 32;
constexpr std::uint64_t kMostBound = std::uint64_t{1} << 48U;
/// How long one call is waited for while others may end.
constexpr microseconds kTurn{100};

enum class Access : std::uint8_t { kNone, kReadOnly, kReadWrite, kWriteOnly };

/// A register file with what may be done with each word.
constexpr auto kAccess = [] {
  std::array<Access, exchange::kBytes / 4> map{};
  const auto set = [&](std::uint32_t offset, std::uint32_t bytes, Access access) {
    for (std::uint32_t at = offset; at < offset + bytes; at += 4) map[at / 4] = access;
  };
  set(exchange::kIdentity, 16, Access::kReadOnly);
  set(exchange::kControl, 8, Access::kReadWrite);
  set(exchange::kError, 8, Access::kReadOnly);
  set(exchange::kDoorbell, 4, Access::kWriteOnly);
  set(exchange::kCompleted, 12, Access::kReadOnly);
  set(exchange::kEagerLimit, 20, Access::kReadWrite);
  set(exchange::kFirmwareAddress, 8, Access::kReadWrite);
  set(exchange::kWindowAddress, 16, Access::kReadWrite);
  set(exchange::kCallSlot, 128, Access::kReadWrite);
  set(exchange::kCounters, 512, Access::kReadOnly);
  set(exchange::kTransport, 1024, Access::kReadWrite);
  set(exchange::kPrograms, 28, Access::kReadWrite);
  set(exchange::kRxBuffers, 4096, Access::kReadOnly);
  set(exchange::kCommunicators, 1024, Access::kReadWrite);
  set(exchange::kMembers, 4096, Access::kReadWrite);
  return map;
}();

}  // namespace

class FunctionalDevice::Impl {
 public:
  Impl(Poe& network, const Capability& with, std::uint64_t bytes, Peers peers)
      : poe(network), capability(with), engine(network, engine_settings(peers)), memory_bytes(bytes) {
    void* const mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      throw Error(ErrorCode::kOutOfMemory,
                  formatted("functional device: {} bytes of address space for its memory could not be had", bytes));
    }
    memory = static_cast<std::byte*>(mapped);
    word(exchange::kEagerLimit) = 4096;
    word(exchange::kSegmentBytes) = 4096;
    word(exchange::kRxBufferCount) = 4;
    word(exchange::kRxBufferBytes) = 4096;
    word(exchange::kTimeoutUs) = 30'000'000;
  }
  ~Impl() { munmap(memory, memory_bytes); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// A call that was admitted and has not ended: parked, or with the native engine.
  struct Active {
    CallDescriptor call;
    CallId id = 0;  ///< the native engine's; 0 while it is parked
  };
  struct Ended {
    std::uint32_t number = 0;
    ErrorCode code = ErrorCode::kOk;
  };

  static EngineSettings engine_settings(Peers peers) {
    EngineSettings settings;
    settings.hardware_peers = peers == Peers::kHardware;
    settings.lanes = false;  // messages only: a card has no memory in common with others
    return settings;
  }

  std::uint32_t& word(std::uint32_t offset) { return words[offset / 4]; }

  [[noreturn]] static void refuse(const char* what, std::uint32_t offset) {
    throw Error(ErrorCode::kInvalidArgument, formatted("functional device: {} at offset {}", what, offset));
  }

  static Access access_of(std::uint32_t offset, const char* what) {
    if (offset % 4 != 0 || offset >= exchange::kBytes) refuse(what, offset);
    return kAccess[offset / 4];
  }

  // -------------------------------------------------------------------------------------------- registers

  std::uint32_t read(std::uint32_t offset) {
    const Access access = access_of(offset, "no register to read");
    if (access == Access::kNone || access == Access::kWriteOnly) refuse("no register to read", offset);
    switch (offset) {
      case exchange::kIdentity:
        return registers::kIdentity;
      case exchange::kVersion:
        return registers::kVersion;
      case exchange::kCapability:
        return static_cast<std::uint32_t>(encode(capability)[0]);
      case exchange::kCapability + 4:
        return static_cast<std::uint32_t>(encode(capability)[0] >> 32U);
      case exchange::kStatus:
        poll();
        return (running() ? registers::kStatusReady : 0U) | (failed ? registers::kStatusFailed : 0U) |
               (slot_taken ? registers::kStatusSlotTaken : 0U) |
               (completions.empty() ? 0U : registers::kStatusCompletion);
      case exchange::kCompleted:
        poll();
        given.reset();
        if (completions.empty()) return 0;
        given = completions.front();
        completions.pop_front();
        take_slot();
        return given->number;
      case exchange::kCompletedCode:
        return given ? registers::kCodeGiven | static_cast<std::uint32_t>(given->code) : 0;
      case exchange::kCalls:
        poll();
        return static_cast<std::uint32_t>(active.size()) |
               ((1U << std::min<std::size_t>(active.size(), kMaxActiveCalls)) - 1U) << 8U;
      case exchange::kFirmwareData:
        return firmware_word("no firmware to read while it runs");
      case registers::kProgramState:
        return program_state();
      default:
        return word(offset);
    }
  }

  void write(std::uint32_t offset, std::uint32_t value) {
    const Access access = access_of(offset, "no register to write");
    if (access == Access::kNone || access == Access::kReadOnly) refuse("no register to write", offset);
    if (offset >= exchange::kCallSlot && offset < exchange::kCallSlot + 128) {
      if (slot_taken) refuse("a call descriptor is still being taken", offset);
      word(offset) = value;
      return;
    }
    if (offset >= exchange::kPrograms && offset < exchange::kPrograms + 28) {
      load_program(offset, value);
      return;
    }
    if (offset >= exchange::kCommunicators && offset < exchange::kCommunicators + 1024) {
      word(offset) = value;
      const std::uint32_t entry = (offset - exchange::kCommunicators) / 4;
      const std::uint32_t position = entry / registers::kEntryWords;
      update(position);
      if (entry % registers::kEntryWords == registers::kPathWindow) take_window(position, (value & 1U) != 0);
      return;
    }
    switch (offset) {
      case exchange::kControl:
        if ((value & registers::kControlReset) != 0) reset();
        word(offset) = value & registers::kControlRun;
        break;
      case exchange::kStatus:
        if ((value & registers::kStatusFailed) != 0) failed = false;
        break;
      case exchange::kDoorbell:
        if (slot_taken) refuse("a call descriptor is still being taken", offset);
        slot_taken = true;
        take_slot();
        break;
      case exchange::kFirmwareData:
        firmware_word("no firmware to write while it runs") = value;
        break;
      default:
        word(offset) = value;
    }
  }

  bool running() { return (word(exchange::kControl) & registers::kControlRun) != 0; }

  std::uint32_t& firmware_word(const char* refusal) {
    if (running()) refuse(refusal, exchange::kFirmwareData);
    std::uint32_t& address = word(exchange::kFirmwareAddress);
    if (firmware.empty()) firmware.resize(kFirmwareBytes / 4);
    std::uint32_t& there = firmware[address / 4 % firmware.size()];
    address += 4;
    return there;
  }

  // --------------------------------------------------------------------------------------------- programs

  std::uint32_t program_state() const {
    std::uint32_t state = refused ? registers::kProgramRefused : 0;
    for (std::size_t slot = 0; slot < programs.size(); ++slot) state |= programs[slot] ? 1U << slot : 0U;
    return state;
  }

  /// As docs/rtl/replay.md says.
  void load_program(std::uint32_t offset, std::uint32_t value) {
    switch (offset) {
      case registers::kProgramSlot:
        coming = {};
        move_words.clear();
        coming_slot = value;
        rest_moves = 0;
        refused = value >= programs.size();
        if (!refused) programs[value].reset();
        break;
      case registers::kProgramList:
        refused = refused || coming.pool.size() == kLoadedWords;
        if (!refused) coming.pool.push_back(value);
        break;
      case registers::kProgramMove: {
        refused = refused || coming.moves.size() == kLoadedMoves;
        if (refused) break;
        move_words.push_back(value);
        if (move_words.size() < kMoveBytes / 4) break;
        std::array<std::uint64_t, kMoveBytes / 8> move{};
        for (std::size_t i = 0; i < move.size(); ++i) {
          move[i] = move_words[2 * i] | std::uint64_t{move_words[2 * i + 1]} << 32U;
        }
        coming.moves.push_back(decode_move(move));
        move_words.clear();
        break;
      }
      case registers::kProgramRestMoves:
        rest_moves = value;
        refused = refused || value > kProgramMoves - kLoadedMoves;
        break;
      case registers::kProgramLoad:
        refused = refused || !move_words.empty() || (rest_moves != 0 && coming.moves.size() != kLoadedMoves);
        if (refused) break;
        read_rest();
        programs[coming_slot] = std::make_shared<const Program>(coming);
        break;
      default:
        word(offset) = value;
    }
  }

  /// Moves that stand in memory. An engine reads them when they are called, this one at once.
  void read_rest() {
    const std::uint64_t address =
        word(registers::kProgramRestAddress) | std::uint64_t{word(registers::kProgramRestAddress + 4)} << 32U;
    const std::uint64_t bytes = std::uint64_t{rest_moves} * kMoveBytes;
    if (bytes == 0) return;
    if (address < kMemoryAddress || address - kMemoryAddress > memory_bytes ||
        bytes > memory_bytes - (address - kMemoryAddress)) {
      refuse("moves of a program beyond the memory are named", registers::kProgramRestAddress);
    }
    for (std::uint32_t i = 0; i < rest_moves; ++i) {
      std::array<std::uint64_t, kMoveBytes / 8> move{};
      std::memcpy(move.data(), memory + (address - kMemoryAddress) + std::uint64_t{i} * kMoveBytes, kMoveBytes);
      coming.moves.push_back(decode_move(move));
    }
  }

  /// The program of a call, with the memory that the call binds.
  std::shared_ptr<const Program> program_of(const CallDescriptor& call) {
    std::shared_ptr<const Program>& there = programs[call.program];
    if (there->scratch_bytes != call.scratch_bytes || there->params_bytes != call.params_bytes) {
      Program sized = *there;
      sized.scratch_bytes = call.scratch_bytes;
      sized.params_bytes = call.params_bytes;
      there = std::make_shared<const Program>(std::move(sized));
    }
    return there;
  }

  // ------------------------------------------------------------------------------------------------ calls

  void reset() {
    programs = {};
    for (const Active& entry : active) {
      if (entry.id != 0) given_up.push_back(entry.id);
    }
    active.clear();
    completions.clear();
    given.reset();
    failures.clear();
    slot_taken = failed = false;
    word(exchange::kError) = word(exchange::kErrorCall) = 0;
  }

  /// Takes the descriptor, if the host has not too many calls out or unanswered.
  void take_slot() {
    if (!slot_taken || !running() || active.size() + completions.size() >= DeviceLimits::kCalls) return;
    std::array<std::uint64_t, kCallDescriptorWords> encoded{};
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      const auto at = static_cast<std::uint32_t>(exchange::kCallSlot + 8 * i);
      encoded[i] = word(at) | std::uint64_t{word(at + 4)} << 32U;
    }
    slot_taken = false;
    const CallDescriptor descriptor = decode_call_descriptor(encoded);
    try {
      check(descriptor, encoded);
      for (const std::uint32_t number : {descriptor.wait_for0, descriptor.wait_for1}) look_for_failure(number);
      failures.erase(std::remove_if(failures.begin(), failures.end(),
                                    [&](const Ended& failure) { return failure.number == descriptor.call_id; }),
                     failures.end());
      active.push_back({descriptor});
    } catch (const Error& error) {
      end(descriptor.call_id, error.code());
    }
    start_parked();
  }

  /// Throws the code of a call that has failed.
  void look_for_failure(std::uint32_t number) const {
    for (const Ended& failure : failures) {
      if (number != 0 && failure.number == number) reject(failure.code);
    }
  }

  bool outstanding(std::uint32_t number) const {
    return number != 0 &&
           std::any_of(active.begin(), active.end(), [&](const Active& entry) { return entry.call.call_id == number; });
  }

  /// Calls of one order start in the order of their admission; copy, combine and nop have none.
  static std::optional<std::pair<std::uint32_t, bool>> order_of(const CallDescriptor& call) {
    const CallKind kind = facts_of(call.collective).kind;
    if (kind == CallKind::kLocal) return std::nullopt;
    return std::pair{call.communicator, kind == CallKind::kCollective || kind == CallKind::kProgram};
  }

  /// Starts what waits for nothing any more.
  void start_parked() {
    std::set<std::pair<std::uint32_t, bool>> held;
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (active[i].id != 0) continue;
      const CallDescriptor call = active[i].call;
      const auto order = order_of(call);
      const bool waits = outstanding(call.wait_for0) || outstanding(call.wait_for1);
      if (waits || (order && held.count(*order) != 0)) {
        if (order) held.insert(*order);
        continue;
      }
      try {
        for (const std::uint32_t number : {call.wait_for0, call.wait_for1}) look_for_failure(number);
        active[i].id = call.collective == Collective::kNop ? 0 : start(call);
        if (active[i].id != 0) continue;
        active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
        end(call.call_id, ErrorCode::kOk);
      } catch (const Error& error) {
        active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
        end(call.call_id, error.code());
      }
      // Others may wait for it, also such that stand before it.
      held.clear();
      i = ~std::size_t{0};
    }
  }

  [[noreturn]] static void reject(ErrorCode code) { throw Error(code, name_of(code)); }

  /// The checks of docs/rtl/call_queue.md.
  void check(const CallDescriptor& call, const std::array<std::uint64_t, kCallDescriptorWords>& encoded) {
    if (!is_known(call.collective) || encode(call) != encoded) reject(ErrorCode::kInvalidArgument);
    if (call.collective == Collective::kNop && call.algorithm > 3) reject(ErrorCode::kUnknownAlgorithm);
    if (!is_known(call.func)) reject(ErrorCode::kInvalidOp);
    if (!is_known(call.dtype) || !is_known(call.wire_dtype)) reject(ErrorCode::kInvalidDatatype);
    if (call.count > kMaxCount) reject(ErrorCode::kInvalidCount);
    for (const auto& [address, bytes] :
         {std::pair{call.src_address, call.src_bytes}, std::pair{call.dst_address, call.dst_bytes},
          std::pair{call.scratch_address, call.scratch_bytes}, std::pair{call.params_address, call.params_bytes}}) {
      if (bytes >= kMostBound || address + bytes < address) reject(ErrorCode::kInvalidArgument);
    }
    if (call.window_offset > kMaxWindowOffset) reject(ErrorCode::kInvalidArgument);
    const bool pair = call.collective == Collective::kSend || call.collective == Collective::kRecv;
    if (pair && !is_message_tag(call.tag)) reject(ErrorCode::kInvalidArgument);
    if (call.collective == Collective::kProgram && (call.program >= programs.size() || !programs[call.program])) {
      reject(ErrorCode::kInvalidArgument);
    }
    if (call.collective == Collective::kNop && call.algorithm != 0) reject(ErrorCode::kInvalidArgument);  // no kernels
    const bool no_port = (call.src_stream && call.src_address >= kMaxStreamPorts) ||
                         (call.dst_stream && call.dst_address >= kMaxStreamPorts);
    if (no_port) reject(ErrorCode::kInvalidArgument);
    if (outstanding(call.call_id)) reject(ErrorCode::kInvalidArgument);
  }

  Binding bound(std::uint64_t address, std::uint64_t bytes) const {
    if (bytes == 0) return {};
    if (address < kMemoryAddress || address - kMemoryAddress > memory_bytes ||
        bytes > memory_bytes - (address - kMemoryAddress)) {
      reject(ErrorCode::kInvalidArgument);
    }
    return {memory + (address - kMemoryAddress), bytes};
  }

  /// Hands a call to the native engine.
  CallId start(const CallDescriptor& call) {
    if (call.communicator >= made.size() || !made[call.communicator]) {
      reject(ErrorCode::kFreedCommunicator);
    }
    if ((word(registers::communicator(call.communicator, registers::kState)) & registers::kStateRevoked) != 0) {
      reject(ErrorCode::kRevoked);
    }
    if (call.wire_dtype != Datatype::kNone && call.wire_dtype != call.dtype) reject(ErrorCode::kUnsupported);
    CallRequest request;
    request.communicator = *made[call.communicator];
    request.call.collective = call.collective;
    request.call.func = call.func;
    request.call.dtype = call.dtype;
    request.call.in_place = call.in_place;
    request.call.root = call.root;
    request.call.radix = call.radix;
    request.call.count = call.count;
    request.algorithm = call.algorithm == 0 ? -1 : static_cast<int>(call.algorithm) - 1;
    request.tag = call.tag;
    request.reserved_tag = call.tag > kMaxUserTag;
    request.window_offset = call.window_offset;
    if (call.collective == Collective::kProgram) request.program = program_of(call);
    if (call.src_stream) {
      request.src_port = static_cast<std::int8_t>(call.src_address);
    } else {
      request.src = bound(call.src_address, call.src_bytes);
    }
    if (call.dst_stream) {
      request.dst_port = static_cast<std::int8_t>(call.dst_address);
    } else {
      request.dst = bound(call.dst_address, call.dst_bytes);
    }
    request.scratch = bound(call.scratch_address, call.scratch_bytes);
    request.params = bound(call.params_address, call.params_bytes);
    // Not bound is none: the engine would provide its own.
    if (request.scratch.data == nullptr) request.scratch = {memory, 0};
    if (request.params.data == nullptr) request.params = {memory, 0};
    std::uint32_t deadline = call.deadline_us != 0 ? call.deadline_us : word(exchange::kTimeoutUs);
    if (deadline == 0) deadline = std::numeric_limits<std::uint32_t>::max();
    request.timeout = microseconds(deadline);
    return engine.submit(request);
  }

  /// Of the counters there are those of calls; the others stay 0.
  void count(Counter counter) {
    const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
    if (++word(at) == 0) ++word(at + 4);
  }

  void end(std::uint32_t number, ErrorCode code) {
    completions.push_back({number, code});
    count(code == ErrorCode::kOk ? Counter::kCallsCompleted : Counter::kCallsFailed);
    if (code == ErrorCode::kOk) return;
    failed = true;
    word(exchange::kError) = static_cast<std::uint32_t>(code);
    word(exchange::kErrorCall) = number;
    failures.push_back({number, code});
    if (failures.size() > kRememberedFailures) failures.pop_front();
  }

  /// Makes progress, and takes what has ended.
  void poll() {
    for (auto entry = active.begin(); entry != active.end();) {
      const CallResult result = entry->id == 0 ? CallResult{} : engine.test(entry->id);
      if (!result.complete) {
        ++entry;
        continue;
      }
      engine.forget(entry->id);
      const CallDescriptor call = entry->call;
      entry = active.erase(entry);
      // The registers have no room for a length, so a shorter message cannot be told from a whole one.
      const bool other_length = call.collective == Collective::kRecv && result.code == ErrorCode::kOk &&
                                result.received_bytes != call.count * bytes_of(call.dtype);
      end(call.call_id, other_length ? ErrorCode::kUnsupported : result.code);
    }
    start_parked();
    for (auto id = given_up.begin(); id != given_up.end();) {
      if (!engine.test(*id).complete) {
        ++id;
        continue;
      }
      engine.forget(*id);
      id = given_up.erase(id);
    }
    if (active.empty()) engine.progress();  // others may need what passes through here
    take_slot();
  }

  bool wait(microseconds at_most) {
    const auto end = poe.now() + at_most;
    for (;;) {
      poll();
      const auto left = std::chrono::duration_cast<microseconds>(end - poe.now());
      if (!completions.empty() || left.count() <= 0) return true;
      const auto started =
          std::find_if(active.begin(), active.end(), [](const Active& entry) { return entry.id != 0; });
      if (started == active.end()) {
        std::this_thread::sleep_for(std::min(left, kTurn));
      } else {
        engine.wait(started->id, active.size() == 1 ? left : std::min(left, kTurn));
      }
    }
  }

  // ---------------------------------------------------------------------------------------- communicators

  /// An entry of the tables was changed.
  void update(std::uint32_t position) {
    const auto at = [&](std::uint32_t entry) { return word(registers::communicator(position, entry)); };
    const bool valid = (at(registers::kPathValid) & 1U) != 0 && (at(registers::kState) & registers::kStateValid) != 0;
    std::optional<std::uint32_t>& present = made[position];
    if (present && !valid) {
      engine.free_communicator(*present);
      present.reset();
      return;
    }
    if (present) {
      if ((at(registers::kState) & registers::kStateRevoked) != 0) {
        engine.revoke(*present, "its host has given it up");
      }
      return;
    }
    if (!valid) return;
    // Ranks behind the members are switches, of which the registers name one.
    const std::uint32_t sizes = at(registers::kPathSizeRank) & 0xffffU;
    const std::uint32_t members_only = sizes >> registers::kMembersShift;
    const std::uint32_t size = members_only != 0 ? members_only : sizes;
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t rank = 0; rank < std::min(size, registers::kMemberWords); ++rank) {
      const std::uint32_t member = word(registers::member(position, rank));
      const std::uint32_t number = member & 0xffU;
      const bool own = number == kSelfSession;
      const std::uint32_t session =
          own ? registers::kSessionOpen | poe.self() : word(exchange::kTransport + 4 * number);
      const bool reachable = (member & registers::kMemberValid) != 0 && (session & registers::kSessionOpen) != 0;
      nodes.push_back(reachable ? session & 0xffffU : std::numeric_limits<std::uint32_t>::max());
    }
    Capability common = capability;
    common.datatypes &= at(registers::kDatatypes);
    common.funcs = static_cast<std::uint16_t>(common.funcs & at(registers::kFuncs));
    Agreement agreed;
    agreed.capability = encode(common)[0];
    agreed.eager_limit = at(registers::kPathEager);
    agreed.segment_bytes = at(registers::kPathSegment);
    agreed.rx_buffer_count = at(registers::kPathRxBuffers) & registers::kRxBuffersMask;
    if ((at(registers::kState) & registers::kStateCrowded) == 0) {
      agreed.quota = std::numeric_limits<std::uint32_t>::max();
      agreed.cores.fill(~std::uint64_t{0});
    }
    const std::uint32_t number = at(registers::kPathNumber);
    engine.create_communicator(number, static_cast<std::uint16_t>(at(registers::kPathEpoch)), nodes, agreed,
                               Grouping{at(registers::kGroup) & kGroupSize, nullptr});
    present = number;
    const auto tree = trees.find({number, static_cast<std::uint16_t>(at(registers::kPathEpoch))});
    if (tree == trees.end()) return;
    if (members_only != 0) engine.add_switches(number, tree->second.first, tree->second.second);
    trees.erase(tree);
  }

  /// A communicator takes the window that the registers describe, or gives its own up.
  void take_window(std::uint32_t position, bool take) {
    if (!made[position]) return;
    const auto number = [&](std::uint32_t at) { return word(at) | std::uint64_t{word(at + 4)} << 32U; };
    const std::uint64_t address = number(exchange::kWindowAddress), bytes = take ? number(exchange::kWindowBytes) : 0;
    const bool there = address >= kMemoryAddress && address - kMemoryAddress <= memory_bytes &&
                       bytes <= memory_bytes - (address - kMemoryAddress);
    // What is no memory cannot be reached.
    engine.bind_window(*made[position], there && bytes != 0 ? bound(address, bytes) : Binding{});
  }

  Poe& poe;
  Capability capability;
  NativeEngine engine;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::pair<const CallTree*, std::vector<std::uint32_t>>>
      trees;  ///< of communicators that are to come
  std::uint64_t memory_bytes;
  std::byte* memory = nullptr;
  std::array<std::uint32_t, exchange::kBytes / 4> words{};
  std::vector<std::uint32_t> firmware;
  std::array<std::optional<std::uint32_t>, DeviceLimits::kCommunicators> made;  ///< number by place in the table

  std::array<std::shared_ptr<const Program>, kLoadedPrograms> programs;
  Program coming;  ///< the one that the host writes
  std::vector<std::uint32_t> move_words;
  std::uint32_t coming_slot = 0;
  std::uint32_t rest_moves = 0;  ///< of it, in memory
  bool refused = true;

  bool slot_taken = false;  ///< the descriptor at call_slot was submitted, and has not been taken
  bool failed = false;
  std::vector<Active> active;
  std::deque<Ended> completions;
  std::optional<Ended> given;
  std::deque<Ended> failures;    ///< the last, for calls that follow one
  std::vector<CallId> given_up;  ///< by a reset; the native engine does not know
};

Capability FunctionalDevice::usual_capability() {
  Capability capability;
  capability.version = 1;
  for (const Datatype dtype : kAllDatatype) {
    if (dtype != Datatype::kNone) capability.datatypes |= 1U << static_cast<unsigned>(dtype);
  }
  for (const Func func : kAllFunc) {
    if (func != Func::kNone && !is_user(func)) {
      capability.funcs = static_cast<std::uint16_t>(capability.funcs | 1U << static_cast<unsigned>(func));
    }
  }
  capability.lists = true;
  capability.fan_in = true;
  capability.rendezvous = true;
  capability.remote_memory = true;
  capability.programs = true;
  capability.radices = true;
  capability.log2_max_segment = 13;
  return capability;
}

FunctionalDevice::FunctionalDevice(Poe& network, const Capability& capability, std::uint64_t memory_bytes, Peers peers)
    : impl_(std::make_unique<Impl>(network, capability, memory_bytes, peers)) {}

FunctionalDevice::~FunctionalDevice() = default;

std::uint32_t FunctionalDevice::read(std::uint32_t offset) { return impl_->read(offset); }

void FunctionalDevice::write(std::uint32_t offset, std::uint32_t value) { impl_->write(offset, value); }

std::uint64_t FunctionalDevice::memory_address() const { return kMemoryAddress; }

std::uint64_t FunctionalDevice::memory_bytes() const { return impl_->memory_bytes; }

void FunctionalDevice::store(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(impl_->bound(address, bytes.size()).data, bytes.data(), bytes.size());
}

void FunctionalDevice::load(std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(bytes.data(), impl_->bound(address, bytes.size()).data, bytes.size());
}

bool FunctionalDevice::wait(microseconds at_most) { return impl_->wait(at_most); }

std::size_t FunctionalDevice::give(std::uint32_t port, std::span<const std::byte> bytes) {
  return impl_->engine.write_stream(port, bytes, microseconds(0));
}

std::size_t FunctionalDevice::take(std::uint32_t port, std::span<std::byte> bytes) {
  return impl_->engine.read_stream(port, bytes, microseconds(0));
}

std::chrono::nanoseconds FunctionalDevice::now() { return impl_->poe.now().time_since_epoch(); }

void FunctionalDevice::set_tree(std::uint32_t communicator, std::uint16_t epoch, const CallTree* tree,
                                std::vector<std::uint32_t> switches) {
  impl_->trees[{communicator, epoch}] = {tree, std::move(switches)};
}

std::uint32_t FunctionalDevice::node() const { return impl_->poe.self(); }

}  // namespace unisono
