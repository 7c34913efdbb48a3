#include "policies/scheduler.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "policies/build_context.h"

namespace routesim::policies {
namespace {

/// The request as plugins may see it: behind passthrough-parser, headers and a body that nobody
/// read. `copy` holds it where it differs.
const RequestView& as_read(const RequestView& original, bool reads_prompts,
                           std::optional<RequestView>& copy) {
  if (reads_prompts) return original;
  RequestView& request = copy.emplace(original);
  request.model = {};
  request.prompt_tokens = request.prompt_bytes = 0;
  request.block_keys = request.approx_hashes = {};
  request.block_key_ends = request.approx_hash_ends = {};
  request.multimodal = false;
  request.items = {};
  request.cached_item_size = {};
  request.cache_salt = {};
  request.max_tokens = {};
  return request;
}

/// The endpoint that a profile must pick, if any. Encoders are chosen freely.
std::optional<EndpointRow> forced_target(const RequestView& request, const std::string& profile) {
  if (profile == "encode") return std::nullopt;
  return profile == "prefill" ? request.forced_prefill : request.forced;
}

/// A Lock of the mutex, taken only when wanted.
template <class Lock>
Lock lock_if(bool wanted, std::shared_mutex& mutex) {
  return wanted ? Lock(mutex) : Lock(mutex, std::defer_lock);
}

}  // namespace

struct Scheduler::Flow {
  const RequestView& request;
  const EndpointTable& endpoints;
  SimTime now;
  Scratch& scratch;
  Decision& decision;
  Explanation* explanation;
};

Scheduler::Scheduler(const EndpointPickerConfig& config, const SchedulerOptions& options,
                     Diagnostics& diagnostics)
    : config_(config), options_(options), plugins_(std::make_unique<PluginSet>()) {
  ROUTESIM_CHECK(options.registry != nullptr, "schedulers are made by make_scheduler");
  const std::size_t before = diagnostics.items().size();
  plugins_->predictor = options.predictor;
  BuildContext(config_, *options.registry, *plugins_, needs_, options.thread_safe, diagnostics)
      .build_all();
  by_address_ = indexes_by_address(config_.era, config_.distribution);
  reads_prompts_ = reads_prompts(config_);
  for (const ProfileSpec& spec : config_.profiles) {
    SchedulingProfile profile;
    profile.name = spec.name;
    for (const PluginReference& reference : spec.plugins) {
      const Plugin* plugin = plugins_->find(reference.name);
      if (const auto* f = dynamic_cast<const Filter*>(plugin)) profile.filters.push_back(f);
      if (const auto* s = dynamic_cast<const Scorer*>(plugin))
        profile.scorers.push_back({s, reference.weight.value_or(1.0)});
      if (const auto* p = dynamic_cast<const Picker*>(plugin)) profile.picker = p;
    }
    profile_names_.push_back(spec.name);
    profiles_.push_back(std::move(profile));
  }
  handler_ = dynamic_cast<const ProfileHandler*>(plugins_->find(config_.profile_handler));
  detector_ = dynamic_cast<const SaturationDetector*>(plugins_->find(config_.saturation_detector));
  for (const auto& plugin : plugins_->all())
    if (const auto* a = dynamic_cast<const Admitter*>(plugin.get())) admitters_.push_back(a);
  valid_ = handler_ != nullptr;
  for (const SchedulingProfile& p : profiles_) valid_ = valid_ && p.picker != nullptr;
  const auto& items = diagnostics.items();
  for (std::size_t i = before; i < items.size(); ++i)
    valid_ = valid_ && items[i].severity != Severity::kError;
}

Scheduler::~Scheduler() = default;

void Scheduler::begin(Flow& flow) const {
  flow.scratch.cycle_.begin({.request = flow.request,
                             .endpoints = flow.endpoints,
                             .now = flow.now,
                             .decision = flow.decision,
                             .seed = options_.seed,
                             .ordered_candidates = options_.ordered_candidates,
                             .dry_run = flow.explanation != nullptr,
                             .prefix_slots = plugins_->prefix_slots.size(),
                             .plugins = &identity_});
  flow.decision.clear();
  flow.decision.profiles.resize(profiles_.size());
}

void Scheduler::run_profile(Flow& flow, std::uint32_t index) const {
  ProfileResult& result = flow.decision.profiles[index];
  ProfileExplanation* explanation = nullptr;
  if (flow.explanation != nullptr) explanation = &flow.explanation->profiles.emplace_back();
  result.targets.clear();
  result.state =
      profiles_[index].run(flow.scratch.cycle_, flow.scratch.buffers_, result.targets, explanation);
  if (explanation != nullptr) explanation->state = result.state;
  if (const auto forced = forced_target(flow.request, profile_names_[index])) {
    result.state = ProfileState::kOk;
    std::erase(result.targets, *forced);
    result.targets.insert(result.targets.begin(), *forced);
  }
}

void Scheduler::decide(Flow& flow) const {
  ROUTESIM_CHECK(valid_, "scheduling with a scheduler that did not build");
  begin(flow);
  Cycle& cycle = flow.scratch.cycle_;
  Decision& decision = flow.decision;
  if (cycle.candidates().empty()) {
    decision.reason = "no endpoints";
    return;
  }
  // Without flow control only sheddable requests can be refused, on a saturated pool.
  const bool sheddable = flow.request.priority < 0 && !flow.request.forced;
  if (sheddable && !config_.gate("flowControl") && detector_ != nullptr &&
      detector_->saturation(flow.endpoints, cycle.candidates(), flow.now) >= 1.0) {
    decision.outcome = Outcome::kRefused;
    decision.http_status = 429;
    decision.reason = "saturated";
    return;
  }
  for (const Producer* producer : plugins_->producers) producer->produce(cycle);
  for (const Admitter* admitter : admitters_) {
    const char* refusal = sheddable ? admitter->refuse(cycle) : nullptr;
    if (refusal == nullptr) continue;
    decision.outcome = Outcome::kRefused;
    decision.http_status = 429;
    decision.reason = refusal;
    return;
  }
  std::vector<std::uint32_t>& run = flow.scratch.run_;
  // A handler asks for every profile at most once, so this ends.
  for (std::size_t round = 0; round <= profiles_.size(); ++round) {
    run.clear();
    handler_->next(cycle, profile_names_, decision.profiles, run);
    if (run.empty()) break;
    for (const std::uint32_t index : run) run_profile(flow, index);
  }
  conclude(flow, handler_->process(cycle, profile_names_, decision));
}

void Scheduler::conclude(Flow& flow, const char* error) const {
  Decision& d = flow.decision;
  if (error != nullptr) {
    const auto any = [&d](ProfileState state) {
      return std::ranges::find(d.profiles, state, &ProfileResult::state) != d.profiles.end();
    };
    const bool filtered = any(ProfileState::kFailed);
    d.outcome = filtered ? Outcome::kFilteredOut : Outcome::kHandlerError;
    const bool exhausted =
        (filtered || !any(ProfileState::kOk)) && traits(config_.era).filtered_out_is_429;
    d.http_status = exhausted ? 429 : 500;
    d.reason = error;
    d.primary_profile = -1;
    d.headers.clear();
    return;
  }
  d.targets = d.profiles[static_cast<std::size_t>(d.primary_profile)].targets;
  d.primary = EndpointId(d.targets.front());
  for (std::size_t i = 0; i < profiles_.size(); ++i)
    if (profile_names_[i] == "prefill" && d.profiles[i].has_target())
      d.prefill_profile = static_cast<std::int32_t>(i);
  d.outcome = Outcome::kRouted;
  d.http_status = 200;
  d.reason = "";
  // Conditional decode: the client wants an answer only where something is cached already.
  const auto prefer = flow.request.header("prefer");
  if (prefer && *prefer == "if-available" && !flow.request.forced) {
    const auto& slots = plugins_->prefix_slots;
    const auto slot = std::find(slots.begin(), slots.end(), "approx-prefix-cache-producer");
    const bool cached = slot != slots.end() &&
                        flow.scratch.cycle_.prefix(static_cast<std::size_t>(slot - slots.begin()))
                                .match[d.primary.value()] > 0;
    if (!cached) {
      d.outcome = Outcome::kPreconditionFailed;
      d.http_status = 412;
      d.reason = "nothing cached at the target";
      return;
    }
  }
  for (Plugin* plugin : plugins_->with(Hook::kDecided)) plugin->on_decided(flow.scratch.cycle_, d);
}

SimTime Scheduler::ready_at(const RequestView& request, const EndpointTable& endpoints,
                            SimTime now) {
  std::optional<RequestView> copy;
  const RequestView& seen = as_read(request, reads_prompts_, copy);
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  SimTime ready = now;
  for (Plugin* plugin : plugins_->with(Hook::kArrived))
    ready = std::max(ready, plugin->on_arrived(seen, endpoints, now));
  return ready;
}

bool Scheduler::gathers() const { return !plugins_->with(Hook::kArrived).empty(); }

void Scheduler::schedule(const RequestView& request, const EndpointTable& endpoints, SimTime now,
                         Scratch& scratch, Decision& decision) const {
  std::optional<RequestView> copy;
  Flow flow{as_read(request, reads_prompts_, copy), endpoints, now, scratch, decision, nullptr};
  if (!options_.thread_safe) return decide(flow);
  const std::shared_lock lock(mutex_);
  decide(flow);
}

Decision Scheduler::schedule(const RequestView& request, const EndpointTable& endpoints,
                             SimTime now) const {
  Scratch scratch;
  Decision decision;
  schedule(request, endpoints, now, scratch, decision);
  return decision;
}

Decision Scheduler::explain(const RequestView& request, const EndpointTable& endpoints, SimTime now,
                            Explanation& explanation) const {
  Scratch scratch;
  Decision decision;
  explanation.profiles.clear();
  std::optional<RequestView> copy;
  const RequestView& seen = as_read(request, reads_prompts_, copy);
  Flow flow{seen, endpoints, now, scratch, decision, &explanation};
  const auto lock = lock_if<std::shared_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  decide(flow);
  return decision;
}

void Scheduler::on_routed(const RequestView& request, const Decision& decision,
                          const EndpointTable& endpoints, SimTime now) {
  if (!decision.routed()) return;
  std::optional<RequestView> copy;
  const RequestView& seen = as_read(request, reads_prompts_, copy);
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (Plugin* plugin : plugins_->with(Hook::kRouted))
    plugin->on_routed(seen, decision, endpoints, now);
}

void Scheduler::on_response_started(std::uint64_t request, SimTime now) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (Plugin* plugin : plugins_->with(Hook::kResponseStarted))
    plugin->on_response_started(request, now);
}

