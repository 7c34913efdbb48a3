#include "models/catalogue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/diagnostic.h"

namespace routesim::models {

void describe(Describer& d, FittedCurve& c) {
  field(d, {"accelerator", "Catalogue name of the accelerator.", true}, c.accelerator);
  field(d, {"model", "Catalogue name of the model.", true}, c.model);
  field(d, {"parallelism", "How one replica is spread over GPUs."}, c.parallelism);
  field(d, {"preset", "Engine preset it was fitted on; empty fits any."}, c.preset);
  field(d, {"kv_cache_dtype", "KV format it was fitted on; absent fits any."}, c.kv_cache_dtype);
  field(d, {"parameters", "The coefficients.", true}, c.parameters);
  field(d, {"range", "Batches the fit has seen."}, c.range);
  field(d,
        {"fitted_to",
         "Published experiments that had a part in the fit: `validate --leave-out experiment` does "
         "without the curve there."},
        c.fitted_to);
  field(d, {"provenance", "From what data, by what command."}, c.provenance);
}

void describe(Describer& d, MeasuredSteps& s) {
  field(d, {"accelerator", "Catalogue name of the accelerator.", true}, s.accelerator);
  field(d, {"model", "Catalogue name of the model.", true}, s.model);
  field(d, {"parallelism", "How one replica is spread over GPUs."}, s.parallelism);
  describe(d, s.table);
}

namespace {

/// Lower-case letters and digits of the part after the organisation.
std::string normalised(std::string_view name) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

/// Whether normalised(name) is `key`, without making it: a curve is looked for among many names.
bool is_spelling_of(std::string_view name, std::string_view key) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  std::size_t at = 0;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!(lower >= 'a' && lower <= 'z') && !(lower >= '0' && lower <= '9')) continue;
    if (at == key.size() || key[at] != lower) return false;
    ++at;
  }
  return at == key.size();
}

template <class Entry>
bool answers_to(const Entry& entry, const std::string& key) {
  return is_spelling_of(entry.name, key) ||
         std::any_of(entry.aliases.begin(), entry.aliases.end(),
                     [&key](const std::string& alias) { return is_spelling_of(alias, key); });
}

template <class Entry>
const Entry* find(const std::vector<Entry>& entries, std::string_view name) {
  const std::string key = normalised(name);
  for (auto it = entries.rbegin(); it != entries.rend(); ++it)
    if (answers_to(*it, key)) return &*it;
  return nullptr;
}

/// Words of a name in lower case: `Llama-3.1-8B` is llama, 3.1, 8b. Letters and the number behind
/// them are two words, as Llama3 is Llama-3.
std::vector<std::string> words_of(std::string_view name) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c =
        name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    const bool letter = c >= 'a' && c <= 'z';
    const bool point =
        c == '.' && i > 0 && digit(name[i - 1]) && i + 1 < name.size() && digit(name[i + 1]);
    const bool starts_number = digit(c) && i > 0 && !words.back().empty() &&
                               words.back().find_first_of("0123456789") == std::string::npos;
    if ((!letter && !digit(c) && !point) || starts_number) words.emplace_back();
    if (letter || digit(c) || point) words.back() += c;
  }
  std::erase(words, std::string());
  return words;
}

/// A number of parameters: 8b, 0.6b, 8x7b.
bool is_size(const std::string& word) {
  return word.size() > 1 && word.back() == 'b' && word.front() >= '0' && word.front() <= '9';
}

/// The words without sizes: Qwen3-32B and Qwen3-23B are of one family, Qwen3.5-32B is not.
std::vector<std::string> family_of(std::string_view name) {
  std::vector<std::string> words = words_of(name);
  std::erase_if(words, is_size);
  return words;
}

