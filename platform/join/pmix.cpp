#include "platform/join/pmix.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/helper.hpp"

namespace unisono::join {
namespace {

constexpr const char* kLibrary = "libpmix.so.2";

// What of the binary interface of the PMIx standard (version 3 and later) is used here: layouts and numbers.
using Status = int;
constexpr Status kSuccess = 0;
constexpr Status kPartialSuccess = -52;
constexpr Status kSucceededAtOnce = -157;  // and no function will be called
constexpr std::uint32_t kAllRanks = 0xfffffffeU;
constexpr std::uint8_t kGlobal = 3;  // for all ranks, of this host and of others
constexpr std::uint16_t kBool = 1;
constexpr std::uint16_t kString = 3;
constexpr std::uint16_t kUint16 = 13;
constexpr std::uint16_t kUint32 = 14;
constexpr std::uint16_t kBytes = 27;
constexpr const char* kJobSize = "pmix.job.size";
constexpr const char* kLocalRank = "pmix.lrank";
constexpr const char* kHostName = "pmix.hname";
constexpr const char* kCollect = "pmix.collect";

struct Proc {
  char space[256];
  std::uint32_t rank;
};
struct Value {
  std::uint16_t type;
  union {
    bool flag;
    std::uint16_t uint16;
    std::uint32_t uint32;
    char* string;
    struct {
      char* bytes;
      std::size_t size;
    } object;
    struct {
      char* name;
      char* value;
      char separator;
    } largest;
  } data;
};
struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};
static_assert(sizeof(Proc) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552);

using Done = void (*)(Status status, void* context);
using Got = void (*)(Status status, Value* value, void* context);

/// The library's functions.
struct Library {
  Status (*init)(Proc* self, Info* infos, std::size_t count) = nullptr;
  Status (*finalize)(const Info* infos, std::size_t count) = nullptr;
  Status (*put)(std::uint8_t scope, const char* key, Value* value) = nullptr;
  Status (*commit)() = nullptr;
  Status (*fence)(const Proc* procs, std::size_t procs_count, const Info* infos, std::size_t count, Done done,
                  void* context) = nullptr;
  Status (*get)(const Proc* proc, const char* key, const Info* infos, std::size_t count, Got got,
                void* context) = nullptr;
  const char* (*text_of)(Status status) = nullptr;
  std::string fault;  ///< why it is not there

  /// Loads it, once for the process.
  static const Library& instance() {
    static const Library library;
    return library;
  }

 private:
  Library() {
    // Never closed: it has threads of its own.
    void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const why = dlerror();
      fault = why == nullptr ? "not found" : why;
      return;
    }
    find(handle, "PMIx_Init", init);
    find(handle, "PMIx_Finalize", finalize);
    find(handle, "PMIx_Put", put);
    find(handle, "PMIx_Commit", commit);
    find(handle, "PMIx_Fence_nb", fence);
    find(handle, "PMIx_Get_nb", get);
    find(handle, "PMIx_Error_string", text_of);
  }
  template <class Function>
  void find(void* handle, const char* name, Function& into) {
    into = reinterpret_cast<Function>(dlsym(handle, name));
    if (into == nullptr) fault = formatted("it has no function {}", name);
  }
};

/// An answer that a thread of PMIx brings. Lives until it has come, however long that takes: the thread that asked may
/// have gone by then.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool here = false;
  Status status = 0;
  Blob bytes;  ///< of objects and strings
  std::uint32_t number = 0;
  std::uint16_t type = 0;
  // What the library looks at until then.
  Proc proc{};
  Info info{};
  std::string key;

  void bring(Status said, const Value* value) {
    const std::scoped_lock lock(mutex);
    status = said;
    if (said == kSuccess && value != nullptr) take(*value);
    here = true;
    changed.notify_all();
  }
  /// False if it has not come by the deadline.
  bool await(Deadline deadline) {
    std::unique_lock lock(mutex);
    return WaitHook::wait_until(changed, lock, deadline, [this] { return here; });
  }

 private:
  void take(const Value& value) {
    type = value.type;
    if (type == kUint32) number = value.data.uint32;
    if (type == kUint16) number = value.data.uint16;
    std::string_view text;
    if (type == kString && value.data.string != nullptr) text = value.data.string;
    if (type == kBytes && value.data.object.bytes != nullptr) {
      text = {value.data.object.bytes, value.data.object.size};
    }
    const auto found = std::as_bytes(std::span(text));
    bytes.assign(found.begin(), found.end());
  }
};

