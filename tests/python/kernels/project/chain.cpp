#include <mpi.h>
#include <smi_generated_host.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int n = std::atoi(argv[1]);
  hlslib::ocl::Context context;
  auto program = context.MakeProgram(SmiLibrary(rank));
  SMI_Comm comm = SmiInit(rank, size);
  if (rank == 0) {
    program.MakeKernel("start", n, comm).ExecuteTask();
  } else {
    auto out = context.MakeBuffer<int, hlslib::ocl::Access::write>(static_cast<std::size_t>(n));
    program.MakeKernel("pass", out, n, comm).ExecuteTask();
    std::vector<int> result(static_cast<std::size_t>(n));
    out.CopyToHost(result.begin());
    std::string line = std::to_string(rank);
    for (const int value : result) line += " " + std::to_string(value);
    std::printf("%s\n", line.c_str());
  }
  MPI_Finalize();
  return 0;
}
