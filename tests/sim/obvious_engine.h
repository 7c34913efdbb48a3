// vLLM v1's scheduler once more, written to be obviously right and nothing else: real token lists
// as block keys, std::list as the free queue, one visit per request and step, vLLM's own counters
// (num_computed, placeholders). It shares no code with sim/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/latency_model.h"
#include "sim/engine/engine_config.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

class ObviousEngine {
 public:
  ObviousEngine(const EngineRules& rules, std::shared_ptr<const models::LatencyModel> latency)
      : rules_(rules), latency_(std::move(latency)) {
    blocks_.resize(static_cast<std::size_t>(rules.num_gpu_blocks));
    for (int b = 1; b < rules.num_gpu_blocks; ++b) free_.push_back(b);
  }

  std::uint32_t send(const TestRequest& t, SimTime now) {
    auto r = std::make_unique<Request>();
    r->id = static_cast<std::uint32_t>(fates.size());
    for (const auto& [content, length] : t.parts)
      for (std::int64_t i = 0; i < length; ++i) r->tokens.push_back({content, i});
    r->prompt = static_cast<std::int64_t>(r->tokens.size());
    r->output = t.output;
    r->max_tokens = std::max(t.output, t.max_tokens);
    r->priority = t.priority;
    fates.emplace_back();
    requests_.push_back(std::move(r));
    input({.arrival = requests_.back().get()}, now);
    return requests_.back()->id;
  }
  void abort(std::uint32_t id, SimTime now) { input({.abort = id}, now); }
  void run() { advance_to(SimTime::max()); }

  std::vector<Fate> fates;
  Samples gaps;  ///< Between tokens of a request, of all requests.
  std::int64_t hash_evictions = 0;

 private:
  using Token = std::pair<std::uint64_t, std::int64_t>;
  using Key = std::vector<Token>;  // All tokens from the start to the end of the block.
  enum class Status { kWaiting, kPreempted, kRunning, kDone };
  struct Request {
    std::uint32_t id = 0;
    std::vector<Token> tokens;  // Prompt and the answer as far as the scheduler knows it.
    std::int64_t prompt = 0, output = 0, max_tokens = 0;
    std::int32_t priority = 0;
    Status status = Status::kWaiting;
    std::int64_t computed = 0, placeholders = 0, preemptions = 0, cached = -1;
    std::int64_t target = 0;  // Tokens known at (re-)admission: below it, work counts as prefill.
    SimTime last_token;
    std::vector<int> blocks;
    std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
    std::int64_t held() const { return static_cast<std::int64_t>(blocks.size()); }
  };
  struct Block {
    int references = 0;
    Key key;
  };
  struct Work {
    Request* r;
    std::int64_t n;
    std::int64_t before;
    bool samples;
  };
  struct Step {
    std::vector<Work> work;
    models::BatchShape shape;
  };
  struct Input {
    Request* arrival = nullptr;
    std::optional<std::uint32_t> abort{};
  };

  // ---- the loop -------------------------------------------------------------------------------
  void input(const Input& in, SimTime now) {
    advance_to(now);
    inbox_.push_back(in);
    if (stepping_) return;
    ticks_ = now.ns() * models::kTicksPerNanosecond;
    drain();
    launch();
  }
  void advance_to(SimTime now) {
    while (stepping_ && end() <= now) {
      process(gpu_, end());
      drain();
      launch();
    }
  }
  SimTime end() const { return SimTime::from_ns(ticks_ / models::kTicksPerNanosecond); }
  void drain() {
    for (const Input& in : inbox_) {
      if (in.arrival != nullptr)
        enqueue(in.arrival);
      else
        remove(requests_[*in.abort].get());
    }
    inbox_.clear();
  }
  void launch() {
    if (ahead_)
      gpu_ = std::exchange(ahead_, std::nullopt).value();
    else
      do gpu_ = schedule();  // vLLM's loop goes round at once when a pass only preempted
      while (gpu_.work.empty() && preempted_);
    stepping_ = !gpu_.work.empty();
    if (!stepping_) return;
    ticks_ += latency_->step_ticks(gpu_.shape);
    if (!rules_.async_scheduling) return;
    Step next = schedule();
    if (!next.work.empty()) ahead_ = std::move(next);
  }