using Shared = std::shared_ptr<Answer>;

void on_done(Status status, void* context) {
  const std::unique_ptr<Shared> answer(static_cast<Shared*>(context));
  (*answer)->bring(status, nullptr);
}
void on_got(Status status, Value* value, void* context) {
  const std::unique_ptr<Shared> answer(static_cast<Shared*>(context));
  (*answer)->bring(status, value);
}

/// Begins something of which `answer` will hear.
template <class Begin>
void ask(const Shared& answer, Begin&& begin) {
  auto context = std::make_unique<Shared>(answer);
  const Status status = begin(context.get());
  if (status == kSuccess) {
    static_cast<void>(context.release());  // the function that is called has it
  } else {
    answer->bring(status == kSucceededAtOnce ? kSuccess : status, nullptr);
  }
}

[[noreturn]] void fail(const std::string& what, Status status) {
  throw Error(ErrorCode::kBootstrap,
              formatted("{} of the launcher's PMIx failed: {}", what, Library::instance().text_of(status)));
}

/// This process, as PMIx knows it.
class PmixOfProcess {
 public:
  ~PmixOfProcess() {
    // Without it the launcher takes the end of this process for a failure. A child of fork has a copy of this, and is
    // not what the launcher started.
    if (process_ == getpid()) Library::instance().finalize(nullptr, 0);
  }

  /// Throws Error(kBootstrap).
  const Proc& self(Deadline deadline) {
    const std::scoped_lock lock(mutex_);
    const Library& library = Library::instance();
    if (!library.fault.empty()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("PMIX_RANK says that a launcher with PMIx started this process, but its library cannot be "
                            "loaded: {}. Install it (Debian: libpmix2), or add its folder to LD_LIBRARY_PATH; with "
                            "UNISONO_START=none this process is a job of one rank",
                            library.fault));
    }
    if (process_ != 0 && process_ != getpid()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("process {} is a child of rank {}, process {}, which the launcher started; it has no place "
                            "of its own in that job. With UNISONO_START=none in its environment it is a job of one "
                            "rank",
                            getpid(), self_.rank, process_));
    }
    if (process_ == 0) {
      // This call of PMIx has no deadline. Later callers wait for the same answer.
      if (!beginning_) {
        beginning_.emplace([&library] {
          Begun begun;
          begun.status = library.init(&begun.self, nullptr, 0);
          return begun;
        });
      }
      const auto begun = beginning_->result(deadline);
      if (!begun) {
        throw Error(ErrorCode::kBootstrap,
                    "the launcher that started this process has not answered through PMIx (PMIx_Init) in time");
      }
      beginning_.reset();
      if (const Status status = begun->status; status != kSuccess) {
        throw Error(ErrorCode::kBootstrap,
                    formatted("the launcher that started this process does not answer through PMIx: {}. A program that "
                              "a rank starts is no rank: give it UNISONO_START=none in its environment",
                              library.text_of(status)));
      }
      self_ = begun->self;
      process_ = getpid();
    }
    return self_;
  }

 private:
  struct Begun {
    Status status = kSuccess;
    Proc self{};
  };

  std::mutex mutex_;
  std::optional<Helper<Begun>> beginning_;  ///< as long as it has not ended
  Proc self_{};
  pid_t process_ = 0;
};

PmixOfProcess& process() {
  static PmixOfProcess one;
  return one;
}

class PmixStore final : public Store {
 public:
  explicit PmixStore(const Proc& self) : self_(self) {}

  std::size_t max_value() const override { return std::size_t{64} * 1024; }

