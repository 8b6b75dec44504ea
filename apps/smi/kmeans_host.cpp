// The host of k-means: kmeans FOLDER POINTS ROUNDS. Each of POINTS points of the folder's points.bin is of one rank, in
// blocks; centres.bin has those to begin with. Each rank writes centres-RANK.bin and labels-RANK.bin.
#include <mpi.h>
#include <smi_generated_host.h>

#include "files.hpp"
#include "kmeans.h"

using hlslib::ocl::Access;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) cl::fail("kmeans FOLDER POINTS ROUNDS");
  const std::string folder = argv[1];
  const auto all = static_cast<std::size_t>(std::atol(argv[2]));
  const int rounds = std::atoi(argv[3]);
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t begin = all * static_cast<std::size_t>(rank) / ranks;
  const std::size_t end = all * static_cast<std::size_t>(rank + 1) / ranks;
  const int count = static_cast<int>(end - begin);

  hlslib::ocl::Context context;
  auto program = context.MakeProgram(SmiLibrary(rank));
  SMI_Comm comm = SmiInit(rank, size);
  const auto points = read_file<float>(folder + "/points.bin", all * DIMS);
  const auto first = read_file<float>(folder + "/centres.bin", CLUSTERS * DIMS);
  auto own = context.MakeBuffer<float, Access::read>(points.cbegin() + static_cast<long>(begin * DIMS),
                                                     points.cbegin() + static_cast<long>(end * DIMS));
  auto starts = context.MakeBuffer<float, Access::read>(first.cbegin(), first.cend());
  auto centres = context.MakeBuffer<float, Access::write>(CLUSTERS * DIMS);
  auto labels = context.MakeBuffer<int, Access::write>(end - begin);
  hlslib::ocl::Kernel kernels[] = {program.MakeKernel("give_centres", starts, rounds),
                                   program.MakeKernel("find_nearest", own, count, rounds),
                                   program.MakeKernel("make_means", centres, labels, count, rounds, comm)};
  std::vector<std::future<std::pair<double, double>>> runs;
  for (auto& kernel : kernels) runs.push_back(kernel.ExecuteTaskAsync());
  for (auto& run : runs) run.wait();

  std::vector<float> result(CLUSTERS * DIMS);
  std::vector<int> chosen(end - begin);
  centres.CopyToHost(result.begin());
  labels.CopyToHost(chosen.begin());
  write_file(folder + "/centres-" + std::to_string(rank) + ".bin", result);
  write_file(folder + "/labels-" + std::to_string(rank) + ".bin", chosen);
  MPI_Finalize();
  return 0;
}
