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

#include "base/rng.h"
#include "models/latency_model.h"
#include "sim/rules/engine_config.h"
#include "tests/sim/obvious_tiers.h"
#include "tests/sim/obvious_worker_cache.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

class ObviousEngine {
 public:
  ObviousEngine(const EngineRules& rules, std::shared_ptr<const models::LatencyModel> latency)
      : rules_(rules),
        latency_(std::move(latency)),
        tiers_(rules),
        workers_(rules),
        seen_blocks_(ceil_blocks(rules.window_tokens - 1)),
        stage_free_(static_cast<std::size_t>(rules.pipeline_stages)) {
    blocks_.resize(static_cast<std::size_t>(rules.num_gpu_blocks));
    for (int b = 1; b < rules.num_gpu_blocks; ++b) free_.push_back(b);
    publish();
  }

  /// `pulls`: another engine may have more of the prompt.
  std::uint32_t send(const TestRequest& t, SimTime now, bool pulls = false) {
    auto r = std::make_unique<Request>();
    r->id = static_cast<std::uint32_t>(fates.size());
    for (const auto& [content, length] : t.parts)
      for (std::int64_t i = 0; i < length; ++i) r->tokens.push_back({content, i});
    r->prompt = static_cast<std::int64_t>(r->tokens.size());
    r->output = t.output;
    r->max_tokens = std::max(t.output, t.max_tokens);
    r->priority = t.priority;
    r->hold = t.hold;
    r->pulls = pulls;
    r->windows.resize(static_cast<std::size_t>(rules_.window_groups));
    fates.emplace_back();
    requests_.push_back(std::move(r));
    input({.arrival = requests_.back().get()}, now);
    return requests_.back()->id;
  }
  void abort(std::uint32_t id, SimTime now) { input({.abort = id}, now); }
  /// Somebody has read the blocks that a request kept.
  void release(std::uint32_t id, SimTime now) {
    advance_to(now);
    Input in{.read = requests_[id].get()};
    if (requests_[id]->status != Status::kHeld) in.read = nullptr;
    in.news = true;
    in.steps = stepping_ ? steps_until_heard(now) : 0;
    take(in, now);
  }
  void run() { advance_to(SimTime::max()); }
  void run_until(SimTime now) { advance_to(now); }
  /// When something happens here next.
  SimTime next() const { return std::min(stepping_ ? end() : SimTime::max(), tiers_.next_end()); }
  void advance_to(SimTime now) {
    for (;;) {
      const SimTime step = stepping_ ? end() : SimTime::max();
      const SimTime next = std::min(step, tiers_.next_end());
      if (next == SimTime::max() || next > now) return;
      if (step > next) {
        // Workers look for ended copies when a step starts and say so when it ends.
        Input in;
        in.copied = tiers_.pop_copy();
        in.news = true;
        in.steps = stepping_ ? steps_until_heard(next) : 0;
        take(in, next);
        continue;
      }
      process(gpu_, next);
      read_news(false);
      publish();
      read_queue();
      launch();
      tiers_.start_copies(next);
    }
  }
  /// What the other side of a pull says, or the network does.
  enum class News { kAsked, kAnswered, kFetch, kSent, kArrived, kFailed, kDropped };
  void hear(News news, ObviousPull& pull, SimTime now) {
    input({.pull = &pull, .pull_news = news}, now);
  }
  ObviousTiers& tiers() { return tiers_; }

  /// As the last pass through the engine's loop left them.
  struct Gauges {
    std::int64_t running = 0, waiting = 0, free = 0;
    bool operator==(const Gauges&) const = default;
  };
  Gauges gauges;
  std::vector<Fate> fates;
  Samples gaps;  ///< Between tokens of a request, of all requests.
  std::int64_t hash_evictions = 0;
  std::int64_t drafts = 0, draft_tokens = 0, accepted = 0;  ///< With speculation.

