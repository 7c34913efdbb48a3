// The content of a result file of `routesim validate`, described once, and the document it makes.
#pragma once

#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/render/document.h"
#include "tools/results/trust_errors.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

struct ValidationRecord {
  struct ClassError {
    bool held_out = false;
    TrustError error;
  };
  std::string version;
  std::vector<ClassError> by_class;  ///< What was fitted first, then what was held out.
  std::vector<ScenarioValidation> scenarios;
};

void describe(Describer& d, ValidationRecord& r);

/// Each row of the error tables takes its limit among `limits`.
ValidationRecord validation_record(const std::vector<ScenarioValidation>& all,
                                   const std::vector<RowLimit>& limits, const std::string& version);

/// Reads the JSON of `routesim validate`, strictly.
ValidationRecord read_validation_record(const ConfigNode& root, Diagnostics& diagnostics);

std::string validation_json(ValidationRecord& record);

/// Tidy CSV, one published number per row.
std::string validation_csv(const std::vector<ScenarioValidation>& all);

/// The answer of the validation. `path` is where the record stands in the data block of a page;
/// without `cells`, plain outputs leave the single numbers out.
StudyDocument validation_document(const ValidationRecord& record, bool cells = true,
                                  const std::string& path = {});

}  // namespace routesim::tools
