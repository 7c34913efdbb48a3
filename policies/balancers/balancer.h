// The interface of balancers, under the name that it had before the kit.
#pragma once

#include "policies/balancers/kit/balancer.h"
