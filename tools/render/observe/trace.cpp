#include "tools/render/observe/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/replica.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kFlushBytes = 1 << 18;

/// One field: its text, and whether it is text in JSON. Absent fields have no value.
struct Field {
  std::string text{};
  bool quoted = false;
  bool present = true;
};

Field none() { return {.present = false}; }
Field text(const std::string& s) { return {.text = s, .quoted = true}; }
Field number(std::int64_t n) { return {.text = std::to_string(n)}; }
/// Seconds, exactly.
Field instant(SimTime t) {
  std::string digits = std::to_string(t.ns() % 1'000'000'000);
  digits.insert(0, 9 - digits.size(), '0');
  digits.erase(digits.find_last_not_of('0') + 1);
  return {.text = std::to_string(t.ns() / 1'000'000'000) + (digits.empty() ? "" : "." + digits)};
}
Field endpoint(const std::vector<std::string>& names, std::int32_t e) {
  return e < 0 ? none() : text(names[static_cast<std::size_t>(e)]);
}

std::string_view outcome_name(workloads::Outcome outcome) {
  switch (outcome) {
    case workloads::Outcome::kSuccess:
      return "success";
    case workloads::Outcome::kTimeout:
      return "timeout";
    case workloads::Outcome::kError:
      break;
  }
  return "error";
}

void append_csv(const std::vector<Field>& fields, std::string& out) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += ',';
    if (fields[i].present) out += fields[i].quoted ? csv_field(fields[i].text) : fields[i].text;
  }
  out += '\n';
}

/// The columns, in order; tools/README.md says what each means. CSV leaves a field empty that does
/// not apply, JSON lines leave the key out.
const std::vector<std::string>& record_columns() {
  static const std::vector<std::string> kColumns = {"variant",
                                                    "id",
                                                    "stage",
                                                    "endpoint",
                                                    "prefill_endpoint",
                                                    "due_s",
                                                    "sent_s",
                                                    "first_token_s",
                                                    "end_s",
                                                    "prompt_tokens",
                                                    "cached_tokens",
                                                    "predicted_hit_tokens",
                                                    "output_tokens",
                                                    "preemptions",
                                                    "outcome",
                                                    "failure",
                                                    "adapter",
                                                    "class"};
  return kColumns;
}

void append_json(const std::vector<Field>& fields, std::string& out) {
  JsonWriter json(0);
  json.begin_object();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].present) continue;
    json.key(record_columns()[i]);
    if (fields[i].quoted) {
      json.value(fields[i].text);
    } else {
      json.raw(fields[i].text);
    }
  }
  out += json.end_object().str() + "\n";
}

}  // namespace

std::optional<RecordFormat> record_format(const std::string& path) {
  if (path.ends_with(".csv")) return RecordFormat::kCsv;
  if (path.ends_with(".jsonl")) return RecordFormat::kJsonLines;
  return std::nullopt;
}

RecordWriter::RecordWriter(OutputFile& file, RecordFormat format) : file_(file), format_(format) {
  if (format == RecordFormat::kJsonLines) return;
  for (const std::string& column : record_columns())
    buffer_ += (buffer_.empty() ? "" : ",") + column;
  buffer_ += '\n';
}

void RecordWriter::on_start(const sim::RunView& view) {
  endpoints_.clear();
  stages_.clear();
  for (const sim::EndpointHome& home : view.endpoints) endpoints_.push_back(home.name);
  for (const workloads::StageInfo& stage : view.stages) stages_.push_back(stage.name);
  adapters_ = view.plan.adapters;
  classes_.clear();
  for (const workloads::TrafficClass& c : view.plan.scenario.workload.classes)
    classes_.push_back(c.name);
}

void RecordWriter::on_done(const sim::RequestRecord& r) {
  const bool success = r.outcome == workloads::Outcome::kSuccess;
  const bool answered = success || r.first_token > r.sent;
  const std::vector<Field> fields = {
      text(variant_),
      number(r.id),
      text(stages_[static_cast<std::size_t>(r.stage)]),
      endpoint(endpoints_, r.endpoint),
      endpoint(endpoints_, r.prefill_endpoint),
      instant(r.due),
      instant(r.sent),
      answered ? instant(r.first_token) : none(),
      instant(r.end),
      number(r.prompt_tokens),
      success ? number(r.cached_tokens) : none(),
      r.predicted_hit_tokens >= 0 ? number(r.predicted_hit_tokens) : none(),
      success ? number(r.output_tokens) : none(),
      number(r.preemptions),
      text(std::string(outcome_name(r.outcome))),
      success ? none() : text(r.failure),
      r.adapter > 0 ? text(adapters_[r.adapter - 1]) : none(),
      classes_.empty() ? none() : text(classes_[r.traffic_class])};
  if (format_ == RecordFormat::kCsv) {
    append_csv(fields, buffer_);
  } else {
    append_json(fields, buffer_);
  }
  if (buffer_.size() >= kFlushBytes) flush();
}

