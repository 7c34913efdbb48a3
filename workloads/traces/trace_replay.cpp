#include "workloads/traces/trace_replay.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "workloads/prompts.h"
#include "workloads/timers.h"

namespace routesim::workloads {
namespace {

constexpr std::string_view kRecordTimes = "a trace has the times of its records";

/// Bounds of the memory for prompts that may come again: some 50 MB for those seen, and 200 MB for
/// those kept and their block keys.
constexpr std::size_t kMostSeen = 1'000'000;
constexpr std::size_t kMostKeptSegments = 4'000'000;

/// Whether the record's prompt continues its session: nothing else tells what it shares.
bool has_history(const TraceRecord& record, SessionHistory rule) {
  return rule != SessionHistory::kNone && record.session != 0 && record.hash_ids.empty();
}

Duration scaled(Duration d, double by) {
  return by == 1 ? d : within_a_century(d.to_seconds() * by);
}

/// Appends tokens [from, from + most) of `texts`. Returns how many there were.
std::int64_t append_part(PromptBuilder& prompt, const std::vector<Segment>& texts,
                         std::int64_t from, std::int64_t most) {
  std::int64_t taken = 0;
  for (Segment s : texts) {
    const std::int64_t skipped = std::min(from, s.length);
    from -= skipped;
    s.offset += skipped;
    s.length = std::min(s.length - skipped, most - taken);
    if (s.length <= 0) continue;
    prompt.append(s);
    taken += s.length;
  }
  return taken;
}

/// The tokens of each session so far: its latest prompt and the answer. Grows with the sessions.
class Histories {
 public:
  explicit Histories(SessionHistory rule) : rule_(rule) {}

  /// The tokens before this turn; null where the record has no history.
  const std::vector<Segment>* of(const TraceRecord& record) {
    return has_history(record, rule_) ? &texts_[record.session] : nullptr;
  }

  /// The turn's record with the length of its whole prompt.
  TraceRecord whole(const TraceRecord& record) {
    TraceRecord out = record;
    if (rule_ != SessionHistory::kAdded) return out;
    if (const std::vector<Segment>* before = of(record)) out.input_tokens += tokens_in(*before);
    return out;
  }

  void extend(const TraceRecord& record, const Request& turn) {
    if (has_history(record, rule_)) texts_[record.session] = with_answer(turn);
  }

 private:
  SessionHistory rule_;
  std::unordered_map<std::uint64_t, std::vector<Segment>> texts_;  // Looked up, never iterated.
};

/// Sends records at their times; a record with a `delay` waits for its session's previous turn.
class TraceReplay final : public LoadGenerator {
 public:
  TraceReplay(const TraceReplayConfig& config, const WorkloadOptions& options,
              std::unique_ptr<TraceReader> reader, StageInfo info, bool has_delays)
      : config_(config),
        reader_(std::move(reader)),
        prompts_(options.seed, config.hash_block_tokens),
        infos_{std::move(info)},
        permits_(config.max_concurrency > 0 ? config.max_concurrency
                                            : std::numeric_limits<std::int64_t>::max()),
        timeout_(config.timeout_s > 0 ? Duration::from_seconds(config.timeout_s) : Duration::max()),
        has_delays_(has_delays),
        histories_(config.history) {
    infos_.front().in_flight_cap = config.max_concurrency;
    read_ahead();
  }

  const std::vector<StageInfo>& stages() const override { return infos_; }

  SimTime next_action() const override {
    if (in_flight_ >= permits_) return SimTime::max();
    SimTime next = SimTime::max();
    if (has_record_) next = due_of(record_);
    next = std::min(next, turns_.next_at());
    return next == SimTime::max() ? next : std::max(next, now_);
  }

  void advance(SimTime now, std::vector<Request>& out) override {
    now_ = now;
    while (in_flight_ < permits_) {
      const bool record_due = has_record_ && due_of(record_) <= now;
      const bool turn_due = turns_.is_due(now);
      if (turn_due && (!record_due || turns_.next_at() <= due_of(record_))) {
        const auto turn = turns_.take();
        send(*turn.what, turn.at, out);
      } else if (record_due) {
        send(record_, due_of(record_), out);
        read_ahead();
      } else {
        return;
      }
    }
  }

  void on_completed(const Request& request, Outcome, SimTime now) override {
    ROUTESIM_CHECK(in_flight_ > 0, "completion of a request that is not in flight");
    now_ = std::max(now_, now);
    --in_flight_;
    if (!has_delays_ || request.session == 0) return;
    const auto found = sessions_.find(request.session);
    ROUTESIM_CHECK(found != sessions_.end(), "a session without an entry");
    Session& session = found->second;
    session.last_done = now;
    if (--session.in_flight == 0) release_turn(session);
  }

