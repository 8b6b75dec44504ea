// The layer, summed by Unisono; buffers are ordinary memory:
//
//   g++ -std=c++20 -O3 -march=native -I/usr/include/eigen3 unisono.cpp -o layer $(python -m unisono.config --cflags
//   --libs) unisono run -n 2 ./layer 1024x1024
#include <span>
#include <unisono/unisono.hpp>

#include "layer.hpp"

namespace {

class Carrier {
 public:
  int rank() const { return static_cast<int>(world_.rank()); }
  int ranks() const { return static_cast<int>(world_.size()); }
  void barrier() { world_.barrier(); }
  void reduce(const Eigen::VectorXf& partial, Eigen::VectorXf& y) {
    world_.reduce(std::span(partial.data(), static_cast<std::size_t>(partial.size())),
                  std::span(y.data(), static_cast<std::size_t>(y.size())), unisono::Op::kSum, 0);
  }

 private:
  unisono::Context context_;
  const unisono::Communicator world_ = context_.world();
};

}  // namespace

int main(int count, char** arguments) {
  Carrier carrier;
  return layer::run("unisono", carrier, count, arguments);
}
