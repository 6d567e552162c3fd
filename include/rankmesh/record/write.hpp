// SPDX-License-Identifier: BSD-3-Clause
// Writes the records of this process to files.
#pragma once

#include <string>

#include "rankmesh/export.hpp"

namespace rankmesh::record {

/// Makes a signal write the records of this process. From now on, each time the process gets the
/// signal, it writes the record of each open mesh as `KEY-rankN.rankmesh` into the folder, even
/// while it waits in MPI or computes (docs/trace.md). A later signal replaces the files, and a file
/// appears only when it is complete.
///
/// The signal has no other effect: the handler replaces the previous handler and does
/// not call it, a signal that would otherwise end the process does not end it, and interrupted
/// system calls continue. The handler allocates nothing and takes no lock of the program. A
/// file that cannot be written is missing. Each process can write at most 64
/// meshes. A forked child does not write its parent's records.
///
/// Local. Each rank calls the function, before or after the mesh is opened. A second call with the
/// same signal replaces the folder.
/// @param signal  the number of the signal, for example SIGUSR1, which `mpirun` passes on to the
/// ranks. SIGKILL and SIGSTOP cannot be handled. A signal that reports a failed instruction (such
/// as SIGSEGV) is refused, because the process would repeat the instruction for ever.
/// @param folder  the folder of the files. It is created if it does not exist.
/// @throws UsageError if the signal cannot be used, if no files can be written into the folder, or
/// if RANKMESH_RECORD names the same folder.
RANKMESH_API void write_on_signal(int signal, const std::string& folder);

}  // namespace rankmesh::record
