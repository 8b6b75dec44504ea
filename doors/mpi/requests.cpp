#include "doors/mpi/requests.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "doors/mpi/device.hpp"
#include "doors/mpi/keeper.hpp"

namespace unisono::mpi::requests {

namespace {

/// A collective with a request of its own.
struct Active {
  Active(std::unique_ptr<Operation> prepared, bool again) : operation(std::move(prepared)), persistent(again) {
    keep(*operation->door);
  }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  ~Active() {
    if (request != nullptr) unisono_request_free(request);
    drop(*operation->door);
  }

  std::unique_ptr<Operation> operation;
  const bool persistent;
  unisono_request* request = nullptr;
  MPI_Request handle = MPI_REQUEST_NULL;  ///< what the program has; null if it was freed
  int tag = 0;                            ///< of the receive
  bool handed_over = false;               ///< to the helper thread
};
using Shared = std::shared_ptr<Active>;

/// Never destroyed: a process that exits without MPI_Finalize, or a child of fork, has nothing to wait for.
template <class Value>
Value& for_ever() {
  return *new Value;  // NOLINT(cppcoreguidelines-owning-memory)
}

std::mutex mutex;  ///< of all below; nobody waits with it
auto& flying = for_ever<std::vector<Shared>>();
auto& ending = for_ever<std::vector<Shared>>();   ///< claimed by a thread, and not finished: they fold yet
auto& resting = for_ever<std::vector<Shared>>();  ///< persistent ones, in flight or not
std::vector<int> free_tags;
int most_tag = 0;
MPI_Comm alone = MPI_COMM_NULL;
std::vector<MPI_Op> doomed;  ///< operators that the program has freed, which something in flight needs
std::atomic<int> waiting{0};

bool take_over(bool neglected) {
  const std::lock_guard lock(mutex);
  for (const Shared& one : flying) {
    if (!neglected || waiting.load(std::memory_order_relaxed) != 0) break;
    if (!std::exchange(one->handed_over, true)) unisono_request_offload(one->request);
  }
  return !flying.empty();
}

/// Not freed by itself: a child of fork that exits has no thread to end.
Keeper* keeper = nullptr;

void fly(const Shared& one) {
  one->handed_over = false;
  flying.push_back(one);
  in_flight.store(static_cast<int>(flying.size() + ending.size()), std::memory_order_release);
  if (keeper == nullptr) keeper = new Keeper(take_over);  // NOLINT(cppcoreguidelines-owning-memory)
  keeper->wake();
}

bool is_needed(MPI_Op op) {
  const auto uses = [&](const Shared& one) {
    return one->operation->fold() != nullptr && one->operation->fold()->op() == op;
  };
  return std::any_of(flying.begin(), flying.end(), uses) || std::any_of(ending.begin(), ending.end(), uses) ||
         std::any_of(resting.begin(), resting.end(), uses);
}

/// Frees operators that nothing needs any more.
void free_operators() {
  std::erase_if(doomed, [](MPI_Op op) {
    if (is_needed(op)) return false;
    PMPI_Op_free(&op);
    return true;
  });
}

/// Takes it out of those in flight, for this thread to finish. Returns false if another thread has.
bool claims(const Shared& one) {
  const auto found = std::find(flying.begin(), flying.end(), one);
  if (found == flying.end()) return false;
  ending.push_back(one);
  flying.erase(found);
  return true;
}

/// Puts results in place, and completes the request. Called with no lock, by the thread that has claimed it.
void finish(const Shared& one, unisono_result result) {
  if (result == 0) {
    if (const int error = one->operation->end(); error != MPI_SUCCESS) one->operation->failed(error);
  } else {
    one->operation->told(result);
  }
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, one->tag, alone);
  const std::lock_guard lock(mutex);
  std::erase(ending, one);
  if (!one->persistent) free_tags.push_back(one->tag);
  if (!doomed.empty()) free_operators();
  // Not before: who sees that nothing is in flight waits in the MPI, and this must have been sent by then.
  in_flight.store(static_cast<int>(flying.size() + ending.size()), std::memory_order_release);
}

/// A receive from this rank, which the program gets for its request.
void give_handle(Active& one, MPI_Request* request) {
  if (alone == MPI_COMM_NULL) PMPI_Comm_dup(MPI_COMM_SELF, &alone);
  if (free_tags.empty()) free_tags.push_back(most_tag++);
  one.tag = free_tags.back();
  free_tags.pop_back();
  if (one.persistent) {
    PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, one.tag, alone, request);
  } else {
    PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, one.tag, alone, request);
  }
  one.handle = *request;
}

Shared find(const std::vector<Shared>& among, MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  const auto found = std::find_if(among.begin(), among.end(), [&](const Shared& one) { return one->handle == handle; });
  return found == among.end() ? nullptr : *found;
}

