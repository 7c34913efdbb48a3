// A report page: one self-contained HTML file.
#pragma once

#include <string>
#include <string_view>

#include "tools/render/page_data.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// The page. Nothing in it makes a request: style, script, drawings and data are inline, and its
/// content-security policy forbids the rest. `data.block` stands in it, so the page is a result
/// file too.
std::string render_page(const PageData& data);

/// The page of one run: that of its JSON result.
std::string render_html(const Report& report);

/// The sections of one run, one sweep, one plan: what render_page() puts between head and foot.
std::string run_sections(const PageRun& run);
std::string sweep_sections(const PageSweep& sweep);
std::string plan_sections(const PagePlan& plan);

/// Style sheet and the script that shows a chart's numbers under the pointer.
std::string_view page_style();
std::string_view page_script();

}  // namespace routesim::tools
