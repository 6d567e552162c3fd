// SPDX-License-Identifier: BSD-3-Clause
// Opens the groups of a mesh plan on an MPI communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/symmetric_span.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

namespace detail {
struct MeshState;
}

/// Opens a mesh on an MPI communicator, and holds one coordinator per family (a dimension, a
/// product or a list of groups) that this rank belongs to. The mesh creates its own communicators
/// and communicates on these. The communicator that the program passes still belongs to the
/// program, and several meshes can use the same one.
///
/// Cost of the construction for P ranks and F families: one reduction of 40 bytes, one duplicate of
/// the communicator, one discovery of the nodes, one MPI_Comm_split per family that needs a
/// communicator (O(P) bytes per rank each), 8 P bytes for the placement, and one communicator per
/// distinct group of this rank.
///
/// Thread safety: only one thread at a time may call the mesh; a call from a second thread throws
/// UsageError. Move-only.
class RANKMESH_API Mesh {
 public:
  /// Opens a mesh. Collective over `world`; blocks until all ranks take part. The ranks of the mesh
  /// are the ranks of `world`.
  /// @param world  Any intracommunicator.
  /// @param mesh   A mesh string, or a path that ends in `.toml`. The same on every rank.
  /// @throws SpecError      The description is invalid, in the same way on all ranks.
  /// @throws MismatchError  The ranks differ in the description, in the options or in the libraries
  ///                        that they use, or a rank failed. The text is the same on every rank.
  /// @throws TimeoutError   Some ranks did not take part. The error names them.
  /// @throws UsageError     `world` is null or an intercommunicator, or MPI is not active.
  ///
  /// After an exception nothing remains open.
  Mesh(MPI_Comm world, std::string_view mesh, MeshOptions options = {});
  Mesh(MPI_Comm world, const MeshSpec& mesh, MeshOptions options = {});
  /// Opens the mesh that the environment variable `RANKMESH` describes; see the constructor.
  static Mesh from_environment(MPI_Comm world, MeshOptions options = {});
  /// Destroys the mesh without communication. MPI_Finalize frees what close() has not freed.
  ~Mesh();
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;

  /// Returns the coordinator of this rank's group in a family. Local. It is valid until
  /// the mesh is destroyed.
  /// @throws UnknownName  The hint lists the names of the families.
  /// @throws NotMember    No group of the family contains this rank, or the groups overlap
  ///                      and have no coordinators.
  GroupCoordinator& operator[](std::string_view name);

  /// Returns the coordinator of a duplicate communicator of this rank's group, for operations that
  /// run at the same time as the operations of the first coordinator. Local.
  /// @param name  The name of the family.
  /// @param key   A key of GroupOptions::duplicates of the family. The constructor
  ///              creates the duplicates.
  /// @throws UnknownName, NotMember
  GroupCoordinator& duplicate(std::string_view name, std::string_view key);

  /// Returns the plan of the mesh, which answers all questions about ranks without communication.
  [[nodiscard]] const MeshPlan& plan() const;
  /// Returns this rank's number in the mesh.
  [[nodiscard]] Rank rank() const;
  /// Returns the number of ranks in the mesh.
  [[nodiscard]] std::int64_t size() const;
  /// Returns this rank's coordinate along a dimension.
  [[nodiscard]] Coordinate coordinate(std::string_view dimension) const;
  /// Returns the CUDA device that this rank uses, or nothing if the mesh has no devices.
  [[nodiscard]] std::optional<int> device() const;
  /// Returns the reason why the mesh has no devices. The text is empty if the mesh has devices.
  [[nodiscard]] const std::string& why_no_device() const;
  /// Returns the node of every rank. The constructor discovers the nodes once.
  [[nodiscard]] const Placement& placement() const;

