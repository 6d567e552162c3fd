// The job that a multi-rank test runs in.
#pragma once

namespace rankmesh_test {

int rank();
int size();

/// The rank that misbehaves, where one must.
inline int last() { return size() - 1; }

}  // namespace rankmesh_test
