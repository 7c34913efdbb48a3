#include "tools/render/svg_marks.h"

#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string number(double v) { return fixed_text(v, 1); }

std::string shape(std::size_t which, double x, double y) {
  std::string path;
  // One corner: a command letter and a point relative to the middle.
  const auto to = [&](char command, double dx, double dy) {
    path += command;
    path.append(number(x + dx)).append(" ").append(number(y + dy));
  };
  if (which == kMeasuredShape) {
    to('M', 0, -5.5);
    to('L', 5.5, 0);
    to('L', 0, 5.5);
    to('L', -5.5, 0);
    return path.append("Z");
  }
  switch (which % 4) {
    case 0:  // a disc
      to('M', -3.2, 0);
      return path.append("a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0Z");
    case 1:  // a square
      to('M', -3, -3);
      return path.append("h6v6h-6Z");
    case 2:  // a triangle
      to('M', 0, -4);
      to('L', 3.8, 3);
      to('L', -3.8, 3);
      return path.append("Z");
    default:  // a cross
      to('M', -1.2, -3.8);
      return path.append("h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6v-2.4h2.6Z");
  }
}

}  // namespace

std::string svg_open(double width, double height, const std::string& label) {
  return "<svg viewBox=\"0 0 " + fixed_text(width, 0) + " " + fixed_text(height, 0) +
         "\" role=\"img\" aria-label=\"" + html(label) + "\">";
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line class=\"" + style + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\"/>";
}

std::string svg_text(double x, double y, const std::string& anchor, const std::string& text,
                     const std::string& style, double shift) {
  return "<text" + (style.empty() ? std::string() : " class=\"" + style + "\"") + " x=\"" +
         number(x + shift) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         html(text) + "</text>";
}

std::string svg_marker(std::size_t which, double x, double y, const std::string& tip) {
  return "<path class=\"mark\" d=\"" + shape(which, x, y) + "\"><title>" + html(tip) +
         "</title></path>";
}

std::string svg_key(std::size_t colour, bool measured, bool marker) {
  std::string out = "<svg class=\"key c";
  out += std::to_string(colour % kColours);
  if (measured) out += " measured";
  out += "\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">";
  if (!measured) out += "<path class=\"line d" + std::to_string(colour % 4) + "\" d=\"M1 7H27\"/>";
  if (measured || marker)
    out += "<path class=\"mark\" d=\"" + shape(measured ? kMeasuredShape : colour, 14, 7) + "\"/>";
  return out + "</svg>";
}

}  // namespace routesim::tools
