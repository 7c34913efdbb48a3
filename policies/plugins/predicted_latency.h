// predicted-latency-producer: asks the predictor beside the router, turns its answers into
// headrooms to the SLOs, and tells it what became of each request. llm-d-router
// pkg/epp/framework/plugins/requestcontrol/dataproducer/predictedlatency, commit ebab687.
#pragma once

#include <bit>
#include <unordered_map>

#include "base/scalar_parse.h"
#include "policies/build_context.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

struct PredictedLatencyParameters {
  double slo_buffer_factor = 1.0;
  std::string context_ttl = "5m";
  bool streaming_mode = false;
  std::string endpoint_role_label;
  bool predict_in_produce = true, use_encoder_cache_features = false;
  double sampling_mean = 1000;
  std::int64_t max_decode_samples = 0;
  std::string prefix_producer, in_flight_producer;
};
inline void describe(Describer& d, PredictedLatencyParameters& p) {
  field(d, {"sloBufferFactor", "Share of the TPOT SLO to use."}, p.slo_buffer_factor,
        RealRange{.min = 0, .min_open = true});
  field(d, {"contextTTL", "How long upstream remembers a request."}, p.context_ttl);
  field(d, {"streamingMode", "TPOT counts only when answers stream."}, p.streaming_mode);
  field(d, {"endpointRoleLabel", "Label with the role; 'prefill' has no TPOT."},
        p.endpoint_role_label);
  field(d, {"predictInProduce", "False leaves every endpoint without a prediction."},
        p.predict_in_produce);
  field(d, {"useEncoderCacheFeatures", "A feature of the side-car's model."},
        p.use_encoder_cache_features);
  field(d, {"samplingMean", "Accepted and ignored, as upstream does."}, p.sampling_mean);
  field(d, {"maxDecodeTokenSamplesForPrediction", "Accepted and ignored, as upstream does."},
        p.max_decode_samples);
  field(d,
        {"prefixMatchInfoProducerName", "Producer of the prefix share that predictions rest on."},
        p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "Counter of the load in flight that predictions rest on."},
        p.in_flight_producer);
}

/// Watches requests from the decision to the end and tells the predictor how long they took. Times
/// are whole milliseconds, as upstream takes them, from the moment the request is forwarded.
class LatencyObserver {
 public:
  /// Without streaming the time to the end of the answer stands for TTFT, and there is no TPOT.
  LatencyObserver(LatencyPredictor* predictor, bool streaming)
      : predictor_(predictor), streaming_(streaming) {}

  struct Sent {
    LatencyFeatures first;  ///< Where the first token is made: the prefill server, if there is one.
    LatencyFeatures rest;   ///< Where the others are.
    SimTime at;
    std::optional<std::int64_t> ttft_ms = {};
  };
  void on_routed(std::uint64_t request, const Sent& sent) { live_[request] = sent; }
  void on_first_token(std::uint64_t request, SimTime now) {
    const auto it = live_.find(request);
    if (streaming_ && it != live_.end()) tell_ttft(it->second, now);
  }
  void on_answered(std::uint64_t request, std::int64_t tokens, SimTime now) {
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    Sent& sent = it->second;
    if (!streaming_) return tell_ttft(sent, now);
    if (!sent.ttft_ms || tokens < 2) return;
    const auto rest = static_cast<double>(milliseconds(now - sent.at) - *sent.ttft_ms);
    predictor_->observe({.features = sent.rest, .tpot_ms = rest / static_cast<double>(tokens - 1)},
                        now);
  }
  void on_completed(std::uint64_t request) { live_.erase(request); }

 private:
  static std::int64_t milliseconds(Duration d) { return d.ns() / 1'000'000; }
  void tell_ttft(Sent& sent, SimTime now) {
    sent.ttft_ms = milliseconds(now - sent.at);
    predictor_->observe({.features = sent.first, .ttft_ms = static_cast<double>(*sent.ttft_ms)},
                        now);
  }

  LatencyPredictor* predictor_;
  bool streaming_;
  std::unordered_map<std::uint64_t, Sent> live_;  // Never iterated.
};

