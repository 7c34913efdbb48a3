// The record of one decision as JSON.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/described_json.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

namespace {

using policies::KvEvent;

enum class EventType { kStored, kRemoved, kCleared };
constexpr std::array<std::string_view, 3> kEventTypes = {"BlockStored", "BlockRemoved",
                                                         "AllBlocksCleared"};

/// An event as written: the keys of vLLM's map encoding.
struct WrittenEvent {
  std::size_t type = 0;
  Document hashes, parent;
  std::string medium;
  std::optional<std::uint32_t> group_idx;
  policies::BlockStored stored;
};

void describe_event(Describer& d, WrittenEvent& e, EventType type) {
  d.choice({"type", "BlockStored, BlockRemoved or AllBlocksCleared.", true}, e.type, kEventTypes);
  if (type == EventType::kCleared) return;
  policies::BlockStored& s = e.stored;
  field(d, {"block_hashes", "The engine's block hashes.", true}, e.hashes);
  field(d, {"medium", "Storage tier, such as GPU."}, e.medium);
  field(d, {"group_idx", "KV cache group."}, e.group_idx);
  if (type == EventType::kRemoved) return;
  field(d, {"parent_block_hash", "Hash of the block before them; null = none."}, e.parent);
  field(d, {"token_ids", "Tokens of all the blocks.", true}, s.tokens);
  field(d, {"block_size", "The engine's block size in tokens.", true}, s.block_size, IntRange{0});
  field(d, no_effect("lora_id", "Numeric id of the adapter.", "the router goes by its name"),
        s.lora_id);
  field(d, {"lora_name", "Name of the adapter."}, s.lora_name);
  field(d, {"extra_keys", "Per block, the identifiers mixed into its hash."}, s.extra_keys);
  field(d, {"kv_cache_spec_kind", "Kind of the cache group."}, s.kv_cache_spec_kind);
  field(d,
        no_effect("kv_cache_spec_sliding_window", "Window of the cache group.",
                  "the router goes by the kind of the group"),
        s.sliding_window);
}

/// A line as written.
struct WrittenLine {
  std::string endpoint, model;
  std::optional<std::string> hex, base64;
  Document events;
};

void describe(Describer& d, WrittenLine& line) {
  field(d, {"endpoint", "Name or address:port of the publisher.", true}, line.endpoint);
  field(d, {"model", "Model of the topic; absent = the endpoint's."}, line.model);
  field(d, {"events", "The events, spelled out."}, line.events);
  field(d, {"payload_hex", "The msgpack batch, in hexadecimal."}, line.hex);
  field(d, {"payload_base64", "The msgpack batch, in base64."}, line.base64);
}

/// Reads one line into a message.
class LineReader {
 public:
  LineReader(const ScorePool* pool, Diagnostics& diagnostics)
      : pool_(pool), diagnostics_(diagnostics) {}

  KvMessage read(const ConfigNode& root) {
    KvMessage message;
    WrittenLine line;
    read_struct(root, line, diagnostics_, {.provenance = &places_, .format = kScoreEventsFormat});
    message.model = line.model;
    resolve(line.endpoint, message);
    const bool spelled = places_.find("events") != nullptr;
    if (spelled + line.hex.has_value() + line.base64.has_value() != 1 && root.is_map())
      diagnostics_.error(root.where(), "",
                         "must have exactly one of events, payload_hex and payload_base64");
    if (line.hex) decode("payload_hex", decode_hex(*line.hex), message);
    if (line.base64) decode("payload_base64", decode_base64(*line.base64), message);
    if (line.events.root) read_events(*line.events.root, message);
    return message;
  }

 private:
  void resolve(const std::string& endpoint, KvMessage& message) {
    if (pool_ == nullptr || places_.find("endpoint") == nullptr) return;
    if (const auto row = pool_->find(endpoint)) {
      message.endpoint = *row;
      return;
    }
    diagnostics_.error(places_.nearest("endpoint"), "endpoint",
                       "names no endpoint (got " + printable(endpoint) + ")");
  }

  void decode(const std::string& key, const std::optional<std::string>& bytes, KvMessage& message) {
    const std::string error =
        bytes ? policies::decode_kv_batch(std::vector<std::uint8_t>(bytes->begin(), bytes->end()),
                                          message.batch)
              : "the text is cut or misspelled";
    if (!error.empty())
      diagnostics_.error(places_.nearest(key), key, "cannot be decoded: " + error);
  }

  void read_events(const ConfigNode& list, KvMessage& message) {
    if (!list.is_sequence()) {
      diagnostics_.error(list.where(), "events", "must be a list (" + got(list) + ")");
      return;
    }
    for (std::size_t i = 0; i < list.items().size(); ++i)
      message.batch.events.push_back(read_event(*list.items()[i], element_path("events", i)));
  }

