#include "tools/ingest/servers/speculative_config.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

bool says_nothing(const ConfigNode& node) {
  return node.is_scalar() && (node.text().empty() || has_word("none null 0", node.text()));
}

/// The method where only a model is named, by its name as vLLM guesses it
/// (SpeculativeConfig.__post_init__, vllm/config/speculative.py): `ngram`, EAGLE's heads, else a
/// draft model.
std::string method_by_model(const std::string& model) {
  const std::string name = lower_case(model);
  if (name == "ngram" || name == "[ngram]") return "ngram";
  if (name.find("eagle3") != std::string::npos) return "eagle3";
  return name.find("eagle-") != std::string::npos ? "eagle" : "draft_model";
}

class SpeculationReader {
 public:
  SpeculationReader(const SpeculationSources& sources, const std::string& key_path,
                    Diagnostics& diagnostics)
      : sources_(sources), key_path_(key_path), diagnostics_(diagnostics) {}

  Ptr read() {
    if (sources_.config != nullptr) read_config(sources_.config->value);
    take(sources_.method, method_);
    take(sources_.model, model_);
    take(sources_.tokens, tokens_);
    if (method_ == nullptr && model_ == nullptr && tokens_ == nullptr) return nullptr;
    Members members;
    if (const Ptr method = known_method()) members.push_back({"method", method->where(), method});
    if (model_ != nullptr) members.push_back({"model", model_->where(), model_});
    if (tokens_ != nullptr)
      members.push_back({"num_speculative_tokens", tokens_->where(), tokens_});
    if (members.empty()) return nullptr;
    const SourceLocation where = members.front().key_where;
    return ConfigNode::make_map(std::move(members), where);
  }

 private:
  void read_config(const ShellWord& word) {
    if (word.text.empty() || has_word("none null {} 0", lower_case(word.text))) return;
    Diagnostics unread;
    const Ptr config = parse_config(word.text, {.file = word.where.file}, unread);
    if (config == nullptr || !config->is_map() || unread.has_errors()) {
      diagnostics_.error(word.where, key_path_,
                         "--speculative-config is no JSON (got " + in_quotes(word.text) + ")",
                         "put it into single quotes");
      return;
    }
    const Ptr moved = moved_to(config, word.where);
    note_keys(*moved, key_path_ + ".speculative-config", key_table("speculative-config"), nullptr,
              diagnostics_);
    for (const auto& [key, to] :
         {std::pair{"method", &method_}, {"model", &model_}, {"num_speculative_tokens", &tokens_}})
      if (const Member* member = moved->find(key);
          member != nullptr && !says_nothing(*member->value))
        *to = member->value;
  }

  static void take(const ServeFlag* flag, Ptr& to) {
    if (flag == nullptr) return;
    const Ptr value = untyped(flag->value.text, flag->value.where);
    if (!says_nothing(*value)) to = value;
  }

  /// The methods of MTP have a name for each family of models.
  Ptr known_method() {
    if (method_ == nullptr)
      return model_ == nullptr ? nullptr : plain(method_by_model(model_->text()), model_->where());
    std::string name = lower_case(method_->text());
    if (name.ends_with("_mtp")) name = "mtp";
    for (const std::string_view known : EnumNames<sim::SpeculationMethod>::value)
      if (name == known) return plain(name, method_->where());
    diagnostics_.error(method_->where(), key_path_,
                       "--speculative-config has a method that is not simulated (got " +
                           in_quotes(method_->text()) + ")",
                       "write engine.speculative into the pool with the method that is closest, or "
                       "leave it out to simulate the servers without it");
    return nullptr;
  }

  const SpeculationSources& sources_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
  Ptr method_, model_, tokens_;
};

}  // namespace

Ptr speculation_of(const SpeculationSources& sources, const std::string& key_path,
                   Diagnostics& diagnostics) {
  return SpeculationReader(sources, key_path, diagnostics).read();
}

}  // namespace routesim::tools
