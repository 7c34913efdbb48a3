// What was expected, whether it holds, and the forms a build server reads.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tools/render/json_writer.h"
#include "tools/study/compare/difference.h"

namespace routesim::tools {

/// One expectation or gate, judged.
struct Judgement {
  std::string what;      ///< `ttft_ms.p99 < 500`.
  std::string scope;     ///< `llm-d-precise`, `llm-d-precise, stage 4`.
  SourceLocation where;  ///< Where it is written; no file for what stands on the command line.
  Decision decision = Decision::kHolds;
  std::string detail;  ///< What was found: `612.4 ± 20.1`.
};

/// "holds", "fails" or "undecided".
std::string decision_text(Decision d);

/// The worst of all: a failure counts more than what the intervals leave open. kHolds for none.
Decision overall(const std::vector<Judgement>& judgements);

/// One line per judgement, aligned; empty for none.
std::string judgements_text(const std::vector<Judgement>& judgements);

/// A Markdown table; empty for none.
std::string judgements_markdown(const std::vector<Judgement>& judgements);

/// A JSON array of objects.
void write_judgements(JsonWriter& json, const std::vector<Judgement>& judgements);

/// JUnit XML: one test case each; `fails` is a failure, `undecided` an error. Without judgements
/// there is one case which says that the command ran.
std::string render_junit(const std::string& suite, const std::vector<Judgement>& judgements);

/// GitHub workflow commands, `::error file=…,line=…::…` per failure and `::warning …` for what is
/// undecided, then a notice that sums up.
std::string render_github(const std::string& suite, const std::vector<Judgement>& judgements);

/// Text inside a cell of a Markdown table.
std::string markdown_cell(const std::string& text);

}  // namespace routesim::tools
