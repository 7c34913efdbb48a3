// Targets that need no file: one reader each.
#include <cmath>
#include <memory>
#include <sstream>
#include <string>

#include "base/check.h"
#include "base/config_node.h"
#include "policies/config/make_scheduler.h"
#include "policies/kv_events/kv_event_ingest.h"
#include "policies/kv_events/kv_events.h"
#include "policies/scheduler.h"
#include "sim/scaling/autoscaler.h"
#include "tests/fleet/fake_fleet.h"
#include "tests/fuzz/targets.h"
#include "tests/policies/kv_encode.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scalers/autoscaler_yaml.h"
#include "tools/ingest/servers/vllm_serve_yaml.h"
#include "tools/ingest/traces/log_readers.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/ingest/tree/shell_words.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/traces/text_scan.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::fuzz {

std::string text_of(Bytes input) {
  return std::string(reinterpret_cast<const char*>(input.data()), input.size());
}

void print_all(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.items())
    ROUTESIM_CHECK(!to_string(d).empty(), "a diagnostic says nothing");
}

namespace {

void decide_once(const policies::EndpointPickerConfig& config) {
  Diagnostics diagnostics;
  const auto scheduler = policies::make_scheduler(config, {.seed = 1}, diagnostics);
  print_all(diagnostics);
  if (scheduler == nullptr) return;
  const SimTime now = SimTime::zero() + Duration::seconds(1);
  policies::EndpointTable pool;
  for (const char* address : {"10.0.0.1", "10.0.0.2", "10.0.0.3"}) {
    const auto id = pool.add({.address = address, .pod_name = address, .model = "m"});
    pool.set_metrics(id, 1, 4, 0.5, now);
  }
  const policies::RequestView request{.id = 1, .model = "m", .prompt_tokens = 40};
  scheduler->advance(now);
  const policies::Decision decision = scheduler->schedule(request, pool, now);
  if (!decision.routed()) return;
  ROUTESIM_CHECK(decision.primary.value() < 3, "the decision names an endpoint that is not there");
  scheduler->on_routed(request, decision, pool, now);
  scheduler->on_completed(1, now);
}

void read_conversations(workloads::ConversationReader& reader) {
  workloads::Conversation conversation;
  std::int64_t last = 0;
  while (reader.next(conversation)) {
    ROUTESIM_CHECK(conversation.record > last, "records are not in the order of the file");
    last = conversation.record;
    for (const workloads::Message& m : conversation.messages)
      ROUTESIM_CHECK(m.tokens >= 0, "a message has fewer than no tokens");
  }
  print_all(reader.diagnostics());
}

}  // namespace

void config(Bytes input) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr node = parse_config(text_of(input), {.file = "input"}, diagnostics);
  print_all(diagnostics);
  if (node == nullptr || diagnostics.has_errors()) return;
  const std::string once = tools::to_yaml(*node);
  if (once.size() > ConfigLimits{}.max_bytes) return;  // aliases written out are no file any more
  const ConfigNode::Ptr again = parse_config(once, {.file = "echo"}, diagnostics);
  ROUTESIM_CHECK(again != nullptr && !diagnostics.has_errors(), "what was written cannot be read");
  ROUTESIM_CHECK(tools::to_yaml(*again) == once, "what was written reads differently");
}

void endpoint_picker(Bytes input) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr node = parse_manifest(text_of(input), {.file = "input"}, diagnostics);
  if (node == nullptr || diagnostics.has_errors()) return;
  const auto loaded = tools::load_endpoint_picker(node, {}, diagnostics);
  print_all(diagnostics);
  ROUTESIM_CHECK(loaded.has_value() || diagnostics.has_errors(),
                 "nothing was loaded and nothing said");
  if (loaded && !diagnostics.has_errors()) decide_once(*loaded);
}

void vllm_serve(Bytes input) {
  const std::string text = text_of(input);
  Diagnostics found;
  tools::ShellVariables variables;
  for (const tools::ShellCommand& command :
       tools::split_shell(text, tools::places_in_file("input"), variables, "vllm_serve", found))
    ROUTESIM_CHECK(!command.empty(), "a command has no words");
  // As text the input is a command line; as a tree, flags or a manifest.
  Diagnostics ignored;
  const ConfigNode::Ptr tree = parse_manifest(text, {.file = "input"}, ignored);
  for (const ConfigNode::Ptr& serve :
       {ConfigNode::make_block(text, {.file = "input"}, 1, 0), tree}) {
    if (serve == nullptr) continue;
    const auto map_of = [](const char* key, const ConfigNode::Ptr& value) {
      return ConfigNode::make_map({{key, {}, value}}, {});
    };
    const ConfigNode::Ptr pools = ConfigNode::make_sequence({map_of("vllm_serve", serve)}, {});
    const ConfigNode::Ptr scenario = map_of("cluster", map_of("pools", pools));
    const ConfigNode::Ptr read = tools::without_vllm_serve(scenario, found);
    const ConfigNode& pool = *read->find("cluster")->value->find("pools")->value->items().at(0);
    ROUTESIM_CHECK(pool.find("vllm_serve") == nullptr, "the start is still there");
  }
  print_all(found);
}

