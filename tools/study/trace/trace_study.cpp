#include "tools/study/trace/trace_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/key_fate.h"
#include "base/text.h"
#include "sim/kv/prompt_keys.h"
#include "tools/results/described_json.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "workloads/prompts.h"

namespace routesim::tools {
namespace {

constexpr std::uint32_t kNobody = ~0U;
constexpr std::size_t kFewest = 1024;

}  // namespace

void LruStack::add(std::size_t position, std::int32_t change) {
  for (; position < sums_.size(); position += position & (~position + 1)) sums_[position] += change;
}

/// Owned positions below `position`.
std::int64_t LruStack::before(std::size_t position) const {
  std::int64_t sum = 0;
  for (--position; position > 0; position -= position & (~position + 1)) sum += sums_[position];
  return sum;
}

/// Closes the gaps and makes room for as many touches again.
void LruStack::compact() {
  std::vector<std::uint32_t> kept;
  kept.reserve(static_cast<std::size_t>(live_));
  for (const std::uint32_t block : owner_)
    if (block != kNobody) kept.push_back(block);
  const std::size_t size = std::max(kFewest, 2 * kept.size()) + 1;
  owner_.assign(size, kNobody);
  sums_.assign(size, 0);
  next_ = 1;
  for (const std::uint32_t block : kept) {
    owner_[next_] = block;
    position_[block] = next_;
    add(next_++, 1);
  }
}

void LruStack::touch(std::uint32_t block) {
  if (next_ >= owner_.size()) compact();
  if (block >= position_.size()) position_.resize(std::size_t{block} + 1, 0);
  std::size_t& position = position_[block];
  if (position == 0) {
    ++live_;
  } else {
    owner_[position] = kNobody;
    add(position, -1);
  }
  position = next_++;
  owner_[position] = block;
  add(position, 1);
}

std::int64_t LruStack::depth(std::uint32_t block) const {
  if (block >= position_.size() || position_[block] == 0) return 0;
  return live_ - before(position_[block]);
}

namespace {

constexpr std::size_t kMostPrefixes = 10;

/// Nearest rank; sorts.
LengthSummary summarize(std::vector<std::int64_t>& lengths) {
  LengthSummary out;
  if (lengths.empty()) return out;
  std::ranges::sort(lengths);
  const auto rank = [&](std::size_t percent) {
    const std::size_t n = (lengths.size() * percent + 99) / 100;
    return lengths[std::max<std::size_t>(n, 1) - 1];
  };
  double sum = 0;
  for (const std::int64_t length : lengths) sum += static_cast<double>(length);
  out.mean = sum / static_cast<double>(lengths.size());
  out.p50 = rank(50);
  out.p90 = rank(90);
  out.p99 = rank(99);
  out.max = lengths.back();
  return out;
}

/// 1, 2, 5, 10 … thousand tokens up to the first that holds all.
std::vector<std::int64_t> cache_sizes(std::int64_t all) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t unit = 1000;; unit *= 10)
    for (const std::int64_t step : {1, 2, 5}) {
      sizes.push_back(unit * step);
      if (sizes.back() >= all) return sizes;
    }
}

/// Times and lengths of requests.
class Counts {
 public:
  void add(const workloads::Request& request, SimTime now) {
    if (prompts_.empty()) first_ = now;
    last_ = now;
    prompts_.push_back(request.prompt->tokens);
    outputs_.push_back(request.output_tokens);
    const std::int64_t second = (now - SimTime::zero()).ns() / 1'000'000'000;
    busiest_second_ = std::max(busiest_second_, ++seconds_[second]);
    busiest_minute_ = std::max(busiest_minute_, ++minutes_[second / 60]);
    if (request.session == 0) return;
    ++session_requests_;
    longest_ = std::max(longest_, ++sessions_[request.session]);
  }

  void finish(TraceStudy& out) {
    out.requests = std::ssize(prompts_);
    out.span_s = out.requests == 0 ? 0 : (last_ - first_).to_seconds();
    if (out.span_s > 0) out.mean_rate = static_cast<double>(out.requests) / out.span_s;
    out.peak_second = static_cast<double>(busiest_second_);
    out.peak_minute = static_cast<double>(busiest_minute_) / 60;
    for (const std::int64_t n : prompts_) out.prompt_tokens += n;
    for (const std::int64_t n : outputs_) out.output_tokens += n;
    out.prompt = summarize(prompts_);
    out.output = summarize(outputs_);
    out.sessions = std::ssize(sessions_);
    out.session_requests = session_requests_;
    out.longest_session = longest_;
  }

