// A collective of MPI from its arguments to its results: prepared once, then run, or started and ended, once or often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "doors/mpi/buffer.hpp"
#include "doors/mpi/door.hpp"
#include "doors/mpi/fold.hpp"
#include "doors/mpi/mpi.hpp"
#include "doors/mpi/report.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

class Operation {
 public:
  static constexpr int kNone = -1;
  static constexpr int kAll = -2;

  /// What `prepare_…` (movements.hpp, reductions.hpp) fills in; `door` is null where the call is the MPI's own.
  Operation(Function of, MPI_Comm on, Make make = Make::kYes) : function(of), comm(on), door(door_of(on, make)) {
    call.struct_size = sizeof call;
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  Function function;
  MPI_Comm comm;
  const Door* door;
  bool waits = true;                      ///< false: it is started, and must not wait for others meanwhile
  Reason reason = Reason::kCommunicator;  ///< why it is not carried
  unisono_call call{};
  std::uint64_t bytes = 0;     ///< for the report
  std::optional<Buffer> from;  ///< all of it is input
  std::optional<Buffer> to;    ///< holds results
  std::vector<std::int64_t> send_counts;
  std::vector<std::int64_t> receive_counts;
  int input = kNone;    ///< which block of `to` is input, too, or all
  int results = kNone;  ///< 0 or more: all blocks of `to` but this one are results; kAll: all; kNone: none

  /// Buffers become those of the call.
  void give(Buffer& buffer);
  void take(Buffer& buffer);
  void give_blocks(Buffer& buffer);
  void take_blocks(Buffer& buffer);
  /// Blocks that are sent may lie between those that are received, as inner cells lie between ghost cells. What reaches
  /// from the first to the last one of both must not overlap in a call: such blocks are copied before. Those that lie
  /// on what is received are left for Unisono to refuse.
  void keep_apart();

  /// A reduction whose input is where its result goes, but is read from elsewhere: from here.
  const void* copies_input(const void* data, std::uint64_t length);
  /// A reduction by an operator of the MPI: this rank's `call` brings `blocks` blocks of `count` elements, of which the
  /// first `folded` are combined into `result`; none on a rank that gets no result.
  void folds(const Fold& by, std::int64_t count, int blocks, int folded, void* result);
  const Fold* fold() const { return fold_ ? &*fold_ : nullptr; }

  /// Runs it, and has the results in place when it returns. `told` says what became of it.
  unisono_result run();

  /// For a call that is started: keeps datatypes and memory until the end; before `call` is handed over.
  void settle();
  /// Copies inputs to where the call reads them; each time before it starts.
  void begin();
  /// Puts results in place; each time when it has succeeded, in a thread that is in a call of MPI. Returns MPI_SUCCESS
  /// or an error of the MPI's.
  int end();

  /// Calls the communicator's error handler if it failed, with a sentence on standard error.
  int told(unisono_result result) const;
  int failed(int error) const;

  /// A reduction in place has its input in these bytes of the user's.
  void overwrites(void* data, std::uint64_t length) { overwritten_ = {static_cast<std::byte*>(data), length}; }
  std::span<std::byte> overwritten() const { return overwritten_; }
  /// Whether the MPI can make the same call before it; the same on all ranks.
  bool is_comparable() const;

 private:
  unisono_result run_in_slices();
  unisono_result run_in_pieces();

  std::optional<Fold> fold_;
  MPI_Datatype kept_ = MPI_DATATYPE_NULL;  ///< a duplicate of what is folded, which the program may free
  std::int64_t fold_count_ = 0;
  int fold_blocks_ = 0;
  int folded_ = 0;
  void* result_ = nullptr;
  std::vector<std::byte> blocks_;  ///< what is folded
  const void* copied_ = nullptr;
  std::span<std::byte> overwritten_;
  std::vector<std::byte> copy_;
};

/// Whether a call's operator is not defined on its datatype, which is found out before anything is sent.
bool is_undefined(unisono_result result);

}  // namespace unisono::mpi