  /// Opens the NCCL communicators of families that have the option GroupOptions::lazy.
  /// Communicators that are already open do not change. Does nothing if the mesh has no devices.
  ///
  /// Collective over all ranks of the groups of these families. For a family that is split from a
  /// parent, it is collective over all ranks of the parent's groups. Blocks, and waits until the
  /// device is idle, because NCCL cannot create a communicator while another communicator is in
  /// use.
  /// @param names  The names of the families; the same on every rank.
  /// @throws UnknownName
  /// @throws MismatchError  The ranks pass different names, or a rank failed. No communicator has
  ///                        been opened.
  /// @throws TimeoutError   Some ranks did not take part. The error names them.
  void open(std::span<const std::string_view> names);
  void open(std::initializer_list<std::string_view> names) {
    open(std::span{names.begin(), names.size()});
  }

  /// Makes progress on all asynchronous operations on host memory that are in
  /// flight. Local; never blocks.
  void progress();

  /// Allocates symmetric host memory: `count` zeroed elements per rank, in a segment that all ranks
  /// of a node have mapped. Members of a group can then read each other's buffers directly, without
  /// an intermediate copy. Collective over the mesh; blocks.
  ///
  /// A group uses the memory directly if the group belongs to one of these families and lies inside
  /// one node, and if all members pass a SymmetricSpan as the output of broadcast or all_gather, as
  /// the input of reduce_scatter or all_to_all, or as both buffers of all_reduce. Otherwise the
  /// group treats the span as ordinary host memory.
  ///
  /// The mesh owns the memory. close() frees it, and later operations on it throw ClosedError.
  /// Cost: one agreement and one segment per node (see SharedSegment). The system allocates a page
  /// when a process first writes to the page.
  /// @param count  Elements per rank; the same on every rank.
  /// @param names  The families that use the memory; the same on every rank.
  /// @throws UnknownName
  /// @throws MismatchError      The ranks pass different counts or names, or one of them failed.
  /// @throws SharedMemoryError  A node has no memory left. The text is the same on every rank.
  /// @throws TimeoutError       Some ranks did not take part. The error names them.
  template <Element T, MemoryKind Kind = MemoryKind::host>
    requires(Kind == MemoryKind::host)
  [[nodiscard]] SymmetricSpan<T> allocate_symmetric(std::size_t count,
                                                    std::span<const std::string_view> names) {
    auto window = allocate_window(count, sizeof(T), names);
    T* const data = reinterpret_cast<T*>(window->own());
    return {std::move(window), data, count};
  }

  /// Allocates device memory that is registered with NCCL: `count` zeroed elements per rank.
  /// Collective over the mesh; blocks, and waits until the device is idle.
  ///
  /// The memory comes from NCCL's allocator (NCCL 2.19) and is registered with the communicators of
  /// these families, in the order of the plan, as symmetric windows (2.27) or as user buffers
  /// (2.19); the log says which of these two is used. If NCCL does not support registration, the
  /// memory is ordinary device memory. Operations take the span like any other span, since NCCL
  /// finds the registration by the address. In one operation, either all members of a group pass
  /// registered memory at the same offset, or no member passes registered memory.
  ///
  /// The mesh owns the memory. close() frees the memory, and the span is invalid afterwards.
  /// @param count  Elements per rank; the same on every rank.
  /// @param names  The families that use the memory; the same on every rank.
  /// @throws UnknownName    The rank that passes the unknown name throws it; the other ranks time
  ///                        out.
  /// @throws NoDeviceError  The mesh has no devices.
  /// @throws MismatchError  The ranks pass different counts or names, a rank has no memory left, or
  ///                        a family is not open yet (`lazy`).
  /// @throws TimeoutError   Some ranks did not take part. The error names them.
  ///
  /// After a registration has failed, the groups of these families are broken.
  template <Element T, MemoryKind Kind>
    requires(Kind == MemoryKind::device)
  [[nodiscard]] DeviceSpan<T> allocate_symmetric(std::size_t count,
                                                 std::span<const std::string_view> names) {
    return {reinterpret_cast<T*>(allocate_on_device(count, sizeof(T), names)), count};
  }
  template <Element T, MemoryKind Kind = MemoryKind::host>
  [[nodiscard]] auto allocate_symmetric(std::size_t count,
                                        std::initializer_list<std::string_view> names) {
    return allocate_symmetric<T, Kind>(count, std::span{names.begin(), names.size()});
  }

