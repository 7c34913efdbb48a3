// Result files of every study made one page.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tools/render/page_data.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// One result file's text.
struct ResultText {
  std::string file;
  std::string text;
};

/// Reads results: JSON of `run`, `plan`, `tune`, `compare` or `validate`, JSON lines of `sweep`, or
/// a page made from them. Anything else is an error at its file. `goals` replace those of the
/// sweeps among them, whose presence `has_sweep` tells; a goal that cannot be read, or on a metric
/// that its sweep does not have, is an error. The page is empty then.
PageData read_results(const std::vector<ResultText>& results, Diagnostics& diagnostics,
                      const std::vector<std::string>& goals = {}, bool* has_sweep = nullptr);

/// The page of one run.
std::string render_html(const Report& report);

}  // namespace routesim::tools
