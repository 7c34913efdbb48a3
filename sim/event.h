// The events that can happen at an instant, and their order when instants are equal.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace routesim::sim {

/// At equal times smaller goes first. A test covers each adjacent pair.
enum class EventPriority : std::uint8_t {
  kEngineStep,  ///< First, so that everything else at t sees the steps that ended by t.
  kTransfer,    ///< KV that has arrived by t can be used by whatever is decided at t.
  kCompletion,  ///< A client learns of an end before it decides what to send at t.
  kClient,      ///< Sends at t take place before deliveries, so equal delays keep their order.
  kDelivery,    ///< A request handed over at t is in the engine's queue when the router looks.
  kFleet,       ///< Servers that come and go at t do so before a decision at t.
  kRouting,     ///< Decisions at t see everything else that happened by t.
  kTimeout,     ///< Last: an answer that arrives exactly at the deadline still counts.
};

enum class EventKind : std::uint8_t {
  kReplicaWake,   ///< subject: replica.
  kTransferTick,  ///< A KV transfer may have ended.
  kPullStep,      ///< subject: pull between tiers; its next message arrives. stamp 1: too late.
  kPull,          ///< subject: live request; the servers have shaken hands, its KV can be pulled.
  kHandOver,      ///< subject: live request; the decode server's API server gets it.
  kCompletion,    ///< subject: live request; its last token reaches the client.
  kClientAction,  ///< The load generator wants to be called.
  kDelivery,      ///< subject: live request; reaches an engine's queue.
  kApiRound,      ///< subject: API server, stamp: process; those who wait there have their turn.
  kRoute,         ///< subject: live request; the router decides.
  kTryAgain,      ///< subject: live request; the gateway's back-off is over.
  kRouterTick,    ///< Flow control: the routers look for room in the pool.
  kRetry,         ///< Balancers: the routers try the requests they hold.
  kTimeout,       ///< subject: live request; the client gives up.
  kLeaseEnd,      ///< The oldest lease on held KV may be over.
  kFleet,         ///< Something of the fleet, or of what it leaves, is due.
  kLost,          ///< subject: live request; its connection is refused, or given up.
};

/// A small value; `stamp` tells a reused subject from the one meant.
struct Event {
  SimTime time;
  std::uint64_t order = 0;  ///< Priority in the top byte, then a sequence number; see EventQueue.
  EventKind kind = EventKind::kReplicaWake;
  std::uint32_t subject = 0;
  std::uint32_t stamp = 0;

  bool operator<(const Event& o) const { return time != o.time ? time < o.time : order < o.order; }
};

/// The subject is a live request: the event is void once it is over.
constexpr bool is_about_request(EventKind kind) {
  switch (kind) {
    case EventKind::kPull:
    case EventKind::kHandOver:
    case EventKind::kCompletion:
    case EventKind::kDelivery:
    case EventKind::kRoute:
    case EventKind::kTryAgain:
    case EventKind::kTimeout:
    case EventKind::kLost:
      return true;
    default:
      return false;
  }
}

constexpr EventPriority priority_of(EventKind kind) {
  switch (kind) {
    case EventKind::kReplicaWake:
      return EventPriority::kEngineStep;
    case EventKind::kTransferTick:
    case EventKind::kPull:
    case EventKind::kPullStep:
    case EventKind::kHandOver:
      return EventPriority::kTransfer;
    case EventKind::kCompletion:
      return EventPriority::kCompletion;
    case EventKind::kClientAction:
      return EventPriority::kClient;
    case EventKind::kDelivery:
      return EventPriority::kDelivery;
    case EventKind::kFleet:
    case EventKind::kLost:
      return EventPriority::kFleet;
    case EventKind::kRoute:
    case EventKind::kTryAgain:
    case EventKind::kRouterTick:
    case EventKind::kRetry:
      return EventPriority::kRouting;
    case EventKind::kTimeout:
    case EventKind::kLeaseEnd:
    case EventKind::kApiRound:  // Where in the instant does not matter: who comes at t waits on.
      return EventPriority::kTimeout;
  }
  return EventPriority::kTimeout;
}

}  // namespace routesim::sim
