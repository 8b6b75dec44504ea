// What a launcher says by PMI: lines and messages, and answers to a client that begins, puts, waits and gets.
#include <sys/socket.h>

#include <string>

#include "core/error.hpp"
#include "platform/join/hexadecimal.hpp"
#include "platform/join/pmi.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using namespace unisono::join;
using fuzz::claim;

namespace {

void read_line(std::string_view text) {
  const auto line = parse_pmi_line(text.substr(0, text.find('\n')));
  if (line) claim(!line->command.empty(), "a line has a command");
  if (const auto bytes = bytes_of_hexadecimal(text)) {
    claim(bytes->size() * 2 == text.size(), "two digits are a byte");
    claim(bytes_of_hexadecimal(hexadecimal_of(*bytes)) == bytes, "what is written is read");
  }
}

void read_message(std::string_view text) {
  const auto message = parse_pmi_message(text);
  if (!message) return;
  claim(!message->command.empty(), "a message has a command");
  for (const auto& [name, value] : message->words) {
    if (name == "cmd") continue;
    const std::string written = pmi_message("x", {{name, value}});
    const auto again = parse_pmi_message(std::string_view(written).substr(6));
    claim(again && again->word(name) == value, "what is written is read");
  }
}

void use(PmiClient& client, Deadline deadline) {
  client.init(deadline);
  claim(client.max_value() > 0 && client.max_value() < kMaxPmiLine, "a value fits into a line");
  if (const auto place = client.place()) claim(place->rank < place->size && place->size <= kMaxJobSize, "a rank");
  JobEnvironment environment;
  environment.size = 2;
  const auto store = make_pmi_store(client, environment);
  const Blob value(store->max_value() / 2);
  store->put("key", value, deadline);
  store->fence(deadline);
  if (const auto got = store->get(1, "key", deadline)) claim(got->size() <= kMaxPmiLine, "no more than a line");
  client.finalize(deadline);
}

/// `way`: 0 and 1 for version 1, over PMI_PORT and over PMI_FD; 2 for version 2.
void talk(int way, std::span<const std::uint8_t> answers) {
  int ends[2];
  claim(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a pair of sockets");
  const Descriptor here(ends[0]);
  Descriptor there(ends[1]);
  send(there.get(), answers.data(), answers.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(there.get(), SHUT_WR);
  const Deadline deadline = Clock::now() + std::chrono::seconds(5);
  Pmi1Client first(here.get(), "PMI_FD");
  Pmi2Client second(here.get(), "PMI_FD");
  try {
    if (way == 0) {
      const auto place = first.introduce("1", deadline);
      claim(place.rank < place.size && place.size <= kMaxJobSize, "a rank of the job");
    }
    if (way == 2) {
      use(second, deadline);
    } else {
      use(first, deadline);
    }
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap, "a launcher that is not understood is told as such");
    for (const char* c = error.what(); *c != '\0'; ++c) claim(*c >= ' ' || *c < 0, "a message can be printed");
    claim(std::strlen(error.what()) < 600, "what was said is shown cut");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto kind = input.take<std::uint8_t>();
  const auto rest = input.rest();
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  switch (kind % 5) {
    case 0:
      read_line(text);
      break;
    case 4:
      read_message(text);
      break;
    default:
      talk(kind % 5 - 1, rest);
  }
  return 0;
}