class PredictedLatencyProducer final : public Producer {
 public:
  PredictedLatencyProducer(const PredictedLatencyParameters& p, const PluginSpec& spec,
                           BuildContext& context)
      : parameters_(p),
        prefix_slot_(context.prefix_slot_of(p.prefix_producer, spec)),
        load_(in_flight_load(context, p.in_flight_producer, spec)),
        predictor_(context.plugins().predictor) {
    context.needs().predictions = context.needs().metrics = context.needs().prompt_tokens = true;
    if (predictor_ != nullptr) observer_.emplace(predictor_, p.streaming_mode);
    if (!go_duration(p.context_ttl))
      context.error(spec, "contextTTL", "must be a duration (got '" + p.context_ttl + "')");
  }
  void produce(Cycle& cycle) const override {
    if (!parameters_.predict_in_produce) return;
    const auto predictions = cycle.request().predictions;
    if (predictions.empty()) return ask(cycle);
    cycle.latency().assign(cycle.endpoints().rows(), LatencyEstimate{});
    for (const EndpointRow r : cycle.candidates())
      if (r < predictions.size() && predictions[r].present)
        cycle.latency()[r] = estimate(cycle, r, predictions[r]);
  }
  Facts facts() const override { return Facts::kLatencyEstimates; }
  void advance(SimTime now) override {
    if (predictor_ != nullptr) predictor_->advance(now);
  }
  // The counters may have the request itself by the time of on_routed.
  void on_decided(Cycle& cycle, Decision& decision) const override {
    if (!observer_) return;
    for (const ProfileResult& result : decision.profiles) {
      if (!result.has_target()) continue;
      const EndpointRow row = result.targets.front();
      const LatencyFeatures f = features(cycle, row);
      decision.set_note(index(), note_key(row, 0), std::bit_cast<std::int64_t>(f.prefix_share));
      decision.set_note(index(), note_key(row, 1), f.requests_in_flight);
      decision.set_note(index(), note_key(row, 2), f.tokens_in_flight);
    }
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    const EndpointRow row = decision.primary.value();
    if (observer_) {
      const EndpointRow first = decision.prefill.valid() ? decision.prefill.value() : row;
      observer_->on_routed(request.id, {.first = noted(request, decision, endpoints, first),
                                        .rest = noted(request, decision, endpoints, row),
                                        .at = now});
    }
    if (running_.size() < endpoints.rows()) running_.resize(endpoints.rows());
    Running& r = running_[row];
    ++r.requests;
    if (request.slo_tpot_ms > 0) r.tpot_slos_ms.push_back(request.slo_tpot_ms);
    live_[request.id] = {row, r.generation, request.slo_tpot_ms};
  }
  void on_first_token(std::uint64_t request, SimTime now) override {
    if (observer_) observer_->on_first_token(request, now);
  }
  void on_answered(std::uint64_t request, std::int64_t tokens, SimTime now) override {
    if (observer_) observer_->on_answered(request, tokens, now);
  }
  void on_completed(std::uint64_t request, SimTime) override {
    if (observer_) observer_->on_completed(request);
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    const Sent sent = it->second;
    live_.erase(it);
    Running& r = running_[sent.row];
    if (r.generation != sent.generation) return;
    --r.requests;
    const auto slo = std::find(r.tpot_slos_ms.begin(), r.tpot_slos_ms.end(), sent.tpot_slo_ms);
    if (slo == r.tpot_slos_ms.end()) return;
    *slo = r.tpot_slos_ms.back();
    r.tpot_slos_ms.pop_back();
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    if (row >= running_.size()) return;
    running_[row] = {.tpot_slos_ms = {}, .requests = 0, .generation = running_[row].generation + 1};
  }

