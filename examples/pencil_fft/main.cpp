// SPDX-License-Identifier: BSD-3-Clause
// Transforms an array over a mesh, compares the result with the serial transform of FFTW, and
// prints the time of one transform beside that of FFTW's MPI transform.
//
//     mpirun -n 6 ./pencil_fft row=2,column=3 30 20 10
#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "slabs.hpp"
#include "transform.hpp"

namespace {

// An element of the array before the transform: any numbers without a pattern.
Complex element(const Shape& shape, std::size_t i, std::size_t j, std::size_t k) {
  const auto place = static_cast<double>((i * shape[1] + j) * shape[2] + k);
  return {std::sin(place * place), std::cos(3 * place)};
}

std::vector<Complex> serial_transform(const Shape& shape) {
  std::vector<Complex> values(shape[0] * shape[1] * shape[2]);
  auto* const data = reinterpret_cast<fftw_complex*>(values.data());
  fftw_plan plan =
      fftw_plan_dft_3d(static_cast<int>(shape[0]), static_cast<int>(shape[1]),
                       static_cast<int>(shape[2]), data, data, FFTW_FORWARD, FFTW_ESTIMATE);
  const Box whole{{Range{0, shape[0]}, Range{0, shape[1]}, Range{0, shape[2]}}};
  for (std::size_t i = 0; i < shape[0]; ++i)
    for (std::size_t j = 0; j < shape[1]; ++j)
      for (std::size_t k = 0; k < shape[2]; ++k)
        values[whole.at(i, j, k)] = element(shape, i, j, k);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  return values;
}

// The largest difference to the serial transform, in any part of any rank.
double difference(rankmesh::Mesh& mesh, const Shape& shape, PencilTransform& transform) {
  const Box& in = transform.input_box();
  for_each_run(in, [&](std::size_t i, std::size_t j, std::size_t k, std::size_t n) {
    for (std::size_t e = k; e < k + n; ++e)
      transform.input()[in.at(i, j, e)] = element(shape, i, j, e);
  });
  transform.run();
  const std::vector<Complex> expected = serial_transform(shape);
  const Box whole{{Range{0, shape[0]}, Range{0, shape[1]}, Range{0, shape[2]}}};
  const Box& out = transform.output_box();
  double largest = 0;
  for_each_run(out, [&](std::size_t i, std::size_t j, std::size_t k, std::size_t n) {
    for (std::size_t e = k; e < k + n; ++e) {
      const double mine =
          std::abs(transform.output()[out.at(i, j, e)] - expected[whole.at(i, j, e)]);
      if (!(mine <= largest)) largest = mine;  // also if it is NaN
    }
  });
  return mesh["world"].all_reduce(largest, rankmesh::ReduceOp::max);
}

// The time of one run of the slowest rank, in milliseconds.
double time_of(rankmesh::Mesh& mesh, const std::function<void()>& run) {
  mesh["world"].barrier();
  const double begin = MPI_Wtime();
  run();
  return mesh["world"].all_reduce((MPI_Wtime() - begin) * 1e3, rankmesh::ReduceOp::max);
}

int transform(int argc, char** argv) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, argc > 1 ? argv[1] : "row=auto,column=1"};
  Shape shape{24, 20, 18};
  for (int axis = 0; axis < 3 && argc > 4; ++axis)
    shape[static_cast<std::size_t>(axis)] = std::strtoul(argv[2 + axis], nullptr, 10);

  PencilTransform transform{mesh, shape};
  const double wrong = difference(mesh, shape, transform);

  // In turns, so that other load of the machine concerns both; the least of ten rounds counts.
  const auto run_slabs = slab_transform(shape);
  double pencils = 1e30, slabs = 1e30;
  for (int round = 0; round < 10; ++round) {
    pencils = std::min(pencils, time_of(mesh, [&] { transform.run(); }));
    if (run_slabs) slabs = std::min(slabs, time_of(mesh, run_slabs));
  }
  // Rounding errors grow with the logarithm of the size, and the sums with its square root.
  const auto size = static_cast<double>(shape[0] * shape[1] * shape[2]);
  const bool is_right = wrong <= 1e-14 * std::sqrt(size) * std::log2(size + 1);
  if (mesh.rank() == 0) {
    std::printf("%zu x %zu x %zu: largest difference to the serial transform %.1e%s\n", shape[0],
                shape[1], shape[2], wrong, is_right ? "" : ": WRONG");
    std::printf("pencils %.3f ms", pencils);
    if (run_slabs) std::printf(", FFTW's MPI transform (slabs) %.3f ms", slabs);
    std::printf("\n");
  }
  mesh.close();
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return transform(argc, argv); });
}
