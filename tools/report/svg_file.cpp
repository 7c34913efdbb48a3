#include "tools/report/svg_file.h"

#include <algorithm>
#include <string_view>

#include "tools/output/text_table.h"
#include "tools/report/svg_marks.h"

namespace routesim::tools {

namespace {

/// The part of the page's style that charts need, with values instead of variables where viewers of
/// plain SVG know none.
constexpr std::string_view kStyle = R"css(
.paper{fill:#fff}
.title{font-weight:600}text:not(.title){font-size:12px}
text{fill:#56616c;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.unit,text.title{fill:#16191d}
.plot text:not(.title){font-size:9px}.plot text.tight:not(.title){font-size:8px}
.grid{stroke:#e7eaed}.axis{stroke:#56616c}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.thin .line{stroke-width:1.2}
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}
.mark{stroke:none}.measured .mark{fill:#fff;stroke-width:1.8}.interval{stroke-width:1.6}
)css";
constexpr std::string_view kDarkStyle =
    "@media (prefers-color-scheme:dark){.paper,.measured "
    ".mark{fill:#1a1e22}text{fill:#a3adb7}.unit,text.title{fill:#e9ecef}"
    ".grid{stroke:#282e34}.axis{stroke:#a3adb7}";
/// The page's colours of series, for light and for dark.
constexpr std::string_view kLight[] = {"#0072b2", "#c94f00", "#00805c", "#a83d8c",
                                       "#7a6300", "#3b7fae", "#882255", "#4a4f55"};
constexpr std::string_view kDark[] = {"#56b4e9", "#ff9248", "#2fc79b", "#e08ac8",
                                      "#e5d54a", "#9fd8ff", "#ff9da7", "#c9ced3"};

std::string colour_rule(std::size_t i, std::string_view colour) {
  const std::string c = ".c" + std::to_string(i);
  return c + " .line," + c + " .interval," + c + ".measured .mark{stroke:" + std::string(colour) +
         "}" + c + ":not(.measured) .mark{fill:" + std::string(colour) + "}";
}

std::string style() {
  std::string light(kStyle), dark(kDarkStyle);
  for (std::size_t i = 0; i < std::size(kLight); ++i) {
    light += colour_rule(i, kLight[i]);
    dark += colour_rule(i, kDark[i]);
  }
  return "<style>" + light + "\n" + dark + "}\n</style>";
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
