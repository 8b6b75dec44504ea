// The switch above, as this one's control connection to it sees it. A thread of its own, since what it asks may take
// time; it connects again when the connection breaks, and then makes all pools there again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "network/tcp/address.hpp"
#include "switch/control.hpp"
#include "switch/handler_control.hpp"
#include "switch/service/bell.hpp"

namespace unisono::slots {

/// What the switch above has said to a request that was passed on.
struct ParentAnswer {
  PoolId id{};
  std::uint64_t serial = 0;  ///< of the request
  PoolAnswer answer;
  tcp::Address address;     ///< where it takes frames of the pool, if it was made
  Func func = Func::kNone;  ///< if it is about an operator: `made`, or why not
};

/// What is known of it now.
struct ParentState {
  std::string name;                ///< empty: it has never answered
  std::vector<std::string> above;  ///< names of it and those above it, it first
  bool connected = false;
  std::string fault;  ///< why not
};

/// Its functions may be called by any thread, and do not wait.
class Parent {
 public:
  /// `where` is HOST:PORT, `own` the name of this switch. `woken` is called, by the thread, when there are answers.
  Parent(std::string where, std::string secret, std::string own, std::function<void()> woken,
         std::function<void(const std::string&)> say);
  ~Parent();
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  /// Tries to connect until `deadline`; a switch above that does not answer is tried again later. Throws
  /// Error(kBootstrap) if it cannot be above this one: names must differ. Before `start`.
  void connect_first(join::Deadline deadline);
  void start();
  void stop() noexcept;

  /// Passes a request on. Its first answer comes within kPatience and a little, be it that there is none; one more
  /// after each time that the pool was made again, with the same serial.
  void make(const PoolRequest& request, std::uint64_t serial);
  void free(const PoolId& id);
  /// Has a pool that was passed on fold by an operator of a user, there too, whenever it is made. Its first answer
  /// comes as that of `make`; one more if the switch above refuses it later, when it has been started again. One
  /// that is taken away has no answer.
  void set_operator(const OperatorRequest& request, std::uint64_t serial);
  std::vector<ParentAnswer> take_answers();
  ParentState state();
  /// Whether it has answered lately. While it does not, pools that it is above are silent, so that their members find
  /// out: what they hear from this switch would say that all is well.
  const std::atomic<bool>& answers() const { return answers_now_; }

  static constexpr std::chrono::seconds kPatience{5};

 private:
  struct WantedOperator {
    OperatorRequest request;
    std::uint64_t serial = 0;
    bool made = false;      ///< over the connection that there is
    bool answered = false;  ///< made at some time
    join::Deadline until;   ///< of the first answer
  };
  struct Wanted {
    PoolRequest request;
    std::uint64_t serial = 0;
    bool made = false;      ///< over the connection that there is
    bool answered = false;  ///< made at some time
    join::Deadline until;   ///< of the first answer
    join::Deadline next{};  ///< not asked again earlier
    std::map<Func, WantedOperator> operators;
  };
  struct Order {
    PoolId id{};
    std::optional<PoolRequest> request;
    std::uint64_t serial = 0;
    std::optional<OperatorRequest> op;  ///< neither: free
  };

  void work();
  void connect(join::Deadline deadline);
  void connect_when_due();
  void broke(const std::string& why);
  void take_orders();
  void take_operator(Order& order);
  void make_wanted();
  bool make_one(Wanted& wanted);
  void give_operators(Wanted& wanted);
  void give_up_late();
  void look();
  void sleep();
  void post(ParentAnswer answer);
  join::Deadline next_due() const;

  const std::string where_;
  const std::string secret_;
  const std::string own_;
  const std::function<void()> woken_;
  const std::function<void(const std::string&)> say_;
  Bell bell_;

  // Of the thread.
  std::unique_ptr<ControlConnection> connection_;
  tcp::Address address_;
  std::map<PoolId, Wanted> wanted_;
  join::Deadline next_try_{};
  std::chrono::milliseconds pause_{0};
  join::Deadline next_look_{};

  std::mutex mutex_;  ///< of what follows
  std::vector<Order> orders_;
  std::vector<ParentAnswer> answers_;
  ParentState state_;
  int descriptor_ = -1;  ///< of the connection that is waited for
  std::atomic<bool> answers_now_{false};
  bool stopped_ = false;

  std::thread thread_;
};

}  // namespace unisono::slots