void autoscaler(Bytes input) {
  Diagnostics found;
  const ConfigNode::Ptr root = parse_manifest(text_of(input), {.file = "input"}, found);
  if (root == nullptr) return print_all(found);
  for (const tools::ScalerObject& object : tools::scalers_in_tree(root, "autoscaler", found)) {
    Diagnostics own;
    const auto config = tools::read_autoscaler(*object.autoscaler, "autoscaler", own);
    print_all(own);
    ROUTESIM_CHECK(config.has_value() != own.has_errors(), "settings with errors, or none without");
    if (!config) continue;
    sim::FakeFleet fleet;
    fleet.spec = 3;
    sim::Autoscaler scaler(*config, SimTime::zero());
    for (int look = 0; look < 60; ++look) {
      fleet.follow();
      for (std::int64_t pod = sim::kPool; pod < fleet.spec; ++pod)
        for (std::size_t m = 0; m < sim::kFleetMetrics; ++m)
          fleet.values[{static_cast<sim::FleetMetric>(m), pod}] = look % 7;
      if (const auto replicas = scaler.look(scaler.next_look(), fleet)) {
        // Idle replicas and fallbacks of a paused pool are its own.
        ROUTESIM_CHECK(*replicas >= 0, "fewer replicas than none");
        fleet.spec = std::min(*replicas, 50);
      }
    }
  }
  print_all(found);
}

void json(Bytes input) {
  const std::string text = text_of(input);
  workloads::JsonScanner whole{std::string_view(text)};
  const bool skipped = whole.skip() && whole.at_end();
  std::istringstream stream(text);
  workloads::JsonScanner streamed(stream);
  ROUTESIM_CHECK((streamed.skip() && streamed.at_end()) == skipped, "text and stream disagree");
  ROUTESIM_CHECK(whole.error() == streamed.error(), "text and stream have different errors");
  read_conversations(
      *workloads::make_sharegpt_reader(std::make_unique<std::istringstream>(text), "input"));
  read_conversations(
      *workloads::make_prompt_reader(std::make_unique<std::istringstream>(text), "input"));
}

void measured(Bytes input) {
  Diagnostics diagnostics;
  const auto table = tools::parse_measured_csv(text_of(input), "input", diagnostics);
  print_all(diagnostics);
  ROUTESIM_CHECK(table.has_value() != diagnostics.has_errors(),
                 "a table with errors, or none without");
  if (!table) return;
  for (const tools::MeasuredRow& row : table->rows)
    ROUTESIM_CHECK(std::isfinite(row.value) && row.line > 1, "a row has no number or no place");
}

void trace(Bytes input) {
  const std::string text = text_of(input);
  constexpr int kFormats = static_cast<int>(EnumNames<workloads::TraceFormat>::value.size());
  for (int format = 0; format < kFormats; ++format) {
    workloads::TraceReadOptions options;
    options.format = static_cast<workloads::TraceFormat>(format);
    const auto reader =
        tools::make_any_trace_reader(std::make_unique<std::istringstream>(text), "input", options);
    workloads::TraceRecord record;
    std::int64_t line = 0;
    while (reader->next(record)) {
      ROUTESIM_CHECK(record.input_tokens >= 0 && record.output_tokens >= 0,
                     "a record has fewer than no tokens");
      // Logs are sorted by their times.
      ROUTESIM_CHECK(options.format >= workloads::TraceFormat::kLiteLlm || record.line > line,
                     "records are not in the order of the file");
      line = record.line;
    }
    print_all(reader->diagnostics());
  }
}

void kv_events(Bytes input) {
  policies::KvEvent event;
  (void)policies::decode_kv_event(input, event);
  std::uint64_t hash = 0;
  (void)policies::decode_kv_hash(input, hash);
  (void)policies::parse_kv_sequence(input);
  policies::KvEventBatch batch;
  if (!policies::decode_kv_batch(input, batch).empty()) return;
  for (const auto encoding : {policies::KvEncoding::kArray, policies::KvEncoding::kMap}) {
    policies::KvEventBatch again;
    const std::vector<std::uint8_t> bytes = policies::encode_kv_batch(batch, encoding);
    ROUTESIM_CHECK(policies::decode_kv_batch(bytes, again).empty(),
                   "what was encoded cannot be decoded");
    // Compared as bytes: a time stamp may be NaN.
    ROUTESIM_CHECK(policies::encode_kv_batch(again, encoding) == bytes,
                   "what was encoded decodes differently");
  }
}

}  // namespace routesim::fuzz
