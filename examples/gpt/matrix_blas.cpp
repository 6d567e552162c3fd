// SPDX-License-Identifier: BSD-3-Clause
// The products by BLAS. Its matrices are column-major, so it sees the transposed matrix of each
// array here.
#include "matrix.hpp"

extern "C" {
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
            const int* k, const double* alpha, const double* a, const int* stride_a,
            const double* b, const int* stride_b, const double* beta, double* c,
            const int* stride_c);
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
            const int* k, const float* alpha, const float* a, const int* stride_a, const float* b,
            const int* stride_b, const float* beta, float* c, const int* stride_c);
}

namespace {

// The same name for both types, so that matrix_blas.cpp follows the alias Real.
constexpr auto gemm_of(double /*type*/) { return dgemm_; }
constexpr auto gemm_of(float /*type*/) { return sgemm_; }

// C (m x n) = A B + beta C, column-major; `a` and `b` say whether A and B are transposed.
void gemm(char a, char b, std::int64_t m, std::int64_t n, std::int64_t k, In x,
          std::int64_t stride_x, In y, std::int64_t stride_y, Real beta, Out z) {
  if (m == 0 || n == 0) return;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k),
            of_x = static_cast<int>(stride_x), of_y = static_cast<int>(stride_y);
  const Real one = 1;
  gemm_of(Real{})(&a, &b, &rows, &columns, &inner, &one, x.data(), &of_x, y.data(), &of_y, &beta,
                  z.data(), &rows);
}

}  // namespace

void times_transposed(In x, In w, Out y, std::int64_t rows, std::int64_t in, std::int64_t out) {
  gemm('T', 'N', out, rows, in, w, in, x, in, 0, y);
}

void times(In dy, In w, Out dx, std::int64_t rows, std::int64_t in, std::int64_t out) {
  gemm('N', 'N', in, rows, out, w, in, dy, out, 0, dx);
}

void add_transposed_times(In dy, In x, Out dw, std::int64_t rows, std::int64_t in,
                          std::int64_t out) {
  gemm('N', 'T', in, out, rows, x, in, dy, out, 1, dw);
}
