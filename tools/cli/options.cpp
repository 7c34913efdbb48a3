#include "tools/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/cli/inputs.h"
#include "tools/results/text_table.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

namespace {

namespace po = boost::program_options;

constexpr char kPositional[] = "arguments";  // an empty name would mean "no positionals" to Boost

po::options_description describe_options(const std::vector<OptionSpec>& options) {
  po::options_description description;
  for (const OptionSpec& option : options) {
    if (option.value_name.empty()) {
      description.add_options()(option.name.c_str(), "");
      continue;
    }
    auto* value = po::value<std::string>();
    if (option.value_is_optional()) value->implicit_value(option.implicit_value);
    description.add_options()(option.name.c_str(), value, "");
  }
  return description;
}

/// Boost's own rules, minus its guessing of abbreviated names.
std::vector<po::option> parse(const std::vector<OptionSpec>& options,
                              const std::vector<std::string>& arguments) {
  const po::options_description description = describe_options(options);
  po::positional_options_description positionals;
  positionals.add(kPositional, -1);
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  return po::command_line_parser(arguments)
      .options(description)
      .positional(positionals)
      .style(style)
      .run()
      .options;
}

}  // namespace

std::vector<std::string> OptionSpec::flags() const {
  const std::size_t comma = name.find(',');
  std::vector<std::string> flags = {"--" + long_name()};
  if (comma != std::string::npos) flags.push_back(fmt::format("-{}", name.substr(comma + 1)));
  return flags;
}

std::vector<std::string> PositionalSpec::choices() const {
  std::vector<std::string> words;
  if (name.find('|') == std::string::npos) return words;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = name.find('|', begin);
    words.push_back(name.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return words;
}

Options::Options(std::string command, std::vector<OptionSpec> specs,
                 const PositionalSpec& positional, const std::vector<std::string>& arguments)
    : command_(std::move(command)), specs_(std::move(specs)) {
  try {
    take_values(arguments);
  } catch (const po::unknown_option& e) {
    fail(unknown_option(e.get_option_name()));
  } catch (const po::error& e) {
    fail(printable(e.what(), 200));
  }
  if (ok() && !has("help")) check_positionals(positional);
}

void Options::fail(const std::string& message) {
  const std::string of = command_.empty() ? "" : command_ + " ";
  problems_.error({.file = "routesim"}, "", message, "see `routesim " + of + "--help`");
}

const OptionSpec* Options::find(const std::string& name) const {
  const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const OptionSpec& s) {
    return s.long_name() == name || s.name.substr(s.name.find(',') + 1) == name;
  });
  return spec == specs_.end() ? nullptr : &*spec;
}

std::string Options::unknown_option(const std::string& given) const {
  std::vector<std::string> names;
  for (const OptionSpec& option : specs_) names.push_back("--" + option.long_name());
  const std::string close = did_you_mean(given, names);
  return "unknown option " + printable(given) + (close.empty() ? "" : ", " + close);
}

void Options::take_values(const std::vector<std::string>& arguments) {
  for (const po::option& option : parse(specs_, arguments)) {
    if (option.position_key >= 0 || option.string_key.empty()) {
      positionals_.insert(positionals_.end(), option.value.begin(), option.value.end());
      continue;
    }
    std::string name = option.string_key;
    while (name.starts_with('-')) name.erase(0, 1);
    const OptionSpec* const spec = find(name);
    if (spec == nullptr) {
      fail(unknown_option("--" + name));
      continue;
    }
    std::vector<std::string>& values = values_[spec->long_name()];
    if (!spec->repeatable && !values.empty())
      fail("--" + spec->long_name() + " is given more than once");
    values.push_back(option.value.empty() ? spec->implicit_value : option.value.front());
  }
}

void Options::check_positionals(const PositionalSpec& positional) {
  if (positionals_.size() < positional.min) fail(positional.name + " is missing");
  if (positionals_.size() > positional.max)
    fail("unexpected argument " + printable(positionals_[positional.max]));
  if (positional.ships)
    for (std::string& file : positionals_) file = find_shipped(file);
  const std::vector<std::string> choices = positional.choices();
  if (choices.empty()) return;
  for (const std::string& word : positionals_)
    if (std::find(choices.begin(), choices.end(), word) == choices.end())
      fail(fmt::format(
          "unknown argument {}, {}", printable(word),
          did_you_mean(word, choices, fmt::format("one of {}", fmt::join(choices, ", ")))));
}

std::string Options::get(const std::string& name, const std::string& fallback) const {
  const std::vector<std::string>& values = all(name);
  return values.empty() ? fallback : values.front();
}

const std::vector<std::string>& Options::all(const std::string& name) const {
  static const std::vector<std::string> kNone;
  const auto it = values_.find(name);
  return it == values_.end() ? kNone : it->second;
}

