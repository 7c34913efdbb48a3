#include "tools/ingest/servers/vllm_serve_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
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

using enum FlagTakes;
using sim::EngineKind;

/// The names as in the table.
constexpr std::array<std::string_view, 17> kUses = {
    "ignored",      "copied", "count",       "switch",   "off switch", "kv cache dtype",
    "quantization", "tiers",  "config file", "adapters", "balancing",  "speculation",
    "expert ranks", "chunk",  "policy",      "warned",   "refused"};

/// A word of the table: `SWITCH`, `VALUE=` or `LIST=*`, behind `SHORT|` where it has a short form.
FlagRule named_rule(std::string_view word) {
  FlagRule rule;
  if (const std::size_t bar = word.find('|'); bar != word.npos) {
    rule.short_form = word.substr(0, bar);
    word.remove_prefix(bar + 1);
  }
  rule.name = word.substr(0, word.find('='));
  rule.takes = word.ends_with("=*") ? kValues : word.ends_with("=") ? kValue : kNothing;
  return rule;
}

}  // namespace

namespace {

/// A table of flags and what its texts stand in.
struct FlagTable {
  explicit FlagTable(std::string_view path) : rows(data_table(path)) {
    for (const std::vector<std::string>& row : rows)
      for (const std::string_view word : words_of(row.at(5))) {
        FlagRule& rule = rules.emplace_back(named_rule(word));
        const auto use = std::ranges::find(kUses, row[0]);
        ROUTESIM_CHECK(use != kUses.end(), "the table of flags has an unknown use");
        rule.use = static_cast<FlagUse>(use - kUses.begin());
        rule.fate = fate_named(row[1]);
        rule.why = row[2];
        rule.key = row[3];
        rule.harmless = row[4];
      }
    std::ranges::sort(rules, {}, &FlagRule::name);
  }
  DataTable rows;
  std::vector<FlagRule> rules;
};

}  // namespace

const std::vector<FlagRule>& all_flags(EngineKind engine) {
  static const FlagTable kVllm("tools/ingest/servers/vllm_serve_flags.csv");
  static const FlagTable kSglang("tools/ingest/servers/sglang_serve_flags.csv");
  return engine == EngineKind::kVllm ? kVllm.rules : kSglang.rules;
}

