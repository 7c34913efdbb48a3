#include "tools/study/init/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/config/document.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/results/text_table.h"
#include "tools/study/init/user_file.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;
using Ptr = ConfigNode::Ptr;

/// The servers of a scenario whose files start none.
constexpr int kAssumedServers = 4;

/// The text as a value of YAML.
std::string yaml(const std::string& text) {
  std::string out =
      to_yaml(*ConfigNode::make_scalar(text, ConfigNode::Style::kPlain, SourceLocation{}));
  out.pop_back();  // The line break.
  return out;
}

double number_at(const ConfigNode& map, std::string_view key) {
  return number_from(text_at(map, {key})).value_or(0);
}

/// `router/precise.values.yaml` is precise.
std::string stem(const std::string& path) {
  std::string name = fs::path(path).lexically_normal().filename().string();
  for (const std::string_view end : {".in", ".yaml", ".yml", ".json", ".values", ".sh"})
    if (name.size() > end.size() && name.ends_with(end)) name.erase(name.size() - end.size());
  return name;
}

/// A name that `taken` does not have yet: NAME, NAME-2, ...
std::string unique(const std::string& name, std::vector<std::string>& taken) {
  std::string free = name;
  for (int n = 2; std::ranges::find(taken, free) != taken.end(); ++n)
    free = name + "-" + std::to_string(n);
  taken.push_back(free);
  return free;
}

/// Writes the scenario line by line.
class Draft {
 public:
  Draft(const InitRequest& request, Diagnostics& diagnostics)
      : request_(request),
        diagnostics_(diagnostics),
        files_(read_user_files(request.paths, diagnostics)) {}

  InitScenario write() {
    sort_parts();
    if (diagnostics_.has_errors()) return std::move(out_);
    write_head();
    write_load();
    write_pools();
    note_life();
    write_routers();
    line(0, "");
    line(
        0,
        "# What must hold after a change of the files: otherwise `routesim run` ends with code 1.");
    line(0, "# expect:");
    line(0, "# - ttft_ms.p99 < 500");
    return std::move(out_);
  }

 private:
  void line(int indent, const std::string& text) {
    out_.text += std::string(static_cast<std::size_t>(indent), ' ') + text + "\n";
  }

  /// A value that no file says.
  void assume(int indent, const std::string& setting, const std::string& why) {
    const std::string text = setting + "   # assumed: " + why;
    line(indent, text);
    out_.assumed.push_back(text.starts_with("- ") ? text.substr(2) : text);
  }

  /// The file's path as the scenario writes it.
  std::string path_of(const UserFile& file) const {
    const fs::path folder = fs::absolute(request_.output).parent_path().lexically_normal();
    const fs::path target = fs::absolute(file.path).lexically_normal();
    fs::path relative = target.lexically_relative(folder);
    if (relative.empty()) relative = target;
    std::string text = relative.string();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
  }

  void note(const std::string& part, const UserFile& file, const std::string& what) {
    out_.inputs.push_back(fmt::format("{:<8}{} ({})", part, path_of(file), what));
  }

