// replay TARGET PATH...: feeds every file at the paths (folders are searched) to one target. Works
// with any compiler, so that what the fuzzer found stays found.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Damaged copies of one input: what a fuzzer would try first.
std::vector<std::vector<std::uint8_t>> variations(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::vector<std::uint8_t>> all = {bytes};
  for (std::size_t part = 1; part < 4; ++part)
    all.emplace_back(bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * part / 4));
  if (bytes.empty()) return all;
  for (std::size_t part = 0; part < 4; ++part) {
    all.push_back(bytes);
    all.back()[bytes.size() * part / 4] ^= static_cast<std::uint8_t>(1U << part * 2);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto* target =
      std::find_if(routesim::fuzz::kTargets.begin(), routesim::fuzz::kTargets.end(),
                   [&](const auto& t) { return argc > 2 && t.name == arguments[1]; });
  if (target == routesim::fuzz::kTargets.end()) {
    std::fprintf(stderr, "usage: replay TARGET PATH...\n");
    return 2;
  }
  std::size_t executions = 0;
  std::size_t files = 0;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    for (const fs::path& file : files_below(arguments[i])) {
      std::ifstream in(file, std::ios::binary);
      const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
      ++files;
      for (const std::vector<std::uint8_t>& variation : variations(bytes)) {
        try {
          target->run(variation);
          ++executions;
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s (first %zu bytes, or one bit changed): %s\n", file.c_str(),
                       variation.size(), e.what());
          return 1;
        }
      }
    }
  }
  std::printf("%s: %zu executions of %zu files\n", arguments[1].c_str(), executions, files);
  return files == 0 ? 1 : 0;
}
