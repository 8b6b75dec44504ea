// A fully connected layer on several ranks: y = W x, fp32. Each rank has a block of the columns of W and the elements
// of x that belong to them; the sum of all partial products is the result, on rank 0 (ACCL+, OSDI '24, 6.2). What moves
// the sum is given by who includes this.
//
// Weights and inputs are small whole numbers, different on every rank, so that sums are exact in any order and the
// result can be compared with one computed in integers.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace layer {

using Clock = std::chrono::steady_clock;

/// Weight of output `row` and input `column`, and input `column`: -4 to 4.
inline int weight(std::int64_t row, std::int64_t column) {
  return static_cast<int>((row * 7 + column * 13 + 5) % 9) - 4;
}
inline int input(std::int64_t column) { return static_cast<int>((column * 11 + 3) % 9) - 4; }

/// What one rank has of a layer of `outputs` x `inputs`.
struct Part {
  Part(std::int64_t outputs, std::int64_t inputs, int rank, int ranks)
      : first(inputs * rank / ranks),
        end(inputs * (rank + 1) / ranks),
        weights(outputs, end - first),
        x(end - first),
        partial(outputs),
        y(outputs) {
    for (std::int64_t column = first; column < end; ++column) {
      x[column - first] = static_cast<float>(input(column));
      for (std::int64_t row = 0; row < outputs; ++row) {
        weights(row, column - first) = static_cast<float>(weight(row, column));
      }
    }
    y.setConstant(-1);
  }
  // Not inlined, as `sum` is not: callgrind counts by function (offload.py).
  [[gnu::noinline]] void multiply() { partial.noalias() = weights * x; }
  /// Whether y is the whole layer's.
  bool right(std::int64_t inputs) const {
    for (std::int64_t row = 0; row < y.size(); ++row) {
      std::int64_t sum = 0;
      for (std::int64_t column = 0; column < inputs; ++column) sum += weight(row, column) * input(column);
      if (static_cast<float>(sum) != y[row]) return false;
    }
    return true;
  }

  std::int64_t first, end;  ///< columns
  Eigen::MatrixXf weights;
  Eigen::VectorXf x, partial, y;
};

/// The sum of all ranks' partial products, on rank 0.
template <class Carrier>
[[gnu::noinline]] void sum(Carrier& carrier, Part& part) {
  carrier.reduce(part.partial, part.y);
}

/// Runs the layers that the arguments name, `OUTPUTSxINPUTS` or `OUTPUTSxINPUTSxREPETITIONS` each (a count
/// is for callgrind, not for times), and prints a JSON line for each on rank 0: medians
/// in microseconds. Timed are rank 0's product and the sum behind it, which ends when it has the result; all ranks
/// begin together. Of a Carrier: `rank()`, `ranks()`, `barrier()`, `reduce(partial, y)` to rank 0. Returns main's
/// status.
template <class Carrier>
int run(const char* system, Carrier& carrier, int count, char** arguments) {
  int status = 0;
  for (int i = 1; i < count; ++i) {
    char* rest = nullptr;
    const std::int64_t outputs = std::strtoll(arguments[i], &rest, 10);
    const std::int64_t inputs = *rest == 'x' ? std::strtoll(rest + 1, &rest, 10) : 0;
    const bool asks = *rest == 'x';
    const std::int64_t asked = asks ? std::strtoll(rest + 1, &rest, 10) : 0;
    if (outputs < 1 || inputs < carrier.ranks() || (asks && asked < 1) || *rest != '\0') {
      std::fprintf(stderr, "%s is no layer: OUTPUTSxINPUTS[xREPETITIONS], with an input for each rank at least\n",
                   arguments[i]);
      return 2;
    }
    Part part(outputs, inputs, carrier.rank(), carrier.ranks());
    const std::int64_t repetitions =
        asked != 0 ? asked : std::clamp<std::int64_t>(400'000'000 / (outputs * inputs), 20, 2000);
    std::vector<double> product, total;
    for (std::int64_t repetition = -repetitions / 10; repetition < repetitions; ++repetition) {
      carrier.barrier();
      const auto begin = Clock::now();
      part.multiply();
      const auto multiplied = Clock::now();
      // Counted, not timed: the others have come when rank 0 begins to sum, which then spends nothing on waiting.
      if (asked != 0 && carrier.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      sum(carrier, part);
      const auto end = Clock::now();
      if (repetition < 0) continue;  // caches and connections warm up
      product.push_back(std::chrono::duration<double, std::micro>(multiplied - begin).count());
      total.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    }
    if (carrier.rank() != 0) continue;
    const auto median = [](std::vector<double>& values) {
      std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
      return values[values.size() / 2];
    };
    const bool right = part.right(inputs);
    if (!right) status = 1;
    std::printf(
        "{\"system\": \"%s\", \"op\": \"vector_matrix\", \"ranks\": %d, \"outputs\": %lld, \"inputs\": %lld, "
        "\"bytes\": %lld, \"product_us\": %.2f, \"total_us\": %.2f, \"verified\": %s}\n",
        system, carrier.ranks(), static_cast<long long>(outputs), static_cast<long long>(inputs),
        static_cast<long long>(outputs * inputs * 4), median(product), median(total), right ? "true" : "false");
    std::fflush(stdout);
  }
  return status;
}

}  // namespace layer