  void put(const std::string& key, std::span<const std::byte> value, Deadline /*deadline*/) override {
    Value given{};
    given.type = kBytes;
    // It is copied, and not changed.
    given.data.object.bytes = const_cast<char*>(reinterpret_cast<const char*>(value.data()));
    given.data.object.size = value.size();
    const Status status = Library::instance().put(kGlobal, key.c_str(), &given);
    if (status != kSuccess) fail("putting a value into the store", status);
  }

  bool fence(Deadline deadline) override {
    const Library& library = Library::instance();
    if (const Status status = library.commit(); status != kSuccess) fail("handing values to the store", status);
    const auto answer = std::make_shared<Answer>();
    answer->proc = whole_job();
    std::strcpy(answer->info.key, kCollect);
    answer->info.value.type = kBool;
    answer->info.value.data.flag = true;
    ask(answer, [&](void* context) { return library.fence(&answer->proc, 1, &answer->info, 1, on_done, context); });
    if (!answer->await(deadline)) return false;
    if (answer->status == kPartialSuccess) {
      throw Error(ErrorCode::kBootstrap,
                  "some ranks have ended, or have given up, before all had come; see their own messages");
    }
    if (answer->status != kSuccess) fail("waiting for all ranks", answer->status);
    return true;
  }

  std::optional<Blob> get(std::uint32_t rank, const std::string& key, Deadline deadline) override {
    Proc of = self_;
    of.rank = rank;
    const auto answer = look_up(of, key.c_str(), deadline);
    if (!answer || answer->status != kSuccess || answer->type != kBytes) return std::nullopt;
    return std::move(answer->bytes);
  }

  std::string host_of(std::uint32_t rank) override {
    constexpr std::chrono::milliseconds kPatience{200};
    Proc of = self_;
    of.rank = rank;
    const auto answer = look_up(of, kHostName, Clock::now() + kPatience);
    if (!answer || answer->status != kSuccess || answer->type != kString) return {};
    return {reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size()};
  }

  std::uint32_t job_size(Deadline deadline) {
    const auto answer = look_up(whole_job(), kJobSize, deadline);
    if (!answer) throw Error(ErrorCode::kBootstrap, "the launcher's PMIx has not told the job's size by the deadline");
    if (answer->status != kSuccess || answer->type != kUint32) fail("asking for the job's size", answer->status);
    return answer->number;
  }
  std::optional<std::uint32_t> local_rank(Deadline deadline) {
    const auto answer = look_up(self_, kLocalRank, deadline);
    if (!answer || answer->status != kSuccess || answer->type != kUint16) return std::nullopt;
    return answer->number;
  }

 private:
  Proc whole_job() const {
    Proc all = self_;
    all.rank = kAllRanks;
    return all;
  }

  /// Nothing if there is no answer by the deadline.
  static Shared look_up(const Proc& of, const char* key, Deadline deadline) {
    const auto answer = std::make_shared<Answer>();
    answer->proc = of;
    answer->key = key;
    ask(answer, [&](void* context) {
      return Library::instance().get(&answer->proc, answer->key.c_str(), nullptr, 0, on_got, context);
    });
    return answer->await(deadline) ? answer : nullptr;
  }

  const Proc self_;
};

}  // namespace

bool pmix_loads() { return Library::instance().fault.empty(); }

std::unique_ptr<Store> open_pmix(JobEnvironment& environment) {
  const Deadline deadline = Clock::now() + environment.timeout;
  const Proc& self = process().self(deadline);
  auto store = std::make_unique<PmixStore>(self);
  if (self.rank != environment.rank) {
    throw Error(ErrorCode::kBootstrap,
                formatted("PMIX_RANK says that this process is rank {}, the launcher's PMIx says "
                          "{}: start the program with one launcher",
                          environment.rank, self.rank));
  }
  const std::uint32_t size = store->job_size(deadline);
  if (environment.size != 0 && environment.size != size) {
    throw Error(ErrorCode::kBootstrap,
                formatted("{} says that the job has {} ranks, the launcher's PMIx says {}: start the program with one "
                          "launcher, or say by UNISONO_START which one holds",
                          environment.size_source, environment.size, size));
  }
  environment.size = size;
  environment.local_rank = store->local_rank(deadline);
  return store;
}

}  // namespace unisono::join