  bool finished() const override {
    return !has_record_ && turns_.empty() && in_flight_ == 0 && waiting_turns_ == 0;
  }

 private:
  struct Session {
    std::int64_t in_flight = 0;
    SimTime last_done;
    std::deque<std::shared_ptr<const TraceRecord>> waiting;
  };

  SimTime due_of(const TraceRecord& record) const {
    return SimTime::zero() + scaled(record.at, config_.time_scale);
  }

  /// Reads to the next record with a time of its own; turns on the way join their sessions.
  void read_ahead() {
    has_record_ = false;
    while (config_.max_requests == 0 || read_ < config_.max_requests) {
      if (!reader_->next(record_)) return;
      ++read_;
      if (!record_.delay) {
        has_record_ = true;
        if (has_delays_ && record_.session != 0) ++sessions_[record_.session].in_flight;
        return;
      }
      Session& session = sessions_[record_.session];
      session.waiting.push_back(std::make_shared<const TraceRecord>(record_));
      ++waiting_turns_;
      if (session.in_flight == 0) release_turn(session);
    }
  }

  /// The next turn leaves its delay after the previous one ended; at once if that is past, which
  /// happens when a turn stands far behind its session's earlier ones in the file.
  void release_turn(Session& session) {
    if (session.waiting.empty()) return;
    std::shared_ptr<const TraceRecord> record = std::move(session.waiting.front());
    session.waiting.pop_front();
    --waiting_turns_;
    ++session.in_flight;
    const SimTime due =
        std::max(session.last_done + scaled(*record->delay, config_.time_scale), now_);
    turns_.add(due, std::move(record));
  }

  /// A prompt that comes for the second time is kept, and is the same object from then on, so that
  /// its block keys are computed once.
  std::shared_ptr<const Prompt> prompt_of(const TraceRecord& record) {
    const std::optional<std::uint64_t> signature = prompts_.signature(record, config_.hash_length);
    if (!signature)
      return prompts_.prompt(histories_.whole(record), config_.hash_length, next_id_, false,
                             histories_.of(record));
    const auto known = pool_.find(*signature);
    if (known != pool_.end() && known->second != nullptr) return known->second;
    const bool keep = known != pool_.end() && kept_segments_ < kMostKeptSegments;
    std::shared_ptr<const Prompt> prompt =
        prompts_.prompt(record, config_.hash_length, next_id_, keep);
    if (keep) {
      known->second = prompt;
      kept_segments_ += prompt->segments.size();
    } else if (known == pool_.end() && pool_.size() < kMostSeen) {
      pool_.emplace(*signature, nullptr);
    }
    return prompt;
  }

  void send(const TraceRecord& record, SimTime due, std::vector<Request>& out) {
    Request request;
    request.id = RequestId(next_id_);
    request.stage = StageId(0);
    request.due = due;
    request.timeout = timeout_;
    request.session = record.session;
    request.prompt = prompt_of(record);
    prompts_.fill_answer(record, next_id_, request);
    histories_.extend(record, request);
    ++next_id_;
    ++in_flight_;
    out.push_back(std::move(request));
  }

