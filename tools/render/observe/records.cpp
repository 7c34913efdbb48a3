#include "tools/render/observe/records.h"

#include "sim/plan/resolve.h"
#include "sim/router/router.h"
#include "tools/render/render.h"

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

}  // namespace routesim::tools
