// SPDX-License-Identifier: BSD-3-Clause
// How long the library waits where neither the program nor a peer says for how long.
#pragma once

#include <cstdint>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// How long a rank waits for what it can do without, or for what may never come. No program can set
/// these times; the tests of the library set some of them (patience_of_tests()).
struct Patience {
  using Duration = Deadline::Duration;

  // A wait for other ranks (wait/).
  Duration yields{0.05};          ///< So long, a rank only yields its core between its polls.
  Duration before_deadline{0.5};  ///< So early, members on other nodes are asked.
  Duration before_stall{0.5};     ///< The same, before a stall is reported.
  Duration verdict{0.1};          ///< After the deadline: another member may be about to say why.
  Duration answer{0.3};           ///< After the deadline: members are asked once more.
  Duration part_of_leaver{0.1};   ///< A member that has left or ended may have done its part.
  Duration check{0.1};            ///< Between two looks at the ranks of the node.
  Duration diagnosis{0.2};        ///< To read the records of the ranks of the node.
  Duration leftovers{1};          ///< For messages on the communicator of the program.

  // Words and calls of other members.
  Duration finding{1};        ///< For the text that another member of the node is writing.
  Duration calls{0.1};        ///< For calls that members have not made yet; the text contains them.
  Duration reports{0.3};      ///< For the reports of members on other nodes.
  Duration on_the_way{0.1};   ///< For messages that may have been sent before close().
  Duration counted{5};        ///< The same, if all members have counted them as sent.
  Duration first_note{0.02};  ///< A longer wait in new_group is explained to all members.
  Duration conflict_of_lowest{0.1}, conflict_of_others{0.4};  ///< Lists of new_group that differ.

  // The end of the job (mpi/).
  Duration last_words{0.25};           ///< A reporter collects what the ranks of its node say.
  Duration last_words_elsewhere{0.3};  ///< So much longer on nodes other than that of rank 0.
  Duration forwarding{0.1};            ///< Launchers forward the output.
  Duration reporter{0.9};              ///< A rank waits for the reporter and the end of the job.

  // Lost ranks.
  Duration settle{0.05};   ///< The ranks of a node die one after another.
  Duration deaths{0.05};   ///< Between two looks for them.
  Duration ballot{0.05};   ///< For answers between nodes.
  Duration decision{5};    ///< Of the nodes, after the silence that the program allows.
  Duration sign{1};        ///< For the news of a loss, after another library has failed.
  Duration creation{0.1};  ///< Of a communicator, after a rank was lost; see create_bounded().
  Duration finalize{1};    ///< MPI_Finalize, after another process has come through it, or died.

  // Devices.
  Duration abort{5};            ///< For the end of NCCL communicators; see nccl::Abort.
  Duration aborted_call{1};     ///< For the return of a call whose communicators were aborted.
  Duration graph_reports{0.5};  ///< For CUDA's report that a graph was destroyed.
};

/// Returns the times, which tests may change before they open a mesh.
RANKMESH_API Patience& patience_of_tests() noexcept;
/// Returns the times.
inline const Patience& patience() noexcept { return patience_of_tests(); }

/// Returns one of the times in nanoseconds.
inline std::int64_t nanoseconds(Patience::Duration time) {
  return static_cast<std::int64_t>(time.count() * 1e9);
}

}  // namespace rankmesh::detail