 private:
  using Token = ObviousTiers::Token;
  using Tokens = ObviousTiers::Tokens;
  /// Group 0 sees everything, the others have a window; all tokens up to the end of the block.
  using Key = ObviousTiers::Key;
  enum class Status { kWaiting, kPreempted, kLoading, kRunning, kHeld, kStoring, kDone };
  struct Request {
    std::uint32_t id = 0;
    std::vector<Token> tokens;  // Prompt and the answer as far as the scheduler knows it.
    std::int64_t prompt = 0, output = 0, max_tokens = 0;
    std::int32_t priority = 0;
    bool pulls = false, hold = false;
    Status status = Status::kWaiting;
    std::int64_t computed = 0, placeholders = 0, preemptions = 0, cached = -1;
    std::int64_t spec = 0;    // Drafts, or places for those that the step under way will make.
    std::int64_t target = 0;  // Tokens known at (re-)admission: below it, work counts as prefill.
    SimTime last_token;
    std::vector<int> blocks;
    std::vector<std::vector<int>> windows;  // Per group, from block window_first on.
    std::int64_t window_first = 0;
    ObviousTierState tier;
    std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
    std::int64_t held() const { return static_cast<std::int64_t>(blocks.size()); }
    std::int64_t in_window() const { return windows.empty() ? 0 : std::ssize(windows.front()); }
  };
  struct Block {
    int references = 0;
    Key key;  // Without tokens: none.
    bool window = false;
    bool keyed() const { return !key.second.empty(); }
  };
  struct Hits {
    std::vector<int> blocks;
    std::vector<std::vector<int>> windows;  // Per group, the last ones.
  };
  struct Work {
    Request* r;
    std::int64_t n;
    std::int64_t before;
    bool samples;
    std::int64_t drafts = 0;
  };
  struct Step {
    std::vector<Work> work;
    models::BatchShape shape;
    std::optional<ObviousTiers::Copy> stores{};
    ObviousWorkerCache::Copies copies{};
    std::int64_t begin = 0, end = 0;  // Ticks; pipelines.
  };
  struct Input {
    Request* arrival = nullptr;
    std::optional<std::uint32_t> abort{};
    std::optional<ObviousTiers::Copy> copied{};
    Request* over = nullptr;
    ObviousPull* pull = nullptr;
    News pull_news = News::kAsked;
    Request* read = nullptr;  // Its blocks were.
    bool news = false;        // Comes with the output of a step.
    int steps = 0;            // Ends of steps that still pass before the scheduler hears of it.
  };

