// replay [--mutate N] [--from M] TARGET PATH...: feeds every file at the paths (folders are
// searched) to one target, and then N random mixtures of them, starting with mixture number M.
// Works with any compiler, so that what the fuzzer found stays found. A failing mixture is written
// to ./fuzz-finding.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"
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

using Bytes = std::vector<std::uint8_t>;

/// One of `inputs` with a few random changes: bytes set, removed, doubled, and pieces of others.
Bytes mixture(const std::vector<Bytes>& inputs, routesim::RandomStream& random) {
  Bytes bytes = inputs[random.below(inputs.size())];
  for (std::uint64_t change = 1 + random.below(6); change > 0; --change) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(bytes.size() + 1));
    const std::ptrdiff_t rest = std::ssize(bytes) - at;
    const auto length = static_cast<std::ptrdiff_t>(random.below(24));
    switch (random.below(4)) {
      case 0:
        if (rest > 0)
          bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(random.below(256));
        break;
      case 1:
        bytes.erase(bytes.begin() + at, bytes.begin() + at + std::min(rest, length));
        break;
      case 2: {
        const Bytes piece(bytes.begin() + at, bytes.begin() + at + std::min(rest, length));
        bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
        break;
      }
      default: {
        const Bytes& other = inputs[random.below(inputs.size())];
        const auto from = static_cast<std::ptrdiff_t>(random.below(other.size() + 1));
        const std::ptrdiff_t taken = std::min(std::ssize(other) - from, length);
        bytes.insert(bytes.begin() + at, other.begin() + from, other.begin() + from + taken);
      }
    }
  }
  return bytes;
}

/// Whether the mixtures `from`, `from + 1`, ... `from + n - 1` all went well.
bool run_mixtures(const routesim::fuzz::Target& target, const std::vector<Bytes>& inputs,
                  std::int64_t from, std::int64_t n) {
  for (std::int64_t i = from; i < from + n; ++i) {
    routesim::RandomStream random(static_cast<std::uint64_t>(i), routesim::Stream::kTest, 9);
    const Bytes bytes = mixture(inputs, random);
    try {
      target.run(bytes);
    } catch (const std::exception& e) {
      std::ofstream("fuzz-finding", std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
      std::fprintf(stderr, "mixture %lld, now in fuzz-finding: %s\n", static_cast<long long>(i),
                   e.what());
      return false;
    }
  }
  return true;
}

/// Takes an option and its number off the command line; 0 when it is not there.
std::int64_t take_number(std::vector<std::string>& arguments, const std::string& option) {
  if (arguments.size() < 3 || arguments[1] != option) return 0;
  const std::int64_t value = std::stoll(arguments[2]);
  arguments.erase(arguments.begin() + 1, arguments.begin() + 3);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  const std::int64_t mixtures = take_number(arguments, "--mutate");
  const std::int64_t from = take_number(arguments, "--from");
  const auto* target =
      std::find_if(routesim::fuzz::kTargets.begin(), routesim::fuzz::kTargets.end(),
                   [&](const auto& t) { return arguments.size() > 2 && t.name == arguments[1]; });
  if (target == routesim::fuzz::kTargets.end()) {
    std::fprintf(stderr, "usage: replay [--mutate N] [--from M] TARGET PATH...\n");
    return 2;
  }
  std::size_t executions = 0;
  std::vector<Bytes> inputs;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    for (const fs::path& file : files_below(arguments[i])) {
      std::ifstream in(file, std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
      inputs.push_back(bytes);
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
  if (inputs.empty() || !run_mixtures(*target, inputs, from, mixtures)) return 1;
  std::printf("%s: %zu executions of %zu files, %lld mixtures\n", arguments[1].c_str(), executions,
              inputs.size(), static_cast<long long>(mixtures));
  return 0;
}
