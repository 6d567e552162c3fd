// SPDX-License-Identifier: BSD-3-Clause
// Compiled where FFTW's MPI library is installed; no_slabs.cpp otherwise.
#include "slabs.hpp"

#include <fftw3-mpi.h>

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

namespace {

struct Slabs {
  std::vector<std::complex<double>> values;
  fftw_plan plan = nullptr;
  ~Slabs() { fftw_destroy_plan(plan); }
};

}  // namespace

std::function<void()> slab_transform(const Shape& shape) {
  fftw_mpi_init();
  const auto length = [&](std::size_t axis) { return static_cast<std::ptrdiff_t>(shape[axis]); };
  std::ptrdiff_t mine = 0, first = 0, mine_after = 0, first_after = 0;
  const std::ptrdiff_t needed = fftw_mpi_local_size_3d_transposed(
      length(0), length(1), length(2), MPI_COMM_WORLD, &mine, &first, &mine_after, &first_after);
  const auto slabs = std::make_shared<Slabs>();
  slabs->values.resize(static_cast<std::size_t>(needed));
  auto* const data = reinterpret_cast<fftw_complex*>(slabs->values.data());
  slabs->plan = fftw_mpi_plan_dft_3d(length(0), length(1), length(2), data, data, MPI_COMM_WORLD,
                                     FFTW_FORWARD, FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT);
  return [slabs] { fftw_execute(slabs->plan); };
}
