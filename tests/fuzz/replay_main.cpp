// replay [--mutate N] [--from M] TARGET PATH...: feeds every file at the paths (folders are
// searched) to one target, and then N random mixtures of them, starting with mixture number M. A
// table of cases (tests/base/case_table.h) counts as many files: each block but the expected one.
// replay --unpack FOLDER PATH... writes these inputs as files, for a fuzzer that reads folders.
// Works with any compiler, so that what the fuzzer found stays found. A failing mixture is written
// to ./fuzz-finding.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/base/case_table.h"
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

using Bytes = std::vector<std::uint8_t>;

/// One input and the name that a message gives it.
struct Input {
  std::string name;
  Bytes bytes;
};

std::vector<Input> inputs_below(const fs::path& path) {
  const auto bytes = [](const std::string& text) { return Bytes(text.begin(), text.end()); };
  std::vector<Input> inputs;
  for (const fs::path& file : files_below(path)) {
    if (file.extension() != ".table") {
      inputs.push_back({file.string(), bytes(routesim::case_table::read_bytes(file))});
      continue;
    }
    for (const auto& one : routesim::case_table::read_table(file))
      for (const auto& [name, text] : one.blocks)
        if (name != "expected")
          inputs.push_back({file.string() + ", " + one.name + ", " + name, bytes(text)});
  }
  return inputs;
}

int unpack(const fs::path& folder, const std::vector<std::string>& paths) {
  fs::create_directories(folder);
  std::size_t n = 0;
  for (const std::string& path : paths)
    for (const Input& input : inputs_below(path))
      std::ofstream(folder / std::to_string(n++), std::ios::binary)
          .write(reinterpret_cast<const char*>(input.bytes.data()), std::ssize(input.bytes));
  return 0;
}

/// Damaged copies of one input: what a fuzzer would try first.
std::vector<Bytes> variations(const Bytes& bytes) {
  std::vector<Bytes> all = {bytes};
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
  if (arguments.size() > 3 && arguments[1] == "--unpack")
    return unpack(arguments[2], {arguments.begin() + 3, arguments.end()});
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
    for (const Input& input : inputs_below(arguments[i])) {
      inputs.push_back(input.bytes);
      for (const Bytes& variation : variations(input.bytes)) {
        try {
          target->run(variation);
          ++executions;
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s (first %zu bytes, or one bit changed): %s\n", input.name.c_str(),
                       variation.size(), e.what());
          return 1;
        }
      }
    }
  }
  if (inputs.empty() || !run_mixtures(*target, inputs, from, mixtures)) return 1;
  std::printf("%s: %zu executions of %zu inputs, %lld mixtures\n", arguments[1].c_str(), executions,
              inputs.size(), static_cast<long long>(mixtures));
  return 0;
}
