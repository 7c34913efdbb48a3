// routesim check: every diagnostic of a file, not the first, and what becomes of each of its keys.
#include "base/printable.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/ingest/ledger.h"
#include "tools/render/json_writer.h"

namespace routesim::tools {

namespace {

void write_place(JsonWriter& json, const SourceLocation& where) {
  json.member("file", where.file);
  if (where.line > 0) json.member("line", where.line).member("column", where.column);
}

void write_keys(JsonWriter& json, const Diagnostics& diagnostics) {
  json.key("keys").begin_array();
  for (const KeyUse& use : ledger(diagnostics)) {
    json.begin_object();
    write_place(json, use.where);
    json.member("format", use.format).member("path", use.path).member("fate", fate_name(use.fate));
    json.member("why", use.why).end_object();
  }
  json.end_array();
}

void write_json(JsonWriter& json, const CheckedFile& checked, bool with_keys) {
  // The name of the first member is older than the kinds.
  json.begin_object().member("scenario", checked.path);
  json.member("kind", kind_name(checked.kind));
  json.member("ok", !checked.diagnostics.has_errors());
  json.key("variants").begin_array();
  for (const std::string& name : checked.variants) json.value(name);
  json.end_array().key("diagnostics").begin_array();
  for (const Diagnostic& d : checked.diagnostics.items()) {
    json.begin_object().member("severity", d.severity == Severity::kError ? "error" : "warning");
    write_place(json, d.where);
    json.member("path", d.path).member("message", d.message).member("hint", d.hint);
    json.end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : checked.notes) json.value(note);
  json.end_array();
  if (with_keys) write_keys(json, checked.diagnostics);
  json.end_object();
}

void print_text(const CheckedFile& checked, bool with_keys, Console& console) {
  console.complain(checked.diagnostics);
  const std::vector<KeyUse> keys = ledger(checked.diagnostics);
  if (!checked.diagnostics.has_errors()) {
    const std::string contents = checked.contents.empty() ? "" : " (" + checked.contents + ")";
    console.print(checked.path + ": ok" + contents + ", " + summary_text(keys) + "\n");
  }
  for (const std::string& note : checked.notes)
    console.print(checked.path + ": note: " + note + "\n");
  if (with_keys) console.print(keys_text(keys));
}

ExitCode run_check(const OptionValues& options, Console& console) {
  const std::string format = options.get("output", "text");
  if (format != "text" && format != "json")
    return usage_error(console, "check",
                       "--output must be text or json (got " + printable(format) + ")");
  bool ok = true;
  JsonWriter json;
  json.begin_array();
  const bool with_keys = options.has("keys");
  for (const std::string& path : options.positionals) {
    const CheckedFile checked = check_file(
        {.path = path, .sets = options.all("set"), .variants = options.all("variant"), .seed = {}});
    ok = ok && !checked.diagnostics.has_errors();
    if (format == "json")
      write_json(json, checked, with_keys);
    else
      print_text(checked, with_keys, console);
  }
  if (format == "json") {
    // The data is the answer, so it is printed even when the exit code says "invalid".
    console.print(json.end_array().str() + "\n");
    console.keep_output();
  }
  return ok ? ExitCode::kSuccess : ExitCode::kInvalid;
}

}  // namespace

Command check_command() {
  return {
      .name = "check",
      .summary = "Report what is wrong with files, and what becomes of their keys; run nothing.",
      .positional = {.name = "FILE", .min = 1, .max = 10'000},
      .options = {{"variant", "NAME", "Only this variant.", true},
                  {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
                  {"keys", "", "List every key with its place and its fate.", false},
                  {"output,o", "FORMAT", "text (default) or json.", false, {}, {"text", "json"}}},
      .run = &run_check};
}

}  // namespace routesim::tools
