// The small pieces charts are made of, as SVG text.
#pragma once

#include <cstddef>
#include <string>

namespace routesim::tools {

/// Shape number of measured points: a hollow diamond, larger than the others.
inline constexpr std::size_t kMeasuredShape = 100;

/// `<svg ...>` that scales with its container; `label` is what a screen reader says.
std::string svg_open(double width, double height, const std::string& label);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style);
/// `anchor`: start, middle or end; `shift` moves the text horizontally.
std::string svg_text(double x, double y, const std::string& anchor, const std::string& text,
                     const std::string& style = {}, double shift = 0);
/// A marker of the shape that belongs to a series, with a tooltip.
std::string svg_marker(std::size_t shape, double x, double y, const std::string& tip);
/// The sample of a series in a legend.
std::string svg_key(std::size_t colour, bool measured, bool marker);

}  // namespace routesim::tools
