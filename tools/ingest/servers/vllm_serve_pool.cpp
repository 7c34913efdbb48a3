// Turns the flags of `vllm serve` and `sglang serve` into the keys of a pool.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/servers/speculative_config.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using models::WeightDtype;

/// `16k` is 16000, `16K` 16384, `25.6k` 25600: vLLM's readable whole numbers. Other text is left to
/// the reader of the pool, which refuses what is no number.
std::string plain_count(const std::string& text) {
  constexpr std::string_view kSuffixes = "kmgtKMGT";
  const std::size_t suffix = text.empty() ? std::string_view::npos : kSuffixes.find(text.back());
  if (suffix == std::string_view::npos) return text;
  const std::string digits = text.substr(0, text.size() - 1);
  const std::optional<double> number = number_from(digits);
  const bool is_binary = suffix >= 4;
  if (!number || *number < 0 || (is_binary && digits.find('.') != std::string::npos)) return text;
  const double value =
      std::floor(*number * std::pow(is_binary ? 1024.0 : 1000.0, double(suffix % 4 + 1)) + 1e-6);
  return value < 1e15 ? std::to_string(static_cast<std::int64_t>(value)) : text;
}

/// The value as a whole number; nothing when it is none, or not known.
std::optional<std::int64_t> whole(const ServeFlag* flag) {
  if (flag == nullptr || !flag->value.unknown.empty()) return std::nullopt;
  const std::optional<double> v = number_from(plain_count(flag->value.text));
  return v && std::floor(*v) == *v && std::abs(*v) < 1e9
             ? std::optional<std::int64_t>(static_cast<std::int64_t>(*v))
             : std::nullopt;
}

/// The weights a --quantization method makes or expects; nothing for methods without a format here.
std::optional<WeightDtype> weights_of(const std::string& method) {
  if (method == "fp8" || method == "modelopt" || method == "fbgemm_fp8" || method == "ptpc_fp8")
    return WeightDtype::kFp8;
  if (method == "mxfp4" || method == "gpt_oss_mxfp4") return WeightDtype::kMxfp4;
  if (method == "modelopt_fp4" || method == "nvfp4") return WeightDtype::kNvfp4;
  if (method.starts_with("awq") || method.starts_with("gptq")) return WeightDtype::kInt4;
  return std::nullopt;
}

/// Releases of vLLM, or of llm-d's own images of it, that one preset stands for.
struct Releases {
  int first;
  int last;  ///< Minor numbers of v0.
  std::string_view preset;
};
constexpr int kNewest = 1'000'000;
constexpr std::array kVllm = {Releases{9, 10, "2025-Q3"}, Releases{11, 12, "2025-H2"},
                              Releases{14, 20, "2026-H1"}, Releases{21, kNewest, "2026-H2"}};
/// By the vLLM they hold: v0.3 has 0.11.0, v0.5 0.14.1, v0.6 0.17.1, v0.7 0.19.1, v0.8 0.23.0, v0.9
/// 0.26.0 (component tables of the llm-d releases; pull request 365), and 0.13 came after v0.4
/// (558).
constexpr std::array kLlmD = {Releases{2, 2, "2025-Q3"}, Releases{3, 4, "2025-H2"},
                              Releases{5, 7, "2026-H1"}, Releases{8, kNewest, "2026-H2"}};
constexpr std::string_view kLlmDImages = "llm-d llm-d-cuda llm-d-aws llm-d-rocm";

/// The release of the engine, read from an image's name.
struct ImageRelease {
  bool known = false;       ///< An official image, with a release for its tag.
  std::string_view preset;  ///< Empty where no preset stands for the release.
  int vllm_minor = 0;       ///< 0 for images that are not vLLM's own.
};

ImageRelease release_of(const std::string& image) {
  const std::string_view name = last_part(image);
  const std::size_t tag = name.find(":v0.");
  if (tag == std::string_view::npos) return {};
  const std::string_view repository = name.substr(0, tag);
  const bool is_vllm = repository == "vllm-openai" || repository == "vllm-openai-rocm";
  if (!is_vllm && !has_word(kLlmDImages, repository)) return {};
  int minor = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + tag + 4, last, minor);
  if (error != std::errc() || !(end == last || *end == '.' || *end == '-')) return {};
  for (const Releases& releases : is_vllm ? std::span(kVllm) : std::span(kLlmD))
    if (minor >= releases.first && minor <= releases.last)
      return {.known = true, .preset = releases.preset, .vllm_minor = is_vllm ? minor : 0};
  return {.known = true, .preset = {}, .vllm_minor = is_vllm ? minor : 0};
}