 private:
  SimTime first_, last_;
  std::vector<std::int64_t> prompts_, outputs_;
  std::unordered_map<std::int64_t, std::int64_t> seconds_, minutes_;  // Requests.
  std::int64_t busiest_second_ = 0, busiest_minute_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> sessions_;  // Requests.
  std::int64_t session_requests_ = 0, longest_ = 0;
};

Duration nominal_time(const workloads::Request& request) {
  return std::min(Duration::milliseconds(500 + 20 * request.output_tokens), request.timeout);
}

}  // namespace

void PrefixCount::add(const workloads::Request& request) {
  // The last token of an answer is never computed, and that of a prompt always is.
  workloads::PromptBuilder text(*request.prompt);
  text.append(request.output_content, std::max<std::int64_t>(request.output_tokens - 1, 0));
  workloads::Prompt whole;
  whole.segments = text.segments();
  whole.tokens = text.tokens();
  whole.adapter = request.prompt->adapter;
  sim::EngineKeys keys;
  sim::append_engine_keys(whole, block_size_, keys);
  const auto of_prompt = static_cast<std::size_t>(request.prompt->tokens / block_size_);
  const auto usable = static_cast<std::size_t>((request.prompt->tokens - 1) / block_size_);
  std::vector<std::uint32_t> numbers;
  numbers.reserve(keys.engine.size());
  bool hit = true;
  std::int64_t needed = 0;
  for (std::size_t i = 0; i < keys.engine.size(); ++i) {
    const auto [found, is_new] =
        numbers_.try_emplace(keys.engine[i], static_cast<std::uint32_t>(blocks_.size()));
    if (is_new)
      blocks_.push_back({.parent = i == 0 ? 0 : numbers.back() + 1,
                         .depth = static_cast<std::uint32_t>(i) + 1,
                         .first_request = requests_,
                         .answer = i >= of_prompt});
    const std::uint32_t number = found->second;
    numbers.push_back(number);
    Block& block = blocks_[number];
    hit = hit && !is_new && i < usable;
    if (hit) {
      // A block is of use only with those before it.
      needed = std::max(needed, stack_.depth(number));
      ++hits_[needed];
      answer_hits_ += block.answer;
    }
    if (i >= of_prompt) continue;
    block.answer = false;
    ++block.requests;
  }
  // An engine frees a request's blocks from its end, so its first block is the last to go.
  for (auto n = numbers.rbegin(); n != numbers.rend(); ++n) stack_.touch(*n);
  ++requests_;
}

void PrefixCount::find_prefixes(TraceStudy& out) const {
  std::vector<std::uint32_t> most_below(blocks_.size(), 0);
  for (const Block& block : blocks_) {
    if (block.parent > 0)
      most_below[block.parent - 1] = std::max(most_below[block.parent - 1], block.requests);
    if (block.depth > 1 || block.requests < 2) continue;
    ++out.families;
    out.family_requests += block.requests;
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i].requests > 1 && most_below[i] < blocks_[i].requests)
      out.prefixes.push_back({.tokens = blocks_[i].depth * block_size_,
                              .requests = blocks_[i].requests,
                              .first_request = blocks_[i].first_request});
  const auto repeated = [](const SharedPrefix& p) { return p.tokens * (p.requests - 1); };
  std::ranges::stable_sort(out.prefixes, [&](const SharedPrefix& a, const SharedPrefix& b) {
    return repeated(a) > repeated(b);
  });
  if (out.prefixes.size() > kMostPrefixes) out.prefixes.resize(kMostPrefixes);
}

