#include <hlslib/intel/OpenCL.h>
#include <mpi.h>

#include <cstdlib>
#include <iostream>
#include <utils/ocl_utils.hpp>

#include "smi_generated_host.c"

using hlslib::ocl::Access;

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int n = std::atoi(argv[2]);
  std::vector<float> data(n), out(n);
  for (int i = 0; i < n; ++i) data[i] = rank * 1000 + i;
  hlslib::ocl::Context context;
  auto program = context.MakeProgram(argv[1]);
  std::vector<hlslib::ocl::Buffer<char, Access::read>> buffers;
  SMI_Comm comm = SmiInit_pipeline(rank, size, "no-routes", context, program, buffers);
  auto input = context.MakeBuffer<float, Access::read>(data.cbegin(), data.cend());
  auto output = context.MakeBuffer<float, Access::readWrite>(hlslib::ocl::MemoryBank::bank1, n);
  auto found = context.MakeBuffer<int, Access::write>(2);
  program.MakeKernel("forever", comm).ExecuteTaskFork();
  for (int root = 0; root < size; ++root) {
    std::vector<hlslib::ocl::Kernel> kernels;
    kernels.emplace_back(program.MakeKernel("poll", found));
    kernels.emplace_back(program.MakeKernel("scale_stage", input, n, 2.0f));
    kernels.emplace_back(program.MakeKernel("unpack", n));
    kernels.emplace_back(program.MakeKernel("exchange"));
    cl::Kernel exchange = kernels.back().kernel();
    const char its = static_cast<char>(root);
    exchange.setArg(0, sizeof(cl_mem), &output.devicePtr());
    exchange.setArg(1, sizeof(int), &n);
    exchange.setArg(2, sizeof(char), &its);
    exchange.setArg(3, sizeof(SMI_Comm), &comm);
    std::vector<std::future<std::pair<double, double>>> futures;
    MPI_Barrier(MPI_COMM_WORLD);
    for (auto& kernel : kernels) futures.emplace_back(kernel.ExecuteTaskAsync());
    for (auto& future : futures) future.wait();
    output.CopyToHost(out.begin());
    for (int i = 0; i < n; ++i) {
      float expected = 0;
      for (int r = 0; r < size; ++r) expected += (r * 1000 + i) * ((i / 4) % 2 == 0 ? 3 : 2);
      if (out[i] != expected) {
        std::cout << "wrong at " << i << ": " << out[i] << ", expected " << expected << std::endl;
        return 1;
      }
    }
    int last[2];
    found.CopyToHost(last);
    if (last[0] != rank * 1000 + n) return 1;
  }
  std::cout << "rank " << rank << " right\n";
  MPI_Finalize();
  return 0;
}