/// The digits of a name, sorted, with o for 0: generation and size. Names with other digits are
/// other things, however near their spelling, unless they are other sizes of one family.
std::string digits_of(std::string_view key) {
  std::string out;
  for (const char c : key)
    if (c == 'o' || (c >= '0' && c <= '9')) out += c == 'o' ? '0' : c;
  std::sort(out.begin(), out.end());
  return out;
}

/// Compares normalised spellings, answers with the entry's own name.
template <class Entry>
std::string suggest(const std::vector<Entry>& entries, std::string_view name) {
  std::vector<std::string> keys;
  std::vector<const Entry*> owners;
  for (const Entry& entry : entries) {
    keys.push_back(normalised(entry.name));
    owners.push_back(&entry);
    for (const std::string& alias : entry.aliases) {
      keys.push_back(normalised(alias));
      owners.push_back(&entry);
    }
  }
  const std::string key = normalised(name);
  std::vector<std::string> alike;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (digits_of(keys[i]) == digits_of(key) || family_of(owners[i]->name) == family_of(name))
      alike.push_back(keys[i]);
  const std::string best = nearest(key, alike);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!best.empty() && keys[i] == best) return owners[i]->name;
  return {};
}

/// Words behind which a checkpoint is no copy of its base: another size or another kind of model,
/// or weights in a format that the base's name does not state. As words_of() has them: w8a8 is w
/// and 8a8.
bool is_other_model(const std::string& word) {
  constexpr std::array<std::string_view, 39> kOthers = {
      "vl",        "vision",    "omni",   "audio", "draft",   "eagle",  "speculator", "medusa",
      "embedding", "reranker",  "reward", "lora",  "adapter", "sparse", "pruned",     "minitron",
      "mini",      "8a8",       "4a8",    "4a16",  "int",     "bnb",    "bit",        "gguf",
      "exl",       "mlx",       "hqq",    "aqlm",  "gptq",    "awq",    "nvfp",       "mxfp",
      "fp",        "quantized", "4bit",   "8bit",  "moe",     "merge",  "mtp"};
  return is_size(word) || std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
}

/// A part that a family of models has and that is not simulated, by the beginning of its
/// normalised names.
struct Unsimulated {
  std::string_view beginning, what;
};
constexpr std::array<Unsimulated, 7> kUnsimulated = {{
    {"minimaxm1", "lightning attention"},
    {"minimaxtext01", "lightning attention"},
    {"granite40h", "state-space layers of another kind"},
    {"jamba", "state-space layers of another kind"},
    {"falconh1", "state-space layers of another kind"},
    {"zamba", "state-space layers of another kind"},
    {"gemma3n", "layers that share their keys"},
}};

/// Endings of the names of checkpoints in a format. The first one makes the name of the entry.
const std::vector<std::string>& endings(WeightDtype weights) {
  static const std::array<std::vector<std::string>, EnumNames<WeightDtype>::value.size()> kAll = {{
      {"-BF16"},
      {"-FP8", "-FP8-dynamic", "-FP8-block"},
      {"-MXFP4"},
      {"-AWQ", "-AWQ-INT4", "-GPTQ-Int4", "-GPTQ", "-quantized.w4a16"},
      {"-NVFP4", "-FP4"},
  }};
  return kAll[static_cast<std::size_t>(weights)];
}

/// The same model with weights in another format.
ModelSpec in_format(const ModelSpec& m, const WeightFormat& format) {
  ModelSpec out = m;
  out.weights = format.weights;
  out.scaled_blocks = format.scaled_blocks;
  out.bf16_attention = format.bf16_attention;
  out.aliases.clear();
  for (const std::string& ending : endings(format.weights)) {
    out.aliases.push_back(m.name + ending);
    for (const std::string& alias : m.aliases) out.aliases.push_back(alias + ending);
  }
  out.name = out.aliases.front();
  out.aliases.erase(out.aliases.begin());
  return out;
}

}  // namespace