void PrefixCount::finish(TraceStudy& out) const {
  out.block_size = block_size_;
  out.held_tokens = std::ssize(blocks_) * block_size_;
  out.answer_hit_tokens = answer_hits_ * block_size_;
  for (const auto& [needed, blocks] : hits_) out.hit_tokens += blocks * block_size_;
  auto next = hits_.begin();
  std::int64_t so_far = 0;
  for (const std::int64_t size : cache_sizes(out.held_tokens)) {
    for (; next != hits_.end() && next->first * block_size_ <= size; ++next)
      so_far += next->second * block_size_;
    out.caches.push_back({.cache_tokens = size, .hit_tokens = so_far});
  }
  so_far = 0;
  for (const auto& [needed, blocks] : hits_) {
    so_far += blocks * block_size_;
    const std::int64_t size = needed * block_size_;
    if (out.half == 0 && so_far * 2 >= out.hit_tokens) out.half = size;
    if (out.most == 0 && so_far * 10 >= out.hit_tokens * 9) out.most = size;
    if (out.nearly_all == 0 && so_far * 100 >= out.hit_tokens * 99) out.nearly_all = size;
  }
  find_prefixes(out);
}

TraceStudy study_trace(workloads::LoadGenerator& load, std::int64_t block_size, std::int64_t most) {
  struct Answer {
    SimTime at;
    std::uint64_t number;
    workloads::Request request;
    bool operator>(const Answer& o) const { return at != o.at ? at > o.at : number > o.number; }
  };
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers;
  std::vector<workloads::Request> batch;
  Counts counts;
  PrefixCount prefixes(block_size);
  std::int64_t sent = 0;
  while (most == 0 || sent < most) {
    const SimTime next = load.next_action();
    if (!answers.empty() && answers.top().at <= next) {
      const Answer done = answers.top();
      answers.pop();
      load.on_completed(done.request, workloads::Outcome::kSuccess, done.at);
      continue;
    }
    if (next == SimTime::max()) break;
    batch.clear();
    load.advance(next, batch);
    for (workloads::Request& request : batch) {
      if (most > 0 && sent == most) break;
      counts.add(request, next);
      prefixes.add(request);
      const SimTime at = next + nominal_time(request);
      answers.push({at, static_cast<std::uint64_t>(sent++), std::move(request)});
    }
  }
  TraceStudy out;
  counts.finish(out);
  prefixes.finish(out);
  return out;
}

namespace {

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return fixed_text(100 * sim::share(part, whole), 1);
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
    table.add_row({std::to_string(point.cache_tokens),
                   percent_of(point.hit_tokens, s.prompt_tokens),
                   percent_of(point.hit_tokens, s.hit_tokens)});
  }
  return table.str();
}

std::string prefixes_text(const TraceStudy& s) {
  TextTable table(0);
  table.add_row({"shared prefix, tokens", "requests", "of all requests, %", "first request"});
  for (const SharedPrefix& p : s.prefixes)
    table.add_row({std::to_string(p.tokens), std::to_string(p.requests),
                   percent_of(p.requests, s.requests), std::to_string(p.first_request)});
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
    out +=
        fmt::format("{} sessions of {} requests on average, {} at most\n", s.sessions,
                    fixed_text(sim::share(s.session_requests, s.sessions), 1), s.longest_session);
  out += fmt::format("\n{}\n", lengths_text(s));
  out += fmt::format(
      "{} % of the prompt tokens repeat an earlier prompt or answer from its start ({} % an "
      "answer):\n"
      "the ideal hits of one server that forgets nothing, in blocks of {} tokens.\n",
      percent_of(s.hit_tokens, s.prompt_tokens), percent_of(s.answer_hit_tokens, s.prompt_tokens),
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

void write_summary(JsonWriter& json, std::string_view name, const LengthSummary& l,
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
        .member("hit_ratio", sim::share(point.hit_tokens, s.prompt_tokens))
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
  write_summary(json, "prompt_tokens", s.prompt, s.prompt_tokens);
  write_summary(json, "output_tokens", s.output, s.output_tokens);
  json.key("sessions").begin_object();
  json.member("count", s.sessions).member("requests", s.session_requests);
  json.member("longest", s.longest_session).end_object();
  json.member("ideal_hit_ratio", sim::share(s.hit_tokens, s.prompt_tokens));
  json.member("ideal_answer_hit_ratio", sim::share(s.answer_hit_tokens, s.prompt_tokens));
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