  // ---- queues ---------------------------------------------------------------------------------
  void enqueue(Request* r) {
    const std::int64_t longest = r->prompt + r->output;
    if (longest > rules_.max_model_len || ceil_blocks(longest - 1) > rules_.num_gpu_blocks - 1) {
      fates[r->id].unservable = true;
      r->status = Status::kDone;
      return;
    }
    waiting_.push_back(r);
    sort_waiting();
  }
  void sort_waiting() {
    if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return;
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const Request* a, const Request* b) {
      return std::pair(a->priority, a->id) < std::pair(b->priority, b->id);
    });
  }
  void remove(Request* r) {
    if (r->status == Status::kDone) return;
    free_blocks(r);
    std::erase(running_, r);
    std::erase(waiting_, r);
    r->status = Status::kDone;
  }

  // ---- one pass -------------------------------------------------------------------------------
  Step schedule() {
    Step step;
    std::int64_t budget = rules_.max_num_batched_tokens;
    preempted_ = false;
    for (std::size_t i = 0; i < running_.size() && budget > 0;) {
      Request* r = running_[i];
      if (rules_.async_scheduling && r->placeholders > 0 &&
          r->computed + 2 - r->placeholders >= r->prompt + r->max_tokens) {
        ++i;
        continue;
      }
      std::int64_t n = r->known() + r->placeholders - r->computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      n = std::min({n, budget, rules_.max_model_len - 1 - r->computed});
      if (n == 0) {
        ++i;
        continue;
      }
      bool fits = allocate(r, n, {}, false);
      while (!fits) {
        Request* v = victim();
        const auto place = static_cast<std::size_t>(std::find(running_.begin(), running_.end(), v) -
                                                    running_.begin());
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
        const auto done = std::find_if(step.work.begin(), step.work.end(),
                                       [v](const Work& w) { return w.r == v; });
        if (done != step.work.end()) {
          budget += done->n;
          step.work.erase(done);
          --i;
        }
        preempt(v);
        preempted_ = true;
        if (v == r) break;
        fits = allocate(r, n, {}, false);
      }
      if (!fits) break;
      step.work.push_back({r, n, r->computed, false});
      budget -= n;
      ++i;
    }
    if (!preempted_) admit(step, budget);
    finish_pass(step);
    return step;
  }

  void admit(Step& step, std::int64_t budget) {
    std::vector<Request*> skipped;
    while (!waiting_.empty() && budget > 0) {
      if (static_cast<std::int64_t>(running_.size()) == rules_.max_num_seqs) break;
      Request* r = waiting_.front();
      const std::vector<int> hits = lookup(*r);
      const std::int64_t computed = static_cast<std::int64_t>(hits.size()) * rules_.block_size;
      std::int64_t n = r->known() - computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      if (!rules_.enable_chunked_prefill && n > budget) break;
      n = std::min(n, budget);
      r->computed = computed;
      if (!allocate(r, n, hits, rules_.reserve_full_isl)) {
        r->computed = 0;
        if (!rules_.skip_unallocatable_head || !running_.empty()) break;
        skipped.push_back(r);
        waiting_.pop_front();
        continue;
      }
      waiting_.pop_front();
      if (r->cached < 0) r->cached = std::min(computed, r->prompt);
      r->status = Status::kRunning;
      r->target = r->known();
      running_.push_back(r);
      step.work.push_back({r, n, computed, false});
      budget -= n;
    }
    waiting_.insert(waiting_.begin(), skipped.begin(), skipped.end());
  }

  void finish_pass(Step& step) {
    for (Work& w : step.work) {
      Request* r = w.r;
      r->computed += w.n;
      w.samples = r->computed >= r->known() + r->placeholders;
      if (w.samples && rules_.async_scheduling) ++r->placeholders;
      if (w.before < r->target) {
        ++step.shape.prefill_requests;
        step.shape.prefill_tokens += w.n;
        step.shape.prefill_context += r->computed;
        step.shape.prefill_pairs += r->computed * r->computed - w.before * w.before;
      } else {
        ++step.shape.decode_requests;
        step.shape.decode_context += r->computed;
      }
    }
    for (const Block& b : blocks_)
      if (b.references > 1) step.shape.shared_context += (b.references - 1) * rules_.block_size;
    step.shape.shared_context = std::min(step.shape.shared_context, step.shape.decode_context);
  }

  Request* victim() {
    if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return running_.back();
    return *std::max_element(running_.begin(), running_.end(), [](Request* a, Request* b) {
      return std::pair(a->priority, a->id) < std::pair(b->priority, b->id);
    });
  }
  void preempt(Request* r) {
    free_blocks(r);
    r->computed = r->placeholders = 0;
    r->status = Status::kPreempted;
    ++r->preemptions;
    waiting_.push_front(r);
    sort_waiting();
  }

  void process(const Step& step, SimTime now) {
    for (const Work& w : step.work) {
      Request* r = w.r;
      if (!w.samples || r->status == Status::kDone) continue;
      r->tokens.push_back({1'000'000 + r->id, r->known() - r->prompt});
      if (r->known() == r->prompt + 1)
        fates[r->id].first = now;
      else
        gaps.add_nano((now - r->last_token).ns(), 1);
      r->last_token = now;
      if (r->status == Status::kRunning && rules_.async_scheduling) {
        --r->placeholders;
        register_blocks(r, r->computed - r->placeholders);
      }
      if (r->known() < r->prompt + r->output) continue;
      Fate& f = fates[r->id];
      f.finish = now;
      f.finished = true;
      f.preemptions = r->preemptions;
      f.cached = r->cached;
      remove(r);
    }
  }

  // ---- blocks ---------------------------------------------------------------------------------
  std::int64_t ceil_blocks(std::int64_t tokens) const {
    return (tokens + rules_.block_size - 1) / rules_.block_size;
  }
  Key key_of(const Request& r, std::int64_t block) const {
    return Key(r.tokens.begin(), r.tokens.begin() + (block + 1) * rules_.block_size);
  }
  std::vector<int> lookup(const Request& r) const {
    std::vector<int> hits;
    if (!rules_.enable_prefix_caching) return hits;
    for (std::int64_t b = 0; b < (r.known() - 1) / rules_.block_size; ++b) {
      const auto it = cached_.find(key_of(r, b));
      if (it == cached_.end()) break;
      hits.push_back(it->second.front());
    }
    return hits;
  }
  bool allocate(Request* r, std::int64_t n, const std::vector<int>& hits, bool full_fit) {
    const auto free = static_cast<std::int64_t>(free_.size());
    const auto hit = static_cast<std::int64_t>(hits.size());
    std::int64_t unlinked = 0;
    for (const int b : hits) unlinked += at(b).references == 0 ? 1 : 0;
    const bool guarded = r->status != Status::kRunning && !running_.empty();
    const std::int64_t watermark = guarded ? rules_.watermark_blocks : 0;
    const std::int64_t owned = r->held() + hit;
    if (full_fit && ceil_blocks(r->known()) - owned + unlinked + watermark > free) return false;
    const std::int64_t fresh = ceil_blocks(r->computed + n) - owned;
    if (fresh + unlinked + watermark > free) return false;
    for (const int b : hits) {
      if (at(b).references++ == 0) free_.remove(b);
      r->blocks.push_back(b);
    }
    for (std::int64_t i = 0; i < fresh; ++i) {
      const int b = free_.front();
      free_.pop_front();
      evict(b);
      at(b).references = 1;
      r->blocks.push_back(b);
    }
    register_blocks(r, std::min(r->computed + n, r->known()));
    return true;
  }
  void register_blocks(Request* r, std::int64_t tokens) {
    if (!rules_.enable_prefix_caching) return;
    for (std::int64_t i = 0; i < tokens / rules_.block_size; ++i) {
      const int b = r->blocks[static_cast<std::size_t>(i)];
      if (!at(b).key.empty()) continue;
      at(b).key = key_of(*r, i);
      cached_[at(b).key].push_back(b);
    }
  }
  void evict(int b) {
    if (at(b).key.empty()) return;
    ++hash_evictions;
    std::vector<int>& twins = cached_[at(b).key];
    std::erase(twins, b);
    if (twins.empty()) cached_.erase(at(b).key);
    at(b).key.clear();
  }
  void free_blocks(Request* r) {
    for (std::size_t i = r->blocks.size(); i-- > 0;) {
      const int b = r->blocks[i];
      if (--at(b).references > 0) continue;
      if (rules_.free_queue == FreeQueue::kUnhashedFirst && at(b).key.empty())
        free_.push_front(b);
      else
        free_.push_back(b);
    }
    r->blocks.clear();
  }
  Block& at(int b) { return blocks_[static_cast<std::size_t>(b)]; }
  const Block& at(int b) const { return blocks_[static_cast<std::size_t>(b)]; }

  EngineRules rules_;
  std::shared_ptr<const models::LatencyModel> latency_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::deque<Request*> waiting_;
  std::vector<Request*> running_;
  std::vector<Block> blocks_;
  std::list<int> free_;
  std::map<Key, std::vector<int>> cached_;
  std::vector<Input> inbox_;
  Step gpu_;
  std::optional<Step> ahead_;
  bool stepping_ = false;
  bool preempted_ = false;
  std::int64_t ticks_ = 0;
};

}  // namespace routesim::sim::testing