  // ---- the loop -------------------------------------------------------------------------------
  void input(const Input& in, SimTime now) {
    advance_to(now);
    take(in, now);
  }
  void take(const Input& in, SimTime now) {
    inbox_.push_back(in);
    if (stepping_) return;
    const bool unfinished = !running_.empty() || !waiting_.empty() || !loading_.empty();
    const bool polls = unfinished || rules_.idle_polling;
    if (in.news && !polls) return;  // It waits for a request.
    ticks_ = now.ns() * models::kTicksPerNanosecond;
    if (polls) read_news(true);
    read_queue();
    launch();
    tiers_.start_copies(now);
  }
  // A pipeline's first stage looks when a batch comes in, and its last one later: the next batch to
  // come in tells what both have seen.
  int steps_until_heard(SimTime now) const {
    if (!pipelined()) return rules_.async_scheduling ? 2 : 1;
    int inside = 1;
    for (const Step& s : queue_)
      if (!s.work.empty() && s.begin / models::kTicksPerNanosecond <= now.ns()) ++inside;
    return inside;
  }
  SimTime end() const { return SimTime::from_ns(ticks_ / models::kTicksPerNanosecond); }
  void publish() {
    gauges = {.running = std::ssize(running_),
              .waiting = std::ssize(waiting_) + std::ssize(loading_),
              .free = std::ssize(free_)};
  }
  // Reads the news of workers, which come with the output of a step.
  void read_news(bool everything) {
    std::vector<Input> kept;
    for (Input& in : std::exchange(inbox_, {})) {
      if (!in.news || (in.steps-- > 0 && !everything))
        kept.push_back(in);
      else if (in.copied)
        copy_done(*in.copied);
      else if (in.over != nullptr)
        end(in.over);
      else if (in.read != nullptr && in.read->status == Status::kHeld)
        give_up(in.read);
    }
    inbox_ = kept;
  }
  // Then what came in.
  void read_queue() {
    std::vector<Input> kept;
    ending_.clear();
    for (const Input& in : std::exchange(inbox_, {})) {
      if (in.news)
        kept.push_back(in);
      else if (in.arrival != nullptr)
        enqueue(in.arrival);
      else if (in.pull != nullptr)
        apply(in.pull_news, *in.pull);
      else
        remove(requests_[*in.abort].get());
    }
    inbox_ = kept;
    for (Request* r : ending_)
      inbox_.push_back({.over = r, .news = true, .steps = steps_until_heard(SimTime::max()) - 1});
    ending_.clear();
  }
  void apply(News news, ObviousPull& pull) {
    if (news == News::kAsked) tiers_.serve(pull);
    if (news == News::kAnswered) tiers_.answered(pull);
    if (news == News::kFetch) tiers_.say(ObviousTiers::Say::kSend, pull);
    if (news == News::kSent || news == News::kDropped) tiers_.end_serving(pull);
    if (news == News::kSent) tiers_.say(ObviousTiers::Say::kDone, pull);
    if (news == News::kArrived || news == News::kFailed)
      tiers_.end_pull(pull, news == News::kArrived);
  }
  // ---- pipelines ------------------------------------------------------------------------------
  bool pipelined() const { return rules_.pipeline_stages > 1; }
  bool flies(const Request* r, const Step& step) const {
    return std::any_of(step.work.begin(), step.work.end(), [r](const Work& w) { return w.r == r; });
  }
  bool flies(const Request* r) const {
    return std::any_of(queue_.begin(), queue_.end(),
                       [&](const Step& step) { return flies(r, step); });
  }
  bool any_work() const {
    return std::any_of(queue_.begin(), queue_.end(), [](const Step& s) { return !s.work.empty(); });
  }
  // Through one stage after the other, behind the batch before.
  void send_through(Step& step) {
    const std::int64_t stages = rules_.pipeline_stages;
    const std::int64_t all = latency_->step_ticks(step.shape);
    const std::int64_t head = latency_->last_stage_ticks(step.shape);
    step.end = ticks_;
    for (std::int64_t s = 0; s < stages; ++s) {
      std::int64_t& free = stage_free_[static_cast<std::size_t>(s)];
      step.end = std::max(step.end, free);
      if (s == 0) step.begin = step.end;
      step.end += (all - head) * (s + 1) / stages - (all - head) * s / stages;
      if (s + 1 == stages) step.end += head;
      free = step.end;
    }
  }
  // step_with_batch_queue(), again and again until it waits for a batch, or has none.
  void launch_pipelined() {
    stepping_ = false;
    for (;;) {
      const bool requests = !running_.empty() || !waiting_.empty() || !loading_.empty();
      if (requests && std::ssize(queue_) < rules_.pipeline_stages) {
        Step step = any_work() ? schedule() : schedule_something();
        if (!step.work.empty()) send_through(step);
        queue_.push_back(step);
        continue;
      }
      if (!any_work()) {  // Batches without work go round for ever.
        queue_.clear();
        if (inbox_.empty()) return publish();
        read_news(true);
        continue;
      }
      gpu_ = queue_.front();
      queue_.pop_front();
      if (gpu_.work.empty()) continue;
      ticks_ = gpu_.end;
      stepping_ = true;
      return;
    }
  }

  void launch() {
    if (pipelined()) return launch_pipelined();
    if (ahead_) {
      gpu_ = std::exchange(ahead_, std::nullopt).value();
    } else {
      gpu_ = schedule_something();
      while (gpu_.work.empty() && !inbox_.empty()) {  // it looks again and again
        read_news(true);
        gpu_ = schedule_something();
      }
    }
    stepping_ = !gpu_.work.empty();
    if (!stepping_) publish();  // the last round computed nothing
    if (!stepping_) return;
    ticks_ += latency_->step_ticks(gpu_.shape);
    if (workers_.in_use())
      ticks_ += workers_.nanoseconds(gpu_.copies) * models::kTicksPerNanosecond;
    if (!rules_.async_scheduling) return;
    Step next = schedule();
    if (!next.work.empty()) ahead_ = std::move(next);
  }

  Step schedule_something() {
    Step step;
    do step = schedule();  // vLLM's loop goes round at once when a pass only preempted
    while (step.work.empty() && preempted_);
    return step;
  }