/// Turns the flags in force into keys of one pool.
class Filler {
 public:
  Filler(const Ptr& pool, const ServerStart& start, const std::string& key_path,
         Diagnostics& diagnostics)
      : pool_(pool), start_(start), key_path_(key_path), diagnostics_(diagnostics) {}

  void read(const SourceLocation& written_at) {
    const Ptr given = ConfigNode::make_map(start_.flags, start_.where);
    read_flag_map(*given, key_path_, flags_, diagnostics_, start_.engine);
    ServeFlags said;
    read_flag_words(start_.words, key_path_, said, diagnostics_, start_.engine);
    if (const auto config = said.find("config"); config != said.end())
      read_config_flag(config->second, written_at);
    for (auto& [name, flag] : said) flags_[name] = std::move(flag);
    // SGLang's names of one flag.
    if (auto path = flags_.extract("model-path")) {
      path.key() = "model";
      flags_.insert(std::move(path));
    }
  }

  Ptr filled() {
    if (is_sglang()) set("engine.kind", "sglang", start_.where);
    for (const auto& [name, flag] : flags_) {
      note_fate(name, flag);
      use(name, flag);
    }
    if (!is_sglang()) {
      use_tiers();
      use_speculation();
    }
    use_model();
    if (is_sglang()) {
      note_variables(start_.environment, false, key_path_, diagnostics_, start_.engine);
    } else {
      use_adapters();
      use_balancing();
      use_environment();
    }
    use_image();
    if (start_.replicas != nullptr) set("replicas", start_.replicas);
    use_accelerator();
    if (!start_.labels.empty())
      set("labels", ConfigNode::make_sequence(start_.labels, start_.labels.front()->where()));
    const Members life = life_keys(
        start_.life, [this](std::string_view key) { return is_explicit(key); }, key_path_,
        diagnostics_);
    return merge_configs(ConfigNode::make_map(life, pool_->where()), result());
  }

 private:
  bool is_sglang() const { return start_.engine == sim::EngineKind::kSglang; }

  const ServeFlag* find(const std::string& name) const {
    const auto at = flags_.find(name);
    return at == flags_.end() ? nullptr : &at->second;
  }

  /// Whether the pool says this key (or one below it) itself.
  bool is_explicit(std::string_view key) const { return says_key(*pool_, key); }

  void set(std::string_view key, const Ptr& value) {
    if (is_explicit(key)) return;
    const std::size_t dot = key.rfind('.');
    const std::string name(key.substr(dot == key.npos ? 0 : dot + 1));
    Members& members = dot == key.npos                     ? top_
                       : key.starts_with("engine.sglang.") ? sglang_
                       : key.starts_with("engine.")        ? engine_
                       : key.starts_with("termination.")   ? termination_
                                                           : api_server_;
    members.push_back({name, value->where(), value});
  }

  void set(std::string_view key, const std::string& text, const SourceLocation& where) {
    set(key, plain(text, where));
  }

  std::string shown(const std::string& name, const ServeFlag& flag) const {
    return flag.off ? "--no-" + name : "--" + name;
  }

  void error(const ServeFlag& flag, const std::string& what, const std::string& hint) {
    diagnostics_.error(flag.value.where, key_path_, what, hint);
  }

  /// False, with an error, when the value depends on a variable without a value.
  bool is_known(const std::string& name, const ServeFlag& flag) {
    if (flag.value.unknown.empty()) return true;
    const std::string key(flag.rule->key);
    error(
        flag,
        shown(name, flag) + " depends on " + printable(flag.value.unknown) +
            ", which is not known here",
        key.empty() ? "write its value out" : "write its value out, or " + key + " into the pool");
    return false;
  }

