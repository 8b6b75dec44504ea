// A kernel in SystemVerilog, Verilated, as a kernel of a library. `unisono kernel build` includes this in the unit that
// it makes for a module; its ports are those of docs/kernels.md, "Kernels in SystemVerilog".
//
// The module is clocked by its own fibre, one cycle of a simulated engine's clock at a time; elsewhere as fast as it
// goes. Words of a call's result come as the packet that hardware gives: all full but the last.
#ifndef UNISONO_KERNEL_VERILATED_HPP
#define UNISONO_KERNEL_VERILATED_HPP

#include <deque>
#include <memory>
#include <string>

#include "unisono/kernel_export.hpp"
#include "verilated.h"

namespace unisono {
inline namespace api {
namespace kernel {
namespace verilated {

/// A call descriptor of 128 bytes (docs/reference/spec.md), as far as a call of the C interface has it.
struct Descriptor {
  std::array<std::uint64_t, 16> words{};
  std::uint64_t bits(unsigned word, unsigned low, unsigned width) const {
    const std::uint64_t value = words[word] >> low;
    return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
  }
};

/// Sets an argument register.
template <class Signal>
void assign(Signal& signal, std::uint64_t bits) {
  signal = static_cast<Signal>(bits);
}

/// `Top`: the Verilated module; `kIn`, `kOut`: its stream ports from and to the engine, which are those from 0 on.
template <class Top, unsigned kIn, unsigned kOut>
class Module {
 public:
  explicit Module(const unisono_kernel_run& run) : run_(run) {
    top_ = std::make_unique<Top>(&context_);
    top_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) {
      evaluate(0);
      evaluate(1);
    }
    top_->rst_ni = 1;
  }

  Top& top() { return *top_; }

  /// From its start to its end. Throws Error.
  void run() {
    top_->start_valid_i = 1;
    for (;;) {
      read();
      evaluate(0);
      const bool started = top_->start_valid_i != 0 && top_->start_ready_o != 0;
      const bool done = top_->done_valid_o != 0;
      const unsigned code = top_->done_code_o;
      take();
      evaluate(1);
      if (started) top_->start_valid_i = 0;
      give();
      if (!done) unisono_kernel_yield(1);
      if (done && code != 0) {
        throw Error(static_cast<unisono_result>(code), std::string("the module is done with ") +
                                                           unisono_result_name(static_cast<unisono_result>(code)) +
                                                           (sentence_.empty() ? "" : ": " + sentence_));
      }
      if (done) break;
    }
    while (any_left()) {  // what it has given goes to the engine
      give();
      unisono_kernel_yield(1);
    }
  }

 private:
  struct Lane {
    std::array<std::byte, 64> word{};
    unsigned bytes = 0;                 ///< of the word, that have come or not gone
    std::deque<std::uint64_t> packets;  ///< bytes that calls will give, of each what is left
    bool ready = false, last = false;
  };
  struct Call {
    std::uint32_t id = 0;
    unisono_request* request = nullptr;
  };

  // Not inlined: Verilator's state of a thread must be found anew where a fibre goes on in another one.
  [[gnu::noinline]] void evaluate(int clock) {
    Verilated::threadContextp(&context_);
    top_->clk_i = static_cast<CData>(clock);
    top_->eval();
  }

  template <class Signal>
  static void set_bit(Signal& signal, unsigned bit, bool value) {
    signal = static_cast<Signal>((signal & ~(1U << bit)) | (value ? 1U << bit : 0U));
  }

  /// Fills words for the module, and shows them; and answers.
  void read() {
    for (unsigned port = 0; port < kIn; ++port) {
      Lane& lane = in_[port];
      if (!lane.ready && !lane.packets.empty()) {
        std::uint64_t done = 0;
        const std::uint64_t most = std::min<std::uint64_t>(64 - lane.bytes, lane.packets.front());
        unisono::detail::check(unisono_stream_read(run_.context, port, &lane.word[lane.bytes], most, 0, &done));
        lane.bytes += static_cast<unsigned>(done);
        lane.packets.front() -= done;
        lane.last = lane.packets.front() == 0;
        lane.ready = lane.bytes == 64 || (lane.last && lane.bytes != 0);
        if (lane.last) lane.packets.pop_front();
      }
      if constexpr (kIn != 0) {
        set_bit(top_->in_valid_i, port, lane.ready);
        set_bit(top_->in_last_i, port, lane.ready && lane.last);
        const std::uint64_t keep = lane.bytes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lane.bytes) - 1;
        std::memcpy(reinterpret_cast<std::byte*>(&top_->in_keep_i) + 8 * std::size_t{port}, &keep, sizeof keep);
        std::memcpy(reinterpret_cast<std::byte*>(&top_->in_data_i) + 64 * std::size_t{port}, lane.word.data(), 64);
      }
    }
    if constexpr (kOut != 0) {
      for (unsigned port = 0; port < kOut; ++port) set_bit(top_->out_ready_i, port, out_[port].bytes == 0);
    }
    look_for_answers();
    top_->call_ready_i = 1;
    top_->answer_valid_i = answers_.empty() ? 0 : 1;
    top_->answer_data_i = answers_.empty() ? 0 : answers_.front();
  }

  /// What is handed over at this edge.
  void take() {
    if constexpr (kIn != 0) {
      for (unsigned port = 0; port < kIn; ++port) {
        if (!in_[port].ready || (top_->in_ready_o >> port & 1U) == 0) continue;
        in_[port].ready = in_[port].last = false;
        in_[port].bytes = 0;
      }
    }
    if constexpr (kOut != 0) {
      for (unsigned port = 0; port < kOut; ++port) {
        Lane& lane = out_[port];
        if ((top_->out_valid_o >> port & 1U) == 0 || (top_->out_ready_i >> port & 1U) == 0) continue;
        std::uint64_t keep = 0;
        std::memcpy(&keep, reinterpret_cast<std::byte*>(&top_->out_keep_o) + 8 * std::size_t{port}, sizeof keep);
        std::memcpy(lane.word.data(), reinterpret_cast<std::byte*>(&top_->out_data_o) + 64 * std::size_t{port}, 64);
        lane.bytes = static_cast<unsigned>(__builtin_popcountll(keep));
      }
    }
    if (top_->answer_valid_i != 0 && top_->answer_ready_o != 0) answers_.pop_front();
    if (top_->call_valid_o != 0) {
      std::memcpy(&descriptor_.words[top_->call_last_o != 0 ? 8 : 0], &top_->call_data_o, 64);
      given_ = top_->call_last_o != 0;
    }
  }

  /// Words and calls of the module go to the engine.
  void give() {
    for (unsigned port = 0; port < kOut; ++port) {
      Lane& lane = out_[port];
      if (lane.bytes == 0) continue;
      std::uint64_t done = 0;
      unisono::detail::check(unisono_stream_write(run_.context, port, lane.word.data(), lane.bytes, 0, &done));
      std::copy(lane.word.begin() + static_cast<std::ptrdiff_t>(done), lane.word.begin() + lane.bytes,
                lane.word.begin());
      lane.bytes -= static_cast<unsigned>(done);
    }
    if (std::exchange(given_, false)) start();
  }

  bool any_left() const {
    for (unsigned port = 0; port < kOut; ++port) {
      if (out_[port].bytes != 0) return true;
    }
    return false;
  }

  void start() {
    const Descriptor& from = descriptor_;
    const auto id = static_cast<std::uint32_t>(from.bits(12, 0, 32));
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = static_cast<unisono_collective>(from.bits(0, 0, 8));
    call.op = static_cast<unisono_op>(from.bits(0, 16, 8));
    call.datatype = static_cast<unisono_datatype>(from.bits(0, 24, 8));
    call.in_place = static_cast<int>(from.bits(0, 40, 1));
    const bool from_stream = from.bits(0, 43, 1) != 0, to_stream = from.bits(0, 44, 1) != 0;
    const auto place = static_cast<std::uint32_t>(from.bits(1, 0, 32));
    call.root = static_cast<std::int64_t>(from.bits(1, 32, 32));
    call.tag = static_cast<std::int64_t>(from.bits(2, 0, 32));
    call.count = static_cast<std::int64_t>(from.words[3]);
    call.window_offset = from.words[14];
    try {
      if (from.bits(0, 8, 8) != 0) {
        throw Error(5, "the module names an algorithm by its number; in a library it leaves it 0");
      }
      if (place >= run_.communicators_count) {
        throw Error(5, "the module names communicator " + std::to_string(place) + ", and was given " +
                           std::to_string(run_.communicators_count));
      }
      if (from_stream) {
        call.streams |= UNISONO_SRC_STREAM;
        call.src_port = static_cast<std::uint32_t>(from.words[4]);
      } else {
        call.src = reinterpret_cast<const void*>(from.words[4]);
        call.src_bytes = from.words[5];
      }
      if (to_stream) {
        call.streams |= UNISONO_DST_STREAM;
        call.dst_port = static_cast<std::uint32_t>(from.words[6]);
        if (call.dst_port >= kIn) throw Error(5, "the module has no such stream port from the engine");
      } else {
        call.dst = reinterpret_cast<void*>(from.words[6]);
        call.dst_bytes = from.words[7];
      }
      Call made{id, nullptr};
      unisono::detail::check(unisono_start(run_.communicators[place], &call, &made.request));
      calls_.push_back(made);
      if (to_stream) expect(call, place);
    } catch (const Error& error) {
      answer(id, error.code(), error.what());
    }
  }

  /// The packet that a call will give.
  void expect(const unisono_call& call, std::uint32_t place) {
    std::uint32_t rank = 0, size = 1;
    unisono::detail::check(unisono_communicator_rank(run_.communicators[place], &rank));
    unisono::detail::check(unisono_communicator_size(run_.communicators[place], &size));
    std::uint64_t elements = static_cast<std::uint64_t>(call.count);
    const bool root = call.root == static_cast<std::int64_t>(rank);
    if (call.collective == UNISONO_ALLGATHER || call.collective == UNISONO_ALLTOALL) elements *= size;
    if (call.collective == UNISONO_GATHER) elements = root ? elements * size : 0;
    if (call.collective == UNISONO_REDUCE && !root) elements = 0;
    if (call.collective == UNISONO_BCAST && root) elements = 0;
    const std::uint64_t bytes = elements * bytes_of(call.datatype);
    if (bytes != 0) in_[call.dst_port].packets.push_back(bytes);
  }

  static std::uint64_t bytes_of(unisono_datatype datatype) {
    switch (datatype) {
      case UNISONO_INT16:
      case UNISONO_UINT16:
      case UNISONO_FP16:
      case UNISONO_BF16:
        return 2;
      case UNISONO_INT32:
      case UNISONO_UINT32:
      case UNISONO_FP32:
        return 4;
      case UNISONO_INT64:
      case UNISONO_UINT64:
      case UNISONO_FP64:
      case UNISONO_COMPLEX64:
        return 8;
      case UNISONO_COMPLEX128:
        return 16;
      default:
        return 1;
    }
  }

  void answer(std::uint32_t id, unisono_result code, const char* sentence) {
    answers_.push_back(std::uint64_t{static_cast<std::uint16_t>(code)} << 32U | id);
    if (code != 0 && sentence_.empty()) sentence_ = sentence;
  }

  void look_for_answers() {
    for (auto at = calls_.begin(); at != calls_.end();) {
      int complete = 0;
      const unisono_result code = unisono_test(at->request, &complete);
      if (code == 0 && complete == 0) {
        ++at;
        continue;
      }
      answer(at->id, code, code == 0 ? "" : unisono_last_error());
      unisono_request_free(at->request);
      at = calls_.erase(at);
    }
  }

  const unisono_kernel_run& run_;
  VerilatedContext context_;
  std::unique_ptr<Top> top_;
  std::array<Lane, kIn == 0 ? 1 : kIn> in_;
  std::array<Lane, kOut == 0 ? 1 : kOut> out_;
  Descriptor descriptor_;
  bool given_ = false;
  std::deque<Call> calls_;
  std::deque<std::uint64_t> answers_;
  std::string sentence_;
};

}  // namespace verilated
}  // namespace kernel
}  // namespace api
}  // namespace unisono

#endif
