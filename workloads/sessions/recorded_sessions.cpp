#include "workloads/sessions/recorded_sessions.h"

#include <iterator>
#include <utility>

#include "workloads/traces/text_scan.h"

namespace routesim::workloads {

void RecordReader::read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) {
  constexpr std::size_t kMostBytes = 1U << 30U;
  if (!lines) {
    (void)read_record(std::string(std::istreambuf_iterator<char>(in), {}), {file, 1, 0}, out);
    return;
  }
  LineReader reader(in, kMostBytes);
  std::string line;
  const auto where = [&] {
    return SourceLocation{file, static_cast<int>(reader.line_number()), 0};
  };
  for (std::int64_t taken = 0; taken < most_ && reader.next(line);) {
    const Result result = read_record(line, where(), out);
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

void RecordReader::add(ReplaySession session) {
  if (!session.calls.empty()) corpus_.sessions.push_back(std::move(session));
}

}  // namespace routesim::workloads