  /// Gives each file its part. Two loads are an error: which one is meant, only the user knows.
  void sort_parts() {
    const bool has_document = std::ranges::any_of(
        files_, [](const UserFile& f) { return f.has_picker && !f.is_chart_default; });
    std::map<std::string, std::vector<std::string>> spare;  // By the reason.
    for (const UserFile& file : files_) {
      std::error_code missing;  // The scenario that --force replaces is no input.
      if (!file.is_used() && fs::equivalent(file.path, request_.output, missing)) continue;
      if (file.is_used()) out_.reads.push_back(file.path);
      out_.reads.insert(out_.reads.end(), file.parts.begin(), file.parts.end());
      const bool is_router = file.has_picker && !(file.is_chart_default && has_document);
      if (!file.is_used())
        spare[file.why_unused].push_back(path_of(file));
      else if (file.has_picker && !is_router && file.servers.empty())
        out_.unused.push_back(path_of(file) + ": another file has the EndpointPickerConfig");
      if (is_router || !file.balancer.empty()) routers_.push_back(&file);
      if (!file.servers.empty()) servers_.push_back(&file);
      if (file.load != LoadKind::kNone) loads_.push_back(&file);
    }
    for (const auto& [why, paths] : spare)
      out_.unused.push_back(fmt::format("{}: {}", fmt::join(paths, ", "), why));
    if (loads_.size() > 1) {
      std::string others = printable(loads_[0]->path, 200);
      for (std::size_t i = 2; i < loads_.size(); ++i)
        others += ", " + printable(loads_[i]->path, 200);
      diagnostics_.error({.file = loads_[1]->path}, "", "is a second load, beside " + others,
                         "name the files that belong together: routesim init SERVERS ROUTER LOAD");
    }
    keep_read_servers();
    if (servers_.empty() && routers_.empty() && loads_.empty() && !diagnostics_.has_errors())
      diagnostics_.error({.file = request_.paths.empty() ? "." : request_.paths.front()}, "",
                         "holds no servers, no router and no load",
                         "name a manifest or Helm values, an EndpointPickerConfig, a load file");
    for (const UserFile* file : servers_)
      for (const ServerStart& start : file->servers) {
        has_prefill_ = has_prefill_ || start.role == "prefill";
        const Ptr replicas = bounded_replicas(start.replicas, life_in_all(*file, start));
        const double count = replicas == nullptr ? 1 : number_from(replicas->text()).value_or(1);
        server_count_ += std::max(1.0, count);
      }
    sort_routers();
  }

  /// Servers that are not read are named. They stand in where there are no others, and the files
  /// hold more than them.
  void keep_read_servers() {
    const auto is_read = [](const UserFile* file) { return file->servers.front().unread.empty(); };
    const bool any = std::ranges::any_of(servers_, is_read);
    const bool is_all = routers_.empty() && loads_.empty();
    for (const UserFile* file : servers_)
      for (const ServerStart& start : file->servers)
        if (any && !is_read(file))
          out_.unused.push_back(path_of(*file) + ": " + printable(start.name) + " " + start.unread);
        else if (!is_read(file) && is_all)
          diagnostics_.error(start.where, "", start.unread, pool_by_hand(start));
    if (any) std::erase_if(servers_, [&](const UserFile* file) { return !is_read(file); });
  }

  /// Keeps each router that a variant can be made of; a dropped one is named.
  void sort_routers() {
    for (const UserFile* file : servers_) {
      const RouterChoice& router = file->servers.front().router;
      if (router.product.empty()) continue;
      if (!router.refused.empty())
        out_.unused.push_back(path_of(*file) + ": " + printable(router.refused) + " of " +
                              router.product + " is not simulated");
      else if (own_ != nullptr)
        out_.unused.push_back(path_of(*file) + ": the router, because " + path_of(*own_) +
                              " has one");
      else
        own_ = file;
    }
    std::erase_if(routers_, [&](const UserFile* file) {
      const bool is_baseline = !file->has_picker && file->balancer == baseline();
      if (is_baseline)
        out_.unused.push_back(path_of(*file) + ": " + baseline() + " is the baseline already");
      return is_baseline;
    });
  }

  /// A Kubernetes Service sends nothing to prefill servers. vllm-router's round robin has one
  /// counter for both roles, so it leaves every second server of two even pools idle.
  std::string baseline() const { return has_prefill_ ? "smg-round-robin" : "k8s-service"; }

  void write_head() {
    line(0, "# Written by `routesim init`. The files are read again at every run.");
    line(0, "# Lines with \"assumed\" say what no file does: correct them.");
    std::string name = request_.name;
    if (name.empty() && !servers_.empty()) name = servers_.front()->servers.front().name;
    if (name.empty()) name = "my-scenario";
    line(0, "name: " + yaml(name));
    line(0, "question: " + yaml("Which router answers this load faster on these servers?"));
    line(0, "");
  }

