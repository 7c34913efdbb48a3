// R: the request to be scored.
#include <charconv>
#include <set>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/index/block_keys.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

// E: the list of endpoints.

namespace {

struct Metrics {
  double waiting = 0;
  double running = 0;
  double kv_usage = 0;
  double age_ms = 0;
};

void describe(Describer& d, Metrics& m) {
  const RealRange count{.min = 0};
  field(d, {"waiting", "Requests in the engine's queue.", true}, m.waiting, count);
  field(d, {"running", "Requests in the engine's batch.", true}, m.running, count);
  field(d, {"kv_usage", "Share of KV blocks in use.", true}, m.kv_usage, RealRange{0, 1});
  field(d, {"age_ms", "How long ago this was scraped, in ms."}, m.age_ms, RealRange{0, 1e12});
}

struct Lora {
  policies::LoraState state;
};

void describe(Describer& d, Lora& l) {
  field(d, {"active", "Adapters loaded for running requests."}, l.state.active);
  field(d, {"waiting", "Adapters that waiting requests need."}, l.state.waiting);
  field(d, {"max_active", "Adapter slots of the engine."}, l.state.max_active, IntRange{0});
}

struct Place {
  policies::Topology topology;
};

void describe(Describer& d, Place& p) {
  field(d, {"host", "Machine."}, p.topology.host);
  field(d, {"rack", "Rack."}, p.topology.rack);
  field(d, {"zone", "Zone."}, p.topology.zone);
  field(d, {"region", "Region."}, p.topology.region);
}

struct Endpoint {
  policies::EndpointInfo info;
  bool ready = true;
  std::optional<Metrics> metrics;
  Lora lora;
  Place place;
  Document labels;
  Document attributes;
};

void describe(Describer& d, Endpoint& e) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  field(d, {"name", "Pod name, unique in the file.", true}, e.info.pod_name);
  field(d, {"namespace", "Kubernetes namespace."}, e.info.name_space);
  field(d, {"address", "IP or host name of the pod.", true}, e.info.address);
  field(d, {"port", "Port of the model server."}, e.info.port, IntRange{1, 65'535});
  field(d, {"rank", "Data-parallel rank."}, e.info.rank, IntRange{0, 65'535});
  field(d, {"labels", "Kubernetes labels: a map of text."}, e.labels);
  field(d, {"block_size", "KV block size the engine reports, in tokens; 0 = unknown."},
        e.info.block_size, IntRange{0, kMost});
  field(d, {"num_gpu_blocks", "KV blocks the engine reports; 0 = unknown."}, e.info.num_gpu_blocks,
        IntRange{0, kMost});
  field(d, {"model", "Model the engine serves."}, e.info.model);
  field(d, {"ready", "Whether the pod is a candidate."}, e.ready);
  field(d, {"metrics", "The last scrape; absent = never scraped."}, e.metrics);
  field(d, {"lora", "LoRA adapters."}, e.lora);
  field(d, {"topology", "Where the pod runs."}, e.place);
  field(d, {"attributes", "Further numbers, by producer/attribute."}, e.attributes);
}

/// The members of a map-valued key, each noted in the ledger, or nothing (and a diagnostic) when it
/// is not one.
std::vector<ConfigNode::Member> members(const Document& map, const std::string& path,
                                        Diagnostics& diagnostics) {
  if (map.root == nullptr) return {};
  if (map.root->is_map()) {
    for (const ConfigNode::Member& m : map.root->members())
      diagnostics.key(
          key_use(m.key_where, kScoreEndpointsFormat, child_path(path, m.key), Fate::kUsed, {}));
    return map.root->members();
  }
  diagnostics.error(map.root->where(), path, "must be a map (" + got(*map.root) + ")");
  return {};
}

template <class T>
std::optional<T> take(Parsed<T> parsed, const SourceLocation& where, const std::string& path,
                      Diagnostics& diagnostics) {
  if (!parsed.value) diagnostics.error(where, path, parsed.message, parsed.hint);
  return std::move(parsed.value);
}

/// Adds endpoints to a pool, one after the other.
class PoolReader {
 public:
  PoolReader(SimTime now, Diagnostics& diagnostics) : now_(now), diagnostics_(diagnostics) {}

  void add(const ConfigNode& node, const std::string& path) {
    Endpoint e;
    Provenance places;
    read_struct(node, e, diagnostics_,
                {.path = path, .provenance = &places, .format = kScoreEndpointsFormat});
    const std::string labels = child_path(path, "labels");
    for (const ConfigNode::Member& m : members(e.labels, labels, diagnostics_))
      if (auto text =
              take(parse_text(*m.value), m.value->where(), child_path(labels, m.key), diagnostics_))
        e.info.labels[m.key] = *text;
    e.info.topology = e.place.topology;
    unique(e.info.pod_name, child_path(path, "name"), places);
    unique(e.info.host_port(), child_path(path, "address"), places);
    const EndpointId id = pool_.table.add(e.info);
    pool_.names.push_back(e.info.pod_name);
    pool_.table.set_ready(id, e.ready);
    pool_.table.set_lora(id, e.lora.state);
    if (e.metrics)
      pool_.table.set_metrics(id, e.metrics->waiting, e.metrics->running, e.metrics->kv_usage,
                              now_ - Duration::from_seconds(e.metrics->age_ms / 1e3));
    const std::string attributes = child_path(path, "attributes");
    for (const ConfigNode::Member& m : members(e.attributes, attributes, diagnostics_))
      if (auto value = take(parse_real(*m.value, {}), m.value->where(),
                            child_path(attributes, m.key), diagnostics_))
        pool_.table.set_attribute(m.key, id, *value);
  }

  ScorePool take_pool() { return std::move(pool_); }

 private:
  void unique(const std::string& text, const std::string& path, const Provenance& places) {
    // A key that is missing has been complained about.
    if (places.find(path) == nullptr || seen_.insert(text).second) return;
    diagnostics_.error(places.nearest(path), path,
                       "belongs to another endpoint too (got " + printable(text) + ")");
  }

  SimTime now_;
  Diagnostics& diagnostics_;
  ScorePool pool_;
  std::set<std::string> seen_;
};

}  // namespace

void describe_score_endpoint(Describer& d) {
  Endpoint endpoint;
  describe(d, endpoint);
}

std::optional<policies::EndpointRow> ScorePool::find(const std::string& text) const {
  for (policies::EndpointRow r = 0; r < names.size(); ++r) {
    const policies::EndpointInfo& info = table.info(r);
    if (names[r] == text || info.id() == text || info.host_port() == text) return r;
  }
  return std::nullopt;
}

std::optional<ScorePool> read_score_pool(const std::string& path, SimTime now,
                                         Diagnostics& diagnostics) {
  Diagnostics found;
  PoolReader reader(now, found);
  if (const ConfigNode::Ptr root = read_config_file(path, found)) {
    if (root->is_sequence()) {
      for (std::size_t i = 0; i < root->items().size(); ++i)
        reader.add(*root->items()[i], element_path("", i));
    } else {
      found.error(root->where(), "", "must be a list of endpoints (" + got(*root) + ")");
    }
  }
  append(diagnostics, found);
  if (found.has_errors()) return std::nullopt;
  return reader.take_pool();
}

namespace {

struct Prediction {
  std::string endpoint;
  double ttft_ms = 0;
  double tpot_ms = 0;
};

void describe(Describer& d, Prediction& p) {
  const RealRange time{.min = 0};
  field(d, {"endpoint", "Name of the endpoint.", true}, p.endpoint);
  field(d, {"ttft_ms", "Predicted time to first token, in ms.", true}, p.ttft_ms, time);
  field(d, {"tpot_ms", "Predicted time per output token, in ms."}, p.tpot_ms, time);
}

struct CachedItems {
  std::string endpoint;
  double size = 0;
};

void describe(Describer& d, CachedItems& c) {
  field(d, {"endpoint", "Name of the endpoint.", true}, c.endpoint);
  field(d, {"size", "Total size of the request's items cached there.", true}, c.size,
        RealRange{.min = 0});
}

struct Lists {
  Document headers, block_keys, approx_hashes;
  std::vector<std::string> subset;
  std::vector<Prediction> predictions;
  std::vector<CachedItems> cached_items;
  std::optional<double> slo_ttft_ms, slo_tpot_ms;
};

void describe_prompt(Describer& d, ScoreRequest& r, Lists& lists) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  field(d,
        approximated("text", "The prompt.",
                     "four bytes are taken for one token, as the router's estimate backend does"),
        r.text);
  field(d, {"token_ids", "The prompt's tokens."}, r.token_ids);
  field(d, {"block_keys", "Ready keys of its full blocks, \"0x...\" or decimal."},
        lists.block_keys);
  field(d, {"approx_hashes", "Ready hashes for the approximate index."}, lists.approx_hashes);
  field(d, {"prompt_tokens", "Length of the prompt, where its tokens are not given."},
        r.prompt_tokens, IntRange{0, kMost});
  field(d, {"prompt_bytes", "Bytes of prompt text; absent = 4 per token."}, r.prompt_bytes,
        IntRange{0, kMost});
}

void describe_request(Describer& d, ScoreRequest& r, Lists& lists) {
  field(d, {"id", "Keys the router's random draws."}, r.id, IntRange{0});
  field(d, {"model", "Target model, or the LoRA adapter's name.", true}, r.model);
  describe_prompt(d, r, lists);
  field(d, {"headers", "Request headers: a map of text."}, lists.headers);
  field(d, {"subset", "Endpoints the gateway allows; absent = all."}, lists.subset);
  field(d, {"priority", "Below 0 = may be shed."}, r.priority);
  field(d, {"max_tokens", "The client's cap on the answer."}, r.max_tokens, IntRange{0});
  field(d, {"session", "Session id from a producer."}, r.session);
  field(d, {"cache_salt", "Salt of the prefix cache."}, r.cache_salt);
  const RealRange time{.min = 0};
  field(d, {"slo_ttft_ms", "Goal for the time to first token, in ms; 0 = none."}, lists.slo_ttft_ms,
        time);
  field(d, {"slo_tpot_ms", "Goal for the time per output token, in ms; 0 = none."},
        lists.slo_tpot_ms, time);
  field(d, {"predictions", "What a latency side-car predicts, per endpoint."}, lists.predictions);
  field(d, {"items", "Images, audio and video of the prompt."}, r.items);
  field(d, {"cached_items", "Size of items with cached embeddings, per endpoint."},
        lists.cached_items);
}

/// Turns what was read into the request, checking what no single key can.
class RequestReader {
 public:
  RequestReader(const ScorePool* pool, Diagnostics& diagnostics)
      : pool_(pool), diagnostics_(diagnostics) {}

  ScoreRequest read(const ConfigNode& root) {
    ScoreRequest r;
    Lists lists;
    r.where = root.where();
    read_config(root, [&](Describer& d) { describe_request(d, r, lists); }, diagnostics_,
                {.provenance = &places_, .format = kScoreRequestFormat});
    if (lists.block_keys.root) r.block_keys = keys(lists.block_keys, "block_keys");
    if (lists.approx_hashes.root) r.approx_hashes = keys(lists.approx_hashes, "approx_hashes");
    if (lists.headers.root) read_headers(*lists.headers.root, r.headers);
    check_prompt(r, root);
    r.slo_ttft_ms = goal(lists.slo_ttft_ms, "slo_ttft_ms", "x-llm-d-slo-ttft-ms", r);
    r.slo_tpot_ms = goal(lists.slo_tpot_ms, "slo_tpot_ms", "x-llm-d-slo-tpot-ms", r);
    if (pool_ != nullptr) resolve(lists, r);
    return r;
  }

 private:
  std::optional<std::vector<std::uint64_t>> keys(const Document& list, const std::string& path) {
    return parse_keys(*list.root, path, diagnostics_);
  }

  void read_headers(const ConfigNode& node, std::map<std::string, std::string>& headers) {
    if (!node.is_map()) {
      diagnostics_.error(node.where(), "headers", "must be a map (" + got(node) + ")");
      return;
    }
    for (const ConfigNode::Member& m : node.members()) {
      const std::string path = child_path("headers", m.key);
      Parsed<std::string> text = parse_text(*m.value);
      if (!text.value) diagnostics_.error(m.value->where(), path, text.message, text.hint);
      for (const auto& other : headers)
        if (policies::same_header(other.first, m.key))
          diagnostics_.error(m.key_where, path, "is the same header as " + printable(other.first));
      diagnostics_.key(key_use(m.key_where, kScoreRequestFormat, path, Fate::kUsed, {}));
      headers[m.key] = text.value.value_or("");
      header_places_[m.key] = m.value->where();
    }
  }

  void check_prompt(const ScoreRequest& r, const ConfigNode& root) {
    const std::vector<std::pair<const char*, bool>> forms = {{"text", r.text.has_value()},
                                                             {"token_ids", r.token_ids.has_value()},
                                                             {"block_keys", given("block_keys")}};
    const char* first = nullptr;
    for (const auto& [key, present] : forms) {
      if (!present) continue;
      if (first != nullptr)
        diagnostics_.error(places_.nearest(key), key, "cannot stand beside " + std::string(first),
                           "give the prompt in one form");
      first = first != nullptr ? first : key;
    }
    const bool counted = r.text || r.token_ids;
    if (counted && r.prompt_tokens)
      diagnostics_.error(places_.nearest("prompt_tokens"), "prompt_tokens",
                         "cannot stand beside " + std::string(first),
                         "the prompt's tokens are counted");
    if (r.text && r.prompt_bytes)
      diagnostics_.error(places_.nearest("prompt_bytes"), "prompt_bytes",
                         "cannot stand beside text", "the text's bytes are counted");
    if (first == nullptr && !r.prompt_tokens)
      diagnostics_.error(root.where(), "", "has no prompt",
                         "give text, token_ids, block_keys or prompt_tokens");
  }

  bool given(const char* key) const { return places_.find(key) != nullptr; }

  /// A goal from its key, or else from the header that carries it in production.
  double goal(const std::optional<double>& value, const char* key, const char* header,
              const ScoreRequest& r) {
    if (value) return *value;
    for (const auto& [name, text] : r.headers) {
      if (!policies::same_header(name, header)) continue;
      const Parsed<double> parsed = parse_real(text, RealRange{.min = 0});
      if (parsed.value) return *parsed.value;
      diagnostics_.error(header_places_[name], child_path("headers", name), parsed.message,
                         "this header stands for " + std::string(key));
    }
    return 0;
  }

  void resolve(const Lists& lists, ScoreRequest& r) {
    const std::size_t rows = pool_->table.rows();
    for (std::size_t i = 0; i < lists.subset.size(); ++i)
      if (const auto row = find(lists.subset[i], element_path("subset", i)))
        r.subset.push_back(*row);
    if (given("subset") && lists.subset.empty())
      diagnostics_.error(places_.nearest("subset"), "subset", "must name an endpoint",
                         "leave the key out to allow all of them");
    if (!lists.predictions.empty()) r.predictions.resize(rows);
    for (std::size_t i = 0; i < lists.predictions.size(); ++i) {
      const Prediction& p = lists.predictions[i];
      if (const auto row = find(p.endpoint, element_path("predictions", i) + ".endpoint"))
        r.predictions[*row] = {.present = true, .ttft_ms = p.ttft_ms, .tpot_ms = p.tpot_ms};
    }
    if (!lists.cached_items.empty()) r.cached_item_size.resize(rows);
    for (std::size_t i = 0; i < lists.cached_items.size(); ++i) {
      const CachedItems& c = lists.cached_items[i];
      if (const auto row = find(c.endpoint, element_path("cached_items", i) + ".endpoint"))
        r.cached_item_size[*row] = c.size;
    }
  }

  std::optional<policies::EndpointRow> find(const std::string& name, const std::string& path) {
    const auto row = pool_->find(name);
    if (!row && places_.find(path) != nullptr)
      diagnostics_.error(places_.nearest(path), path,
                         "names no endpoint (got " + printable(name) + ")",
                         did_you_mean(name, pool_->names));
    return row;
  }

  const ScorePool* pool_;
  Diagnostics& diagnostics_;
  Provenance places_;
  std::map<std::string, SourceLocation> header_places_;
};

}  // namespace

void describe_score_request(Describer& d) {
  ScoreRequest request;
  Lists lists;
  describe_request(d, request, lists);
}

void describe(Describer& d, ScoreItem& i) {
  field(d, {"hash", "Identifier of the item's content.", true}, i.hash);
  field(d, {"size", "Relative cost of encoding it.", true}, i.size, RealRange{.min = 0});
}

std::optional<std::uint64_t> parse_key(const ConfigNode& node, const std::string& path,
                                       Diagnostics& diagnostics) {
  std::string_view digits = node.is_scalar() ? std::string_view(node.text()) : std::string_view();
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (!digits.empty() && result.ec == std::errc{} && result.ptr == digits.data() + digits.size())
    return value;
  diagnostics.error(node.where(), path, "must be a 64-bit key (" + got(node) + ")",
                    "a whole number from 0 on, or \"0x...\" with at most 16 hexadecimal digits");
  return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> parse_keys(const ConfigNode& node,
                                                     const std::string& path,
                                                     Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    diagnostics.error(node.where(), path, "must be a list of keys (" + got(node) + ")");
    return std::nullopt;
  }
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < node.items().size(); ++i)
    if (const auto key = parse_key(*node.items()[i], element_path(path, i), diagnostics))
      keys.push_back(*key);
  return keys;
}

std::optional<ScoreRequest> read_score_request(const std::string& path, const ScorePool* pool,
                                               Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<ScoreRequest> request;
  if (const ConfigNode::Ptr root = read_config_file(path, found))
    request = RequestReader(pool, found).read(*root);
  append(diagnostics, found);
  return found.has_errors() ? std::nullopt : std::move(request);
}

namespace {

/// Bytes of one token, as the token producer's estimate backend takes it.
constexpr std::int64_t kBytesPerToken = 4;

}  // namespace

KeyedRequest::KeyedRequest(const ScoreRequest& request, const ScorePool& pool,
                           const policies::Scheduler& scheduler, Diagnostics& diagnostics)
    : request_(request) {
  if (request.text) tokens_ = policies::estimate_tokens(*request.text);
  if (request.token_ids) tokens_ = *request.token_ids;
  for (const auto& [name, value] : request.headers)
    headers_.push_back({.name = name, .value = value});
  for (const ScoreItem& item : request.items)
    items_.push_back({.hash = item.hash, .size = item.size});
  view_.id = static_cast<std::uint64_t>(request.id);
  view_.model = request.model;
  view_.prompt_tokens = request.prompt_tokens.value_or(static_cast<std::int64_t>(tokens_.size()));
  view_.prompt_bytes = request.text
                           ? static_cast<std::int64_t>(request.text->size())
                           : request.prompt_bytes.value_or(view_.prompt_tokens * kBytesPerToken);
  view_.headers = headers_;
  view_.subset = request.subset;
  view_.predictions = request.predictions;
  view_.multimodal = !items_.empty();
  view_.items = items_;
  view_.cached_item_size = request.cached_item_size;
  view_.priority = request.priority;
  view_.session = request.session;
  view_.cache_salt = request.cache_salt;
  view_.max_tokens = request.max_tokens;
  view_.slo_ttft_ms = request.slo_ttft_ms;
  view_.slo_tpot_ms = request.slo_tpot_ms;
  const policies::SignalNeeds& needs = scheduler.needs();
  if (needs.block_keys) add_block_keys(scheduler, diagnostics);
  if (needs.approx_hashes) add_approx_hashes(scheduler.approx_scheme(pool.table), diagnostics);
  if (needs.predictions && request.predictions.empty())
    diagnostics.warning(request.where, "predictions", "is read by this configuration and missing",
                        "without predictions its latency scores are those of a silent side-car");
}

void KeyedRequest::add_block_keys(const policies::Scheduler& scheduler, Diagnostics& diagnostics) {
  const policies::BlockKeyScheme scheme = scheduler.block_key_scheme();
  const auto block = static_cast<std::uint32_t>(scheme.block_size);
  const policies::BlockKeyChain chain(scheme.algorithm, block, scheme.hash_seed, request_.model);
  if (request_.block_keys) {
    block_keys_ = *request_.block_keys;
    // Keys say how long the prompt is, at least.
    if (!request_.prompt_tokens) {
      view_.prompt_tokens = static_cast<std::int64_t>(block_keys_.size()) * scheme.block_size;
      if (!request_.prompt_bytes) view_.prompt_bytes = view_.prompt_tokens * kBytesPerToken;
    }
  } else if (!tokens_.empty()) {
    std::vector<policies::BlockExtra> extras;
    // The SHA-256 releases hashed tokens only.
    if (!request_.cache_salt.empty() && !is_sha(scheme.algorithm))
      extras = policies::compute_block_extras({}, block, static_cast<std::int64_t>(tokens_.size()),
                                              request_.cache_salt);
    chain.append_keys(policies::BlockKey{0}, tokens_, block_keys_, extras);
  } else if (!request_.text && !request_.token_ids) {
    diagnostics.warning(request_.where, "", "has no block keys, which this configuration reads",
                        "give token_ids, text or block_keys; the prefix counts as not cached");
  }
  for (std::uint64_t& key : block_keys_) key = chain.index_key(key);
  view_.block_keys = block_keys_;
}

void KeyedRequest::add_approx_hashes(const policies::ApproxScheme& scheme,
                                     Diagnostics& diagnostics) {
  const auto most = static_cast<std::size_t>(scheme.max_blocks);
  const bool by_tokens = scheme.hashing == policies::ApproxHashing::kTokens;
  if (request_.approx_hashes) {
    approx_hashes_ = *request_.approx_hashes;
  } else if (by_tokens && (request_.text || request_.token_ids)) {
    approx_hashes_ =
        policies::approx_hashes_tokens(tokens_, request_.model, request_.cache_salt,
                                       static_cast<std::uint32_t>(scheme.block_size), most);
  } else if (!by_tokens && request_.text) {
    approx_hashes_ =
        policies::approx_hashes_bytes(*request_.text, request_.model, request_.cache_salt,
                                      static_cast<std::size_t>(scheme.block_size),
                                      scheme.hashing == policies::ApproxHashing::kBytesTail, most);
  } else {
    diagnostics.warning(request_.where, "",
                        "has no hashes for the approximate index, which this configuration reads",
                        by_tokens ? "give token_ids, text or approx_hashes"
                                  : "this release hashes bytes: give text or approx_hashes");
  }
  view_.approx_hashes = approx_hashes_;
}

}  // namespace routesim::tools