  void note_fate(const std::string& name, const ServeFlag& flag) {
    const FlagRule& rule = *flag.rule;
    KeyUse use{.where = flag.value.where,
               .format = is_sglang() ? kLaunchFormat : kServeFormat,
               .path = key_path_ + "." + name,
               .fate = rule.fate,
               .why = rule.fate == Fate::kUsed ? "" : std::string(rule.why)};
    if (!rule.key.empty() && is_explicit(rule.key)) {
      use.fate = Fate::kNoEffect;
      use.why = "the pool says " + std::string(rule.key) + " itself";
    } else if (rule.fate == Fate::kNotModelled && is_harmless(flag)) {
      use.fate = Fate::kNoEffect;
      use.why = "this value changes nothing";
    }
    diagnostics_.key(std::move(use));
  }

  static bool is_harmless(const ServeFlag& flag) {
    if (flag.rule->takes == FlagTakes::kNothing) return flag.off;
    return has_word(flag.rule->harmless, lower_case_if_word(flag.value.text));
  }

  void use(const std::string& name, const ServeFlag& flag) {
    const FlagRule& rule = *flag.rule;
    if (!rule.key.empty() && is_explicit(rule.key)) return;
    switch (rule.use) {
      case FlagUse::kCopied:
        if (name != "model" && is_known(name, flag))
          set(rule.key, flag.value.text, flag.value.where);
        break;
      case FlagUse::kCount:
        if (is_known(name, flag)) use_count(name, flag);
        break;
      case FlagUse::kSwitch:
      case FlagUse::kOffSwitch:
        set(rule.key, flag.off == (rule.use == FlagUse::kSwitch) ? "false" : "true",
            flag.value.where);
        break;
      case FlagUse::kKvCacheDtype:
        if (is_known(name, flag)) use_kv_cache_dtype(flag);
        break;
      case FlagUse::kQuantization:
        if (!is_explicit("model") && is_known(name, flag)) use_quantization(flag);
        break;
      case FlagUse::kExpertRanks:
        if (is_known(name, flag)) use_expert_ranks(name, flag);
        break;
      case FlagUse::kChunk:
        if (is_known(name, flag))
          set(rule.key, flag.value.text == "-1" ? "0" : plain_count(flag.value.text),
              flag.value.where);
        break;
      case FlagUse::kPolicy:
        if (is_known(name, flag)) use_policy(name, flag);
        break;
      case FlagUse::kWarned:
      case FlagUse::kRefused:
        use_left_out(name, flag);
        break;
      case FlagUse::kIgnored:
      case FlagUse::kTiers:
      case FlagUse::kAdapters:
      case FlagUse::kBalancing:
      case FlagUse::kSpeculation:
      case FlagUse::kConfigFile:
        break;
    }
  }

  void use_count(const std::string& name, const ServeFlag& flag) {
    const bool fits_itself =
        name == "max-model-len" && (flag.value.text == "-1" || flag.value.text == "auto");
    if (!fits_itself) return set(flag.rule->key, plain_count(flag.value.text), flag.value.where);
    diagnostics_.warning(flag.value.where, key_path_,
                         "--max-model-len " + flag.value.text +
                             " takes the longest context that fits into memory; here the model's "
                             "own is taken",
                         "write engine.max_model_len as the server's log reports it");
  }

  void use_expert_ranks(const std::string& name, const ServeFlag& flag) {
    const ServeFlag* tensor = find("tp-size");
    if (tensor == nullptr) tensor = find("tensor-parallel-size");
    const std::int64_t ranks = whole(&flag).value_or(0), gpus = whole(tensor).value_or(1);
    if (ranks == 1) return;
    if (ranks == gpus) return set(flag.rule->key, "true", flag.value.where);
    error(flag,
          "--" + name +
              " is neither 1 nor as wide as tensor parallelism, which is not simulated (got " +
              in_quotes(flag.value.text) + ")",
          "write expert_parallel into the pool, whichever is closer");
  }

  void use_policy(const std::string& name, const ServeFlag& flag) {
    const std::string& text = flag.value.text;
    if (text == "fcfs" || text == "lpm") return set(flag.rule->key, text, flag.value.where);
    error(flag, "--" + name + " is not simulated in this order (got " + in_quotes(text) + ")",
          "fcfs and lpm are; write engine.sglang.schedule_policy into the pool");
  }

