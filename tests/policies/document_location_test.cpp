// Where an EndpointPickerConfig stands in the files that people have.
#include <gtest/gtest.h>

#include <string>

#include "policies/config/document.h"
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
    const ConfigNode::Ptr root = parse_yaml(head + body);
    const LocatedDocument found = find_endpoint_picker_config(*root);
    ASSERT_EQ(found.kind, LocatedDocument::Kind::kText) << head + body;
    EXPECT_EQ(found.path, chart + ".pluginsCustomConfig[b.yaml]");
    EXPECT_EQ(found.node->text(), "y");
  }
}

TEST(DocumentLocation, SaysWhatAFileWithoutOneIs) {
  const auto hint = [](const std::string& text) {
    return find_endpoint_picker_config(*parse_yaml(text)).hint;
  };
  EXPECT_NE(hint("router:\n  epp:\n    pluginsConfigFile: mine.yaml\n").find("name 'mine.yaml'"),
            std::string::npos);
  EXPECT_NE(hint("a: 1\n").find("expected kind: EndpointPickerConfig"), std::string::npos);
}

TEST(DocumentLocation, ValuesTellTheReleaseAndTheReplicas) {
  const auto chart = [](const std::string& values) {
    const ConfigNode::Ptr root =
        parse_yaml("inferenceExtension:\n" + values + "  pluginsCustomConfig:\n    a.yaml: x\n");
    return find_endpoint_picker_config(*root).chart;
  };
  const std::string tag = "    tag: v0.7.0\n";
  EXPECT_EQ(chart("  image:\n    name: llm-d-inference-scheduler\n" + tag).image_tag, "v0.7.0");
  EXPECT_EQ(chart("  image:\n" + tag).image_tag, "v0.7.0");
  EXPECT_EQ(chart("  image:\n    name: epp\n" + tag).image_tag, "") << "of another product";
  EXPECT_FALSE(chart("  replicas: 2\n").all_replicas_serve);
  EXPECT_TRUE(chart("  flags:\n    ha-enable-leader-election: false\n").all_replicas_serve);
  EXPECT_TRUE(chart("  flags:\n    ha-enable-leader-election=false: \"\"\n").all_replicas_serve);
}

TEST(DocumentLocation, ValuesWithoutADocumentGetTheChartsDefault) {
  const ConfigNode::Ptr root = parse_yaml(
      "router:\n  latencyPredictor:\n    enabled: false\n  epp:\n    image:\n      tag: v0.8.0\n");
  EXPECT_EQ(chart_predictor(*root), nullptr);
  const LocatedDocument found = find_endpoint_picker_config(*root);
  ASSERT_EQ(found.kind, LocatedDocument::Kind::kChartDefault);
  EXPECT_EQ(found.chart.image_tag, "v0.8.0");
  Diagnostics d;
  const auto config = load_endpoint_picker_config(*chart_default_document(*root), {}, d);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(name(config->era), "2026-08");
  ASSERT_EQ(config->profiles.front().plugins.size(), 4U);
  const std::vector<std::pair<std::string, double>> weights = {
      {"queue-scorer", 2}, {"kv-cache-utilization-scorer", 2}, {"prefix-cache-scorer", 3}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(config->profiles.front().plugins[i].name, weights[i].first);
    EXPECT_EQ(config->profiles.front().plugins[i].weight, weights[i].second);
  }
}

}  // namespace
}  // namespace routesim::policies
