// Program files (docs/program-files.md).
#include <charconv>
#include <string_view>

#include "driver/objects.hpp"
#include "driver/program_file.hpp"

namespace unisono::driver {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Program> read() {
    std::vector<std::string_view> words = line("\"unisono program 1\"");
    if (words.size() != 3 || words[0] != "unisono" || words[1] != "program")
      fail("it begins with no \"unisono program 1\"");
    if (words[2] != "1") fail("it has version " + std::string(words[2]) + "; this library reads version 1");
    words = line("\"ranks\" and their number");
    if (words.size() != 2 || words[0] != "ranks") fail("here stands \"ranks\" and their number");
    const std::uint64_t ranks = number(words[1], 10, "the number of ranks", 1, 4096);
    std::vector<Program> programs;
    bool ended = false;
    while (next(words)) {
      if (ended) fail("something stands behind \"end\"");
      const std::string_view what = words[0];
      if (what == "end") {
        ended = true;
      } else if (what == "rank") {
        counted(words, 2, "rank and its number");
        if (number(words[1], 10, "the rank", 0, ranks - 1) != programs.size()) {
          fail("rank " + std::string(words[1]) + " stands here; next is rank " + std::to_string(programs.size()));
        }
        programs.emplace_back();
      } else if (programs.empty()) {
        fail("\"" + std::string(what) + "\" stands before the first \"rank\"");
      } else if (what == "scratch" || what == "params") {
        counted(words, 2, "scratch or params, and bytes");
        (what == "scratch" ? programs.back().scratch_bytes : programs.back().params_bytes) =
            number(words[1], 10, "the size", 0, std::uint64_t{1} << 40U);
      } else if (what == "pool") {
        for (std::size_t i = 1; i < words.size(); ++i) {
          programs.back().pool.push_back(
              static_cast<std::uint32_t>(number(words[i], 10, "a pool word", 0, 0xffffffffU)));
        }
      } else if (what == "move") {
        programs.back().moves.push_back(move(words));
      } else {
        fail("\"" + std::string(what) + "\" is not known; known are rank, scratch, params, pool, move and end");
      }
    }
    if (!ended) fail("it stops before \"end\"");
    if (programs.size() != ranks) {
      fail("it has the programs of " + std::to_string(programs.size()) + " ranks, and says that there are " +
           std::to_string(ranks));
    }
    return programs;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kMalformedProgram, "program file, line " + std::to_string(number_) + ": " + what);
  }

  /// The words of the next line that has some; false at the end of the text.
  bool next(std::vector<std::string_view>& words) {
    words.clear();
    while (words.empty() && begin_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
      std::string_view rest = text_.substr(begin_, end - begin_);
      begin_ = end + 1;
      ++number_;
      rest = rest.substr(0, rest.find('#'));
      constexpr std::string_view kBlank = " \t\r";
      for (std::size_t at = rest.find_first_not_of(kBlank); at != std::string_view::npos;
           at = rest.find_first_not_of(kBlank, at)) {
        const std::size_t stop = std::min(rest.find_first_of(kBlank, at), rest.size());
        words.push_back(rest.substr(at, stop - at));
        at = stop;
      }
    }
    return !words.empty();
  }

  std::vector<std::string_view> line(const char* what) {
    std::vector<std::string_view> words;
    if (!next(words)) fail(std::string("it stops before ") + what);
    return words;
  }

  void counted(const std::vector<std::string_view>& words, std::size_t count, const char* what) const {
    if (words.size() != count) fail(std::string("here stands ") + what);
  }

  std::uint64_t number(std::string_view word, int base, const char* what, std::uint64_t least,
                       std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), value, base);
    if (fault != std::errc() || stop != word.data() + word.size() || value < least || value > most) {
      fail(std::string(what) + " is \"" + std::string(word.substr(0, 40)) + "\"; allowed are " + std::to_string(least) +
           " to " + std::to_string(most));
    }
    return value;
  }

  Move move(const std::vector<std::string_view>& words) const {
    if (words.size() != kMoveWords + 1) {
      fail("a move has " + std::to_string(words.size() - 1) + " words; it needs " + std::to_string(kMoveWords) +
           ", in hexadecimal");
    }
    std::array<std::uint64_t, kMoveWords> encoded{};
    for (std::size_t i = 0; i < kMoveWords; ++i) {
      encoded[i] = number(words[i + 1], 16, "a word of the move", 0, ~std::uint64_t{0});
    }
    if (!well_formed_move(encoded)) {
      fail("the move is not well formed: a reserved bit is set, or a field holds no known value");
    }
    return decode_move(encoded);
  }

  std::string_view text_;
  std::size_t begin_ = 0;
  std::size_t number_ = 0;
};

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  (void)fault;  // 16 digits hold any value
  const std::string text(digits.data(), end);
  return std::string(16 - text.size(), '0') + text;
}

}  // namespace

std::vector<Program> read_program_file(std::span<const std::byte> bytes) {
  return Reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).read();
}

std::string write_program_file(std::span<const Program> programs, const ProgramComment& comment) {
  std::string text = "unisono program 1\nranks " + std::to_string(programs.size()) + "\n";
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const Program& program = programs[rank];
    text += "rank " + std::to_string(rank) + "\n";
    if (program.scratch_bytes != 0) text += "scratch " + std::to_string(program.scratch_bytes) + "\n";
    if (program.params_bytes != 0) text += "params " + std::to_string(program.params_bytes) + "\n";
    if (!program.pool.empty()) text += "pool";
    for (const std::uint32_t word : program.pool) text += " " + std::to_string(word);
    if (!program.pool.empty()) text += "\n";
    for (std::size_t index = 0; index < program.moves.size(); ++index) {
      text += "move";
      for (const std::uint64_t word : encode(program.moves[index])) text += " " + hexadecimal(word);
      if (comment) text += "  # " + comment(program, index);
      text += "\n";
    }
  }
  return text + "end\n";
}

ProgramSet parse_programs(std::span<const std::byte> bytes) {
  ProgramSet set;
  for (Program& program : read_program_file(bytes)) {
    set.ranks.push_back(std::make_shared<const Program>(std::move(program)));
  }
  return set;
}

}  // namespace unisono::driver