  void use_kv_cache_dtype(const ServeFlag& flag) {
    const std::string& text = flag.value.text;
    std::string format = text;
    if (text == "bfloat16" || text == "float16") format = "bf16";
    if (text == "fp8_e4m3" || text == "fp8_e5m2" || text == "fp8_inc" || text == "fp8_ds_mla")
      format = "fp8";
    if (format == "auto" || format == "bf16" || format == "fp8")
      return set(flag.rule->key, format, flag.value.where);
    error(flag, "--kv-cache-dtype has a format without a size here (got " + in_quotes(text) + ")",
          "write kv_cache_dtype: bf16 or fp8 into the pool, whichever is closer");
  }

  /// A model the catalogue knows under a name in other weights would be another model.
  void use_quantization(const ServeFlag& flag) {
    const std::string method = lower_case(flag.value.text);
    const ServeFlag* model = find("model");
    if (has_word("none null auto compressed-tensors", method) || model == nullptr) return;
    const models::ModelSpec* known = builtin_catalogue().find_model(model->value.text);
    if (known == nullptr) return;  // Its own message comes when the pool is resolved.
    const std::optional<WeightDtype> wanted = weights_of(method);
    if (wanted && *wanted == known->weights) return;
    error(flag,
          "--quantization " + printable(method) + " makes other weights of " +
              printable(known->name) + ", which is known in " +
              std::string(enum_name(known->weights)),
          "write model: into the pool, with the name of a model in these weights");
  }

  void use_tiers() {
    const ConfigNode* own = node_at(*pool_, {"engine", "kv_tiers"});
    if (own != nullptr && !own->is_map()) return;  // The pool says that it has none.
    const ImageRelease release = release_of(start_.image.text);
    const TierSources sources{.transfer = find("kv-transfer-config"),
                              .size = find("kv-offloading-size"),
                              .backend = find("kv-offloading-backend"),
                              .environment = start_.environment,
                              .files = start_.files,
                              .lmcache_is_server = starts_lmcache_server(release)};
    add_member(engine_, "kv_tiers", tiers_of(sources, key_path_, diagnostics_));
  }

  void use_speculation() {
    const ConfigNode* own = node_at(*pool_, {"engine", "speculative"});
    if (own != nullptr && !own->is_map()) return;  // The pool says that it does not speculate.
    const SpeculationSources sources{.config = find("speculative-config"),
                                     .method = find("spec-method"),
                                     .model = find("spec-model"),
                                     .tokens = find("spec-tokens")};
    add_member(engine_, "speculative", speculation_of(sources, key_path_, diagnostics_));
  }

  /// --kv-offloading-backend lmcache starts LMCache's server from v0.23 on.
  bool starts_lmcache_server(const ImageRelease& release) const {
    constexpr int kFirst = 23;
    if (release.vllm_minor > 0) return release.vllm_minor >= kFirst;
    const ConfigNode* preset = node_at(*pool_, {"engine", "preset"});
    return (preset != nullptr ? preset->text() : release.preset) == "2026-H2";
  }

  void use_left_out(const std::string& name, const ServeFlag& flag) {
    const FlagRule& rule = *flag.rule;
    if (is_harmless(flag)) return;
    const bool is_switch = rule.takes == FlagTakes::kNothing;
    const std::string value = is_switch ? "" : " (got " + in_quotes(flag.value.text) + ")";
    const std::string what = shown(name, flag) + " " + std::string(rule.why);
    if (rule.use == FlagUse::kWarned) {
      diagnostics_.warning(flag.value.where, key_path_, what + value);
      return;
    }
    const bool is_worker = name == "headless";
    const std::string hint = is_worker ? "give the command of the head node"
                             : rule.key.empty()
                                 ? "leave it out to simulate the servers without it"
                                 : "write " + std::string(rule.key) + " into the pool instead";
    error(flag, what + (is_worker || !rule.key.empty() ? "" : ", which is not simulated") + value,
          hint);
  }

  static std::string lower_case_if_word(const std::string& text) {
    return text.find('.') == std::string::npos ? lower_case(text) : text;
  }

  /// Without --enable-lora the other flags of adapters do nothing.
  void use_adapters() {
    const ServeFlag* on = find("enable-lora");
    if (on == nullptr || on->off) return;
    const ServeFlag* slots = find("max-loras");
    if (slots == nullptr)
      set("engine.max_loras", "1", on->value.where);
    else if (!is_explicit("engine.max_loras") && is_known("max-loras", *slots))
      set("engine.max_loras", plain_count(slots->value.text), slots->value.where);
    for (const char* name : {"max-cpu-loras", "max-lora-rank"}) {
      const ServeFlag* flag = find(name);
      if (flag != nullptr && !is_explicit(flag->rule->key) && is_known(name, *flag))
        set(flag->rule->key, plain_count(flag->value.text), flag->value.where);
    }
  }

