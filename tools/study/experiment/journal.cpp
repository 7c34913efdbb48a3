#include "tools/study/experiment/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policies/index/sha256.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/output_file.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kStart = "{\"key\":\"";
constexpr std::string_view kTailStart = ",\"variant\":\"";
constexpr std::string_view kShard = ",\"shard\":\"";
constexpr std::string_view kChecksum = ",\"checksum\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr std::size_t kKeyLength = kKeyEnd - kStart.size();
constexpr std::size_t kChecksumLength = 16;
constexpr std::size_t kMostJournalBytes = std::size_t{1} << 40U;

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

double now_s() {
  const std::chrono::duration<double> t = std::chrono::steady_clock::now().time_since_epoch();
  return t.count();
}

/// `shard 2/8`, or `the whole sweep`.
std::string shard_text(std::string_view shard) {
  return shard.empty() ? "the whole sweep" : "shard " + std::string(shard);
}

/// The first 64 bits of SHA-256, in hex.
std::string checksum(std::string_view text) {
  policies::Sha256 hash;
  hash.update(text.data(), text.size());
  return encode_hex(hash.finish()).substr(0, kChecksumLength);
}

/// Cuts the checksum off the end of `line`; whether it fits the rest.
bool cut_checksum(std::string_view& line) {
  constexpr std::size_t kLength = kChecksum.size() + kChecksumLength + kEnd.size();
  const std::string_view end = line.substr(line.size() - std::min(line.size(), kLength));
  if (!end.starts_with(kChecksum) || !end.ends_with(kEnd)) return false;
  line.remove_suffix(kLength);
  return end.substr(kChecksum.size(), kChecksumLength) == checksum(line);
}

/// Cuts the shard off the end of `line`, which a good checksum vouches for.
std::string_view cut_shard(std::string_view& line) {
  const std::size_t at = line.rfind(kShard);
  if (at == std::string_view::npos || !line.ends_with('"')) return {};
  const std::string_view shard = line.substr(at + kShard.size());
  const std::string_view value = shard.substr(0, shard.size() - 1);
  if (value.find_first_not_of("0123456789/") != std::string_view::npos) return {};
  line = line.substr(0, at);
  return value;
}

}  // namespace

std::string sealed_row(std::string_view head, std::string_view tail, std::string_view shard) {
  std::string line(head);
  line.append(tail);
  if (!shard.empty()) line.append(kShard).append(shard).append("\"");
  const std::string sum = checksum(line);
  return line.append(kChecksum).append(sum).append(kEnd).append("\n");
}

std::optional<StoredRow> parse_row(std::string_view line) {
  const bool is_object = line.ends_with('}') && nlohmann::json::accept(line);
  const bool has_checksum = line.find(kChecksum) != std::string_view::npos;
  StoredRow row;
  row.is_intact = cut_checksum(line);
  if (!row.is_intact) return has_checksum ? std::optional(row) : std::nullopt;
  row.shard = cut_shard(line);
  // Names of axes and of values are escaped in the head, and the tail has no second variant, so the
  // last match is the tail's start.
  const std::size_t tail = line.rfind(kTailStart);
  if (!is_object || !line.starts_with(kStart) || tail == std::string_view::npos)
    return std::nullopt;
  row.key = std::string(line.substr(kStart.size(), kKeyLength));
  row.head = line.substr(0, tail);
  row.tail = line.substr(tail);
  return row.key.size() == kKeyLength && decode_hex(row.key) ? std::optional(row) : std::nullopt;
}

int column_of(std::string_view line, std::string_view member) {
  workloads::JsonScanner json(line);
  std::string key;
  if (!json.begin_object()) return json.column();
  while (json.next_member(key)) {
    if (key == member) return json.value_column();
    if (!json.skip()) break;
  }
  return json.column();
}

int damage_column(std::string_view line) {
  if (!line.starts_with('{')) return 1;
  workloads::JsonScanner json(line);
  if (!json.skip() || !json.at_end()) return json.column();
  return column_of(line, "key");
}

Journal::Journal(std::string output, std::string shard)
    : output_(std::move(output)), partial_(output_ + ".partial"), shard_(std::move(shard)) {}

