#include "policies/views.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace routesim::policies {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool same_header(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> RequestView::header(std::string_view name) const {
  for (const Header& h : headers)
    if (same_header(h.name, name)) return h.value;
  return std::nullopt;
}

EndpointId EndpointTable::add(EndpointInfo info) {
  EndpointRow row;
  if (free_rows_.empty()) {
    row = static_cast<EndpointRow>(info_.size());
    waiting_.push_back(0);
    running_.push_back(0);
    kv_usage_.push_back(0);
    updated_.emplace_back();
    has_metrics_.push_back(0);
    live_.push_back(0);
    is_ready_.push_back(0);
    info_.emplace_back();
    lora_.emplace_back();
    group_.push_back(0);
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
    waiting_[row] = running_[row] = kv_usage_[row] = 0;
    updated_[row] = SimTime::zero();
    has_metrics_[row] = 0;
    lora_[row] = {};
  }
  auto [it, added] = groups_.try_emplace(info.address, Group{0, 0});
  if (added) {
    if (free_groups_.empty()) {
      it->second.id = static_cast<std::uint32_t>(groups_.size() - 1);
    } else {
      it->second.id = free_groups_.back();
      free_groups_.pop_back();
    }
  }
  ++it->second.members;
  group_[row] = it->second.id;
  info_[row] = std::move(info);
  live_[row] = is_ready_[row] = 1;
  update_ready(row);
  return EndpointId(row);
}

EndpointId EndpointTable::add_at(EndpointRow row, EndpointInfo info) {
  const auto at = std::find(free_rows_.begin(), free_rows_.end(), row);
  ROUTESIM_CHECK(at != free_rows_.end(), "the row of an endpoint to be added is free");
  std::iter_swap(at, free_rows_.end() - 1);
  return add(std::move(info));
}

void EndpointTable::remove(EndpointId id) {
  const EndpointRow row = id.value();
  ROUTESIM_CHECK(live(row), "removing an endpoint that is not there");
  const auto it = groups_.find(info_[row].address);
  ROUTESIM_CHECK(it != groups_.end(), "the address of a live endpoint has a group");
  if (--it->second.members == 0) {
    free_groups_.push_back(it->second.id);
    groups_.erase(it);
  }
  live_[row] = is_ready_[row] = 0;
  for (auto& [key, column] : attributes_)
    if (row < column.size()) column[row] = std::numeric_limits<double>::quiet_NaN();
  free_rows_.push_back(row);
  update_ready(row);
}

void EndpointTable::set_ready(EndpointId id, bool ready) {
  ROUTESIM_CHECK(live(id.value()), "readiness of an endpoint that is not there");
  is_ready_[id.value()] = ready ? 1 : 0;
  update_ready(id.value());
}

// Rows come and go one by one: the ascending list takes or loses one entry.
void EndpointTable::update_ready(EndpointRow row) {
  const auto at = std::lower_bound(ready_rows_.begin(), ready_rows_.end(), row);
  const bool listed = at != ready_rows_.end() && *at == row;
  const bool belongs = live_[row] != 0 && is_ready_[row] != 0;
  if (belongs && !listed) ready_rows_.insert(at, row);
  if (!belongs && listed) ready_rows_.erase(at);
  identity_.renew();
}

void EndpointTable::set_attribute(const std::string& key, EndpointId id, double value) {
  std::vector<double>& column = attributes_[key];
  if (column.size() < rows()) column.resize(rows(), std::numeric_limits<double>::quiet_NaN());
  column[id.value()] = value;
}

std::span<const double> EndpointTable::attribute(std::string_view key) const {
  const auto it = attributes_.find(key);
  if (it == attributes_.end()) return {};
  return it->second;
}

}  // namespace routesim::policies
