// The view of a router: its endpoints, as last reported, and one request. Neither says how long
// the answer will be nor what an engine is really doing (design law 5).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/units.h"

namespace routesim::policies {

/// A row of EndpointTable. Rows are small and reused, so plugins can index arrays by them.
using EndpointRow = std::uint32_t;

/// The place of a server; an empty level is unknown and never equals another.
struct Topology {
  std::string host, rack, zone, region;
};

/// LoRA adapters an engine reports (vllm:lora_requests_info).
struct LoraState {
  std::vector<std::string> active;   ///< Adapters loaded for running requests.
  std::vector<std::string> waiting;  ///< Adapters that waiting requests need.
  std::int64_t max_active = 0;       ///< Adapter slots of the engine.
};

/// The part of an endpoint that changes rarely.
struct EndpointInfo {
  std::string address = {};  ///< IP or host name of the pod.
  std::int32_t port = 8000;
  std::string pod_name = {};
  std::string name_space = "default";
  std::map<std::string, std::string> labels = {};
  std::int32_t rank = 0;            ///< Data-parallel rank, the index in the pool's target ports.
  std::int64_t block_size = 0;      ///< Engine KV block size in tokens as reported; 0 = unknown.
  std::int64_t num_gpu_blocks = 0;  ///< Engine KV blocks as reported; 0 = unknown.
  std::string model = {};
  Topology topology = {};

  std::string host_port() const { return address + ":" + std::to_string(port); }
  /// "namespace/name", the identity that session tokens carry.
  std::string id() const { return name_space + "/" + pod_name; }
};

/// Attributes that multicluster-metrics-extractor writes per cluster: the means over its pool.
inline constexpr std::string_view kPoolQueueAttribute = "llm-d.ai/multicluster-queue-size";
inline constexpr std::string_view kPoolKvAttribute = "llm-d.ai/multicluster-kv-cache-utilization";

/// The router's view of its pool: the metrics of the last scrape as parallel arrays, and the cold
/// facts beside them. The owner updates it in place; the scheduler only reads it. Not
/// synchronised: a live router gives each decision a snapshot or takes a read lock.
class EndpointTable {
 public:
  /// Adds an endpoint without metrics and makes it a candidate. Rows of removed endpoints are
  /// reused, so call Scheduler::on_endpoint_removed for the old one first.
  EndpointId add(EndpointInfo info);
  /// The same in the row of an endpoint that was removed.
  EndpointId add_at(EndpointRow row, EndpointInfo info);
  /// Forgets an endpoint. Its row may be given to the next one added.
  void remove(EndpointId id);
  /// A not-ready endpoint keeps its row and state but is no candidate.
  void set_ready(EndpointId id, bool ready);

  /// Stores one scrape. `waiting` and `running` are request counts, `kv_usage` a fraction 0..1.
  void set_metrics(EndpointId id, double waiting, double running, double kv_usage, SimTime at) {
    const EndpointRow r = id.value();
    waiting_[r] = waiting;
    running_[r] = running;
    kv_usage_[r] = kv_usage;
    updated_[r] = at;
    has_metrics_[r] = 1;
  }
  void forget_metrics(EndpointId id) { has_metrics_[id.value()] = 0; }
  void set_lora(EndpointId id, LoraState state) { lora_[id.value()] = std::move(state); }
  /// A numeric attribute such as one scraped by an extra extractor, under "producer/attribute".
  void set_attribute(const std::string& key, EndpointId id, double value);
  /// Mutable access to the cold facts, for example when the engine reports its cache config. Ask
  /// again for every change: what was derived from them is recomputed after the call.
  EndpointInfo& mutable_info(EndpointId id) {
    identity_.renew();
    return info_[id.value()];
  }

  /// Rows ever allocated; every per-row array has this length.
  std::size_t rows() const { return info_.size(); }
  /// Ready endpoints in ascending row order.
  std::span<const EndpointRow> candidates() const { return ready_rows_; }
  bool live(EndpointRow r) const { return r < live_.size() && live_[r] != 0; }
  bool ready(EndpointRow r) const { return r < is_ready_.size() && is_ready_[r] != 0; }

  std::span<const double> waiting() const { return waiting_; }
  std::span<const double> running() const { return running_; }
  std::span<const double> kv_usage() const { return kv_usage_; }
  std::span<const SimTime> updated() const { return updated_; }
  bool has_metrics(EndpointRow r) const { return has_metrics_[r] != 0; }
  const EndpointInfo& info(EndpointRow r) const { return info_[r]; }
  const LoraState& lora(EndpointRow r) const { return lora_[r]; }
  /// The attribute's column (NaN where missing), or an empty span when nothing has it.
  std::span<const double> attribute(std::string_view key) const;
  /// A number below rows() that all rows of one address share: the pod behind several ranks.
  std::uint32_t address_group(EndpointRow r) const { return group_[r]; }
  /// Differs from that of any other table, and changes with the cold facts and the set of rows:
  /// what was derived from them under an equal token still holds. Hold the pointer while comparing.
  const std::shared_ptr<const char>& identity() const { return identity_.token; }

