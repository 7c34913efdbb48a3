#include "policies/build_context.h"

namespace routesim::policies {
namespace {

// By Facts.
constexpr std::array<std::string_view, 5> kDefaultProducers = {
    "approx-prefix-cache-producer", "predicted-latency-producer", "inflight-load-producer",
    "p2p-source-producer", "latency-observer-producer-hub"};

}  // namespace

PluginSet::PluginSet() = default;
PluginSet::~PluginSet() = default;

Plugin* PluginSet::add(std::unique_ptr<Plugin> plugin, const PluginSpec& spec) {
  plugin->name_ = spec.name;
  plugin->type_ = spec.type;
  plugin->index_ = static_cast<std::uint32_t>(plugins_.size());
  for (std::size_t hook = 0; hook < kHookCount; ++hook)
    if (plugin->hooks_.test(hook)) hooked_[hook].push_back(plugin.get());
  plugins_.push_back(std::move(plugin));
  return plugins_.back().get();
}

Plugin* PluginSet::find(std::string_view name) const {
  for (const auto& p : plugins_)
    if (p->name() == name) return p.get();
  return nullptr;
}

KvIngestOptions PluginSet::kv_ingest_options() const {
  KvIngestOptions options;
  if (!precise) return options;
  const PreciseStore::Options& o = precise->options();
  options.algorithm = o.scheme.algorithm;
  options.block_size = static_cast<std::uint32_t>(o.scheme.block_size);
  options.hash_seed = o.scheme.hash_seed;
  options.tiers = o.tiers;
  return options;
}

BuildContext::BuildContext(EndpointPickerConfig& config, const PluginRegistry& registry,
                           PluginSet& plugins, SignalNeeds& needs, bool thread_safe,
                           Diagnostics& diagnostics)
    : config_(config),
      registry_(registry),
      plugins_(plugins),
      needs_(needs),
      thread_safe_(thread_safe),
      diagnostics_(diagnostics),
      state_(config.plugins.size(), 0) {}

void BuildContext::error(const PluginSpec& spec, std::string_view parameter, std::string message,
                         std::string hint) {
  // The innermost node of the dotted path that the document really has is the place to show.
  SourceLocation where = spec.where;
  const ConfigNode* node = spec.parameters.get();
  std::string_view rest = parameter;
  while (!rest.empty() && node != nullptr) {
    const std::size_t dot = rest.find('.');
    node = node->child(rest.substr(0, dot));
    if (node != nullptr) where = node->where();
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  std::string path = spec.path.empty() ? spec.name : spec.path;
  if (!parameter.empty()) path += ".parameters." + std::string(parameter);
  diagnostics_.error(std::move(where), std::move(path), std::move(message), std::move(hint));
}

Plugin* BuildContext::build(std::size_t position) {
  const PluginSpec spec = config_.plugins[position];  // A copy: building may append to the list.
  if (state_[position] == 2) return plugins_.find(spec.name);
  if (state_[position] == 1) {
    error(spec, "", "is part of a dependency cycle");
    return nullptr;
  }
  state_[position] = 1;
  const PluginType* type = registry_.find(spec.type);
  Plugin* built = nullptr;
  if (type != nullptr && type->support == PluginType::Support::kImplemented && type->create) {
    std::unique_ptr<Plugin> plugin = type->create(spec, *this);
    if (plugin) built = plugins_.add(std::move(plugin), spec);
  }
  state_[position] = 2;
  return built;
}

bool BuildContext::has_known_type(const std::string& name) const {
  const PluginSpec* spec = config_.find(name);
  const PluginType* type = spec == nullptr ? nullptr : registry_.find(spec->type);
  return type != nullptr && type->support != PluginType::Support::kRefused;
}

Plugin* BuildContext::plugin(const std::string& name, const PluginSpec& user,
                             std::string_view parameter) {
  for (std::size_t i = 0; i < config_.plugins.size(); ++i)
    if (config_.plugins[i].name == name) return build(i);
  error(user, parameter, "references undefined plugin '" + name + "'", "declare it in 'plugins'");
  return nullptr;
}

Plugin* BuildContext::producer(const std::string& name, Facts facts, const PluginSpec& user,
                               std::string_view parameter) {
  if (!name.empty()) {
    Plugin* p = plugin(name, user, parameter);
    const auto* found = dynamic_cast<const Producer*>(p);
    if (found != nullptr && found->facts() == facts) return p;
    if (has_known_type(name))
      error(user, parameter,
            "plugin '" + name + "' produces no " +
                std::string(kFactsNames[static_cast<std::size_t>(facts)]));
    return nullptr;
  }
  const std::string wanted(kDefaultProducers[static_cast<std::size_t>(facts)]);
  for (std::size_t i = 0; i < config_.plugins.size(); ++i)
    if (config_.plugins[i].name == wanted) return build(i);
  // Upstream creates a missing required producer with the name of its type and no parameters.
  PluginSpec spec;
  spec.name = spec.type = wanted;
  spec.implicit = true;
  config_.plugins.push_back(spec);
  state_.push_back(0);
  return build(config_.plugins.size() - 1);
}

const Decider* BuildContext::decider(const std::string& name, const PluginSpec& user,
                                     std::string_view parameter) {
  const auto* found = dynamic_cast<const Decider*>(plugin(name, user, parameter));
  if (found == nullptr && has_known_type(name))
    error(user, parameter, "plugin '" + name + "' is no decider");
  return found;
}

std::size_t BuildContext::prefix_slot(const std::string& name) {
  auto& slots = plugins_.prefix_slots;
  const auto it = std::find(slots.begin(), slots.end(), name);
  if (it != slots.end()) return static_cast<std::size_t>(it - slots.begin());
  slots.push_back(name);
  return slots.size() - 1;
}

std::size_t BuildContext::prefix_slot_of(const std::string& producer_name, const PluginSpec& user) {
  producer(producer_name, Facts::kPrefixMatches, user, "prefixMatchInfoProducerName");
  return prefix_slot(producer_name.empty() ? std::string(kDefaultProducers[0]) : producer_name);
}

void BuildContext::build_all() {
  for (std::size_t i = 0; i < config_.plugins.size(); ++i) build(i);
  for (const auto& p : plugins_.all())
    if (const auto* producer = dynamic_cast<const Producer*>(p.get()))
      plugins_.producers.push_back(producer);
  if (reads_prompts(config_)) return;
  needs_.block_keys = needs_.kv_events = needs_.approx_hashes = needs_.prompt_tokens =
      needs_.prompt_bytes = needs_.encoder_cache = false;
}

}  // namespace routesim::policies
