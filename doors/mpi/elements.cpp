#include "doors/mpi/elements.hpp"

#include <array>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono::mpi {

namespace {

template <std::size_t kBytes, bool kSigned>
constexpr unisono_datatype integer() {
  if constexpr (kBytes == 1) return kSigned ? UNISONO_INT8 : UNISONO_UINT8;
  if constexpr (kBytes == 2) return kSigned ? UNISONO_INT16 : UNISONO_UINT16;
  if constexpr (kBytes == 4) return kSigned ? UNISONO_INT32 : UNISONO_UINT32;
  return kSigned ? UNISONO_INT64 : UNISONO_UINT64;
}

struct Named {
  MPI_Datatype type;
  unisono_datatype element;
};

/// What Fortran has that is as long as the compiler of the MPI below made it, and may be missing.
void add_fortran(std::vector<Named>& table) {
  struct OfLength {
    MPI_Datatype type;
    int bytes;
    unisono_datatype element;
  };
  const std::array known{
      OfLength{MPI_INTEGER, 4, UNISONO_INT32},
      OfLength{MPI_INTEGER, 8, UNISONO_INT64},
      OfLength{MPI_REAL, 4, UNISONO_FP32},
      OfLength{MPI_REAL, 8, UNISONO_FP64},
      OfLength{MPI_DOUBLE_PRECISION, 8, UNISONO_FP64},
      OfLength{MPI_COMPLEX, 8, UNISONO_COMPLEX64},
      OfLength{MPI_COMPLEX, 16, UNISONO_COMPLEX128},
      OfLength{MPI_DOUBLE_COMPLEX, 16, UNISONO_COMPLEX128},
      // Its operators are the logical ones, of which all that is not 0 is true, and the result is 0 or 1.
      OfLength{MPI_LOGICAL, 4, UNISONO_INT32},
      OfLength{MPI_LOGICAL, 8, UNISONO_INT64},
      // The other pairs of Fortran are of two floating-point numbers, which Unisono has not.
      OfLength{MPI_2INTEGER, 8, UNISONO_INT32_INT32},
      OfLength{MPI_INTEGER1, 1, UNISONO_INT8},
      OfLength{MPI_INTEGER2, 2, UNISONO_INT16},
      OfLength{MPI_INTEGER4, 4, UNISONO_INT32},
      OfLength{MPI_INTEGER8, 8, UNISONO_INT64},
      OfLength{MPI_REAL4, 4, UNISONO_FP32},
      OfLength{MPI_REAL8, 8, UNISONO_FP64},
      OfLength{MPI_COMPLEX8, 8, UNISONO_COMPLEX64},
      OfLength{MPI_COMPLEX16, 16, UNISONO_COMPLEX128},
  };
  for (const OfLength& one : known) {
    int bytes = 0;
    if (one.type != MPI_DATATYPE_NULL) PMPI_Type_size(one.type, &bytes);
    if (bytes == one.bytes) table.push_back({one.type, one.element});
  }
}

/// The most frequent first. A function, for the handles are addresses in some libraries.
std::vector<Named> all_named() {
  std::vector<Named> table{
      Named{MPI_DOUBLE, UNISONO_FP64},
      Named{MPI_FLOAT, UNISONO_FP32},
      Named{MPI_INT, integer<sizeof(int), true>()},
      Named{MPI_LONG, integer<sizeof(long), true>()},
      Named{MPI_UNSIGNED, integer<sizeof(unsigned), false>()},
      Named{MPI_UNSIGNED_LONG, integer<sizeof(unsigned long), false>()},
      Named{MPI_LONG_LONG, integer<sizeof(long long), true>()},
      Named{MPI_UNSIGNED_LONG_LONG, integer<sizeof(unsigned long long), false>()},
      Named{MPI_BYTE, UNISONO_BYTE},
      Named{MPI_CHAR, UNISONO_INT8},
      Named{MPI_SIGNED_CHAR, UNISONO_INT8},
      Named{MPI_UNSIGNED_CHAR, UNISONO_UINT8},
      Named{MPI_SHORT, integer<sizeof(short), true>()},
      Named{MPI_UNSIGNED_SHORT, integer<sizeof(unsigned short), false>()},
      Named{MPI_INT8_T, UNISONO_INT8},
      Named{MPI_INT16_T, UNISONO_INT16},
      Named{MPI_INT32_T, UNISONO_INT32},
      Named{MPI_INT64_T, UNISONO_INT64},
      Named{MPI_UINT8_T, UNISONO_UINT8},
      Named{MPI_UINT16_T, UNISONO_UINT16},
      Named{MPI_UINT32_T, UNISONO_UINT32},
      Named{MPI_UINT64_T, UNISONO_UINT64},
      Named{MPI_AINT, integer<sizeof(MPI_Aint), true>()},
      Named{MPI_OFFSET, integer<sizeof(MPI_Offset), true>()},
      Named{MPI_COUNT, integer<sizeof(MPI_Count), true>()},
      Named{MPI_C_BOOL, UNISONO_BOOL},
      Named{MPI_C_FLOAT_COMPLEX, UNISONO_COMPLEX64},
      Named{MPI_C_DOUBLE_COMPLEX, UNISONO_COMPLEX128},
      Named{MPI_FLOAT_INT, UNISONO_FP32_INT32},
      Named{MPI_DOUBLE_INT, UNISONO_FP64_INT32},
      Named{MPI_2INT, UNISONO_INT32_INT32},
  };
  add_fortran(table);
  return table;
}

const std::vector<Named>& named() {
  static const std::vector<Named> table = all_named();
  return table;
}

int combiner_of(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner;
}

/// Of a datatype that is in no case longer than its bytes (layout_of): whether these are in their order, too. Only what
/// programs often make is looked into.
bool in_order(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED) return true;
  if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_RESIZED &&
      combiner != MPI_COMBINER_STRUCT) {
    return false;
  }
  std::vector<int> counts(static_cast<std::size_t>(integers) + 1);
  std::vector<MPI_Aint> places(static_cast<std::size_t>(addresses) + 1);
  std::vector<MPI_Datatype> inner(static_cast<std::size_t>(types) + 1);
  PMPI_Type_get_contents(type, integers, addresses, types, counts.data(), places.data(), inner.data());
  const bool is_struct = combiner == MPI_COMBINER_STRUCT;
  bool answer = true;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(types); ++i) {
    const Layout layout = layout_of(inner[i]);
    answer = answer && layout.dense && (!is_struct || places[i] == end);
    if (is_struct) end += counts[i + 1] * layout.size;
    if (combiner_of(inner[i]) != MPI_COMBINER_NAMED) PMPI_Type_free(&inner[i]);
  }
  return answer;
}

