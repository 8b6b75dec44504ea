// The SHMEM door for Python: symmetric memory by addresses. unisono.shmem makes arrays of it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "doors/shmem/access.hpp"
#include "doors/shmem/collectives.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/job.hpp"
#include "doors/shmem/waiting.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"

namespace unisono::python {

namespace {

using Address = std::uintptr_t;

template <class T = void>
T* at(Address address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): Python has no pointers
}

/// Whether a handler of a signal has raised. Asked by waits of the library, which hold no lock then.
int raised(void* /*context*/) {
  const nb::gil_scoped_acquire held;
  return PyErr_CheckSignals() == 0 ? 0 : 1;
}

/// Runs `work` without the GIL, and looks for signals meanwhile; its Failure becomes a Python exception.
template <class Work>
auto run(Work&& work) {
  std::optional<shmem::Failure> failure;
  decltype(work()) result{};
  {
    const WithoutGil released;
    unisono_set_interrupt(raised, nullptr);
    shmem::set_interrupt(raised);
    try {
      result = work();
    } catch (const shmem::Failure& error) {
      failure = error;
    }
    unisono_set_interrupt(nullptr, nullptr);
    shmem::set_interrupt(nullptr);
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (failure) raise(failure->code(), failure->what());
  return result;
}

/// The same of work that returns nothing.
template <class Work>
void perform(Work&& work) {
  run([&] {
    work();
    return 0;
  });
}

shmem::Team& team_at(const char* name, Address handle) { return shmem::Job::of(name).teams().get(name, at(handle)); }

/// test: 1 if all hold, else 0. all: 0, once all hold. any: one that holds.
template <class T>
std::int64_t wait_of(const char* name, const std::string& how, Address address, std::size_t count, int comparison,
                     std::int64_t value) {
  const T given = static_cast<T>(value);
  const shmem::Watched<T> watched(name, at<const T>(address), count, nullptr, comparison, &given, true);
  if (how == "test") return watched.test_all() ? 1 : 0;
  if (how == "any") return static_cast<std::int64_t>(watched.wait_any());
  watched.wait_all();
  return 0;
}

std::int64_t wait(const char* name, const std::string& how, const std::string& type, Address address, std::size_t count,
                  int comparison, std::int64_t value) {
  return run([&] {
    if (type == "i4") return wait_of<std::int32_t>(name, how, address, count, comparison, value);
    if (type == "u4") return wait_of<std::uint32_t>(name, how, address, count, comparison, value);
    if (type == "i8") return wait_of<std::int64_t>(name, how, address, count, comparison, value);
    return wait_of<std::uint64_t>(name, how, address, count, comparison, value);
  });
}

std::uint64_t atomic(const char* name, int what, int width, Address address, std::uint64_t operand,
                     std::uint64_t comparand, int pe) {
  const auto operation = static_cast<shmem::Atomic>(what);
  return run([&]() -> std::uint64_t {
    if (width == 4) {
      return shmem::atomic(name, operation, at<const std::uint32_t>(address), static_cast<std::uint32_t>(operand),
                           static_cast<std::uint32_t>(comparand), pe);
    }
    return shmem::atomic(name, operation, at<const std::uint64_t>(address), operand, comparand, pe);
  });
}

void collective(const char* name, const std::string& which, Address team, Address dest, Address source,
                std::uint64_t bytes, int root) {
  perform([&] {
    const shmem::Team& all = team_at(name, team);
    if (which == "broadcast") return shmem::broadcast(name, all, at(dest), at(source), bytes, root, true);
    if (which == "collect") return shmem::collect(name, all, at(dest), at(source), bytes);
    if (which == "fcollect") return shmem::fcollect(name, all, at(dest), at(source), bytes);
    if (which == "alltoall") return shmem::alltoall(name, all, at(dest), at(source), bytes);
    shmem::sync(name, all);
  });
}

nb::object memory(Address address, std::uint64_t bytes) {
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(at(address), {bytes}, nb::handle()),
                  nb::rv_policy::reference);
}

void bind_memory(nb::module_& module) {
  module.def("shmem_memory", memory);
  module.def("shmem_allocate", [](const char* name, std::uint64_t bytes, std::uint64_t alignment) {
    return run([&] { return reinterpret_cast<Address>(shmem::Job::of(name).allocate(name, bytes, alignment)); });
  });
  module.def("shmem_release", [](const char* name, Address address) {
    perform([&] { shmem::Job::of(name).release(name, at(address)); });
  });
  module.def("shmem_ptr", [](const char* name, Address address, std::uint64_t bytes, int pe) {
    return run([&] { return reinterpret_cast<Address>(shmem::resolve(name, at(address), bytes, pe).here); });
  });
  module.def("shmem_put", [](const char* name, Address dest, Address source, std::uint64_t bytes, int pe) {
    perform([&] { shmem::put(name, at(dest), at(source), bytes, pe); });
  });
  module.def("shmem_get", [](const char* name, Address dest, Address source, std::uint64_t bytes, int pe) {
    perform([&] { shmem::get(name, at(dest), at(source), bytes, pe); });
  });
  module.def("shmem_put_signal", [](const char* name, Address dest, Address source, std::uint64_t bytes, Address signal,
                                    std::uint64_t value, int how, int pe) {
    perform([&] { shmem::put_signal(name, at(dest), at(source), bytes, at<std::uint64_t>(signal), value, how, pe); });
  });
  module.def("shmem_atomic", atomic);
  module.def("shmem_wait", wait);
}

void bind_teams(nb::module_& module) {
  module.def("shmem_team", [](const char* name, Address team) {
    const shmem::Team& found = team_at(name, team);
    return nb::make_tuple(found.rank, found.size());
  });
  module.def("shmem_team_pe", [](const char* name, Address from, int pe, Address to) {
    return run([&] {
      const shmem::Team& there = team_at(name, from);
      const bool is = pe >= 0 && pe < there.size();
      return is ? team_at(name, to).find(there.pes[static_cast<std::size_t>(pe)]) : -1;
    });
  });
  module.def("shmem_split_strided", [](const char* name, Address parent, int start, int stride, int size) {
    return run([&] {
      shmem::Team& all = team_at(name, parent);
      return reinterpret_cast<Address>(shmem::Job::of(name).teams().split_strided(name, all, start, stride, size));
    });
  });
  module.def("shmem_split", [](const char* name, Address parent, int colour) {
    return run([&] {
      shmem::Team& all = team_at(name, parent);
      return reinterpret_cast<Address>(shmem::Job::of(name).teams().split(name, all, colour));
    });
  });
  module.def("shmem_destroy", [](const char* name, Address team) {
    perform([&] { shmem::Job::of(name).teams().destroy(name, at(team)); });
  });
  module.def("shmem_collective", collective);
  module.def("shmem_reduce", [](const char* name, Address team, Address dest, Address source, std::uint64_t count,
                                std::uint64_t size, int datatype, int op) {
    perform([&] { shmem::reduce(name, team_at(name, team), at(dest), at(source), count, size, datatype, op); });
  });
}

}  // namespace

void bind_shmem(nb::module_& module) {
  module.def("shmem_start",
             [](std::uint64_t heap_bytes) { perform([&] { shmem::Job::start(heap_bytes, false, true); }); });
  module.def("shmem_finish", [] { perform([] { shmem::Job::finish(); }); });
  module.def("shmem_abandon", [] { perform([] { shmem::Job::abandon(); }); });
  module.def("shmem_rank", [] { return shmem::reach.rank; });
  module.def("shmem_size", [] { return shmem::reach.size; });
  module.def("shmem_size_from",
             [](const std::string& text) { return run([&] { return shmem::parse_size("the heap's size", text); }); });
  module.def("shmem_quiet", [](const char* name) { perform([&] { shmem::Job::of(name).quiet(name); }); });
  module.def("shmem_barrier", [](const char* name) { perform([&] { shmem::Job::of(name).barrier(name); }); });
  bind_memory(module);
  bind_teams(module);
}

}  // namespace unisono::python
