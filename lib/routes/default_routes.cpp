// SPDX-License-Identifier: BSD-3-Clause
// The default rules. If another transport or algorithm becomes faster, only this file has to
// change.
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh {

// A rule names the sizes at which its transport took at most as long as Open MPI, with MPI's
// default settings and with its best ones (docs/performance-collectives.csv). Groups of 2, 3 and 4
// ranks were measured with a core for each rank, and groups of 8 ranks on shared cores. Processors
// differ: between three ranks, broadcasts of 512 KiB and more through shared memory took 0.4 to 0.7
// of MPI's time on an Intel Xeon, and 0.95 to 1.3 on an AMD EPYC.
//
// Shared memory copies data twice, but every member reduces or copies a share of a large message.
// MPI copies once, but few members do the work. Therefore shared memory is faster at all sizes if
// three or more members share the work, and in a reduce. Otherwise it is faster up to the size of a
// cache: with two members, and in scatter and all_to_all, which have no work to share.
//
// Objects that the opening of a mesh needs live for ever, here and elsewhere: a thread of the
// program may call exit(), which destroys static objects, while another one opens a mesh.
const RouteTable& RouteTable::defaults() {
  static const auto& table = *new RouteTable{parse(
      // Any number of ranks inside one node.
      "*.barrier:host:one_node=shm; *.reduce_scatter:host:one_node=shm; "
      "*.broadcast:host:0-48K:one_node=shm; *.reduce:host:0-16M:one_node=shm; "
      "*.all_reduce:host:0-192K:one_node=shm; *.all_gather:host:0-48K:one_node=shm; "
      "*.gather:host:0-96K:one_node=shm; *.scatter:host:0-48K:one_node=shm; "
      "*.all_to_all:host:0-32K:one_node=shm; "
      // Messages between two members. MPI carries the elements of messages of more than 16 KiB.
      "*.send:host:one_node=shm; "
      // Three and more ranks. Only sizes of up to 32 MiB were measured.
      "*.broadcast:host:48K-inf:ranks(3-inf):one_node=shm; "
      "*.all_reduce:host:192K-16M:ranks(3-inf):one_node=shm; "
      "*.all_gather:host:48K-16M:ranks(3-inf):one_node=shm; "
      "*.gather:host:96K-16M:ranks(3-inf):one_node=shm; "
      "*.scatter:host:48K-64K:ranks(3-inf):one_node=shm; "
      "*.all_to_all:host:32K-96K:ranks(3-inf):one_node=shm; "
      // Ranks that share cores: each message of MPI costs a context switch.
      "*.scatter:host:64K-192K:ranks(5-inf):one_node:shared_cores=shm; "
      "*.all_to_all:host:96K-256K:ranks(5-inf):one_node:shared_cores=shm; "
      // Blocks of different sizes. Shared memory itself leaves large blocks to MPI.
      "*.all_gather:host:v_form:one_node=shm; *.gather:host:v_form:one_node=shm; "
      "*.scatter:host:v_form:one_node=shm; *.all_to_all:host:v_form:one_node=shm; "
      // Scans.
      "*.scan:host:one_node=shm; *.exscan:host:one_node=shm; "
      // Groups that span nodes, on two levels.
      "*.barrier:host:many_nodes=hierarchical; *.broadcast:host:many_nodes=hierarchical; "
      "*.all_reduce:host:many_nodes=hierarchical; *.all_gather:host:many_nodes=hierarchical; "
      "*.reduce_scatter:host:many_nodes=hierarchical; "
      "*.reduce:host:ranks(5-inf):many_nodes=hierarchical; "
      "*.gather:host:4K-256K:many_nodes=hierarchical; "
      "*.scatter:host:4K-32K:many_nodes=hierarchical; "
      // The rest.
      "*.*:host=mpi; *.*:device=nccl",
      RouteSource::builtin, "default")};
  return table;
}

}  // namespace rankmesh