  /// Creates a dynamic group of any ranks, in the given order. Collective over these ranks alone;
  /// blocks until all of them take part. Ranks that are in several groups must create these groups
  /// in the same global order. The group stays open until the program closes the group or the mesh.
  ///
  /// Cost: k-1 messages of 24 bytes for k members, then MPI_Comm_create_group.
  /// @param ranks  Ranks of the mesh; the same list on every member.
  /// @param name   The name for messages; if empty, `group(<ranks>)`.
  /// @throws UsageError    The list does not contain this rank, or contains a
  ///                       rank outside the mesh.
  /// @throws TimeoutError  Some members did not take part. The error names them.
  std::shared_ptr<GroupCoordinator> new_group(std::span<const Rank> ranks, std::string name = {});
  /// Creates several dynamic groups. All ranks create them in the same canonical order, so that
  /// overlapping groups cannot deadlock. Collective over each group; blocks.
  /// @return One element per list; null if the list does not contain this rank.
  std::vector<std::shared_ptr<GroupCoordinator>> new_groups(
      std::span<const std::vector<Rank>> groups);
  /// Closes a dynamic or adopted group. Collective over the members of the group; waits for them,
  /// at most for the mesh's timeout.
  /// @throws UsageError    The group belongs to a family or to another mesh, or a CUDA graph still
  ///                       contains its operations.
  /// @throws TimeoutError  Some members did not take part. The error names them.
  void close(GroupCoordinator& group);

  /// Creates a coordinator on communicators of the program. Local. The mesh does not free these
  /// communicators; they must exist as long as the coordinator is used.
  /// @param comm  A communicator whose ranks are all ranks of the mesh.
  /// @param name  The name for messages.
  /// @param nccl  An ncclComm_t for operations on device memory. It must have the same ranks in the
  ///              same order, on the mesh's device.
  /// @throws UsageError     The communicators do not match the mesh or each other.
  /// @throws NoDeviceError  `nccl` is given, but the mesh has no devices.
  std::shared_ptr<GroupCoordinator> adopt(MPI_Comm comm, std::string name,
                                          ncclComm* nccl = nullptr);

  /// Closes the mesh: waits for all ranks, at most for the timeout, and then frees all
  /// communicators in the same order on every rank. Collective over the world; call it before
  /// MPI_Finalize. A second call does nothing.
  /// @throws MismatchError  CUDA graphs of some rank still contain operations of the mesh. The text
  ///                        is the same on every rank. The mesh stays open, so destroy the graphs
  ///                        and call close() again.
  /// @throws TimeoutError   Some ranks did not take part. The error names them.
  void close();
  /// Returns whether close() has closed the mesh.
  [[nodiscard]] bool is_closed() const;
  /// Aborts all NCCL communicators in one call, without waiting for other ranks. All groups of the
  /// mesh are broken afterwards, even for host memory. Local; call it on a rank that has detected a
  /// failure. The other ranks get an error from their next operation.
  void abort();

 private:
  friend class NcclGroup;
  explicit Mesh(std::unique_ptr<detail::MeshState> state);
  std::shared_ptr<const SymmetricWindow> allocate_window(std::size_t count,
                                                         std::size_t size_of_element,
                                                         std::span<const std::string_view> names);
  std::byte* allocate_on_device(std::size_t count, std::size_t size_of_element,
                                std::span<const std::string_view> names);
  [[nodiscard]] detail::MeshState& state() const;  // throws ClosedError after a move
  [[nodiscard]] detail::MeshState& open_state(const char* activity) const;  // and after close()
  std::unique_ptr<detail::MeshState> state_;
};

}  // namespace rankmesh
