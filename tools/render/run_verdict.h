// Which variant wins, by how much, and in what words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/render/html_page.h"
#include "tools/render/page_data.h"

namespace routesim::tools {

/// One measure on which the winner differs from the variant it is compared with.
struct VerdictLine {
  std::string text;
  bool better = true;
};

struct Verdict {
  std::string headline;
  std::vector<VerdictLine> lines;
  std::string fine_print;  ///< How far it can be trusted.
};

/// The verdict of a run. The winner is the variant with the most goodput where goals were given,
/// otherwise with the lowest mean request latency among those that fail no more than the best one
/// plus 1 % of the requests. It is compared with the first variant, or when it is the first, with
/// the next best. Differences below 1 % are not called differences.
Verdict verdict_of(const PageRun& run);

/// The measures of a whole run that tables and verdict use, in order.
const std::vector<Shown>& key_measures();

}  // namespace routesim::tools
