#include <array>

#include "base/text.h"
#include "tools/results/json_writer.h"
#include "tools/results/text_table.h"
#include "tools/study/explain/hit_study.h"

namespace routesim::tools {

namespace {

struct Rung {
  std::string_view key, title;
  std::int64_t HitLadder::*tokens;
};
constexpr std::array<Rung, 5> kRungs = {
    {{"infinite_cache", "infinite cache", &HitLadder::infinite},
     {"one_cache", "one cache of the fleet's size", &HitLadder::one_cache},
     {"best_routing", "best endpoint for each request", &HitLadder::best_routing},
     {"predicted", "predicted for the pick", &HitLadder::predicted},
     {"delivered", "delivered by the engines", &HitLadder::delivered}}};

struct Cause {
  std::string_view key, title;
  std::int64_t HitLosses::*tokens;
};
constexpr std::array<Cause, 7> kCauses = {
    {{"capacity", "capacity: no cache of this size could keep it", &HitLosses::capacity},
     {"split", "split: copies and evictions in separate caches", &HitLosses::split},
     {"stale_index", "stale index: the router did not see it", &HitLosses::stale},
     {"load_spread", "load spread: the router knew and preferred another", &HitLosses::load},
     {"tie", "tie: an endpoint that held more scored no less", &HitLosses::tie},
     {"blind", "blind: nothing in the router looks at caches", &HitLosses::blind},
     {"evicted_waiting", "evicted between routing and the engine", &HitLosses::waiting}}};

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::string render_hits_text(const HitStudy& study) {
  const HitLadder& l = study.ladder;
  std::string out = "variant " + printable(study.variant) + ", " + std::to_string(study.requests) +
                    " requests, " + std::to_string(l.prompt) + " prompt tokens\n\n";
  TextTable ladder(1);
  ladder.add_row({"hit-rate ladder", "tokens", "of the prompt, %", "lost, %"});
  std::int64_t above = l.infinite;
  for (const Rung& rung : kRungs) {
    const std::int64_t tokens = l.*rung.tokens;
    ladder.add_row({std::string(rung.title), std::to_string(tokens),
                    fixed_text(100 * share(tokens, l.prompt), 2),
                    fixed_text(100 * share(above - tokens, l.prompt), 2)});
    above = tokens;
  }
  out += ladder.str() + "\n";
  TextTable causes(1);
  const std::int64_t lost = l.infinite - l.delivered;
  causes.add_row({"where lost hits went", "tokens", "of the lost, %"});
  for (const Cause& cause : kCauses)
    causes.add_row({std::string(cause.title), std::to_string(study.losses.*cause.tokens),
                    fixed_text(100 * share(study.losses.*cause.tokens, lost), 1)});
  causes.add_row({"all", std::to_string(lost), lost > 0 ? "100.0" : "0.0"});
  out += causes.str();
  out += "\nthe index promised " + std::to_string(study.promised_in_vain) +
         " tokens that were not there, and missed " + std::to_string(study.not_promised) +
         " that were\n";
  return out;
}

std::string render_hits_json(const HitStudy& study) {
  JsonWriter json;
  json.begin_object().member("scenario", study.scenario).member("variant", study.variant);
  json.member("seed", study.seed).member("requests", study.requests);
  json.member("prompt_tokens", study.ladder.prompt).key("ladder").begin_object();
  for (const Rung& rung : kRungs) json.member(rung.key, study.ladder.*rung.tokens);
  json.end_object().key("lost").begin_object();
  for (const Cause& cause : kCauses) json.member(cause.key, study.losses.*cause.tokens);
  json.end_object().member("promised_in_vain", study.promised_in_vain);
  json.member("not_promised", study.not_promised).end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
