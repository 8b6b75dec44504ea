// The handlers' machine, verilated, beside the simple interpreter, with which the one of the library is compared, too.
//
// usage: machine_harness random <seed> <programs> <elements>
// Random programs on random packets, with pauses on all sides: every outcome, every packet that is written, and memory
// at the end are those of the interpreter. `elements` is what the machine has; what it lacks, and what has no room,
// must be refused. Ends with "ok" and how often it saw what.
//
// usage: machine_harness file <binary> <ranks> <packets>
// The handler of a binary on packets of a file (each 4 bytes of length, and its bytes), one message of so many ranks'.
// Ends with "ok" and the cycles from the first word to the last outcome, without pauses.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Vtop.h"
#include "program_writer.hpp"
#include "reference/dice.hpp"
#include "switch/handler/binary.hpp"
#include "tests/cpp/switch/handler/simple_interpreter.hpp"
#include "verilated.h"

namespace {

using namespace unisono::handler;
using unisono::reference::Dice;
using Bytes = std::vector<std::byte>;

// What tests/rtl/handler/machine.py builds.
constexpr std::uint32_t kRoomWords = 2048;
constexpr std::uint32_t kRoomBytes = 32768;

enum Load : std::uint32_t { kBegin, kWord, kMemoryData, kEntry, kBytes, kBudget, kCommit, kRead };

struct Packet {
  Bytes payload;
  std::array<std::uint32_t, kInfos> info{};
};

struct Seen {
  Outcome outcome;
  Function function{};
  std::uint32_t tag = 0;
};

struct Output {
  Bytes bytes;
  bool failed = false;
};

/// The machine, cycle by cycle.
class Machine {
 public:
  explicit Machine(Dice& dice) : dice_(dice) {
    top.rst_ni = 0;
    top.load_valid_i = top.in_valid_i = top.out_ready_i = top.outcome_ready_i = 0;
    for (int i = 0; i < 4; ++i) tick();
    top.rst_ni = 1;
    tick();
  }

  /// One cycle: what is offered and wanted is driven, and what passes is noted.
  void tick() {
    top.out_ready_i = !pauses();
    top.outcome_ready_i = !pauses();
    offer();
    top.clk_i = 0;
    top.eval();
    const bool took = top.in_valid_i != 0 && top.in_ready_o != 0;
    if (top.out_valid_o != 0 && top.out_ready_i != 0) note_output();
    if (top.outcome_valid_o != 0 && top.outcome_ready_i != 0) note_outcome();
    if (top.load_read_valid_o != 0) read = top.load_read_data_o;
    loaded = top.load_valid_i != 0 && top.load_ready_o != 0;
    top.clk_i = 1;
    top.eval();
    ++cycles;
    if (loaded && asking_) top.load_valid_i = 0;
    if (loaded) asking_ = false;
    if (took) {
      offered_ = false;
      sent_ += 64;
      if (sent_ >= packets.front().payload.size()) {
        packets.pop_front();
        sent_ = 0;
      }
    }
  }

  void load(Load what, std::uint32_t address, std::uint64_t data) {
    top.load_what_i = what;
    top.load_address_i = address;
    top.load_data_i = data;
    top.load_valid_i = 1;
    std::uint64_t patience = 2'000'000;
    do tick();
    while (!loaded && --patience != 0);
    top.load_valid_i = 0;
    if (patience == 0) {
      std::printf("the loader is not listened to\n");
      std::exit(1);
    }
  }

  void load(const Program& program, std::uint64_t budget) {
    load(kBegin, 0, 0);
    for (std::uint32_t i = 0; i < program.words.size(); ++i) load(kWord, i, encode(program.words[i])[0]);
    for (std::uint32_t i = 0; i < program.memory_bytes; i += 8) {
      std::uint64_t value = 0;
      if (i < program.data.size())
        std::memcpy(&value, program.data.data() + i, std::min<std::size_t>(8, program.data.size() - i));
      load(kMemoryData, i, value);
    }
    for (std::uint32_t f = 0; f < kFunctions; ++f) {
      if (program.entries[f] != kNoFunction) load(kEntry, f, program.entries[f]);
    }
    load(kBytes, 0, program.memory_bytes);
    load(kBudget, 0, budget);
    load(kCommit, 0, elements_of(program));
    tick();
  }

  /// Asks for what is in memory whenever the machine has time for it. Nobody looks at the answer.
  void ask() {
    top.load_what_i = kRead;
    top.load_address_i = 0;
    top.load_valid_i = 1;
    asking_ = true;
  }

