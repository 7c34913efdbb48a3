#include "tools/render/document.h"

#include <algorithm>
#include <array>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/svg.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

Unit unit_of(const MetricRow& row) {
  if (row.is_time()) return Unit::kSeconds;
  if (row.is_share()) return Unit::kRatio;
  if (row.quantity == MetricKind::kTokenRate) return Unit::kTokensPerSecond;
  return row.quantity == MetricKind::kRequestRate ? Unit::kRequestsPerSecond : Unit::kCount;
}

std::string with_statistic(std::string title, const std::string& statistic) {
  if (statistic.empty()) return title;
  if (statistic == "mean" || statistic == "median") return statistic + " " + title;
  return title + " " + statistic;
}

}  // namespace

MetricView metric_view(std::string_view name) {
  MetricView view{.title = std::string(name)};
  const Parsed<MetricName> parsed = parse_metric_name(name);
  if (!parsed.value) return view;
  const MetricName& m = *parsed.value;
  const std::string statistic = name.find('.') == std::string_view::npos ? "" : m.statistic;
  view.has_direction = m.has_direction;
  view.less_is_better = m.direction == sim::Direction::kSmallerIsBetter;
  const MetricRow& row = *find_metric(m.metric);
  view.title = with_statistic(std::string(row.title), statistic);
  view.unit = row.is_share() && m.unit == "%" ? Unit::kPercent : unit_of(row);
  if (row.is_time()) view.scale = m.unit == "ms" ? 1e-3 : m.unit == "us" ? 1e-6 : 1;
  return view;
}

Measure measure(std::string_view key) {
  const std::size_t dot = key.find('.');
  Measure out{.key = std::string(key), .title = std::string(key)};
  const MetricRow* const row = find_metric(key.substr(0, dot));
  if (row == nullptr) return out;
  out.title = row->words.empty() ? row->title : row->words;
  if (dot != key.npos) out.title.append(", ").append(key.substr(dot + 1));
  out.unit = unit_of(*row);
  out.less_is_better = row->better == Better::kSmaller;
  out.has_direction = row->better != Better::kNeither;
  return out;
}

Datum in_base_unit(Datum datum, const MetricView& view) {
  if (view.scale == 1) return datum;
  datum.raw = datum.value;
  datum.value *= view.scale;
  if (datum.low) *datum.low *= view.scale;
  if (datum.high) *datum.high *= view.scale;
  return datum;
}

namespace {

std::size_t count_decided(const std::vector<Judgement>& judgements, Decision d) {
  return static_cast<std::size_t>(
      std::ranges::count_if(judgements, [d](const Judgement& j) { return j.decision == d; }));
}

/// Text for XML, attribute values included. Control characters have no place in XML 1.0.
std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (const auto entity = markup_entity(c); !entity.empty()) {
      out += entity;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += "&#" + std::to_string(code) + ";";
    } else {
      out += code < 0x20 ? '?' : c;
    }
  }
  return out;
}

/// Escapes of GitHub's workflow commands; properties escape two characters more.
std::string github_text(const std::string& text, bool is_property) {
  std::string out;
  for (const char c : escaped(text, "\r\n")) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (is_property && c == ':') {
      out += "%3A";
    } else if (is_property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

std::string place_of(const Judgement& j) {
  return j.where.line > 0 ? j.where.file + ":" + std::to_string(j.where.line) : j.where.file;
}

std::string totals(const std::vector<Judgement>& judgements) {
  return std::to_string(count_decided(judgements, Decision::kHolds)) + " hold, " +
         std::to_string(count_decided(judgements, Decision::kFails)) + " fail, " +
         std::to_string(count_decided(judgements, Decision::kUndecided)) + " undecided";
}

}  // namespace

std::string title_of(const Judgement& j) {
  return j.scope.empty() ? j.what : j.what + " (" + j.scope + ")";
}

std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : escaped(text, "\n\r\t")) {
    if (c == '|' || c == '\\' || c == '`' || c == '<' || c == '*' || c == '_') out += '\\';
    out += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  }
  return out;
}

