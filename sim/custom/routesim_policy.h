/* The C interface of routing policies that routesim loads: `balancer: library`.
 *
 * A policy is a shared object that exports the functions below. routesim hands it views of the
 * servers and of one request; the policy writes one score per server, and the server with the
 * highest score gets the request. No memory changes its owner: views are valid during the call
 * only, and the policy keeps what it needs in its own state.
 *
 * Threads: one policy object is called by one thread at a time, but objects of one library may be
 * called by several threads at once (variants and replications run in parallel). Use no globals.
 *
 * Nothing may be thrown out of a function. A score that is NaN, an error code, a C++ exception, a
 * signal, and a call that does not return within the configured time end the run with a message
 * that names the request.
 *
 * This file is C99 and needs nothing but <stdint.h>. It may be copied.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when a struct or a function changes its meaning; fields
 * are only added at the ends of structs, which begin with their size. */
#define ROUTESIM_POLICY_ABI 1u

/* Inputs that cost time to compute: the bits of routesim_policy_inputs(). */
#define ROUTESIM_INPUT_METRICS 1u /* waiting, running, kv_usage, age_s */
#define ROUTESIM_INPUT_PREFIX 2u  /* prefix_tokens, from the servers' KV events */

/* The servers. Arrays have `count` elements; what was not asked for is 0. */
typedef struct routesim_servers {
  uint32_t size;                  /* sizeof(routesim_servers) of the caller. */
  uint32_t count;                 /* Server i keeps its number during a run. */
  const double* waiting;          /* Requests in the engine's queue, as last scraped. */
  const double* running;          /* Requests in the engine's batch, as last scraped. */
  const double* kv_usage;         /* Share of KV blocks in use, 0 to 1, as last scraped. */
  const double* age_s;            /* Seconds since the last scrape. */
  const double* in_flight;        /* Requests that this router sent there, not answered yet. */
  const double* in_flight_tokens; /* Their prompt tokens. */
  const double* prefix_tokens;    /* Tokens of this prompt that the server has cached. */
} routesim_servers;

/* A text of `length` bytes, not terminated. */
typedef struct routesim_text {
  const char* bytes;
  uint64_t length;
} routesim_text;

typedef struct routesim_request {
  uint32_t size; /* sizeof(routesim_request) of the caller. */
  int32_t priority;
  uint64_t id;     /* Unique in the run. */
  uint64_t random; /* 64 random bits: the same for the same seed, router and request. */
  double now_s;    /* Seconds since the run began. */
  int64_t prompt_tokens;
  int64_t max_tokens;    /* The client's cap on the answer; 0 = none. */
  routesim_text adapter; /* LoRA adapter; empty for the base model. */
  routesim_text session; /* Conversation; empty for none. */
} routesim_request;

/* Results of routesim_policy_score(). Any other value is an error. */
#define ROUTESIM_SCORED 0  /* The highest score wins; ties are drawn; -infinity leaves out. */
#define ROUTESIM_REFUSED 1 /* The router answers 503. */

/* A language that generates its own prototypes, such as Go, defines ROUTESIM_POLICY_TYPES_ONLY. */
#ifndef ROUTESIM_POLICY_TYPES_ONLY

/* ---- Required. ------------------------------------------------------------------------------ */

/* Returns ROUTESIM_POLICY_ABI of the header that the policy was built with. */
uint32_t routesim_policy_abi(void);
/* Makes a policy object. `options` is routing.library.options of the scenario, terminated by 0.
 * Returns null for options that are wrong. */
void* routesim_policy_create(const char* options, uint64_t seed, uint32_t router);
void routesim_policy_destroy(void* policy);
/* Writes servers->count scores. */
int32_t routesim_policy_score(void* policy, const routesim_request* request,
                              const routesim_servers* servers, double* scores);

/* ---- Optional. ------------------------------------------------------------------------------ */

/* The inputs that the policy reads; without this function all of them. */
uint32_t routesim_policy_inputs(void);
/* The request went to `server`. */
void routesim_policy_on_sent(void* policy, const routesim_request* request, uint32_t server);
/* Its first token came; its answer ended, with `output_tokens` tokens. */
void routesim_policy_on_first_token(void* policy, uint64_t request, uint32_t server, double now_s);
void routesim_policy_on_completed(void* policy, uint64_t request, uint32_t server,
                                  int64_t output_tokens, double now_s);

#endif /* ROUTESIM_POLICY_TYPES_ONLY */

#ifdef __cplusplus
}
#endif

/* The i-th of as many random numbers as a decision needs, at least 0 and below 1. */
static inline double routesim_policy_uniform(const routesim_request* request, uint64_t i) {
  uint64_t x = request->random + (i + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (double)((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}
