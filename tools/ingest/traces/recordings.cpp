#include "tools/ingest/traces/recordings.h"

#include <iterator>
#include <utility>

#include "workloads/inference_perf/inference_perf.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {

void RecordReader::read(std::istream& in, const std::string& file, bool lines, const Take& take,
                        Diagnostics& out) {
  constexpr std::size_t kMostBytes = 1U << 30U;
  const auto read_one = [&](std::string_view text, const SourceLocation& where) {
    workloads::Recording recording;
    const Result result = read_record(text, where, recording, out);
    take(std::move(recording));
    return result;
  };
  if (!lines) {
    (void)read_one(std::string(std::istreambuf_iterator<char>(in), {}), {file, 1, 0});
    return;
  }
  workloads::LineReader reader(in, kMostBytes);
  std::string line;
  const auto where = [&] {
    return SourceLocation{file, static_cast<int>(reader.line_number()), 0};
  };
  for (std::int64_t taken = 0; taken < most_ && reader.next(line);) {
    const Result result = read_one(line, where());
    if (result == Result::kBroken && !skip_invalid_) return;
    taken += result == Result::kTaken ? 1 : 0;
  }
  if (reader.too_long()) complain(where(), "the line is longer than 1 GiB", {}, out);
}

void RecordReader::complain(const SourceLocation& where, const std::string& what,
                            const std::string& hint, Diagnostics& out) const {
  if (skip_invalid_)
    out.warning(where, {}, what + ": left out", hint);
  else
    out.error(where, {}, what, hint);
}

SessionFiles::SessionFiles(const workloads::OtelTraceReplay& settings)
    : maker_({.max_wait_ms = settings.max_wait_ms,
              .repeats_answers = settings.disable_output_substitution,
              .tool_calls_may_be_long = settings.override_tool_call_max_tokens}),
      reader_(make_otel_reader({.skip_invalid = settings.skip_invalid_files,
                                .include_errors = settings.include_errors})) {}

SessionFiles::SessionFiles(const workloads::WekaTraceReplay& settings)
    : maker_({.max_wait_ms = settings.max_wait_ms}),
      reader_(make_weka_reader({.skip_invalid = settings.skip_invalid_files,
                                .most_records = settings.num_dataset_entries,
                                .default_block_size = settings.default_block_size,
                                .idle_gap_cap_s = settings.trace_idle_gap_cap_seconds})) {}

void SessionFiles::read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) {
  const auto take = [this](workloads::Recording recording) { maker_.add(std::move(recording)); };
  reader_->read(in, file, lines, take, out);
}

std::unique_ptr<SessionFiles> session_files(const workloads::Load& load) {
  using workloads::inference_perf::DataType;
  const auto* tool = load.get<workloads::inference_perf::Workload>();
  if (tool == nullptr || !tool->config) return nullptr;
  const workloads::inference_perf::Data& data = tool->config->data;
  if (data.type == DataType::kOtelTraceReplay && data.otel_trace_replay)
    return std::make_unique<SessionFiles>(*data.otel_trace_replay);
  if (data.type == DataType::kWekaTraceReplay && data.weka_trace_replay)
    return std::make_unique<SessionFiles>(*data.weka_trace_replay);
  return nullptr;
}

}  // namespace routesim::tools
