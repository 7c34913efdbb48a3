#include "sim/custom/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/run_error.h"
#include "base/text.h"
#include "sim/custom/call_guard.h"
#include "sim/custom/routesim_policy.h"
#include "sim/custom/score_sheet.h"
#include "sim/custom/server_view.h"

namespace routesim::sim {
namespace {

/// The functions of a shared object, which stays loaded: its threads and handlers may still run.
struct Functions {
  decltype(&routesim_policy_abi) abi = nullptr;
  decltype(&routesim_policy_create) create = nullptr;
  decltype(&routesim_policy_destroy) destroy = nullptr;
  decltype(&routesim_policy_score) score = nullptr;
  decltype(&routesim_policy_inputs) inputs = nullptr;
  decltype(&routesim_policy_on_sent) on_sent = nullptr;
  decltype(&routesim_policy_on_first_token) on_first_token = nullptr;
  decltype(&routesim_policy_on_completed) on_completed = nullptr;
};

template <class F>
bool find(void* object, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(object, symbol));
  return function != nullptr;
}

struct Loaded {
  Functions functions;
  std::string fault;
};

/// A crash, a hang or an exit() meanwhile names the library.
Loaded load(const WatchedCode& code) {
  CallGuard::watch();
  const CallGuard guard(code, "loaded");
  const std::string& path = code.name;
  Loaded out;
  // A name without a slash would be searched for in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    out.fault = std::string("cannot be loaded: ") + dlerror();
    return out;
  }
  Functions& f = out.functions;
  const auto need = [&](const char* symbol, auto& function) {
    if (!find(object, symbol, function) && out.fault.empty())
      out.fault = std::string("exports no ") + symbol + "()";
  };
  need("routesim_policy_abi", f.abi);
  need("routesim_policy_create", f.create);
  need("routesim_policy_destroy", f.destroy);
  need("routesim_policy_score", f.score);
  if (!out.fault.empty()) return out;
  if (const std::uint32_t version = f.abi(); version != ROUTESIM_POLICY_ABI) {
    out.fault = "has interface version " + std::to_string(version) + ", and this routesim has " +
                std::to_string(ROUTESIM_POLICY_ABI);
    return out;
  }
  find(object, "routesim_policy_inputs", f.inputs);
  find(object, "routesim_policy_on_sent", f.on_sent);
  find(object, "routesim_policy_on_first_token", f.on_first_token);
  find(object, "routesim_policy_on_completed", f.on_completed);
  return out;
}

WatchedCode watched(const LibrarySettings& settings) {
  return {.name = settings.path, .timeout = settings.call_timeout};
}

/// The policy, or null for options that it refuses.
void* make_policy(const WatchedCode& code, const Functions& functions, const std::string& options,
                  std::uint64_t seed, std::uint64_t router) {
  const CallGuard guard(code, "made");
  return functions.create(options.c_str(), seed, static_cast<std::uint32_t>(router));
}

void end_policy(const WatchedCode& code, const Functions& functions, void* policy) {
  const CallGuard guard(code, "ended");
  functions.destroy(policy);
}

routesim_text text_of(std::string_view text) { return {text.data(), text.size()}; }

[[noreturn]] void fail(const std::string& path, const std::string& what, std::uint64_t request) {
  Diagnostic d;
  d.path = "routing.library";
  d.message = path + ": " + what + " for request " + std::to_string(request);
  d.hint = "the interface is described in routesim_policy.h";
  throw RunError(std::move(d));
}

