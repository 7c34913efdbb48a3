// Users who send requests one after another: single ones, pools of prompts, and conversations.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "workloads/load_generator.h"
#include "workloads/prompts.h"

namespace routesim::sim::testing {

struct SwarmLoadOptions {
  std::int64_t users = 10;
  std::int64_t turns = 3;             ///< Requests per user.
  std::int64_t stages = 1;            ///< Users are split over stages that run one after another.
  bool conversation = false;          ///< Each turn's prompt continues the one before.
  double spread_ms = 0;               ///< First requests are spread over this long.
  double think_ms = 0;                ///< Mean pause between a user's requests.
  std::int64_t shared_texts = 3;      ///< Heads that several prompts begin with.
  std::int64_t pool_prompts = 0;      ///< > 0: prompts come from a pool of that size.
  std::int64_t head = 40, tail = 40;  ///< Longest head and tail, tokens.
  std::int64_t output = 30;           ///< Longest answer.
  double early_end = 0;               ///< Share of answers that end before max_tokens.
  double timeouts = 0;                ///< Share of requests with a short patience.
  double timeout_ms = 50;
  std::uint64_t first_content = 0;  ///< Texts of its own are numbered from here.
};

class SwarmLoad final : public workloads::LoadGenerator {
 public:
  SwarmLoad(const SwarmLoadOptions& options, std::uint64_t seed)
      : options_(options), random_(seed, Stream::kTest, 7), left_(options.users) {
    for (std::int64_t s = 0; s < options.stages; ++s)
      infos_.push_back({.name = std::to_string(s), .requests = -1});
    for (std::int64_t u = 0; u < options.users; ++u) {
      User user;
      user.stage = u * options.stages / options.users;
      user.delay = Duration::from_seconds(random_.uniform() * options.spread_ms * 1e-3);
      users_.push_back(std::move(user));
      ++open_[static_cast<std::size_t>(users_.back().stage)];
    }
    start_stage(SimTime::zero());
  }

  const std::vector<workloads::StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override {
    SimTime next = SimTime::max();
    for (const User& u : users_) next = std::min(next, u.next);
    return next;
  }
  void advance(SimTime now, std::vector<workloads::Request>& out) override {
    for (std::size_t u = 0; u < users_.size(); ++u)
      if (users_[u].next <= now) out.push_back(request(u, now));
  }
  void on_completed(const workloads::Request& r, workloads::Outcome outcome, SimTime now) override {
    User& u = users_[user_of_[r.id.value()]];
    if (options_.conversation && outcome == workloads::Outcome::kSuccess) {
      u.history = r.prompt->segments;
      u.history.push_back({.content = r.output_content, .offset = 0, .length = r.output_tokens});
    }
    if (++u.turn < options_.turns) {
      const double pause = options_.think_ms > 0 ? random_.exponential(options_.think_ms) : 0;
      u.next = now + Duration::from_seconds(pause * 1e-3);
      return;
    }
    --left_;
    if (--open_[static_cast<std::size_t>(u.stage)] == 0 && ++stage_ < options_.stages)
      start_stage(now);
  }
  bool finished() const override { return left_ == 0; }

 private:
  struct User {
    std::int64_t stage = 0, turn = 0;
    Duration delay;
    SimTime next = SimTime::max();
    std::vector<workloads::Segment> history;
  };

  void start_stage(SimTime now) {
    for (User& u : users_)
      if (u.stage == stage_) u.next = now + u.delay;
  }
  std::int64_t up_to(std::int64_t n) {
    return 1 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
  }

  std::shared_ptr<const workloads::Prompt> fresh_prompt(const User& u, bool reusable) {
    workloads::PromptBuilder builder;
    if (u.history.empty())
      builder.append(1 + random_.below(static_cast<std::uint64_t>(options_.shared_texts)),
                     up_to(options_.head));
    else
      builder.append(u.history);
    if (random_.below(4) != 0)
      builder.append(1000 + options_.first_content + next_content_++, up_to(options_.tail));
    return std::move(builder).build(next_prompt_++, reusable);
  }

  workloads::Request request(std::size_t index, SimTime now) {
    User& u = users_[index];
    u.next = SimTime::max();
    workloads::Request r;
    r.id = RequestId(next_id_++);
    user_of_[r.id.value()] = index;
    r.stage = StageId(static_cast<std::uint32_t>(u.stage));
    r.due = now;
    if (options_.pool_prompts > 0) {
      if (std::ssize(pool_) < options_.pool_prompts) pool_.push_back(fresh_prompt({}, true));
      r.prompt = pool_[random_.below(pool_.size())];
    } else {
      r.prompt = fresh_prompt(u, false);
    }
    r.output_tokens = up_to(options_.output);
    r.max_tokens = r.output_tokens;
    if (random_.uniform() < options_.early_end) r.max_tokens += up_to(3);
    r.output_content = (std::uint64_t{1} << 40) + options_.first_content + r.id.value();
    if (options_.conversation) r.session = index + 1;
    r.priority = static_cast<std::int32_t>(random_.below(3));
    if (random_.uniform() < options_.timeouts)
      r.timeout = Duration::from_seconds(random_.uniform_open() * options_.timeout_ms * 1e-3);
    return r;
  }

  SwarmLoadOptions options_;
  RandomStream random_;
  std::vector<workloads::StageInfo> infos_;
  std::vector<User> users_;
  std::vector<std::int64_t> open_ = std::vector<std::int64_t>(8, 0);
  std::int64_t stage_ = 0;
  std::int64_t left_;
  std::unordered_map<std::uint64_t, std::size_t> user_of_;
  std::vector<std::shared_ptr<const workloads::Prompt>> pool_;
  std::uint64_t next_prompt_ = 0, next_content_ = 0;
  std::uint32_t next_id_ = 0;
};

}  // namespace routesim::sim::testing
