// SPDX-License-Identifier: BSD-3-Clause
// A watch for losses that notices one, without a job. It uses what the library does not export.
#include "wait/detail/loss_watch.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "board_processes.hpp"
#include "wait/detail/loss_link.hpp"
#include "wait/detail/progress.hpp"

using namespace rankmesh;
using detail::LossWatch;
using detail::NodeBoard;
using rankmesh_test::Memory;

// fork() waits for the list of the watches and for that of the meshes. So no thread may wait for
// one of them while it has the other.
TEST_CASE("the meshes leave the fast path after a loss when the list of the watches is free") {
  static const Memory* const memory = new Memory;  // the watch stays after a loss
  const auto board = std::make_shared<NodeBoard>(memory->data, nullptr, memory->open_file(),
                                                 std::vector<Rank>{Rank{3}, Rank{5}}, Rank{3});
  NodeBoard peer = memory->board(Rank{5});
  const auto watch = LossWatch::create(board, {}, "dp=2", {}, {}, 0, nullptr);
  static int times = 0;
  detail::set_leave_fast_path([] {
    ++times;
    LossWatch::look_at_all();  // waits for the list
  });
  LossWatch::look_at_all(true);
  CHECK(times == 0);
  peer.leave(detail::Presence::failed, "no disk");
  LossWatch::look_at_all(true);
  CHECK(watch->round() == 1);
  CHECK(times == 1);
  detail::set_leave_fast_path(nullptr);
  board->leave(detail::Presence::destroyed);
}
