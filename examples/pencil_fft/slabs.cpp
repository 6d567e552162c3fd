// SPDX-License-Identifier: BSD-3-Clause
// Compiled where FFTW's MPI library is installed; no_slabs.cpp otherwise.
#include "slabs.hpp"

#include <fftw3-mpi.h>

#include <array>
#include <cstddef>
#include <vector>

std::optional<double> time_of_slabs(
    const Shape& shape, const std::function<double(const std::function<void()>&)>& time_of) {
  fftw_mpi_init();
  const std::array<std::ptrdiff_t, 3> n{static_cast<std::ptrdiff_t>(shape[0]),
                                        static_cast<std::ptrdiff_t>(shape[1]),
                                        static_cast<std::ptrdiff_t>(shape[2])};
  std::ptrdiff_t mine = 0, first = 0, mine_after = 0, first_after = 0;
  const std::ptrdiff_t needed = fftw_mpi_local_size_3d_transposed(
      n[0], n[1], n[2], MPI_COMM_WORLD, &mine, &first, &mine_after, &first_after);
  std::vector<Complex> values(static_cast<std::size_t>(needed));
  auto* const data = reinterpret_cast<fftw_complex*>(values.data());
  fftw_plan plan = fftw_mpi_plan_dft_3d(n[0], n[1], n[2], data, data, MPI_COMM_WORLD, FFTW_FORWARD,
                                        FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT);
  const double seconds = time_of([&] { fftw_execute(plan); });
  fftw_destroy_plan(plan);
  fftw_mpi_cleanup();
  return seconds;
}
