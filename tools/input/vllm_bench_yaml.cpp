#include "tools/input/vllm_bench_yaml.h"

#include <algorithm>
#include <array>
#include <map>

#include "tools/input/config_merge.h"
#include "tools/output/printable.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;

/// Flags without a part in what is sent, or when.
constexpr std::array<std::string_view, 25> kOwnBusiness = {"append_result",
                                                           "base_url",
                                                           "disable_tqdm",
                                                           "endpoint",
                                                           "endpoint_type",
                                                           "executable",
                                                           "host",
                                                           "insecure",
                                                           "label",
                                                           "metadata",
                                                           "metric_percentiles",
                                                           "model",
                                                           "percentile_metrics",
                                                           "port",
                                                           "profile",
                                                           "ready_check_timeout_sec",
                                                           "result_dir",
                                                           "result_filename",
                                                           "save_detailed",
                                                           "save_result",
                                                           "served_model_name",
                                                           "temperature",
                                                           "tokenizer",
                                                           "tokenizer_mode",
                                                           "trust_remote_code"};

constexpr std::array<std::string_view, 6> kDataSets = {
    "prefix_repetition", "random", "sharegpt", "sonnet", "custom", "timed_trace"};

/// Flags that take no value on the command line.
constexpr std::array<std::string_view, 2> kSwitches = {"ignore_eos", "disable_shuffle"};

template <class List>
bool has(const List& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

Ptr truth(const SourceLocation& where) {
  return ConfigNode::make_scalar("true", ConfigNode::Style::kPlain, where);
}

std::string with_underscores(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

ConfigNode::Member renamed(const ConfigNode::Member& flag) {
  ConfigNode::Member out = flag;
  out.key = with_underscores(flag.key);
  const bool bare =
      flag.value->is_null() || (flag.value->is_scalar() && flag.value->text() == "none");
  if (bare && has(kSwitches, out.key)) out.value = truth(flag.key_where);
  if (out.key == "request_rate" && flag.value->is_scalar() && flag.value->text() == "inf")
    out.value = ConfigNode::make_scalar(".inf", ConfigNode::Style::kPlain, flag.value->where());
  if (out.key == "backend") {
    const bool is_chat = flag.value->is_scalar() && flag.value->text() == "openai-chat";
    out.key = is_chat ? "chat" : "endpoint";
    if (is_chat) out.value = truth(flag.value->where());
  }
  for (const std::string_view data : kDataSets) {
    const std::string prefix = std::string(data) + "_";
    if (!out.key.starts_with(prefix)) continue;
    out.value = ConfigNode::make_map({{out.key.substr(prefix.size()), flag.key_where, out.value}},
                                     flag.value->where());
    out.key = std::string(data);
    break;
  }
  return out;
}

/// The same flag in both spellings: which of them counts, nobody can tell. One from the command
/// line replaces what the file says.
void check_spelled_once(const ConfigNode& flags, Diagnostics& diagnostics) {
  std::map<std::string, const ConfigNode::Member*> seen;
  for (const ConfigNode::Member& flag : flags.members()) {
    const auto [first, is_new] = seen.emplace(with_underscores(flag.key), &flag);
    if (is_new || is_from_command_line(flag.key_where)) continue;
    const ConfigNode::Member& other = *first->second;
    diagnostics.error(flag.key_where, "",
                      "duplicate flag " + in_quotes(flag.key) + ", first set as " +
                          in_quotes(other.key) + " on line " + std::to_string(other.key_where.line),
                      "keep one of the two");
  }
}

}  // namespace

Ptr vllm_bench_flags(const Ptr& flags, Diagnostics& diagnostics) {
  if (!flags->is_map()) return flags;
  check_spelled_once(*flags, diagnostics);
  std::vector<ConfigNode::Member> members;
  for (const ConfigNode::Member& flag : flags->members()) {
    ConfigNode::Member member = renamed(flag);
    if (has(kOwnBusiness, member.key)) continue;
    const auto same = std::find_if(members.begin(), members.end(),
                                   [&](const auto& other) { return other.key == member.key; });
    if (same == members.end())
      members.push_back(std::move(member));
    else
      same->value = merge_configs(same->value, member.value);
  }
  return ConfigNode::make_map(std::move(members), flags->where());
}

}  // namespace routesim::tools
