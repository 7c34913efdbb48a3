#include "tools/ingest/inference_perf_yaml.h"

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/config_merge.h"
#include "tools/ingest/description.h"
#include "tools/ingest/ledger.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;
using Member = ConfigNode::Member;
namespace perf = workloads::inference_perf;

Ptr plain(const std::string& text, const SourceLocation& where) {
  return ConfigNode::make_scalar(text, ConfigNode::Style::kPlain, where);
}

/// inference-perf's defaults of a distribution object, under what the user wrote.
Ptr complete_distribution(const Ptr& written) {
  const workloads::Distribution defaults;
  const SourceLocation& where = written->where();
  const Ptr base =
      ConfigNode::make_map({{"type", where, plain(std::string(enum_name(defaults.type)), where)},
                            {"min", where, plain(std::to_string(defaults.min), where)},
                            {"max", where, plain(std::to_string(defaults.max), where)},
                            {"mean", where, plain(number_text(defaults.mean), where)},
                            {"std_dev", where, plain(number_text(defaults.std_dev), where)}},
                           where);
  return merge_configs(base, written);
}

/// The tree without its nulls. The tool writes one for every setting left alone into the
/// `config.yaml` beside its reports, and reads it as not written.
Ptr without_nulls(const Ptr& node) {
  if (node->is_sequence()) {
    std::vector<Ptr> items = node->items();
    for (Ptr& item : items) item = without_nulls(item);
    return ConfigNode::make_sequence(std::move(items), node->where());
  }
  if (!node->is_map()) return node;
  std::vector<Member> members;
  for (const Member& member : node->members())
    if (!member.value->is_null())
      members.push_back({member.key, member.key_where, without_nulls(member.value)});
  return ConfigNode::make_map(std::move(members), node->where());
}

/// The tool has two names for these keys of `data.shared_prefix`.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOtherNames = {
    {{"num_unique_system_prompts", "num_groups"},
     {"num_users_per_system_prompt", "num_prompts_per_group"}}};

Ptr with_one_name(const Ptr& prefix, const std::string& path, Diagnostics& diagnostics) {
  std::vector<Member> members = prefix->members();
  for (Member& member : members)
    for (const auto& [other, name] : kOtherNames) {
      if (member.key != other) continue;
      if (prefix->find(name) != nullptr)
        diagnostics.error(member.key_where, child_path(path, member.key),
                          "is another name of " + std::string(name) + ", which is set too",
                          "keep one of the two");
      member.key = std::string(name);
    }
  return prefix->is_map() ? ConfigNode::make_map(std::move(members), prefix->where()) : prefix;
}

Ptr complete_lengths(const Ptr& node, std::string_view key) {
  if (node->is_scalar() && workloads::is_length_key(key) &&
      plain_type(node->text()) == PlainType::kInteger) {
    const SourceLocation& where = node->where();
    return ConfigNode::make_map({{"type", where, plain("fixed", where)}, {"mean", where, node}},
                                where);
  }
  if (!node->is_map()) return node;
  if (workloads::is_length_key(key)) return complete_distribution(node);
  std::vector<Member> members;
  for (const Member& member : node->members())
    members.push_back({member.key, member.key_where, complete_lengths(member.value, member.key)});
  return ConfigNode::make_map(std::move(members), node->where());
}

/// The document, whose path is `at`, in the form `describe` knows: nulls left out, one name for
/// each key, and lengths complete.
Ptr normalize(const Ptr& root, const std::string& at, Diagnostics& diagnostics) {
  const Ptr named = change_member(without_nulls(root), "data", [&](const Ptr& data) {
    return change_member(data, "shared_prefix", [&](const Ptr& prefix) {
      return with_one_name(prefix, child_path(at, "data.shared_prefix"), diagnostics);
    });
  });
  return complete_lengths(named, {});
}

