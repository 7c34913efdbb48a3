#include "tools/ingest/loads/inference_perf_yaml.h"

#include <algorithm>
#include <array>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using Keys = std::vector<std::string>;
namespace perf = workloads::inference_perf;

/// Flags by which a container names the tool's file.
const std::vector<std::string_view> kFileKeys = {"config_file", "c"};

Keys split(std::string_view path) {
  Keys keys;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    keys.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return keys;
}

std::string join(const Keys& keys, std::string path = {}) {
  for (const std::string& key : keys) path = child_path(path, key);
  return path;
}

/// Every concrete path in the tree that a pattern with `*` matches.
void find_matches(const ConfigNode& node, const Keys& pattern, Keys& prefix,
                  std::vector<Keys>& matches) {
  if (prefix.size() == pattern.size()) {
    matches.push_back(prefix);
    return;
  }
  const std::string& wanted = pattern[prefix.size()];
  for (const ConfigNode::Member& member : node.members()) {
    if (wanted != "*" && wanted != member.key) continue;
    prefix.push_back(member.key);
    find_matches(*member.value, pattern, prefix, matches);
    prefix.pop_back();
  }
}

const ConfigNode* node_below(const ConfigNode& root, const Keys& keys) {
  const ConfigNode* node = &root;
  for (const std::string& key : keys)
    if (node != nullptr) node = node->child(key);
  return node;
}

/// The tree without the member at `keys`; `removed` receives it.
Ptr without(const Ptr& node, const Keys& keys, std::size_t depth, Ptr& removed) {
  Members members;
  for (const ConfigNode::Member& member : node->members()) {
    if (member.key != keys[depth]) {
      members.push_back(member);
    } else if (depth + 1 == keys.size()) {
      removed = member.value;
    } else {
      members.push_back(
          {member.key, member.key_where, without(member.value, keys, depth + 1, removed)});
    }
  }
  return ConfigNode::make_map(std::move(members), node->where());
}

/// `to` with each `*` replaced by the key that `from` matched there.
Keys target_of(const perf::KeyDrift& drift, const Keys& match) {
  Keys target = split(drift.to);
  for (std::size_t i = 0; i < target.size() && i < match.size(); ++i)
    if (target[i] == "*") target[i] = match[i];
  return target;
}

Ptr move_key(const Ptr& root, const std::string& at, const Keys& from, const Keys& to,
             bool silently, Diagnostics& diagnostics) {
  const ConfigNode& node = *node_below(*root, from);
  const bool into_itself =
      to.size() > from.size() && std::equal(from.begin(), from.end(), to.begin());
  if (into_itself && !node.is_scalar()) return root;
  if (!into_itself && !to.empty() && node_below(*root, to) != nullptr) {
    diagnostics.error(node.where(), join(from, at),
                      silently ? "is another name of " + join(to) + ", which is set too"
                               : "is an older name of " + join(to) + ", which is set too",
                      "keep one of the two");
    return root;
  }
  Ptr value;
  Ptr changed = without(root, from, 0, value);
  if (to.empty()) {
    // llm-d/llm-d#890: the files that had it ran with the default.
    if (from.back() == "std")
      diagnostics.warning(
          value->where(), join(from, at),
          "has no effect, as in the tool: it knows std_dev only, ignored other keys, "
          "and refuses them now",
          "write std_dev, which is 200 unless it is given");
    else
      diagnostics.warning(value->where(), join(from, at), "has no effect here");
    return changed;
  }
  if (!silently) diagnostics.warning(value->where(), join(from, at), "is read as " + join(to, at));
  Assignment assignment{.path = join(to), .steps = {}, .value = value};
  for (const std::string& key : to)
    assignment.steps.push_back({.key = key, .in_brackets = false, .index = std::nullopt});
  return apply_assignment(changed, assignment, diagnostics);
}

/// In early 2026 a distribution named its family `distribution`, not `type`, and had defaults of
/// its own.
Ptr complete_early_distribution(const Ptr& written) {
  const SourceLocation& where = written->where();
  Members members = written->members();
  for (ConfigNode::Member& member : members)
    if (member.key == "distribution") member.key = "type";
  const Ptr base = tree::map(
      {{"min", plain("0", where)}, {"max", plain("4096", where)}, {"std_dev", plain("0", where)}},
      where);
  return merge_configs(base, ConfigNode::make_map(std::move(members), where));
}

