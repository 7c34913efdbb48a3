// Every case of the tables in bad_scenarios is read and prepared as the scenario NAME.yaml; the
// diagnostics must be exactly those expected. Cases named warn_* may run, with a warning.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/base/case_table.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {
namespace {

class BadScenarios : public testing::FolderTest,
                     public ::testing::WithParamInterface<case_table::CaseOfTable> {
 protected:
  /// What `routesim check` would say, with the folder's own path taken out.
  std::string complaints(const std::string& input, bool& has_errors) const {
    Diagnostics d;
    const LoadedScenario loaded =
        load_scenario({.path = input, .sets = {}, .variants = {}, .seed = {}}, d);
    if (!d.has_errors())
      for (const LoadedVariant& variant : loaded.variants) {
        (void)prepare(variant, d);
        (void)load_measured(variant, d);
      }
    has_errors = d.has_errors();
    std::string text = messages_of(tidy(d));
    const std::string folder = folder_.string() + "/";
    for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
      text.erase(p, folder.size());
    return text;
  }
};

/// Set ROUTESIM_UPDATE_EXPECTED=1 to write what is said now, then review the diff.
TEST_P(BadScenarios, GetsItsMessages) {
  const case_table::TableCase& one = GetParam().one;
  for (const auto& [name, text] : one.blocks)
    if (name != "input" && name != "expected") write(name, text);
  bool has_errors = false;
  const std::string text = complaints(write(one.name + ".yaml", one.block("input")), has_errors);
  if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr) {
    case_table::replace_block(GetParam(), "expected", text);
    return;
  }
  EXPECT_EQ(has_errors, !one.name.starts_with("warn_"));
  EXPECT_NE(text, "");
  EXPECT_EQ(text, one.block("expected"));
}

INSTANTIATE_TEST_SUITE_P(Tables, BadScenarios,
                         ::testing::ValuesIn(case_table::cases_in(std::string(ROUTESIM_SOURCE_DIR) +
                                                                  "/tests/tools/bad_scenarios")),
                         [](const auto& given) { return given.param.one.name; });

}  // namespace
}  // namespace routesim::tools
