// A Verilated unisono_cclo_cpu with the parts of the engine around it that it talks to, behind a C interface.
//
// Around the model: descriptor memory, communicator table, and for each slot what the call queue and the data-movement
// processor do: a start, then `more` whenever a step is done and 16 entries of the window are free. Everything that
// the microcontroller gives out is recorded with its cycle.
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "Vunisono_cclo_cpu.h"
#include "Vunisono_cclo_cpu_VexRiscv.h"
#include "Vunisono_cclo_cpu_unisono_cclo_cpu.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

constexpr unsigned kSlots = 8;
constexpr unsigned kWindow = 32;
constexpr unsigned kMovesPerStep = 16;
constexpr std::uint32_t kStart = 1;
constexpr std::uint32_t kMore = 2;

enum Kind : std::uint32_t { kTaken = 0, kMove = 1, kEnd = 2, kList = 3, kContext = 4, kFail = 5, kStep = 6 };

struct Event {
  std::uint32_t kind;
  std::uint32_t slot;
  std::uint64_t cycle;
  std::uint32_t words[16];
};

struct Slot {
  bool active = false;
  bool asked = false;  // an item of it is on its way or being dealt with
  unsigned moves = 0;  // in the window
};

class Harness {
 public:
  explicit Harness(std::uint64_t seed) : random_(seed) {
    const char* arguments[] = {"harness"};
    context_.commandArgs(1, arguments);
    context_.assertOn(true);
    model_ = std::make_unique<Vunisono_cclo_cpu>(&context_);
    model_->clk_i = 0;
    model_->rst_ni = 0;
    model_->run_i = 0;
    model_->load_valid_i = 0;
    model_->work_valid_i = 0;
    model_->move_ready_i = 1;
    for (int i = 0; i < 4; ++i) cycle();
    model_->rst_ni = 1;
    cycle();
  }
  ~Harness() { model_->final(); }

  void load(std::uint32_t address, const std::uint32_t* words, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      model_->load_valid_i = 1;
      model_->load_write_i = 1;
      model_->load_address_i = address + i;
      model_->load_data_i = words[i];
      cycle();
    }
    model_->load_valid_i = 0;
  }
  std::uint32_t read(std::uint32_t address) {
    model_->load_valid_i = 1;
    model_->load_write_i = 0;
    model_->load_address_i = address;
    cycle();
    model_->load_valid_i = 0;
    model_->eval();
    return model_->load_data_valid_o ? model_->load_data_o : 0xdeadbeefU;
  }
  void run(bool on) {
    model_->run_i = on;
    if (!on) {
      queue_.clear();
      for (Slot& slot : slots_) slot = Slot{};
      model_->work_valid_i = 0;
    }
    for (int i = 0; i < 4; ++i) cycle();
  }
  void communicator(std::uint32_t index, const std::uint32_t* words) {
    std::memcpy(&communicators_[index % 32][0], words, 32);
  }
  void start(std::uint32_t slot, const std::uint64_t* descriptor) {
    std::memcpy(&descriptors_[slot][0], descriptor, 128);
    slots_[slot] = {true, true, 0};
    queue_.push_back({kStart, slot});
  }
  /// Whether the model may step a slot again without an item.
  void shortcut(bool on) { shortcut_ = on; }
  void control() { queue_.push_back({3, 0}); }
  /// Ready for a move in `ready` of 256 cycles; in each cycle a move retires with `retire` of 256.
  void pace(std::uint32_t ready, std::uint32_t retire) {
    ready_ = ready;
    retire_ = retire;
  }
  /// Runs until no slot is active and all items were taken. Returns false if that takes more than `limit` cycles.
  bool finish(std::uint64_t limit) {
    const std::uint64_t end = now_ + limit;
    while (now_ < end) {
      cycle();
      bool busy = !queue_.empty() || model_->work_valid_i;
      for (const Slot& slot : slots_) busy = busy || slot.active;
      if (!busy && ++quiet_ > 60) return true;
      if (busy) quiet_ = 0;
    }
    return false;
  }
  void idle(std::uint32_t cycles) {
    for (std::uint32_t i = 0; i < cycles; ++i) cycle();
  }
  /// From now on, keeps the cycle and the address of each instruction as it leaves the pipeline.
  void trace(bool on) { tracing_ = on; }
  const std::vector<std::uint64_t>& steps() const { return trace_; }
  void clear_trace() { trace_.clear(); }
  const std::vector<Event>& events() const { return events_; }
  void clear() { events_.clear(); }
  std::uint64_t now() const { return now_; }

 private:
  struct Item {
    std::uint32_t kind;
    std::uint32_t slot;
  };

  Event& record(Kind kind, std::uint32_t slot) {
    events_.push_back({kind, slot, now_, {}});
    return events_.back();
  }

  void cycle() {
    // Inputs are set while the clock is low, so every output is settled before the edge.
    Vunisono_cclo_cpu& m = *model_;
    m.move_ready_i = ready_ >= 256 || (random_() & 255U) < ready_;
    if (!m.work_valid_i && !queue_.empty()) {
      m.work_valid_i = 1;
      m.work_i = queue_.front().kind << 3 | queue_.front().slot;
      record(kTaken, queue_.front().slot).words[0] = queue_.front().kind;
    }
    m.clk_i = 0;
    m.eval();

    const bool work = m.work_valid_i && m.work_ready_o;
    const std::uint64_t descriptor = descriptors_[m.descriptor_address_o >> 4][m.descriptor_address_o & 15];
    const std::uint32_t communicator = communicators_[m.communicator_address_o >> 3][m.communicator_address_o & 7];
    if (m.list_valid_o) {
      Event& event = record(kList, m.list_slot_o);
      event.words[0] = m.list_index_o;
      event.words[1] = m.list_word_o;
    }
    if (m.context_valid_o) {
      Event& event = record(kContext, m.context_slot_o);
      for (int i = 0; i < 3; ++i) event.words[i] = m.context_o[i];
    }
    if (m.fail_valid_o) {
      record(kFail, m.fail_slot_o).words[0] = m.fail_code_o;
      slots_[m.fail_slot_o].active = false;
    }
    if (m.move_valid_o && m.move_ready_i) {
      Event& event = record(m.move_end_o ? kEnd : kMove, m.move_slot_o);
      for (int i = 0; i < 16; ++i) event.words[i] = m.move_o[i];
      Slot& slot = slots_[m.move_slot_o];
      if (m.move_end_o) {
        slot.active = false;
      } else {
        ++slot.moves;
      }
    }
    if (m.step_valid_o) {
      record(kStep, m.step_slot_o);
      slots_[m.step_slot_o].asked = false;
    }

    if (tracing_) {
      const auto* core = m.unisono_cclo_cpu->u_core;
      if (core->lastStageIsFiring) trace_.push_back(now_ << 32U | core->lastStagePc);
    }

    m.clk_i = 1;
    m.eval();
    ++now_;
    m.descriptor_data_i = descriptor;
    m.communicator_data_i = communicator;
    if (work) {
      queue_.pop_front();
      m.work_valid_i = 0;
    }
    std::uint32_t room = 0;
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      Slot& slot = slots_[i];
      if (slot.moves != 0 && (retire_ >= 256 || (random_() & 255U) < retire_)) {
        slot.moves = retire_ >= 256 ? 0 : slot.moves - 1;
      }
      if (slot.active && !slot.asked && kWindow - slot.moves >= kMovesPerStep) {
        slot.asked = true;
        queue_.push_back({kMore, i});
      }
      if (slot.active && kWindow - slot.moves >= kMovesPerStep) room |= 1U << i;
    }
    m.room_i = shortcut_ ? room : 0;
  }

  VerilatedContext context_;
  std::unique_ptr<Vunisono_cclo_cpu> model_;
  std::mt19937_64 random_;
  std::uint64_t descriptors_[kSlots][16] = {};
  std::uint32_t communicators_[32][8] = {};
  Slot slots_[kSlots];
  std::deque<Item> queue_;
  std::vector<Event> events_;
  std::uint64_t now_ = 0;
  std::uint32_t ready_ = 256;
  std::uint32_t retire_ = 256;
  unsigned quiet_ = 0;
  bool shortcut_ = true;
  bool tracing_ = false;
  std::vector<std::uint64_t> trace_;
};

}  // namespace

