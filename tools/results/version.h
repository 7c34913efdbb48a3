// The identity of this build.
#pragma once

#include <string>

namespace routesim::tools {

/// The release, such as "0.2.0": the same for every compiler, so it may stand in results.
std::string version();

/// The commit that was built; with -dirty when files were changed, and a hash of the changes when
/// the program has them; empty without git.
std::string commit();

/// Release, commit, build type and compiler, for `--version`.
std::string version_text();

}  // namespace routesim::tools
