// The answer of a study as values: headings, sentences, tables, charts and a verdict. A study says
// them; this folder draws them for the terminal, as Markdown, as a page, as JUnit XML and as
// annotations, the same way for every study.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tools/render/chart/dot_plot.h"
#include "tools/render/chart/goal_map.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/chart/scatter.h"
#include "tools/render/chart/svg_chart.h"
#include "tools/render/page/html_page.h"
#include "tools/results/difference.h"

namespace routesim::tools {

enum class Tone { kPlain, kGood, kBad };

/// Some words of one tone.
struct Phrase {
  std::string text;
  Tone tone = Tone::kPlain;
  bool strong = false;
};
using Sentence = std::vector<Phrase>;

struct Cell {
  std::string text;                  ///< For every output; pages prefer `number`.
  std::optional<Datum> number = {};  ///< The exact number and its place in the data block.
  Unit unit = Unit::kNone;           ///< Of `number`.
  bool as_written = false;           ///< Pages write `text` too, and keep the number beside it.
  Tone tone = Tone::kPlain;
  bool code = false;  ///< A path or a key.
};

struct Table {
  struct Column {
    std::string title;
    bool words = false;  ///< Aligned to the left.
  };
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};
};

using Chart = std::variant<LineChart, DotPlot, HeatMap, BarChart, StripChart, Scatter, GoalMap>;

/// Which outputs have a block.
enum class For { kAll, kPages, kPlain };

struct Heading {
  std::string text;
};
struct Paragraph {
  std::string text;
};
struct Charts {
  std::vector<Chart> charts;  ///< Pages only.
};
/// Blocks that a page folds away; plain outputs leave them out.
struct Fold {
  std::string title;
  std::vector<struct Block> blocks;
};
struct Block {
  std::variant<Heading, Paragraph, Table, Charts, Fold> content;
  For outputs = For::kAll;
};

/// The answer, in front of everything else.
struct StudyVerdict {
  std::string headline;
  std::vector<Judgement> judgements = {};
  std::vector<Sentence> points = {};
  std::vector<std::string> remarks = {};  ///< What a reader must know before the numbers.
  std::string fine = {};                  ///< How the verdict is made; pages only.
};

struct StudyDocument {
  std::string name;    ///< Of the suite of JUnit XML: `compare ladder`.
  std::string kicker;  ///< Above the title of a page.
  std::string title;
  StudyVerdict verdict;
  std::vector<std::pair<std::string, std::string>> facts;  ///< The files and versions behind it.
  std::vector<Block> blocks;
};

/// The formats that every document has: `table`, `markdown`, `junit` and `github`; a page needs the
/// result's JSON too (document_page).
std::string draw(const StudyDocument& document, std::string_view format);

/// The part of a page between its head and its foot.
PageBody page_body_of(const StudyDocument& document);

/// The page of one result, whose JSON becomes its data block.
std::string document_page(const StudyDocument& document, const std::string& json);

}  // namespace routesim::tools
