// The answer of `routesim run` as a document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/render/document.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

// The tables of a run. Plain outputs write numbers with fixed decimals and their unit in the title;
// pages write them as people do, and know their places in the data block.

/// The keys of all metrics in plain tables.
std::vector<std::string_view> plain_keys();

/// Stage by stage. One variant without published numbers has a row per stage and a column per
/// number; so have many variants, or several loads. Else there is a table per number, in which
/// each variant stands beside its published numbers and the first variant.
std::vector<Table> plain_stages(const PageRun& run, bool beside_published);
/// The rows in which a publication sums up its ladder, beside simulated ones; may have no rows.
Table published_table(const PageRun& run);
/// The whole run, a column per variant. Pages show how each differs from the first.
Table summary_table(const PageRun& run, bool on_page);
/// The traffic classes; may have no rows.
Table class_table(const PageRun& run);

/// One number of each stage as pages show it, warm-up included, beside published values; may have
/// no rows.
Table stage_table(const PageRun& run, std::string_view key);
/// The run as its page shows it.
StudyDocument run_document(const PageRun& run);

}  // namespace routesim::tools