void Scheduler::on_first_token(std::uint64_t request, SimTime now) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (Plugin* plugin : plugins_->with(Hook::kFirstToken)) plugin->on_first_token(request, now);
}

void Scheduler::on_answered(std::uint64_t request, std::int64_t output_tokens, SimTime now) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (Plugin* plugin : plugins_->with(Hook::kAnswered))
    plugin->on_answered(request, output_tokens, now);
}

void Scheduler::on_completed(std::uint64_t request, SimTime now) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (Plugin* plugin : plugins_->with(Hook::kCompleted)) plugin->on_completed(request, now);
}

void Scheduler::on_endpoint_removed(EndpointRow row, const EndpointTable& endpoints, SimTime now) {
  {
    const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
    for (const auto& plugin : plugins_->all()) plugin->on_endpoint_removed(row, now);
  }
  forget_blocks(row, endpoints);
}

void Scheduler::on_endpoint_unready(EndpointRow row, const EndpointTable& endpoints, SimTime now) {
  if (by_address_ || traits(config_.era).precise.forgets_removed) {
    on_endpoint_removed(row, endpoints, now);
    return;
  }
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  for (const auto& plugin : plugins_->all()) plugin->on_endpoint_removed(row, now);
}

void Scheduler::forget_blocks(EndpointRow row, const EndpointTable& endpoints) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  if (!plugins_->precise) return;
  for (EndpointRow other = 0; by_address_ && other < endpoints.rows(); ++other)
    if (other != row && endpoints.live(other) &&
        endpoints.address_group(other) == endpoints.address_group(row))
      return;
  plugins_->precise->remove(index_holder(endpoints, row));
}