class Library final : public policies::Balancer, public KeepsScores {
 public:
  Library(const LibrarySettings& settings, const Functions& functions, std::uint64_t seed,
          std::uint64_t router)
      : code_(watched(settings)),
        functions_(functions),
        view_(inputs(code_, functions)),
        seed_(mix64(seed, router)),
        policy_(make_policy(code_, functions, settings.options, seed, router)) {
    ROUTESIM_CHECK(policy_ != nullptr, "library_fault() tells which options are refused");
  }
  ~Library() override { end_policy(code_, functions_, policy_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  policies::BalancerNeeds needs() const override {
    policies::BalancerNeeds needs = view_.needs();
    needs.first_tokens = functions_.on_first_token != nullptr;
    needs.identity = true;
    return needs;
  }
  policies::PrefixIndex* prefix_index() override { return view_.index(); }
  void set_endpoints(std::span<const policies::BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    view_.set_endpoints(*this, endpoints);
    scores_.resize(endpoints.size() + kBehind);
  }

  policies::BalancerAnswer pick(const policies::BalancerRequest& request) override {
    if (size() == 0) return std::nullopt;
    view_.update(request, in_flight());
    const routesim_request seen = view_of(request);
    const routesim_servers servers = {
        .size = sizeof(routesim_servers),
        .count = static_cast<std::uint32_t>(size()),
        .waiting = view_.waiting.data(),
        .running = view_.running.data(),
        .kv_usage = view_.kv_usage.data(),
        .age_s = view_.age.data(),
        .in_flight = view_.in_flight.data(),
        .in_flight_tokens = view_.in_flight_tokens.data(),
        .prefix_tokens = view_.prefix_tokens.data(),
    };
    // A place that the policy does not write must not hold a score of the request before.
    std::fill(scores_.begin(), scores_.end(), std::numeric_limits<double>::quiet_NaN());
    const std::int32_t result = call(
        request.id, [&] { return functions_.score(policy_, &seen, &servers, scores_.data()); });
    if (result == ROUTESIM_REFUSED) return policies::BalancerAnswer::refused(503);
    if (result != ROUTESIM_SCORED)
      fail(code_.name, "routesim_policy_score() returned error " + std::to_string(result),
           request.id);
    for (std::size_t i = size(); i < scores_.size(); ++i)
      if (!std::isnan(scores_[i]))
        fail(code_.name, "routesim_policy_score() wrote more scores than there are servers",
             request.id);
    return best(request, seen);
  }
  void keep_scores(ScoreSheet* sheet) override { sheet_ = sheet; }
  void on_sent(const policies::BalancerPick& pick,
               const policies::BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    view_.on_sent(pick, request);
    if (functions_.on_sent == nullptr) return;
    const routesim_request seen = view_of(request);
    call(request.id, [&] {
      functions_.on_sent(policy_, &seen, pick.endpoint);
      return 0;
    });
  }
  void on_first_token(const policies::BalancerPick& pick, std::uint64_t id, SimTime now) override {
    call(id, [&] {
      functions_.on_first_token(policy_, id, pick.endpoint, seconds(now));
      return 0;
    });
  }
  void on_completed(const policies::BalancerPick& pick,
                    const policies::BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    view_.on_completed(outcome);
    if (functions_.on_completed == nullptr) return;
    call(outcome.id, [&] {
      functions_.on_completed(policy_, outcome.id, pick.endpoint, outcome.output_tokens,
                              seconds(outcome.now));
      return 0;
    });
  }

 private:
  static constexpr std::size_t kBehind = 64;  ///< Scores that stay NaN unless a policy errs.

  static ViewInputs inputs(const WatchedCode& code, const Functions& f) {
    const CallGuard guard(code, "made");
    const std::uint32_t bits =
        f.inputs != nullptr ? f.inputs() : ROUTESIM_INPUT_METRICS | ROUTESIM_INPUT_PREFIX;
    return {.metrics = (bits & ROUTESIM_INPUT_METRICS) != 0,
            .prefix = (bits & ROUTESIM_INPUT_PREFIX) != 0};
  }
  static double seconds(SimTime t) { return (t - SimTime::zero()).to_seconds(); }

  routesim_request view_of(const policies::BalancerRequest& r) const {
    return {.size = sizeof(routesim_request),
            .priority = r.priority,
            .id = r.id,
            .random = mix64(seed_, r.id),
            .now_s = seconds(r.now),
            .prompt_tokens = r.prompt_tokens,
            .max_tokens = r.max_tokens.value_or(0),
            .adapter = text_of(r.adapter),
            .session = text_of(r.session)};
  }
  /// Calls into the library. An exception that leaves it is an error of the request.
  template <class F>
  std::int32_t call(std::uint64_t request, F f) const {
    try {
      const CallGuard guard(code_, request);
      return f();
    } catch (const std::exception& e) {
      fail(code_.name, std::string("threw an exception (") + e.what() + ")", request);
    } catch (...) {
      fail(code_.name, "threw something", request);
    }
  }
  policies::BalancerAnswer best(const policies::BalancerRequest& request,
                                const routesim_request& seen) const {
    constexpr double kOut = -std::numeric_limits<double>::infinity();
    std::optional<std::uint32_t> chosen;
    std::uint64_t ties = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (std::isnan(scores_[i]) || scores_[i] == -kOut)
        fail(code_.name,
             "the score of " + endpoints()[i].name +
                 (std::isnan(scores_[i]) ? " is NaN, or not written" : " is infinite"),
             request.id);
      if (scores_[i] == kOut || !offered(i)) continue;
      if (sheet_ != nullptr)
        sheet_->rows.push_back({.endpoint = i, .score = scores_[i], .inputs = {}});
      if (chosen && scores_[i] < scores_[*chosen]) continue;
      ties = chosen && scores_[i] == scores_[*chosen] ? ties + 1 : 1;
      // Reservoir sampling: each of equals is as likely.
      const double draw = ties == 1 ? 0 : routesim_policy_uniform(&seen, ~std::uint64_t{i});
      if (draw * static_cast<double>(ties) < 1) chosen = i;
    }
    if (!chosen) return policies::BalancerAnswer::refused(503);
    return pick_of(*chosen);
  }

  WatchedCode code_;
  Functions functions_;
  ServerView view_;
  std::uint64_t seed_;
  void* policy_;
  std::vector<double> scores_;
  ScoreSheet* sheet_ = nullptr;  ///< The decision that is explained writes here.
};

}  // namespace

