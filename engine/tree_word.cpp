#include "engine/tree_word.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::cclo {
namespace {

/// Other words of agreements have their value here, then a number, then marks of which this bit is none.
constexpr std::size_t kMarksAt = 2 * sizeof(std::uint64_t);
constexpr std::uint64_t kTree = 8;
constexpr unsigned kKindShift = 8;
constexpr std::uint64_t kDiffer = std::uint64_t{1} << 16U;
constexpr std::uint64_t kKnownMarks = kTree | std::uint64_t{0xff} << kKindShift | kDiffer;

/// The head: value, number, marks, and these words of 32 bits.
constexpr std::size_t kWords = 7;
constexpr std::size_t kHead = 3 * sizeof(std::uint64_t) + kWords * sizeof(std::uint32_t);
constexpr std::uint32_t kMap = ~std::uint32_t{0};  ///< in place of the length of a list

std::size_t map_bytes(std::uint32_t ranks) { return (ranks + 7) / 8; }

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_set(std::string& bytes, const std::vector<bool>& those, std::uint32_t ranks) {
  const auto count = static_cast<std::uint32_t>(std::count(those.begin(), those.end(), true));
  if (count * sizeof(std::uint32_t) <= map_bytes(ranks)) {
    put(bytes, count);
    for (std::uint32_t rank = 0; rank < those.size(); ++rank) {
      if (those[rank]) put(bytes, rank);
    }
    return;
  }
  put(bytes, kMap);
  const std::size_t begin = bytes.size();
  bytes.resize(begin + map_bytes(ranks), '\0');
  for (std::uint32_t rank = 0; rank < those.size(); ++rank) {
    if (those[rank]) bytes[begin + rank / 8] = static_cast<char>(bytes[begin + rank / 8] | 1 << rank % 8);
  }
}

/// Takes values from the front of what has come.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    if (rest_.size() < sizeof value) fail("ends too early");
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::vector<bool> take_set(std::uint32_t ranks) {
    const auto count = take<std::uint32_t>();
    std::vector<bool> those;
    if (count == 0) return those;
    those.resize(ranks, false);
    if (count == kMap) {
      if (rest_.size() < map_bytes(ranks)) fail("ends within a set");
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        those[rank] = (std::to_integer<unsigned>(rest_[rank / 8]) >> rank % 8 & 1U) != 0;
      }
      rest_ = rest_.subspan(map_bytes(ranks));
      return those;
    }
    if (count > ranks) fail("names more ranks than there are");
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto rank = take<std::uint32_t>();
      if (rank >= ranks) fail("names a rank that there is not");
      those[rank] = true;
    }
    return those;
  }
  bool empty() const { return rest_.empty(); }
  [[noreturn]] static void fail(const char* what) {
    throw Error(ErrorCode::kCorruptMessage, formatted("a word for an agreement along a tree {}", what));
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

std::string TreeWord::encoded(std::uint32_t ranks) const {
  std::string bytes;
  put(bytes, answer.value);
  put(bytes, answer.number);
  put(bytes, kTree | static_cast<std::uint64_t>(kind) << kKindShift | (answer.differ ? kDiffer : 0));
  for (const std::uint32_t word : {ballot.leader, ballot.attempt, answer.ranks[0], answer.ranks[1], answer.purposes[0],
                                   answer.purposes[1], purpose}) {
    put(bytes, word);
  }
  put_set(bytes, ended, ranks);
  put_set(bytes, answer.gone, ranks);
  return bytes;
}

bool TreeWord::is_one(std::span<const std::byte> bytes) {
  std::uint64_t marks = 0;
  if (bytes.size() >= kMarksAt + sizeof marks) std::memcpy(&marks, bytes.data() + kMarksAt, sizeof marks);
  return (marks & kTree) != 0;
}

TreeWord TreeWord::decoded(std::span<const std::byte> bytes, std::uint32_t ranks) {
  Reader reader(bytes);
  TreeWord word;
  word.answer.value = reader.take<std::uint64_t>();
  word.answer.number = reader.take<std::uint64_t>();
  const auto marks = reader.take<std::uint64_t>();
  const auto kind = static_cast<std::uint8_t>(marks >> kKindShift & 0xffU);
  if ((marks & kTree) == 0 || (marks & ~kKnownMarks) != 0 || kind > kLastKind) Reader::fail("is of no known kind");
  word.kind = static_cast<Kind>(kind);
  word.answer.differ = (marks & kDiffer) != 0;
  for (std::uint32_t* const to :
       {&word.ballot.leader, &word.ballot.attempt, &word.answer.ranks[0], &word.answer.ranks[1],
        &word.answer.purposes[0], &word.answer.purposes[1], &word.purpose}) {
    *to = reader.take<std::uint32_t>();
  }
  for (const std::uint32_t rank : {word.ballot.leader, word.answer.ranks[0], word.answer.ranks[1]}) {
    if (rank >= ranks) Reader::fail("names a rank that there is not");
  }
  word.ended = reader.take_set(ranks);
  word.answer.gone = reader.take_set(ranks);
  if (!reader.empty()) Reader::fail("goes on after its end");
  return word;
}

std::size_t TreeWord::most_bytes(std::uint32_t ranks) {
  return kHead + 2 * (sizeof(std::uint32_t) + map_bytes(ranks) + sizeof(std::uint32_t));
}

}  // namespace unisono::cclo