/// Whether a member of `workload.groups` is a length whose type is fixed, written or by default.
bool stays_fixed(const Member& member) {
  if (!workloads::is_length_key(member.key) || !member.value->is_map()) return false;
  const Member* const type = member.value->find("type");
  if (type == nullptr) return member.value->find("distribution") == nullptr;
  return type->value->is_scalar() && type->value->text() == "fixed";
}

bool has_map(const ConfigNode& map, std::string_view key) {
  const Member* member = map.find(key);
  return member != nullptr && member->value->is_map();
}

bool is_document(const ConfigNode& map) { return has_map(map, "load") && has_map(map, "data"); }

/// The keys around the document, in a chart's values or a benchmark's template.
constexpr std::array kWrapperRules = {
    KeyRule{"**", Fate::kNoEffect, "it is about the job that runs the tool"}};
constexpr KeyTable kWrapperTable = {
    .format = "inference-perf values",
    .source = "the chart of inference-perf and the templates of llm-d-benchmark",
    .rules = kWrapperRules};

/// The document among the `workload` of llm-d's benchmark templates, by their names; null when
/// there is none, or, with an error, more than one.
Ptr document_among_workloads(const ConfigNode& workloads, const std::string& path,
                             Diagnostics& diagnostics) {
  Ptr found;
  std::string names;
  for (const Member& member : workloads.members()) {
    if (!is_document(*member.value)) continue;
    names += (names.empty() ? "" : ", ") + printable(member.key);
    if (found != nullptr) {
      diagnostics.error(member.key_where, path, "is a second workload in the file: " + names,
                        "give a file with one of them");
      return nullptr;
    }
    found = member.value;
  }
  return found;
}

}  // namespace

Ptr inference_perf_document(const Ptr& root, const std::string& path, Diagnostics& diagnostics) {
  if (!root->is_map() || root->find("load") != nullptr) return root;
  if (is_kubernetes_object(*root)) {
    diagnostics.error(
        root->where(), path,
        "is a Kubernetes object (" + got(*root->child("kind")) + "), not an inference-perf file",
        "give the file that its --config_file names, or the chart's values");
    return nullptr;
  }
  if (root->find("data") != nullptr) return root;
  if (has_map(*root, "workload")) {
    Diagnostics several;
    const Ptr found = document_among_workloads(*root->find("workload")->value, path, several);
    append(diagnostics, several);
    if (found != nullptr || several.has_errors()) return found;
  }
  // The values of the tool's own Helm chart hold the document; the rest is about the job.
  const Member* config = root->find("config");
  return config != nullptr && config->value->is_map() ? config->value : root;
}

Ptr complete_lengths(const Ptr& node) { return complete_lengths(node, {}); }

Ptr complete_group_lengths(const Ptr& groups, Diagnostics& diagnostics) {
  if (!groups->is_map()) return groups;
  std::vector<Member> members;
  for (Member member : groups->members()) {
    if (!stays_fixed(member)) {
      member.value = complete_lengths(member.value, member.key);
    } else if (member.value->find("type") == nullptr) {
      for (const char* key : {"min", "max", "std_dev", "variance", "skew"})
        if (const Member* of_other = member.value->find(key))
          diagnostics.error(of_other->key_where, "workload.groups." + member.key + "." + key,
                            "means nothing to a length of type fixed, the default",
                            "add type: normal, skew_normal, lognormal, uniform or poisson");
    }
    members.push_back(std::move(member));
  }
  return ConfigNode::make_map(std::move(members), groups->where());
}

perf::Config load_inference_perf(const Ptr& root, const ReadOptions& options,
                                 Diagnostics& diagnostics) {
  perf::Config config;
  const Ptr document = inference_perf_document(root, options.path, diagnostics);
  if (document == nullptr) return config;
  if (document != root) note_keys(*root, options.path, kWrapperTable, document.get(), diagnostics);
  read_struct(*normalize(document, options.path, diagnostics), config, diagnostics, options);
  return config;
}

}  // namespace routesim::tools
