#include "tools/render/render.h"

#include <algorithm>
#include <array>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/markup.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::size_t count(const std::vector<Judgement>& judgements, Decision d) {
  return static_cast<std::size_t>(std::count_if(
      judgements.begin(), judgements.end(), [d](const Judgement& j) { return j.decision == d; }));
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
  return std::to_string(count(judgements, Decision::kHolds)) + " hold, " +
         std::to_string(count(judgements, Decision::kFails)) + " fail, " +
         std::to_string(count(judgements, Decision::kUndecided)) + " undecided";
}

}  // namespace

std::string title_of(const Judgement& j) {
  return j.scope.empty() ? j.what : j.what + " (" + j.scope + ")";
}

std::string judgements_text(const std::vector<Judgement>& judgements) {
  if (judgements.empty()) return {};
  TextTable table(4);
  table.add_row({"expected", "of", "", "found"});
  for (const Judgement& j : judgements)
    table.add_row({printable(j.what, 200), printable(j.scope, 200), decision_text(j.decision),
                   printable(j.detail, 200)});
  return table.str();
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
      " tests=\"" + tests + "\" failures=\"" + std::to_string(count(judgements, Decision::kFails)) +
      "\" errors=\"" + std::to_string(count(judgements, Decision::kUndecided)) + "\"";
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
  if (std::none_of(set.variants.begin(), set.variants.end(), differs)) return seeds_text(set.seeds);
  std::string out;
  for (const VariantValues& v : set.variants)
    out += (out.empty() ? "" : "; ") + printable(v.name) + " " +
           seeds_text(v.seeds.empty() ? set.seeds : v.seeds);
  return out;
}

}  // namespace routesim::tools
