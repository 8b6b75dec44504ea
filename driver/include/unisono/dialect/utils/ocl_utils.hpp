// What hosts of SMI's programs use of its utilities for OpenCL.
#ifndef UNISONO_DIALECT_OCL_UTILS_HPP
#define UNISONO_DIALECT_OCL_UTILS_HPP

#include <iostream>

#include "CL/cl.hpp"

class IntelFPGAOCLUtils {
 public:
  static const unsigned int AOCL_ALIGNMENT = 64;

  static bool initEnvironment(cl::Platform& /*platform*/, cl::Device& device, unsigned /*number*/, cl::Context& context,
                              cl::Program& program, const std::string& path, std::vector<std::string>& names,
                              std::vector<cl::Kernel>& kernels, std::vector<cl::CommandQueue>& queues) {
    program = cl::Program(path);
    for (const std::string& name : names) {
      kernels.emplace_back(program, name.c_str());
      queues.emplace_back(context, device);
    }
    return true;
  }
};

#endif
