// What the functions of MPI have in common: prepare an operation; carry it, or leave the call to the MPI.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "doors/mpi/movements.hpp"
#include "doors/mpi/neighbours.hpp"
#include "doors/mpi/operation.hpp"
#include "doors/mpi/reductions.hpp"
#include "doors/mpi/report.hpp"
#include "doors/mpi/requests.hpp"

namespace unisono::mpi {

/// Has the MPI make a call, too, and tells the report how long it took. What is input and output is put back.
template <class Below>
void compare(Operation& operation, Entry& entry, Below& below) {
  const std::span<std::byte> input = operation.overwritten();
  const std::vector<std::byte> before(input.begin(), input.end());
  PMPI_Barrier(operation.comm);
  const std::uint64_t begun = Entry::now();
  below();
  const std::uint64_t took = Entry::now() - begun;
  std::copy(before.begin(), before.end(), input.begin());
  PMPI_Barrier(operation.comm);
  entry.compared(took);
}

/// `prepare` fills in an operation and says whether it is carried; `below` is the MPI's own function.
template <class Prepare, class Below>
int carry(Function function, MPI_Comm comm, Prepare&& prepare, Below&& below) {
  Entry entry(function, Form::kBlocking);
  Operation operation(function, comm);
  if (operation.door == nullptr || !prepare(operation)) {
    entry.fell_through(operation.reason);
    return below();
  }
  if (compares() && operation.is_comparable() && operation.door->comparable.fetch_add(1) % kComparedOf == 0) {
    compare(operation, entry, below);
  }
  const unisono_result result = operation.run();
  if (is_undefined(result)) {
    entry.fell_through(Reason::kDatatype);
    return below();
  }
  entry.carried(operation.bytes);
  return operation.told(result);
}

/// The same for what is started: `begin` is requests::start or requests::make.
template <class Prepare, class Below, class Begin>
int carry_request(Function function, Form form, MPI_Comm comm, Begin&& begin, MPI_Request* request, Prepare&& prepare,
                  Below&& below) {
  Entry entry(function, form);
  // To make a door would be to wait for the others. There is one since the communicator was made (communicators.cpp).
  if (door_of(comm, Make::kNo) == nullptr) return below();
  auto operation = std::make_unique<Operation>(function, comm, Make::kNo);
  operation->waits = false;
  if (!prepare(*operation)) {
    entry.fell_through(operation->reason);
    return below();
  }
  const std::uint64_t bytes = operation->bytes;
  // What became of it is said by the operation, which is handed over.
  const Operation told(function, comm, Make::kNo);
  const unisono_result result = begin(std::move(operation), request);
  if (is_undefined(result)) {
    entry.fell_through(Reason::kDatatype);
    return below();
  }
  // Of a persistent request, each start counts.
  if (form == Form::kNonblocking) entry.carried(bytes);
  if (form == Form::kPersistent) entry.counts_not();
  return told.told(result);
}

template <class Prepare, class Below>
int carry_started(Function function, MPI_Comm comm, MPI_Request* request, Prepare&& prepare, Below&& below) {
  return carry_request(function, Form::kNonblocking, comm, requests::start, request, prepare, below);
}

template <class Prepare, class Below>
int carry_persistent(Function function, MPI_Comm comm, MPI_Request* request, Prepare&& prepare, Below&& below) {
  return carry_request(function, Form::kPersistent, comm, requests::make, request, prepare, below);
}

}  // namespace unisono::mpi