  Bytes memory(std::uint32_t bytes) {
    Bytes found(bytes);
    load(kRead, 0, 0);
    for (std::uint32_t i = 0; i < bytes; i += 8) {
      load(kRead, i + 8 < bytes ? i + 8 : 0, 0);  // in whose cycle the last one is answered
      std::memcpy(found.data() + i, &read, std::min<std::size_t>(8, bytes - i));
    }
    return found;
  }

  bool pauses() { return pace != 0 && dice_.below(8) < pace; }

  Vtop top;
  std::uint64_t cycles = 0;
  std::uint64_t read = 0;
  bool loaded = false;
  std::uint32_t pace = 0;  ///< of 8 cycles so many pause
  std::deque<Packet> packets;
  std::deque<Seen> outcomes;
  std::deque<Output> outputs;

 private:
  void offer() {
    if (offered_) return;
    top.in_valid_i = !packets.empty() && !pauses();
    if (top.in_valid_i == 0) return;
    offered_ = true;
    const Packet& packet = packets.front();
    const std::size_t count = std::min<std::size_t>(64, packet.payload.size() - sent_);
    std::array<std::uint32_t, 16> words{};
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(dice_.next());
    if (count != 0) std::memcpy(words.data(), packet.payload.data() + sent_, count);
    for (int i = 0; i < 16; ++i) top.in_data_i[i] = words[i];
    top.in_keep_i = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    top.in_last_i = sent_ + 64 >= packet.payload.size();
    top.in_packet_i = packet.info[static_cast<int>(Info::kPacket)];
    top.in_packets_i = packet.info[static_cast<int>(Info::kPackets)];
    top.in_source_i = packet.info[static_cast<int>(Info::kSource)];
    top.in_ranks_i = packet.info[static_cast<int>(Info::kRanks)];
    top.in_tag_i = packet.info[static_cast<int>(Info::kTag)];
  }

  void note_output() {
    const std::uint64_t keep = top.out_keep_o;
    for (int i = 0; i < 64; ++i) {
      if ((keep >> i & 1U) != 0) writing_.bytes.push_back(static_cast<std::byte>(top.out_data_o[i / 4] >> 8 * (i % 4)));
    }
    if (top.out_last_o == 0) return;
    writing_.failed = top.out_failed_o != 0;
    outputs.push_back(std::move(writing_));
    writing_ = {};
  }

  void note_outcome() {
    Seen seen;
    seen.function = static_cast<Function>(top.outcome_function_o);
    seen.tag = top.outcome_tag_o;
    seen.outcome = {static_cast<Stop>(top.outcome_stop_o), top.outcome_verdict_o, top.outcome_word_o,
                    top.outcome_executed_o, top.outcome_output_bytes_o};
    outcomes.push_back(seen);
  }

