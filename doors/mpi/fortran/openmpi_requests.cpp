// Requests of programs in Fortran, whose indices begin with 1, and what outlives its handle for them.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "doors/mpi/fortran/openmpi.hpp"

using namespace unisono::mpi::fortran;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

constexpr std::size_t kStatus = sizeof(MPI_Status) / sizeof(MPI_Fint);  ///< MPI_STATUS_SIZE

/// The request of a call, which writes back what became of it.
class Request {
 public:
  explicit Request(Out fortran) : fortran_(fortran), own_(PMPI_Request_f2c(*fortran)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { *fortran_ = PMPI_Request_c2f(own_); }
  MPI_Request* data() { return &own_; }

 private:
  Out fortran_;
  MPI_Request own_;
};

/// The same of several.
class Requests {
 public:
  Requests(int count, Out fortran) : fortran_(fortran) {
    for (int i = 0; i < count; ++i) own_.push_back(PMPI_Request_f2c(fortran[i]));
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    for (std::size_t i = 0; i < own_.size(); ++i) fortran_[i] = PMPI_Request_c2f(own_[i]);
  }
  MPI_Request* data() { return own_.data(); }

 private:
  Out fortran_;
  std::vector<MPI_Request> own_;
};

/// The status of a call, or nothing, if nobody wants it.
class Status {
 public:
  explicit Status(Out fortran) : fortran_(fortran == &mpi_fortran_status_ignore_ ? nullptr : fortran) {}
  MPI_Status* data() { return fortran_ == nullptr ? MPI_STATUS_IGNORE : &own_; }
  /// Writes it to where Fortran has it.
  void give() {
    if (fortran_ != nullptr) PMPI_Status_c2f(&own_, fortran_);
  }

 private:
  Out fortran_;
  MPI_Status own_{};
};

/// The same of several.
class Statuses {
 public:
  Statuses(int count, Out fortran) : fortran_(fortran == &mpi_fortran_statuses_ignore_ ? nullptr : fortran) {
    if (fortran_ != nullptr) own_.resize(static_cast<std::size_t>(std::max(count, 1)));
  }
  MPI_Status* data() { return fortran_ == nullptr ? MPI_STATUSES_IGNORE : own_.data(); }
  /// Writes the first `count`.
  void give(int count) {
    for (int i = 0; fortran_ != nullptr && i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      PMPI_Status_c2f(&own_[at], fortran_ + at * kStatus);
    }
  }

