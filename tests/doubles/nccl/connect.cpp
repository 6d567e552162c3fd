// SPDX-License-Identifier: BSD-3-Clause
#include "connect.hpp"

#include "common/settings.hpp"
#include "counters.hpp"
#include "machine.hpp"

namespace fake {
namespace {

enum Algorithm : unsigned { none = 0, ring = 1, tree = 2, pat = 4, nvls = 8 };

// NCCL chooses by a model of the machine. Which sizes it separates is the double's choice.
constexpr std::size_t small = 64 << 10;
constexpr int first_with_connections_at_run_time = 22200;
constexpr int first_with_pat = 22300;

Algorithm algorithm_of(const Comm& comm, const Operation& o) {
  const std::size_t bytes = o.count * type_bytes(o.type) *
                            (o.kind == fake_all_gather || o.kind == fake_reduce_scatter
                                 ? static_cast<std::size_t>(comm.seat.ranks)
                                 : 1);
  if (bytes == 0) return none;
  if (o.kind == fake_all_reduce) return bytes < small ? tree : nvls;
  if (o.kind == fake_all_gather || o.kind == fake_reduce_scatter)
    return bytes < small && version() >= first_with_pat ? pat : ring;
  return o.kind == fake_broadcast || o.kind == fake_reduce ? ring : none;
}

}  // namespace

unsigned missing_connections(const Comm& comm, const std::vector<Operation>& operations) {
  if (version() < first_with_connections_at_run_time || broken("lazy_connect")) return 0;
  unsigned needed = 0;
  for (const Operation& o : operations) needed |= algorithm_of(comm, o);
  return needed & ~comm.connected;
}

// ncclPrepareTasks marks the algorithms (src/enqueue.cc), and ncclCollPreconnect connects them
// before the launch (src/group.cc), over the bootstrap network: the hosts wait for each other.
Outcome connect(Comm& comm, unsigned algorithms) {
  for (unsigned bit = 1; bit <= algorithms; bit <<= 1) {
    if ((algorithms & bit) == 0) continue;
    if (Outcome bad = meet(comm, Meeting::connect); !bad.ok()) return bad;
    comm.connected |= bit;
    ++totals().connections;
  }
  return {};
}

}  // namespace fake
