// The layer, summed by an MPI, for comparison.
#include <mpi.h>

#include "layer.hpp"

namespace {

class Carrier {
 public:
  Carrier() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void reduce(const Eigen::VectorXf& partial, Eigen::VectorXf& y) {
    MPI_Reduce(partial.data(), y.data(), static_cast<int>(partial.size()), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, ranks_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  Carrier carrier;
  const int status = layer::run("openmpi", carrier, count, arguments);
  MPI_Finalize();
  return status;
}
