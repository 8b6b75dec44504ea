// Routes for tests on cables, made by `unisono route` when the test runs.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sim/cables/network.hpp"

namespace unisono::sim {

class Cables : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("unisono-cables-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int command(const std::string& arguments) const {
    const std::string line =
        std::string(UNISONO_PYTHON) + " -m unisono route " + arguments + " > " + (folder_ / "log").string() + " 2>&1";
    return WEXITSTATUS(std::system(line.c_str()));
  }

  /// Routes of a topology ("--torus 2x4"), with further options.
  Routes make(const std::string& topology, const std::string& options = "", int status = 0) const {
    const std::string file = (folder_ / "topology.json").string();
    const std::string routes = (folder_ / "routes").string();
    EXPECT_EQ(command(topology + " -o " + file), 0) << topology;
    EXPECT_EQ(command(file + " --ports 4 -o " + routes + " " + options), status) << topology << " " << options;
    return read_routes(routes);
  }

  std::filesystem::path folder_;
};

}  // namespace unisono::sim