/// inference-perf's defaults of a distribution object, under what the user wrote.
Ptr complete_distribution(const Ptr& written) {
  if (written->find("distribution") != nullptr && written->find("type") == nullptr)
    return complete_early_distribution(written);
  const workloads::Distribution defaults;
  const SourceLocation& where = written->where();
  const Ptr base = tree::map({{"type", plain(std::string(enum_name(defaults.type)), where)},
                              {"min", tree::number(defaults.min, where)},
                              {"max", tree::number(defaults.max, where)},
                              {"mean", tree::number(defaults.mean, where)},
                              {"std_dev", tree::number(defaults.std_dev, where)}},
                             where);
  return merge_configs(base, written);
}

/// Before its first release the tool had the server under the name of its kind: `server.vllm`, and
/// before that `vllm`. Refused with what to write today; the result is the tree without it.
Ptr refuse_early_server(const Ptr& root, const std::string& at, Diagnostics& diagnostics) {
  Ptr current = root;
  for (const Keys& early : {Keys{"server", "vllm"}, Keys{"vllm"}}) {
    if (node_below(*current, early) == nullptr) continue;
    Ptr removed;
    current = without(current, early, 0, removed);
    diagnostics.error(removed->where(), join(early, at),
                      "is how inference-perf named the server before its first release",
                      "write server: {type: vllm, model_name: ..., base_url: ...} and "
                      "api: {type: completion or chat, streaming: true or false}");
    if (scalar_at(*current, {"api"}) != nullptr) current = without(current, {"api"}, 0, removed);
  }
  return current;
}

/// The tree without its nulls. The tool writes one for every setting left alone into the
/// `config.yaml` beside its reports, and reads it as not written.
Ptr without_nulls(const Ptr& node) {
  const Ptr changed = with_children(node, without_nulls);
  if (!node->is_map()) return changed;
  Members members = changed->members();
  std::erase_if(members, [](const ConfigNode::Member& m) { return m.value->is_null(); });
  return ConfigNode::make_map(std::move(members), node->where());
}

/// The document without keys of `server` that the tool does not know: they are about the server,
/// which the scenario describes, and files keep them beside what the tool reads.
Ptr without_unknown_server_keys(const Ptr& root, const std::string& at, Diagnostics& diagnostics) {
  perf::Config defaults;
  const FieldDescription all = describe_values([&](Describer& d) { describe(d, defaults); });
  const auto known = std::find_if(all.members.begin(), all.members.end(),
                                  [](const FieldDescription& f) { return f.name == "server"; });
  return change_member(root, "server", [&](const Ptr& written) {
    Members members;
    for (const ConfigNode::Member& member : written->members()) {
      if (std::any_of(known->members.begin(), known->members.end(),
                      [&](const FieldDescription& field) { return field.name == member.key; }))
        members.push_back(member);
      else
        diagnostics.warning(member.key_where, join({"server", member.key}, at),
                            "has no effect: the tool does not know it, and the servers are the "
                            "scenario's");
    }
    return written->is_map() ? ConfigNode::make_map(std::move(members), written->where()) : written;
  });
}

Ptr complete_lengths(const Ptr& node, std::string_view key) {
  if (node->is_scalar() && workloads::is_length_key(key) &&
      plain_type(node->text()) == PlainType::kInteger) {
    const SourceLocation& where = node->where();
    return tree::map({{"type", plain("fixed", where)}, {"mean", node}}, where);
  }
  if (!node->is_map()) return node;
  if (workloads::is_length_key(key)) return complete_distribution(node);
  Members members;
  for (const ConfigNode::Member& member : node->members())
    members.push_back({member.key, member.key_where, complete_lengths(member.value, member.key)});
  return ConfigNode::make_map(std::move(members), node->where());
}

/// The document, whose path is `at`, in the form `describe` knows: nulls left out, keys of older
/// files moved to their present place (with a warning, unless the tool still takes the older key),
/// a bare length written as a `fixed` distribution, and a distribution's missing keys filled with
/// inference-perf's defaults.
Ptr normalize(const Ptr& root, const std::string& at, Diagnostics& diagnostics) {
  Ptr current = refuse_early_server(without_nulls(root), at, diagnostics);
  for (const perf::KeyDrift& drift : perf::key_drifts()) {
    std::vector<Keys> matches;
    Keys prefix;
    find_matches(*current, split(drift.from), prefix, matches);
    for (const Keys& match : matches)
      current =
          move_key(current, at, match, target_of(drift, match), drift.both_current, diagnostics);
  }
  return complete_lengths(without_unknown_server_keys(current, at, diagnostics), {});
}

/// Whether a member of `workload.groups` is a length whose type is fixed, written or by default.
bool stays_fixed(const ConfigNode::Member& member) {
  if (!workloads::is_length_key(member.key) || !member.value->is_map()) return false;
  const ConfigNode* const type = member.value->child("type");
  if (type == nullptr) return member.value->find("distribution") == nullptr;
  return type->text() == "fixed";
}

