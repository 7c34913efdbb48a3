// E: the list of endpoints.
#include <set>

#include "base/diagnostic.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

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

}  // namespace routesim::tools