namespace {

ConfigNode::Ptr node_of(const std::string& text) {
  return ConfigNode::make_scalar(text, ConfigNode::Style::kUntyped, {});
}

template <class T>
std::optional<T> take(const std::string& name, const Parsed<T>& parsed, Options& options) {
  if (!parsed.value) options.fail("--" + name + " " + parsed.message);
  return parsed.value;
}

}  // namespace

std::optional<std::int64_t> Options::whole(const std::string& name, const IntRange& range) {
  if (!has(name)) return std::nullopt;
  return take(name, parse_integer(*node_of(get(name)), range), *this);
}

double Options::real(const std::string& name, const RealRange& range, double fallback) {
  if (!has(name)) return fallback;
  return take(name, parse_real(*node_of(get(name)), range), *this).value_or(fallback);
}

std::optional<Duration> Options::duration(const std::string& name, const DurationRange& range) {
  if (!has(name)) return std::nullopt;
  return take(name, parse_duration(*node_of(get(name)), range), *this);
}

std::size_t Options::jobs() {
  const std::optional<std::int64_t> jobs = whole("jobs", IntRange{1, 1'000'000'000});
  return jobs ? static_cast<std::size_t>(*jobs) : default_jobs();
}

std::string Options::choice(const std::string& name) {
  const std::vector<std::string>& choices = find(name)->choices;
  std::string word = get(name, choices.front());
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return word;
  fail(fmt::format("--{} must be {} (got {})", name, fmt::join(choices, " or "), printable(word)));
  return choices.front();
}

std::optional<Output> Options::read_output(const std::string& text, const OptionSpec& spec) {
  const std::size_t equals = text.find('=');
  Output output{.format = text.substr(0, equals), .path = {}};
  if (equals != std::string::npos) output.path = text.substr(equals + 1);
  if (equals != std::string::npos && output.path.empty())
    fail("--output " + printable(text) + " has no path; without = it is standard output");
  if (output.path == "-") output.path.clear();
  if (std::ranges::find(spec.choices, output.format) != spec.choices.end()) return output;
  fail(fmt::format("--output: unknown format {}, {}", printable(output.format),
                   did_you_mean(output.format, spec.choices,
                                fmt::format("one of {}", fmt::join(spec.choices, ", ")))));
  return std::nullopt;
}

std::vector<Output> Options::outputs() {
  const OptionSpec& spec = *find("output");
  std::vector<Output> outputs;
  if (!has("output")) outputs.push_back({.format = spec.choices.front(), .path = {}});
  std::vector<std::string> texts = all("output");
  if (has("watch")) texts.push_back("html=" + get("watch"));
  for (const std::string& text : texts) {
    const std::optional<Output> output = read_output(text, spec);
    if (!output) continue;
    const bool is_shared = std::ranges::any_of(
        outputs, [&](const Output& other) { return other.path == output->path; });
    outputs.push_back(*output);
    if (is_shared && output->path.empty())
      fail("--output: only one format can go to standard output, add =PATH");
    // A device takes any number of texts; a file would keep only the last one.
    if (is_shared && !output->path.empty() && !output->path.starts_with("/dev/"))
      fail("--output: two formats go to " + printable(output->path, 200));
  }
  return outputs;
}

std::string options_help(const std::vector<OptionSpec>& options) {
  constexpr std::size_t kColumn = 28;
  std::string out;
  for (const OptionSpec& option : options) {
    const std::vector<std::string> flags = option.flags();
    std::string line = "  " + (flags.size() > 1 ? flags[1] + ", " : "") + flags[0];
    if (option.value_is_optional())
      line += "[=" + option.value_name + "]";
    else if (!option.value_name.empty())
      line += " " + option.value_name;
    if (line.size() + 2 > kColumn) {
      out += line + "\n";
      line.clear();
    }
    out += wrapped(option.help, kColumn, fmt::format("{:<{}}", line, kColumn), kHelpWidth) + "\n";
  }
  return out;
}

OptionSpec allow_library_option() {
  return {.name = "allow-library",
          .help =
              "Run the code of shared objects that a scenario names (routing.library), with "
              "your rights."};
}

OptionSpec set_option(const std::string& help) { return {"set", "KEY=VALUE", help, true}; }
OptionSpec variant_option(const std::string& help) { return {"variant", "NAME", help, true}; }
OptionSpec jobs_option(const std::string& no_effect_on) {
  return {"jobs,j", "N", "Threads (default: one per core); no effect on " + no_effect_on + "."};
}
OptionSpec seed_option(const std::string& help) { return {"seed", "N", help}; }
OptionSpec quiet_option() { return {"quiet,q", "", "No progress or warnings on standard error."}; }

}  // namespace routesim::tools