 private:
  Out fortran_;
  std::vector<MPI_Status> own_;
};

/// An index as Fortran counts; MPI_UNDEFINED, which is negative, is the same in both.
void count_from_one(Out index) {
  if (*index >= 0) ++*index;
}

/// Indices of a call that gives some. None are given if there was nothing to wait for: `count` is MPI_UNDEFINED.
void gave_some(In count, Out indices, Statuses& statuses) {
  for (int i = 0; i < *count; ++i) count_from_one(indices + i);
  statuses.give(*count);
}

/// Whether statuses are there, be it of errors.
bool has_statuses(int result) { return result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

void mpi_wait_(Out request, Out status, Out error) {
  Request own(request);
  Status to(status);
  const int result = MPI_Wait(own.data(), to.data());
  if (result == MPI_SUCCESS) to.give();
  answer(error, result);
}

void mpi_waitall_(In count, Out requests, Out statuses, Out error) {
  Requests own(*count, requests);
  Statuses to(*count, statuses);
  const int result = MPI_Waitall(*count, own.data(), to.data());
  if (has_statuses(result)) to.give(*count);
  answer(error, result);
}

void mpi_waitany_(In count, Out requests, Out index, Out status, Out error) {
  Requests own(*count, requests);
  Status to(status);
  const int result = MPI_Waitany(*count, own.data(), index, to.data());
  if (result == MPI_SUCCESS) {
    count_from_one(index);
    to.give();
  }
  answer(error, result);
}

void mpi_waitsome_(In count, Out requests, Out done, Out indices, Out statuses, Out error) {
  Requests own(*count, requests);
  Statuses to(*count, statuses);
  const int result = MPI_Waitsome(*count, own.data(), done, indices, to.data());
  if (has_statuses(result)) gave_some(done, indices, to);
  answer(error, result);
}

void mpi_test_(Out request, Out flag, Out status, Out error) {
  Request own(request);
  Status to(status);
  const int result = MPI_Test(own.data(), flag, to.data());
  if (result == MPI_SUCCESS && *flag != 0) to.give();
  answer(error, result);
}

void mpi_testall_(In count, Out requests, Out flag, Out statuses, Out error) {
  Requests own(*count, requests);
  Statuses to(*count, statuses);
  const int result = MPI_Testall(*count, own.data(), flag, to.data());
  if (has_statuses(result) && *flag != 0) to.give(*count);
  answer(error, result);
}

void mpi_testany_(In count, Out requests, Out index, Out flag, Out status, Out error) {
  Requests own(*count, requests);
  Status to(status);
  const int result = MPI_Testany(*count, own.data(), index, flag, to.data());
  if (result == MPI_SUCCESS && *flag != 0) {
    count_from_one(index);
    to.give();
  }
  answer(error, result);
}

void mpi_testsome_(In count, Out requests, Out done, Out indices, Out statuses, Out error) {
  Requests own(*count, requests);
  Statuses to(*count, statuses);
  const int result = MPI_Testsome(*count, own.data(), done, indices, to.data());
  if (has_statuses(result)) gave_some(done, indices, to);
  answer(error, result);
}

void mpi_request_free_(Out request, Out error) {
  Request own(request);
  answer(error, MPI_Request_free(own.data()));
}

void mpi_request_get_status_(In request, Out flag, Out status, Out error) {
  Status to(status);
  const int result = MPI_Request_get_status(PMPI_Request_f2c(*request), flag, to.data());
  if (result == MPI_SUCCESS && *flag != 0) to.give();
  answer(error, result);
}

void mpi_start_(Out request, Out error) {
  Request own(request);
  answer(error, MPI_Start(own.data()));
}

void mpi_startall_(In count, Out requests, Out error) {
  Requests own(*count, requests);
  answer(error, MPI_Startall(*count, own.data()));
}

// Which something in flight may need.
void mpi_op_free_(Out op, Out error) {
  MPI_Op own = PMPI_Op_f2c(*op);
  const int result = MPI_Op_free(&own);
  *op = PMPI_Op_c2f(own);
  answer(error, result);
}

// What `use mpi_f08` goes by. Of functions that give a flag it is the names of Fortran's PMPI.
decltype(mpi_wait_) ompi_wait_f [[gnu::alias("mpi_wait_")]];
decltype(mpi_waitall_) ompi_waitall_f [[gnu::alias("mpi_waitall_")]];
decltype(mpi_waitany_) ompi_waitany_f [[gnu::alias("mpi_waitany_")]];
decltype(mpi_waitsome_) ompi_waitsome_f [[gnu::alias("mpi_waitsome_")]];
decltype(mpi_test_) pmpi_test_ [[gnu::alias("mpi_test_")]];
decltype(mpi_testall_) pmpi_testall_ [[gnu::alias("mpi_testall_")]];
decltype(mpi_testany_) pmpi_testany_ [[gnu::alias("mpi_testany_")]];
decltype(mpi_testsome_) pmpi_testsome_ [[gnu::alias("mpi_testsome_")]];
decltype(mpi_request_free_) ompi_request_free_f [[gnu::alias("mpi_request_free_")]];
decltype(mpi_request_get_status_) pmpi_request_get_status_ [[gnu::alias("mpi_request_get_status_")]];
decltype(mpi_start_) ompi_start_f [[gnu::alias("mpi_start_")]];
decltype(mpi_startall_) ompi_startall_f [[gnu::alias("mpi_startall_")]];
decltype(mpi_op_free_) ompi_op_free_f [[gnu::alias("mpi_op_free_")]];

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
