// R: the request to be scored.
#include <charconv>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

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

}  // namespace routesim::tools