void Catalogue::add(ModelSpec m) {
  const std::vector<WeightFormat> formats = std::exchange(m.formats, {});
  models_.push_back(m);
  for (const WeightFormat& format : formats) models_.push_back(in_format(m, format));
}

const AcceleratorSpec* Catalogue::find_accelerator(std::string_view name) const {
  return find(accelerators_, name);
}

const ModelSpec* Catalogue::find_model(std::string_view name) const {
  const ModelSpec* const own = find(models_, name);
  return own != nullptr || name.find('/') == std::string_view::npos ? own : base_of(name);
}

bool Catalogue::is_fine_tune(std::string_view name) const {
  return find(models_, name) == nullptr && find_model(name) != nullptr;
}

const ModelSpec* Catalogue::base_of(std::string_view name) const {
  const std::vector<std::string> words = words_of(name);
  const ModelSpec* base = nullptr;
  std::size_t longest = 0;
  std::vector<std::string> rest;
  for (const ModelSpec& m : models_) {
    std::vector<std::string> spellings = m.aliases;
    spellings.push_back(m.name);
    for (const std::string& spelling : spellings) {
      const std::vector<std::string> own = words_of(spelling);
      const auto at = std::search(words.begin(), words.end(), own.begin(), own.end());
      if (own.size() <= longest || at == words.end() ||
          std::none_of(own.begin(), own.end(), is_size))
        continue;
      longest = own.size();
      base = &m;
      rest.assign(words.begin(), at);
      rest.insert(rest.end(), at + std::ssize(own), words.end());
    }
  }
  return std::any_of(rest.begin(), rest.end(), is_other_model) ? nullptr : base;
}

std::string_view unsimulated_part(std::string_view model) {
  const std::string key = normalised(model);
  for (const Unsimulated& family : kUnsimulated)
    if (key.starts_with(family.beginning)) return family.what;
  return {};
}

const FittedCurve* Catalogue::find_cost_curve(std::string_view accelerator, std::string_view model,
                                              const Parallelism& p, std::string_view preset,
                                              bool any_preset, std::optional<KvDtype> kv) const {
  const AcceleratorSpec* a = find_accelerator(accelerator);
  const ModelSpec* m = find_model(model);
  const std::string accelerator_key = normalised(a ? a->name : accelerator);
  const std::string model_key = normalised(m ? m->name : model);
  const FittedCurve* best = nullptr;
  int best_rank = 0;
  for (auto it = curves_.rbegin(); it != curves_.rend(); ++it) {
    if (!(it->parallelism == p)) continue;
    if (kv && it->kv_cache_dtype.value_or(*kv) != *kv) continue;
    const int rank = it->preset == preset ? 3 : it->preset.empty() ? 2 : any_preset ? 1 : 0;
    if (rank <= best_rank) continue;
    // Names are looked up last: that is a search of the whole catalogue.
    const AcceleratorSpec* its_a = find_accelerator(it->accelerator);
    if (!is_spelling_of(its_a ? its_a->name : it->accelerator, accelerator_key)) continue;
    const ModelSpec* its_m = find_model(it->model);
    if (!is_spelling_of(its_m ? its_m->name : it->model, model_key)) continue;
    best = &*it;
    best_rank = rank;
  }
  return best;
}

const MeasuredSteps* Catalogue::find_measured_steps(std::string_view accelerator,
                                                    std::string_view model,
                                                    const Parallelism& p) const {
  const AcceleratorSpec* a = find_accelerator(accelerator);
  const ModelSpec* m = find_model(model);
  for (auto it = steps_.rbegin(); it != steps_.rend(); ++it)
    if (it->parallelism == p && find_accelerator(it->accelerator) == a &&
        find_model(it->model) == m)
      return &*it;
  return nullptr;
}

std::string Catalogue::suggest_accelerator(std::string_view name) const {
  return suggest(accelerators_, name);
}

std::string Catalogue::suggest_model(std::string_view name) const { return suggest(models_, name); }

}  // namespace routesim::models
