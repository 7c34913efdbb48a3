// SGLang's scheduler once more, written as its source is and nothing else: batches as lists of
// requests, a page cache block by block, one visit per request and step. It shares no code with
// sim/engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "models/latency_model.h"
#include "sim/rules/engine_config.h"
#include "tests/sim/block_cache.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

class ObviousSglang {
 public:
  ObviousSglang(const EngineRules& rules, std::shared_ptr<const models::LatencyModel> latency)
      : rules_(rules),
        own_(*rules.sglang),
        latency_(std::move(latency)),
        cache_(rules.num_gpu_blocks, FreeQueue::kUnhashedFirst),
        ratio_(own_.first_ratio) {
    publish();
  }

  std::uint32_t send(const TestRequest& t, SimTime now) {
    advance_to(now);
    auto r = std::make_unique<Req>();
    r->id = static_cast<std::uint32_t>(requests_.size());
    for (const auto& [content, length] : t.parts)
      for (std::int64_t i = 0; i < length; ++i) r->tokens.push_back({content, i});
    r->prompt = std::ssize(r->tokens);
    r->output = t.output;
    r->max_new = std::min(std::max(t.output, t.max_tokens), longest() - r->prompt - 1);
    fates.emplace_back();
    inbox_.push_back(r.get());
    requests_.push_back(std::move(r));
    if (!stepping_) {
      ticks_ = now.ns() * models::kTicksPerNanosecond;
      read_queue();
      launch();
    }
    return requests_.back()->id;
  }
  void run() { advance_to(SimTime::max()); }
  void advance_to(SimTime now) {
    while (stepping_ && end() <= now) {
      const SimTime at = end();
      process(gpu_, at);
      publish();
      read_queue();
      launch();
    }
  }

  struct Gauges {
    std::int64_t running = 0, waiting = 0, free = 0;
    bool operator==(const Gauges&) const = default;
  };
  Gauges gauges;
  std::vector<Fate> fates;
  Samples gaps;
  std::int64_t evictions() const { return cache_.evictions(); }

 private:
  using Token = std::pair<std::uint64_t, std::int64_t>;
  using Tokens = std::vector<Token>;
  struct Req {
    std::uint32_t id = 0;
    Tokens tokens;  // Prompt and known answer.
    std::int64_t prompt = 0, output = 0, max_new = 0;
    std::int64_t kv = 0;  // Tokens whose KV is computed, or will be by a batch that was made.
    std::int64_t retractions = 0, cached = -1;
    bool finished = false;
    std::int64_t life = 0;  // Retractions, for results that are on their way.
    SimTime last_token;
    std::vector<std::size_t> pages;
    std::int64_t keyed = 0;  // Pages that the cache knows.
    std::int64_t known() const { return std::ssize(tokens); }
    std::int64_t outputs() const { return known() - prompt; }
  };
  struct Work {
    Req* r;
    std::int64_t life;
    bool samples;
  };
  struct Batch {
    bool extend = false;
    std::vector<Work> work;
    std::vector<Req*> reqs;
    models::BatchShape shape;
  };

  SimTime end() const { return SimTime::from_ns(ticks_ / models::kTicksPerNanosecond); }
  std::int64_t longest() const {
    return std::min(rules_.max_model_len, (rules_.num_gpu_blocks - 1) * rules_.block_size) - 1;
  }
  std::int64_t pages(std::int64_t tokens) const {
    return (tokens + rules_.block_size - 1) / rules_.block_size;
  }
  std::int64_t free_tokens() const { return cache_.free_blocks() * rules_.block_size; }

  void publish() {
    std::set<const Req*> running;
    for (const Req* r : running_)
      if (!r->finished) running.insert(r);
    if (last_ && last_->extend)
      for (const Req* r : last_->reqs)
        if (!r->finished) running.insert(r);
    if (chunked_ != nullptr) running.insert(chunked_);
    gauges = {.running = std::ssize(running),
              .waiting = std::ssize(waiting_),
              .free = cache_.free_blocks()};
  }
  void read_queue() {
    for (Req* r : std::exchange(inbox_, {})) {
      if (r->prompt + r->output + 1 > longest())
        fates[r->id].unservable = true;
      else
        waiting_.push_back(r);
    }
  }