 private:
  // The requests this router has running on one endpoint.
  struct Running {
    std::vector<double> tpot_slos_ms;  // One per request that has one.
    std::int64_t requests = 0;
    std::uint32_t generation = 0;
  };
  struct Sent {
    EndpointRow row;
    std::uint32_t generation;
    double tpot_slo_ms;
  };
  static std::uint32_t note_key(EndpointRow row, std::uint32_t part) { return row * 3 + part; }
  const std::string* role(const EndpointTable& endpoints, EndpointRow row) const {
    if (parameters_.endpoint_role_label.empty()) return nullptr;
    const auto& labels = endpoints.info(row).labels;
    const auto it = labels.find(parameters_.endpoint_role_label);
    return it != labels.end() ? &it->second : nullptr;
  }
  /// The features that request and table give.
  LatencyFeatures seen(const RequestView& request, const EndpointTable& endpoints,
                       EndpointRow row) const {
    LatencyFeatures f{.endpoint = row,
                      .kv_usage = endpoints.kv_usage()[row],
                      .waiting = endpoints.waiting()[row],
                      .prompt_tokens = request.prompt_tokens};
    if (const std::string* stage = role(endpoints, row); stage != nullptr && !stage->empty())
      f.stage = *stage == "prefill"  ? ServerStage::kPrefill
                : *stage == "decode" ? ServerStage::kDecode
                                     : ServerStage::kOther;
    return f;
  }
  LatencyFeatures features(const Cycle& cycle, EndpointRow row) const {
    LatencyFeatures f = seen(cycle.request(), cycle.endpoints(), row);
    f.requests_in_flight = load_->requests(row);
    f.tokens_in_flight = load_->tokens(row);
    f.prefix_share = cycle.prefix(prefix_slot_).share(row);
    return f;
  }
  LatencyFeatures noted(const RequestView& request, const Decision& decision,
                        const EndpointTable& endpoints, EndpointRow row) const {
    LatencyFeatures f = seen(request, endpoints, row);
    f.prefix_share = std::bit_cast<double>(decision.note(index(), note_key(row, 0), 0));
    f.requests_in_flight = decision.note(index(), note_key(row, 1), 0);
    f.tokens_in_flight = decision.note(index(), note_key(row, 2), 0);
    return f;
  }
  /// Asks the predictor about all candidates.
  void ask(Cycle& cycle) const {
    if (predictor_ == nullptr) return;
    std::vector<LatencyFeatures> asked;
    for (const EndpointRow r : cycle.candidates()) asked.push_back(features(cycle, r));
    std::vector<LatencyPrediction> answers(asked.size());
    predictor_->predict(cycle.request(), asked, answers);
    cycle.latency().assign(cycle.endpoints().rows(), LatencyEstimate{});
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (answers[i].present)
        cycle.latency()[asked[i].endpoint] = estimate(cycle, asked[i].endpoint, answers[i]);
  }
  LatencyEstimate estimate(const Cycle& cycle, EndpointRow row,
                           const LatencyPrediction& prediction) const {
    const RequestView& request = cycle.request();
    LatencyEstimate e{
        .present = true, .ttft_ms = prediction.ttft_ms, .tpot_ms = prediction.tpot_ms};
    e.ttft_headroom_ms = request.slo_ttft_ms - prediction.ttft_ms;
    bool tpot_counts = parameters_.streaming_mode;
    if (const std::string* stage = role(cycle.endpoints(), row);
        stage != nullptr && *stage == "prefill")
      tpot_counts = false;
    if (tpot_counts) {
      double budget = request.slo_tpot_ms * parameters_.slo_buffer_factor;
      if (row < running_.size() && !running_[row].tpot_slos_ms.empty()) {
        const auto& slos = running_[row].tpot_slos_ms;
        const double tightest = *std::min_element(slos.begin(), slos.end());
        budget = std::min(budget, tightest * parameters_.slo_buffer_factor);
      }
      e.tpot_headroom_ms = budget - prediction.tpot_ms;
    }
    e.valid = prediction.ttft_ms < request.slo_ttft_ms && (!tpot_counts || e.tpot_headroom_ms > 0);
    e.dispatched = row < running_.size() ? running_[row].requests : 0;
    return e;
  }

  PredictedLatencyParameters parameters_;
  std::size_t prefix_slot_;
  const InFlightLoad* load_;
  LatencyPredictor* predictor_;
  std::optional<LatencyObserver> observer_;
  std::vector<Running> running_;
  std::unordered_map<std::uint64_t, Sent> live_;  // Never iterated.
};

}  // namespace routesim::policies
