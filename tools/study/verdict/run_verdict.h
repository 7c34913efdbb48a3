// Which variant wins, by how much, and in what words: one truth for the terminal, the JSON result,
// pages and notebooks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/results/result_record.h"
#include "tools/results/text_table.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// One sentence about the winner, or without one about the variant that the text names first,
/// beside the variant it is compared with.
struct VerdictLine {
  std::string text;
  std::optional<bool> better = true;  ///< Empty where neither is.
};

/// One thing to do now, with its command.
struct Step {
  std::string why;
  std::string command;
  std::string text() const { return why + ": " + command; }
};

/// How much load a variant holds.
struct Knee {
  std::string variant;
  std::string text = {};                 ///< `holds 15 req/s, overloaded from 20 req/s on`.
  std::optional<double> last_held = {};  ///< Requests/s: the highest rate below the knee.
  /// Requests/s: the lowest rate that overloads it or fails; empty = no knee was found.
  std::optional<double> first_overloaded = {};
  std::optional<Capacity> capacity = {};  ///< What it sustains, where that was found.
  std::string seen = {};                  ///< Then: what its stages show beside it; may be empty.
  bool too_short = false;  ///< Its highest rates are sent too shortly to show a knee.
};

struct Verdict {
  std::string base;                 ///< The variant that all others are compared with: the first.
  std::string winner;               ///< Empty where nobody wins.
  bool close = false;               ///< More seeds may change who wins.
  std::string headline;             ///< One or two sentences; true for any number of variants.
  std::vector<std::string> failed;  ///< Expectations that fail or are undecided.
  std::vector<VerdictLine> lines;
  std::string ranking;  ///< All variants, best first; empty for fewer than three.
  std::vector<Knee> knees;
  std::string overload;  ///< Which variants are overloaded where; empty for none.
  std::string goals;     ///< The latency goals that goodput counts by; may be empty.
  std::string trust;     ///< What step times rest on, and how far such results were off.
  std::vector<Step> next;
};

/// The verdict of a run. Variants that face the same load are compared by `Contest`; the first of
/// them is the base, and every sentence names it. Stages that are not reported, or that an
/// interrupt left unfinished, do not count.
Verdict verdict_of(const PageRun& run);

/// The verdict in lines of at most `width` columns, but for commands and names.
std::string render_verdict(const Verdict& verdict, bool colour, std::size_t width = 0);

/// The verdict as results have it, with plain spaces where a page does not break lines.
VerdictRecord verdict_record(const Verdict& verdict);

}  // namespace routesim::tools
