// Parts that the drawings of charts share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/render/chart/chart.h"

namespace routesim::tools {

// The parts that XML and HTML share.

/// The entity of a character that markup gives a meaning; empty for any other.
constexpr std::string_view markup_entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

/// Round numbers that cover [low, high] in at most `most` steps.
std::vector<double> linear_ticks(double low, double high, int most);
/// The same for seconds: steps of 1, 2, 5, 10, 15, 30 s, min or h once the span is above 100 s.
std::vector<double> time_ticks(double low, double high, int most);
/// Powers of ten in [low, high], with 2 and 5 between them while that stays readable.
std::vector<double> log_ticks(double low, double high);

/// Shape number of measured points: a hollow diamond, larger than the others.
inline constexpr std::size_t kMeasuredShape = 100;

/// Width of every drawing, in the units of its view box.
inline constexpr double kDrawingWidth = 440;
/// Width of a letter of a drawing, an upper estimate of the mean.
inline constexpr double kLetter = 6.8;

/// `<figure>` with its caption; whoever opens it closes it.
std::string svg_figure(const std::string& title, const std::string& subtitle);
/// `<svg ...>` that scales with its container; `label` is what a screen reader says.
std::string svg_open(double width, double height, const std::string& label);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style);
/// `anchor`: start, middle or end; `shift` moves the text horizontally.
std::string svg_text(double x, double y, const std::string& anchor, const std::string& text,
                     const std::string& style = {}, double shift = 0);
/// A name that ends (or by its anchor starts) at `x`, shortened to `width`.
std::string svg_label(double x, double y, const std::string& text, double width,
                      const std::string& anchor = "end", const std::string& style = {});
/// A marker of the shape that belongs to a series, with a tooltip; `style` adds classes.
std::string svg_marker(std::size_t shape, double x, double y, const std::string& tip,
                       const std::string& style = {});

}  // namespace routesim::tools
