// SPDX-License-Identifier: BSD-3-Clause
#include "detail/hierarchical_transport.hpp"

#include <utility>

#include <fmt/format.h>

#include "detail/call_errors.hpp"
#include "detail/published_call.hpp"
#include "detail/reduce_kernels.hpp"
#include "detail/staged_call.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/few_polls.hpp"

namespace rankmesh {
namespace {

// How often a member polls before it yields its core, and how often it yields its core before it
// waits through the Waiter, which reads clocks. A message takes much longer than a yield for which
// no other process waits. Therefore a member yields early: a carrier may need the core.
constexpr int spins = 16;
constexpr int most_yields = 2000;
// After `polls_before_notes` polls, an unfinished call checks for the note of another node at every
// `polls_per_note`-th poll. Such a check takes as long as a message.
constexpr int polls_before_notes = 2500;
constexpr int polls_per_note = 64;
// A step in shared memory carries at least one element of each block.
constexpr std::size_t largest_row = 4096;

bool has_row(const Call& call, int members) {
  const levels::Plan* plan = levels::plan_of(call.operation);
  return !plan->has_blocks_of_members ||
         size_of(call.in.type) * static_cast<std::size_t>(members) <= largest_row;
}

}  // namespace

// A call that was issued.
struct HierarchicalTransport::Issued {
  Call call;
  std::uint64_t number = 0;
  std::unique_ptr<Pending> comparison;           // with the option `check`
  std::unique_ptr<levels::Execution> execution;  // once the calls before it are complete
  bool is_complete = false;
};

class HierarchicalTransport::PendingExecution final : public Pending {
 public:
  PendingExecution(HierarchicalTransport& transport, std::shared_ptr<Issued> issued)
      : transport_{transport}, issued_{std::move(issued)} {}
  bool test() override {
    if (issued_->is_complete) return true;
    transport_.advance();
    if (issued_->is_complete) return true;
    if (transport_.failure_ == nullptr) return false;
    std::rethrow_exception(transport_.failure_);
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return issued_->execution == nullptr ? std::vector<std::int64_t>{}
                                         : issued_->execution->awaited();
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return issued_->execution != nullptr && issued_->execution->is_in_mpi();
  }

 private:
  HierarchicalTransport& transport_;
  // Shared with the queue. A call that has failed is leaked with this object.
  std::shared_ptr<Issued> issued_;
};

HierarchicalTransport::HierarchicalTransport(mpi::CommunicatorView comm, Nodes nodes,
                                             detail::NoteGuard& guard, bool uses_copies,
                                             levels::Sizes sizes)
    : comm_{comm},
      guard_{guard},
      uses_copies_{uses_copies},
      inside_{std::move(nodes.inside)},
      setting_{std::make_shared<levels::Setting>(
          levels::Setting{std::move(nodes.shape), comm, inside_.get(), sizes})} {}

bool HierarchicalTransport::supports(const Call& call) const {
  if (levels::plan_of(call.operation) == nullptr || call.is_on_device() || !call.is_plain())
    return false;
  if (reduces(call.operation) && !detail::can_reduce(call.in.type)) return false;
  return has_row(call, setting_->shape.size());
}

std::string HierarchicalTransport::why_not(const Call& call) const {
  if (call.has_blocks()) return "it does not carry blocks of different sizes";
  if (call.user != nullptr) return "it does not run functions of the program";
  return fmt::format("it does not carry {} of {} in a group of {} members",
                     to_string(call.operation), to_string(call.in.type), setting_->shape.size());
}

std::unique_ptr<Pending> HierarchicalTransport::start(const Call& call) {
  const auto start_in_place = [this](const Call& carried) {
    return std::make_unique<PendingExecution>(*this, issue(carried));
  };
  if (!uses_copies_) return start_in_place(call);
  return std::make_unique<detail::StagedCall>(call, RankInGroup{comm_.rank()}, comm_.size(),
                                              start_in_place);
}

std::shared_ptr<HierarchicalTransport::Issued> HierarchicalTransport::issue(const Call& call) {
  mpi::require_not_finalised();
  auto issued = std::make_shared<Issued>();
  issued->call = call;
  issued->comparison = guard_.start_comparison(call, {});
  issued->number = guard_.calls();
  queue_.push_back(issued);
  advance();
  return issued;
}

void HierarchicalTransport::run(const Call& call, Waiter& waiter) {
  const std::uint64_t number = guard_.calls() + 1;
  detail::PublishedCall published{waiter, call, number, carrier()};
  if (uses_copies_) {
    waiter.finish(call, number, start(call));
    return published.end();
  }
  std::shared_ptr<Issued> issued = issue(call);
  const auto is_in_progress = [&] { return !issued->is_complete && failure_ == nullptr; };
  for (detail::FewPolls few{spins, most_yields}; is_in_progress() && few.next();) advance();
  // A failure is thrown inside the Waiter, which then breaks the group.
  if (!issued->is_complete)
    waiter.finish(call, number, std::make_unique<PendingExecution>(*this, std::move(issued)));
  published.end();
}

void HierarchicalTransport::advance() {
  if (queue_.empty() || failure_ != nullptr) return;
  try {
    while (!queue_.empty() && step(*queue_.front())) {
      queue_.front()->is_complete = true;
      polls_ = 0;
      queue_.front()->execution.reset();
      queue_.pop_front();
    }
    if (!queue_.empty() && ++polls_ > polls_before_notes && polls_ % polls_per_note == 0)
      guard_.throw_if_ended();
  } catch (const levels::Difference& difference) {
    refuse(error_of(difference));
  } catch (const MismatchError& error) {  // found by the members of this node, or told by others
    refuse(error);
  } catch (const std::bad_alloc&) {
    const Call& call = queue_.front()->call;
    fail(std::make_exception_ptr(detail::too_little_memory(
        fmt::format("{}.{}",
                    guard_.members().name_of(detail::describe_completely(call).name_index()),
                    to_string(call.operation)),
        call)));
  } catch (...) {
    fail(std::current_exception());
  }
}

// Continues a call, and returns whether it is complete.
bool HierarchicalTransport::step(Issued& issued) {
  if (issued.comparison != nullptr) {
    if (!issued.comparison->test()) return false;
    issued.comparison.reset();
  }
  if (issued.execution == nullptr)
    issued.execution = std::make_unique<levels::Execution>(issued.call, issued.number, setting_);
  return issued.execution->advance();
}

void HierarchicalTransport::fail(std::exception_ptr why) {
  if (failure_ == nullptr) failure_ = std::move(why);
}

// Members make different calls. Tells those that do not know it.
void HierarchicalTransport::refuse(const MismatchError& error) {
  guard_.refuse(error);
  if (inside_ != nullptr) inside_->give_up(error);
  fail(std::make_exception_ptr(error));
}

// Returns the error for a node that makes another call.
MismatchError HierarchicalTransport::error_of(const levels::Difference& difference) const {
  const detail::GroupMembers& members = guard_.members();
  const Issued& own = *queue_.front();
  std::vector<std::string> calls(static_cast<std::size_t>(members.ranks.size()));
  calls[static_cast<std::size_t>(comm_.rank())] =
      members.text_of(detail::describe_completely(own.call), own.number);
  calls[static_cast<std::size_t>(difference.member)] =
      members.text_of(difference.other.call, difference.other.number);
  return detail::different_calls(members.list(calls));
}

}  // namespace rankmesh
