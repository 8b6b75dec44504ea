/* An operator of a reduction: of pairs of a value and an index the one with the larger value, and of equal values that
 * with the lower index. `world.load_operator("larger.c")`.
 */
#include <unisono_operator.h>

struct pair {
  float value;
  uint32_t index;
};

US_OPERATOR(struct pair, a, b) {
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}
