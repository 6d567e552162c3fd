// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/communicator.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <new>

#include <fmt/format.h>

#include "detail/survivors.hpp"
#include "detail/translated_ranks.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {
namespace {

// MPI calls it at the start of MPI_Finalize, when communicators can still be freed.
int free_at_finalize(MPI_Comm, int, void* attribute, void*) {
  auto* comm = static_cast<MPI_Comm*>(attribute);
  const int code = MPI_Comm_free(comm);
  delete comm;
  return code;
}

// The process that has taken over the first communicator. A child that it forks is no rank, and
// must not call MPI.
pid_t process_of_rank() {
  static const pid_t process = ::getpid();
  return process;
}

class OwnedGroup {
 public:
  explicit OwnedGroup(const CommunicatorView& comm) {
    check(MPI_Comm_group(comm.native(), &native_), "MPI_Comm_group");
  }
  OwnedGroup(const OwnedGroup& parent, std::span<const int> ranks) {
    check(MPI_Group_incl(parent.native_, static_cast<int>(ranks.size()), ranks.data(), &native_),
          "MPI_Group_incl");
  }
  ~OwnedGroup() { MPI_Group_free(&native_); }
  OwnedGroup(const OwnedGroup&) = delete;
  OwnedGroup& operator=(const OwnedGroup&) = delete;
  [[nodiscard]] MPI_Group native() const { return native_; }

 private:
  MPI_Group native_ = MPI_GROUP_NULL;
};

}  // namespace

CommunicatorView::CommunicatorView(MPI_Comm native) : native_{native} {
  if (!is_active())
    throw UsageError{
        "MPI is not active",
        "create a rankmesh::mpi::Environment first, and do not use MPI after MPI_Finalize"};
  if (native == MPI_COMM_NULL)
    throw UsageError{"the communicator is MPI_COMM_NULL",
                     "pass a communicator that this rank is a member of"};
  int is_inter = 0;
  check(MPI_Comm_test_inter(native, &is_inter), "MPI_Comm_test_inter");
  if (is_inter != 0)
    throw UsageError{"the communicator is an intercommunicator",
                     "merge it first (MPI_Intercomm_merge)"};
  check(MPI_Comm_rank(native, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(native, &size_), "MPI_Comm_size");
}

Communicator::Communicator(MPI_Comm native) {
  if (native == MPI_COMM_NULL) return;
  (void)process_of_rank();
  check(MPI_Comm_set_errhandler(native, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  view_ = CommunicatorView{native};
}

void Communicator::free() {
  if (!view_) return;
  MPI_Comm native = std::exchange(view_, {}).native();
  check(MPI_Comm_free(&native), "MPI_Comm_free");
}

void Communicator::abandon() noexcept {
  if (!view_ || ::getpid() != process_of_rank() || !is_active()) return;
  // Each handle has its own key, so no global variable is needed. The attribute keeps the key alive
  // after it is freed.
  int key = MPI_KEYVAL_INVALID;
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_at_finalize, &key, nullptr) != MPI_SUCCESS)
    return;
  auto* handle = new (std::nothrow) MPI_Comm{view_.native()};
  if (handle != nullptr && MPI_Comm_set_attr(MPI_COMM_SELF, key, handle) != MPI_SUCCESS)
    delete handle;
  MPI_Comm_free_keyval(&key);
  view_ = {};
}

Communicator duplicate(const CommunicatorView& parent) {
  const OwnedGroup group{parent};
  MPI_Comm native = MPI_COMM_NULL;
  check(MPI_Comm_create(parent.native(), group.native(), &native), "MPI_Comm_create");
  return Communicator{native};
}

std::vector<int> translated_ranks(const CommunicatorView& from, std::span<const int> ranks,
                                  const CommunicatorView& to) {
  const OwnedGroup theirs{from}, ours{to};
  std::vector<int> translated(ranks.size());
  check(MPI_Group_translate_ranks(theirs.native(), static_cast<int>(ranks.size()), ranks.data(),
                                  ours.native(), translated.data()),
        "MPI_Group_translate_ranks");
  return translated;
}

Communicator split(const CommunicatorView& parent, int colour, int key) {
  MPI_Comm native = MPI_COMM_NULL;
  check(MPI_Comm_split(parent.native(), colour, key, &native), "MPI_Comm_split");
  return Communicator{native};
}

Communicator create_group(const CommunicatorView& parent, std::span<const int> ranks, int tag) {
  const OwnedGroup all{parent};
  const OwnedGroup members{all, ranks};
  MPI_Comm native = MPI_COMM_NULL;
  check(MPI_Comm_create_group(parent.native(), members.native(), tag, &native),
        "MPI_Comm_create_group");
  return Communicator{native};
}

Communicator create_of_survivors(const CommunicatorView& parent, std::span<const int> ranks,
                                 int tag, std::uint64_t mesh) {
  // The library may be newer than the headers. In Open MPI 5, a variable says whether
  // mpirun --with-ft ulfm was used.
  using CreateFromGroup = int (*)(MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*);
  const auto* const is_tolerant =
      static_cast<const bool*>(::dlsym(RTLD_DEFAULT, "ompi_ftmpi_enabled"));
  const auto create =
      reinterpret_cast<CreateFromGroup>(::dlsym(RTLD_DEFAULT, "MPI_Comm_create_from_group"));
  if (is_tolerant == nullptr || !*is_tolerant || create == nullptr)
    return create_group(parent, ranks, tag);
  const OwnedGroup all{parent};
  const OwnedGroup members{all, ranks};
  MPI_Comm native = MPI_COMM_NULL;
  check(create(members.native(), fmt::format("rankmesh {:x} {}", mesh, tag).c_str(), MPI_INFO_NULL,
               MPI_ERRORS_RETURN, &native),
        "MPI_Comm_create_from_group");
  return Communicator{native};
}

}  // namespace rankmesh::mpi
