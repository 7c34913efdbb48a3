// Every file bad_scenarios/NAME.yaml is read and prepared as a scenario; the diagnostics must be
// exactly those in NAME.expected. Files named warn_* may run, with a warning.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/base/messages.h"
#include "tools/ingest/prepare.h"
#include "tools/ingest/scenario_yaml.h"

namespace routesim::tools {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// What `routesim check` would say, with the corpus folder's own path taken out.
std::string complaints(const std::filesystem::path& input, bool& has_errors) {
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = input.string(), .sets = {}, .variants = {}, .seed = {}}, d);
  if (!d.has_errors())
    for (const LoadedVariant& variant : loaded.variants) {
      (void)prepare(variant, d);
      (void)load_measured(variant, d);
    }
  has_errors = d.has_errors();
  std::string text = messages_of(tidy(d));
  const std::string folder = input.parent_path().string() + "/";
  for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
    text.erase(p, folder.size());
  return text;
}

/// Set ROUTESIM_UPDATE_EXPECTED=1 to write what is said now, then review the diff.
TEST(BadScenarios, EachGetsItsMessages) {
  const auto folder = std::filesystem::path(ROUTESIM_SOURCE_DIR) / "tests/tools/bad_scenarios";
  std::vector<std::filesystem::path> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  ASSERT_GE(inputs.size(), 80U);
  for (const auto& input : inputs) {
    bool has_errors = false;
    const std::string text = complaints(input, has_errors);
    auto expected = input;
    expected.replace_extension(".expected");
    if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr)
      std::ofstream(expected, std::ios::binary) << text;
    EXPECT_EQ(has_errors, !input.filename().string().starts_with("warn_")) << input;
    EXPECT_NE(text, "") << input;
    EXPECT_EQ(text, slurp(expected)) << input;
  }
}

}  // namespace
}  // namespace routesim::tools
