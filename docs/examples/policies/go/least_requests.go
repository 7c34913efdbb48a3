// A routing policy in Go: the server with the fewest requests in flight.
//
//	CGO_CFLAGS=-I. go build -buildmode=c-shared -o least_requests.so least_requests.go
package main

/*
#define ROUTESIM_POLICY_TYPES_ONLY
#include "routesim_policy.h"
*/
import "C"
import "unsafe"

//export routesim_policy_abi
func routesim_policy_abi() C.uint32_t { return C.ROUTESIM_POLICY_ABI }

//export routesim_policy_inputs
func routesim_policy_inputs() C.uint32_t { return 0 }

// The policy has no state, so any address that is not null will do.
var state C.int

//export routesim_policy_create
func routesim_policy_create(options *C.char, seed C.uint64_t, router C.uint32_t) unsafe.Pointer {
	return unsafe.Pointer(&state)
}

//export routesim_policy_destroy
func routesim_policy_destroy(policy unsafe.Pointer) {}

//export routesim_policy_score
func routesim_policy_score(policy unsafe.Pointer, request *C.routesim_request,
	servers *C.routesim_servers, scores *C.double) C.int32_t {
	count := int(servers.count)
	inFlight := unsafe.Slice(servers.in_flight, count)
	out := unsafe.Slice(scores, count)
	for i := range out {
		out[i] = -inFlight[i]
	}
	return C.ROUTESIM_SCORED
}

func main() {}
