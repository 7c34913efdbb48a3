#include "tools/render/document.h"

#include <algorithm>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kLongest = 500;  ///< Characters of a text that may come from a file.

std::string plain(const Sentence& sentence) {
  std::string out;
  for (const Phrase& words : sentence) out += words.text;
  return out;
}

// ------------------------------------------------------------------------------ terminal

std::string text_of(const Table& table) {
  const auto left = std::ranges::find(table.columns, false, &Table::Column::words);
  TextTable out(static_cast<std::size_t>(left - table.columns.begin()));
  std::vector<std::string> head;
  for (const Table::Column& column : table.columns) head.push_back(column.title);
  out.add_row(std::move(head));
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(printable(cell.text, kLongest));
    out.add_row(std::move(cells));
  }
  return (table.title.empty() ? "" : "\n" + printable(table.title, kLongest) + "\n") + out.str();
}

std::string render_text(const StudyDocument& document) {
  std::string out;
  std::size_t widest = 0;
  for (const auto& [name, text] : document.facts) widest = std::max(widest, name.size());
  for (const auto& [name, text] : document.facts)
    out +=
        name + ":" + std::string(widest - name.size() + 1, ' ') + printable(text, kLongest) + "\n";
  const StudyVerdict& verdict = document.verdict;
  if (!verdict.headline.empty()) out += "\n" + printable(verdict.headline, kLongest) + "\n";
  for (const Sentence& point : verdict.points)
    out += "  " + printable(plain(point), kLongest) + "\n";
  for (const std::string& remark : verdict.remarks)
    out += "note: " + printable(remark, kLongest) + "\n";
  if (!verdict.judgements.empty()) out += "\n" + judgements_text(verdict.judgements);
  for (const Block& block : document.blocks) {
    if (block.outputs == For::kPages) continue;
    if (const auto* heading = std::get_if<Heading>(&block.content))
      out += "\n" + printable(heading->text, kLongest) + "\n";
    if (const auto* paragraph = std::get_if<Paragraph>(&block.content))
      out += printable(paragraph->text, kLongest) + "\n";
    if (const auto* table = std::get_if<Table>(&block.content)) out += text_of(*table);
  }
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
  std::string out = "## " + markdown_cell(document.title) + "\n\n";
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
    if (const auto* table = std::get_if<Table>(&block.content)) out += markdown_of(*table);
  }
  return out;
}

// ------------------------------------------------------------------------------ pages

std::string tone_class(Tone tone) {
  return tone == Tone::kGood ? "good" : tone == Tone::kBad ? "bad" : "";
}

std::string page_cell(const Cell& cell, bool words) {
  if (cell.number && !cell.as_written) return number_cell(&*cell.number, cell.unit);
  std::string classes = words ? "text" : tone_class(cell.tone);
  if (words && cell.tone != Tone::kPlain) classes += " " + tone_class(cell.tone);
  if (cell.code) classes = "path";
  std::string out = "<td";
  if (!classes.empty()) out += " class=\"" + classes + "\"";
  if (cell.number)
    out += " data-path=\"" + html(cell.number->path) + "\" data-value=\"" +
           number_text(cell.number->raw.value_or(cell.number->value)) + "\"";
  const std::string text = cell.text.empty() || cell.text == "-" ? "–" : html(cell.text);
  return out + ">" + (cell.code ? "<code>" + text + "</code>" : text) + "</td>";
}

std::string page_of_table(const Table& table) {
  std::string out = table.title.empty() ? "" : "<h3>" + html(table.title) + "</h3>";
  out += open_table(table.columns.size()) + "<thead><tr>";
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    out += (i > 0 && table.columns[i].words ? "<th class=\"text\">" : "<th>") +
           html(table.columns[i].title) + "</th>";
  out += "</tr></thead><tbody>";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += page_cell(row[i], i > 0 && table.columns[i].words);
    out += "</tr>";
  }
  return out + std::string(kTableEnd);
}

std::string page_of_charts(const Charts& charts) {
  std::string out;
  for (const Chart& chart : charts.charts)
    out += std::visit([](const auto& value) { return draw(value); }, chart);
  return out.empty() ? out : "<div class=\"charts\">" + out + "</div>";
}

std::string page_of_blocks(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    if (block.outputs == For::kPlain) continue;
    if (const auto* heading = std::get_if<Heading>(&block.content))
      out += "<h2>" + html(heading->text) + "</h2>";
    if (const auto* paragraph = std::get_if<Paragraph>(&block.content))
      out += "<p>" + html(paragraph->text) + "</p>";
    if (const auto* table = std::get_if<Table>(&block.content)) out += page_of_table(*table);
    if (const auto* charts = std::get_if<Charts>(&block.content)) out += page_of_charts(*charts);
    if (const auto* fold = std::get_if<Fold>(&block.content))
      out += "<details><summary>" + html(fold->title) + "</summary>" +
             page_of_blocks(fold->blocks) + "</details>";
  }
  return out;
}

std::string page_of_verdict(const StudyVerdict& verdict) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(verdict.headline) + "</p>";
  if (!verdict.judgements.empty()) out += "<ul class=\"expect\">";
  for (const Judgement& j : verdict.judgements) {
    const Tone tone = j.decision == Decision::kHolds   ? Tone::kGood
                      : j.decision == Decision::kFails ? Tone::kBad
                                                       : Tone::kPlain;
    out += "<li><b class=\"" + tone_class(tone) + "\">" + html(decision_text(j.decision)) +
           "</b> " + html(title_of(j)) + ": " + html(j.detail) + "</li>";
  }
  if (!verdict.judgements.empty()) out += "</ul>";
  out += "<ul>";
  for (const Sentence& point : verdict.points) {
    out += "<li>";
    for (const Phrase& words : point) {
      const std::string tag = words.strong ? "b" : words.tone != Tone::kPlain ? "span" : "";
      if (!tag.empty())
        out += "<" + tag +
               (words.tone != Tone::kPlain ? " class=\"" + tone_class(words.tone) + "\">" : ">");
      out += html(words.text);
      if (!tag.empty()) out += "</" + tag + ">";
    }
    out += "</li>";
  }
  for (const std::string& remark : verdict.remarks)
    out += "<li class=\"remark\">" + html(remark) + "</li>";
  out += "</ul>";
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
  return {.title = document.title, .body = std::move(out)};
}

std::string document_page(const StudyDocument& document, const std::string& json) {
  return render_page({page_body_of(document)}, make_data_block(json));
}

std::string draw(const StudyDocument& document, std::string_view format) {
  const StudyVerdict& verdict = document.verdict;
  if (format == "markdown") return render_markdown(document);
  if (format == "junit") return render_junit(document.name, verdict.judgements, verdict.remarks);
  if (format == "github") return render_github(document.name, verdict.judgements, verdict.remarks);
  return render_text(document);
}

}  // namespace routesim::tools