  void launch() {
    std::optional<Batch> next = std::exchange(ahead_, std::nullopt);
    if (!next) next = next_batch();
    // The loop goes round while there is something to make a batch of.
    for (int i = 0; i < 3 && !next && !waiting_.empty(); ++i) next = next_batch();
    stepping_ = next.has_value();
    if (!stepping_) {
      publish();
      ratio_ = own_.first_ratio;
      base_ = -1;
      steps_ = 0;
      return;
    }
    gpu_ = *std::move(next);
    ticks_ += latency_->step_ticks(gpu_.shape);
    if (rules_.async_scheduling) ahead_ = next_batch();
  }

  // get_next_batch_to_run.
  std::optional<Batch> next_batch() {
    if (chunked_ != nullptr) insert(chunked_, chunked_->kv);
    if (last_ && last_->extend) {
      const std::size_t before = last_->reqs.size();
      std::erase_if(last_->reqs, [&](Req* r) { return r->finished || r == chunked_; });
      if (last_chunk_ || last_->reqs.size() < before) full_ = false;
      if (running_.empty()) full_ = false;  // It is replaced by the last batch.
      running_.insert(running_.end(), last_->reqs.begin(), last_->reqs.end());
    }
    last_.reset();
    std::optional<Batch> batch = prefill();
    if (!batch) batch = decode();
    last_ = batch;
    return batch;
  }

  // get_new_batch_prefill.
  std::optional<Batch> prefill() {
    if ((full_ || waiting_.empty()) && chunked_ == nullptr) return std::nullopt;
    const std::int64_t allocatable = rules_.max_num_seqs - std::ssize(running_);
    if (allocatable <= 0 && chunked_ != nullptr) {
      full_ = true;
      return std::nullopt;
    }
    if (own_.policy == SglangPolicy::kLpm) sort_waiting();
    Adder a{.input = own_.max_prefill_tokens,
            .chunk = own_.chunk_tokens > 0 ? own_.chunk_tokens : std::int64_t{1} << 40};
    std::int64_t expected = 0;
    for (const Req* r : running_)
      if (!r->finished) expected += std::min<std::int64_t>(r->max_new - r->outputs(), 4096);
    a.offset = static_cast<double>(expected) * ratio_;
    if (chunked_ != nullptr) {
      auto most = std::min(a.chunk, static_cast<std::int64_t>(rem_total(a)));
      if (most <= 0) most = a.chunk;
      const std::int64_t room =
          free_tokens() + std::ssize(chunked_->pages) * rules_.block_size - chunked_->kv;
      const std::int64_t n = std::min({chunked_->known() - chunked_->kv, most, room});
      if (n <= 0) return std::nullopt;
      if (add(a, chunked_, n)) chunked_ = nullptr;
    }
    while (!waiting_.empty()) {
      if (std::ssize(a.batch.reqs) >= allocatable) full_ = true;
      if (full_ || !add_one(a, waiting_.front())) break;
    }
    if (a.batch.reqs.empty()) return std::nullopt;
    last_chunk_ = chunked_ != nullptr;
    set_shared(a.batch);
    return a.batch;
  }

