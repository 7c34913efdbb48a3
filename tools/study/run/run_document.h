// The answer of `routesim run` as a document.
#pragma once

#include "tools/render/document.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// The run as its page shows it.
StudyDocument run_document(const PageRun& run);

}  // namespace routesim::tools
