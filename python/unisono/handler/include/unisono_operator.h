/* What operators of reductions are written with (docs/handlers.md, "Operators"): `comm.load_operator("larger.c")`.
 *
 *     #include <unisono_operator.h>
 *
 *     struct pair { float value; uint32_t index; };
 *
 *     US_OPERATOR(struct pair, a, b) {
 *       return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
 *     }
 *
 * The body is that of a function of two elements, which returns one. An element has 1 to 64 bytes, and is laid out as C
 * does. The function must be associative; where results depend on the order of operands, it does not commute. It sees
 * nothing but its operands and constants, and what it writes to other memory is gone afterwards.
 */
#ifndef UNISONO_OPERATOR_H
#define UNISONO_OPERATOR_H

#include <unisono_handler.h>

enum { US_OPERATOR_BYTES = 4096 }; /* of one operand's block */

#define US_OPERATOR(type, left, right)                                                                  \
  static inline type us_combine(type left, type right);                                                 \
  _Static_assert(sizeof(type) >= 1 && sizeof(type) <= 64, "an operator's elements have 1 to 64 bytes"); \
  struct us_operator { /* what a loader finds at the begin of an operator's memory */                   \
    uint32_t magic, element_bytes, block, at_left, at_right;                                            \
    type lefts[US_OPERATOR_BYTES / sizeof(type)] __attribute__((aligned(128)));                         \
    type rights[US_OPERATOR_BYTES / sizeof(type)] __attribute__((aligned(128)));                        \
  } us_operator = {0x504f5355u,                                                                         \
                   sizeof(type),                                                                        \
                   US_OPERATOR_BYTES / sizeof(type),                                                    \
                   __builtin_offsetof(struct us_operator, lefts),                                       \
                   __builtin_offsetof(struct us_operator, rights),                                      \
                   {},                                                                                  \
                   {}};                                                                                 \
  int payload(void) {                                                                                   \
    for (uint32_t i = 0; i < us_length(); ++i)                                                          \
      us_operator.lefts[i] = us_combine(us_operator.lefts[i], us_operator.rights[i]);                   \
    return US_GO_ON;                                                                                    \
  }                                                                                                     \
  static inline type us_combine(type left, type right)

#endif /* UNISONO_OPERATOR_H */
