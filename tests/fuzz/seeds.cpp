// fuzz_seeds FOLDER: writes what the fuzz targets begin with: sound input of every kind, made by the library as the
// tests make theirs. FOLDER/<target>/<name>.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "collectives/tuning.hpp"
#include "core/error.hpp"
#include "core/header.hpp"
#include "core/program_file.hpp"
#include "cost/tuning_file.hpp"
#include "driver/objects.hpp"
#include "platform/native/rendezvous.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)

namespace {

/// Bytes in the order in which fuzz::Input takes them.
class Bytes {
 public:
  template <class T>
  Bytes& put(const T& value) {
    const auto* begin = reinterpret_cast<const char*>(&value);
    text.append(begin, sizeof value);
    return *this;
  }
  Bytes& put_bytes(std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
  }
  /// A number that the call target takes as it is: see its `number`.
  Bytes& small(std::uint32_t value, std::uint32_t most) {
    while (value < 8) value += most + 1;
    return put(static_cast<std::uint8_t>(value));
  }
  std::string text;
};

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add(const std::string& target, const std::string& text) {
    const auto place = folder_ / target;
    std::filesystem::create_directories(place);
    std::ofstream file(place / ("seed-" + std::to_string(count_++)), std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error("cannot write to " + place.string());
  }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

void headers(Corpus& corpus) {
  for (std::uint8_t type = 0; is_known(static_cast<MessageType>(type)) || type < 2; ++type) {
    Header header = make_header(static_cast<MessageType>(type));
    header.dtype = Datatype::kFp32;
    header.first = header.last = true;
    header.communicator = 3;
    header.source = 1;
    header.destination = 2;
    header.sequence = 77;
    header.segment_bytes = header.message_bytes = 64;
    header.session_sequence = 5;
    seal(header);
    const HeaderContext context{1, 2, 3, 0, 5, 77, 0, 64};
    const auto compressed = compress_connection(header, context);
    Bytes bytes;
    bytes.put(encode(header)).put(std::uint8_t{1});
    bytes.put(compressed ? encode(*compressed) : std::array<std::uint64_t, 4>{});
    bytes.put(1U).put(3U).put(77U).put(0U).put(std::array<std::uint64_t, 2>{64, 1});
    corpus.add("header", bytes.text);
  }
}

std::vector<std::uint8_t> call_of(std::uint32_t collective) {
  Bytes bytes;
  bytes.small(collective, 33).small(2, 21).small(collective == 8 || collective == 9 || collective == 10 ? 1 : 0, 14);
  bytes.small(0, 1).small(0, 1).small(0, 1).small(8, 60).small(0, 8);
  bytes.put(std::uint16_t{256}).put(std::uint16_t{256}).put(std::uint8_t{0x15});
  for (int i = 0; i < 4; ++i) bytes.small(i % 2 == 0 ? 8 : 0, 60);
  return {bytes.text.begin(), bytes.text.end()};
}

void programs(Corpus& corpus) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t size : {1U, 2U, 3U}) {
      ProgramFile file;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        Call call;
        call.collective = algorithm.collective;
        call.func = Func::kSum;
        call.dtype = Datatype::kInt32;
        call.direct = algorithm.direct;
        call.rank = rank;
        call.size = size;
        call.count = 12;
        if (algorithm.admits != nullptr && !algorithm.admits(call)) break;
        file.programs.push_back(record(algorithm, call));
        const Program& program = file.programs.back();
        file.region_bytes.push_back({256, 256, program.scratch_bytes, program.params_bytes, 256});
      }
      if (file.programs.size() != size) continue;
      std::vector<std::byte> bytes;
      try {
        bytes = write_program_file(file);
      } catch (const Error&) {
        continue;  // a call that has no such program
      }
      corpus.add("program", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (size == 1) {
        const auto call = call_of(31);
        corpus.add("call", Bytes().put_bytes(std::as_bytes(std::span(call))).put_bytes(bytes).text);
      }
      const Program& program = file.programs.back();
      Bytes moves;
      moves.put(size - 1).put(static_cast<std::uint8_t>(program.params_bytes / 8));
      moves.put(static_cast<std::uint32_t>(std::min<std::size_t>(12, program.pool.size())));
      for (std::size_t i = 0; i < std::min<std::size_t>(12, program.pool.size()); ++i) {
        moves.put(static_cast<std::uint16_t>(program.pool[i]));
      }
      for (const Move& move : program.moves) moves.put(encode(move));
      corpus.add("move", moves.text);
    }
  }
}

