// The verdict above the tables: what a terminal shows first.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tools/render/chart/numbers.h"
#include "tools/results/text_table.h"
#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kTextIndent = 2;

/// Terminal colours (ECMA-48), around text that is laid out already.
enum class Paint { kNone, kBold, kRed, kGreen };

std::string painted(const std::string& text, Paint paint, bool colour) {
  if (!colour || paint == Paint::kNone) return text;
  // Not around the line break: a terminal would colour the rest of the next line.
  const std::size_t end = text.ends_with('\n') ? text.size() - 1 : text.size();
  const char* const code = paint == Paint::kBold ? "1" : paint == Paint::kRed ? "31" : "32";
  return fmt::format("\x1b[{}m{}\x1b[0m{}", code, text.substr(0, end), text.substr(end));
}

std::string paragraph(const std::string& text, std::size_t width) {
  const std::string indent(kTextIndent, ' ');
  return wrapped(printable(text, 4'000), kTextIndent, indent, width) + "\n";
}

/// A reason on its line, the command below it: unbroken, so that it can be copied.
std::string step_text(const Step& step, std::size_t width) {
  return paragraph(step.why + ":", width) + std::string(2 * kTextIndent, ' ') +
         printable(plain_spaces(step.command), 4'000) + "\n";
}

/// A row each: what it sustains, where that was found, or else what its stages show.
std::string knees_text(const std::vector<Knee>& knees, std::size_t width) {
  if (std::ranges::any_of(knees, [](const Knee& k) { return !k.capacity; })) {
    if (knees.size() == 1) return paragraph(knees.front().text, width);
    TextTable table(2);
    for (const Knee& knee : knees)
      table.add_row({"  " + printable(knee.variant), plain_spaces(knee.text)});
    return table.str(width);
  }
  TextTable table(2);
  std::string notes;
  table.add_row({"  variant", "sustains", "interval", "limited by"});
  for (const Knee& knee : knees) {
    const Capacity& c = *knee.capacity;
    table.add_row({"  " + printable(knee.variant),
                   plain_spaces(human(*c.rate, Unit::kRequestsPerSecond)),
                   plain_spaces(interval_text(c)), c.limit});
    if (!knee.seen.empty()) notes += paragraph(knee.variant + ": " + knee.seen + ".", width);
  }
  return table.str(width) + notes;
}

}  // namespace

std::string render_verdict(const Verdict& verdict, bool colour, std::size_t width) {
  const auto heading = [colour](const char* text) {
    return std::string("\n").append(painted(text, Paint::kBold, colour)).append("\n");
  };
  std::string out = heading("Verdict");
  for (const std::string& failed : verdict.failed)
    out += painted("! " + paragraph("expectation " + failed, width).substr(kTextIndent),
                   Paint::kRed, colour);
  out += painted(paragraph(verdict.headline, width), Paint::kBold, colour);
  for (const VerdictLine& line : verdict.lines) {
    const bool better = line.better.value_or(false);
    const char* const mark = !line.better ? "  * " : better ? "  + " : "  - ";
    const Paint paint = !line.better ? Paint::kNone : better ? Paint::kGreen : Paint::kRed;
    out += painted(wrapped(printable(line.text, 1'000), 2 * kTextIndent, mark, width) + "\n", paint,
                   colour);
  }
  if (!verdict.ranking.empty()) out += paragraph(verdict.ranking, width);
  if (!verdict.knees.empty()) out += heading("Load held") + knees_text(verdict.knees, width);
  out += heading("Trust");
  if (!verdict.goals.empty()) out += paragraph(verdict.goals, width);
  out += paragraph(verdict.trust, width);
  if (!verdict.next.empty()) out += heading("Next");
  for (const Step& step : verdict.next) out += step_text(step, width);
  return out;
}

}  // namespace routesim::tools
