// SPDX-License-Identifier: BSD-3-Clause
// Corrects the clocks of the nodes with the help of the records.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Corrects the clocks of nodes such that, in the result, no member leaves a collective before the
/// last member has begun it, and no message is received before it was sent. The function shifts all
/// times of a node by the same amount, which is at most Record::clock_error. The times of node 0 do
/// not change.
///
/// The function uses the collectives for which synchronises() is true, and the messages for which
/// Message::is_certain is true. A missing time imposes no constraint. The begin time of a call may
/// be the moment at which a rank noticed that it had to wait, and the other members may have
/// arrived shortly before. Unless Record::has_all_times is true, a begin time is therefore used
/// only if the call ended at least 10 us later.
///
/// A shift can be expressed as a fraction of the clock error of its node. Of all sets of shifts
/// that satisfy the constraints, the function chooses one whose largest fraction is smallest. It
/// then moves each node as close to its original clock as the other nodes permit. The constraints
/// also bound the remaining error, so Record::clock_error becomes smaller.
///
/// If the constraints contradict each other, the records are returned unchanged and `remarks` says
/// so.
///
/// With C calls and N nodes, finding the collectives takes O(C log C) time, each collective over m
/// nodes O(m^2), and solving the constraints O(N^3). The function uses O(C + N^2) memory.
/// @param records  the records of one mesh.
/// @param remarks  receives a sentence for each node whose clock was shifted by at least 1 us, or
/// the reason why no clock was shifted. May be null.
[[nodiscard]] std::vector<Record> align(std::vector<Record> records,
                                        std::vector<std::string>* remarks = nullptr);

}  // namespace rankmesh::record