  void write_load() {
    line(0, "workload:");
    if (loads_.empty()) return write_assumed_load();
    const UserFile& file = *loads_.front();
    const std::string path = yaml(path_of(file));
    switch (file.load) {
      case LoadKind::kInferencePerf:
        line(2, "inference_perf: " + path);
        return note("load", file, "inference-perf");
      case LoadKind::kVllmBench:
        line(2, "vllm_bench: " + path);
        return note("load", file, "vllm bench serve");
      case LoadKind::kGuidellm:
        line(2, "guidellm: " + path);
        return note("load", file, "GuideLLM");
      case LoadKind::kTrace:
        line(2, "trace:");
        line(4, "file: " + path);
        return note("load", file, "trace");
      case LoadKind::kBenchResult:
        return write_benchmark(file);
      case LoadKind::kNone:
        break;
    }
  }

  /// The number as YAML; empty, maybe with an error in the user's file, when there is none.
  std::string number_of_result(const ConfigNode& result, const char* key, bool is_required) {
    const ConfigNode* node = result.child(key);
    if (node == nullptr || node->is_null()) {
      if (is_required)
        diagnostics_.error(result.where(), key, "is missing from the result",
                           "write the load as a file of vllm bench serve, and name that");
      return {};
    }
    if (node->text() == "inf") return ".inf";
    if (number_at(result, key) > 0) return node->text();
    diagnostics_.error(node->where(), key, "must be a number above 0 (" + got(*node) + ")");
    return {};
  }

  /// Means of the run that a result file of `vllm bench serve` is about.
  void write_benchmark(const UserFile& file) {
    const ConfigNode& result = *file.root;
    for (const char* key : {"completed", "total_input_tokens", "total_output_tokens"})
      (void)number_of_result(result, key, true);
    const double done = std::max(1.0, number_at(result, "completed"));
    const std::string why = "the totals of " + printable(path_of(file)) + " say the means only";
    line(2, "vllm_bench:");
    for (const char* key : {"num_prompts", "request_rate", "burstiness", "max_concurrency"}) {
      const bool is_required = std::string_view(key) == "num_prompts";
      if (const std::string number = number_of_result(result, key, is_required); !number.empty())
        line(4, std::string(key) + ": " + number);
    }
    assume(4, "dataset_name: random", "the file does not name it");
    assume(4,
           fmt::format("random: {{input_len: {:.0f}, output_len: {:.0f}}}",
                       number_at(result, "total_input_tokens") / done,
                       number_at(result, "total_output_tokens") / done),
           why);
    note("load", file, "a result of vllm bench serve");
  }

  void write_assumed_load() {
    const double servers = servers_.empty() ? kAssumedServers : server_count_;
    std::string stages;
    for (const double rate : {0.5, 1.0, 2.0})
      stages +=
          fmt::format("{}{{rate: {:g}, duration: 60}}", stages.empty() ? "" : ", ", rate * servers);
    assume(2, "inference_perf:", "no file holds a load; half, one and two requests/s per server");
    line(4, "load: {type: poisson, interval: 10, stages: [" + stages + "]}");
    line(4, "api: {type: completion, streaming: true}");
    line(4, "data:");
    line(6, "type: shared_prefix");
    line(6,
         "shared_prefix: {num_groups: 64, num_prompts_per_group: 16, system_prompt_len: 2048, "
         "question_len: 256, output_len: 256}");
  }

  void write_pools() {
    line(0, "");
    line(0, "cluster:");
    line(2, "pools:");
    std::vector<std::string> taken;
    if (servers_.empty())
      return write_assumed_pool(unread_start("no file starts servers of vLLM", {}, {}), taken);
    for (const UserFile* file : servers_) {
      for (const ServerStart& start : file->servers)
        start.unread.empty() ? write_pool(*file, start, taken) : write_assumed_pool(start, taken);
      if (!file->servers.front().unread.empty()) continue;
      const bool is_chart = fs::is_directory(file->path);
      const bool sglang = file->servers.front().engine == sim::EngineKind::kSglang;
      note("servers", *file,
           is_chart ? "kustomize folder"
           : sglang ? "model, replicas and flags of SGLang"
                    : "model, replicas and flags of vLLM");
    }
  }

