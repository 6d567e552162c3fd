// SPDX-License-Identifier: BSD-3-Clause
// Misuse of plain values that the compiler must find; see ../must_not_compile.
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/memory.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

using namespace rankmesh;

// case: a rank in group is no rank: conver
Rank convert(RankInGroup value) {
#if BROKEN
  return value;
#else
  return value.value();
#endif
}

// case: a coordinate is not compared with a rank: operator==
#if BROKEN
bool equal(Coordinate a, Rank b) { return a == b; }
#else
bool equal(Coordinate a, Coordinate b) { return a == b; }
#endif

// case: a rank has no fraction: no match|integral|conver
#if BROKEN
Rank rank{1.5};
#else
Rank rank{1};
#endif

// case: a pointer is no element of a collective: constraint
#if BROKEN
DeviceSpan<char*> span;
#else
DeviceSpan<char> span;
#endif

// case: a plan is asked for a rank, not for a rank in group: conver|memberships
auto ask(const MeshPlan& plan) {
#if BROKEN
  return plan.memberships(RankInGroup{0});
#else
  return plan.memberships(Rank{0});
#endif
}
