#include "tools/study/init/user_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/config/document.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/loads/vllm_bench_yaml.h"
#include "tools/ingest/routers/router_config.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/servers/kustomize.h"
#include "tools/ingest/traces/trace_files.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;
using Ptr = ConfigNode::Ptr;

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

bool is_tree(const std::string& path) {
  return ends_with_any(path, {".yaml", ".yml", ".json", ".yaml.in"});
}

bool says(const ConfigNode& node, std::string_view word) {
  if (node.is_scalar()) return node.text().find(word) != std::string::npos;
  const auto child_says = [&](const auto& child) { return says(*child, word); };
  return std::ranges::any_of(node.items(), child_says) ||
         std::ranges::any_of(node.members(),
                             [&](const auto& member) { return says(*member.value, word); });
}

/// Whether the file is a scenario, a study, a catalogue or a result of routesim itself, by its
/// keys. The loose ones may stand in a router's file, too.
bool is_own_format(const ConfigNode& root) {
  // A recipe of vLLM has variants, too, and llm-d-benchmark a list of scenarios.
  const ConfigNode* stacks = root.child("scenario");
  if (holds_any(root, {"compatible_strategies"}) || (stacks != nullptr && stacks->is_sequence()))
    return false;
  return (holds_any(root, {"workload"}) && holds_any(root, {"cluster"})) ||
         holds_any(root, {"scenario_hash", "judged", "families"}) ||
         (holds_any(root, {"pairs"}) && holds_any(root, {"gates"})) ||
         (holds_any(root,
                    {"cluster", "scenario", "variants", "accelerators", "models", "curves"}) &&
          !says(root, "EndpointPickerConfig"));
}

/// Whether the file holds recorded sessions in the format of Weka's traces, by its beginning.
bool holds_sessions(const std::string& path) {
  std::string start(4096, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<int>(start.size()));
  return start.find("\"requests\"") != std::string::npos &&
         start.find("\"hash_ids\"") != std::string::npos;
}

LoadKind load_in(const Ptr& root) {
  if (!root->is_map()) return LoadKind::kNone;
  Diagnostics ignored;
  const Ptr document = inference_perf_document(root, {}, ignored);
  if (document != nullptr && document->find("load") != nullptr && document->find("data") != nullptr)
    return LoadKind::kInferencePerf;
  if (holds_any(*root, {"total_input_tokens"}) && holds_any(*root, {"total_output_tokens"}))
    return LoadKind::kBenchResult;
  const Ptr guidellm = workload_of_harness(root, "guidellm", {}, ignored);
  const ConfigNode* spec = guidellm->child("spec");
  const ConfigNode& keys = spec != nullptr && !is_kubernetes_object(*guidellm) ? *spec : *guidellm;
  if (holds_any(keys, {"profile", "rate_type", "rate-type"}) &&
      holds_any(keys, {"data", "max_requests", "max-requests"}))
    return LoadKind::kGuidellm;
  const Ptr bench = workload_of_harness(root, "vllm-benchmark", {}, ignored);
  if (holds_any(*bench, {"dataset-name", "dataset_name", "num-prompts", "num_prompts"}))
    return LoadKind::kVllmBench;
  return LoadKind::kNone;
}

void find_picker(UserFile& file) {
  using Kind = policies::LocatedDocument::Kind;
  const Kind kind = policies::find_endpoint_picker_config(*file.root).kind;
  file.is_chart_default = kind == Kind::kChartDefault;
  file.has_picker = kind != Kind::kNotFound || says(*file.root, "EndpointPickerConfig");
}

/// The balancer that `routing.config` makes of a file; empty for none.
std::string balancer_of(const std::string& path) {
  const SourceLocation here{.file = "--set"};
  Diagnostics ignored;
  const Ptr read = with_router_config(
      tree::map({{"routing", tree::map({{"config", tree::text(path, here)}}, here)}}, here),
      ignored);
  const ConfigNode* balancer = read->child("routing")->child("balancer");
  return ignored.has_errors() || balancer == nullptr ? std::string() : balancer->text();
}

