#include "engine/move_stream.hpp"

#include "collectives/generate.hpp"
#include "core/error.hpp"

namespace unisono::cclo {

void MoveStream::begin(const CheckedProgram& program) {
  program_ = &program;
  steps_ = generation_steps(*program.made_by, program.made_for);
  step_ = made_ = taken_ = 0;
  EmitSink sink;
  sink.context = this;
  sink.move = put;
  sink.pool_word = [](void* /*context*/, std::uint32_t /*word*/) {};  // the program has its pool
  emit_ = Emit(sink);
}

void MoveStream::put(void* context, const Move& move) {
  auto& self = *static_cast<MoveStream*>(context);
  if (self.made_ - self.taken_ == kMovesPerStep) {
    throw Error(ErrorCode::kInternal, "an algorithm makes more moves in one step than it may");
  }
  self.moves_[self.made_++ % kPlaces] = move;
}

const Move& MoveStream::next() {
  while (made_ == taken_) {
    if (step_ == steps_) {
      throw Error(ErrorCode::kInternal, "an algorithm makes fewer moves than it made when it was examined");
    }
    generation_step(*program_->made_by, program_->made_for, step_++, emit_);
  }
  return moves_[taken_++ % kPlaces];
}

}  // namespace unisono::cclo
