// A place in a text that is a list of runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/balancers/kit/prompt_text.h"

namespace routesim::policies {

/// The rest of a text.
class RunCursor {
 public:
  RunCursor(std::span<const TextRun> runs, std::int64_t length) : runs_(runs), left_(length) {
    settle();
  }
  std::int64_t left() const { return left_; }
  /// The next units, all of one run.
  TextRun run() const {
    const TextRun& r = runs_.front();
    return {.content = r.content,
            .offset = r.offset + within_,
            .length = std::min(r.length - within_, left_)};
  }
  void advance(std::int64_t units) {
    left_ -= units;
    within_ += units;
    settle();
  }
  /// Advances by at most so many units and returns them.
  std::vector<TextRun> take(std::int64_t units) {
    std::vector<TextRun> out;
    while (units > 0 && left_ > 0) {
      TextRun next = run();
      next.length = std::min(next.length, units);
      units -= next.length;
      advance(next.length);
      out.push_back(next);
    }
    return out;
  }

 private:
  void settle() {
    while (left_ > 0 && within_ >= runs_.front().length) {
      within_ -= runs_.front().length;
      runs_ = runs_.subspan(1);
    }
  }
  std::span<const TextRun> runs_;
  std::int64_t within_ = 0;  ///< Units of the first run that are behind.
  std::int64_t left_;
};

/// Units that two texts have in common, from here on.
inline std::int64_t shared_units(RunCursor a, RunCursor b) {
  std::int64_t same = 0;
  while (a.left() > 0 && b.left() > 0) {
    const TextRun x = a.run(), y = b.run();
    if (x.content != y.content || x.offset != y.offset) break;
    const std::int64_t step = std::min(x.length, y.length);
    same += step;
    a.advance(step);
    b.advance(step);
  }
  return same;
}

}  // namespace routesim::policies
