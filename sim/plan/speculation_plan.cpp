#include "sim/plan/speculation_plan.h"

#include <algorithm>
#include <functional>

namespace routesim::sim {

namespace {

/// Says what is wrong with a key of the pool, by its path in the scenario.
class Complaints {
 public:
  Complaints(std::string pool, Diagnostics& diagnostics)
      : pool_(std::move(pool)), diagnostics_(diagnostics) {}
  void error(const std::string& key, const std::string& message, const std::string& hint = {}) {
    diagnostics_.error({}, pool_ + key, message, hint);
    ++errors_;
  }
  void warning(const std::string& key, const std::string& message) {
    diagnostics_.warning({}, pool_ + key, message);
  }
  int errors() const { return errors_; }

 private:
  std::string pool_;
  Diagnostics& diagnostics_;
  int errors_ = 0;
};

constexpr const char* kKey = ".engine.speculative";

void check_acceptance(const SpeculationConfig& c, Complaints& complaints) {
  const std::string key = std::string(kKey) + ".acceptance";
  const std::int64_t k = *c.num_speculative_tokens;
  if (c.acceptance.empty()) {
    const std::int64_t known = std::ssize(published_acceptance(*c.method, k));
    if (known == k) return;
    complaints.error(key,
                     "is needed: for " + std::string(enum_name(*c.method)) + " " +
                         (known == 0 ? std::string("nobody published it")
                                     : "only " + std::to_string(known) + " of " +
                                           std::to_string(k) + " positions are published"),
                     "by position, vllm:spec_decode_num_accepted_tokens_per_pos over "
                     "vllm:spec_decode_num_drafts of your own servers");
  } else if (std::ssize(c.acceptance) != k) {
    complaints.error(key, "must have num_speculative_tokens values, " + std::to_string(k) +
                              " (got " + std::to_string(c.acceptance.size()) + ")");
  } else if (!std::is_sorted(c.acceptance.rbegin(), c.acceptance.rend())) {
    complaints.error(key, "must not rise: a draft is accepted only behind accepted ones",
                     "give shares of all steps with drafts, as vllm:spec_decode_"
                     "num_accepted_tokens_per_pos counts them");
  }
}

const models::ModelSpec* draft_model(const PoolConfig& pool, const models::ModelSpec& model,
                                     const models::Parallelism& p,
                                     const models::Catalogue& catalogue, Complaints& complaints) {
  const std::string key = std::string(kKey) + ".model";
  const std::string& name = pool.engine.speculative->model;
  if (name.empty()) {
    complaints.error(key, "is needed by draft_model", "name the smaller model");
    return nullptr;
  }
  const models::ModelSpec* drafter = catalogue.find_model(name);
  if (drafter == nullptr) {
    const std::string close = catalogue.suggest_model(name);
    complaints.error(
        key, "unknown model (got " + name + ")",
        close.empty() ? "see `routesim list models`" : "did you mean `" + close + "`?");
    return nullptr;
  }
  if (drafter->vocab != model.vocab)
    complaints.error(key, "must have the vocabulary of " + model.name + ", " +
                              std::to_string(model.vocab) + " tokens (got " +
                              std::to_string(drafter->vocab) + ")");
  if (drafter->sliding_layers > 0 || drafter->state.layers > 0 || !drafter->compressed.empty())
    complaints.error(key, "has layers with KV of fixed size, which is not simulated for drafters");
  Diagnostics found;
  models::check_parallelism(*drafter, p, found);
  for (const Diagnostic& d : found.items()) complaints.error(key, d.path + " " + d.message, d.hint);
  return drafter;
}

// What the engine here cannot do with drafts.
void check_pool(const PoolConfig& pool, const models::ModelSpec& model,
                const models::KvLayout& layout, Complaints& complaints) {
  const EngineConfig& e = pool.engine;
  if (layout.fixed_groups > 0)
    complaints.error(kKey,
                     "is not simulated for " + model.name +
                         ", whose layers with a window or a state hold KV of fixed size",
                     layout.states ? ""
                                   : "hybrid_kv_manager: false lets them hold as much as the "
                                     "others");
  if (e.kv_tiers)
    complaints.error(kKey, "is not simulated beside kv_tiers", "leave one of the two out");
  if (pool.pipeline_parallel > 1)
    complaints.error(kKey, "is not simulated with pipeline_parallel stages",
                     "leave it out to simulate the servers without");
  if (pool.latency_model == "measured")
    complaints.error(".latency_model",
                     "cannot be measured: step_times have no batches that verify drafts",
                     "auto takes measured kernels, or the roofline");
  if (*e.speculative->method == SpeculationMethod::kMtp && model.mtp_layers == 0)
    complaints.error(std::string(kKey) + ".method",
                     "cannot be mtp: " + model.name + " has no layer that guesses further tokens");
  if (e.async_scheduling.value_or(false) &&
      !schedules_ahead(*e.speculative->method, e.preset != EnginePreset::k2026H2))
    complaints.error(".engine.async_scheduling",
                     "cannot be true with " + std::string(enum_name(*e.speculative->method)) +
                         ": vLLM schedules ahead only of drafters on the GPU",
                     "leave it out");
}

}  // namespace

std::optional<models::Drafter> plan_drafter(const PoolConfig& pool, const models::ModelSpec& model,
                                            const models::KvLayout& layout,
                                            const models::Parallelism& parallelism,
                                            const models::Catalogue& catalogue,
                                            const std::string& path, Diagnostics& diagnostics) {
  const SpeculationConfig& c = *pool.engine.speculative;
  Complaints complaints(path, diagnostics);
  if (!c.method) complaints.error(std::string(kKey) + ".method", "is needed");
  if (!c.num_speculative_tokens)
    complaints.error(std::string(kKey) + ".num_speculative_tokens", "is needed");
  if (complaints.errors() > 0) return std::nullopt;
  check_acceptance(c, complaints);
  check_pool(pool, model, layout, complaints);
  const models::ModelSpec* drafter = nullptr;
  if (*c.method == SpeculationMethod::kDraftModel)
    drafter = draft_model(pool, model, parallelism, catalogue, complaints);
  else if (*c.method == SpeculationMethod::kNgram && !c.model.empty())
    complaints.warning(std::string(kKey) + ".model",
                       "has no effect: ngram finds its drafts in the text itself");
  if (complaints.errors() > 0) return std::nullopt;
  static_assert(EnumNames<SpeculationMethod>::value == EnumNames<models::DraftMethod>::value);
  return models::make_drafter(static_cast<models::DraftMethod>(*c.method),
                              *c.num_speculative_tokens, model, drafter, parallelism);
}

}  // namespace routesim::sim
