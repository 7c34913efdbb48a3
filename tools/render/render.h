// Parts that outputs of several studies share, as text for people, build servers and programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/results/difference.h"
#include "tools/results/result_set.h"

namespace routesim::tools {

/// The last line of a CSV file whose run was interrupted.
inline constexpr std::string_view kPartialLine = "# interrupted: the results are partial\n";

/// `text` as a CSV field that holds just this text: quoted when it holds a comma, a quote or a line
/// break (RFC 4180).
std::string csv_field(const std::string& text);

/// Text inside a cell of a Markdown table.
std::string markdown_cell(const std::string& text);

/// `ttft_ms.p99 < 500 (llm-d-precise)`: what is expected, and of what.
std::string title_of(const Judgement& j);

/// One line per judgement, aligned; empty for none.
std::string judgements_text(const std::vector<Judgement>& judgements);

/// A Markdown table; empty for none.
std::string judgements_markdown(const std::vector<Judgement>& judgements);

/// JUnit XML: one test case each; `fails` is a failure, `undecided` an error. Without judgements
/// there is one case which says that the command ran. Remarks are the suite's `system-out`.
std::string render_junit(const std::string& suite, const std::vector<Judgement>& judgements,
                         const std::vector<std::string>& remarks = {});

/// GitHub workflow commands, `::error file=…,line=…::…` per failure and `::warning …` for what is
/// undecided, then a notice that sums up and one per remark.
std::string render_github(const std::string& suite, const std::vector<Judgement>& judgements,
                          const std::vector<std::string>& remarks = {});

/// "seeds 1 to 5", "seed 7".
std::string seeds_text(const ResultSet& set);
std::string seeds_text(const std::vector<std::uint64_t>& seeds);

}  // namespace routesim::tools
