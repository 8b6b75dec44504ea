// Functions of Open MPI's Fortran that make communicators: as in communicators.cpp, a door is made with each. The work
// is done by the library's own, which knows constants and logical values of Fortran.
#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

#include "doors/mpi/door.hpp"
#include "doors/mpi/fortran/openmpi.hpp"

using namespace unisono::mpi;           // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::mpi::fortran;  // NOLINT(google-build-using-namespace): likewise

namespace {

void with_door(MPI_Fint result, In made, Out error) {
  if (result == MPI_SUCCESS) door_of(comm_of(made));
  answer(error, result);
}

/// A function of the library below, or of none. It is not bound as the shim is loaded: a module of an interpreter
/// brings the library later, and where only what belongs to the module sees it.
void* found(const char* name) {
  if (void* const function = dlsym(RTLD_DEFAULT, name)) return function;
  std::vector<std::string> loaded;
  const auto collect = [](dl_phdr_info* info, std::size_t /*bytes*/, void* names) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(collect, &loaded);
  for (const std::string& file : loaded) {
    void* const library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (void* const function = dlsym(library, name)) return function;  // and keeps the library
    dlclose(library);
  }
  return nullptr;
}

template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(found(name));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

// Of the library below: only their types are used.
void pmpi_comm_dup_(In comm, Out made, Out error);
void pmpi_comm_dup_with_info_(In comm, In info, Out made, Out error);
void pmpi_comm_split_(In comm, In colour, In key, Out made, Out error);
void pmpi_comm_split_type_(In comm, In kind, In key, In info, Out made, Out error);
void pmpi_comm_create_(In comm, In group, Out made, Out error);
void pmpi_comm_create_group_(In comm, In group, In tag, Out made, Out error);
void pmpi_intercomm_merge_(In comm, In high, Out made, Out error);
void pmpi_cart_create_(In comm, In dimensions, In sizes, In periods, In reorder, Out made, Out error);
void pmpi_cart_sub_(In comm, In remain, Out made, Out error);
void pmpi_graph_create_(In comm, In nodes, In index, In edges, In reorder, Out made, Out error);
void pmpi_dist_graph_create_(In comm, In nodes, In sources, In degrees, In destinations, In weights, In info,
                             In reorder, Out made, Out error);
void pmpi_dist_graph_create_adjacent_(In comm, In in, In sources, In in_weights, In out, In destinations,
                                      In out_weights, In info, In reorder, Out made, Out error);

void mpi_comm_dup_(In comm, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_dup_)>("pmpi_comm_dup_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, made, &result);
  with_door(result, made, error);
}

void mpi_comm_dup_with_info_(In comm, In info, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_dup_with_info_)>("pmpi_comm_dup_with_info_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, info, made, &result);
  with_door(result, made, error);
}

void mpi_comm_split_(In comm, In colour, In key, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_split_)>("pmpi_comm_split_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, colour, key, made, &result);
  with_door(result, made, error);
}

void mpi_comm_split_type_(In comm, In kind, In key, In info, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_split_type_)>("pmpi_comm_split_type_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, kind, key, info, made, &result);
  with_door(result, made, error);
}

void mpi_comm_create_(In comm, In group, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_create_)>("pmpi_comm_create_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, group, made, &result);
  with_door(result, made, error);
}

void mpi_comm_create_group_(In comm, In group, In tag, Out made, Out error) {
  static const auto below = found<decltype(pmpi_comm_create_group_)>("pmpi_comm_create_group_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, group, tag, made, &result);
  with_door(result, made, error);
}

void mpi_intercomm_merge_(In comm, In high, Out made, Out error) {
  static const auto below = found<decltype(pmpi_intercomm_merge_)>("pmpi_intercomm_merge_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, high, made, &result);
  with_door(result, made, error);
}

void mpi_cart_create_(In comm, In dimensions, In sizes, In periods, In reorder, Out made, Out error) {
  static const auto below = found<decltype(pmpi_cart_create_)>("pmpi_cart_create_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, dimensions, sizes, periods, reorder, made, &result);
  with_door(result, made, error);
}

void mpi_cart_sub_(In comm, In remain, Out made, Out error) {
  static const auto below = found<decltype(pmpi_cart_sub_)>("pmpi_cart_sub_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, remain, made, &result);
  with_door(result, made, error);
}

void mpi_graph_create_(In comm, In nodes, In index, In edges, In reorder, Out made, Out error) {
  static const auto below = found<decltype(pmpi_graph_create_)>("pmpi_graph_create_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, nodes, index, edges, reorder, made, &result);
  with_door(result, made, error);
}

void mpi_dist_graph_create_(In comm, In nodes, In sources, In degrees, In destinations, In weights, In info, In reorder,
                            Out made, Out error) {
  static const auto below = found<decltype(pmpi_dist_graph_create_)>("pmpi_dist_graph_create_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr) below(comm, nodes, sources, degrees, destinations, weights, info, reorder, made, &result);
  with_door(result, made, error);
}

void mpi_dist_graph_create_adjacent_(In comm, In in, In sources, In in_weights, In out, In destinations, In out_weights,
                                     In info, In reorder, Out made, Out error) {
  static const auto below = found<decltype(pmpi_dist_graph_create_adjacent_)>("pmpi_dist_graph_create_adjacent_");
  MPI_Fint result = MPI_ERR_INTERN;
  if (below != nullptr)
    below(comm, in, sources, in_weights, out, destinations, out_weights, info, reorder, made, &result);
  with_door(result, made, error);
}

// What `use mpi_f08` goes by.
decltype(mpi_comm_dup_) ompi_comm_dup_f [[gnu::alias("mpi_comm_dup_")]];
decltype(mpi_comm_dup_with_info_) ompi_comm_dup_with_info_f [[gnu::alias("mpi_comm_dup_with_info_")]];
decltype(mpi_comm_split_) ompi_comm_split_f [[gnu::alias("mpi_comm_split_")]];
decltype(mpi_comm_split_type_) ompi_comm_split_type_f [[gnu::alias("mpi_comm_split_type_")]];
decltype(mpi_comm_create_) ompi_comm_create_f [[gnu::alias("mpi_comm_create_")]];
decltype(mpi_comm_create_group_) ompi_comm_create_group_f [[gnu::alias("mpi_comm_create_group_")]];
decltype(mpi_intercomm_merge_) ompi_intercomm_merge_f [[gnu::alias("mpi_intercomm_merge_")]];
decltype(mpi_cart_create_) ompi_cart_create_f [[gnu::alias("mpi_cart_create_")]];
decltype(mpi_cart_sub_) ompi_cart_sub_f [[gnu::alias("mpi_cart_sub_")]];
decltype(mpi_graph_create_) ompi_graph_create_f [[gnu::alias("mpi_graph_create_")]];
decltype(mpi_dist_graph_create_) ompi_dist_graph_create_f [[gnu::alias("mpi_dist_graph_create_")]];
decltype(mpi_dist_graph_create_adjacent_) ompi_dist_graph_create_adjacent_f
    [[gnu::alias("mpi_dist_graph_create_adjacent_")]];

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
