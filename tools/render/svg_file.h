// A chart as a file of its own, for slides and documents.
#pragma once

#include <string>

#include "tools/render/svg_chart.h"

namespace routesim::tools {

/// The chart with title, legend and its own style sheet (light, and dark where the viewer asks for
/// it) as one SVG document; empty when there is nothing to draw. Plain SVG 1.1: no HTML inside.
std::string svg_file(const LineChart& chart);

}  // namespace routesim::tools