  // PrefillAdder.
  struct Adder {
    std::int64_t input = 0, chunk = 0;
    double offset = 0;
    Batch batch{.extend = true, .work = {}, .reqs = {}, .shape = {}};
  };
  double rem_total(const Adder& a) const { return static_cast<double>(free_tokens()) - a.offset; }
  bool add(Adder& a, Req* r, std::int64_t n) {
    const std::int64_t before = r->kv;
    fill(r, n);
    a.batch.reqs.push_back(r);
    const bool whole = r->kv == r->known();
    a.batch.work.push_back({r, r->life, whole});
    ++a.batch.shape.prefill_requests;
    a.batch.shape.prefill_tokens += n;
    a.batch.shape.prefill_context += r->kv;
    a.batch.shape.prefill_pairs += r->kv * r->kv - before * before;
    a.input -= pages(n) * rules_.block_size;
    a.chunk -= pages(n) * rules_.block_size;
    if (whole) a.offset += static_cast<double>(std::min<std::int64_t>(r->max_new, 4096));
    return whole;
  }
  // add_one_req: false where no other one is looked at.
  bool add_one(Adder& a, Req* r) {
    const std::vector<std::size_t> hits = match(*r);
    const std::int64_t hit = std::ssize(hits) * rules_.block_size;
    const std::int64_t rest = r->known() - hit;
    const auto total =
        static_cast<double>(rest + std::clamp<std::int64_t>(r->max_new - r->outputs(), 0, 4096));
    const std::int64_t paged = pages(rest) * rules_.block_size;
    bool no_token = total >= rem_total(a);
    if (!no_token && paged >= a.input && !a.batch.reqs.empty()) return false;
    const std::int64_t evictable = cache_.count_unreferenced(hits) * rules_.block_size;
    no_token = no_token || total >= rem_total(a) - static_cast<double>(evictable);
    if (no_token) full_ = true;
    const std::int64_t n =
        paged <= a.chunk ? rest : a.chunk / rules_.block_size * rules_.block_size;
    if (no_token || n <= 0) return false;
    waiting_.erase(waiting_.begin());
    if (r->cached < 0) r->cached = std::min(hit, r->prompt);
    cache_.take(hits, r->pages);
    r->kv = hit;
    r->keyed = std::ssize(hits);
    if (!add(a, r, n)) chunked_ = r;
    if (rem_total(a) <= 0 || free_tokens() <= 0) full_ = true;
    return !full_ && a.input > 0 && a.chunk > 0;
  }

  // update_running_batch.
  std::optional<Batch> decode() {
    if (running_.empty()) return std::nullopt;
    const std::size_t before = running_.size();
    std::erase_if(running_, [](const Req* r) { return r->finished; });
    if (running_.size() < before) full_ = false;
    if (running_.empty()) return std::nullopt;
    const auto missing = [&] {
      std::int64_t need = 0;
      for (const Req* r : running_) need += r->kv % rules_.block_size == 0 ? 1 : 0;
      return need > cache_.free_blocks();
    };
    if (missing()) {
      std::vector<Req*> retracted;
      while (running_.size() > 1 && missing()) {
        std::vector<Req*> sorted = running_;
        std::stable_sort(sorted.begin(), sorted.end(), [](const Req* a, const Req* b) {
          return std::pair(a->outputs(), -a->prompt) > std::pair(b->outputs(), -b->prompt);
        });
        retracted.push_back(sorted.back());
        std::erase(running_, sorted.back());
        release(retracted.back());
      }
      if (missing() && chunked_ != nullptr) {
        retracted.push_back(chunked_);
        release(chunked_);
        chunked_ = nullptr;
      }
      for (Req* r : retracted) {
        r->kv = 0;
        ++r->life;
        ++r->retractions;
        waiting_.push_back(r);
      }
      std::int64_t made = 0, most = 0;
      for (const Req* r : running_) {
        made += r->outputs() + 20;
        most += r->max_new;
      }
      ratio_ = std::min(1.0, static_cast<double>(made) / static_cast<double>(most + 1));
      base_ = ratio_;
      steps_ = 0;
      full_ = false;
    } else {
      ++steps_;
      const double step = (own_.first_ratio - own_.least_ratio) / 600;
      ratio_ = std::max((base_ < 0 ? own_.first_ratio : base_) - step * static_cast<double>(steps_),
                        own_.least_ratio);
    }
    Batch batch{.extend = false, .work = {}, .reqs = running_, .shape = {}};
    for (Req* r : running_) {
      fill(r, 1);
      batch.work.push_back({r, r->life, true});
      ++batch.shape.decode_requests;
      batch.shape.decode_context += r->kv;
    }
    set_shared(batch);
    return batch;
  }

  void set_shared(Batch& batch) const {
    batch.shape.shared_context =
        std::min(cache_.shared_blocks() * rules_.block_size, batch.shape.decode_context);
    batch.shape.shared_once = cache_.blocks_of_several() * rules_.block_size;
  }