  /// Names the files that say how the servers live.
  void note_life() {
    for (const UserFile& file : files_) {
      if (!file.has_life || !file.servers.empty()) continue;
      if (given_.contains(&file))
        note("life", file, "autoscalers and disruption budgets");
      else
        out_.unused.push_back(path_of(file) +
                              ": its autoscalers and budgets are about none of the servers");
    }
  }

  void write_pool(const UserFile& file, const ServerStart& start, std::vector<std::string>& taken) {
    const std::string engine(enum_name(start.engine));
    line(2, "- name: " + yaml(unique(start.name.empty() ? engine : start.name, taken)));
    // A role without its counterpart is a label, not a disaggregated fleet.
    if (has_prefill_ && !start.role.empty()) line(4, "role: " + start.role);
    line(4, "vllm_serve: " + yaml(path_of(file)));
    if (const std::string keys = life_of(start); !keys.empty())
      line(4, "# It says " + keys + ", too.");
    write_life(file, start);
    if (start.accelerators.empty()) assume_accelerator(start);
  }

  /// Keys of the servers' life that their own file says; its faults are told when it is read.
  static std::string life_of(const ServerStart& start) {
    Diagnostics ignored;
    const auto keys = life_keys(
        start.life, [](auto) { return false; }, {}, ignored);
    return comma_list(keys, &ConfigNode::Member::key);
  }

  /// What their own file and the others say of the life of servers.
  ServerLife life_in_all(const UserFile& file, const ServerStart& start) {
    ServerLife life = start.life;
    for (const UserFile& other : files_) {
      if (!other.has_life || &other == &file) continue;
      LifeObjects objects;
      objects.add(other.root);
      objects.give(life, start.labels);
      if (objects.was_given()) given_.insert(&other);
    }
    return life;
  }

