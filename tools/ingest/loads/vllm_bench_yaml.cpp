#include "tools/ingest/loads/vllm_bench_yaml.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/diagnostic.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

struct Renaming {
  std::string_view flag;
  std::string_view data_set;
  std::string_view key;
  bool value;
};
/// Switches that are settings of a data set here.
constexpr std::array<Renaming, 3> kRenamings = {
    {{"no_oversample", "sharegpt", "oversample", false},
     {"self_timed", "timed_trace", "self_timed", true},
     {"no_self_timed", "timed_trace", "self_timed", false}}};

constexpr std::array<std::string_view, 6> kDataSets = {
    "prefix_repetition", "random", "sharegpt", "sonnet", "custom", "timed_trace"};

/// Flags that take no value on the command line.
constexpr std::string_view kSwitches = "ignore_eos disable_shuffle";

/// A switch that is on, as the tool's files write it: without a value, or `none`.
bool is_bare(const ConfigNode& value) {
  return value.is_null() || (value.is_scalar() && value.text() == "none");
}

/// `random-range-ratio` may be a map of two, in JSON where it is text.
Ptr range_ratio(const Ptr& value, Diagnostics& diagnostics) {
  Ptr map = value;
  if (value->is_scalar() && value->text().starts_with("{"))
    map = parse_embedded(*value, diagnostics);
  if (map == nullptr || !map->is_map()) return nullptr;
  Members members;
  for (ConfigNode::Member member : map->members()) {
    if (member.key == "input" || member.key == "output") member.key += "_range_ratio";
    members.push_back(std::move(member));
  }
  return ConfigNode::make_map(std::move(members), value->where());
}

ConfigNode::Member renamed(const ConfigNode::Member& flag, Diagnostics& diagnostics) {
  ConfigNode::Member out = flag;
  out.key = with_underscores(flag.key);
  const bool bare = is_bare(*flag.value);
  const SourceLocation& where = bare ? flag.key_where : flag.value->where();
  if (bare && has_word(kSwitches, out.key)) out.value = tree::boolean(true, where);
  if (out.key == "request_rate" && flag.value->text() == "inf") out.value = plain(".inf", where);
  if (out.key == "backend" || out.key == "endpoint_type") {
    const bool is_chat = flag.value->text() == "openai-chat";
    out.key = is_chat ? "chat" : "endpoint";
    if (is_chat) out.value = tree::boolean(true, where);
  }
  if (out.key == "lora_modules" && flag.value->is_scalar())
    out.value = ConfigNode::make_sequence({flag.value}, where);
  if (out.key == "random_range_ratio") {
    if (const Ptr ratios = range_ratio(flag.value, diagnostics); ratios != nullptr) {
      out.key = "random";
      out.value = ratios;
    }
  }
  for (const Renaming& r : kRenamings) {
    if (out.key != r.flag) continue;
    const bool off = flag.value->text() == "false";
    out.key = std::string(r.data_set);
    out.value = ConfigNode::make_map(
        {{std::string(r.key), flag.key_where, tree::boolean(r.value != off, where)}}, where);
    return out;
  }
  for (const std::string_view data : kDataSets) {
    const std::string prefix = std::string(data) + "_";
    if (!out.key.starts_with(prefix)) continue;
    out.value =
        ConfigNode::make_map({{out.key.substr(prefix.size()), flag.key_where, out.value}}, where);
    out.key = std::string(data);
    break;
  }
  return out;
}

/// Notes what becomes of a flag, and says what the simulation leaves out of it; whether the flag is
/// no key of the scenario.
bool is_left_out(const Member& flag, Diagnostics& diagnostics) {
  const std::string path = "workload.vllm_bench." + flag.key, name = with_underscores(flag.key);
  const KeyRule* rule = find_rule(key_table(kBenchFormat), name);
  const Fate fate = rule == nullptr ? Fate::kUsed : rule->fate;
  const std::string why(rule == nullptr ? "" : rule->why);
  diagnostics.key(key_use(flag.key_where, kBenchFormat, path, fate, why, is_off(*flag.value)));
  const std::string body =
      name == "extra_body" ? flag.value->text() + to_json(*flag.value) : std::string();
  if (body.find("ignore_eos") != std::string::npos || body.find("_tokens") != std::string::npos)
    diagnostics.warning(flag.key_where, path, "what it says of the length of answers is not read",
                        "say it with ignore-eos, or the output-len of the data set");
  if (fate == Fate::kNotModelled && !is_off(*flag.value))
    diagnostics.warning(flag.key_where, path, why);
  return fate == Fate::kNotModelled || fate == Fate::kNoEffect;
}

/// A ready check waits for the answer to a test request; without a timeout there is none.
void note_ready_check(ConfigNode::Member& flag, Diagnostics& diagnostics) {
  const Parsed<std::int64_t> seconds = parse_integer(*flag.value, IntRange{0, 1'000'000'000});
  if (!seconds.value)
    diagnostics.error(flag.value->where(), "workload.vllm_bench." + flag.key, seconds.message,
                      seconds.hint);
  flag.key = "initial_test_request";
  flag.value = tree::boolean(seconds.value.value_or(0) > 0, flag.value->where());
}

/// Refuses a flag in both spellings. One from the command line replaces that of the file.
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

bool has_dashed_key(const ConfigNode& flags, std::string_view key) {
  return std::any_of(flags.members().begin(), flags.members().end(),
                     [&](const auto& flag) { return with_underscores(flag.key) == key; });
}

}  // namespace

bool is_own_business_of_vllm_bench(std::string_view flag) {
  const KeyRule* rule = find_rule(key_table(kBenchFormat), with_underscores(std::string(flag)));
  return rule != nullptr && rule->fate == Fate::kNoEffect;
}

Ptr vllm_bench_goodput(const ConfigNode& flags) {
  for (const ConfigNode::Member& flag : flags.members()) {
    if (flag.key != "goodput") continue;
    std::vector<Ptr> goals;
    const auto add = [&](const std::string& text, const SourceLocation& where) {
      const bool has_unit = !text.empty() && text.back() == 's';
      goals.push_back(tree::text(has_unit ? text : text + "ms", where));
    };
    for (const Ptr& item : flag.value->items()) add(item->text(), item->where());
    for (const std::string_view word : words_of(flag.value->text()))
      add(std::string(word), flag.value->where());
    return ConfigNode::make_sequence(std::move(goals), flag.value->where());
  }
  return nullptr;
}

Ptr vllm_bench_flags(const Ptr& flags, Diagnostics& diagnostics) {
  if (!flags->is_map()) return flags;
  check_spelled_once(*flags, diagnostics);
  const bool states_test_request = has_dashed_key(*flags, "initial_test_request");
  Members members;
  for (const ConfigNode::Member& flag : flags->members()) {
    if (is_left_out(flag, diagnostics)) continue;
    ConfigNode::Member member = renamed(flag, diagnostics);
    if (member.key == "endpoint" || member.key == "goodput") continue;
    if (member.key == "ready_check_timeout_sec") {
      note_ready_check(member, diagnostics);
      if (states_test_request) continue;
    }
    ConfigNode::Member* const same = find_member(members, member.key);
    if (same == nullptr)
      members.push_back(std::move(member));
    else
      same->value = merge_configs(same->value, member.value);
  }
  return ConfigNode::make_map(std::move(members), flags->where());
}

}  // namespace routesim::tools