void Scheduler::advance(SimTime now) {
  const auto lock = lock_if<std::unique_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  if (plugins_->precise) plugins_->precise->expire(now);
  for (Plugin* plugin : plugins_->with(Hook::kAdvance)) plugin->advance(now);
}

std::vector<std::pair<std::string, std::string>> Scheduler::response_headers(
    const Decision& decision, const EndpointTable& endpoints) const {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& plugin : plugins_->all()) plugin->response_headers(decision, endpoints, headers);
  return headers;
}

double Scheduler::saturation(const EndpointTable& endpoints, SimTime now) const {
  const auto lock = lock_if<std::shared_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  if (detector_ == nullptr) return endpoints.candidates().empty() ? 1.0 : 0.0;
  return detector_->saturation(endpoints, endpoints.candidates(), now);
}

PrefixIndex* Scheduler::precise_index() const {
  return plugins_->precise ? plugins_->precise->index() : nullptr;
}

ConcurrentPrefixIndex* Scheduler::concurrent_index() const {
  return plugins_->precise ? plugins_->precise->concurrent() : nullptr;
}

TierRegistry* Scheduler::tiers() const {
  return plugins_->precise ? &plugins_->precise->tiers() : nullptr;
}

BlockKeyScheme Scheduler::block_key_scheme() const {
  return plugins_->precise ? plugins_->precise->options().scheme : BlockKeyScheme{};
}

