/* The tables of types of OpenSHMEM 1.5, as lists: LIST(X) is X(NAME, TYPE) for each row, where NAME stands in the names
 * of functions (shmem_NAME_put) and TYPE is the type in C. shmem.h declares functions by them, the library defines the
 * same functions by them, and the generic forms choose among them. Programs need none of this. */
#ifndef UNISONO_SHMEM_LISTS_H
#define UNISONO_SHMEM_LISTS_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* Integers by their names in C; together with the three types of real numbers no two are the same type. */
#define UNISONO_SHMEM_WIDE_SIGNED(X) X(int, int) X(long, long) X(longlong, long long)
#define UNISONO_SHMEM_WIDE_UNSIGNED(X) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define UNISONO_SHMEM_REAL(X) X(float, float) X(double, double) X(longdouble, long double)
#define UNISONO_SHMEM_BASIC(X)                                                                   \
  UNISONO_SHMEM_REAL(X)                                                                          \
  X(char, char)                                                                                  \
  X(schar, signed char)                                                                          \
  X(short, short) UNISONO_SHMEM_WIDE_SIGNED(X) X(uchar, unsigned char) X(ushort, unsigned short) \
      UNISONO_SHMEM_WIDE_UNSIGNED(X)

/* Other names for some of them. */
#define UNISONO_SHMEM_SIZED_WIDE(X) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
#define UNISONO_SHMEM_SIZED_NARROW(X) X(int8, int8_t) X(int16, int16_t) X(uint8, uint8_t) X(uint16, uint16_t)
#define UNISONO_SHMEM_SIZED(X) UNISONO_SHMEM_SIZED_NARROW(X) UNISONO_SHMEM_SIZED_WIDE(X)

/* Table of put and get; also of the collectives that move data. */
#define UNISONO_SHMEM_RMA_TYPES(X) UNISONO_SHMEM_BASIC(X) UNISONO_SHMEM_SIZED(X) X(size, size_t) X(ptrdiff, ptrdiff_t)
/* Put and get by the width of elements, in bytes: X(NAME, BYTES). */
#define UNISONO_SHMEM_RMA_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* Tables of atomics: those that count, those that only read and write, those on bits. */
#define UNISONO_SHMEM_AMO_BASIC(X) UNISONO_SHMEM_WIDE_SIGNED(X) UNISONO_SHMEM_WIDE_UNSIGNED(X)
#define UNISONO_SHMEM_AMO_TYPES(X) \
  UNISONO_SHMEM_AMO_BASIC(X) UNISONO_SHMEM_SIZED_WIDE(X) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define UNISONO_SHMEM_AMO_REAL(X) X(float, float) X(double, double)
#define UNISONO_SHMEM_AMO_BITS(X) UNISONO_SHMEM_WIDE_UNSIGNED(X) UNISONO_SHMEM_SIZED_WIDE(X)

/* Table of waits and tests. */
#define UNISONO_SHMEM_SYNC_BASIC(X) X(short, short) X(ushort, unsigned short) UNISONO_SHMEM_AMO_BASIC(X)
#define UNISONO_SHMEM_SYNC_TYPES(X) \
  UNISONO_SHMEM_SYNC_BASIC(X) UNISONO_SHMEM_SIZED_WIDE(X) X(size, size_t) X(ptrdiff, ptrdiff_t)

/* Tables of reductions of teams. */
#define UNISONO_SHMEM_BIT_TYPES(X) \
  X(uchar, unsigned char)          \
  X(ushort, unsigned short) UNISONO_SHMEM_WIDE_UNSIGNED(X) UNISONO_SHMEM_SIZED(X) X(size, size_t)
#define UNISONO_SHMEM_ORDER_TYPES(X) UNISONO_SHMEM_RMA_TYPES(X)
#define UNISONO_SHMEM_COMPLEX(X) X(complexf, float _Complex) X(complexd, double _Complex)
#define UNISONO_SHMEM_SUM_TYPES(X) UNISONO_SHMEM_RMA_TYPES(X) UNISONO_SHMEM_COMPLEX(X)

/* Tables of reductions of active sets. */
#define UNISONO_SHMEM_OLD_BIT_TYPES(X) X(short, short) UNISONO_SHMEM_WIDE_SIGNED(X)
#define UNISONO_SHMEM_OLD_ORDER_TYPES(X) UNISONO_SHMEM_OLD_BIT_TYPES(X) UNISONO_SHMEM_REAL(X)
#define UNISONO_SHMEM_OLD_SUM_TYPES(X) UNISONO_SHMEM_OLD_ORDER_TYPES(X) UNISONO_SHMEM_COMPLEX(X)

/* clang-format on */

#endif