  // ---- queues ---------------------------------------------------------------------------------
  void enqueue(Request* r) {
    const std::int64_t longest = r->prompt + r->output;
    const std::int64_t most = ceil_blocks(most_slots(longest - 1));
    if (longest > rules_.max_model_len ||
        most + most_in_windows(most) > rules_.num_gpu_blocks - 1) {
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
    if (r->status == Status::kDone || r->status == Status::kStoring) return;
    if (r->status == Status::kHeld) return give_up(r);
    std::erase(running_, r);
    std::erase(waiting_, r);
    std::erase(loading_, r);
    store_answer(r);
    r->tier.gone = true;
    // Until v0.20 its blocks are kept until all it has stored is copied, which is looked at once
    // the workers know that it is over.
    if (rules_.tiers.settles_at_request_end && tiers_.unsettled(r->tier)) {
      r->status = Status::kStoring;
      ending_.push_back(r);
      return;
    }
    r->tier.over = true;
    tiers_.settle(r->tier);
    free_blocks(r);
    r->status = Status::kDone;
  }
  // A prefill leg is over; its blocks wait for a decode server.
  void keep(Request* r) {
    std::erase(running_, r);
    std::erase(waiting_, r);  // preempted while its token was computed
    store_answer(r);
    r->tier.gone = r->tier.over = true;
    tiers_.settle(r->tier);
    r->status = Status::kHeld;
  }
  void give_up(Request* r) {
    free_blocks(r);
    r->status = Status::kDone;
  }
  // What a request that leaves the running list has in blocks that the scheduler knows.
  void store_answer(Request* r) {
    if (tiers_.in_use())
      tiers_.store_answer(r->tier, r->tokens, r->computed - r->placeholders, r->prompt,
                          r->window_first);
  }
  void end(Request* r) {
    r->tier.over = true;
    tiers_.settle(r->tier);
    end_storing(r);
  }
  void end_storing(Request* r) {
    if (r->tier.stores > 0) return;
    free_blocks(r);
    r->status = Status::kDone;
  }
  void copy_done(const ObviousTiers::Copy& copy) {
    tiers_.copy_done(copy);
    for (const ObviousTiers::Part& part : copy.parts)
      for (const auto& r : requests_)
        if (&r->tier == part.state && r->status == Status::kStoring && r->tier.over)
          end_storing(r.get());
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
      std::int64_t n = r->known() + r->spec + r->placeholders - r->computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      n = std::min({n, budget, rules_.max_model_len - 1 - r->computed});
      if (n <= 0) {
        ++i;
        continue;
      }
      leave_windows(r);
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
      const std::int64_t guesses =
          std::clamp<std::int64_t>(n + r->computed - r->known() - r->placeholders, 0, r->spec);
      r->spec = 0;
      step.work.push_back({r, n, r->computed, false, guesses});
      budget -= n;
      ++i;
    }
    if (!preempted_) admit(step, budget);
    finish_pass(step);
    return step;
  }

  void admit(Step& step, std::int64_t budget) {
    if (!admit_loaded(step, budget)) return;
    std::vector<Request*> skipped;
    while (!waiting_.empty() && budget > 0) {
      if (static_cast<std::int64_t>(running_.size()) == rules_.max_num_seqs) break;
      Request* r = waiting_.front();
      if (flies(r)) {  // Preempted, and a token of it, or the end of a chunk, is still to come.
        skipped.push_back(r);
        waiting_.pop_front();
        continue;
      }
      const Hits hits = lookup(*r);
      std::int64_t computed = std::ssize(hits.blocks) * rules_.block_size;
      std::int64_t loaded = 0;
      if (workers_.in_use()) {
        loaded = workers_.lookup(r->tier, r->tokens, computed);
        computed += loaded;
      } else if (tiers_.in_use()) {
        const std::optional<std::int64_t> more = tiers_.lookup(r->tier, r->tokens, computed);
        if (more && r->pulls && tiers_.wait_for_pull(r->tier, r->id, r->tokens, computed, *more)) {
          skipped.push_back(r);
          waiting_.pop_front();
          continue;
        }
        if (!more || *more > 0) {
          const bool loads = more && load(r, hits, computed + *more);
          if (more && !loads && (!rules_.skip_unallocatable_head || !running_.empty())) break;
          if (!loads) skipped.push_back(r);
          waiting_.pop_front();
          continue;
        }
      }
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
      if (r->cached < 0) r->cached = std::min(computed, r->prompt - (loaded > 0 ? 1 : 0));
      if (loaded > 0) workers_.load(r->tier, r->tokens, computed - loaded);
      r->status = Status::kRunning;
      r->target = r->known();
      running_.push_back(r);
      step.work.push_back({r, n, computed, false});
      budget -= n;
    }
    waiting_.insert(waiting_.begin(), skipped.begin(), skipped.end());
  }

