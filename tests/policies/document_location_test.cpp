// Where an EndpointPickerConfig stands in the files that people have.
#include <gtest/gtest.h>

#include <string>

#include "policies/document.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

TEST(DocumentLocation, IsFoundWhereverAChartKeepsIt) {
  const std::string files =
      "pluginsConfigFile: b.yaml\n@pluginsCustomConfig:\n@  a.yaml: x\n@  b.yaml: y\n";
  for (const std::string chart : {"inferenceExtension", "inferencePool", "router.epp"}) {
    std::string indent = "  ", head = chart + ":\n";
    if (const std::size_t dot = chart.find('.'); dot != std::string::npos) {
      head = chart.substr(0, dot) + ":\n  " + chart.substr(dot + 1) + ":\n";
      indent = "    ";
    }
    std::string body = "@" + files;
    for (std::size_t i; (i = body.find('@')) != std::string::npos;) body.replace(i, 1, indent);
    const ParameterValue root = parse_mini_yaml(head + body);
    const LocatedDocument found = find_endpoint_picker_config(root);
    ASSERT_EQ(found.kind, LocatedDocument::Kind::kText) << head + body;
    EXPECT_EQ(found.path, chart + ".pluginsCustomConfig[b.yaml]");
    EXPECT_EQ(found.node->string(), "y");
  }
}

TEST(DocumentLocation, SaysWhatAFileWithoutOneIs) {
  const auto hint = [](const std::string& text) {
    return find_endpoint_picker_config(parse_mini_yaml(text)).hint;
  };
  EXPECT_NE(hint("router:\n  epp:\n    replicas: 1\n").find("leave the plugins to the chart"),
            std::string::npos);
  EXPECT_NE(hint("a: 1\n").find("expected kind: EndpointPickerConfig"), std::string::npos);
}

}  // namespace
}  // namespace routesim::policies
