// Every parameter of every plugin type refuses a value of the wrong type, at its place; and
// references between plugins must name the right kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/config/factory.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

/// One parameter: the keys that lead to it ("[]" = the first element of a list) and a value that
/// it cannot have.
struct Leaf {
  std::vector<std::string> path;
  ConfigNode::Ptr wrong;
};

const SourceLocation kPlace = {"epp.yaml", 77, 7};

/// Lists the parameters of a type from their description.
class LeafCollector final : public Describer {
 public:
  std::vector<Leaf> leaves;

  void boolean(const Field& f, bool&) override { add(f, tree::text("maybe", kPlace)); }
  void integer(const Field& f, std::int64_t&, const IntRange&) override {
    add(f, tree::text("many", kPlace));
  }
  void real(const Field& f, double&, const RealRange&) override {
    add(f, tree::text("fast", kPlace));
  }
  void text(const Field& f, std::string&) override {
    add(f, tree::number(std::int64_t{12345}, kPlace));
  }
  void duration(const Field& f, Duration&, const DurationRange&) override {
    add(f, tree::boolean(true, kPlace));
  }
  void choice(const Field& f, std::size_t&, std::span<const std::string_view>) override {
    add(f, tree::text("no-such-choice", kPlace));
  }
  void document(const Field& f, Document&) override {
    add(f, tree::number(std::int64_t{1}, kPlace));
  }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    add(f, tree::text("no map", kPlace));
    const auto outer = enter(f);
    members(*this);
    path_ = outer;
  }
  void list(const Field& f, ListAccess& items) override {
    add(f, tree::text("no list", kPlace));
    const auto outer = enter(f);
    path_.emplace_back("[]");
    items.resize(1);
    items.visit(0, *this);
    path_ = outer;
  }
  void optional(const Field& f, OptionalAccess& value) override {
    const auto outer = enter(f);
    value.engage(true);
    value.visit(*this);
    path_ = outer;
  }

 private:
  std::vector<std::string> enter(const Field& f) {
    auto outer = path_;
    if (!f.name.empty()) path_.emplace_back(f.name);
    return outer;
  }
  void add(const Field& f, ConfigNode::Ptr wrong) {
    Leaf leaf{path_, std::move(wrong)};
    if (!f.name.empty()) leaf.path.emplace_back(f.name);
    leaves.push_back(std::move(leaf));
  }
  std::vector<std::string> path_;
};

/// The parameters of a plugin that has nothing but the leaf.
ConfigNode::Ptr around(const Leaf& leaf) {
  const SourceLocation where{"epp.yaml", 5, 5};
  ConfigNode::Ptr value = leaf.wrong;
  for (std::size_t i = leaf.path.size(); i-- > 0;)
    value = leaf.path[i] == "[]" ? tree::list({value}, where)
                                 : tree::map({{leaf.path[i], value}}, where);
  return value;
}

/// Diagnostics of a document whose only interesting plugin is this one.
Diagnostics load_and_build(std::string_view type, const ConfigNode::Ptr& parameters) {
  const auto map = [](tree::Map members) { return tree::map(std::move(members)); };
  const auto plugin = map({{"name", tree::text("subject")},
                           {"type", tree::text(std::string(type))},
                           {"parameters", parameters}});
  const auto profile =
      map({{"name", tree::text("default")},
           {"plugins", tree::list({map({{"pluginRef", tree::text("max-score-picker")}})})}});
  const auto document =
      map({{"apiVersion", tree::text("llm-d.ai/v1alpha1")},
           {"kind", tree::text("EndpointPickerConfig")},
           {"plugins", tree::list({plugin, map({{"type", tree::text("max-score-picker")}})})},
           {"schedulingProfiles", tree::list({profile})}});
  Diagnostics diagnostics;
  const auto config = load_endpoint_picker_config(*document, {}, diagnostics);
  if (config) (void)requirements(*config, diagnostics);
  return diagnostics;
}

