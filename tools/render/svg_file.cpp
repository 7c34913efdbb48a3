#include "tools/render/svg_file.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "tools/render/html_page.h"
#include "tools/render/svg_marks.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// What charts need of a style. `$name` is a variable of the page's style sheet, which viewers of
/// plain SVG mostly do not know, so that its value is written instead.
constexpr std::string_view kStyle = R"css(
.title{font-weight:600}text:not(.title){font-size:12px}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.plot text:not(.title){font-size:9px}.plot text.tight:not(.title){font-size:8px}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.thin .line{stroke-width:1.2}
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}
.mark{stroke:none}.measured .mark{stroke-width:1.8}.interval{stroke-width:1.6}
)css";
constexpr std::string_view kColourRules =
    ".paper,.measured .mark{fill:$card}text{fill:$mute}.unit,text.title{fill:$ink}\n"
    ".grid{stroke:$grid}.axis{stroke:$mute}\n";
constexpr std::string_view kSeriesColour =
    ".c# .line,.c# .interval,.c#.measured .mark{stroke:$s#}.c#:not(.measured) .mark{fill:$s#}\n";

/// The value the page gives a variable, for light or for dark.
std::string_view page_value(std::string_view name, bool dark) {
  std::string_view page = page_style();
  if (dark) page.remove_prefix(page.find("prefers-color-scheme:dark"));
  const std::string declaration = "--" + std::string(name) + ":";
  const std::size_t at = page.find(declaration);
  ROUTESIM_CHECK(at != std::string_view::npos, "the page has no such variable");
  page.remove_prefix(at + declaration.size());
  return page.substr(0, page.find_first_of(";}"));
}

/// `rules` with the values of the variables in them.
std::string resolved(const std::string& rules, bool dark) {
  std::string out;
  for (std::size_t i = 0; i < rules.size();) {
    if (rules[i] != '$') {
      out += rules[i++];
      continue;
    }
    const std::size_t end = rules.find('}', i);
    out += page_value(std::string_view(rules).substr(i + 1, end - i - 1), dark);
    i = end;
  }
  return out;
}

std::string style() {
  std::string rules(kColourRules);
  for (std::size_t series = 0; series < kColours; ++series)
    for (const char c : kSeriesColour) c == '#' ? rules += std::to_string(series) : rules += c;
  return "<style>" + std::string(kStyle) + resolved(rules, false) +
         "@media (prefers-color-scheme:dark){\n" + resolved(rules, true) + "}\n</style>";
}

/// A nested drawing at a place and with a size of its own.
std::string placed(std::string svg, double x, double y, double width, double height) {
  const std::string attributes = "<svg x=\"" + fixed_text(x, 1) + "\" y=\"" + fixed_text(y, 1) +
                                 "\" width=\"" + fixed_text(width, 1) + "\" height=\"" +
                                 fixed_text(height, 1) + "\"";
  return svg.replace(0, 4, attributes);
}

}  // namespace

std::string svg_file(const LineChart& chart) {
  constexpr double kMargin = 16, kScale = 1.5, kKeyWidth = 28, kKeyHeight = 14, kPerLetter = 6.6;
  const Drawing drawing = draw_lines(chart);
  if (drawing.svg.empty()) return {};
  const double width = kScale * drawing.width + 2 * kMargin;
  // No wider than the drawing: a letter of a bold face takes about 0.57 of its height.
  const double letters = std::max<double>(1, static_cast<double>(chart.title.size()));
  const double title_size = std::min(16.0, (width - 2 * kMargin) / (0.57 * letters));
  std::string out = "<g style=\"font-size:" + fixed_text(title_size, 1) + "px\">" +
                    svg_text(kMargin, 30, "start", chart.title, "title") + "</g>" +
                    svg_text(kMargin, 50, "start", chart.subtitle);
  double x = kMargin;
  for (const ChartSeries& s : chart.series) {
    const std::string name = s.name + (s.measured ? " (measured)" : "");
    out += placed(svg_key(s.colour, s.measured, s.markers), x, 62, kKeyWidth, kKeyHeight) +
           svg_text(x + kKeyWidth + 6, 73, "start", name);
    x += kKeyWidth + 24 + kPerLetter * static_cast<double>(name.size());
  }
  const double top = 84;
  const double height = top + kScale * drawing.height + kMargin;
  const std::string size = fixed_text(width, 0) + "\" height=\"" + fixed_text(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed_text(width, 0) + " " +
         fixed_text(height, 0) + "\" width=\"" + size + "\" role=\"img\">\n<title>" +
         html(chart.title) + "</title>\n" + style() + "\n<rect class=\"paper\" width=\"" + size +
         "\"/>\n" + out + "\n" + "<g class=\"plot\">" +
         placed(drawing.svg, kMargin, top, kScale * drawing.width, kScale * drawing.height) +
         "</g>\n</svg>\n";
}

}  // namespace routesim::tools