void RecordWriter::mark_partial() {
  if (format_ == RecordFormat::kCsv) {
    buffer_ += kPartialLine;
  } else {
    buffer_ += "{\"interrupted\":true}\n";
  }
  flush();
}

void RecordWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

namespace {

constexpr Duration kCounterInterval = Duration::milliseconds(20);

/// Nanoseconds as microseconds with three decimals.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string member(const char* key, std::int64_t value) {
  return fmt::format("\"{}\":{}", key, value);
}

bool only_decodes(const models::BatchShape& s) {
  return s.prefill_requests == 0 && s.decode_requests > 0;
}

/// The slice may take in the step: both decode the same sequences, without a pause between.
bool continues(const sim::StepSpan& slice, const sim::StepSpan& step) {
  return slice.end == step.begin && only_decodes(slice.shape) && only_decodes(step.shape) &&
         slice.shape.decode_requests == step.shape.decode_requests;
}

std::string slice_name(const models::BatchShape& s) {
  std::string name;
  if (s.prefill_requests > 0) name = "prefill " + std::to_string(s.prefill_tokens);
  if (s.decode_requests > 0)
    name += (name.empty() ? "" : " + ") + ("decode " + std::to_string(s.decode_requests));
  return name.empty() ? "dummy" : name;
}

}  // namespace

bool TraceRecorder::room() {
  if (events_ < max_events_) return true;
  ++dropped_;
  return false;
}

void TraceRecorder::add(const std::string& event) {
  text_ += (text_.empty() ? "\n" : ",\n") + event;
  ++events_;
}

// Names are few and come first, so they do not count against the limit.
void TraceRecorder::name_process(std::uint32_t pid, const std::string& name) {
  text_ += (text_.empty() ? "\n" : ",\n");
  text_ += "{\"ph\":\"M\",\"name\":\"process_name\"," + member("pid", pid) +
           ",\"args\":{\"name\":" + json_string(name) + "}}";
}

void TraceRecorder::name_thread(std::uint32_t pid, int tid, const std::string& name) {
  text_ += ",\n{\"ph\":\"M\",\"name\":\"thread_name\"," + member("pid", pid) + "," +
           member("tid", tid) + ",\"args\":{\"name\":" + json_string(name) + "}}";
}

void TraceRecorder::begin_variant(const std::string& name) { variant_ = name; }

void TraceRecorder::on_start(const sim::RunView& view) {
  view_ = &view;
  first_pid_ = next_pid_;
  next_pid_ += static_cast<std::uint32_t>(view.replicas.size());
  first_thread_.clear();
  std::size_t threads = 0;
  for (const auto& replica : view.replicas) {
    first_thread_.push_back(threads);
    threads += static_cast<std::size_t>(replica->ranks() * replica->stages());
  }
  open_.assign(threads, {});
  for (sim::StepSpan& slice : open_) slice.steps = 0;
  counters_.assign(view.endpoints.size(), {});
  lanes_.assign(view.endpoints.size(), {});
  ways_.clear();
  next_tick_ = SimTime::zero();
  for (const sim::EndpointHome& home : view.endpoints) {
    const std::uint32_t pid = first_pid_ + home.replica;
    const bool several = view.replicas[home.replica]->ranks() > 1;
    const std::string server = several ? home.name.substr(0, home.name.rfind("-rank-")) : home.name;
    if (home.rank == 0) name_process(pid, variant_.empty() ? server : variant_ + ": " + server);
    // Stages overlap only where there is one rank.
    const int stages = view.replicas[home.replica]->stages();
    for (int s = 0; s < stages; ++s)
      name_thread(pid, home.rank + s + 1,
                  (stages > 1 ? "stage " + std::to_string(s) + " of " : "steps of ") + home.name);
  }
}

void TraceRecorder::on_routed(const workloads::Request& request, const sim::Route& route,
                              SimTime now) {
  Way& way = ways_[request.id.value()];
  way.routed = now;
  way.in_prefill = route.prefill.has_value();
}

void TraceRecorder::on_delivered(const workloads::Request& request, EndpointId, SimTime now) {
  const auto it = ways_.find(request.id.value());
  if (it == ways_.end()) return;
  (it->second.in_prefill ? it->second.prefill_delivered : it->second.delivered) = now;
}