void texts(Corpus& corpus) {
  cost::TuningFile file;
  file.processor = "a \"processor\" of Zen 4";
  corpus.add("tuning", cost::write_tuning(file));
  const auto rules = default_rules();
  file.rules.assign(rules.begin(), rules.end());
  corpus.add("tuning", cost::write_tuning(file));
  corpus.add("tuning", R"({"unisono_tuning": 1, "rules": [[], {}, null, true, -1.5e3, "\u00e4\n"]})");
  corpus.add("environment", "4\n3\nunisono-job\n0123456789abcdef0123456789abcdef\n2.5");
  corpus.add("environment", "2\n2\nname\nshort\n-1");
  corpus.add("environment",
             "allreduce=ring,bcast=binomial:64K-, bcast=knomial:8,gather=knomial:3:-2K, "
             "reduce=linear:4K-1M,allgather=ring:-2G");
}

void messages(Corpus& corpus) {
  const auto capabilities = driver::pack_capabilities(NativeEngine::capabilities_of({}));
  corpus.add("capabilities", std::string(1, 1) + std::string(capabilities.size(), 0));
  corpus.add("capabilities",
             Bytes().put(std::uint8_t{2}).put_bytes(capabilities).put(std::uint8_t{2}).put_bytes(capabilities).text);
  const rendezvous::FrameHead head{rendezvous::kFrameMagic, rendezvous::kProtocol, rendezvous::FrameKind::kRefused, 4};
  corpus.add("rendezvous", Bytes().put(std::uint8_t{3}).put(std::uint8_t{40}).put(head).put(1234).text);
  for (const std::uint8_t kind : {0, 7, 15, 103, 127}) {
    corpus.add("rendezvous",
               Bytes().put(std::uint8_t{0}).put(kind).put(std::array<std::uint32_t, 12>{}).put(head).text);
  }
  for (const std::uint8_t kind : {1, 9, 33, 41, 65, 161}) {
    Bytes bytes;
    bytes.put(std::uint8_t{1}).put(kind).put(std::array<std::byte, 128>{}).put(1U << 22U).put(std::uint8_t{8});
    corpus.add("rendezvous", bytes.put(std::uint64_t{0}).put(head).text);
  }
  Bytes ring;
  for (std::uint32_t sequence = 0; sequence < 6; ++sequence) {
    Header header = make_header(MessageType::kEager);
    header.segment_bytes = header.message_bytes = 200;
    header.session_sequence = sequence;
    ring.put(std::uint8_t{sequence == 3 ? std::uint8_t{12} : std::uint8_t{4}}).put(encode(header)).put(5U);
  }
  corpus.add("ring", ring.text);
  for (std::uint32_t collective = 0; collective <= 21; ++collective) {
    const auto call = call_of(collective);
    corpus.add("call", {call.begin(), call.end()});
  }
  CallDescriptor call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.count = 100;
  corpus.add("descriptor", Bytes().put(encode(call)).put(std::array<std::uint64_t, 8>{}).text);
}

/// Targets whose input is a choice of acts: any bytes are sound.
void acts(Corpus& corpus) {
  std::mt19937 random(5);  // NOLINT(*-msc51-cpp): the same every time
  for (const char* target : {"engine", "device", "lanes", "lane_runs", "messages"}) {
    for (int i = 0; i < 40; ++i) {
      std::string text(static_cast<std::size_t>(100 + 30 * i), 0);
      for (char& c : text) c = static_cast<char>(random());
      corpus.add(target, text);
    }
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: fuzz_seeds FOLDER");
  Corpus corpus(arguments[1]);
  headers(corpus);
  programs(corpus);
  texts(corpus);
  messages(corpus);
  acts(corpus);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
  return 1;
}
