// The host of the stencil: stencil FOLDER ROWS COLUMNS STEPS PX PY, for PX * PY ranks. Reads the plane from plane.bin;
// each rank writes its tile to tile-RANK.bin.
#include <mpi.h>
#include <smi_generated_host.h>

#include <array>

#include "files.hpp"
#include "stencil.h"

using hlslib::ocl::Access;
using Bank = hlslib::ocl::Buffer<float, Access::readWrite>;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 7) cl::fail("stencil FOLDER ROWS COLUMNS STEPS PX PY");
  const std::string folder = argv[1];
  const int all_rows = std::atoi(argv[2]);
  const int all_columns = std::atoi(argv[3]);
  const int steps = std::atoi(argv[4]);
  const int px = std::atoi(argv[5]);
  const int py = std::atoi(argv[6]);
  const int rows = all_rows / px;
  const int columns = all_columns / py;
  const int words = columns / (B * W);
  if (px * py != size || rows * px != all_rows || words * B * W * py != all_columns || columns > MAX_WIDTH) {
    cl::fail(
        "the plane cannot be cut into so many tiles: there are PX * PY ranks, and a row of a tile is a multiple of " +
        std::to_string(B * W) + " elements, at most " + std::to_string(MAX_WIDTH));
  }
  const int x = rank / py;
  const int y = rank % py;

  hlslib::ocl::Context context;
  auto program = context.MakeProgram(SmiLibrary(rank));
  SMI_Comm comm = SmiInit(rank, size);
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(words) * W;
  const auto plane = read_file<float>(folder + "/plane.bin",
                                      static_cast<std::size_t>(all_rows) * static_cast<std::size_t>(all_columns));
  // Word j of a row is in bank j % B.
  const auto place = [&](int i, int column) {
    return static_cast<std::size_t>((i * words + column / (B * W)) * W + column % W);
  };
  std::array<std::vector<float>, B> contents;
  for (auto& content : contents) content.resize(2 * elements);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(x * rows + i) * static_cast<std::size_t>(all_columns);
      contents[static_cast<std::size_t>(j / W % B)][place(i, j)] =
          plane[at + static_cast<std::size_t>(y * columns + j)];
    }
  }
  std::vector<Bank> banks;
  for (const auto& content : contents) {
    banks.push_back(context.MakeBuffer<float, Access::readWrite>(content.cbegin(), content.cend()));
  }

  struct Side {
    const char* name;
    int flag;
    bool there;
    int neighbour;
    int extent;
  };
  const Side sides[] = {{"up", HAS_UP, x > 0, rank - py, words},
                        {"down", HAS_DOWN, x < px - 1, rank + py, words},
                        {"left", HAS_LEFT, y > 0, rank - 1, rows},
                        {"right", HAS_RIGHT, y < py - 1, rank + 1, rows}};
  int neighbours = 0;
  for (const Side& side : sides) neighbours |= side.there ? side.flag : 0;
  std::vector<hlslib::ocl::Kernel> kernels;
  for (int b = 0; b < B; ++b) {
    const auto& bank = banks[static_cast<std::size_t>(b)];
    kernels.push_back(program.MakeKernel("read_" + std::to_string(b), bank, rows, words, steps, neighbours));
    kernels.push_back(program.MakeKernel("write_" + std::to_string(b), bank, rows, words, steps));
  }
  kernels.push_back(program.MakeKernel("compute", rows, words, steps, neighbours));
  for (const Side& side : sides) {
    if (!side.there) continue;
    for (const std::string what : {"send_", "take_"}) {
      kernels.push_back(program.MakeKernel(what + side.name, side.extent, steps, side.neighbour, comm));
    }
  }
  std::vector<std::future<std::pair<double, double>>> runs;
  for (auto& kernel : kernels) runs.push_back(kernel.ExecuteTaskAsync());
  for (auto& run : runs) run.wait();

  for (std::size_t b = 0; b < B; ++b) banks[b].CopyToHost(contents[b].begin());
  std::vector<float> tile;
  const std::size_t half = steps % 2 == 0 ? 0 : elements;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) tile.push_back(contents[static_cast<std::size_t>(j / W % B)][half + place(i, j)]);
  }
  write_file(folder + "/tile-" + std::to_string(rank) + ".bin", tile);
  MPI_Finalize();
  return 0;
}
