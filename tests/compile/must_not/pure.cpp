// Misuse of plain values that the compiler must find; see ../must_not_compile.
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

using namespace rankmesh;

#if CASE == 1  // a rank in group is no rank
// expect: Rank
RankInGroup value = BROKEN ? 0 : 0;
#if BROKEN
Rank rank = value;
#else
Rank rank = value.value();
#endif
#endif

#if CASE == 2  // a coordinate is not compared with a rank
// expect: operator==
#if BROKEN
bool equal(Coordinate a, Rank b) { return a == b; }
#else
bool equal(Coordinate a, Coordinate b) { return a == b; }
#endif
#endif

#if CASE == 3  // a rank has no fraction
// expect: conver|no matching
#if BROKEN
Rank rank{1.5};
#else
Rank rank{1};
#endif
#endif

#if CASE == 4  // bool is no element of a collective
// expect: constraint
struct Flag {
  bool value;
};
#if BROKEN
DeviceSpan<Flag> span;
#else
DeviceSpan<float> span;
#endif
#endif

#if CASE == 5  // a plan is asked for a rank, not for a rank in group
// expect: memberships|conver
#if BROKEN
auto ask(const MeshPlan& plan) { return plan.memberships(RankInGroup{0}); }
#else
auto ask(const MeshPlan& plan) { return plan.memberships(Rank{0}); }
#endif
#endif
