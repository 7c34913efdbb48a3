#include "tools/render/page/html_page.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "base/scalar_parse.h"
#include "tools/render/chart/chart.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/page/page_files.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kBlockOpen = "<script type=\"application/json\" id=\"routesim-data\">";
constexpr std::string_view kBlockClose = "</script>";

/// JSON on one line: without the white space between its values.
std::string without_space(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!quoted && (c == ' ' || c == '\n')) continue;
    out += c;
    if (c == '"') quoted = !quoted;
    if (c == '\\' && i + 1 < json.size()) out += json[++i];
  }
  return out;
}

/// Text that may stand in a <script> element: no `</` and no `<!--`.
std::string script_safe(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

/// The text of a heading as a fragment of an address: letters and digits, the rest as dashes.
std::string slug_of(std::string_view heading) {
  std::string out;
  bool tag = false;
  for (const char c : heading) {
    if (c == '<' || c == '>') tag = c == '<';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool upper = c >= 'A' && c <= 'Z';
    if (tag || c == '>') continue;
    if (plain || upper)
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "section" : out;
}

/// The body with an address for every heading and figure, and a list of contents in front of the
/// first section, behind the first verdict.
std::string with_contents(const std::string& body, bool several) {
  std::string out, contents;
  std::map<std::string, int> used;
  std::size_t nav_at = std::string::npos, figures = 0, entries = 0, from = 0;
  for (std::size_t at = body.find('<'); at != std::string::npos; at = body.find('<', at + 1)) {
    const std::string_view rest = std::string_view(body).substr(at);
    if (rest.starts_with("<figure>")) {
      out.append(body, from, at + 7 - from).append(" id=\"figure-");
      out.append(std::to_string(++figures)).append("\"");
      from = at + 7;
    }
    // Landmarks need names that differ.
    if (constexpr std::string_view kVerdict = "<section class=\"verdict\" aria-label=\"Verdict";
        rest.starts_with(kVerdict) && used["#verdict"]++ > 0) {
      out.append(body, from, at + kVerdict.size() - from);
      out.append(" ").append(std::to_string(used["#verdict"]));
      from = at + kVerdict.size();
    }
    if (!rest.starts_with("<h1>") && !rest.starts_with("<h2>") && !rest.starts_with("<h3>"))
      continue;
    const char level = rest[2];
    const std::size_t begin = at + 4;
    const std::size_t end = body.find(std::string("</h") + level + ">", begin);
    if (end == std::string::npos) break;
    const std::string heading = body.substr(begin, end - begin);
    std::string id = slug_of(heading);
    if (const int again = used[id]++; again > 0) id += "-" + std::to_string(again + 1);
    out.append(body, from, at - from);
    if (level == '2' && nav_at == std::string::npos) nav_at = out.size();
    out.append("<h").append(1, level).append(" id=\"").append(id).append("\">");
    const std::string link = "<a href=\"#" + id + "\">" + heading + "</a>";
    out += level == '1' ? heading : link;
    from = end;
    if (level == '2' || (level == '1' && several)) {
      contents += "<li>" + link + "</li>";
      ++entries;
    }
  }
  out.append(body, from, std::string::npos);
  if (entries > 2)
    out.insert(nav_at,
               "<nav class=\"contents\" aria-label=\"Contents\"><strong>On this page"
               "</strong><ul>" +
                   contents + "</ul></nav>");
  return out;
}

}  // namespace

std::optional<std::string> data_block(std::string_view text) {
  const std::size_t open = text.find(kBlockOpen);
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t begin = open + kBlockOpen.size();
  const std::size_t end = text.find(kBlockClose, begin);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(begin, end - begin));
}

std::string make_data_block(const std::string& json) {
  return std::string(kBlockOpen) + script_safe(without_space(json)) + std::string(kBlockClose);
}

std::string render_page(const std::vector<PageBody>& bodies, const std::string& block) {
  std::string title, body, out;
  for (const PageBody& b : bodies) {
    title += (title.empty() ? "" : ", ") + b.title;
    body += b.body;
  }
  title = title.empty() ? "routesim" : html(title + " · routesim");
  body = with_contents(body, bodies.size() > 1);
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {
      {{"title", title},
       {"style", kPageCss},
       {"body", body},
       {"data", block},
       {"script", kPageJs}}};
  std::string_view frame = kPageHtml;
  for (const auto& [name, text] : parts) {  // In the order of the frame.
    const std::string place = fmt::format("{{{{{}}}}}", name);
    const std::size_t at = frame.find(place);
    out.append(frame.substr(0, at)).append(text);
    frame.remove_prefix(at + place.size());
  }
  return out.append(frame);
}

std::string_view page_style() { return kPageCss; }

std::string open_table(std::size_t columns, bool words) {
  constexpr std::size_t kManyColumns = 6;
  return std::string("<div class=\"scroll\"><table class=\"") + (words ? "words" : "") +
         (columns > kManyColumns ? " many\">" : "\">");
}

std::string number_cell(const Datum* datum, Unit unit, const std::string& after) {
  if (datum == nullptr) return "<td>–" + after + "</td>";
  std::string out = "<td data-path=\"" + html(datum->path) + "\" data-value=\"" +
                    number_text(datum->raw.value_or(datum->value)) + "\">" +
                    human(datum->value, unit, false);
  if (datum->low && datum->high && *datum->low < *datum->high)
    out += " <small>" + human(*datum->low, unit, false) + " … " + human(*datum->high, unit, false) +
           "</small>";
  return out + after + "</td>";
}

std::string series_heading(std::size_t colour, const std::string& name, const std::string& note) {
  return "<th>" + svg_key(colour, false, true) + html(name) +
         (note.empty() ? "" : "<small>" + html(note) + "</small>") + "</th>";
}

}  // namespace routesim::tools
