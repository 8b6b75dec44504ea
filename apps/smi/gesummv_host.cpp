// The host of GESUMMV, for one rank and for two: gesummv FOLDER N. Files of the folder: a.bin, b.bin (N rows of N),
// x.bin; rank 0 writes y.bin.
#include <mpi.h>
#include <smi_generated_host.h>

#include "files.hpp"

using hlslib::ocl::Access;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string folder = argv[1];
  const int n = std::atoi(argv[2]);
  const std::size_t elements = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  const float alpha = 1.5F;
  const float beta = -0.25F;

  hlslib::ocl::Context context;
  auto program = context.MakeProgram(SmiLibrary(rank));
  SMI_Comm comm = SmiInit(rank, size);
  std::vector<hlslib::ocl::Buffer<float, Access::read>> inputs;
  const auto given = [&](const char* name, std::size_t count) {
    const std::vector<float> values = read_file<float>(folder + "/" + name, count);
    inputs.push_back(context.MakeBuffer<float, Access::read>(values.cbegin(), values.cend()));
    return inputs.back();
  };
  const auto x = given("x.bin", static_cast<std::size_t>(n));
  auto y = context.MakeBuffer<float, Access::write>(static_cast<std::size_t>(n));
  std::vector<hlslib::ocl::Kernel> kernels;
  if (size == 1) {
    kernels.push_back(program.MakeKernel("product_a", given("a.bin", elements), x, n, alpha));
    kernels.push_back(program.MakeKernel("product_b", given("b.bin", elements), x, n, beta));
    kernels.push_back(program.MakeKernel("add", y, n));
  } else if (rank == 0) {
    kernels.push_back(program.MakeKernel("product_a", given("a.bin", elements), x, n, alpha));
    kernels.push_back(program.MakeKernel("add", y, n, comm));
  } else {
    kernels.push_back(program.MakeKernel("product_b", given("b.bin", elements), x, n, beta, comm));
  }
  std::vector<std::future<std::pair<double, double>>> runs;
  for (auto& kernel : kernels) runs.push_back(kernel.ExecuteTaskAsync());
  for (auto& run : runs) run.wait();
  if (rank == 0) {
    std::vector<float> result(static_cast<std::size_t>(n));
    y.CopyToHost(result.begin());
    write_file(folder + "/y.bin", result);
  }
  MPI_Finalize();
  return 0;
}
