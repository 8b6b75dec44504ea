#include <mpi.h>
#include <smi_generated_host.h>

#include <cstdio>

using hlslib::ocl::Access;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int n = std::atoi(argv[1]);
  hlslib::ocl::Context context;
  auto program = context.MakeProgram(SmiLibrary(rank));
  SMI_Comm comm = SmiInit_vectors(rank, size);
  auto out = context.MakeBuffer<float, Access::write>(static_cast<std::size_t>(16 * n));
  auto give = program.MakeKernel("give", n, rank);
  auto take = program.MakeKernel("take", out, n, comm);
  auto first = give.ExecuteTaskAsync();
  auto second = take.ExecuteTaskAsync();
  first.wait();
  second.wait();
  std::vector<float> result(static_cast<std::size_t>(16 * n));
  out.CopyToHost(result.begin());
  std::string line = std::to_string(rank);
  for (const float value : result) line += " " + std::to_string(value);
  std::printf("%s\n", line.c_str());
  MPI_Finalize();
  return 0;
}
