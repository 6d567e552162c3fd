// SPDX-License-Identifier: BSD-3-Clause
#include "detail/hierarchical_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/record_call.hpp"
#include "detail/reduce_kernels.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/few_polls.hpp"
#include "wait/detail/send_and_forget.hpp"

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

bool is_on_host(const Call& call) {
  return call.in.kind == MemoryKind::host && call.out.kind == MemoryKind::host;
}

bool has_row(const Call& call, int members) {
  const levels::Scheme* scheme = levels::scheme_of(call.operation);
  return scheme->division != levels::Division::blocks ||
         size_of(call.in.type) * static_cast<std::size_t>(members) <= largest_row;
}

}  // namespace

// A call that was issued.
struct HierarchicalTransport::Issued {
  Call call;
  std::uint64_t number = 0;
  std::shared_ptr<detail::CallExchange::Comparison> comparison;  // with the option `check`
  std::unique_ptr<levels::Execution> execution;  // once the calls before it are complete
  bool is_complete = false;
};

// What a node tells the others if the calls differ.
struct HierarchicalTransport::Note {
  char text[1024] = {};
};

class HierarchicalTransport::Operation final : public Pending {
 public:
  Operation(HierarchicalTransport& transport, std::shared_ptr<Issued> issued)
      : transport_{transport}, issued_{std::move(issued)} {}
  bool test() override {
    if (issued_->is_complete) return true;
    transport_.advance();
    if (issued_->is_complete) return true;
    if (transport_.failure_ == nullptr) return false;
    transport_.has_thrown_ = true;
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

HierarchicalTransport::HierarchicalTransport(mpi::CommunicatorView comm, Place place,
                                             Counter counter, levels::Limits limits)
    : comm_{comm},
      members_{std::move(place.members)},
      inside_{std::move(place.inside)},
      setting_{std::make_shared<levels::Setting>(
          levels::Setting{std::move(place.shape), comm, inside_.get(), limits})},
      counter_{counter} {}

bool HierarchicalTransport::supports(const Call& call) const {
  if (levels::scheme_of(call.operation) == nullptr || !is_on_host(call) || !call.is_plain())
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
  return std::make_unique<Operation>(*this, issue(call));
}

std::shared_ptr<HierarchicalTransport::Issued> HierarchicalTransport::issue(const Call& call) {
  mpi::require_not_finalised();
  auto issued = std::make_shared<Issued>();
  issued->call = call;
  issued->number = counter_.calls() + 1;
  if (counter_.exchange != nullptr)
    issued->comparison = counter_.exchange->begin(call, call.is_async, {});
  else
    counter_.mpi->set_calls(issued->number);
  queue_.push_back(issued);
  advance();
  return issued;
}

void HierarchicalTransport::run(const Call& call, Waiter& waiter) {
  const std::uint64_t number = counter_.calls() + 1;
  detail::RecordedCall recorded = detail::record_call(waiter, call, number, carrier());
  std::shared_ptr<Issued> issued = issue(call);
  const auto is_in_progress = [&] { return !issued->is_complete && failure_ == nullptr; };
  for (int i = 0; i < spins && is_in_progress(); ++i) {
    shm::pause();
    advance();
  }
  for (detail::FewPolls few{most_yields}; is_in_progress() && few.next();) {
    sched_yield();
    advance();
  }
  // A failure is thrown inside the Waiter, which then breaks the group.
  if (!issued->is_complete)
    waiter.finish(call, number, std::make_unique<Operation>(*this, std::move(issued)));
  recorded.end();
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
      receive_note();
  } catch (const levels::Counterparts::Difference& difference) {
    refuse(difference);
  } catch (const MismatchError& error) {
    tell_other_nodes(error.message());  // the members of this node have found it
    fail(std::current_exception());
  } catch (...) {
    fail(std::current_exception());
  }
}

// Continues a call, and returns whether it is complete.
bool HierarchicalTransport::step(Issued& issued) {
  if (issued.comparison != nullptr) {
    if (!counter_.exchange->test(*issued.comparison)) return false;
    issued.comparison.reset();
  }
  if (issued.execution == nullptr)
    issued.execution = std::make_unique<levels::Execution>(issued.call, issued.number, setting_);
  return issued.execution->advance();
}

void HierarchicalTransport::fail(std::exception_ptr why) {
  if (failure_ == nullptr) failure_ = std::move(why);
}

// Another node makes another call.
void HierarchicalTransport::refuse(const levels::Counterparts::Difference& difference) {
  const Issued& own = *queue_.front();
  std::vector<std::string> calls(static_cast<std::size_t>(members_.ranks.size()));
  const auto text = [&](const CallDescriptor& call, std::uint64_t number) {
    return fmt::format("{}, call {}", to_string(call, members_.name_of(call.family())), number);
  };
  calls[static_cast<std::size_t>(comm_.rank())] =
      text(detail::describe_completely(own.call), own.number);
  calls[static_cast<std::size_t>(difference.member)] =
      text(difference.other.call, difference.other.number);
  const MismatchError error{detail::list_calls(members_.ranks, members_.names, calls),
                            detail::mismatch_hint, false};
  tell_other_nodes(error.message());
  if (inside_ != nullptr) inside_->give_up(error);
  fail(std::make_exception_ptr(error));
}

void HierarchicalTransport::tell_other_nodes(std::string_view text) const {
  Note note;
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  const levels::Shape& shape = setting_->shape;
  for (int member = 0; member < shape.size(); ++member)
    if (shape.place(member).node != shape.own().node)
      detail::send_and_forget(comm_, member, detail::level_note_tag, note);
}

// Fails with the text of another node, if a note has arrived.
void HierarchicalTransport::receive_note() {
  int is_there = 0;
  MPI_Status status;
  mpi::check(MPI_Iprobe(MPI_ANY_SOURCE, detail::level_note_tag, comm_.native(), &is_there, &status),
             "MPI_Iprobe");
  if (is_there == 0) return;
  Note note;
  mpi::check(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, detail::level_note_tag,
                      comm_.native(), MPI_STATUS_IGNORE),
             "MPI_Recv");
  const MismatchError error{std::string{note.text, ::strnlen(note.text, sizeof note.text)},
                            detail::mismatch_hint, false};
  if (inside_ != nullptr) inside_->give_up(error);
  fail(std::make_exception_ptr(error));
}

void HierarchicalTransport::throw_if_ended() {
  if (has_thrown_) return;
  if (failure_ == nullptr) receive_note();
  if (failure_ != nullptr) {
    has_thrown_ = true;
    std::rethrow_exception(failure_);
  }
  if (inside_ != nullptr) inside_->throw_if_ended();
}

void HierarchicalTransport::give_up(const Error& why) {
  has_thrown_ = true;
  fail(std::make_exception_ptr(why));
  if (inside_ != nullptr) inside_->give_up(why);
}

// The members of a node tell each other when they close the group.

void HierarchicalTransport::leave(std::string_view why) {
  if (inside_ != nullptr) inside_->leave(why);
}

bool HierarchicalTransport::have_all_left() {
  throw_if_ended();
  return inside_ == nullptr || inside_->have_all_left();
}

void HierarchicalTransport::stay() {
  if (inside_ != nullptr) inside_->stay();
}

void HierarchicalTransport::compare_at_close() {
  throw_if_ended();
  if (inside_ != nullptr) inside_->compare_at_close();
}

}  // namespace rankmesh
