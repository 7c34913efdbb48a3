// The answer of a study as values: headings, sentences, tables, charts and a verdict. A study says
// them; this folder draws them for the terminal, as Markdown, as a page, as JUnit XML and as
// annotations, the same way for every study.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/scalar_parse.h"
#include "tools/render/chart/chart.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/page/html_page.h"
#include "tools/results/result_set.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

// Metrics by the names of `compare`, `sweep` and `plan` (`ttft_ms.p90`) as pages show them.

struct MetricView {
  std::string title;  ///< `TTFT p90`, `output tokens/s`; a name that is no metric stays as it is.
  Unit unit = Unit::kNone;
  double scale = 1;             ///< From the named unit to the base unit.
  bool less_is_better = false;  ///< Meaningless where neither direction is better.
  bool has_direction = false;
};

MetricView metric_view(std::string_view name);

/// A number of a run by its key in the metric table, with its statistic where it has several:
/// `ttft.p90`, `output_throughput`.
struct Measure {
  std::string key;
  std::string title;  ///< In words: `first token, p90`.
  Unit unit = Unit::kNone;
  bool less_is_better = false;  ///< Meaningless where neither direction is better.
  bool has_direction = false;
};
Measure measure(std::string_view key);

/// `datum` in base units, with the stored number as its `raw`.
Datum in_base_unit(Datum datum, const MetricView& view);

/// The number as a point of a chart, which no interval leads below 0.
inline ChartPoint point_of(double x, const Datum& y, bool overloaded) {
  return {.x = x,
          .y = y.value,
          .low = y.low ? std::optional(std::max(0.0, *y.low)) : std::nullopt,
          .high = y.high,
          .overloaded = overloaded};
}

// Parts that outputs of several studies share, as text for people, build servers and programs.

/// The last line of a CSV file whose run was interrupted.
inline constexpr std::string_view kPartialLine = "# interrupted: the results are partial\n";

/// `text` as a CSV field that holds just this text: quoted when it holds a comma, a quote or a line
/// break (RFC 4180).
std::string csv_field(const std::string& text);

/// A field of any kind: numbers as the shortest text that reads back, nothing for an absent one.
inline std::string csv_value(std::string_view text) { return csv_field(std::string(text)); }
inline std::string csv_value(double v) { return number_text(v); }
inline std::string csv_value(std::integral auto v) { return std::to_string(v); }
template <class T>
std::string csv_value(const std::optional<T>& v) {
  return v ? csv_value(*v) : std::string();
}
/// A line of CSV.
std::string csv_line(const auto&... fields) {
  std::string line;
  ((line += csv_value(fields) + ","), ...);
  line.back() = '\n';
  return line;
}

/// Text inside a cell of a Markdown table.
std::string markdown_cell(const std::string& text);

/// `ttft_ms.p99 < 500 (llm-d-precise)`: what is expected, and of what.
std::string title_of(const Judgement& j);

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

enum class Tone { kPlain, kGood, kBad };

/// Some words of one tone.
struct Phrase {
  std::string text;
  Tone tone = Tone::kPlain;
  bool strong = false;
  bool code = false;  ///< A command.
};
using Sentence = std::vector<Phrase>;

struct Cell {
  std::string text = {};             ///< For every output; pages prefer `number`.
  std::optional<Datum> number = {};  ///< The exact number and its place in the data block.
  Unit unit = Unit::kNone;           ///< Of `number`.
  bool as_written = false;           ///< Pages write `text` too, and keep the number beside it.
  Tone tone = Tone::kPlain;
  bool code = false;  ///< A path or a key.
  Phrase note = {};   ///< On pages, behind the number: a change, or a warning.
};

struct Table {
  struct Column {
    std::string title;
    bool words = false;                      ///< Aligned to the left.
    std::string note = {};                   ///< On pages, below the title.
    std::optional<std::size_t> series = {};  ///< On pages, the key of this series' colour.
  };
  /// A heading of plain outputs above several columns.
  struct Group {
    std::size_t first = 0, columns = 0;
    std::string title;
  };
  std::string title = {};
  std::vector<Column> columns = {};
  std::vector<Group> groups = {};
  std::vector<std::vector<Cell>> rows = {};
};

/// Which outputs have a block.
enum class For { kAll, kPages, kPlain };

struct Heading {
  std::string text;
};
struct Paragraph {
  std::string text;
  bool fine = false;  ///< Small on pages.
};
/// A list of sentences: `note: ...` in plain outputs.
struct Notes {
  std::vector<std::string> texts;
};
/// Text to copy, as it is.
struct Listing {
  std::string text;
  std::string file = {};  ///< The name that a page saves it under; empty = not at all.
};
struct Charts {
  std::vector<Chart> charts = {};  ///< Pages only.
  bool small = false;              ///< Three beside each other.
  std::string title = {};
};
/// Blocks that a page folds away; plain outputs leave them out.
struct Fold {
  std::string title;
  std::vector<struct Block> blocks = {};
  bool open = false;
  bool only_on_screen = false;  ///< Left out on paper.
};
struct Block {
  std::variant<Heading, Paragraph, Notes, Listing, Table, Charts, Fold> content;
  For outputs = For::kAll;
};

/// The answer, in front of everything else.
struct StudyVerdict {
  /// More sentences of one kind: what each variant holds, what to do next.
  struct Part {
    std::string title;
    std::vector<Sentence> points = {};
  };
  std::string headline;
  std::optional<Chart> picture = {};  ///< The answer drawn, in the first screen; pages only.
  std::vector<Judgement> judgements = {};
  std::vector<Sentence> points = {};
  std::vector<Part> parts = {};           ///< Pages only.
  std::vector<std::string> remarks = {};  ///< What a reader must know before the numbers.
  std::string fine = {};                  ///< How the verdict is made, behind everything else.
};

struct StudyDocument {
  std::string name;    ///< Of the suite of JUnit XML: `compare ladder`.
  std::string kicker;  ///< Above the title of a page.
  std::string title;
  StudyVerdict verdict;
  std::vector<std::pair<std::string, std::string>> facts =
      {};  ///< The files and versions behind it.
  std::vector<Block> blocks = {};
  std::vector<ExportTable> data = {};  ///< The numbers behind it, for `report --export`.
  std::vector<std::string> log = {};   ///< For JUnit XML and annotations, which have no tables.
};

/// The formats that every document has: `table`, `markdown`, `junit` and `github`; a page needs the
/// result's JSON too (document_page).
std::string draw(const StudyDocument& document, std::string_view format, std::size_t width = 0);

/// The part of a page between its head and its foot.
PageBody page_body_of(const StudyDocument& document);

/// The page of one result, whose JSON becomes its data block.
std::string document_page(const StudyDocument& document, const std::string& json);

}  // namespace routesim::tools
