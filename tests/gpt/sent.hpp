// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of examples/gpt send in a step, by the records of their calls.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rankmesh/record/find.hpp>

#include "../../examples/gpt/groups.hpp"

/// The bytes that this rank sends in the ring algorithms of the collectives of a family, and in
/// messages.
struct Sent {
  std::int64_t gathers = 0;  ///< all_gathers and reduce_scatters, and the rows of experts
  /// All_reduces, times the size of the group: what all members together send is a whole number.
  std::int64_t reductions = 0;
  std::map<std::int64_t, std::int64_t> messages{};  ///< by the receiver

  [[nodiscard]] std::int64_t to(std::int64_t receiver) const {
    const auto found = messages.find(receiver);
    return found == messages.end() ? 0 : found->second;
  }
  [[nodiscard]] std::int64_t all_messages() const {
    std::int64_t sum = 0;
    for (const auto& [to, bytes] : messages) sum += bytes;
    return sum;
  }
};

/// The record of this rank, which has one mesh open.
class OwnRecord {
 public:
  OwnRecord() : sources_{rankmesh::record::sources_of_process(getpid())} {
    std::erase_if(sources_, [](const auto& source) { return source.process_id != getpid(); });
  }
  [[nodiscard]] rankmesh::record::Record read() const {
    return rankmesh::record::read_all(sources_).records.at(0);
  }

 private:
  std::vector<rankmesh::record::Source> sources_;
};

/// Runs a step, and returns what this rank sends in it, by family. Single numbers (the loss, the
/// norm) and the numbers of the rows that go to each expert are left out.
template <class Step>
std::map<std::string, Sent> sent_in(const OwnRecord& own, Step&& step) {
  const auto before = own.read().calls_made;
  step();
  const auto record = own.read();
  std::map<std::string, Sent> sent;
  for (const auto& call : record.calls) {
    const auto& what = call.descriptor;
    const auto& group = record.groups[call.group];
    if (call.sequence <= before || what.count <= 1) continue;
    const std::int64_t bytes = what.count * std::int64_t{sizeof(Real)}, others = group.size - 1;
    Sent& of = sent[group.names[what.name_index()]];
    using enum rankmesh::Operation;
    if (what.operation() == all_gather || what.operation() == reduce_scatter)
      of.gathers += others * bytes;
    else if (what.operation() == all_reduce)
      of.reductions += 2 * others * bytes;
    else if (what.operation() == all_to_all)
      of.gathers += what.has(rankmesh::CallDescriptor::blocks) ? bytes : 0;
    else if (what.operation() == send || what.operation() == send_recv)
      of.messages[static_cast<std::int64_t>(what.peer())] += bytes;
  }
  return sent;
}
