// What hosts of SMI's programs use of its own utilities.
#ifndef UNISONO_DIALECT_SMI_UTILS_HPP
#define UNISONO_DIALECT_SMI_UTILS_HPP

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#define CHECK_MPI(call) \
  if ((call) != MPI_SUCCESS) cl::fail(#call " has failed")

constexpr int kChannelsPerRank = 4;

/// Routes are of SMI's transport: there are none here.
template <class Entry>
void LoadRoutingTable(int, int, int, const std::string&, const std::string&, Entry*) {}

inline std::string replace(const std::string& text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  return at == std::string::npos ? text : text.substr(0, at) + with + text.substr(at + what.size());
}

#endif
