#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "workloads/sessions/replay_graph.h"
#include "workloads/sessions/weka_trace.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000;
constexpr double kMostSeconds = 1e9;

/// Reads the members of one trace. Every function returns whether the scanner is still good.
class TraceScan {
 public:
  TraceScan(JsonScanner& json, WekaTrace& trace) : json_(json), trace_(trace) {}

  bool read() {
    bool requests = false, block_size = false;
    if (!json_.begin_object()) return false;
    std::string key;
    while (json_.next_member(key)) {
      if (key == "id") {
        if (!json_.read_string(trace_.id)) return false;
      } else if (key == "block_size") {
        block_size = true;
        if (!read_count(trace_.block_size, 1'000'000, "block_size")) return false;
      } else if (key == "tool_tokens" || key == "system_tokens") {
        if (!read_prefix(key, trace_.tool_tokens, trace_.system_tokens)) return false;
      } else if (key == "requests") {
        requests = true;
        if (!read_requests()) return false;
      } else if (!json_.skip()) {
        return false;
      }
    }
    if (!json_.ok()) return false;
    if (trace_.id.empty()) return json_.fail("a trace without `id`");
    if (!block_size) return json_.fail("a trace without `block_size`");
    if (!requests) return json_.fail("a trace without `requests`");
    return true;
  }

 private:
  /// What one entry of `requests` may say; which of it counts is told by its type.
  struct Entry {
    std::string type;
    WekaRequest request;
    WekaSubagent agent;
    bool t = false, in = false, out = false, id = false;
  };

  bool read_count(std::int64_t& out, std::int64_t most, const std::string& what) {
    if (!json_.read_integer(out)) return false;
    if (out >= 0 && out <= most) return true;
    return json_.fail(what + " must be from 0 to " + std::to_string(most) + " (got " +
                      std::to_string(out) + ")");
  }

  bool read_seconds(double& out, double least, const std::string& what) {
    if (json_.peek() == JsonScanner::Kind::kNull) return json_.skip();
    if (!json_.read_real(out)) return false;
    if (out >= least && out <= kMostSeconds) return true;
    return json_.fail(what + " must be at most 10^9 seconds" +
                      (least < 0 ? "" : " and not negative"));
  }

  bool read_prefix(const std::string& key, std::int64_t& tool, std::int64_t& system) {
    return read_count(key == "tool_tokens" ? tool : system, kMostTokens, key);
  }

  bool read_hashes(std::vector<std::int64_t>& out) {
    if (!json_.begin_array()) return false;
    while (json_.next_element()) {
      std::int64_t hash = 0;
      if (!json_.read_integer(hash)) return false;
      out.push_back(hash);
    }
    return json_.ok();
  }

  bool read_member(const std::string& key, Entry& e, bool nested) {
    if (key == "type") return json_.read_string(e.type);
    if (key == "t") return e.t = read_seconds(e.request.t, -kMostSeconds, key);
    if (key == "in") return e.in = read_count(e.request.input, kMostTokens, key);
    if (key == "out") return e.out = read_count(e.request.output, kMostTokens, key);
    if (key == "api_time") return read_seconds(e.request.api_time, 0, key);
    if (key == "hash_ids") return read_hashes(e.request.hash_ids);
    if (nested) return json_.skip();
    if (key == "agent_id") return e.id = json_.read_string(e.agent.agent_id);
    if (key == "tool_tokens" || key == "system_tokens")
      return read_prefix(key, e.agent.tool_tokens, e.agent.system_tokens);
    if (key != "requests") return json_.skip();
    if (!json_.begin_array()) return false;
    while (json_.next_element()) {
      Entry inner;
      if (!read_entry(inner, true)) return false;
      e.agent.requests.push_back(std::move(inner.request));
    }
    return json_.ok();
  }

  bool read_entry(Entry& e, bool nested) {
    if (!json_.begin_object()) return false;
    std::string key;
    while (json_.next_member(key))
      if (!read_member(key, e, nested)) return false;
    if (!json_.ok()) return false;
    const bool request = e.type == "n" || e.type == "s";
    if (!request && (nested || e.type != "subagent"))
      return json_.fail(nested ? "a request of a sub-agent whose type is not n or s"
                               : "a request whose type is not n, s or subagent");
    if (!e.t) return json_.fail("a request without `t`");
    if (request && (!e.in || !e.out)) return json_.fail("a request without `in` or `out`");
    if (!request && !e.id) return json_.fail("a sub-agent without `agent_id`");
    return true;
  }

  bool read_requests() {
    if (!json_.begin_array()) return false;
    while (json_.next_element()) {
      Entry e;
      if (!read_entry(e, false)) return false;
      if (e.type == "subagent") {
        e.agent.t = e.request.t;
        trace_.subagents.push_back(std::move(e.agent));
      } else {
        trace_.requests.push_back(std::move(e.request));
      }
    }
    return json_.ok();
  }

  JsonScanner& json_;
  WekaTrace& trace_;
};

/// Why the session's graph cannot be built; empty when it can.
std::string too_large(const WekaTrace& trace) {
  std::size_t calls = trace.requests.size(), messages = calls * calls * 2;
  for (const WekaSubagent& agent : trace.subagents) {
    calls += agent.requests.size();
    messages += agent.requests.size() * agent.requests.size() * 2;
  }
  if (calls <= kMostCalls && messages <= kMostMessages) return {};
  return "has " + std::to_string(calls) + " requests, too many for one session";
}

class WekaReader final : public ReplayReader {
 public:
  explicit WekaReader(const WekaTraceReplay& settings) : settings_(settings) {}

  void read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) override {
    JsonScanner json(in);
    std::int64_t taken = 0;
    while (!json.at_end() && json.ok()) {
      if (lines && taken == settings_.num_dataset_entries) return;
      const int line = static_cast<int>(json.line());
      WekaTrace trace;
      if (TraceScan(json, trace).read()) {
        taken += take_trace(trace, {file, line, 0}, out) ? 1 : 0;
        continue;
      }
      complain({file, static_cast<int>(json.line()), json.column()}, json.error(), out);
      if (!lines || !settings_.skip_invalid_files) return;
      json.next_line();
    }
  }
  ReplayCorpus take() override { return std::move(corpus_); }

 private:
  void complain(const SourceLocation& where, const std::string& what, Diagnostics& out) const {
    if (settings_.skip_invalid_files)
      out.warning(where, {}, what + ": left out");
    else
      out.error(where, {}, what);
  }

  bool take_trace(const WekaTrace& trace, const SourceLocation& where, Diagnostics& out) {
    if (!ids_.insert(trace.id).second) {
      out.error(where, {}, "a second trace with the id " + trace.id,
                "each trace is one session, and is read once");
      return false;
    }
    if (const std::string what = too_large(trace); !what.empty()) {
      complain(where, what, out);
      return false;
    }
    ReplaySession session = weka_session(trace, settings_);
    if (!session.calls.empty()) corpus_.sessions.push_back(std::move(session));
    return true;
  }

  WekaTraceReplay settings_;
  std::set<std::string> ids_;
  ReplayCorpus corpus_;
};

}  // namespace

std::unique_ptr<ReplayReader> make_weka_reader(const WekaTraceReplay& settings) {
  return std::make_unique<WekaReader>(settings);
}

}  // namespace routesim::workloads
