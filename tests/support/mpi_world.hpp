// The job that a multi-rank test runs in.
#pragma once

namespace rankmesh_test {

int rank();
int size();

/// A barrier for those who may wait long in it: MPI's own takes a core meanwhile.
void wait_for_all();

/// The rank that misbehaves, where one must.
inline int last() { return size() - 1; }

}  // namespace rankmesh_test
