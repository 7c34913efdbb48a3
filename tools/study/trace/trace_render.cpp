#include <fmt/format.h>

#include "base/key_fate.h"
#include "base/text.h"
#include "tools/results/json_writer.h"
#include "tools/results/text_table.h"
#include "tools/study/trace/trace_study.h"

namespace routesim::tools {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return fixed_text(100 * share(part, whole), 1);
}

std::string lengths_text(const TraceStudy& s) {
  TextTable table;
  table.add_row({"tokens", "mean", "p50", "p90", "p99", "max", "sum"});
  const auto row = [&](const std::string& name, const LengthSummary& l, std::int64_t sum) {
    table.add_row({name, fixed_text(l.mean, 1), std::to_string(l.p50), std::to_string(l.p90),
                   std::to_string(l.p99), std::to_string(l.max), std::to_string(sum)});
  };
  row("prompt", s.prompt, s.prompt_tokens);
  row("answer", s.output, s.output_tokens);
  return table.str();
}

std::string caches_text(const TraceStudy& s) {
  TextTable table(0);
  table.add_row({"cache, tokens", "hits, %", "of the ideal, %"});
  std::int64_t before = -1;
  for (const CachePoint& point : s.caches) {
    // Sizes that add nothing are left out, but for the last.
    if (point.hit_tokens == before && &point != &s.caches.back()) continue;
    before = point.hit_tokens;
    table.add_row({std::to_string(point.cache_tokens), percent(point.hit_tokens, s.prompt_tokens),
                   percent(point.hit_tokens, s.hit_tokens)});
  }
  return table.str();
}

std::string prefixes_text(const TraceStudy& s) {
  TextTable table(0);
  table.add_row({"shared prefix, tokens", "requests", "of all requests, %", "first request"});
  for (const SharedPrefix& p : s.prefixes)
    table.add_row({std::to_string(p.tokens), std::to_string(p.requests),
                   percent(p.requests, s.requests), std::to_string(p.first_request)});
  return table.str();
}

std::string unused_text(const std::vector<KeyUse>& keys) {
  std::string text;
  for (const KeyUse& key : keys) {
    if (!text.empty()) text += ", ";
    // Names of attributes have dots; the path of a trace file's keys begins with `trace.`.
    constexpr std::string_view kTrace = "trace.";
    text += printable(
        key.path.substr(key.path.starts_with(kTrace) ? kTrace.size() : key.path.rfind('.') + 1));
  }
  return text;
}

}  // namespace

std::string render_trace_text(const TraceStudy& s, const std::string& what,
                              const std::vector<KeyUse>& keys) {
  std::string out = printable(what, 200) + "\n\n";
  out += fmt::format("{} requests in {} s: {} requests/s, ", s.requests, fixed_text(s.span_s, 1),
                     fixed_text(s.mean_rate, 3));
  if (s.span_s >= 60)
    out += fmt::format("{} in the busiest minute, ", fixed_text(s.peak_minute, 3));
  out += fmt::format("{} in the busiest second\n", fixed_text(s.peak_second, 0));
  if (s.sessions > 0)
    out += fmt::format("{} sessions of {} requests on average, {} at most\n", s.sessions,
                       fixed_text(share(s.session_requests, s.sessions), 1), s.longest_session);
  out += fmt::format("\n{}\n", lengths_text(s));
  out += fmt::format(
      "{} % of the prompt tokens repeat an earlier prompt or answer from its start ({} % an "
      "answer):\n"
      "the ideal hits of one server that forgets nothing, in blocks of {} tokens.\n",
      percent(s.hit_tokens, s.prompt_tokens), percent(s.answer_hit_tokens, s.prompt_tokens),
      s.block_size);
  out += fmt::format("All blocks together are {} tokens.\n", s.held_tokens);
  if (s.hit_tokens > 0) {
    out += fmt::format(
        "An LRU cache needs {} tokens for half of the ideal hits, {} for 90 % and {} "
        "for 99 %.\n",
        s.half, s.most, s.nearly_all);
    out += fmt::format("\n{}", caches_text(s));
    out += fmt::format("\n{} requests begin like another one, in {} families\n", s.family_requests,
                       s.families);
    out += prefixes_text(s);
  }
  if (!keys.empty()) out += fmt::format("\nnot used: {}\n", unused_text(keys));
  return out;
}

namespace {

void write_lengths(JsonWriter& json, std::string_view name, const LengthSummary& l,
                   std::int64_t sum) {
  json.key(name).begin_object();
  json.member("mean", l.mean).member("p50", l.p50).member("p90", l.p90).member("p99", l.p99);
  json.member("max", l.max).member("sum", sum).end_object();
}

void write_prefixes(JsonWriter& json, const TraceStudy& s) {
  json.key("caches").begin_array();
  for (const CachePoint& point : s.caches)
    json.begin_object()
        .member("cache_tokens", point.cache_tokens)
        .member("hit_ratio", share(point.hit_tokens, s.prompt_tokens))
        .end_object();
  json.end_array();
  json.key("cache_tokens_for").begin_object();
  json.member("50%", s.half).member("90%", s.most).member("99%", s.nearly_all).end_object();
  json.member("families", s.families).member("family_requests", s.family_requests);
  json.key("prefixes").begin_array();
  for (const SharedPrefix& p : s.prefixes)
    json.begin_object()
        .member("tokens", p.tokens)
        .member("requests", p.requests)
        .member("first_request", p.first_request)
        .end_object();
  json.end_array();
}

}  // namespace

std::string render_trace_json(const TraceStudy& s, const std::string& what,
                              const std::vector<KeyUse>& keys) {
  JsonWriter json;
  json.begin_object().member("load", what).member("block_size", s.block_size);
  json.member("requests", s.requests).member("span_s", s.span_s).member("mean_rate", s.mean_rate);
  json.member("peak_minute_rate", s.peak_minute).member("peak_second_rate", s.peak_second);
  write_lengths(json, "prompt_tokens", s.prompt, s.prompt_tokens);
  write_lengths(json, "output_tokens", s.output, s.output_tokens);
  json.key("sessions").begin_object();
  json.member("count", s.sessions).member("requests", s.session_requests);
  json.member("longest", s.longest_session).end_object();
  json.member("ideal_hit_ratio", share(s.hit_tokens, s.prompt_tokens));
  json.member("ideal_answer_hit_ratio", share(s.answer_hit_tokens, s.prompt_tokens));
  json.member("all_blocks_tokens", s.held_tokens);
  write_prefixes(json, s);
  json.key("not_used").begin_array();
  for (const KeyUse& key : keys)
    json.begin_object()
        .member("key", key.path)
        .member("file", key.where.file)
        .member("line", key.where.line)
        .member("column", key.where.column)
        .member("why", key.why)
        .end_object();
  return json.end_array().end_object().str() + "\n";
}

}  // namespace routesim::tools
