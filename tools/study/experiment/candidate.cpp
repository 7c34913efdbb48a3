#include "tools/study/experiment/candidate.h"

#include "base/text.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

/// The contents of every file the variant names, added to the hash.
void add_files(const LoadedVariant& variant, KeyHash& hash, Diagnostics& diagnostics) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 36U;
  for (const ReferencedFile& file : referenced_files(variant)) {
    std::string text;
    if (!read_text_file(file.path, variant.provenance.nearest(file.key), file.key, kMostBytes, text,
                        diagnostics))
      continue;
    hash.add(file.key);
    hash.add(text);
  }
}

}  // namespace

std::optional<sim::RunPlan> prepare_candidate(const ScenarioRequest& candidate,
                                              Diagnostics& diagnostics) {
  const LoadedScenario loaded = load_scenario(candidate, diagnostics);
  if (diagnostics.has_errors() || loaded.variants.empty()) return std::nullopt;
  return prepare(loaded.variants.front(), diagnostics);
}

LoadedScenario load_checked(const ScenarioRequest& request, Diagnostics& diagnostics) {
  LoadedScenario loaded = load_scenario(request, diagnostics);
  if (diagnostics.has_errors())
    for (const LoadedVariant& variant : loaded.variants) check_variant(variant, diagnostics);
  return loaded;
}

void KeyHash::add(std::string_view part) {
  const std::string size = std::to_string(part.size()) + ":";
  hash_.update(size.data(), size.size());
  hash_.update(part.data(), part.size());
}

std::string KeyHash::finish() { return encode_hex(hash_.finish()).substr(0, 32); }

std::string candidate_key(const LoadedVariant& variant, std::span<const std::string> parts,
                          Diagnostics& diagnostics) {
  sim::Scenario scenario = variant.scenario;
  // Neither the words nor what results are compared with change what a run does.
  scenario.question.clear();
  scenario.measured = {};
  scenario.expect.clear();
  KeyHash hash;
  hash.add(version());
  hash.add(commit());
  hash.add(scenario.variant);
  for (const std::string& part : parts) hash.add(part);
  const FieldDescription values =
      describe_values([&scenario](Describer& d) { describe(d, scenario); });
  hash.add(to_json(*to_node(values)));
  add_files(variant, hash, diagnostics);
  return hash.finish();
}

}  // namespace routesim::tools