  // Requests whose chunks have arrived come first. False when no other one may be looked at.
  bool admit_loaded(Step& step, std::int64_t& budget) {
    for (std::size_t i = 0; i < loading_.size() && budget > 0;) {
      Request* r = loading_[i];
      if (!r->tier.arrived) {
        ++i;
        continue;
      }
      if (static_cast<std::int64_t>(running_.size()) == rules_.max_num_seqs) return false;
      if (r->tier.loaded > 0) {
        register_blocks(r, r->tier.loaded);
        r->computed = r->tier.loaded - (r->tier.loaded == r->known() ? 1 : 0);
        r->tier.loaded = 0;
      }
      std::int64_t n = r->known() - r->computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      if (!rules_.enable_chunked_prefill && n > budget) return false;
      n = std::min(n, budget);
      if (!allocate(r, n, {}, rules_.reserve_full_isl)) return false;
      loading_.erase(loading_.begin() + static_cast<std::ptrdiff_t>(i));
      r->status = Status::kRunning;
      r->target = r->known();
      running_.push_back(r);
      step.work.push_back({r, n, r->computed, false});
      budget -= n;
    }
    return true;
  }
  // Gives a request all blocks for its first `tokens` tokens, and has them filled.
  bool load(Request* r, const Hits& hits, std::int64_t tokens) {
    const std::int64_t hit = std::ssize(hits.blocks);
    const std::int64_t blocks = ceil_blocks(tokens);
    std::int64_t owed = 0;
    for (const std::vector<Request*>* list : {&running_, &loading_})
      for (const Request* q : *list) {
        if (q->status == Status::kRunning && q->computed >= q->target) continue;
        const std::int64_t all = ceil_blocks(q->target);
        owed += all - q->held();
        owed += rules_.window_groups *
                ((rules_.state_groups ? 1 : all - q->window_first) - q->in_window());
      }
    const std::int64_t whole = rules_.reserve_full_isl ? ceil_blocks(r->known()) : blocks;
    // Of the hit, windows keep what they then still see.
    const std::int64_t window_first = std::max<std::int64_t>(0, blocks - seen_blocks_);
    const std::int64_t first_loaded =
        rules_.state_groups ? blocks - 1 + r->in_window() : std::max(hit, window_first);
    std::int64_t need =
        std::max(whole, blocks) - hit + rules_.window_groups * (blocks - first_loaded);
    std::vector<std::vector<int>> seen = hits.windows;
    for (std::vector<int>& w : seen) {
      const std::int64_t kept = std::max<std::int64_t>(0, hit - window_first);
      w.erase(w.begin(), w.end() - std::min(kept, std::ssize(w)));
      for (const int b : w) need += at(b).references == 0 ? 1 : 0;
    }
    for (const int b : hits.blocks) need += at(b).references == 0 ? 1 : 0;
    if (!running_.empty()) need += rules_.watermark_blocks;
    if (need > std::ssize(free_) - owed) return false;
    if (r->cached < 0) r->cached = std::min(tokens, r->prompt - 1);
    for (const int b : hits.blocks) reference(b, r->blocks);
    for (std::size_t g = 0; g < seen.size(); ++g)
      for (const int b : seen[g]) reference(b, r->windows[g]);
    fill(r->blocks, blocks - hit, false);
    for (std::vector<int>& w : r->windows) fill(w, blocks - first_loaded, true);
    if (!r->windows.empty() && !rules_.state_groups) r->window_first = window_first;
    r->status = Status::kLoading;
    r->target = r->known();
    loading_.push_back(r);
    tiers_.load(r->tier, r->tokens, hit * rules_.block_size, tokens, first_loaded);
    return true;
  }

