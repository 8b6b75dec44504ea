// Words of agreements along trees, as a peer sends them.
#include <span>

#include "core/error.hpp"
#include "engine/tree_word.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;        // NOLINT(google-build-using-namespace)
using namespace unisono::cclo;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint32_t ranks = 1 + data[0] * 5U;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  TreeWord word;
  try {
    word = TreeWord::decoded(bytes, ranks);
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kCorruptMessage, "what is refused is corrupt");
    return 0;
  }
  claim(TreeWord::is_one(bytes), "it says what it is");
  claim(word.ended.empty() || word.ended.size() == ranks, "a set has a bit for each rank");
  claim(word.answer.gone.empty() || word.answer.gone.size() == ranks, "likewise");
  const std::string text = word.encoded(ranks);
  claim(text.size() <= TreeWord::most_bytes(ranks), "none is longer than it may be");
  const TreeWord again = TreeWord::decoded(std::as_bytes(std::span(text.data(), text.size())), ranks);
  claim(again.encoded(ranks) == text, "what is written is read");
  return 0;
}