std::string judgements_markdown(const std::vector<Judgement>& judgements) {
  if (judgements.empty()) return {};
  constexpr std::array<const char*, 3> kMarks = {"✅ holds", "❌ **fails**", "❔ undecided"};
  std::string out = "| | expected | of | found |\n|---|---|---|---|\n";
  for (const Judgement& j : judgements)
    out += "| " + std::string(kMarks[static_cast<std::size_t>(j.decision)]) + " | " +
           markdown_cell(j.what) + " | " + markdown_cell(j.scope) + " | " +
           markdown_cell(j.detail) + " |\n";
  return out;
}

std::string render_junit(const std::string& suite, const std::vector<Judgement>& judgements,
                         const std::vector<std::string>& remarks) {
  const std::string tests = std::to_string(std::max<std::size_t>(judgements.size(), 1));
  const std::string totals_text =
      " tests=\"" + tests + "\" failures=\"" +
      std::to_string(count_decided(judgements, Decision::kFails)) + "\" errors=\"" +
      std::to_string(count_decided(judgements, Decision::kUndecided)) + "\"";
  const std::string name = xml_text(suite);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"routesim\"" +
                    totals_text + ">\n  <testsuite name=\"" + name + "\"" + totals_text + ">\n";
  if (judgements.empty())
    out += "    <testcase classname=\"" + name + "\" name=\"ran without expectations\"/>\n";
  for (const Judgement& j : judgements) {
    out += "    <testcase classname=\"" + name + "\" name=\"" + xml_text(title_of(j)) + "\"";
    if (!j.where.file.empty()) out += " file=\"" + xml_text(j.where.file) + "\"";
    if (j.where.line > 0) out += " line=\"" + std::to_string(j.where.line) + "\"";
    if (j.decision == Decision::kHolds) {
      out += ">\n      <system-out>found " + xml_text(j.detail) + "</system-out>\n";
    } else {
      const bool fails = j.decision == Decision::kFails;
      const std::string tag = fails ? "failure" : "error";
      out += ">\n      <" + tag + " type=\"" + (fails ? "failed" : "inconclusive") +
             "\" message=\"" + xml_text("found " + j.detail) + "\">" + xml_text(place_of(j)) +
             "</" + tag + ">\n";
    }
    out += "    </testcase>\n";
  }
  if (!remarks.empty()) {
    out += "    <system-out>";
    for (const std::string& remark : remarks) out += xml_text(remark) + "\n";
    out += "</system-out>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

std::string render_github(const std::string& suite, const std::vector<Judgement>& judgements,
                          const std::vector<std::string>& remarks) {
  std::string out;
  for (const Judgement& j : judgements) {
    if (j.decision == Decision::kHolds) continue;
    out += j.decision == Decision::kFails ? "::error " : "::warning ";
    if (!j.where.file.empty()) out += "file=" + github_text(j.where.file, true) + ",";
    if (j.where.line > 0)
      out +=
          "line=" + std::to_string(j.where.line) + ",col=" + std::to_string(j.where.column) + ",";
    out +=
        "title=" + github_text(suite, true) + "::" +
        github_text(title_of(j) + ": " + decision_text(j.decision) + ", found " + j.detail, false) +
        "\n";
  }
  const auto notice = [&](const std::string& text) {
    out += "::notice title=" + github_text(suite, true) + "::" + github_text(text, false) + "\n";
  };
  notice(judgements.empty() ? "ran without expectations" : totals(judgements));
  for (const std::string& remark : remarks) notice(remark);
  return out;
}

std::string csv_field(const std::string& text) {
  // A spreadsheet would run it; a number is one all the same.
  const bool formula = !text.empty() &&
                       std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
                       !number_from(text);
  if (!formula && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = formula ? "\"'" : "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  if (seeds.empty()) return "no seed";
  if (seeds.size() == 1) return "seed " + std::to_string(seeds.front());
  return "seeds " + std::to_string(seeds.front()) + " to " + std::to_string(seeds.back());
}

std::string seeds_text(const ResultSet& set) {
  const auto differs = [&set](const VariantValues& v) {
    return !v.seeds.empty() && v.seeds != set.seeds;
  };
  if (std::ranges::none_of(set.variants, differs)) return seeds_text(set.seeds);
  std::string out;
  for (const VariantValues& v : set.variants)
    out += (out.empty() ? "" : "; ") + printable(v.name) + " " +
           seeds_text(v.seeds.empty() ? set.seeds : v.seeds);
  return out;
}

namespace {

constexpr std::size_t kLongest = 2000;  ///< Characters of a text that may come from a file.

std::string sentence_text(const Sentence& sentence) {
  std::string out;
  for (const Phrase& words : sentence) out += words.text;
  return out;
}

// ------------------------------------------------------------------------------ terminal

std::string table_text(const Table& table, std::size_t width) {
  const auto left = std::ranges::find(table.columns, false, &Table::Column::words);
  TextTable out(static_cast<std::size_t>(left - table.columns.begin()));
  std::vector<std::string> head;
  for (const Table::Column& column : table.columns) head.push_back(column.title);
  out.add_row(std::move(head));
  for (const Table::Group& group : table.groups)
    out.add_heading(group.first, group.columns, group.title);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(printable(cell.text, kLongest));
    out.add_row(std::move(cells));
  }
  return (table.title.empty() ? "" : "\n" + printable(table.title, kLongest) + "\n") +
         out.str(width);
}

/// A line of its own, broken where it is too long.
std::string line_of(const std::string& text, std::size_t width, const std::string& first = "") {
  constexpr std::size_t kIndent = 2;
  return wrapped(printable(text, kLongest), first.empty() ? 0 : kIndent, first, width) + "\n";
}

/// One line per judgement, aligned; empty for none.
std::string judgements_text(const std::vector<Judgement>& judgements) {
  if (judgements.empty()) return {};
  TextTable table(4);
  table.add_row({"expected", "of", "", "found"});
  for (const Judgement& j : judgements)
    table.add_row({printable(j.what, 200), printable(j.scope, 200), decision_text(j.decision),
                   printable(j.detail, 200)});
  return table.str();
}

std::string render_text(const StudyDocument& document, std::size_t width) {
  std::string out;
  if (document.facts.empty() && !document.kicker.empty()) {
    out = printable(document.kicker, kLongest) + "\n";
    if (document.kicker.find(document.title) == std::string::npos)
      out += printable(document.title, kLongest) + "\n";
  }
  std::size_t widest = 0;
  for (const auto& [name, text] : document.facts) widest = std::max(widest, name.size());
  for (const auto& [name, text] : document.facts)
    out +=
        name + ":" + std::string(widest - name.size() + 1, ' ') + printable(text, kLongest) + "\n";
  const StudyVerdict& verdict = document.verdict;
  if (!verdict.headline.empty()) out += "\n" + line_of(verdict.headline, width);
  for (const Sentence& point : verdict.points) out += line_of(sentence_text(point), width, "  ");
  for (const std::string& remark : verdict.remarks) out += line_of(remark, width, "note: ");
  if (!verdict.judgements.empty()) out += "\n" + judgements_text(verdict.judgements);
  for (const Block& block : document.blocks) {
    if (block.outputs == For::kPages) continue;
    if (const auto* heading = std::get_if<Heading>(&block.content))
      out += "\n" + printable(heading->text, kLongest) + "\n";
    if (const auto* paragraph = std::get_if<Paragraph>(&block.content))
      out += line_of(paragraph->text, width);
    if (const auto* notes = std::get_if<Notes>(&block.content))
      for (const std::string& text : notes->texts) out += line_of(text, width, "note: ");
    if (const auto* listing = std::get_if<Listing>(&block.content)) out += listing->text + "\n";
    if (const auto* table = std::get_if<Table>(&block.content)) out += table_text(*table, width);
  }
  if (!verdict.fine.empty()) out += "\n" + line_of(verdict.fine, width);
  return out;
}

// ------------------------------------------------------------------------------ Markdown

std::string markdown_of(const Table& table) {
  std::string out, rule = "|";
  if (!table.title.empty()) out.append("**").append(markdown_cell(table.title)).append("**\n\n");
  out += "|";
  for (const Table::Column& column : table.columns) {
    out.append(" ").append(markdown_cell(column.title)).append(" |");
    rule += column.words ? "---|" : "--:|";
  }
  out.append("\n").append(rule).append("\n");
  for (const std::vector<Cell>& row : table.rows) {
    out += "|";
    for (const Cell& cell : row) {
      const std::string text = printable(cell.text, kLongest);
      out.append(cell.code ? " `" : " ").append(cell.code ? text : markdown_cell(text));
      out.append(cell.code ? "` |" : " |");
    }
    out += "\n";
  }
  return out + "\n";
}

std::string render_markdown(const StudyDocument& document) {
  std::string out;
  if (!document.title.empty()) out = "## " + markdown_cell(document.title) + "\n\n";
  const StudyVerdict& verdict = document.verdict;
  if (!verdict.headline.empty()) out += "**" + markdown_cell(verdict.headline) + "**\n\n";
  for (const Sentence& point : verdict.points) {
    out += "- ";
    for (const Phrase& words : point)
      out += words.strong ? "**" + markdown_cell(words.text) + "**" : markdown_cell(words.text);
    out += "\n";
  }
  if (!verdict.points.empty()) out += "\n";
  for (const std::string& remark : verdict.remarks) out += "**" + markdown_cell(remark) + "**\n\n";
  if (!verdict.judgements.empty()) out += judgements_markdown(verdict.judgements) + "\n";
  for (const Block& block : document.blocks) {
    if (block.outputs == For::kPages) continue;
    if (const auto* heading = std::get_if<Heading>(&block.content))
      out += "### " + markdown_cell(heading->text) + "\n\n";
    if (const auto* paragraph = std::get_if<Paragraph>(&block.content))
      out += markdown_cell(paragraph->text) + "\n\n";
    if (const auto* listing = std::get_if<Listing>(&block.content))
      out += "```\n" + listing->text + "\n```\n\n";
    if (const auto* table = std::get_if<Table>(&block.content)) out += markdown_of(*table);
  }
  if (!verdict.fine.empty()) out += markdown_cell(verdict.fine) + "\n";
  return out;
}

// ------------------------------------------------------------------------------ pages

std::string tone_class(Tone tone) {
  return tone == Tone::kGood ? "good" : tone == Tone::kBad ? "bad" : "";
}

/// Words behind a number.
std::string page_note(const Phrase& note) {
  if (note.text.empty()) return {};
  const std::string tone = tone_class(note.tone);
  return "<small class=\"change" + (tone.empty() ? "" : " " + tone) + "\">" + html(note.text) +
         "</small>";
}

std::string page_cell(const Cell& cell, bool words) {
  const std::string note = page_note(cell.note);
  if (cell.number && !cell.as_written) return number_cell(&*cell.number, cell.unit, note);
  std::string classes = words ? "text" : tone_class(cell.tone);
  if (words && cell.tone != Tone::kPlain) classes += " " + tone_class(cell.tone);
  if (cell.code) classes = "path";
  std::string out = "<td";
  if (!classes.empty()) out += " class=\"" + classes + "\"";
  if (cell.number)
    out += " data-path=\"" + html(cell.number->path) + "\" data-value=\"" +
           number_text(cell.number->raw.value_or(cell.number->value)) + "\"";
  const std::string text = cell.text.empty() || cell.text == "-" ? "–" : html(cell.text);
  return out + ">" + (cell.code ? "<code>" + text + "</code>" : text) + note + "</td>";
}

std::string page_heading(const Table::Column& column, bool words) {
  if (column.series) return series_heading(*column.series, column.title, column.note);
  return (words ? "<th class=\"text\">" : "<th>") + html(column.title) +
         (column.note.empty() ? "" : "<small>" + html(column.note) + "</small>") + "</th>";
}

std::string page_of_table(const Table& table) {
  std::string out = table.title.empty() ? "" : "<h3>" + html(table.title) + "</h3>";
  out += open_table(table.columns.size()) + "<thead><tr>";
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    out += page_heading(table.columns[i], i > 0 && table.columns[i].words);
  out += "</tr></thead><tbody>";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += page_cell(row[i], i > 0 && table.columns[i].words);
    out += "</tr>";
  }
  return out + std::string(kTableEnd);
}

/// The text, with a link that saves it and needs neither script nor network.
std::string page_of(const Listing& listing) {
  const std::string text = "<pre tabindex=\"0\">" + html(listing.text) + "</pre>";
  if (listing.file.empty()) return text;
  const std::string encoded = percent_encoded(
      listing.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
  return "<p><a download=\"" + html(listing.file) + "\" href=\"data:text/plain;charset=utf-8," +
         encoded + "\">Download " + html(listing.file) + "</a></p>" + text;
}

std::string page_of(const Chart& chart) {
  return std::visit([](const auto& value) { return draw(value); }, chart);
}

std::string page_of_charts(const Charts& charts) {
  std::string out;
  for (const Chart& chart : charts.charts) out += page_of(chart);
  if (out.empty()) return out;
  const std::string title = charts.title.empty() ? "" : "<h3>" + html(charts.title) + "</h3>";
  const std::string classes = charts.small ? "charts three" : "charts";
  return title + "<div class=\"" + classes + "\">" + out + "</div>";
}

std::string page_of_blocks(const std::vector<Block>& blocks);

std::string page_of(const Fold& fold) {
  const std::string blocks = page_of_blocks(fold.blocks);
  if (blocks.empty()) return {};
  return std::string("<details") + (fold.only_on_screen ? " class=\"screen\"" : "") +
         (fold.open ? " open" : "") + "><summary>" + html(fold.title) + "</summary>" + blocks +
         "</details>";
}

std::string page_of_blocks(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    if (block.outputs == For::kPlain) continue;
    if (const auto* heading = std::get_if<Heading>(&block.content))
      out += "<h2>" + html(heading->text) + "</h2>";
    if (const auto* paragraph = std::get_if<Paragraph>(&block.content))
      out += (paragraph->fine ? "<p class=\"fine\">" : "<p>") + html(paragraph->text) + "</p>";
    if (const auto* notes = std::get_if<Notes>(&block.content)) {
      out += "<ul class=\"notes\">";
      for (const std::string& text : notes->texts) out += "<li>" + html(text) + "</li>";
      out += "</ul>";
    }
    if (const auto* listing = std::get_if<Listing>(&block.content)) out += page_of(*listing);
    if (const auto* table = std::get_if<Table>(&block.content)) out += page_of_table(*table);
    if (const auto* charts = std::get_if<Charts>(&block.content)) out += page_of_charts(*charts);
    if (const auto* fold = std::get_if<Fold>(&block.content)) out += page_of(*fold);
  }
  return out;
}

std::string page_of(const Sentence& sentence) {
  std::string out;
  for (const Phrase& words : sentence) {
    const std::string tone = tone_class(words.tone);
    const std::string tag = words.code                   ? "code"
                            : words.strong               ? "b"
                            : words.tone != Tone::kPlain ? "span"
                                                         : "";
    if (!tag.empty()) out += "<" + tag + (tone.empty() ? ">" : " class=\"" + tone + "\">");
    out += html(words.text);
    if (!tag.empty()) out += "</" + tag + ">";
  }
  return out;
}

std::string page_of(const std::vector<Sentence>& points) {
  std::string out;
  for (const Sentence& point : points) out += "<li>" + page_of(point) + "</li>";
  return out.empty() ? out : "<ul>" + out + "</ul>";
}

/// The judgements with this decision, one item each.
std::string page_of(const std::vector<Judgement>& judgements, Decision decision) {
  std::string out;
  for (const Judgement& j : judgements) {
    if (j.decision != decision) continue;
    const Tone tone = decision == Decision::kHolds   ? Tone::kGood
                      : decision == Decision::kFails ? Tone::kBad
                                                     : Tone::kPlain;
    out += "<li><b class=\"" + tone_class(tone) + "\">" + decision_text(decision) + "</b> " +
           html(title_of(j)) + (j.detail.empty() ? "" : ": " + html(j.detail)) + "</li>";
  }
  return out.empty() ? out : "<ul class=\"expect\">" + out + "</ul>";
}

/// The failures stand above everything else.
std::string page_of_failures(const std::vector<Judgement>& judgements) {
  const auto failing = count_decided(judgements, Decision::kFails);
  if (failing == 0) return {};
  return "<div class=\"failed\"><strong>" + std::to_string(failing) + " of " +
         counted(judgements.size(), "expectation") + (failing == 1 ? " fails" : " fail") +
         "</strong>" + page_of(judgements, Decision::kFails) + "</div>";
}

/// The others; more than a few are folded away.
std::string page_of_other_judgements(const std::vector<Judgement>& judgements) {
  constexpr std::size_t kMostOpen = 4;
  const std::string list =
      page_of(judgements, Decision::kUndecided) + page_of(judgements, Decision::kHolds);
  const auto holding = count_decided(judgements, Decision::kHolds);
  const auto undecided = count_decided(judgements, Decision::kUndecided);
  if (holding + undecided <= kMostOpen) return list;
  return "<details><summary>" + std::to_string(holding) + " expectations hold" +
         (undecided > 0 ? ", " + std::to_string(undecided) + " are undecided" : "") + "</summary>" +
         list + "</details>";
}

std::string page_of_verdict(const StudyVerdict& verdict) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\">" +
                    page_of_failures(verdict.judgements) + "<p class=\"big\">" +
                    html(verdict.headline) + "</p>" +
                    (verdict.picture ? page_of(*verdict.picture) : "") + page_of(verdict.points);
  for (const StudyVerdict::Part& part : verdict.parts)
    out += "<p class=\"label\">" + html(part.title) + "</p>" + page_of(part.points);
  out += page_of_other_judgements(verdict.judgements);
  std::string remarks;
  for (const std::string& remark : verdict.remarks)
    remarks += "<li class=\"remark\">" + html(remark) + "</li>";
  if (!remarks.empty()) out += "<ul>" + remarks + "</ul>";
  if (!verdict.fine.empty()) out += "<p class=\"fine\">" + html(verdict.fine) + "</p>";
  return out + "</section>";
}

}  // namespace