namespace {

const FlagRule* exact(std::string_view name, EngineKind engine) {
  const std::vector<FlagRule>& rules = all_flags(engine);
  const auto at =
      std::lower_bound(rules.begin(), rules.end(), name,
                       [](const FlagRule& rule, std::string_view n) { return rule.name < n; });
  return at != rules.end() && at->name == name ? &*at : nullptr;
}

/// The flag that a short form stands for; null for none.
const FlagRule* by_short_form(std::string_view form, EngineKind engine) {
  const std::vector<FlagRule>& rules = all_flags(engine);
  const auto at = std::ranges::find(rules, form, &FlagRule::short_form);
  return at != rules.end() && !form.empty() ? &*at : nullptr;
}

std::string_view without_dashes(std::string_view flag) {
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

bool is_flag_word(const ShellWord& word) {
  const bool is_negative_number =
      word.text.size() > 1 &&
      (std::isdigit(static_cast<unsigned char>(word.text[1])) != 0 || word.text[1] == '.');
  return word.text.starts_with("-") && word.text.size() > 1 && !is_negative_number;
}

std::optional<bool> truth(const std::string& written) {
  const std::string text = lower_case(written);
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

/// Every name, and vLLM's `no-NAME` of switches.
std::vector<std::string> serve_flag_names(EngineKind engine) {
  std::vector<std::string> names;
  for (const FlagRule& rule : all_flags(engine)) {
    names.emplace_back(rule.name);
    if (rule.takes == kNothing && engine == EngineKind::kVllm)
      names.push_back("no-" + std::string(rule.name));
  }
  return names;
}

const std::vector<std::string>& all_names(EngineKind engine) {
  static const std::vector<std::string> kVllm = serve_flag_names(EngineKind::kVllm);
  static const std::vector<std::string> kSglang = serve_flag_names(EngineKind::kSglang);
  return engine == EngineKind::kVllm ? kVllm : kSglang;
}

std::string suggestion(std::string_view name, EngineKind engine) {
  const std::string written = with_hyphens(std::string(name));
  if (by_short_form(written, engine) != nullptr) return "did you mean -" + written + "?";
  const std::string close = nearest(written, all_names(engine));
  if (!close.empty()) return "did you mean --" + close + "?";
  return "leave it out if nothing that is simulated depends on it";
}

/// The rule of a flag, of its short form or of its unambiguous beginning; else null and an error.
const FlagRule* find_begun(const std::string& written, const SourceLocation& where,
                           const std::string& key_path, bool& negated, Diagnostics& diagnostics,
                           EngineKind engine) {
  if (const FlagRule* rule = find_flag(written, negated, engine)) return rule;
  const std::string name = with_hyphens(std::string(without_dashes(written)));
  std::vector<std::string> meant;
  if (written.starts_with("--")) meant = flags_beginning(name, all_names(engine));
  if (meant.size() == 1) return find_flag_key(meant.front(), negated, engine);
  if (meant.empty())
    diagnostics.error(where, key_path, "unknown flag " + printable(written),
                      suggestion(name, engine));
  else
    diagnostics.error(where, key_path,
                      "is the beginning of several flags (got " + in_quotes(written) + ")",
                      fmt::format("write one of --{}", fmt::join(meant, ", --")));
  return nullptr;
}

/// `-O3`, `-O 3` and `-O=3` are an optimization level, `-O.level 3` and `-O JSON` are of the
/// compilation, as releases up to v0.10 have it (vllm/utils/argparse_utils.py@v0.33.0,
/// vllm/utils.py@v0.9.0).
std::string with_long_name(const std::string& flag, const ShellWord* next) {
  if (!flag.starts_with("-O")) return flag;
  const std::string rest = flag.substr(2);
  if (rest.starts_with(".")) return "--compilation-config" + rest;
  if (rest.empty())
    return next != nullptr && next->text.starts_with("{") ? "--compilation-config"
                                                          : "--optimization-level";
  return (rest.front() == '{' ? "--compilation-config=" : "--optimization-level=") +
         rest.substr(rest.front() == '=' ? 1 : 0);
}

/// Whether releases up to v0.8 take a value of the switch (StoreBoolean in
/// vllm/engine/arg_utils.py@v0.8.5).
bool took_truth(const FlagRule& rule) { return rule.name == "enable-chunked-prefill"; }

/// Reads the words of one command line.
class WordReader {
 public:
  WordReader(const std::vector<ShellWord>& words, const std::string& key_path, ServeFlags& flags,
             Diagnostics& diagnostics, EngineKind engine)
      : words_(words),
        key_path_(key_path),
        flags_(flags),
        diagnostics_(diagnostics),
        engine_(engine) {}

  void run() {
    while (next_ < words_.size()) {
      const ShellWord& word = words_[next_++];
      if (word.text == "--") continue;
      if (is_flag_word(word))
        read_flag(word);
      else
        read_positional(word);
    }
    for (const auto& [name, whole] : dotted_)
      flags_[name] = {.rule = exact(name, engine_), .value = {to_json(*whole), whole->where()}};
  }

 private:
  /// The model. A variable before it may hold flags.
  void read_positional(const ShellWord& word) {
    const bool is_first = model_ == nullptr && engine_ == EngineKind::kVllm;
    if (is_first || (model_ != nullptr && !model_->unknown.empty() && word.unknown.empty())) {
      if (!is_first) report_unknown(*model_);
      model_ = &word;
      flags_["model"] = {.rule = exact("model", engine_), .off = false, .value = word};
    } else if (!word.unknown.empty()) {
      report_unknown(word);
    } else {
      diagnostics_.error(
          word.where, key_path_, "belongs to no flag (got " + in_quotes(word.text) + ")",
          engine_ == EngineKind::kVllm
              ? "only the model stands without a flag; put values with blanks in quotes"
              : "the model stands behind --model-path");
    }
  }

  void report_unknown(const ShellWord& word) {
    diagnostics_.error(word.where, key_path_,
                       "what " + printable(word.unknown) + " stands for is not known here",
                       "write out the flags it holds");
  }

  void read_flag(const ShellWord& word) {
    const std::string written =
        with_long_name(word.text, next_ < words_.size() ? &words_[next_] : nullptr);
    const std::size_t equals = std::min(written.find('='), written.size());
    const bool has_value = equals < written.size();
    const std::string name = written.substr(0, equals);
    const std::size_t dot = std::min(name.find('.'), name.size());
    bool negated = false;
    const FlagRule* rule =
        find_begun(name.substr(0, dot), word.where, key_path_, negated, diagnostics_, engine_);
    if (rule == nullptr) return skip_values(has_value);
    ServeFlag flag{.rule = rule, .off = negated, .value = word};
    flag.value.text = has_value ? written.substr(equals + 1) : "";
    if (rule->takes == kNothing) {
      if (take_truth(name, has_value, flag)) flags_[std::string(rule->name)] = std::move(flag);
    } else if (take_value(name, has_value, flag)) {
      if (dot < name.size()) return add_dotted(*rule, name.substr(dot + 1), flag.value);
      flags_[std::string(rule->name)] = std::move(flag);
    }
  }

  /// A switch has no value, but for the flags of took_truth: `--NAME=false` and `--NAME false`.
  bool take_truth(const std::string& name, bool has_value, ServeFlag& flag) {
    const bool took = took_truth(*flag.rule);
    if (!has_value && !(took && next_ < words_.size() && truth(words_[next_].text))) return true;
    if (!has_value) flag.value.text = words_[next_++].text;
    const std::optional<bool> said = truth(flag.value.text);
    if (said) flag.off = flag.off == *said;
    const bool is_fine = took && said;
    diagnostics_.add({.severity = is_fine ? Severity::kWarning : Severity::kError,
                      .where = flag.value.where,
                      .path = key_path_,
                      .message = printable(name) + " is on or off and takes no value" +
                                 (is_fine ? " from vLLM 0.9 on" : "") + " (got " +
                                 in_quotes(flag.value.text) + ")",
                      .hint = fmt::format("write --{0} or --no-{0}", flag.rule->name)});
    return is_fine;
  }

  /// `--NAME.a.b VALUE`: one key of the JSON value of NAME; `--NAME.a+ x,y`: elements of a list.
  void add_dotted(const FlagRule& rule, std::string path, const ShellWord& word) {
    std::string value = word.text;
    if (path.ends_with('+')) {
      path.pop_back();
      std::string& items = lists_[std::string(rule.name) + "." + path];
      items += (items.empty() ? "" : ",") + value;
      value = "[" + items + "]";
    }
    Ptr& whole = dotted_[std::string(rule.name)];
    if (whole == nullptr) whole = ConfigNode::make_map({}, word.where);
    if (const auto key = parse_assignment_at(path + "=" + value, word.where, diagnostics_))
      whole = apply_assignment(whole, *key, diagnostics_);
  }

  void skip_values(bool has_value) {
    while (!has_value && next_ < words_.size() && !is_flag_word(words_[next_])) ++next_;
  }

  /// The words that belong to a flag with a value. `--flag=` leaves the default.
  bool take_value(const std::string& name, bool has_value, ServeFlag& flag) {
    if (has_value) return !flag.value.text.empty();
    if (next_ == words_.size() || is_flag_word(words_[next_])) {
      diagnostics_.error(flag.value.where, key_path_, printable(name) + " has no value");
      return false;
    }
    flag.value = words_[next_++];
    if (flag.rule->takes == kValues) skip_values(false);
    return true;
  }

  const std::vector<ShellWord>& words_;
  const std::string& key_path_;
  ServeFlags& flags_;
  Diagnostics& diagnostics_;
  EngineKind engine_;
  std::size_t next_ = 0;
  const ShellWord* model_ = nullptr;          ///< The word that stands without a flag.
  std::map<std::string, Ptr> dotted_;         ///< The values that dotted flags make.
  std::map<std::string, std::string> lists_;  ///< Elements of lists in them, so far.
};

}  // namespace

const FlagRule* find_flag_key(std::string_view key, bool& negated, EngineKind engine) {
  const std::string name = with_hyphens(std::string(key));
  const FlagRule* rule = exact(name, engine);
  negated = false;
  if (rule != nullptr || !name.starts_with("no-") || engine != EngineKind::kVllm) return rule;
  rule = exact(std::string_view(name).substr(3), engine);
  negated = rule != nullptr && rule->takes == kNothing;
  return negated ? rule : nullptr;
}

const FlagRule* find_flag(std::string_view written, bool& negated, EngineKind engine) {
  negated = false;
  if (!written.starts_with("--") && written.size() > 1)
    if (const FlagRule* rule = by_short_form(written.substr(1), engine)) return rule;
  return find_flag_key(without_dashes(written), negated, engine);
}

void read_flag_words(const std::vector<ShellWord>& words, const std::string& key_path,
                     ServeFlags& flags, Diagnostics& diagnostics, EngineKind engine) {
  WordReader(words, key_path, flags, diagnostics, engine).run();
}

void read_flag_map(const ConfigNode& map, const std::string& key_path, ServeFlags& flags,
                   Diagnostics& diagnostics, EngineKind engine) {
  for (const ConfigNode::Member& member : map.members()) {
    const ConfigNode& node = *member.value;
    ServeFlag flag;
    const std::string name =
        member.key == "model-tag" || member.key == "model_tag" ? "model" : member.key;
    flag.rule = find_begun("--" + name, member.key_where, key_path, flag.off, diagnostics, engine);
    if (flag.rule == nullptr) continue;
    if (flag.rule->use == FlagUse::kConfigFile)
      diagnostics.error(member.key_where, key_path,
                        "names a second file, which vLLM does not read");
    flag.value.where = node.is_null() ? member.key_where : node.where();
    flag.value.text = node.is_scalar() ? node.text() : node.is_null() ? "" : to_json(node);
    const bool is_switch = flag.rule->takes == kNothing;
    const std::optional<bool> said = truth(flag.value.text);
    if (is_switch && !said && !flag.value.text.empty()) {
      diagnostics.error(node.where(), key_path, member.key + " is on or off (" + got(node) + ")",
                        "write true or false");
      continue;
    }
    if (is_switch && said) flag.off = flag.off == *said;
    if (is_switch || !flag.value.text.empty())
      flags[std::string(flag.rule->name)] = std::move(flag);
  }
}

void note_variables(const ShellVariables& variables, bool with_lmcache, const std::string& key_path,
                    Diagnostics& diagnostics, EngineKind engine) {
  // Variables whose names begin so; the longest begin that fits a name counts. Names as in
  // vllm/envs.py@v0.33.0 and v0.9, Dynamo's runtime of August 2026, llm-d-benchmark.
  static const DataTable kRows = data_table("tools/ingest/servers/vllm_serve_variables.csv");
  for (const auto& [name, word] : variables) {
    const bool is_engines = name.starts_with("VLLM_") || name.starts_with("DYN_") ||
                            name.starts_with("SGLANG_") || name.starts_with("LMCACHE_");
    if (!is_engines || (with_lmcache && name.starts_with("LMCACHE_"))) continue;
    Fate fate = Fate::kNotModelled;
    std::string why = "no variable of this name is known here";
    std::size_t longest = 0;
    if (engine == EngineKind::kSglang && !name.starts_with("SGLANG_")) {
      fate = Fate::kNoEffect;
      why = "SGLang does not read it";
      longest = name.size();
    } else if (engine == EngineKind::kSglang) {
      why = "no variable of SGLang is";
      longest = name.size();
    }
    for (const std::vector<std::string>& row : kRows)
      for (const std::string_view begin : words_of(row.at(2)))
        if (begin.size() > longest && name.starts_with(begin)) {
          fate = fate_named(row[0]);
          why = row[1];
          longest = begin.size();
        }
    if (fate == Fate::kNotModelled)
      diagnostics.warning(word.where, key_path, printable(name) + " is not modelled: " + why);
    diagnostics.key({.where = word.where,
                     .format = kServeFormat,
                     .path = key_path + "." + name,
                     .fate = fate,
                     .why = why});
  }
}

std::string flag_text(const FlagRule& rule, const std::string& value) {
  const std::string name(rule.name);
  const bool is_on = (value == "true") == (rule.use == FlagUse::kSwitch);
  switch (rule.use) {
    case FlagUse::kSwitch:
    case FlagUse::kOffSwitch:
      return (is_on ? "--" : "--no-") + name;
    case FlagUse::kCopied:
    case FlagUse::kCount:
    case FlagUse::kKvCacheDtype:
    case FlagUse::kPolicy:
      return "--" + name + " " + value;
    case FlagUse::kSpeculation:  // All releases have the dotted form.
      return rule.key.empty() ? ""
                              : "--speculative-config" +
                                    std::string(rule.key.substr(rule.key.rfind('.'))) + " " + value;
    case FlagUse::kChunk:
      return "--" + name + " " + (value == "0" ? "-1" : value);
    case FlagUse::kAdapters:
      return rule.takes == FlagTakes::kValue ? "--" + name + " " + value : "";
    default:
      return {};
  }
}

}  // namespace routesim::tools
