// Non-blocking and persistent collectives as requests of the MPI.
//
// A request that the program gets is one of the MPI below: a receive of nothing from this rank itself, on a
// communicator of the door's own. It is sent when the collective has ended. So the MPI's own functions complete it, in
// mixed arrays too. What the door adds to functions that wait and test (waits.cpp) is that they look after collectives
// in flight.
//
// Only threads that are in a call of MPI put results in place, call operators of the program, and send: an MPI may
// allow one thread only. A thread of the door (the keeper) has Unisono's helper thread take over collectives that
// nobody has looked after for a while, because the program computes, or waits in the MPI below. That thread calls
// nothing of MPI.
#pragma once

#include <atomic>
#include <memory>

#include "doors/mpi/mpi.hpp"
#include "doors/mpi/operation.hpp"

namespace unisono::mpi::requests {

/// How many collectives are in flight. While there are none, functions that wait and test are the MPI's own.
inline std::atomic<int> in_flight{0};
/// How many persistent requests there are.
inline std::atomic<int> persistent{0};

/// Starts a prepared operation. Returns a result of Unisono: of `is_undefined` nothing was sent, and the call may be
/// made otherwise. From any thread that may call MPI, as all functions here.
unisono_result start(std::unique_ptr<Operation> operation, MPI_Request* request);
/// Makes a persistent request, which MPI_Start starts.
unisono_result make(std::unique_ptr<Operation> operation, MPI_Request* request);

/// Makes progress, and ends those that have ended.
void look();
/// Waits for what ends first, for a short time: a turn of a loop that tests requests of the MPI.
void linger();
/// Waits until the collective of a request has ended, if it is one in flight.
void await(MPI_Request request);
/// Starts a persistent request, if it is one of a collective: `error` is what the MPI's function would return.
bool restart(MPI_Request* request, int* error);
/// Before a request is freed.
void forget(MPI_Request request);

/// Frees the operator, or does so when nothing in flight needs it. Returns false if it is not needed now.
bool frees_later(MPI_Op* op);
/// Before MPI_Finalize: waits for all that is in flight, and ends the keeper.
void close();

}  // namespace unisono::mpi::requests
