#include "tools/study/trace/trace_study.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "base/check.h"
#include "sim/kv/prompt_keys.h"
#include "workloads/prompts.h"

namespace routesim::tools {
namespace {

constexpr std::size_t kMostPrefixes = 10;

/// Nearest rank; sorts.
LengthSummary summarize(std::vector<std::int64_t>& lengths) {
  LengthSummary out;
  if (lengths.empty()) return out;
  std::sort(lengths.begin(), lengths.end());
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
  std::stable_sort(
      out.prefixes.begin(), out.prefixes.end(),
      [&](const SharedPrefix& a, const SharedPrefix& b) { return repeated(a) > repeated(b); });
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

}  // namespace routesim::tools