  void use_accelerator() {
    if (start_.accelerators.empty() || is_explicit("accelerator")) return;
    const Ptr& first = start_.accelerators.front();
    set("accelerator", first);
    if (start_.accelerators.size() > 1)
      diagnostics_.warning(start_.accelerators[1]->where(), key_path_,
                           "the servers may run on " + printable(first->text()) + " or on " +
                               printable(start_.accelerators[1]->text()) + "; the first is used",
                           "write accelerator into the pool, or a pool for each");
  }

  /// A folder or a bucket says nothing; the name it is served under may.
  void use_model() {
    const ServeFlag* model = find("model");
    if (model == nullptr || is_explicit("model")) return;
    const std::string& text = model->value.text;
    const bool is_place = text.starts_with("/") || text.starts_with(".") || text.starts_with("~") ||
                          text.find("://") != std::string::npos || !model->value.unknown.empty();
    const ServeFlag* served = find("served-model-name");
    if (is_place && !text.ends_with(".json") && served != nullptr && served->value.unknown.empty())
      model = served;
    if (is_known("model", *model)) set("model", tree::text(model->value.text, model->value.where));
  }

  /// vLLM's front end chooses the rank, unless each rank has a front end of its own.
  void use_balancing() {
    const ServeFlag* size = find("data-parallel-size");
    const std::optional<std::int64_t> ranks = whole(size);
    if (!ranks || *ranks <= 1 || is_explicit("data_parallel_balancing")) return;
    const auto on = [&](const std::string& name) {
      const ServeFlag* flag = find(name);
      return flag != nullptr && !flag->off ? flag : nullptr;
    };
    const ServeFlag* reason = size;
    bool external = false;
    for (const char* name : {"data-parallel-rank", "data-parallel-external-lb",
                             "data-parallel-multi-port-external-lb"})
      if (const ServeFlag* flag = on(name)) {
        external = true;
        reason = flag;
      }
    const ServeFlag* local = on("data-parallel-size-local");
    const ServeFlag* hybrid = on("data-parallel-hybrid-lb");
    if (hybrid == nullptr && local != nullptr) hybrid = on("data-parallel-start-rank");
    const std::int64_t here = whole(local).value_or(*ranks);
    if (!external && hybrid != nullptr && here < *ranks) {
      reason = hybrid;
      external = here == 1;
      if (!external)
        diagnostics_.warning(
            hybrid->value.where, key_path_,
            "each node's front end balances its own " + std::to_string(here) + " of the " +
                std::to_string(*ranks) + " ranks; here one front end balances all of them",
            "write data_parallel_balancing: external into the pool if the router knows the ranks");
    }
    set("data_parallel_balancing", external ? "external" : "internal", reason->value.where);
  }

  void use_image() {
    constexpr std::string_view kPreset = "engine.preset";
    const ShellWord& image = start_.image;
    const ImageRelease release = release_of(image.text);
    if (!release.preset.empty()) {
      set(kPreset, std::string(release.preset), image.where);
    } else if (release.known && !is_explicit(kPreset)) {
      diagnostics_.warning(
          image.where, key_path_,
          "no engine preset is known to stand for " + printable(image.text) + "; the default does",
          "write engine.preset into the pool, by the release of vLLM");
    }
  }

