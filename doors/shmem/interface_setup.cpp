// The functions of shmem.h that begin and end a job, ask about it, and hand out memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "doors/shmem/collectives.hpp"
#include "doors/shmem/interface.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

void say_what_is_asked_for() {
  const char* const version = std::getenv("SHMEM_VERSION");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  const char* const info = std::getenv("SHMEM_INFO");        // NOLINT(concurrency-mt-unsafe)
  if (reach.rank != 0) return;
  if (version != nullptr)
    std::printf("OpenSHMEM %d.%d, Unisono %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, unisono_version());
  if (info != nullptr) {
    std::printf(
        "SHMEM_SYMMETRIC_SIZE    bytes of the symmetric heap, the same on all PEs: 1048576, 512M, 1G (256M)\n"
        "UNISONO_SHMEM_TIMEOUT_S seconds after which a wait fails (300)\n"
        "UNISONO_DEADLINES       fail, warn or off: what becomes of a wait then (fail)\n"
        "SHMEM_VERSION, SHMEM_INFO  print the version, and these lines\n");
  }
  std::fflush(stdout);
}

void* allocate(const char* operation, std::size_t bytes, std::size_t alignment) {
  Job& job = Job::of(operation);
  return job.allocate(operation, bytes, alignment);
}

void release(const char* operation, void* memory) {
  if (memory != nullptr) Job::of(operation).release(operation, memory);
}

void* reallocate(const char* operation, void* memory, std::size_t bytes) {
  if (memory == nullptr) return allocate(operation, bytes, Heap::kLeastAlignment);
  if (bytes == 0) {
    release(operation, memory);
    return nullptr;
  }
  Job& job = Job::of(operation);
  const std::uint64_t before = job.size_of(operation, memory);
  void* const made = allocate(operation, bytes, Heap::kLeastAlignment);
  if (made == nullptr) return nullptr;
  std::memcpy(made, memory, std::min<std::uint64_t>(before, bytes));
  job.release(operation, memory);
  return made;
}

}  // namespace

extern "C" {

void shmem_init(void) {
  guarded([] {
    Job::start(0, true);
    say_what_is_asked_for();
  });
}

int shmem_init_thread(int requested, int* provided) {
  shmem_init();
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) return 1;
  if (provided != nullptr) *provided = SHMEM_THREAD_MULTIPLE;
  return 0;
}

void shmem_query_thread(int* provided) {
  guarded([&] {
    Job::of("shmem_query_thread");
    *provided = SHMEM_THREAD_MULTIPLE;
  });
}

void shmem_finalize(void) { guarded(Job::finish); }

void shmem_global_exit(int status) {
  guarded([&] { Job::of("shmem_global_exit").exit(status); });
}

void shmem_pcontrol(int /*level*/, ...) {}

int shmem_my_pe(void) {
  return guarded([] { return Job::of("shmem_my_pe").rank(); });
}

int shmem_n_pes(void) {
  return guarded([] { return Job::of("shmem_n_pes").size(); });
}

int shmem_pe_accessible(int pe) { return pe >= 0 && pe < reach.size ? 1 : 0; }

int shmem_addr_accessible(const void* address, int pe) {
  Target target;
  return shmem_pe_accessible(pe) != 0 && locate(address, 1, target) ? 1 : 0;
}

void* shmem_ptr(const void* dest, int pe) {
  Target target;
  if (shmem_pe_accessible(pe) == 0 || !locate(dest, 1, target)) return nullptr;
  std::byte* const there = reach.regions[target.region].peers[static_cast<std::size_t>(pe)];
  return there == nullptr ? nullptr : there + target.offset;
}

void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe) {
  return guarded([&]() -> void* {
    const Team& members = Job::of("shmem_team_ptr").teams().get("shmem_team_ptr", team);
    return pe < 0 || pe >= members.size() ? nullptr : shmem_ptr(dest, members.pes[static_cast<std::size_t>(pe)]);
  });
}

void shmem_info_get_version(int* major, int* minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char* name) { std::snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING); }

void* shmem_malloc(size_t size) {
  return guarded([&] { return allocate("shmem_malloc", size, Heap::kLeastAlignment); });
}

void* shmem_malloc_with_hints(size_t size, long /*hints*/) {
  return guarded([&] { return allocate("shmem_malloc_with_hints", size, Heap::kLeastAlignment); });
}

void* shmem_calloc(size_t count, size_t size) {
  return guarded([&]() -> void* {
    constexpr const char* kOperation = "shmem_calloc";
    const std::size_t bytes = size != 0 && count > ~std::size_t{0} / size ? ~std::size_t{0} : count * size;
    void* const memory = allocate(kOperation, bytes, Heap::kLeastAlignment);
    if (memory == nullptr) return nullptr;
    std::memset(memory, 0, bytes);
    Job::of(kOperation).barrier(kOperation);  // nobody puts before all is zero
    return memory;
  });
}

void* shmem_align(size_t alignment, size_t size) {
  return guarded([&] { return allocate("shmem_align", size, alignment); });
}

void* shmem_realloc(void* memory, size_t size) {
  return guarded([&] { return reallocate("shmem_realloc", memory, size); });
}

void shmem_free(void* memory) {
  guarded([&] { release("shmem_free", memory); });
}

void shmem_fence(void) {
  // Puts to a PE of another host are messages, which do not overtake one another.
  std::atomic_thread_fence(std::memory_order_release);
}

void shmem_quiet(void) {
  guarded([] { Job::of("shmem_quiet").quiet("shmem_quiet"); });
}

void shmem_barrier_all(void) {
  guarded([] { Job::of("shmem_barrier_all").barrier("shmem_barrier_all"); });
}

void shmem_sync_all(void) {
  guarded([] {
    Job& job = Job::of("shmem_sync_all");
    sync("shmem_sync_all", job.teams().world());
  });
}

void shmem_ctx_fence(shmem_ctx_t /*ctx*/) { shmem_fence(); }

void shmem_ctx_quiet(shmem_ctx_t ctx) {
  if (ctx == SHMEM_CTX_INVALID) return;
  guarded([&] {
    Job& job = Job::of("shmem_ctx_quiet");
    job.teams().team_of("shmem_ctx_quiet", ctx);
    job.quiet("shmem_ctx_quiet");
  });
}

int shmem_ctx_create(long options, shmem_ctx_t* ctx) { return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx); }

int shmem_team_create_ctx(shmem_team_t team, long /*options*/, shmem_ctx_t* ctx) {
  *ctx = SHMEM_CTX_INVALID;
  if (team == SHMEM_TEAM_INVALID) return 1;
  return guarded([&] {
    Teams& teams = Job::of("shmem_team_create_ctx").teams();
    *ctx = reinterpret_cast<shmem_ctx_t>(teams.make_ctx(teams.get("shmem_team_create_ctx", team)));
    return 0;
  });
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team) {
  return guarded([&] {
    if (ctx == SHMEM_CTX_INVALID) {
      *team = SHMEM_TEAM_INVALID;
      return 1;
    }
    Teams& teams = Job::of("shmem_ctx_get_team").teams();
    const Team& found = teams.team_of("shmem_ctx_get_team", ctx);
    *team = static_cast<shmem_team_t>(
        const_cast<void*>(teams.handle_of(found)));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    return 0;
  });
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
  guarded([&] {
    Job& job = Job::of("shmem_ctx_destroy");
    job.quiet("shmem_ctx_destroy");
    job.teams().free_ctx("shmem_ctx_destroy", ctx);
  });
}

}  // extern "C"

UNISONO_SHMEM_NAMES_SETUP