PageBody page_body_of(const StudyDocument& document) {
  std::string out = "<header class=\"run\"><div class=\"kicker\">" + html(document.kicker) +
                    "</div><h1>" + html(document.title) + "</h1></header>" +
                    page_of_verdict(document.verdict) + page_of_blocks(document.blocks);
  if (!document.facts.empty()) out += "<h2>Manifest</h2><dl>";
  for (const auto& [name, text] : document.facts)
    out += "<dt>" + html(name) + "</dt><dd>" + html(text) + "</dd>";
  if (!document.facts.empty()) out += "</dl>";
  return {.title = document.title, .body = std::move(out), .data = document.data};
}

std::string document_page(const StudyDocument& document, const std::string& json) {
  return render_page({page_body_of(document)}, make_data_block(json));
}

std::string draw(const StudyDocument& document, std::string_view format, std::size_t width) {
  if (format == "markdown") return render_markdown(document);
  if (format != "junit" && format != "github") return render_text(document, width);
  const StudyVerdict& verdict = document.verdict;
  std::vector<std::string> remarks = verdict.remarks;
  remarks.insert(remarks.end(), document.log.begin(), document.log.end());
  return format == "junit" ? render_junit(document.name, verdict.judgements, remarks)
                           : render_github(document.name, verdict.judgements, remarks);
}

}  // namespace routesim::tools
