// Kernels that a host calls by name, on every engine: what they move differs on every rank and in every element.
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>

using namespace unisono::kernel;

/// y = alpha x + y
void axpy(float alpha, std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += alpha * x[i];
}
const Export<axpy> kAxpy{"axpy"};

/// Listing 2 of ACCL+: words that are made here go to another rank.
void send_words(const float* values, std::int32_t words, std::uint32_t to, Comm comm, CommandStream& commands,
                StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  cclo_hls::Command cclo(commands, status, comm);
  cclo_hls::Data data(to_cclo, from_cclo);
  cclo.send(UNISONO_FP32, 16 * static_cast<std::size_t>(words), to);
  for (int i = 0; i < words; i++) {
    cclo_hls::Word word;
    for (unsigned lane = 0; lane < 16; ++lane) word.set(lane, 2 * values[16 * i + static_cast<int>(lane)]);
    data.push(word);
  }
  if (cclo.finalize() != 0) throw unisono::Error(cclo.finalize(), cclo.error());
}
const Export<send_words> kSendWords{"send_words"};

/// Words that another rank has sent, with 1 added to each element.
int recv_words(float* values, std::int32_t words, std::uint32_t from, Comm comm, CommandStream& commands,
               StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  cclo_hls::Command cclo(commands, status, comm);
  cclo_hls::Data data(to_cclo, from_cclo);
  cclo.recv(UNISONO_FP32, 16 * static_cast<std::size_t>(words), from);
  for (int i = 0; i < words; i++) {
    const cclo_hls::Word word = data.pull();
    for (unsigned lane = 0; lane < 16; ++lane) values[16 * i + static_cast<int>(lane)] = word.get<float>(lane) + 1;
  }
  return cclo.finalize();
}
const Export<recv_words> kRecvWords{"recv_words"};

/// A reduction whose operands are made here element by element and whose result goes to memory; `spare`: cycles that
/// each word takes. Then a message that the engine reads from, and writes to, memory.
void squares(std::span<std::int32_t> results, std::uint64_t spare, Comm comm, CommandStream& commands,
             StatusStream& status, ToCclo<1> to_cclo, FromCclo<1> from_cclo) {
  Command cclo(commands, status, comm, 1, 1);
  Data data(to_cclo, from_cclo);
  const auto count = static_cast<std::int32_t>(results.size());
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_REDUCE;
  call.algorithm = "chain";
  call.datatype = UNISONO_INT32;
  call.op = UNISONO_SUM;
  call.count = count;
  call.root = 0;
  call.streams = UNISONO_SRC_STREAM;
  call.src_port = 1;
  if (comm.rank == 0) {
    call.dst = results.data();
    call.dst_bytes = results.size_bytes();
  }
  cclo.start(call);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t element = (i + 1) * (i + 1) + 1000 * static_cast<std::int32_t>(comm.rank);
    data.push(&element, sizeof element);
    if (i % 16 == 15) tick(spare);
  }
  if (cclo.finalize() != 0) throw unisono::Error(1, cclo.error());
}
const Export<squares> kSquares{"squares"};

/// Gives words that no call takes.
void stuck(CommandStream& /*commands*/, StatusStream& /*status*/, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Data data(to_cclo, from_cclo);
  for (int i = 0; i < 1000; ++i) data.push(Word{});
}
const Export<stuck> kStuck{"stuck"};

void fails(std::uint8_t number) {
  if (number != 7) throw unisono::Error(4, "it was given " + std::to_string(number) + ", and needs 7");
}
const Export<fails> kFails{"fails"};

/// As hardware can: the code of an error, and no exception.
int returns(std::int32_t code) { return code; }
const Export<returns> kReturns{"returns"};