 private:
  void update_ready(EndpointRow row);

  std::vector<double> waiting_, running_, kv_usage_;
  std::vector<SimTime> updated_;
  std::vector<std::uint8_t> has_metrics_, live_, is_ready_;
  std::vector<EndpointInfo> info_;
  std::vector<LoraState> lora_;
  std::vector<std::uint32_t> group_;
  std::vector<EndpointRow> ready_rows_, free_rows_;
  struct Group {
    std::uint32_t id;
    std::uint32_t members;
  };
  std::map<std::string, Group, std::less<>> groups_;
  std::vector<std::uint32_t> free_groups_;
  std::map<std::string, std::vector<double>, std::less<>> attributes_;
  struct Identity {
    Identity() { renew(); }
    Identity(const Identity&) { renew(); }
    Identity& operator=(const Identity& other) {
      if (this != &other) renew();
      return *this;
    }
    ~Identity() = default;  // Moving copies: both tables get on with tokens of their own.
    void renew() { token = std::make_shared<const char>('\0'); }
    std::shared_ptr<const char> token;
  } identity_;
};

struct Header {
  std::string_view name;  ///< Compared without regard to case.
  std::string_view value;
};

/// The prediction of a latency side-car for one request on one endpoint.
struct LatencyPrediction {
  bool present = false;
  double ttft_ms = 0;
  double tpot_ms = 0;
};

/// One image, audio or video of a multimodal prompt.
struct EncoderItem {
  std::string_view hash;
  double size = 0;  ///< Relative cost of encoding, e.g. its embedding tokens.
};

/// One request as the router may see it. Views and spans must outlive the call only. There is
/// deliberately no output length.
struct RequestView {
  std::uint64_t id = 0;  ///< Unique among live requests; also keys the router's random draws.
  std::string_view model = {};     ///< Target model after rewriting (the adapter's name for LoRA).
  std::int64_t prompt_tokens = 0;  ///< 0 when the prompt was not tokenised.
  std::int64_t prompt_bytes = 0;   ///< Bytes of prompt text, or of the JSON of the messages.
  /// Keys of the full blocks of the prompt for the precise index (Scheduler::block_key_scheme; in
  /// SHA-256 eras after BlockKeyChain::index_key).
  std::span<const std::uint64_t> block_keys = {};
  /// Hashes for the approximate index (Scheduler::approx_scheme).
  std::span<const std::uint64_t> approx_hashes = {};
  /// The end of each prompt of a multi-prompt request in the span above; empty = one prompt.
  std::span<const std::uint32_t> block_key_ends = {};
  std::span<const std::uint32_t> approx_hash_ends = {};
  std::span<const Header> headers = {};
  /// Endpoints of x-gateway-destination-endpoint-subset, or left by a filter outside; empty = all.
  std::span<const EndpointRow> subset = {};
  /// Per row; empty when no side-car answered.
  std::span<const LatencyPrediction> predictions = {};
  bool streaming = true;  ///< The answer comes in pieces, the first of which is its first token.
  bool multimodal = false;
  std::span<const EncoderItem> items = {};
  /// Per row, the total size of items whose embeddings are cached there; empty when unknown.
  std::span<const double> cached_item_size = {};
  std::int32_t priority = 0;
  std::string_view session = {};  ///< Session id from a producer; headers are looked at first.
  std::string_view cache_salt = {};
  std::optional<std::int64_t> max_tokens = {};  ///< The client's own cap on the answer, if sent.
  double slo_ttft_ms = 0;                       ///< x-llm-d-slo-ttft-ms; 0 = none.
  double slo_tpot_ms = 0;                       ///< x-llm-d-slo-tpot-ms; 0 = none.
  /// For a caller that replays the decisions of a real router: the endpoint that gets the request.
  /// Filters, scorers and pickers run as usual; then the profiles go on as if they had picked this
  /// one, even if they failed or the request would be refused, and so does every hook.
  std::optional<EndpointRow> forced = {};
  /// The same for the profile named "prefill", if it runs.
  std::optional<EndpointRow> forced_prefill = {};

  /// The value of a header, or nothing.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// Calls `f` with the span of each prompt of a request.
template <class F>
void for_each_prompt(std::span<const std::uint64_t> all, std::span<const std::uint32_t> ends, F f) {
  if (ends.empty()) return f(all);
  std::size_t begin = 0;
  for (const std::uint32_t end : ends) {
    ROUTESIM_CHECK(begin <= end && end <= all.size(), "prompt ends ascend within the keys");
    f(all.subspan(begin, end - begin));
    begin = end;
  }
}

/// Case-insensitive comparison of ASCII header names.
bool same_header(std::string_view a, std::string_view b);

}  // namespace routesim::policies
