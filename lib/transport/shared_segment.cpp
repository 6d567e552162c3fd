// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/shared_segment.hpp"

#include <sys/mman.h>

#include "detail/segment_file.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

using detail::SegmentFile;
using mpi::check;

struct Failure {  // laid out as MPI_2INT: the highest errno, and the member that has it
  int error = 0;
  int member = 0;
};

// One attempt to create a segment that all members have mapped. Member 0 broadcasts the position of
// its file. A reduction then tells all members whether one of them has failed.
Failure attempt(SegmentFile& file, const mpi::CommunicatorView& members, std::size_t bytes,
                SharedSegment::Backing backing, WaitMonitor& monitor, const WaitPoint& point,
                const Deadline& deadline) {
  MpiMemory<detail::SegmentAnnouncement> announcement;
  if (members.rank() == 0) *announcement = file.create(bytes, backing);
  MPI_Request request = MPI_REQUEST_NULL;
  check(
      MPI_Ibcast(announcement.get(), sizeof *announcement, MPI_BYTE, 0, members.native(), &request),
      "MPI_Ibcast");
  announcement.wait(request, monitor, point, deadline);
  if (members.rank() != 0) file.open(*announcement);

  struct Failures {
    Failure mine, worst;
  };
  MpiMemory<Failures> failures;
  failures->mine = {file.error(), members.rank()};
  check(MPI_Iallreduce(&failures->mine, &failures->worst, 1, MPI_2INT, MPI_MAXLOC, members.native(),
                       &request),
        "MPI_Iallreduce");
  failures.wait(request, monitor, point, deadline);
  return failures->worst;
}

}  // namespace

SharedSegment::SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes,
                             WaitMonitor& monitor, const WaitPoint& point, const Deadline& deadline,
                             Backing backing) {
  SegmentFile file;
  Failure worst = attempt(file, members, bytes, backing, monitor, point, deadline);
  if (worst.error != 0 && backing == Backing::automatic) {
    file = SegmentFile{};
    worst = attempt(file, members, bytes, Backing::named, monitor, point, deadline);
  }
  if (worst.error != 0)
    throw detail::segment_error(point.activity, file.size(), worst.member, members.size(),
                                worst.error);
  *this = SharedSegment{file};
}

SharedSegment::SharedSegment(detail::SegmentFile& file)
    : data_{file.release_mapping()}, size_{file.size()} {}

void SharedSegment::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, SegmentFile::mapped_bytes(size_));
  data_ = nullptr;
  size_ = 0;
}

}  // namespace rankmesh