  void finish_pass(Step& step) {
    // Places for drafts are only good for the pass after that of the drafts.
    for (Request* r : running_)
      if (rules_.async_scheduling &&
          std::none_of(step.work.begin(), step.work.end(), [r](const Work& w) { return w.r == r; }))
        r->spec = 0;
    for (Work& w : step.work) {
      Request* r = w.r;
      r->computed += w.n;
      w.samples = r->computed >= r->known() + r->placeholders;
      if (w.samples && rules_.async_scheduling) r->placeholders += 1 + w.drafts;
      if (w.samples && rules_.async_scheduling) r->spec = rules_.speculation.tokens;
      if (w.before < r->target) {
        ++step.shape.prefill_requests;
        step.shape.prefill_tokens += w.n;
        step.shape.prefill_context += r->computed;
        step.shape.prefill_pairs += r->computed * r->computed - w.before * w.before;
      } else {
        ++step.shape.decode_requests;
        step.shape.draft_tokens += w.n - 1;
        step.shape.decode_context += r->computed;
      }
    }
    for (const Work& w : step.work) {
      const std::int64_t tokens = std::min(w.r->computed, w.r->prompt);
      if (workers_.in_use())
        workers_.store(w.r->tier, w.r->tokens, tokens);
      else if (tiers_.in_use())
        tiers_.store(w.r->tier, w.r->tokens, tokens, w.r->window_first);
    }
    step.stores = tiers_.close_pass();
    step.copies = workers_.close_pass();
    for (const Block& b : blocks_)
      if (b.references > 1 && !b.window) {
        step.shape.shared_context += (b.references - 1) * rules_.block_size;
        step.shape.shared_once += rules_.block_size;
      }
    if (pipelined()) {
      // This batch has its part of the readers, as its part of all contexts is.
      std::int64_t all = 0;
      for (const Request* r : running_) all += r->computed >= r->target ? r->computed : 0;
      const std::int64_t reads = step.shape.shared_context + step.shape.shared_once;
      const std::int64_t own =
          all > 0 ? step.shape.decode_context * reads / all - step.shape.shared_once : 0;
      step.shape.shared_context = std::max<std::int64_t>(own, 0);
    }
    step.shape.shared_context = std::min(step.shape.shared_context, step.shape.decode_context);
  }

  Request* victim() {
    if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return running_.back();
    return *std::max_element(running_.begin(), running_.end(), [](Request* a, Request* b) {
      return std::pair(a->priority, a->id) < std::pair(b->priority, b->id);
    });
  }
  void preempt(Request* r) {
    store_answer(r);
    free_blocks(r);
    tiers_.settle(r->tier);
    r->computed = r->placeholders = r->spec = 0;
    r->status = Status::kPreempted;
    ++r->preemptions;
    waiting_.push_front(r);
    sort_waiting();
  }

  void process(const Step& step, SimTime now) {
    for (const Work& w : step.work) {
      Request* r = w.r;
      if (!w.samples || r->status == Status::kDone || r->status == Status::kStoring ||
          r->status == Status::kHeld)
        continue;
      const std::int64_t good = accept(*r, w.drafts);
      if (r->status == Status::kRunning) r->computed -= w.drafts - good;
      if (r->status == Status::kRunning && rules_.async_scheduling)
        r->placeholders -= w.drafts - good;
      if (r->status == Status::kRunning && !rules_.async_scheduling)
        r->spec = rules_.speculation.tokens;
      std::int64_t fresh = 0;
      for (; fresh < 1 + good && r->known() < r->prompt + r->output; ++fresh) {
        r->tokens.push_back({1'000'000 + r->id, r->known() - r->prompt});
        if (r->known() == r->prompt + 1)
          fates[r->id].first = now;
        else
          gaps.add_nano((now - r->last_token).ns(), 1);
        r->last_token = now;
      }
      if (r->status == Status::kRunning && rules_.async_scheduling) {
        r->placeholders -= fresh;
        register_blocks(r, r->computed - r->placeholders);
      }
      if (r->known() < r->prompt + r->output) continue;
      Fate& f = fates[r->id];
      f.finish = now;
      f.finished = true;
      f.preemptions = r->preemptions;
      f.cached = r->cached;
      if (r->hold)
        keep(r);
      else
        remove(r);
    }
    if (step.stores) tiers_.submit(*step.stores);
    workers_.end_step(step.copies);
    for (Request* r : ending_)
      inbox_.push_back({.over = r, .news = true, .steps = steps_until_heard(SimTime::max())});
    ending_.clear();
  }