/// One more thread that waits in Unisono, which makes progress for all.
class Waiting {
 public:
  Waiting() { waiting.fetch_add(1, std::memory_order_relaxed); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { waiting.fetch_sub(1, std::memory_order_relaxed); }
};

/// Gives a persistent operation a communicator of its own: ranks may start several of them in orders of their own. A
/// device knows few communicators; there ranks start them in one order.
unisono_result set_apart(Operation& operation) {
  auto apart = std::make_unique<Door>();
  apart->rank = operation.door->rank;
  apart->size = operation.door->size;
  const unisono_result result = unisono_dup(operation.door->communicator, nullptr, &apart->communicator);
  if (result != 0) return result;
  apart->owned = true;
  if (operation.call.graph != nullptr) {
    apart->neighbours = neighbours_of(operation.comm, apart->communicator);
    if (apart->neighbours == nullptr) {  // on no rank
      unisono_communicator_free(apart->communicator);
      return 0;
    }
    operation.call.graph = apart->neighbours->graph;
  }
  operation.door = apart.release();
  return 0;
}

}  // namespace

unisono_result start(std::unique_ptr<Operation> operation, MPI_Request* request) {
  operation->settle();
  operation->begin();
  const auto one = std::make_shared<Active>(std::move(operation), false);
  const unisono_result result = unisono_start(one->operation->door->communicator, &one->operation->call, &one->request);
  if (result != 0) return result;
  const std::lock_guard lock(mutex);
  give_handle(*one, request);
  fly(one);
  return 0;
}

unisono_result make(std::unique_ptr<Operation> operation, MPI_Request* request) {
  operation->settle();
  const Door* const shared = operation->door;
  if (!on_devices()) {
    if (const unisono_result result = set_apart(*operation); result != 0) return result;
  }
  const auto one = std::make_shared<Active>(std::move(operation), true);
  if (one->operation->door != shared) drop(*one->operation->door);  // it is the request's alone
  const unisono_result result =
      unisono_prepare(one->operation->door->communicator, &one->operation->call, &one->request);
  if (result != 0) return result;
  const std::lock_guard lock(mutex);
  give_handle(*one, request);
  resting.push_back(one);
  persistent.store(static_cast<int>(resting.size()), std::memory_order_release);
  return 0;
}

bool restart(MPI_Request* request, int* error) {
  Shared one;
  {
    const std::lock_guard lock(mutex);
    one = find(resting, *request);
  }
  if (one == nullptr) return false;
  *error = PMPI_Start(request);
  if (*error != MPI_SUCCESS) return true;
  Entry entry(one->operation->function, Form::kPersistent);
  entry.carried(one->operation->bytes);
  one->operation->begin();
  const std::lock_guard lock(mutex);
  const unisono_result result = unisono_request_start(one->request);
  if (result == 0) {
    fly(one);
    return true;
  }
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, one->tag, alone);  // nobody shall wait for it
  *error = one->operation->told(result);
  return true;
}

void look() {
  std::vector<std::pair<Shared, unisono_result>> ended;
  {
    const std::lock_guard lock(mutex);
    if (keeper != nullptr) keeper->looked();
    for (std::size_t i = 0; i < flying.size();) {
      const Shared one = flying[i];
      int complete = 0;
      const unisono_result result = unisono_test(one->request, &complete);
      if (complete == 0) {
        ++i;
        continue;
      }
      flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
      ending.push_back(one);
      ended.emplace_back(one, result);
    }
  }
  for (const auto& [one, result] : ended) finish(one, result);
}

void linger() {
  std::vector<Shared> kept;
  {
    const std::lock_guard lock(mutex);
    kept = flying;
  }
  if (kept.empty()) return;
  std::vector<unisono_request*> waited;
  waited.reserve(kept.size());
  for (const Shared& one : kept) waited.push_back(one->request);
  constexpr double kSeconds = 5e-6;
  std::size_t index = 0;
  const Waiting now;
  unisono_wait_any(waited.data(), waited.size(), kSeconds, &index);
}

void await(MPI_Request request) {
  Shared one;
  {
    const std::lock_guard lock(mutex);
    one = find(flying, request);
  }
  if (one == nullptr) return;
  unisono_result result = 0;
  {
    const Waiting now;
    result = unisono_wait(one->request);
  }
  bool mine = false;
  {
    const std::lock_guard lock(mutex);
    mine = claims(one);
  }
  if (mine) finish(one, result);
}

void forget(MPI_Request request) {
  const std::lock_guard lock(mutex);
  if (const Shared one = find(flying, request)) one->handle = MPI_REQUEST_NULL;
  const Shared one = find(resting, request);
  if (one == nullptr) return;
  std::erase(resting, one);
  one->handle = MPI_REQUEST_NULL;
  persistent.store(static_cast<int>(resting.size()), std::memory_order_release);
  if (!doomed.empty()) free_operators();
}

bool frees_later(MPI_Op* op) {
  const std::lock_guard lock(mutex);
  if (!is_needed(*op)) return false;
  doomed.push_back(*op);
  *op = MPI_OP_NULL;
  return true;
}

void close() {
  for (;;) {
    Shared one;
    {
      const std::lock_guard lock(mutex);
      if (flying.empty()) break;
      one = flying.back();
    }
    const unisono_result result = unisono_wait(one->request);
    bool mine = false;
    {
      const std::lock_guard lock(mutex);
      mine = claims(one);
    }
    if (mine) finish(one, result);
  }
  delete std::exchange(keeper, nullptr);  // NOLINT(cppcoreguidelines-owning-memory)
  resting.clear();
  persistent.store(0, std::memory_order_release);
  free_operators();
  if (alone != MPI_COMM_NULL) PMPI_Comm_free(&alone);
}

}  // namespace unisono::mpi::requests