  TraceReplayConfig config_;
  std::unique_ptr<TraceReader> reader_;
  TracePrompts prompts_;
  std::vector<StageInfo> infos_;
  std::int64_t permits_;
  Duration timeout_;
  bool has_delays_;  // Sessions are tracked only then: otherwise memory stays flat.
  SimTime now_;
  TraceRecord record_;  // The next record with a time of its own, when has_record_.
  bool has_record_ = false;
  std::int64_t read_ = 0;
  std::int64_t in_flight_ = 0;
  std::uint64_t next_id_ = 0;
  std::unordered_map<std::uint64_t, Session> sessions_;  // Looked up, never iterated.
  Timers<std::shared_ptr<const TraceRecord>> turns_;     // Delayed turns of sessions.
  std::int64_t waiting_turns_ = 0;
  Histories histories_;
  /// Prompts by their signatures; null for those seen once.
  std::unordered_map<std::uint64_t, std::shared_ptr<const Prompt>> pool_;
  std::size_t kept_segments_ = 0;
};

}  // namespace

TracePrompts::TracePrompts(std::uint64_t seed, std::int64_t block_tokens)
    : seed_(seed), block_tokens_(block_tokens) {}

std::int64_t TracePrompts::block_of(const TraceRecord& record) const {
  return record.id_tokens > 0 ? record.id_tokens : block_tokens_;
}

std::string TracePrompts::problem(const TraceRecord& record, HashLengthRule rule) const {
  // Ids made of texts may cover more or less than the length that the file states.
  if (record.hash_ids.empty() || record.id_tokens > 0 || rule == HashLengthRule::kTruncateToIds)
    return {};
  const auto ids = static_cast<std::int64_t>(record.hash_ids.size());
  const std::int64_t whole = record.input_tokens / block_tokens_;
  const std::int64_t with_partial = (record.input_tokens + block_tokens_ - 1) / block_tokens_;
  if (ids == whole || ids == with_partial) return {};
  return std::to_string(record.input_tokens) + " input tokens are " + std::to_string(with_partial) +
         " blocks of " + std::to_string(block_tokens_) + ", but there are " + std::to_string(ids) +
         " hash ids";
}

std::optional<std::uint64_t> TracePrompts::signature(const TraceRecord& record,
                                                     HashLengthRule rule) const {
  const std::int64_t covered = std::ssize(record.hash_ids) * block_of(record);
  if (record.hash_ids.empty()) return std::nullopt;
  if (covered < record.input_tokens && rule == HashLengthRule::kStrict) return std::nullopt;
  auto out = static_cast<std::uint64_t>(std::min(covered, record.input_tokens));
  for (const std::uint64_t id : record.hash_ids) out = mix64(out, id);
  return out;
}

void TracePrompts::fill_answer(const TraceRecord& record, std::uint64_t number,
                               Request& request) const {
  request.max_tokens = std::max<std::int64_t>(record.output_tokens, 1);
  request.output_tokens = request.max_tokens;
  request.output_content = content_id(seed_, ContentKind::kAnswer, number);
}

std::shared_ptr<const Prompt> TracePrompts::prompt(const TraceRecord& record, HashLengthRule rule,
                                                   std::uint64_t number, bool reusable,
                                                   const std::vector<Segment>* history) const {
  PromptBuilder prompt;
  prompt.reserve(record.hash_ids.size() + 1);
  std::int64_t left = record.input_tokens;
  for (const std::uint64_t id : record.hash_ids) {
    const std::int64_t length = std::min(left, block_of(record));
    prompt.append(content_id(seed_, ContentKind::kTraceBlock, id, record.id_tokens > 0 ? 1 : 0),
                  length);
    left -= length;
  }
  if (record.hash_ids.empty()) {
    const std::int64_t shared = record.prefix_group == 0 ? 0 : std::min(record.prefix_tokens, left);
    prompt.append(content_id(seed_, ContentKind::kTracePrefix, record.prefix_group), shared);
    left -= shared;
    if (history != nullptr) left -= append_part(prompt, *history, shared, left);
  }
  // Tokens without an id are the request's own text; vLLM's reader leaves them out.
  if (record.hash_ids.empty() || rule == HashLengthRule::kStrict)
    prompt.append(content_id(seed_, ContentKind::kUnique, number), left);
  return std::move(prompt).build(number, reusable);
}

TraceSummary TraceSurvey::read(const TraceOpener& open, const TraceRules& rules) {
  const std::lock_guard lock(mutex_);
  if (asked_ == rules) return summary_;
  asked_ = rules;
  summary_ = {};
  TraceSummary& s = summary_;
  const TracePrompts prompts(0, rules.block_tokens);
  const std::unique_ptr<TraceReader> reader = open();
  std::unordered_map<std::uint64_t, std::int64_t> last_prompt;  // Tokens, by session.
  TraceRecord record;
  while ((rules.max_requests == 0 || s.records < rules.max_requests) && reader->next(record)) {
    ++s.records;
    if (!record.delay) s.last = record.at;
    s.has_delays = s.has_delays || record.delay.has_value();
    if (record.input_tokens == 0 && s.empty_prompts++ == 0)
      s.first_empty = {reader->file(), static_cast<int>(record.line), record.input_column};
    if (rules.history == SessionHistory::kIncluded && has_history(record, rules.history)) {
      const auto [turn, is_first] = last_prompt.try_emplace(record.session, 0);
      s.later_turns += !is_first;
      s.short_turns += record.input_tokens < turn->second;
      turn->second = record.input_tokens;
    }
    std::string problem = prompts.problem(record, rules.hash_length);
    if (problem.empty()) continue;
    s.found.error({reader->file(), static_cast<int>(record.line), record.ids_column}, "hash_ids",
                  std::move(problem), "set hash_block_tokens to the tokens one id stands for");
    return s;
  }
  for (const Diagnostic& d : reader->diagnostics().items()) s.found.add(d);
  return s;
}

TraceSummary survey_trace(const LoadInputs& inputs, const TraceRules& rules, const std::string& key,
                          Diagnostics& out) {
  TraceSurvey once;
  TraceSurvey& survey = inputs.survey != nullptr ? *inputs.survey : once;
  TraceSummary summary = survey.read(inputs.trace, rules);
  const bool bad_ids =
      summary.found.has_errors() && summary.found.items().front().path == "hash_ids";
  if (summary.empty_prompts > 0 && !bad_ids)
    out.warning(summary.first_empty, "",
                "a prompt of 0 tokens, which vLLM refuses: it is sent with 1" +
                    (summary.empty_prompts > 1
                         ? ", as " + std::to_string(summary.empty_prompts - 1) + " more are"
                         : std::string()),
                "leave such records out");
  if (2 * summary.short_turns > summary.later_turns)
    out.warning({}, key,
                std::to_string(summary.short_turns) + " of " + std::to_string(summary.later_turns) +
                    " later turns have a shorter prompt than the turn before: their lengths do not "
                    "seem to count the history",
                "set history: added if a length counts the turn's own text only, history: none if "
                "turns share nothing");
  for (const Diagnostic& d : summary.found.items()) out.add(d);
  if (summary.records == 0 && !out.has_errors()) out.error({}, key, "the trace has no records");
  return summary;
}

std::unique_ptr<ArrivalStream> trace_arrivals(const TraceOpener& open, double scale,
                                              std::int64_t most) {
  std::shared_ptr<TraceReader> reader = open();
  return callback_arrivals(
      [reader, record = TraceRecord(), left = most, scale](Duration& due) mutable {
        if (left == 0 || !reader->next(record)) return false;
        --left;
        due = scaled(record.at, scale);
        return true;
      });
}

void describe(Describer& d, TraceReplayConfig& t) {
  field(d, {"time_scale", "Multiplies the trace's times; 0.5 plays twice as fast."}, t.time_scale,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d, {"max_requests", "Stop after this many requests; 0 plays all."}, t.max_requests,
        IntRange{0, 4'000'000'000});
  field(d, {"max_concurrency", "Requests the client keeps in flight; 0 is no limit."},
        t.max_concurrency, IntRange{0, 1'000'000'000});
  field(d, {"hash_block_tokens", "Tokens one hash id stands for."}, t.hash_block_tokens,
        IntRange{1, 1'000'000});
  field(d, {"hash_length", "What to do when hash ids and the input length disagree."},
        t.hash_length);
  field(
      d,
      {"history",
       "What a later turn's input length counts, where rows name a session and nothing tells what "
       "they share: the earlier turns and answers too (included), its own text only (added), or "
       "turns share nothing (none)."},
      t.history);
  field(d, {"timeout_s", "Seconds after which the client gives up; 0 is never."}, t.timeout_s,
        RealRange{.min = 0, .max = 1e9});
}

std::unique_ptr<LoadGenerator> make_load_generator(const TraceReplayConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  if (!inputs.trace) {
    diagnostics.error({}, "trace", "a trace replay needs a trace");
    return nullptr;
  }
  Diagnostics found;
  // Read once before the run: a broken line stops the user now, not after an hour.
  const TraceSummary summary = survey_trace(inputs,
                                            {.block_tokens = config.hash_block_tokens,
                                             .hash_length = config.hash_length,
                                             .max_requests = config.max_requests,
                                             .history = config.history},
                                            "trace", found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return nullptr;
  StageInfo info;
  info.name = "0";
  info.requests = summary.records;
  info.duration_s = summary.last.to_seconds() * config.time_scale;
  if (info.duration_s > 0)
    info.requested_rate = static_cast<double>(summary.records) / info.duration_s;
  return std::make_unique<TraceReplay>(config, options, inputs.trace(), std::move(info),
                                       summary.has_delays);
}

void describe(Describer& d, TraceWorkload& t) {
  field(d, {"file", "Trace file, relative to the scenario.", true}, t.file);
  field(
      d,
      {"format",
       "mooncake, timed_trace, azure, burstgpt, vidur, csv, jsonl, litellm, otlp or vllm-log; told "
       "from the file when absent."},
      t.format);
  field(d, {"columns", "Names of the columns (or keys) of a csv or jsonl trace."}, t.columns);
  field(d, {"missing", "Lengths that a vllm-log does not have."}, t.missing);
  describe(d, t.replay);
}

LoadTraits traits_of(const TraceWorkload&) { return {.is_trace = true, .own_times = kRecordTimes}; }

std::vector<LoadFile> files_of(const TraceWorkload& t) {
  if (t.file.empty()) return {};
  return {{.kind = LoadFile::Kind::kTrace,
           .key = "trace.file",
           .path = t.file,
           .format = t.format,
           .format_key = "trace.format",
           .columns = t.columns ? &*t.columns : nullptr,
           .columns_key = "trace.columns",
           .missing = t.missing ? &*t.missing : nullptr,
           .missing_key = "trace.missing"}};
}

std::string scale_rates(TraceWorkload& t, double by) {
  t.replay.time_scale /= by;
  return {};
}

std::string hold_rate(TraceWorkload&, double, double) { return std::string(kRecordTimes); }

std::unique_ptr<LoadGenerator> make_load_generator(const TraceWorkload& t,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  return make_load_generator(t.replay, options, inputs, diagnostics);
}

}  // namespace routesim::workloads