/// Reads one file after another, each once.
class Reader {
 public:
  Reader(const std::vector<std::string>& named, Diagnostics& diagnostics)
      : named_(named), diagnostics_(diagnostics) {}

  void read(const std::string& path) {
    std::error_code unreadable;
    if (is_kustomization(path)) {
      const std::string folder = fs::path(path).parent_path().string();
      read_kustomize_folder(folder.empty() ? "." : folder, path);
    } else if (!fs::is_directory(path, unreadable)) {
      if (fs::exists(path, unreadable))
        read_file(path, true);
      else
        diagnostics_.error({.file = path}, "", "is not there");
    } else if (const std::string file = kustomization_in(path); !file.empty()) {
      read_kustomize_folder(path, file);
    } else {
      read_folder(path);
    }
  }

  std::vector<UserFile> files() && { return std::move(files_); }

 private:
  void read_folder(const std::string& folder) {
    for (const std::string& path : entries_of(folder, fs::file_type::regular))
      read_file(path, false);
    for (const std::string& path : entries_of(folder, fs::file_type::directory))
      if (!is_named(path))
        files_.push_back(
            {.path = path, .why_unused = "inside another folder; read when it is named, too"});
  }

  /// Whether the user named the folder or something in it.
  bool is_named(const std::string& folder) const {
    const auto full = [](const std::string& path) {
      return (fs::absolute(path).lexically_normal() / "").string();
    };
    return std::ranges::any_of(
        named_, [&](const std::string& path) { return full(path).starts_with(full(folder)); });
  }