  void use_environment() {
    const auto value = [&](const std::string& name) {
      const auto at = start_.environment.find(name);
      return at == start_.environment.end() ? nullptr : &at->second;
    };
    const auto is_of_lmcache = [&](const char* flag) {
      const ServeFlag* given = find(flag);
      return given != nullptr && lower_case(given->value.text).find("lmcache") != std::string::npos;
    };
    const bool lmcache =
        is_of_lmcache("kv-transfer-config") || is_of_lmcache("kv-offloading-backend");
    note_variables(start_.environment, lmcache, key_path_, diagnostics_);
    const ShellWord* v1 = value("VLLM_USE_V1");
    if (v1 != nullptr && v1->text == "0")
      diagnostics_.error(v1->where, key_path_,
                         "VLLM_USE_V1=0 starts the engine before V1, which is not simulated",
                         "leave it out to simulate the servers with V1");
    read_marlin(value("VLLM_MXFP4_USE_MARLIN"));
    constexpr std::string_view kChunk = "engine.moe_dp_chunk_size";
    const ShellWord* chunk = value("VLLM_MOE_DP_CHUNK_SIZE");
    const ShellWord* enabled = value("VLLM_ENABLE_MOE_DP_CHUNK");
    const bool is_off = enabled != nullptr && enabled->text == "0";
    if (chunk == nullptr || is_explicit(kChunk) || is_off) return;
    if (chunk->unknown.empty()) return set(kChunk, chunk->text, chunk->where);
    diagnostics_.error(chunk->where, key_path_,
                       "VLLM_MOE_DP_CHUNK_SIZE depends on " + printable(chunk->unknown) +
                           ", which is not known here",
                       "write its value out, or " + std::string(kChunk) + " into the pool");
  }

  /// vLLM takes an integer, 0 being false, and does not start with anything else (envs.py).
  void read_marlin(const ShellWord* marlin) {
    constexpr std::string_view kExperts = "engine.moe_backend";
    if (marlin == nullptr || is_explicit(kExperts)) return;
    const std::string& text = marlin->text;
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits && marlin->unknown.empty()) {
      const bool on = text.find_first_not_of('0') != std::string::npos;
      return set(kExperts, on ? "marlin" : "triton", marlin->where);
    }
    diagnostics_.error(marlin->where, key_path_,
                       marlin->unknown.empty()
                           ? "VLLM_MXFP4_USE_MARLIN must be 0 or 1 (got " + printable(text) + ")"
                           : "VLLM_MXFP4_USE_MARLIN depends on " + printable(marlin->unknown) +
                                 ", which is not known here",
                       "write its value out, or " + std::string(kExperts) + " into the pool");
  }

  /// `--config FILE` on the command line: its flags are weaker than those beside it.
  void read_config_flag(const ServeFlag& flag, const SourceLocation& written_at) {
    if (!is_known("config", flag)) return;
    const SourceLocation& from = flag.value.where.file.empty() ? written_at : flag.value.where;
    std::string text;
    const std::string path = resolve_path(flag.value.text, from);
    if (!read_text_file(path, from, key_path_, ConfigLimits{}.max_bytes, text, diagnostics_))
      return;
    const Ptr map = parse_config(text, {.file = path}, diagnostics_);
    if (map != nullptr && map->is_map()) {
      read_flag_map(*map, key_path_, flags_, diagnostics_);
    } else if (map != nullptr) {
      error(flag, "--config must name a map of flags (" + got(*map) + ")", "");
    }
  }

  Ptr result() const {
    Members members = top_;
    Members engine = engine_;
    if (!sglang_.empty())
      engine.push_back({"sglang", sglang_.front().key_where,
                        ConfigNode::make_map(sglang_, sglang_.front().key_where)});
    const auto add = [&](const char* key, const Members& below) {
      if (!below.empty())
        members.push_back(
            {key, below.front().key_where, ConfigNode::make_map(below, below.front().key_where)});
    };
    add("engine", engine);
    add("api_server", api_server_);
    add("termination", termination_);
    return merge_configs(ConfigNode::make_map(std::move(members), pool_->where()), pool_);
  }

  const Ptr& pool_;
  const ServerStart& start_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
  ServeFlags flags_;
  Members top_;
  Members engine_;
  Members sglang_;
  Members api_server_;
  Members termination_;
};

}  // namespace

std::string image_of(sim::EnginePreset preset, bool is_amd) {
  const auto* const row = std::ranges::find(kVllm, enum_name(preset), &Releases::preset);
  return std::string("vllm/vllm-openai") + (is_amd ? "-rocm" : "") + ":v0." +
         std::to_string(row->last == kNewest ? row->first : row->last) + ".0";
}

Ptr fill_pool(const Ptr& pool, const ServerStart& start, const SourceLocation& written_at,
              const std::string& key_path, Diagnostics& diagnostics) {
  if (!start.unread.empty()) {
    diagnostics.error(start.where, key_path, start.unread, pool_by_hand(start));
    return pool;
  }
  Filler filler(pool, start, key_path, diagnostics);
  filler.read(written_at);
  return filler.filled();
}

}  // namespace routesim::tools