extern "C" {

void* cpu_new(std::uint64_t seed) { return new Harness(seed); }
void cpu_delete(void* self) { delete static_cast<Harness*>(self); }
void cpu_load(void* self, std::uint32_t address, const std::uint32_t* words, std::uint32_t count) {
  static_cast<Harness*>(self)->load(address, words, count);
}
std::uint32_t cpu_read(void* self, std::uint32_t address) { return static_cast<Harness*>(self)->read(address); }
void cpu_run(void* self, int on) { static_cast<Harness*>(self)->run(on != 0); }
void cpu_communicator(void* self, std::uint32_t index, const std::uint32_t* words) {
  static_cast<Harness*>(self)->communicator(index, words);
}
void cpu_start(void* self, std::uint32_t slot, const std::uint64_t* descriptor) {
  static_cast<Harness*>(self)->start(slot, descriptor);
}
void cpu_control(void* self) { static_cast<Harness*>(self)->control(); }
void cpu_pace(void* self, std::uint32_t ready, std::uint32_t retire) {
  static_cast<Harness*>(self)->pace(ready, retire);
}
void cpu_shortcut(void* self, int on) { static_cast<Harness*>(self)->shortcut(on != 0); }
int cpu_finish(void* self, std::uint64_t limit) { return static_cast<Harness*>(self)->finish(limit) ? 1 : 0; }
void cpu_idle(void* self, std::uint32_t cycles) { static_cast<Harness*>(self)->idle(cycles); }
std::uint32_t cpu_events(void* self) {
  return static_cast<std::uint32_t>(static_cast<Harness*>(self)->events().size());
}
void cpu_copy_events(void* self, void* to) {
  const auto& events = static_cast<Harness*>(self)->events();
  std::memcpy(to, events.data(), events.size() * sizeof(Event));
  static_cast<Harness*>(self)->clear();
}
void cpu_trace(void* self, int on) { static_cast<Harness*>(self)->trace(on != 0); }
std::uint32_t cpu_traced(void* self) { return static_cast<std::uint32_t>(static_cast<Harness*>(self)->steps().size()); }
void cpu_copy_trace(void* self, std::uint64_t* to) {
  const auto& steps = static_cast<Harness*>(self)->steps();
  std::memcpy(to, steps.data(), steps.size() * sizeof(std::uint64_t));
  static_cast<Harness*>(self)->clear_trace();
}
std::uint64_t cpu_now(void* self) { return static_cast<Harness*>(self)->now(); }
}