bool has_map(const ConfigNode& map, std::string_view key) {
  const ConfigNode* value = map.child(key);
  return value != nullptr && value->is_map();
}

bool is_document(const ConfigNode& map) { return has_map(map, "load") && has_map(map, "data"); }

/// The keys around the document, in a chart's values or a benchmark's template.
constexpr std::string_view kWrapperFormat = "inference-perf values";

/// Whether the node is one of the tree, not of a text in it.
bool is_below(const ConfigNode& tree, const ConfigNode& node) {
  return &tree == &node ||
         std::any_of(tree.members().begin(), tree.members().end(),
                     [&](const auto& member) { return is_below(*member.value, node); });
}

bool may_hold_document(const std::string& text) {
  if (text.find("load:") == std::string::npos || text.find("data:") == std::string::npos)
    return false;
  Diagnostics ignored;
  const Ptr root = parse_config(text, {.file = {}}, ignored);
  return root != nullptr && root->is_map() && is_document(*root);
}

/// The document inside Kubernetes objects; null, with an error, when there is none.
Ptr document_in_objects(const Ptr& root, const std::string& path, Diagnostics& diagnostics) {
  const FoundDocument found = find_in_objects(
      root, {.is_document = is_document, .may_hold = may_hold_document, .file_keys = kFileKeys});
  if (found.node != nullptr)
    return found.node->is_scalar() ? parse_embedded(*found.node, diagnostics) : found.node;
  diagnostics.error(root->where(), path,
                    "is a Kubernetes " + printable(root->find("kind")->value->text()) +
                        ", not an inference-perf file",
                    found.hint.empty()
                        ? "give the file that its --config_file names, the ConfigMap with it, or "
                          "the chart's values"
                        : found.hint);
  return nullptr;
}

/// The document among the `workload` of llm-d's benchmark templates, by their names; null when
/// there is none, or, with an error, more than one.
template <class IsOne>
Ptr document_among_workloads(const ConfigNode& workloads, const std::string& path,
                             const IsOne& is_one, Diagnostics& diagnostics) {
  Ptr found;
  std::string names;
  for (const ConfigNode::Member& member : workloads.members()) {
    if (!is_one(*member.value)) continue;
    add_word(names, printable(member.key));
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
  // A ConfigMap has a key `data`, too.
  if (is_kubernetes_object(*root)) return document_in_objects(root, path, diagnostics);
  if (root->find("data") != nullptr) return root;
  if (has_map(*root, "workload")) {
    Diagnostics several;
    const Ptr found =
        document_among_workloads(*root->find("workload")->value, path, is_document, several);
    append(diagnostics, several);
    if (found != nullptr || several.has_errors()) return found;
  }
  // The values of the tool's own Helm chart hold the document; the rest is about the job.
  return has_map(*root, "config") ? root->find("config")->value : root;
}

Ptr workload_of_harness(const Ptr& root, std::string_view harness, const std::string& path,
                        Diagnostics& diagnostics) {
  if (!root->is_map() || !has_map(*root, "harness") || !has_map(*root, "workload")) return root;
  if (text_at(*root, {"harness", "name"}) != harness) return root;
  const auto is_map = [](const ConfigNode& node) { return node.is_map(); };
  const Ptr found =
      document_among_workloads(*root->find("workload")->value, path, is_map, diagnostics);
  if (found == nullptr) return root;
  note_keys(*root, path, key_table(kWrapperFormat), found.get(), diagnostics);
  return found;
}

Ptr complete_lengths(const Ptr& node) { return complete_lengths(node, {}); }

Ptr complete_group_lengths(const Ptr& groups, Diagnostics& diagnostics) {
  if (!groups->is_map()) return groups;
  Members members;
  for (ConfigNode::Member member : groups->members()) {
    if (!stays_fixed(member)) {
      member.value = complete_lengths(member.value, member.key);
    } else if (member.value->find("type") == nullptr) {
      for (const char* key : {"min", "max", "std_dev", "variance", "skew"})
        if (const ConfigNode::Member* of_other = member.value->find(key))
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
  if (document != root && is_below(*root, *document))
    note_keys(*root, options.path, key_table(kWrapperFormat), document.get(), diagnostics);
  Diagnostics found;
  read_struct(*normalize(document, options.path, found), config, found, options);
  add_findings(found, diagnostics);
  return config;
}

void add_findings(const Diagnostics& found, Diagnostics& diagnostics) {
  for (Diagnostic d : found.items()) {
    if (d.message.find("(got REPLACE_ENV_") != std::string::npos)
      d.hint = "a placeholder of llm-d-benchmark: write the value, or give it with --set";
    diagnostics.add(std::move(d));
  }
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
}

}  // namespace routesim::tools
