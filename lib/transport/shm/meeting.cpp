// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/meeting.hpp"

#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

namespace {

const Meeting& meeting_of(const Step& step) { return static_cast<const Meeting&>(step.call); }

// A step carries all words, unless a group has more members than fit into a slot. Then counts in
// different steps are not compared with each other.
bool meeting_agrees(const Group& group, const Step& step) {
  if (step.at == 0) meeting_of(step).any_is_async = any_is_async(group, step);
  return !step.call.has_blocks() || words_agree(group, step, step.at, step.count);
}

}  // namespace

extern constexpr Algorithm meeting{
    .name = "meeting",
    .operation = Operation::barrier,  // no operation of its own: it precedes any of them
    .forms = CallDescriptor::meeting,
    .payload =
        [](const Group& group, const Call& call) {
          return Payload{detail::call_words(call, static_cast<std::int64_t>(group.size)),
                         sizeof(detail::CallWord)};
        },
    .first = {.publish = [](const Group& group,
                            const Step& step) { publish_words(group, step, step.at, step.count); },
              .agrees = meeting_agrees},
    .run_small = run_in_one_step<meeting>,
};

}  // namespace rankmesh::shm