  KvEvent read_event(const ConfigNode& node, const std::string& path) {
    // Which keys an event may have depends on its type, so that is looked at first.
    auto type = EventType::kStored;
    if (const ConfigNode::Member* member = node.is_map() ? node.find("type") : nullptr)
      if (const auto parsed = parse_choice(*member->value, kEventTypes); parsed.value)
        type = static_cast<EventType>(*parsed.value);
    WrittenEvent e;
    read_config(node, [&](Describer& d) { describe_event(d, e, type); }, diagnostics_,
                {.path = path, .format = kScoreEventsFormat});
    std::vector<std::uint64_t> hashes;
    if (e.hashes.root)
      hashes = parse_keys(*e.hashes.root, child_path(path, "block_hashes"), diagnostics_)
                   .value_or(hashes);
    if (type == EventType::kCleared) return policies::AllBlocksCleared{};
    if (type == EventType::kRemoved)
      return policies::BlockRemoved{
          .hashes = std::move(hashes), .medium = e.medium, .group_idx = e.group_idx};
    if (e.parent.root)
      e.stored.parent =
          parse_key(*e.parent.root, child_path(path, "parent_block_hash"), diagnostics_)
              .value_or(0);
    e.stored.hashes = std::move(hashes);
    e.stored.medium = e.medium;
    e.stored.group_idx = e.group_idx;
    return std::move(e.stored);
  }

  const ScorePool* pool_;
  Diagnostics& diagnostics_;
  Provenance places_;
};

}  // namespace

void describe_score_line(Describer& d) {
  WrittenLine line;
  describe(d, line);
}

void describe_score_event(Describer& d) {
  WrittenEvent event;
  describe_event(d, event, EventType::kStored);
}

std::optional<std::vector<KvMessage>> read_kv_messages(const std::string& path,
                                                       const ScorePool* pool,
                                                       Diagnostics& diagnostics) {
  Diagnostics found;
  std::vector<KvMessage> messages;
  std::string text;
  // Event logs are longer than configurations; each line is limited like one.
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  // A file of another kind would fail at every line, and the complaints would fill the memory.
  constexpr std::size_t kMostErrors = 1000;
  if (read_text_file(path, {.file = path}, "", kMostBytes, text, found)) {
    std::size_t begin = 0;
    for (int line = 0; begin < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string one = text.substr(begin, end - begin);
      begin = end + 1;
      if (one.find_first_not_of(" \t\r") == std::string::npos) continue;
      const ConfigNode::Ptr root = parse_config(one, {.file = path, .line_offset = line}, found);
      if (root != nullptr) messages.push_back(LineReader(pool, found).read(*root));
      if (found.items().size() < kMostErrors) continue;
      found.error({path, line + 1, 0}, "",
                  "too many errors; the lines after this one are not read");
      break;
    }
  }
  append(diagnostics, found);
  if (found.has_errors()) return std::nullopt;
  return messages;
}

policies::KvIngestStats ingest(const std::vector<KvMessage>& messages, const ScorePool& pool,
                               const std::string& model, policies::Scheduler& scheduler) {
  ROUTESIM_CHECK(scheduler.precise_index() != nullptr, "there is no index to feed");
  policies::KvEventIngestor ingestor(scheduler.kv_ingest_options(), *scheduler.precise_index(),
                                     *scheduler.tiers());
  for (const KvMessage& message : messages) {
    const std::string& served = pool.table.info(message.endpoint).model;
    const std::string& topic =
        message.model.empty() ? (served.empty() ? model : served) : message.model;
    ingestor.apply(EndpointId(scheduler.index_holder(pool.table, message.endpoint)), topic,
                   message.batch);
  }
  return ingestor.stats();
}

namespace {

using policies::EndpointRow;

constexpr std::array<std::string_view, 3> kStateNames = {"not-run", "failed", "ok"};

class Renderer {
 public:
  explicit Renderer(const ScoreReport& report) : report_(report) {}

  std::string render() {
    const policies::EndpointPickerConfig& config = report_.scheduler.config();
    json_.begin_object();
    json_.member("era", policies::name(config.era)).member("era_origin", config.era_origin);
    json_.member("distribution", policies::name(config.distribution));
    json_.member("seed", report_.seed).member("now_s", report_.now.to_seconds());
    request();
    if (report_.kv_events) kv_events(*report_.kv_events);
    json_.key("profiles").begin_array();
    for (const policies::ProfileExplanation& p : report_.explanation.profiles) profile(p);
    profiles_not_run();
    json_.end_array();
    decision();
    json_.end_object();
    return json_.str() + "\n";
  }