void describe(Describer& d, LibrarySettings& s) {
  field(d,
        {"path",
         "library: a shared object that exports the functions of routesim_policy.h, relative to "
         "this file.",
         true},
        s.path);
  field(d, {"options", "library: text that the policy gets when it is made."}, s.options);
  field(d,
        {"call_timeout", "library: wall time after which a call is taken to hang; ends the run."},
        s.call_timeout, DurationRange{Duration::milliseconds(100), Duration::seconds(3600)});
}

namespace {
std::atomic<ForeignCode> g_foreign_code{ForeignCode::kRefused};
}  // namespace

void set_foreign_code(ForeignCode choice) { g_foreign_code.store(choice); }
ForeignCode foreign_code() { return g_foreign_code.load(); }

std::optional<LibraryFault> library_fault(const LibrarySettings& settings) {
  if (foreign_code() == ForeignCode::kRefused)
    return LibraryFault{"path", "is code that runs only with --allow-library",
                        "it runs with your rights; `routesim check` never loads it"};
  if (foreign_code() == ForeignCode::kNotLoaded) return std::nullopt;
  const char* const examples = "docs/examples/policies has policies in C++, Go, Rust and Python";
  const WatchedCode code = watched(settings);
  const Loaded loaded = load(code);
  if (!loaded.fault.empty()) return LibraryFault{"path", loaded.fault, examples};
  void* policy = make_policy(code, loaded.functions, settings.options, 0, 0);
  if (policy == nullptr)
    return LibraryFault{
        "options", "are refused by " + settings.path + " (got " + printable(settings.options) + ")",
        examples};
  end_policy(code, loaded.functions, policy);
  return std::nullopt;
}

std::unique_ptr<policies::Balancer> make_library(const LibrarySettings& settings,
                                                 std::uint64_t seed, std::uint64_t router) {
  return std::make_unique<Library>(settings, load(watched(settings)).functions, seed, router);
}

}  // namespace routesim::sim