  Dice& dice_;
  bool offered_ = false;
  bool asking_ = false;
  std::size_t sent_ = 0;
  Output writing_;
};

/// What is counted: shown at the end, and asked for by the test.
std::map<std::string, std::uint64_t> counts;

/// Runs packets on both. `words` names the program if something differs.
bool same(Machine& machine, const Program& program, const std::vector<Packet>& packets, std::uint64_t budget,
          const std::string& name) {
  Bytes memory(program.memory_bytes);
  if (!program.data.empty()) std::memcpy(memory.data(), program.data.data(), program.data.size());
  Bytes room(kMostOutputBytes);
  std::vector<Seen> expected;
  std::vector<Output> outputs;
  for (const Packet& packet : packets) {
    const std::uint32_t number = packet.info[static_cast<int>(Info::kPacket)];
    for (std::uint32_t f = 0; f < kFunctions; ++f) {
      const auto function = static_cast<Function>(f);
      if (program.entries[f] == kNoFunction) continue;
      if (function == Function::kHeader && number != 0) continue;
      if (function == Function::kCompletion && number + 1 != packet.info[static_cast<int>(Info::kPackets)]) continue;
      Surroundings around{packet.info, {}, memory, room};
      if (function == Function::kPayload) {
        around.payload = packet.payload;
        around.info[static_cast<int>(Info::kLength)] = static_cast<std::uint32_t>(packet.payload.size());
      }
      Seen seen{simple::run(program, function, around, budget), function, packet.info[static_cast<int>(Info::kTag)]};
      if (seen.outcome.stop != Stop::kNone) seen.outcome.verdict = 0;
      expected.push_back(seen);
      const bool fails = seen.outcome.stop != Stop::kNone || seen.outcome.verdict > 1;
      if (seen.outcome.output_bytes != 0) {
        outputs.push_back(
            {{room.begin(), room.begin() + static_cast<std::ptrdiff_t>(seen.outcome.output_bytes)}, fails});
      }
      ++counts[std::string("stop_") + name_of(seen.outcome.stop)];
      counts["executed"] += seen.outcome.executed;
      if (seen.outcome.stop != Stop::kNone || seen.outcome.verdict != 0) break;
    }
  }
  machine.packets.assign(packets.begin(), packets.end());
  const std::uint64_t before = machine.cycles;
  std::uint64_t patience = 40'000'000;
  while ((machine.outcomes.size() < expected.size() || machine.outputs.size() < outputs.size() ||
          machine.top.busy_o != 0 || !machine.packets.empty() || machine.top.load_valid_i != 0) &&
         --patience != 0) {
    if (machine.pauses() && machine.pauses() && machine.top.load_valid_i == 0) machine.ask();
    machine.tick();
  }
  counts["cycles"] += machine.cycles - before;
  if (patience == 0) {
    std::printf("%s: it does not come to an end: %zu of %zu outcomes, %zu of %zu packets\n", name.c_str(),
                machine.outcomes.size(), expected.size(), machine.outputs.size(), outputs.size());
    return false;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Seen& a = machine.outcomes[i];
    const Seen& b = expected[i];
    const Outcome& x = a.outcome;
    const Outcome& y = b.outcome;
    if (a.function != b.function || a.tag != b.tag || x.stop != y.stop || x.verdict != y.verdict || x.word != y.word ||
        x.executed != y.executed || x.output_bytes != y.output_bytes) {
      std::printf(
          "%s: outcome %zu, function %d: stop %s verdict %u word %u executed %llu output %llu; must be function "
          "%d, %s %u %u %llu %llu\n",
          name.c_str(), i, static_cast<int>(a.function), name_of(x.stop), x.verdict, x.word,
          static_cast<unsigned long long>(x.executed), static_cast<unsigned long long>(x.output_bytes),
          static_cast<int>(b.function), name_of(y.stop), y.verdict, y.word, static_cast<unsigned long long>(y.executed),
          static_cast<unsigned long long>(y.output_bytes));
      return false;
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (machine.outputs[i].bytes != outputs[i].bytes || machine.outputs[i].failed != outputs[i].failed) {
      const auto& x = machine.outputs[i].bytes;
      const auto& y = outputs[i].bytes;
      const auto at = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
      std::printf("%s: packet %zu of %zu bytes (%zu) differs at byte %td\n", name.c_str(), i, x.size(), y.size(),
                  at.first - x.begin());
      return false;
    }
  }
  const bool more = machine.outcomes.size() != expected.size() || machine.outputs.size() != outputs.size();
  counts["functions"] += expected.size();
  counts["packets"] += outputs.size();
  machine.outcomes.clear();
  machine.outputs.clear();
  if (more) {
    std::printf("%s: more outcomes or packets than there should be\n", name.c_str());
    return false;
  }
  if (machine.memory(program.memory_bytes) != memory) {
    const Bytes found = machine.memory(program.memory_bytes);
    const auto at = std::mismatch(found.begin(), found.end(), memory.begin());
    std::printf("%s: memory differs at byte %td\n", name.c_str(), at.first - found.begin());
    return false;
  }
  return true;
}

std::vector<Packet> random_packets(Dice& dice) {
  std::vector<Packet> packets(1 + dice.below(3));
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Packet& packet = packets[i];
    packet.payload.resize(dice.below(6) == 0 ? dice.below(2) * 64 : 1 + dice.below(400));
    for (std::byte& byte : packet.payload) byte = static_cast<std::byte>(dice.next());
    packet.info = {0,
                   static_cast<std::uint32_t>(i),
                   static_cast<std::uint32_t>(packets.size()),
                   static_cast<std::uint32_t>(dice.below(kMostWords)),
                   static_cast<std::uint32_t>(dice.below(1U << 24U)),
                   static_cast<std::uint32_t>(dice.next())};
  }
  return packets;
}

/// Why the machine must not take a program: as `refused_e` numbers it.
int refusal(const Program& program, std::uint32_t elements) {
  if (program.words.size() > kRoomWords) return 1;
  if (program.memory_bytes > kRoomBytes) return 2;
  return (elements_of(program) & ~elements) != 0 ? 3 : 0;
}

int random_programs(std::uint64_t seed, std::uint64_t programs, std::uint32_t elements) {
  auto dice = std::make_unique<Dice>(Dice::apart(seed));
  Dice pauses = Dice::apart(seed + 1000);  // whose number depends on cycles: programs do not
  auto machine = std::make_unique<Machine>(pauses);
  std::map<std::string, std::uint64_t> ops;
  for (std::uint64_t i = 0; i < programs; ++i) {
    const bool has_reals = elements >> 4U != 0 || dice->below(10) == 0;
    Program program = ProgramWriter(*dice, has_reals).write();
    // Seldom more than there is room for.
    if (dice->below(50) == 0) {
      program.words.insert(program.words.end(), kRoomWords, program.words.back());
      program.lines.resize(program.words.size());
    } else if (dice->below(50) == 0) {
      program.memory_bytes = kRoomBytes + 1;
    }
    const std::string name = "seed " + std::to_string(seed) + ", program " + std::to_string(i);
    if (const auto flaw = find_flaw(program)) {
      std::printf("%s: word %u: %s\n", name.c_str(), flaw->word, flaw->text.c_str());
      return 1;
    }
    const std::uint64_t budget = dice->below(5) == 0 ? dice->below(200) : 20'000;
    machine->pace = 0;
    machine->load(program, budget);
    const int refused = refusal(program, elements);
    if (machine->top.refused_o != refused || (machine->top.loaded_o == 0) != (refused != 0)) {
      std::printf("%s: refused, %d; must be %d\n", name.c_str(), machine->top.refused_o, refused);
      return 1;
    }
    if (refused != 0) {
      ++counts["refused_" + std::to_string(refused)];
      continue;
    }
    machine->pace = static_cast<std::uint32_t>(dice->below(3) * 3);
    if (!same(*machine, program, random_packets(*dice), budget, name)) {
      std::printf("%s\n", text_of(program).c_str());
      return 1;
    }
    for (const Instruction& word : program.words) ++ops[std::string(name_of(word.op)) + (word.vector ? "_v" : "")];
  }
  std::printf("ok");
  for (const auto& [name, count] : counts)
    std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
  std::printf(" ops=%zu\n", ops.size());
  return 0;
}

int from_file(const char* binary, std::uint32_t ranks, const char* path) {
  constexpr std::uint64_t kMost = 1U << 20U;
  const auto all = [](const char* name) {
    std::ifstream file(name, std::ios::binary);
    const std::vector<char> letters{std::istreambuf_iterator<char>(file), {}};
    Bytes bytes(letters.size());
    if (!letters.empty()) std::memcpy(bytes.data(), letters.data(), letters.size());
    return bytes;
  };
  const Program program = parse_binary(all(binary));
  const Bytes file = all(path);
  std::vector<Packet> packets;
  for (std::size_t at = 0; at + 4 <= file.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, file.data() + at, 4);
    at += 4;
    Packet packet;
    packet.payload.assign(file.begin() + static_cast<std::ptrdiff_t>(at),
                          file.begin() + static_cast<std::ptrdiff_t>(at + length));
    packets.push_back(packet);
    at += length;
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    packets[i].info = {0, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(packets.size()), 1, ranks, 7};
  }
  Dice dice(1);
  auto machine = std::make_unique<Machine>(dice);
  machine->load(program, kMost);
  if (machine->top.loaded_o == 0) {
    std::printf("refused, %d\n", machine->top.refused_o);
    return 1;
  }
  std::uint64_t bytes = 0;
  for (const Packet& packet : packets) bytes += packet.payload.size();
  if (!same(*machine, program, packets, kMost, binary)) return 1;
  std::printf("ok cycles=%llu bytes=%llu executed=%llu\n", static_cast<unsigned long long>(counts["cycles"]),
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(counts["executed"]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "random") {
    return random_programs(std::stoull(words[1]), std::stoull(words[2]),
                           static_cast<std::uint32_t>(std::stoul(words[3])));
  }
  if (words.size() == 4 && words[0] == "file") {
    return from_file(argv[2], static_cast<std::uint32_t>(std::stoul(words[2])), argv[4]);
  }
  std::printf("usage: machine_harness random <seed> <programs> <elements> | file <binary> <ranks> <packets>\n");
  return 2;
}
