#include "tools/ingest/loads/guidellm_yaml.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kRoot = "workload.guidellm";

/// GuideLLM takes each key with hyphens, too, and its own scenarios write them so.
Ptr underscored(const Ptr& node, Diagnostics& diagnostics) {
  if (!node->is_map()) return node;
  Members members = node->members();
  std::set<std::string> keys;
  for (Member& member : members) {
    member.key = with_underscores(member.key);
    if (!keys.insert(member.key).second)
      diagnostics.error(member.key_where, std::string(kRoot) + "." + member.key,
                        "stands here twice, with a hyphen and with an underscore");
    if (member.key != "metadata") member.value = underscored(member.value, diagnostics);
  }
  return ConfigNode::make_map(std::move(members), node->where());
}

Ptr list_of(const Ptr& value) {
  return value->is_sequence() ? value : tree::list({value}, value->where());
}

/// The settings as they come together.
class Settings {
 public:
  Settings(const SourceLocation& where, Diagnostics& diagnostics)
      : where_(where), diagnostics_(diagnostics) {}

  void read(const ConfigNode& spec) {
    for (const Member& member : spec.members()) read_member(member);
    if (rate_) place_rate(*rate_);
  }

  /// `profile.streams: 50` and `constraints[0].count: 320`: lists with an element per benchmark.
  void override_by(const ConfigNode& benchmarks) {
    std::map<std::string, std::pair<Member, std::vector<Ptr>>> lists;
    for (const Ptr& benchmark : benchmarks.items())
      for (const Member& member : benchmark->members()) {
        auto& [first, values] =
            lists.try_emplace(member.key, member, std::vector<Ptr>()).first->second;
        values.push_back(member.value);
      }
    for (auto& [path, list] : lists) {
      auto& [first, values] = list;
      Member member = first;
      member.value = ConfigNode::make_sequence(values, first.value->where());
      if (values.size() != benchmarks.items().size())
        fail(first, "stands in some of the benchmarks only", "give every benchmark its own");
      else if (path == "profile.streams" || path == "profile.rate")
        set(profile_, std::move(member), path.substr(8));
      else if (path.starts_with("constraints[") && path.ends_with(".seconds"))
        set(settings_, std::move(member), "max_seconds");
      else if (path.starts_with("constraints[") && path.ends_with(".count"))
        set(settings_, std::move(member), "max_requests");
      else
        fail(first, "cannot change between benchmarks here",
             "profile.streams, profile.rate and the limits of constraints can");
    }
  }

  Ptr build() {
    if (!profile_.empty()) settings_.push_back({"profile", where_, make_map(std::move(profile_))});
    return make_map(std::move(settings_));
  }

 private:
  Ptr make_map(Members members) const { return ConfigNode::make_map(std::move(members), where_); }

  void fail(const Member& at, std::string what, std::string hint) {
    diagnostics_.error(at.key_where, std::string(kRoot) + "." + at.key, std::move(what),
                       std::move(hint));
  }

  static void set(Members& members, Member member, const std::string& key) {
    member.key = key;
    put_member(members, std::move(member));
  }

  void read_member(const Member& member) {
    const std::string& key = member.key;
    const ConfigNode& value = *member.value;
    if (key == "profile" || key == "rate_type") {
      read_profile(member);
    } else if (key == "rate") {
      rate_ = member;
    } else if (key == "data") {
      read_data(member);
    } else if (key == "constraints" && value.is_sequence()) {
      for (const Ptr& item : value.items()) read_constraint(*item);
    } else if (key == "max_seconds" || key == "max_requests") {
      put_member(settings_, {key, member.key_where, list_of(member.value)});
    } else if (key == "data_loader" && value.find("samples") != nullptr) {
      set(settings_, *value.find("samples"), "samples");
    } else if (key == "backend" && value.find("request_format") != nullptr) {
      read_format(*value.find("request_format"));
    } else if (key == "data_request_formatter" || key == "request_type") {
      read_format(member);
    } else if (!has_no_effect(key)) {
      settings_.push_back(member);
    }
  }

  static bool has_no_effect(const std::string& key) {
    for (const std::string& path : {key, key + ".x"})
      if (const KeyRule* rule = find_rule(key_table(kGuidellmFormat), path);
          rule != nullptr && rule->fate != Fate::kUsed)
        return true;
    return false;
  }

  void read_format(const Member& format) {
    const bool is_chat = format.value->text().find("chat") != std::string::npos;
    put_member(settings_,
               {"chat", format.key_where, tree::boolean(is_chat, format.value->where())});
  }

