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

#include "tools/render/chart/chart.h"
#include "tools/render/page/html_page.h"
#include "tools/results/difference.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

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
  std::vector<Chart> charts;  ///< Pages only.
  bool small = false;         ///< Three beside each other.
  std::string title = {};
};
/// Blocks that a page folds away; plain outputs leave them out.
struct Fold {
  std::string title;
  std::vector<struct Block> blocks;
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
    std::vector<Sentence> points;
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
  std::vector<std::pair<std::string, std::string>> facts;  ///< The files and versions behind it.
  std::vector<Block> blocks;
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
