// SPDX-License-Identifier: BSD-3-Clause
#include "detail/note_guard.hpp"

#include <algorithm>
#include <cstring>

#include "base/detail/copy_of_error.hpp"
#include "detail/group_messages.hpp"
#include "transport/detail/mpi_transport.hpp"

namespace rankmesh::detail {

bool NoteGuard::meet(const Call& call, bool is_async, Waiter& waiter) {
  waiter.finish(call, ++calls(), MpiTransport{comm_}.start({.operation = Operation::barrier}));
  return is_async;
}

std::unique_ptr<Pending> NoteGuard::start_comparison(const Call&, Carry carry) {
  ++calls();
  if (carry) carry();
  return nullptr;
}

void NoteGuard::refuse(const MismatchError& error) {
  if (failure_ != nullptr) return;  // another member has found it first
  failure_ = std::make_exception_ptr(error);
  tell_all(NoteKind::finding, error.message());
}

void NoteGuard::give_up(const Error& why) {
  has_thrown_ = true;
  if (failure_ == nullptr) failure_ = copy_of(why);
}

void NoteGuard::throw_if_ended() {
  if (has_thrown_) return;
  if (failure_ == nullptr) receive_notes();
  if (failure_ == nullptr) return;
  has_thrown_ = true;
  std::rethrow_exception(failure_);
}

bool NoteGuard::have_all_left() {
  throw_if_ended();
  return true;
}

void NoteGuard::tell_all(NoteKind kind, std::string_view text, std::uint64_t closed_after) const {
  GuardNote note;
  note.mark = members_.key.mark();
  note.kind = kind;
  note.attempt = failed_attempts_ + 1;
  note.closed_after = closed_after;
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  for (int member = 0; member < comm_.size(); ++member)
    if (member != comm_.rank()) send_and_forget(comm_, member, members_.key.note_tag(), note);
}

void NoteGuard::receive_notes() {
  while (const auto received =
             receive_of_group<GuardNote>(comm_, members_.key.note_tag(), members_.key.mark())) {
    const GuardNote& note = received->message;
    // The attempts to close a mesh are collective, so an attempt that has failed on one rank has
    // failed on all of them.
    if (note.attempt <= failed_attempts_) continue;
    std::string text{note.text, ::strnlen(note.text, sizeof note.text)};
    if (note.kind != NoteKind::finding)
      take(received->from, note, std::move(text));
    else if (failure_ == nullptr)
      failure_ = std::make_exception_ptr(different_calls(std::move(text)));
  }
}

}  // namespace rankmesh::detail