  // ---- speculation ----------------------------------------------------------------------------
  // How many of the leading drafts are good: one draw for each place in an answer.
  std::int64_t accept(const Request& r, std::int64_t guesses) {
    if (guesses == 0) return 0;
    const std::uint64_t place = mix64(r.id, static_cast<std::uint64_t>(r.known() - r.prompt));
    const double u = RandomStream(0, Stream::kSpeculation, place).uniform();
    std::int64_t good = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(guesses); ++i)
      good += u < rules_.speculation.acceptance[i] ? 1 : 0;
    ++drafts;
    draft_tokens += guesses;
    accepted += good;
    return good;
  }
  // As many tokens as may come to need slots.
  std::int64_t most_slots(std::int64_t tokens) const {
    const SpeculationRules& s = rules_.speculation;
    if (s.tokens == 0) return tokens;
    return std::min(tokens + 2 * s.tokens + 1 + s.lookahead, rules_.max_model_len);
  }

  // ---- blocks ---------------------------------------------------------------------------------
  std::int64_t ceil_blocks(std::int64_t tokens) const {
    return (tokens + rules_.block_size - 1) / rules_.block_size;
  }
  std::int64_t most_in_windows(std::int64_t blocks) const {
    if (rules_.state_groups) return rules_.window_groups * std::min<std::int64_t>(blocks, 1);
    const std::int64_t step = ceil_blocks(rules_.max_num_batched_tokens);
    return rules_.window_groups * std::min(blocks, seen_blocks_ + step + 1);
  }
  Key key_of(const Request& r, std::int64_t block, std::int64_t group = 0) const {
    return {group, Tokens(r.tokens.begin(), r.tokens.begin() + (block + 1) * rules_.block_size)};
  }
  Hits lookup(const Request& r) const {
    Hits hits;
    if (!rules_.enable_prefix_caching) return hits;
    std::int64_t n = 0;
    while (n < (r.known() - 1) / rules_.block_size && cached_.count(key_of(r, n)) > 0) ++n;
    for (std::int64_t g = 1; g <= rules_.window_groups; ++g) {
      const std::int64_t shorter = window_end(r, g, n);
      if (shorter < n) g = 0;  // the others must agree
      n = shorter;
    }
    if (rules_.speculation.drops_last_hit && n > 0) --n;
    for (std::int64_t b = 0; b < n; ++b) hits.blocks.push_back(cached_.at(key_of(r, b)).front());
    for (std::int64_t g = 1; g <= rules_.window_groups; ++g) {
      hits.windows.emplace_back();
      for (std::int64_t b = std::max<std::int64_t>(0, n - seen_blocks_); b < n; ++b)
        hits.windows.back().push_back(cached_.at(key_of(r, b, g)).front());
    }
    return hits;
  }
  // The longest prefix of at most n blocks that ends with a window of this group.
  std::int64_t window_end(const Request& r, std::int64_t group, std::int64_t n) const {
    for (; n > 0; --n) {
      bool all = true;
      for (std::int64_t b = std::max<std::int64_t>(0, n - seen_blocks_); b < n; ++b)
        all = all && cached_.count(key_of(r, b, group)) > 0;
      if (all) return n;
    }
    return 0;
  }
  void reference(int b, std::vector<int>& owned) {
    if (at(b).references++ == 0) free_.remove(b);
    owned.push_back(b);
  }
  void fill(std::vector<int>& owned, std::int64_t n, bool window) {
    for (std::int64_t i = 0; i < n; ++i) {
      const int b = free_.front();
      free_.pop_front();
      evict(b);
      at(b).references = 1;
      at(b).window = window;
      owned.push_back(b);
    }
  }
  bool allocate(Request* r, std::int64_t n, const Hits& hits, bool full_fit) {
    const auto free = static_cast<std::int64_t>(free_.size());
    const auto hit = static_cast<std::int64_t>(hits.blocks.size());
    std::int64_t unlinked = 0, window_hits = 0;
    for (const int b : hits.blocks) unlinked += at(b).references == 0 ? 1 : 0;
    for (const std::vector<int>& w : hits.windows)
      for (const int b : w) {
        unlinked += at(b).references == 0 ? 1 : 0;
        ++window_hits;
      }
    const bool running = r->status == Status::kRunning;
    const std::int64_t watermark = !running && !running_.empty() ? rules_.watermark_blocks : 0;
    const std::int64_t owned = r->held() + hit;
    std::int64_t slots = r->computed + n;
    if (running) slots = std::min(slots + rules_.speculation.lookahead, rules_.max_model_len);
    const std::int64_t fresh = std::max<std::int64_t>(0, ceil_blocks(slots) - owned);
    const std::int64_t wanted = full_fit ? std::max(fresh, ceil_blocks(r->known()) - owned) : fresh;
    // While it runs, what it lacks; before, what it may come to hold.
    std::int64_t in_window =
        running ? ceil_blocks(r->computed + n) - r->window_first - r->in_window() : fresh;
    if (rules_.state_groups) in_window = std::min(fresh, 1 - r->in_window());
    std::int64_t in_windows = rules_.window_groups * in_window;
    if (!running) {
      const std::int64_t room = most_in_windows(1 << 20) - rules_.window_groups * r->in_window();
      in_windows =
          std::max(in_windows, std::min(rules_.window_groups * wanted, room) - window_hits);
    }
    if (wanted + in_windows + unlinked + watermark > free) return false;
    for (const int b : hits.blocks) reference(b, r->blocks);
    for (std::size_t g = 0; g < hits.windows.size() && hit > 0; ++g) {
      for (const int b : hits.windows[g]) reference(b, r->windows[g]);
      r->window_first = hit - std::ssize(hits.windows[g]);
    }
    fill(r->blocks, fresh, false);
    for (std::vector<int>& w : r->windows) fill(w, in_window, true);
    register_blocks(r, std::min(r->computed + n, r->known()));
    return true;
  }
  // Gives up blocks that the next token does not see.
  void leave_windows(Request* r) {
    if (rules_.state_groups) return;
    const std::int64_t first =
        std::max<std::int64_t>(0, r->computed - rules_.window_tokens + 1) / rules_.block_size;
    const std::int64_t n = std::min(first - r->window_first, r->in_window());
    if (n <= 0) return;
    for (std::vector<int>& w : r->windows) {
      std::vector<int> front(w.begin(), w.begin() + n);
      w.erase(w.begin(), w.begin() + n);
      release(front);
    }
    r->window_first += n;
  }
  void register_blocks(Request* r, std::int64_t tokens) {
    if (!rules_.enable_prefix_caching) return;
    for (std::int64_t i = 0; i < tokens / rules_.block_size; ++i) {
      give_key(r->blocks[static_cast<std::size_t>(i)], key_of(*r, i));
      for (std::size_t g = 0; g < r->windows.size() && i >= r->window_first; ++g)
        give_key(r->windows[g][static_cast<std::size_t>(i - r->window_first)],
                 key_of(*r, i, static_cast<std::int64_t>(g) + 1));
    }
  }
  void give_key(int b, const Key& key) {
    if (at(b).keyed()) return;
    at(b).key = key;
    cached_[key].push_back(b);
  }
  void evict(int b) {
    if (!at(b).keyed()) return;
    ++hash_evictions;
    std::vector<int>& twins = cached_[at(b).key];
    std::erase(twins, b);
    if (twins.empty()) cached_.erase(at(b).key);
    at(b).key = {};
  }
  void release(std::vector<int>& owned) {
    for (std::size_t i = owned.size(); i-- > 0;) {
      const int b = owned[i];
      if (--at(b).references > 0) continue;
      if (rules_.free_queue == FreeQueue::kUnhashedFirst && !at(b).keyed())
        free_.push_front(b);
      else
        free_.push_back(b);
    }
    owned.clear();
  }
  void free_blocks(Request* r) {
    release(r->blocks);
    for (std::vector<int>& w : r->windows) release(w);
    r->window_first = 0;
  }
  Block& at(int b) { return blocks_[static_cast<std::size_t>(b)]; }
  const Block& at(int b) const { return blocks_[static_cast<std::size_t>(b)]; }

  EngineRules rules_;
  std::shared_ptr<const models::LatencyModel> latency_;
  ObviousTiers tiers_;
  ObviousWorkerCache workers_;  // In the place of tiers_, where it is in use.
  std::int64_t seen_blocks_;    // Blocks that let the next token see its whole window.
  std::vector<std::unique_ptr<Request>> requests_;
  std::deque<Request*> waiting_;
  std::vector<Request*> running_;
  std::vector<Request*> loading_;  // Outside the running list while their chunks are copied.
  std::vector<Request*> ending_;   // Over, and the workers do not know yet.
  std::vector<Block> blocks_;
  std::list<int> free_;
  std::map<Key, std::vector<int>> cached_;
  std::vector<Input> inbox_;
  Step gpu_;
  std::optional<Step> ahead_;
  std::deque<Step> queue_;                // Pipelines: batches behind gpu_, oldest first.
  std::vector<std::int64_t> stage_free_;  // When each stage is done with its last batch, ticks.
  bool stepping_ = false;
  bool preempted_ = false;
  std::int64_t ticks_ = 0;
};

}  // namespace routesim::sim::testing