void TraceRecorder::on_prefilled(const workloads::Request& request, SimTime now) {
  const auto it = ways_.find(request.id.value());
  if (it == ways_.end()) return;
  it->second.prefilled = now;
  it->second.in_prefill = false;
}

void TraceRecorder::on_step(const sim::StepSpan& span) {
  const std::size_t thread =
      first_thread_[span.replica] + static_cast<std::size_t>(span.rank + span.stage);
  sim::StepSpan& slice = open_[thread];
  if (slice.steps > 0 && continues(slice, span)) {
    slice.end = span.end;
    slice.steps += span.steps;
    slice.shape = span.shape;
    return;
  }
  flush_step(thread);
  slice = span;
}

void TraceRecorder::flush_step(std::size_t thread) {
  sim::StepSpan& s = open_[thread];
  if (s.steps > 0 && room()) {
    const models::BatchShape& b = s.shape;
    add("{\"ph\":\"X\",\"name\":" + json_string(slice_name(b)) + "," +
        member("pid", first_pid_ + s.replica) + "," + member("tid", s.rank + s.stage + 1) +
        ",\"ts\":" + microseconds(s.begin.ns()) +
        ",\"dur\":" + microseconds((s.end - s.begin).ns()) + ",\"args\":{" +
        member("steps", s.steps) + "," + member("decode_requests", b.decode_requests) + "," +
        member("decode_context", b.decode_context) + "," +
        member("prefill_requests", b.prefill_requests) + "," +
        member("prefill_tokens", b.prefill_tokens) + "}}");
  }
  s.steps = 0;
}

// Spans come in the order of their ends: a lane whose last copy ended before this one began is
// free.
int TraceRecorder::lane(std::uint32_t endpoint, std::size_t kind, SimTime begin, SimTime end) {
  constexpr std::array<std::string_view, 4> kTitles = {"loads of ", "stores of ", "pulls of ",
                                                       "pulls from "};
  constexpr int kRanks = 1024, kLanes = 64;
  std::vector<SimTime>& ends = lanes_[endpoint][kind];
  const auto free = std::ranges::find_if(ends, [&](SimTime t) { return t <= begin; });
  const auto number = static_cast<int>(free - ends.begin());
  const sim::EndpointHome& home = view_->endpoints[endpoint];
  const int tid = kRanks + (home.rank * 4 + static_cast<int>(kind)) * kLanes + number % kLanes;
  if (free == ends.end()) {
    ends.push_back(end);
    name_thread(first_pid_ + home.replica, tid, std::string(kTitles[kind]) + home.name);
  } else {
    *free = end;
  }
  return tid;
}

void TraceRecorder::copy_slice(const sim::CopySpan& span, std::uint32_t endpoint, int tid,
                               const std::string& name) {
  add("{\"ph\":\"X\",\"name\":" + json_string(name) + "," +
      member("pid", first_pid_ + view_->endpoints[endpoint].replica) + "," + member("tid", tid) +
      ",\"ts\":" + microseconds(span.begin.ns()) +
      ",\"dur\":" + microseconds((span.end - span.begin).ns()) + ",\"args\":{" +
      member("bytes", static_cast<std::int64_t>(span.bytes)) + "}}");
}

void TraceRecorder::on_copy(const sim::CopySpan& span) {
  if (!room()) return;
  if (span.kind != sim::CopySpan::Kind::kPull) {
    const bool load =
        span.kind == sim::CopySpan::Kind::kToGpus || span.kind == sim::CopySpan::Kind::kFromDisk;
    const bool disk =
        span.kind == sim::CopySpan::Kind::kToDisk || span.kind == sim::CopySpan::Kind::kFromDisk;
    copy_slice(span, span.endpoint, lane(span.endpoint, load ? 0 : 1, span.begin, span.end),
               disk ? (load ? "read files" : "write files") : (load ? "load" : "store"));
    return;
  }
  const auto name = [this](std::uint32_t e) { return view_->endpoints[e].name; };
  const int to = lane(span.endpoint, 2, span.begin, span.end);
  const int from = lane(span.source, 3, span.begin, span.end);
  copy_slice(span, span.source, from, "to " + name(span.endpoint));
  copy_slice(span, span.endpoint, to, "from " + name(span.source));
  // An arrow from the source's slice to the target's.
  ++flows_;
  const auto arrow = [&](const char* phase, std::uint32_t e, int tid, SimTime at) {
    add(fmt::format("{{{},\"cat\":\"pull\",\"name\":\"pull\",{},{},{},\"ts\":{}}}", phase,
                    member("id", flows_), member("pid", first_pid_ + view_->endpoints[e].replica),
                    member("tid", tid), microseconds(at.ns())));
  };
  arrow("\"ph\":\"s\"", span.source, from, span.begin);
  arrow("\"ph\":\"f\",\"bp\":\"e\"", span.endpoint, to,
        std::max(span.begin, span.end - Duration::nanoseconds(1)));
}