TEST(ParameterTypes, EveryWrongTypeIsAnErrorAtItsPlace) {
  std::size_t checked = 0;
  for (const PluginType& type : standard_registry().types()) {
    if (!type.describe_parameters) continue;
    LeafCollector collector;
    type.describe_parameters(collector);
    for (const Leaf& leaf : collector.leaves) {
      // Upstream's own form of it is a number, the nanoseconds.
      if (leaf.path.back() == "metricsLoggingInterval") continue;
      std::string path;
      for (const std::string& step : leaf.path) path += "." + step;
      SCOPED_TRACE(std::string(type.type) + path);
      const Diagnostics found = load_and_build(type.type, around(leaf));
      const auto& items = found.items();
      EXPECT_TRUE(std::any_of(items.begin(), items.end(), [](const Diagnostic& d) {
        return d.severity == Severity::kError && d.where.line == 77 && d.where.column == 7;
      })) << messages_of(found);
      ++checked;
    }
  }
  EXPECT_GT(checked, 150u);
}

// One run names everything that is wrong, in the document and in the parameters.
TEST(ParameterTypes, AreReportedBesideErrorsOfTheDocument) {
  Diagnostics diagnostics;
  EXPECT_FALSE(load_text(document("- type: no-hit-lru-scorer\n  parameters:\n    lruSize: many\n"
                                  "- type: no-such-plugin\n- type: token-producer\n"
                                  "  parameters: 7\n",
                                  "  - pluginRef: no-hit-lru-scorer\n"),
                         diagnostics));
  const std::string text = messages_of(diagnostics);
  for (const char* words : {"lruSize: must be a whole number (got many)", "is not registered",
                            "parameters: must be a map (got 7)"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in " << text;
}

TEST(ParameterTypes, ReferencesMustNameTheRightKind) {
  const auto error_of = [](const std::string& yaml) {
    Diagnostics diagnostics;
    const auto config = load_text(yaml, diagnostics);
    if (!config) return messages_of(diagnostics);
    EXPECT_FALSE(requirements(*config, diagnostics));
    return messages_of(diagnostics);
  };
  const auto scorer = [&](const std::string& type, const std::string& key) {
    return error_of(document("- type: " + type + "\n  parameters:\n    " + key + ": other\n" +
                                 "- type: token-producer\n  name: other\n",
                             "  - pluginRef: " + type + "\n"));
  };
  EXPECT_NE(scorer("prefix-cache-scorer", "prefixMatchInfoProducerName")
                .find("plugin 'other' produces no prefix match info"),
            std::string::npos);
  EXPECT_NE(scorer("active-request-scorer", "inFlightLoadProducerName")
                .find("plugin 'other' produces no load"),
            std::string::npos);
  EXPECT_NE(scorer("latency-scorer", "latencyPredictionInfoProducerName")
                .find("plugin 'other' produces no latency predictions"),
            std::string::npos);
  const std::string load_as_prefix = error_of(document(
      "- type: prefix-cache-scorer\n  parameters:\n"
      "    prefixMatchInfoProducerName: inflight-load-producer\n- type: inflight-load-producer\n",
      "  - pluginRef: prefix-cache-scorer\n"));
  EXPECT_NE(load_as_prefix.find("'inflight-load-producer' produces no prefix match info"),
            std::string::npos)
      << load_as_prefix;
  const std::string profiles =
      "  - pluginRef: queue-scorer\n- name: decode\n  plugins:\n  - pluginRef: queue-scorer\n"
      "- name: prefill\n  plugins:\n  - pluginRef: queue-scorer\n";
  EXPECT_NE(error_of(document("- type: queue-scorer\n- type: pd-profile-handler\n  parameters:\n"
                              "    deciderPluginName: queue-scorer\n",
                              profiles))
                .find("deciderPluginName: plugin 'queue-scorer' is no decider"),
            std::string::npos);
  EXPECT_NE(error_of(document("- type: queue-scorer\n- type: disagg-profile-handler\n"
                              "  parameters:\n    deciders:\n      prefill: queue-scorer\n",
                              profiles))
                .find("deciders.prefill: plugin 'queue-scorer' is no decider"),
            std::string::npos);
}

TEST(ParameterTypes, ParametersThatHaveNoEffectAreSaidTo) {
  Diagnostics diagnostics;
  const auto config = load_text(
      document("- type: precise-prefix-cache-producer\n- type: precise-prefix-cache-scorer\n"
               "  parameters:\n    speculativeIndexing: true\n",
               "  - pluginRef: precise-prefix-cache-scorer\n"),
      diagnostics);
  ASSERT_TRUE(config) << messages_of(diagnostics);
  EXPECT_TRUE(requirements(*config, diagnostics)) << messages_of(diagnostics);
  EXPECT_NE(messages_of(diagnostics).find("parameters: have no effect"), std::string::npos);
}

}  // namespace
}  // namespace routesim::policies
