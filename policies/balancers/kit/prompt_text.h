// The text of a prompt as balancers compare and count it.
#pragma once

#include <cstdint>
#include <span>

namespace routesim::policies {

/// `length` consecutive units of an endless text named `content`, from `offset` on. Unit k of a run
/// is (content, offset + k); two units are equal exactly when both numbers are.
struct TextRun {
  std::uint64_t content = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool operator==(const TextRun&) const = default;
};

/// A prompt as a list of runs. Real text has one run of length 1 per byte (content = the byte,
/// offset 0) and 1 character per unit. A simulated prompt has one run per piece that prompts may
/// share, one unit per token, and several characters per unit: a tree or a list of blocks then
/// holds a handful of runs where the product holds thousands of characters.
struct PromptText {
  std::span<const TextRun> runs = {};
  double characters_per_unit = 1;

  std::int64_t units() const {
    std::int64_t sum = 0;
    for (const TextRun& run : runs) sum += run.length;
    return sum;
  }
  /// Length in characters, which products also use where they say bytes.
  double characters() const { return static_cast<double>(units()) * characters_per_unit; }
};

}  // namespace routesim::policies