/// The same, which a derived datatype knows once it was asked: as an attribute, for its handle may be another one's
/// later.
bool is_in_order(MPI_Datatype type) {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &made, nullptr);
    return made;
  }();
  static char yes = 0;
  static char no = 0;
  if (combiner_of(type) == MPI_COMBINER_NAMED) return true;
  void* value = nullptr;
  int has = 0;
  PMPI_Type_get_attr(type, key, static_cast<void*>(&value), &has);
  if (has == 0) {
    value = in_order(type) ? &yes : &no;
    PMPI_Type_set_attr(type, key, value);
  }
  return value == &yes;
}

std::optional<unisono_datatype> found(MPI_Datatype type) {
  for (const Named& one : named()) {
    if (one.type == type) return one.element;
  }
  return std::nullopt;
}

}  // namespace

std::optional<unisono_datatype> element_of(MPI_Datatype type) {
  if (const auto element = found(type)) return element;
  if (type == MPI_DATATYPE_NULL || combiner_of(type) != MPI_COMBINER_DUP) return std::nullopt;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  PMPI_Type_get_contents(type, 0, 0, 1, nullptr, nullptr, &inner);
  const auto element = element_of(inner);
  if (combiner_of(inner) != MPI_COMBINER_NAMED) PMPI_Type_free(&inner);
  return element;
}

bool is_predefined(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return false;
  const int combiner = combiner_of(type);
  if (combiner != MPI_COMBINER_DUP) return combiner == MPI_COMBINER_NAMED;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  PMPI_Type_get_contents(type, 0, 0, 1, nullptr, nullptr, &inner);
  const bool answer = is_predefined(inner);
  if (combiner_of(inner) != MPI_COMBINER_NAMED) PMPI_Type_free(&inner);
  return answer;
}

std::optional<unisono_op> operator_of(MPI_Op op) {
  struct NamedOp {
    MPI_Op op;
    unisono_op func;
  };
  static const std::array table{
      NamedOp{MPI_SUM, UNISONO_SUM},          NamedOp{MPI_MAX, UNISONO_MAX},
      NamedOp{MPI_MIN, UNISONO_MIN},          NamedOp{MPI_PROD, UNISONO_PROD},
      NamedOp{MPI_LAND, UNISONO_LOGICAL_AND}, NamedOp{MPI_LOR, UNISONO_LOGICAL_OR},
      NamedOp{MPI_LXOR, UNISONO_LOGICAL_XOR}, NamedOp{MPI_BAND, UNISONO_BITWISE_AND},
      NamedOp{MPI_BOR, UNISONO_BITWISE_OR},   NamedOp{MPI_BXOR, UNISONO_BITWISE_XOR},
      NamedOp{MPI_MINLOC, UNISONO_MINLOC},    NamedOp{MPI_MAXLOC, UNISONO_MAXLOC},
  };
  for (const NamedOp& one : table) {
    if (one.op == op) return one.func;
  }
  return std::nullopt;
}

Layout layout_of(MPI_Datatype type) {
  if (const auto element = found(type)) {
    const auto bytes = static_cast<std::int64_t>(bytes_of(static_cast<Datatype>(*element)));
    // Of pairs, MPI moves the two values, and leaves what lies between elements.
    if (*element < UNISONO_FP32_INT32) return {bytes, bytes, true};
  }
  Layout layout;
  int size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &lower, &extent);
  layout.size = size;
  layout.extent = extent;
  if (extent != size || lower != 0) return layout;
  layout.dense = is_in_order(type);
  return layout;
}

}  // namespace unisono::mpi