 private:
  void names(std::string_view key, std::span<const EndpointRow> rows) {
    json_.key(key).begin_array();
    for (const EndpointRow row : rows) json_.value(report_.pool.names[row]);
    json_.end_array();
  }

  /// One number per endpoint; what is not a number (a scorer that abstained) is null.
  void values(std::string_view key, const std::vector<EndpointRow>& rows,
              const std::vector<double>& numbers) {
    json_.key(key).begin_object();
    for (std::size_t i = 0; i < rows.size() && i < numbers.size(); ++i)
      json_.member(report_.pool.names[rows[i]], numbers[i]);
    json_.end_object();
  }

  void request() {
    const policies::RequestView& r = report_.request;
    const policies::SignalNeeds& needs = report_.scheduler.needs();
    json_.key("request").begin_object();
    json_.member("model", r.model).member("prompt_tokens", r.prompt_tokens);
    json_.member("prompt_bytes", r.prompt_bytes);
    if (needs.block_keys) {
      const policies::BlockKeyScheme scheme = report_.scheduler.block_key_scheme();
      json_.member("key_algorithm", policies::to_string(scheme.algorithm));
      json_.member("key_block_size", scheme.block_size);
      keys("block_keys", r.block_keys);
    }
    if (needs.approx_hashes) keys("approx_hashes", r.approx_hashes);
    json_.end_object();
  }

  /// Keys are text, because many JSON readers round 64-bit numbers.
  void keys(std::string_view key, std::span<const std::uint64_t> numbers) {
    json_.key(key).begin_array();
    for (const std::uint64_t n : numbers) json_.value("0x" + hex_digits(n));
    json_.end_array();
  }

  void kv_events(const policies::KvIngestStats& s) {
    json_.key("kv_events").begin_object();
    json_.member("stored", s.stored).member("removed", s.removed).member("cleared", s.cleared);
    json_.member("tier_updates", s.tier_updates).member("skipped_group", s.skipped_group);
    json_.member("skipped_parent", s.skipped_parent);
    json_.member("skipped_partial", s.skipped_partial).member("skipped_limit", s.skipped_limit);
    json_.end_object();
  }

  void profile(const policies::ProfileExplanation& p) {
    json_.begin_object().member("name", p.profile);
    json_.member("state", kStateNames[static_cast<std::size_t>(p.state)]);
    names("candidates", p.candidates);
    json_.key("filters").begin_array();
    for (const auto& step : p.filters) {
      json_.begin_object().member("plugin", step.plugin);
      names("survivors", step.survivors);
      json_.end_object();
    }
    json_.end_array().key("scorers").begin_array();
    for (const auto& step : p.scorers) {
      json_.begin_object().member("plugin", step.plugin).member("weight", step.weight);
      values("scores", p.scored, step.scores);
      json_.end_object();
    }
    json_.end_array();
    values("totals", p.scored, p.totals);
    json_.member("picker", p.picker);
    names("picked", p.picked);
    json_.end_object();
  }

  void profiles_not_run() {
    const auto& ran = report_.explanation.profiles;
    for (const std::string& name : report_.scheduler.profile_names())
      if (std::ranges::none_of(ran, [&](const auto& p) { return p.profile == name; }))
        json_.begin_object().member("name", name).member("state", kStateNames[0]).end_object();
  }

  void endpoint(std::string_view key, EndpointId id) {
    json_.key(key);
    if (!id.valid()) {
      json_.null();
      return;
    }
    const policies::EndpointInfo& info = report_.pool.table.info(id.value());
    json_.begin_object().member("name", info.pod_name).member("namespace", info.name_space);
    json_.member("address", info.address).member("port", info.port);
    json_.end_object();
  }

  void decision() {
    const policies::Decision& d = report_.decision;
    json_.key("decision").begin_object();
    json_.member("outcome", policies::kOutcomeNames[static_cast<std::size_t>(d.outcome)]);
    json_.member("http_status", d.http_status).member("reason", d.reason);
    endpoint("primary", d.primary);
    endpoint("prefill", d.prefill);
    names("targets", d.targets);
    names("encode_targets", d.encode_targets);
    if (d.destination_port >= 0) json_.member("destination_port", d.destination_port);
    headers("headers", d.headers);
    if (d.routed())
      headers("response_headers", report_.scheduler.response_headers(d, report_.pool.table));
    json_.end_object();
  }

  void headers(std::string_view key, const std::vector<std::pair<std::string, std::string>>& list) {
    json_.key(key).begin_object();
    for (const auto& [name, value] : list) json_.member(name, value);
    json_.end_object();
  }

  const ScoreReport& report_;
  JsonWriter json_;
};

}  // namespace

std::string render_score(const ScoreReport& report) { return Renderer(report).render(); }

}  // namespace routesim::tools
