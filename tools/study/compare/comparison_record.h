// The content of a result file of `routesim compare`, as values that are described once: its JSON
// is written and read by that description, and its document is built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/document.h"
#include "tools/results/result_record.h"
#include "tools/study/compare/comparison.h"

namespace routesim::tools {

struct ComparisonRecord {
  struct File {
    std::string path, scenario;
    std::optional<bool> interrupted = {};
    std::string version;
    std::vector<std::uint64_t> seeds;
  };
  struct Estimate {
    double mean = 0, low = 0, high = 0;  ///< NaN with one run.
  };
  struct Metric {
    Estimate base, changed, difference;
    std::optional<ReplicationsRecord::Percent> percent = {};  ///< Of the base.
    std::string verdict;
  };
  struct Stage {
    std::string name;
    bool reported = true;
    std::optional<double> requested_rate = {};
    std::optional<std::int64_t> concurrency = {};
    bool base_overloaded = false, new_overloaded = false;
    Named<Metric> metrics;
  };
  struct Pair {
    struct Summary {
      Named<Metric> metrics;
    };
    std::string base, changed;
    bool paired = true;
    std::string note;
    std::optional<std::string> stage = {};  ///< The only one that is compared.
    std::string base_trust, new_trust;
    std::vector<Stage> stages = {};
    Summary summary;

    /// The compared numbers: those of `stage`, else of the whole run.
    const Named<Metric>& metrics() const;
  };
  File base, changed;
  double confidence = 0;
  Decision result = Decision::kHolds;
  std::vector<Judgement> gates;
  std::vector<std::string> missing, remarks;
  std::vector<Change> changes;
  std::vector<std::string> untold;
  std::vector<Pair> pairs = {};
};

void describe(Describer& d, ComparisonRecord& r);

ComparisonRecord comparison_record(const Comparison& c);

/// The answer of the comparison. `path` is where the record stands in the data block of a page.
StudyDocument comparison_document(const ComparisonRecord& record, const std::string& path = {});

}  // namespace routesim::tools