  /// The number of servers, and what other files say of their life: `vllm_serve` reads one only.
  void write_life(const UserFile& file, const ServerStart& start) {
    const ServerLife life = life_in_all(file, start);
    const Ptr replicas = bounded_replicas(start.replicas, life);
    if (replicas == nullptr)
      assume(4, "replicas: 1", "no file says how many");
    else if (replicas != start.replicas)
      line(4, "replicas: " + replicas->text() + "   # within " + place_of(*replicas));
    const bool scaled = life.scalers.size() > start.life.scalers.size() ||
                        (!life.scalers.empty() && life.rules.size() > start.life.rules.size());
    const bool budgeted = life.budgets.size() > start.life.budgets.size();
    const auto says = [&](std::string_view key) {
      return !(key == "autoscaler" && scaled) &&
             !((key == "most_evicted" || key == "min_available") && budgeted);
    };
    for (const ConfigNode::Member& key : life_keys(life, says, {}, diagnostics_)) {
      line(4, "# " + place_of(*key.value));
      if (key.value->is_scalar()) {
        line(4, key.key + ": " + key.value->text());
        continue;
      }
      line(4, key.key + ":");
      std::string rest = to_yaml(*key.value);
      for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos;
           rest.erase(0, end + 1))
        line(6, rest.substr(0, end));
    }
  }

  /// `scaler.yaml:3:1`, as the scenario names the file.
  std::string place_of(const ConfigNode& node) const {
    const SourceLocation& at = node.where();
    return fmt::format("{}:{}:{}", printable(path_of({.path = at.file}), 200), at.line, at.column);
  }

  /// The label of the pods that names the vendor or the kind of their accelerators, such as
  /// `llm-d.ai/accelerator-vendor: amd`; null without one.
  static Ptr kind_label(const ServerStart& start) {
    for (const Ptr& label : start.labels) {
      const std::string& text = label->text();
      const std::size_t equals = text.find('=');
      const std::string value = text.substr(std::min(equals, text.size() - 1) + 1);
      if (text.substr(0, equals).find("accelerator") != std::string::npos && value != "nvidia" &&
          value != "gpu")
        return ConfigNode::make_scalar(value, ConfigNode::Style::kPlain, label->where());
    }
    return nullptr;
  }

  void assume_accelerator(const ServerStart& start) {
    const Ptr kind = start.device != nullptr ? start.device : kind_label(start);
    const std::string device = kind == nullptr ? "nvidia.com/gpu" : kind->text();
    if (device == "nvidia.com/gpu") return assume_nvidia();
    if (device == "amd.com/gpu" || device == "amd")
      return assume(4, "accelerator: MI300X",
                    "the servers ask for " + device + ", no file says which");
    diagnostics_.error(kind->where(), "",
                       "asks for " + printable(device) +
                           ", and no file names an accelerator that the catalogue has",
                       "`routesim list accelerators` shows them; docs/extending.md says how to add "
                       "one");
  }

  void assume_nvidia() {
    out_.assumes_accelerator = true;
    const bool is_first = request_.accelerator == kAssumedAccelerators.front();
    assume(
        4, "accelerator: " + request_.accelerator,
        is_first ? "no file names one" : "no file names one, and the weights do not fit on less");
  }

  /// In place of servers that are not read, with what is known of them.
  void write_assumed_pool(const ServerStart& start, std::vector<std::string>& taken) {
    const std::string& why = start.unread;
    std::string model, gpus;
    for (const ConfigNode::Member& flag : start.flags)
      (flag.key == "model" ? model : gpus) = flag.value->text();
    if (!number_from(gpus)) gpus.clear();  // A variable that no file sets.
    const std::string of = model.empty() ? "the load names it" : "the servers name it";
    if (model.empty()) model = model_of_load();
    const bool is_known = builtin_catalogue().find_model(model) != nullptr;
    const std::string unknown = model.empty() ? why : "the catalogue has no " + printable(model);
    const std::string name = start.name.empty() ? "vllm" : start.name;
    assume(2, "- name: " + yaml(unique(name, taken)), why);
    if (has_prefill_ && !start.role.empty()) line(4, "role: " + start.role);
    line(4, "assumed: " + yaml(start.name.empty() ? why : start.name + " " + why));
    const bool counts = start.replicas != nullptr && number_from(start.replicas->text());
    assume(4, "replicas: " + (counts ? start.replicas->text() : std::to_string(kAssumedServers)),
           why);
    const std::string gpu =
        start.accelerators.empty() ? "H100-SXM" : start.accelerators.front()->text();
    assume(4, "accelerator: " + gpu, why);
    assume(4, "model: " + yaml(is_known ? model : "Qwen3-32B"), is_known ? of : unknown);
    const double bytes =
        models::weight_bytes(*builtin_catalogue().find_model(is_known ? model : "Qwen3-32B"));
    const models::AcceleratorSpec* const spec = builtin_catalogue().find_accelerator(gpu);
    if (spec == nullptr) return;  // The scenario's own reader says so.
    const double memory = spec->memory_bytes;
    if (!gpus.empty() && is_known)
      return assume(4, "tensor_parallel: " + gpus, "the servers say it");
    int least = 1;
    // Half of the memory is left to the KV cache.
    while (bytes > 0.5 * memory * least && least < 8) least *= 2;
    if (least > 1)
      assume(4, fmt::format("tensor_parallel: {}", least), "the weights leave room then");
  }

  /// The model that a load file names; empty when it names none.
  std::string model_of_load() const {
    if (loads_.empty()) return {};
    const UserFile& file = *loads_.front();
    if (file.load == LoadKind::kBenchResult) return text_at(*file.root, {"model_id"});
    if (file.load != LoadKind::kInferencePerf) return {};
    Diagnostics ignored;
    const Ptr document = inference_perf_document(file.root, {}, ignored);
    const ConfigNode* server = document->child("server");
    return server != nullptr ? text_at(*server, {"model_name"}) : std::string();
  }

  void write_routers() {
    line(0, "");
    line(0, "variants:");
    std::vector<std::string> taken;
    line(0, "- name: " + unique(baseline(), taken));
    if (has_prefill_)
      line(2, "# The baseline. A Kubernetes Service sends nothing to prefill servers.");
    line(2, "routing: {balancer: " + baseline() + "}");
    if (own_ != nullptr) {
      // The router of servers' values is used where the scenario names none.
      line(0,
           "- name: " + unique("own", taken) + "   # the router in " + printable(path_of(*own_)));
      note("router", *own_, own_->servers.front().router.product);
    }
    for (const UserFile* file : routers_) write_router(*file, taken);
    if (taken.size() == 1 && !has_prefill_) write_assumed_router(taken);
    write_measured(taken.back());
  }

  void write_router(const UserFile& file, std::vector<std::string>& taken) {
    const std::string path = yaml(path_of(file));
    line(0, "- name: " + yaml(unique(stem(file.path), taken)));
    line(2, "routing:");
    if (file.has_picker) {
      line(4, "balancer: endpoint-picker");
      line(4, "endpoint_picker: " + path);
      note("router", file, file.is_chart_default ? "the chart's default" : "EndpointPickerConfig");
    } else {
      line(4, "config: " + path);
      note("router", file, file.balancer);
    }
  }

  void write_assumed_router(std::vector<std::string>& taken) {
    assume(0, "- name: " + unique("prefix-aware", taken),
           "no file configures a router; this is llm-d's default");
    line(2, "routing:");
    line(4, "balancer: endpoint-picker");
    line(4, "endpoint_picker:");
    std::string rest = to_yaml(*policies::default_document({}, "llm-d.ai/v1alpha1"));
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      line(6, rest.substr(0, end));
  }

  /// Puts a result beside the last variant, for `routesim validate`, if that has the user's servers
  /// and the only router of the user's files. Nothing else can be what was measured.
  void write_measured(const std::string& variant) {
    if (loads_.empty() || loads_.front()->load != LoadKind::kBenchResult) return;
    const std::string path = path_of(*loads_.front());
    if (servers_.empty() || routers_.size() + (own_ != nullptr ? 1 : 0) != 1) {
      out_.unused.push_back(path +
                            ": its latencies. The files do not tell which router and servers it "
                            "measured: add `measured: {csv: FILE, policy: NAME}` to that variant");
      return;
    }
    if (const std::string other = other_model(model_of_load()); !other.empty()) {
      out_.unused.push_back(path + ": its latencies. It measured " + printable(model_of_load()) +
                            ", and the servers run " + other);
      return;
    }
    line(2, "measured:");
    line(4, "csv: " + yaml(path));
    assume(4, "policy: " + yaml(variant), "no other router is in the files");
  }

  /// The first model of the servers when none of them runs `model`; empty otherwise. As in
  /// `routesim validate`, a name that the catalogue does not know may stand for any model.
  std::string other_model(const std::string& model) const {
    Diagnostics ignored;  // The scenario is checked when it is complete.
    const LoadedScenario read =
        load_scenario({.path = request_.output, .text = out_.text}, ignored);
    const models::ModelSpec* const measured = builtin_catalogue().find_model(model);
    std::string other;
    for (const LoadedVariant& variant : read.variants)
      for (const auto& pool : variant.scenario.cluster.pools) {
        const models::ModelSpec* const served = builtin_catalogue().find_model(pool.model);
        if (measured == nullptr || served == nullptr || served == measured) return {};
        if (other.empty()) other = printable(pool.model);
      }
    return other;
  }

  const InitRequest& request_;
  Diagnostics& diagnostics_;
  std::vector<UserFile> files_;
  std::vector<const UserFile*> servers_, routers_, loads_;
  const UserFile* own_ = nullptr;    ///< The servers' values that bring their router.
  std::set<const UserFile*> given_;  ///< Their autoscalers and budgets are in the scenario.
  bool has_prefill_ = false;
  double server_count_ = 0;
  InitScenario out_;
};

}  // namespace

InitScenario make_scenario(const InitRequest& request, Diagnostics& diagnostics) {
  return Draft(request, diagnostics).write();
}

}  // namespace routesim::tools