void TraceRecorder::phase(std::uint32_t pid, std::int64_t id, const char* name, SimTime begin,
                          SimTime end, const std::string& args) {
  const std::string head = "\"cat\":\"request\",\"name\":\"" + std::string(name) + "\",\"id\":\"" +
                           std::to_string(id) + "\"," + member("pid", pid) + ",\"tid\":0,\"ts\":";
  add("{\"ph\":\"b\"," + head + microseconds(begin.ns()) +
      (args.empty() ? std::string() : ",\"args\":{" + args + "}") + "}");
  add("{\"ph\":\"e\"," + head + microseconds(end.ns()) + "}");
}

// A request is written when it ends: then all its instants are known, and it takes its place whole
// or not at all.
void TraceRecorder::on_done(const sim::RequestRecord& r) {
  const auto it = ways_.find(r.id);
  const Way way = it != ways_.end() ? it->second : Way{};
  if (it != ways_.end()) ways_.erase(it);
  if (r.endpoint < 0 || !room()) return;
  const std::uint32_t pid =
      first_pid_ + view_->endpoints[static_cast<std::size_t>(r.endpoint)].replica;
  phase(pid, r.id, "request", r.sent, r.end,
        member("prompt_tokens", r.prompt_tokens) + "," + member("cached_tokens", r.cached_tokens) +
            "," + member("output_tokens", r.output_tokens) + "," +
            member("preemptions", r.preemptions));
  phase(pid, r.id, "to router", r.sent, way.routed);
  if (r.outcome != workloads::Outcome::kSuccess) return;
  if (r.prefill_endpoint >= 0) {
    phase(pid, r.id, "API server of the prefill server", way.routed, way.prefill_delivered);
    phase(pid, r.id, "prefill server", way.prefill_delivered, way.prefilled);
  }
  phase(pid, r.id, "API server", r.prefill_endpoint >= 0 ? way.prefilled : way.routed,
        way.delivered);
  phase(pid, r.id, "queue and prefill", way.delivered, r.first_token);
  phase(pid, r.id, "answer", r.first_token, r.end);
}

void TraceRecorder::counter(std::uint32_t pid, const std::string& name, std::int64_t value,
                            SimTime now) {
  if (!room()) return;
  add("{\"ph\":\"C\",\"name\":" + json_string(name) + "," + member("pid", pid) +
      ",\"ts\":" + microseconds(now.ns()) + ",\"args\":{" + member("value", value) + "}}");
}

void TraceRecorder::on_tick(SimTime now) {
  for (std::size_t e = 0; e < view_->endpoints.size(); ++e) {
    const sim::EndpointHome& home = view_->endpoints[e];
    const sim::Replica& replica = *view_->replicas[home.replica];
    const sim::BatchScheduler& s = replica.scheduler(home.rank);
    const std::uint32_t pid = first_pid_ + home.replica;
    const std::string rank = replica.ranks() > 1 ? " rank " + std::to_string(home.rank) : "";
    Counters& last = counters_[e];
    const auto show = [&](const char* name, std::int64_t& shown, std::int64_t value) {
      if (shown == value) return;
      shown = value;
      counter(pid, name + rank, value, now);
    };
    show("waiting", last.waiting, s.waiting());
    show("running", last.running, s.running());
    show("KV blocks used", last.used_blocks, s.kv().used_blocks());
  }
  // Nobody needs counters that would be left out.
  next_tick_ = events_ < max_events_ ? now + kCounterInterval : SimTime::max();
}

void TraceRecorder::on_end(SimTime) {
  for (std::size_t thread = 0; thread < open_.size(); ++thread) flush_step(thread);
}

std::string TraceRecorder::json(bool interrupted) const {
  std::string note = dropped_ == 0 ? "complete"
                                   : "capped: slices, requests and counters after the limit of "
                                     "events are missing";
  if (interrupted) note = "interrupted: the trace is partial";
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
  if (interrupted) out += "\"interrupted\":true,";
  out +=
      member("max_events", max_events_) + "," + member("dropped_events", dropped_) + ",\"note\":";
  out += json_string(note);
  return out + "},\"traceEvents\":[" + text_ + "\n]}\n";
}

}  // namespace routesim::tools