  /// Hidden ones are left alone.
  static std::set<std::string> entries_of(const std::string& folder, fs::file_type type) {
    std::set<std::string> paths;
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(folder, unreadable))
      if (entry.status(unreadable).type() == type &&
          !entry.path().filename().string().starts_with('.'))
        paths.insert(entry.path().lexically_normal().string());
    return paths;
  }

  /// The servers are those of the built folder. A file of it may hold the router's configuration,
  /// and one that stands beside it the load.
  void read_kustomize_folder(const std::string& folder, const std::string& kustomization) {
    Diagnostics found;  // Without errors, `vllm_serve` says it again.
    const Kustomized built = build_kustomization(kustomization, {.file = kustomization}, {}, found);
    const bool has_file_name = fs::path(kustomization).filename() == "kustomization.yaml";
    UserFile whole{.path = has_file_name ? folder : kustomization};
    if (built.objects != nullptr) whole.servers = starts_in_tree(built.objects, {}, found);
    if (whole.servers.empty()) append(diagnostics_, found);
    if (built.objects == nullptr) return;
    whole.parts = built.files;
    whole.parts.push_back(kustomization);
    files_.push_back(std::move(whole));
    const Ptr list = read_manifest_file(kustomization, {.file = kustomization}, {}, found);
    std::set<std::string> paths = entries_of(folder, fs::file_type::regular);
    paths.insert(built.files.begin(), built.files.end());
    for (const std::string& path : paths) {
      const std::size_t before = files_.size();
      if (!is_kustomization(path)) read_file(path, false);
      if (files_.size() == before) continue;
      files_.back().servers.clear();
      files_.back().has_life = false;
      if (files_.back().is_used()) continue;
      // Resources and patches have played their part.
      if (std::ranges::count(built.files, path) > 0 ||
          says(*list, fs::path(path).filename().string()))
        files_.pop_back();
      else
        files_.back().why_unused = "not listed in " + fs::path(kustomization).filename().string();
    }
  }

  void read_file(const std::string& path, bool is_named) {
    const std::string written = fs::path(path).lexically_normal().string();
    if (!seen_.insert(written).second) return;
    UserFile file{.path = path};
    Diagnostics found;
    if (is_tree(path))
      read_tree(file, found);
    else
      read_text(file, found);
    const bool is_sessions = is_named && !file.is_used() && holds_sessions(path);
    if (is_sessions)
      diagnostics_.error({.file = path}, "",
                         "holds recorded sessions, which a file of inference-perf replays",
                         "name a load file that has data.type: weka_trace_replay and lists it in "
                         "data.weka_trace_replay.trace_files");
    else if (is_named)
      append(diagnostics_, found);
    if (is_named && !is_sessions && !found.has_errors() && !file.is_used())
      diagnostics_.error({.file = path}, "",
                         "is nothing that a scenario can be written from" +
                             (file.root == nullptr ? std::string() : kinds_held(*file.root)),
                         "servers that start vLLM, an EndpointPickerConfig or another router's "
                         "configuration, and the file of a load tool or a trace are");
    files_.push_back(std::move(file));
  }

  static void read_tree(UserFile& file, Diagnostics& found) {
    file.root = read_manifest_file(file.path, {.file = file.path}, {}, found);
    if (file.root == nullptr || found.has_errors()) return;
    if (is_own_format(*file.root)) {
      if (!is_kind(*file.root, FileKind::kEndpointPicker, found))
        file.why_unused = "routesim's own " + std::string(kind_name(kind_of(*file.root)));
      return;
    }
    file.load = load_in(file.root);
    if (file.load != LoadKind::kNone) return;
    find_picker(file);
    LifeObjects life;
    life.add(file.root);
    file.has_life = !life.empty();
    Diagnostics of_servers;  // `vllm_serve` says it again when there are servers.
    if (file.root->is_map() || file.root->is_sequence())
      file.servers = starts_in_tree(file.root, {}, of_servers);
    if (file.servers.empty()) append(found, of_servers);
    const bool has_router = !file.servers.empty() && !file.servers.front().router.product.empty();
    if (!file.has_picker && !has_router) file.balancer = balancer_of(file.path);
  }

  static void read_text(UserFile& file, Diagnostics& found) {
    std::string text;
    // Prose may quote commands, of which none is meant.
    if (ends_with_any(file.path, {".md", ".rst", ".adoc", ".html"})) return;
    constexpr std::size_t kMostOfScript = 1U << 20U;
    const bool is_trace = ends_with_any(file.path, {".csv", ".jsonl"});
    if (!is_trace &&
        !read_text_file(file.path, {.file = file.path}, {}, kMostOfScript, text, found))
      return;
    const auto has = [&](std::string_view words) { return text.find(words) != std::string::npos; };
    Diagnostics of_script;
    if (is_trace) {
      read_trace(file, found);
    } else if (has("vllm bench serve") || has("benchmark_serving.py")) {
      (void)vllm_bench_command(*tree::text(file.path, {.file = "--set"}), {}, of_script);
      if (!of_script.has_errors()) file.load = LoadKind::kVllmBench;
    } else if (!engine_in(text).empty() || has("dynamo.vllm")) {
      auto start =
          start_in_text(text, places_in_file(file.path), {.file = file.path}, {}, {}, of_script);
      if (start) file.servers.push_back(std::move(*start));
    } else if (!text.empty()) {
      file.balancer = balancer_of(file.path);
    }
    if (!file.is_used()) append(found, of_script);
  }

  static void read_trace(UserFile& file, Diagnostics& found) {
    Diagnostics of_trace;
    TraceReference reference;
    reference.path = file.path;
    reference.path_where = {.file = file.path};
    const auto open = open_trace(reference, of_trace);
    append(found, of_trace);
    if (!open) return;
    const auto reader = open();
    workloads::TraceRecord record;
    if (reader->next(record))
      file.load = LoadKind::kTrace;
    else
      append(found, reader->diagnostics());
  }

  const std::vector<std::string>& named_;
  Diagnostics& diagnostics_;
  std::vector<UserFile> files_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<UserFile> read_user_files(const std::vector<std::string>& paths,
                                      Diagnostics& diagnostics) {
  Reader reader(paths, diagnostics);
  for (const std::string& path : paths) reader.read(path);
  return std::move(reader).files();
}

}  // namespace routesim::tools