Journal::~Journal() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  // Nothing was computed: leave nothing behind that a later sweep would stumble over.
  if (size_ == 0) ::unlink(partial_.c_str());
}

void Journal::take_row(std::string_view line, const SourceLocation& where,
                       const std::set<std::string>& keys, Diagnostics& diagnostics) {
  const std::optional<StoredRow> row = parse_row(line);
  const auto at = [&](int column) {
    return SourceLocation{.file = where.file, .line = where.line, .column = column};
  };
  if (!row) {
    diagnostics.error(at(damage_column(line)), "", "is not a row of a sweep",
                      "the file is damaged");
  } else if (!row->is_intact) {
    diagnostics.error(at(column_of(line, "checksum")), "", kDamagedRow,
                      "remove this line, and --resume computes the row again");
  } else if (row->shard != shard_) {
    diagnostics.error(
        at(column_of(line, "shard")), "",
        "this row was written by " + shard_text(row->shard) + ", and this is " + shard_text(shard_),
        row->shard.empty() ? "give --shard none" : "give --shard " + std::string(row->shard));
  } else if (!keys.contains(row->key)) {
    diagnostics.error(at(column_of(line, "key")), "",
                      "this row belongs to no cell of the sweep and would be lost",
                      "write to another file, or finish the sweep this file was made by");
  } else {
    const std::string tail(row->tail);
    const auto [it, is_new] = tails_.try_emplace(row->key, tail);
    if (!is_new && it->second != tail)
      diagnostics.error(at(column_of(line, "key")), "",
                        "another row has this key but other results",
                        "the files come from different builds; remove one of them");
  }
}

bool Journal::take_up(const std::string& path, bool may_be_torn, const std::set<std::string>& keys,
                      Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(path, {.file = path}, "", kMostJournalBytes, text, diagnostics)) return false;
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos && may_be_torn) break;
    const std::string_view whole = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    take_row(whole, {.file = path, .line = line, .column = 1}, keys, diagnostics);
    if (may_be_torn && end != std::string_view::npos) size_ = text.size() - rest.size();
  }
  return !diagnostics.has_errors();
}

bool Journal::open(bool resume, const std::set<std::string>& keys, Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& what, const std::string& hint = {}) {
    diagnostics.error({.file = partial_}, "", what, hint);
    return false;
  };
  descriptor_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return fail(std::string("cannot be written: ") + std::strerror(errno));
  size_ = 1;  // Until it is known to be empty it is not ours to remove.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    return fail("another sweep is writing this file");
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return fail(std::strerror(errno));
  if (info.st_size > 0 && !resume)
    return fail("holds the rows of a sweep that was interrupted",
                "continue it with --resume, or remove the file");
  size_ = 0;
  if (!resume) return true;
  if (exists(output_) && !take_up(output_, false, keys, diagnostics)) {
    size_ = static_cast<std::size_t>(info.st_size);
    return false;
  }
  if (!take_up(partial_, true, keys, diagnostics)) {
    size_ = static_cast<std::size_t>(info.st_size);
    return false;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    return fail(std::string("cannot be written: ") + std::strerror(errno));
  return true;
}

const std::string* Journal::find(const std::string& key) const {
  const auto it = tails_.find(key);
  return it == tails_.end() ? nullptr : &it->second;
}

std::string Journal::append(const std::string& key, const std::string& head,
                            const std::string& tail) {
  const std::string line = sealed_row(head, tail, shard_);
  if (const int error = write_all(descriptor_, line); error != 0) {
    const int restored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
    return std::string(std::strerror(error)) + (restored == 0 ? "" : " (its last line is torn)");
  }
  size_ += line.size();
  tails_[key] = tail;
  // Against a power cut; a kill cannot undo what was written.
  if (const double now = now_s(); now - synced_at_s_ > 1) {
    (void)::fdatasync(descriptor_);
    synced_at_s_ = now;
  }
  return {};
}

std::string Journal::finish(std::string_view content) {
  // A process of the same number, killed while it wrote (in containers that number is always 1),
  // has left its temporary file; we hold the lock, so nobody else is writing it.
  ::unlink((output_ + ".tmp-" + std::to_string(::getpid())).c_str());
  std::string error = write_file(output_, content);
  if (!error.empty()) return error;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
  return {};
}

}  // namespace routesim::tools
