// SPDX-License-Identifier: BSD-3-Clause
#include "detail/note_guard.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rankmesh/mpi/error.hpp"
#include "wait/detail/send_and_forget.hpp"

namespace rankmesh::detail {

using mpi::check;

void NoteGuard::refuse(const MismatchError& error) {
  if (failure_ != nullptr) return;  // another member has found it first
  failure_ = std::make_exception_ptr(error);
  tell_all(NoteKind::finding, error.message());
}

void NoteGuard::give_up(const Error& why) {
  has_thrown_ = true;
  if (failure_ == nullptr) failure_ = std::make_exception_ptr(why);
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
  Note note;
  note.mark = members_.key.mark();
  note.kind = kind;
  note.attempt = failed_attempts_ + 1;
  note.closed_after = closed_after;
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  for (int member = 0; member < comm_.size(); ++member)
    if (member != comm_.rank()) send_and_forget(comm_, member, members_.key.note_tag(), note);
}

void NoteGuard::receive_notes() {
  MPI_Comm comm = comm_.native();
  const int tag = members_.key.note_tag();
  for (;;) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != sizeof(Note)) return;  // a message of the program
    Note note;
    check(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, tag, comm, MPI_STATUS_IGNORE),
          "MPI_Recv");
    // The attempts to close a mesh are collective, so an attempt that has failed on one rank has
    // failed on all of them.
    if (note.mark != members_.key.mark() || note.attempt <= failed_attempts_) continue;
    std::string text{note.text, ::strnlen(note.text, sizeof note.text)};
    if (note.kind != NoteKind::finding)
      take(status.MPI_SOURCE, note, std::move(text));
    else if (failure_ == nullptr)
      failure_ = std::make_exception_ptr(MismatchError{std::move(text), mismatch_hint, false});
  }
}

}  // namespace rankmesh::detail