  void read_profile(const Member& member) {
    if (member.value->is_scalar()) set(profile_, member, "kind");
    if (!member.value->is_map()) return;
    for (const Member& part : member.value->members()) {
      if (part.key == "warmup" || part.key == "cooldown") continue;
      const bool is_list = part.key == "streams" || part.key == "rate";
      const bool is_async = part.key == "kind" && part.value->text() == "async";
      put_member(profile_, {part.key, part.key_where,
                            is_list    ? list_of(part.value)
                            : is_async ? plain("constant", part.value->where())
                                       : part.value});
    }
  }

  /// Up to 0.6 `rate` stood beside the profile's name, and meant what the profile needs.
  void place_rate(const Member& rate) {
    const Member* const kind = find_member(profile_, "kind");
    const std::string name = kind == nullptr ? "sweep" : kind->value->text();
    Member member = rate;
    if (name != "sweep") member.value = list_of(rate.value);
    set(profile_, std::move(member),
        name == "concurrent" ? "streams"
        : name == "sweep"    ? "sweep_size"
                             : "rate");
  }

  void read_data(const Member& member) {
    Ptr data = member.value;
    if (data->is_sequence() && data->items().size() == 1) data = data->items()[0];
    if (data->is_scalar()) data = pairs(*data);
    if (data == nullptr || !data->is_map())
      return fail(member, "must be one data set of the kind synthetic_text",
                  "such as {prompt_tokens: 256, output_tokens: 128}");
    Members members;
    for (const Member& part : data->members()) {
      if (part.key != "kind" && part.key != "type")
        members.push_back(part);
      else if (part.value->text() != "synthetic_text")
        fail(part, "is not simulated (got " + printable(part.value->text()) + ")",
             "synthetic_text is; files are workload.trace or workload.vllm_bench");
    }
    put_member(settings_, {"data", member.key_where, make_map(std::move(members))});
  }

  /// `prompt_tokens=256,output_tokens=128`; null for another text.
  static Ptr pairs(const ConfigNode& text) {
    Members members;
    for (std::string_view rest = text.text(); !rest.empty();) {
      const std::string_view pair = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) return nullptr;
      members.push_back({std::string(trimmed(pair.substr(0, equals))), text.where(),
                         untyped(std::string(trimmed(pair.substr(equals + 1))), text.where())});
    }
    return ConfigNode::make_map(std::move(members), text.where());
  }

  void read_constraint(const ConfigNode& item) {
    const ConfigNode* kind = item.child("kind");
    const std::string name = text_at(item, {"kind"});
    const bool is_time = name == "max_duration";
    const Member* limit = item.find(is_time ? "seconds" : "count");
    if (kind == nullptr) {
      diagnostics_.error(item.where(), std::string(kRoot) + ".constraints", "needs a kind",
                         "max_duration or max_requests");
    } else if (!is_time && name != "max_requests") {
      diagnostics_.warning(kind->where(), std::string(kRoot) + ".constraints",
                           "is not simulated (got " + printable(name) + ")");
    } else if (limit != nullptr) {
      const std::string key = is_time ? "max_seconds" : "max_requests";
      put_member(settings_, {key, limit->key_where, list_of(limit->value)});
    }
  }

  SourceLocation where_;
  Diagnostics& diagnostics_;
  Members settings_, profile_;
  std::optional<Member> rate_;
};

}  // namespace

Ptr guidellm_settings(const Ptr& given, Diagnostics& diagnostics) {
  if (!given->is_map()) return given;
  const Ptr scenario = underscored(given, diagnostics);
  const ConfigNode* spec = scenario->child("spec");
  if (spec != nullptr && !spec->is_map()) return scenario;
  Settings settings(scenario->where(), diagnostics);
  if (spec != nullptr)
    note_keys(*scenario, std::string(kRoot), key_table(kGuidellmFormat), spec, diagnostics);
  for (const Member& member : scenario->members()) {
    if (spec == nullptr || member.key == "spec") continue;
    if (member.key != "benchmarks" && member.key != "metadata")
      diagnostics.error(member.key_where, std::string(kRoot) + "." + member.key,
                        "unknown key beside spec", "spec, benchmarks and metadata stand there");
  }
  const ConfigNode& keys = spec != nullptr ? *spec : *scenario;
  note_keys(keys, std::string(kRoot), key_table(kGuidellmFormat), nullptr, diagnostics);
  settings.read(keys);
  const ConfigNode* benchmarks = spec != nullptr ? scenario->child("benchmarks") : nullptr;
  if (benchmarks != nullptr && benchmarks->is_sequence()) settings.override_by(*benchmarks);
  return settings.build();
}

}  // namespace routesim::tools