KvIngestOptions Scheduler::kv_ingest_options() const { return plugins_->kv_ingest_options(); }

std::int64_t Scheduler::predicted_hit_tokens(const Scratch& scratch, EndpointId endpoint) const {
  std::int64_t precise = -1, approximate = -1;
  for (std::size_t slot = 0; slot < plugins_->prefix_slots.size(); ++slot) {
    const PrefixMatches& m = scratch.cycle_.prefix(slot);
    if (!m.computed) continue;
    const std::int64_t tokens = m.cached[endpoint.value()] * m.key_tokens;
    const auto& slots = plugins_->approx.slots;
    const bool guess = std::find(slots.begin(), slots.end(), slot) != slots.end();
    std::int64_t& best = guess ? approximate : precise;
    best = std::max(best, tokens);
  }
  return precise >= 0 ? precise : approximate;
}

LatencyPrediction Scheduler::predicted_latency(const Scratch& scratch, EndpointId endpoint) const {
  const std::vector<LatencyEstimate>& all = scratch.cycle_.latency();
  if (!needs_.predictions || endpoint.value() >= all.size()) return {};
  const LatencyEstimate& e = all[endpoint.value()];
  return {.present = e.present, .ttft_ms = e.ttft_ms, .tpot_ms = e.tpot_ms};
}

std::vector<TierHits> Scheduler::tier_hits(const RequestView& request,
                                           const EndpointTable& endpoints) const {
  static const std::string kSpeculativeTier = "speculative";  // Upstream's name, too.
  std::vector<TierHits> hits;
  if (!plugins_->precise) return hits;
  const auto lock = lock_if<std::shared_lock<std::shared_mutex>>(options_.thread_safe, mutex_);
  const std::int64_t block = plugins_->precise->options().scheme.block_size;
  std::vector<TierCount> counts;
  for_each_prompt(request.block_keys, request.block_key_ends, [&](std::span<const BlockKey> keys) {
    plugins_->precise->tier_counts(keys, counts);
    for (const EndpointRow row : endpoints.candidates()) {
      const EndpointId holder(index_holder(endpoints, row));
      for (const TierCount& c : counts) {
        if (c.endpoint != holder || c.rows == TierRows::kConfirmed) continue;
        const std::string& tier = c.rows == TierRows::kSpeculative
                                      ? kSpeculativeTier
                                      : plugins_->precise->tiers().name(c.tier);
        const auto same = std::find_if(hits.begin(), hits.end(), [&](const TierHits& h) {
          return h.endpoint == row && h.tier == tier;
        });
        if (same != hits.end())
          same->tokens += c.blocks * block;
        else
          hits.push_back({.endpoint = row, .tier = tier, .tokens = c.blocks * block});
      }
    }
  });
  return hits;
}

ApproxPrefixIndex* Scheduler::approx_index() const { return plugins_->approx.index; }

ApproxScheme Scheduler::approx_scheme(const EndpointTable& endpoints) const {
  if (!plugins_->approx.used) return {};
  const auto candidates = endpoints.candidates();
  return plugins_->approx.settings.scheme(
      candidates.empty() ? 0 : endpoints.info(candidates.front()).block_size);
}

Plugin* Scheduler::plugin(const std::string& name) const { return plugins_->find(name); }

const InFlightCounts* Scheduler::in_flight() const { return plugins_->in_flight; }

}  // namespace routesim::policies
