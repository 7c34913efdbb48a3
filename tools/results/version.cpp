#include "tools/results/version.h"

#include "tools/results/commit.h"

namespace routesim::tools {

std::string version() { return ROUTESIM_VERSION; }

std::string commit() { return ROUTESIM_COMMIT; }

std::string version_text() {
  std::string text = "routesim " + version();
  if (!commit().empty()) text += " (" + commit() + ")";
  text += "\nbuild: ";
  text += ROUTESIM_BUILD_TYPE;
#if defined(__clang__)
  text += ", clang " __clang_version__;
#elif defined(__GNUC__)
  text += ", gcc " __VERSION__;
#endif
  return text + "\n";
}

}  // namespace routesim::tools
