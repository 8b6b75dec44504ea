// What kernels and channels of one rank share: who runs, who waits, and which messages are on their way.
//
// One thread at a time drives a rank: a thread of the program that waits for something here, or else the rank's own
// thread, which there is once a kernel was launched. All state is the driver's. A driver gives its role away when
// another thread of the program wants it, and while it sleeps in the engine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driver/objects.hpp"
#include "kernels/flight.hpp"
#include "kernels/kernel.hpp"
#include "kernels/task.hpp"

namespace unisono::kernels {

class Group;
class NamedRun;
class NodePorts;
class PortsInUse;

class Rank : public std::enable_shared_from_this<Rank> {
 public:
  using Clock = std::chrono::steady_clock;

  /// That of a context, made when it is first asked for; lives until the context is closed. Throws Error.
  static std::shared_ptr<Rank> of(const std::shared_ptr<driver::Context>& context);
  /// The one whose kernel runs in this thread; null outside of kernels.
  static Rank* current();
  /// The kernel that runs in this thread; null outside of kernels.
  static Kernel* current_kernel();

  explicit Rank(const std::shared_ptr<driver::Context>& context);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// For as long as it lives, the calling thread drives. Inside of a kernel that is so anyway.
  class Turn {
   public:
    explicit Turn(Rank& rank);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Rank& rank_;
    bool taken_;
  };

  // All that follows: within a turn.

  /// The caller: the kernel that runs, or this thread of the program.
  Task& here();
  /// Waits until `wake`, which must be arranged for. Throws Error(kTimeout), which says who waits for whom, in threads
  /// of the program, if nothing goes on until the deadline. May return for nothing.
  void block(const Wait& wait);
  void wake(Task& task);
  /// Lets the others go on. `polls`: the caller looks for something that others do, and need not run before they have.
  void yield(bool polls);
  /// In a kernel: so many cycles of the clock pass, if there is one; else others go on.
  void tick(std::uint64_t cycles);
  /// The ports of the rank's node in hardware; null: elements of channels go over the engine.
  NodePorts* node_ports() const { return node_ports_.get(); }
  /// All ranks of the job have come here, in the same cycle of their clocks. Only where there is a node in hardware,
  /// and not in kernels.
  void meet();

  /// `owned` lives as long as the kernel does.
  std::shared_ptr<Kernel> launch(std::string name, std::function<void()> body, std::shared_ptr<void> owned,
                                 bool forever);
  /// Runs a kernel that was called by name, beside the call that it belongs to. Takes a turn itself.
  void run_named(const std::shared_ptr<NamedRun>& run);
  const std::shared_ptr<PortsInUse>& ports() const { return ports_; }
  /// Ends the kernel that runs, with an error; does not return.
  [[noreturn]] void end_kernel(ErrorCode code, std::string sentence);
  /// Waits for the end of a kernel, and throws what it ended with.
  void wait_for(Kernel& kernel);
  /// The same of all that were launched and end. Of several that failed, the first one's error.
  void wait_for_all();

  /// The channels of a communicator.
  Group& group(const std::shared_ptr<driver::Communicator>& communicator);
  std::vector<Group*> groups();

  std::shared_ptr<Flight> flight(std::size_t capacity);
  void give_back(std::shared_ptr<Flight> flight);
  void send(const Group& group, std::uint32_t peer, std::uint32_t tag, const std::shared_ptr<Flight>& flight);
  /// From any rank if `peer` is kAnyRank.
  void receive(const Group& group, std::uint32_t peer, std::uint32_t tag, const std::shared_ptr<Flight>& flight);
  static constexpr std::uint32_t kAnyRank = 0xffffffff;

  /// Whether a channel stalls exactly where its asynchronicity degree says. For channels that are opened later.
  static bool strict();
  static void set_strict(bool strict);

  /// Sends what was pushed, and waits until everything has gone.
  void finish();
  /// Nothing runs here any more. Called as the context is closed.
  void close(bool in_order);

  std::uint32_t number_in_world() const { return world_rank_; }
  const std::vector<std::shared_ptr<Kernel>>& kernels() const { return kernels_; }
  /// The threads of the program that wait.
  std::vector<const Task*> threads() const;
  /// The deadline of waits in which nothing goes on.
  std::chrono::microseconds timeout() const { return timeout_; }
  /// Makes progress for at most so long while nobody waits; whether anything came.
  bool idle(std::chrono::microseconds at_most);
  bool step();

 private:
  void take_role();
  void leave_role();
  bool clocks(std::chrono::microseconds at_most);
  void clock_until_all_leave();
  void run_until(Task& task);
  bool drain();
  void forget();
  void run(Task& task);
  void end(Kernel& kernel);
  void ship();
  void background();
  void start(CallRequest& request, const std::shared_ptr<Flight>& flight);

  const std::weak_ptr<driver::Context> context_;
  const std::shared_ptr<PortsInUse> ports_;
  std::shared_ptr<driver::Endpoint> endpoint_;
  std::uint32_t world_rank_ = 0;
  std::chrono::microseconds timeout_{0};

  std::mutex role_mutex_;
  std::condition_variable role_;
  bool driven_ = false;
  std::uint32_t wanted_ = 0;  ///< threads of the program that want to drive
  bool closed_ = false;
  std::thread thread_;
  Clock::time_point driven_until_ = Clock::now();  ///< by a thread of the program
  std::unique_ptr<NodePorts> node_ports_;

  bool moved_ = false;  ///< since somebody looked: something went on
  std::deque<Task*> ready_;
  std::vector<Task*> polling_;
  std::vector<std::shared_ptr<Kernel>> kernels_;
  std::map<std::thread::id, std::unique_ptr<Task>> threads_;
  std::map<std::uint32_t, std::unique_ptr<Group>> groups_;
  std::vector<std::shared_ptr<Flight>> in_flight_;
  std::size_t sends_ = 0;          ///< of these
  std::size_t sleepers_ = 0;       ///< threads that sleep in the engine
  std::vector<CallId> to_forget_;  ///< calls that have ended
  std::vector<std::shared_ptr<Flight>> spare_;
  std::vector<std::shared_ptr<Flight>> landed_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
};

}  // namespace unisono::kernels
