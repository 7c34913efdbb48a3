#include "tools/ingest/scenario/file_kind.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

#include "base/text.h"
#include "policies/config/document.h"
#include "tools/ingest/servers/kustomize.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

bool holds_any(const ConfigNode& root, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return root.find(key) != nullptr; });
}

namespace {

bool holds_map(const ConfigNode& root, std::string_view key) {
  const ConfigNode* value = root.child(key);
  return value != nullptr && value->is_map();
}

/// Keys that only a tuning has, or goals that say what to minimise or maximise.
bool is_tuning(const ConfigNode& root) {
  if (holds_any(root, {"knobs", "budget", "fresh_seeds", "subject_to", "shift"})) return true;
  return std::ranges::any_of(items_at(root, {"goals"}), [](const Ptr& goal) {
    return goal->text().starts_with("minimise ") || goal->text().starts_with("maximise ");
  });
}

/// The JSON of `run`, `plan`, `compare`, `tune` and `validate`, and a line of `sweep`.
bool is_result(const ConfigNode& root) {
  return root.find("version") != nullptr &&
         holds_any(root, {"variants", "families", "gates", "judged", "scenarios", "cell"});
}

/// A result of `vllm bench serve` (serve.py) or of a stage of inference-perf (its report files).
bool is_measurement(const ConfigNode& root) {
  return root.find("mean_ttft_ms") != nullptr ||
         (root.find("load_summary") != nullptr && root.find("successes") != nullptr);
}

/// Kustomize reads no other file name; the kind may be left out.
bool holds_kustomization(const ConfigNode& root) {
  return is_kustomization(root.where().file) ||
         (is_kubernetes_object(root) && text_at(root, {"kind"}) == "Kustomization");
}

bool holds_router_document(const ConfigNode& root) {
  if (is_kubernetes_object(root) || holds_kustomization(root)) return true;
  if (holds_any(root, {"plugins", "schedulingProfiles"})) return true;
  // llm-d-benchmark's scenarios are lists of stacks.
  if (root.find("scenario") != nullptr && root.find("scenario")->value->is_sequence()) return true;
  return policies::find_endpoint_picker_config(root).kind !=
         policies::LocatedDocument::Kind::kNotFound;
}

}  // namespace

std::string_view kind_name(FileKind kind) {
  constexpr std::array<std::string_view, 8> kNames = {
      "scenario", "plan", "sweep", "tune", "catalogue", "inference-perf", "EndpointPickerConfig",
      "result"};
  return kNames.at(static_cast<std::size_t>(kind));
}

FileKind kind_of(const ConfigNode& root) {
  if (!root.is_map() || root.find("cluster") != nullptr) return FileKind::kScenario;
  if (is_result(root) || is_measurement(root)) return FileKind::kResult;
  if (root.find("scenario") != nullptr && root.find("scenario")->value->is_scalar()) {
    if (holds_any(root, {"axes"})) return FileKind::kSweep;  // Which may have goals, too.
    if (is_tuning(root)) return FileKind::kTune;
    return holds_any(root, {"demand", "goals", "prices"}) ? FileKind::kPlan : FileKind::kSweep;
  }
  if (root.find("variants") != nullptr) return FileKind::kScenario;
  if (holds_any(root, {"accelerators", "models", "curves"})) return FileKind::kCatalogue;
  if (holds_map(root, "load") && holds_map(root, "data")) return FileKind::kInferencePerf;
  return holds_router_document(root) ? FileKind::kEndpointPicker : FileKind::kScenario;
}

bool is_kind(const ConfigNode& root, FileKind wanted, Diagnostics& diagnostics) {
  struct Reader {
    FileKind kind;
    const char* article;
    const char* command;
    const char* key = "";  ///< Of a scenario that names such a file.
  };
  constexpr std::array<Reader, 8> kReaders = {
      {{FileKind::kScenario, "a scenario", "run"},
       {FileKind::kPlan, "a plan", "plan"},
       {FileKind::kSweep, "a sweep", "sweep"},
       {FileKind::kTune, "a tuning", "tune"},
       {FileKind::kCatalogue, "a catalogue", "check", "catalogue"},
       {FileKind::kInferencePerf, "a configuration of inference-perf", "init",
        "workload.inference_perf"},
       {FileKind::kEndpointPicker, "a configuration of a router", "init",
        "routing.endpoint_picker"},
       {FileKind::kResult, "a result", "report"}}};
  constexpr Reader kMeasurement = {FileKind::kResult, "a result of a load tool", "init",
                                   "measured.csv"};
  constexpr Reader kKustomization = {FileKind::kEndpointPicker, "a kustomization", "init"};
  constexpr Reader kManifest = {FileKind::kEndpointPicker, "a Kubernetes manifest", "init",
                                "vllm_serve of a pool, or routing.endpoint_picker"};
  const auto find = [&](FileKind kind) { return std::ranges::find(kReaders, kind, &Reader::kind); };
  const Reader* given = find(kind_of(root));
  if (given->kind == FileKind::kResult && !is_result(root)) given = &kMeasurement;
  if (given->kind == FileKind::kEndpointPicker && holds_kustomization(root))
    given = &kKustomization;
  else if (given->kind == FileKind::kEndpointPicker && is_kubernetes_object(root) &&
           text_at(root, {"kind"}) != "EndpointPickerConfig")
    given = &kManifest;
  // A scenario is also what nothing else looks like, a plan may lack what tells it from a sweep,
  // and a tuning may have goals that look like those of a plan: then the reader says what is
  // missing.
  const auto is_clear = [&] {
    if (given->kind == FileKind::kScenario)
      return root.is_map() && holds_any(root, {"cluster", "variants"});
    if (given->kind == FileKind::kSweep) return holds_any(root, {"axes"});
    if (given->kind != FileKind::kPlan) return true;
    return wanted != FileKind::kTune || holds_any(root, {"demand", "prices"});
  };
  if (!is_clear() || given == find(wanted)) return true;
  std::string hint =
      std::string("routesim ") + given->command + " " + printable(root.where().file, 200);
  if (const std::string key = given->key; !key.empty())
    hint += "; in a scenario, the key is " + key;
  if (given->kind == FileKind::kResult && given != &kMeasurement) hint += " --output PAGE.html";
  if (given == &kKustomization)
    hint = "run `kubectl kustomize` on its folder, and give its output to routesim init";
  if (wanted == FileKind::kResult)
    hint = "this must be a file made by `routesim run --output json=PATH`";
  diagnostics.error(
      root.where(), "",
      std::string("is ") + given->article + ", not " + find(wanted)->article +
          (given == &kMeasurement && wanted == FileKind::kResult ? " of routesim" : ""),
      hint);
  return false;
}

}  // namespace routesim::tools