  void process(const Batch& batch, SimTime now) {
    if (batch.extend)
      for (const Work& w : batch.work)
        if (w.samples && w.life == w.r->life && !w.r->finished) insert(w.r, w.r->known());
    for (const Work& w : batch.work) {
      Req* r = w.r;
      if (!w.samples || w.life != r->life || r->finished) continue;
      r->tokens.push_back({1'000'000 + r->id, r->outputs()});
      if (r->outputs() == 1)
        fates[r->id].first = now;
      else
        gaps.add_nano((now - r->last_token).ns(), 1);
      r->last_token = now;
    }
    for (const Work& w : batch.work) {
      Req* r = w.r;
      if (!w.samples || w.life != r->life || r->finished || r->outputs() < r->output) continue;
      r->finished = true;
      fates[r->id].finish = now;
      fates[r->id].finished = true;
      fates[r->id].preemptions = r->retractions;
      fates[r->id].cached = r->cached;
      insert(r, r->known() - 1);
      release(r);
    }
  }

  // ---- pages ------------------------------------------------------------------------------------
  BlockKey key_of(const Req& r, std::int64_t page) {
    const Tokens prefix(r.tokens.begin(), r.tokens.begin() + (page + 1) * rules_.block_size);
    return keys_.emplace(prefix, keys_.size() + 1).first->second;
  }
  std::vector<std::size_t> match(const Req& r) {
    if (!rules_.enable_prefix_caching) return {};
    std::vector<BlockKey> keys;
    for (std::int64_t p = 0; p < (r.known() - 1) / rules_.block_size; ++p)
      keys.push_back(key_of(r, p));
    return cache_.lookup(keys);
  }
  // Pages that the cache has already take the place of the request's own.
  void insert(Req* r, std::int64_t tokens) {
    if (!rules_.enable_prefix_caching) return;
    std::vector<BlockKey> keys;
    for (std::int64_t p = 0; p < tokens / rules_.block_size; ++p) keys.push_back(key_of(*r, p));
    const std::vector<std::size_t> known = cache_.lookup(keys);
    if (std::ssize(known) > r->keyed && !r->finished) {
      std::vector<std::size_t> pages;
      cache_.take(known, pages);
      const std::int64_t own = std::ssize(r->pages) - std::ssize(known);
      cache_.release(r->pages);
      cache_.allocate(own, pages);
      r->pages = pages;
      r->keyed = std::ssize(known);
    }
    for (; r->keyed < tokens / rules_.block_size; ++r->keyed)
      cache_.register_key(r->pages[static_cast<std::size_t>(r->keyed)], key_of(*r, r->keyed));
  }
  void fill(Req* r, std::int64_t n) {
    r->kv += n;
    cache_.allocate(pages(r->kv) - std::ssize(r->pages), r->pages);
  }
  void release(Req* r) {
    cache_.release(r->pages);
    r->keyed = 0;
  }

  // Policy lpm with its look at prefixes that wait.
  void sort_waiting() {
    if (!rules_.enable_prefix_caching || waiting_.size() > 128) return;
    std::map<const Req*, std::int64_t> order;
    std::vector<const Req*> inserted;
    for (const Req* r : waiting_) {
      const std::int64_t hit = std::ssize(match(*r)) * rules_.block_size;
      order[r] = -hit;
      if (hit > 32) continue;
      const auto shares = [&](const Req* other) {
        std::int64_t n = 0;
        while (n < std::min(r->prompt, other->prompt) &&
               r->tokens[std::size_t(n)] == other->tokens[std::size_t(n)])
          ++n;
        return n / rules_.block_size * rules_.block_size >= 32;
      };
      if (std::any_of(inserted.begin(), inserted.end(), shares))
        order[r] = std::int64_t{1} << 40;
      else
        inserted.push_back(r);
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](const Req* a, const Req* b) { return order[a] < order[b]; });
  }

  EngineRules rules_;
  SglangRules own_;
  std::shared_ptr<const models::LatencyModel> latency_;
  BlockCache cache_;
  std::map<Tokens, BlockKey> keys_;
  std::vector<std::unique_ptr<Req>> requests_;
  std::vector<Req*> inbox_, waiting_, running_;
  Req* chunked_ = nullptr;
  bool full_ = false, last_chunk_ = false, stepping_ = false;
  double ratio_, base_ = -1;
  std::int64_t steps_ = 0, ticks_ = 0;
  std::optional<Batch> last_, ahead_;
  Batch gpu_;
};

}  // namespace routesim::sim::testing
