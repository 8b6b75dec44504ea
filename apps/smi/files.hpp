// Files of numbers, by which the hosts here get their data and give their results.
#ifndef UNISONO_APPS_SMI_FILES_HPP
#define UNISONO_APPS_SMI_FILES_HPP

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

template <class T>
std::vector<T> read_file(const std::string& path, std::size_t elements) {
  std::vector<T> values(elements);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(elements * sizeof(T)));
  if (!file) {
    std::fprintf(stderr, "%s does not hold %zu elements\n", path.c_str(), elements);
    std::exit(1);
  }
  return values;
}

template <class T>
void write_file(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file.flush()) {
    std::fprintf(stderr, "%s cannot be written\n", path.c_str());
    std::exit(1);
  }
}

#endif
