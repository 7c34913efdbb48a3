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
/// sweeps among them; a goal that cannot be read, or on a metric that its sweep does not have, is
/// an error.
PageData read_results(const std::vector<ResultText>& results, Diagnostics& diagnostics,
                      const std::vector<std::string>& goals = {});

/// The page of one run.
std::string render_html(const Report& report);

/// The page of one result of this program, as its JSON (JSON lines of a sweep).
std::string page_of(const std::string& json);

}  // namespace routesim::tools
